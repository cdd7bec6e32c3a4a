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

_EPSILON = 1e-9  # rounding errors of sums are smaller
ALL_EQUAL = "all ratings have the same value"
SINGLE = "no item has two ratings"
UNANIMOUS = "with two ratings an item, every majority is unanimous"
_MIN_RARE_QUESTIONS = 5  # questions; with fewer the jackknife is too narrow, by simulation


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
        record = {"value": self.value, "n": self.n, "interval95": interval}
        return record if self.reason is None else record | {"reason": self.reason}


def krippendorff_alpha(counts: ArrayLike, questions: ArrayLike | None = None, *, ordinal: bool = False) -> Coefficient:
    """Krippendorff's alpha, 1 - observed / expected disagreement, at most 1; for nominal or ordinal data.

    Without a value if all ratings are the same, as no disagreement is expected (Krippendorff 2011, Computing
    Krippendorff's Alpha-Reliability).
    """
    ratings, question_numbers = _select_items(counts, questions)
    values = ratings.shape[1]
    pairs = ratings[:, :, None] * (ratings[:, None, :] - np.eye(values)) / (_raters(ratings) - 1)[:, None, None]
    columns = pairs.reshape(len(ratings), values**2)

    def alpha(sums: "Floats") -> "Floats":
        coincidences = sums.reshape(-1, values, values)
        total = coincidences.sum(axis=2)
        n = total.sum(axis=1)
        middle = np.cumsum(total, axis=1) - total / 2  # the mean rank of a value
        distance = (middle[:, :, None] - middle[:, None, :]) ** 2 if ordinal else 1.0 - np.eye(values)
        expected = (total[:, :, None] * total[:, None, :] * distance).sum(axis=(1, 2)) / np.maximum(n - 1, 1)
        return 1 - _divide((coincidences * distance).sum(axis=(1, 2)), expected)

    return _coefficient(columns, question_numbers, alpha, low=-1.0, is_varied=_has_variety(ratings, question_numbers))


def pairwise_agreement(counts: ArrayLike, questions: ArrayLike | None = None) -> Coefficient:
    """Share of pairs of ratings that agree, averaged over the items; 0 to 1.

    If every question is a yes or a no, as with two annotators, the interval is that of Clopper and Pearson.
    """
    ratings, question_numbers = _select_items(counts, questions)
    shares, weights = _pair_shares(ratings), np.ones(len(ratings))
    columns = np.stack([shares, weights], axis=1)
    coefficient = _coefficient(columns, question_numbers, lambda sums: _divide(sums[:, 0], sums[:, 1]))
    rate = ratio(*by_question(question_numbers, shares, weights))
    return replace(coefficient, interval95=rate.interval) if rate is not None and rate.exact else coefficient


def fleiss_kappa(counts: ArrayLike, questions: ArrayLike | None = None) -> Coefficient:
    """Fleiss' kappa (1971), the pairwise agreement beyond chance, at most 1.

    If items have different numbers of ratings, the share of a value is the mean of its shares in the items (Gwet
    2014, Handbook of Inter-Rater Reliability). Without a value if all ratings are the same.
    """
    ratings, question_numbers = _select_items(counts, questions)
    shares = ratings / _raters(ratings)[:, None]
    columns = np.concatenate([_pair_shares(ratings)[:, None], np.ones((len(ratings), 1)), shares], axis=1)

    def kappa(sums: "Floats") -> "Floats":
        agreement, items = sums[:, 0], sums[:, 1]
        share = _divide(sums[:, 2:], items[:, None])
        chance = (share**2).sum(axis=1)
        return _divide(_divide(agreement, items) - chance, 1 - chance)

    return _coefficient(columns, question_numbers, kappa, low=-1.0, is_varied=_has_variety(ratings, question_numbers))


def f1_to_majority(counts: ArrayLike, questions: ArrayLike | None = None) -> Coefficient:
    """Macro-F1 of single ratings against the most frequent value of their item; 0 to 1.

    The mean is over the values that occur. Items in which two values are equally frequent are left out. Without a value
    if no item has more than two ratings: each of the two that agree would be compared with itself.
    """
    ratings, question_numbers = _select_items(counts, questions)
    values = ratings.shape[1]
    has_majority = (ratings == ratings.max(axis=1, initial=0)[:, None]).sum(axis=1) == 1
    ratings, question_numbers = ratings[has_majority], question_numbers[has_majority]
    if len(ratings) and _raters(ratings).max() == 2:
        return Coefficient(None, len(ratings), None, UNANIMOUS)
    confusion = np.eye(values)[ratings.argmax(axis=1)][:, :, None] * ratings[:, None, :]
    columns = confusion.reshape(len(ratings), values**2)
    is_varied = _has_variety(ratings, question_numbers)
    coefficient = _coefficient(columns, question_numbers, lambda sums: _macro_f1(sums, values), is_varied=is_varied)
    return (
        coefficient
        if len(has_majority) == 0 or has_majority.any()
        else Coefficient(None, 0, None, "no item has a majority")
    )


