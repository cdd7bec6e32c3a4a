"""Blocks from AsciiDoc, as Asciidoctor and its older namesake read it. Files that a text includes are missing."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from rag.documents import navigation as nav
from rag.documents.asciidoc_inline import Inline
from rag.documents.asciidoc_tables import Table, is_table
from rag.documents.blocks import Block, squeezed
from rag.documents.line_writer import LineWriter
from rag.documents.text_code import is_code

_HEADING = re.compile(r"(={1,6}|#{1,6})[ \t]+(\S.*?)(?:[ \t]+\1)?")
_UNDERLINE = re.compile(r"([=\-~^+])\1{2,}")
_RULES = "=-~^+"  # below headings, the highest first
_ATTRIBUTE = re.compile(r":(!?)([\w-]+)(!?):(?:[ \t]+(.*))?")
_REFERENCE = re.compile(r"\{([\w-]{1,60})\}")
_LONGEST_VALUE = 200  # characters of an attribute, which may stand in a text many times
_BRACKETS = re.compile(r"\[(\[?)([^\[\]]*(?:\[[^\[\]]*\][^\[\]]*)*)\]?\]")
_ID = re.compile(r"#([\w:.-]+)|(?:^|,)\s*id=[\"']?([\w:.-]+)")
_BLOCK_TITLE = re.compile(r"\.(?![.\s])(\S.*)")
_VERBATIM = re.compile(r"-{4,}|\.{4,}|\+{4,}|/{4,}|`{3,}[\w+#.-]*")
_BOX = re.compile(r"={4,}|\*{4,}|_{4,}|--")
_COMMENT = re.compile(r"//(?!/).*")
_CONDITION = re.compile(r"(ifdef|ifndef|ifeval|endif)::([^\[\]]*)\[(.*)\]")
_MACRO = re.compile(r"([a-z]\w*)::(\S*)\[.*\]")
_BREAK = re.compile(r"'{3,}|<{3,}|-{3}|\*{3}|(?:- ){2}-|(?:\* ){2}\*")
_CALLOUT_LIST = re.compile(r"<(\d{1,3}|\.)>[ \t]+(\S.*)")
_ITEM = re.compile(r"[ \t]*(-|\*{1,6}|\.{1,6}|\d{1,4}\.|[a-zA-Z]\.|[ivxIVX]{1,5}\))[ \t]+(\S.*)")
_TERM = re.compile(r"[ \t]*(\S.{0,300}?)(:{2,4}|;;)(?:[ \t]+(\S.*))?")
_LABEL = re.compile(r"(NOTE|TIP|WARNING|IMPORTANT|CAUTION):[ \t]+(\S.*)")
_LABELS = frozenset(["NOTE", "TIP", "WARNING", "IMPORTANT", "CAUTION"])
_CALLOUT = re.compile(r"[ \t]*(?://|#|--|;;)?[ \t]*<(?:!--)?(?:\d{1,3}|\.)(?:--)?>(?=[ \t]*(?:<|$))")
_AUTHOR = re.compile(r"[^\W\d_][\w.'’-]*(?: [\w.'’-]+){0,3}(?: +<[^<>]+>)?(?:; .*)?")
_REVISION = re.compile(r"(?:v\d[\w.]*,?(?: .*)?|\d[\w.]*, .*)")
_CODE_STYLES = ("source", "listing", "literal", "ditaa", "plantuml", "mermaid", "graphviz", "blockdiag")
_ALWAYS = frozenset(["backend-html5", "basebackend-html", "asciidoctor", "doctype-article", "html5"])
_MARKUP = re.compile(r"<<[^<>]{1,300}>>|`[^`]{1,300}`")  # in what is no code
_AHEAD = 10  # lines of a paragraph that are looked at
_DEEPEST = 30  # boxes in one another


def asciidoc_blocks(text: str, dropped: Counter[str]) -> tuple[str, list[Block]]:
    """The title ("" if there is none) and the blocks of a text."""
    reader = _AsciiDoc(text, dropped)
    reader.read()
    return reader.title, reader.out.blocks


class _AsciiDoc:
    """Reads the lines of a text into blocks."""

    def __init__(self, text: str, dropped: Counter[str]) -> None:
        self._attributes: dict[str, str] = {}
        self._dropped = dropped
        self._lines = [*self._chosen(text.split("\n"))]
        self._inline = Inline(self._attributes, dropped)
        self.out = LineWriter(dropped, self._inline.plain)
        self.title = ""
        self._at = 0
        self._lists: dict[str, int] = {}  # the marks of the open lists, with the numbers of their last items
        self._boxes: list[tuple[str, dict[str, int]]] = []  # the ends of open boxes, with the lists around them
        self._style = ""  # of the next block, from `[source,ruby]`

    def read(self) -> None:
        self._inline.learn(self._headings())
        self._header()
        while self._at < len(self._lines):
            line = self._lines[self._at].rstrip()
            self._at += 1
            if not line:
                self._blank()
            elif not self._mark(line):
                self._text(line)
        self.out.end()

    def _chosen(self, lines: Sequence[str]) -> Iterator[str]:
        """The lines without those that stand for other outputs: `ifdef::env-github[]`."""
        hidden: list[bool] = []
        for line in lines:
            if line.startswith(":") and (found := _ATTRIBUTE.fullmatch(line.rstrip())) and not any(hidden):
                if found[1] or found[3]:
                    self._attributes.pop(found[2].lower(), None)
                else:
                    value = _REFERENCE.sub(lambda name: self._attributes.get(name[1].lower(), name[0]), found[4] or "")
                    self._attributes[found[2].lower()] = value[:_LONGEST_VALUE]
            condition = _CONDITION.fullmatch(line.rstrip()) if line.startswith(("if", "endif")) else None
            if condition is None:
                if not any(hidden[-1:]):
                    yield line
            elif condition[1] == "endif":
                hidden[-1:] = []
            elif condition[3] and condition[1] != "ifeval":  # `ifdef::name[text]`
                if self._holds(condition) and not any(hidden[-1:]):
                    yield condition[3]
            else:
                hidden.append(any(hidden[-1:]) or not self._holds(condition))

    def _holds(self, condition: re.Match[str]) -> bool:
        if condition[1] == "ifeval":
            return True
        names = re.split(r"[,+]", condition[2].lower())
        known = [name in self._attributes or name in _ALWAYS for name in names]
        defined = all(known) if "+" in condition[2] else any(known)
        return defined == (condition[1] == "ifdef")

    def _headings(self) -> Iterator[tuple[str, str]]:
        """The ids of sections, given or made of their titles, with the titles."""
        key = ""
        for place, line in enumerate(self._lines):
            line = line.rstrip()
            if line.startswith("[") and (found := _BRACKETS.fullmatch(line)):
                key = found[2].partition(",")[0] if found[1] else self._id(found[2]) or key
            elif found := _HEADING.fullmatch(line):
                yield key, found[2]
                key = ""
            elif line and self._is_underlined(place):
                yield key, line
                key = ""
            elif line and not line.startswith("."):
                key = ""

    def _id(self, style: str) -> str:
        found = _ID.search(style)
        return (found[1] or found[2]) if found else ""

    def _header(self) -> None:
        """The title of the document, and the lines below it: authors, revision, attributes."""
        while self._at < len(self._lines):
            line = self._lines[self._at].rstrip()
            if line and not (_COMMENT.fullmatch(line) or _ATTRIBUTE.fullmatch(line) or _BRACKETS.fullmatch(line)):
                break
            self._at += 1
        else:
            line = ""
        found = _HEADING.fullmatch(line)
        underlined = self._is_underlined(self._at) and self._lines[self._at + 1].startswith("=")
        if not underlined and (found is None or len(found[1]) != 1):
            self._at = 0
            return
        self.title = squeezed(self._inline.plain(found[2] if found and not underlined else line))
        self._at += 1 + underlined
        for pattern, name in ((_AUTHOR, "Author"), (_REVISION, "Version")):
            line = self._lines[self._at].strip() if self._at < len(self._lines) else ""
            if line and pattern.fullmatch(line) and not _LABEL.match(line):
                self.out.blocks.append(Block(f"{name}: {squeezed(line)}"))
                self._at += 1

    def _is_underlined(self, place: int) -> bool:
        """Whether a line is a heading with signs below it, as long as the line."""
        line, rule = [*(one.rstrip() for one in self._lines[place : place + 2]), "", ""][:2]
        if not _UNDERLINE.fullmatch(rule) or abs(len(line) - len(rule)) > 2 or not line[:1].strip():
            return False
        before = self._lines[place - 1].strip() if place else ""
        apart = not before or before.startswith(("[", ".", "//", "include::")) or before.endswith("]")
        return apart and line[0] not in ".[|" and any(map(str.isalnum, line)) and not _ITEM.match(line)

    def _blank(self) -> None:
        if not self.out.term or self.out.lines:  # the text of a term may begin below an empty line
            self.out.end()
        following = next((line for line in self._lines[self._at : self._at + 3] if line.strip()), "").rstrip()
        goes_on = following == "+" or following[:1].isspace()
        if not (goes_on or _ITEM.fullmatch(following) or _TERM.fullmatch(following)):
            self._lists = {}

    def _mark(self, line: str) -> bool:
        """Whether a line marks a part of the text, which is read then."""
        style, out = self._style, self.out
        if not out.lines and self._is_underlined(self._at - 1):
            self._at += 1
            self._heading(line, 1 + _RULES.index(self._lines[self._at - 1][0]))
        elif found := _HEADING.fullmatch(line):
            self._heading(found[2], len(found[1]))
        elif _BOX.fullmatch(line):
            self._box(line, style)
        elif _VERBATIM.fullmatch(line):
            self._verbatim(line, style)
        elif is_table(line):
            self._table(line, style)
        elif _COMMENT.fullmatch(line) or _ATTRIBUTE.fullmatch(line):
            pass
        elif line == "+" or _BREAK.fullmatch(line):
            out.end()
        elif line.startswith("[") and not out.lines and (found := _BRACKETS.fullmatch(line)):
            self._style = style if found[1] else found[2]
            return True
        elif found := _MACRO.fullmatch(line):
            out.end()
            self._dropped[nav.CONTENTS] += found[1] == "toc"
            self._dropped["included file"] += found[1] == "include"
        elif (found := _BLOCK_TITLE.fullmatch(line)) and not out.lines:
            out.lead(found[1])
            return True
        elif found := _CALLOUT_LIST.fullmatch(line):
            out.item(0, f"{found[1]}." if found[1].isdigit() else "-", found[2])
        elif out.lines and not self._lists:
            return False
        elif found := _ITEM.fullmatch(line):
            self._item(found[1], found[2])
        elif found := _TERM.fullmatch(line):
            self._term(found)
        elif line[0] in " \t" and not out.lines and not out.term and self._is_literal():
            self._indented(line)
        else:
            return False
        self._style = ""
        return True

    def _text(self, line: str) -> None:
        style, self._style = self._style, ""
        if not self.out.lines and style.partition(",")[0].strip() in _CODE_STYLES:
            self._indented(line)
            return
        if not self.out.lines and (label := self._label(style)):
            self.out.define(label)
        if (found := _LABEL.match(line.lstrip())) and not self.out.lines:
            self.out.define(found[1].capitalize(), found[2])
        else:
            self.out.lines.append(line.strip().removesuffix(" +"))  # which ends a line of a verse or an address

    def _label(self, style: str) -> str:
        name = style.partition(",")[0].strip().partition("#")[0].partition(".")[0]
        return name.capitalize() if name in _LABELS else ""

    def _heading(self, text: str, level: int) -> None:
        self._lists, self._boxes = {}, []
        self.out.heading(text, level)

    def _box(self, line: str, style: str) -> None:
        """A line that begins or ends a box, whose text is read as that outside of it."""
        self.out.end()
        ends = [end for end, _ in self._boxes]
        if line in ends:
            self._lists = self._boxes[ends.index(line)][1]
            del self._boxes[ends.index(line) :]
        elif style.partition(",")[0].strip() in _CODE_STYLES:
            self.out.code(self._until(line))
        elif len(self._boxes) < _DEEPEST:
            self._boxes.append((line, self._lists))
            self._lists = {}
            if label := self._label(style):
                self.out.define(label)

    def _verbatim(self, line: str, style: str) -> None:
        lines = self._until(line[:3] if line.startswith("`") else line)
        if line[0] in "/+":  # a comment, or what goes into another format as it is
            self.out.end()
            return
        self.out.code([_CALLOUT.sub("", one) for one in lines])

    def _until(self, end: str) -> Sequence[str]:
        """The lines up to one that ends a block, or all that are left."""
        start = self._at
        while self._at < len(self._lines) and self._lines[self._at].rstrip() != end:
            self._at += 1
        self._at += 1
        return self._lines[start : self._at - 1]

    def _indented(self, line: str) -> None:
        lines = [line]
        while self._at < len(self._lines) and (after := self._lines[self._at]).strip() and after.strip() != "+":
            lines.append(after)
            self._at += 1
        self.out.code([_CALLOUT.sub("", one) for one in lines if not _VERBATIM.fullmatch(one.strip())])

    def _is_literal(self) -> bool:
        """Whether indented lines are code: in a list they may be a paragraph of an item, whatever AsciiDoc says."""
        ahead = self._lines[self._at - 1 : self._at + _AHEAD]
        lines = ahead[: next((place for place, one in enumerate(ahead) if not one.strip()), len(ahead))]
        if not self._lists or any(_VERBATIM.fullmatch(one.strip()) for one in lines):
            return True
        return is_code(lines, 0) and not any(map(_MARKUP.search, lines))

    def _table(self, line: str, style: str) -> None:
        table = Table(line, style)
        for inside in self._until(line):
            table.add(inside)
        rows, heads = table.rows()
        self.out.table(rows, heads)

    def _item(self, mark: str, text: str) -> None:
        kind = mark if mark[0] in "-*." else "1."
        self._open(kind)
        if kind[0] in ".1":
            self._lists[kind] = int(mark[:-1]) if mark[:-1].isdigit() else self._lists[kind] + 1
        number = f"{self._lists[kind]}." if kind[0] in ".1" else "-"
        term = _TERM.fullmatch(text)
        self.out.item(len(self._lists) - 1, number, *((term[3] or "", term[1]) if term else (text,)))

    def _term(self, found: re.Match[str]) -> None:
        if self.out.term and not self.out.lines and [*self._lists][-1:] != [found[2]]:  # no term of the same text
            self.out.end()
        self._open(found[2])
        depth, text = len(self._lists) - 1, found[3] or ""
        if depth > 0:
            self.out.item(depth, "-", text, found[1])
        else:
            self.out.define(found[1], text)

    def _open(self, mark: str) -> None:
        """Make a list with a mark the innermost one."""
        if mark in self._lists:
            for _ in range(len(self._lists) - 1 - [*self._lists].index(mark)):
                self._lists.popitem()
        else:
            self._lists = {**self._lists, mark: 0}
