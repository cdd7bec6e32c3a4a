"""Inter-rater agreement on yes/no items, and McNemar's test (Rashkin et al. 2023, Tables 7 and 15)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Item:
    """The number of yes and of no ratings of one item; raises `ValueError` if there are none."""

    yes: int
    no: int

    def __post_init__(self) -> None:
        if min(self.yes, self.no) < 0 or self.yes + self.no == 0:
            raise ValueError(f"an item needs at least one rating, found {self.yes} yes and {self.no} no")

    @property
    def ratings(self) -> int:
        """The number of ratings of the item."""
        return self.yes + self.no

    @property
    def majority(self) -> bool:
        """The majority rating; a tie counts as no."""
        return self.yes > self.no


def krippendorff_alpha(items: Sequence[Item]) -> float | None:
    """Krippendorff's alpha for nominal data: 1 - observed / expected disagreement; at most 1, may be negative.

    Items with a single rating are left out. None if the expected disagreement is 0.
    """
    paired = [item for item in items if item.ratings > 1]
    yes, no = sum(item.yes for item in paired), sum(item.no for item in paired)
    expected = 2 * yes * no / (yes + no - 1) if yes + no > 1 else 0.0
    observed = sum(2 * item.yes * item.no / (item.ratings - 1) for item in paired)
    return 1 - observed / expected if expected else None


def pairwise_agreement(items: Sequence[Item]) -> float | None:
    """Share of rater pairs that agree, averaged over the items with at least two ratings; 0 to 1."""
    shares = [
        (item.yes * (item.yes - 1) + item.no * (item.no - 1)) / (item.ratings * (item.ratings - 1))
        for item in items
        if item.ratings > 1
    ]
    return sum(shares) / len(shares) if shares else None


def f1_to_majority(items: Sequence[Item]) -> float | None:
    """Macro-F1 (classes yes and no) of single ratings against the majority of their item; 0 to 1."""
    if not items:
        return None
    both_yes = sum(item.yes for item in items if item.majority)
    both_no = sum(item.no for item in items if not item.majority)
    wrong = sum(item.no if item.majority else item.yes for item in items)
    scores = [2 * right / (2 * right + wrong) if right + wrong else 0.0 for right in (both_yes, both_no)]
    return sum(scores) / 2


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
