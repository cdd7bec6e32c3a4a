"""Blocks from Word, PowerPoint and Excel files; each needs a library of the extra `documents`."""

import io
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, time, timedelta
from itertools import pairwise, zip_longest
from typing import Any

from autoais.base.errors import first_line, install_command
from rag.base.errors import FormatError
from rag.documents.archives import open_zip
from rag.documents.blocks import Block, heading, item, keep_bare_headings
from rag.documents.converters.number_formats import format_number, format_time
from rag.documents.converters.word_parts import label_items, mend_parts, take_labels
from rag.documents.exponents import exponent, index
from rag.documents.html_tables import cells_of
from rag.documents.main_content import TITLE, html_blocks
from rag.documents.normalize import squeeze
from rag.documents.raw_file import RawFile
from rag.documents.tables import MAX_CELLS, are_names, check_cells, grid_rows, names_in_two_rows
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
_MAX_COLUMNS = 16_384
_PLACES = {"superscript": 1, "subscript": -1}
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
        data = mend_parts(file.data, file.where)  # a broken file is named as such, also without the extra
        import mammoth

        page = mammoth.convert_to_html(
            io.BytesIO(data), style_map=_STYLES, convert_image=mammoth.images.img_element(lambda _: {})
        ).value
        page = mark_header_rows(take_labels(_BACK_LINK.sub("", page)))
        title, blocks = html_blocks(page, file.dropped, location=file.where)
        return title, [*map(label_items, blocks)]


def mark_header_rows(page: str) -> str:
    """The page with the cells that name columns, or what stands beside them, as headers: Word marks none by itself."""
    return _TABLE.sub(lambda table: _mark_headers(table[0], _ROW.findall(table[1])), page)


def _mark_headers(table: str, lines: list[str]) -> str:
    from selectolax.lexbor import LexborHTMLParser

    cells = [_CELL.findall(line) for line in lines]
    texts = [[squeeze(_TAG.sub(" ", cell)) for cell in row] for row in cells]
    bold = [[_BOLD.fullmatch(cell) is not None for cell in row] for row in cells]
    if _is_form(texts, bold):
        pairs = [pair for row in cells for pair in zip(row[::2], row[1::2], strict=True)]
        return f"<table>{''.join(f'<tr><th>{name}</th><td>{value}</td></tr>' for name, value in pairs)}</table>"
    node = LexborHTMLParser(table).css_first("table")
    grid = [[cell.text for cell in row] for row in cells_of(node)] if node is not None else []
    position = next((number for number, row in enumerate(grid) if len(row) > 1), len(grid))  # below a title
    if len(grid) != len(lines) or position + 1 >= len(grid):
        return table
    flags = [all(flag for flag, text in zip(*row, strict=True) if text) for row in zip(bold, texts, strict=True)]
    names_rows = all(row[0] for row in bold[position:]) and not flags[position]  # the first column names the rows
    count = _count_header_rows(grid[position:], flags[position:], first_table=not names_rows)
    for line in lines[position : position + count]:
        table = table.replace(line, line.replace("<td", "<th").replace("</td>", "</th>"), 1)
    return table


