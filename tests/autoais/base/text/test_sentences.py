"""The sentence splitter: where it cuts, and where it does not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoais.base.text.sentences import sentence_spans


def split(text: str) -> list[str]:
    return [text[start:end] for start, end in sentence_spans(text)]


@pytest.mark.parametrize(
    "sentence",
    ["Run ./configure now.", "Save foo.C and .First there.", "!W writes, ?V shows.", "Call System.Out or Foo.Bar.",
     "Some were lost (1734).:105 in all.", "They sold by 2.5.%, then more."],
)  # fmt: skip
def test_names_with_a_mark_inside_stay_whole(sentence: str) -> None:
    assert split(f"This is one. {sentence} This is another.") == ["This is one.", sentence, "This is another."]


@pytest.mark.parametrize(
    ("text", "first"),
    [("The cat sat.The dog ran.", "The cat sat."), ("It is in Paris.The dog ran.", "It is in Paris."),
     ("He said “Go!”She went.", "He said “Go!”"), ("A cat sat (1734).Weber began.", "A cat sat (1734)."),
     ("东京。大阪。", "东京。")],
)  # fmt: skip
def test_sentences_without_white_space_between_them_are_cut(text: str, first: str) -> None:
    assert split(text) == [first, text[len(first) :]]


@pytest.mark.parametrize("space", ["\u00a0", "\u2028", " \u202f"])
def test_a_single_capital_before_white_space_beyond_ascii_and_a_stop_is_read(space: str) -> None:
    for text in (
        f"A{space}.",
        f"It is vitamin A{space}.",
        f"It is vitamin A{space}. He ate it, and B{space}.\nSo did she.",
    ):
        plain = text.replace(space, space[:-1] + " ")
        assert sentence_spans(text) == sentence_spans(plain)


@given(st.text(st.sampled_from('ab. AI!?。"”)(/\n1東T\u00a0') | st.characters(), max_size=60))
def test_spans_are_in_order_and_hold_all_but_white_space(text: str) -> None:
    end = 0
    for start, stop in sentence_spans(text):
        assert end <= start < stop <= len(text)
        assert not text[end:start].strip()
        assert text[start:stop] == text[start:stop].strip()
        end = stop
    assert not text[end:].strip()


@pytest.mark.parametrize(
    "text",
    [
        "The approx. cost, incl. tax, is low.",
        "The temp. is low, as in Fig. 3 and Vol. 2.",
        "Am 3. Oktober fiel die Mauer.",
        "Seit dem 5. Mai ist der 2. Turm offen.",
        "Los EE. UU. son grandes.",
        "La Sra. Ruiz vive aquí.",
        "Это т. е. дом в г. Перми.",
        "On peut p. ex. courir.",
    ],
)
def test_the_full_stop_of_an_abbreviation_ends_no_sentence(text: str) -> None:
    assert sentence_spans(text) == [(0, len(text))]


@pytest.mark.parametrize(
    "text",
    [
        "It is in the fig. It is ripe.",
        "He came in 2020. Then he left.",
        "It was the max.\nvalues follow.",
        "I am 3. She is 5.",
    ],
)
def test_sentences_after_such_words_stay_apart(text: str) -> None:
    assert len(sentence_spans(text)) == 2
