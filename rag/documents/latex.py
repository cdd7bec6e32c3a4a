"""Blocks from LaTeX. Macros of a text that take no values are replaced; files that it includes are missing.

`pylatexenc` shows a text as lines, without the header rows of tables, lists in lists and a text's own macros.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from rag.documents import latex_names as names
from rag.documents.blocks import Block, squeezed
from rag.documents.latex_cursor import AHEAD, SPACE, Cursor, written
from rag.documents.latex_tables import Table
from rag.documents.latex_tokens import ACCENTS, SYMBOLS, Token, formula
from rag.documents.line_writer import LineWriter

_DOCUMENT = re.compile(rb"^[^%\n]*\\(?:documentclass|documentstyle|begin[ \t]*\{document\})", re.MULTILINE)
_PARTS = re.compile(rb"^[^%\n]*\\(?:part|chapter|(?:sub)*section|paragraph|begin)\*?[ \t]*[\[{]", re.MULTILINE)
_PROGRAM = re.compile(
    rb"^[ \t]*\\(?:Provides(?:Package|Class|File|Expl\w+)|NeedsTeXFormat|input[ \t]+\{?texinfo|bye\b|RequirePackage)",
    re.MULTILINE,
)
_DEFINITION = re.compile(
    rb"^[ \t}]*\\(?:[egx]?def|global|long|outer|let|new\w+|renew\w+|provide\w+|Declare\w+|expandafter|catcode"
    rb"|if\w*|else|fi|advance|font|[a-z]+[@_]\w*|make\w+|end\w*group|begingroup|set\w+|csname)[^a-z]",
    re.MULTILINE,
)
_COMMENT = re.compile(rb"(?<!\\)%.*")
_WORD = re.compile(
    rb"(?<![\\A-Za-z@])[A-Za-z\x80-\xff]{2,}[ ,.\n]|(?:[\xe3-\xe9][\x80-\xbf]{2}){2}"
)  # or a word of Chinese
_DEEPEST = 30  # environments in one another, and values of commands
_LONGEST_MACRO = 100  # characters, which may stand in a text many times
_LONGEST_BODY = 60  # parts of a macro that are looked at
_WIDEST = 50  # columns that a cell may span


def is_latex(head: bytes) -> bool:
    """Whether a file is a document or a part of one, by its beginning: packages and plain TeX are called so, too."""
    if _DOCUMENT.search(head):
        return True
    if _PROGRAM.search(head):
        return False
    said = _COMMENT.sub(b"", head)
    lines = sum(map(bool, map(bytes.strip, said.split(b"\n"))))
    if 3 * len(_DEFINITION.findall(said)) >= lines:
        return False
    return _PARTS.search(said) is not None or len(_WORD.findall(said)) > 5 * lines


def latex_blocks(text: str, dropped: Counter[str]) -> tuple[str, list[Block]]:
    """The title ("" if there is none) and the blocks of a text."""
    reader = _Latex(text, dropped)
    reader.read()
    return reader.title, reader.out.blocks


@dataclass(slots=True)
class _Value:
    """A value of a command that is read: where it ends, and what is done with its text."""

    end: int
    take: Callable[[str], None]
    said: list[str] = field(default_factory=list)


class _Latex:
    """Reads the parts of a text into blocks."""

    def __init__(self, text: str, dropped: Counter[str]) -> None:
        self._in = Cursor(text)
        self._preamble = any(token.kind == "begin" and token.text == "document" for token in self._in.tokens)
        self._dropped = dropped
        self._said: list[str] = []  # of the open paragraph or cell
        self._values: list[_Value] = []
        self._around: list[str] = []  # open environments
        self._lists: list[list[int]] = []  # the numbers of the last items of open lists; -1 if they have none
        self._table: Table | None = None
        self._inner = 0  # tables in a table
        self._float: int | None = None  # the block that a table may be introduced above
        self._hidden = 0  # conditions that do not hold
        conditions = (at for at in range(len(self._in.tokens) - 1, -1, -1) if self._in.tokens[at] == _FI)
        self._last_end = next(conditions, -1)  # of a condition
        self._macros: dict[str, str] = {}
        self._sources: dict[str, str] = {}  # of macros, for formulas
        self._theorems: dict[str, str] = {}
        self.out = LineWriter(dropped, lambda text: text)
        self.title = ""

    def read(self) -> None:
        while self._in.at < len(self._in.tokens):
            while self._values and self._in.at >= self._values[-1].end:
                value = self._values.pop()
                value.take("".join(value.said))
            token = self._in.tokens[self._in.at]
            self._in.at += 1
            if token.kind == "begin" and token.text == "document" and self._preamble:
                self._preamble, self._hidden = False, 0
            elif self._in.at <= self._last_end and (self._hidden or token == _NEVER):
                self._hide(token)
            elif token.kind == "end" and token.text == "document" and not self._values:
                break
            else:
                self._token(token)
        while self._values:
            value = self._values.pop()
            value.take("".join(value.said))
        self._end_table()
        self._paragraph()
        self.out.end()

    def _hide(self, token: Token) -> None:
        if token.kind != "command":
            return
        if token.text == "fi" or (token.text in ("else", "or") and self._hidden == 1):
            self._hidden -= 1
        elif token.text.startswith("if") and not names.NO_CONDITION.fullmatch(token.text):
            self._hidden += 1

    def _token(self, token: Token) -> None:
        if token.kind in ("text", "[", "]"):
            self._say(token.text)
        elif token.kind == "command":
            self._command(token.text)
        elif token.kind == "formula":
            self._say(formula(token.text, self._sources))
        elif token.kind == "par":
            self._break()
        elif token.kind == "begin":
            self._begin(token.text)
        elif token.kind == "end":
            self._end(token.text)
        elif token.kind == "code":
            self._code(token)
        elif token.kind == "drawing":
            self._dropped["drawing"] += not self._preamble
        elif token.kind == "&":
            self._next_cell()
        elif token.kind == "{" and self._in.at > 1 and self._in.tokens[self._in.at - 2].kind == "}":
            self._say(" ")

    # --- Text ---------------------------------------------------------------------------------------------------

    def _say(self, text: str) -> None:
        if self._values:
            self._values[-1].said.append(text)
        elif not self._preamble:
            self._said.append(text)

    def _paragraph(self) -> None:
        """End the open paragraph; an item or a term may wait for its text."""
        text, self._said = "".join(self._said), []
        if text.strip():
            self.out.lines = text.split("\n")
            self.out.end()

    def _break(self) -> None:
        if self._values or self._table:
            self._say(" ")
        else:
            self._paragraph()

    def _code(self, token: Token) -> None:
        if self._values or self._table or self._preamble:
            self._say(f" {squeezed(token.text)} ")
            return
        self._paragraph()
        if caption := names.CAPTION.search(token.option):
            self.out.lead(caption[1] or caption[2])
        self.out.code(token.text.split("\n"))

    # --- Values of commands -------------------------------------------------------------------------------------

    def _value(self, take: Callable[[str], None]) -> bool:
        """Have the text of the next value taken; whether there is one."""
        self._in.options()
        self._in.skip_spaces()
        end = self._in.ends.get(self._in.at)
        if end is None or len(self._values) >= _DEEPEST:
            return False
        self._in.at += 1
        self._values.append(_Value(end, take))
        return True

    # --- Commands -----------------------------------------------------------------------------------------------

    def _command(self, name: str) -> None:
        if name in ("\\", "newline", "linebreak", "tabularnewline", "cr"):
            self._line()
        elif name in self._macros:
            self._say(self._macros[name])
            if self._macros[name] in SYMBOLS.values():
                self._in.close_up()
        elif name in SYMBOLS:
            self._say(SYMBOLS[name])
            if len(SYMBOLS[name]) == 1 and name.isalpha() and SYMBOLS[name] != "…":
                self._in.close_up()
        elif name in ACCENTS and (len(name) > 1 or not name.isalpha() or self._in.is_at("{")):
            self._accent(ACCENTS[name])
        elif name in names.DEFINING:
            self._define(name)
        elif name == "newtheorem":
            self._theorem()
        elif name in names.LEVELS:
            self._heading(names.LEVELS[name])
        elif name == "title":
            self._value(self._set_title)
        elif name in names.SAID:
            self._value(lambda text: self._add(names.SAID[name], text))
        elif name in names.NOTES:
            self._dropped["footnote"] += not self._preamble
            self._in.skip(1)
        elif name in ("input", "include", "subfile", "lstinputlisting", "verbatiminput"):
            self._dropped["included file"] += not self._preamble
            self._in.skip(1)
        elif name == "item":
            self._item()
        elif name == "bibitem":
            self._cited()
        elif name == "caption":
            self._value(self._caption)
        elif name == "captionof":
            self._in.skip(1)
            self._value(self._caption)
        elif name == "par":
            self._break()
        elif name == "and":
            self._say("\n")
        elif name == "else":
            self._hidden = 1 if self._last_end >= self._in.at else 0
        else:
            self._inline(name)

    def _inline(self, name: str) -> None:
        if names.REFERENCE.fullmatch(name):
            keys = squeezed(self._in.source().replace(",", ", "))
            self._say(f"[{keys}]" if keys else "")
        elif name in ("url", "path", "nolinkurl"):
            self._say(self._in.source())
        elif name == "enquote":
            self._value(lambda text: self._say(f"“{text}”"))
        elif name in names.RULES and self._table:
            self._table.rules.append(len(self._table.rows))
            self._in.skip({"cline": 1, "cmidrule": 1, "specialrule": 3, "Xhline": 1}.get(name, 0))
        elif name in names.TABLE_PARTS and self._table:
            self._table.end_part(name)
        elif name == "multicolumn" and self._table:
            number = self._in.source().strip()
            self._table.span = min(_WIDEST, int(number)) if number.isdecimal() else 1
            self._in.skip(1)
        elif name in names.SKIPPED:
            self._in.skip(names.SKIPPED[name])
            self._in.options()
        else:
            if self._table and not self._table.rows and name in ("textbf", "bf", "bfseries", "thead"):
                self._table.bold = True
            self._in.options()
            if not names.SET.fullmatch(name) and self._in.stands_alone():
                self._say(name)

    def _line(self) -> None:
        if self._in.is_at("text") and (text := self._in.tokens[self._in.at].text).startswith("*"):
            self._in.tokens[self._in.at] = Token("text", text[1:])
        self._in.options()
        if self._table and not self._values and not self._inner:
            self._next_cell()
            self._table.end_row()
        else:
            self._say(" " if self._table else "\n")

    def _accent(self, mark: str) -> None:
        if self._in.is_at("{"):
            self._value(lambda text: self._say(_accented(text, mark)))
            return
        self._in.skip_spaces()
        token = self._in.tokens[self._in.at] if self._in.at < len(self._in.tokens) else SPACE
        if token.kind == "text":
            self._in.tokens[self._in.at] = Token("text", _accented(token.text, mark))
        elif token.kind == "command" and token.text in ("i", "j"):
            self._in.at += 1
            self._say(_accented(token.text, mark))
            self._in.close_up()

    def _define(self, name: str) -> None:
        """Learn a macro without values; those with values show them."""
        is_def = name.endswith("def")
        self._in.skip_spaces()
        end = self._in.ends.get(self._in.at)
        inner = self._in.at + 1 if end is not None and not is_def else self._in.at
        known = (
            self._in.tokens[inner].text
            if inner < len(self._in.tokens) and self._in.tokens[inner].kind == "command"
            else ""
        )
        self._in.at = inner + 1 if end is None or is_def else end + 1
        if name == "let":
            self._in.at += self._in.at < len(self._in.tokens)
            return
        self._in.skip_spaces()
        takes = self._in.is_at("[")
        self._in.options()
        for _ in range(20 if is_def else 0):
            if self._in.is_at("text") or self._in.is_at("["):
                takes = True
                self._in.at += 1
        self._in.skip_spaces()
        end = self._in.ends.get(self._in.at)
        if end is None:
            return
        body = self._in.tokens[self._in.at + 1 : end]
        if not known or takes or end - self._in.at > _LONGEST_BODY or any("#" in token.text for token in body):
            self._in.at = end + 1
            return
        source = "".join(map(written, body))
        if len(source) <= _LONGEST_MACRO:
            self._sources[known] = formula(source, self._sources).strip("$")[:_LONGEST_MACRO]
        fixed = known in names.LEVELS or known in SYMBOLS or known in names.SAID
        if fixed or not self._value(lambda text: self._learn(known, text)):
            self._in.at = end + 1

    def _learn(self, name: str, text: str) -> None:
        if text.strip():
            self._macros[name] = squeezed(text)[:_LONGEST_MACRO]

    def _theorem(self) -> None:
        name = self._in.source()
        self._value(lambda text: self._theorems.update({name: squeezed(text)[:_LONGEST_MACRO]}))
        if not self._values:
            return
        after = self._values[-1].end + 1  # `[section]`
        if after < len(self._in.tokens) and self._in.tokens[after].kind == "[":
            self._in.tokens[after] = SPACE

    # --- Blocks -------------------------------------------------------------------------------------------------

    def _set_title(self, text: str) -> None:
        self.title = self.title or squeezed(text)

    def _add(self, name: str, text: str) -> None:
        if said := squeezed(re.sub(r"\s*\n\s*", ", ", text.strip())):
            self._paragraph()
            self.out.blocks.append(Block(f"{name}: {said}"))

    def _heading(self, level: int) -> None:
        if not self._values and not self._preamble:
            self._end_table()
            self._paragraph()
            self._value(lambda text: self.out.heading(squeezed(text), level))

    def _caption(self, text: str) -> None:
        if self._values or not (said := squeezed(text)):
            return
        if self._float is None:
            cell = self._table is not None
            self._say(f" {said} " if cell else "")
            if not cell:
                self._paragraph()
                self.out.blocks.append(Block(said))
            return
        start, after = self._float, self.out.blocks
        self.out.lead(said)
        after.insert(start, after.pop())
        self._float = None

    def _item(self) -> None:
        if self._values or self._table or self._preamble:
            self._in.options()
            self._say(" ")
            return
        self._paragraph()
        self._in.skip_spaces()
        end = self._in.end_of_option()
        if end is not None and len(self._values) < _DEEPEST:
            self._in.at += 1
            self._values.append(_Value(end, self._begin_item))
            self._in.tokens[end] = SPACE
        else:
            self._begin_item("")

    def _begin_item(self, label: str) -> None:
        depth = max(0, len(self._lists) - 1)
        numbers = self._lists[-1] if self._lists else [-1]
        term = squeezed(label) if any(map(str.isalnum, label)) else ""
        if term and depth == 0 and numbers[0] < 0:
            self.out.define(term)
            return
        if numbers[0] >= 0 and not term:
            numbers[0] += 1
        self.out.item(depth, f"{numbers[0]}." if numbers[0] > 0 and not term else "-", "", term)

    def _cited(self) -> None:
        self._in.options()
        key = squeezed(self._in.source())
        if not self._values and not self._table and not self._preamble:
            self._paragraph()
            self.out.item(0, "-", "")
            self._say(f"[{key}] ")

    def _next_cell(self) -> None:
        if self._table and not self._values and not self._inner:
            self._table.cell("".join(self._said))
            self._said = []
        else:
            self._say(" ")

    def _begin(self, name: str) -> None:
        if self._values or self._preamble or len(self._around) >= _DEEPEST:
            self._in.options()
            return
        self._around.append(name)
        if name in names.TABLES or name in names.BOXES:
            self._in.options()
            self._in.skip(2 if name in ("list", "tabularx", "tabulary", "wrapfigure") else 1)
        if self._table is not None:
            self._inner += name in names.TABLES
            return
        self._paragraph()
        if name in names.FLOATS:
            self._float = len(self.out.blocks)
        if name in names.TABLES:
            self._table, self._inner = Table(), 0
        elif listed := names.LIST.fullmatch(name):
            self.out.end()
            self._lists.append([0 if listed[1] in ("enumerate", "enum") else -1])
            self._in.options()
        elif name in ("abstract", "thebibliography"):
            self.out.heading("Abstract" if name == "abstract" else "References", names.SECTION)
        elif name == "frame":
            self._in.options()
            if self._in.is_at("{"):
                self._heading(names.LEVELS["frametitle"])
        elif name in self._theorems or name in names.LABELS:
            self._labelled(self._theorems.get(name) or name.capitalize())
        elif name not in names.BOXES:
            self._in.options()
            self._skip_measures()

    def _labelled(self, name: str) -> None:
        end = self._in.end_of_option()
        if end is None:
            self.out.define(name)
            return
        self._in.at += 1
        self._values.append(_Value(end, lambda text: self.out.define(f"{name} ({squeezed(text)})")))
        self._in.tokens[end] = SPACE

    def _skip_measures(self) -> None:
        """Skip values of an environment that are no words: `{0.5\\textwidth}`."""
        end = self._in.ends.get(self._in.at)
        if end is not None and end - self._in.at < AHEAD:
            source = "".join(map(written, self._in.tokens[self._in.at + 1 : end]))
            if "\\" in source or len(source) < 4 or any(map(str.isdigit, source)):
                self._in.at = end + 1

    def _end(self, name: str) -> None:
        if self._values or self._preamble or name not in self._around:
            return
        while self._around:
            ended = self._around.pop()
            if ended in names.TABLES:
                if self._inner:
                    self._inner -= 1
                else:
                    self._end_table()
            elif self._table is None:
                self._paragraph()
                if names.LIST.fullmatch(ended):
                    self._lists[-1:] = []
                    self.out.end()
            if ended in names.FLOATS and self._table is None:
                self._float = None
            if ended == name:
                break

    def _end_table(self) -> None:
        if self._table is None:
            return
        self._next_cell()
        table, self._table, self._inner = self._table, None, 0
        table.end_row()
        rows, heads = table.said()
        self.out.table(rows, heads)


_FI, _NEVER = Token("command", "fi"), Token("command", "iffalse")


def _accented(text: str, mark: str) -> str:
    return unicodedata.normalize("NFC", text[:1] + mark) + text[1:] if text[:1].isalpha() else text
