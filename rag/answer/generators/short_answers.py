"""The short answer (a name, a date) that the passages vote for, and how it is shown."""

import math
import re
from collections.abc import Sequence

from autoais.base.text.words import words
from rag.answer.generators.readings import ReadHit

# Chosen on the part `dev` of own-documents and on reader-validation.jsonl (eval/recipes):
_NO_ANSWER_FACTOR = 3.0  # no short answer needs so many times the votes of the best one

PATH_END = re.compile(r"(?:^|\s)(?:~|\.{0,2}/|[A-Za-z]:\\)\S*[\w/\\]\Z")
_PATH_TAIL = re.compile(r"[\w.-]*\w")
_INTERVAL = re.compile(r"[\[(][^\[\]()]*,[^\[\]()]*[\])]")  # [0, 1)
_PARTNERS = {"(": ")", "[": "]", "{": "}"}


def short_answer(read_passages: Sequence[ReadHit]) -> tuple[ReadHit | None, float]:
    """The hit with the short answer that most passages vote for, with its share of the votes.

    None if the question seems to have no short answer. Each passage votes with its weight times the probability of its
    best span, or of no short answer.
    """
    votes: dict[str, float] = {}
    no_answer_votes = 0.0
    for passage in read_passages:
        no_answer_votes += passage.weight * math.exp(passage.reading.no_short)
        if passage.reading.start is not None and words(passage.span):
            votes[passage.key] = votes.get(passage.key, 0.0) + passage.weight * math.exp(passage.reading.answer)
    answer = max(votes, key=lambda key: votes[key], default=None)  # ties: the first hit's
    if answer is None or no_answer_votes > _NO_ANSWER_FACTOR * votes[answer]:
        return None, 0.0
    best = max(
        (passage for passage in read_passages if passage.reading.start is not None and passage.key == answer),
        key=lambda passage: passage.weight * math.exp(passage.reading.answer),
    )
    return best, votes[answer] / (sum(votes.values()) + no_answer_votes)


def format_short_answer(short: ReadHit) -> str:
    """The short answer of a hit as it is shown: whole, in one line, and without a bracket that is not closed."""
    return _remove_lonely_brackets(" ".join(_complete_span(short).split()))


def _complete_span(short: ReadHit) -> str:
    """The short answer; a path at its end is whole: `~/.box/box-0.7.conf` where the reader stops at `~/.box/box`.

    It has both single quotes that stand around it, or none: `message` where the reader finds `message'`.
    """
    start, end = short.reading.start or 0, short.reading.end or 0
    span = short.text[start:end]
    if len(span) > 1 and span.endswith("'") and short.text[start - 1 : start] == "'":
        return span[:-1]
    if len(span) > 1 and span.startswith("'") and short.text[end : end + 1] == "'":
        return span[1:]
    tail = _PATH_TAIL.match(short.text, end) if PATH_END.search(span) else None
    return span if tail is None else span + tail.group()


def _remove_lonely_brackets(text: str) -> str:
    """A text without a bracket or quote whose partner is missing: `empty)`, `(see`, `"deluge`, `mill (a house`."""
    opening, closing = _find_lonely_brackets(text)
    if _INTERVAL.search(text):
        return text
    if opening and 0 < opening[0] < len(text) - 1 and text[opening[0] - 1] == " ":
        return _remove_lonely_brackets(text[: opening[0]])
    lonely = {*opening, *closing}
    if text.count('"') == 1:
        lonely.add(text.index('"'))
    return text[0 in lonely : len(text) - (len(text) - 1 in lonely)].strip()


def _find_lonely_brackets(text: str) -> tuple[list[int], list[int]]:
    """The places of opening and of closing brackets without a partner."""
    opening, closing = list[int](), list[int]()
    for position, character in enumerate(text):
        if character in _PARTNERS:
            opening.append(position)
        elif character in _PARTNERS.values():
            if opening and _PARTNERS[text[opening[-1]]] == character:
                opening.pop()
            else:
                closing.append(position)
    return opening, closing
