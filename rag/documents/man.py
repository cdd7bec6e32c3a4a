"""Blocks from manual pages, written with the macros of man(7) or mdoc(7)."""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from rag.documents import navigation as nav
from rag.documents.blocks import Block, Kind, code, entry, heading, item, row, squeezed
from rag.documents.mdoc import inline
from rag.documents.roff import arguments, plain

_PAGE = re.compile(rb"^[.'][ \t]*(?:TH|Dd|Dt|so|SH|Sh)\b", re.MULTILINE)
_LINK = re.compile(r"^\.so\s+\S+\s*$", re.MULTILINE)
_COMMENT = re.compile(r"(?<!\\)\\[\"#].*")
_CONDITION = re.compile(r"(\S+)\s*")
_FONTS = frozenset(["B", "I", "R", "SB", "SM", "CW"])
_PAIRS = frozenset(["BR", "RB", "BI", "IB", "RI", "IR"])
_LONGEST = 300  # characters of a string that a page defines; strings may be made of strings
_TAG_WORDS = 20  # of a line that is a tag without a macro that says so
_SENTENCE_ENDS = (".", ":", ";", ",", "!", "?")
_SYNTAX = re.compile(r"[\[\]<>{}|]")
_MARKS = frozenset(["•", "-", "*", "o", "–", "—", "·"])


def is_man_page(head: bytes) -> bool:
    """Whether the beginning of a file is that of a manual page."""
    return _PAGE.search(head) is not None


def man_blocks(text: str, dropped: Counter[str]) -> tuple[str, list[Block]]:
    """The title, such as `ls(1)`, and the blocks of a manual page."""
    body = re.sub(r"^[.'][ \t]*\\\".*\n?", "", text, flags=re.MULTILINE)
    body = re.sub(r"(?<!\\)\\\n", "", body)  # a line that goes on
    if _LINK.match(body.strip()) and "\n" not in body.strip():
        dropped[nav.REDIRECT] += 1
        return "", []
    page = _Page()
    page.read(iter(body.split("\n")))
    return page.title, page.blocks


