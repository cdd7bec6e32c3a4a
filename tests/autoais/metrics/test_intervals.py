"""Intervals against tables, independent formulas and the jackknife; scripts/coverage.py measures their coverage."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from autoais.meta import evaluate
from autoais.metrics import classification, intervals
from autoais.metrics.intervals import Estimate, clopper_pearson, number_of
from autoais.metrics.rates import Mean, Rate, Tally
from autoais.metrics.scores import CitationScores
from tests.conftest import present

Floats = NDArray[np.float64]


def test_clopper_pearson_matches_the_textbook() -> None:
    # Newcombe (1998), Statistics in Medicine 17:857, Table I, method 5: 81/263, 15/148, 0/20, 1/29
    for (x, n), ends in {
        (81, 263): (0.2527, 0.3676),
        (15, 148): (0.0578, 0.1617),
        (0, 20): (0.0, 0.1684),
        (1, 29): (0.0009, 0.1776),
    }.items():
        assert clopper_pearson(x, n) == pytest.approx(ends, abs=5e-5)
    for x, n in ((-1, 3), (4, 3), (0, 0)):
        with pytest.raises(ValueError, match="need 0 <= successes <= n and n > 0"):
            clopper_pearson(x, n)


@given(st.integers(0, 300), st.integers(1, 300))
def test_clopper_pearson_holds_the_proportion_and_knows_no_sides(x: int, n: int) -> None:
    x = min(x, n)
    low, high = clopper_pearson(x, n)
    assert 0 <= low <= x / n <= high <= 1
    assert clopper_pearson(n - x, n) == pytest.approx((1 - high, 1 - low), abs=1e-9)


def expected(values: Floats, df: float) -> tuple[float, float]:
    """Korn and Graubard's interval of a mean, with the normal quantile in place of their t of n - 1."""
    n, p = len(values), values.mean()
    effective = p * (1 - p) / (values.var(ddof=1) / n) * (stats.norm.ppf(0.975) / stats.t.ppf(0.975, df)) ** 2
    x = p * effective
    return stats.beta.ppf(0.025, x, effective - x + 1), stats.beta.ppf(0.975, x + 1, effective - x)


def test_a_mean_has_the_interval_of_its_effective_sample_size() -> None:
    few = np.array([0.2, 0.4, 0.6, 0.8])  # the fourth moment gives 12.5 degrees of freedom, n - 1 gives 3
    assert intervals.mean(few).interval == pytest.approx(expected(few, 3))
    skewed = np.array([0.1] * 30 + [0.9] * 5 + [0.4] * 5)
    df = 2 * len(skewed) / (stats.kurtosis(skewed, fisher=False) - 1)
    assert 3 < df < len(skewed) - 1
    assert intervals.mean(skewed).interval == pytest.approx(expected(skewed, df))
    rare = np.array([0.0] * 99 + [0.5])  # the fourth moment gives 2: no fewer than 3 count
    assert 2 * 100 / (stats.kurtosis(rare, fisher=False) - 1) < 3
    assert intervals.mean(rare).interval == pytest.approx(expected(rare, 3))


def test_with_many_questions_the_interval_is_the_normal_one() -> None:
    values = np.random.default_rng(0).beta(2, 3, 20_000)
    margin = 1.96 * values.std() / math.sqrt(len(values))
    assert intervals.mean(values).interval == pytest.approx((values.mean() - margin, values.mean() + margin), abs=1e-4)


def test_yes_and_no_of_whole_questions_are_exact() -> None:
    assert Rate.of([True, True, False]).interval == clopper_pearson(2, 3)
    assert intervals.mean(np.array([1.0, 1.0, 0.0])).interval == clopper_pearson(2, 3)
    # All sentences of an answer agree, and answers have as many: three answers are three outcomes, not nine.
    tally = Tally("sentences")
    for values in ([1, 1, 1], [0, 0, 0], [1, 1, 1]):
        tally.add(values)
    assert tally.rate().interval == tally.micro_average().interval95 == pytest.approx(clopper_pearson(2, 3))
    # One longer answer weighs more: that is no longer three equal outcomes.
    tally.add([1, 1, 1, 1])
    assert tally.rate().interval != clopper_pearson(3, 4)


def test_the_f1_of_a_ratio_with_itself_is_that_ratio() -> None:
    right = np.array([1.0] * 18 + [0.0] * 2)
    same = intervals.ratio(right, np.ones(20)), intervals.ratio(right, np.ones(20))
    found = intervals.interval(intervals.harmonic_mean(*same))
    assert found == pytest.approx(clopper_pearson(18, 20))
    other = intervals.harmonic_mean(same[0], intervals.ratio(right[::-1], np.ones(20)))
    assert intervals.interval(other) != pytest.approx(clopper_pearson(18, 20))
    scores = CitationScores()
    for one in right:
        scores.add([one], [one])
    assert scores.micro_average()["f1"].interval95 == pytest.approx(clopper_pearson(18, 20))


