"""A metric for DeepEval (package `deepeval`): `evaluate(test_cases, [CitationSupportMetric()])`."""

from deepeval.metrics import BaseMetric
from deepeval.test_case import LLMTestCase

from autoais.base.errors import check_type
from autoais.base.types import Judge
from autoais.integrations import SampleScorer, Uncited
from autoais.judges import DEFAULT


class CitationSupportMetric(BaseMetric):  # type: ignore[misc, unused-ignore]  # without the package it is Any
    """Scores `actual_output` by the `retrieval_context` that it cites; passes from `threshold` on.

    `judge`, `metric` and `uncited` are those of `SampleScorer`, whose errors fail the test case.
    """

    def __init__(
        self,
        judge: str | Judge = DEFAULT,
        metric: str = "autoais",
        uncited: Uncited = "error",
        threshold: float = 1.0,
    ) -> None:
        self._score = SampleScorer(judge, metric, uncited)
        # DeepEval copies a metric per test case from the attributes that are named as the parameters.
        self.judge, self.metric, self.uncited, self.threshold = self._score.judge, metric, uncited, threshold
        self.async_mode = False
        self.include_reason = True
        self.evaluation_model = self.judge.name

    def measure(self, test_case: LLMTestCase, *args: object, **kwargs: object) -> float:
        """Score a test case; sets `score`, `reason` and `success`."""
        check_type("the test case", test_case, "an LLMTestCase", LLMTestCase)
        contexts = test_case.retrieval_context
        if contexts is not None:  # a context may come with its source
            contexts = [
                context if isinstance(context, str) else {"text": context.context, "title": context.source}
                for context in contexts
            ]
        result = self._score(test_case.input, test_case.actual_output, contexts)
        self.score, self.reason = result.score, result.reason
        self.success = self.is_successful()
        return result.score

    async def a_measure(self, test_case: LLMTestCase, *args: object, **kwargs: object) -> float:
        """Score a test case, as `measure` does."""
        return self.measure(test_case)

    def is_successful(self) -> bool:
        """Return whether the score reaches the threshold."""
        return self.error is None and self.score is not None and self.score >= self.threshold

    @property
    def __name__(self) -> str:
        return f"Citation support ({self.metric})"
