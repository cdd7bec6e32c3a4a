"""A table of LaTeX, cell by cell."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from rag.documents.blocks import squeezed

_LONGEST = 200  # characters of a cell that is said more than once


@dataclass(slots=True)
class Table:
    """A table that is read: each cell with the columns that it spans."""

    rows: list[list[tuple[str, int]]] = field(default_factory=list)
    cells: list[tuple[str, int]] = field(default_factory=list)
    span: int = 1
    rules: list[int] = field(default_factory=list)  # the numbers of rows above them
    heads: int = 0
    bold: bool = False  # whether something in the first row is
    part: int = 0  # the row that a part of a long table begins with

    def cell(self, text: str) -> None:
        """Add a cell to the row that is read."""
        self.cells.append((squeezed(text), self.span))
        self.span = 1

    def end_row(self) -> None:
        """End the row that is read, unless it is empty."""
        if any(text for text, _ in self.cells):
            self.rows.append(self.cells)
        self.cells = []

    def end_part(self, name: str) -> None:
        """End the head or foot of a long table, which may come twice."""
        if name in ("endfirsthead", "endhead") and not self.heads:
            self.heads = self.part = len(self.rows)
        else:
            del self.rows[self.part :]

    def said(self) -> tuple[list[list[str]], int]:
        """The rows, and how many of them name the columns."""
        heads = self.heads or self._heads()
        if any(len(text) > _LONGEST for row in self.rows[:heads] for text, _ in row):
            heads = 0
        return [[*self._spread(row, number < heads)] for number, row in enumerate(self.rows)], heads

    def _heads(self) -> int:
        inner = sorted({rule for rule in self.rules if 0 < rule < len(self.rows)})
        if not inner or inner[0] > 3:
            return 0
        if len(inner) > 1 and len(inner) == len(self.rows) - 1:  # below all rows: as in office files
            return int(self.bold or len(self.rows[0]) > 2)
        return inner[0]

    def _spread(self, row: Sequence[tuple[str, int]], again: bool) -> list[str]:
        cells: list[str] = []
        for text, span in row:
            cells += [text, *[text if again else ""] * (span - 1)]
        return cells
