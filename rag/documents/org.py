"""Blocks from Org, the notes, tasks and manuals of Emacs."""

import re
from collections import Counter
from collections.abc import Callable, Sequence

from rag.documents import navigation as nav
from rag.documents.blocks import Block, Kind, squeezed, with_bare_headings
from rag.documents.line_writer import LineWriter
from rag.documents.text_lines import indent_of

_BEGINS = re.compile(rb"^(?:\*+[ \t]+\S|[ \t]*#\+\w)", re.MULTILINE)
_HEADING = re.compile(r"(\*+)[ \t]+(.*)")
_TASK = re.compile(r"(TODO|NEXT|WAITING|STARTED|DONE|CANCELL?ED)(?:[ \t]+|\Z)")
_PRIORITY = re.compile(r"\[#\w\]\s*")
_TAGS = re.compile(r"(?:\A|[ \t]):[\w@#%]+(?::[\w@#%]+)*:[ \t]*\Z")
_KEYWORD = re.compile(r"[ \t]*#\+([A-Za-z_]+)(?:\[[^\]]*\])?:[ \t]*(.*)")
_BEGIN = re.compile(r"[ \t]*#\+begin_(\S+)[ \t]*(.*)", re.IGNORECASE)
_END = re.compile(r"[ \t]*#\+end_(\S+)", re.IGNORECASE)
_DRAWER = re.compile(r"[ \t]*:([\w-]+):[ \t]*")
_DRAWER_END = re.compile(r"[ \t]*:END:[ \t]*", re.IGNORECASE)
_PLANNING = re.compile(r"(SCHEDULED|DEADLINE|CLOSED):\s*[<\[]([^<>\[\]]{1,60})[>\]]")
_ITEM = re.compile(r"([ \t]*)(?:([-+])|(?<=[ \t])(\*)|(\d{1,4}|[A-Za-z])[.)])(?:[ \t]+(?:\[@\w+\][ \t]*)?(.*)|\Z)")
_TERM = re.compile(r"(\S.{0,300}?)[ \t]+::(?:[ \t]+(.*)|\Z)")
_FIXED = re.compile(r"[ \t]*:(?: (.*)|\Z)")
_RULE = re.compile(r"\|[-+: |]*-[-+: |]*")
_WIDTHS = re.compile(r"\s*(?:<[lcr]?\d*>|/|)\s*")
_NOTE = re.compile(r"\[fn:([\w-]+)\]\s")
_DASHES = re.compile(r"-{5,}[ \t]*")

_LINK = re.compile(r"\[\[([^\[\]\n]{1,2000})\](?:\[([^\[\]]{1,2000})\])?\]")
_PICTURE = re.compile(r"\.(?:png|jpe?g|gif|svg|webp)\Z", re.IGNORECASE)
_SCHEME = re.compile(r"(?:file|id|info|attachment|fuzzy):(?!//)(?:[^:]*::)?[*#]?|[*#]")
_MARKED = re.compile(  # a mark after white space or a sign, and again before one
    r"""(?<![^\s\-('"{/*_+])(?:([=~])(?=\S)([^\n]{1,200}?(?:\n[^\n]{1,200}?)?)(?<=\S)\1|([*/_+])(?=\S)((?:(?!\3)[^\n]){0,300}"""
    r"""(?:\n(?:(?!\3)[^\n]){1,300})?)(?<=\S)\3)(?![^\s\-.,;:!?'")}\[/*_+\\])"""
)
_STAMP = re.compile(r"[<\[](\d{4}-\d\d-\d\d[^<>\[\]\n]{0,40})[>\]]")
_NOTE_MARK = re.compile(r"\[fn:[\w-]*(?::[^\[\]]{0,1000})?\]")
_MACRO = re.compile(r"\{\{\{([\w-]{1,60})(?:\(([^{}]{0,1000})\))?\}\}\}")
_TARGET = re.compile(r"<<<?([^<>\n]{1,200})>>>?|@@[\w-]{1,30}:[^@\n]{0,500}@@|\\\\(?=\s*$)", re.MULTILINE)
_CALLOUTS = frozenset(["note", "tip", "warning", "important", "caution"])
_LONGEST_MACRO = 200  # characters, which may stand in a text many times
_SAID = {"author": "Author", "date": "Date", "subtitle": "Subtitle", "description": "Description"}


