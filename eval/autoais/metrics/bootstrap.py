"""Bootstrap intervals, all seeded: the same data give the same interval in any order."""

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


def resampled(
    rows: "Floats", statistic: Callable[["Floats"], float | None], *, resamples: int = 1000, seed: int = 0
) -> tuple[float, float] | None:
    """95 % bootstrap percentile interval of a statistic of column sums, rows drawn with replacement.

    Equal rows are drawn by their count, so that the order of the rows changes nothing. Draws without a value are
    left out; None where no draw has one.
    """
    import numpy as np

    kinds, counts = np.unique(rows, axis=0, return_counts=True)
    return resampled_kinds(kinds, counts, statistic, resamples=resamples, seed=seed)


def resampled_kinds(
    kinds: "Floats",
    counts: "NDArray[np.int64]",
    statistic: Callable[["Floats"], float | None],
    *,
    resamples: int = 1000,
    seed: int = 0,
) -> tuple[float, float] | None:
    """`resampled`, given the different rows and how often each occurs."""
    import numpy as np

    n = int(counts.sum())
    if not n:
        return None
    rng = np.random.default_rng(seed)
    drawn = (statistic(rng.multinomial(n, counts / n) @ kinds) for _ in range(resamples))
    values = [value for value in drawn if value is not None]
    if not values:
        return None
    low, high = np.percentile(values, [2.5, 97.5])
    return float(low), float(high)
