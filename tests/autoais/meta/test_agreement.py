"""Coefficients of agreement: worked examples, other libraries, bounds and intervals; McNemar's test."""

import warnings
from collections.abc import Sequence
from random import Random

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from autoais.meta.agreement import (
    ALL_EQUAL,
    SINGLE,
    UNANIMOUS,
    Coefficient,
    cohen_kappa,
    f1_to_majority,
    fleiss_kappa,
    krippendorff_alpha,
    pairwise_agreement,
)
from autoais.metrics.intervals import clopper_pearson
from autoais.metrics.mcnemar import mcnemar, mcnemar_corrected, mcnemar_exact
from autoais.metrics.rates import Mean

Table = list[list[int]]
COEFFICIENTS = (krippendorff_alpha, pairwise_agreement, f1_to_majority, fleiss_kappa)

counts = st.integers(2, 4).flatmap(
    lambda values: st.lists(
        st.lists(st.integers(0, 4), min_size=values, max_size=values).filter(any), min_size=1, max_size=15
    )
)


def reliability(table: Sequence[Sequence[int]]) -> list[list[float]]:
    """Counts by item and value as a row per rater, with nan for a missing rating."""
    rows = [[value for value, times in enumerate(item) for _ in range(times)] for item in table]
    most = max(map(len, rows))
    return [[row[rater] if rater < len(row) else np.nan for row in rows] for rater in range(most)]


# --- worked examples -------------------------------------------------------------------------------------------------


def test_alpha_of_krippendorffs_own_example_of_two_raters() -> None:
    # Krippendorff, Computing Krippendorff's Alpha-Reliability (2011), section A: 10 binary items, alpha = 0.095
    a, b = (0, 1, 0, 0, 0, 0, 0, 0, 1, 0), (1, 1, 1, 0, 0, 1, 0, 0, 0, 0)
    rated = [(x + y, 2 - x - y) for x, y in zip(a, b, strict=True)]
    assert krippendorff_alpha(rated).value == pytest.approx(0.095, abs=5e-4)


def test_alpha_of_krippendorffs_example_with_missing_ratings() -> None:
    # The same, sections C and D: 12 items, 4 raters, 5 values; nominal .743, ordinal .815
    raters: list[list[int | None]] = [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3],
        [None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None],
    ]
    rated = [[sum(rater[item] == value for rater in raters) for value in range(1, 6)] for item in range(12)]
    assert krippendorff_alpha(rated).value == pytest.approx(0.743, abs=5e-4)
    assert krippendorff_alpha(rated, ordinal=True).value == pytest.approx(0.815, abs=5e-4)


def test_fleiss_own_worked_example() -> None:
    # Ten subjects, fourteen raters, five categories: kappa .210 (Wikipedia's worked example of Fleiss 1971)
    rated = [
        [0, 0, 0, 0, 14], [0, 2, 6, 4, 2], [0, 0, 3, 5, 6], [0, 3, 9, 2, 0], [2, 2, 8, 1, 1], [7, 7, 0, 0, 0],
        [3, 2, 6, 3, 0], [2, 5, 3, 2, 2], [6, 5, 2, 1, 0], [0, 2, 2, 3, 7],
    ]  # fmt: skip
    assert fleiss_kappa(rated).value == pytest.approx(0.210, abs=5e-4)


def test_items_with_different_numbers_of_ratings() -> None:
    rated = [(2, 0), (1, 1), (3, 1), (1, 0)]
    # Observed: 2 * 1 / 1 + 2 * 3 / 3; expected, of 6 yes and 2 no: 2 * 6 * 2 / 7. The single rating is left out.
    assert krippendorff_alpha(rated).value == pytest.approx(1 - 4 / (24 / 7))
    assert pairwise_agreement(rated).value == pytest.approx((1 + 0 + 0.5) / 3)
    assert krippendorff_alpha([(1, 1)]).value == 0.0
    # The tie is left out: five yes agree with the majority, one no does not, and no majority is no.
    found = f1_to_majority(rated)
    assert found.value == pytest.approx((2 * 5 / (2 * 5 + 1) + 0) / 2)
    assert found.n == 2
    assert f1_to_majority([(3, 0)]).value == 1.0  # of the values that occur


def test_two_annotators_have_no_f1_to_a_majority_that_is_themselves() -> None:
    assert f1_to_majority([(2, 0)]) == Coefficient(None, 1, None, UNANIMOUS)
    assert f1_to_majority([(2, 0), (0, 2), (1, 1), (1, 0)]) == Coefficient(None, 2, None, UNANIMOUS)
    assert f1_to_majority([(2, 0), (2, 1)]).value is not None


