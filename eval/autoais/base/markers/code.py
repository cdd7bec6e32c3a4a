"""The code in a Markdown text, where brackets are no citations (CommonMark 0.31, sections 4.4, 4.5, 4.6 and 6.1).

Each line is read a bounded number of times, so that the time is linear in the length of any text, but for a logarithm.
"""

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

_FENCE = re.compile(r"(?P<sign>~{3,}|`{3,}(?=[^`]*\Z))")
# "Run: ```python": models also open a fence behind words.
_LATE_FENCE = re.compile(r"[^`]*[^`\s\\][ \t]*(?P<sign>`{3,})(?=[ \t]*[\w+#.-]*[ \t]*\Z)")
_RAW_HTML = re.compile(r"<(?P<name>pre|script|style|textarea)(?=[\s>]|\Z)", re.IGNORECASE)
_LONE_TAG = re.compile(r"<(?P<name>code|kbd|samp|tt)(?:\s[^<>]*)?>\s*\Z", re.IGNORECASE)
_NAMES = "code|kbd|pre|samp|script|style|textarea|tt"
_CLOSING_TAG = re.compile(rf"</(?P<name>{_NAMES})\s*>", re.IGNORECASE)
_OPENING = re.compile(rf"(?P<ticks>`+)|<(?P<name>{_NAMES})(?:\s[^<>]*)?>", re.IGNORECASE)
_QUOTE_SIGNS = re.compile(r"(?:[ \t]{0,3}>[ \t]?)+")
_LIST_SIGN = re.compile(r"(?:[-*+•▪◦‣]|\d{1,9}[.)])(?:[ \t]+|\Z)")
_NEW_BLOCK = re.compile(r"#{1,6}[ \t]|\|")
_HINT = re.compile(r"[`~<]|\n[ \t>]")  # that there is code at all
_TAB = 4  # columns, which are also those by which code is indented


@dataclass(frozen=True, slots=True)
class Code:
    """Characters `start:end` of a text that are code, its fences, backticks or tags included.

    `is_block` means that it is a block of its own and not a part of a sentence.
    """

    start: int
    end: int
    is_block: bool


def find_code(text: str) -> list[Code]:
    r"""Return the code of a text, in order: fenced, indented, in HTML tags, and between backticks. Accepts any text.

    Lines end with `\n`. An open fence or `<pre>` goes on to the end of the text. The first line of a text is not
    indented code, and neither is a line with the sign of a list item, since models indent lists as they like.
    """
    return _CodeReader(text).read() if _HINT.search(text) else []


def mask(text: str, code: Sequence[Code]) -> str:
    """Return the text with backticks in place of its code, line ends excepted, at the same offsets."""
    pieces, end = [], 0
    for span in code:
        pieces += [text[end : span.start], re.sub(r"[^\n]", "`", text[span.start : span.end])]
        end = span.end
    return "".join([*pieces, text[end:]])


@dataclass(frozen=True, slots=True)
class _Line:
    """A line, where it starts and where it begins behind the signs of quotations; `depth` counts these."""

    start: int
    begin: int
    depth: int
    text: str  # from `begin` on

    @property
    def is_blank(self) -> bool:
        return not self.text.strip()

    @property
    def indent(self) -> int:
        return len(self.text[: len(self.text) - len(self.text.lstrip(" \t"))].expandtabs(_TAB))


