"""Sentences and shared words of a source, character by character."""

from hypothesis import given
from hypothesis import strategies as st

from rag.annotate.highlight import content_words, pieces, segments


@given(st.text(alphabet=st.sampled_from("ab .!?\n\r\t\U0001f600é\u0301Z中。\"'"), max_size=80), st.booleans())
def test_segments_are_the_text(text: str, marked: bool) -> None:
    found = segments(text, content_words(text) if marked else frozenset())
    assert "".join(piece.text for one in found for piece in one.pieces) == text
    assert [one.start for one in found] == [0, *(one.end for one in found)][: len(found)]
    assert all("".join(piece.text for piece in one.pieces) == text[one.start : one.end] for one in found)


def test_sentences_can_be_chosen_and_the_space_between_cannot() -> None:
    text = "A 😀 bridge opened.  It is old."
    assert [(text[one.start : one.end], one.is_sentence) for one in segments(text)] == [
        ("A 😀 bridge opened.", True),
        ("  ", False),
        ("It is old.", True),
    ]


def test_words_that_the_answer_shares_are_marked_by_their_stems() -> None:
    words = content_words("The bridges were opened in 1931.")
    found = list(pieces("It was an opening: the bridge, of 1931.", words))
    assert [one.text for one in found if one.is_shared] == ["opening", "bridge", "1931"]
    assert not any(one.is_shared for one in pieces("the bridge", frozenset()))
