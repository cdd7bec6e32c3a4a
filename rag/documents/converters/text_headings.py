"""Titles and headings of plain text."""

import re
from bisect import bisect_left
from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from rag.documents.blocks import Block, Kind, heading, squeezed, with_bare_headings
from rag.documents.converters.text_chunks import Chunk
from rag.documents.converters.text_lines import (
    BULLET,
    CHAPTER,
    GAP,
    GOES_ON,
    LABEL,
    NARROW,
    NUMBERED,
    RULE,
    are_narrow,
    indent_of,
    wordy,
)
from rag.documents.titles import is_generic

_DATE = re.compile(  # "6 October 2025" has no number of a heading
    r"(?:January|February|March|April|May|June|July|August|September|October|November|December)\b|.*\b(?:19|20)\d\d$"
)
_ARTICLE = re.compile(r"(?:article|section|annex|schedule|artikel|clause)\s+[\dIVX]", re.IGNORECASE)
_PARAGRAPH = re.compile(  # "§ 3 Notice", "Article 3", "Article 3: Notice"
    r"\s*(?:§ ?\d{1,4}[a-z]?|(?i:article|artikel|clause|annex|schedule) (?:\d{1,3}|[IVX]{1,5}))\b\W*(?:$|(?=[A-ZÄÖÜ]))"
)
_PART = re.compile(  # "CHAPTER 1. The Storm.", "Chapter IV" of a book
    r"\s*(book|volume|part|chapter|letter|canto|act|scene|appendix)\s+(\d{1,3}|[ivxlc]{1,8})\b[.:]?\s*(?:[–—-]\s*)?(.*)",
    re.IGNORECASE,
)
_PARTS = ("volume", "book", "part", "act")  # what is parted in chapters and the like
_COUNTED = re.compile(r"\s*(\d{1,3})\.\s+([A-Z].*?)\.?")  # "11. Patents."
_CLOSING = "\"'”’»)]}"
_SENTENCES = re.compile(r"[^\W\d_]{3}[.!?][\"'”’»)\]}]* +[\"'“‘«(\[{]*[^\W\d_a-z]")  # an end and a beginning
_STEP = re.compile(r"\s*(\d{1,2})[.)]\s")
_VERSION = re.compile(  # "2.1.10", "v1.4 (2024-05-06)", "Version 2.0b1 - unreleased", alone on its line
    r"(?:(?:version|release)\s{1,3}v?|v)?\d{1,4}(?:\.\d{1,8}){1,4}[\w.+-]{0,12}"
    r"(?:[ ,:(\[–—-]{1,5}(?:[\w ,./-]{0,24}\b(?:19|20)\d\d\b[\w ,./-]{0,12}|unreleased|in development)[)\]]?)?:?",
    re.IGNORECASE,
)
_SMALL = frozenset("a an and as at by for from in into is nor not of on or per the this to with your".split())
_ROMAN = {"i": 1, "v": 5, "x": 10, "l": 50, "c": 100}
_SIDE = 8  # spaces before a line in the middle, at least
_OFF = 4  # characters that its middle may be away from that of the text
_NO_TITLE = re.compile(r"[$=<>{}\[\]|\\/_#~]|\w[:(]\w|  |\.{3}|(?:fig(?:ure)?|table|listing)\b", re.IGNORECASE)
_TITLE_WORDS = 5  # of one without a mark
_NUMBERED_WORDS = 25  # of one such as 2.1
_HEADLINE_WORDS = 10  # of the first line of a text


def titled(text: str, blocks: Sequence[Block]) -> tuple[str, list[Block]]:
    """The title of a plain text ("" if it has none) and its blocks without it.

    That is the only heading of the top rank at the beginning, or a first line above all others: a heading that has no
    text of its own before the next of its rank, or a line that stands alone and is no sentence. Another heading without
    text stays as a line of text.
    """
    headings = [block for block in blocks if block.kind is Kind.HEADING]
    first = blocks[0] if blocks else None
    if first is None or len(blocks) == 1:
        return "", [*with_bare_headings(blocks)]
    title = ""
    if first.kind is Kind.HEADING:
        same = sum(block.level <= first.level for block in headings)
        following = blocks[1]
        over = following.kind is Kind.HEADING and following.level <= first.level
        others = headings[1:]
        if first.text.isupper() and all(not one.text.isupper() or _ARTICLE.match(one.text) for one in others):
            over = True  # capitals that stand above numbers
        over = over or _is_in_middle(text)
        if (same == 1 or over) and not (first.level > 1 and is_generic(first.text)):
            title = first.text
    elif _is_title_line(text, first) and sum(block.level == 1 for block in headings) != 1:
        title = first.text
    return title, [*with_bare_headings(blocks[1:] if title else blocks)]


