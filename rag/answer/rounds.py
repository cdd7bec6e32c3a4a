"""Further searches that a language model asks for: the answer to "When was the founder of the mill born?" may need two.

The model sees what the reader finds best so far, and replies with a query or with an empty one. What it writes is
hostile: a query is one plain line of limited length, and is only searched for.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import Any

from autoais.base.models.thoughts import without_thoughts
from rag.answer.generators.passage_reader import PassageReader
from rag.answer.generators.pointing import MAX_PASSAGE_WORDS, number_units, read_object, select_units
from rag.answer.llms import MODEL_FAILED, Completion, LanguageModel, Message, ModelError, printable_reply
from rag.answer.llms.prompts import Prompt, plain
from rag.base.errors import QuestionError
from rag.base.types import Hit, Question

MAX_SECONDS = 30.0
"""How long the rounds of a question may take; when it is over, a model that still writes is left."""

MAX_TOKENS = 8000
"""Tokens that the model may read and write in all rounds of a question."""

MAX_QUERY_LENGTH = 200
"""Characters of a query; the rest is cut."""

_PROMPT = "search.v1"
_MAX_REPLY_TOKENS = 80
_MAX_REPLY_LENGTH = 2000  # characters that are read of a reply
_SCHEMA = {
    "type": "object",
    "properties": {"query": {"type": "string", "maxLength": MAX_QUERY_LENGTH}},
    "required": ["query"],
    "additionalProperties": False,
}


class _StopError(Exception):
    """The rounds end; the message says why."""


@dataclass(slots=True)
class Searches:
    """What was found, `hits`, and how: `queries` after the question, with the ids of their new hits, and why they end.

    `read` and `written` count the tokens of the model.
    """

    hits: list[Hit]
    queries: list[tuple[str, list[str]]] = field(default_factory=list)
    stopped: str = ""
    read: int = 0
    written: int = 0

    def add_to(self, trace: Mapping[str, Any]) -> dict[str, Any]:
        """The trace of an answer with `searches`, and with their tokens among its `tokens`."""
        queries = [{"query": query, "new": ids} for query, ids in self.queries]
        tokens = trace.get("tokens", {"read": 0, "written": 0})
        return {
            **trace,
            "tokens": {"read": tokens["read"] + self.read, "written": tokens["written"] + self.written},
            "searches": {"queries": queries, "stopped": self.stopped},
        }


class Rounds:
    """Lets a language model ask for searches until it needs no more, up to so many `rounds`; the first is the question.

    The model is shown up to so many `words` of what the reader finds best. The rounds end when its query is empty, not
    readable, cannot be searched for, repeats an earlier one or finds nothing new; when it fails; and when the time
    (`MAX_SECONDS`) or the tokens (`MAX_TOKENS`) are used up. The question is then answered from what was found.
    """

    def __init__(self, model: LanguageModel, reader: PassageReader, *, rounds: int, words: int) -> None:
        self._model, self._reader, self._rounds, self._words = model, reader, rounds, words
        self._prompt = Prompt.read(_PROMPT)
        self.name = f"rounds.v1({rounds},{model.name},{self._prompt.id},{words} words,{reader.name})"

    def search_further(
        self, question: Question, hits: Sequence[Hit], search: Callable[[str], Sequence[Hit]]
    ) -> Searches:
        """The hits of the question with those of further searches behind them, and what was searched for.

        Raises `UserError` only if the user must act, as when a server refuses the key.
        """
        searches = Searches(list(hits))
        deadline = monotonic() + MAX_SECONDS
        try:
            while len(searches.queries) + 1 < self._rounds:
                _add_search(searches, question, self._ask(question, searches, deadline), search)
            searches.stopped = f"all {self._rounds} rounds are used"
        except _StopError as stop:
            searches.stopped = str(stop)
        except ModelError as error:
            searches.stopped = f"{MODEL_FAILED}: {error}"
        return searches

    def _ask(self, question: Question, searches: Searches, deadline: float) -> str:
        """The model's next query; raises `_StopError` if there is none."""
        messages = self._messages(question, searches.hits)
        if searches.read + searches.written + self._model.count(messages) + _MAX_REPLY_TOKENS > MAX_TOKENS:
            raise _StopError(f"the {MAX_TOKENS:,} tokens for searches are used up")
        completion = self._complete(messages, deadline)
        searches.read += max(0, completion.prompt_tokens)
        searches.written += max(0, completion.completion_tokens)
        query = read_query(completion.text)
        if query is None:
            raise _StopError("the model's reply has no query")
        if not query:
            raise _StopError("the model asks for nothing more")
        return query

    def _complete(self, messages: Sequence[Message], deadline: float) -> Completion:
        """The model's reply, as a stream, which can be left when the time is over."""
        if monotonic() < deadline:
            for piece in self._model.stream(messages, _MAX_REPLY_TOKENS, schema=_SCHEMA):
                if isinstance(piece, Completion):
                    return piece
                if monotonic() >= deadline:
                    break
        raise _StopError(f"the {MAX_SECONDS:g} seconds for searches are over")

    def _messages(self, question: Question, hits: Sequence[Hit]) -> tuple[Message, ...]:
        """The prompt with the first units of what the reader finds best that fit the context window."""
        units = select_units(self._reader.read(question, hits), self._words, MAX_PASSAGE_WORDS)
        while True:
            values = {"question": plain(question.text), "sources": number_units(units) or "(none)"}
            messages = (Message("user", self._prompt.put(values), self._prompt.prefix),)
            if self._model.count(messages) + _MAX_REPLY_TOKENS <= self._model.context:
                return messages
            if not units:
                raise _StopError("the question leaves no room for a search in the context")
            units = units[: len(units) * 3 // 4]


def _add_search(searches: Searches, question: Question, query: str, search: Callable[[str], Sequence[Hit]]) -> None:
    """Search for a query; raises `_StopError` if it was searched for before, cannot be, or finds nothing new."""
    earlier = {text.casefold() for text in (plain(question.text), *(text for text, _ in searches.queries))}
    new_ids: list[str] = []
    searches.queries.append((query, new_ids))
    if query.casefold() in earlier:
        raise _StopError("the model repeats a query")
    try:
        query_hits = search(query)
    except QuestionError as error:
        raise _StopError(f"the query cannot be searched for: {error}") from None
    count = len(searches.hits)
    searches.hits = merge_hits(searches.hits, query, query_hits)
    new_ids += [hit.passage.id for hit in searches.hits[count:]]
    if not new_ids:
        raise _StopError("the query finds nothing new")


def merge_hits(hits: Sequence[Hit], query: str, query_hits: Sequence[Hit]) -> list[Hit]:
    """The hits, then those of a further query that are new, in their order and with lower scores.

    What the query found has it among its `searches`, also if it was there before.
    """
    scores = {hit.passage.id: hit.score for hit in query_hits}
    merged_hits = [
        replace(hit, searches=(*hit.searches, (query, scores[hit.passage.id]))) if hit.passage.id in scores else hit
        for hit in hits
    ]
    known_ids = {hit.passage.id for hit in hits}
    new_hits = [hit for hit in query_hits if hit.passage.id not in known_ids]
    floor = hits[-1].score - 1 if hits else 0.0
    merged_hits += [
        Hit(hit.passage, floor - (new_hits[0].score - hit.score), ((query, hit.score),)) for hit in new_hits
    ]
    return merged_hits


def read_query(reply: str) -> str | None:
    """The query of a reply, plain and cut; empty if the model asks for none, None if the reply has no query."""
    row = read_object(printable_reply(without_thoughts(reply[:_MAX_REPLY_LENGTH])), "query")
    query = None if row is None else row["query"]
    if not isinstance(query, str):
        return None
    query = plain(query)[:MAX_QUERY_LENGTH].strip()
    return query if any(map(str.isalnum, query)) else ""
