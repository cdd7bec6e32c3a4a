"""Seeded bootstrap intervals: the same data give the same interval in any order."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

PAIRED_RESAMPLES = 10_000


def resampled(
    rows: "Floats", statistic: Callable[["Floats"], float | None], *, resamples: int = 1000, seed: int = 0
) -> tuple[float, float] | None:
    """Return the 95 % bootstrap percentile interval of a statistic of column sums, resampling rows.

    Equal rows are drawn by their count, so that the order of the rows does not matter. Draws without a value are left
    out; None if no draw has one.
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
    """As `resampled`, given the distinct rows and their counts."""
    import numpy as np

    n = int(counts.sum())
    if not n:
        return None
    rng = np.random.default_rng(seed)
    drawn = (statistic(rng.multinomial(n, counts / n) @ kinds) for _ in range(resamples))
    return interval95([value for value in drawn if value is not None])


def interval95(draws: "Sequence[float] | Floats") -> tuple[float, float] | None:
    """Return the 95 % percentile interval of bootstrap draws; None without draws."""
    import numpy as np

    if not len(draws):
        return None
    low, high = np.percentile(draws, [2.5, 97.5])
    return float(low), float(high)


def mean_interval(values: "Floats", *, resamples: int = 1000, seed: int = 0) -> tuple[float, float] | None:
    """Return the bootstrap interval of a mean; sort the values first if their order must not matter."""
    import numpy as np

    rng = np.random.default_rng(seed)
    return interval95([float(values[rng.integers(0, len(values), len(values))].mean()) for _ in range(resamples)])


def paired_draws(differences: "Floats", *, seed: int = 0) -> "Floats":
    """Return the means of `PAIRED_RESAMPLES` draws of paired differences.

    The differences are sorted, so that the order of the topics does not matter, and rounded, so that equal values
    cancel out.
    """
    import numpy as np

    ordered = np.sort(np.round(differences, 12))
    rng, n, blocks = np.random.default_rng(seed), len(ordered), 10
    shape = (PAIRED_RESAMPLES // blocks, n)
    drawn: Floats = np.concatenate([ordered[rng.integers(0, n, shape)].mean(axis=1) for _ in range(blocks)]).round(12)
    return drawn


def paired_draws_of_outcomes(wins: int, losses: int, n: int, *, seed: int = 0) -> "Floats":
    """As `paired_draws`, for yes/no outcomes: wins, losses and ties are drawn from a multinomial."""
    import numpy as np

    rng = np.random.default_rng(seed)
    won, lost, _ = rng.multinomial(n, np.array([wins, losses, n - wins - losses]) / n, PAIRED_RESAMPLES).T
    drawn: Floats = (won - lost) / n
    return drawn


def two_sided_p(draws: "Floats") -> float:
    """Return twice the smaller share of draws on either side of 0, at most 1.

    The observed sample counts as one draw, so that p is never 0.
    """
    tail = 1 + min(int((draws <= 0).sum()), int((draws >= 0).sum()))
    return min(1.0, 2 * tail / (len(draws) + 1))
