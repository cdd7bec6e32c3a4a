"""The short answer that the embedded reader finds, in the sentence that holds it, cited."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from autoais.judges.minilm import shipped
from autoais.metrics.short_answers import normalize_answer
from autoais.text.words import words
from autoais.types import Attribution, Judge
from rag.attribution.sentences import sentence_spans
from rag.encoders import passage_text
from rag.errors import RagError
from rag.generators.confidence import Confidence
from rag.reader import Reader, Reading
from rag.reader import shipped as shipped_reader
from rag.types import Answer, Citation, Hit, Question, Sentence

# Chosen on every eighth question of nq_pool_dev by exact match:
_PASSAGES = 8  # hits that are read
_RANK = 12.0  # what a hit's score, as a share of the best one's, counts beside the reader's logit


@dataclass(frozen=True, slots=True)
class _Found:
    """An answer in a passage: how much it weighs, and what it is the same as."""

    weight: float
    hit: Hit
    reading: Reading
    key: str

    @property
    def span(self) -> str:
        return self.hit.passage.text[self.reading.start : self.reading.end]


class Spans:
    """Reads the first hits and takes the answer that they agree on.

    Each passage gives its likeliest span the product of how likely it is there and of the passage's weight, a softmax
    over the reader's logit and the retriever's score; spans that are the same answer (normalised as for exact match)
    add up. The sentence with the span is quoted from the passage that gave it most. Abstains where the confidence
    (`rag.generators.confidence`) is below `least`, the reader's own unless given; a reader without one always answers.
    """

    def __init__(
        self,
        reader: Reader | None = None,
        judge: Judge | None = None,
        *,
        passages: int = _PASSAGES,
        least: float | None = None,
    ) -> None:
        self._reader = reader or shipped_reader()
        self._judge = judge or shipped()
        self._passages = passages
        weights = self._reader.folder / "confidence.json"
        self._confidence = Confidence.read(weights) if weights.exists() else None
        if least is not None and not 0 <= least <= 1:
            raise RagError(f"the least confidence should be between 0 and 1, found {least:g}")
        if least is not None and self._confidence is None:
            raise RagError(f"{self._reader.folder} has no confidence.json, so its answers have no least confidence")
        self._least = least if least is not None else self._confidence.least if self._confidence else 0.0
        judged = f", {self._judge.name} >= {self._least:g}" if self._confidence else ""
        self.name = f"spans.v1({self._reader.name}@{passages}{judged})"

    def generate(self, question: Question, hits: Sequence[Hit]) -> Answer:
        """One sentence with the answer; an abstention keeps the best candidate in its trace."""
        best, signals = self._candidate(question, hits)
        if best is None:
            reason = "no passage found holds words that could answer"
            return Answer(question, "", (), tuple(hits), self.name, abstained=True, reason=reason)
        confidence = self._confidence.of(signals) if self._confidence else None
        if confidence is None or confidence >= self._least:
            return self._quoted(question, hits, best, confidence)
        return Answer(
            question,
            "",
            (),
            tuple(hits),
            self.name,
            abstained=True,
            reason=f"the passages found do not seem to answer it (confidence {confidence:.2f}, least {self._least:g})",
            confidence=confidence,
            trace={"candidate": " ".join(best.span.split()), "passage": best.hit.passage.id},
        )

    def signals(self, question: Question, hits: Sequence[Hit]) -> dict[str, float]:
        """The signals of the best candidate (`rag.generators.confidence.SIGNALS`); empty where there is none."""
        return self._candidate(question, hits)[1]

    def _candidate(self, question: Question, hits: Sequence[Hit]) -> tuple[_Found | None, dict[str, float]]:
        found = self._read(question, hits[: self._passages])
        if not found:
            return None, {}
        most = max(one.weight for one in found)
        votes: dict[str, float] = {}
        for one in found:
            votes[one.key] = votes.get(one.key, 0.0) + math.exp(one.weight - most)
        answer = max(votes, key=lambda key: votes[key])  # of equals the first hit's
        best = max((one for one in found if one.key == answer), key=lambda one: one.weight)
        claim = Attribution(best.span, (passage_text(best.hit.passage),), question.text)
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
            (Sentence(0, len(sentence), (Citation(best.hit.passage.id, first, last, quote),)),),
            tuple(hits),
            self.name,
            short_answer=" ".join(best.span.split()),
            confidence=confidence,
        )
