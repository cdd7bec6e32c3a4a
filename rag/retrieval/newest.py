"""Prefers the newest of dated documents, such as minutes and yearly price lists, unless a question names a year."""

import re
from collections.abc import Sequence

from rag.base.types import Hit, Passage, best_first

LABEL = "newest"  # in the names of retrievers that do it
Date = tuple[int, int, int]
"""Year, month and day; month or day are 0 if they are not given."""

_MIN_OVERLAP = 0.5  # of the words of two editions of a text
_PRESENT = re.compile(
    r"\b(?:now|nowadays|today|these days|at the moment|current|currently|present|presently|latest|newest|most recent"
    r"|up to date|up-to-date|in force|who(?: is|['’]s| are|['’]re))\b",
    re.IGNORECASE,
)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH_NAMES = (
    "jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    "|nov(?:ember)?|dec(?:ember)?"
)
_YEAR = r"(?P<{}>(?:19|20)\d\d)"
_DATE = re.compile(
    rf"(?<!\d){_YEAR.format('y1')}(?:[-_./]?(?P<m1>0[1-9]|1[0-2])(?:[-_./]?(?P<d1>0[1-9]|[12]\d|3[01]))?)?(?!\d)"
    rf"|(?:(?<!\d)(?P<d2>\d\d?)(?:st|nd|rd|th)?[-_., ]+)?(?<![a-z])(?P<n2>{_MONTH_NAMES})[-_., ]+"
    rf"(?:(?P<d3>\d\d?)(?:st|nd|rd|th)?[-_., ]+)?{_YEAR.format('y2')}(?!\d)",
    re.IGNORECASE,
)
_COUNTED = re.compile(r"\s+[a-z]+s\b")  # "1920 pixels"
_OF_YEAR = re.compile(
    r"(?:\b(?:in|of|for|since|from|until|till|by|during|before|after|and|or|the|year|season|edition)|[-/(])\s*\Z",
    re.IGNORECASE,
)


def find_date(text: str) -> Date | None:
    """The latest date of a text: "2025-03-14", "20250314", "14 March 2025", "march-2025" or a year alone."""
    return max((_date(match) for match in _DATE.finditer(text)), default=None)


def _names_year(question: str) -> bool:
    """Whether a question names a year: "in 1920", "minutes of March 2024"; "1920 pixels" are none."""
    return any(
        _OF_YEAR.search(question[: match.start()]) or not _COUNTED.match(question, match.end())
        for match in _DATE.finditer(question)
    )


def _date(match: re.Match[str]) -> Date:
    if match["y1"]:
        return int(match["y1"]), int(match["m1"] or 0), int(match["d1"] or 0)
    return int(match["y2"]), _MONTHS.index(match["n2"][:3].lower()) + 1, int(match["d2"] or match["d3"] or 0)


def date_of(passage: Passage) -> Date | None:
    """The date of a passage's document: the latest one in its path, else in its headings."""
    name, _, _ = passage.id.rpartition("#")
    name = name.partition(":")[2] or name  # without the name of one of several indexes (`rag.index.joined`)
    return find_date(name) or find_date(passage.headings)


def lower_older(question: str, hits: Sequence[Hit], by: float) -> list[Hit]:
    """Sort hits again: older documents lose up to `by`, the oldest most.

    For a question about the present, all dated documents are compared. For others that name no year, a passage is
    compared with those that say nearly the same under the same names without dates, such as the price lists of two
    years. The newest loses nothing, and neither does a document without a date, which is taken to be up to date.
    """
    if _names_year(question):
        return list(hits)
    dates = [date_of(hit.passage) for hit in hits]
    groups = [tuple(range(len(hits)))] if _PRESENT.search(question) else _group_editions(hits, dates)
    losses = [0.0] * len(hits)
    for group in groups:
        newest_first = sorted({date for n in group if (date := dates[n]) is not None}, reverse=True)
        for n in group:
            date = dates[n]
            if date is not None and len(newest_first) > 1:
                losses[n] = by * newest_first.index(date) / (len(newest_first) - 1)
    return best_first(Hit(hit.passage, hit.score - loss) for hit, loss in zip(hits, losses, strict=True))


def _group_editions(hits: Sequence[Hit], dates: Sequence[Date | None]) -> list[tuple[int, ...]]:
    """The places of hits that are editions of one text: alike, with the same file name and headings but for dates."""
    by_names: dict[tuple[str, str], list[int]] = {}
    for n, (hit, date) in enumerate(zip(hits, dates, strict=True)):
        if date is not None:
            name, _, _ = hit.passage.id.rpartition("#")
            by_names.setdefault((_without_dates(name), _without_dates(hit.passage.headings)), []).append(n)
    groups = []
    for places in by_names.values():
        newest_words = _words(hits[max(places, key=lambda n: (dates[n], -n))].passage.text)
        alike = [n for n in places if _overlap(_words(hits[n].passage.text), newest_words) >= _MIN_OVERLAP]
        groups.append(tuple(alike))
    return groups


def _without_dates(text: str) -> str:
    return re.sub(r"\d+", "", _DATE.sub("", text)).casefold()


def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", text.casefold()))


def _overlap(first: frozenset[str], second: frozenset[str]) -> float:
    """The share of the words of both that both have (Jaccard)."""
    return len(first & second) / max(1, len(first | second))
