"""The tables of a PDF: lines that wide gaps part into cells which stand below each other."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rag.documents.converters.pdf_headings import Mark
from rag.documents.converters.pdf_pages import Line

_NUMBER = re.compile(r"[-+−–±<>~≈(]*\.?\d[^a-zA-Z]*(?:[a-zA-Z%°µΩ/]{1,4}\W*)?")
_COLUMN = re.compile(r"""$|[#%$("'“<]?[^\W\d_]|[#%]$""")  # how the name of a column begins
_LETTER, _WORD = re.compile(r"[^\W\d_]"), re.compile(r"[^\W\d_]{2}")
_DIGITS = 40  # characters of a number
_CELLS = 100  # of a row
_MIN_COLUMNS = 3  # of a table that is drawn cell by cell
_NAME = 6  # words in the name of a column


class Cell(NamedTuple):
    """The text of a cell and where it stands."""

    text: str
    left: int
    right: int


@dataclass(slots=True)
class _Row:
    cells: list[Cell]
    y: int
    bottom: int  # the height of its last line
    size: int
    bold: bool


class Table(NamedTuple):
    """Rows of as many cells each, and the names of the columns if the first line has them."""

    names: list[str]
    rows: list[list[str]]
    top: Line

    @property
    def has_words(self) -> bool:
        """Whether there is more than numbers and signs; a row alone needs a word, as an axis may end in `x`."""
        word = _LETTER if self.names or len(self.rows) > 1 else _WORD
        return any(word.search(cell) for row in [self.names, *self.rows] for cell in row)


def with_tables(lines: Sequence[Line | Mark], leading: int) -> Iterator[Line | Mark | Table]:
    """The lines of a page, with tables in place of the lines that they are made of."""
    position = 0
    while position < len(lines):
        line = lines[position]
        if isinstance(line, Line) and line.cells and not (position and _is_result(lines[position - 1], line, leading)):
            rows, columns, end = _rows(lines, position, leading)
            if len(rows) > 1 or (rows and _has_numbers(rows[0])):
                yield _table(rows, columns, line)
                position = end
                continue
            cells, end = _find_cell_rows(lines, position)
            if cells:
                yield Table([cell.text for cell in _cells(line)], cells, line)
                position = end
                continue
        yield line
        position += 1


def _find_cell_rows(lines: Sequence[Line | Mark], position: int) -> tuple[list[list[str]], int]:
    """The rows below a bold line that names three columns or more, where all lines of a cell are drawn before the next.

    And the number of the line after them; no rows if the lines are not so.
    """
    names = lines[position]
    assert isinstance(names, Line)
    columns = [cell.left for cell in _cells(names)]
    if len(columns) < _MIN_COLUMNS or not names.look or any(len(cell.text.split()) > _NAME for cell in _cells(names)):
        return [], position
    rows: list[list[str]] = []
    starts: list[int] = []
    top = before = names.y  # of the row; of the line before
    last = len(columns)  # the column before
    position += 1
    while position < len(lines):
        line = lines[position]
        if isinstance(line, Mark) or line.cells or line.mono or line.look or abs(line.size - names.size) > 15:
            break
        column = next((n for n, left in enumerate(columns) if abs(left - line.left) < 0.6 * line.size), None)
        if column is None or (column > last and abs(line.y - top) > 1.4 * line.size):
            break
        if column == last and not 0 < before - line.y <= 2.5 * line.size:
            break
        if column < last:
            if line.y >= top or not (rows or column == 0):
                break
            rows.append([""] * len(columns))
            starts.append(position)
            top = line.y
        rows[-1][column] = f"{rows[-1][column]} {line.text}".strip()
        last, before = column, line.y
        position += 1
    if rows and sum(map(bool, rows[-1])) < 2:  # it is something else
        rows.pop()
        position = starts.pop()
    return (rows if all(sum(map(bool, row)) > 1 for row in rows) else []), position


def _is_result(previous: Line | Mark, line: Line, leading: int) -> bool:
    """Whether a line is the result of the code above it."""
    return isinstance(previous, Line) and previous.mono and 0 < previous.y - line.y <= 2.5 * max(leading, line.size)


def _has_numbers(row: _Row) -> bool:
    """Whether a line that stands alone is a row: most of its cells are numbers."""
    numbers = sum(_NUMBER.fullmatch(cell.text) is not None for cell in row.cells if len(cell.text) <= _DIGITS)
    return len(row.cells) > 2 and 2 * numbers > len(row.cells)


def _rows(lines: Sequence[Line | Mark], position: int, leading: int) -> tuple[list[_Row], list[tuple[int, int]], int]:
    """The rows that begin with a line, the left and right ends of their columns, and the number of the line after."""
    rows: list[_Row] = []
    columns: list[tuple[int, int]] = []
    while position < len(lines):
        row, end = _row(lines, position, leading)
        if row is None:
            break
        if rows:
            fitting = _fit_row(columns, row)
            if fitting is None or not 0 < rows[-1].bottom - row.y <= 2.5 * max(leading, row.size):
                break
            columns = fitting
        else:
            columns = [(cell.left, cell.right) for cell in row.cells]
        rows.append(row)
        position = end
    return rows, columns, position


def _row(lines: Sequence[Line | Mark], position: int, leading: int) -> tuple[_Row | None, int]:
    """The row that begins with a line, with the lines that go on below and beside its cells; None if it is no row."""
    line = lines[position]
    if isinstance(line, Mark) or line.mono:
        return None, position
    cells = _cells(line)
    row = _Row(cells, line.y, line.y, line.size, bool(line.look))
    lowest = line.y
    position += 1
    while position < len(lines):
        line = lines[position]
        if isinstance(line, Mark) or line.mono or abs(line.size - row.size) > 15 or len(cells) > _CELLS:
            break
        if abs(line.y - row.y) <= 0.35 * row.size and line.left > cells[-1].right + row.size // 2:
            cells += _cells(line)
            lowest = row.y
        elif not line.cells and 0.8 * leading <= lowest - line.y <= 1.35 * max(leading, row.size):
            # A line goes on in a cell that it begins below of; that of the first cell may be a paragraph of its own.
            column = next((n for n, cell in enumerate(cells) if abs(cell.left - line.left) < 0.6 * row.size), 0)
            if column == 0:
                break
            text, left, right = cells[column]
            cells[column] = Cell(f"{text} {line.text}", left, max(right, line.right))
            lowest = line.y
            row.bottom = min(row.bottom, lowest)
        else:
            break
        position += 1
    is_item = len(cells) == 2 and len(cells[0].text) == 1 and not cells[0].text.isalnum()  # or a remark in code
    return (row if len(cells) > 1 and not is_item else None), position


def _cells(line: Line) -> list[Cell]:
    if not line.cells:
        return [Cell(line.text, line.left, line.right)]
    starts = line.cells[::3]
    ends = [*starts[1:], len(line.text)]
    return [
        Cell(line.text[start:end].strip(), left, right)
        for start, end, left, right in zip(starts, ends, line.cells[1::3], line.cells[2::3], strict=True)
    ]


def _fit_row(columns: list[tuple[int, int]], row: _Row) -> list[tuple[int, int]] | None:
    """The columns with another row; None if its cells do not stand below them."""
    column_bounds = list(columns)
    blocks: list[int] = []
    is_aligned: list[bool] = []
    for cell in row.cells:
        overlaps = [n for n, (left, right) in enumerate(column_bounds) if cell.left < right and left < cell.right]
        if len(overlaps) > 1 or overlaps[:1] == blocks[-1:] != []:
            return None
        if overlaps:
            left, right = column_bounds[overlaps[0]]
            offsets = (cell.left - left, cell.right - right, (cell.left + cell.right - left - right) // 2)
            is_aligned.append(min(map(abs, offsets)) <= row.size)
            column_bounds[overlaps[0]] = (min(left, cell.left), max(right, cell.right))
            blocks += overlaps
        else:
            blocks.append(len(column_bounds))
            column_bounds.append((cell.left, cell.right))
    fits = len(is_aligned) > 1 and is_aligned[0] and 2 * sum(is_aligned) > len(is_aligned)
    return sorted(column_bounds) if fits else None


def _table(rows: Sequence[_Row], columns: Sequence[tuple[int, int]], top: Line) -> Table:
    cell_rows = [[_at(row, left, right) for left, right in columns] for row in rows]
    bold = rows[0].bold and not any(row.bold for row in rows[1:])
    if not _are_names(cell_rows[0], cell_rows[1:], bold=bold):
        return Table([], cell_rows, top)
    return Table(cell_rows[0], cell_rows[1:], top)


def _at(row: _Row, left: int, right: int) -> str:
    return next((cell.text for cell in row.cells if left <= cell.left and cell.right <= right), "")


def _are_names(first: Sequence[str], tail: Sequence[Sequence[str]], *, bold: bool) -> bool:
    """Whether a row names the columns: it is bold, or stands above numbers and has none or lacks the first cell."""
    if _has_corner(first, tail):
        return True
    if not all(_COLUMN.match(cell) and len(cell.split()) <= _NAME for cell in first):
        return False
    if bold:
        return True
    if len(first) == 2 and len(tail) < 2:
        return False  # a name and what it says, as in a form
    for column, name in enumerate(first):
        cells = [row[column] for row in tail if row[column]]
        if any(map(str.isalpha, name)) and 2 * sum(map(bool, map(_NUMBER.fullmatch, cells))) > len(cells):
            return True
    return False


def _has_corner(first: Sequence[str], tail: Sequence[Sequence[str]]) -> bool:
    """Whether a row lacks the first cell alone, as that stands above names and the others above numbers: `50–59`."""
    if first[0] or len({*first}) != len(first) or len(first) < 3 or len(tail) < 2:
        return False
    columns = [[row[column] for row in tail if row[column]] for column in range(len(first))]
    numbers = [sum(map(bool, map(_NUMBER.fullmatch, cells))) for cells in columns]
    is_named = len(columns[0]) == len(tail) and not numbers[0] and all(map(_LETTER.search, columns[0]))
    has_numbers = all(2 * count > len(cells) for count, cells in zip(numbers[1:], columns[1:], strict=True))
    return is_named and has_numbers and all(len(cell.split()) <= _NAME for cell in first)
