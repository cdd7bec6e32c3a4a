"""The simplest baseline: quotes the first hit whole."""

from collections.abc import Sequence

from autoais.text.sentences import sentence_spans
from rag.types import Answer, Citation, CitedSentence, Hit, Question


class FirstPassage:
    """Quotes every sentence of the first hit and cites it; any other system should be right more often."""

    name = "first-passage.v1"

    def generate(self, question: Question, hits: Sequence[Hit]) -> Answer:
        """Quote the first hit; abstain if there is none."""
        text, sentences = "", []
        for hit in hits[:1]:
            for start, end in sentence_spans(hit.passage.text):
                quote = hit.passage.text[start:end]
                text += " " if text else ""
                at = len(text)
                text += " ".join(quote.split())
                citation = Citation(hit.passage.id, start, end, quote, "copied")
                sentences.append(CitedSentence(text[at:], (citation,), at, len(text)))
        reason = None if sentences else "no passage was found"
        return Answer(question, text, tuple(sentences), tuple(hits), self.name, abstained=not sentences, reason=reason)
