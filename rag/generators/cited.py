"""What a language model writes from the passages it is shown, with citations that are checked one by one."""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from autoais.markers.grammar import StreamParser, parse
from rag.attribution.sentences import nearest_sentence, sentence_spans
from rag.errors import RagError
from rag.llms import Completion, LanguageModel, Message, ModelError, traced, without_thoughts
from rag.llms.prompts import STOP, Prompt
from rag.types import Answer, Citation, Hit, Question, Sentence, Unresolved

MAX_TOKENS = 512  # of a reply; a small context gives it a quarter
_LONGEST_TOKEN = 16  # characters; a longer reply comes from a server that does not keep to its tokens
_LOOP = re.compile(r"(.{10,400}?)\1{3}", re.DOTALL)
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_SOURCES = r"(?:contexts?|passages?|sources?|documents?|quotes?|texts?|information)"
_NOT = r"(?:do not|does not|did not|don't|doesn't|didn't|cannot|can't)"
_REFUSAL = re.compile(
    r"\bi (?:do not|don't) (?:know|have (?:enough|any|the|sufficient))\b"
    r"|\b(?:i am|i'm) (?:not able|unable) to (?:answer|determine|find|provide)\b"
    r"|\bi (?:cannot|can't|could not) (?:answer|determine|find|provide)\b"
    rf"|\b{_SOURCES}(?: (?:provided|given|above|texts?|passages?))* {_NOT}\b"
    rf"|\bnone of the (?:\w+ ){{0,2}}{_SOURCES}\b"
    r"|\b(?:no|not enough|insufficient) (?:relevant )?information\b"
    r"|\b(?:is|are|was|were) not (?:mentioned|stated|specified|provided|given|answered|found) (?:in|by) the\b"
    r"|\b(?:cannot|can't|can not|could not) be (?:answered|determined|found)\b"
)


@dataclass(frozen=True, slots=True)
class _Asked:
    """What the model is asked, and of each passage it is shown (by number, from 1) how many characters."""

    messages: tuple[Message, ...]
    shown: tuple[tuple[Hit, int], ...]
    trace: dict[str, Any]

    @property
    def texts(self) -> list[str]:
        return [hit.passage.text[:end] for hit, end in self.shown]


