"""Tables of HTML: which ones hold data, and their cells with row and column spans filled in."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rag.corpus.documents.blocks import squeezed

if TYPE_CHECKING:
    from selectolax.lexbor import LexborNode

_WIDEST = 100  # columns; a span that says more is wrong
_REPEATED = 300  # characters of a cell that is repeated, at most


@dataclass(frozen=True, slots=True)
class Cell:
    """The text of a cell; `header` if it names its column or row."""

    text: str
    header: bool


def is_layout(table: "LexborNode") -> bool:
    """Whether a table only places text on the page: one column, or cells that hold pages' worth of structure."""
    if table.attributes.get("role") in ("presentation", "none"):
        return True
    if table.css_first("table table, h1, h2, h3, h4, h5, h6, dl, tr.question") is not None:
        return True
    if any("\n" in block.text().strip() for block in table.css("pre")):
        return True
    widest = 0
    for line in table.css("tr"):
        cells = [cell for cell in line.iter() if cell.tag in ("td", "th")]
        widest = max(widest, sum(bool(squeezed(cell.text())) for cell in cells))
        if any(len(cell.css("p")) > 1 and len(cell.text().split()) > 60 for cell in cells):
            return True
    return widest < 2


def cells_of(table: "LexborNode") -> list[list[Cell]]:
    """The rows of a table. A cell that spans rows or columns is repeated in each, unless it is long."""
    rows: list[list[Cell]] = []
    above: dict[int, tuple[Cell, int]] = {}  # by column: a cell that spans rows, and how many rows it still takes
    for line in table.css("tr"):
        parent = line.parent
        in_head = parent is not None and parent.tag == "thead"
        cells: list[Cell] = []
        for node in line.iter():
            if node.tag not in ("td", "th"):
                continue
            _fill(cells, above)
            cell = Cell(_text(node), node.tag == "th" or in_head)
            again = cell if len(cell.text) <= _REPEATED else Cell("", cell.header)
            down = _span(node, "rowspan")
            for place in range(_span(node, "colspan")):
                if down > 1:
                    above[len(cells)] = (again, down - 1)
                cells.append(again if place else cell)
        _fill(cells, above)
        if cells:
            rows.append(_without_repeats(cells))
    return rows


def _fill(cells: list[Cell], above: dict[int, tuple[Cell, int]]) -> None:
    while (column := len(cells)) in above:
        cell, left = above.pop(column)
        cells.append(cell)
        if left > 1:
            above[column] = (cell, left - 1)


def _without_repeats(cells: list[Cell]) -> list[Cell]:
    """One cell that spans all columns counts once."""
    return cells[:1] if len(cells) > 1 and all(cell == cells[0] for cell in cells) else cells


def _text(node: "LexborNode") -> str:
    """The text of a cell, with a space where its paragraphs and items meet."""
    return squeezed(node.text(separator=" ") if node.css_first("p, li, div, br") is not None else node.text())


def _span(node: "LexborNode", name: str) -> int:
    value = (node.attributes.get(name) or "1").strip()
    return max(1, min(int(value), _WIDEST)) if value.isascii() and value.isdigit() and len(value) < 6 else 1
