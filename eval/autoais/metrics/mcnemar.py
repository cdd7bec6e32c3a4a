"""McNemar's test of paired yes/no outcomes (Rashkin et al. 2023, Tables 7 and 15)."""

import math
from dataclasses import dataclass

_MIN_DISCORDANT = 25  # discordant items: below, the exact form is the default


@dataclass(frozen=True, slots=True)
class McNemar:
    """McNemar's test of paired yes/no outcomes: `b` items only the first gets right, `c` only the second.

    `variant` names the form of the test; `statistic` is None for the exact form. `p` is two-sided, and None for the
    corrected form if b + c = 0.
    """

    variant: str
    b: int
    c: int
    statistic: float | None
    p: float | None


def mcnemar_exact(b: int, c: int) -> McNemar:
    """The exact binomial form: twice the smaller tail of Binomial(b + c, 1/2), at most 1."""
    tail = term = 1
    for i in range(min(b, c)):
        term = term * (b + c - i) // (i + 1)
        tail += term
    return McNemar("exact binomial", b, c, None, min(1.0, 2 * tail / 2 ** (b + c)))


def mcnemar_corrected(b: int, c: int) -> McNemar:
    """The chi-squared form (one degree of freedom) with continuity correction, (|b - c| - 1)^2 / (b + c).

    As in Rashkin et al. 2023, Table 15, the correction is also applied at b = c, without clipping |b - c| - 1 at 0.
    """
    name = "chi-squared with continuity correction"
    if b + c == 0:
        return McNemar(name, b, c, None, None)
    statistic = (abs(b - c) - 1) ** 2 / (b + c)
    return McNemar(name, b, c, statistic, math.erfc(math.sqrt(statistic / 2)))


def mcnemar(b: int, c: int) -> McNemar:
    """The exact form if b + c < 25, else the corrected one; the other may give another p (Table 15)."""
    return mcnemar_exact(b, c) if b + c < _MIN_DISCORDANT else mcnemar_corrected(b, c)