class Cited:
    """Asks a language model with a prompt; the numbers it cites are checked against the passages it was shown.

    Passages that do not fit the model's context are cut at the end of a sentence, or left out, from the last on. A
    number that was shown becomes a citation with the words of the passage that are nearest to the sentence
    (`nearest_sentence`), or all that was shown of it where they share none; any other is left `unresolved`. A
    sentence without a citation stays without. The answer is an abstention where the model says that the contexts do
    not answer and cites nothing, and failed where it gives nothing that can be used.

    `trace` of an answer: `raw` (what the model wrote), `prompt`, `shown` (ids of passages in the order of their
    numbers), `tokens` (`read`, `written`), and, only where it happened, `stopped` (at the most tokens it may write),
    `repeated` (it wrote a loop, which was cut) and `cut` (`shortened`: characters shown, by id; `dropped`: ids).
    """

    def __init__(self, model: LanguageModel, prompt: Prompt, *, max_tokens: int = MAX_TOKENS) -> None:
        if not prompt.shows_passages:
            raise RagError(f"{prompt.name}: no place for passages; it needs {{contexts}} or {{titled_contexts}}")
        self._model = model
        self._prompt = prompt
        self._max_tokens = max(1, min(max_tokens, model.context // 4))
        self._room = model.context - self._max_tokens
        self.name = f"cited.v1({model.name},{prompt.id},{self._max_tokens})"

    def generate(self, question: Question, hits: Sequence[Hit]) -> Answer:
        """The model's answer; where there is no passage it is not asked. `UserError` only where a person must act."""
        asked = self._asked(question, hits)
        if isinstance(asked, Answer):
            return asked
        try:
            completion = self._model.complete(asked.messages, self._max_tokens, STOP)
        except ModelError as error:
            return self._nothing(question, hits, str(error), asked.trace, failed=True)
        return self._read(question, hits, asked, completion)

    def stream(self, question: Question, hits: Sequence[Hit]) -> Iterator[str | Answer]:
        """The model's text as it comes, citations whole and numbered as in `trace["shown"]`; then the answer."""
        return (piece for piece in self._stream(question, hits) if piece != "")

    def _stream(self, question: Question, hits: Sequence[Hit]) -> Iterator[str | Answer]:
        asked = self._asked(question, hits)
        if isinstance(asked, Answer):
            yield asked
            return
        parser = StreamParser(lambda _: parse("", 0))  # the answer is read from the whole reply, as without a stream
        raw, begin = "", None
        try:
            for piece in self._model.stream(asked.messages, self._max_tokens, STOP):
                if isinstance(piece, Completion):
                    yield parser.feed("" if begin is not None else without_thoughts(raw))
                    yield parser.close()[0]
                    yield self._read(question, hits, asked, piece)
                    return
                raw += piece
                if begin is not None:
                    yield parser.feed(piece)
                elif (begin := _thought_end(raw)) is not None:
                    yield parser.feed(raw[begin:])
        except ModelError as error:
            yield self._nothing(question, hits, str(error), asked.trace | {"raw": raw}, failed=True)

    def _asked(self, question: Question, hits: Sequence[Hit]) -> _Asked | Answer:
        """What to ask, or the answer where there is nothing to ask about."""
        readable = [hit for hit in hits if hit.passage.text.strip()]
        trace: dict[str, Any] = {"prompt": self._prompt.id}
        if not readable:
            return self._nothing(question, hits, "no passages were found", trace)
        shown = self._fitted(question, readable)
        if not shown:
            reason = f"question and prompt leave no room for a passage in {self._room} tokens"
            return self._nothing(question, hits, reason, trace, failed=True)
        trace["shown"] = [hit.passage.id for hit, _ in shown]
        shortened = {hit.passage.id: end for hit, end in shown if end < len(hit.passage.text)}
        dropped = [hit.passage.id for hit in readable[len(shown) :]]
        if shortened or dropped:
            trace["cut"] = {"shortened": shortened, "dropped": dropped}
        return _Asked(self._messages(question, shown), shown, trace)

    def _messages(self, question: Question, shown: Sequence[tuple[Hit, int]]) -> tuple[Message, ...]:
        passages = [replace(hit.passage, text=hit.passage.text[:end]) for hit, end in shown]
        return (Message("user", self._prompt.fill(question.text, passages)),)

    def _fitted(self, question: Question, hits: Sequence[Hit]) -> tuple[tuple[Hit, int], ...]:
        """As many of the first passages as fit, the last of them cut at the end of a sentence if need be."""
        whole = tuple((hit, len(hit.passage.text)) for hit in hits)
        if self._fits(question, whole):
            return whole
        shown: tuple[tuple[Hit, int], ...] = ()
        for hit, length in whole:
            if not self._fits(question, (*shown, (hit, length))):
                end = self._fitting_end(question, shown, hit)
                return (*shown, (hit, end)) if end else shown
            shown = (*shown, (hit, length))
        return shown

    def _fitting_end(self, question: Question, before: tuple[tuple[Hit, int], ...], hit: Hit) -> int:
        """Where the last sentence ends with which a passage still fits behind others; 0 where none does."""
        ends = [end for _, end in sentence_spans(hit.passage.text)]
        fitting = bisect_left(ends, True, key=lambda end: not self._fits(question, (*before, (hit, end))))
        return ends[fitting - 1] if fitting else 0

    def _fits(self, question: Question, shown: Sequence[tuple[Hit, int]]) -> bool:
        return self._model.count(self._messages(question, shown)) <= self._room

    def _read(self, question: Question, hits: Sequence[Hit], asked: _Asked, completion: Completion) -> Answer:
        raw = completion.text[: self._max_tokens * _LONGEST_TOKEN]
        completion = replace(completion, text=raw, cut=completion.cut or len(raw) < len(completion.text))
        trace = asked.trace | traced(completion)
        text = _SURROGATE.sub("\ufffd", _CONTROL.sub(" ", without_thoughts(raw)))
        # A model that repeats itself does so to the end, so only a reply that was stopped can be a loop.
        if completion.cut and (loop := _LOOP.search(text)):
            trace["repeated"] = True
            once = len(text[: loop.end(1)].rstrip())
            text = text[: next((end for _, end in sentence_spans(text[: loop.end()]) if end >= once), once)]
        parsed = parse(text, len(asked.shown), passages=asked.texts)
        unresolved = tuple(Unresolved(one.marker, one.reason) for one in parsed.unresolved)
        cited = any(statement.cites for statement in parsed.sentences)
        if not cited and _REFUSAL.search(" ".join(parsed.text.casefold().replace("’", "'").split())):
            reason = "the model says that the passages do not answer"
            return self._nothing(question, hits, reason, trace, unresolved)
        if not parsed.sentences:
            reason = "the model wrote no sentence" if raw.strip() else "the model wrote nothing"
            return self._nothing(question, hits, reason, trace, unresolved, failed=True)
        sentences = []
        for statement in parsed.sentences:
            said = parsed.text[statement.start : statement.end]
            citations = tuple(_citation(said, *asked.shown[number - 1]) for number in statement.cites)
            sentences.append(Sentence(statement.start, statement.end, citations))
        return Answer(
            question, parsed.text, tuple(sentences), tuple(hits), self.name, unresolved=unresolved, trace=trace
        )

    def _nothing(
        self,
        question: Question,
        hits: Sequence[Hit],
        reason: str,
        trace: dict[str, Any],
        unresolved: tuple[Unresolved, ...] = (),
        *,
        failed: bool = False,
    ) -> Answer:
        return Answer(
            question,
            "",
            (),
            tuple(hits),
            self.name,
            unresolved=unresolved,
            abstained=True,
            reason=reason,
            failed=failed,
            trace=trace,
        )


def _citation(said: str, hit: Hit, end: int) -> Citation:
    text = hit.passage.text[:end]
    first, last = nearest_sentence(text, said) or (len(text) - len(text.lstrip()), len(text.rstrip()))
    return Citation(hit.passage.id, first, last, text[first:last], "cited")


def _thought_end(text: str) -> int | None:
    """Where a reply that grows begins behind a model's thoughts; None as long as it may still be in them."""
    begun = text.lstrip()
    if not begun or ("<think>".startswith(begun) and len(begun) < len("<think>")):
        return None
    if not begun.startswith("<think>"):
        return 0
    end = text.find("</think>")
    return None if end < 0 else end + len("</think>")
