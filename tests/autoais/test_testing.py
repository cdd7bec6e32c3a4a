"""The contract that ships, `autoais.testing`: each fault of somebody's own judge is found."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from autoais.base.errors import UserError
from autoais.base.types import Attribution, Judge, Judgement, Span, Verdict
from autoais.judges.lexical import LexicalJudge
from autoais.testing import SUPPORTED_CLAIM, UNRELATED_CLAIM, check_judge

Judgements = list[Judgement]
YES = Judgement(Verdict.ATTRIBUTABLE)


class Faulty(Judge):
    """The lexical judge, with what it says changed."""

    def __init__(self, changed: Callable[[Judgements], Judgements], name: str = "faulty") -> None:
        self._changed, self._name = changed, name

    @property
    def name(self) -> str:
        return self._name

    def decide(self, attributions: Sequence[Attribution]) -> Judgements:
        return self._changed(LexicalJudge().decide(attributions))


class Credulous(Faulty):
    """Takes the rule out of the hands of the class: what cites nothing is attributable too."""

    def judge(self, attributions: Iterable[Attribution]) -> Judgements:
        pairs = list(attributions)
        judged = zip(pairs, super().judge(pairs), strict=True)
        return [one if any(pair.evidence) else YES for pair, one in judged]


def unchanged(judgements: Judgements) -> Judgements:
    return judgements


@pytest.mark.parametrize(
    ("judge", "says"),
    [
        (Faulty(unchanged, ""), "name"),
        (Faulty(lambda judgements: judgements[::-1]), "order|batch"),
        (Faulty(lambda judgements: [replace(one, reason=str(len(judgements))) for one in judgements]), "batch"),
        (Faulty(unchanged, "two\nlines"), "one printable line"),
        (Faulty(lambda judgements: [replace(one, evidence=(Span(9, 0, 1),)) for one in judgements]), "has the index 9"),
        (Faulty(lambda judgements: [replace(one, evidence=(Span(0, 2, 9**9),)) for one in judgements]), "outside its"),
        (Faulty(lambda judgements: [replace(one, unsupported=((-1, 2),)) for one in judgements]), "outside the claim"),
        (Faulty(lambda judgements: [replace(one, verdict=Verdict.UNDECIDED) for one in judgements]), "attributable"),
        (Faulty(lambda judgements: [YES] * len(judgements)), "should not be attributable"),
        (Credulous(unchanged), "should not be attributable"),
    ],
)
def test_each_fault_of_a_judge_is_found(judge: Judge, says: str) -> None:
    check_judge(Faulty(unchanged))
    with pytest.raises(AssertionError, match=says):
        check_judge(judge)


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        (lambda judgements: judgements[:1], "'faulty' returned 1 judgements for 6 pairs"),
        (
            lambda judgements: iter(judgements),
            "what judge 'faulty' returned should be a list of Judgements, found list_",
        ),
        (lambda judgements: [one.verdict for one in judgements], "a list of Judgements, found Verdict in it"),
        (lambda judgements: None, "should be a list of Judgements, found NoneType"),
        (
            lambda judgements: [replace(one, verdict="attributable") for one in judgements],
            "Verdict such as .*found str",
        ),
        (lambda judgements: [replace(one, probability=1.5) for one in judgements], "from 0 to 1, found 1.5"),
        (lambda judgements: [replace(one, probability=math.nan) for one in judgements], "from 0 to 1, found nan"),
        (lambda judgements: [replace(one, probability=True) for one in judgements], "a number from 0 to 1 or None"),
        (lambda judgements: [replace(one, reason=["no"]) for one in judgements], "reason of a judgement should be"),
        (
            lambda judgements: [replace(one, evidence=((0, 0, 3),)) for one in judgements],
            "a list of Spans, .*found tuple",
        ),
        (lambda judgements: [replace(one, unsupported=(3,)) for one in judgements], r"a list of \(start, end\), found"),
        (lambda judgements: [replace(one, unsupported=((1, 2.5),)) for one in judgements], r"of \(start, end\), found"),
    ],
)
def test_results_that_are_no_judgements_are_one_line_in_every_command(
    changed: Callable[[Judgements], Judgements], says: str
) -> None:
    with pytest.raises(UserError, match=says):  # by the classes themselves
        check_judge(Faulty(changed))


def test_a_number_of_numpy_becomes_a_float_that_json_can_hold() -> None:
    half: Any = np.float32(0.5)
    assert type(Judgement(Verdict.ATTRIBUTABLE, half).probability) is float


def test_a_judge_that_knows_partial_support_is_checked_for_it() -> None:
    half = Attribution("Warsaw was founded by penguins.", ("Warsaw lies on the Vistula.",))
    check_judge(LexicalJudge(partial_from=0.05), partial=half)
    with pytest.raises(AssertionError, match="should be partially attributable"):
        check_judge(LexicalJudge(), partial=half)


def test_a_judge_of_another_kind_is_checked_with_pairs_of_its_own() -> None:
    assert (SUPPORTED_CLAIM.question, UNRELATED_CLAIM.question) == ("", "")
    numbers = Attribution("7", ("six and 7",)), Attribution("8", ("six and 7",))
    check_judge(LexicalJudge(), supported=numbers[0], unrelated=numbers[1])
