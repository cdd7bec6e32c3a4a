"""Nugget recall: how much of what a right answer must contain an answer contains (Voorhees 2003, TREC QA).

A nugget of a question is a list of alternative phrases, any of which is enough; all nuggets are vital. Nuggets that
were assigned to an answer are scored as AutoNuggetizer scores them (Pradeep et al. 2024; castorini/nuggetizer,
src/nuggetizer/core/metrics.py).
"""

import re
from collections.abc import Iterable, Sequence
from functools import cache
from unicodedata import normalize

from autoais.base.text.folding import combining_marks

Nuggets = Sequence[Sequence[str]]
NUGGET_SCORES = ("strict_vital_score", "strict_all_score", "vital_score", "all_score")
_CREDIT = {"support": 1.0, "partial_support": 0.5}


@cache
def _token() -> re.Pattern[str]:
    """A word with its combining marks, or an option with its dashes ("--exclude", "-v")."""
    word = rf"[\w{re.escape(combining_marks())}]+"
    return re.compile(rf"(?<![\w-])-{{1,2}}(?=\w){word}|{word}")


def find_nuggets(text: str, nuggets: Nuggets) -> list[bool]:
    """Say of each nugget whether the text contains one of its phrases, as whole words, without case and punctuation."""
    haystack, plain = _pad_words(text), normalize("NFC", text).casefold()
    return [any(_in(phrase, haystack, plain) for phrase in phrases) for phrases in nuggets]


def score_assignments(nuggets: Iterable[tuple[str, str]]) -> dict[str, float]:
    """Return `NUGGET_SCORES` of an answer, each 0 to 1, from importance and assignment of its nuggets.

    Strict scores are the share of nuggets with full support; in the others, partial support counts half. A failed
    assignment counts as none, and a nugget of failed importance is not vital. Without nuggets, or without vital ones, a
    score is 0.
    """
    listed = list(nuggets)
    scores = {}
    for name, group in (("vital", [a for i, a in listed if i == "vital"]), ("all", [a for _, a in listed])):
        size = max(len(group), 1)
        scores[f"strict_{name}_score"] = group.count("support") / size
        scores[f"{name}_score"] = sum(_CREDIT.get(assignment, 0.0) for assignment in group) / size
    return {name: scores[name] for name in NUGGET_SCORES}


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