def test_agreement_of_two_annotators_is_a_proportion_with_its_exact_interval() -> None:
    found = pairwise_agreement([(2, 0)] * 13 + [(1, 1)] * 5)
    assert found.value == 13 / 18
    assert found.interval95 == pytest.approx(clopper_pearson(13, 18))
    # Items of one question are no independent ones.
    clustered = pairwise_agreement([(2, 0), (1, 1)] * 9, np.repeat(np.arange(9), 2))
    assert clustered.interval95 != pytest.approx(clopper_pearson(9, 18))


def test_what_is_undefined_has_a_reason() -> None:
    for one in COEFFICIENTS:
        assert one([]) == one([(1, 0), (0, 1)]) == Coefficient(None, 0, None, SINGLE)
    for one in (krippendorff_alpha, fleiss_kappa):
        assert one([(5, 0), (2, 0)]) == Coefficient(None, 2, None, ALL_EQUAL)
    assert f1_to_majority([(1, 1)]).reason == "no item has a majority"
    assert cohen_kappa([]).reason == cohen_kappa([[(0, 1)]]).reason == SINGLE
    assert cohen_kappa([[(0, 1), (1, 1)]]).reason == ALL_EQUAL
    with pytest.raises(ValueError, match="negative"):
        pairwise_agreement([(-1, 3)])


def test_cohens_kappa_is_a_mean_over_pairs_weighted_by_items() -> None:
    # Raters 0 and 1 on six items: 4 of 6 agree, chance 1/2, kappa 1/3; 0 and 2 on two: both agree, kappa 1.
    items = [[(0, 1), (1, 1)], [(0, 1), (1, 1)], [(0, 1), (1, 0)], [(0, 0), (1, 0)], [(0, 0), (1, 0)], [(0, 0), (1, 1)]]
    assert cohen_kappa(items) == Coefficient(pytest.approx(1 / 3), 1)  # type: ignore[arg-type]
    more = [*items, [(2, 0), (0, 0)], [(0, 1), (2, 1)]]
    assert cohen_kappa(more) == Coefficient(pytest.approx((6 / 3 + 2) / 8), 2)  # type: ignore[arg-type]


# --- other libraries -------------------------------------------------------------------------------------------------


@given(counts)
def test_alpha_is_that_of_the_package_krippendorff(table: Table) -> None:
    krippendorff = pytest.importorskip("krippendorff")
    for ordinal in (False, True):
        ours = krippendorff_alpha(table, ordinal=ordinal)
        if ours.value is None:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            theirs = krippendorff.alpha(
                reliability_data=reliability(table),
                level_of_measurement="ordinal" if ordinal else "nominal",
                value_domain=list(range(len(table[0]))),
            )
        assert ours.value == pytest.approx(theirs, abs=1e-9)


@given(st.integers(2, 5), st.integers(2, 4), st.data())
def test_fleiss_kappa_is_that_of_statsmodels(raters: int, values: int, data: st.DataObject) -> None:
    inter_rater = pytest.importorskip("statsmodels.stats.inter_rater")
    rated = data.draw(st.lists(st.lists(st.integers(0, values - 1), min_size=raters, max_size=raters), min_size=2))
    table = [[row.count(value) for value in range(values)] for row in rated]
    ours = fleiss_kappa(table).value
    assume(ours is not None)
    assert ours == pytest.approx(inter_rater.fleiss_kappa(np.array(table)), abs=1e-9)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=30))
def test_cohens_kappa_of_two_raters_is_that_of_statsmodels(rated: list[tuple[int, int]]) -> None:
    inter_rater = pytest.importorskip("statsmodels.stats.inter_rater")
    ours = cohen_kappa([[(0, a), (1, b)] for a, b in rated]).value
    assume(ours is not None)
    table = np.zeros((4, 4))
    for a, b in rated:
        table[a, b] += 1
    assert ours == pytest.approx(inter_rater.cohens_kappa(table, return_results=False), abs=1e-9)


@given(st.integers(0, 40), st.integers(0, 40))
def test_mcnemar_is_that_of_statsmodels(b: int, c: int) -> None:
    tables = pytest.importorskip("statsmodels.stats.contingency_tables")
    theirs = tables.mcnemar([[3, b], [c, 2]], exact=True)
    assert mcnemar_exact(b, c).p == pytest.approx(theirs.pvalue, abs=1e-9)
    if b + c:
        theirs = tables.mcnemar([[3, b], [c, 2]], exact=False, correction=True)
        assert mcnemar_corrected(b, c).p == pytest.approx(theirs.pvalue, abs=1e-9)


