"""Spans against gold spans: precision, recall and F1 over words and over characters, micro and per question.

What a system marks (what it cites, what it extracts) is compared with what people marked in the same texts. A unit is
marked, or it is not: the order of spans, and where they overlap or touch, counts for nothing.

- **Words** are what stands between white space (as in ACL-Verbatim's evaluation, `eval/span_metrics.py` of
  github.com/KRLabsOrg/acl-verbatim, and in the token F1 of ERASER, DeYoung et al. 2020, Section 4, whose tokens are
  those of its data). A word is marked if a span holds a character of it. Letters of scripts without blanks, such as
  Han, are words of their own.
- **Characters** are those of the text (Da San Martino et al. 2019; Pavlopoulos et al. 2021, SemEval-2021 Task 5,
  Section 4), without white space, so that it doesn't matter whether two neighbours are one span.

**Micro** adds the units of all questions. **Per question** (macro) is the mean over questions, each with the units of
all its texts. A question without gold is right (1) if nothing was predicted (Pavlopoulos et al. 2021), and a question
with only one of the two has 0 in all three; in the micro average, the first adds nothing.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from operator import and_
from typing import Any

from autoais.base.answers import CitedAnswer
from autoais.base.errors import CitationError, UsageError
from autoais.base.text.scripts import UNSPACED
from autoais.formats.spans import SpanGold, Spans, locate
from autoais.metrics.intervals import Estimate, interval, ratio
from autoais.metrics.rates import Mean

MEASURES = ("precision", "recall", "f1")
WORD = re.compile(rf"[{UNSPACED}]|[^\s{UNSPACED}]+")
"""A word of a text, as spans are scored over words."""


@dataclass(frozen=True, slots=True)
class MarkedText:
    """A text with the spans that a system and that people marked: characters (start, end), end exclusive.

    `question` tells questions apart, which may have several texts. Raises `UsageError` for a span that is not in the
    text.
    """

    question: str
    text: str
    predicted: Spans
    gold: Spans

    def __post_init__(self) -> None:
        for name, spans in (("predicted", self.predicted), ("gold", self.gold)):
            for start, end in spans:
                if not 0 <= start <= end <= len(self.text):
                    raise UsageError(
                        f"question {self.question[:60]!r}: the {name} span {start} to {end} lies outside its text of "
                        f"{len(self.text):,} characters"
                    )


@dataclass(frozen=True, slots=True)
class Overlap:
    """The units (words or characters) that are predicted, that are gold, and that are both."""

    predicted: int = 0
    gold: int = 0
    both: int = 0

    def __add__(self, other: "Overlap") -> "Overlap":
        return Overlap(self.predicted + other.predicted, self.gold + other.gold, self.both + other.both)

    @property
    def precision(self) -> float:
        """both / predicted; without predicted units 0, or 1 if there is no gold either."""
        return self.both / self.predicted if self.predicted else float(not self.gold)

    @property
    def recall(self) -> float:
        """both / gold; without gold 0, or 1 if nothing is predicted either."""
        return self.both / self.gold if self.gold else float(not self.predicted)

    @property
    def f1(self) -> float:
        """2 both / (predicted + gold), the harmonic mean of the other two; 1 if there is nothing of either."""
        total = self.predicted + self.gold
        return 2 * self.both / total if total else 1.0


_SHARES: Mapping[str, Callable[[Overlap], tuple[int, int]]] = {
    "precision": lambda overlap: (overlap.both, overlap.predicted),
    "recall": lambda overlap: (overlap.both, overlap.gold),
    "f1": lambda overlap: (2 * overlap.both, overlap.predicted + overlap.gold),
}


@dataclass(frozen=True, slots=True)
class UnitScores:
    """The measures over one kind of unit, each with the number of questions that enter and its 95 % interval.

    A micro average is None if no question has what it divides by, such as the precision if nothing is predicted.
    """

    total: Overlap
    micro: Mapping[str, Mean]
    per_question: Mapping[str, Mean]

    @classmethod
    def of(cls, overlaps: Iterable[Overlap]) -> "UnitScores":
        """Return the scores of one overlap a question."""
        questions = list(overlaps)
        return cls(
            sum(questions, Overlap()),
            {name: _micro(questions, share) for name, share in _SHARES.items()},
            {name: Mean.of([getattr(overlap, name) for overlap in questions]) for name in MEASURES},
        )

    def record(self) -> dict[str, Any]:
        """Return JSON: predicted, gold and both units; micro and per_question with value, n and interval95."""
        return {
            "predicted": self.total.predicted,
            "gold": self.total.gold,
            "both": self.total.both,
            "micro": {name: mean.record() for name, mean in self.micro.items()},
            "per_question": {name: mean.record() for name, mean in self.per_question.items()},
        }


@dataclass(frozen=True, slots=True)
class SpanScores:
    """The scores over words and over characters of `texts` texts of `questions` questions."""

    questions: int
    texts: int
    words: UnitScores
    characters: UnitScores

    def record(self) -> dict[str, Any]:
        """Return JSON: questions, texts, words and characters (`UnitScores.record`)."""
        return {
            "questions": self.questions,
            "texts": self.texts,
            "words": self.words.record(),
            "characters": self.characters.record(),
        }


def compare_spans(text: str, predicted: Spans, gold: Spans) -> tuple[Overlap, Overlap]:
    """Return how much predicted and gold spans of a text share, in words and in characters."""
    predicted_marks, gold_marks = _marks(text, predicted), _marks(text, gold)
    words = characters = Overlap()
    for word in WORD.finditer(text):
        p, g = predicted_marks[word.start() : word.end()], gold_marks[word.start() : word.end()]
        n_predicted, n_gold = p.count(1), g.count(1)
        words += Overlap(n_predicted > 0, n_gold > 0, n_predicted > 0 and n_gold > 0)
        if n_predicted or n_gold:
            characters += Overlap(n_predicted, n_gold, sum(map(and_, p, g)))
    return words, characters


def score_spans(texts: Iterable[MarkedText]) -> SpanScores:
    """Score predicted against gold spans; intervals are over questions, the texts of one count together.

    A question is scored if it has a text, even one without any span. Texts that nothing is marked in may be left out
    if the question has another.
    """
    by_question: dict[str, tuple[Overlap, Overlap]] = {}
    n_texts = 0
    for marked in texts:
        words, characters = compare_spans(marked.text, marked.predicted, marked.gold)
        before = by_question.get(marked.question, (Overlap(), Overlap()))
        by_question[marked.question] = before[0] + words, before[1] + characters
        n_texts += 1
    overlaps = list(by_question.values())
    return SpanScores(
        len(overlaps),
        n_texts,
        UnitScores.of(words for words, _ in overlaps),
        UnitScores.of(characters for _, characters in overlaps),
    )


def find_cited_spans(answer: CitedAnswer, texts: Mapping[str, str] | None = None) -> dict[str, Spans]:
    """Return the spans that an answer cites, by passage.

    A citation that points to a passage as a whole marks all of it. `texts` are the texts that the spans are for, by
    passage (default: those of the answer): where a quote does not stand at its offsets, as the text was cut elsewhere,
    it is located, and marks nothing if the text lacks it. Raises `CitationError` for offsets outside a text.
    """
    spans: dict[str, list[tuple[int, int]]] = {}
    for sentence in answer.sentences:
        for citation in sentence.citations:
            text = answer.passages[citation.passage].text if texts is None else texts[citation.passage]
            cited = spans.setdefault(citation.passage, [])
            start, end, quote = citation.start, citation.end, citation.quote
            if start is not None and end is not None and end <= len(text) and quote in (None, text[start:end]):
                cited.append((start, end))
            elif quote is not None:
                located = locate(text, quote)
                cited.extend([located] if located else [])
            elif start is None:
                cited.append((0, len(text)))
            else:
                raise CitationError(
                    f"answer {answer.id[:60]!r} cites characters {start} to {end} of {citation.passage[:60]!r}, which "
                    f"has {len(text):,}; is it the passage of the gold?"
                )
    return {passage: tuple(dict.fromkeys(cited)) for passage, cited in spans.items()}


def mark_texts(gold: SpanGold, predicted: Mapping[str, Spans], texts: Mapping[str, str]) -> Iterator[MarkedText]:
    """Yield the texts of a question with gold and predicted spans, both by passage; one without text if there is none.

    `texts` are those of the gold, and of other passages that were predicted.
    """
    for passage, text in texts.items():
        yield MarkedText(gold.id, text, predicted.get(passage, ()), gold.spans.get(passage, ()))
    if not texts:
        yield MarkedText(gold.id, "", (), ())


def _marks(text: str, spans: Spans) -> bytearray:
    marks = bytearray(len(text))
    for start, end in spans:
        marks[start:end] = b"\1" * (end - start)
    return marks


def _micro(overlaps: Iterable[Overlap], share: Callable[[Overlap], tuple[int, int]]) -> Mean:
    import numpy as np  # a slow import that `rag ask` does not need

    shares = np.array([share(overlap) for overlap in overlaps], dtype=np.float64).reshape(-1, 2)
    estimate: Estimate | None = ratio(shares[:, 0], shares[:, 1])
    if estimate is None:
        return Mean(None, 0, None)
    return Mean(estimate.value, estimate.n, interval(estimate))
