"""Weighted precision and recall over TREC RAG's support levels.

The weights and the first-citation rule are those of vectara/open-rag-eval, `metrics/citation_metric.py`, until commit
b5b26f7 (May 2025); both are arguments. Since 9971410 (June 2025) that file judges all citations: precision is the mean
over passages of the mean weight of a passage's citations, recall the mean over sentences of the mean weight of a
sentence's citations. `first_only=False` is neither: it weighs citations alike, and a sentence by its best one.
"""

from collections.abc import Iterable, Mapping, Sequence

from autoais.base.types import Support
from autoais.metrics.claims import JudgedClaim
from autoais.metrics.scores import CitationScores

WEIGHTS: Mapping[Support, float] = {Support.FULL: 1.0, Support.PARTIAL: 0.5, Support.NONE: 0.0}


def add(
    scores: CitationScores,
    answer: Iterable[Sequence[Support | None]],
    *,
    weights: Mapping[Support, float] = WEIGHTS,
    first_only: bool = True,
    question: int | None = None,
) -> None:
    """Add one answer, given the levels of each sentence's citations in order; read `scores.micro_average()`.

    Precision is the mean weight of the judged citations. Recall is the mean weight of all sentences: that of the best
    judged citation, at most 1 (TREC sums the weights, but judges one citation per sentence); an uncited sentence has 0.
    Weights are from 0 to 1.
    """
    sentences = [list(levels[:1] if first_only else levels) for levels in answer]
    sentence_weights = [[None if level is None else weights[level] for level in levels] for levels in sentences]
    top = max(weights.values())
    scores.add(
        (_best(weights_of_citations, top) for weights_of_citations in sentence_weights),
        (weight for weights_of_citations in sentence_weights for weight in weights_of_citations),
        question,
    )


def _best(weights: Sequence[float | None], top: float) -> float | None:
    best = max((weight for weight in weights if weight is not None), default=0.0)
    return None if None in weights and best < top else best


def support_levels(claim: JudgedClaim) -> list[Support | None]:
    """Return the level of each citation of a judged claim, in order, then `NONE` for each unresolved marker."""
    levels = [judgement.verdict.support for judgement in claim.per_citation]
    return levels + [Support.NONE] * claim.claim.unresolved
