"""Randomisation tests against all swaps done by hand, and Holm's correction."""

import itertools

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from autoais.metrics.mcnemar import mcnemar_exact
from autoais.metrics.paired import SWAPS, Pairs, both_sides, f1_of_sums, first_sum, holm, p_values, ratio_of_sums

Floats = NDArray[np.float64]


def by_hand(a: Floats, b: Floats) -> float:
    """The share of swaps with a difference of ratios, divided by its standard error, at least as large."""

    def gap(ours: Floats, theirs: Floats) -> float:
        values, parts = [], []
        for side in (ours, theirs):
            gained, items = map(float, side.sum(axis=0))
            if not items:
                return float("inf")
            values.append(gained / items)
            parts.append((side[:, 0] - gained / items * side[:, 1]) / items)
        if abs(values[0] - values[1]) < 1e-9:
            return 0.0
        error = float(np.sqrt(((parts[0] - parts[1]) ** 2).sum()))
        return abs(values[0] - values[1]) / error if error > 1e-7 else float("inf")

    observed = gap(a, b)
    hits = []
    for swaps in itertools.product([False, True], repeat=len(a)):
        swapped = np.array(swaps)[:, None]
        hits.append(gap(np.where(swapped, b, a), np.where(swapped, a, b)) >= observed * (1 - 1e-6))
    return float(np.mean(hits))


ANSWERS = st.lists(st.tuples(*[st.integers(0, 3)] * 4), min_size=1, max_size=7).map(
    lambda rows: np.array([[min(a, b), max(a, b), min(c, d), max(c, d)] for a, b, c, d in rows], dtype=np.float64)
)


@given(ANSWERS)
@example(np.array([[1.0, 1.0, 0.0, 0.0], [1.0, 1.0, 1.0, 3.0], [1.0, 1.0, 1.0, 3.0]]))  # no variance but for rounding
def test_few_questions_are_swapped_in_all_ways(rows: Floats) -> None:
    a, b = rows[:, :2], rows[:, 2:]
    if not a[:, 1].sum() or not b[:, 1].sum():
        return
    ((p, swaps),) = p_values([Pairs(a, b, ratio_of_sums)])
    assert swaps is None
    assert p == pytest.approx(by_hand(a, b))
    ((turned, _),) = p_values([Pairs(b, a, ratio_of_sums)])
    assert turned == pytest.approx(p)


def outcomes(wins: int, losses: int, ties: int) -> Pairs:
    changes = np.array([1.0] * wins + [-1.0] * losses + [0.0] * ties)
    return Pairs(changes[:, None], np.zeros((len(changes), 1)), first_sum)


def test_of_yes_and_no_it_is_mcnemars_exact_test() -> None:
    for wins, losses in ((4, 0), (5, 2), (3, 3), (0, 0), (9, 4)):
        ((p, swaps),) = p_values([outcomes(wins, losses, 5)])
        assert swaps is None
        assert p == pytest.approx(mcnemar_exact(wins, losses).p)
    for wins, losses in ((10, 4), (30, 14), (60, 50)):
        ((p, swaps),) = p_values([outcomes(wins, losses, 5)])
        assert swaps == SWAPS
        assert p == pytest.approx(mcnemar_exact(wins, losses).p, abs=0.015)
    ((p, _),) = p_values([outcomes(300, 0, 0)])
    assert p == 1 / (SWAPS + 1)


def test_questions_that_do_not_differ_need_no_swap() -> None:
    a, b = np.ones((20, 2)), np.ones((20, 2))
    b[:3, 0] = 0
    ((p, swaps),) = p_values([Pairs(a, b, ratio_of_sums)])
    assert swaps is None
    assert p == pytest.approx(0.25)
    assert p_values([Pairs(a, a, ratio_of_sums)]) == [(1.0, None)]


def test_tests_that_are_done_together_give_what_they_give_alone() -> None:
    rng = np.random.default_rng(5)
    listed = [Pairs(rng.random((n, 2)), rng.random((n, 2)) + 0.1, ratio_of_sums) for n in (40, 40, 60)]
    four = Pairs(rng.random((40, 4)), rng.random((40, 4)), f1_of_sums)
    together = p_values([listed[0], four, outcomes(3, 1, 2), *listed[1:]])
    alone = [p_values([one])[0] for one in (listed[0], four, outcomes(3, 1, 2), *listed[1:])]
    assert together == alone
    assert p_values([]) == []


