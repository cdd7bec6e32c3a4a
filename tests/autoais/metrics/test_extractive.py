"""Extractive fragments: the golden values of Grusky et al.'s definition, and its properties."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoais.metrics.extractive import Extractive, extractive, fragments

TOKENS = st.lists(st.sampled_from("abc"), max_size=12)


@pytest.mark.parametrize(
    ("source", "text", "lengths", "coverage", "density"),
    [
        (
            "patternmaster was published in 1976 by doubleday",
            "the novel patternmaster was published in 1976",
            (5,),
            5 / 7,
            25 / 7,
        ),
        (
            "the first novel patternmaster 1976 eventually became the last",
            "the first novel was patternmaster 1976",
            (3, 2),
            5 / 6,
            13 / 6,
        ),
    ],
)
def test_the_values_of_two_worked_examples(
    source: str, text: str, lengths: tuple[int, ...], coverage: float, density: float
) -> None:
    found = extractive(text, [source])
    assert found.fragments == lengths
    assert found.coverage == pytest.approx(coverage)
    assert found.density == pytest.approx(density)


def test_case_and_punctuation_do_not_count_and_no_fragment_spans_two_sources() -> None:
    assert extractive("A, B c!", ["a b"]).fragments == (2,)
    assert extractive("a b", ["x a", "b y"]).fragments == (1, 1)


def test_a_text_without_words_has_no_coverage() -> None:
    assert extractive("...", ["a"]) == Extractive((), 0)
    assert extractive("...", ["a"]).coverage is None
    assert extractive("a b", []).coverage == 0


def plainly(tokens: list[str], sources: list[list[str]]) -> tuple[int, ...]:
    """The definition, word for word."""
    found, at = [], 0
    while at < len(tokens):
        runs = [
            length
            for length in range(1, len(tokens) - at + 1)
            for source in sources
            if any(source[i : i + length] == tokens[at : at + length] for i in range(len(source)))
        ]
        longest = max(runs, default=0)
        found += [longest] if longest else []
        at += max(longest, 1)
    return tuple(found)


@given(TOKENS, st.lists(TOKENS, max_size=3))
def test_as_the_definition(tokens: list[str], sources: list[list[str]]) -> None:
    assert fragments(tokens, sources).fragments == plainly(tokens, sources)


@given(TOKENS)
def test_a_copy_is_one_fragment(tokens: list[str]) -> None:
    found = fragments(tokens, [tokens])
    assert found.fragments == ((len(tokens),) if tokens else ())
    assert found.coverage == (1.0 if tokens else None)
