"""Blocks from Jupyter notebooks: the text and the code of the cells, without their output."""

import json
from typing import Any

from rag.base.errors import FormatError
from rag.documents.blocks import Block, code
from rag.documents.converters.markdown import render_html
from rag.documents.main_content import html_blocks
from rag.documents.raw_file import RawFile


def read_notebook(file: RawFile) -> tuple[str, list[Block]]:
    """The title ("" if there is none) and the blocks of a notebook of format 3 or 4."""
    try:
        notebook = json.loads(file.data)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{file.where}: not a notebook: {error}") from error
    blocks: list[Block] = []
    title = ""
    for cell in _cells(notebook, file.where):
        source = _join_source(cell.get("source", cell.get("input", "")))
        if cell.get("cell_type") == "markdown":
            result, page = html_blocks(render_html(source, file.dropped), file.dropped, location=file.where)
            title = title or result
            blocks += page
        elif cell.get("cell_type") == "heading":
            level = cell.get("level")
            marks = "#" * level if isinstance(level, int) and 0 < level < 7 else "#"
            result, page = html_blocks(
                render_html(f"{marks} {source}", file.dropped), file.dropped, location=file.where
            )
            title = title or result
            blocks += page
        elif cell.get("cell_type") == "code":
            file.dropped["output of a cell"] += bool(cell.get("outputs"))
            if (block := code(source)) is not None:
                blocks.append(block)
    return title, blocks


def _cells(notebook: Any, location: str) -> list[dict[str, Any]]:  # noqa: ANN401
    if isinstance(notebook, dict):
        sheets = notebook.get("worksheets")
        first = sheets[0] if isinstance(sheets, list) and sheets and isinstance(sheets[0], dict) else {}
        cells = notebook.get("cells", first.get("cells"))
        if isinstance(cells, list) and all(isinstance(cell, dict) for cell in cells):
            return cells
    raise FormatError(f"{location}: not a notebook: it has no cells")


def _join_source(source: Any) -> str:  # noqa: ANN401
    text = "".join(map(str, source)) if isinstance(source, list) else str(source)
    return text.encode("utf-8", "replace").decode("utf-8")  # JSON can hold half a character
