"""What MDX, the Markdown of Docusaurus and the like, adds: imports, comments in braces, and components on lines.

What stands between the tags of a component is text as usual; a label or title of it introduces that text.
"""

import re
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_block import StateBlock

_SCRIPT = re.compile(r"import\s+[\w*{\"']|export\s+(?:(?:default|const|let|var|function|async|class)\b|[{*])")
_COMMENT, _COMMENT_END = "{/*", "*/}"
_TAG = re.compile(r"</?(?:[A-Z][\w.]*(?=[\s/>]|$)|>)|<>")
_PARTS = re.compile(r"""[^"'{}<>]|"[^"]*"|'[^']*'|\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}""")
_MAX_LENGTH = 40, 10_000  # lines of a tag, and characters of a comment
_LABEL = re.compile(r"""\s(?:label|title|summary|header)=(?:"([^"]+)"|'([^']+)')""")


def read_mdx(reader: "MarkdownIt") -> None:
    """Let a reader know what MDX adds, and that an indent makes no code."""

    def read_block(state: "StateBlock", start: int, end: int, silent: bool) -> bool:
        first = state.bMarks[start] + state.tShift[start]
        line = state.src[first : state.eMarks[start]]
        label, last = "", start + 1
        if line.startswith(_COMMENT):
            end_position = state.src.find(_COMMENT_END, first, first + _MAX_LENGTH[1])
            last += state.src.count("\n", first, end_position)
            if end_position < 0 or last > end:
                return False
        elif _SCRIPT.match(line) and state.parentType == "root":
            last = _blank(state, start, end)
        elif (tag := _TAG.match(line)) is not None:
            source = state.src[first : state.eMarks[_blank(state, start, min(end, start + _MAX_LENGTH[0])) - 1]]
            if (length := _length(source, tag.end())) == 0:
                return False
            label, last = source[:length], start + 1 + source.count("\n", 0, length)
        else:
            return False
        if silent:
            return True
        if (text := _LABEL.search(label)) is not None:
            state.push("html_block", "", 0).content = f"<p><b>{escape(text[1] or text[2])}</b></p>"
        state.line = last
        return True

    reader.disable("code")
    reader.block.ruler.before("fence", "mdx", read_block, {"alt": ["paragraph", "reference", "blockquote", "list"]})


def _blank(state: "StateBlock", line: int, end: int) -> int:
    while line < end and not state.isEmpty(line):
        line += 1
    return line


def _length(text: str, position: int) -> int:
    """The length of the tag that a text begins with, if nothing stands behind it on its line; else 0."""
    while (part := _PARTS.match(text, position)) is not None:
        position = part.end()
    ends = position < len(text) and text[position] == ">"
    position += ends
    opening = text[:position].endswith(">")
    return position if opening and not text[position:].partition("\n")[0].strip() else 0
