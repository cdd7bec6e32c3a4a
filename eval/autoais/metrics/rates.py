"""Rates, means and ratios with n, undecided and a 95 % interval."""

import math
from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from autoais.metrics import intervals
from autoais.metrics.intervals import Estimate, Interval, clopper_pearson

if TYPE_CHECKING:
    from autoais.metrics.intervals import Floats


@dataclass(frozen=True, slots=True)
class Rate:
    """A proportion with its undecided items: of `total` items, `yes` are yes and `undecided` are undecided.

    `value` is over the decided items (n = total - undecided). `floor` is over all items, with undecided as no; compare
    it with published AutoAIS values. Absent values are None, never NaN. `estimate` is over questions, for items that
    are not independent.
    """

    yes: int
    total: int
    undecided: int = 0
    estimate: Estimate | None = field(default=None, compare=False, repr=False)

    @classmethod
    def of(cls, outcomes: Iterable[bool | None], questions: Sequence[int] | None = None) -> "Rate":
        """Return the rate of outcomes; None is undecided. `questions` numbers the question of each outcome.

        Without `questions`, the outcomes are independent: each is of another question.
        """
        if questions is not None:
            tally = Tally("items")
            for outcome, question in zip(outcomes, questions, strict=True):
                tally.add([outcome], question)
            return tally.rate()
        counts = Counter(outcomes)
        return cls(counts[True], sum(counts.values()), counts[None])

    @property
    def n(self) -> int:
        """The number of decided items."""
        return self.total - self.undecided

    @property
    def value(self) -> float | None:
        """yes / n; None if nothing was decided."""
        return self.yes / self.n if self.n else None

    @property
    def floor(self) -> float | None:
        """yes / total; None if there are no items."""
        return self.yes / self.total if self.total else None

    @property
    def interval(self) -> Interval | None:
        """The 95 % interval of `value`: Clopper and Pearson's, with questions as the units if they are known."""
        if self.estimate is not None:
            return self.estimate.interval
        return clopper_pearson(self.yes, self.n) if self.n else None

    def record(self) -> dict[str, Any]:
        """Return JSON: value, floor, n, total, undecided, interval95; all rates as fractions."""
        return {
            "value": self.value,
            "floor": self.floor,
            "n": self.n,
            "total": self.total,
            "undecided": self.undecided,
            "interval95": list(self.interval) if self.interval else None,
        }