def test_where_all_questions_agree_the_unseen_others_are_bounded() -> None:
    unseen = clopper_pearson(0, 10)[1]
    assert intervals.mean(np.ones(10)).interval == pytest.approx((1 - unseen, 1))
    assert intervals.mean(np.zeros(10)).interval == pytest.approx((0, unseen))
    assert intervals.mean(np.full(10, 0.3)).interval == pytest.approx((0.3 * (1 - unseen), 0.3 + 0.7 * unseen))
    assert intervals.mean(np.zeros(10), -1.0, 1.0).interval == pytest.approx((-unseen, unseen))
    assert intervals.mean(np.full(10, 2.0), 1.0, 5.0).interval == pytest.approx((2 - unseen, 2 + 3 * unseen))
    # Nine sentences of one answer and one of another are fewer than two questions.
    both = present(intervals.ratio(np.array([9.0, 1.0]), np.array([9.0, 1.0])))
    assert both.size == pytest.approx(100 / 82)
    assert both.interval == pytest.approx((1 - clopper_pearson(0, 100 / 82)[1], 1))
    # A single question tells nothing of others, however many sentences it has.
    alone = present(intervals.ratio(np.array([3.0]), np.array([6.0])))
    assert alone.interval == pytest.approx((0.0125, 0.9875))


SHARES = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=30).map(
    lambda pairs: [(float(min(pair)), float(max(pair))) for pair in pairs]
)


@given(SHARES, st.randoms(use_true_random=False))
def test_an_interval_holds_its_value_and_knows_no_order(pairs: list[tuple[float, float]], random: object) -> None:
    gained, items = np.array(pairs).T
    found = intervals.ratio(gained, items)
    if found is None:
        assert not items.sum()
        return
    low, high = found.interval
    assert 0 <= low <= found.value + 1e-9
    assert found.value - 1e-9 <= high <= 1
    assert low < high
    assert abs(found.parts.sum()) < 1e-9
    random.shuffle(pairs)  # type: ignore[attr-defined]
    again = present(intervals.ratio(*np.array(pairs).T))
    assert again.interval == found.interval


@given(SHARES)
def test_sentences_that_repeat_others_of_their_answer_add_no_evidence(pairs: list[tuple[float, float]]) -> None:
    gained, items = np.array(pairs).T
    once, thrice = intervals.ratio(gained, items), intervals.ratio(3 * gained, 3 * items)
    assert (once is None) == (thrice is None)
    if once is not None and thrice is not None:
        assert thrice.interval == pytest.approx(once.interval, abs=1e-9)


def test_answers_to_one_question_are_no_independent_ones() -> None:
    outcomes = [True, True, True, False, False, False, True, True]
    apart, together = Rate.of(outcomes), Rate.of(outcomes, [1, 1, 1, 2, 2, 2, 3, 3])
    assert (together.yes, together.total, together.value) == (apart.yes, apart.total, apart.value)
    assert apart.interval is not None
    assert together.interval is not None
    assert together.interval[0] < apart.interval[0]
    assert together.interval[1] > apart.interval[1]
    assert Rate.of(outcomes, range(8)) == apart
    assert Rate.of(outcomes, range(8)).interval == apart.interval
    apart_mean, together_mean = Mean.of([1, 2, 3, 5], low=1, high=5), Mean.of([1, 2, 3, 5], [1, 1, 2, 2], low=1, high=5)
    assert apart_mean.value == together_mean.value == 2.75
    assert Mean.of([1, 2, 3, 5], [4, 3, 2, 1], low=1, high=5).interval95 == pytest.approx(apart_mean.interval95)
    assert apart_mean.interval95 == pytest.approx(
        tuple(1 + 4 * end for end in intervals.mean(np.array([0, 0.25, 0.5, 1.0])).interval)
    )
    assert together_mean.interval95 is not None
    assert apart_mean.interval95 is not None
    assert together_mean.interval95[0] < apart_mean.interval95[0]


def test_a_mean_beyond_its_bounds_widens_them() -> None:
    low, high = Mean.of([0.0, 3.0, 1.0, 2.0]).interval95 or (0, 0)
    assert 0 <= low < 1.5 < high <= 3
    assert Mean.of([]) == Mean(None, 0, None)
    assert Mean.of([0.5, 1.0, 0.0]) == Mean.of([1.0, 0.0, 0.5])


