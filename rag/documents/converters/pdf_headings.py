"""The headings of a PDF: its bookmarks among the lines, or else lines in larger print."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from rag.documents.converters.pdf_pages import Line, Pages
from rag.documents.converters.pdf_words import Words
from rag.documents.normalize import squeeze
from rag.documents.titles import clean_heading, is_placeholder

_MAX_LENGTH = 16  # words of a heading
_MAX_BOOKMARK = 40  # words; some programs put the text of a page in its bookmark
_ITEM = re.compile(r"[•◦▪●○■–∗‣·*-]\s")
_PAGE_NAME = re.compile(r"(\D{0,40}?)(\d{1,5})")
_MIN_PAGE_NAMES = 3
_NUMBER = re.compile(r"^(?:\d{1,2}|[A-Z])\s+(?=[^\W\d_])")
_OF_PROGRAM = re.compile(r"print(?:ing)?$|scan(?:ned)?\b|book$")  # titles that those of printers and scanners give
_BEFORE = re.compile(r"(?:chapter|appendix|part|section|annex)?(?:\d*|[a-z]\d*|[ivxlc]+)")
_SIGNS = re.compile(r"[\W_]+")
_OTHER = "\n"  # in place of the letters of a line that is in no title


class Mark(NamedTuple):
    """A heading among the lines of a page."""

    text: str
    level: int


Marked = list[Line | Mark]


class _Waiting(NamedTuple):
    """A bookmark that was not met yet."""

    letters: str
    mark: Mark
    height: float | None


def without_page_names(
    outline: Sequence[tuple[int, str, int, float | None]],
) -> list[tuple[int, str, int, float | None]]:
    """The bookmarks without those that only count the pages, as `Slide 4` on page 4 does."""
    names = [_PAGE_NAME.fullmatch(title.strip()) for _, title, *_ in outline]
    counts = Counter(
        name[1]
        for name, (_, _, page, _) in zip(names, outline, strict=True)
        if name is not None and int(name[2]) == page + 1
    )
    return [
        mark for name, mark in zip(names, outline, strict=True) if name is None or counts[name[1]] < _MIN_PAGE_NAMES
    ]


def by_bookmarks(
    outline: Sequence[tuple[int, str, int, float | None]], pages: Sequence[list[Line]]
) -> Iterator[Marked]:
    """The lines of each page, with bookmarks in place of the lines that they repeat."""
    number_match = sum(_NUMBER.match(title) is not None for level, title, *_ in outline if level == 0) > 1
    by_page: dict[int, list[_Waiting]] = {}
    for level, title, page, height in outline:
        text = clean_heading(title)
        if number_match:
            text = _NUMBER.sub("", text, count=1)
        if text and len(text.split()) <= _MAX_BOOKMARK:
            by_page.setdefault(page, []).append(_Waiting(_letters(text), Mark(text, min(level + 1, 6)), height))
    for number, lines in enumerate(pages):
        waiting = by_page.get(number)
        yield _place_marks(waiting, lines) if waiting else [*lines]


def _place_marks(waiting: list[_Waiting], lines: list[Line]) -> Marked:
    marks: Marked = []
    position = 0
    titles = "\n".join(mark.letters for mark in waiting)
    ends = [n for n, line in enumerate(lines) if _may_end(line.text, titles)]  # most lines are no heading
    line_numbers = {n + offset for n in ends for offset in range(3)}
    letters = [_letters(line.text) if n in line_numbers else _OTHER for n, line in enumerate(lines)]
    while position < len(lines):
        for index, mark in enumerate(waiting if letters[position] != _OTHER else ()):
            if length := _length(mark.letters, letters[position : position + 3]):
                # A heading that is not among the lines stands before this one.
                marks += [earlier.mark for earlier in waiting[: index + 1]]
                del waiting[: index + 1]
                position += length
                break
        else:
            while waiting and waiting[0].height is not None and _is_past(waiting[0], lines, position, letters):
                marks.append(waiting.pop(0).mark)
            marks.append(lines[position])
            position += 1
    return marks + [mark.mark for mark in waiting]


def _is_past(waiting: _Waiting, lines: list[Line], position: int, letters: list[str]) -> bool:
    """Whether the place that a bookmark names is above a line, and no line to come repeats the bookmark."""
    if waiting.height is None or 10 * waiting.height < lines[position].y:
        return False
    return not any(
        letters[later] != _OTHER and _length(waiting.letters, letters[later : later + 3])
        for later in range(position, len(lines))
    )


def _letters(text: str) -> str:
    return _SIGNS.sub("", text.casefold())


def _may_end(text: str, titles: str) -> bool:
    """Whether the last letters of a line are also in a title."""
    tail = text[-4:]
    return tail.casefold() in titles if tail.isalnum() else _letters(text[-12:])[-6:] in titles


def _length(title: str, lines: Sequence[str]) -> int:
    """How many of the lines make up a heading, perhaps with a number before it; 0 if they do not."""
    if not lines or lines[0][-6:] not in title:  # most lines are none
        return 0
    text = ""
    for count, line in enumerate(lines, 1):
        text += line
        if text.endswith(title) and _BEFORE.fullmatch(text[: len(text) - len(title)]):
            return count
        if not text or len(text) > len(title) + 12:
            return 0
    return 0


def by_size(pages: Sequence[list[Line]], usual: int, words: Words) -> Iterator[Marked]:
    """The lines of each page, where lines in larger print become headings."""
    sizes: set[int] = set()
    for lines in pages:
        sizes.update(line.size for line in lines if _is_large(line, usual))
    levels = {size: min(2 + rank, 6) for rank, size in enumerate(sorted(sizes, reverse=True))}
    for lines in pages:
        marks: Marked = []
        waiting: list[Line] = []
        for line in lines:
            if waiting and (line.size != waiting[-1].size or waiting[-1].y - line.y > 2.2 * line.size):
                if len(waiting) > 1 or len(waiting[0].text) > 1:
                    marks += _mark(waiting, levels, words)
                elif line.text[0].islower():  # the large first letter of a text
                    line = line._replace(text=f"{waiting[0].text}{line.text}", cells=())
                waiting = []
            if _is_large(line, usual):
                waiting.append(line)
            else:
                marks.append(line)
        yield marks + _mark(waiting, levels, words)


def _is_large(line: Line, usual: int) -> bool:
    return line.size >= 1.15 * usual and not line.mono


def _mark(lines: list[Line], levels: dict[int, int], words: Words) -> Marked:
    text = squeeze(words.join(" ".join(line.text for line in lines)))
    if not any(map(str.isalpha, text)) or len(text.split()) > _MAX_LENGTH or _ITEM.match(text):
        return [*lines]
    return [Mark(clean_heading(text), levels[lines[0].size])]


def file_title(pages: Pages, usual: int, words: Words) -> str:
    """The title that a file names, or the largest print on its first page; "" if there is none."""
    title_letters = squeeze(words.letters(pages.title))
    if not is_placeholder(title_letters) and not _OF_PROGRAM.match(title_letters.casefold()):
        return clean_heading(title_letters)
    first = next((lines for lines in pages.lines if lines), [])
    largest = max((line.size for line in first), default=0)
    run = next((run for size, run in groupby(first, key=lambda line: line.size) if size == largest), ())
    text = squeeze(words.join(" ".join(line.text for line in run)))
    if _letters(clean_heading(text)) in {_letters(clean_heading(title)) for _, title, *_ in pages.outline}:
        return ""  # the first page begins with a chapter
    return clean_heading(text) if largest >= 1.3 * usual and 0 < len(text.split()) <= _MAX_LENGTH else ""
