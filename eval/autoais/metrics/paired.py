"""Tests of the difference between two systems on the same questions.

A randomisation test swaps the two systems' scores of a question at random, which changes nothing if neither is better
(Fisher; Smucker, Allan and Carterette 2007, CIKM). For yes/no outcomes it is McNemar's exact test. The difference is
divided by its standard error (delta method), which is computed anew for each swap: else a system that says more in an
answer than the other would be taken for a better or a worse one (Chung and Romano 2013, Annals of Statistics 41:484).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Statistic = Callable[[Floats], tuple[Floats, Floats]]

SWAPS = 10_000
_SEED = 0
_EXACT = 13  # questions with a difference: up to 2^13 swaps are all done
_BLOCK = 250  # swaps at once: bounds memory
_TIE = 1e-9  # differences this close are equal
_EPSILON = 1e-10  # a variance below this share of the absolute values of its terms is 0 but for rounding
_RELATIVE_TIE = 1e-6  # relative; standardised differences this close are equal


@dataclass(frozen=True, slots=True)
class Pairs:
    """What each question adds to the sums of A and of B (questions x columns), and a statistic of such sums.

    The statistic maps draws x columns to one value per draw and to its slopes (draws x columns). If it has several
    columns, both sides need a value in the same questions: see `both_sides`. Rows must come in an order that depends on
    the questions alone.
    """

    a: "Floats"
    b: "Floats"
    statistic: "Statistic"


def both_sides(a: "Floats", b: "Floats") -> "tuple[Floats, Floats]":
    """Return both sides without what only one of them has; columns are pairs of a sum and its number of items.

    A pair of columns is set to 0 in the questions in which either side has no items. Without that, a swap would give
    one system the questions that only the other answered, and the test would be one of how many each answered.
    """
    import numpy as np

    has_items = np.repeat((a[:, 1::2] > 0) & (b[:, 1::2] > 0), 2, axis=1)
    return np.where(has_items, a, 0.0), np.where(has_items, b, 0.0)


def p_values(tests: "Sequence[Pairs]") -> "list[tuple[float, int | None]]":
    """Return, for each test, the two-sided p of "A and B are interchangeable", and the number of random swaps.

    All 2^n swaps are done, and the number is None, if at most 13 questions differ; else 10,000 random ones (seed 0),
    which are the same for all tests over the same questions. The observed outcome counts as one, so p is never 0.
    """
    import numpy as np

    results: list[tuple[float, int | None]] = [(1.0, None)] * len(tests)
    random: dict[int, list[int]] = {}
    for number, test in enumerate(tests):
        differ = np.abs(test.b - test.a).max(axis=1) > _TIE
        if (n := int(differ.sum())) <= _EXACT:
            swaps = (np.arange(2**n)[:, None] >> np.arange(n)) & 1
            swap_test = _Test(test)
            results[number] = float(swap_test.extreme(swaps @ swap_test.changes[differ]).mean()), None
        else:
            random.setdefault(len(test.a), []).append(number)
    for n, numbers in random.items():
        rng, counts = np.random.default_rng(_SEED), [1] * len(numbers)
        swap_tests = [_Test(tests[number]) for number in numbers]
        changes = np.concatenate([swap_test.changes for swap_test in swap_tests], axis=1)
        ends = np.cumsum([swap_test.changes.shape[1] for swap_test in swap_tests])
        for _ in range(SWAPS // _BLOCK):
            shifts = rng.integers(0, 2, (_BLOCK, n), dtype=np.int8).astype(np.float64) @ changes
            for index, (swap_test, part) in enumerate(
                zip(swap_tests, np.split(shifts, ends[:-1], axis=1), strict=True)
            ):
                counts[index] += int(swap_test.extreme(part).sum())
        for index, number in enumerate(numbers):
            results[number] = counts[index] / (SWAPS + 1), SWAPS
    return results


def _products(first: "Floats", second: "Floats") -> "Floats":
    """The products of each column of one with each of the other (questions x columns^2)."""
    products: Floats = (first[:, :, None] * second[:, None, :]).reshape(len(first), -1)
    return products


def _changes(test: Pairs) -> "Floats":
    """What the swap of each question adds: to the sums of A, to its squares and to its products with B."""
    import numpy as np

    a, b = test.a, test.b
    return np.concatenate([b - a, _products(b, b) - _products(a, a), _products(b, a) - _products(a, b)], axis=1)


class _Test:
    """A test, with the sums that its swaps start from."""

    def __init__(self, test: Pairs) -> None:
        import numpy as np

        a, b = test.a, test.b
        self._statistic, self._columns = test.statistic, a.shape[1]
        self._a_sums, self._b_sums = a.sum(axis=0), b.sum(axis=0)
        self._squares = _products(a, a).sum(axis=0), _products(b, b).sum(axis=0)
        self._cross_products = _products(a, b).sum(axis=0)
        self.changes = _changes(test)
        self._observed = self._standardise(np.zeros((1, self.changes.shape[1])))[0]

    def extreme(self, shifts: "Floats") -> "NDArray[np.bool_]":
        """Whether each swap gives a difference as large as the observed one; `shifts` is what it adds (`_changes`)."""
        is_extreme: NDArray[np.bool_] = ~(self._standardise(shifts) < self._observed * (1 - _RELATIVE_TIE))
        return is_extreme  # an undefined value counts as extreme

    def _standardise(self, shifts: "Floats") -> "Floats":
        """The absolute difference after each swap, divided by its standard error; infinite if that is 0."""
        import numpy as np

        sums, squares, products = np.split(shifts, [self._columns, self._columns + self._columns**2], axis=1)
        a_value, slope = self._statistic(self._a_sums + sums)
        b_value, other_slope = self._statistic(self._b_sums - sums)
        forms = (
            (slope, self._squares[0] + squares, slope),
            (other_slope, self._squares[1] - squares, other_slope),
            (-2 * slope, self._cross_products + products, other_slope),
        )
        variance = sum(_weigh(*form) for form in forms)
        # Terms cancel out, so rounding errors are as large as a share of their absolute values.
        size = sum(_weigh(*map(np.abs, form)) for form in forms)
        difference = np.abs(a_value - b_value)
        error = np.sqrt(np.where(variance > _EPSILON * size, variance, 0.0))
        ratio: Floats = np.divide(difference, error, out=np.full_like(difference, np.inf), where=error > 0)
        return np.where(difference <= _TIE, 0.0, np.where(np.isnan(difference), np.nan, ratio))


def _weigh(slope: "Floats", products: "Floats", other: "Floats") -> "Floats":
    """The products of each draw (draws x columns^2), weighed with the slopes of their columns."""
    import numpy as np

    square = products.reshape(len(products), slope.shape[1], other.shape[1])
    quadratic_form: Floats = np.matmul(slope[:, None, :], np.matmul(square, other[:, :, None]))[:, 0, 0]
    return quadratic_form


def first_sum(sums: "Floats") -> "tuple[Floats, Floats]":
    """Return the sum of the only column, and its slopes: the statistic of means over the same questions."""
    import numpy as np

    return sums[:, 0], np.ones_like(sums)


def ratio_of_sums(sums: "Floats") -> "tuple[Floats, Floats]":
    """Return the first column divided by the second, NaN where that is 0, and its slopes."""
    import numpy as np

    nan = np.full(len(sums), np.nan)
    inverse = np.divide(1.0, sums[:, 1], out=nan, where=sums[:, 1] > 0)
    ratio = sums[:, 0] * inverse
    return ratio, np.stack([inverse, -ratio * inverse], axis=1)


def f1_of_sums(sums: "Floats") -> "tuple[Floats, Floats]":
    """Return the harmonic mean of two ratios, of columns 0 and 1 and of columns 2 and 3, and its slopes.

    It is 0 if both ratios are 0.
    """
    import numpy as np

    (recall, of_recall), (precision, of_precision) = ratio_of_sums(sums[:, :2]), ratio_of_sums(sums[:, 2:])
    total = recall + precision
    otherwise = np.where(np.isnan(total), np.nan, 0.0)
    share = np.divide(recall, total, out=otherwise.copy(), where=total > 0)
    slopes = np.concatenate([2 * (1 - share)[:, None] ** 2 * of_recall, 2 * share[:, None] ** 2 * of_precision], axis=1)
    f1: Floats = 2 * precision * share
    return f1, slopes


def holm(p: Sequence[float]) -> list[float]:
    """Return the p-values corrected for their number (Holm 1979, Scandinavian Journal of Statistics 6:65)."""
    corrected_p, highest = [0.0] * len(p), 0.0
    for rank, index in enumerate(sorted(range(len(p)), key=lambda i: p[i])):
        highest = max(highest, min(1.0, p[index] * (len(p) - rank)))
        corrected_p[index] = highest
    return corrected_p