@dataclass(slots=True)
class _Page:
    """Collects blocks from the lines of a page."""

    title: str = ""
    name: str = ""  # what .Nm stands for
    synopsis: bool = False  # in the section of that name, where each .Nm begins a line
    blocks: list[Block] = field(default_factory=list)
    text: list[str] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    tag_next: bool = False  # the next line is a tag
    literal: list[str] | None = None  # lines of code
    lists: list[str] = field(default_factory=list)  # kinds of the open lists of mdoc
    numbers: list[int] = field(default_factory=list)
    mark: str | None = None
    alone: Block | None = None  # the last paragraph of a single line
    tight: bool = False  # mdoc prints no spaces between words
    glued: list[str] = field(default_factory=list)  # what it has printed so
    strings: dict[str, str] = field(default_factory=dict)
    held: bool = False  # the condition of the last .ie

    def read(self, lines: Iterator[str]) -> None:
        for line in lines:
            if line[:1] in (".", "'") and not line.startswith(("'\\\"", "...")):
                self._macro(line, lines)
            elif self.literal is not None:
                self.literal.append(plain(line, self.strings))
            elif not line.strip():
                self._end()
            else:
                self._add(plain(line, self.strings))
        self._end_code()
        self._end()

    def _add(self, text: str) -> None:
        self._loosen()
        if self.literal is not None:
            self.literal.append(text)
        elif self.tag_next:
            self.tag_next = False
            self.tags.append(squeezed(text))
        elif text.strip():
            self.text.append(text)

    def _loosen(self) -> None:
        """Add what was printed without spaces."""
        printed, self.glued = "".join(self.glued), []
        if printed:
            self._add(printed)

    def _macro(self, line: str, lines: Iterator[str]) -> None:
        name, _, rest = line[1:].lstrip().partition(" ")
        name = name.partition('\\"')[0].partition("\t")[0]
        rest = _COMMENT.sub("", rest).strip()
        if (skip := _SKIPPED.get(name)) is not None:
            skip(rest, lines)
        elif name in ("if", "ie", "el"):
            self._condition(name, rest, lines)
        elif name in ("TH", "Dt"):
            self._name(rest)
        elif name == "ds":
            key, _, value = rest.partition(" ")
            self.strings[key] = plain(value.strip().removeprefix('"'), self.strings)[:_LONGEST]
        elif name in ("SH", "Sh", "SS", "Ss"):
            self._section(name, rest, lines)
        elif name in ("nf", "EX", "Vb", "DS", "CS"):
            self._end(keep=True)
            self.literal = []
        elif name in ("fi", "EE", "Ve", "DE", "CE"):
            self._end_code()
        elif name == "TS":
            self._end()
            self.blocks += _table(lines, self.strings)
        elif name in _STRUCTURE:
            _STRUCTURE[name](self, rest)
        elif name in _FONTS:
            self._add(plain(" ".join(arguments(rest)) or next(lines, ""), self.strings))
        elif name in _PAIRS:
            self._add(plain("".join(arguments(rest)), self.strings))
        elif name in ("UR", "MT"):
            self._add(plain(rest, self.strings))
        elif name in ("URL", "MTO"):
            self._add(_link([plain(argument, self.strings) for argument in arguments(rest)]))
        elif name == "Sm":
            self._loosen()
            self.tight = rest == "off" or (not rest and not self.tight)
        elif name[:1].isupper() and name not in ("UE", "ME"):
            said = inline(name, arguments(rest), self.name, tight=self.tight)
            if name == "Nm":
                self.name = self.name or said
                if self.synopsis:
                    self._end()
            if self.tight:
                self.glued.append(said)
            else:
                self._add(said)

    def _condition(self, name: str, rest: str, lines: Iterator[str]) -> None:
        """Read what a terminal shows (`n`, `!t`); other conditions count as false."""
        found = None if name == "el" else _CONDITION.match(rest)
        holds = not self.held if name == "el" else found is not None and found[1] in ("n", "!t")
        if name == "ie":
            self.held = holds
        then = rest[found.end() :] if found else rest
        if not holds:
            _skip_condition(rest, lines)
        elif (then := then.replace("\\{", "", 1).lstrip()).startswith((".", "'")):
            self._macro(then, lines)
        elif then:
            self._add(plain(then, self.strings))

    def _name(self, rest: str) -> None:
        parts = [plain(part) for part in arguments(rest)]
        if parts:
            name = parts[0].lower() if parts[0].isupper() else parts[0]
            self.title = f"{name}({parts[1]})" if len(parts) > 1 and parts[1] else name

    def _section(self, name: str, rest: str, lines: Iterator[str]) -> None:
        self._end_code()
        self._end()
        self.lists.clear()
        text = squeezed(plain(" ".join(arguments(rest or next(lines, "")))))
        self.synopsis = text.casefold() == "synopsis"
        if text:
            words = text.isupper() and not _SYNTAX.search(text)  # and no call, such as `RPC INFO [NAME]`
            self.blocks.append(heading(text.capitalize() if words else text, 2 if name[1] in "Hh" else 3))

    def paragraph(self, rest: str = "") -> None:
        """A new paragraph."""
        if self.literal is not None:
            self.literal.append("")
        else:
            self._end()

    def indent(self, rest: str = "") -> None:
        """What follows is indented; a short line before it is its tag, as asciidoctor and DocBook write them."""
        self.paragraph()
        if self.alone is not None and self.blocks and self.blocks[-1] is self.alone:
            line = self.alone.text
            if len(line.split()) <= _TAG_WORDS and (line.endswith("...") or not line.endswith(_SENTENCE_ENDS)):
                self.blocks.pop()
                self.tags = [line]

    def tagged(self, rest: str = "") -> None:
        """The next line is a tag, and what follows explains it."""
        self._end_code()
        self._end()
        self.tag_next = True

    def also_tagged(self, rest: str = "") -> None:
        """The next line is one more tag."""
        self.tag_next = True

    def indented(self, rest: str) -> None:
        """A paragraph that its argument explains or numbers."""
        self._end_code()
        self._end()
        parts = arguments(rest)
        tag = squeezed(plain(parts[0], self.strings)) if parts else ""
        if tag in _MARKS:
            self.mark = "-"
        elif re.fullmatch(r"\(?(?:\d{1,3}[.)]?|[A-Za-z][.)])\)?", tag):
            self.mark = f"{tag.strip('().')}."
        elif tag:
            self.tags.append(tag)

    def open_list(self, rest: str) -> None:
        """A list of mdoc."""
        self._end()
        self.lists.append((arguments(rest) or ["-item"])[0])
        self.numbers.append(0)

    def close_list(self, rest: str = "") -> None:
        """The end of a list of mdoc."""
        self._end()
        if self.lists:
            self.lists.pop()
        if self.numbers:
            self.numbers.pop()

    def list_item(self, rest: str) -> None:
        """An item of a list of mdoc."""
        self._end_code()
        self._end()
        kind = self.lists[-1] if self.lists else "-bullet"
        said = inline("It", arguments(rest), self.name, tight=self.tight)
        if kind in ("-bullet", "-dash", "-hyphen"):
            self.mark = "-"
        elif kind == "-enum" and self.numbers:
            self.numbers[-1] += 1
            self.mark = f"{self.numbers[-1]}."
        elif kind == "-column":
            if (block := row(map(squeezed, said.split("\t")))) is not None:
                self.blocks.append(block)
        elif said:
            self.tags.append(squeezed(said))

    def display(self, rest: str) -> None:
        """Lines that are kept as they are, or only indented text."""
        self._end(keep=True)
        if "-literal" in rest or "-unfilled" in rest:
            self.literal = []

    def code_line(self, rest: str) -> None:
        """One line of code."""
        self._end(keep=True)
        if (block := code(inline("Dl", arguments(rest), self.name))) is not None:
            self._append(block)

    def _end_code(self, rest: str = "") -> None:
        self._loosen()
        lines, self.literal = self.literal, None
        if lines is not None and (block := code("\n".join(lines))) is not None:
            self._append(block)

    def _append(self, block: Block) -> None:
        if self.tags:
            self.blocks.append(entry(", ".join(self.tags), ""))
            self.tags = []
        self.mark = None
        self.blocks.append(block)

    def _end(self, *, keep: bool = False) -> None:
        """End the paragraph; its tag stays for what follows with `keep`, or else is a text of its own."""
        self._loosen()
        single = len(self.text) == 1
        text, self.text = squeezed(" ".join(self.text)), []
        tags = ", ".join(tag for tag in self.tags if tag)
        if self.mark is None and not tags and text.startswith("• "):  # as DocBook draws items on a terminal
            text, self.mark = text[2:], "-"
        if text:
            depth = max(0, sum(kind in ("-bullet", "-dash", "-enum", "-hyphen") for kind in self.lists) - 1)
            if self.mark is not None:
                self.blocks.append(item(text, depth, self.mark))
            elif tags:
                self.blocks.append(entry(tags, text))
            else:
                self.blocks.append(Block(text))
                self.alone = self.blocks[-1] if single else None
            self.tags, self.mark = [], None
        elif tags and not keep:
            self.blocks.append(Block(tags, Kind.LEAD))
            self.tags = []