def is_org(head: bytes) -> bool:
    """Whether a file has a heading or a keyword of Org near its beginning."""
    return _BEGINS.search(head) is not None


def org_blocks(text: str, dropped: Counter[str]) -> tuple[str, list[Block]]:
    """The title ("" if there is none) and the blocks of a text."""
    reader = _Org(text, dropped)
    reader.read()
    blocks = [*with_bare_headings(reader.out.blocks, lambda text: text != "Footnotes")]
    return (reader.title, blocks) if reader.title else _named(blocks)


def _named(blocks: list[Block]) -> tuple[str, list[Block]]:
    """The only heading of the top rank as the title, if the text begins with it; else none."""
    tops = [block for block in blocks if block.kind is Kind.HEADING and block.level == 1]
    if len(tops) == 1 and blocks[0] is tops[0]:
        return blocks[0].text, blocks[1:]
    return "", blocks


class _Org:
    """Reads the lines of a text into blocks."""

    def __init__(self, text: str, dropped: Counter[str]) -> None:
        self._lines = text.split("\n")
        self._at = 0
        self._drawer_ends = _ends_of_drawers(self._lines)
        self._indents: list[int] = []  # of the open lists
        self._macros: dict[str, str] = {}
        self._dropped = dropped
        self.out = LineWriter(dropped, self._plain)
        self.title = ""

    def read(self) -> None:
        while self._at < len(self._lines):
            line = self._lines[self._at].rstrip()
            self._at += 1
            self._line(line)
        self.out.end()

    def _line(self, line: str) -> None:
        bare = line.lstrip()
        if not bare:
            self.out.end()
            return
        if self._indents and indent_of(line) <= self._indents[0] and not _ITEM.fullmatch(line):
            self._indents.clear()
            self.out.end()
        if found := _HEADING.match(line):
            self.out.heading(_heading_text(found[2]), len(found[1]) + bool(self.title))
        elif found := _BEGIN.match(line):
            self._block(found[1].lower(), found[2])
        elif _END.match(line):
            self.out.end()
        elif found := _KEYWORD.fullmatch(line):
            self._keyword(found[1].lower(), found[2])
        elif bare.startswith(("# ", "#+")) or bare == "#" or self._is_drawer(line):
            return
        elif _FIXED.fullmatch(line):
            self.out.code(self._run(line, _FIXED, lambda one: _FIXED.sub(r"\1", one, count=1)))
        elif bare.startswith("|"):
            self._table(bare)
        elif planned := _PLANNING.findall(line):
            self.out.end()
            self.out.blocks.append(Block(". ".join(f"{name.capitalize()}: {day}" for name, day in planned)))
        elif _NOTE.match(line):
            self._dropped["footnote"] += 1
            while self._at < len(self._lines) and self._lines[self._at].strip():
                self._at += 1
        elif found := _ITEM.fullmatch(line):
            self._item(found)
        elif _DASHES.fullmatch(line):
            self.out.end()
        else:
            self.out.lines.append(line)

    def _item(self, found: re.Match[str]) -> None:
        indent = len(found[1].expandtabs(8))
        while self._indents and self._indents[-1] > indent:
            self._indents.pop()
        if not self._indents or self._indents[-1] < indent:
            self._indents.append(indent)
        depth, text = len(self._indents) - 1, found[5] or ""
        number = found[4] or ""
        if (term := _TERM.fullmatch(text)) and not number:
            if depth:
                self.out.item(depth, "-", term[2] or "", term[1])
            else:
                self.out.end()
                self.out.define(term[1], term[2] or "")
        else:
            self.out.item(depth, f"{number}." if number.isdigit() else "-", text)

    def _keyword(self, name: str, value: str) -> None:
        if name == "title":
            self.title = squeezed(f"{self.title} {self._plain(value)}")
        elif name in _SAID and value:
            self.out.end()
            self.out.blocks.append(Block(f"{_SAID[name]}: {squeezed(self._plain(value))}"))
        elif name == "macro":
            key, _, said = value.partition(" ")
            self._macros[key.lower()] = said[:_LONGEST_MACRO]
        elif name == "caption":
            self.out.lead(value)
        elif name == "toc":
            self._dropped[nav.CONTENTS] += 1

    def _block(self, name: str, rest: str) -> None:
        """A block between `#+begin_` and `#+end_`; of others than code, the lines are read as those outside of it."""
        self.out.end()
        if name in ("src", "example", "export", "comment"):
            inside = self._until(lambda line: (end := _END.match(line)) is not None and end[1].lower() == name)
            if name in ("src", "example"):
                self.out.code([re.sub(r"^([ \t]*),(?=[*,]|#\+)", r"\1", line) for line in inside])
        elif name in _CALLOUTS:
            self.out.define(name.capitalize())
        elif name == "verse":
            for line in self._until(lambda line: _END.match(line) is not None):
                self.out.lines.append(line)
                self.out.end()

    def _is_drawer(self, line: str) -> bool:
        """Whether a line begins properties or the log of a heading, which programs write and which are skipped."""
        if _DRAWER_END.fullmatch(line) or not _DRAWER.fullmatch(line):
            return _DRAWER_END.fullmatch(line) is not None
        end = self._drawer_ends[self._at]
        self._at = end + 1 if end else self._at
        return end > 0

    def _table(self, first: str) -> None:
        lines = [first]
        while self._at < len(self._lines) and self._lines[self._at].lstrip().startswith("|"):
            lines.append(self._lines[self._at].strip())
            self._at += 1
        rows: list[list[str]] = []
        heads: int | None = None
        for line in lines:
            if _RULE.fullmatch(line):
                heads = len(rows) if heads is None and rows else heads
            elif not all(map(_WIDTHS.fullmatch, cells := _cells(line))):
                rows.append(cells)
        self.out.table(rows, heads if heads and heads < len(rows) else 0)

    def _run(self, first: str, pattern: re.Pattern[str], said: Callable[[str], str]) -> list[str]:
        """A line and those after it that a pattern matches."""
        lines = [said(first)]
        while self._at < len(self._lines) and pattern.fullmatch(line := self._lines[self._at].rstrip()):
            lines.append(said(line))
            self._at += 1
        return lines

    def _until(self, ends: Callable[[str], bool]) -> Sequence[str]:
        """The lines up to one that ends a block, or all that are left."""
        start = self._at
        while self._at < len(self._lines) and not ends(self._lines[self._at]):
            self._at += 1
        self._at += 1
        return self._lines[start : self._at - 1]

    def _plain(self, text: str) -> str:
        text = _MACRO.sub(self._expanded, text)
        text = _LINK.sub(_link_text, _NOTE_MARK.sub("", text))
        text = _TARGET.sub(lambda found: found[1] or "", text)
        return _STAMP.sub(r"\1", _unmarked(text))

    def _expanded(self, found: re.Match[str]) -> str:
        """What a macro stands for; one that only sets its words in type leaves them."""
        said, values = self._macros.get(found[1].lower(), "@@"), found[2] or ""
        if "@@" in said or said.startswith("("):
            return values
        for place, value in enumerate(values.split(","), 1):
            said = said.replace(f"${place}", value.strip())
        return said


