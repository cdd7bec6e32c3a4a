"""Blocks from Word, PowerPoint and Excel files; each needs a library of the extra `documents`."""

import io
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date, datetime, time
from typing import Any

from autoais.errors import first_line
from rag.corpus.documents.archives import open_zip
from rag.corpus.documents.blocks import Block, heading, item, row, squeezed
from rag.corpus.documents.html import TITLE, html_blocks
from rag.corpus.documents.titles import clean_heading
from rag.errors import FormatError

_STYLES = f"""
p[style-name='Title'] => h1.{TITLE}:fresh
p[style-name='HTML Preformatted'] => pre:separator('\\n')
p[style-name='Source Code'] => pre:separator('\\n')
p[style-name='Preformatted Text'] => pre:separator('\\n')
p[style-name='Code'] => pre:separator('\\n')
"""
# The first row of a table that has a second one; mammoth writes no attributes but spans.
_FIRST_ROW = re.compile(r"(<table>)(<tr>(?:(?!</tr>|<table).)*</tr>)(?=<tr>)", re.DOTALL)
_CELL = re.compile(r"<td\b[^>]*>(.*?)</td>", re.DOTALL)
_TAG = re.compile(r"<[^>]*>")
_LONGEST_NAME = 60  # characters of the name of a column
MOST_CELLS = 5_000_000


@contextmanager
def _library(where: str) -> Iterator[None]:
    """Turn a missing library, and whatever a library raises on a broken file, into one line; drop warnings."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except ImportError as error:
        raise FormatError(f"{where}: needs {error.name}: pip install 'attributed-rag[documents]'") from error
    except FormatError:
        raise
    except Exception as error:
        raise FormatError(f"{where}: broken: {first_line(error)}") from error


def docx_blocks(data: bytes, where: str, dropped: Counter[str]) -> tuple[str, list[Block]]:
    """The title ("" if there is none) and the blocks of a Word file."""
    open_zip(data, where).close()
    with _library(where):
        import mammoth

        page = mammoth.convert_to_html(
            io.BytesIO(data), style_map=_STYLES, convert_image=mammoth.images.img_element(lambda _: {})
        ).value
        return html_blocks(_with_header_rows(page), dropped, where=where)


def _with_header_rows(page: str) -> str:
    """The page, with the first row of each table as its header if all of it is words: Word marks none by itself."""
    return _FIRST_ROW.sub(lambda found: _as_header(found[0], found[1], found[2]), page)


def _as_header(table: str, before: str, first: str) -> str:
    cells = [squeezed(_TAG.sub(" ", cell)) for cell in _CELL.findall(first)]
    if (
        len(cells) < 2
        or not all(cells)
        or any(map(_is_number, cells))
        or any(len(cell) > _LONGEST_NAME for cell in cells)
    ):
        return table
    return before + first.replace("<td", "<th").replace("</td>", "</th>")


def pptx_blocks(data: bytes, where: str, dropped: Counter[str]) -> tuple[str, list[Block]]:
    """The title ("" if there is none) and the blocks of a presentation; slides are pages."""
    open_zip(data, where).close()
    with _library(where):
        from pptx import Presentation

        slides = Presentation(io.BytesIO(data)).slides
        blocks: list[Block] = []
        for number, slide in enumerate(slides, 1):
            blocks += _slide(slide, number)
        first = blocks[0].text if blocks and blocks[0].level else ""
        return first, blocks


def _slide(slide: Any, number: int) -> Iterator[Block]:  # noqa: ANN401
    title = slide.shapes.title
    if title is not None and (text := clean_heading(title.text_frame.text)):
        yield heading(text, 2, number)
    for shape in _shapes(slide.shapes):
        if shape.has_text_frame and (title is None or shape.shape_id != title.shape_id):
            yield from _paragraphs(shape, number)
        elif getattr(shape, "has_table", False) and shape.has_table:
            yield from table_rows([[squeezed(cell.text) for cell in line.cells] for line in shape.table.rows], number)
    if slide.has_notes_slide and (frame := slide.notes_slide.notes_text_frame) is not None:
        for text in frame.text.splitlines():
            if squeezed(text):
                yield Block(squeezed(text), page=number)


def _shapes(shapes: Iterable[Any]) -> Iterator[Any]:
    """The shapes of a slide, also those in groups."""
    for shape in shapes:
        if hasattr(shape, "shapes"):
            yield from _shapes(shape.shapes)
        else:
            yield shape


def _paragraphs(shape: Any, number: int) -> Iterator[Block]:  # noqa: ANN401
    paragraphs = [one for one in shape.text_frame.paragraphs if squeezed(one.text)]
    listed = len(paragraphs) > 1 and (shape.is_placeholder or any(one.level for one in paragraphs))
    for paragraph in paragraphs:
        text = squeezed(paragraph.text)
        yield item(text, min(paragraph.level, 8), "-", number) if listed else Block(text, page=number)


def xlsx_blocks(data: bytes, where: str, dropped: Counter[str]) -> tuple[str, list[Block]]:
    """The blocks of a workbook: a row of a table is a block, a sheet a section."""
    open_zip(data, where).close()
    with _library(where):
        from openpyxl import load_workbook

        book = load_workbook(io.BytesIO(data), read_only=True, data_only=True)
        blocks: list[Block] = []
        cells = 0
        for sheet in book.worksheets:
            rows = []
            for line in sheet.iter_rows(values_only=True):
                cells += max(1, len(line))
                if cells > MOST_CELLS:
                    raise FormatError(f"{where}: refused, as it has more than {MOST_CELLS:,} cells")
                rows.append([_cell(value) for value in line])
            if found := [*table_rows(rows)]:
                blocks += [heading(squeezed(sheet.title), 2), *found]
        book.close()
        return "", blocks


def table_rows(rows: Sequence[Sequence[str]], page: int | None = None) -> Iterator[Block]:
    """The rows of tables between empty rows; the first row of a table names the columns if all of it is words."""
    names: Sequence[str] = ()
    begins = True
    for number, cells in enumerate(rows):
        if not any(cells):
            names, begins = (), True
            continue
        following = rows[number + 1] if number + 1 < len(rows) else ()
        filled = [cell for cell in cells if cell]
        if begins and len(filled) > 1 and any(following) and not any(map(_is_number, filled)):
            names = cells
        elif (block := row(cells, names, page)) is not None:
            yield block
        begins = False


def _is_number(text: str) -> bool:
    return text.replace(".", "", 1).replace("-", "", 1).replace(",", "").isdigit()


def _cell(value: Any) -> str:  # noqa: ANN401
    if value is None:
        return ""
    if isinstance(value, datetime):
        return value.isoformat(" ").removesuffix(" 00:00:00")
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, float):
        return f"{value:.12g}"
    return squeezed(str(value))
