"""The simplest baseline: quotes the first hit whole."""

from collections.abc import Sequence

from rag.generators.units import CODE, units
from rag.types import Answer, Citation, CitedSentence, Hit, Question


class FirstPassage:
    """Quotes every unit of the first hit and cites it; any other system should be right more often.

    Lines of the passage stay lines.
    """

    name = "first-passage.v2"

    def generate(self, question: Question, hits: Sequence[Hit]) -> Answer:
        """Quote the first hit; abstain if there is none."""
        text, sentences = "", []
        for hit in hits[:1]:
            passage, before = hit.passage, None
            for unit in units(passage.text):
                if before is not None:
                    text += "\n" if "\n" in passage.text[before.end : unit.start] else " "
                quote = passage.text[unit.start : unit.end]
                at = len(text)
                text += quote if unit.kind == CODE else " ".join(quote.split())
                citation = Citation(passage.id, unit.start, unit.end, quote, "copied")
                sentences.append(CitedSentence(text[at:], (citation,), at, len(text)))
                before = unit
        reason = None if sentences else "no passage was found"
        return Answer(question, text, tuple(sentences), tuple(hits), self.name, abstained=not sentences, reason=reason)
