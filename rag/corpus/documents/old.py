"""Passages from documents (Markdown, text, HTML, PDF): split at paragraphs, with their headings."""

import codecs
import logging
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.resources.abc import Traversable
from itertools import zip_longest
from pathlib import Path

from autoais.text.sentences import sentence_spans
from rag.errors import FormatError
from rag.types import Passage

_LARGEST = 64 << 20  # bytes
_LONGEST = 200  # words; a longer paragraph is split between sentences
_LEAD_IN = 12  # words; a shorter paragraph ("For example:") is joined with the next one
_SPACE = re.compile(r"\s+")
_WORD = re.compile(r"\S+")
_APART = "\n\n"  # ends a sentence for the splitter, whatever precedes it
_BLANK_LINE = re.compile(r"\n[ \t]*\n")


@dataclass(frozen=True, slots=True)
class _Block:
    """A paragraph under its headings; `level` 1 to 6 marks a heading, 0 a paragraph."""

    text: str
    level: int = 0


def read_document(path: Path | Traversable, name: str) -> list[Passage]:
    """The passages of a file, ids `name#1`, `name#2`, ...; raises `FormatError` if it cannot be read."""
    suffix = Path(name).suffix.lower()
    if suffix not in SUFFIXES:
        raise FormatError(f"{path}: not a known type of document ({', '.join(sorted(SUFFIXES))})")
    try:
        data = path.read_bytes()
    except OSError as error:
        raise FormatError(f"{path}: cannot be read: {error.strerror}") from error
    if len(data) > _LARGEST:
        raise FormatError(f"{path}: {len(data) >> 20} MiB; a document may have at most {_LARGEST >> 20} MiB")
    if suffix == ".pdf":
        blocks = list(_pdf(data, str(path)))
    else:
        text = _decoded(data, str(path))
        blocks = list(_TEXT[suffix](text))
    return list(_passages(blocks, name))


def _decoded(data: bytes, path: str) -> str:
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):  # "Unicode" in Windows programs
        return data.decode("utf-16", "replace").replace("\r\n", "\n")
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise FormatError(f"{path}:{line}: not UTF-8 at byte {error.start}") from error


def _passages(blocks: Iterable[_Block], name: str) -> Iterator[Passage]:
    title, headings, number, waiting = "", {}, 0, ""  # type: str, dict[int, str], int, str
    blocks = list(blocks)
    if not any(block.level == 1 for block in blocks):
        title = Path(name).stem
    for block, following in zip_longest(blocks, blocks[1:]):
        if block.level == 1 and not title:
            title = block.text
        elif block.level:
            headings = {level: text for level, text in headings.items() if level < block.level}
            headings[block.level] = block.text
        else:
            text = f"{waiting}{_APART}{block.text}" if waiting else block.text
            lead_in = not waiting and _APART not in text and len(text.split()) < _LEAD_IN
            if lead_in and following and not following.level:
                waiting = text
                continue
            waiting = ""
            for piece in _pieces(text):
                number += 1
                yield Passage(f"{name}#{number}", title, piece, ", ".join(headings.values()))


def _pieces(text: str) -> Iterator[str]:
    """The text in parts of at most `_LONGEST` words, split between sentences, or else between words."""
    start = end = words = 0
    for first, last in _breakable(text):
        length = len(text[first:last].split())
        if words and words + length > _LONGEST:
            yield text[start:end]
            start, words = first, 0
        end, words = last, words + length
    if piece := text[start:].strip():
        yield piece


def _breakable(text: str) -> Iterator[tuple[int, int]]:
    """The spans of sentences; a sentence longer than `_LONGEST` words is split."""
    for first, last in sentence_spans(text):
        ends = [word.end() for word in _WORD.finditer(text, first, last)]
        for end in [*ends[_LONGEST - 1 : -1 : _LONGEST], last]:
            yield first, end
            first = end


def _paragraphs(text: str) -> Iterator[_Block]:
    for paragraph in _BLANK_LINE.split(text):
        if unwrapped := _unwrapped(paragraph.splitlines()):
            yield _Block(unwrapped)


def _unwrapped(lines: Sequence[str]) -> str:
    """Join lines to running text; a short line without punctuation, before a capital, is a heading and stays apart."""
    lines = [squeezed for line in lines if (squeezed := _SPACE.sub(" ", line).strip())]
    widest = max(map(len, lines), default=0)
    text = ""
    for line, following in zip_longest(lines, lines[1:]):
        short = len(line) < 0.6 * widest and line[-1].isalnum()
        apart = following is not None and short and not following[0].islower()
        text += line + (_APART if apart else " ")
    return text.strip()


