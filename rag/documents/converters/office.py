"""Blocks from Word, PowerPoint and Excel files; each needs a library of the extra `documents`."""

import io
import re
import warnings
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import date, datetime, time
from typing import Any

from autoais.base.errors import first_line, install_command
from rag.base.errors import FormatError
from rag.documents.archives import open_zip
from rag.documents.blocks import Block, heading, item, keep_bare_headings
from rag.documents.converters.word_parts import label_items, mend_parts, take_labels
from rag.documents.main_content import TITLE, html_blocks
from rag.documents.normalize import squeeze
from rag.documents.raw_file import RawFile
from rag.documents.tables import MAX_CELLS, are_names, check_cells, grid_rows
from rag.documents.titles import clean_heading

_STYLES = f"""
p[style-name='Title'] => h1.{TITLE}:fresh
p[style-name='HTML Preformatted'] => pre:separator('\\n')
p[style-name='Source Code'] => pre:separator('\\n')
p[style-name='Preformatted Text'] => pre:separator('\\n')
p[style-name='Code'] => pre:separator('\\n')
"""
# Mammoth writes no attributes but spans.
_TABLE = re.compile(r"<table>((?:(?!</?table|<thead).)*)</table>", re.DOTALL)
_ROW = re.compile(r"<tr>(.*?)</tr>", re.DOTALL)
_CELL = re.compile(r"<td\b[^>]*>(.*?)</td>", re.DOTALL)
_TAG = re.compile(r"<[^>]*>")
_BOLD = re.compile(r"\s*(?:<p>\s*<strong>(?:(?!</strong>).)*</strong>\s*</p>\s*)+", re.DOTALL)
_BACK_LINK = re.compile(r'<a href="#(?:foot|end)note-ref-[^"<>]*">↑</a>')  # of a note, which mammoth adds
_MERGED_CELL = re.compile(rb'<(?:\w+:)?mergeCell\b[^>]*\bref="([A-Z]{1,3}\d{1,7}:[A-Z]{1,3}\d{1,7})"')
_LITERAL = re.compile(r'"[^"]*"|\\.')  # in a number format: 0"%" shows 5 as 5%
_MONEY = re.compile(r"(?<=\[\$)[£€$¥₹]|[£€¥₹]|(?<!\[)\$")  # `[$€-407]`, `"£"`, `$`, but not `[$-409]`, a language
_NAME_WORDS = 10  # of a slide
_MAX_REPEATED_LENGTH = 300  # characters of a cell that is repeated in the rows that it spans


