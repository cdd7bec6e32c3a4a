"""Tables of HTML: which ones hold data, and their cells with row and column spans filled in."""

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from rag.documents.normalize import squeeze

if TYPE_CHECKING:
    from selectolax.lexbor import LexborNode

_MAX_WIDTH = 100  # columns; a span that says more is wrong
_MAX_ROW_WORDS = 40  # words of a row
_LONG = 60  # words of a cell, from which on several paragraphs are no data
_PARTS = frozenset(["p", "li", "div", "br"])
_MAX_REPEATED_LENGTH = 300  # characters of a cell that is repeated, at most


@dataclass(frozen=True, slots=True)
class Cell:
    """The text of a cell; `header` if it names its column or row."""

    text: str
    header: bool
    alone: bool = False  # spans all columns


def is_layout(table: "LexborNode") -> bool:
    """Whether a table only places text on the page: one column, or cells that hold pages' worth of structure."""
    if table.attributes.get("role") in ("presentation", "none"):
        return True
    if len(table.css("table")) > 1 or table.css_first("h1, h2, h3, h4, h5, h6, dl, tr.question") is not None:
        return True  # the table itself is one of those found
    if any("\n" in block.text().strip() for block in table.css("pre")):
        return True
    lines = table.css("tr")
    widest = 0
    has_header = False  # columns that have names are those of a table
    for line in lines:
        cells = [cell for cell in line.iter() if cell.tag in ("td", "th")]
        texts = [cell.text() for cell in cells]
        has_header = has_header or (len(cells) > 1 and all(cell.tag == "th" for cell in cells))
        widest = max(widest, sum(map(bool, map(squeeze, texts))))
        long = (cell for cell, text in zip(cells, texts, strict=True) if len(text.split()) > _LONG)
        if not has_header and any(len(cell.css("p")) > 1 for cell in long):
            return True
    return widest < 2


def cells_of(table: "LexborNode") -> list[list[Cell]]:
    """The rows of a table. A cell that spans rows or columns is repeated in each, unless it is long."""
    rows: list[list[Cell]] = []
    bold: list[bool] = []
    previous: dict[int, tuple[Cell, int]] = {}  # by column: a cell that spans rows, and how many rows it still takes
    for line in table.css("tr"):
        parent = line.parent
        in_head = parent is not None and parent.tag == "thead"
        cells: list[Cell] = []
        for node in line.iter():
            if node.tag not in ("td", "th"):
                continue
            _fill(cells, previous)
            cell = Cell(_text(node), node.tag == "th" or in_head)
            is_repeat = cell if len(cell.text) <= _MAX_REPEATED_LENGTH else Cell("", cell.header)
            row_span = _span(node, "rowspan")
            for position in range(_span(node, "colspan")):
                if row_span > 1:
                    previous[len(cells)] = (is_repeat, row_span - 1)
                cells.append(is_repeat if position else cell)
        _fill(cells, previous)
        if cells:
            rows.append(_without_repeats(cells))
            bold.append(len(bold) < 2 and _is_bold(line))
    if len(rows) > 1 and bold[0] and not bold[1] and not any(cell.header for line in rows for cell in line):
        rows[0] = [Cell(cell.text, header=True) for cell in rows[0]]
    return _with_grouped_names(rows)


def _is_bold(line: "LexborNode") -> bool:
    """Whether all of several cells are bold from end to end."""
    cells = [(cell, text) for cell in line.iter() if (text := squeeze(cell.text()))]
    bold = ((cell.css_first("b, strong"), text) for cell, text in cells)
    return len(cells) > 1 and all(part is not None and squeeze(part.text()) == text for part, text in bold)


def _with_grouped_names(rows: list[list[Cell]]) -> list[list[Cell]]:
    """The rows, with a header of two rows in one if only the upper one tells columns of the same name apart."""
    if len(rows) < 3 or len(rows[0]) != len(rows[1]) or not all(cell.header for cell in rows[0] + rows[1]):
        return rows
    upper, lower = ([cell.text for cell in line] for line in rows[:2])
    if not any(a == b != "" for a, b in pairwise(upper)):
        return rows
    are_distinct = len(set(lower)) == len(lower)
    names = [
        b or a if are_distinct else ", ".join(dict.fromkeys(filter(None, (a, b))))
        for a, b in zip(upper, lower, strict=True)
    ]
    return [[Cell(name, header=True) for name in names], *rows[2:]]


def short_cells(line: "LexborNode") -> list[str]:
    """The cells of a row in a table for layout, if they are a row of data by themselves; else nothing."""
    if line.css_first("p, div, ul, ol, dl, table, pre, h1, h2, h3, h4, h5, h6, form") is not None:
        return []
    cells = [cell for cell in line.iter() if cell.tag in ("td", "th") and squeeze(cell.text())]
    texts = [_text(cell) for cell in cells]
    if (
        len(cells) < 2
        or all(cell.tag == "th" for cell in cells)
        or sum(len(text.split()) for text in texts) > _MAX_ROW_WORDS
    ):
        return []
    link_length = sum(len(squeeze(link.text())) for link in line.css("a[href]"))
    return texts if 2 * link_length < sum(map(len, texts)) else []


def _fill(cells: list[Cell], previous: dict[int, tuple[Cell, int]]) -> None:
    while (column := len(cells)) in previous:
        cell, left = previous.pop(column)
        cells.append(cell)
        if left > 1:
            previous[column] = (cell, left - 1)


def _without_repeats(cells: list[Cell]) -> list[Cell]:
    """One cell that spans all columns counts once."""
    if len(cells) < 2 or any(cell != cells[0] for cell in cells):
        return cells
    return [Cell(cells[0].text, cells[0].header, alone=True)]


def _text(node: "LexborNode") -> str:
    """The text of a cell, with a space where its paragraphs and items meet."""
    return squeeze(node.text() if _PARTS.isdisjoint(tags_inside(node)) else node.text(separator=" "))


def tags_inside(node: "LexborNode") -> set[str]:
    """The tags of all elements in an element; to look for several of them so takes less time than a selector."""
    tags: set[str] = set()
    waiting = [node]
    while waiting:
        for child in waiting.pop().iter():
            tags.add(child.tag or "")
            waiting.append(child)
    return tags


def _span(node: "LexborNode", name: str) -> int:
    value = (node.attributes.get(name) or "1").strip()
    return max(1, min(int(value), _MAX_WIDTH)) if value.isascii() and value.isdigit() and len(value) < 6 else 1
