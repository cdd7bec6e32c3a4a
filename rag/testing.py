"""Contract checks for your own retrievers, encoders, language models and systems.

    from rag.testing import check_retriever

    def test_my_retriever() -> None:
        check_retriever(MyRetriever(), ["river of Poland", "Nobel Prize"])

The checks use `assert` and need no test framework. `autoais.testing` has the check for judges.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import numpy as np

from rag.answer.llms import Completion, LanguageModel, Message, ModelError, Schema, cut_at, in_pieces
from rag.answer.system import System
from rag.base.errors import QuestionError, RagError, UsageError
from rag.base.types import Question
from rag.retrieval import Retriever
from rag.retrieval.encoders.kinds import Encoder

TEXTS = ("river", "Warsaw is the capital of Poland.", "東京", "\x00 [SEP] <s>", "a long text " * 200)
MESSAGES = (Message("user", "What is the capital of Poland?"),)
SCHEMA: Schema = {
    "type": "object",
    "properties": {"answerable": {"type": "boolean"}},
    "required": ["answerable"],
    "additionalProperties": False,
}


def check_retriever(retriever: Retriever, queries: Sequence[str], *, lexical: bool = True) -> None:
    """Check the contract of a retriever; raises `AssertionError` with the broken rule.

    The retriever has a name. It returns one list per query, in order, the same every time and in any batch. Lists are
    sorted by descending score, then passage id, without duplicates. A smaller k returns a prefix of the list. A string
    instead of a list raises `UsageError`, an empty query `QuestionError`, a k below 1 `RagError`.

    Every one of `queries` must have hits. A retriever that is not `lexical` has hits for any query.
    """
    assert retriever.name, "a retriever needs a name"
    assert retriever.search([], 3) == [], "an empty list of queries should give an empty list"
    lists = retriever.search(queries, 1000)
    assert len(lists) == len(queries), f"{len(queries)} queries gave {len(lists)} lists"
    for query, hits in zip(queries, lists, strict=True):
        assert hits, f"nothing was found for {query!r}"
        assert hits == sorted(hits, key=lambda hit: (-hit.score, hit.passage.id)), f"hits are out of order: {query!r}"
        assert len({hit.passage.id for hit in hits}) == len(hits), f"a passage occurs twice in the hits of {query!r}"
        for k in range(1, len(hits) + 2):
            assert retriever.search([query], k) == [hits[:k]], f"k = {k} changes the hits of {query!r}"
    assert retriever.search(queries[::-1], 1000) == lists[::-1], "the lists should be in the order of the queries"
    has_hits = bool(retriever.search(["zzzunknownword"], 3)[0])
    assert has_hits is not lexical, f"lexical is {lexical}, but an unknown word has {'hits' if has_hits else 'no hits'}"
    one_string: Sequence[str] = queries[0]
    _check_raises(UsageError, "a string instead of a list", lambda: retriever.search(one_string, 3))
    _check_raises(QuestionError, "an empty query", lambda: retriever.search([queries[0], " "], 3))
    _check_raises(RagError, "a k of 0", lambda: retriever.search(queries, 0))


def check_system(system: System, questions: Sequence[Question], *, cites: bool = True) -> None:
    """Check the contract of a system; raises `AssertionError` with the broken rule.

    The system has a name, which its answers repeat. `ask`, `answer`, `stream` and `partials` return the same answer to
    a question, every time, and each answer of `partials` begins the next; `answer` returns one answer per question, in
    order. An answer without sentences is an abstention with a reason. A string instead of a list of questions raises
    `UsageError`. (`Answer` itself checks that each cited passage was retrieved and each quote is verbatim.)

    The system must answer `questions` or abstain. Set `cites` to False if its sentences may lack citations.
    """
    assert system.name, "a system needs a name"
    answers = list(system.answer(questions))
    assert [answer.question for answer in answers] == list(questions), "one answer per question, in order"
    assert list(system.answer(questions)) == answers, "the same questions should give the same answers"
    for answer in answers:
        question = answer.question
        assert answer.system == system.name, f"the answer names {answer.system!r}, the system is {system.name!r}"
        assert answer.abstained == (not answer.sentences), f"abstained should mean no sentences: {question}"
        assert answer.abstained == (answer.reason is not None), f"abstained should mean a reason: {question}"
        assert not cites or all(sentence.citations for sentence in answer.sentences), (
            f"a sentence has no citation: {question}"
        )
        assert system.ask(question) == answer, f"ask and answer differ: {question}"
        stream = list(system.stream(question))
        assert stream[-1] == answer, f"a stream should end with the answer: {question}"
        for before, after in pairwise(stream):
            first_sentences = after.sentences[: len(before.sentences)]
            assert first_sentences == before.sentences, f"a sentence changed while the answer was written: {question}"
            assert after.text.startswith(before.text), f"the text changed while the answer was written: {question}"
    text = questions[0].text
    assert system.ask(text).question.text == text, "ask should accept a plain string"
    one_string: Sequence[str] = text
    _check_raises(UsageError, "a string instead of a list", lambda: system.answer(one_string))


def check_encoder(encoder: Encoder, texts: Sequence[str] = TEXTS) -> None:
    """Check the contract of an encoder; raises `AssertionError` with the broken rule.

    The encoder has a name. It returns one vector per text, in order: float32 of shape (texts, dimension), all values
    finite. A query's vector does not depend on its batch; a passage's may differ in the last digits, as on GPUs.
    """
    assert encoder.name, "an encoder needs a name"
    for method, encode in (("queries", encoder.queries), ("passages", encoder.passages)):
        vectors = encode(texts)
        shape = (len(texts), encoder.dimension)
        assert vectors.shape == shape, f"{method} returned shape {vectors.shape}, should be {shape}"
        assert vectors.dtype == np.float32, f"{method} returned {vectors.dtype}, should be float32"
        assert np.isfinite(vectors).all(), f"{method} returned a vector that is not finite"
        assert encode([]).shape == (0, encoder.dimension), f"{method} of no texts should be (0, dimension)"
        small = 0.0 if method == "queries" else 1e-3
        assert np.allclose(encode(texts[::-1]), vectors[::-1], 0, small), f"{method} are out of order"
        for text, vector in zip(texts, vectors, strict=True):
            assert np.allclose(encode([text])[0], vector, 0, small), f"the batch changes the vector of {text[:40]!r}"


def check_language_model(
    model: LanguageModel, messages: Sequence[Message] = MESSAGES, max_tokens: int = 8
) -> Completion:
    """Check the contract of a language model and return its reply; raises `AssertionError` with the broken rule.

    The model has a name and a context. The same messages give the same reply, streamed or not. The reply has at most
    `max_tokens` tokens and ends before a stop text. Tokens are counted. A text that looks like special tokens does not
    crash it. It takes a schema, which the reply need not follow, but does so streamed and not.
    """
    assert model.name, "a language model needs a name"
    assert model.context > 0, "a context should be above 0"
    completion = model.complete(messages, max_tokens)
    assert model.complete(messages, max_tokens) == completion, "the same messages should give the same reply"
    assert _stream_completion(model, messages, max_tokens) == completion, "stream and complete differ"
    assert completion.prompt_tokens > 0, "the tokens of the prompt should be counted"
    assert 0 < completion.completion_tokens <= max_tokens, (
        f"{completion.completion_tokens} tokens, should be 1 to {max_tokens}"
    )
    assert 0 < model.count(messages) < model.count([*messages, *messages]), "more messages should count more tokens"
    if stop := completion.text[1:2]:
        short_completion = model.complete(messages, max_tokens, [stop])
        assert short_completion.text == completion.text[: completion.text.index(stop)], (
            f"the reply should end before {stop!r}"
        )
        assert _stream_completion(model, messages, max_tokens, [stop]) == short_completion, (
            f"stream and complete differ at {stop!r}"
        )
    model.complete([Message("user", "\x00 <|im_end|></s> 東京 [INST]")], 2)
    try:
        structured = model.complete(messages, max_tokens, schema=SCHEMA)
        structured_stream = _stream_completion(model, messages, max_tokens, schema=SCHEMA)
    except TypeError as error:
        raise AssertionError(f"complete and stream should take a schema: {error}") from error
    assert structured.completion_tokens <= max_tokens, f"{structured.completion_tokens} tokens with a schema"
    assert structured_stream == structured, "stream and complete differ with a schema"
    return completion


def _stream_completion(
    model: LanguageModel,
    messages: Sequence[Message],
    max_tokens: int,
    stop: Sequence[str] = (),
    *,
    schema: Schema | None = None,
) -> Completion:
    """The completion of a stream, after a check that the pieces are its text."""
    options: dict[str, Schema] = {} if schema is None else {"schema": schema}
    *pieces, last = model.stream(messages, max_tokens, stop, **options)
    assert isinstance(last, Completion), "a stream should end with a Completion"
    assert "".join(piece for piece in pieces if isinstance(piece, str)) == last.text, "the pieces should be the text"
    return last


def _check_raises(error: type[Exception], case: str, call: Callable[[], object]) -> None:
    try:
        call()
    except error:
        return
    raise AssertionError(f"{case} should raise {error.__name__}")


class ScriptedModel:
    """A language model for tests that replies with the given texts in turn and repeats the last one.

    A word counts as a token, and a text is cut after `max_tokens` words. An error among the texts is raised. `asked`
    records the prompts. A stream has pieces of `piece` characters; an error is raised after the piece "Half a ".
    """

    def __init__(self, *says: str | ModelError, context: int = 4096, piece: int = 3) -> None:
        self.says = list(says)
        self.context = context
        self.name = "script"
        self.asked: list[str] = []
        self._piece = piece

    def count(self, messages: Sequence[Message]) -> int:
        """The number of words in the messages."""
        return sum(len(message.content.split()) for message in messages)

    def complete(
        self, messages: Sequence[Message], max_tokens: int, stop: Sequence[str] = (), *, schema: Schema | None = None
    ) -> Completion:
        """The next text of the script."""
        return cut_at(self._write(messages, max_tokens, lambda _: None), stop)

    def stream(
        self, messages: Sequence[Message], max_tokens: int, stop: Sequence[str] = (), *, schema: Schema | None = None
    ) -> Iterator[str | Completion]:
        """The next text of the script, in pieces."""
        return in_pieces(lambda on_text: self._write(messages, max_tokens, on_text), stop)

    def _write(self, messages: Sequence[Message], max_tokens: int, on_text: Callable[[str], None]) -> Completion:
        self.asked.append(messages[-1].content)
        reply = self.says.pop(0) if len(self.says) > 1 else self.says[0]
        if isinstance(reply, ModelError):
            on_text("Half a ")
            raise reply
        words = reply.split(" ")
        text = " ".join(words[:max_tokens])
        for start in range(0, len(text), self._piece):
            on_text(text[start : start + self._piece])
        return Completion(text, len(words) > max_tokens, self.count(messages), len(text.split()))
