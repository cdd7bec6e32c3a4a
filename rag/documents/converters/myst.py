"""Directives, roles, targets and comments of MyST, Sphinx's Markdown; also the fenced boxes (`:::note`) of others.

A directive is what reStructuredText makes of it. What is in braces in other Markdown stays as it is: a language of R's
notebooks (```` ```{r} ````) and attributes (```` ```{.python} ````).
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from html import escape
from textwrap import dedent, indent
from typing import TYPE_CHECKING, Any

from rag.documents import navigation as nav
from rag.documents.converters import rst

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_block import StateBlock
    from markdown_it.rules_inline import StateInline
    from markdown_it.token import Token

_FENCE = re.compile(r"\s*\{([A-Za-z][\w:+.-]*)\}(.*)\Z", re.DOTALL)
_BOX = re.compile(r"\s*(?:\{[^{}]*\}\s*|([A-Za-z][\w-]*)(?:[ \t]*\[(.*)\]\s*|[ \t]+(\S.*)|\s*))?\Z")  # `note[Title]`
_OPTIONS = re.compile(r"\A(?:[ \t]*\n)*(?:---[ \t]*\n(?:.*\n)*?---[ \t]*(?:\n|\Z)|(?:[ \t]*:[\w-]+:.*(?:\n|\Z))+)")
_ROLE = re.compile(r"\{([\w:+.-]+)\}(`+)(?!`)(.+?)(?<!`)\2(?!`)", re.DOTALL)
_TARGET = re.compile(r"\(([^()\n]+)\)=[ \t]*")
_HEADING = re.compile(r"^\(([^()\n]+)\)=[ \t]*\n(?:[ \t]*\n|\([^()\n]+\)=[ \t]*\n){0,9}#{1,6}[ \t]+(.+)$", re.MULTILINE)
_SURE = re.compile(r"^[ \t]*(?:`{3,}|~{3,}|:{3,})[ \t]*\{([\w:+.-]+)\}|^\([^()\n]+\)=[ \t]*$", re.MULTILINE)
_MAX_DEPTH = 8  # directives in one another
_NOTES = frozenset(
    "note warning tip hint important caution danger error attention seealso info success question example bug".split()
)
_TITLES = {"seealso": "See also"}
_CONDITIONS = frozenset(["only", "container", "div", "margin", "grid", "glossary", "tab-set"])
_PROSE = _NOTES | frozenset(
    """
    admonition versionadded versionchanged deprecated dropdown details card grid grid-item grid-item-card tab-set
    tab-item tab tabs topic sidebar rubric epigraph pull-quote compound container table glossary only margin aside
    exercise exercise-start solution proof theorem lemma definition div
    """.split()
)
_BY_RST = frozenset(["eval-rst", "list-table", "csv-table", "math", "productionlist", "parsed-literal"])
_FIGURES = frozenset(["figure", "figure-md"])
_OMITTED = frozenset(["image", "include", "raw", "bibliography", "embed", "iframe", "video", "tableofcontents"])
_DIRECTIVES = _PROSE | _BY_RST | _FIGURES | _OMITTED | rst.CODE | rst.CONTENTS | rst.CHANGES.keys()


def read_myst(reader: "MarkdownIt", text: str) -> None:
    """Let the reader of a text know what MyST adds, as far as the text is MyST."""
    from markdown_it.rules_block.fence import make_fence_rule

    titles = {label: title.strip(" \t#").replace("`", "") for label, title in _HEADING.findall(text)}
    is_myst = any(not name or _is_directive(name) for name in _SURE.findall(text))

    def line(state: "StateBlock", start: int, end: int, silent: bool) -> bool:
        content = state.src[state.bMarks[start] + state.tShift[start] : state.eMarks[start]]
        if state.is_code_block(start) or not (
            _TARGET.fullmatch(content) or (is_myst and content.startswith(("%", "+++")))
        ):
            return False
        if not silent:
            state.line = start + 1
        return True

    def role(state: "StateInline", silent: bool) -> bool:
        before = state.src[state.pos - 1 : state.pos]
        if (
            state.src[state.pos] != "{"
            or before == "$"
            or (match := _ROLE.match(state.src, state.pos, state.posMax)) is None
        ):
            return False
        if not silent:
            text = match[3].replace("\n", " ")
            title = titles.get(text, "") if match[1].rpartition(":")[2] == "ref" else ""
            state.push("text", "", 0).content = title or rst.role_text(match[1], text)
        state.pos = match.end()
        return True

    fence = make_fence_rule(markers=(":",), token_type="box")

    def box(state: "StateBlock", start: int, end: int, silent: bool) -> bool:
        info = state.src[state.bMarks[start] + state.tShift[start] : state.eMarks[start]].lstrip(":")
        return bool(_FENCE.match(info) or _BOX.match(info)) and fence(state, start, end, silent)

    alternatives = ["paragraph", "reference", "blockquote", "list"]
    reader.block.ruler.before("fence", "myst_box", box, {"alt": alternatives})
    reader.block.ruler.before("fence", "myst_line", line, {"alt": alternatives})
    reader.inline.ruler.before("backticks", "myst_role", role)


def expand_directives(
    reader: "MarkdownIt", tokens: "Sequence[Token]", env: dict[str, Any], omissions: Counter[str], depth: int = 0
) -> "Iterator[Token]":
    """The tokens, with what directives and boxes say in their place."""
    from markdown_it.token import Token

    for token in tokens:
        directive = _directive_of(token)
        if directive is None or depth >= _MAX_DEPTH:
            yield token
            continue
        name, argument = directive
        content = _OPTIONS.sub("", token.content, count=1)

        def read(text: str) -> "list[Token]":
            return [*expand_directives(reader, reader.parse(dedent(text), env), env, omissions, depth + 1)]

        if name in rst.CONTENTS:
            omissions[nav.CONTENTS] += 1
        elif name in _OMITTED or rst.is_silent(name):
            continue
        elif name in rst.CODE:
            yield Token("fence", "code", 0, content=content)
        elif name in _BY_RST:
            text = f".. {name}:: {argument}\n{indent(token.content, '   ')}"
            yield _html(rst.rst_html(token.content if name == "eval-rst" else text, omissions))
        elif name in rst.CHANGES:
            number, _, tail = argument.partition(" ")
            words = f"{tail} {content}".strip()
            yield from read(f"{rst.CHANGES[name]} {number}: {words}" if words else f"{rst.CHANGES[name]} {number}")
        elif name in _FIGURES:
            yield from [_html("<figure><figcaption>"), *read(content), _html("</figcaption></figure>")]
        elif name in _NOTES or (name == "admonition" and argument):
            part = name == "admonition"
            title = reader.renderInline(argument, env) if part else escape(_TITLES.get(name, name.title()))
            text = content if part else f"{argument}\n\n{content}"
            head = f'<div class="admonition"><p class="admonition-title">{title}</p>'
            yield from [_html(head), *read(text), _html("</div>")]
        elif argument and name not in _CONDITIONS:
            term = reader.renderInline(argument, env) if name in _PROSE else escape(argument)
            yield from [_html(f"<dl><dt>{term}</dt><dd>"), *read(content), _html("</dd></dl>")]
        else:
            yield from read(content)


def _directive_of(token: "Token") -> tuple[str, str] | None:
    """The name and the argument of a directive or a box; None if a token is neither."""
    if token.type not in ("fence", "box"):
        return None
    if (match := _FENCE.match(token.info)) is not None and (token.type == "box" or _is_directive(match[1])):
        return match[1].lower(), match[2].strip()
    if token.type == "fence" or (box := _BOX.match(token.info)) is None:
        return None
    name = (box[1] or "div").lower()
    return (name, box[2] or box[3] or "") if name in _PROSE else ("div", "")


def _is_directive(name: str) -> bool:
    return ":" in name or name.lower() in _DIRECTIVES or rst.is_silent(name.lower())


def _html(text: str) -> "Token":
    from markdown_it.token import Token

    return Token("html_block", "", 0, content=text)
