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


def find_nuggets(text: str, nuggets: Nuggets) -> list[bool]:
    """Say of each nugget whether the text contains one of its phrases, as whole words, without case and punctuation."""
    haystack, plain = _pad_words(text), normalize("NFC", text).casefold()
    return [any(_in(phrase, haystack, plain) for phrase in phrases) for phrases in nuggets]


def first_words(text: str, limit: int) -> str:
    """The text up to its word number `limit`, with its white space."""
    end = None
    for number, word in enumerate(re.finditer(r"\S+", text), 1):
        if number > limit:
            break
        end = word.end()
    return text[:end] if end is not None else ""


def _in(phrase: str, haystack: str, plain: str) -> bool:
    needle = _pad_words(phrase)
    return needle in haystack if needle.strip() else bool(phrase) and normalize("NFC", phrase).casefold() in plain


def _pad_words(text: str) -> str:
    return f" {' '.join(_token().findall(normalize('NFC', text).casefold()))} "
