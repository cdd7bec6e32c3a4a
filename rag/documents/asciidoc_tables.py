"""Tables of AsciiDoc: `|===`, cells behind `|` in any number of lines, or values between commas or colons."""

import csv
import re
from collections.abc import Sequence

_TABLE = re.compile(r"[|,:!]={3,}")
_CELL = re.compile(r"(?<!\\)(?:(?:(?<=\s)|^)(?:(\d{1,3})?(?:\.(\d{1,4}))?([+*]))?[<^>.]{0,4}[adehlmsv]?)?(?<!\\)\|")
_COLUMNS = re.compile(r"cols\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([\w.*<>^~]+))")
_TIMES = re.compile(r"\s*(\d{1,3})\*.*")
_FORMAT = re.compile(r"format\s*=\s*[\"']?(csv|dsv|tsv)")
_HEADER = re.compile(r"(?:options|opts)\s*=\s*[\"']?[\w,]*header|%[\w%]*(?<![a-z])header\b")
_NO_HEADER = re.compile(r"noheader")
_WIDEST = 200  # columns
_SEPARATORS = {",": ",", ":": ":", "csv": ",", "dsv": ":", "tsv": "\t"}


def is_table(line: str) -> bool:
    """Whether a line begins or ends a table."""
    return _TABLE.fullmatch(line) is not None


class Table:
    """The cells of a table; `begin` is its first line, `style` what stands in brackets above it."""

    def __init__(self, begin: str, style: str) -> None:
        found = _FORMAT.search(style)
        self._separator = _SEPARATORS.get(found[1] if found else begin[0], "")
        self._columns = _columns(style)
        self._header = (
            None if not style else True if _HEADER.search(style) else False if _NO_HEADER.search(style) else None
        )
        self._cells: list[tuple[str, int, int]] = []  # with the columns and rows that they span
        self._values: list[str] = []  # lines of values between separators
        self._first = 0  # cells of the first line with some
        self._lines = 0

    def add(self, line: str) -> None:
        """Take the next line."""
        self._lines += 1
        if self._separator:
            self._values.append(line)
            return
        if not line.strip():
            if self._lines == 2 and self._first and self._header is None:
                self._header = True
            return
        end = 0
        for found in _CELL.finditer(line):
            self._continue(line[end : found.start()])
            times = int(found[1] or 1) if found[3] else 1
            if found[3] == "*":
                self._cells += [("", 1, 1)] * min(times, _WIDEST)
            else:
                self._cells.append(("", min(times, _WIDEST), int(found[2] or 1) if found[3] else 1))
            end = found.end()
        self._continue(line[end:])
        if not self._first:
            self._first = sum(width for _, width, _ in self._cells)

    def _continue(self, text: str) -> None:
        """Add a text to the last cell."""
        if text.strip() and self._cells:
            said, width, height = self._cells[-1]
            self._cells[-1] = (f"{said}\n{text.strip()}" if said else text.strip().replace("\\|", "|"), width, height)

    def rows(self) -> tuple[list[list[str]], int]:
        """The rows, and how many of them name the columns."""
        rows = self._of_values() if self._separator else self._of_cells(self._columns or self._first or 1)
        return rows, 1 if self._header and len(rows) > 1 else 0

    def _of_values(self) -> list[list[str]]:
        filled = [line for line in self._values if line.strip()]
        try:
            return [[cell.strip() for cell in line] for line in csv.reader(filled, delimiter=self._separator)]
        except csv.Error:
            return [line.split(self._separator) for line in filled]

    def _of_cells(self, columns: int) -> list[list[str]]:
        """The cells in rows; one that spans rows is repeated in each of them."""
        rows: list[list[str]] = []
        row: list[str] = []
        below: dict[int, tuple[str, int]] = {}  # texts by column, and for how many rows

        def fill() -> None:
            while len(row) < columns and len(row) in below:
                text, left = below.pop(len(row))
                if left > 1:
                    below[len(row)] = text, left - 1
                row.append(text)

        for text, width, height in self._cells:
            fill()
            if len(row) >= columns:
                rows.append(row)
                row = []
                fill()
            for shift in range(min(width, columns - len(row))):
                if height > 1:
                    below[len(row)] = text, height - 1
                row.append("" if shift else text)
        fill()
        return [*rows, row] if row else rows


def _columns(style: str) -> int:
    """How many columns `cols="1,2a,3*"` names; 0 if it names none."""
    found = _COLUMNS.search(style)
    if found is None:
        return 0
    parts: Sequence[str] = re.split(r"[,;]", found[1] or found[2] or found[3] or "")
    return min(sum(int(times[1]) if (times := _TIMES.fullmatch(part)) else 1 for part in parts), _WIDEST)
