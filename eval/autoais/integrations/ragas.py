"""A metric for ragas (package `ragas`, from 0.4): `await CitationSupport().ascore(...)`."""

from collections.abc import Sequence

from ragas.metrics.collections.base import BaseMetric
from ragas.metrics.result import MetricResult

from autoais.base.types import Judge
from autoais.integrations import SampleScorer, Uncited
from autoais.judges import DEFAULT


class CitationSupport(BaseMetric):  # type: ignore[misc, unused-ignore]  # without the package it is Any
    """Scores `response` by the `retrieved_contexts` that it cites; needs no language model.

    `judge`, `metric` and `uncited` are those of `SampleScorer`.
    """

    def __init__(
        self,
        judge: str | Judge = DEFAULT,
        metric: str = "autoais",
        uncited: Uncited = "error",
        name: str = "citation_support",
    ) -> None:
        self._score = SampleScorer(judge, metric, uncited)
        super().__init__(name=name)

    async def ascore(
        self, user_input: str, response: str | None, retrieved_contexts: Sequence[object] | None
    ) -> MetricResult:
        """Return the score with its reason; raises the errors of `SampleScorer`."""
        result = self._score(user_input, response, retrieved_contexts)
        return MetricResult(value=result.score, reason=result.reason)
