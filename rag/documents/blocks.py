"""The blocks of a document, and how their text looks in a passage.

Whoever reads a passage can rely on these conventions:

- Blocks are separated by one blank line. Running text has no line ends.
- A list item is a block that begins with `- ` or, in an ordered list, with its number or letter: `1. `, `b. `. Two
  spaces a level indent the items of nested lists. Further paragraphs of an item are blocks of their own, without a
  mark.
- Code is one block. Each of its lines begins with four spaces, so an empty line of code is a line of four spaces.
- A row of a table is a block: `Column: cell | Column: cell` if the table has a header row, else `cell | cell`. A row
  that is cut as it is too long for a passage is cut between cells, and each part begins with what the row is about.
- A definition is a block: `term: definition`. Its further paragraphs are blocks of their own.
- Headings are not in the text. They are the title and the section of a passage.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from itertools import zip_longest

from rag.documents.normalize import visible

BLOCK_SEPARATOR = "\n\n"
CELL_SEPARATOR = " | "
CODE_INDENT = "    "


class Kind(Enum):
    """What a block is; `LEAD` introduces the block after it, such as the caption of a table."""

    HEADING = auto()
    TEXT = auto()
    LEAD = auto()
    ITEM = auto()
    CODE = auto()
    ROW = auto()
    ENTRY = auto()


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of a document as it stands in a passage.

    `level` is 1 to 6 for a heading, else 0. `page` is the number of the page that it starts on, if there are pages.
    `label` are the cells that say what a row is about, if that is not its first cell: each part of a long row begins
    with it.
    """

    text: str
    kind: Kind = Kind.TEXT
    level: int = 0
    page: int | None = None
    label: str = ""


def keep_bare_headings(blocks: Sequence[Block], has_text: Callable[[str], object] = bool) -> Iterator[Block]:
    """The blocks, with a heading that nothing stands under as a line of text, if it `has_text` something by itself."""
    for block, following in zip_longest(blocks, blocks[1:]):
        bare = following is None or (following.kind is Kind.HEADING and following.level <= block.level)
        if block.kind is Kind.HEADING and bare and has_text(block.text):
            yield Block(block.text, page=block.page)
        else:
            yield block


def heading(text: str, level: int, page: int | None = None) -> Block:
    """A heading of level 1 (the whole document) to 6."""
    return Block(text, Kind.HEADING, level, page)


def item(text: str, depth: int, mark: str, page: int | None = None) -> Block:
    """An item of a list; `depth` is 0 outside of other lists, `mark` is `-` or `1.`."""
    return Block(f"{'  ' * depth}{mark} {text}", Kind.ITEM, 0, page)


def entry(term: str, text: str, page: int | None = None) -> Block:
    """A term and the start of its definition."""
    return Block(f"{term.rstrip(' :')}: {text}" if text else f"{term.rstrip(' :')}:", Kind.ENTRY, 0, page)


def row(
    cells: Iterable[str], names: Iterable[str] = (), page: int | None = None, keys: Iterable[int] = ()
) -> Block | None:
    """A row of a table without its empty cells; None if all are empty. `keys` are the columns of its label."""
    column_names, key_columns = [*names], frozenset(keys)
    label: list[str] = []
    parts: list[str] = []
    for number, cell in enumerate(cells):
        name = column_names[number].rstrip(" :") if number < len(column_names) else ""
        if cell and not name and parts and parts[-1].endswith(":"):
            parts[-1] += f" {cell}"  # of a form: "Name:", "Ann"
        elif cell:
            parts.append(f"{name}: {cell}" if name and name != cell else cell)
            label += parts[-1:] if number in key_columns else []
    return Block(CELL_SEPARATOR.join(parts), Kind.ROW, 0, page, CELL_SEPARATOR.join(label)) if parts else None


def code(text: str, page: int | None = None) -> Block | None:
    """Lines of code as a block, without the indent that they share; None if there are none."""
    lines = [visible(line).rstrip() for line in text.expandtabs(8).splitlines()]
    while lines and not lines[-1]:
        lines.pop()
    while lines and not lines[0]:
        del lines[0]
    if not lines:
        return None
    common = min(len(line) - len(line.lstrip()) for line in lines if line)
    return Block("\n".join(CODE_INDENT + line[common:] for line in lines), Kind.CODE, 0, page)
