"""Doubts about a short answer: it answers another question, or is cut out of a name, whatever the passages' votes say.

The rules are few and general; each looks only at the question, the short answer and its passage.
"""

import math
import re
import unicodedata
from collections.abc import Iterable, Iterator

from autoais.base.text.words import content_stems, idf, words
from rag.answer.generators.answer_types import MONEY, has_numeric, numeric_type
from rag.answer.generators.readings import ReadHit
from rag.answer.generators.short_answers import PATH_END
from rag.answer.generators.units import ROW

_DATE = re.compile(r"(?=.*\d{4})\d{1,4}([-/.])\d{1,2}\1\d{1,4}")
_CLOCK = re.compile(r"\d{1,2}:\d\d")
_JOINS_BEFORE = re.compile(r"[A-Z\d]-\Z|\d:\Z|\w[/.@_]\Z")  # "COVID-", "5230:", "v2."; not "mid-1990s", "fee:30"
_JOINS_AFTER = re.compile(r"[-:/]\d|[.@_]\w")  # not "50-year", "$30/month"
_WORD_JOINS = re.compile(r"[.@_]")  # those that make a name of letters alone: "setup.py" is one, "Oak/Elm" is not
_AROUND = ".,;:!?()[]{}\"'`“”‘’"
_BARE_NUMBER = re.compile(r"\d[\d.:/-]*")
_LABEL = re.compile(  # what makes the number after it a name: "section 4.2", "ISO 5230"
    r"\b([A-Z]{2,}|(?i:section|chapter|version|page|figure|table|appendix|article|clause|step))\s\Z"
)

_MAX_LABEL_LENGTH = 12  # characters, with the blank after it

_NUMBER = re.compile(r"(?<![\w.,])\d[\d.,]+(?<![.,])")  # not "2", which a passage may write "two", "II" or "second"
_MONTH = re.compile(
    r"(?<!^)(?<![.?!:]\s)\b(January|February|March|April|May|June|July|August|September|October|November|December)\b"
)

_TIMES = {"before": "after", "after": "before|during", "during": "after|before"}  # a condition, and other ones
_LIMITS = {
    "minimum|at least": "maximum|at most",
    "maximum|at most": "minimum|at least",
    "weekdays?": "weekends?",
    "weekends?": "weekdays?",
}
_MAX_CONDITION_LENGTH = 40  # characters after "before" that say before what
_CONDITION = re.compile(r"before|after|during|until|without|except")
_CONDITION_WEIGHT = 10.0  # beside the weights of other words, of which rare ones have so much
_UP_TO_NUMBER = re.compile(r"\A\D*\d[\d.,]*")
_CLAUSE_END = re.compile(r"[;,:.]\s|\s(?:and|but|or|while)\s")
_MEASURE = re.compile(r"(\W?)\d[\d.,]*\s?(%|[^\W\d]+)?")


def has_doubt(question: str, short: ReadHit) -> bool:
    """Whether the short answer of a hit should not be shown by itself.

    It is a part of an identifier ("2020" of "ISO 5230:2020"), no amount of money though one is asked for, or of another
    condition: its passage lacks a number or month of the question, its sentence has "after" where the question has
    "before", or another clause of its sentence has the question's word and a number of the same measure.
    """
    if short.reading.start is None:
        return False
    numeric = numeric_type(question)
    return (
        _is_in_identifier(question, short)
        or (numeric is not None and not has_numeric(numeric, short.span))
        or _lacks_number(question, short)
        or _is_of_other_condition(question, short)
    )


def _is_in_identifier(question: str, short: ReadHit) -> bool:
    """Whether it is a piece of a longer name, path or number, or the number that a name ends with."""
    before, span, after = _split(short)
    if PATH_END.search(span) or _CLOCK.fullmatch(span):  # a path is shown whole; "8:00" of "8:00-9:30" is no piece
        return False
    label = _LABEL.search(before[-_MAX_LABEL_LENGTH:])
    if label is not None and _BARE_NUMBER.fullmatch(span) and numeric_type(question) != MONEY:
        return label[1].casefold() not in question.casefold()
    first, last = before.split(" ")[-1].split("\n")[-1], re.split(r"\s", after, maxsplit=1)[0]
    token = f"{first}{span}{last}".strip(_AROUND)
    if not (_JOINS_BEFORE.search(before[-2:]) or _JOINS_AFTER.match(after)) or _DATE.fullmatch(token):
        return False
    return any(character.isdigit() for character in token) or _WORD_JOINS.search(f"{first[-2:]} {last[:2]}") is not None


