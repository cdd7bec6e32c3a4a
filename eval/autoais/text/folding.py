"""Texts folded, so that equal answers and equal questions are found."""

import re
import string
import unicodedata

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalize_answer(text: str) -> str:
    """Normalise as SQuAD does: lower case, no ASCII punctuation, no a/an/the, single spaces."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def questions_key(text: str) -> str:
    """The key of a question for overlap checks: NFKC, lower case, no punctuation or articles, single spaces."""
    return normalize_answer(unicodedata.normalize("NFKC", text))
