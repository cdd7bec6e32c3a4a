"""Blocks from Markdown, by way of HTML."""

import re
from collections import Counter

from rag.corpus.documents.blocks import Block
from rag.corpus.documents.html import html_blocks

# "key: value" tells front matter from a text that begins with a rule.
_FRONT_MATTER = re.compile(
    r"""\A---[ \t]*\n(?=(?:\s*\#[^\n]*\n)*\s*(?:[\w"'-]+[ \t]*:|---|\.\.\.))(.*?\n)??(?:---|\.\.\.)[ \t]*(?:\n|\Z)""",
    re.DOTALL,
)
_TITLE = re.compile(r"^title:(.*)$", re.MULTILINE)
_GITHUB_CALLOUT = re.compile(r"^(>\s*)\[!(\w+)\][ \t]*$", re.MULTILINE)


def markdown_blocks(text: str, dropped: Counter[str], name: str = "") -> tuple[str, list[Block]]:
    """The title and the blocks of a text in CommonMark, with tables, front matter and callouts."""
    title = ""
    if front := _FRONT_MATTER.match(text):
        found = _TITLE.search(front[0])
        title = found[1].strip().strip("\"'") if found else ""
        text = text[front.end() :]
    own, blocks = html_blocks(rendered(text), dropped, name)
    return title or own, blocks


def rendered(text: str) -> str:
    """Markdown as HTML."""
    from markdown_it import MarkdownIt

    text = _GITHUB_CALLOUT.sub(lambda mark: f"{mark[1]}{mark[2].title()}\n{mark[1]}", text)
    return str(MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(text))
