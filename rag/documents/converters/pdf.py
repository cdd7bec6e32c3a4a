"""Blocks from PDFs: paragraphs, code and headings from where the lines stand on their pages."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from rag.documents import navigation as nav
from rag.documents.blocks import Block, Kind, code, entry, heading, item, keep_bare_headings, row
from rag.documents.converters.pdf_columns import in_columns
from rag.documents.converters.pdf_formulas import is_numerator, with_piece
from rag.documents.converters.pdf_headings import Mark, by_bookmarks, by_size, file_title, without_page_names
from rag.documents.converters.pdf_margins import without_edges, without_lists
from rag.documents.converters.pdf_pages import Line, Pages, read_pages
from rag.documents.converters.pdf_tables import Table, with_tables
from rag.documents.converters.pdf_words import HYPHEN, Words
from rag.documents.normalize import squeeze
from rag.documents.raw_file import RawFile
from rag.documents.titles import clean_heading

_ITEM = re.compile(r"([•◦▪●○■□►➢➤–∗‣·*-]|\(?\d{1,2}[.)]|\([a-z]\))\s+(?=\S)")
_BULLET = re.compile(r"[•◦▪●○■□►➢➤]\s")  # no formula begins so
_INNER = ("○", "◦")  # signs of items in items
_RULED = re.compile(r"(?:[•*-] )?={4,} (?P<words>\w.{0,80}\w) ={4,}")  # a heading in a text of notes
_DOTS = re.compile(r"(?<=[^\s.:])\s*(?:\. ?){5,}\s*(?=[^\s.])")  # "Tea ........ 2.60"
_ENDS = ".:!?"
_UNMAPPED = "page whose fonts do not say which letters they draw"
_BOLD = 2
_FLOAT = re.compile(r"(?:Figure|FIGURE|Fig\.?|Table|TABLE|Listing)\s+[A-Z]?\d+(?:[.-]\d+)*\s*[.:]\s")
_NOTE = re.compile(r"(?:\d{1,2}|[*†‡])\s*[A-Za-z\"'(“‘]")
_BRACES = re.compile("[\ue000-\uf8ff\\x00-\\x1f\\x7f\\s]+")  # parts of tall brackets


def read_pdf(file: RawFile) -> tuple[str, list[Block]]:
    """The title ("" if there is none) and the blocks of a file."""
    return pdf_blocks(read_pages(file.data, file.where), file.dropped)


def pdf_blocks(pages: Pages, omissions: Counter[str]) -> tuple[str, list[Block]]:
    """The title ("" if there is none) and the blocks of a PDF."""
    omissions[_UNMAPPED] += pages.unmapped
    pages = pages._replace(outline=without_page_names(pages.outline))
    level = [[line for line in lines if not line.is_slanted] for lines in pages.lines]
    omissions[nav.SIGNS] += sum(map(len, pages.lines)) - sum(map(len, level))
    result = without_lists(without_edges(level, omissions, Style.of(level).size), omissions)
    result = [in_columns(lines) for lines in result]
    style = Style.of(result)
    words = Words(pages.lines)
    builder = _Builder(style, words, omissions)
    marks = by_bookmarks(pages.outline, result) if pages.outline else by_size(result, style.size, words)
    for number, lines in enumerate(marks, 1):
        builder.page(lines, number)
    builder.flush()
    title = file_title(pages, style.size, words)
    if pages.outline:
        return title, builder.blocks
    return title, [*keep_bare_headings(builder.blocks, lambda text: text != title)]  # as print of any size may be one


@dataclass(frozen=True, slots=True)
class Style:
    """The usual font size and distance of lines in a file, in tenths of a point."""

    size: int
    leading: int

    @classmethod
    def of(cls, pages: Sequence[list[Line]]) -> "Style":
        """Count the letters of each size, and the distances of lines of one size."""
        sizes: Counter[int] = Counter()
        gaps: Counter[int] = Counter()
        for lines in pages:
            above_size = above_y = 0
            for line in lines:
                y, size = line.y, line.size
                sizes[size] += len(line.text)
                if above_size == size and 0 < above_y - y < 4 * size:
                    gaps[above_y - y] += 1
                above_size, above_y = size, y
        size = sizes.most_common(1)[0][0] if sizes else 100
        return cls(size, gaps.most_common(1)[0][0] if gaps else int(1.2 * size))


@dataclass(slots=True)
class _Builder:
    """Joins lines to blocks."""

    style: Style
    words: Words
    dropped: Counter[str]
    blocks: list[Block] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    number: int = 0  # of the page that `lines` began on
    piece: Line | None = None  # the last piece of a formula in the last line
    before: Line | None = None  # the last line of the block before, on the same page
    waiting: list[Line] = field(default_factory=list)  # of the paragraph that a caption or note interrupts: `lines`
    began: int = 0  # the page that `waiting` began on
    separate: list[tuple[list[Line], int]] = field(default_factory=list)  # captions and notes to come after `lines`
    edges: Counter[int] = field(default_factory=Counter)  # where lines of the page end
    widest: int = 0

    def page(self, lines: Sequence[Line | Mark], number: int) -> None:
        """Add the lines of a page."""
        rights = [line.right for line in lines if isinstance(line, Line)]
        self.edges = Counter(right // 30 for right in rights)
        self.widest = max(rights, default=0)
        self.before = None
        rows = [*with_tables(lines, self.style.leading)]
        for position, line in enumerate(rows):
            if isinstance(line, Line):
                if line.look == _BOLD and self._is_heading(line, rows[position - 1 : position + 2] if position else []):
                    self.flush(line)
                    self.blocks.append(heading(clean_heading(self.words.join(line.text)), 6, number))
                elif not "!" <= line.text[0] < "\ue000" and _BRACES.fullmatch(line.text):
                    self.dropped[nav.SIGNS] += 1
                elif not line.mono and nav.may_lead(line.text) and len(parts := _DOTS.split(line.text)) == 2:
                    self.flush()
                    name, value = (squeeze(self.words.join(part)) for part in parts)
                    self.blocks.append(entry(name, value, number))
                    self.before = line
                else:
                    self._add(line, number)
            elif isinstance(line, Mark):
                self.flush()
                self.blocks.append(heading(line.text, line.level, number))
            else:
                self._table(line, number)

    def _add(self, line: Line, number: int) -> None:
        """Add a line to the block of the lines before it, or begin another one."""
        if self.lines:
            last_line = self.lines[-1]
            if line.y - last_line.y > -self.style.leading and not _BULLET.match(line.text):
                is_inside = len(self.lines) > 1
                result = with_piece(last_line, self.piece or last_line, line, self.style.leading, is_inside=is_inside)
                if result is not None:
                    self.lines[-1], self.piece = result, line
                    return
            if (line.size < self.style.size or line.text[0] in "FTL") and self._interrupts(last_line, line):
                self._interrupt(line, number)
                return
            if (self.waiting and not self._is_below(last_line, line)) or self._ends(last_line, line):
                if self.waiting and self._goes_on(self.waiting, line):
                    self.separate.append((self.lines, self.number))
                    self.lines, self.number, self.waiting = self.waiting, self.began, []
                else:
                    self.flush(line)
        if not self.lines:
            self.number = number
        self.lines.append(line)
        self.piece = None

    def _interrupts(self, previous: Line, line: Line) -> bool:
        """Whether a line begins a caption, or a note at the foot of the page."""
        if _FLOAT.match(line.text):
            is_shifted = abs(line.left - previous.left) > line.size
            return is_shifted or not self._is_below(previous, line) or not self._full(previous, line)
        return line.size < self.style.size - 15 and _NOTE.match(line.text) is not None

    def _is_below(self, previous: Line, line: Line) -> bool:
        """Whether a line stands right below another one of its size."""
        is_near = 0 <= previous.y - line.y <= 1.35 * max(self.style.leading, line.size)
        return is_near and abs(line.size - previous.size) <= 15

    def _interrupt(self, line: Line, number: int) -> None:
        """Begin a caption or note; the paragraph before it waits for its next line."""
        if self.waiting:
            self.separate.append((self.lines, self.number))
        elif self.lines[-1].text[-1] not in _ENDS and not self.lines[-1].mono and self.lines[-1].look != _BOLD:
            self.waiting, self.began = self.lines, self.number
        else:
            self.flush(line)
        self.lines, self.number, self.piece = [line], number, None

    def _goes_on(self, lines: Sequence[Line], line: Line) -> bool:
        """Whether a line goes on with a paragraph that a caption or note interrupted."""
        last = lines[-1]
        if line.mono or line.look == _BOLD or abs(line.size - last.size) > 15 or _ITEM.match(line.text):
            return False
        return line.text[0].islower() or (self._full(last, line) and line.left <= lines[0].left + line.size // 2)

    def _table(self, table: Table, number: int) -> None:
        """Add the rows of a table; one without words belongs to a figure unless it stands below text or another one."""
        previous = self.lines[-1] if self.lines else self.before
        self.flush()
        top = table.top
        goes_on = previous is None and self.blocks and self.blocks[-1].kind is Kind.ROW
        max_gap = (3 if table.names or len(table.rows) > 1 else 1.6) * self.style.leading
        is_below = previous is not None and 0 < previous.y - top.y <= max_gap
        if not (table.has_words or is_below or goes_on):
            self.dropped[nav.SIGNS] += len(table.rows)
            return
        names = [squeeze(self.words.join(name)) for name in table.names]
        for cells in table.rows:
            if not any(map(str.isalnum, "".join(cells))):  # a line between rows
                self.dropped[nav.SIGNS] += 1
                continue
            block = row([squeeze(self.words.join(cell)) for cell in cells], names, number)
            if block is not None:
                self.blocks.append(block)
        self.before = top

    def _is_heading(self, line: Line, neighbours: Sequence[Line | Mark | Table]) -> bool:
        """Whether a bold line stands alone between text in ordinary print."""
        if len(neighbours) < 3 or line.text[-1] in ".,;:" or len(line.text.split()) > 10 or not line.text[0].isupper():
            return False
        previous, _, following = neighbours
        if not isinstance(previous, Line) or not isinstance(following, Line):
            return False
        return (
            previous.y - line.y > 1.2 * self.style.leading
            and following.look == 0
            and line.y - following.y > 0.5 * line.size
        )

    def _full(self, line: Line, following: Line) -> bool:
        """Whether a line runs to the right edge of its column, or the next word found no room in it."""
        position = line.right // 30
        edges = self.edges
        if edges[position] + edges[position - 1] + edges[position + 1] > 3:
            return True
        letter = (line.right - line.left) / len(line.text)
        word = following.text[:40].partition(" ")[0]
        return self.widest - line.right < letter * (len(word) + 1)

    def _ends(self, previous: Line, line: Line) -> bool:
        """Whether a line begins another block than the line above it."""
        gap = previous.y - line.y
        leading = max(self.style.leading, line.size)
        mono_above, mono = previous.look & 1, line.look & 1
        if previous.text[-1] == HYPHEN:
            return False
        if mono_above and (mono or not any(map(str.isalpha, line.text))):  # or a result below a line of code
            return gap > 2.5 * leading or gap < 0
        if mono_above != mono:  # a line of prose may be set in typewriter to its end
            return (
                bool(mono_above) or gap > 1.35 * leading or previous.text[-1] in _ENDS or not self._full(previous, line)
            )
        if _ITEM.match(line.text):
            return True
        open_end = previous.text[-1] not in _ENDS
        is_near = 0 <= gap <= 1.35 * leading
        other_size = abs(line.size - previous.size) > 15 and all(
            abs(line.size - item.size) > 15 for item in self.lines[-4:-1]
        )
        if is_near and open_end:
            if other_size and gap < 0.9 * leading and is_numerator(line) and self._full(previous, line):
                return line.size >= self.style.size
            if line.text[0].islower():
                return other_size and gap > 0.5 * leading
        full = self._full(previous, line)
        goes_on = open_end and (full or line.text[0].islower())
        if not is_near:
            next_page = gap < 0 or gap > 6 * leading  # or the next column
            return not goes_on or (gap > 2 * leading and not next_page)
        if other_size and gap > 0.5 * leading:
            return True
        is_shifted = abs(line.left - previous.left) > 0.8 * line.size and (
            len(self.lines) > 1 or line.left > previous.left
        )
        hangs = len(self.lines) == 1 and _ITEM.match(self.lines[0].text) is not None
        return not goes_on and ((is_shifted and not hangs) or not full)

    def flush(self, following: Line | None = None) -> None:
        """End the block of the lines collected so far, before the line that follows."""
        if self.waiting:
            self.separate.append((self.lines, self.number))
            self.lines, self.number, self.waiting = self.waiting, self.began, []
        separate, self.separate = self.separate, []
        self._end(following)
        for self.lines, self.number in separate:
            self._end(following)

    def _end(self, following: Line | None) -> None:
        lines, self.lines = self.lines, []
        if not lines:
            return
        first = lines[0]
        words = any(map(str.isalpha, first.text)) or any(any(map(str.isalpha, line.text)) for line in lines)
        leads = (
            words
            and following is not None
            and len(lines) <= 3
            and following.left > first.left + 0.8 * first.size
            and following.y < first.y
            and not self._full(lines[-1], following)
        )
        if first.mono and not (leads and not lines[-1].text.endswith("{")) and _is_code(lines):
            self._code(lines)
        elif words:
            self._text(lines, leads=leads)
        else:
            self._numbers(lines)
            return
        self.before = lines[-1]

    def _text(self, lines: Sequence[Line], *, leads: bool) -> None:
        text = squeeze(self.words.join(" ".join([line.text for line in lines])))
        if nav.is_boilerplate(text):
            return
        if (rule_match := _RULED.fullmatch(text)) is not None:
            self.blocks.append(Block(rule_match["words"], Kind.LEAD, 0, self.number))
            return
        if (mark := _ITEM.match(text)) is not None:
            sign = mark[1].strip("().")
            depth = int(sign in _INNER and bool(self.blocks) and self.blocks[-1].kind is Kind.ITEM)
            self.blocks.append(item(text[mark.end() :], depth, f"{sign}." if sign.isdigit() else "-", self.number))
            return
        # What is short and stands left of the text after it is the term that the text explains.
        kind = Kind.LEAD if leads and text[-1] not in ".!?" else Kind.TEXT
        self.blocks.append(Block(text, kind, 0, self.number))

    def _numbers(self, lines: Sequence[Line]) -> None:
        """Keep lines without words that stand below text as rows of a table do; the others belong to figures."""
        for line in lines:
            previous = self.before
            if (
                previous is not None
                and any(map(str.isdigit, line.text))
                and 0 < previous.y - line.y <= 1.6 * self.style.leading
                and abs(previous.size - line.size) <= 15
                and previous.left - line.size <= line.left
                and line.right <= previous.right + line.size
            ):
                self.blocks.append(Block(squeeze(self.words.join(line.text)), Kind.ROW, 0, self.number))
                self.before = line
            else:
                self.dropped[nav.SIGNS] += 1

    def _code(self, lines: list[Line]) -> None:
        block = code(self._join_layout(lines), self.number)
        if block is None:
            return
        last = self.blocks[-1] if self.blocks else None
        if last is not None and last.kind is Kind.CODE:
            self.blocks[-1] = Block(f"{last.text}\n    \n{block.text}", Kind.CODE, 0, last.page)
        else:
            self.blocks.append(block)

    def _join_layout(self, lines: list[Line]) -> str:
        """The lines of code with the spaces that their places on the page stand for."""
        left = min(line.left for line in lines)
        longest = max(lines, key=lambda line: len(line.text))
        width = (longest.right - longest.left) // len(longest.text) if len(longest.text) > 8 else lines[0].size // 2
        laid_out, y = [], lines[0].y
        for line in lines:
            if y - line.y > 1.6 * self.style.leading:
                laid_out.append("")
            y = line.y
            indent = max(0, min(round((line.left - left) / max(1, width)), 80))
            laid_out.append(" " * indent + self.words.letters(line.text))
        return "\n".join(laid_out)


def _is_code(lines: Sequence[Line]) -> bool:
    return all(line.mono or not any(map(str.isalpha, line.text)) for line in lines)
