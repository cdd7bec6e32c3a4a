"""Blocks from manual pages, LaTeX, DocBook, Org, RTF and OpenDocument texts, which pandoc turns into HTML.

pandoc runs as a program of its own, with limits (`rag.documents.limits`) and with `--sandbox`: it opens no other file,
so what a document includes is missing. Formulas are text as far as pandoc can say them so, else TeX. Footnotes are
counted and left out.
"""

import re
import unicodedata
from dataclasses import replace
from html import unescape
from pathlib import Path

from rag.base.errors import FormatError
from rag.documents import kinds
from rag.documents import navigation as nav
from rag.documents.archives import open_zip, read_member
from rag.documents.blocks import Block, Kind, keep_bare_headings
from rag.documents.converters.docbook import replace_entities
from rag.documents.converters.office import mark_header_rows
from rag.documents.converters.programs import INSTALL, find_program
from rag.documents.encodings import decode_text
from rag.documents.formats import is_plain_text
from rag.documents.limits import run_program
from rag.documents.main_content import html_blocks
from rag.documents.normalize import squeeze
from rag.documents.raw_file import HEAD, RawFile

_TEMPLATE = Path(__file__).with_name("pandoc.html")
_TAG = re.compile(r"<[^<>]*>")
_LINK = re.compile(r"</?a\b[^<>]*>|<sup>\s*</sup>")
_FOOTNOTE_MARK = re.compile(r'<a\b[^<>]*class="footnote-ref"[^<>]*>.*?</a>', re.DOTALL)
_FOOTNOTES = re.compile(r'<(section|div)\b[^<>]*class="footnotes.*?</\1>', re.DOTALL)
_FOOTNOTE = re.compile(r"<li\b[^<>]*\bid=\"fn")
_FORMULA = re.compile(r'<span class="math \w+">.*?</span>', re.DOTALL)
_SCRIPT = re.compile(r"<su([bp])>(.*?)</su[bp]>", re.DOTALL)
_DOTLESS = re.compile("\u0131(?=[\u0300-\u036f])")  # an i below an accent
_HEADING = re.compile(r"(</?h)([1-5])(?=[\s>])")
_TABLE_PART = re.compile(r"<(table|tr|td)\s(?![^<>]*(?:row|col)span)[^<>]*>")
_SYNTAX = re.compile(r"[\[\]<>{}|]")
_INDENTED = re.compile(r"(?:<p>((?:(?!</?p>).)*)</p>\s*)?<blockquote>(?:\s*<p>([·•*-])</p>)?|</blockquote>", re.DOTALL)
_TERM_WORDS = 20
_MDOC_START = re.compile(r"^\.Dd\b", re.MULTILINE)
_MDOC_SYSTEM = re.compile(r"^\.Os\b.*$", re.MULTILINE)
_MDOC_PARTS = re.compile(r"^\.(?!It\b)([^\n]*?)[ \t]*\bXo\b[ \t]*\n(.*?)^\.Xc\b[^\n]*\n", re.MULTILINE | re.DOTALL)
_TABLE = re.compile(r"^(\.TS.*\n(?:[^\n.]*;[ \t]*\n)?)((?:[^.\n]*\n){0,9}[^\n]*\.[ \t]*\n)", re.MULTILINE)
_TABLE_COLUMN = re.compile(r"[lrcnas^]")
_TABLE_FONT = re.compile(r"\([^()]*\)|f\w")
_WEB_LINK = re.compile(r"^\.(?:URL|MTO)[ \t]+(.*)$", re.MULTILINE)
_RTF_SIGN = re.compile(rb"(\\u-?\d{1,5}) ?\?")
_ARGUMENT = re.compile(r'"[^"]*"|[^\s"]+')
_REDIRECT = re.compile(r"\s*\.so\s+\S+\s*\Z")
_BOX = re.compile(r"<input type=\"checkbox\"[^<>]*>")
_ORG_OPTIONS = "#+OPTIONS: p:t tags:nil ^:{}\n"  # with dates of tasks, without tags, and `a_b` as it stands
_COMMENT = re.compile(r"""^[.'][ \t]*\\["#].*\n?""", re.MULTILINE)


