"""Randomisation tests against all swaps done by hand, and Holm's correction."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from autoais.meta.agreement import mcnemar_exact
from autoais.metrics.paired import SWAPS, Pairs, f1_of_sums, holm, p_values, ratio_of_sums

Floats = NDArray[np.float64]


def by_hand(a: Floats, b: Floats) -> float:
    """The share of swaps with a difference of ratios at least as large."""

    def gap(ours: Floats, theirs: Floats) -> float:
        values = []
        for side in (ours, theirs):
            gained, items = map(float, side.sum(axis=0))
            if not items:
                return float("inf")
            values.append(gained / items)
        return abs(values[0] - values[1])

    observed = gap(a, b)
    hits = []
    for swaps in itertools.product([False, True], repeat=len(a)):
        swapped = np.array(swaps)[:, None]
        hits.append(gap(np.where(swapped, b, a), np.where(swapped, a, b)) >= observed - 1e-9)
    return float(np.mean(hits))


ANSWERS = st.lists(st.tuples(*[st.integers(0, 3)] * 4), min_size=1, max_size=7).map(
    lambda rows: np.array([[min(a, b), max(a, b), min(c, d), max(c, d)] for a, b, c, d in rows], dtype=np.float64)
)


@settings(deadline=None)
@given(ANSWERS)
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
    return Pairs(changes[:, None], np.zeros((len(changes), 1)), lambda sums: sums[:, 0])


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
    assert f1_of_sums(sums) == pytest.approx([0.6, 0.0, np.nan, np.nan, 1 / 6], nan_ok=True)


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
