"""Texts folded, so that equal answers and equal questions are found."""

import re
import string
import unicodedata
from functools import cache

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalize_answer(text: str) -> str:
    """Normalise as SQuAD does: lower case, no ASCII punctuation, no a/an/the, single spaces."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def questions_key(text: str) -> str:
    """The key of a question for overlap checks: NFKC, lower case, no punctuation or articles, single spaces."""
    return normalize_answer(unicodedata.normalize("NFKC", text))


@cache
def combining_marks() -> str:
    """All combining marks, which Python's `\\w` lacks: without them an accent ends a word."""
    return "".join(c for c in map(chr, range(0x300, 0x20000)) if unicodedata.category(c).startswith("M"))