class _CodeReader:
    """Reads blocks line by line, and then the lines between them for code inside."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._lines: list[_Line] = []
        start = 0
        for line in text.split("\n"):
            signs = _QUOTE_SIGNS.match(line)
            length = signs.end() if signs else 0
            self._lines.append(_Line(start, start + length, signs[0].count(">") if signs else 0, line[length:]))
            start += len(line) + 1
        fences = (len(sign_run) if set(sign_run := line.text.strip()) == {"`"} else 0 for line in self._lines[::-1])
        self._longest_fence_from = [*accumulate(fences, max, initial=0)][::-1]
        self._closing_tags: dict[str, list[tuple[int, int]]] = {}
        for match in _CLOSING_TAG.finditer(text):
            self._closing_tags.setdefault(match["name"].lower(), []).append(match.span())
        self._code: list[Code] = []
        self._items: list[int] = []  # the columns where the text of the open list items begins
        self._paragraph = 0  # the start of the lines that are not read for code inside

    def read(self) -> list[Code]:
        number, is_after_blank = 0, False
        while number < len(self._lines):
            line = self._lines[number]
            if number and line.depth != self._lines[number - 1].depth:
                self._close_paragraph(line.start)
                self._items = []
                is_after_blank = False
            if line.is_blank:
                self._close_paragraph(line.start)
                is_after_blank = True
                number += 1
                continue
            content = self._open_items(line, is_after_blank)
            number = self._read_block(number, content, is_after_blank)
            is_after_blank = False
        self._close_paragraph(len(self._text))
        return self._code

    def _open_items(self, line: _Line, is_after_blank: bool) -> int:
        """Close and open the list items of a line, and return where its text begins behind their signs."""
        indent = line.indent
        content = line.begin + len(line.text) - len(line.text.lstrip(" \t"))
        end = line.begin + len(line.text)
        sign = _LIST_SIGN.match(self._text, content, end)
        if sign or is_after_blank:
            while self._items and indent < self._items[-1]:
                self._items.pop()
        if sign or _NEW_BLOCK.match(self._text, content, end):
            self._close_paragraph(line.start)
        while sign:
            indent += len(sign[0].expandtabs(_TAB))
            self._items.append(indent)
            content = sign.end()
            sign = _LIST_SIGN.match(self._text, content, end)
        return content

    def _read_block(self, number: int, content: int, is_after_blank: bool) -> int:
        """Read the block of code that begins in a line, if there is one, and return the number of the next line."""
        line = self._lines[number]
        text = self._text[content : line.begin + len(line.text)]
        if fence := _FENCE.match(text):
            return self._read_fenced(number, content, fence["sign"])
        limit = (self._items[-1] if self._items else 0) + _TAB
        if is_after_blank and number and line.indent >= limit:
            return self._read_indented(number, limit)
        late = _LATE_FENCE.match(text)
        if late and len(late["sign"]) <= self._longest_fence_from[number + 1]:
            return self._read_fenced(number, content + late.start("sign"), late["sign"])
        if tag := _RAW_HTML.match(text) or _LONE_TAG.match(text):
            end = self._closing_end(tag["name"], content, len(self._text))
            if end is None and tag.re is _RAW_HTML:
                end = len(self._text)
            if end is not None:
                self._add_block(content, end)
                while number < len(self._lines) and self._lines[number].start < end:
                    number += 1
                return number
        return number + 1

    def _read_fenced(self, number: int, start: int, sign: str) -> int:
        depth = self._lines[number].depth
        end = self._lines[number].begin + len(self._lines[number].text)
        for following in range(number + 1, len(self._lines)):
            line = self._lines[following]
            if line.depth < depth:
                self._add_block(start, end)
                return following
            end = line.begin + len(line.text.rstrip())
            sign_run = line.text.strip()
            if len(sign_run) >= len(sign) and set(sign_run) == {sign[0]}:
                self._add_block(start, end)
                return following + 1
        self._add_block(start, len(self._text))
        return len(self._lines)

    def _read_indented(self, number: int, limit: int) -> int:
        last = number
        for following in range(number + 1, len(self._lines)):
            line = self._lines[following]
            if line.depth != self._lines[number].depth or not (line.is_blank or line.indent >= limit):
                break
            if not line.is_blank:
                last = following
        self._add_block(self._lines[number].start, self._lines[last].begin + len(self._lines[last].text))
        return last + 1

    def _add_block(self, start: int, end: int) -> None:
        self._close_paragraph(start)
        self._code.append(Code(start, end, True))
        self._paragraph = end

    def _close_paragraph(self, end: int) -> None:
        """Add the code inside the lines from the start of the paragraph to `end`."""
        start, self._paragraph = self._paragraph, max(self._paragraph, end)
        openings = list(_OPENING.finditer(self._text, start, max(start, end)))
        runs: dict[int, list[int]] = {}
        for opening in openings:
            if opening["ticks"]:
                runs.setdefault(len(opening[0]), []).append(opening.start())
        position = start
        for opening in openings:
            if opening.start() < position:
                continue
            begin = opening.start() + self._is_escaped(opening.start())
            if opening["ticks"]:
                closers = runs.get(opening.end() - begin, [])
                index = bisect_left(closers, opening.end())
                close = closers[index] + opening.end() - begin if index < len(closers) else None
                if opening[0] == "``" and close and "''" in self._text[opening.end() : close]:
                    close = None  # TeX's quotation marks: ``a'' and ``b''
            else:
                close = None if begin > opening.start() else self._closing_end(opening["name"], opening.end(), end)
            if close is not None:
                self._code.append(Code(begin, close, False))
                position = close

    def _closing_end(self, name: str, start: int, end: int) -> int | None:
        """Return the end of the first closing tag of this name in `start:end`."""
        tags = self._closing_tags.get(name.lower(), [])
        index = bisect_left(tags, (start, 0))
        return tags[index][1] if index < len(tags) and tags[index][1] <= end else None

    def _is_escaped(self, position: int) -> bool:
        begin = position
        while begin and self._text[begin - 1] == "\\":
            begin -= 1
        return (position - begin) % 2 == 1
