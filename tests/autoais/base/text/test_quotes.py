"""A quote is whole sentences or whole lines of a text."""

import pytest

from autoais.base.text.quotes import is_quoted

TEXT = 'The mill stood here. It burned in 1802.\nRun:\n    rag ask "why"\nIt was not (yet) rebuilt.'


@pytest.mark.parametrize(
    ("sentence", "quoted"),
    [
        ("It burned in 1802.", True),
        ("The mill  stood here.\nIt burned in 1802.", True),
        ('rag ask "why"', True),
        ('Run:\nrag ask "why"', True),
        ("It was not (yet) rebuilt.", True),
        ("The mill stood", False),
        ("rebuilt.", False),
        ("It burned in 1803.", False),
        (" ", False),
    ],
)
def test_a_quote_is_whole_sentences_or_lines(sentence: str, quoted: bool) -> None:
    assert is_quoted(sentence, TEXT) is quoted