def _markdown(text: str) -> Iterator[_Block]:
    from markdown_it import MarkdownIt

    text = re.sub(r"\A---\n.*?\n---\n", "", text, count=1, flags=re.DOTALL)  # front matter
    level, items = 0, []  # type: int, list[str]
    for token in MarkdownIt("commonmark").enable("table").parse(text):
        if token.type == "heading_open":
            level = int(token.tag[1])
        elif token.type == "inline":
            breaks = ("softbreak", "hardbreak")
            pieces = (" " if c.type in breaks else c.content for c in token.children or [] if c.type != "html_inline")
            plain = _SPACE.sub(" ", "".join(pieces)).strip()
            if token.level > 1:  # inside a list, quotation or table
                items.append(plain)
            elif plain:
                yield _Block(plain, level)
        elif token.type == "heading_close":
            level = 0
        elif token.type in ("td_close", "th_close"):
            items.append(_CELL)
        elif token.type == "tr_close":
            items.append(_APART)
        elif token.type == "html_block" and token.level == 0:
            yield from (block for block in _html(token.content) if not block.level)
        elif token.type in ("fence", "code_block") and token.content.strip():
            yield _Block(token.content.rstrip())
        elif token.type == "paragraph_close" and items:
            items.append(_APART)
        if items and token.level == 0 and token.nesting == -1:  # the outermost list or table ends
            yield _Block(_rows("".join(items)))
            items = []


_CELL = "\x00"  # separates the cells of a row until it is complete; HTML and Markdown parsers never return NUL


def _rows(text: str) -> str:
    """Separate list items and table rows by blank lines, and cells by ` | `."""
    rows = (
        " | ".join(_SPACE.sub(" ", cell).strip() for cell in row.strip(_CELL).split(_CELL))
        for row in text.split(_APART)
    )
    return _APART.join(row.strip() for row in rows if row.strip(" |"))


_DROPPED = frozenset(
    ["script", "style", "noscript", "template", "svg", "nav", "footer", "form", "button", "select", "head", "iframe"]
)
_INLINE = frozenset(
    """
    a abbr b bdi bdo big cite code data del dfn em font i img ins kbd label mark picture q s samp small span strong
    sub sup time tt u var wbr
    """.split()
)


def _html(text: str) -> Iterator[_Block]:
    from selectolax.lexbor import LexborHTMLParser

    tree = LexborHTMLParser(text)
    title = tree.css_first("title")
    has_h1 = tree.css_first("h1") is not None
    if not has_h1 and title is not None and title.text(strip=True):
        yield _Block(_SPACE.sub(" ", title.text(strip=True)), 1)
    if tree.body is None:
        return
    # An explicit stack, because a page can nest deeper than Python recurses; a str marks the end of an element.
    stack, words, rows = [tree.body], [], 0  # type: list[object], list[str], int
    while stack:
        node = stack.pop()
        if isinstance(node, str):
            rows -= node in _ROWS
            if rows:  # inside a list or table, only the row or item ends
                words.append(_CELL if node in ("td", "th", "dt") else _APART)
                continue
            if plain := _rows("".join(words)):
                yield _Block(plain, int(node[1]) if re.fullmatch("h[1-6]", node) else 0)
            words = []
            continue
        tag = node.tag  # type: ignore[attr-defined]
        if tag == "-text":
            words.append(_SPACE.sub(" ", node.text(deep=False)))  # type: ignore[attr-defined]
        elif tag == "br":
            words.append(" ")
        elif tag not in _DROPPED and not tag.startswith("-"):
            children = list(node.iter(include_text=True))  # type: ignore[attr-defined]
            if tag in _INLINE or (rows and tag not in _ITEMS):
                words.append("" if tag in _INLINE else " ")
                stack.extend(reversed(children))
                continue
            if words and not rows:  # a block element ends the text before it
                stack.extend((node, "p"))
                continue
            rows += tag in _ROWS
            stack.extend((tag, *reversed(children)))


_ROWS = frozenset(["ul", "ol", "dl", "table"])
_ITEMS = frozenset([*_ROWS, "li", "dt", "dd", "tr", "td", "th", "caption"])


def _pdf(data: bytes, path: str) -> Iterator[_Block]:
    import io

    from pypdf import PdfReader

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # errors are reported as one FormatError

    try:
        reader = PdfReader(io.BytesIO(data))
        if reader.metadata and reader.metadata.title:
            yield _Block(str(reader.metadata.title), 1)
        for number, page in enumerate(reader.pages, 1):
            yield _Block(f"page {number}", 2)
            # Fonts can map to lone surrogates.
            extracted = page.extract_text().encode("utf-8", "replace").decode("utf-8")
            text = re.sub(r"(\w)-\n(\w)", r"\1\2", extracted)  # a hyphenated word
            yield from _paragraphs(text)
    except Exception as error:  # on a broken file pypdf raises all kinds of errors
        raise FormatError(f"{path}: the PDF cannot be read: {error}") from error


_TEXT: dict[str, Callable[[str], Iterator[_Block]]] = {
    ".md": _markdown,
    ".markdown": _markdown,
    ".txt": _paragraphs,
    ".html": _html,
    ".htm": _html,
}
SUFFIXES = frozenset({*_TEXT, ".pdf"})
