"""What a generator is: it writes a cited answer from a question and its hits, whole or while it writes."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol, runtime_checkable

from rag.base.types import Answer, Hit, Question


class Generator(Protocol):
    """Writes a cited answer from hits, or abstains."""

    @property
    def name(self) -> str:
        """Identifies everything that can change an answer: model, prompt, version."""
        ...

    def generate(self, question: Question, hits: Sequence[Hit]) -> Answer:
        """An answer that cites only these hits."""
        ...


@runtime_checkable
class Streaming(Protocol):
    """A generator that can also stream its text."""

    def stream(self, question: Question, hits: Sequence[Hit]) -> Iterator[str | Answer]:
        """Yield the text in pieces that split no citation marker, or are empty; then the same answer as `generate`."""
        ...


@runtime_checkable
class Growing(Protocol):
    """A generator that can also show its answer while it is written."""

    def partials(self, question: Question, hits: Sequence[Hit]) -> Iterator[Answer]:
        """Yield the answer so far, with its complete sentences, at each piece of text; last, that of `generate`.

        Sentences that were yielded stay as they are.
        """
        ...


def map_partials(answers: Iterable[Answer], change: Callable[[Answer], Answer]) -> Iterator[Answer]:
    """Yield each answer so far as `change` returns it; one that has not grown (the same object) is changed once."""
    before: Answer | None = None
    for answer in answers:
        if answer is not before:
            before, latest = answer, change(answer)
        yield latest
