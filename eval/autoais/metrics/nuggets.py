"""Nugget recall: how much of what a right answer must contain an answer contains (Voorhees 2003, TREC QA).

A nugget is a list of alternative phrases, any of which is enough; all nuggets are vital.
"""

import re
from collections.abc import Sequence
from functools import cache
from unicodedata import normalize

from autoais.base.text.folding import combining_marks

Nuggets = Sequence[Sequence[str]]


@cache
def _token() -> re.Pattern[str]:
    """A word with its combining marks, or an option with its dashes ("--exclude", "-v")."""
    word = rf"[\w{re.escape(combining_marks())}]+"
    return re.compile(rf"(?<![\w-])-{{1,2}}(?=\w){word}|{word}")


def nuggets_found(text: str, nuggets: Nuggets) -> list[bool]:
    """Say of each nugget whether the text contains one of its phrases, as whole words, without case and punctuation."""
    there, plain = _padded(text), normalize("NFC", text).casefold()
    return [any(_in(phrase, there, plain) for phrase in phrases) for phrases in nuggets]


def first_words(text: str, most: int) -> str:
    """The text up to its word number `most`, with its white space."""
    end = None
    for number, word in enumerate(re.finditer(r"\S+", text), 1):
        if number > most:
            break
        end = word.end()
    return text[:end] if end is not None else ""


def _in(phrase: str, there: str, plain: str) -> bool:
    needle = _padded(phrase)
    return needle in there if needle.strip() else bool(phrase) and normalize("NFC", phrase).casefold() in plain


def _padded(text: str) -> str:
    return f" {' '.join(_token().findall(normalize('NFC', text).casefold()))} "
