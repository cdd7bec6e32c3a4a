"""A scorer for Inspect (package `inspect-ai`): `Task(..., scorer=citation_support())`."""

import anyio
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
from inspect_ai.solver import TaskState

from autoais.base.errors import UserError
from autoais.base.types import Judge
from autoais.integrations import SampleScorer, Uncited
from autoais.judges import DEFAULT


@scorer(metrics=[mean(), stderr()])  # type: ignore[untyped-decorator, unused-ignore]
def citation_support(
    judge: str | Judge = DEFAULT, metric: str = "autoais", uncited: Uncited = "error", contexts: str = "contexts"
) -> Scorer:
    """Return a scorer: the metric as value, a line per sentence as explanation.

    `contexts` names the field of the sample's metadata, or of the store that a solver filled, with the passages.
    `judge`, `metric` and `uncited` are those of `SampleScorer`, whose errors fail the sample.
    """
    score_sample = SampleScorer(judge, metric, uncited)
    one_at_a_time = anyio.CapacityLimiter(1)

    async def score(state: TaskState, target: Target) -> Score:
        passages = state.metadata.get(contexts, state.store.get(contexts))
        if passages is None:
            raise UserError(f"sample {state.sample_id!r} has no {contexts!r} in its metadata, nor in its store")
        output = state.output.completion
        # In a thread, for a judge that takes seconds would hold up the other samples.
        result = await anyio.to_thread.run_sync(score_sample, state.input_text, output, passages, limiter=one_at_a_time)
        return Score(value=result.score, answer=output, explanation=result.reason)

    return score
