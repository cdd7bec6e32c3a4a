"""Tests of the difference between two systems on the same questions.

A randomisation test swaps the two systems' scores of a question at random, which changes nothing if neither is better
(Fisher; Smucker, Allan and Carterette 2007, CIKM). For yes/no outcomes it is McNemar's exact test.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Statistic = Callable[[Floats], Floats]

SWAPS = 10_000
_SEED = 0
_EXACT = 13  # questions with a difference: up to 2^13 swaps are all done
_BLOCK = 250  # swaps at once: bounds memory
_TIE = 1e-9  # differences this close are equal


@dataclass(frozen=True, slots=True)
class Pairs:
    """What each question adds to the sums of A and of B (questions x columns), and a statistic of such sums.

    The statistic maps draws x columns to one value per draw. Rows must come in an order that depends on the questions
    alone.
    """

    a: "Floats"
    b: "Floats"
    statistic: "Statistic"


def p_values(tests: "Sequence[Pairs]") -> "list[tuple[float, int | None]]":
    """Return, for each test, the two-sided p of "A and B are interchangeable", and the number of random swaps.

    All 2^n swaps are done, and the number is None, if at most 13 questions differ; else 10,000 random ones (seed 0),
    which are the same for all tests over the same questions. The observed outcome counts as one, so p is never 0.
    """
    import numpy as np

    found: list[tuple[float, int | None]] = [(1.0, None)] * len(tests)
    random: dict[int, list[int]] = {}
    for number, test in enumerate(tests):
        differ = np.abs(test.b - test.a).max(axis=1) > _TIE
        if (n := int(differ.sum())) <= _EXACT:
            swaps = (np.arange(2**n)[:, None] >> np.arange(n)) & 1
            found[number] = float(_extreme(test, swaps @ (test.b - test.a)[differ]).mean()), None
        else:
            random.setdefault(len(test.a), []).append(number)
    for n, numbers in random.items():
        rng, counts = np.random.default_rng(_SEED), [1] * len(numbers)
        changes = np.concatenate([tests[number].b - tests[number].a for number in numbers], axis=1)
        ends = np.cumsum([tests[number].a.shape[1] for number in numbers])
        for _ in range(SWAPS // _BLOCK):
            moved = rng.integers(0, 2, (_BLOCK, n), dtype=np.int8).astype(np.float64) @ changes
            for place, (number, part) in enumerate(zip(numbers, np.split(moved, ends[:-1], axis=1), strict=True)):
                counts[place] += int(_extreme(tests[number], part).sum())
        for place, number in enumerate(numbers):
            found[number] = counts[place] / (SWAPS + 1), SWAPS
    return found


def _extreme(test: Pairs, moved: "Floats") -> "NDArray[np.bool_]":
    """Whether each swap gives a difference as large as the observed one; `moved` is what it adds to the sums of A."""
    import numpy as np

    ours, theirs = test.a.sum(axis=0), test.b.sum(axis=0)
    observed = abs(float((test.statistic(ours[None]) - test.statistic(theirs[None]))[0]))
    values = np.abs(test.statistic(ours + moved) - test.statistic(theirs - moved))
    extreme: NDArray[np.bool_] = ~(values < observed - _TIE)  # an undefined value counts as extreme
    return extreme


def ratio_of_sums(sums: "Floats") -> "Floats":
    """Return the first column divided by the second, NaN where that is 0."""
    import numpy as np

    undefined = np.full(len(sums), np.nan)
    found: Floats = np.divide(sums[:, 0], sums[:, 1], out=undefined, where=sums[:, 1] > 0)
    return found


def f1_of_sums(sums: "Floats") -> "Floats":
    """Return the harmonic mean of two ratios, of columns 0 and 1 and of columns 2 and 3; 0 if both are 0."""
    import numpy as np

    recall, precision = ratio_of_sums(sums[:, :2]), ratio_of_sums(sums[:, 2:])
    together = recall + precision
    otherwise = np.where(np.isnan(together), np.nan, 0.0)
    found: Floats = np.divide(2 * recall * precision, together, out=otherwise, where=together > 0)
    return found


def holm(p: Sequence[float]) -> list[float]:
    """Return the p-values corrected for their number (Holm 1979, Scandinavian Journal of Statistics 6:65)."""
    corrected, highest = [0.0] * len(p), 0.0
    for rank, place in enumerate(sorted(range(len(p)), key=lambda i: p[i])):
        highest = max(highest, min(1.0, p[place] * (len(p) - rank)))
        corrected[place] = highest
    return corrected
