"""Agreement of annotators (Rashkin et al. 2023, Table 7).

A coefficient takes `counts`, the number of ratings by item and value (items x values; the values of ordinal data in
their order). Items with a single rating have no pairs and are left out everywhere. Intervals come from leaving out one
question at a time (jackknife), since items of one question are not independent; `questions` numbers the question of
each item, by default each item has one of its own. Chance-corrected coefficients depend on the rare values. No interval
is given if fewer than 5 questions have an item whose majority differs from the overall majority.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from autoais.metrics.intervals import Estimate, by_question, ratio

if TYPE_CHECKING:
    Floats = NDArray[np.float64]
    Numbers = NDArray[np.int64]
    Statistic = Callable[[Floats], Floats]

_NOTHING = 1e-9  # rounding errors of sums are smaller
SAME = "all ratings have the same value"
SINGLE = "no item has two ratings"
UNANIMOUS = "with two ratings an item, every majority is unanimous"
_LEAST_RARE = 5  # questions; with fewer the jackknife is too narrow, by simulation


@dataclass(frozen=True, slots=True)
class Coefficient:
    """A coefficient over `n` items, with its 95 % interval; without a value there is a `reason`."""

    value: float | None
    n: int
    interval95: tuple[float, float] | None = None
    reason: str | None = None

    def record(self) -> dict[str, Any]:
        """Return JSON: value, n, interval95, and reason if there is no value."""
        interval = list(self.interval95) if self.interval95 else None
        found = {"value": self.value, "n": self.n, "interval95": interval}
        return found if self.reason is None else found | {"reason": self.reason}


def krippendorff_alpha(counts: ArrayLike, questions: ArrayLike | None = None, *, ordinal: bool = False) -> Coefficient:
    """Krippendorff's alpha, 1 - observed / expected disagreement, at most 1; for nominal or ordinal data.

    Without a value if all ratings are the same, as no disagreement is expected (Krippendorff 2011, Computing
    Krippendorff's Alpha-Reliability).
    """
    rated, asked = _paired(counts, questions)
    values = rated.shape[1]
    pairs = rated[:, :, None] * (rated[:, None, :] - np.eye(values)) / (_raters(rated) - 1)[:, None, None]
    columns = pairs.reshape(len(rated), values**2)

    def alpha(sums: "Floats") -> "Floats":
        observed = sums.reshape(-1, values, values)
        total = observed.sum(axis=2)
        n = total.sum(axis=1)
        middle = np.cumsum(total, axis=1) - total / 2  # the mean rank of a value
        distance = (middle[:, :, None] - middle[:, None, :]) ** 2 if ordinal else 1.0 - np.eye(values)
        expected = (total[:, :, None] * total[:, None, :] * distance).sum(axis=(1, 2)) / np.maximum(n - 1, 1)
        return 1 - _divide((observed * distance).sum(axis=(1, 2)), expected)

    return _coefficient(columns, asked, alpha, low=-1.0, varied=_varied(rated, asked))


def pairwise_agreement(counts: ArrayLike, questions: ArrayLike | None = None) -> Coefficient:
    """Share of pairs of ratings that agree, averaged over the items; 0 to 1.

    If every question is a yes or a no, as with two annotators, the interval is that of Clopper and Pearson.
    """
    rated, asked = _paired(counts, questions)
    shares, ones = _pair_shares(rated), np.ones(len(rated))
    columns = np.stack([shares, ones], axis=1)
    found = _coefficient(columns, asked, lambda sums: _divide(sums[:, 0], sums[:, 1]))
    rate = ratio(*by_question(asked, shares, ones))
    return replace(found, interval95=rate.interval) if rate is not None and rate.exact else found


def fleiss_kappa(counts: ArrayLike, questions: ArrayLike | None = None) -> Coefficient:
    """Fleiss' kappa (1971), the pairwise agreement beyond chance, at most 1.

    If items have different numbers of ratings, the share of a value is the mean of its shares in the items (Gwet
    2014, Handbook of Inter-Rater Reliability). Without a value if all ratings are the same.
    """
    rated, asked = _paired(counts, questions)
    shares = rated / _raters(rated)[:, None]
    columns = np.concatenate([_pair_shares(rated)[:, None], np.ones((len(rated), 1)), shares], axis=1)

    def kappa(sums: "Floats") -> "Floats":
        observed, items = sums[:, 0], sums[:, 1]
        share = _divide(sums[:, 2:], items[:, None])
        chance = (share**2).sum(axis=1)
        return _divide(_divide(observed, items) - chance, 1 - chance)

    return _coefficient(columns, asked, kappa, low=-1.0, varied=_varied(rated, asked))


def f1_to_majority(counts: ArrayLike, questions: ArrayLike | None = None) -> Coefficient:
    """Macro-F1 of single ratings against the most frequent value of their item; 0 to 1.

    The mean is over the values that occur. Items in which two values are equally frequent are left out. Without a value
    if no item has more than two ratings: each of the two that agree would be compared with itself.
    """
    rated, asked = _paired(counts, questions)
    values = rated.shape[1]
    decided = (rated == rated.max(axis=1, initial=0)[:, None]).sum(axis=1) == 1
    rated, asked = rated[decided], asked[decided]
    if len(rated) and _raters(rated).max() == 2:
        return Coefficient(None, len(rated), None, UNANIMOUS)
    confusion = np.eye(values)[rated.argmax(axis=1)][:, :, None] * rated[:, None, :]
    columns = confusion.reshape(len(rated), values**2)
    varied = _varied(rated, asked)
    found = _coefficient(columns, asked, lambda sums: _macro_f1(sums, values), varied=varied)
    return found if len(decided) == 0 or decided.any() else Coefficient(None, 0, None, "no item has a majority")


def cohen_kappa(raters: Iterable[Sequence[tuple[int, int]]]) -> Coefficient:
    """The mean of Cohen's kappa (1960) over pairs of raters, each weighted by the items that both rated.

    `raters` holds the (rater, value) of each item, both numbered from 0. With the same weights it is Light's kappa
    (1971). Pairs whose ratings are all the same have no kappa and no weight. `n` counts the pairs; there is no
    interval.
    """
    seen = [(one, other, a, b) for rated in raters for (one, a), (other, b) in combinations(sorted(rated), 2)]
    if not seen:
        return Coefficient(None, 0, None, SINGLE)
    first, second, a, b = np.array(seen, dtype=np.int64).T
    values = int(max(a.max(), b.max())) + 1
    _, pair = np.unique(first * (int(second.max()) + 1) + second, return_inverse=True)
    table = np.bincount((pair * values + a) * values + b, minlength=(int(pair.max()) + 1) * values**2)
    shares = table.reshape(-1, values, values).astype(np.float64)
    n = shares.sum(axis=(1, 2))
    shares /= n[:, None, None]
    chance = (shares.sum(axis=1) * shares.sum(axis=2)).sum(axis=1)
    kappa = _divide(np.trace(shares, axis1=1, axis2=2) - chance, 1 - chance)
    known = ~np.isnan(kappa)
    if not known.any():
        return Coefficient(None, 0, None, SAME)
    return Coefficient(float(np.average(kappa[known], weights=n[known])), int(known.sum()))


def _paired(counts: ArrayLike, questions: ArrayLike | None) -> "tuple[Floats, Numbers]":
    """Return the items with at least two ratings, and their questions."""
    rated = np.asarray(counts, dtype=np.float64)
    rated = rated.reshape(len(rated), rated.shape[1] if rated.ndim > 1 else 1)
    asked = np.arange(len(rated)) if questions is None else np.asarray(questions, dtype=np.int64)
    if (rated < 0).any():
        raise ValueError("the number of ratings of a value cannot be negative")
    kept = _raters(rated) > 1
    return rated[kept], asked[kept]


def _raters(rated: "Floats") -> "Floats":
    return np.asarray(rated.sum(axis=1))


def _pair_shares(rated: "Floats") -> "Floats":
    """The share of pairs of ratings of each item that agree."""
    raters = _raters(rated)
    return np.asarray((rated * (rated - 1)).sum(axis=1) / (raters * (raters - 1)))


def _divide(above: "Floats", below: "Floats") -> "Floats":
    """Return the quotients, NaN where the divisor is 0 but for rounding."""
    above, below = np.broadcast_arrays(above, below)
    undefined = np.full(above.shape, np.nan)
    found: Floats = np.divide(above, below, out=undefined, where=below > _NOTHING)
    return found


def _macro_f1(sums: "Floats", values: int) -> "Floats":
    confusion = sums.reshape(-1, values, values)
    right = np.diagonal(confusion, axis1=1, axis2=2)
    given = confusion.sum(axis=1) + confusion.sum(axis=2)
    f1 = _divide(2 * right, given)
    there = ~np.isnan(f1)
    return _divide(np.where(there, f1, 0.0).sum(axis=1), there.sum(axis=1).astype(np.float64))


def _varied(rated: "Floats", questions: "Numbers") -> bool:
    """Whether enough questions have an item with another most frequent value than all ratings have."""
    if not len(rated):
        return False
    common = int(rated.sum(axis=0).argmax())
    rare = rated[:, common] < rated.max(axis=1)
    return len(np.unique(questions[rare])) >= _LEAST_RARE


def _coefficient(
    columns: "Floats", questions: "Numbers", statistic: "Statistic", low: float = 0.0, *, varied: bool = True
) -> Coefficient:
    """Return a statistic of the sums of columns over all items, at most 1, with its interval over questions.

    There is no interval unless the questions are `varied` enough for it.
    """
    n = len(columns)
    if not n:
        return Coefficient(None, 0, None, SINGLE)
    value = float(statistic(columns.sum(axis=0)[None])[0])
    if math.isnan(value):
        return Coefficient(None, n, None, SAME)
    sums = np.stack(by_question(questions, *columns.T), axis=1)
    items = by_question(questions, np.ones(n))[0]
    without = statistic(sums.sum(axis=0) - sums)
    if not varied or len(sums) < 2 or np.isnan(without).any():
        return Coefficient(value, n)  # a few questions decide: too little is known of its error
    parts = (len(sums) - 1) / len(sums) * (without.mean() - without)
    size = n**2 / float((items**2).sum())
    found = Estimate(value, parts, len(sums), size, low=min(low, value))
    return Coefficient(value, n, found.interval)
