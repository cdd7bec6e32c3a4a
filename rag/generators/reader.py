"""The short answer that the embedded reader finds, in the sentence that holds it, cited."""

import math
from collections.abc import Sequence

from autoais.metrics import normalize_answer
from rag.reader import Reader, Reading
from rag.sentences import sentence_spans
from rag.types import Answer, Citation, Hit, Question, Sentence

_LEAST = 0.0  # relevance of the passage that answers: below it none does


class Reads:
    """Reads the hits and takes the answer that most of them agree on.

    Each passage gives its likeliest span the product of how likely it is and how relevant the passage is among the
    hits (both softmax); spans that are the same answer (normalised as for exact match) add up. The sentence with the
    span is quoted from the passage that gave it most. Abstains where no passage is relevant enough.
    """

    def __init__(self, reader: Reader | None = None, *, least: float = _LEAST) -> None:
        self._reader = reader or Reader()
        self._least = least
        self.name = f"{self._reader.name}/span.v1"

    def generate(self, question: Question, hits: Sequence[Hit]) -> Answer:
        """One sentence with the answer, or an abstention."""
        readings = self._reader.read(question.text, [hit.passage for hit in hits])
        found = [(hit, reading) for hit, reading in zip(hits, readings, strict=True) if reading.start is not None]
        best = max((reading.relevance for _, reading in found), default=-math.inf)
        if best < self._least:
            reason = "no passage found answers the question" if found else "nothing was found"
            return Answer(question, "", (), tuple(hits), self.name, abstained=True, reason=reason)
        votes: dict[str, float] = {}
        given: list[tuple[float, Hit, Reading, str]] = []
        for hit, reading in found:
            weight = math.exp(reading.relevance - best + reading.answer)
            key = normalize_answer(hit.passage.text[reading.start : reading.end])
            votes[key] = votes.get(key, 0.0) + weight
            given.append((weight, hit, reading, key))
        # Of equal votes the first hit's; max keeps the first.
        answer = max(votes, key=lambda key: votes[key])
        _, hit, reading, _ = max((one for one in given if one[3] == answer), key=lambda one: one[0])
        return self._quoted(question, hits, hit, reading)

    def _quoted(self, question: Question, hits: Sequence[Hit], hit: Hit, reading: Reading) -> Answer:
        text = hit.passage.text
        start, end = reading.start or 0, reading.end or len(text)
        within = [(a, b) for a, b in sentence_spans(text) if a < end and start < b] or [(start, end)]
        first, last = within[0][0], within[-1][1]
        quote = text[first:last]
        sentence = " ".join(quote.split())
        citation = Citation(hit.passage.id, first, last, quote)
        return Answer(
            question,
            sentence,
            (Sentence(0, len(sentence), (citation,)),),
            tuple(hits),
            self.name,
            short_answer=" ".join(text[start:end].split()),
        )