_STRUCTURE: dict[str, Callable[[_Page, str], None]] = {
    **dict.fromkeys(["PP", "P", "LP", "Pp", "sp", "br", "HP", "RE", "Lp", "Sp", "ti"], _Page.paragraph),
    "RS": _Page.indent,
    **dict.fromkeys(["INDENT", "UNINDENT"], _Page.paragraph),  # of docutils
    "TP": _Page.tagged,
    "TQ": _Page.also_tagged,
    "IP": _Page.indented,
    "Bl": _Page.open_list,
    "El": _Page.close_list,
    "It": _Page.list_item,
    "Bd": _Page.display,
    "Ed": _Page._end_code,
    "Dl": _Page.code_line,
    "D1": _Page.code_line,
}


def _skip_definition(rest: str, lines: Iterator[str]) -> None:
    """Leave out the lines of a macro (`.de NAME [END]`)."""
    _skip_ignored(" ".join(rest.split()[1:]), lines)


def _skip_ignored(rest: str, lines: Iterator[str]) -> None:
    """Leave out the lines of what is ignored (`.ig [END]`)."""
    end = f".{rest.split()[0]}" if rest.strip() else ".."
    for line in lines:
        if line.rstrip() == end:
            return


def _skip_condition(rest: str, lines: Iterator[str]) -> None:
    """Leave out the lines in the braces of a condition."""
    depth = rest.count("\\{") - rest.count("\\}")
    while depth > 0:
        line = next(lines, None)
        if line is None:
            return
        depth += line.count("\\{") - line.count("\\}")


