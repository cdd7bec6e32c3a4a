"""How each type of file is read. A reader loads its library when it is called."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module

from rag.base.errors import FormatError
from rag.documents.blocks import Block

HEAD = 16_384  # bytes read to tell whether a file is what its name says


@dataclass(frozen=True, slots=True)
class RawFile:
    """A file that is read: `where` it is for errors, its `name` in the corpus, and the counts of what is left out."""

    data: bytes
    where: str
    name: str
    dropped: Counter[str]


def _html(file: RawFile) -> tuple[str, list[Block]]:
    from rag.documents.encodings import decoded
    from rag.documents.html import html_blocks

    text = decoded(file.data, file.where, markup=True)
    return html_blocks(text, file.dropped, file.name, file.where)


def _text(file: RawFile) -> tuple[str, list[Block]]:
    from rag.documents.mail import is_mailbox, mailbox_blocks

    if file.data.startswith(b"From ") and is_mailbox(file.data[:HEAD]):  # the archive of a mailing list
        return mailbox_blocks(file.data, file.where, file.dropped)
    return _plain(file)


def _plain(file: RawFile) -> tuple[str, list[Block]]:
    from rag.documents.delimited import colon_blocks
    from rag.documents.encodings import decoded
    from rag.documents.rst import is_rst, rst_blocks
    from rag.documents.text import plain_blocks
    from rag.documents.text_headings import titled

    text = decoded(file.data, file.where)
    if is_rst(text):
        return rst_blocks(text, file.dropped, file.name)
    if (rows := colon_blocks(text, file.where)) is not None:
        return "", rows
    return titled(text, [*plain_blocks(text, file.dropped)])


def is_plain_text(head: bytes) -> bool:
    """Whether a file whose name says nothing is a text, and no collection of passages, by its beginning."""
    from rag.documents.text_code import is_text_file

    return is_text_file(head) and _is_table(head)


def _markdown(file: RawFile) -> tuple[str, list[Block]]:
    from rag.documents.encodings import decoded
    from rag.documents.markdown import markdown_blocks

    return markdown_blocks(decoded(file.data, file.where), file.dropped, file.name)


def _rst(file: RawFile) -> tuple[str, list[Block]]:
    from rag.documents.encodings import decoded
    from rag.documents.rst import rst_blocks

    return rst_blocks(decoded(file.data, file.where), file.dropped, file.name)


def _asciidoc(file: RawFile) -> tuple[str, list[Block]]:
    from rag.documents.asciidoc import asciidoc_blocks
    from rag.documents.encodings import decoded

    return asciidoc_blocks(decoded(file.data, file.where), file.dropped)


def _org(file: RawFile) -> tuple[str, list[Block]]:
    from rag.documents.encodings import decoded
    from rag.documents.org import org_blocks

    return org_blocks(decoded(file.data, file.where), file.dropped)


def _is_org(head: bytes) -> bool:
    from rag.documents.org import is_org

    return is_org(head) or is_plain_text(head)  # `example.org` may be what sets up a site


def _latex(file: RawFile) -> tuple[str, list[Block]]:
    from rag.documents.encodings import decoded
    from rag.documents.latex import latex_blocks

    if not _is_latex(file.data[:HEAD]):
        raise FormatError(f"{file.where}: not a LaTeX document: it defines commands, or is written in plain TeX")
    return latex_blocks(decoded(file.data, file.where), file.dropped)


def _is_latex(head: bytes) -> bool:
    from rag.documents.latex import is_latex

    return is_latex(head)


def _man(file: RawFile) -> tuple[str, list[Block]]:
    from rag.documents.encodings import decoded
    from rag.documents.man import is_man_page, man_blocks

    if not is_man_page(file.data[:HEAD]):
        if is_plain_text(file.data[:HEAD]):
            return _text(file)
        raise FormatError(f"{file.where}: not a manual page: it has no title (.TH or .Dd)")
    return man_blocks(decoded(file.data, file.where), file.dropped)


def _is_man_page(head: bytes) -> bool:
    from rag.documents.man import is_man_page

    return is_man_page(head) or is_plain_text(head)  # `MPL-1.1` is a text


def _info(file: RawFile) -> tuple[str, list[Block]]:
    from rag.documents.info import info_blocks

    if not _is_info(file.data[:HEAD]):
        raise FormatError(f"{file.where}: not an Info file: it has no nodes")
    return info_blocks(file.data, file.where, file.dropped)


def _is_info(head: bytes) -> bool:
    from rag.documents.info import is_info

    return is_info(head)


def _docbook(file: RawFile) -> tuple[str, list[Block]]:
    from rag.documents.docbook import docbook_blocks

    return docbook_blocks(file.data, file.where, file.name, file.dropped)


def _xml(file: RawFile) -> tuple[str, list[Block]]:
    if not _is_docbook(file.data[:HEAD]):
        raise FormatError(f"{file.where}: not a DocBook document: other XML is not read")
    return _docbook(file)


def _is_docbook(head: bytes) -> bool:
    from rag.documents.docbook import is_docbook

    return is_docbook(head)


def _mallard(file: RawFile) -> tuple[str, list[Block]]:
    from rag.documents.mallard import mallard_blocks

    if not _is_mallard(file.data[:HEAD]):
        raise FormatError(f"{file.where}: not a page of Mallard: it lacks the namespace http://projectmallard.org/1.0/")
    return mallard_blocks(file.data, file.where, file.name, file.dropped)


def _is_mallard(head: bytes) -> bool:
    from rag.documents.mallard import is_mallard

    return is_mallard(head)


def _pdf(file: RawFile) -> tuple[str, list[Block]]:
    from rag.documents.pdf import pdf_blocks
    from rag.documents.pdf_pages import read_pages

    return pdf_blocks(read_pages(file.data, file.where), file.dropped)


def _calendar(file: RawFile) -> tuple[str, list[Block]]:
    from rag.documents.calendars import calendar_blocks
    from rag.documents.encodings import decoded

    return calendar_blocks(decoded(file.data, file.where), file.where)


def _contacts(file: RawFile) -> tuple[str, list[Block]]:
    from rag.documents.contacts import contact_blocks
    from rag.documents.encodings import decoded

    return "", contact_blocks(decoded(file.data, file.where), file.where, file.dropped)


def _is_contacts(head: bytes) -> bool:
    return b"BEGIN:VCARD" in head.replace(b"\0", b"").upper()  # variants of genes are called so too


def _subtitles(file: RawFile) -> tuple[str, list[Block]]:
    from rag.documents.encodings import decoded
    from rag.documents.subtitles import subtitle_blocks

    return "", subtitle_blocks(decoded(file.data, file.where), file.where)


def _table(file: RawFile) -> tuple[str, list[Block]]:
    from rag.documents.delimited import delimited_blocks
    from rag.documents.encodings import decoded

    blocks = delimited_blocks(decoded(file.data, file.where), file.where)
    return _text(file) if blocks is None else ("", blocks)


def _is_table(head: bytes) -> bool:
    from rag.documents.delimited import is_table

    return is_table(head)


def _of_bytes(module: str, name: str) -> Callable[[RawFile], tuple[str, list[Block]]]:
    """The function of a module here that reads the bytes of a file by itself."""

    def read(file: RawFile) -> tuple[str, list[Block]]:
        blocks = getattr(import_module(f"rag.documents.{module}"), name)
        found: tuple[str, list[Block]] = blocks(file.data, file.where, file.dropped)
        return found

    return read


READERS: dict[str, Callable[[RawFile], tuple[str, list[Block]]]] = {
    ".1": _man,
    ".adoc": _asciidoc,
    ".asciidoc": _asciidoc,
    ".csv": _table,
    ".docbook": _docbook,
    ".docx": _of_bytes("office", "docx_blocks"),
    ".eml": _of_bytes("mail", "mail_blocks"),
    ".epub": _of_bytes("epub", "epub_blocks"),
    ".htm": _html,
    ".html": _html,
    ".ics": _calendar,
    ".info": _info,
    ".ipynb": _of_bytes("notebook", "notebook_blocks"),
    ".latex": _latex,
    ".ltx": _latex,
    ".markdown": _markdown,
    ".md": _markdown,
    ".mbox": _of_bytes("mail", "mailbox_blocks"),
    ".mdx": _markdown,
    ".mht": _of_bytes("mail", "saved_page_blocks"),
    ".mhtml": _of_bytes("mail", "saved_page_blocks"),
    ".odp": _of_bytes("opendocument", "odp_blocks"),
    ".ods": _of_bytes("opendocument", "ods_blocks"),
    ".odt": _of_bytes("opendocument", "odt_blocks"),
    ".org": _org,
    ".page": _mallard,
    ".pdf": _pdf,
    ".pptx": _of_bytes("office", "pptx_blocks"),
    ".rst": _rst,
    ".rtf": _of_bytes("rtf", "rtf_blocks"),
    ".srt": _subtitles,
    ".tex": _latex,
    ".text": _text,
    ".tsv": _table,
    ".txt": _text,
    ".vcf": _contacts,
    ".vtt": _subtitles,
    ".xhtml": _html,
    ".xlsx": _of_bytes("office", "xlsx_blocks"),
    ".xml": _xml,
}

CHECKED: dict[str, Callable[[bytes], bool]] = {
    ".1": _is_man_page,
    ".csv": _is_table,
    ".info": _is_info,
    ".latex": _is_latex,
    ".ltx": _is_latex,
    ".org": _is_org,
    ".page": _is_mallard,
    ".tex": _is_latex,
    ".tsv": _is_table,
    ".vcf": _is_contacts,
    ".xml": _is_docbook,
}
"""Types whose names other files have too, and whether a file is one, by its first `HEAD` bytes."""
