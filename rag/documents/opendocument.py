"""Blocks from OpenDocument files: texts (.odt) and slides (.odp) by way of HTML, and tables (.ods) row by row."""

import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from html import escape

from autoais.base.errors import first_line
from rag.base.errors import FormatError
from rag.documents import navigation as nav
from rag.documents.archives import open_zip, read_member
from rag.documents.blocks import Block, heading, squeezed, with_bare_headings
from rag.documents.grids import check_cells, grid_rows
from rag.documents.html import TITLE, html_blocks
from rag.documents.office import with_header_rows
from rag.documents.titles import clean_heading

_NAMESPACES = "urn:oasis:names:tc:opendocument:xmlns:"
_OFFICE, _TEXT, _TABLE, _STYLE, _DRAW = (
    f"{{{_NAMESPACES}{part}:1.0}}" for part in ("office", "text", "table", "style", "drawing")
)
_CLASS = f"{{{_NAMESPACES}presentation:1.0}}class"
_REPEATED = frozenset(["date-time", "footer", "header", "page-number"])  # frames that all slides have
_TAGS = {
    f"{_TEXT}p": "p",
    f"{_TEXT}list": "ul",
    f"{_TEXT}list-item": "li",
    f"{_TABLE}table": "table",
    f"{_TABLE}table-row": "tr",
    f"{_TABLE}table-cell": "td",
    f"{_TABLE}table-header-rows": "thead",
}
_LISTS = {f"{_TEXT}{name}" for name in ("table-of-content", "alphabetical-index", "illustration-index", "table-index")}
_LEFT_OUT = {f"{_TEXT}note", f"{_TEXT}tracked-changes", f"{_OFFICE}annotation"}
_SPACES = {f"{_TEXT}s", f"{_TEXT}tab", f"{_TEXT}line-break"}
_WIDEST = 16_384  # cells of a row


def odt_blocks(data: bytes, where: str, dropped: Counter[str]) -> tuple[str, list[Block]]:
    """The title ("" if there is none) and the blocks of a text."""
    root = _content(data, where)
    page = "".join(_html(root, _styles(root), dropped))
    return html_blocks(with_header_rows(page), dropped, where=where)


def odp_blocks(data: bytes, where: str, dropped: Counter[str]) -> tuple[str, list[Block]]:
    """The title ("" if there is none) and the blocks of a presentation; slides are pages."""
    root = _content(data, where)
    styles = _styles(root)
    found: list[Block] = []
    for number, slide in enumerate(root.iterfind(f".//{_OFFICE}presentation/{_DRAW}page"), 1):
        frames = [*slide.iter(f"{_DRAW}frame")]
        named = next((frame for frame in frames if frame.get(_CLASS) == "title"), frames[0] if frames else None)
        name = clean_heading(" ".join(named.itertext())) if named is not None else ""
        if name or number > 1:
            found.append(heading(name or f"Slide {number}", 2, number))  # not of the slide before
        for frame in frames:
            if frame is not named and frame.get(_CLASS) not in _REPEATED:
                _, blocks = html_blocks(with_header_rows("".join(_html(frame, styles, dropped))), dropped, where=where)
                found += (replace(block, level=block.level and 3, page=number) for block in blocks)
    title = found[0].text if found and found[0].level else ""
    return title, [*with_bare_headings(found, lambda text: text != title)]


def ods_blocks(data: bytes, where: str, dropped: Counter[str]) -> tuple[str, list[Block]]:
    """The blocks of a workbook: a row of a table is a block, a sheet a section."""
    blocks: list[Block] = []
    cells = 0
    for table in _content(data, where).iterfind(f".//{_OFFICE}spreadsheet/{_TABLE}table"):
        rows: list[list[str]] = []
        for line in table.iter(f"{_TABLE}table-row"):
            row = _cells(line)
            times = _count(line, f"{_TABLE}number-rows-repeated") if row else 1
            cells += times * max(1, len(row))
            check_cells(cells, where)
            rows += [row] * times
        if found := [*grid_rows(rows)]:
            blocks += [heading(squeezed(table.get(f"{_TABLE}name") or ""), 2), *found]
    return "", blocks


def _content(data: bytes, where: str) -> ET.Element:
    with open_zip(data, where) as archive:
        manifest = "META-INF/manifest.xml"
        if manifest in archive.namelist() and b"encryption-data" in read_member(archive, manifest, where):
            raise FormatError(f"{where}: encrypted: save it without a password first")
        try:
            root = ET.fromstring(read_member(archive, "content.xml", where))
        except (ET.ParseError, ValueError, LookupError) as error:
            raise FormatError(f"{where}: broken: {first_line(error)}") from error
    for node in root.iter():
        if node.tag in _SPACES:
            node.text = " "
    return root


def _styles(root: ET.Element) -> dict[str, str]:
    """The elements of HTML that styles stand for, by their names: those of titles and of lists with numbers."""
    found = {"Title": "h1"}
    for style in root.iter(f"{_STYLE}style"):
        if style.get(f"{_STYLE}parent-style-name") == "Title":
            found[style.get(f"{_STYLE}name") or ""] = "h1"
    for style in root.iter(f"{_TEXT}list-style"):
        if len(style) and style[0].tag == f"{_TEXT}list-level-style-number":
            found[style.get(f"{_STYLE}name") or ""] = "ol"
    return found


def _html(node: ET.Element, styles: dict[str, str], dropped: Counter[str]) -> Iterator[str]:
    """The text of an element as HTML."""
    if node.tag in _LISTS:
        dropped[nav.CONTENTS] += 1
    if node.tag in _LISTS or node.tag in _LEFT_OUT:
        return
    if node.tag == f"{_TEXT}line-break":
        yield "<br>"
    begin = end = styles.get(node.get(f"{_TEXT}style-name") or "") or _TAGS.get(node.tag, "")
    if node.tag == f"{_TEXT}h":
        begin = end = f"h{max(1, min(_count(node, f'{_TEXT}outline-level'), 6))}"
    elif end == "h1":
        begin = f'h1 class="{TITLE}"'
    elif end == "td":
        across, down = (_count(node, f"{_TABLE}number-{way}-spanned") for way in ("columns", "rows"))
        begin = f'td colspan="{across}" rowspan="{down}"'
    if begin:
        yield f"<{begin}>"
    yield escape(node.text or "")
    for child in node:
        yield from _html(child, styles, dropped)
        yield escape(child.tail or "")
    if end:
        yield f"</{end}>"


def _cells(line: ET.Element) -> list[str]:
    """The texts of the cells of a row, without empty ones at its end."""
    cells: list[str] = []
    empty = 0
    for cell in line:
        text = squeezed(" ".join("".join(part.itertext()) for part in cell.iterfind(f"{_TEXT}p")))
        times = min(_count(cell, f"{_TABLE}number-columns-repeated"), _WIDEST - len(cells) - empty)
        if text and times:
            cells += [""] * empty + [text] * times
            empty = 0
        else:
            empty += times
    return cells


def _count(node: ET.Element, name: str) -> int:
    """The number that an attribute holds, 1 without it."""
    value = node.get(name) or "1"
    return int(value) if value.isascii() and value.isdigit() and len(value) < 9 else 1
