"""Rates, means and ratios with n, undecided and a 95 % interval."""

import math
from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from autoais.metrics.bootstrap import mean_interval, resampled

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

_Z95 = 1.959963984540054  # two-sided 95 % quantile of the standard normal


def wilson(successes: int, n: int) -> tuple[float, float]:
    """Return the 95 % Wilson score interval of a proportion, both ends 0 to 1; n must be above 0."""
    if n <= 0 or not 0 <= successes <= n:
        raise ValueError(f"wilson({successes}, {n}): need 0 <= successes <= n and n > 0")
    p = successes / n
    centre = p + _Z95**2 / (2 * n)
    margin = _Z95 * math.sqrt(p * (1 - p) / n + _Z95**2 / (4 * n * n))
    scale = 1 + _Z95**2 / n
    # The bounds are exactly 0 and 1 there; rounding must not exceed them.
    low = 0.0 if successes == 0 else (centre - margin) / scale
    high = 1.0 if successes == n else (centre + margin) / scale
    return low, high


@dataclass(frozen=True, slots=True)
class Rate:
    """A proportion with its undecided items: of `total` items, `yes` are yes and `undecided` are undecided.

    `value` is over the decided items (n = total - undecided). `floor` is over all items, with undecided as no; compare
    it with published AutoAIS values. Absent values are None, never NaN.
    """

    yes: int
    total: int
    undecided: int = 0

    @classmethod
    def of(cls, outcomes: Iterable[bool | None]) -> "Rate":
        """Return the rate of outcomes; None is undecided."""
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
    def interval(self) -> tuple[float, float] | None:
        """The 95 % Wilson interval of `value`."""
        return wilson(self.yes, self.n) if self.n else None

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
    """The mean of per-question values (0 to 1) with a 95 % bootstrap percentile interval."""

    value: float | None
    n: int
    interval95: tuple[float, float] | None

    @classmethod
    def of(cls, values: Sequence[float], *, resamples: int = 1000, seed: int = 0) -> "Mean":
        """Return the mean of all values; the interval resamples them with a fixed seed."""
        if not values:
            return cls(None, 0, None)
        import numpy as np  # a slow import that `rag ask` does not need

        data = np.sort(np.asarray(values, dtype=np.float64))  # the order of the questions must not matter
        return cls(float(data.mean()), len(data), mean_interval(data, resamples=resamples, seed=seed))

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
    """The scores of each answer's items, for pooled and averaged ratios; keeps 24 bytes per answer."""

    def __init__(self, items: str) -> None:
        self.items = items  # "sentences" or "citations", for the reason of an absent value
        self._gained, self._decided, self._all = array("d"), array("d"), array("d")

    def __len__(self) -> int:
        return len(self._all)

    def add(self, values: Iterable[float | None]) -> None:
        """Add one answer: the score of each of its items, 0 to 1, None if undecided."""
        listed = list(values)
        decided = [value for value in listed if value is not None]
        self._gained.append(math.fsum(decided))
        self._decided.append(len(decided))
        self._all.append(len(listed))

    def pooled(self) -> Ratio:
        """Return the mean score over the items of all answers; the interval resamples answers."""
        gained, decided, total = math.fsum(self._gained), int(sum(self._decided)), int(sum(self._all))
        return Ratio(
            gained / decided if decided else None,
            gained / total if total else None,
            decided,
            total,
            total - decided,
            resampled(self.columns(), ratio_of_sums),
            None if decided else self._missing(),
        )

    def averaged(self, empty: float | None = None) -> Ratio:
        """Return the mean over answers of their mean scores; n, total and undecided count answers.

        An answer without items has the value `empty`, and is left out if that is None. An answer without decided items
        is undecided. The interval resamples answers.
        """
        pairs = list(zip(self._gained, self._all, strict=True))
        floors = [gained / items if items else empty for gained, items in pairs]
        known = [value for value in floors if value is not None]
        values, counted = self.columns(empty, averaged=True).T
        n = int(counted.sum())
        return Ratio(
            math.fsum(values) / n if n else None,
            math.fsum(known) / len(known) if known else None,
            n,
            len(known),
            len(known) - n,
            resampled(self.columns(empty, averaged=True), ratio_of_sums),
            None if n else self._missing(),
        )

    def columns(self, empty: float | None = None, *, averaged: bool = False) -> "Floats":
        """Return an array (answers x 2); the ratio of its column sums is the pooled or the averaged value."""
        import numpy as np

        gained, decided, total = (np.array(column) for column in (self._gained, self._decided, self._all))
        if not averaged:
            return np.stack([gained, decided], axis=1)
        values = np.divide(gained, decided, out=np.zeros_like(gained), where=decided > 0)
        counted = decided > 0
        if empty is not None:
            values[total == 0] = empty
            counted |= total == 0
        return np.stack([values, counted.astype(np.float64)], axis=1)

    def _missing(self) -> str:
        return "nothing was decided" if sum(self._all) else f"there are no {self.items}"


def harmonic(recall: float | None, precision: float | None) -> float | None:
    """Return the F1 of two rates; 0 if both are 0, None if one is absent."""
    if recall is None or precision is None:
        return None
    return 2 * recall * precision / (recall + precision) if recall + precision else 0.0


def ratio_of_sums(sums: "Floats") -> float | None:
    """Return the first sum divided by the second; None if the second is 0."""
    return float(sums[0] / sums[1]) if sums[1] else None