def _is_title_line(text: str, first: Block) -> bool:
    """Whether the first block is a line that stands alone and may be a title."""
    start = text.lstrip().splitlines()
    line = start[0].strip()
    words = line.split()
    return (
        first.kind is Kind.TEXT
        and squeezed(line) == first.text
        and len(start) > 1
        and not start[1].strip()
        and len(line) > 1
        and len(words) <= _HEADLINE_WORDS
        and (line[0].isupper() or line[0].isdigit())
        and (line[-1].isalnum() or line[-1] in ')?”"')
        and not LABEL.match(line)
        and not _DATE.search(line)
        and sum(map(str.isalpha, line)) >= 0.5 * len(line)
    )


def _is_in_middle(text: str) -> bool:
    """Whether a text begins with a line far from the edge."""
    return indent_of(text.lstrip("\n\f").partition("\n")[0]) >= _SIDE


def with_titles(chunks: Sequence[Chunk], base: int) -> list[Chunk]:
    """The chunks, with short lines as headings that stand between paragraphs, or lists, if there are two or more."""
    said = [_is_paragraph(chunk, base) for chunk in chunks]
    listed = [_is_listed(chunk) for chunk in chunks]
    above = {  # a list, such as `Drinks` above its prices
        place
        for place in range(len(chunks) - 1)
        if _may_be_title(chunks[place], base) and listed[place + 1] and (place < 2 or listed[place - 1])
    }
    titles = {
        place
        for place in range(len(chunks) - 1)
        if _may_be_title(chunks[place], base) and said[place + 1] and (not place or said[place - 1])
    }
    titles = (titles if len(titles) > 1 else set()) | (above if len(above) > 1 else set())
    return [replace(chunk, title=True) if place in titles else chunk for place, chunk in enumerate(chunks)]


def with_series(chunks: Sequence[Chunk], base: int) -> list[Chunk]:
    """The chunks, with lines that stand alone and are counted as headings: `CHAPTER 1. The Storm.`, `11. Patents.`

    A number alone needs two others like it whose words have capitals, as the steps of a list are counted too.
    """
    found: dict[str, list[tuple[int, int, str]]] = {}  # places, numbers and names, by the kind of the mark
    for place, chunk in enumerate(chunks[:-1]):
        first, *more = (line.strip() for line in chunk.lines)
        if chunk.term or chunk.title or len(more) > 1 or len(first.split()) > _HEADLINE_WORDS + 2:
            continue
        if (mark := _PART.fullmatch(first)) and first[0].isupper() and (not more or not mark[3]):
            kind, name = mark[1].lower(), mark[3] or " ".join(more) or mark[0].strip()
            if not more or _is_title(more[0]):
                found.setdefault(f"{kind} {chunk.indent}", []).append((place, _value(mark[2]), name))
        elif (mark := _COUNTED.fullmatch(first)) and not more and _is_title(mark[2]):
            below = chunks[place + 1]
            if min(map(indent_of, below.lines)) <= chunk.indent <= base + 4 and any(map(wordy, below.lines)):
                found.setdefault(f"number {chunk.indent}", []).append((place, int(mark[1]), mark[2]))
    series = {kind: _counted(marks) for kind, marks in found.items()}
    series = {kind: marks for kind, marks in series.items() if len(marks) > 1 + kind.startswith("number")}
    lower = any(kind.startswith(_PARTS) for kind in series)
    titles = {
        place: replace(chunks[place], lines=(name.rstrip(" ."),), title=True, level=level)
        for kind, marks in series.items()
        for level in [3 if lower and not kind.startswith(_PARTS) else 2]
        for place, _, name in marks
    }
    return [titles.get(place, chunk) for place, chunk in enumerate(chunks)]


def with_versions(chunks: Sequence[Chunk]) -> list[Chunk]:
    """The chunks, with the numbers of versions as headings that stand above lists, if there are two or more."""
    places = {place for place, chunk in enumerate(chunks) if _is_version(chunk, chunks[place + 1 : place + 2])}
    if len(places) < 2:
        return [*chunks]
    found: list[Chunk] = []
    for place, chunk in enumerate(chunks):
        if place not in places:
            found.append(chunk)
            continue
        first, *rest = chunk.lines
        found.append(replace(chunk, lines=(first,), title=True, level=2))
        if rest:
            found.append(replace(chunk, lines=tuple(rest), indent=indent_of(rest[0])))
    return found


def _is_version(chunk: Chunk, following: Sequence[Chunk]) -> bool:
    """Whether a chunk begins with the number of a version, and a list or indented lines follow."""
    below = chunk.lines[1] if len(chunk.lines) > 1 else next((one.lines[0] for one in following), "")
    listed = BULLET.match(below) is not None or indent_of(below) > chunk.indent
    return listed and not (chunk.term or chunk.title) and _VERSION.fullmatch(chunk.lines[0].strip()) is not None


