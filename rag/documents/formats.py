"""The formats that are read: one row each."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module

from rag.documents import kinds
from rag.documents.blocks import Block
from rag.documents.raw_file import RawFile


@dataclass(frozen=True, slots=True)
class Format:
    """A format: the suffixes of its files, and the function of `rag.documents.converters` that reads them.

    `check` tells from the first `HEAD` bytes whether a file is of the format, where other files have its suffixes too;
    with `or_text`, those that are plain text are read as such. `program` is the program that the function needs,
    `source` pandoc's name of the format.
    """

    suffixes: tuple[str, ...]
    converter: str  # module:function
    check: Callable[[bytes], bool] | None = None
    program: str = ""
    source: str = ""
    or_text: bool = False

    def read(self, file: RawFile) -> tuple[str, list[Block]]:
        """The title ("" if it has none) and the blocks of a file; raises `FormatError` if it cannot be read.

        The module is imported here, so that a library is loaded only for files that need it.
        """
        module, _, name = self.converter.partition(":")
        convert = getattr(import_module(f"rag.documents.converters.{module}"), name)
        title, blocks = convert(file, self.source) if self.source else convert(file)
        return title, blocks


def is_plain_text(head: bytes) -> bool:
    """Whether a file whose name says nothing is a text, and no collection of passages, by its beginning."""
    from rag.documents.plain_text.code import is_text_file

    return is_text_file(head) and kinds.is_no_corpus(head)


_FORMATS = (
    Format((".html", ".htm", ".xhtml"), "html:read_html"),
    Format((".md", ".markdown", ".mdx"), "markdown:read_markdown"),
    Format((".txt", ".text"), "text_files:read_text"),
    Format((".rst",), "rst:read_rst"),
    Format((".pdf",), "pdf:read_pdf"),
    Format((".docx",), "office:read_docx"),
    Format((".pptx",), "office:read_pptx"),
    Format((".xlsx",), "office:read_xlsx"),
    Format((".epub",), "epub:read_epub"),
    Format((".ipynb",), "notebook:read_notebook"),
    Format((".csv", ".tsv"), "text_files:read_table", kinds.is_no_corpus),
    Format((".eml",), "mail:read_mail"),
    Format((".mbox",), "mail:read_mailbox"),
    Format((".mht", ".mhtml"), "mail:read_saved_page"),
    Format((".ics",), "calendars:read_calendar"),
    Format((".adoc", ".asciidoc"), "asciidoctor:read_asciidoc", program="asciidoctor"),
    Format((".1",), "pandoc:read_man_page", kinds.is_man_page, "pandoc", "man", or_text=True),  # stands for .2 to .8
    Format((".tex", ".ltx", ".latex"), "pandoc:read_latex", kinds.is_latex, "pandoc", "latex"),
    Format((".docbook",), "pandoc:read_docbook", program="pandoc", source="docbook"),
    Format((".xml",), "pandoc:read_docbook", kinds.is_docbook, "pandoc", "docbook"),
    Format((".org",), "pandoc:read_org", kinds.is_org, "pandoc", "org", or_text=True),
    Format((".rtf",), "pandoc:read_rtf", program="pandoc", source="rtf"),
    Format((".odt",), "pandoc:read_odt", program="pandoc", source="odt"),
)

FORMATS = {suffix: row for row in _FORMATS for suffix in row.suffixes}
"""The formats by suffix."""
