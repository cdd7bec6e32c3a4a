"""The simplest baseline: quotes the first hit whole."""

from collections.abc import Sequence

from rag.answer.generators.units import quote_units, split_units
from rag.base.types import Answer, Hit, Question


class FirstPassage:
    """Quotes the first hit unit by unit and cites it; any other system should be right more often."""

    name = "first-passage.v2"

    def generate(self, question: Question, hits: Sequence[Hit]) -> Answer:
        """Quote the first hit; abstain if there is none."""
        text, sentences = quote_units((hit.passage, unit) for hit in hits[:1] for unit in split_units(hit.passage.text))
        reason = None if sentences else "no passage was found"
        return Answer(question, text, sentences, tuple(hits), self.name, abstained=not sentences, reason=reason)
