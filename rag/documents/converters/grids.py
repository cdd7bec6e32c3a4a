"""The rows of tables of office files, which rarely say which row names the columns."""

import re
from collections.abc import Iterator, Sequence

from rag.base.errors import FormatError
from rag.documents.blocks import Block, row

MAX_CELLS = 5_000_000
_MAX_NAME_LENGTH = 60  # characters of the name of a column
_SAMPLE_ROWS = 20  # rows below the first that are looked at
_REGULAR = 5  # rows below the names, that have nearly all cells
_NUMBERS = 0.9  # of the cells below a name
_AMOUNT = re.compile(r"[^\w\s]{0,3}\s?\d")  # how a cell with a number, date or price begins
_NUMBER = re.compile(r"[\d\W]*\d[\d\W]*(?:[a-zA-Z]{1,3}\W*)?")  # all of a cell: "1,047", "12.5 km", "2024-06-01"
_YEAR = re.compile(r"(?:19|20)\d\d")
_DIGITS, _WORD = re.compile(r"\d[\d.,]*"), re.compile(r"[^\W\d_]+")
_VALUE = re.compile(r"\S@\S|://|\d{5}|:$")  # in what stands in a table rather than names its columns

Rows = Sequence[Sequence[str]]


def check_cells(cells: int, where: str) -> None:
    """Raise `FormatError` for a table that would take too much memory."""
    if cells > MAX_CELLS:
        raise FormatError(f"{where}: refused, as it has more than {MAX_CELLS:,} cells")


def grid_rows(rows: Rows, page: int | None = None, bold: Sequence[bool] = ()) -> Iterator[Block]:
    """The rows of tables between empty rows; `bold` says which rows are all bold, if that is known."""
    names: Sequence[str] = ()
    before: Sequence[str] = ()  # the names of the last table
    begins = True
    at = 0
    while at < len(rows):
        cells = rows[at]
        if not any(cells):
            names, begins = (), True
        elif begins and sum(map(bool, cells)) > 1:
            end = next(
                (n for n in range(at + 1, min(len(rows), at + 1 + _SAMPLE_ROWS)) if not any(rows[n])),
                at + 1 + _SAMPLE_ROWS,
            )
            others = rows[at + 1 : end]
            marked = any(bold[at : at + 1]) and not all(bold[at + 1 : end])
            if notes := _notes(cells, others):
                yield from filter(None, (row(line, page=page) for line in rows[at : at + notes]))
                at += notes
                continue
            if others and (both := _in_two_rows(cells, others)):
                names = before = both
                at += 1
            elif are_names(cells, others, bold=marked, first_table=not _same_places(before, cells)):
                names = before = cells
            elif (block := row(cells, page=page)) is not None:
                yield block
            begins = False
        elif (block := row(cells, names, page)) is not None:
            yield block  # one cell above a table is its title
        at += 1


def _notes(first: Sequence[str], others: Rows) -> int:
    """How many rows are notes above the row that names the columns: the first of all cells, above numbers; 0 or 2+."""
    counts = [sum(map(bool, line)) for line in (first, *others)]
    width = max(counts)
    at = counts.index(width)
    if at < 2 or width < 3 or min(counts[:at]) > width / 2:
        return 0
    names, below = others[at - 1], others[at : at + _REGULAR]
    regular = len(below) > 1 and all(count >= 0.7 * width for count in counts[at + 1 : at + 1 + _REGULAR])
    named = any(_above_numbers(names, below, place) for place in range(len(names)))
    return at if regular and named and are_names(names, below, bold=False) else 0


def are_names(first: Sequence[str], others: Rows, *, bold: bool, first_table: bool = True) -> bool:
    """Whether a row names the columns of those below.

    It is bold, or it stands above numbers and has none, or it has at least three columns: of two, the first mostly
    holds the names and the second what they say.
    """
    filled = [cell for cell in first if cell]
    if len(filled) < 2 or not any(map(any, others)):
        return False
    years = [place for place, cell in enumerate(first) if _YEAR.fullmatch(cell)]
    if any(_VALUE.search(cell) or len(cell) > _MAX_NAME_LENGTH for cell in filled):
        return False
    if any(_NUMBER.fullmatch(cell) and not _YEAR.fullmatch(cell) for cell in filled) or len(years) == len(filled):
        return False
    if years:
        return len(years) > 1 and all(_above_numbers(first, others, place) for place in years)
    if bold:
        return True
    numbers = [place for place in range(len(first)) if _above_numbers(first, others, place)]
    if numbers:
        return len(filled) > 2 or not _differ(_column(others, numbers[-1]))
    repeated = any(cell and cell == other for line in others for cell, other in zip(first, line, strict=False))
    return first_table and len(filled) > 2 and not repeated


def _above_numbers(first: Sequence[str], others: Rows, place: int) -> bool:
    """Whether a cell is a word or year above numbers."""
    name = first[place]
    below = _column(others, place)
    if not name or not below or (_AMOUNT.match(name) and not _YEAR.fullmatch(name)):
        return False
    return sum(_AMOUNT.match(cell) is not None for cell in below) >= _NUMBERS * len(below)


def _column(rows: Rows, place: int) -> list[str]:
    """The cells of a column that are not empty."""
    return [line[place] for line in rows if place < len(line) and line[place]]


def _differ(cells: Sequence[str]) -> bool:
    """Whether most cells are of different forms, `40`, `£3` and `6 weeks`, as those in a form are, not in a column."""
    forms = {_WORD.sub("a", _DIGITS.sub("0", cell)) for cell in cells}
    return len(forms) > 1 and 2 * len(forms) > len(cells)


def _in_two_rows(upper: Sequence[str], others: Rows) -> list[str]:
    """The names of columns in two rows, of which the upper one groups those of the lower one; empty if they do not."""
    lower = others[0]
    gaps = [place for place, cell in enumerate(lower) if cell and not any(upper[place : place + 1])]
    if (
        len(gaps) < 2
        or len(others) < 2
        or not are_names(lower, others[1:], bold=False)
        or any(_NUMBER.fullmatch(cell) and not _YEAR.fullmatch(cell) for cell in upper if cell)
    ):
        return []
    if not any(_above_numbers(lower, others[1:], place) for place in gaps):
        return []
    names, group = [], ""
    for place, cell in enumerate(lower):
        group = (upper[place] if place < len(upper) else "") or group
        names.append(", ".join(part for part in (group, cell) if part))
    return names


def _same_places(names: Sequence[str], cells: Sequence[str]) -> bool:
    """Whether cells stand where the names of the columns of the table above did."""
    return any(names) and [*map(bool, names)] == [*map(bool, cells)]
