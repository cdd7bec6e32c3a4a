"""Blocks of text formats that mark their parts line by line, such as Org and AsciiDoc."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from rag.documents import navigation as nav
from rag.documents.blocks import Block, Kind, code, entry, heading, item, row, squeezed
from rag.documents.text_lists import labelled, marked
from rag.documents.titles import clean_heading

DEEPEST_LIST = 8


@dataclass(slots=True)
class LineWriter:
    """Collects blocks from lines; `plain` is the text of a line without its marks for bold words, links and so on."""

    dropped: Counter[str]
    plain: Callable[[str], str]
    blocks: list[Block] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)  # of the open paragraph
    mark: str = ""  # of the list item that the open paragraph is
    depth: int = 0
    term: str = ""  # that the open paragraph defines

    def heading(self, text: str, level: int) -> None:
        """A heading, unless it says nothing."""
        self.end()
        if said := clean_heading(self.plain(text)):
            self.blocks.append(heading(said, max(1, min(level, 6))))

    def item(self, depth: int, mark: str, text: str, term: str = "") -> None:
        """Begin an item of a list, which may define a term; lines that follow are part of it."""
        self.end()
        self.mark, self.depth, self.lines = mark, min(depth, DEEPEST_LIST), [text] if text else []
        self.term = squeezed(self.plain(term))

    def define(self, term: str, text: str = "") -> None:
        """Begin a definition; a term without a text yet is one of several that are defined together."""
        joined = self.term if self.term and not self.lines and not self.mark else ""
        if not joined:
            self.end()
        said = squeezed(self.plain(term))
        self.term = f"{joined}, {said}" if joined else said
        self.lines = [text] if text else []

    def end(self) -> None:
        """End the open paragraph."""
        lines, mark, term = self.lines, self.mark, self.term
        self.lines, self.mark, self.term = [], "", ""
        starts = labelled(lines) or marked(lines) if len(lines) > 1 and not (mark or term) else []
        for start, stop in pairwise(sorted({0, *starts, len(lines)})):
            text = squeezed(self.plain("\n".join(lines[start:stop])))
            if not text:
                continue
            if mark:
                self.blocks.append(item(f"{term}: {text}" if term else text, self.depth, mark))
            elif term:
                self.blocks.append(entry(term, text))
            elif nav.is_boilerplate(text):
                self.dropped[nav.BOILERPLATE] += 1
            else:
                self.blocks.append(Block(text))
            mark = term = ""
        if term:
            self.blocks.append(entry(term, ""))

    def lead(self, text: str) -> None:
        """What introduces the block after it, such as the caption of a table."""
        self.end()
        if said := squeezed(self.plain(text)):
            self.blocks.append(Block(said, Kind.LEAD))

    def code(self, lines: Sequence[str]) -> None:
        """Lines that stay as they are; a term that waits for its text gets them below it."""
        self.end()
        if (found := code("\n".join(lines))) is not None:
            self.blocks.append(found)

    def table(self, rows: Sequence[Sequence[str]], heads: int) -> None:
        """The rows of a table, of which the first ones may name the columns."""
        self.end()
        said = [[squeezed(self.plain(cell)) for cell in cells] for cells in rows]
        width = max(map(len, said[:heads]), default=0)
        names = [
            squeezed(" ".join(cells[place] for cells in said[:heads] if place < len(cells))) for place in range(width)
        ]
        self.blocks += [found for cells in said[heads:] if (found := row(cells, names)) is not None]
        if not said[heads:] and (found := row(names)) is not None:
            self.blocks.append(found)
