"""The contracts that ship, `rag.testing`: each fault of somebody's own retriever, system, encoder or model is found."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from rag.answer.llms import Completion, Message, Schema
from rag.answer.system import System
from rag.base.types import Answer, CitedSentence, Hit, Question
from rag.index.open import open_index
from rag.retrieval import Retriever
from rag.retrieval.encoders.static import Static
from rag.testing import ScriptedModel, check_encoder, check_language_model, check_retriever, check_system

QUERIES = ["river of Poland", "capital"]
Hits = list[list[Hit]]


class Faulty:
    """A retriever with what it finds or takes changed."""

    def __init__(
        self,
        over: Retriever,
        *,
        name: str = "faulty",
        changed: Callable[[Hits, Sequence[str]], Hits] = lambda found, _: found,
        takes: Callable[[Sequence[str]], Sequence[str]] = lambda queries: queries,
        least: int = 0,
    ) -> None:
        self.name = name
        self._over, self._changed, self._takes, self._least = over, changed, takes, least

    def search(self, queries: Sequence[str], k: int) -> Hits:
        queries = self._takes(queries)
        return self._changed(self._over.search(queries, max(k, self._least)), queries)


def unlike_alone(found: Hits, queries: Sequence[str]) -> Hits:
    """Scores that depend on the batch."""
    return [[replace(hit, score=hit.score + len(queries)) for hit in hits] for hits in found]


def filled(queries: Sequence[str]) -> Sequence[str]:
    return queries if isinstance(queries, str) else [query if query.strip() else "river" for query in queries]


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ({"name": ""}, "name"),
        ({"changed": lambda found, _: found[:1]}, "2 queries"),
        ({"changed": lambda found, _: [hits[::-1] for hits in found]}, "order"),
        ({"changed": lambda found, _: [[*hits[:1], *hits] for hits in found]}, "twice"),
        ({"changed": lambda found, _: [[] for _ in found]}, "river of Poland"),
        ({"changed": unlike_alone}, "k = 1"),
        ({"changed": lambda found, _: [hits[:2] for hits in found], "takes": lambda q: ["river"] * len(q)}, "unknown"),
        ({"least": 2}, "k = 1"),
        ({"takes": lambda queries: [queries] if isinstance(queries, str) else queries}, "UsageError"),
        ({"takes": filled}, "QuestionError"),
    ],
)
def test_each_fault_of_a_retriever_is_found(shelf: Path, fault: dict[str, object], says: str) -> None:
    bm25 = open_index(shelf).bm25
    check_retriever(Faulty(bm25), QUERIES)
    with pytest.raises(AssertionError, match=says):
        check_retriever(Faulty(bm25, **fault), QUERIES)  # type: ignore[arg-type]


class Echo(System):
    """Says the question back."""

    def __init__(self, name: str = "echo", **changes: object) -> None:
        self._name, self._changes = name, changes
        self.said = 0

    @property
    def name(self) -> str:
        return self._name

    def respond(self, question: Question) -> Answer:
        self.said += 1
        sentence = CitedSentence(question.text, (), 0, len(question.text))
        answer = Answer(question, question.text, (sentence,), (), self.name)
        changes = {key: value() if callable(value) else value for key, value in self._changes.items()}
        return replace(answer, **changes)  # type: ignore[arg-type]


class Restless(Echo):
    """Answers otherwise each time."""

    def respond(self, question: Question) -> Answer:
        return replace(super().respond(question), trace={"said": self.said})


class Torn(Echo):
    """A stream without its answer."""

    def stream(self, question: str | Question) -> Iterator[Answer]:
        yield replace(self.ask(question), text="", sentences=())


@pytest.mark.parametrize(
    ("system", "says"),
    [
        (Echo(""), "name"),
        (Echo(system="another"), "another"),
        (Echo(question=Question("0", "?")), "questions?"),
        (Echo(text="", sentences=()), "abst"),
        (Echo(reason="none"), "reason"),
        (Restless(), "same"),
        (Torn(), "stream"),
    ],
)
def test_each_fault_of_a_system_is_found(system: System, says: str) -> None:
    questions = [Question("1", "Who?"), Question("2", "Where?")]
    check_system(Echo(), questions, cites=False)
    with pytest.raises(AssertionError, match="citation"):
        check_system(Echo(), questions)
    with pytest.raises(AssertionError, match=says):
        check_system(system, questions, cites=False)


class Shaky(Static):
    """The embeddings that ship, with their vectors changed."""

    def __init__(self, changed: Callable[[NDArray[np.float32]], NDArray[np.generic]]) -> None:
        super().__init__()
        self._changed = changed

    def queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return self._changed(super().queries(texts))  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        (lambda vectors: vectors[:, 1:], "should be"),
        (lambda vectors: vectors.astype(np.float64), "float32"),
        (lambda vectors: vectors * np.float32(np.nan), "finite"),
        (lambda vectors: vectors * np.float32(1 + 0.01 * len(vectors)), "batch"),
        (lambda vectors: vectors * np.arange(1, len(vectors) + 1, dtype=np.float32)[:, None], "order"),
    ],
)
def test_each_fault_of_an_encoder_is_found(
    changed: Callable[[NDArray[np.float32]], NDArray[np.generic]], says: str
) -> None:
    check_encoder(Shaky(lambda vectors: vectors))
    with pytest.raises(AssertionError, match=says):
        check_encoder(Shaky(changed))


class Hasty(ScriptedModel):
    """A model with one fault."""

    def __init__(self, fault: str) -> None:
        super().__init__("Warsaw is it, of course.")
        self._fault = fault

    def count(self, messages: Sequence[Message]) -> int:
        return 1 if self._fault == "count" else super().count(messages)

    def complete(
        self, messages: Sequence[Message], max_tokens: int, stop: Sequence[str] = (), *, schema: Schema | None = None
    ) -> Completion:
        if self._fault == "schema" and schema is not None:
            raise TypeError("complete() got an unexpected keyword argument 'schema'")
        done = super().complete(messages, max_tokens, () if self._fault == "stop" else stop)
        if self._fault == "structure" and schema is not None:
            done = replace(done, text="{}")
        if self._fault == "differ":
            done = replace(done, text=done.text.upper())
        if self._fault == "same":
            done = replace(done, text=f"{done.text}{len(self.asked)}")
        return replace(done, completion_tokens=99) if self._fault == "tokens" else done


@pytest.mark.parametrize("fault", ["count", "stop", "differ", "same", "tokens", "schema", "structure"])
def test_each_fault_of_a_language_model_is_found(fault: str) -> None:
    check_language_model(Hasty(""))
    with pytest.raises(AssertionError):
        check_language_model(Hasty(fault))