def _skip_line(rest: str, lines: Iterator[str]) -> None:
    """Leave out a line that says how the page looks."""


def _skip_equation(rest: str, lines: Iterator[str]) -> None:
    """Leave out an equation."""
    for line in lines:
        if line.startswith(".EN"):
            return


_SKIPPED: dict[str, Callable[[str, Iterator[str]], None]] = {
    **dict.fromkeys(["de", "de1", "am", "dei"], _skip_definition),
    "ig": _skip_ignored,
    "while": _skip_condition,
    **dict.fromkeys(
        """
        nh hy ad na ne ft ps ll in nr rr rm rn ce fp so tr ta lg cs ss vs pl po bp ns rs PD AT UC DT Dd Os Bk Ek Rs
        Re hw cc ec eo IX FN INDEX rch mso do als br1 lf shc zY zZ
        """.split(),
        _skip_line,
    ),
    "EQ": _skip_equation,
}


def _table(lines: Iterator[str], strings: dict[str, str]) -> Iterator[Block]:
    """The rows of a table of tbl(1)."""
    separator, formats, names = "\t", True, []  # type: str, bool, list[str]
    cell: list[str] | None = None
    cells: list[str] = []
    first = True
    for line in lines:
        if line.startswith(".TE"):
            return
        if formats:
            if (found := re.search(r"tab\s*\((.)\)", line)) is not None:
                separator = found[1]
            formats = not line.rstrip().endswith(".")
            continue
        if cell is not None:
            if not line.startswith("T}"):
                cell.append(re.sub(r"^\.[BIR]+ ", "", line))
                continue
            cells.append(squeezed(plain(" ".join(cell), strings)))
            cell, line = None, line[2:].removeprefix(separator)
            if not line:
                yield from _row(cells, names)
                cells, first = [], False
                continue
        if line.startswith((".", "_", "=")) and separator not in line:
            continue
        parts = line.split(separator)
        opens = parts[-1].strip() == "T{"
        cells += [squeezed(plain(part, strings)) for part in (parts[:-1] if opens else parts)]
        if opens:
            cell = []
        elif first and len(cells) > 1 and ("\\fB" in line or line.isupper()) and _are_names(cells):
            names, cells, first = cells, [], False
        else:
            yield from _row(cells, names)
            cells, first = [], False


def _link(given: list[str]) -> str:
    """A link of groff's www macros, which asciidoctor writes: its address, its text, and what follows it."""
    address, text, after = (*given, "", "", "")[:3]
    return (f"{text} <{address}>" if text else address) + after


def _are_names(cells: list[str]) -> bool:
    """Whether cells may name columns: a number or a dash alone is what a row says."""
    return all(any(map(str.isalpha, cell)) for cell in cells if cell)


def _row(cells: list[str], names: list[str]) -> Iterator[Block]:
    if (block := row(cells, names)) is not None and any(map(str.isalnum, block.text)):
        yield block
