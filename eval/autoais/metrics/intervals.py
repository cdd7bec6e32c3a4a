"""95 % confidence intervals of rates, means and ratios over questions, without random numbers.

Shares of independent yes/no outcomes get the exact interval of Clopper and Pearson (1934). Everything else (shares of
sentences, means, F1, figures of a judge) gets the same interval at its effective sample size (Korn and Graubard 1998,
Survey Methodology 24:193): the number of independent yes/no outcomes with the same variance. It is adjusted as in their
paper, with the normal quantile in place of t_{n-1}, which is wider at small n. The variance is that
between questions, of the linearised statistic; its degrees of freedom are estimated from the fourth moment
(Satterthwaite 1946, Biometrics Bulletin 2:110). `scripts/coverage.py` measures the coverage.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]
    Numbers = NDArray[np.int64]

Interval = tuple[float, float]

Z95 = 1.959963984540054  # two-sided 95 % quantile of the standard normal
_MIN_DEGREES_OF_FREEDOM = 3.0  # fewer degrees of freedom cannot be told from a sample; chosen by the simulation
_EPSILON = 1e-12  # rounding errors are smaller


def clopper_pearson(successes: float, n: float) -> Interval:
    """Return the exact 95 % interval of a proportion, both ends 0 to 1; an effective n need not be whole.

    Raises `ValueError` unless 0 <= successes <= n and n > 0.
    """
    if not 0 <= successes <= n or n <= 0:
        raise ValueError(f"clopper_pearson({successes}, {n}): need 0 <= successes <= n and n > 0")
    from scipy.special import betaincinv  # a slow import that `rag ask` does not need

    failures = n - successes
    low = float(betaincinv(successes, failures + 1, 0.025)) if successes > 0 else 0.0
    high = float(betaincinv(successes + 1, failures, 0.975)) if failures > 0 else 1.0
    return low, high


@dataclass(frozen=True, slots=True)
class Estimate:
    """A statistic over questions, and what each question adds to its error.

    `parts` (one per question) sum to 0; the variance is n / (n - 1) times the sum of their squares. `n` counts the
    questions that enter, and `size` is their effective number, smaller where some weigh more (Kish 1965). `low` and
    `high` bound the statistic. If `exact`, it is the share of yes among n independent outcomes.
    `arms` are added to the squared distances of the ends from the value: the error of terms without a variance.
    """

    value: float
    parts: "Floats"
    n: int
    size: float
    low: float = 0.0
    high: float = 1.0
    exact: bool = False
    arms: tuple[float, float] = (0.0, 0.0)

    @property
    def varies(self) -> bool:
        """Whether questions differ; if none does, the parts say nothing of the error."""
        return math.sqrt(math.fsum(self.parts**2)) >= _EPSILON

    @property
    def interval(self) -> Interval:
        """The 95 % interval, within `low` and `high`."""
        span = self.high - self.low
        p = min(max((self.value - self.low) / span, 0.0), 1.0)
        low, high = clopper_pearson(round(p * self.n), self.n) if self.exact else self._by_variance(p, span)
        low, high = self.low + span * low, self.low + span * high
        if not any(self.arms):
            return low, high
        lower_arm, upper_arm = (
            math.sqrt(end**2 + arm) for end, arm in zip((self.value - low, high - self.value), self.arms, strict=True)
        )
        return max(self.value - lower_arm, self.low), min(self.value + upper_arm, self.high)

    def arm_squares(self, slope: float) -> tuple[float, float]:
        """Return the squared distances of the ends of the interval from the value, of slope times the estimate."""
        low, high = self.interval
        lower_square, upper_square = (slope * (self.value - low)) ** 2, (slope * (high - self.value)) ** 2
        return (lower_square, upper_square) if slope >= 0 else (upper_square, lower_square)

    def _by_variance(self, p: float, span: float) -> Interval:
        import numpy as np
        from scipy.special import stdtrit

        squares = np.sort((self.parts / span) ** 2)  # sorted: the order of the questions must not matter
        total = float(squares.sum())
        if self.n < 2 or math.sqrt(total) < _EPSILON or not _EPSILON < p < 1 - _EPSILON:
            # All questions agree. The share of others, of which none was seen, may be up to `unseen`.
            max_share = clopper_pearson(0, self.size)[1]
            return p * (1 - max_share), p + (1 - p) * max_share
        spread = float((squares**2).sum()) - total**2 / self.n
        df = 2 * total**2 / spread if spread > 0 else math.inf
        t = float(stdtrit(min(max(df, _MIN_DEGREES_OF_FREEDOM), self.n - 1), 0.975))
        effective = p * (1 - p) / (total * self.n / (self.n - 1)) * (Z95 / t) ** 2
        return clopper_pearson(p * effective, effective)


def number_of(question: str) -> int:
    """Return a number that stands for the text of a question, below 2^56."""
    return int.from_bytes(blake2b(question.encode("utf-8", "surrogatepass"), digest_size=7).digest())


def number_components(a: "Numbers", b: "Numbers") -> "Numbers":
    """Number the items from 0: two have one number if they share their `a` or their `b`, directly or by others."""
    import numpy as np
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    if not len(a):
        return a
    keys, codes = np.unique(np.concatenate([a, b]), return_inverse=True)
    ends = codes[: len(a)], codes[len(a) :]
    links = coo_array((np.ones(len(a), np.int8), ends), shape=(len(keys), len(keys)))
    return np.asarray(connected_components(links, directed=False)[1][ends[0]], dtype=np.int64)


def interval(estimate: Estimate | None) -> Interval | None:
    """Return the 95 % interval of an estimate, if there is one."""
    return None if estimate is None else estimate.interval


def by_question(questions: "ArrayLike", *columns: "Floats") -> "list[Floats]":
    """Return the sums of columns over the items of each question; `questions` numbers the question of each item."""
    import numpy as np

    _, codes = np.unique(questions, return_inverse=True)
    return [np.bincount(codes, column).astype(np.float64) for column in columns]


def ratio(score_sums: "Floats", items: "Floats") -> Estimate | None:
    """Return the ratio of two sums over questions, 0 to 1; None if the second is 0."""
    total = math.fsum(items)
    if total <= 0:
        return None
    value, has_items = math.fsum(score_sums) / total, items > 0
    exact = bool((items[has_items] == items.max()).all() and ((score_sums == 0) | (score_sums == items)).all())
    size = total**2 / math.fsum(items**2)
    return Estimate(value, (score_sums - value * items) / total, int(has_items.sum()), size, exact=exact)


def mean(values: "Floats", low: float = 0.0, high: float = 1.0) -> Estimate:
    """Return the mean of one value per question, at least one; all are between `low` and `high`."""
    value, n = math.fsum(values) / len(values), len(values)
    exact = bool(((values == low) | (values == high)).all())
    return Estimate(value, (values - value) / n, n, n, low, high, exact)


def combine(value: float, *terms: tuple[float, Estimate], low: float = 0.0, high: float = 1.0) -> Estimate:
    """Return a function of estimates over the same questions (delta method): `terms` are its slopes and arguments.

    A term in which no question differs has no variance, and may still be wrong: the arms of its own interval are added
    in quadrature, if the others have a variance (Zou and Donner 2008, Statistics in Medicine 27:1693).
    """
    parts = sum((slope * estimate.parts for slope, estimate in terms[1:]), terms[0][0] * terms[0][1].parts)
    n, size = max(estimate.n for _, estimate in terms), min(estimate.size for _, estimate in terms)
    arms = [estimate.arm_squares(slope) for slope, estimate in terms if not estimate.varies]
    for slope, estimate in terms:
        if estimate.varies:  # it may have arms of its own terms
            lower, upper = estimate.arms if slope >= 0 else estimate.arms[::-1]
            arms.append((slope**2 * lower, slope**2 * upper))
    combination = Estimate(value, parts, n, size, low, high)
    if not combination.varies:
        return combination
    return replace(combination, arms=(sum(lower for lower, _ in arms), sum(upper for _, upper in arms)))


def harmonic_mean(a: Estimate | None, b: Estimate | None) -> Estimate | None:
    """Return the harmonic mean (F1) of two ratios over the same questions; None if one is absent.

    If both are the same in every question, F1 is that ratio, and its interval is exact where that of the ratio is.
    """
    import numpy as np

    if a is None or b is None:
        return None
    if a.value == b.value and np.array_equal(a.parts, b.parts):
        return a
    if not a.value + b.value:
        return combine(0.0, (0.0, a), (0.0, b))
    share = a.value / (a.value + b.value)
    return combine(2 * a.value * b.value / (a.value + b.value), (2 * (1 - share) ** 2, a), (2 * share**2, b))


def difference(a: Estimate, b: Estimate) -> Estimate:
    """Return a - b, over the same questions in the same order; both are between 0 and 1."""
    return combine(a.value - b.value, (1.0, a), (-1.0, b), low=-1.0, high=1.0)


def average(estimates: Sequence[Estimate]) -> Interval:
    """Return the 95 % interval of the mean of estimates over different questions.

    The arms of their own intervals are added in quadrature (MOVER; Zou and Donner 2008, Statistics in Medicine
    27:1693), so that a set without a variance adds its error too.
    """
    value, k = math.fsum(estimate.value for estimate in estimates) / len(estimates), len(estimates)
    lower_arm, upper_arm = (
        math.sqrt(math.fsum(arms))
        for arms in zip(*(estimate.arm_squares(1 / k) for estimate in estimates), strict=True)
    )
    return value - lower_arm, value + upper_arm
