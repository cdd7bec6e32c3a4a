"""What Python-Markdown and MkDocs add to Markdown: boxes, tabs, attributes, references, footnotes, definitions, icons.

A box begins with `!!! note "Title"` or, folded, `??? note`, a tab with `=== "Label"`; their text is indented by four
spaces, which CommonMark takes for code. Or they stand between `/// note | Title` and `///`. Footnotes and definitions
are also those of GitHub, Pandoc, Hugo and Jekyll.
"""

import re
from collections.abc import Collection
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_block import StateBlock
    from markdown_it.rules_core import StateCore
    from markdown_it.rules_inline import StateInline

_BOX = re.compile(r"""(?:!!!|\?\?\?\+?)[ ]?([A-Za-z][\w-]*)?(?:[ ]+[A-Za-z][\w-]*)*(?:[ ]+(?:"(.*)"|'(.*)'))?[ ]*""")
_TAB = re.compile(r"""===[+!]{0,2}[ ]+(?:"(.+)"|'(.+)')[ ]*""")
_FENCE_BLOCK = re.compile(r"(/{3,})[ ]*([A-Za-z][\w-]*)(?:[ ]*\|(.*))?")
_PLAIN = frozenset("html define caption details admonition tab".split())  # what has no title but its own
_MAX_LENGTH = 500  # lines of such a box
_OPTIONS = re.compile(r"(?:[ \t]*\n)*(?:[ ]{4}[\w-]+:.*(?:\n|\Z))+")  # of such a box
_INDENT = 4  # of the text of a box, a tab, a footnote and a definition
_FOOTNOTE = re.compile(r"\[\^([^\[\]\s]+)\]:[ \t]*")
_FOOTNOTES = re.compile(r"^ {0,3}\[\^([^\[\]\s]+)\]:", re.MULTILINE)
_MARK = re.compile(r"\[\^([^\[\]\s]{1,80})\]")
# [the wheel][mill.Wheel], [how to oil][oil-the-mill], [`Wheel`][]: headings and objects of other pages
_REFERENCE = re.compile(
    r"\[([^\[\]\n]{1,200})\]\[([A-Za-z_]\w{0,80}(?:[.:-]+\w{1,80}){1,20})\]|\[(`[^`\[\]\n]{1,200}`)\]\[\]"
)
_DEFINITION = re.compile(r":[ \t]+(?=\S)")
_ABBREVIATION = re.compile(r"\*\[([^\[\]]+)\]:[ \t]*(.*)")
_ATTRIBUTE = r"""(?:[.#][\w:-]{1,80}|[\w:-]{1,80}=(?:"[^"\n]{0,200}"|'[^'\n]{0,200}'|[^\s"'{}]{1,200}))"""
_ATTRIBUTES = re.compile(rf"\{{:?[ \t]*{_ATTRIBUTE}(?:[ \t]+{_ATTRIBUTE})*[ \t]*\}}")
_AFTER = ")]`*>"  # what attributes stand behind in a line: a link, an image, code, emphasis; not `x_{i=1}` in formulas
# A table of contents, an included file, a statement of Jinja or Liquid, a shortcode of Hugo: a line that says nothing.
_SILENT = re.compile(r"\[TOC\]|;?-+8<-+(?:[ ].*)?|\{[%!][^{}]*[%!]\}|\{\{[<%][^{}]*[%>]\}\}", re.IGNORECASE)
_TICKS = {":white_check_mark:": "✅", ":heavy_check_mark:": "✅", ":x:": "❌"}  # in tables of what is supported
_TICK = re.compile(rf"(?<![\w:])(?:{'|'.join(_TICKS)})(?![\w:])")
_ICON = re.compile(r":(?:material|octicons|fontawesome|simple)-[\w-]{1,80}:")
_KEYS = re.compile(r"\+\+([a-z][a-z0-9-]{1,20}(?:\+[a-z0-9-]{1,20})*)\+\+")


