"""Citation recall and precision with partial support (Liu et al. 2023)."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from autoais.base.types import Support
from autoais.metrics.claims import JudgedClaim
from autoais.metrics.scores import CitationScores


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence: whether its citations together support it, and the level of each citation; None is undecided.

    Only statements worth verifying (about the external world) count.
    """

    is_supported: bool | None
    citations: tuple[Support | None, ...] = ()
    worthy: bool = True


def precise(statement: Statement) -> Iterator[bool | None]:
    """Yield whether each citation is precise: full, or partial if all together support and no single one is full."""
    levels = statement.citations
    for level in levels:
        if level != Support.PARTIAL:
            yield None if level is None else level == Support.FULL
        elif Support.FULL in levels or statement.is_supported is False:
            yield False
        else:  # an undecided one may be full
            yield None if statement.is_supported is None or None in levels else True


def add(
    scores: CitationScores, response: Iterable[Statement], unresolved: int = 0, question: int | None = None
) -> None:
    """Add one response; `unresolved` markers are citations without support.

    Read the result with `scores.micro_average()` and `scores.macro_average()`; which of them the paper reports is
    unknown.
    """
    worthy = [statement for statement in response if statement.worthy]
    scores.add(
        [statement.is_supported for statement in worthy],
        [outcome for statement in worthy for outcome in precise(statement)] + [False] * unresolved,
        question,
    )


def as_statement(claim: JudgedClaim, *, worthy: bool = True) -> Statement:
    """Return a judged claim as a statement; unresolved markers give no support."""
    levels = [judgement.verdict.support for judgement in claim.per_citation]
    return Statement(claim.union.verdict.ais, (*levels, *[Support.NONE] * claim.claim.unresolved), worthy)
