"""The evaluator's nouns: a claim with its evidence, and what a judge says of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


class Verdict(StrEnum):
    """The outcome of judging one claim against its evidence (AttrScore's three labels, AIS's no, and undecided).

    `NOT_ATTRIBUTABLE` is what a two-way judge says when it cannot tell extrapolatory from contradictory.
    """

    ATTRIBUTABLE = "attributable"
    NOT_ATTRIBUTABLE = "not_attributable"
    EXTRAPOLATORY = "extrapolatory"
    CONTRADICTORY = "contradictory"
    UNDECIDED = "undecided"

    @property
    def ais(self) -> bool | None:
        """True or False in the AIS sense; None where the judge could not decide."""
        return None if self is Verdict.UNDECIDED else self is Verdict.ATTRIBUTABLE


@dataclass(frozen=True, slots=True)
class Attribution:
    """A claim and the texts it cites, each a whole passage; no evidence means nothing was cited.

    `question` is what the claim answers, for the templates and judges that read it; empty where there is none.
    """

    claim: str
    evidence: tuple[str, ...] = ()
    question: str = ""


@dataclass(frozen=True, slots=True)
class Span:
    """Characters `start` to `end` (exclusive) of the evidence text with that index (0-based)."""

    evidence: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict with the probability of `attributable` (0 to 1; None where there is none) and its reason.

    `evidence` is what the verdict rests on, in order, where the judge read less than everything or can tell.
    `unsupported` are the parts of the claim (character offsets, end exclusive) that the judge found no support for.
    """

    verdict: Verdict
    probability: float | None = None
    reason: str | None = None
    evidence: tuple[Span, ...] = ()
    unsupported: tuple[tuple[int, int], ...] = ()


class Judge(Protocol):
    """Anything that judges attributions: batch in, batch out, same order and length."""

    @property
    def name(self) -> str:
        """Says all that changes a verdict: `model@revision/length or threshold/template`."""
        ...

    def judge(self, attributions: Sequence[Attribution]) -> list[Judgement]:
        """Judge each attribution by itself; the batch it comes in changes nothing."""
        ...