def read_mkdocs(reader: "MarkdownIt", text: str) -> None:
    """Let the reader of a text know what Python-Markdown and MkDocs add."""
    remainder = ["paragraph", "reference", "blockquote", "list"]
    for name, rule in (
        ("box", _read_box),
        ("fenced", _read_fence_block),
        ("footnote", _read_footnote),
        ("definition", _read_definition),
        ("line", _read_line),
    ):
        reader.block.ruler.before("fence", f"mkdocs_{name}", rule, {"alt": remainder})
    for name, part in (
        ("attributes", _skip_attributes),
        ("mark", partial(_skip_mark, frozenset(_FOOTNOTES.findall(text)))),
        ("reference", _read_reference),
        ("icon", _skip_icon),
        ("tick", _read_tick),
        ("keys", _read_keys),
    ):
        reader.inline.ruler.before("backticks", f"mkdocs_{name}", part)
    reader.core.ruler.after("block", "mkdocs_tidy", _tidy)


def _first_line(state: "StateBlock", start: int) -> str:
    return state.src[state.bMarks[start] + state.tShift[start] : state.eMarks[start]]


def _read_box(state: "StateBlock", start: int, end: int, silent: bool) -> bool:
    if state.is_code_block(start):
        return False
    line = _first_line(state, start)
    tab = _TAB.fullmatch(line)
    result = _BOX.fullmatch(line) if tab is None else None
    if result is not None and result.lastindex is None:  # "!!!" alone
        result = None
    inner = state.sCount[start] + _INDENT
    if (tab is None and result is None) or not _goes_on(state, start + 1, end, inner):
        return False
    if silent:
        return True
    if result is not None:
        title = result[2] if result[2] is not None else result[3]
        title = (result[1] or "").replace("-", " ").capitalize() if title is None else title
        info = f"{{admonition}} {title}" if title else "{div}"
    else:
        info = f"{{tab-item}} {tab[1] or tab[2]}" if tab is not None else ""
    _push(state, info, "", start, start + 1, end, inner)
    return True


def _read_fence_block(state: "StateBlock", start: int, end: int, silent: bool) -> bool:
    match = None if state.is_code_block(start) else _FENCE_BLOCK.fullmatch(_first_line(state, start).rstrip())
    if match is None:
        return False
    last = start + 1
    while last < min(end, start + _MAX_LENGTH) and _first_line(state, last).rstrip() != match[1]:
        last += 1
    if last == min(end, start + _MAX_LENGTH):
        return False
    if not silent:
        title = "" if match[2] in _PLAIN else match[2].capitalize()
        if match[3] and match[2] != "html":  # `/// html | div.wide` names an element
            title = match[3].strip()
        token = state.push("box", "", 0)
        token.info = "{div}" if not title else f"{{{'tab-item' if match[2] == 'tab' else 'admonition'}}} {title}"
        content = state.getLines(start + 1, last, state.sCount[start], False)
        token.content = _OPTIONS.sub("", content, count=1) if _OPTIONS.match(content) else content
        state.line = last + 1
    return True


def _read_footnote(state: "StateBlock", start: int, end: int, silent: bool) -> bool:
    match = None if state.is_code_block(start) else _FOOTNOTE.match(_first_line(state, start))
    if match is None or silent:
        return match is not None
    first = _first_line(state, start)[match.end() :]
    _push(state, "{div}", first, start, _lazy(state, start + 1, end), end, state.sCount[start] + _INDENT)
    return True


def _read_definition(state: "StateBlock", start: int, end: int, silent: bool) -> bool:
    match = None if state.is_code_block(start) else _DEFINITION.match(_first_line(state, start))
    if match is None or state.parentType not in ("root", "paragraph", "list"):
        return False
    if silent:
        return True
    before = [token.type for token in state.tokens[-3:]]
    has_term = before == ["paragraph_open", "inline", "paragraph_close"]
    if not has_term and before[-1:] != ["box"]:
        return False
    info = "{div}"
    if has_term:
        alternatives, _, term = state.tokens[-2].content.rpartition("\n")
        info = f"{{details}} {term}"
        state.tokens[-2].content = alternatives
        if not alternatives:
            del state.tokens[-3:]
    first = _first_line(state, start)[match.end() :]
    _push(state, info, first, start, _lazy(state, start + 1, end), end, state.sCount[start] + 2)
    return True


def _read_line(state: "StateBlock", start: int, end: int, silent: bool) -> bool:
    if state.is_code_block(start):
        return False
    words = _first_line(state, start).rstrip()
    short = _ABBREVIATION.fullmatch(words)
    if short is None and not (_ATTRIBUTES.fullmatch(words) or _SILENT.fullmatch(words)):
        return False
    if not silent:
        if short is not None:
            _push(state, f"{{details}} {short[1]}", short[2], start, start + 1, start + 1, 0)
        state.line = start + 1
    return True