def read_man_page(file: RawFile, source: str) -> tuple[str, list[Block]]:
    """The title, such as `ls(1)`, and the blocks of a manual page; a text with such a name is read as a text."""
    head = file.data[:HEAD]
    if not kinds.is_man_page(head):
        if is_plain_text(head):
            return _read_text(file)
        raise FormatError(f"{file.where}: not a manual page: it has no title (.TH or .Dd)")
    text = _WEB_LINK.sub(_web_link, decode_text(file.data, file.where))
    if _REDIRECT.fullmatch(_COMMENT.sub("", text)):
        file.dropped[nav.REDIRECT] += 1
        return "", []
    if kinds.is_mdoc(head):
        source, text = "mdoc", _simple_mdoc(text)
    title, blocks = _convert(file, _TABLE.sub(_simple_table, text).encode(), source)
    name, bracket, section = title.partition("(")
    return f"{name.lower() if name.isupper() else name}{bracket}{section}", [
        _without_capitals(block) for block in blocks
    ]


def _web_link(macro: re.Match[str]) -> str:
    """A link by a macro that asciidoctor defines in its pages: the text, the address, and what follows it."""
    address, text, after = (*_ARGUMENT.findall(macro[1]), "", "", "")[:3]
    address, text, after = address.strip('"'), text.strip('"'), after.strip('"')
    return f"{text} <{address}>{after}" if text else f"{address}{after}"


def _simple_mdoc(text: str) -> str:
    """A page in mdoc(7) without what pandoc 3.9 fails on: lines before .Dd, a value of .Os, and .Xo in running text."""
    start = _MDOC_START.search(text)
    text = text[start.start() :] if start is not None else text
    return _MDOC_PARTS.sub(lambda part: f".{part[1]}\n{part[2]}" if part[1] else part[2], _MDOC_SYSTEM.sub(".Os", text))


def _simple_table(lines: re.Match[str]) -> str:
    """A table of tbl(1) with formats that pandoc 3.9 knows: it drops a table that has others."""
    formats = [_TABLE_COLUMN.findall(_TABLE_FONT.sub("", line.lower())) for line in lines[2].rstrip(" .\n").split("\n")]
    return lines[1] + "\n".join(" ".join("l" * len(columns)) for columns in formats if columns) + ".\n"


def _terms(body: str) -> str:
    """The HTML of a manual page, with what DocBook and asciidoctor write as indented text in the lists that it is.

    Text below a short line explains that line; text that begins with a bullet is an item.
    """
    ends: list[str] = []

    def tag(indent: re.Match[str]) -> str:
        if indent[0] == "</blockquote>":
            return ends.pop() if ends else indent[0]
        previous, mark = indent[1] or "", indent[2]
        line = squeeze(_TAG.sub("", previous))
        if mark:
            ends.append("</li></ul>")
            return f"<p>{previous}</p><ul><li>"
        if line and len(line.split()) <= _TERM_WORDS and (line.endswith("...") or line[-1] not in ".:;,!?"):
            ends.append("</dd></dl>")
            return f"<dl><dt>{previous}</dt><dd>"
        ends.append("</blockquote>")
        return indent[0]

    return _INDENTED.sub(tag, body)


def _formula(span: re.Match[str]) -> str:
    """A formula with `^` and `_` before what stands above and below the line."""
    return _SCRIPT.sub(_script, span[0])


def _script(tag: re.Match[str]) -> str:
    text = _TAG.sub("", tag[2])
    return f"{'^' if tag[1] == 'p' else '_'}{text if len(text) == 1 else f'({text})'}"


def _without_capitals(block: Block) -> Block:
    """A heading in capitals as other headings are written; not a call, such as `RPC INFO [NAME]`."""
    if block.kind is Kind.HEADING and block.text.isupper() and not _SYNTAX.search(block.text):
        return replace(block, text=block.text.capitalize())
    return block


