"""The originals of passages: the files that an index was built from, and where a passage stands in them.

A file is only given out if its SHA-256 is still the one that the index has recorded. So whatever the paths of an index
say, nobody gets more than what it was built from.
"""

import os
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from itertools import pairwise
from pathlib import Path, PurePosixPath
from stat import S_ISREG
from urllib.parse import quote

from rag.base.errors import IndexingError, NotFoundError
from rag.base.types import DOCUMENTS, Passage
from rag.documents.blocks import BLOCK_SEPARATOR, CELL_SEPARATOR
from rag.documents.sources import MAX_FILE_SIZE, Source
from rag.index.files import FILES, FileRecord, Root, read_files, roots_of
from rag.index.index import Index
from rag.index.joined import joined_id
from rag.index.listing import source_urls

Span = tuple[int, int]
"""Characters of a passage's text: start, and end (exclusive)."""

_PAGES = 3  # that a passage may run over, besides those without text
_BLANK = 5  # pages without text that are passed over
_FRAGMENT_WORDS = 5  # at each end of a longer text, in a link to it
_MARK = re.compile(r"\s*(?:-|\(?\w{1,3}[.)])\s+")  # of an item
_NOT_HERE = "the words were not found on the page, which shows where the passage begins"
_PARTLY = "some of the words were not found on the page"


@dataclass(frozen=True, slots=True)
class OriginalFile:
    """A file that an index was built from: its name in the index, its bytes as they were read, and their SHA-256."""

    name: str
    data: bytes
    checksum: str

    @property
    def is_pdf(self) -> bool:
        """Whether it is a PDF, also a packed one."""
        return self.name.lower().removesuffix(".gz").endswith(".pdf")

    @property
    def pdf(self) -> bytes:
        """The PDF; raises `FormatError` if it is packed and the packing is broken."""
        from rag.documents import unpack_gzip

        return unpack_gzip(self.data, self.name) if self.name.lower().endswith(".gz") else self.data


