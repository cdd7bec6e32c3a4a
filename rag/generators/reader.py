"""The short answer that the embedded reader finds, in the sentence that holds it, cited."""

import math
from collections.abc import Sequence

from autoais.metrics import normalize_answer
from autoais.words import words
from rag.reader import Reader, Reading
from rag.sentences import sentence_spans
from rag.types import Answer, Citation, Hit, Question, Sentence

# Chosen on every eighth question of nq_pool_dev by exact match:
_PASSAGES = 8  # hits that are read
_RANK = 12.0  # what a hit's score, as a share of the best one's, counts beside the reader's logit


class Spans:
    """Reads the first hits and takes the answer that they agree on.

    Each passage gives its likeliest span the product of how likely it is there and of the passage's weight, a softmax
    over the reader's logit and the retriever's score; spans that are the same answer (normalised as for exact match)
    add up. The sentence with the span is quoted from the passage that gave it most.
    """

    def __init__(self, reader: Reader | None = None, passages: int = _PASSAGES) -> None:
        self._reader = reader or Reader()
        self._passages = passages
        self.name = f"spans.v1({self._reader.name}@{passages})"

    def generate(self, question: Question, hits: Sequence[Hit]) -> Answer:
        """One sentence with the answer, or an abstention where there is nothing to read."""
        first = hits[: self._passages]
        read = zip(first, self._reader.read(question.text, [hit.passage for hit in first]), strict=True)
        top = max((hit.score for hit in first), default=0.0)
        given: list[tuple[float, Hit, Reading, str]] = []
        for hit, reading in read:
            span = hit.passage.text[reading.start : reading.end]
            if reading.start is not None and words(span):
                key = normalize_answer(span)
                share = hit.score / top if top > 0 else 0.0
                given.append((reading.relevance + _RANK * share + reading.answer, hit, reading, key))
        if not given:
            reason = "no passage found holds words that could answer"
            return Answer(question, "", (), tuple(hits), self.name, abstained=True, reason=reason)
        most = max(weight for weight, *_ in given)
        votes: dict[str, float] = {}
        for weight, _, _, key in given:
            votes[key] = votes.get(key, 0.0) + math.exp(weight - most)
        answer = max(votes, key=lambda key: votes[key])  # of equals the first hit's
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
