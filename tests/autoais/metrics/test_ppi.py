"""A judge's rate corrected by human labels: right on average, and sure in the right measure."""

import numpy as np
import pytest

from autoais.metrics.ppi import Stratum, correct_rate, correct_strata
from scripts.bench.coverage_clusters import draw_labels


def test_with_every_label_the_people_decide() -> None:
    judged = [True] * 80 + [False] * 20
    human = {place: place < 50 for place in range(100)}
    found = correct_rate(judged, human)
    assert found["value"] == pytest.approx(0.5)
    assert found["error"] == pytest.approx(-0.3)
    # As wide as that of a mean of 100, up to the unit that is added.
    assert found["interval95"][1] - found["interval95"][0] == pytest.approx(2 * 1.96 * (0.25 / 100) ** 0.5, rel=0.03)


def test_a_judge_that_people_agree_with_is_left_as_it_is() -> None:
    judged = [True, False] * 100
    found = correct_rate(judged, {place: judged[place] for place in range(40)})
    assert (found["value"], found["error"], found["n"], found["labelled"]) == (0.5, 0, 200, 40)
    few = correct_rate(judged, {place: judged[place] for place in range(4)})
    assert few["interval95"][1] - few["interval95"][0] > found["interval95"][1] - found["interval95"][0]


def test_refusals_need_no_label() -> None:
    judged = [True] * 50 + [False] * 50  # the last 50 refused
    found = correct_rate(judged, {place: place % 2 == 0 for place in range(20)}, settled=range(50, 100))
    assert found["value"] == pytest.approx(0.25)  # half of the answered half
    assert (found["n"], found["labelled"], found["error"]) == (100, 20, -0.5)


def test_a_question_adds_its_verdicts_and_its_differences_together() -> None:
    judged = [True, True, False, True, False, True]
    human = {0: True, 1: False, 3: True, 4: True}  # differences 0, -1, 0, 1
    rate = 4 / 6
    own = [(verdict - rate) / 6 for verdict in judged]
    own[1] -= 1 / 4
    own[4] += 1 / 4
    unseen = (1 - 4 / 6) / 4 / 5  # one unit
    by_item = sum(part**2 for part in own) * 6 / 5 + unseen
    sums = [own[0] + own[1], own[2] + own[3], own[4] + own[5]]
    by_question = sum(part**2 for part in sums) * 3 / 2 + unseen
    for variance, questions in ((by_item, None), (by_question, [7, 7, 8, 8, 9, 9])):
        found = correct_rate(judged, human, questions=questions)
        margin = 1.959964 * variance**0.5
        ends = [max(0.0, rate - margin), min(1.0, rate + margin)]
        assert found["interval95"] == [pytest.approx(end) for end in ends]


def test_where_all_items_are_labelled_the_judge_does_not_count() -> None:
    human = dict(enumerate([True, False, True, True]))
    for judged in ([True] * 4, [False] * 4, [False, True, True, False]):
        found = correct_rate(judged, human)
        assert found["value"] == 0.75
        assert found["interval95"] == [pytest.approx(0.75 - 1.959964 * (0.75 * 0.25 / 3) ** 0.5), 1.0]


def test_strata_weigh_as_many_as_they_hold() -> None:
    sure = Stratum([True] * 8, {0: True, 1: False}, list(range(8)))  # half of them are wrong
    unsure = Stratum([False] * 2, {0: True, 1: True}, [0, 1])
    value, (low, high) = correct_strata([sure, unsure])
    assert value == pytest.approx((4 + 2) / 10)
    assert 0 <= low < value < high <= 1


def test_rates_stay_between_0_and_1() -> None:
    assert correct_rate([False, False, True], {0: False, 1: False})["interval95"][0] == 0.0
    wide = correct_rate([True, False, True], {0: True, 1: False})
    assert wide["interval95"][1] == 1.0


def test_one_label_is_too_few() -> None:
    with pytest.raises(ValueError, match="1 labels: at least 2"):
        correct_rate([True, False], {0: True})


@pytest.mark.parametrize(
    ("share", "wrong_yes", "wrong_no", "n", "labelled"),
    [(0.7, 0.1, 0.1, 200, 50), (0.9, 0.3, 0.05, 500, 100), (0.5, 0.4, 0.02, 500, 50)],
)
def test_the_interval_holds_the_truth_as_often_as_it_says(
    share: float, wrong_yes: float, wrong_no: float, n: int, labelled: int
) -> None:
    rng = np.random.default_rng(0)
    runs, held = 600, 0
    for _ in range(runs):
        truth = rng.random(n) < share
        said = np.where(truth, rng.random(n) >= wrong_no, rng.random(n) < wrong_yes)
        chosen = rng.choice(n, labelled, replace=False)
        low, high = correct_rate(list(map(bool, said)), {int(one): bool(truth[one]) for one in chosen})["interval95"]
        held += low <= share <= high
    assert 0.93 <= held / runs <= 0.995


@pytest.mark.parametrize("items", [6, 10])
def test_the_interval_holds_the_truth_where_items_of_a_question_are_alike(items: int) -> None:
    rng = np.random.default_rng(0)
    runs, held, ignoring = 400, 0, 0
    for _ in range(runs):
        truth, judged, questions = draw_labels(rng, 50, items, p=0.7, right=0.8)
        human = {int(index): bool(truth[index]) for index in rng.permutation(50 * items)[: 15 * items]}
        low, high = correct_rate(judged.tolist(), human, questions=questions)["interval95"]
        held += low <= 0.7 <= high
        low, high = correct_rate(judged.tolist(), human)["interval95"]
        ignoring += low <= 0.7 <= high
    assert 0.92 <= held / runs <= 0.98
    assert ignoring / runs < 0.9
