"""The contract that ships, `autoais.testing`: each fault of somebody's own judge is found."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from autoais.errors import UserError
from autoais.judges.lexical import LexicalJudge
from autoais.testing import SUPPORTED, UNRELATED, check_judge
from autoais.types import Attribution, Judge, Judgement, Verdict

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

    def judge(self, attributions: Sequence[Attribution]) -> Judgements:
        judged = super().judge(attributions)
        pairs = zip(attributions, judged, strict=True)
        return [one if any(pair.evidence) else YES for pair, one in pairs]


def unchanged(judgements: Judgements) -> Judgements:
    return judgements


@pytest.mark.parametrize(
    ("judge", "says"),
    [
        (Faulty(unchanged, ""), "name"),
        (Faulty(lambda judgements: judgements[::-1]), "order|batch"),
        (Faulty(lambda judgements: [replace(one, reason=str(len(judgements))) for one in judgements]), "batch"),
        (Faulty(lambda judgements: [replace(one, probability=1.5) for one in judgements]), "not a probability: 1.5"),
        (Faulty(lambda judgements: [replace(one, verdict=Verdict.UNDECIDED) for one in judgements]), "attributable"),
        (Faulty(lambda judgements: [YES] * len(judgements)), "should not be attributable"),
        (Credulous(unchanged), "should not be attributable"),
    ],
)
def test_each_fault_of_a_judge_is_found(judge: Judge, says: str) -> None:
    check_judge(Faulty(unchanged))
    with pytest.raises(AssertionError, match=says):
        check_judge(judge)


def test_a_judge_that_gives_too_few_judgements_is_found() -> None:
    with pytest.raises(UserError, match="'faulty' returned 1 judgements for 4 pairs"):  # by the class itself
        check_judge(Faulty(lambda judgements: judgements[:1]))


def test_a_judge_of_another_kind_is_checked_with_pairs_of_its_own() -> None:
    assert (SUPPORTED.question, UNRELATED.question) == ("", "")
    numbers = Attribution("7", ("six and 7",)), Attribution("8", ("six and 7",))
    check_judge(LexicalJudge(), supported=numbers[0], unrelated=numbers[1])