def test_the_interval_of_a_mean_over_sets() -> None:
    rng = np.random.default_rng(3)
    one, two = intervals.mean(rng.random(400)), intervals.mean(rng.beta(2, 5, 100))
    both, value = intervals.average([one, two]), (one.value + two.value) / 2
    for side in (0, 1):
        arms = one.value - one.interval[side], two.value - two.interval[side]
        assert abs(value - both[side]) == pytest.approx(math.hypot(*arms) / 2)
    assert intervals.average([one]) == pytest.approx(one.interval)
    # A small set that is all right is not sure: 10 of 10 are [.69, 1], 100 of 200 are [.43, .57].
    sure, half = intervals.mean(np.ones(10)), intervals.mean(np.array([0.0, 1.0] * 100))
    (sure_low, _), (half_low, half_high) = sure.interval, half.interval
    assert intervals.average([sure, half]) == pytest.approx(
        (0.75 - math.hypot(1 - sure_low, 0.5 - half_low) / 2, 0.75 + (half_high - 0.5) / 2)
    )
    assert intervals.average([sure, half]) == pytest.approx((0.592, 0.786), abs=1e-3)


def test_a_part_without_variance_still_has_an_error() -> None:
    # Balanced accuracy: all of 10 yes are found, and 100 of 200 no.
    truth = np.array([True] * 10 + [False] * 200)
    said = np.array([True] * 10 + [False, True] * 100)
    found = present(evaluate._balanced_accuracy(truth, said, np.arange(210)))
    low, high = found.interval
    assert found.value == 0.75
    assert low == pytest.approx(0.59, abs=0.01)
    assert high == pytest.approx(0.79, abs=0.01)
    # Turned around, the error is on the other side; in a difference of differences it stays.
    again = present(evaluate._balanced_accuracy(truth, ~said, np.arange(210)))
    assert again.interval == pytest.approx((1 - high, 1 - low), abs=1e-9)
    nested = intervals.difference(again, found)
    assert nested.interval[0] < -0.5 < nested.interval[1]
    assert nested.arms == pytest.approx([again.arms[i] + found.arms[1 - i] for i in (0, 1)])


# --- the delta method against the jackknife ----------------------------------------------------------------------


def _claims() -> tuple[NDArray[np.bool_], NDArray[np.bool_], Floats, NDArray[np.int64]]:
    rng = np.random.default_rng(7)
    question = rng.integers(0, 400, 1500)
    ease = rng.normal(0.8, 1, 400)[question]
    truth = rng.normal(0.4, 1, 400)[question] + rng.logistic(size=1500) > 0
    score = np.where(truth, ease, -ease) + rng.logistic(size=1500)
    return truth, score > 0.2, np.round(1 / (1 + np.exp(-score)), 2), question


FIGURES: dict[str, tuple[Callable[..., Estimate | None], Callable[..., float | None]]] = {
    "macro_f1": (lambda t, s, p, q: evaluate._macro_f1(t, s, q), lambda t, s, p: classification.macro_f1(t, s)),
    "balanced_accuracy": (
        lambda t, s, p, q: evaluate._balanced_accuracy(t, s, q),
        lambda t, s, p: classification.balanced_accuracy(t, s),
    ),
    "false_negative_rate": (
        lambda t, s, p, q: evaluate._share(t & ~s, t, q),
        lambda t, s, p: classification.false_negative_rate(t, s),
    ),
    "false_positive_rate": (
        lambda t, s, p, q: evaluate._share(~t & s, ~t, q),
        lambda t, s, p: classification.false_positive_rate(t, s),
    ),
    "roc_auc": (lambda t, s, p, q: evaluate._roc_auc(t, p, q), lambda t, s, p: classification.roc_auc(t, p)),
    "cohen_kappa": (
        lambda t, s, p, q: evaluate._cohen_kappa(t, s, q),
        lambda t, s, p: classification.cohen_kappa(t, s),
    ),
    "calibration_error": (
        # Squared, the probabilities are all too low: at a gap of 0 the error has no slope.
        lambda t, s, p, q: evaluate._calibration_error(t, p**2, q),
        lambda t, s, p: evaluate.calibration_error(t, p**2),
    ),
    "f1": (
        lambda t, s, p, q: intervals.harmonic_mean(
            intervals.ratio(*intervals.by_question(q, (t & s) * 1.0, t * 1.0)),
            intervals.ratio(*intervals.by_question(q, (t & s) * p, s * 1.0)),
        ),
        lambda t, s, p: 2 / (t.sum() / (t & s).sum() + s.sum() / ((t & s) * p).sum()),
    ),
    "difference": (
        lambda t, s, p, q: intervals.difference(
            *(intervals.ratio(*intervals.by_question(q, side * 1.0, p)) for side in (t * p, s * p))  # type: ignore[arg-type]
        ),
        lambda t, s, p: float((t * p).sum() / p.sum() - (s * p).sum() / p.sum()),
    ),
}


