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
        self, prefix: str, suffix: str = "", empty: float | None = None, *, macro: bool = False
    ) -> dict[str, tuple[float, float]]:
        """Return what the last answer adds to recall and precision (`Tally.last`), averaged if `empty` is given."""
        macro = macro or empty is not None
        tallies = {"recall": self.recall, "precision": self.precision}
        return {f"{prefix}_{name}{suffix}": tally.last(empty, macro=macro) for name, tally in tallies.items()}

    def micro_average(self) -> dict[str, Ratio]:
        """Return recall, precision and F1 over all sentences and citations of all answers."""
        return self._three(self.recall.micro_average(), self.precision.micro_average(), None, macro=False)

    def macro_average(self, empty: float | None = None) -> dict[str, Ratio]:
        """Return means over answers; `empty` is the score of an answer without sentences, or without citations."""
        return self._three(self.recall.macro_average(empty), self.precision.macro_average(empty), empty, macro=True)

    def _three(self, recall: Ratio, precision: Ratio, empty: float | None, *, macro: bool) -> dict[str, Ratio]:
        """Add F1, the harmonic mean; n, total and undecided are those of the part with more units."""
        parts = (tally.estimate(empty, macro=macro) for tally in (self.recall, self.precision))
        estimate = harmonic_mean(*parts)
        f1_score = Ratio(
            _f1(recall.value, precision.value),
            _f1(recall.floor, precision.floor),
            max(recall.n, precision.n),
            max(recall.total, precision.total),
            max(recall.undecided, precision.undecided),
            interval(estimate),
            recall.reason or precision.reason,
        )
        return {"recall": recall, "precision": precision, "f1": f1_score}


def _f1(recall: float | None, precision: float | None) -> float | None:
    return None if recall is None or precision is None else f1(recall, precision)
