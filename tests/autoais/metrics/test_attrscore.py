"""Three classes: what is counted, and intervals over questions."""

from typing import Any

import pytest

from autoais.base.types import Support, Verdict
from autoais.metrics.attrscore import CLASSES, evaluate, evaluate_levels

YES, AGAINST, MORE = CLASSES
TRUTH = [YES, YES, YES, MORE, MORE, AGAINST, AGAINST, YES, MORE, AGAINST, YES, MORE]
SAID = [YES, MORE, YES, MORE, YES, AGAINST, MORE, YES, MORE, YES, Verdict.UNDECIDED, Verdict.NOT_ATTRIBUTABLE]


def figures(record: dict[str, Any]) -> dict[str, tuple[float, list[float]]]:
    """Value and interval of each figure, by its name."""
    rates = {"overall": record["overall"], "macro": record["macro"]} | {
        f"{name}/{kind}": one for name, kinds in record["per_class"].items() for kind, one in kinds.items()
    }
    return {name: (one["value"], one["interval95"]) for name, one in rates.items()}


def test_every_figure_has_an_interval_over_questions() -> None:
    alone = figures(evaluate(TRUTH, SAID))
    assert len(alone) == 11
    assert all(low <= value <= high and low < high for value, (low, high) in alone.values())
    again = figures(evaluate(TRUTH * 2, SAID * 2, [*range(12), *range(12)]))  # each question has two equal claims
    for name, (value, ends) in alone.items():
        assert again[name][0] == pytest.approx(value)
        assert again[name][1] == pytest.approx(ends, abs=0.03), name
    more = figures(evaluate(TRUTH * 2, SAID * 2))  # twice as many questions
    for name, (_, (low, high)) in alone.items():
        assert more[name][1][1] - more[name][1][0] < high - low, name


def test_undecided_verdicts_are_in_no_column() -> None:
    found = evaluate(TRUTH, SAID)
    assert (found["n"], found["undecided"], found["two_way"]) == (10, 1, 1)
    assert found["classes"] == ["attributable", "contradictory", "extrapolatory"]  # as in the paper's tables
    assert found["confusion"] == [[3, 0, 1], [1, 1, 1], [1, 0, 2]]
    assert found["overall"]["value"] == pytest.approx(6 / 10)
    assert found["per_class"]["attributable"]["precision"]["value"] == pytest.approx(3 / 5)
    assert found["per_class"]["contradictory"]["recall"]["value"] == pytest.approx(1 / 3)
    assert found["per_class"]["attributable"]["f1"]["n"] == 10


def test_not_attributable_is_wrong_for_the_label_attributable() -> None:
    found = evaluate([YES, YES, MORE], [Verdict.NOT_ATTRIBUTABLE, YES, MORE])
    assert found["per_class"]["attributable"]["recall"]["value"] == 0.5
    assert found["overall"]["value"] == pytest.approx(2 / 3)
    missed = evaluate([AGAINST, YES], [AGAINST, Verdict.PARTIALLY_ATTRIBUTABLE])
    assert missed["per_class"]["attributable"]["recall"]["value"] == 0.0
    assert missed["per_class"]["contradictory"]["recall"]["value"] == 1.0


def test_a_class_whose_claims_are_all_undecided_has_0() -> None:
    found = evaluate([YES, MORE], [YES, Verdict.UNDECIDED])
    assert found["macro"]["value"] == 0.5
    nothing = found["per_class"]["contradictory"]
    assert nothing["precision"]["reason"] == "no verdict is this class"
    assert nothing["f1"]["reason"] == "no claim of this class was decided, and no verdict is this class"
    assert "reason" not in found["overall"]


def test_levels_count_the_undecided() -> None:
    found = evaluate_levels([Support.FULL, Support.PARTIAL, Support.NONE], [Support.FULL, None, Support.PARTIAL])
    assert (found["undecided"], found["n"]) == (1, 2)


def test_labels_and_verdicts_belong_together() -> None:
    with pytest.raises(ValueError, match="longer"):
        evaluate([YES], [YES, MORE])
    with pytest.raises(ValueError, match=r"be among attributable, contradictory, extrapolatory$"):
        evaluate([Verdict.UNDECIDED], [YES])