def _ends_of_drawers(lines: Sequence[str]) -> list[int]:
    """For each line the place of the first end of a drawer from it on, in the text of its heading; else 0."""
    found, end = [0], 0
    for place in range(len(lines) - 1, -1, -1):
        if _DRAWER_END.fullmatch(lines[place].rstrip()):
            end = place
        elif lines[place].startswith("*"):
            end = 0
        found.append(end)
    return found[::-1]


def _heading_text(text: str) -> str:
    """A heading with the state of its task at its end, without its priority and tags."""
    text = _TAGS.sub("", text)
    task = _TASK.match(text)
    said = _PRIORITY.sub("", text[task.end() :] if task else text, count=1).removeprefix("COMMENT ").strip()
    return f"{said} ({task[1]})" if task and said else said


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def _link_text(link: re.Match[str]) -> str:
    target, said = link[1], link[2]
    if said:
        return "" if _PICTURE.search(said) else said
    return "" if _PICTURE.search(target) else _SCHEME.sub("", target, count=1)


def _unmarked(text: str) -> str:
    """The text without marks of bold, italic and other words; what is crossed out goes."""

    def said(found: re.Match[str]) -> str:
        if found[1]:
            return found[2]
        return "" if found[3] == "+" else _MARKED.sub(said, found[4])

    return _MARKED.sub(said, text)
