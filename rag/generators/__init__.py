"""Generators: from a question and its hits to the sentences of an answer."""

from collections.abc import Sequence
from typing import Protocol

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
