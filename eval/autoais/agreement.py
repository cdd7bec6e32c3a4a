"""Agreement between raters over yes/no items (AIS paper, Table 7; spec E7)."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Item:
    """How many raters said yes and how many said no of one item; at least one of them must have rated."""

    yes: int
    no: int

    def __post_init__(self) -> None:
        if min(self.yes, self.no) < 0 or self.yes + self.no == 0:
            raise ValueError(f"an item needs ratings, found {self.yes} yes and {self.no} no")

    @property
    def ratings(self) -> int:
        """All ratings of the item."""
        return self.yes + self.no

    @property
    def majority(self) -> bool:
        """What most raters said; a tie is a no."""
        return self.yes > self.no


def krippendorff_alpha(items: Sequence[Item]) -> float | None:
    """Krippendorff's alpha for nominal data, 1 - observed / expected disagreement; at most 1, can be below 0.

    Items with one rating cannot agree or disagree and are left out; None where nothing could have disagreed.
    """
    paired = [item for item in items if item.ratings > 1]
    yes, no = sum(item.yes for item in paired), sum(item.no for item in paired)
    expected = 2 * yes * no / (yes + no - 1) if yes + no > 1 else 0.0
    observed = sum(2 * item.yes * item.no / (item.ratings - 1) for item in paired)
    return 1 - observed / expected if expected else None


def pairwise_agreement(items: Sequence[Item]) -> float | None:
    """Agreeing pairs of raters over all pairs, averaged over the items with at least two ratings; 0 to 1."""
    shares = [
        (item.yes * (item.yes - 1) + item.no * (item.no - 1)) / (item.ratings * (item.ratings - 1))
        for item in items
        if item.ratings > 1
    ]
    return sum(shares) / len(shares) if shares else None


def f1_to_majority(items: Sequence[Item]) -> float | None:
    """Macro mean of the yes- and the no-class F1 of single ratings against each item's majority; 0 to 1."""
    if not items:
        return None
    both_yes = sum(item.yes for item in items if item.majority)
    both_no = sum(item.no for item in items if not item.majority)
    wrong = sum(item.no if item.majority else item.yes for item in items)
    scores = [2 * right / (2 * right + wrong) if right + wrong else 0.0 for right in (both_yes, both_no)]
    return sum(scores) / 2
