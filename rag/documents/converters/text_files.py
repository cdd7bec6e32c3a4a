"""Text files and tables of text: which kind a file is by what it holds, and its blocks."""

from rag.documents.blocks import Block
from rag.documents.converters.delimited import colon_blocks, table_rows
from rag.documents.converters.mail import is_mailbox, read_mailbox
from rag.documents.converters.rst import is_rst, rst_blocks
from rag.documents.encodings import decode_text
from rag.documents.plain_text.text import split_title, text_blocks
from rag.documents.raw_file import HEAD, RawFile


def read_text(file: RawFile) -> tuple[str, list[Block]]:
    """The title ("" if it has none) and the blocks of a text; a mailbox and reStructuredText are read as such."""
    if file.data.startswith(b"From ") and is_mailbox(file.data[:HEAD]):  # the archive of a mailing list
        return read_mailbox(file)
    text = decode_text(file.data, file.where)
    if is_rst(text):
        return rst_blocks(text, file.dropped, file.name)
    if (rows := colon_blocks(text, file.where)) is not None:
        return "", rows
    return split_title(text, [*text_blocks(text, file.dropped)])


def read_table(file: RawFile) -> tuple[str, list[Block]]:
    """No title, and the rows of a table; a file that is none is read as a text."""
    blocks = table_rows(decode_text(file.data, file.where), file.where)
    return read_text(file) if blocks is None else ("", blocks)