@dataclass(frozen=True, slots=True)
class Mean:
    """The mean of values, one or more per question, with a 95 % interval."""

    value: float | None
    n: int
    interval95: Interval | None

    @classmethod
    def of(
        cls, values: Sequence[float], questions: Sequence[int] | None = None, *, low: float = 0.0, high: float = 1.0
    ) -> "Mean":
        """Return the mean of all values, which are between `low` and `high`.

        `questions` numbers the question of each value; without it, each is of another question. A value beyond the
        bounds widens them (some retrieval measures have none).
        """
        if not values:
            return cls(None, 0, None)
        import numpy as np  # a slow import that `rag ask` does not need

        data = np.asarray(values, dtype=np.float64)
        low, high = min(low, float(data.min())), max(high, float(data.max()))
        if questions is None:
            estimate = intervals.mean(data, low, high)
        else:
            score_sums, items = intervals.by_question(questions, data - low, np.ones_like(data))
            share = intervals.ratio(score_sums / (high - low), items)
            assert share is not None  # there are values
            estimate = replace(share, value=low + (high - low) * share.value, parts=share.parts * (high - low))
            estimate = replace(estimate, low=low, high=high)
        return cls(math.fsum(values) / len(values), len(values), estimate.interval)

    def record(self) -> dict[str, Any]:
        """Return JSON: value, n, interval95, as fractions."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Ratio:
    """A ratio over answers: `value` is over the decided units, `floor` counts undecided ones as 0.

    `n` of `total` units enter the value; `undecided` counts the others. An absent value is None with a `reason`.
    """

    value: float | None
    floor: float | None
    n: int
    total: int
    undecided: int
    interval95: tuple[float, float] | None
    reason: str | None = None

    def record(self) -> dict[str, Any]:
        """Return JSON: value, floor, n, total, undecided, interval95, and reason if there is no value."""
        record = asdict(self)
        if self.reason is None:
            del record["reason"]
        return record


class Tally:
    """The scores of each answer's items, for rates, micro- and macro-averaged ratios; keeps 32 bytes per answer.

    Intervals are over questions: a question may have several answers.
    """

    def __init__(self, items: str) -> None:
        self.items = items  # "sentences" or "citations", for the reason of an absent value
        self._score_sums, self._n_decided, self._all, self._question = array("d"), array("d"), array("d"), array("q")

    def __len__(self) -> int:
        return len(self._all)

    def add(self, values: Iterable[float | None], question: int | None = None) -> None:
        """Add one answer: the score of each of its items, 0 to 1, None if undecided.

        `question` numbers its question; by default it has one of its own.
        """
        scores = list(values)
        decided_scores = [value for value in scores if value is not None]
        self._score_sums.append(math.fsum(decided_scores))
        self._n_decided.append(len(decided_scores))
        self._all.append(len(scores))
        self._question.append(len(self._question) if question is None else question)

    def last(self, empty: float | None = None, *, macro: bool = False) -> tuple[float, float]:
        """Return what the last answer adds to the floor: the sum of its scores (undecided as 0) and its items.

        With `macro`, its mean score and 1, or `empty` and 1 if it has no items, or nothing if `empty` is None.
        """
        score_sum, items = self._score_sums[-1], self._all[-1]
        if not macro:
            return score_sum, items
        return (score_sum / items, 1.0) if items else (0.0, 0.0) if empty is None else (empty, 1.0)

    def rate(self) -> Rate:
        """Return the rate of yes/no items (scores 1 and 0)."""
        total, n_decided = int(sum(self._all)), int(sum(self._n_decided))
        return Rate(int(sum(self._score_sums)), total, total - n_decided, self.estimate())

    def mean(self) -> Mean:
        """Return the mean of one item per answer."""
        estimate = self.estimate()
        return Mean(
            None if estimate is None else estimate.value, int(sum(self._n_decided)), intervals.interval(estimate)
        )

    def micro_average(self) -> Ratio:
        """Return the mean score over the items of all answers."""
        score_sum, n_decided, total = math.fsum(self._score_sums), int(sum(self._n_decided)), int(sum(self._all))
        estimate = self.estimate()
        return Ratio(
            score_sum / n_decided if n_decided else None,
            score_sum / total if total else None,
            n_decided,
            total,
            total - n_decided,
            intervals.interval(estimate),
            None if n_decided else self._missing(),
        )

    def macro_average(self, empty: float | None = None) -> Ratio:
        """Return the mean over answers of their mean scores; n, total and undecided count answers.

        An answer without items has the value `empty`, and is left out if that is None. An answer without decided items
        is undecided.
        """
        pairs = list(zip(self._score_sums, self._all, strict=True))
        floors = [score_sum / items if items else empty for score_sum, items in pairs]
        known_floors = [value for value in floors if value is not None]
        values, weights = self._columns(empty, macro=True)
        n = int(weights.sum())
        estimate = self.estimate(empty, macro=True)
        return Ratio(
            math.fsum(values) / n if n else None,
            math.fsum(known_floors) / len(known_floors) if known_floors else None,
            n,
            len(known_floors),
            len(known_floors) - n,
            intervals.interval(estimate),
            None if n else self._missing(),
        )

    def estimate(self, empty: float | None = None, *, macro: bool = False) -> Estimate | None:
        """Return the micro or the macro average as an estimate over questions; None if nothing was decided.

        Two tallies to which the same answers were added have the same questions in the same order.
        """
        if not self._all:
            return None
        score_sums, items = intervals.by_question(self._question, *self._columns(empty, macro=macro))
        return intervals.ratio(score_sums, items)

    def _columns(self, empty: float | None = None, *, macro: bool = False) -> "tuple[Floats, Floats]":
        """Return two numbers per answer; the ratio of their sums is the micro or the macro average."""
        import numpy as np

        score_sums, n_decided, total = (np.array(column) for column in (self._score_sums, self._n_decided, self._all))
        if not macro:
            return score_sums, n_decided
        values = np.divide(score_sums, n_decided, out=np.zeros_like(score_sums), where=n_decided > 0)
        has_value = n_decided > 0
        if empty is not None:
            values[total == 0] = empty
            has_value |= total == 0
        return values, has_value.astype(np.float64)

    def _missing(self) -> str:
        return "nothing was decided" if sum(self._all) else f"there are no {self.items}"


def f1(recall: float, precision: float) -> float:
    """Return the F1 of two rates, their harmonic mean; 0 if both are 0."""
    return 2 * recall * precision / (recall + precision) if recall + precision else 0.0
