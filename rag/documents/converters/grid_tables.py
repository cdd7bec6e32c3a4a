"""Grid tables of pandoc in Markdown, whose cells are drawn with `+`, `-` and `|` and may hold several lines."""

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_block import StateBlock

_BORDER = re.compile(r"\+(?::?[-=]+:?\+)+")
_MAX_LINES = 1000


def read_grid_tables(reader: "MarkdownIt") -> None:
    """Let a reader know grid tables; docutils finds their cells, whose text is Markdown."""

    def table(state: "StateBlock", start: int, end: int, silent: bool) -> bool:
        if state.is_code_block(start) or not _BORDER.fullmatch(_line(state, start)):
            return False
        last = start + 1
        while last < min(end, start + _MAX_LINES) and _line(state, last)[:1] in ("+", "|"):
            last += 1
        parts = _parse([_line(state, number) for number in range(start, last)])
        if parts is None:
            return False
        if not silent:
            head, body = parts
            rows = [*(_row(reader, row, "th") for row in head), *(_row(reader, row, "td") for row in body)]
            token = state.push("html_block", "", 0)
            token.content = f"<table>{''.join(rows)}</table>\n"
            token.map = [start, last]
            state.line = last
        return True

    alternatives = ["paragraph", "reference", "blockquote", "list"]
    reader.block.ruler.before("fence", "grid_table", table, {"alt": alternatives})


def _line(state: "StateBlock", number: int) -> str:
    return state.src[state.bMarks[number] + state.tShift[number] : state.eMarks[number]].rstrip()


def _parse(lines: list[str]) -> tuple[list[Any], list[Any]] | None:
    """The rows of the head and of the body, as docutils gives them; None if the lines are no table."""
    from docutils.parsers.rst.tableparser import GridTableParser, TableMarkupError
    from docutils.statemachine import StringList

    lines = [line.replace(":", "=" if "=" in line else "-") if _BORDER.fullmatch(line) else line for line in lines]
    if len({*map(len, lines)}) > 1:
        return None
    try:
        _, head, body = GridTableParser().parse(StringList(lines))
    except (TableMarkupError, AssertionError, IndexError, ValueError):
        return None
    return head, body


def _row(reader: "MarkdownIt", cells: list[Any], tag: str) -> str:
    """A row as HTML; docutils gives the further rows and columns that a cell spans, its first line, and its lines."""
    return "<tr>{}</tr>".format(
        "".join(
            f'<{tag} rowspan="{cell[0] + 1}" colspan="{cell[1] + 1}">{reader.render(chr(10).join(cell[3]))}</{tag}>'
            for cell in cells
            if cell is not None
        )
    )
