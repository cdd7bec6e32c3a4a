"""How claims are put to a judge."""

from collections.abc import Iterable, Sequence

import pytest

from autoais.base.types import Attribution, Judge, Judgement, Verdict
from autoais.metrics.claims import CitedClaim, judge_claims

CLAIM = CitedClaim("The bridge is red and long.", ("It is red.", "It is old.", "It is long."), question="Which bridge?")


class BothHalves(Judge):
    """Says yes to evidence with both halves of the claim, and remembers what it was asked."""

    name = "both-halves"

    def __init__(self) -> None:
        self.asked: list[list[Attribution]] = []

    def decide(self, attributions: Sequence[Attribution]) -> list[Judgement]:
        raise AssertionError("judge is defined below")

    def judge(self, attributions: Iterable[Attribution]) -> list[Judgement]:
        pairs = list(attributions)
        self.asked.append(pairs)
        return [
            Judgement(
                Verdict.ATTRIBUTABLE
                if {"It is red.", "It is long."} <= set(pair.evidence)
                else Verdict.NOT_ATTRIBUTABLE
            )
            for pair in pairs
        ]


class Forgetful(BothHalves):
    """Loses the last verdict of each call after the first."""

    def judge(self, attributions: Iterable[Attribution]) -> list[Judgement]:
        verdicts = super().judge(attributions)
        return verdicts if len(self.asked) == 1 else verdicts[:-1]


def test_each_citation_is_judged_alone_and_left_out_in_turn() -> None:
    judge = BothHalves()
    [judged] = judge_claims(judge, [CLAIM])
    assert judged.union.verdict.ais is True
    assert [one.verdict.ais for one in judged.per_citation] == [False, False, False]
    assert [one and one.verdict.ais for one in judged.leave_one_out] == [False, True, False]
    first, second = judge.asked
    assert [pair.evidence for pair in first] == [CLAIM.evidence, *((text,) for text in CLAIM.evidence)]
    assert [pair.evidence for pair in second] == [
        ("It is old.", "It is long."),
        ("It is red.", "It is long."),
        ("It is red.", "It is old."),
    ]
    assert {pair.question for pair in first + second} == {"Which bridge?"}


def test_the_union_alone_costs_one_pair_a_claim() -> None:
    judge = BothHalves()
    judged = judge_claims(judge, [CLAIM, CitedClaim("Alone.", ("It is red.",))], per_citation=False)
    assert [(one.per_citation, one.leave_one_out) for one in judged] == [((), ()), ((), ())]
    assert [len(pairs) for pairs in judge.asked] == [2]


def test_very_many_citations_are_left_out_in_batches() -> None:
    judge = BothHalves()
    many = CitedClaim("Red and long.", ("It is red.", "It is long.", *(f"Remark {n}." for n in range(1500))))
    [judged] = judge_claims(judge, [many])
    assert [len(pairs) for pairs in judge.asked] == [1503, 1024, 478]
    assert [one.verdict.ais for one in judged.leave_one_out if one] == [False, False] + [True] * 1500


def test_a_judge_that_loses_a_verdict_is_an_error() -> None:
    with pytest.raises(ValueError, match="shorter"):
        judge_claims(Forgetful(), [CLAIM])
