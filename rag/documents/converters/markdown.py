"""Blocks from Markdown, by way of HTML."""

import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from rag.documents.blocks import Block
from rag.documents.converters.grid_tables import read_grid_tables
from rag.documents.converters.liquid import read_liquid
from rag.documents.converters.markdown_tags import keep_placeholders
from rag.documents.converters.mdx import read_mdx
from rag.documents.converters.mkdocs import read_mkdocs
from rag.documents.converters.myst import expand_directives, read_myst
from rag.documents.encodings import decode_text
from rag.documents.main_content import html_blocks
from rag.documents.plain_text.lines import are_narrow, find_marked_lines
from rag.documents.raw_file import RawFile

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

# "key: value" tells front matter from a text that begins with a rule.
_FRONT_MATTER = re.compile(
    r"""\A---[ \t]*\n(?=(?:\s*\#[^\n]*\n)*\s*(?:[\w"'-]+[ \t]*:|---|\.\.\.))(.*?\n)??(?:---|\.\.\.)[ \t]*(?:\n|\Z)""",
    re.DOTALL,
)
_TOML = re.compile(
    r"\A\+\+\+[ \t]*\n(?=\s*[\w\"'\[-][^\n]*[=\]])(?:[^\n]*\n)*?\+\+\+[ \t]*(?:\n|\Z)"
)  # the same, between plus signs
_TITLE = re.compile(r"^title(?::| *=)(.*)$", re.MULTILINE)
_ADMONISH = re.compile(
    r"""^([ \t>]*(?:`{3,}|~{3,}))[ \t]*admonish[ \t]+([a-z]+)(?:[ \t]+(?:title=)?"([^"\n]+)")?[^\n`]*$""", re.MULTILINE
)  # a box of mdBook
_GITHUB_CALLOUT = re.compile(r"^(>\s*)\[!(\w+)\][ \t]*$", re.MULTILINE)

_BOLD_LABEL = re.compile(r"(\*\*|__)(?=\w)[^*_\n:]{1,40}(?::\1|\1 ?:)\s*\S")
_LABEL = re.compile(
    r"(?:\*\*|__)?[^\W_][\w/-]*(?: [\w./-]+){0,3}(?:\*\*|__)?:(?:\*\*|__)?\s+\S|(?:\*\*|__)Q: .+(?:\*\*|__)$"
)
_BOLD = r"(?:\*\*[^\W_][^*\n]{1,80}\*\*|__[^\W_][^_\n]{1,80}__)"
_BOLD_LINE = re.compile(_BOLD)
# A bold line, or bold words before a sentence, below the end of another sentence: a heading that runs in.
_RUN_IN = re.compile(rf"""(?<=[.!?])(?:["')\]”*_]{{0,3}})\n(?={_BOLD}(?:[ \t]*(?:\n|\Z)|[ \t]+["“(]?[A-Z\d]))""")


def read_markdown(file: RawFile) -> tuple[str, list[Block]]:
    """The title ("" if there is none) and the blocks of a file."""
    return markdown_blocks(decode_text(file.data, file.where), file.dropped, file.name)


def markdown_blocks(text: str, omissions: Counter[str], name: str = "") -> tuple[str, list[Block]]:
    """The title and the blocks of a text in CommonMark, with tables, front matter, callouts, MyST and MkDocs."""
    title = ""
    if front := _FRONT_MATTER.match(text) or _TOML.match(text):
        match = _TITLE.search(front[0])
        title = match[1].strip().strip("\"'") if match else ""
        text = text[front.end() :]
    part, blocks = html_blocks(render_html(text, omissions, mdx=name.lower().endswith(".mdx")), omissions, name)
    return title or part, blocks


def render_html(text: str, omissions: Counter[str], *, mdx: bool = False) -> str:
    """Markdown, or MDX, as HTML."""
    from markdown_it import MarkdownIt

    text = _GITHUB_CALLOUT.sub(lambda mark: f"{mark[1]}{mark[2].title()}\n{mark[1]}", read_liquid(text))
    text = _ADMONISH.sub(lambda mark: f"{mark[1]}{{admonition}} {mark[3] or mark[2].title()}", text)
    reader = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    keep_placeholders(reader, text)
    read_myst(reader, text)
    read_mkdocs(reader, text)
    read_grid_tables(reader)
    if mdx:
        read_mdx(reader)
    env: dict[str, Any] = {}
    tokens = [*expand_directives(reader, reader.parse(text, env), env, omissions)]
    return str(reader.renderer.render([*_split_paragraphs(reader, tokens, env)], reader.options, env))


def _split_paragraphs(reader: "MarkdownIt", tokens: "list[Token]", env: dict[str, Any]) -> "Iterator[Token]":
    """The tokens, with a paragraph for each line of one whose lines all begin with labels, as those of minutes do."""
    for position, token in enumerate(tokens):
        lines = _split_labels(token.content) if token.type == "inline" else []
        if token.type == "inline" and not lines and token.level == 1:  # of no list
            lines = _lines(token.content)
        if token.type == "inline" and not lines and len(parts := _split_run_in(token.content)) > 1:
            lines = parts
        if not lines or tokens[position - 1].type != "paragraph_open" or tokens[position - 1].hidden:
            yield token
            continue
        for number, line in enumerate(lines):
            if number:
                yield from (tokens[position + 1], tokens[position - 1])
            yield from reader.parseInline(line, env)


def _lines(content: str) -> list[str]:
    """The parts of a paragraph that stand apart: its lines, if they are too short to be wrapped, or have labels."""
    lines = content.split("\n")
    if len(lines) < 2 or any(not line.strip() or line.endswith(("  ", "\\")) for line in lines):
        return []
    if are_narrow(lines):
        return lines
    starts = find_marked_lines(lines)
    return ["\n".join(lines[start:end]) for start, end in pairwise(sorted({0, *starts, len(lines)}))] if starts else []


def _split_run_in(content: str) -> list[str]:
    """A paragraph in parts before and below bold headings that stand in it."""
    parts: list[str] = []
    for part in _RUN_IN.split(content):
        first, _, below = part.partition("\n")
        is_heading = bool(parts) and below and _BOLD_LINE.fullmatch(first.strip())
        parts += [first, below] if is_heading else [part]
    return parts


def _split_labels(content: str) -> list[str]:
    """The lines of a paragraph, if there are two or more and each begins with a label; or its parts with bold ones."""
    lines = content.split("\n")
    if len(lines) < 2:
        return []
    if all(map(_LABEL.match, lines)):
        return lines
    starts = [position for position, line in enumerate(lines) if _BOLD_LABEL.match(line)]
    if len(starts) < 2:
        return []
    return ["\n".join(lines[start:end]) for start, end in pairwise(sorted({0, *starts, len(lines)}))]
