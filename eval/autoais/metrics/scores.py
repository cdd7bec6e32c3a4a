"""Citation recall, precision and F1 over answers, shared by the rules of ALCE, Liu et al. and TREC."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from autoais.metrics.bootstrap import resampled
from autoais.metrics.rates import Ratio, Tally, harmonic, ratio_of_sums

if TYPE_CHECKING:
    from autoais.metrics.rates import Floats


class CitationScores:
    """The scores of each answer's sentences (recall) and citations (precision)."""

    def __init__(self) -> None:
        self.recall, self.precision = Tally("sentences"), Tally("citations")

    def add(self, sentences: Iterable[float | None], citations: Iterable[float | None]) -> None:
        """Add one answer: scores from 0 to 1, None if undecided."""
        self.recall.add(sentences)
        self.precision.add(citations)

    def pooled(self) -> dict[str, Ratio]:
        """Return recall, precision and F1 over all sentences and citations of all answers."""
        return self._three(self.recall.pooled(), self.precision.pooled(), None, averaged=False)

    def averaged(self, empty: float | None = None) -> dict[str, Ratio]:
        """Return means over answers; `empty` is the score of an answer without sentences, or without citations."""
        return self._three(self.recall.averaged(empty), self.precision.averaged(empty), empty, averaged=True)

    def _three(self, recall: Ratio, precision: Ratio, empty: float | None, *, averaged: bool) -> dict[str, Ratio]:
        """Add F1, the harmonic mean; its n counts answers, its undecided is the sum of both."""
        import numpy as np

        tallies = (self.recall, self.precision)
        columns = np.concatenate([tally.columns(empty, averaged=averaged) for tally in tallies], axis=1)
        f1 = Ratio(
            harmonic(recall.value, precision.value),
            harmonic(recall.floor, precision.floor),
            len(self.recall),
            len(self.recall),
            recall.undecided + precision.undecided,
            resampled(columns, _f1_of_sums),
            recall.reason or precision.reason,
        )
        return {"recall": recall, "precision": precision, "f1": f1}


def _f1_of_sums(sums: "Floats") -> float | None:
    return harmonic(ratio_of_sums(sums[:2]), ratio_of_sums(sums[2:]))
