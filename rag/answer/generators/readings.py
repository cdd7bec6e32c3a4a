"""Hits as the reader read them: how well each answers the question, its short answer, and a score for each unit."""

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from autoais.base.text.folding import normalize_answer
from autoais.base.text.words import content_stems, idf
from rag.answer.generators.units import ITEM, ROW, Unit, entry_start, split_units
from rag.base.types import Hit, Passage
from rag.index.analysis import name_pattern
from rag.index.definitions import definition
from rag.retrieval.reader import Reader, Reading, Span

# Chosen on the part `dev` of own-documents and on reader-validation.jsonl (eval/recipes), and some before that on every
# eighth question of nq_pool_dev:
_RANK_WEIGHT = 8.0  # weight of a hit's score (as a share of the best one's), added to the reader's logit
_WORDING_WEIGHT = 2.0  # weight of the question's words in a unit, beside the reader's `keep`
_NAME_BONUS = (
    2.0  # added to a passage's logit if it has the name that a question is about; twice if an entry begins with it
)

# Chosen by what it saves (a fifth of the reading), on the same questions as above and 250 of nq_pool_dev:
_BATCH_SIZE = 4  # hits read at once
_SURE_MARGIN = 4.5  # no further hit is read if it needs at least this relevance to be the best one

# Chosen on a tester's questions about papers of his own (docs/limits.md):
_OTHER_ROW_PENALTY = (
    10.0  # taken from the log-probability of a short answer whose line has none of the question's words
)

# Set by hand, not by measurement:
_DEFINITION_BONUS = 3.0  # added to a passage's logit and to a unit's score if it defines what a question asks to define
_OPENING = re.compile(r"(?:[-*•] )?(?:the |an? )?[\"'`(\[]?", re.IGNORECASE)  # before the name that begins an entry


@dataclass(frozen=True)
class ReadHit:
    """A hit as it was read; `logit` is its score, `weight` its share among the passages (a softmax).

    `entries` are the places of the units that begin with the name that the question is about, or define it.
    """

    hit: Hit
    reading: Reading
    logit: float
    weight: float
    units: tuple[Unit, ...]
    scores: tuple[float, ...]
    entries: frozenset[int]

    @property
    def text(self) -> str:
        """The text of the passage."""
        return self.hit.passage.text

    @property
    def span(self) -> str:
        """The short answer; empty if there is none."""
        return "" if self.reading.start is None else self.text[self.reading.start : self.reading.end]

    @property
    def key(self) -> str:
        """The normalised short answer."""
        return normalize_answer(self.span)


def read_hits(reader: Reader, question: str, hits: Sequence[Hit]) -> list[ReadHit]:
    """Read hits in their order, until no further one could be the best; those that were not read are left out."""
    features = _QuestionFeatures(question)
    top = max((hit.score for hit in hits), default=0.0)
    priors = [features.prior(hit, top) for hit in hits]
    readings: list[Reading] = []
    logits: list[float] = []
    for first in range(0, len(hits), _BATCH_SIZE):
        if logits and max(logits) >= max(priors[first:]) + _SURE_MARGIN:
            break
        readings += reader.read(question, [hit.passage for hit in hits[first : first + _BATCH_SIZE]])
        logits = [reading.relevance + prior for reading, prior in zip(readings, priors, strict=False)]
    max_logit = max(logits, default=0.0)
    total = sum(math.exp(logit - max_logit) for logit in logits)
    return [
        features.score_units(hit, reading, logit, math.exp(logit - max_logit) / total)
        for hit, reading, logit in zip(hits, readings, logits, strict=False)
    ]


