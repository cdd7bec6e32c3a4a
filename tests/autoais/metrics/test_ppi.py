"""A judge's rate corrected by human labels: right on average, and sure in the right measure."""

import numpy as np
import pytest

from autoais.metrics.ppi import correct_rate


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
    found = correct_rate(judged, {place: place % 2 == 0 for place in range(20)}, n_settled=50)
    assert found["value"] == pytest.approx(0.25)  # half of the answered half


def test_the_variance_is_that_of_the_verdicts_and_of_the_differences_with_their_covariance() -> None:
    judged = [True, True, False, True, False, True, True, False, False, False]  # the last two refused
    human = {0: True, 1: False, 2: False, 3: True, 5: False}
    said, differences = np.array([1, 1, 0, 1, 1.0]), np.array([0, -1, 0, 0, -1.0])
    wrong = (((differences - differences.mean()) ** 2).sum() + 1) / 6
    covariance = np.cov(said, differences)[0, 1]
    variance = np.var(judged, ddof=1) / 10 + 0.8**2 * (wrong / 5 + 2 * covariance / 8)
    found = correct_rate(judged, human, n_settled=2)
    assert found["value"] == pytest.approx(0.5 - 0.8 * 0.4)
    assert found["interval95"] == [0.0, pytest.approx(found["value"] + 1.959964 * variance**0.5)]


def test_two_labels_of_two_items_do_and_rates_stay_between_0_and_1() -> None:
    found = correct_rate([True, True], {0: True, 1: True})
    assert (found["value"], found["interval95"][1]) == (1.0, 1.0)
    # The verdicts do not vary; the unit that is added is a variance of 1/3 in two labels.
    assert found["interval95"][0] == pytest.approx(1 - 1.959964 * (1 / 6) ** 0.5)
    assert correct_rate([False, False], {0: False, 1: False})["interval95"][0] == 0.0
    wide = correct_rate([True, False], {0: True, 1: False})
    assert wide["interval95"] == [0.0, 1.0]


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
