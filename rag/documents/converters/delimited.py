"""Blocks from tables whose cells stand between commas, semicolons, tabs or bars (CSV and TSV)."""

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import dropwhile, islice

from autoais.base.io.files import allow_long_cells
from rag.documents.blocks import Block, row
from rag.documents.normalize import squeeze
from rag.documents.tables import check_cells, fill_groups, find_keys

_SIGNS = ",;\t|"
_SEPARATOR = re.compile(r"sep=([^\w\"\r\n ])[ \t]*\r?\n", re.IGNORECASE)  # as Excel has it
_MAX_CELL_WORDS = 8  # words of a cell, at most, in a table whose rows differ
_YEAR = re.compile(r"(?:19|20)\d\d(?:[-/]\d\d(?:\d\d)?)?")
# A number, date, time, phone number or address.
_VALUE = re.compile(r"[\s.,:/()+%€$£#-]*\d[\s\d.,:/()+%€$£#-]*|\S+@\S+\.\S+|\w+://\S+")
_MAX_VALUE_LENGTH = 80  # characters
_NAME = 3  # words of the name of a column below an empty line; more are data
_SAMPLE_ROWS = 50  # rows, to find what stands between the cells
_COLON_ROWS = 5  # of a table whose cells stand between colons, at least
_NO_CELLS = re.compile(r":\s|\s:|://|(?<!\d)\d{1,2}:\d\d(?!\d)")  # colons of prose, settings, addresses and times
_LETTERS = re.compile(r"[^\W\d_]{3}")
_REGULAR = 0.7  # of them have as many cells as most


def table_rows(text: str, location: str) -> list[Block] | None:
    """The rows of tables, each a block; None if it is none, as its lines have no cells or are text with commas."""
    if name_match := _SEPARATOR.match(text):
        text = text[name_match.end() :]
    try:
        sign = name_match[1] if name_match else max(_SIGNS, key=lambda item: _fits(text, item))
        regular, *fits = (True, 1) if name_match else _fits(text, sign)
        if not any(fits):
            return None
        rows = []
        cells = 0
        for line in _read(text, sign):
            cells += len(line)
            check_cells(cells, location)
            rows.append([squeeze(cell) for cell in line])
    except csv.Error:
        return None
    if regular:
        return [*_tables(rows)]
    words = Counter(len(cell.split()) > _MAX_CELL_WORDS for line in rows for cell in line if cell)
    return None if words[True] > 0.1 * words.total() else [block for line in rows if (block := row(line))]


def colon_blocks(text: str, location: str) -> list[Block] | None:
    """The rows of a text whose lines have cells between colons, as `ANC:Anchorage:US` has; None if it is none.

    A line above them that begins with `#` and has as many cells names the columns.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    texts = [line for line in lines if not line.startswith("#")]
    counts = Counter(line.count(":") for line in texts)
    colons, count = counts.most_common(1)[0] if counts else (0, 0)
    if colons < 2 or count < max(_COLON_ROWS, 0.9 * len(texts)):
        return None
    odd = sum(_NO_CELLS.search(line) is not None or not _LETTERS.search(line) for line in texts)
    if odd > 0.1 * len(texts):
        return None
    check_cells((colons + 1) * len(texts), location)
    names: Sequence[str] = ()
    blocks: list[Block | None] = []
    for line in lines:
        comment = line.startswith("#")
        cells = [squeeze(cell) for cell in line.lstrip("# ").split(":")]
        if comment and len(cells) == colons + 1 and not names:
            names = cells
        elif comment:
            blocks += [Block(squeeze(line.lstrip("# ")))] if _LETTERS.search(line) else []
        else:
            blocks.append(row(cells, names if len(cells) == colons + 1 else ()))
    return [block for block in blocks if block]


def _read(text: str, sign: str) -> Iterator[list[str]]:
    allow_long_cells(len(text))
    return csv.reader(io.StringIO(text, newline=""), delimiter=sign, skipinitialspace=True)


def _fits(text: str, sign: str) -> tuple[bool, float, int]:
    """Whether most rows have the usual number of cells, the share that has, and that number.

    Zeros if most rows have one cell. Lines above the table, such as its title, count for the share alone.
    """
    lines = [len(line) for line in islice(_read(text, sign), _SAMPLE_ROWS) if any(line)]
    items = [*dropwhile(lambda cells: cells == 1, lines)]
    if 2 * len(items) < len(lines) or sum(cells > 1 for cells in items) < _REGULAR * len(items) or not items:
        return False, 0, 0
    width, count = Counter(items).most_common(1)[0]
    return width > 1 and count >= _REGULAR * len(items), count / len(lines), width


def _tables(rows: Sequence[Sequence[str]]) -> Iterator[Block]:
    """The rows; the first with several cells names the columns, if its cells may be names, and so may one after a gap.

    A line with one cell is a caption.
    """
    rows = fill_groups(rows)
    nonempty = [line for line in rows if any(line)]
    width = Counter(map(len, nonempty)).most_common(1)[0][0] if nonempty else 0
    following = iter([*nonempty[1:], []])
    names: Sequence[str] = ()
    keys: Sequence[int] = ()
    begins, text, gap = True, 0, False  # rows since the names
    for number, cells in enumerate(rows):
        if not any(cells):
            gap = True
            continue
        after = next(following)
        if width > 2 and cells[0] and not any(cells[1:]):
            yield from filter(None, [row(cells)])
            continue
        is_repeat = names and list(cells) == list(names)
        new = (
            text
            and gap
            and all(0 < len(cell.split()) <= _NAME for cell in cells[:width])
            and any(map(_is_value, after))
        )
        is_sparse = 2 * sum(map(bool, cells)) <= width  # as a line above the table has
        if is_repeat or (not is_sparse and (begins or new) and _are_names(cells, after)):
            names, text, keys = cells, 0, find_keys(rows, number)
        else:
            text += 1
            yield from filter(None, [row(cells, names, keys=keys)])
        begins = begins and is_sparse
        gap = False


def _are_names(cells: Sequence[str], after: Sequence[str]) -> bool:
    """Whether cells name columns: none is a value, they are years above other values, or none is above the first."""
    nonempty = [cell for cell in cells if cell]
    if len(nonempty) < 2 or not any(after):
        return False
    values = [cell for cell in nonempty if _is_value(cell)]
    corner = not cells[0] and len(nonempty) == len(cells) - 1 and after[0] != ""
    lower = [cell for cell, name in zip(after, cells, strict=False) if _YEAR.fullmatch(name)]
    years = len(values) < len(nonempty) and all(map(_YEAR.fullmatch, values)) and not any(map(_YEAR.fullmatch, lower))
    return not values or corner or years


def _is_value(cell: str) -> bool:
    return len(cell) <= _MAX_VALUE_LENGTH and _VALUE.fullmatch(cell) is not None
