"""Plain text in chunks: lines between empty ones, questions with their answers, and terms with what they mean."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from rag.documents import navigation as nav
from rag.documents.blocks import squeezed, visible
from rag.documents.converters.text_code import is_code
from rag.documents.converters.text_lines import (
    BULLET,
    CHAPTER,
    NUMBERED,
    RULE,
    hangs,
    indent_of,
    unwrapped,
    with_parted_words,
    wordy,
)

_ANSWER_LINES = 200  # between a question and the next one, at most
ASKED = re.compile(r"\s*(?:Q|Question)(?: ?\d[\d.]*)?\s?[:.)]\s+(?=\S)")
TOLD = re.compile(r"\s*(?:A|Answer)(?: ?\d[\d.]*)?\s?[:.)]\s+(?=\S)")
_WIKI = re.compile(r"(={2,6}) +([^\s=](?:.*[^\s=])?) +\1")
_HASHES = re.compile(r"(#{1,4}) +([^\W_].{0,98}?[^.,;:=])(?: +#+)?")
_NAME = re.compile(r"\s*-|\w[_=]")  # of an option or a value
_MANUAL = frozenset(["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "USAGE", "SEE ALSO", "AUTHOR", "BUGS"])
_PAGE_EDGE = re.compile(r"\s*(\S+\(\d\w*\))(?:\s.*)?\s\1\s*")
_DIGITS = re.compile(r"\d+")
_NUMBERS = re.compile(r"(?<![\w.-])\d+(?!\.?\w)")
_ONE_WORD = re.compile(r"\s*(?!page\b)[^\W\d_]+\s+\d+\W*", re.IGNORECASE)  # "Chapter 1" is no footer
_PAGE_LINES = 12  # of a page, at least
_PAGES = 4  # of a text that has headers and footers, at least
_QUESTION_WORDS = 25  # of one that is a heading


@dataclass(frozen=True, slots=True)
class Chunk:
    """Lines between empty lines, and how far the first is indented.

    `term`: the first line is a term, the others are its text. `title`: the only line is a heading, by what stands
    around it, or as in a wiki, by so many equals signs at both ends (`signs`). `level`: that of such a heading, if its
    number or its place on the line tells it.
    """

    lines: tuple[str, ...]
    indent: int
    term: bool = False
    title: bool = False
    signs: int = 0
    level: int = 0


def chunks_of(text: str, dropped: Counter[str]) -> list[Chunk]:
    """The chunks of a text without the headers and footers of its pages, which are counted in `dropped`."""
    said = with_parted_words(_without_margins(visible(text), dropped))
    return [chunk for chunk in _chunks(said) if not _is_page_edge(chunk, dropped)]


def _chunks(text: str) -> Iterator[Chunk]:
    lines: list[str] = []
    said = [*text.replace("\f", "\n\n").expandtabs(8).splitlines(), ""]
    hashed = _has_hashes(said)
    for line in said:
        wiki = _WIKI.fullmatch(line.rstrip()) if line.startswith("==") else None
        if hashed and line.startswith("#"):
            wiki = _HASHES.fullmatch(line.rstrip())
        if line.strip() and not wiki:
            lines.append(line.rstrip())
        elif lines:
            yield Chunk(tuple(lines), indent_of(lines[0]))
            lines = []
        if wiki:
            yield Chunk((wiki[2],), 0, title=True, signs=len(wiki[1]))


def _has_hashes(lines: Sequence[str]) -> bool:
    """Whether a text has headings as Markdown has (`# Rules`, `## Dogs`): two or more, each after an empty line.

    Comments stand below each other or above a setting, or have no space after the sign.
    """
    marks = [place for place, line in enumerate(lines) if line.startswith("#")]
    found = [mark for place in marks if (mark := _HASHES.fullmatch(lines[place].rstrip()))]
    apart = all(not place or not lines[place - 1].strip() for place in marks)
    return len(marks) > 1 and len(found) == len(marks) and apart and any(len(mark[1]) > 1 for mark in found)


def _without_margins(text: str, dropped: Counter[str]) -> str:
    """A text without headers and footers; a paragraph that they part is one again."""
    pages = [page.splitlines() for page in text.split("\f")]
    if len(pages) < _PAGES:
        lines = text.splitlines()
        margins = _counted_lines(lines)
    else:
        lines = [line for page in pages for line in [*page, "\f"]]
        margins = _edges(pages)
    if not margins:
        return text
    dropped[nav.MARGIN] += len(margins)
    widths = sorted(len(line) for line in lines if line.strip())
    said: list[str] = []
    gap: list[int] = []  # lines since the last that is kept and not empty
    for place, line in enumerate(lines):
        if place in margins or not line.strip():
            gap.append(place)
            continue
        if margins.isdisjoint(gap) or not said or not _goes_over(said[-1], line, widths[int(0.9 * len(widths))]):
            said += ["" if lines[place] == "\f" or place in margins else lines[place] for place in gap]
        gap = []
        said.append(line)
    return "\n".join(said)


def _edges(pages: Sequence[Sequence[str]]) -> set[int]:
    """First and last lines of pages that most pages have, but for numbers; each page counts a line for its end."""
    found: set[int] = set()
    for edge in (0, -1):
        places: list[tuple[int, str]] = []
        begin = 0
        for page in pages:
            if filled := [n for n, line in enumerate(page) if line.strip()]:
                places.append((begin + filled[edge], _pattern(page[filled[edge]])))
            begin += len(page) + 1
        patterns = Counter(pattern for _, pattern in places)
        found |= {place for place, pattern in places if patterns[pattern] >= 0.5 * len(pages)}
    return found


def _pattern(line: str) -> str:
    return _DIGITS.sub("0", squeezed(line))


def _counted_lines(lines: Sequence[str]) -> set[int]:
    """Lines between empty ones that differ only in a number, which counts the pages, and others next to these.

    The pages are about equally long.
    """
    filled = [place for place, line in enumerate(lines) if line.strip()]
    alone = [
        place
        for place in filled
        if not any(line.strip() for line in [*lines[max(0, place - 1) : place], *lines[place + 1 : place + 2]])
    ]
    alike: dict[str, list[int]] = {}
    for place in alone:
        if _DIGITS.search(lines[place]) and not _ONE_WORD.fullmatch(lines[place]):
            alike.setdefault(_pattern(lines[place]), []).append(place)
    footers = {place for places in alike.values() if _count_pages(lines, places) for place in places}
    if not footers:
        return set()
    others = {*alone} - footers
    near: dict[str, list[int]] = {}
    for before, after in pairwise(filled):
        for place, other in ((before, after), (after, before)):
            if other in footers and place in others:
                near.setdefault(_pattern(lines[place]), []).append(place)
    return footers | {place for places in near.values() if 2 * len(places) >= len(footers) for place in places}


def _count_pages(lines: Sequence[str], places: Sequence[int]) -> bool:
    """Whether a number of the lines rises by one, after about as many lines each time."""
    steps = [*pairwise(places)]
    if len(places) < _PAGES or 2 * (places[-1] - places[0]) < len(lines) or wordy(lines[places[0]]):
        return False
    gaps = sorted(after - before for before, after in steps)
    usual = gaps[len(gaps) // 2]
    regular = sum(abs(gap - usual) <= 2 for gap in gaps)
    numbers = [[int(number[:9]) for number in _NUMBERS.findall(lines[place])] for place in places]
    slots = range(len(numbers[0]))
    rising = max((sum(after[n] == before[n] + 1 for before, after in pairwise(numbers)) for n in slots), default=0)
    return usual >= _PAGE_LINES and min(regular, rising) >= 0.8 * len(steps)


def _goes_over(line: str, after: str, width: int) -> bool:
    """Whether a paragraph goes on from the last line of a page to the first of the next."""
    begins = after.lstrip()
    if abs(indent_of(line) - indent_of(after)) > 1 or line.rstrip()[-1] in ".!?:;" or BULLET.match(after):
        return False
    if begins[0].islower():
        return wordy(line) or wordy(after)
    return len(line) >= 0.85 * width and wordy(line) and wordy(after) and begins[0].isalpha()


def _is_page_edge(chunk: Chunk, dropped: Counter[str]) -> bool:
    """Whether a line is the head of a manual page: `LS(1)   User commands   LS(1)`."""
    found = len(chunk.lines) == 1 and _PAGE_EDGE.fullmatch(chunk.lines[0]) is not None
    dropped[nav.NAVIGATION] += found
    return found


def with_questions(chunks: Sequence[Chunk]) -> list[Chunk]:
    """The chunks, with each question of "Q: ... A: ..." as a heading, if there are two or more with their answers.

    A few in a long text, such as jokes in a dictionary, are no headings of what stands below them.
    """
    lines = [line for chunk in chunks for line in chunk.lines]
    asked, told = (sum(map(bool, map(mark.match, lines))) for mark in (ASKED, TOLD))
    if min(asked, told) < max(2, len(lines) / _ANSWER_LINES):
        return [*chunks]
    found = []
    for chunk in chunks:
        begins = [place for place, line in enumerate(chunk.lines) if ASKED.match(line) or TOLD.match(line)]
        for start, end in pairwise(sorted({0, *begins, len(chunk.lines)})):
            part = replace(chunk, lines=chunk.lines[start:end], indent=indent_of(chunk.lines[start]))
            first, *rest = part.lines
            if mark := ASKED.match(first):
                text = unwrapped([first[mark.end() :], *rest])
                title = len(text.split()) <= _QUESTION_WORDS
                part = replace(part, lines=(text,) if title else part.lines, title=title)
            elif mark := TOLD.match(first):
                shift = max(min(map(indent_of, rest), default=0) - part.indent, 0)  # of lines below the text
                part = replace(part, lines=(" " * part.indent + first[mark.end() :], *(line[shift:] for line in rest)))
            found.append(part)
    return found


def with_terms(chunks: Sequence[Chunk], base: int) -> list[Chunk]:
    """The chunks; a term is joined with the indented paragraph below it, if it is a name or one of several."""
    after: dict[int, int] = {}  # the place of a possible term, and of the chunk after its text
    for place, (chunk, text) in enumerate(pairwise(chunks)):
        may_be = not chunk.title and chunk.indent >= base and _is_term(chunk)
        if may_be and text.indent >= chunk.indent + 2 and not is_code(text.lines, base):
            ends = range(place + 1, len(chunks))
            after[place] = next((end for end in ends if chunks[end].indent <= chunk.indent), len(chunks))
    terms: set[int] = set()
    for place, end in after.items():
        if _NAME.search(chunks[place].lines[0]):
            terms.add(place)
        if end in after and chunks[end].indent == chunks[place].indent:
            terms |= {place, end}
    return [
        Chunk((*chunk.lines, *chunks[place + 1].lines), chunk.indent, term=True) if place in terms else chunk
        for place, chunk in enumerate(chunks)
        if place - 1 not in terms
    ]


def with_capital_terms(chunks: Sequence[Chunk], base: int) -> list[Chunk]:
    """The chunks; a line of capitals above indented lines is a term where other terms of that form are not in capitals.

    Manual pages, which have headings of that form, have none.
    """
    hanging = {
        place
        for place, chunk in enumerate(chunks)
        if not (chunk.term or chunk.title)
        and chunk.indent == base
        and hangs(chunk.lines)
        and _is_term(replace(chunk, lines=chunk.lines[:1]))
        and any(map(wordy, chunk.lines[1:]))
    }
    capital = {place for place in hanging if chunks[place].lines[0].isupper()}
    of_manual = any(chunk.lines[0].strip() in _MANUAL for chunk in chunks)
    if of_manual or not any(chunks[place].lines[0].strip()[0].isupper() for place in hanging - capital):
        return [*chunks]
    return [replace(chunk, term=True) if place in capital else chunk for place, chunk in enumerate(chunks)]


def _is_term(chunk: Chunk) -> bool:
    line = chunk.lines[0].strip()
    return (
        len(chunk.lines) == 1
        and len(line.split()) <= 8
        and line[-1] not in ".,;"
        and not (BULLET.match(line) or RULE.fullmatch(line) or NUMBERED.match(line) or CHAPTER.match(line))
    )


def usual_indent(chunks: Sequence[Chunk]) -> int:
    """The indent of most lines of running text."""
    counts = Counter(indent_of(line) for chunk in chunks for line in chunk.lines if wordy(line))
    counts = counts or Counter(chunk.indent for chunk in chunks)
    return counts.most_common(1)[0][0] if counts else 0


def usual_width(chunks: Sequence[Chunk]) -> int:
    """How wide most lines of running text may get."""
    widths = sorted(len(line) for chunk in chunks for line in chunk.lines if wordy(line))
    return widths[int(0.9 * len(widths))] if widths else 0
