"""One's own documents: Markdown, text, HTML and PDF to passages, split on paragraphs, headings kept."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib.resources.abc import Traversable
from pathlib import Path

from rag.errors import FormatError
from rag.sentences import sentence_spans
from rag.types import Passage

_LONGEST = 200  # words; a longer paragraph is cut at sentence ends
_LEAD_IN = 12  # words; a shorter paragraph ("For example:") goes with the one after it
_SPACE = re.compile(r"\s+")
_BLANK_LINE = re.compile(r"\n[ \t]*\n")


@dataclass(frozen=True, slots=True)
class _Block:
    """A paragraph under its headings; `level` 1 to 6 marks a heading, 0 a paragraph."""

    text: str
    level: int = 0


def read_document(path: Path | Traversable, name: str) -> list[Passage]:
    """The passages of one file, ids `name#1`, `name#2`, ...; `FormatError` names a file that cannot be read."""
    suffix = Path(name).suffix.lower()
    try:
        data = path.read_bytes()
    except OSError as error:
        raise FormatError(f"{path}: cannot be read: {error.strerror}") from error
    if suffix == ".pdf":
        blocks = list(_pdf(data, str(path)))
    else:
        text = _decoded(data, str(path))
        blocks = list(_TEXT[suffix](text))
    return list(_passages(blocks, name))


def _decoded(data: bytes, path: str) -> str:
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
    for block, following in zip(blocks, [*blocks[1:], None], strict=True):
        if block.level == 1 and not title:
            title = block.text
        elif block.level:
            headings = {level: text for level, text in headings.items() if level < block.level}
            headings[block.level] = block.text
        else:
            text = f"{waiting}\n{block.text}" if waiting else block.text
            if not waiting and len(text.split()) < _LEAD_IN and following and not following.level:
                waiting = text
                continue
            waiting = ""
            for piece in _pieces(text):
                number += 1
                yield Passage(f"{name}#{number}", title, piece, ", ".join(headings.values()))


def _pieces(text: str) -> Iterator[str]:
    """The text, or parts of at most `_LONGEST` words that end where sentences end (a longer sentence stays whole)."""
    start = end = words = 0
    for first, last in sentence_spans(text):
        length = len(text[first:last].split())
        if words and words + length > _LONGEST:
            yield text[start:end]
            start, words = first, 0
        end, words = last, words + length
    if piece := text[start:].strip():
        yield piece


def _paragraphs(text: str) -> Iterator[_Block]:
    for paragraph in _BLANK_LINE.split(text):
        if squeezed := _SPACE.sub(" ", paragraph).strip():
            yield _Block(squeezed)


def _markdown(text: str) -> Iterator[_Block]:
    from markdown_it import MarkdownIt

    text = re.sub(r"\A---\n.*?\n---\n", "", text, count=1, flags=re.DOTALL)  # front matter
    level, items = 0, []  # type: int, list[str]
    for token in MarkdownIt("commonmark").enable("table").parse(text):
        if token.type == "heading_open":
            level = int(token.tag[1])
        elif token.type == "inline":
            pieces = (c.content if c.content else " " for c in token.children or [] if c.type != "html_inline")
            plain = _SPACE.sub(" ", "".join(pieces)).strip()
            if plain and (token.level > 1 or items):  # inside a list, quotation or table
                items.append(plain)
            elif plain:
                yield _Block(plain, level)
        elif token.type == "heading_close":
            level = 0
        elif token.type in ("fence", "code_block") and token.content.strip():
            yield _Block(token.content.rstrip())
        if items and token.level == 0 and token.nesting == -1:  # the outermost list or table ends
            yield _Block("\n".join(items))
            items = []


_DROPPED = frozenset(
    ["script", "style", "noscript", "template", "svg", "nav", "footer", "form", "button", "select", "head", "iframe"]
)
_INLINE = frozenset(
    """
    a abbr b bdi bdo cite code data dfn em font i kbd mark q s samp small span strong sub sup time u var wbr
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
    # An explicit stack, because a hostile page can nest deeper than Python recurses; a str ends a block.
    stack, words = [tree.body], []  # type: list[object], list[str]
    while stack:
        node = stack.pop()
        if isinstance(node, str):
            if plain := _SPACE.sub(" ", "".join(words)).strip():
                yield _Block(plain, int(node[1]) if re.fullmatch("h[1-6]", node) else 0)
            words = []
            continue
        tag = node.tag  # type: ignore[attr-defined]
        if tag == "-text":
            words.append(node.text(deep=False))  # type: ignore[attr-defined]
        elif tag not in _DROPPED and not tag.startswith("-"):
            children = list(node.iter(include_text=True))  # type: ignore[attr-defined]
            # Any other element is a block: what came before it ends, and so does what it holds.
            stack.extend(reversed(children) if tag in _INLINE else (tag, *reversed(children), "p"))


def _pdf(data: bytes, path: str) -> Iterator[_Block]:
    import io

    from pypdf import PdfReader
    from pypdf.errors import PyPdfError

    try:
        reader = PdfReader(io.BytesIO(data))
        if reader.metadata and reader.metadata.title:
            yield _Block(str(reader.metadata.title), 1)
        for number, page in enumerate(reader.pages, 1):
            yield _Block(f"page {number}", 2)
            text = re.sub(r"(\w)-\n(\w)", r"\1\2", page.extract_text())  # a word cut at the line's end
            yield from _paragraphs(text)
    except (PyPdfError, ValueError, KeyError, RecursionError, NotImplementedError) as error:
        raise FormatError(f"{path}: the PDF cannot be read: {error}") from error


_TEXT: dict[str, Callable[[str], Iterator[_Block]]] = {
    ".md": _markdown,
    ".markdown": _markdown,
    ".txt": _paragraphs,
    ".html": _html,
    ".htm": _html,
}
SUFFIXES = frozenset({*_TEXT, ".pdf"})
