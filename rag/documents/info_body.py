"""The text of a node of an Info file: the indent of lines says what they are, as makeinfo writes them."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from rag.documents import navigation as nav
from rag.documents.blocks import Block, Kind, code, entry, item
from rag.documents.text_code import is_code
from rag.documents.text_lines import indent_of, unwrapped, wordy

_STEP = 5  # columns that the text of an item or a definition is indented, and an example
_CLOSE = 4  # columns from which on a line counts as indented so
_DEEPEST = 8  # items and definitions in one another
_BULLET = re.compile(r" +([-*•‣–−]|\d{1,3}\.|[A-Za-z]\.) +(?=\S)")
_DEFINED = re.compile(r"( *) -- (?=[A-Z][^:]{0,60}: )")
_NOTES = re.compile(r"\s*-+ Footnotes -+")
_NOTE = re.compile(r"\s*\((\d{1,3})\)\s+(?=\S)")
_NOTE_LINK = re.compile(r"(?<=\S) ?\(\d{1,3}\) \(\*note [^:]{1,200}-Footnotes?-\d{1,3}::\)")
_NOTE_MARK = re.compile(r"(?<=\S)(?:\((\d{1,3})\)| \((\d{1,3})\)(?=[.,:;)]))")
_IN_BRACKETS = re.compile(r"\((\d{1,3})\)")
_REFERENCE = re.compile(
    r"\*(note) (?=\S)([^:]{1,200})(?:::|: (?:\([^()]{1,80}\))?[^,.:()]{0,200}(?:\.(?=\))|(?=[,.])))", re.IGNORECASE
)
_OTHER = re.compile(r"\(([^()]+)\) ?(.*)")  # manual and its node
_BEFORE_NAME = re.compile(
    r"\b(?:see|in|of|to|and|or|with|from|by|under|at|on|is|the|also|section|chapter|node)\s$", re.IGNORECASE
)
_QUOTED = re.compile(r"(?<!\w)(?:‘([^‘’]+)’|[`']([^`']+)'|“([^“”]+)”)(?!\w)")
_NAME = re.compile(r"\s*(?:‘.+’|[`'].+'|“.+”)")  # of what is explained below, a whole line
_CELLS = re.compile(r"(\s*\S.{0,40}?)\s{3,}(?=\S)")
_ENDS = re.compile(r"[.!?:]\W*$")  # of a sentence
_END = 20  # characters of a line that may be its end
_PROMPT = re.compile(r"\s*\$ \S")
_CODE_LINE = re.compile(r"\s*(?:#|//|/\*|;;|\$ |> )")


def chunks(lines: Iterable[str]) -> Iterator[list[str]]:
    """Lines between empty ones."""
    for filled, group in groupby((line.expandtabs(8).rstrip() for line in lines), key=bool):
        if filled:
            yield [*group]


def bare(text: str) -> str:
    """A heading or term without the quotes around names in it."""
    return _QUOTED.sub(lambda quoted: quoted[1] or quoted[2] or quoted[3], text)


class Body:
    """Collects the blocks of a node; `notes` are the numbers of its footnotes."""

    def __init__(self, dropped: Counter[str], notes: Iterable[str] = ()) -> None:
        self.blocks: list[Block] = []
        self._dropped, self._notes = dropped, frozenset(notes)
        self._open: list[tuple[int, bool]] = []  # where the text of items and definitions begins; True for items
        self._term = ""  # that the next text defines, if it is indented
        self._code: list[str] = []

    def finish(self) -> list[Block]:
        """The blocks of the whole node, without the marks of footnotes that nothing else looks like."""
        self._end()
        texts = (block.text for block in self.blocks if block.kind is not Kind.CODE)
        marks = Counter(number for text in texts for number in _IN_BRACKETS.findall(text))
        clear = {number for number in self._notes if marks[number] == 1}
        return [
            block if block.kind is Kind.CODE else replace(block, text=_NOTE_MARK.sub(_without(clear), block.text))
            for block in self.blocks
        ]

    def _end(self) -> None:
        self._end_code()
        self._undefined()

    def _end_code(self) -> None:
        lines, self._code = self._code, []
        if (block := code("\n".join(lines))) is not None:
            self._undefined()
            self.blocks.append(block)

    def _undefined(self) -> None:
        """A term whose definition does not follow introduces what does."""
        if self._term:
            self.blocks.append(Block(self._term, Kind.LEAD))
            self._term = ""

    def head(self, found: Block) -> None:
        """Add a heading, which ends all items."""
        self._open = []
        self._end()
        self.blocks.append(found)

    def _append(self, block: Block) -> None:
        """Add a block after the text read so far."""
        self._end_code()
        if self._term and block.kind is Kind.TEXT:
            block, self._term = entry(self._term, block.text), ""
        self._undefined()
        if nav.is_boilerplate(block.text):
            self._dropped[nav.BOILERPLATE] += 1
        elif any(map(str.isalnum, block.text)):
            self.blocks.append(block)

    def read(self, lines: Sequence[str]) -> None:
        """Read lines between empty ones."""
        if lines and _NOTES.fullmatch(lines[0]):
            lines = lines[1:]
        elif lines and (note := _NOTE.match(lines[0])) is not None and note[1] in self._notes:
            lines = [lines[0][note.end() :], *lines[1:]]
        if not lines:
            return
        low = min(map(indent_of, lines))
        if self._term and low < self._column():
            self._end_code()
            self._undefined()
        indented = low >= self._column() + _CLOSE
        whole = indented and _column_of_item(lines[0]) is None  # in code, no line begins an item
        for piece in [lines] if whole else _pieces(lines):
            self._piece(piece)

    def _column(self) -> int:
        """Where the text of the last open item or definition begins."""
        return self._open[-1][0] if self._open else 0

    def _piece(self, lines: Sequence[str]) -> None:
        if (column := _column_of_item(lines[0])) is not None:
            self._item(lines, column)
        elif (defined := _DEFINED.match(lines[0])) is not None:
            self._definition(lines, len(defined[1]))
        else:
            self._lines(lines)

    def _close(self, column: int) -> None:
        """End the items and definitions whose text begins after a column."""
        while self._open and self._open[-1][0] > column:
            self._open.pop()

    def _item(self, lines: Sequence[str], column: int) -> None:
        self._close(column - _STEP)
        self._open.append((column, True))
        mark = lines[0].split(maxsplit=1)[0]
        found = _BULLET.match(lines[0])
        assert found is not None
        first, rest = _text_and_rest([" " * column + lines[0][found.end() :], *lines[1:]], column)
        depth = sum(is_item for _, is_item in self._open) - 1
        self._append(item(self._said(first), min(depth, 8), mark if mark[0].isdigit() else "-"))
        self._more(rest)

    def _definition(self, lines: Sequence[str], column: int) -> None:
        """A declaration, ` -- Command: name`, and what is indented below it."""
        self._close(column)
        self._open.append((column + _STEP, False))
        declared: list[str] = []
        place = 0
        for line in lines:
            if (found := _DEFINED.match(line)) is not None:
                declared.append(line[found.end() :])
            elif indent_of(line) >= column + 2 * _STEP:
                declared[-1] += f" {line.strip()}"
            else:
                break
            place += 1
        self._entry(", ".join(unwrapped([line]) for line in declared), lines[place:], column)

    def _entry(self, term: str, lines: Sequence[str], column: int) -> None:
        first, rest = _text_and_rest(lines, column + _STEP)
        self._end_code()
        self._undefined()
        self._term = term
        if first:
            self._append(Block(self._said(first)))
        self._more(rest)

    def _more(self, lines: Sequence[str]) -> None:
        """Read what is indented below an item or a definition."""
        if len(self._open) > _DEEPEST:
            self._code += ["", *lines]
        elif lines:
            self.read(lines)

    def _lines(self, lines: Sequence[str]) -> None:
        low = min(map(indent_of, lines))
        self._close(low)
        column = self._column()
        if low >= column + _CLOSE:
            if self._code or _is_example(lines, column):
                self._code += ["", *lines]
                return
            column = low
        code_there = is_code(lines, column) or _PROMPT.match(lines[0])  # some examples are not indented
        if code_there and not any(map(_NAME.fullmatch, lines)):
            self._code += ["", *lines]
            return
        for above, below in _groups(lines, column):
            self._group(above, below, column)

    def _group(self, above: Sequence[str], below: Sequence[str], column: int) -> None:
        """Lines, and those below that are indented: terms and what they mean, or a text and an example."""
        text, terms = _text_and_terms(above, column, defined=bool(below))
        cells = _CELLS.match(text[0]) if len(text) == 1 and not terms else None
        if cells is not None and (not below or indent_of(below[0]) == cells.end()):
            self._append(entry(bare(cells[1].strip()), self._said([text[0][cells.end() :], *below])))
            return
        if text:
            self._append(Block(self._said(text)))
        if terms:
            self._close(column)
            self._open.append((column + _STEP, False))
            self._entry(", ".join(bare(line.strip()) for line in terms), below, column)
        elif below and _is_example(below, column):
            self._code += ["", *below]
        elif below:
            self._append(Block(self._said(below)))

    def _said(self, lines: Sequence[str]) -> str:
        """Running text, with references as a reader sees them and without links to footnotes."""
        return _REFERENCE.sub(_reference, _NOTE_LINK.sub("", unwrapped(lines)))


def _without(clear: Collection[str]) -> Callable[[re.Match[str]], str]:
    """Leaves out the marks of some footnotes."""
    return lambda mark: "" if (mark[1] or mark[2]) in clear else mark[0]


def notes_of(pieces: Iterable[Sequence[str]], *, inside: bool) -> Iterator[str]:
    """The numbers of the footnotes at the end of a node, or in all of it."""
    for lines in pieces:
        inside = inside or _NOTES.fullmatch(lines[0]) is not None
        if inside and (note := _NOTE.match(lines[0])) is not None:
            yield note[1]


def _column_of_item(line: str) -> int | None:
    """Where the text of an item begins; None for a line that begins none."""
    mark = _BULLET.match(line)
    if mark is None:
        return None
    over = mark.end() % _STEP  # a long number moves the text of its line
    return mark.end() - over if over <= max(0, len(mark[1]) - 2) else None


def _is_example(lines: Sequence[str], column: int) -> bool:
    """Whether indented lines are code or the like rather than sentences that are quoted."""
    return any(map(_CODE_LINE.match, lines)) or is_code(lines, column) or not _ENDS.search(lines[-1][-_END:])


def _pieces(lines: Sequence[str]) -> Iterator[Sequence[str]]:
    """Lines in parts: each begins with an item or has none, and the end of what was indented is one of its own."""
    start, low = 0, min(map(indent_of, lines))
    inside = _column_of_item(lines[0]) is None and indent_of(lines[0]) >= low + _CLOSE
    for place in range(1, len(lines)):
        ended = inside and indent_of(lines[place]) < low + _CLOSE
        if ended or _column_of_item(lines[place]) is not None:
            inside = False
            yield lines[start:place]
            start = place
    yield lines[start:]


def _groups(lines: Sequence[str], column: int) -> Iterator[tuple[Sequence[str], Sequence[str]]]:
    """Lines that are not indented, and those below that are."""
    place = 0
    while place < len(lines):
        start = place
        while place < len(lines) and indent_of(lines[place]) < column + _CLOSE:
            place += 1
        middle = place
        while place < len(lines) and indent_of(lines[place]) >= column + _CLOSE:
            place += 1
        yield lines[start:middle], lines[middle:place]


def _text_and_terms(lines: Sequence[str], column: int, *, defined: bool) -> tuple[Sequence[str], Sequence[str]]:
    """Lines before others that are indented (`defined`) or not: a text, and the terms at its end."""
    start = len(lines)
    while start and indent_of(lines[start - 1]) == column and _NAME.fullmatch(lines[start - 1]):
        start -= 1
    if start < len(lines) or not defined:
        return lines[:start], lines[start:]
    while start and lines[start - 1][-1] not in ":,":
        start -= 1
    terms = lines[start:]
    several = len(terms) > 1 and any(map(wordy, terms))
    if several or any(indent_of(line) != column or _CELLS.match(line) for line in terms):
        return lines, []
    return lines[:start], terms


def _text_and_rest(lines: Sequence[str], column: int) -> tuple[Sequence[str], Sequence[str]]:
    """The first lines, up to one that is indented more or the names of what is, and the others."""
    end = next((place for place, line in enumerate(lines) if indent_of(line) >= column + _CLOSE), len(lines))
    while 0 < end < len(lines) and _NAME.fullmatch(lines[end - 1]):
        end -= 1
    return lines[:end], lines[end:]


def _reference(found: re.Match[str]) -> str:
    """`*note Lakes::` as "see Lakes", or "Lakes" after a word such as "see"."""
    name = found[2]
    if (other := _OTHER.fullmatch(name)) is not None:
        name = other[1] if other[2] in ("", "Top") else f"{other[2]} in {other[1]}"
    before = found.string[max(0, found.start() - 12) : found.start()]
    if _BEFORE_NAME.search(before):
        return name
    first = found[1][0] == "N" or not before.strip() or before.rstrip()[-1] in ".!?"
    return f"{'See' if first else 'see'} {name}"
