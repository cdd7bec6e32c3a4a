"""The short answer found by the reader, and the sentence that contains it as a citation."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from autoais.judges.minilm import shipped
from autoais.metrics.short_answers import normalize_answer
from autoais.text.sentences import sentence_spans
from autoais.text.words import words
from autoais.types import Attribution, Judge
from rag.errors import RagError
from rag.generators.confidence import Confidence
from rag.reader import Reader, Reading
from rag.reader import shipped as shipped_reader
from rag.types import Answer, Citation, CitedSentence, Hit, Question

# Chosen on every eighth question of nq_pool_dev by exact match:
_PASSAGES = 8  # hits read
_RANK = 12.0  # weight of a hit's score (as a share of the best one's), added to the reader's logit


@dataclass(frozen=True, slots=True)
class _Found:
    """A candidate answer in a passage: its weight, and its normalised text as the key for votes."""

    weight: float
    hit: Hit
    reading: Reading
    key: str

    @property
    def span(self) -> str:
        return self.hit.passage.text[self.reading.start : self.reading.end]


class SpanReader:
    """Reads the first hits and returns the answer with the most votes.

    Each passage votes for its best span with the span's probability times the passage's weight, a softmax over reader
    logits and retriever scores; votes for the same answer (normalised as for exact match) add up. The sentence is
    quoted from the passage with the largest vote. Abstains if the confidence (`rag.generators.confidence`) is below
    `min_confidence` (default: the reader's own); a reader without `confidence.json` never abstains for that reason.
    """

    def __init__(
        self,
        reader: Reader | None = None,
        judge: Judge | None = None,
        *,
        passages: int = _PASSAGES,
        min_confidence: float | None = None,
    ) -> None:
        self._reader = reader or shipped_reader()
        self._judge = judge or shipped()
        self._passages = passages
        weights = self._reader.folder / "confidence.json"
        self._confidence = Confidence.read(weights) if weights.exists() else None
        if min_confidence is not None and not 0 <= min_confidence <= 1:
            raise RagError(f"the minimum confidence should be between 0 and 1, found {min_confidence:g}")
        if min_confidence is not None and self._confidence is None:
            raise RagError(f"{self._reader.folder} has no confidence.json, so its answers have no confidence")
        own = self._confidence.threshold if self._confidence else 0.0
        self._min_confidence = own if min_confidence is None else min_confidence
        judged = f", {self._judge.name} >= {self._min_confidence:g}" if self._confidence else ""
        self.name = f"spans.v1({self._reader.name}@{passages}{judged})"

    def generate(self, question: Question, hits: Sequence[Hit]) -> Answer:
        """Quote the sentence with the answer; an abstention keeps the best candidate in its trace."""
        best, signals = self._candidate(question, hits)
        if best is None:
            reason = "no retrieved passage contains a possible answer"
            return Answer(question, "", (), tuple(hits), self.name, abstained=True, reason=reason)
        confidence = self._confidence.of(signals) if self._confidence else None
        if confidence is None or confidence >= self._min_confidence:
            return self._quoted(question, hits, best, confidence)
        return Answer(
            question,
            "",
            (),
            tuple(hits),
            self.name,
            abstained=True,
            reason=f"the retrieved passages do not seem to answer it "
            f"(confidence {confidence:.2f}, minimum {self._min_confidence:g})",
            confidence=confidence,
            trace={"candidate": " ".join(best.span.split()), "passage": best.hit.passage.id},
        )

    def signals(self, question: Question, hits: Sequence[Hit]) -> dict[str, float]:
        """The signals of the best candidate (`rag.generators.confidence.SIGNALS`), or an empty dict."""
        return self._candidate(question, hits)[1]

    def _candidate(self, question: Question, hits: Sequence[Hit]) -> tuple[_Found | None, dict[str, float]]:
        found = self._read(question, hits[: self._passages])
        if not found:
            return None, {}
        most = max(one.weight for one in found)
        votes: dict[str, float] = {}
        for one in found:
            votes[one.key] = votes.get(one.key, 0.0) + math.exp(one.weight - most)
        answer = max(votes, key=lambda key: votes[key])  # ties: the first hit's
        best = max((one for one in found if one.key == answer), key=lambda one: one.weight)
        claim = Attribution(best.span, (best.hit.passage.evidence,), question.text)
        return best, {
            "relevance": best.reading.relevance,
            "agreement": votes[answer] / sum(votes.values()),
            "judge": self._judge.judge([claim])[0].probability or 0.0,
        }

    def _read(self, question: Question, hits: Sequence[Hit]) -> list[_Found]:
        top = max((hit.score for hit in hits), default=0.0)
        found = []
        for hit, reading in zip(hits, self._reader.read(question.text, [hit.passage for hit in hits]), strict=True):
            span = hit.passage.text[reading.start : reading.end]
            if reading.start is not None and words(span):
                share = hit.score / top if top > 0 else 0.0
                weight = reading.relevance + _RANK * share + reading.answer
                found.append(_Found(weight, hit, reading, normalize_answer(span)))
        return found

    def _quoted(self, question: Question, hits: Sequence[Hit], best: _Found, confidence: float | None) -> Answer:
        text = best.hit.passage.text
        start, end = best.reading.start or 0, best.reading.end or len(text)
        within = [(a, b) for a, b in sentence_spans(text) if a < end and start < b] or [(start, end)]
        first, last = within[0][0], within[-1][1]
        quote = text[first:last]
        sentence = " ".join(quote.split())
        return Answer(
            question,
            sentence,
            (
                CitedSentence(
                    sentence, (Citation(best.hit.passage.id, first, last, quote, "copied"),), 0, len(sentence)
                ),
            ),
            tuple(hits),
            self.name,
            short_answer=" ".join(best.span.split()),
            confidence=confidence,
        )
