import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoais.base.text.folding import normalize_answer
from autoais.metrics.rates import Rate
from autoais.metrics.short_answers import exact_match, f1, has_answer

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
    assert (f1("", ["("]), f1("", ["("], empty=0.0)) == (1.0, 0.0)
    assert f1("the", ["#", "x"], empty=0.0) == 0.0
    assert f1("", ["x"]) == f1("x", ["("]) == 0.0
    assert f1("a b", ["(", "b"], empty=0.0) == 1.0
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


@pytest.mark.parametrize("text", ["New\u200bYork", "New York\u200e", "\u2060New\u00ad York"])
def test_characters_that_nobody_sees_are_no_tokens(text: str) -> None:  # DPR's tokenizer leaves out the category C
    assert has_answer(text, ["New York"])


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