def _value(number: str) -> int:
    """What a number in digits or in Roman letters counts."""
    if number.isdigit():
        return int(number)
    values = [*map(_ROMAN.__getitem__, number.lower()), 0]
    return sum(-one if one < after else one for one, after in pairwise(values))


def _counted(marks: Sequence[tuple[int, int, str]]) -> list[tuple[int, int, str]]:
    """The marks whose number is one more than that of the mark before, or one less than that of the next."""
    follows = [after[1] == before[1] + 1 for before, after in pairwise(marks)]
    return [mark for mark, *near in zip(marks, [False, *follows], [*follows, False], strict=True) if any(near)]


def _is_title(line: str) -> bool:
    """Whether a short line has capitals as titles have, and is no sentence."""
    words = [word for word in line.strip(" .").split() if word[0].isalpha()]
    capitals = sum(word[0].isupper() for word in words)
    small = sum(word in _SMALL for word in words)
    return (
        0 < len(words) <= _HEADLINE_WORDS
        and line[-1] not in ",;:!?"
        and capitals + small == len(words)
        and capitals > 0
    )


def with_centred(chunks: Sequence[Chunk], base: int, width: int) -> list[Chunk]:
    """The chunks, with a line in the middle of the page as a heading; the first chunk may have others below it."""
    found: list[Chunk] = []
    for place, chunk in enumerate(chunks):
        below = chunks[place + 1] if place + 1 < len(chunks) else None
        if not _is_centred(chunk, base, width) or below is None or (place and len(chunk.lines) > 1):
            found.append(chunk)
        elif not place:
            first, *more = chunk.lines
            found.append(replace(chunk, lines=(first,), title=True, level=1))
            found += (replace(chunk, lines=(line.strip(),), indent=base) for line in more)
        elif _is_title(chunk.lines[0].strip()) and (
            below.title or (below.indent <= chunk.indent - _OFF and any(map(wordy, below.lines)))
        ):
            found.append(replace(chunk, title=True, level=2))
        else:
            found.append(chunk)
    return found


def _is_centred(chunk: Chunk, base: int, width: int) -> bool:
    """Whether short lines without the signs of code stand in the middle, and begin as a title does."""
    if chunk.term or chunk.title or len(chunk.lines) > 4 or chunk.indent < base + _SIDE:
        return False
    first = chunk.lines[0].strip()
    if not first[0].isupper() or len(first.split()) > _HEADLINE_WORDS or first[-1] in ".,;:" or _NO_TITLE.search(first):
        return False
    letters = sum(map(str.isalpha, first))
    if letters < 0.6 * len(first.replace(" ", "")) or any(map(RULE.fullmatch, chunk.lines)):
        return False
    middle = (base + max(width, NARROW)) / 2
    return all(abs((indent_of(line) + len(line)) / 2 - middle) <= _OFF for line in chunk.lines)


def below_numbers(chunks: Sequence[Chunk], base: int) -> dict[int, int]:
    """The levels of headings in capitals that stand between numbered ones, and so below them, by their places.

    None if such a heading stands above all numbers, as it is of their rank then.
    """
    numbered: dict[int, int] = {}
    capitals: list[int] = []
    for place, chunk in enumerate(chunks):
        if (
            chunk.title
            or chunk.term
            or not _heading_lines(chunk.lines, base)
            or (len(chunk.lines) > 1 and RULE.fullmatch(chunk.lines[1]))
        ):
            continue
        if (number := NUMBERED.match(chunk.lines[0])) is not None:
            numbered[place] = 2 + number[1].count(".") - ("." in number[1] and number[1][0].isalpha())
        elif chunk.lines[0].isupper() and not CHAPTER.match(chunk.lines[0]):
            capitals.append(place)
    if len(numbered) < 2 or any(0 < place < next(iter(numbered)) for place in capitals):
        return {}
    places = [*numbered]
    return {
        place: 1 + numbered[places[bisect_left(places, place) - 1]]
        for place in capitals
        if places[0] < place < places[-1]
    }


def _is_listed(chunk: Chunk) -> bool:
    """Whether lines are the items of a list, or stand by themselves."""
    lines = [line.strip() for line in chunk.lines]
    if chunk.term or chunk.title or len(lines) < 2 or lines[0].isupper():
        return False
    return all(map(BULLET.match, lines)) or all(map(GAP.search, lines)) or are_narrow(lines)


def _may_be_title(chunk: Chunk, base: int) -> bool:
    line = chunk.lines[0].strip()
    words = line.split()
    return (
        len(chunk.lines) == 1
        and not chunk.signs
        and chunk.indent == base
        and len(words) <= _TITLE_WORDS
        and line[0].isupper()
        and all(word[0].isalpha() for word in words)
        and line[-1].isalpha()
    )


