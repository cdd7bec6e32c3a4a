import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoais.metrics.rates import Mean, Rate, wilson
from autoais.metrics.short_answers import exact_match, f1, has_answer, normalize_answer

texts = st.text(max_size=40)


@pytest.mark.parametrize(
    ("answer", "references", "em", "expected_f1"),
    [
        ("The Beatles!", ["beatles"], 1.0, 1.0),
        ("paul mccartney", ["Sir Paul McCartney", "Paul"], 0.0, 0.8),
        ("", ["x"], 0.0, 0.0),
        ("the", ["a"], 1.0, 1.0),
        ("x", [], 0.0, 0.0),
    ],
)
def test_squad_em_and_f1(answer: str, references: list[str], em: float, expected_f1: float) -> None:
    assert exact_match(answer, references) == em
    assert f1(answer, references) == pytest.approx(expected_f1)


def test_f1_of_nothing_with_nothing_is_what_the_script_to_match_says() -> None:
    # NQ-open dev has such references: "(", "( +" and "#"
    assert (f1("", ["("]), f1("", ["("], nothing=0.0)) == (1.0, 0.0)
    assert f1("the", ["#", "x"], nothing=0.0) == 0.0
    assert f1("", ["x"]) == f1("x", ["("]) == 0.0
    assert f1("a b", ["(", "b"], nothing=0.0) == 1.0
    assert exact_match("", ["("]) == 1.0


def test_squad_normalisation() -> None:
    assert normalize_answer(" The U.S.A.,  an\tapple ") == "usa apple"


@given(texts, st.lists(texts, max_size=3))
def test_f1_is_a_fraction_and_exact_match_implies_it(answer: str, references: list[str]) -> None:
    assert 0 <= f1(answer, references) <= 1
    if exact_match(answer, references):
        assert f1(answer, references) == 1


@pytest.mark.parametrize(
    ("text", "reference", "found"),
    [
        ("It ended in 1991.", "1991", True),
        ("It ended in 19910.", "1991", False),
        ("born in Besançon", "BESANÇON", True),
        ("the U.S. army", "u.s.", True),
        ("no such thing", "thin", False),
        ("anything", "", False),
        ("the café is", "cafe", False),
        ("the cafe\u0301 is", "CAFÉ", True),
        ("my résumé", "sume", False),
        ("हिन्दी", "द", False),
        ("it cost $5", "$5", True),
    ],
)
def test_has_answer_matches_whole_tokens(text: str, reference: str, found: bool) -> None:
    assert has_answer(text, [reference]) is found


def test_wilson_matches_the_textbook() -> None:
    # Newcombe (1998), Statistics in Medicine 17:857, Table I, method 3: 81/263, 15/148, 0/20, 1/29
    for (x, n), (low, high) in {
        (81, 263): (0.2553, 0.3662),
        (15, 148): (0.0624, 0.1605),
        (0, 20): (0.0, 0.1611),
        (1, 29): (0.0061, 0.1718),
    }.items():
        assert wilson(x, n) == pytest.approx((low, high), abs=5e-5)


@given(st.integers(0, 500), st.integers(1, 500))
def test_wilson_holds_the_proportion(x: int, n: int) -> None:
    x = min(x, n)
    low, high = wilson(x, n)
    assert 0 <= low <= x / n <= high <= 1


@given(st.lists(st.sampled_from([True, False, None])))
def test_a_rate_accounts_for_every_item_and_is_never_nan(outcomes: list[bool | None]) -> None:
    rate = Rate.of(outcomes)
    record = rate.record()
    assert record["n"] + record["undecided"] == record["total"] == len(outcomes)
    assert (record["value"] is None) == (record["n"] == 0)
    assert (record["floor"] is None) == (not outcomes)
    if record["value"] is not None:
        assert record["floor"] <= record["value"]
        assert all(math.isfinite(end) for end in record["interval95"])


def test_a_mean_has_a_seeded_interval() -> None:
    values = [0.0, 0.5, 1.0, 1.0]
    mean = Mean.of(values)
    assert mean.value == 0.625
    assert mean == Mean.of(values)
    assert mean.interval95 is not None
    assert mean.interval95[0] < 0.625 < mean.interval95[1]
    assert Mean.of([]) == Mean(None, 0, None)