@dataclass(frozen=True, slots=True)
class OriginalPage:
    """A page of a PDF: its number from 1, its width and height in points, and the boxes around the words.

    A box is left, top, right and bottom as fractions of the width and the height of the page as it is seen, from its
    upper left corner.
    """

    number: int
    width: float
    height: float
    boxes: tuple[tuple[float, float, float, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Original:
    """Where a passage stands in its original.

    `name` is the file's in the index. `url` is the address of a page of the web; browsers scroll to the words. `pages`
    are those of a PDF on which the words stand, or on which the passage begins if they were not found; `page_count` is
    the number of all its pages, 0 for other files. `note` says what was not found; it is empty if all was.
    """

    name: str
    url: str = ""
    pages: tuple[OriginalPage, ...] = ()
    page_count: int = 0
    note: str = ""


class Originals:
    """The files that an index was built from. Threads may share it."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._urls = page_urls(index)

    def source_of(self, passage: Passage) -> str:
        """Return the URL or the file name of a passage's document; empty if the index knows neither."""
        name, number, _ = passage.id.rpartition("#")
        if name in self._urls:
            return self._urls[name]
        member, _, _ = name.partition(":")
        index = self._index.members.get(member, self._index)
        return name if number and DOCUMENTS in str(index.manifest.get("format", "")).split(", ") else ""

    @property
    def has_files(self) -> bool:
        """Whether the index knows files that it was built from; an index in memory knows none."""
        if self._index.members:
            return any(Originals(member).has_files for member in self._index.members.values())
        return self._index.build is not None and (self._index.build / FILES).exists()

    def knows(self, passage: str) -> bool:
        """Whether the index knows the file of a passage, by the passage's id."""
        return passage.rpartition("#")[0] in self._files

    def file_of(self, passage: str) -> OriginalFile:
        """Read the file of a passage, by the passage's id.

        Raises `NotFoundError` if the index does not know it, or if it is no longer there as it was read.
        """
        name = passage.rpartition("#")[0]
        if name not in self._files:
            raise NotFoundError(f"the index does not know the file of passage {passage[:100]!r}")
        path, source, checksum = self._files[name]
        data = _read(path, source)
        if data is None:
            raise NotFoundError(f"{name} is no longer where it was read")
        if not checksum or sha256(data).hexdigest() != checksum:
            raise NotFoundError(f"{name} has changed since it was read: rag index update reads it again")
        return OriginalFile(name, data, checksum)

    def locate(self, passage: Passage, spans: Sequence[Span] | None = None) -> Original:
        """Find a passage in its original, or spans of its text.

        Raises `NotFoundError` as `file_of`, `FormatError` for a PDF that cannot be read, and `BusyError` if too many
        others are being read.
        """
        return self.locate_in(self.file_of(passage.id), passage, spans)

    def locate_in(self, file: OriginalFile, passage: Passage, spans: Sequence[Span] | None) -> Original:
        """Find a passage in its file; as `locate`, where the file has been read already."""
        spans = [(0, len(passage.text))] if spans is None else spans
        url = self._urls.get(file.name, "")
        if not file.is_pdf:
            return Original(file.name, f"{url}{text_fragment(passage.text, spans)}" if url else "")
        pages, count, note = _locate_in_pdf(file, passage, spans)
        return Original(file.name, f"{url}#page={pages[0].number}" if url else "", pages, count, note)

    @cached_property
    def _files(self) -> dict[str, tuple[Path, Source, str]]:
        """Path, source and checksum of each file that has passages, by its name."""
        index = self._index
        if index.members:
            return {
                joined_id(name, file): place
                for name, member in index.members.items()
                for file, place in Originals(member)._files.items()
            }
        if index.build is None or not self.has_files:
            return {}
        try:
            roots, records = roots_of(index.manifest, index.build.parent), read_files(index.build)
        except IndexingError:  # an index that does not know its sources
            return {}
        return {
            record.name: (
                _path_of(record, roots[record.source].source),
                roots[record.source].source,
                record.stamp.sha256,
            )
            for record in records
            if record.passages and _is_document(record, roots)
        }


def _is_document(record: FileRecord, roots: Sequence[Root]) -> bool:
    parts = PurePosixPath(record.within).parts
    is_inside = not record.within.startswith("/") and ".." not in parts
    return 0 <= record.source < len(roots) and roots[record.source].source.format == DOCUMENTS and is_inside


def _path_of(record: FileRecord, source: Source) -> Path:
    return source.path / record.within if record.within else source.path


def _read(path: Path, source: Source) -> bytes | None:
    """The bytes of a file; None if it is none, or too large, or if a link leads out of the folder of its source."""
    try:
        real, home = os.path.realpath(path), os.path.realpath(source.path)
        if path != source.path and not real.startswith(f"{home}{os.sep}"):
            return None
        # Not blocking, as the file may have become a pipe.
        with os.fdopen(
            os.open(real, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)), "rb"
        ) as file:
            if not S_ISREG(os.fstat(file.fileno()).st_mode):
                return None
            data = file.read(MAX_FILE_SIZE + 1)
    except (OSError, ValueError):
        return None
    return data if len(data) <= MAX_FILE_SIZE else None


def _locate_in_pdf(
    file: OriginalFile, passage: Passage, spans: Sequence[Span]
) -> tuple[tuple[OriginalPage, ...], int, str]:
    """The pages with the words, the number of all pages, and what was not found."""
    from rag.documents.converters.pdf_view import PARTS, view_page
    from rag.documents.locate import locate

    data = file.pdf
    number = passage.page or _guess_page(data, file.name, passage.text)
    views = [view_page(data, number, file.name)]
    location = locate(passage.text, spans, views)
    while (
        not location.is_whole
        and number + len(views) <= views[0].page_count
        and len(views) < _PAGES + _BLANK
        and sum(bool(view.lines) for view in views) < _PAGES
    ):
        views.append(view_page(data, number + len(views), file.name))
        location = locate(passage.text, spans, views)
    pages = tuple(
        OriginalPage(
            views[place].number,
            views[place].width,
            views[place].height,
            tuple((left / PARTS, top / PARTS, right / PARTS, bottom / PARTS) for left, top, right, bottom in boxes),
        )
        for place, boxes in sorted(location.boxes.items())
    )
    first = OriginalPage(number, views[0].width, views[0].height)
    note = "" if location.is_whole else _PARTLY if pages else _NOT_HERE
    return pages or (first,), views[0].page_count, note


def _guess_page(data: bytes, name: str, text: str) -> int:
    """The page that has most of a text's words, for indexes made before passages had page numbers."""
    from rag.documents.converters.pdf_pages import read_pages
    from rag.documents.converters.pdf_view import SECONDS
    from rag.documents.locate import words_of

    def pairs(text: str) -> set[tuple[str, str]]:
        return {*pairwise(["", *(word.letters for word in words_of(text))])}

    target = pairs(text)
    pages = [" ".join(line.text for line in lines) for lines in read_pages(data, name, SECONDS).lines]
    counts = [len(target & pairs(page)) for page in pages]
    return counts.index(max(counts)) + 1


def page_urls(index: Index) -> dict[str, str]:
    """Return the URLs of the web pages of an index, by the names of their files, with which passage ids begin."""
    if index.members:
        return {
            joined_id(name, file): url
            for name, member in index.members.items()
            for file, url in page_urls(member).items()
        }
    if index.build is None:
        return {}
    urls: dict[str, str] = {}
    with suppress(IndexingError):  # of an index that does not know its sources
        for root in roots_of(index.manifest, index.build.parent):
            urls |= {root.source.prefix + name: url for name, url in source_urls(root.source).items()}
    return urls


def text_fragment(text: str, spans: Sequence[Span]) -> str:
    """The end of a link that makes browsers scroll to a text and mark it; empty for a text without words.

    Of a longer text it has the first words and the last ones.
    """
    pieces = [piece for start, end in spans[:1] for piece in text[start:end].split(BLOCK_SEPARATOR) if piece.strip()]
    if not pieces:
        return ""
    first, last = _plain_words(pieces[0]), _plain_words(pieces[-1])
    if len(pieces) == 1 and len(first) <= 2 * _FRAGMENT_WORDS:
        parts = [first]
    else:
        parts = [first[:_FRAGMENT_WORDS], last[-_FRAGMENT_WORDS:]]
    encoded = ",".join(quote(" ".join(words), safe="").replace("-", "%2D") for words in parts if words)
    return f"#:~:text={encoded}" if encoded else ""


def _plain_words(block: str) -> list[str]:
    """The words of a block as a page shows them in one place: without the mark of an item; of a row, a cell."""
    if CELL_SEPARATOR in block:
        block = block.partition(CELL_SEPARATOR)[0].rpartition(": ")[2]
    else:
        block = block.strip().partition("\n")[0]
    mark = _MARK.match(block)
    return block[mark.end() if mark else 0 :].split()
