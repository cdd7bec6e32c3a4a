from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoais.base.types import Span
from autoais.judges.windows import windows


def by_words(text: str) -> int:
    return len(text.split())


def with_prompt(text: str) -> int:
    """Characters, with five for what goes around them; not additive: a line end counts twice."""
    return 5 + len(text) + text.count("\n")


def test_what_fits_is_one_window() -> None:
    (window,) = windows(["One two. Three four. ", "", "Five."], by_words, 5)
    assert window.text == "One two. Three four.\nFive."
    assert window.spans == (Span(0, 0, 21), Span(2, 0, 5))
    assert windows(["", ""], by_words, 5) == []
    assert windows([], by_words, 5) == []


def test_windows_hold_whole_sentences_and_repeat_one() -> None:
    text = "Paul was here. Anna was there. Nobody knew why. It rained then."
    found = windows([text], by_words, 6)
    assert [window.text for window in found] == [
        "Paul was here. Anna was there.",
        "Anna was there. Nobody knew why.",
        "Nobody knew why. It rained then.",
    ]
    assert [window.spans for window in found] == [(Span(0, 0, 31),), (Span(0, 15, 48),), (Span(0, 31, 63),)]


def test_several_texts_share_a_window() -> None:
    found = windows(["One two three. Four five six.", "Seven eight."], by_words, 5)
    assert [window.text for window in found] == ["One two three.", "Four five six.\nSeven eight."]
    assert found[1].spans == (Span(0, 15, 29), Span(1, 0, 12))


def test_a_sentence_too_long_is_cut_at_words_and_a_word_at_characters() -> None:
    words = " ".join(f"w{i}" for i in range(100))
    found = windows([words], by_words, 12)
    assert all(by_words(window.text) <= 12 for window in found)
    assert all(word in words.split() for window in found for word in window.text.split())
    assert [window.text for window in windows(["abcdefghij"], len, 4)] == ["abcd", "defg", "ghij"]


def test_two_hundred_thousand_words_are_all_read() -> None:
    for text in ("word " * 200_000, "The river is long. It flows north. " * 29_000):
        found = windows([text], by_words, 300)
        assert found[0].spans[0].start == 0
        assert found[-1].spans[-1].end == len(text)
        assert max(by_words(window.text) for window in found) <= 300


_TEXT = st.text(st.sampled_from("ab . ?\n\x00é東\ud800")) | st.text()


@pytest.mark.parametrize("count", [by_words, len, with_prompt])
@given(st.lists(_TEXT, max_size=4), st.integers(7, 40))
def test_every_character_is_in_a_window_within_the_budget(
    count: Callable[[str], int], texts: list[str], budget: int
) -> None:
    found = windows(texts, count, budget)
    covered = [set[int]() for _ in texts]
    for window in found:
        assert count(window.text) <= budget
        parts = [texts[span.evidence][span.start : span.end].strip() for span in window.spans]
        assert window.text == "\n".join(part for part in parts if part)
        for span in window.spans:
            covered[span.evidence].update(range(span.start, span.end))
    assert covered == [set(range(len(text))) for text in texts]
    firsts = [(window.spans[0].evidence, window.spans[0].start) for window in found]
    assert firsts == sorted(set(firsts))
    assert windows(texts, count, budget) == found
