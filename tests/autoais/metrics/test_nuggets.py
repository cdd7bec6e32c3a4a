"""Nugget recall: phrases that a right answer contains."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoais.metrics.nuggets import find_nuggets, first_words


@pytest.mark.parametrize(
    ("text", "phrase", "found"),
    [
        ("It needs 600 bytes.", "600", True),
        ("It needs 1600 bytes.", "600", False),
        ("It’s possible.", "it's possible", True),
        ("Not   recommended\nat all", "not recommended", True),
        ("Call it with (--exclude).", "--exclude", True),
        ("Exclude nothing", "--exclude", False),
        ("use -v", "-v", True),
        ("version v of it", "-v", False),
        ("a well-known port", "well known", True),
        ("the mark ¶ there", "¶", True),
        ("nothing", "", False),
        ("Cafe\u0301 au lait", "Caf\u00e9", True),
        ("\u092f\u0939 \u0915\u093e \u0939\u0948", "\u0915\u0940", False),  # another vowel sign
    ],
)
def test_a_phrase_is_found_as_whole_words(text: str, phrase: str, found: bool) -> None:
    assert find_nuggets(text, [[phrase]]) == [found]


def test_any_phrase_of_a_nugget_is_enough_and_every_nugget_counts() -> None:
    assert find_nuggets("The gate opens at seven.", [["7", "seven"], ["gate"], ["closes"]]) == [True, True, False]
    assert find_nuggets("anything", []) == []


def test_the_first_words_keep_their_white_space() -> None:
    assert first_words("a  b\nc d", 3) == "a  b\nc"
    assert first_words("a b", 5) == "a b"
    assert first_words(" ", 5) == ""


@given(st.text(), st.integers(1, 20))
def test_the_first_words_are_a_prefix(text: str, most: int) -> None:
    cut = first_words(text, most)
    assert text.startswith(cut)
    assert cut.split() == text.split()[:most]