def _is_form(texts: list[list[str]], bold: list[list[bool]]) -> bool:
    """Whether each second cell is a label, bold or with a colon, of the cell behind it, which is neither."""
    labels = [
        [flag or text.endswith(":") for text, flag in zip(*row, strict=True)] for row in zip(texts, bold, strict=True)
    ]
    return len(texts) > 1 and all(row and row == [True, False] * (len(row) // 2) for row in labels)


def _count_header_rows(rows: list[list[str]], bold: list[bool], *, first_table: bool) -> int:
    """How many of the first rows name the columns: 0, 1, or 2 if the upper one groups those of the lower one."""
    upper, lower = rows[:2]
    groups = [cell if before != cell else "" for before, cell in pairwise(["", *upper])]
    if len(rows) > 2 and len(upper) == len(lower) and "" in groups[1:]:
        is_bold = bold[0] and bold[1] and not all(bold)
        return 2 if is_bold or names_in_two_rows(groups, rows[1:]) else 0
    is_named = all(upper[1:]) and are_names(upper, rows[1:], bold=bold[0] and not all(bold), first_table=first_table)
    return int(is_named)


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
    if title is not None and (text := clean_heading(_frame_text(title.text_frame))):
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
            rows = [[squeeze(_frame_text(cell.text_frame)) for cell in line.cells] for line in shape.table.rows]
            yield from grid_rows(rows, number, [bool(shape.table.first_row), *[False] * (len(rows) - 1)])
    if slide.has_notes_slide and (frame := slide.notes_slide.notes_text_frame) is not None:
        for text in _frame_text(frame).splitlines():
            if squeeze(text):
                yield Block(squeeze(text), page=number)


def _first_line(slide: Any) -> str:  # noqa: ANN401
    """A short first paragraph of a slide without a title, by its place; "" if it is a sentence."""
    text_shapes = [shape for shape in slide.shapes if shape.has_text_frame and squeeze(shape.text_frame.text)]
    first = min(text_shapes, key=lambda shape: shape.top or 0, default=None)
    text = squeeze(_frame_text(first.text_frame).strip().split("\n")[0]) if first is not None else ""
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
        text = squeeze(_paragraph_text(paragraph))
        yield item(text, min(paragraph.level, 8), "-", number) if is_list else Block(text, page=number)


def _frame_text(frame: Any) -> str:  # noqa: ANN401
    return "\n".join(map(_paragraph_text, frame.paragraphs))


def _paragraph_text(paragraph: Any) -> str:  # noqa: ANN401
    """The text of a paragraph on a slide; `baseline` says how far a run stands above the line, or below it."""
    runs = []
    for run in paragraph._p.content_children:
        properties = getattr(run, "rPr", None)
        baseline = properties.get("baseline", "0") if properties is not None else "0"
        runs.append((run.text, -1 if baseline.startswith("-") else int(baseline.strip("0%") != "")))
    return _join_runs(runs)


def _join_runs(runs: Sequence[tuple[str, int]]) -> str:
    """The text of runs, each with its place: 1 above the line, -1 below it, else 0."""
    result = ""
    for (text, place), (after, _) in zip_longest(runs, runs[1:], fillvalue=("", 0)):
        script = exponent(text.strip(), result) if place > 0 else index(text.strip(), result, after) if place else ""
        result += script or text
    return result


def read_xlsx(file: RawFile) -> tuple[str, list[Block]]:
    """The blocks of a workbook: a row of a table is a block, a sheet a section; what is hidden is counted."""
    with open_zip(file.data, file.where), _library(file.where):
        from openpyxl import load_workbook

        book = load_workbook(io.BytesIO(file.data), read_only=True, data_only=True, rich_text=True)
        blocks: list[Block] = []
        room = MAX_CELLS
        for sheet in book.worksheets:
            if sheet.sheet_state != "visible":
                file.dropped["sheet that is hidden"] += 1
                continue
            rows, bold = _read_sheet(sheet, file, room)
            room -= sum(max(1, len(line)) for line in rows)
            if result := [*grid_rows(rows, bold=bold)]:
                blocks += [heading(squeeze(sheet.title), 2), *result]
        book.close()
        return "", blocks


def _read_sheet(sheet: Any, file: RawFile, room: int) -> tuple[list[list[str]], list[bool]]:  # noqa: ANN401
    """The rows of a sheet that are shown, at most `room` cells, and which of them are all bold."""
    from openpyxl.cell.read_only import ReadOnlyCell
    from openpyxl.worksheet._reader import FORMULA_TAG, WorkSheetParser

    rows: list[list[str]] = []
    bold: list[bool] = []
    cells = 0
    book = sheet.parent
    formats = {"date_formats": book._date_formats, "timedelta_formats": book._timedelta_formats}
    with sheet._get_source() as source:  # the parser tells of hidden and merged cells, which `iter_rows` does not
        parser = WorkSheetParser(
            source, sheet._shared_strings, data_only=True, epoch=book.epoch, rich_text=True, **formats
        )
        read_value = parser.parse_cell

        def read_cell(element: Any) -> dict[str, Any]:  # noqa: ANN401
            cell: dict[str, Any] = read_value(element)
            if cell["value"] is None and (formula := element.findtext(FORMULA_TAG)) is not None:
                file.dropped["formula without a value"] += 1
                cell |= {"value": f"={formula}", "data_type": "f"}
            return cell

        parser.parse_cell = read_cell
        for number, line in parser.parse():
            cells += max(0, number - 1 - len(rows)) + max((cell["column"] for cell in line), default=1)
            check_cells(MAX_CELLS - room + cells, file.where)
            rows += [[] for _ in range(len(rows), number)]
            bold += [False] * (len(rows) - len(bold))
            rows[-1] = [""] * max((cell["column"] for cell in line), default=0)
            nonempty_cells = [ReadOnlyCell(sheet, **cell) for cell in line if cell["value"] is not None]
            for item in nonempty_cells:
                rows[-1][item.column - 1] = _cell(item.value, item)
            begins = number < 2 or bold[-2] or sum(map(bool, rows[-2])) < 2  # fonts take time
            bold[-1] = begins and all(item.font.b for item in nonempty_cells)
    _fill_ranges(rows, _row_spans(parser.merged_cells), room - cells)
    return _select_visible(rows, bold, parser, file.dropped)


def _row_spans(merged: Any) -> Iterator[tuple[int, int, int]]:  # noqa: ANN401
    """The columns and the first and last rows (from 0) of cells that span rows."""
    from openpyxl.utils import range_boundaries

    for cell in merged.mergeCell if merged is not None else ():
        left, top, _, bottom = range_boundaries(cell.ref)
        if bottom > top:
            yield left - 1, top - 1, bottom - 1


def _select_visible(
    rows: list[list[str]],
    bold: list[bool],
    parser: Any,  # noqa: ANN401
    omissions: Counter[str],
) -> tuple[list[list[str]], list[bool]]:
    """The rows and columns that are shown, or that a click on a group or a filter shows."""
    is_filtered = bool(getattr(parser, "auto_filter", None) and parser.auto_filter.filterColumn)
    hidden_columns = {
        column
        for area in parser.column_dimensions.values()
        if _is_hidden(area)
        for column in range(int(area["min"]) - 1, min(int(area["max"]), _MAX_COLUMNS))
    }
    hidden_rows = {
        int(number) - 1 for number, area in parser.row_dimensions.items() if _is_hidden(area) and not is_filtered
    }
    shown = [number for number in range(len(rows)) if number not in hidden_rows]
    omissions["row that is hidden"] += sum(any(cells) for number, cells in enumerate(rows) if number in hidden_rows)
    if hidden_columns:
        nonempty = {column for number in shown for column, cell in enumerate(rows[number]) if cell}
        omissions["column that is hidden"] += len(nonempty & hidden_columns)
        for number in shown:
            rows[number] = [cell for column, cell in enumerate(rows[number]) if column not in hidden_columns]
    return [_without_last(rows[number]) for number in shown], [bold[number] for number in shown]


def _is_hidden(area: Mapping[str, str]) -> bool:
    """Whether a row or some columns are hidden, and not only folded away in a group."""
    return area.get("hidden") in ("1", "true") and area.get("outlineLevel", "0") == "0"


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
    """What a cell shows; dates as `2026-03-01`, with their time if they have one."""
    if isinstance(value, datetime):
        return value.isoformat(" ").removesuffix(" 00:00:00").removesuffix(":00")
    if isinstance(value, time):
        return value.isoformat().removesuffix(":00")
    if isinstance(value, timedelta):
        return format_time(value, cell.number_format)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return format_number(value, cell.number_format)
    if isinstance(value, list):  # rich text: texts, and runs with a font of their own
        fonts = [getattr(run, "font", None) for run in value]
        places = [_PLACES.get(str(font.vertAlign), 0) if font is not None else 0 for font in fonts]
        return squeeze(_join_runs([*zip(map(str, value), places, strict=True)]))
    return squeeze(str(value))
