"""The lines of a PDF, read by a process of its own (`pdf_process.py`)."""

from collections.abc import Sequence
from typing import NamedTuple

from rag.base.errors import FormatError
from rag.documents.converters.pdf_process import PdfProcess

SECONDS = 60.0  # for one file
process = PdfProcess()


class Line(NamedTuple):
    """A line of text; positions and the font size are tenths of a point, from the lower left corner of the page.

    `cells` has three numbers for each part of a line that wide gaps part: where it begins in the text, its left and its
    right.
    """

    text: str
    left: int
    right: int
    y: int
    size: int
    look: int
    cells: Sequence[int] = ()

    @property
    def is_slanted(self) -> bool:
        """Whether the line is neither level nor upright, as a watermark."""
        return bool(self.look & 4)

    @property
    def mono(self) -> bool:
        """Whether the letters are of the same width."""
        return bool(self.look & 1)


class Pages(NamedTuple):
    """A file's title, its bookmarks (level, title, page from 0, height on the page) and the lines of each page.

    `unmapped`: the pages without lines as their fonts do not say which letters they draw.
    """

    title: str
    outline: list[tuple[int, str, int, float | None]]
    lines: list[list[Line]]
    unmapped: int = 0


def read_pages(data: bytes, location: str, seconds: float | None = None) -> Pages:
    """Read a PDF; raises `FormatError` if it is broken, encrypted, has no text or takes longer than `seconds`."""
    rows = process.rows(data, location, SECONDS if seconds is None else seconds)
    first = next(rows)
    pages = [*rows]
    unmapped = pages.count("unmapped")
    lines = [[Line(*line) for line in page] if page != "unmapped" else [] for page in pages]
    if not any(lines) and unmapped:
        raise FormatError(
            f"{location}: the fonts of its {unmapped} pages do not say which letters they draw: "
            "it needs text recognition (OCR) first"
        )
    if not any(lines):
        raise FormatError(
            f"{location}: no text on its {len(lines)} pages: scanned pages need text recognition (OCR) first"
        )
    return Pages(first["title"] or "", [tuple(mark) for mark in first["outline"]], lines, unmapped)
