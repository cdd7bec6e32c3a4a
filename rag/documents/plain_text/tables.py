"""Tables in plain text: prices behind dots, and tables that are drawn."""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from rag.documents.blocks import Block, entry, row
from rag.documents.normalize import join_lines, squeeze
from rag.documents.plain_text.lines import DOTS
from rag.documents.tables import are_names

# Dots and what stands behind them, before another row.
_VALUE = re.compile(r"((?<=[^\s.:])[ \t]*(?:\. ?){4,}[ \t]*[^\s.]\S*(?: [€£$])?)\s+(?=[^\W\d_][^.]*(?:\. ?){4})")
_GRID_RULE = re.compile(r"(?=.*[-=]{2})[-+|=: ]+")
_BOXES = {
    **dict.fromkeys(map(ord, "─━═╌┄"), "-"),
    **dict.fromkeys(map(ord, "│┃║╎┆"), "|"),
    **dict.fromkeys([*range(0x250C, 0x254C), *range(0x2552, 0x256D)], "+"),
}  # what draws boxes, as signs of a keyboard
_NAME_WORDS = 12  # of the name of a column


def have_dots(lines: Sequence[str]) -> bool:
    """Whether lines are rows such as `Tea ...... 2.60`; one line alone needs a number, as prose has such dots too."""
    count = sum(map(bool, map(DOTS.search, lines)))
    numbers = any(sign.isdigit() for line in lines if (dots := DOTS.search(line)) for sign in line[dots.end() :])
    return 2 * count >= len(lines) and (count > 1 or numbers)


def price_list(lines: Sequence[str]) -> Iterator[Block]:
    """Rows such as `Tea ....... 2.60`, one or more a line; a line without dots belongs to the row above it."""
    lines = [row for line in lines for row in _VALUE.sub(r"\1\n", line).split("\n")]
    starts = [position for position, line in enumerate(lines) if DOTS.search(line)]
    if starts[0]:
        yield Block(join_lines(lines[: starts[0]]))
    for start, end in pairwise([*starts, len(lines)]):
        name, value = DOTS.split(join_lines(lines[start:end]), maxsplit=1)
        yield entry(name, value.lstrip(" :"))


def parse_drawn_table(lines: Sequence[str]) -> list[Block]:
    """The rows of a table that is drawn with `|` between its cells, which some stand between lines; else none."""
    texts = [line.strip().translate(_BOXES) for line in lines]
    if len(texts) < 3 or not all(line[0] in "|+" and line[-1] in "|+" for line in texts):
        return []
    table: list[list[list[str]]] = [[]]  # the lines between rules, in cells
    for line in texts:
        if _GRID_RULE.fullmatch(line):
            table.append([])
        else:
            table[-1].append([squeeze(cell) for cell in line[1:-1].split("|")])
    parts = [part for part in table if part]
    widths = {len(cells) for part in parts for cells in part}
    rule_lines = [line for line in texts if _GRID_RULE.fullmatch(line)]
    if len(parts) < 2 or len(widths) != 1 or widths == {1} or any("  " in line for line in rule_lines):
        return []  # the last: a cell spans rows
    if len(parts) > 2:  # a rule below each row: its other lines, which lack cells, go on
        parts = [
            [[squeeze(" ".join(column)) for column in zip(*part, strict=True)]]
            if any("" in cells for cells in part[1:])
            else part
            for part in parts
        ]
    names, body = parts[0][-1], [cells for part in parts[1:] for cells in part]
    is_uniform = all(len(part) == 1 for part in parts) and not any(
        "=" in line for line in rule_lines
    )  # also the first row
    long = any(len(name.split()) > _NAME_WORDS for name in names)
    if long or (is_uniform and not are_names(names, body, bold=False)):
        return [block for part in parts for cells in part if (block := row(cells))]
    return [block for cells in body if (block := row(cells, names))]
