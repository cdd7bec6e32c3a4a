"""The three levels of support of Liu et al. 2023 and the TREC RAG track, from judgements."""

from autoais.types import Judgement, Support, Verdict

PARTIAL = "partial support"  # the reason given by judges with three levels


def judged_support(judgement: Judgement, partial_from: float | None = None) -> Support | None:
    """Return the support level of a judgement; None if undecided.

    Attributable is full. Not attributable is partial if the judge gives that as its reason, as `llm:` judges with a
    three-level prompt do. Other judges know no partial support: with `partial_from`, support that is not full counts
    as partial from that probability on, unless contradictory.
    """
    if judgement.verdict.ais is None:
        return None
    if judgement.verdict.ais:
        return Support.FULL
    if judgement.reason == PARTIAL:
        return Support.PARTIAL
    near = partial_from is not None and judgement.probability is not None and judgement.probability >= partial_from
    return Support.PARTIAL if near and judgement.verdict is not Verdict.CONTRADICTORY else Support.NONE