class _QuestionFeatures:
    """What a question asks for: its words with their weights, the name that it is about, and what it asks to define."""

    def __init__(self, question: str) -> None:
        self._words = {stem: idf(stem) for stem in content_stems(question)}
        self._name, self._defines = name_pattern(question), definition(question)

    def prior(self, hit: Hit, top: float) -> float:
        """What a hit's score, the name and a definition add to its logit; `top` is the best score."""
        score = _RANK_WEIGHT * (hit.score / top if top > 0 else 0.0)
        return (
            score
            + _NAME_BONUS * _topic_score(self._name, hit.passage)
            + _definition_bonus(self._defines, hit.passage.text)
        )

    def score_units(self, hit: Hit, reading: Reading, logit: float, weight: float) -> ReadHit:
        """A hit with its units and their scores, without a short answer that cannot be said of the name."""
        text, pieces = hit.passage.text, tuple(split_units(hit.passage.text))
        quotes = [text[unit.start : unit.end] for unit in pieces]
        name_scores = [_name_score(self._name, quote) for quote in quotes]
        definition_scores = [_definition_bonus(self._defines, quote) for quote in quotes]
        reading = _of_line(reading, text, pieces, self._words)
        scores = tuple(
            reading.kept(unit.start, unit.end)
            + _WORDING_WEIGHT * _share(self._words, content_stems(quote))
            + sum(bonus)
            for unit, quote, *bonus in zip(pieces, quotes, name_scores, definition_scores, strict=True)
        )
        if self._name is not None and not _may_be_of(self._name, hit.passage, reading, pieces):
            reading = replace(reading, start=None, end=None, answer=-math.inf, no_short=0.0)
        entries = frozenset(
            position for position in range(len(pieces)) if name_scores[position] > 1 or definition_scores[position]
        )
        return ReadHit(hit, reading, logit, weight, pieces, scores, entries)


def _of_line(reading: Reading, text: str, pieces: Sequence[Unit], question_weights: Mapping[str, float]) -> Reading:
    """The reading; in a list or table, with the short answer of the line that has the most words of the question.

    "Head of sales: Ann" and "Head of support: Bob" stand below each other there, and the reader mixes them up.
    """
    if len(reading.spans) < 2:
        return reading
    rows = 0
    lines: list[tuple[Span, float]] = []
    for span in reading.spans:
        unit = next((unit for unit in pieces if unit.start <= span.start < unit.end), None)
        first, last = text.rfind("\n", 0, span.start) + 1, text.find("\n", span.end)
        share = _share(question_weights, content_stems(text[first : last if last >= 0 else len(text)]))
        rows += unit is not None and (unit.kind in (ITEM, ROW) or unit.entry is not None)
        lines.append((span, share))
    if rows < 2:
        return reading
    max_share = max(share for _, share in lines)
    scores = ((span.answer - _OTHER_ROW_PENALTY * (max_share - share), span) for span, share in lines)
    answer, best = max(scores, key=lambda pair: pair[0])
    return replace(reading, start=best.start, end=best.end, answer=answer)


def _definition_bonus(defines: re.Pattern[str] | None, text: str) -> float:
    return _DEFINITION_BONUS if defines is not None and defines.search(text) else 0.0


def _name_score(name: re.Pattern[str] | None, text: str) -> int:
    """2 if a text begins with the name that a question is about, as entries of a reference do, 1 if it has the name."""
    if name is None or not name.search(text):
        return 0
    opening = _OPENING.match(text)
    return 2 if opening is not None and name.match(text, opening.end()) else 1


def _topic_score(name: re.Pattern[str] | None, passage: Passage) -> int:
    """2 if the headings have the name that a question is about, or a line begins with it, 1 if the text has it."""
    if name is None:
        return 0
    if name.search(passage.headings):
        return 2
    return max((_name_score(name, line) for line in passage.text.splitlines()), default=0)


def _may_be_of(name: re.Pattern[str], passage: Passage, reading: Reading, pieces: Sequence[Unit]) -> bool:
    """Whether the short answer may be said of the name: it is not the name, and not in the entry of another one.

    "empty" in "retry_hosts (default: empty): see retry_limit" is not the default of retry_limit.
    """
    if reading.start is None or reading.end is None:
        return True
    if name.fullmatch(passage.text[reading.start : reading.end].strip("$ ")):
        return False
    position = max((position for position, unit in enumerate(pieces) if unit.start <= reading.start), default=0)
    begin = entry_start(pieces, position) if pieces else None
    if begin is None or name.search(passage.headings):
        return True
    return name.search(passage.text, pieces[begin].start, reading.start) is not None


def _share(question_weights: Mapping[str, float], stems: Collection[str]) -> float:
    """The share of the question's words, by weight, among these."""
    total = sum(question_weights.values())
    return sum(weight for stem, weight in question_weights.items() if stem in stems) / total if total else 0.0
