"""The answer chosen by the reader: the units of the passages that answer the question, quoted and cited."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from rag.answer.generators.answer_types import has_numeric, numeric_type
from rag.answer.generators.confidence import Confidence, find_unmentioned
from rag.answer.generators.doubts import has_doubt
from rag.answer.generators.readings import ReadHit, read_hits
from rag.answer.generators.short_answers import format_short_answer, short_answer
from rag.answer.generators.stretches import QuotedUnit, choose_units, quote
from rag.answer.generators.units import quote_units
from rag.base.errors import RagError
from rag.base.types import MIN_SHORT_SHARE, Answer, Hit, Question, best_first
from rag.retrieval.reader import Reader
from rag.retrieval.reader import default_reader as shipped_reader

_MAX_PASSAGES = 16  # hits read at most; chosen as the constants of `rag.answer.generators.readings`
_TWO_QUESTIONS = re.compile(
    r"\b(?:and|or) (?:\w+ ){0,2}(?:who|whom|whose|what|when|where|why|how|which)\b"
    r"|[,?] (?:and|or) (?:is|are|was|were|do|does|did|can|could|has|have|will|would|should|must|may)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class ReadQuestion:
    """What the reader makes of a question: the hits that it read, and whether they seem to answer.

    `passages` were read, in the order of the hits; `hits` are all hits in the order of the reader's scores. `signals`
    are those of the confidence, {} without any text; `reason` says why the reader abstains, or is None.
    """

    passages: tuple[ReadHit, ...]
    hits: tuple[Hit, ...]
    signals: Mapping[str, float]
    confidence: float | None
    reason: str | None

    @property
    def ranking(self) -> list[ReadHit]:
        """The passages with text, best first."""
        with_units = (passage for passage in self.passages if passage.units)
        return sorted(with_units, key=lambda passage: (-passage.logit, passage.hit.passage.id))


class PassageReader:
    """Reads the first hits and quotes what answers the question, in up to 120 words.

    A passage's weight is a softmax over reader logits and retriever scores; passages with the name that a question
    is about gain. The best passage and the next two are quoted, as far as the words go, each in one stretch of
    whole units around its best unit: the one with the largest `keep` of the reader (`rag.retrieval.reader.Reading`)
    plus the share of the question's words in it, and the name. The stretch begins with what the unit needs to be
    understood (the sentence before "However, ...", the lead-in of a list, the code after a colon, the beginning of its
    entry). A question with a short answer (a name, a date) gets that answer, and its passage comes first. If the
    passages agree on it and the question asks for one thing, only this passage is quoted, in up to 50 words. A doubtful
    short answer (`rag.answer.generators.doubts`) is left out of the answer; what is quoted stays the same. The hits of
    the answer are in the order of the reader's scores. Abstains if the passages do not seem to answer the question
    (`rag.answer.generators.confidence`), or with `min_confidence` if the confidence is below that, whatever the
    passages seem to answer.

    A hit of further searches (`Hit.searches`) is read with the query that found it, too, and its better reading counts:
    a passage that adds the second of two facts rarely resembles the question.
    """

    def __init__(
        self, reader: Reader | None = None, *, passages: int = _MAX_PASSAGES, min_confidence: float | None = None
    ) -> None:
        self._reader = reader or shipped_reader()
        self._passages = passages
        weights = self._reader.folder / "confidence.json"
        self._confidence = Confidence.read(weights) if weights.exists() else None
        if min_confidence is not None and not 0 <= min_confidence <= 1:
            raise RagError(f"the minimum confidence should be between 0 and 1, found {min_confidence:g}")
        if min_confidence is not None and self._confidence is None:
            raise RagError(f"{self._reader.folder} has no confidence.json, so its answers have no confidence")
        self._min_confidence = min_confidence
        threshold_name = ""  # a part of the name
        if min_confidence is not None:
            threshold_name = f", confidence >= {min_confidence:g}"
        elif self._confidence is not None:
            threshold_name = f", answerable >= {self._confidence.threshold:g}"
        self.name = f"quotes.v10({self._reader.name}@{passages}{threshold_name})"

    def with_min_confidence(self, min_confidence: float) -> "PassageReader":
        """The same reader with another `min_confidence`; its network is not loaded again."""
        return PassageReader(self._reader, passages=self._passages, min_confidence=min_confidence)

    def generate(self, question: Question, hits: Sequence[Hit]) -> Answer:
        """Quote what answers the question; an abstention keeps the best candidate in its trace."""
        reading = self.read(question, hits)
        hits, signals, confidence = reading.hits, reading.signals, reading.confidence
        if not signals:
            return Answer(question, "", (), hits, self.name, abstained=True, reason=reading.reason)
        short, share = short_answer(reading.passages)
        certain = share >= MIN_SHORT_SHARE and not _TWO_QUESTIONS.search(question.text)
        units = choose_units(reading.passages, short, certain=certain)
        reason = reading.reason or self._lacks_numeric(question.text, units)
        if reason is not None:
            candidate = {"candidate": " ".join(quote(units[0]).split()), "passage": units[0][0].hit.passage.id}
            trace = {**candidate, "signals": signals}
            return Answer(
                question,
                "",
                (),
                hits,
                self.name,
                abstained=True,
                reason=reason,
                confidence=confidence,
                trace=trace,
            )
        text, sentences = quote_units((passage.hit.passage, unit) for passage, unit in units)
        answer = Answer(question, text, sentences, hits, self.name, confidence=confidence, trace={"signals": signals})
        if short is None or has_doubt(question.text, short):
            return answer
        return replace(
            answer, short_answer=format_short_answer(short), trace={"signals": signals, "short_share": share}
        )

    def _lacks_numeric(self, question: str, units: Sequence[QuotedUnit]) -> str | None:
        """Why the reader abstains if a question asks for an amount and no quoted unit has one, or None."""
        numeric = numeric_type(question)
        if numeric is None or self._confidence is None or self._min_confidence is not None:
            return None
        if has_numeric(numeric, "\n".join(map(quote, units))):
            return None
        return f"the passages that fit best have no {numeric}"

    def signals(self, question: Question, hits: Sequence[Hit]) -> Mapping[str, float]:
        """The signals of the confidence (`rag.answer.generators.confidence.SIGNALS`), or an empty dict."""
        return self.read(question, hits).signals

    def read(self, question: Question, hits: Sequence[Hit]) -> ReadQuestion:
        """Read the first hits, and estimate whether they answer the question."""
        top_hits = hits[: self._passages]
        readings = [read_hits(self._reader, question.text, top_hits), *self._read_further(hits)]
        read_passages = _best_readings(readings)
        reranked_hits = _rerank(read_passages, hits)
        if not any(passage.units for passage in read_passages):
            return ReadQuestion(
                read_passages, reranked_hits, {}, None, "no retrieved passage contains a possible answer"
            )
        missing = find_unmentioned(
            question.text, [hit.passage.contents for hit in (top_hits if len(readings) == 1 else hits)]
        )
        signals = _signals(readings, missing)
        confidence = self._confidence.right.of(signals) if self._confidence else None
        return ReadQuestion(read_passages, reranked_hits, signals, confidence, self._reason(signals, missing))

    def _read_further(self, hits: Sequence[Hit]) -> list[list[ReadHit]]:
        """The first hits of each further search, read with its query."""
        hits_by_query: dict[str, list[Hit]] = {}
        for hit in hits:
            for query, score in hit.searches:
                hits_by_query.setdefault(query, []).append(Hit(hit.passage, score))
        return [
            read_hits(self._reader, query, best_first(query_hits)[: self._passages])
            for query, query_hits in hits_by_query.items()
        ]

    def _reason(self, signals: Mapping[str, float], missing: Sequence[str]) -> str | None:
        """Why the reader abstains, or None."""
        if self._confidence is None:
            return None
        if self._min_confidence is None:
            estimate, minimum = self._confidence.answerable, self._confidence.threshold
            name = "answerable"
        else:
            estimate, minimum = self._confidence.right, self._min_confidence
            name = "confidence"
        value = estimate.of(signals)
        if value >= minimum:
            return None
        digits = next((n for n in range(2, 17) if round(value, n) < round(minimum, n)), 17)
        shown_minimum = round(minimum, digits)
        message = (
            f"the retrieved passages do not seem to answer it ({name} {value:.{digits}f}, minimum {shown_minimum})"
        )
        return f"{message}; none has {', '.join(map(repr, missing))}" if missing else message


def _rerank(read_passages: Sequence[ReadHit], hits: Sequence[Hit]) -> tuple[Hit, ...]:
    """The hits by the score of the reader; those that were not read follow in their order, with lower scores."""
    first = best_first(Hit(passage.hit.passage, passage.logit) for passage in read_passages)
    read_ids = {passage.hit.passage.id for passage in read_passages}
    unread_hits = [hit for hit in hits if hit.passage.id not in read_ids]
    if not first or not unread_hits:
        return tuple(first or unread_hits)
    unread_scores = (Hit(hit.passage, first[-1].score - 1 - (unread_hits[0].score - hit.score)) for hit in unread_hits)
    return (*first, *unread_scores)


def _best_readings(readings: Sequence[Sequence[ReadHit]]) -> tuple[ReadHit, ...]:
    """Each passage once, as it was read with the query that it answers best."""
    best: dict[str, ReadHit] = {}
    for passage in (passage for reading in readings for passage in reading):
        before = best.setdefault(passage.hit.passage.id, passage)
        if passage.logit > before.logit:
            best[passage.hit.passage.id] = passage
    return tuple(best.values())


def _signals(readings: Sequence[Sequence[ReadHit]], missing: Sequence[str]) -> dict[str, float]:
    """`rag.answer.generators.confidence.SIGNALS`, the best of all queries: a further search lowers none."""
    agreement = 0.0
    for reading in readings:
        votes: dict[str, float] = {}
        for passage in reading:
            if passage.reading.start is not None:
                votes[passage.key] = votes.get(passage.key, 0.0) + passage.weight
        agreement = max([agreement, *votes.values()])
    return {
        "relevance": max(passage.reading.relevance for reading in readings for passage in reading),
        "agreement": agreement,
        "unmentioned": float(bool(missing)),
    }
