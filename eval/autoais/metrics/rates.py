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
            found = intervals.mean(data, low, high)
        else:
            gained, items = intervals.by_question(questions, data - low, np.ones_like(data))
            share = intervals.ratio(gained / (high - low), items)
            assert share is not None  # there are values
            found = replace(share, value=low + (high - low) * share.value, parts=share.parts * (high - low))
            found = replace(found, low=low, high=high)
        return cls(math.fsum(values) / len(values), len(values), found.interval)

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
    """The scores of each answer's items, for rates, pooled and averaged ratios; keeps 32 bytes per answer.

    Intervals are over questions: a question may have several answers.
    """

    def __init__(self, items: str) -> None:
        self.items = items  # "sentences" or "citations", for the reason of an absent value
        self._gained, self._decided, self._all, self._question = array("d"), array("d"), array("d"), array("q")

    def __len__(self) -> int:
        return len(self._all)

    def add(self, values: Iterable[float | None], question: int | None = None) -> None:
        """Add one answer: the score of each of its items, 0 to 1, None if undecided.

        `question` numbers its question; by default it has one of its own.
        """
        listed = list(values)
        decided = [value for value in listed if value is not None]
        self._gained.append(math.fsum(decided))
        self._decided.append(len(decided))
        self._all.append(len(listed))
        self._question.append(len(self._question) if question is None else question)

    def last(self, empty: float | None = None, *, averaged: bool = False) -> tuple[float, float]:
        """Return what the last answer adds to the floor: the sum of its scores (undecided as 0) and its items.

        With `averaged`, its mean score and 1, or `empty` and 1 if it has no items, or nothing if `empty` is None.
        """
        gained, items = self._gained[-1], self._all[-1]
        if not averaged:
            return gained, items
        return (gained / items, 1.0) if items else (0.0, 0.0) if empty is None else (empty, 1.0)

    def rate(self) -> Rate:
        """Return the rate of yes/no items (scores 1 and 0)."""
        total, decided = int(sum(self._all)), int(sum(self._decided))
        return Rate(int(sum(self._gained)), total, total - decided, self.estimate())

    def mean(self) -> Mean:
        """Return the mean of one item per answer."""
        found = self.estimate()
        return Mean(None if found is None else found.value, int(sum(self._decided)), intervals.interval(found))

    def pooled(self) -> Ratio:
        """Return the mean score over the items of all answers."""
        gained, decided, total = math.fsum(self._gained), int(sum(self._decided)), int(sum(self._all))
        found = self.estimate()
        return Ratio(
            gained / decided if decided else None,
            gained / total if total else None,
            decided,
            total,
            total - decided,
            intervals.interval(found),
            None if decided else self._missing(),
        )

    def averaged(self, empty: float | None = None) -> Ratio:
        """Return the mean over answers of their mean scores; n, total and undecided count answers.

        An answer without items has the value `empty`, and is left out if that is None. An answer without decided items
        is undecided.
        """
        pairs = list(zip(self._gained, self._all, strict=True))
        floors = [gained / items if items else empty for gained, items in pairs]
        known = [value for value in floors if value is not None]
        values, counted = self._columns(empty, averaged=True)
        n = int(counted.sum())
        found = self.estimate(empty, averaged=True)
        return Ratio(
            math.fsum(values) / n if n else None,
            math.fsum(known) / len(known) if known else None,
            n,
            len(known),
            len(known) - n,
            intervals.interval(found),
            None if n else self._missing(),
        )

    def estimate(self, empty: float | None = None, *, averaged: bool = False) -> Estimate | None:
        """Return the pooled or the averaged value as an estimate over questions; None if nothing was decided.

        Two tallies to which the same answers were added have the same questions in the same order.
        """
        if not self._all:
            return None
        gained, items = intervals.by_question(self._question, *self._columns(empty, averaged=averaged))
        return intervals.ratio(gained, items)

    def _columns(self, empty: float | None = None, *, averaged: bool = False) -> "tuple[Floats, Floats]":
        """Return two numbers per answer; the ratio of their sums is the pooled or the averaged value."""
        import numpy as np

        gained, decided, total = (np.array(column) for column in (self._gained, self._decided, self._all))
        if not averaged:
            return gained, decided
        values = np.divide(gained, decided, out=np.zeros_like(gained), where=decided > 0)
        counted = decided > 0
        if empty is not None:
            values[total == 0] = empty
            counted |= total == 0
        return values, counted.astype(np.float64)

    def _missing(self) -> str:
        return "nothing was decided" if sum(self._all) else f"there are no {self.items}"


def f1(recall: float, precision: float) -> float:
    """Return the F1 of two rates, their harmonic mean; 0 if both are 0."""
    return 2 * recall * precision / (recall + precision) if recall + precision else 0.0
