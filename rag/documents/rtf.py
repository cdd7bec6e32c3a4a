"""Blocks from Rich Text Format, by way of HTML.

`striprtf` gives no headings and no marks of lists, and takes 8 seconds for 33 kB of fields that never end.
"""

import codecs
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from html import escape

from rag.base.errors import FormatError
from rag.documents import navigation as nav
from rag.documents.blocks import Block, squeezed
from rag.documents.html import TITLE, html_blocks
from rag.documents.office import with_header_rows

_TOKEN = re.compile(
    r"\\([a-zA-Z]{1,32})(-?\d{1,9})? ?|\\'([0-9a-fA-F]{2})|\\([^a-zA-Z])|([{}])|[\r\n]+|([^\\{}\r\n]+)|\\"
)
_DEEPEST = 5_000  # groups in one another
_CODE_PAGES = {
    0: "cp1252", 77: "mac_roman", 128: "cp932", 129: "cp949", 130: "johab", 134: "gbk", 136: "big5", 161: "cp1253",
    162: "cp1254", 163: "cp1258", 177: "cp1255", 178: "cp1256", 186: "cp1257", 204: "cp1251", 222: "cp874",
    238: "cp1250", 254: "cp437", 255: "cp850",
}  # fmt: skip
"""By the numbers that fonts have for sets of characters."""
_SETS = {"ansi": "cp1252", "mac": "mac_roman", "pc": "cp437", "pca": "cp850"}
_SIGNS = {
    "bullet": "•", "emdash": "—", "emspace": " ", "endash": "–", "enspace": " ", "ldblquote": "“", "line": "\n",
    "lquote": "‘", "nestcell": " ", "nestrow": " ", "qmspace": " ", "rdblquote": "”", "rquote": "’", "tab": "\t",
    "~": "\N{NO-BREAK SPACE}", "_": "-", "{": "{", "}": "}", "\\": "\\",
}  # fmt: skip
_SKIPPED = frozenset(
    """
    annotation author category colortbl comment company doccomm falt filetbl footer footerf footerl footerr footnote
    header headerf headerl headerr info keywords nesttableprops nonesttables nonshppict operator pict private rxe sp
    subject tc template title txe xe
    """.split()
)
_STARRED = frozenset(
    ["fldinst", "listtext", "pntext", "shpinst", "shptxt"]
)  # that are read although they begin with `\*`
_HEADING = re.compile(r"(?:heading|überschrift|titre|titolo|título|kop|rubrik|overskrift|nagłówek) ?([1-9])\b")
_TITLES = frozenset(["title", "titel", "titre", "titolo", "título"])
_CODES = frozenset(["code", "html preformatted", "preformatted text", "source code"])
_LISTS = re.compile(r"\s*(?:TOC|INDEX|TOA)\b")
_BULLET = re.compile(r"(?:[•·▪■◦–\uf000-\uf0ff-]|\d{1,3}[.)])\t\s*(?=\S)")
_NUMBER = re.compile(r"\(?(\d{1,4})[.)]*")


@dataclass(slots=True)
class _Group:
    """What holds inside of braces. The `part` that its text is of is text, mark, styles, fonts, field or no."""

    part: str = "text"
    font: int = -1
    skip: int = 1  # characters after `\\u` that stand for it where it is not known
    bold: bool = False
    hidden: bool = False
    field: list[str] = field(default_factory=list)  # the instruction of the field that the group is of


@dataclass(slots=True)
class _Style:
    name: str = ""
    level: int = 9  # from 0; 9 is that of running text


@dataclass(slots=True)
class _Row:
    cells: list[str]
    header: bool


def rtf_blocks(data: bytes, where: str, dropped: Counter[str]) -> tuple[str, list[Block]]:
    """The title ("" if there is none) and the blocks of a text."""
    if not data.lstrip(b"\xef\xbb\xbf \r\n\t").startswith(b"{\\rtf"):
        raise FormatError(f"{where}: not Rich Text Format: it does not begin with {{\\rtf")
    reader = _Rtf(data.decode("latin-1"), where, dropped)
    return html_blocks(with_header_rows("".join(reader.html())), dropped, where=where)