def test_the_f1_of_sums() -> None:
    sums = np.array([[1.0, 2, 3, 4], [0, 2, 0, 4], [1, 0, 3, 4], [1, 2, 1, 0], [1, 8, 1, 4]])
    values, slopes = f1_of_sums(sums)
    assert values == pytest.approx([0.6, 0.0, np.nan, np.nan, 1 / 6], nan_ok=True)
    for column in range(4):
        moved = sums + 1e-6 * np.eye(4)[column]
        assert slopes[[0, 4], column] == pytest.approx(((f1_of_sums(moved)[0] - values) / 1e-6)[[0, 4]], abs=1e-5)


def test_a_swap_without_a_value_counts_as_extreme() -> None:
    # A's items are all in one question; with that one swapped, A has none.
    a, b = np.array([[1.0, 1.0], [0.0, 0.0]]), np.array([[0.0, 0.0], [0.0, 1.0]])
    ((p, _),) = p_values([Pairs(a, b, ratio_of_sums)])
    assert p == 1.0


def test_holm_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.6, 0.9]) == [1.0, 1.0]
    assert holm([0.02]) == [0.02]
    assert holm([]) == []


@given(st.lists(st.floats(0, 1), max_size=12))
def test_holm_keeps_the_order_and_is_between_p_and_bonferroni(p: list[float]) -> None:
    corrected = holm(p)
    for one, other in zip(p, corrected, strict=True):
        assert one <= other <= min(1.0, one * len(p) + 1e-12)
    order = sorted(range(len(p)), key=lambda i: p[i])
    assert [corrected[i] for i in order] == sorted(corrected)


def test_equal_systems_are_told_apart_in_one_of_twenty_comparisons() -> None:
    rng, hits = np.random.default_rng(2), 0
    for _ in range(400):
        items = rng.integers(1, 5, 9)
        sides = [np.stack([items * rng.random(9), items], axis=1).astype(np.float64) for _ in range(2)]
        ((p, _),) = p_values([Pairs(sides[0], sides[1], ratio_of_sums)])
        hits += p < 0.05
    assert 0.02 < hits / 400 < 0.075


def test_only_questions_that_both_answered_are_swapped() -> None:
    a, b = np.array([[1.0, 2.0], [0.0, 0.0], [3.0, 3.0]]), np.array([[0.0, 1.0], [2.0, 2.0], [0.0, 0.0]])
    ours, theirs = both_sides(a, b)
    assert ours.tolist() == [[1, 2], [0, 0], [0, 0]]
    assert theirs.tolist() == [[0, 1], [0, 0], [0, 0]]
    # Recall and precision are looked at apart: an answer without citations has a recall.
    ours, theirs = both_sides(np.array([[1.0, 2.0, 0.0, 0.0]]), np.array([[1.0, 1.0, 1.0, 1.0]]))
    assert (ours.tolist(), theirs.tolist()) == ([[1, 2, 0, 0]], [[1, 1, 0, 0]])


def _found(rng: np.random.Generator, n: int, *, rates: tuple[float, float], lengths: tuple[int, int]) -> float:
    """The p of two systems with these rates; A answers all n questions, B half of them."""
    sides = []
    for rate, length, answered in zip(rates, lengths, (n, n // 2), strict=True):
        items = np.where(np.arange(n) < answered, rng.integers(length, 2 * length + 1, n), 0)
        sides.append(
            np.stack([rng.binomial(items, rng.beta(4 * rate, 4 * (1 - rate), n)), items], 1).astype(np.float64)
        )
    return p_values([Pairs(*both_sides(sides[0], sides[1]), ratio_of_sums)])[0][0]


@pytest.mark.parametrize(("rate", "lengths"), [(0.5, (1, 1)), (0.9, (1, 1)), (0.5, (1, 4)), (0.8, (1, 4))])
def test_equal_rates_are_told_apart_in_one_of_twenty_comparisons_whatever_one_system_leaves_out(
    rate: float, lengths: tuple[int, int]
) -> None:
    rng = np.random.default_rng(6)
    hits = sum(_found(rng, 24, rates=(rate, rate), lengths=lengths) < 0.05 for _ in range(400))
    assert hits / 400 <= 0.055 + 1.64 * (0.05 * 0.95 / 400) ** 0.5


def test_other_rates_are_told_apart_though_one_system_leaves_out_half() -> None:
    rng = np.random.default_rng(7)
    assert sum(_found(rng, 24, rates=(0.95, 0.4), lengths=(2, 2)) < 0.05 for _ in range(100)) > 80
