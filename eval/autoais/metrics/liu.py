"""Citation recall and precision with the rule for partial support (Liu et al. 2023; spec D3)."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from autoais.answers import Support
from autoais.metrics.claims import JudgedClaim
from autoais.metrics.scores import CitationScores
from autoais.metrics.support import judged_support


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence: whether all its citations together support it, and how far each does; None is undecided.

    Only statements that are worth verifying (about the external world) are counted.
    """

    supported: bool | None
    citations: tuple[Support | None, ...] = ()
    worthy: bool = True


def precise(statement: Statement) -> Iterator[bool | None]:
    """Whether each citation is precise: full, or partial where all together support and none is full alone."""
    levels = statement.citations
    for level in levels:
        if level != Support.PARTIAL:
            yield None if level is None else level == Support.FULL
        elif Support.FULL in levels or statement.supported is False:
            yield False
        else:  # one that is undecided may yet be the full one
            yield None if statement.supported is None or None in levels else True


def add(scores: CitationScores, response: Iterable[Statement], unresolved: int = 0) -> None:
    """Count one response; a marker that points nowhere (`unresolved`) is a citation without support.

    Read `scores.pooled()` and `scores.averaged()`, which differ; which of them the paper reports is not known.
    """
    worthy = [statement for statement in response if statement.worthy]
    scores.add(
        [statement.supported for statement in worthy],
        [outcome for statement in worthy for outcome in precise(statement)] + [False] * unresolved,
    )


def judged_statement(judged: JudgedClaim, partial_from: float | None = None) -> Statement:
    """A judged claim as a statement worth verifying; a marker that points nowhere supports nothing."""
    levels = [judged_support(judgement, partial_from) for judgement in judged.alone]
    return Statement(judged.union.verdict.ais, (*levels, *[Support.NONE] * judged.claim.unresolved))