@pytest.mark.parametrize("name", FIGURES)
def test_what_a_question_adds_to_the_error_is_what_leaving_it_out_changes(name: str) -> None:
    truth, said, probability, question = _claims()
    estimate, figure = FIGURES[name]
    found = estimate(truth, said, probability, question)
    value = figure(truth, said, probability)
    assert found is not None
    assert value is not None
    assert found.value == pytest.approx(value)
    assert (found.low, found.high) == ((-1.0, 1.0) if name in ("cohen_kappa", "difference") else (0.0, 1.0))
    asked = np.unique(question)
    assert len(found.parts) == len(asked)
    without = [figure(*(column[question != one] for column in (truth, said, probability))) for one in asked]
    changes = np.array([value - one for one in without if one is not None])
    assert found.parts == pytest.approx(changes, abs=0.03 * float(np.abs(changes).max()))
    low, high = found.interval
    margin = 1.96 * math.sqrt((changes**2).sum())
    assert (low, high) == pytest.approx((value - margin, value + margin), abs=0.1 * margin)


def test_a_part_without_variance_widens_the_side_on_which_it_may_be_wrong() -> None:
    half, all_right = intervals.mean(np.array([1.0, 0.0] * 20)), intervals.mean(np.ones(40))
    assert all_right.interval[1] == 1.0
    gain = intervals.difference(half, all_right)
    low, high = intervals.combine(gain.value, (1.0, half), low=-1.0).interval
    # The second may be lower than 1, never higher, so the difference may be greater.
    assert gain.interval[0] == pytest.approx(low)
    assert (gain.interval[1] - gain.value) ** 2 == pytest.approx(
        (high - gain.value) ** 2 + (1 - all_right.interval[0]) ** 2
    )
    tripled = intervals.combine(3 * gain.value, (3.0, gain), low=-3.0, high=3.0)
    assert tripled.interval == pytest.approx([3 * end for end in gain.interval])
    back = intervals.difference(all_right, half)
    assert back.interval == pytest.approx((-gain.interval[1], -gain.interval[0]))


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(10, 16)), max_size=12))
def test_items_are_together_if_a_chain_of_shared_keys_joins_them(pairs: list[tuple[int, int]]) -> None:
    a, b = (np.array([pair[side] for pair in pairs], np.int64) for side in (0, 1))
    groups = [{n} for n in range(len(pairs))]
    for n, one in enumerate(pairs):
        for m, other in enumerate(pairs):
            if one[0] == other[0] or one[1] == other[1]:
                joined = groups[n] | groups[m]
                for member in joined:
                    groups[member] = joined
    found = intervals.number_components(a, b).tolist()
    assert [{m for m in range(len(pairs)) if found[m] == found[n]} for n in range(len(pairs))] == groups


def test_f1_of_nothing() -> None:
    nothing, some = intervals.mean(np.zeros(10)), intervals.mean(np.full(10, 0.5))
    found = present(intervals.harmonic_mean(nothing, nothing))
    assert (found.value, found.interval) == (0.0, nothing.interval)
    assert intervals.harmonic_mean(None, some) is intervals.harmonic_mean(some, None) is None
    assert intervals.interval(None) is None


# --- coverage, on a small scale ----------------------------------------------------------------------------------


@pytest.mark.parametrize("alike", [0.0, 0.5, 1.0])
def test_about_19_of_20_intervals_hold_the_truth(alike: float) -> None:
    rng, held = np.random.default_rng(1), 0
    for _ in range(600):
        items = rng.integers(1, 13, 60)
        own = np.where(rng.random(60) < alike, rng.random(60) < 0.4, 0.4)
        found = present(intervals.ratio(rng.binomial(items, own).astype(float), items.astype(float)))
        held += found.interval[0] <= 0.4 <= found.interval[1]
    assert 0.93 <= held / 600 <= 0.98


@settings(max_examples=30)
@given(st.text(max_size=20), st.text(max_size=20))
def test_questions_are_told_apart(a: str, b: str) -> None:
    assert (number_of(a) == number_of(b)) == (a == b)
    assert 0 <= number_of(a) < 2**56