def read_latex(file: RawFile, source: str) -> tuple[str, list[Block]]:
    """The title ("" if it has none) and the blocks of a LaTeX document or a part of one."""
    if not kinds.is_latex(file.data[:HEAD]):
        raise FormatError(f"{file.where}: not a LaTeX document: it defines commands, or is written in plain TeX")
    return _convert(file, decode_text(file.data, file.where).encode(), source)


def read_docbook(file: RawFile, source: str) -> tuple[str, list[Block]]:
    """The title ("" if it has none) and the blocks of a DocBook document."""
    if file.name.lower().removesuffix(".gz").endswith(".xml") and not kinds.is_docbook(file.data[:HEAD]):
        raise FormatError(f"{file.where}: not a DocBook document: other XML is not read")
    return _convert(file, replace_entities(decode_text(file.data, file.where, markup=True)).encode(), source)


def read_org(file: RawFile, source: str) -> tuple[str, list[Block]]:
    """The title ("" if it has none) and the blocks of an Org file; a text with such a name is read as a text."""
    if not kinds.is_org(file.data[:HEAD]):
        return _read_text(file)
    title, blocks = _convert(file, (_ORG_OPTIONS + decode_text(file.data, file.where)).encode(), f"{source}+task_lists")
    if title and not blocks:  # a task alone
        return "", [Block(title)]
    return title, [*keep_bare_headings(blocks, lambda text: text != "Footnotes")]  # tasks


def read_rtf(file: RawFile, source: str) -> tuple[str, list[Block]]:
    """The title ("" if it has none) and the blocks of a file in Rich Text Format."""
    if not file.data.lstrip().startswith(b"{\\rtf"):
        raise FormatError(f"{file.where}: not Rich Text Format")
    # pandoc 3.9 takes what follows the question mark for part of the sign: the price `\u8364?5` would lose its number.
    return _convert(file, _RTF_SIGN.sub(rb"\1\\'3f", file.data), source)


def read_odt(file: RawFile, source: str) -> tuple[str, list[Block]]:
    """The title ("" if it has none) and the blocks of an OpenDocument text."""
    with open_zip(file.data, file.where) as archive:
        manifest = "META-INF/manifest.xml"
        if manifest in archive.namelist() and b"encryption-data" in read_member(archive, manifest, file.where):
            raise FormatError(f"{file.where}: encrypted: save it without a password first")
    return _convert(file, file.data, source)


def _read_text(file: RawFile) -> tuple[str, list[Block]]:
    from rag.documents.converters.text_files import read_text

    return read_text(file)


def _convert(file: RawFile, data: bytes, source: str) -> tuple[str, list[Block]]:
    """The title and the blocks of what pandoc makes of a document."""
    program = find_program("pandoc")
    if program is None:
        raise FormatError(f"{file.where}: only pandoc reads it: {INSTALL['pandoc']}")
    arguments = ["--sandbox", "-f", source, "-t", "html5", "--wrap=none", f"--template={_TEMPLATE}"]
    page = run_program([program, *arguments], data, file.where)
    head, _, body = page.partition("<body>")
    title = squeeze(unescape(_TAG.sub("", _FOOTNOTE_MARK.sub("", head))))
    for notes in _FOOTNOTES.finditer(body):
        file.dropped["footnote"] += len(_FOOTNOTE.findall(notes[0]))
    body = _FOOTNOTE_MARK.sub("", _FOOTNOTES.sub("", body))
    body = _FORMULA.sub(_formula, _LINK.sub("", body))  # links of a document are no navigation
    body = _BOX.sub(lambda box: "[x] " if "checked" in box[0] else "[ ] ", body)
    body = mark_header_rows(_TABLE_PART.sub(r"<\1>", body))
    body = unicodedata.normalize("NFC", _DOTLESS.sub("i", body))
    if source in ("man", "mdoc"):
        body = _terms(body)
    if not title:
        return html_blocks(body, file.dropped, location=file.where)
    body = _HEADING.sub(lambda tag: f"{tag[1]}{int(tag[2]) + 1}", body)
    _, blocks = html_blocks(body, file.dropped, location=file.where)
    return title, blocks