def _skip_attributes(state: "StateInline", silent: bool) -> bool:
    follows_word = state.pos > 0 and state.src[state.pos - 1] in _AFTER
    return follows_word and state.src[state.pos] == "{" and _skip_match(state, _ATTRIBUTES)


def _skip_mark(footnotes: Collection[str], state: "StateInline", silent: bool) -> bool:
    """Skip the mark of one of the footnotes of the text."""
    match = _MARK.match(state.src, state.pos, state.posMax)
    if match is None or match[1] not in footnotes:
        return False
    state.pos = match.end()
    return True


def _read_reference(state: "StateInline", silent: bool) -> bool:
    match = _REFERENCE.match(state.src, state.pos, state.posMax)
    if match is None or state.src[state.pos - 1 : state.pos].isalnum():  # a[i][j.k]
        return False
    if (match[2] or match[3]).upper() in state.env.get("references", ()):
        return False
    if not silent:
        end_before, state.posMax = state.posMax, match.end(1 if match[1] else 3)
        state.pos += 1
        state.md.inline.tokenize(state)
        state.posMax = end_before
    state.pos = match.end()
    return True


def _skip_icon(state: "StateInline", silent: bool) -> bool:
    return state.src[state.pos] == ":" and _skip_match(state, _ICON)


def _read_tick(state: "StateInline", silent: bool) -> bool:
    match = _TICK.match(state.src, state.pos, state.posMax) if state.src[state.pos] == ":" else None
    if match is None:
        return False
    if not silent:
        state.push("text", "", 0).content = _TICKS[match[0]]
    state.pos = match.end()
    return True


def _read_keys(state: "StateInline", silent: bool) -> bool:
    match = _KEYS.match(state.src, state.pos, state.posMax) if state.src[state.pos] == "+" else None
    if match is None:
        return False
    if not silent:
        state.push("text", "", 0).content = "+".join(key.capitalize() for key in match[1].split("+"))
    state.pos = match.end()
    return True


def _tidy(state: "StateCore") -> None:
    """Leave out attributes at the end of headings (`Rivers { #rivers }`), and code that only names another file."""
    state.tokens = [token for token in state.tokens if token.type != "fence" or not _is_silent(token.content)]
    for opening, inline in zip(state.tokens, state.tokens[1:], strict=False):
        content = inline.content.rstrip()
        if opening.type == "heading_open" and content.endswith("}"):
            position = content.rfind("{")
            if _ATTRIBUTES.fullmatch(content, position):
                inline.content = content[:position].rstrip()


def _is_silent(code: str) -> bool:
    lines = [line.strip() for line in code.splitlines()]
    return any(lines) and all(_SILENT.fullmatch(line) for line in lines if line)


def _goes_on(state: "StateBlock", line: int, end: int, indent: int) -> bool:
    """Whether the next line with text is indented that far."""
    while line < end and state.isEmpty(line):
        line += 1
    return line < end and state.sCount[line] >= indent


def _lazy(state: "StateBlock", line: int, end: int) -> int:
    """The line after the first paragraph of a footnote or a definition, whose lines need no indent."""

    def begins(line: int, pattern: re.Pattern[str]) -> bool:
        return line < end and pattern.match(state.src, state.bMarks[line] + state.tShift[line]) is not None

    while line < end and not (state.isEmpty(line) or begins(line, _FOOTNOTE)):
        if begins(line, _DEFINITION) or begins(line + 1, _DEFINITION):  # the next line is a term
            break
        line += 1
    return line


def _push(state: "StateBlock", info: str, first: str, start: int, tail: int, end: int, indent: int) -> None:
    """Add a box with the first line, the lines up to `tail`, and all that are indented after that."""
    after = last = tail
    while after < end and (state.isEmpty(after) or state.sCount[after] >= indent):
        after += 1
        last = last if state.isEmpty(after - 1) else after
    lines = [first, state.getLines(start + 1, last, indent, False)]
    token = state.push("box", "", 0)
    token.info, token.content = info, "\n".join(lines) if first else lines[1]
    token.map = [start, last]
    state.line = last


def _skip_match(state: "StateInline", pattern: re.Pattern[str]) -> bool:
    match = pattern.match(state.src, state.pos, state.posMax)
    if match is None:
        return False
    state.pos = match.end()
    return True
