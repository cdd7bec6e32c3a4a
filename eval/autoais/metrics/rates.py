"""Rates, means and ratios with n, undecided and a 95 % interval."""

import math
from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from autoais.metrics.bootstrap import resampled

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

_Z95 = 1.959963984540054  # two-sided 95 % quantile of the standard normal


def wilson(successes: int, n: int) -> tuple[float, float]:
    """The 95 % Wilson score interval of a proportion, both ends 0 to 1; n must be above 0."""
    if n <= 0 or not 0 <= successes <= n:
        raise ValueError(f"wilson({successes}, {n}): need 0 <= successes <= n and n > 0")
    p = successes / n
    centre = p + _Z95**2 / (2 * n)
    margin = _Z95 * math.sqrt(p * (1 - p) / n + _Z95**2 / (4 * n * n))
    scale = 1 + _Z95**2 / n
    # At the ends the exact bound is 0 or 1; rounding must not push it past.
    low = 0.0 if successes == 0 else (centre - margin) / scale
    high = 1.0 if successes == n else (centre + margin) / scale
    return low, high


@dataclass(frozen=True, slots=True)
class Rate:
    """A proportion that hides nothing: of `total` items, `yes` were yes and `undecided` could not be told.

    `value` is over the decided items only (n = total - undecided); `floor` takes undecided as no, over all items,
    and is what compares with published AutoAIS values. Absent values are None, never NaN.
    """

    yes: int
    total: int
    undecided: int = 0

    @classmethod
    def of(cls, outcomes: Iterable[bool | None]) -> "Rate":
        """Count outcomes; None is undecided."""
        counts = Counter(outcomes)
        return cls(counts[True], sum(counts.values()), counts[None])

    @property
    def n(self) -> int:
        """Decided items."""
        return self.total - self.undecided

    @property
    def value(self) -> float | None:
        """yes / n, or None where nothing was decided."""
        return self.yes / self.n if self.n else None

    @property
    def floor(self) -> float | None:
        """yes / total, or None where there are no items."""
        return self.yes / self.total if self.total else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """95 % Wilson interval of `value`."""
        return wilson(self.yes, self.n) if self.n else None

    def record(self) -> dict[str, Any]:
        """As JSON: value, floor, n, total, undecided, interval95, all rates as fractions."""
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
        """Mean over all values; the interval resamples them with replacement from a fixed seed."""
        if not values:
            return cls(None, 0, None)
        import numpy as np  # imported here: `rag ask` must not pay for it

        data = np.sort(np.asarray(values, dtype=np.float64))  # the order of the questions changes nothing
        rng = np.random.default_rng(seed)
        means = [data[rng.integers(0, len(data), len(data))].mean() for _ in range(resamples)]
        low, high = np.percentile(means, [2.5, 97.5])
        return cls(float(data.mean()), len(data), (float(low), float(high)))

    def record(self) -> dict[str, Any]:
        """As JSON: value, n, interval95, as fractions."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Ratio:
    """A ratio over answers: `value` over what was decided, `floor` with undecided as nothing gained.

    `n` of `total` units enter the value; `undecided` counts the others. Absent values are None with a `reason`.
    """

    value: float | None
    floor: float | None
    n: int
    total: int
    undecided: int
    interval95: tuple[float, float] | None
    reason: str | None = None

    def record(self) -> dict[str, Any]:
        """As JSON: value, floor, n, total, undecided, interval95; reason only where there is no value."""
        record = asdict(self)
        if self.reason is None:
            del record["reason"]
        return record


class Tally:
    """What each answer gained on its items, from which pooled and averaged ratios are made; 24 bytes an answer."""

    def __init__(self, items: str) -> None:
        self.items = items  # "sentences" or "citations", for the reason why there is no value
        self._gained, self._decided, self._all = array("d"), array("d"), array("d")

    def __len__(self) -> int:
        return len(self._all)

    def add(self, values: Iterable[float | None]) -> None:
        """One answer: what each of its items gained, 0 to 1, None where undecided."""
        listed = list(values)
        decided = [value for value in listed if value is not None]
        self._gained.append(math.fsum(decided))
        self._decided.append(len(decided))
        self._all.append(len(listed))

    def pooled(self) -> Ratio:
        """Gained over items, all answers together; the interval resamples answers."""
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
        """The mean over answers of gained / decided items; n, total and undecided count answers.

        An answer without items has the value `empty`, and is left out where that is None. An answer in which
        nothing was decided is undecided. The interval resamples answers.
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
        """Two numbers an answer (array answers x 2) whose sums' ratio is the pooled or the averaged value."""
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
    """F1 of two rates; 0 where both are 0, None where one is absent."""
    if recall is None or precision is None:
        return None
    return 2 * recall * precision / (recall + precision) if recall + precision else 0.0


def ratio_of_sums(sums: "Floats") -> float | None:
    """First sum over the second, None over 0."""
    return float(sums[0] / sums[1]) if sums[1] else None
