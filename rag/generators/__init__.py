"""Generators: from a question and its hits to the sentences of an answer."""

from collections.abc import Iterator, Sequence
from typing import Protocol, runtime_checkable

from rag.types import Answer, Hit, Question


class Generator(Protocol):
    """Writes a cited answer from the hits it is given, or abstains."""

    @property
    def name(self) -> str:
        """Says all that changes an answer: model, prompt, version."""
        ...

    def generate(self, question: Question, hits: Sequence[Hit]) -> Answer:
        """An answer that cites only these hits."""
        ...


@runtime_checkable
class Streaming(Protocol):
    """A generator that can also show its text while it is written."""

    def stream(self, question: Question, hits: Sequence[Hit]) -> Iterator[str | Answer]:
        """The text, as written, in pieces that tear no citation; then the answer, the same that `generate` gives."""
        ...
