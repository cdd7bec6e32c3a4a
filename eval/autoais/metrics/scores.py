"""Citation recall, precision and F1 over answers, shared by the rules of ALCE, Liu et al. and TREC."""

from collections.abc import Iterable

from autoais.metrics.intervals import harmonic_mean, interval
from autoais.metrics.rates import Ratio, Tally, f1


class CitationScores:
    """The scores of each answer's sentences (recall) and citations (precision)."""

    def __init__(self) -> None:
        self.recall, self.precision = Tally("sentences"), Tally("citations")

    def add(
        self, sentences: Iterable[float | None], citations: Iterable[float | None], question: int | None = None
    ) -> None:
        """Add one answer: scores from 0 to 1, None if undecided. `question` as in `Tally.add`."""
        self.recall.add(sentences, question)
        self.precision.add(citations, question)

    def last(
        self, prefix: str, suffix: str = "", empty: float | None = None, *, averaged: bool = False
    ) -> dict[str, tuple[float, float]]:
        """Return what the last answer adds to recall and precision (`Tally.last`), averaged if `empty` is given."""
        averaged = averaged or empty is not None
        both = {"recall": self.recall, "precision": self.precision}
        return {f"{prefix}_{name}{suffix}": tally.last(empty, averaged=averaged) for name, tally in both.items()}

    def pooled(self) -> dict[str, Ratio]:
        """Return recall, precision and F1 over all sentences and citations of all answers."""
        return self._three(self.recall.pooled(), self.precision.pooled(), None, averaged=False)

    def averaged(self, empty: float | None = None) -> dict[str, Ratio]:
        """Return means over answers; `empty` is the score of an answer without sentences, or without citations."""
        return self._three(self.recall.averaged(empty), self.precision.averaged(empty), empty, averaged=True)

    def _three(self, recall: Ratio, precision: Ratio, empty: float | None, *, averaged: bool) -> dict[str, Ratio]:
        """Add F1, the harmonic mean; n, total and undecided are those of the part with more units."""
        parts = (tally.estimate(empty, averaged=averaged) for tally in (self.recall, self.precision))
        found = harmonic_mean(*parts)
        both = Ratio(
            _f1(recall.value, precision.value),
            _f1(recall.floor, precision.floor),
            max(recall.n, precision.n),
            max(recall.total, precision.total),
            max(recall.undecided, precision.undecided),
            interval(found),
            recall.reason or precision.reason,
        )
        return {"recall": recall, "precision": precision, "f1": both}


def _f1(recall: float | None, precision: float | None) -> float | None:
    return None if recall is None or precision is None else f1(recall, precision)