def test_mcnemar_is_exact_below_25_discordant_items() -> None:
    assert mcnemar(20, 4) == mcnemar_exact(20, 4)
    assert mcnemar(20, 5) == mcnemar_corrected(20, 5)


# --- bounds and intervals --------------------------------------------------------------------------------------------


@given(counts)
def test_coefficients_and_intervals_stay_in_their_bounds(table: Table) -> None:
    for one in COEFFICIENTS:
        found = one(table)
        assert (found.value is None) == (found.reason is not None)
        if found.value is not None:
            assert found.value <= 1 + 1e-9
            assert found.value >= (0 if one in (pairwise_agreement, f1_to_majority) else -1 - 1e-9)
        if found.interval95 is not None:
            assert found.value is not None
            low, high = found.interval95
            assert -1 - 1e-9 <= low <= found.value + 1e-9
            assert found.value <= high + 1e-9 <= 1 + 1e-8


@given(counts, st.randoms(use_true_random=False))
def test_the_order_of_items_changes_nothing(table: Table, random: Random) -> None:
    mixed = list(table)
    random.shuffle(mixed)
    for one in COEFFICIENTS:
        assert one(mixed).value == pytest.approx(one(table).value)


def test_full_agreement_is_one() -> None:
    rated = [(5, 0), (0, 5)] * 20
    for one in COEFFICIENTS:
        found = one(rated)
        assert (found.value, found.n) == (1.0, 40)
        assert found.interval95 is not None
        assert 0.7 < found.interval95[0] < found.interval95[1] == 1.0


def test_the_interval_of_a_mean_over_items_is_that_of_every_mean() -> None:
    rated = [(3, 0), (2, 1), (3, 0), (1, 2), (0, 3), (3, 0), (2, 1)]
    found, mean = pairwise_agreement(rated), Mean.of([1, 1 / 3, 1, 1 / 3, 1, 1, 1 / 3])
    assert found.value == pytest.approx(mean.value)
    assert found.interval95 == pytest.approx(mean.interval95)


def test_items_of_one_question_count_as_one() -> None:
    rated = [(5, 0), (0, 5), (3, 2), (1, 4)] * 25
    alone, together = krippendorff_alpha(rated), krippendorff_alpha(rated, [n // 10 for n in range(100)])
    assert alone.value == pytest.approx(together.value)
    assert alone.interval95 is not None
    alike = krippendorff_alpha(sorted(rated), [n // 10 for n in range(100)])
    assert alike.interval95 is not None
    width = alone.interval95[1] - alone.interval95[0]
    assert alike.interval95[1] - alike.interval95[0] > 1.5 * width


def test_there_is_no_interval_where_a_few_questions_decide() -> None:
    few, enough = [(5, 0)] * 30 + [(1, 4)] * 4, [(5, 0)] * 30 + [(1, 4)] * 5
    for one in (krippendorff_alpha, fleiss_kappa, f1_to_majority):
        assert one(few).value is not None
        assert one(few).interval95 is None
        assert one(enough).interval95 is not None
    assert pairwise_agreement(few).interval95 is not None


@pytest.mark.slow
@pytest.mark.parametrize(("questions", "share", "right"), [(20, 0.7, 0.85), (50, 0.5, 0.7), (200, 0.9, 0.9)])
def test_intervals_hold_the_truth(questions: int, share: float, right: float) -> None:
    """Two items a question, which have the same truth; five annotators who are right with the same probability."""
    rng = np.random.default_rng(1)

    def drawn(n: int, items: int) -> np.ndarray:
        yes = rng.binomial(5, np.repeat(np.where(rng.random(n) < share, right, 1 - right), items))
        return np.stack([yes, 5 - yes], axis=1)

    for one in COEFFICIENTS:
        truth = one(drawn(100_000, 1)).value
        assert truth is not None
        ends = [one(drawn(questions, 2), np.repeat(np.arange(questions), 2)).interval95 for _ in range(300)]
        known = [pair for pair in ends if pair is not None]
        held = sum(low <= truth <= high for low, high in known) / len(known)
        assert len(known) > 200
        assert 0.91 <= held <= 0.995, (one.__name__, held)


def test_one_question_alone_has_no_interval() -> None:
    assert krippendorff_alpha([(5, 0), (0, 5)], [7, 7]) == Coefficient(1.0, 2)
