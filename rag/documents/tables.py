"""The rows of tables, and which row names the columns: office files and texts rarely say so.

Tables of HTML say more, `html_tables`; those of PDFs are found by where their cells stand, `converters/pdf_tables`.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise, takewhile

from rag.base.errors import FormatError
from rag.documents.blocks import Block, row

MAX_CELLS = 5_000_000
_MAX_NAME_LENGTH = 60  # characters of the name of a column
_MAX_LONG_NAME, _SHORT_NAME = 600, 32  # characters of a question above short answers, and of what rows say of it
_MAX_ANSWER = 60  # characters below it
_KEY_ROWS = 1000  # rows that tell what the rows of a table are called by
_KEY_WORDS = 15
_MANY_COLUMNS = 6
_MIN_GROUPS, _GROUP_SHARE, _SAME_ROWS = 3, 0.6, 0.9
_SAMPLE_ROWS = 20  # rows below the first that are looked at
_REGULAR = 5  # rows below the names, that have nearly all cells
_NUMBERS = 0.9  # of the cells below a name
_AMOUNT = re.compile(r"[^\w\s]{0,3}\s?\d|=\S")  # how a cell with a number, date, price or formula begins
_NUMBER = re.compile(r"[\d\W]*\d[\d\W]*(?:[a-zA-Z]{1,3}\W*)?")  # all of a cell: "1,047", "12.5 km", "2024-06-01"
_YEAR = re.compile(r"(?:19|20)\d\d(?:-\d\d(?:-\d\d)?)?")  # or a date, as Excel has them
_DIGITS, _WORD = re.compile(r"\d[\d.,]*"), re.compile(r"[^\W\d_]+")
_VALUE = re.compile(r"\S@\S|://|\d{5}|:$")  # in what stands in a table rather than names its columns

Rows = Sequence[Sequence[str]]


def check_cells(cells: int, location: str) -> None:
    """Raise `FormatError` for a table that would take too much memory."""
    if cells > MAX_CELLS:
        raise FormatError(f"{location}: refused, as it has more than {MAX_CELLS:,} cells")


def grid_rows(rows: Rows, page: int | None = None, bold: Sequence[bool] = ()) -> Iterator[Block]:
    """The rows of tables between empty rows; `bold` says which rows are all bold, if that is known."""
    rows, bold = _one_below_another(fill_groups(rows), bold)
    names: Sequence[str] = ()
    keys: Sequence[int] = ()  # the columns that say what a row is about
    before: Sequence[str] = ()  # the names of the last table
    begins = True
    position = 0
    while position < len(rows):
        cells = rows[position]
        if not any(cells):
            names, keys, begins = (), (), True
        elif begins and sum(map(bool, cells)) > 1:
            end = next(
                (n for n in range(position + 1, min(len(rows), position + 1 + _SAMPLE_ROWS)) if not any(rows[n])),
                position + 1 + _SAMPLE_ROWS,
            )
            rows_below = rows[position + 1 : end]
            is_marked = any(bold[position : position + 1]) and not all(bold[position + 1 : end])
            if notes := _notes(cells, rows_below):
                yield from filter(None, (row(line, page=page) for line in rows[position : position + notes]))
                position += notes
                continue
            if rows_below and (columns := names_in_two_rows(cells, rows_below)):
                names = before = columns
                position += 1
            elif are_names(cells, rows_below, bold=is_marked, first_table=not _same_places(before, cells)):
                before = cells
                names, keys = _short_names(cells), find_keys(rows, position)
                if [*names] != [*cells] and (block := row(["Columns", *cells], page=page)) is not None:
                    yield block
            elif (block := row(cells, page=page)) is not None:
                yield block
            begins = False
        elif (block := row(cells, names, page, keys)) is not None:
            yield block  # one cell above a table is its title
        position += 1


def _one_below_another(rows: Rows, bold: Sequence[bool]) -> tuple[Rows, Sequence[bool]]:
    """The rows with tables that stand beside each other, with empty columns between them, one below another."""
    result: list[Sequence[str]] = []
    flags: list[bool] = []
    begin = 0
    for end in [*(number for number, cells in enumerate(rows) if not any(cells)), len(rows)]:
        area = rows[begin:end]
        parts = [[line[first:last] for line in area] for first, last in _column_runs(area)]
        headers = [_header(part) for part in parts]
        if len(parts) < 2 or not all(headers) or not (headers[0] == headers[-1] or all(map(_has_keys, parts))):
            parts = [[*area]]
        for part in parts:
            result += [*part, ()]
            flags += [*(bold[begin:end] or [False] * len(area)), False]
        begin = end + 1
    return result, flags


def _column_runs(area: Rows) -> list[tuple[int, int]]:
    """The first column and the end of each run of columns that are not empty."""
    is_filled = [False] * max(map(len, area), default=0)
    for line in area:
        for position, cell in enumerate(line):
            is_filled[position] |= bool(cell)
    edges = [n for n, (a, b) in enumerate(pairwise([False, *is_filled, False])) if a != b]
    return [*zip(edges[::2], edges[1::2], strict=True)]


def _header(part: Rows) -> Sequence[str]:
    """The names of the columns of a table below its title; empty if there is a column without one."""
    lines = [line for line in part if any(line)]
    position = next((n for n, line in enumerate(lines) if sum(map(bool, line)) > 1), len(lines))
    first, rows_below = [*lines, ()][position], lines[position + 1 : position + 1 + _SAMPLE_ROWS]
    return first if position < 2 and first and all(first) and are_names(first, rows_below, bold=True) else ()


def _has_keys(part: Rows) -> bool:
    """Whether the first column of a table has names, all different, and no numbers: each row is about one of them."""
    lines = [line for line in part if any(line)][: _SAMPLE_ROWS + 1]
    keys = _column(lines, 0)
    return len({*keys}) == len(keys) and not any(
        _above_numbers(line, lines[n + 1 :], 0) for n, line in enumerate(lines[:2])
    )


def _notes(first: Sequence[str], rows_below: Rows) -> int:
    """How many rows are notes above the row that names the columns: the first of all cells, above numbers; 0 or 2+."""
    counts = [sum(map(bool, line)) for line in (first, *rows_below)]
    width = max(counts)
    position = counts.index(width)
    if position < 2 or width < 3 or min(counts[:position]) > width / 2:
        return 0
    names, first_rows = rows_below[position - 1], rows_below[position : position + _REGULAR]
    regular = len(first_rows) > 1 and all(
        count >= 0.7 * width for count in counts[position + 1 : position + 1 + _REGULAR]
    )
    is_named = any(_above_numbers(names, first_rows, index) for index in range(len(names)))
    return position if regular and is_named and are_names(names, first_rows, bold=False) else 0


def are_names(first: Sequence[str], rows_below: Rows, *, bold: bool, first_table: bool = True) -> bool:
    """Whether a row names the columns of those below.

    It is bold, or it stands above numbers and has none, or it has at least three columns: of two, the first mostly
    holds the names and the second what they say.
    """
    nonempty = [cell for cell in first if cell]
    if len(nonempty) < 2 or not any(map(any, rows_below)):
        return False
    years = [position for position, cell in enumerate(first) if _YEAR.fullmatch(cell)]
    if any(_VALUE.search(cell) for cell in nonempty):
        return False
    if any(len(cell) > _MAX_NAME_LENGTH for cell in nonempty) and not _are_questions(first, rows_below):
        return False
    if any(_NUMBER.fullmatch(cell) and not _YEAR.fullmatch(cell) for cell in nonempty) or len(years) == len(nonempty):
        return False
    if years:
        return len(years) > 1 and all(_above_numbers(first, rows_below, position) for position in years)
    if bold:
        return True
    numbers = [position for position in range(len(first)) if _above_numbers(first, rows_below, position)]
    if numbers:
        return len(nonempty) > 2 or not _differ(_column(rows_below, numbers[-1]))
    is_repeated = any(cell and cell == other for line in rows_below for cell, other in zip(first, line, strict=False))
    return first_table and len(nonempty) > 2 and not is_repeated


def _are_questions(first: Sequence[str], rows_below: Rows) -> bool:
    """Whether the names of many columns are long, and all that stands below the long ones is short."""
    long_names = [position for position, cell in enumerate(first) if len(cell) > _MAX_NAME_LENGTH]
    return (
        sum(map(bool, first)) >= _MANY_COLUMNS
        and len(rows_below) >= _REGULAR
        and len({cell for cell in first if cell}) >= 0.9 * sum(map(bool, first))
        and max(map(len, first)) <= _MAX_LONG_NAME
        and all(len(cell) <= _MAX_ANSWER for position in long_names for cell in _column(rows_below, position))
        and any(_column(rows_below, position) for position in long_names)
    )


def _short_names(names: Sequence[str]) -> Sequence[str]:
    """The names of columns as the rows say them: if there are questions among them, the beginnings of long ones."""
    if max(map(len, names)) <= _MAX_NAME_LENGTH:
        return names
    short = [
        name if len(name) <= _SHORT_NAME else f"{name[: _SHORT_NAME + 1].rpartition(' ')[0] or name[:_SHORT_NAME]}…"
        for name in names
    ]
    counts = Counter(short)
    return [text if counts[text] == 1 else name for text, name in zip(short, names, strict=True)]


def find_keys(rows: Rows, header: int) -> list[int]:
    """The columns that say what a row is about, as their cells are all different: a name, or a code and the name.

    `header` is the place of the row that names the columns; the table ends before an empty row.
    """
    lines = [*takewhile(any, rows[header + 1 : header + 1 + _KEY_ROWS])]
    for position in range(len(rows[header])):
        cells = _column(lines, position)
        if not _tell_apart(cells, len(lines)):
            continue
        is_code = not any(" " in cell for cell in cells)
        following = _tell_apart(_column(lines, position + 1), len(lines))
        return [position, position + 1] if is_code and following else [position]
    return []


def _tell_apart(cells: Sequence[str], count: int) -> bool:
    """Whether the cells of a column are short and all rows have another one, with letters."""
    return (
        count > 1
        and len(cells) >= 0.9 * count
        and len({*cells}) >= 0.9 * len(cells)
        and all(len(cell.split()) <= _KEY_WORDS and _WORD.search(cell) is not None for cell in cells)
    )


def fill_groups(rows: Rows) -> Rows:
    """The rows, where a cell that is given in the first row of a group alone stands in each row of it.

    That the first columns are those of groups is seen by another column that is filled in the same rows, such as the
    address of a shop whose staff have a row each: a cell may as well be empty as there is nothing to say.
    """
    lines = [number for number, line in enumerate(rows) if any(line[1:])][1:]  # below the names
    width = max((len(rows[number]) for number in lines), default=0)
    filled_rows = [
        {number for number in lines if column < len(rows[number]) and rows[number][column]} for column in range(width)
    ]
    count = next((column for column in reversed(range(width - 1)) if _is_group(filled_rows, column, lines)), -1) + 1
    if not count or any(
        not (lines[0] in filled_rows[n] and filled_rows[n] <= filled_rows[count - 1]) for n in range(count)
    ):
        return rows
    result, group = [*rows], [""] * count
    for number, line in enumerate(rows):
        if number < lines[0] or not any(line):
            group = [""] * count
        elif number in filled_rows[count - 1]:
            first = next(n for n in range(count) if line[n])
            group = [*group[:first], *line[first:count]]
            result[number] = [*group, *line[count:]]
        elif any(line[count:]):
            result[number] = [*group, *line[count:]]
    return result


def _is_group(filled_rows: Sequence[set[int]], column: int, lines: Sequence[int]) -> bool:
    """Whether a column is filled in few rows, and another one behind it in the same rows, while one has all."""
    column_rows = filled_rows[column]
    if not _MIN_GROUPS <= len(column_rows) <= _GROUP_SHARE * len(lines) or lines[0] not in column_rows:
        return False
    has_partner = any(
        len(column_rows & other) >= _SAME_ROWS * len(column_rows | other) for other in filled_rows[column + 1 :]
    )
    return has_partner and any(len(other) >= 0.95 * len(lines) for other in filled_rows[column + 1 :])


def _above_numbers(first: Sequence[str], rows_below: Rows, position: int) -> bool:
    """Whether a cell is a word or year above numbers."""
    name = first[position]
    cells_below = _column(rows_below, position)
    if not name or not cells_below or (_AMOUNT.match(name) and not _YEAR.fullmatch(name)):
        return False
    if _YEAR.fullmatch(name) and any(map(_YEAR.fullmatch, cells_below)):
        return False  # it is one of them
    return sum(_AMOUNT.match(cell) is not None for cell in cells_below) >= _NUMBERS * len(cells_below)


def _column(rows: Rows, position: int) -> list[str]:
    """The cells of a column that are not empty."""
    return [line[position] for line in rows if position < len(line) and line[position]]


def _differ(cells: Sequence[str]) -> bool:
    """Whether most cells are of different forms, `40`, `£3` and `6 weeks`, as those in a form are, not in a column."""
    values = [cell for cell in cells if not cell.startswith("=")]  # a formula below them says nothing of them
    forms = {_WORD.sub("a", _DIGITS.sub("0", cell)) for cell in values}
    return len(forms) > 1 and 2 * len(forms) > len(values)


def names_in_two_rows(upper: Sequence[str], rows_below: Rows) -> list[str]:
    """The names of columns in two rows, of which the upper one groups those of the lower one; empty if they do not."""
    lower = rows_below[0]
    gaps = [position for position, cell in enumerate(lower) if cell and not any(upper[position : position + 1])]
    if (
        len(gaps) < 2
        or len(rows_below) < 2
        or not are_names(lower, rows_below[1:], bold=False)
        or any(_NUMBER.fullmatch(cell) and not _YEAR.fullmatch(cell) for cell in upper if cell)
    ):
        return []
    labels = [cell for cell in lower if cell]
    is_repeated = len(set(labels)) < len(labels)  # which only the upper row tells apart
    if not is_repeated and not any(_above_numbers(lower, rows_below[1:], position) for position in gaps):
        return []
    names, group = [], ""
    for position, cell in enumerate(lower):
        group = (upper[position] if position < len(upper) else "") or group
        names.append(", ".join(part for part in dict.fromkeys((group, cell)) if part))
    return names


def _same_places(names: Sequence[str], cells: Sequence[str]) -> bool:
    """Whether cells stand where the names of the columns of the table above did."""
    return any(names) and [*map(bool, names)] == [*map(bool, cells)]
