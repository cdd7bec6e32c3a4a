"""A page of a PDF as it is seen: the places of its characters, and its picture."""

from base64 import b64decode
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from rag.documents.converters.pdf_columns import in_columns, split_at_gap
from rag.documents.converters.pdf_pages import Line
from rag.documents.converters.pdf_process import PdfProcess

SECONDS = 10.0  # for one page
PATIENCE = 20.0  # seconds to wait for other pages
PARTS = 1_000_000
"""Boxes are in parts of a million of the width and the height of a page."""

Box = tuple[int, int, int, int]
"""Left, top, right and bottom, from the upper left corner of the page as it is seen."""

process = PdfProcess()  # another one than that which reads whole files, which may take a minute


class PlacedLine(NamedTuple):
    """A line of text, and the box of each of its characters."""

    text: str
    boxes: list[Box]


class PageView(NamedTuple):
    """A page: its number from 1, the number of pages, its size in points, and its lines in the order of reading."""

    number: int
    page_count: int
    width: float
    height: float
    lines: list[PlacedLine]


def view_page(data: bytes, number: int, location: str) -> PageView:
    """The text of a page with its places; raises `FormatError` if it cannot be read, or there is no such page."""
    size, rows = process.rows(data, location, SECONDS, {"page": number}, PATIENCE)
    return PageView(number, size["pages"], size["width"], size["height"], _in_order(rows))


def draw_page(data: bytes, number: int, width: int, location: str, boxes: Sequence[Box] = ()) -> bytes:
    """A page as a PNG of `width` pixels, or smaller if it is very tall; `boxes` are marked in it.

    Raises `FormatError` if it cannot be drawn.
    """
    request = {"page": number, "width": width, "boxes": boxes}
    _, picture = process.rows(data, location, SECONDS, request, PATIENCE)
    return b64decode(picture)


def _in_order(rows: Iterable[tuple[list[Any], list[list[int]]]]) -> list[PlacedLine]:
    """The lines in the order in which the reader of whole files reads them: one column after the other."""
    placed: list[tuple[Line, PlacedLine]] = []
    for row, places in rows:
        boxes = [(left, top, right, bottom) for left, top, right, bottom in places]
        for number, part in enumerate(split_at_gap(Line(*row))):
            start = len(boxes) - len(part.text) if number else 0
            placed.append((part, PlacedLine(part.text, boxes[start : start + len(part.text)])))
    places_by_line = {id(line): place for line, place in placed}
    return [places_by_line[id(line)] for line in in_columns([line for line, _ in placed])]