@contextmanager
def _library(location: str) -> Iterator[None]:
    """Turn a missing library, and whatever a library raises on a broken file, into one line; drop warnings."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except ImportError as error:
        raise FormatError(f"{location}: needs {error.name}: {install_command('documents')}") from error
    except FormatError:
        raise
    except Exception as error:
        raise FormatError(f"{location}: broken: {first_line(error)}") from error


def read_docx(file: RawFile) -> tuple[str, list[Block]]:
    """The title ("" if there is none) and the blocks of a Word file."""
    with _library(file.where):
        import mammoth

        data = mend_parts(file.data, file.where)
        page = mammoth.convert_to_html(
            io.BytesIO(data), style_map=_STYLES, convert_image=mammoth.images.img_element(lambda _: {})
        ).value
        page = mark_header_rows(take_labels(_BACK_LINK.sub("", page)))
        title, blocks = html_blocks(page, file.dropped, location=file.where)
        return title, [*map(label_items, blocks)]


def mark_header_rows(page: str) -> str:
    """The page with the rows that name the columns of tables as their headers: Word marks none by itself."""
    return _TABLE.sub(lambda table: _with_header_row(table[0], _ROW.findall(table[1])), page)


def _with_header_row(table: str, lines: list[str]) -> str:
    cells = [_CELL.findall(line) for line in lines]
    texts = [[squeeze(_TAG.sub(" ", cell)) for cell in row] for row in cells]
    position = next((number for number, row in enumerate(texts) if len(row) > 1), len(texts))  # below a title
    if position + 1 >= len(texts) or not all(texts[position]):
        return table
    bold = [all(_BOLD.fullmatch(cell) for cell in row if _TAG.sub("", cell).strip()) for row in cells[position:]]
    if not are_names(texts[position], texts[position + 1 :], bold=bold[0] and not all(bold)):
        return table
    is_named = lines[position].replace("<td", "<th").replace("</td>", "</th>")
    return table.replace(f"<tr>{lines[position]}</tr>", f"<tr>{is_named}</tr>", 1)


def read_pptx(file: RawFile) -> tuple[str, list[Block]]:
    """The title ("" if there is none) and the blocks of a presentation; slides are pages."""
    open_zip(file.data, file.where).close()
    with _library(file.where):
        from pptx import Presentation

        slides = Presentation(io.BytesIO(file.data)).slides
        blocks: list[Block] = []
        for number, slide in enumerate(slides, 1):
            blocks += _slide(slide, number)
        first = blocks[0].text if blocks and blocks[0].level else ""
        return first, [*keep_bare_headings(blocks, lambda text: text != first)]


def _slide(slide: Any, number: int) -> Iterator[Block]:  # noqa: ANN401
    title, name = slide.shapes.title, ""
    if title is not None and (text := clean_heading(title.text_frame.text)):
        yield heading(text, 2, number)
    elif number > 1:
        name = _first_line(slide)
        yield heading(name or f"Slide {number}", 2, number)  # not of the slide before
    for shape in _shapes(slide.shapes):
        if shape.has_text_frame and (title is None or shape.shape_id != title.shape_id):
            for block in _paragraphs(shape, number):
                if name and clean_heading(block.text) == name:
                    name = ""  # said as the heading
                else:
                    yield block
        elif getattr(shape, "has_table", False) and shape.has_table:
            rows = [[squeeze(cell.text) for cell in line.cells] for line in shape.table.rows]
            yield from grid_rows(rows, number, [bool(shape.table.first_row), *[False] * (len(rows) - 1)])
    if slide.has_notes_slide and (frame := slide.notes_slide.notes_text_frame) is not None:
        for text in frame.text.splitlines():
            if squeeze(text):
                yield Block(squeeze(text), page=number)


def _first_line(slide: Any) -> str:  # noqa: ANN401
    """A short first paragraph of a slide without a title, by its place; "" if it is a sentence."""
    text_shapes = [shape for shape in slide.shapes if shape.has_text_frame and squeeze(shape.text_frame.text)]
    first = min(text_shapes, key=lambda shape: shape.top or 0, default=None)
    text = squeeze(first.text_frame.text.strip().split("\n")[0]) if first is not None else ""
    return clean_heading(text) if len(text.split()) <= _NAME_WORDS and text[-1:] not in ".,;:" else ""


def _shapes(shapes: Iterable[Any]) -> Iterator[Any]:
    """The shapes of a slide, also those in groups."""
    for shape in shapes:
        if hasattr(shape, "shapes"):
            yield from _shapes(shape.shapes)
        else:
            yield shape


def _paragraphs(shape: Any, number: int) -> Iterator[Block]:  # noqa: ANN401
    paragraphs = [paragraph for paragraph in shape.text_frame.paragraphs if squeeze(paragraph.text)]
    is_list = len(paragraphs) > 1 and (shape.is_placeholder or any(paragraph.level for paragraph in paragraphs))
    for paragraph in paragraphs:
        text = squeeze(paragraph.text)
        yield item(text, min(paragraph.level, 8), "-", number) if is_list else Block(text, page=number)


def read_xlsx(file: RawFile) -> tuple[str, list[Block]]:
    """The blocks of a workbook: a row of a table is a block, a sheet a section."""
    with open_zip(file.data, file.where) as archive, _library(file.where):
        from openpyxl import load_workbook

        book = load_workbook(io.BytesIO(file.data), read_only=True, data_only=True)
        blocks: list[Block] = []
        cells = 0
        for sheet in book.worksheets:
            rows: list[list[str]] = []
            bold: list[bool] = []
            sheet.reset_dimensions()  # some writers leave `A1` there, whatever the sheet holds
            for line in sheet.iter_rows():
                cells += max(1, len(line))
                check_cells(cells, file.where)
                rows.append(_without_last([_cell(cell.value, cell) for cell in line]))
                begins = not bold or bold[-1] or sum(map(bool, rows[-2])) < 2  # fonts take time
                bold.append(begins and all(cell.font.b for cell in line if cell.value is not None))
            _fill_ranges(rows, _read_merged_cells(archive, sheet), MAX_CELLS - cells)
            if result := [*grid_rows(rows, bold=bold)]:
                blocks += [heading(squeeze(sheet.title), 2), *result]
        book.close()
        return "", blocks


def _read_merged_cells(archive: zipfile.ZipFile, sheet: Any) -> Iterator[tuple[int, int, int]]:  # noqa: ANN401
    """The columns and the first and last rows (from 0) of cells that span rows, which openpyxl does not stream."""
    from openpyxl.utils import range_boundaries

    with archive.open(sheet._worksheet_path) as file:
        ranges = _MERGED_CELL.findall(file.read())
    for position in ranges:
        left, top, _, bottom = range_boundaries(position.decode())
        if bottom > top:
            yield left - 1, top - 1, bottom - 1


def _fill_ranges(rows: list[list[str]], ranges: Iterable[tuple[int, int, int]], room: int) -> None:
    """Repeat a cell that spans rows in each of them, unless it is long; rows get up to `room` empty cells before it."""
    for column, top, bottom in ranges:
        if top >= len(rows) or column >= len(rows[top]) or len(rows[top][column]) > _MAX_REPEATED_LENGTH:
            continue
        for cells in rows[top + 1 : bottom + 1]:
            if any(cells) and (missing_count := max(0, column + 1 - len(cells))) <= room:
                room -= missing_count
                cells += [""] * missing_count
                cells[column] = cells[column] or rows[top][column]


def _without_last(cells: list[str]) -> list[str]:
    """The cells of a row up to the last one that is not empty."""
    while cells and not cells[-1]:
        cells.pop()
    return cells


def _cell(value: Any, cell: Any) -> str:  # noqa: ANN401
    if value is None:
        return ""
    if isinstance(value, datetime):
        return value.isoformat(" ").removesuffix(" 00:00:00")
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, int | float) and not isinstance(value, bool):
        if "%" in _LITERAL.sub("", cell.number_format):
            return f"{100 * value:.12g}%"
        if sign := _MONEY.search(cell.number_format):
            digits = f"{abs(value):.12g}"
            in_cents = f"{abs(value):.2f}"
            amount = in_cents.removesuffix(".00") if float(in_cents) == float(digits) else digits  # £0.0035 a sheet
            return f"{'-' if value < 0 else ''}{sign[0]}{amount}"
    if isinstance(value, float):
        return f"{value:.12g}"
    return squeeze(str(value))