def _split(short: ReadHit) -> tuple[str, str, str]:
    """The text before the short answer, the short answer and the text after it."""
    start, end = short.reading.start or 0, short.reading.end or 0
    return short.text[:start], short.text[start:end], short.text[end:]


def _lacks_number(question: str, short: ReadHit) -> bool:
    """Whether its passage, with title and headings, lacks a number or a month of the question."""
    contents = short.hit.passage.contents
    return not _numbers(question) <= _numbers(contents) or any(
        not re.search(rf"\b{month[:3]}", contents) for month in _MONTH.findall(question)
    )


def _numbers(text: str) -> set[str]:
    return {number.replace(",", "") for number in _NUMBER.findall(text)}


def _is_of_other_condition(question: str, short: ReadHit) -> bool:
    start, end = short.reading.start or 0, short.reading.end or 0
    unit = next((unit for unit in short.units if unit.start <= start < unit.end), None)
    if unit is None:
        return False
    sentence = short.text[unit.start : unit.end]
    if any(
        _says(question, limit)
        and not _says(question, opposite)
        and _says(sentence, opposite)
        and not _says(sentence, limit)
        for limit, opposite in _LIMITS.items()
    ):
        return True
    if any(
        _says(question, time) and not _says(sentence, time) and _names_condition(sentence, other_times, question)
        for time, other_times in _TIMES.items()
    ):
        return True
    if unit.kind == ROW:
        return False
    return _is_of_other_clause(question, short, sentence, start - unit.start, min(end, unit.end) - unit.start)


def _says(text: str, words: str) -> bool:
    return re.search(rf"\b(?:{words})\b", text, re.IGNORECASE) is not None


def _names_condition(sentence: str, conditions: str, question: str) -> bool:
    """Whether a sentence says "during" of what the question says "after"."""
    return any(
        not set(content_stems(question)).isdisjoint(content_stems(match[1]))
        for match in re.finditer(
            rf"\b(?:{conditions})\b([^,;:.]{{0,{_MAX_CONDITION_LENGTH}}})", sentence, re.IGNORECASE
        )
    )


def _is_of_other_clause(question: str, short: ReadHit, sentence: str, start: int, end: int) -> bool:
    """Whether another clause has words of the question that its own lacks, and a number of the same measure.

    "12 months at Oak Street and 18 months at Elm Street", asked about Elm Street. What an earlier clause says before
    its number, and the headings, may be said of all: "It closes at 8:00, on Sundays at 7:00".
    """
    if not re.search(r"\d", sentence[start:end]):
        return False
    measure = _measures(sentence[max(start - 1, 0) :])[0]
    question_words = _clause_words(question) - _clause_words(short.hit.passage.headings)
    own_words, other_clauses = set[str](), []
    for begin, stop in _clauses(sentence):
        clause = sentence[begin:stop]
        if begin < end and start < stop:
            own_words |= question_words & _clause_words(clause)
        elif measure in _measures(clause):
            other_clauses.append(_UP_TO_NUMBER.sub("", clause) if stop <= start else clause)
    return any(
        _weight(question_words & clause_words - own_words) > _weight(own_words - clause_words)
        for clause_words in map(_clause_words, other_clauses)
    )


def _weight(clause_words: Iterable[str]) -> float:
    # Exact, as words come in any order and a rounding error would decide between equal weights.
    return math.fsum(_CONDITION_WEIGHT if _CONDITION.fullmatch(word) else idf(word) for word in clause_words)


def _clauses(sentence: str) -> Iterator[tuple[int, int]]:
    begin = 0
    for match in _CLAUSE_END.finditer(sentence):
        yield begin, match.start()
        begin = match.start()
    yield begin, len(sentence)


def _clause_words(text: str) -> set[str]:
    """The content words of a text, and its words for a condition."""
    return {*content_stems(text), *(match.group() for word in words(text) if (match := _CONDITION.match(word)))}


def _measures(text: str) -> list[str]:
    """What each number of a text measures: the sign before it ("$") or the word after it, "" if there is neither."""
    return [
        sign if unicodedata.category(sign or " ") == "Sc" else (word or "").casefold().removesuffix("s")
        for sign, word in _MEASURE.findall(text)
    ]
