"""Three levels of support, from people or from a judge: what Liu et al. (spec D3) and TREC RAG (F4) count."""

from autoais.answers import Support
from autoais.types import Judgement, Verdict

PARTIAL = "partial support"  # the reason of a judge that tells three levels apart
_HUMAN = {
    "Citation Completely Supports Statement": Support.FULL,
    "Citation Partially Supports Statement": Support.PARTIAL,
    "complete_support": Support.FULL,
    "partial_support": Support.PARTIAL,
}


def human_support(label: str) -> Support:
    """The level of a label of Liu et al.'s releases; inaccessible, unclear and contradicting are no support (D3)."""
    return _HUMAN.get(label, Support.NONE)


def judged_support(judgement: Judgement, partial_from: float | None = None) -> Support | None:
    """The level that a judgement stands for, None if undecided.

    Attributable is full. Not attributable is partial where the judge gives that as its reason, as `llm:` judges with
    a prompt of three levels do. Other judges have no partial support of their own: with `partial_from`, what is not
    full counts as partial from that probability on, unless it is contradictory.
    """
    if judgement.verdict.ais is None:
        return None
    if judgement.verdict.ais:
        return Support.FULL
    if judgement.reason == PARTIAL:
        return Support.PARTIAL
    near = partial_from is not None and judgement.probability is not None and judgement.probability >= partial_from
    return Support.PARTIAL if near and judgement.verdict is not Verdict.CONTRADICTORY else Support.NONE
