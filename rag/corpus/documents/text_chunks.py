"""Plain text in chunks: lines between empty ones, questions with their answers, and terms with what they mean."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from rag.corpus.documents import navigation as nav
from rag.corpus.documents.blocks import squeezed, visible
from rag.corpus.documents.text_code import is_code
from rag.corpus.documents.text_lines import BULLET, CHAPTER, NUMBERED, RULE, hangs, indent_of, unwrapped, wordy

ASKED = re.compile(r"\s*(?:Q|Question)(?: ?\d[\d.]*)?\s?[:.)]\s+(?=\S)")
TOLD = re.compile(r"\s*(?:A|Answer)(?: ?\d[\d.]*)?\s?[:.)]\s+(?=\S)")
_WIKI = re.compile(r"(={2,6}) +([^\s=](?:.*[^\s=])?) +\1")
_HASHES = re.compile(r"(#{1,4}) +([^\W_].{0,98}?[^.,;:=])(?: +#+)?")
_NAME = re.compile(r"\s*-|\w[_=]")  # of an option or a value
_MANUAL = frozenset(["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "USAGE", "SEE ALSO", "AUTHOR", "BUGS"])
_PAGE_EDGE = re.compile(r"\s*(\S+\(\d\w*\))(?:\s.*)?\s\1\s*")
_DIGITS = re.compile(r"\d+")
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
    return [chunk for chunk in _chunks(_without_margins(visible(text), dropped)) if not _is_page_edge(chunk, dropped)]


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
    """A text without headers and footers: first and last lines of pages that most pages have, but for numbers."""
    pages = [page.splitlines() for page in text.split("\f")]
    if len(pages) < _PAGES:
        return text
    for edge in (0, -1):
        found = [
            (lines, places[edge]) for lines in pages if (places := [n for n, line in enumerate(lines) if line.strip()])
        ]
        patterns = Counter(_DIGITS.sub("0", squeezed(lines[place])) for lines, place in found)
        for lines, place in found:
            if patterns[_DIGITS.sub("0", squeezed(lines[place]))] >= 0.5 * len(pages):
                lines[place] = ""
                dropped[nav.MARGIN] += 1
    return "\f".join("\n".join(lines) for lines in pages)


def _is_page_edge(chunk: Chunk, dropped: Counter[str]) -> bool:
    """Whether a line is the head of a manual page: `LS(1)   User commands   LS(1)`."""
    found = len(chunk.lines) == 1 and _PAGE_EDGE.fullmatch(chunk.lines[0]) is not None
    dropped[nav.NAVIGATION] += found
    return found


def with_questions(chunks: Sequence[Chunk]) -> list[Chunk]:
    """The chunks, with each question of "Q: ... A: ..." as a heading, if there are two or more with their answers."""
    lines = [line for chunk in chunks for line in chunk.lines]
    if min(sum(map(bool, map(mark.match, lines))) for mark in (ASKED, TOLD)) < 2:
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