def cohen_kappa(raters: Iterable[Sequence[tuple[int, int]]]) -> Coefficient:
    """The mean of Cohen's kappa (1960) over pairs of raters, each weighted by the items that both rated.

    `raters` holds the (rater, value) of each item, both numbered from 0. With the same weights it is Light's kappa
    (1971). Pairs whose ratings are all the same have no kappa and no weight. `n` counts the pairs; there is no
    interval.
    """
    rating_pairs = [
        (first_rater, second_rater, a, b)
        for values_of_item in raters
        for (first_rater, a), (second_rater, b) in combinations(sorted(values_of_item), 2)
    ]
    if not rating_pairs:
        return Coefficient(None, 0, None, SINGLE)
    first, second, a, b = np.array(rating_pairs, dtype=np.int64).T
    values = int(max(a.max(), b.max())) + 1
    _, pair = np.unique(first * (int(second.max()) + 1) + second, return_inverse=True)
    table = np.bincount((pair * values + a) * values + b, minlength=(int(pair.max()) + 1) * values**2)
    shares = table.reshape(-1, values, values).astype(np.float64)
    n = shares.sum(axis=(1, 2))
    shares /= n[:, None, None]
    chance = (shares.sum(axis=1) * shares.sum(axis=2)).sum(axis=1)
    kappa = _divide(np.trace(shares, axis1=1, axis2=2) - chance, 1 - chance)
    has_kappa = ~np.isnan(kappa)
    if not has_kappa.any():
        return Coefficient(None, 0, None, ALL_EQUAL)
    return Coefficient(float(np.average(kappa[has_kappa], weights=n[has_kappa])), int(has_kappa.sum()))


def _select_items(counts: ArrayLike, questions: ArrayLike | None) -> "tuple[Floats, Numbers]":
    """Return the items with at least two ratings, and their questions."""
    ratings = np.asarray(counts, dtype=np.float64)
    ratings = ratings.reshape(len(ratings), ratings.shape[1] if ratings.ndim > 1 else 1)
    question_numbers = np.arange(len(ratings)) if questions is None else np.asarray(questions, dtype=np.int64)
    if (ratings < 0).any():
        raise ValueError("the number of ratings of a value cannot be negative")
    is_paired = _raters(ratings) > 1
    return ratings[is_paired], question_numbers[is_paired]


def _raters(ratings: "Floats") -> "Floats":
    return np.asarray(ratings.sum(axis=1))


def _pair_shares(ratings: "Floats") -> "Floats":
    """The share of pairs of ratings of each item that agree."""
    raters = _raters(ratings)
    return np.asarray((ratings * (ratings - 1)).sum(axis=1) / (raters * (raters - 1)))


def _divide(numerators: "Floats", denominators: "Floats") -> "Floats":
    """Return the quotients, NaN where the divisor is 0 but for rounding."""
    numerators, denominators = np.broadcast_arrays(numerators, denominators)
    nan = np.full(numerators.shape, np.nan)
    quotients: Floats = np.divide(numerators, denominators, out=nan, where=denominators > _EPSILON)
    return quotients


def _macro_f1(sums: "Floats", values: int) -> "Floats":
    confusion = sums.reshape(-1, values, values)
    right = np.diagonal(confusion, axis1=1, axis2=2)
    totals = confusion.sum(axis=1) + confusion.sum(axis=2)
    f1 = _divide(2 * right, totals)
    occurs = ~np.isnan(f1)
    return _divide(np.where(occurs, f1, 0.0).sum(axis=1), occurs.sum(axis=1).astype(np.float64))


def _has_variety(ratings: "Floats", questions: "Numbers") -> bool:
    """Whether enough questions have an item with another most frequent value than all ratings have."""
    if not len(ratings):
        return False
    common = int(ratings.sum(axis=0).argmax())
    rare = ratings[:, common] < ratings.max(axis=1)
    return len(np.unique(questions[rare])) >= _MIN_RARE_QUESTIONS


def _coefficient(
    columns: "Floats", questions: "Numbers", statistic: "Statistic", low: float = 0.0, *, is_varied: bool = True
) -> Coefficient:
    """Return a statistic of the sums of columns over all items, at most 1, with its interval over questions.

    There is no interval unless the questions are `is_varied` enough for it.
    """
    n = len(columns)
    if not n:
        return Coefficient(None, 0, None, SINGLE)
    value = float(statistic(columns.sum(axis=0)[None])[0])
    if math.isnan(value):
        return Coefficient(None, n, None, ALL_EQUAL)
    sums = np.stack(by_question(questions, *columns.T), axis=1)
    items = by_question(questions, np.ones(n))[0]
    leave_one_out = statistic(sums.sum(axis=0) - sums)
    if not is_varied or len(sums) < 2 or np.isnan(leave_one_out).any():
        return Coefficient(value, n)  # a few questions decide: too little is known of its error
    parts = (len(sums) - 1) / len(sums) * (leave_one_out.mean() - leave_one_out)
    size = n**2 / float((items**2).sum())
    estimate = Estimate(value, parts, len(sums), size, low=min(low, value))
    return Coefficient(value, n, estimate.interval)