def _is_paragraph(chunk: Chunk, base: int) -> bool:
    return (
        not (chunk.term or chunk.title)
        and chunk.indent == base
        and chunk.lines[-1][-1] in ".!?"
        and not BULLET.match(chunk.lines[0])
        and any(map(wordy, chunk.lines))
    )


def underlined(lines: list[str], rules: list[tuple[str, bool]]) -> Generator[Block, None, list[str]]:
    """Yield the headings that have a line of signs below (and above) them; return the other lines."""
    above = len(lines) >= 3 and RULE.fullmatch(lines[0]) is not None and lines[0].strip() == lines[2].strip()
    if above:
        del lines[0]
    rule = RULE.fullmatch(lines[1]) if len(lines) >= 2 and not RULE.fullmatch(lines[0]) else None
    if rule is not None and len(lines[1].strip()) >= 0.5 * len(lines[0].strip()):
        rank = rule[1], above
        if rank not in rules:
            rules.append(rank)
        yield heading(squeezed(lines[0]), min(rules.index(rank) + 1, 6))
        del lines[:2]
    return [line for line in lines if not RULE.fullmatch(line)]


def first_heading(lines: list[str], base: int, level: int) -> Iterator[Block]:
    """The heading that lines begin with, if there is one, which they lose; `level` is that of one without a number."""
    if count := _heading_lines(lines, base):
        text = " ".join(lines[:count])
        number = CHAPTER.match(text) or NUMBERED.match(text)
        if number:  # "A.1" stands where "1" does: "A." is no heading
            level = 2 + number[1].count(".") - ("." in number[1] and number[1][0].isalpha())
        yield heading(squeezed(text[number.end() :] if number else text), min(level, 6))
        del lines[:count]


def is_step(chunks: Sequence[Chunk], place: int) -> bool:
    """Whether a chunk is one of counted paragraphs: the next number stands directly below, or the last one above."""
    number = _number_of(chunks, place)
    if number is None:
        return False
    near = ((place - 1, number - 1), (place + 1, number + 1))
    return any(_number_of(chunks, other) == wanted and _is_said(chunks[other]) for other, wanted in near)


def _number_of(chunks: Sequence[Chunk], place: int) -> int | None:
    found = _STEP.match(chunks[place].lines[0]) if 0 <= place < len(chunks) and chunks[place].lines else None
    return int(found[1]) if found else None


def _is_said(chunk: Chunk) -> bool:
    """Whether a chunk ends as a sentence does."""
    return chunk.lines[-1].rstrip(f" {_CLOSING}")[-1:] in (".", "!", "?") and any(map(wordy, chunk.lines))


def _heading_lines(lines: Sequence[str], base: int) -> int:
    """How many of the first lines are a heading: one, or two of a numbered one that goes on."""
    if len(lines) == 1 and CHAPTER.match(lines[0]) and len(lines[0].split()) <= _NUMBERED_WORDS:
        return int(lines[0].strip()[-1] not in ".,;:!")
    number = NUMBERED.match(lines[0])
    if number is not None and ("." in number[1] or lines[-1].endswith("?")):
        more = lines[1:]
        alone = len(more) <= 1 and not any(BULLET.match(line) or NUMBERED.match(line) for line in more)
        return len(lines) if alone and _is_heading(" ".join(lines), base, _NUMBERED_WORDS, ".,;:!") else 0
    if _PARAGRAPH.match(lines[0]) and len(lines[0].split()) <= _HEADLINE_WORDS and lines[0][-1] not in ".,;!":
        return int(not any(map(_PARAGRAPH.match, lines[1:])))
    sentence = lines[-1][-1] in ".!" or GOES_ON.search(lines[0].lower()) or any(map(str.isdigit, lines[0]))
    if len(lines) > 1 and all(map(str.isupper, lines)) and sentence:
        return 0  # or entries, "POLICE 110"
    return int((len(lines) == 1 or lines[0].isupper()) and _is_heading(lines[0], base))


def _is_heading(line: str, base: int, longest: int = 10, ends: str = ".,;:!?") -> bool:
    text = line.strip()
    if (
        len(text.split()) > longest
        or text.rstrip(_CLOSING)[-1:] in ends
        or indent_of(line) > base
        or not text[0].isalnum()
    ):
        return False
    number = NUMBERED.match(line)
    said = text if number is None else line[number.end() :]
    if number is not None and "." not in number[1] and _SENTENCES.search(said):
        return False
    letters = [c for c in said if c.isalpha()]
    if len(letters) < 0.6 * len(said.replace(" ", "")):
        return False
    if number is not None and number.group().strip().isdigit() and (not said[0].isupper() or _DATE.match(said)):
        return False  # "24 hours", "6 October 2025"
    return len(letters) >= 3 and (number is not None or (text.isupper() and "_" not in text))
