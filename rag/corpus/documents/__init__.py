"""Documents to passages: one reader for each type of file, and one way to cut their blocks into passages.

`rag.corpus.documents.blocks` says how the text of a passage looks.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.resources import as_file
from importlib.resources.abc import Traversable
from pathlib import Path
from stat import S_ISREG

from rag.corpus.documents.blocks import Block, Kind
from rag.corpus.documents.split import passages
from rag.errors import FormatError
from rag.types import Passage

LARGEST = 64 << 20  # bytes


@dataclass(slots=True)
class Document:
    """The passages of a file, and how often something was left out of it, by reason."""

    passages: list[Passage]
    dropped: Counter[str] = field(default_factory=Counter)


def read_document(path: Path | Traversable, name: str) -> list[Passage]:
    """The passages of a file, ids `name#1`, `name#2`, ...; raises `FormatError` if it cannot be read."""
    return load_document(path, name).passages


def load_document(path: Path | Traversable, name: str) -> Document:
    """Read a file into passages with ids `name#1`, `name#2`, ...; raises `FormatError` if it cannot be read.

    The result depends on the file and the name alone.
    """
    suffix = Path(name).suffix.lower()
    if suffix not in SUFFIXES:
        raise FormatError(f"{path}: not a known type of document ({', '.join(sorted(SUFFIXES))})")
    dropped: Counter[str] = Counter()
    if suffix == ".pdf":
        title, blocks = _pdf(path, dropped)
    else:
        title, blocks = _READERS[suffix](_bytes(path), str(path), name, dropped)
    return Document(list(passages(blocks, name, title or Path(name).stem)), dropped)


def _bytes(path: Path | Traversable) -> bytes:
    if isinstance(path, Path):
        _check(path)
    try:
        return path.read_bytes()
    except OSError as error:
        raise FormatError(f"{path}: cannot be read: {error.strerror}") from error


def _check(path: Path) -> None:
    """Refuse a file that is too large, or no file, before it is read."""
    try:
        found = path.stat()
    except OSError as error:
        raise FormatError(f"{path}: cannot be read: {error.strerror}") from error
    if not S_ISREG(found.st_mode):
        raise FormatError(f"{path}: not a file")
    if found.st_size > LARGEST:
        raise FormatError(f"{path}: {found.st_size >> 20:,} MiB; a document may have at most {LARGEST >> 20} MiB")


def _pdf(path: Path | Traversable, dropped: Counter[str]) -> tuple[str, list[Block]]:
    from rag.corpus.documents.pdf import pdf_blocks
    from rag.corpus.documents.pdf_pages import read_pages

    with as_file(path) as file:
        _check(file)
        return pdf_blocks(read_pages(file), dropped)


Reader = Callable[[bytes, str, str, Counter[str]], tuple[str, list[Block]]]


def _html(data: bytes, where: str, name: str, dropped: Counter[str]) -> tuple[str, list[Block]]:
    from rag.corpus.documents.encodings import decoded
    from rag.corpus.documents.html import html_blocks

    return html_blocks(decoded(data, where, markup=True), dropped, name)


def _text(data: bytes, where: str, name: str, dropped: Counter[str]) -> tuple[str, list[Block]]:
    from rag.corpus.documents.encodings import decoded
    from rag.corpus.documents.text import plain_blocks

    blocks = [*plain_blocks(decoded(data, where), dropped)]
    return _first_title(blocks)


def _markdown(data: bytes, where: str, name: str, dropped: Counter[str]) -> tuple[str, list[Block]]:
    from rag.corpus.documents.encodings import decoded
    from rag.corpus.documents.markdown import markdown_blocks

    return markdown_blocks(decoded(data, where), dropped, name)


def _first_title(blocks: list[Block]) -> tuple[str, list[Block]]:
    """Take a first heading of level 1 as the title."""
    if blocks and blocks[0].kind is Kind.HEADING and blocks[0].level == 1:
        return blocks[0].text, blocks[1:]
    return "", blocks


_READERS: dict[str, Reader] = {
    ".html": _html,
    ".htm": _html,
    ".xhtml": _html,
    ".md": _markdown,
    ".markdown": _markdown,
    ".txt": _text,
}
SUFFIXES = frozenset({*_READERS, ".pdf"})
