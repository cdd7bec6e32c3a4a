"""The short answer (a name, a date) that the passages vote for, and how it is shown."""

import math
import re
from collections.abc import Sequence

from autoais.base.text.words import words
from rag.answer.generators.readings import ReadHit

# Chosen on the part `dev` of own-documents and on reader-validation.jsonl (eval/recipes):
_NONE = 3.0  # no short answer needs so many times the votes of the best one

_PATH = re.compile(r"(?:^|\s)(?:~|\.{0,2}/|[A-Za-z]:\\)\S*[\w/\\]\Z")  # at the end of a text
_REST = re.compile(r"[\w.-]*\w")
_INTERVAL = re.compile(r"[\[(][^\[\]()]*,[^\[\]()]*[\])]")  # [0, 1)
_PARTNERS = {"(": ")", "[": "]", "{": "}"}


def short_answer(read: Sequence[ReadHit]) -> tuple[ReadHit | None, float]:
    """The hit with the short answer that most passages vote for, with its share of the votes.

    None if the question seems to have no short answer. Each passage votes with its weight times the probability of its
    best span, or of no short answer.
    """
    votes: dict[str, float] = {}
    none = 0.0
    for one in read:
        none += one.weight * math.exp(one.reading.no_short)
        if one.reading.start is not None and words(one.span):
            votes[one.key] = votes.get(one.key, 0.0) + one.weight * math.exp(one.reading.answer)
    answer = max(votes, key=lambda key: votes[key], default=None)  # ties: the first hit's
    if answer is None or none > _NONE * votes[answer]:
        return None, 0.0
    best = max(
        (one for one in read if one.reading.start is not None and one.key == answer),
        key=lambda one: one.weight * math.exp(one.reading.answer),
    )
    return best, votes[answer] / (sum(votes.values()) + none)


def shown(short: ReadHit) -> str:
    """The short answer of a hit as it is shown: whole, in one line, and without a bracket that is not closed."""
    return _balanced(" ".join(_spelled_out(short).split()))


def _spelled_out(short: ReadHit) -> str:
    """The short answer; a path at its end is whole: `~/.box/box-0.7.conf` where the reader stops at `~/.box/box`.

    It has both single quotes that stand around it, or none: `message` where the reader finds `message'`.
    """
    start, end = short.reading.start or 0, short.reading.end or 0
    span = short.text[start:end]
    if len(span) > 1 and span.endswith("'") and short.text[start - 1 : start] == "'":
        return span[:-1]
    if len(span) > 1 and span.startswith("'") and short.text[end : end + 1] == "'":
        return span[1:]
    rest = _REST.match(short.text, end) if _PATH.search(span) else None
    return span if rest is None else span + rest.group()


def _balanced(text: str) -> str:
    """A text without a bracket or quote whose partner is missing: `empty)`, `(see`, `"deluge`, `mill (a house`."""
    opened, closed = _lonely(text)
    if _INTERVAL.search(text):
        return text
    if opened and 0 < opened[0] < len(text) - 1 and text[opened[0] - 1] == " ":
        return _balanced(text[: opened[0]])
    lonely = {*opened, *closed}
    if text.count('"') == 1:
        lonely.add(text.index('"'))
    return text[0 in lonely : len(text) - (len(text) - 1 in lonely)].strip()


def _lonely(text: str) -> tuple[list[int], list[int]]:
    """The places of opening and of closing brackets without a partner."""
    opened, closed = list[int](), list[int]()
    for place, character in enumerate(text):
        if character in _PARTNERS:
            opened.append(place)
        elif character in _PARTNERS.values():
            if opened and _PARTNERS[text[opened[-1]]] == character:
                opened.pop()
            else:
                closed.append(place)
    return opened, closed