class _Rtf:
    """Reads the groups and control words of a text."""

    def __init__(self, text: str, where: str, dropped: Counter[str]) -> None:
        self._text, self._where, self._dropped = text, where, dropped
        self._at = 0
        self._group = _Group()
        self._around: list[_Group] = []
        self._starred = False  # `\*` came before
        self._left = 0  # characters to skip after `\u`
        self._bytes = bytearray()  # that wait for being decoded
        self._set, self._default = "cp1252", -1
        self._fonts: dict[int, str] = {}
        self._font = -1  # whose line in the table of fonts is read
        self._styles: dict[int, _Style] = {}
        self._style = _Style()  # the one that is read
        self._out: list[str] = []
        self._ends: list[str] = []  # of open lists
        self._code: list[str] = []  # lines of code
        self._rows: list[_Row] = []
        self._cells: list[str] = []
        self._parts: list[str] = []  # of a cell
        self._spans: list[bool] = []  # for each cell of the row whether it goes on from the row above
        self._spanned = self._header = False
        self._begin()

    def _begin(self) -> None:
        """Begin a paragraph with the properties of the one before."""
        self._said: list[tuple[str, bool]] = []  # with whether it is bold
        self._mark = ""

    def _reset(self) -> None:
        self._of_style, self._level, self._in_table, self._depth = 0, 9, False, 0

    def html(self) -> Iterator[str]:
        """The paragraphs, lists and tables."""
        self._reset()
        end = len(self._text)
        while self._at < end:
            found = _TOKEN.match(self._text, self._at)
            assert found is not None  # one of the alternatives fits any character
            self._at = found.end()
            word, number, code, sign, brace, text = found.groups()
            if word:
                self._word(word, None if number is None else int(number))
            elif code:
                self._take(bytes.fromhex(code))
            elif text:
                self._take(text.encode("latin-1"))
            elif brace:
                self._brace(brace)
                if not self._around:  # what follows is no part of the text
                    break
            elif sign == "*":
                self._starred = True
            elif sign:
                self._say(_SIGNS.get(sign, ""))
                if sign in "\r\n":
                    self._paragraph()
        self._paragraph()
        self._end_table()
        self._end_code()
        return iter([*self._out, *reversed(self._ends)])

    def _brace(self, brace: str) -> None:
        self._decode()
        self._starred, self._left = False, 0
        if brace == "{":
            if len(self._around) > _DEEPEST:
                raise FormatError(f"{self._where}: its groups are nested more than {_DEEPEST:,} deep")
            self._around.append(self._group)
            self._group = replace(self._group)
        elif self._around:
            self._group = self._around.pop()

    def _take(self, data: bytes) -> None:
        """Take bytes of the text but for those that stand for a sign that is known."""
        if self._left:
            left = self._left
            self._left = max(0, left - len(data))
            data = data[left:]
        self._bytes += data

    def _decode(self) -> None:
        if self._bytes:
            data, self._bytes = bytes(self._bytes), bytearray()
            self._write(data.decode(self._fonts.get(self._group.font, self._set), "replace"))

    def _say(self, text: str) -> None:
        self._decode()
        if self._left and text:
            self._left -= 1
        else:
            self._write(text)

    def _write(self, text: str) -> None:
        group = self._group
        if group.part == "text" and not group.hidden:
            self._said.append((text, group.bold))
        elif group.part == "mark":
            self._mark += text
        elif group.part == "field":
            group.field.append(text)
        elif group.part == "styles":
            self._style.name += text

    def _word(self, word: str, number: int | None) -> None:
        self._decode()
        starred, self._starred = self._starred, False
        if word == "bin":
            self._at += max(0, number or 0)
        elif word == "u" and number is not None:
            self._write(chr(number % 0x10000))
            self._left = self._group.skip
        elif word in _SIGNS:
            self._say(_SIGNS[word])
        elif word in _SKIPPED or (starred and word not in _STARRED):
            self._dropped["footnote"] += word == "footnote" and self._group.part == "text"
            self._group.part = "no"
        elif self._group.part == "no":
            return
        elif not self._destination(word) and not self._of_table(word):
            self._property(word, number)

    def _destination(self, word: str) -> bool:
        """Whether a word says where the text of its group goes."""
        group = self._group
        if word in ("fonttbl", "stylesheet"):
            group.part = "fonts" if word == "fonttbl" else "styles"
        elif word in ("listtext", "pntext"):
            group.part, self._mark = "mark", ""
        elif word == "field":
            group.field = []
        elif word == "fldinst":
            group.part = "field"
        elif word == "fldrslt":
            if _LISTS.match("".join(group.field)):
                self._dropped[nav.CONTENTS] += 1
                group.part = "no"
        else:
            return False
        return True

    def _of_table(self, word: str) -> bool:
        if word == "trowd":
            self._spans, self._header = [], False
        elif word == "trhdr":
            self._header = True
        elif word == "clvmrg":
            self._spanned = True
        elif word == "cellx":
            self._spans.append(self._spanned)
            self._spanned = False
        elif word == "intbl":
            self._in_table = True
        elif word == "cell":
            self._in_table = True
            self._paragraph()
            self._cells.append("".join(self._parts))
            self._parts = []
        elif word == "row":
            self._row()
        else:
            return False
        return True

    def _property(self, word: str, number: int | None) -> None:
        group = self._group
        on = number != 0
        if word in ("par", "sect", "page"):
            self._paragraph()
        elif word == "pard":
            self._reset()
        elif word == "plain":
            group.bold, group.hidden, group.font = False, False, self._default
        elif word == "b":
            group.bold = on
        elif word in ("v", "deleted"):
            group.hidden = on
        elif word == "s":
            self._of_style = number or 0
            self._read_style(number or 0)
        elif word == "outlinelevel":
            self._level = number or 0
            self._style.level = number or 0
        elif word == "ilvl":
            self._depth = number or 0
        elif word == "uc":
            group.skip = max(0, number or 0)
        elif word == "f":
            group.font = self._font = number or 0
        elif word == "fcharset" and group.part == "fonts":
            self._fonts[self._font] = _CODE_PAGES.get(number or 0, self._set)
        elif word == "deff":
            self._default = group.font = number or 0
        elif word in _SETS:
            self._set = _SETS[word]
        elif word == "ansicpg":
            self._set = _known(f"cp{number}", self._set)

    def _read_style(self, number: int) -> None:
        if self._group.part == "styles":
            self._style = self._styles[number] = _Style()

    def _paragraph(self) -> None:
        """End the paragraph."""
        self._decode()
        said, mark = self._said, squeezed(_paired(self._mark))
        self._begin()
        text = _paired("".join(part for part, _ in said)).strip("\r\n\t ")
        if not text:
            return
        if not mark and (sign := _BULLET.match(text)):
            mark, text = sign[0].strip(), text[sign.end() :]
        style = self._styles.get(self._of_style, _Style())
        name = style.name.strip().rstrip(";").strip().casefold()
        named = _HEADING.match(name)
        level = int(named[1]) - 1 if named else min(self._level, style.level)
        shown = escape(text, quote=False).replace("\n", "<br>")
        if all(bold for part, bold in said if part.strip()):
            shown = f"<strong>{shown}</strong>"
        if self._in_table:
            self._parts.append(f"<p>{shown}</p>")
            return
        self._end_table()
        if name.startswith(("toc ", "contents ")) and name[-1].isdigit():
            self._dropped[nav.CONTENTS] += 1
        elif name in _TITLES:
            self._put(f'<h1 class="{TITLE}">{shown}</h1>')
        elif level < 9:
            self._put(f"<h{min(level + 1, 6)}>{shown}</h{min(level + 1, 6)}>")
        elif name in _CODES:
            self._code.append(escape(text, quote=False))
        elif mark:
            self._item(mark, shown)
        else:
            self._put(f"<p>{shown}</p>")

    def _put(self, html: str) -> None:
        """Put a part below the lists that are open, which end."""
        while self._ends:
            self._out.append(self._ends.pop())
        self._end_code()
        self._out.append(html)

    def _end_code(self) -> None:
        if self._code:
            said, self._code = "\n".join(self._code), []
            self._put(f"<pre>\n{said}</pre>")

    def _item(self, mark: str, shown: str) -> None:
        number = _NUMBER.fullmatch(mark)
        if number is None and any(map(str.isalnum, mark)) and mark != "o":  # "(b)" is referred to
            shown = f"{escape(mark, quote=False)} {shown}"
        self._end_code()
        depth = min(self._depth, 8) + 1
        while len(self._ends) > depth:
            self._out.append(self._ends.pop())
        kind = "ol" if number else "ul"
        if len(self._ends) == depth and (number or self._ends[-1] != f"</{kind}>"):
            self._out.append(self._ends.pop())
        while len(self._ends) < depth:
            self._out.append(f'<ol start="{number[1]}">' if number and len(self._ends) + 1 == depth else "<ul>")
            self._ends.append(f"</{kind}>" if len(self._ends) + 1 == depth else "</ul>")
        self._out.append(f"<li>{shown}</li>")

    def _row(self) -> None:
        above: Sequence[str] = self._rows[-1].cells if self._rows else ()
        for place, (spanned, cell, said) in enumerate(zip(self._spans, self._cells, above, strict=False)):
            if spanned and not cell:
                self._cells[place] = said
        if any(self._cells):
            self._rows.append(_Row(self._cells, self._header))
        self._cells, self._parts = [], []

    def _end_table(self) -> None:
        if self._parts or self._cells:
            self._cells += ["".join(self._parts)] if self._parts else []
            self._row()
        if not self._rows:
            return
        rows, self._rows = self._rows, []
        width = max(len(row.cells) for row in rows)
        lines = [_line(row, "td", width) for row in rows]
        if rows[0].header and len(rows) > 1:
            lines[0] = f"<thead>{_line(rows[0], 'th', width)}</thead>"
        self._put(f"<table>{''.join(lines)}</table>")


def _line(row: _Row, tag: str, width: int) -> str:
    """A row, of which one cell alone is as wide as the table."""
    begin = f"{tag} colspan={width}" if len(row.cells) == 1 < width else tag
    return f"<tr>{''.join(f'<{begin}>{cell}</{tag}>' for cell in row.cells)}</tr>"


def _paired(text: str) -> str:
    """The text with one character for the two halves of one that is beyond 16 bits."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _known(name: str, default: str) -> str:
    try:
        return _SETS["mac"] if name == "cp10000" else codecs.lookup(name).name
    except LookupError:
        return default
