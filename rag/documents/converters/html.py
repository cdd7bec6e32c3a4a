"""Blocks from HTML files; `rag.documents.main_content` reads the page."""

from rag.documents.blocks import Block
from rag.documents.encodings import decode_text
from rag.documents.main_content import html_blocks
from rag.documents.raw_file import RawFile


def read_html(file: RawFile) -> tuple[str, list[Block]]:
    """The title ("" if it has none) and the blocks of a page."""
    return html_blocks(decode_text(file.data, file.where, markup=True), file.dropped, file.name, file.where)
