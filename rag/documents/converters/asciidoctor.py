"""Blocks from AsciiDoc, which asciidoctor turns into HTML.

asciidoctor runs as a program of its own, with limits (`rag.documents.limits`) and with `-S secure`: it includes no
other file. Footnotes are counted and left out.
"""

import re

from rag.base.errors import FormatError
from rag.documents.blocks import Block
from rag.documents.converters.programs import INSTALL, find_program
from rag.documents.encodings import decode_text
from rag.documents.limits import run_program
from rag.documents.main_content import html_blocks
from rag.documents.raw_file import RawFile

# Their links are no navigation, and the numbers of callouts in code are no code.
_NO_TEXT = re.compile(
    r'</?a\b[^<>]*>|<sup class="footnote[^<>]*>.*?</sup>|<i class="conum"[^<>]*></i>\s*'
    r'|[ \t]*<b(?: class="conum")?>\(\d+\)</b>',
    re.DOTALL,
)
_INCLUDE = re.compile(r'<p>\s*<a\b[^<>]*class="[^"]*\binclude\b[^"]*"[^<>]*>[^<>]*</a>\s*</p>')
_ADMONITION = re.compile(
    r'<div class="admonitionblock (\w+)">\s*<table>\s*<tr>\s*<td class="icon">.*?</td>\s*<td class="content">(.*?)</td>'
    r"\s*</tr>\s*</table>",
    re.DOTALL,
)
_OPTIONS = (
    "showtitle", "experimental", "icons=font", "toc!", "sectnums!", "table-caption!", "figure-caption!",
    "example-caption!",
)  # fmt: skip
_FOOTNOTES = re.compile(r'<div id="footnotes">.*\Z', re.DOTALL)
_FOOTNOTE = re.compile(r'<div class="footnote"')


def read_asciidoc(file: RawFile) -> tuple[str, list[Block]]:
    """The title ("" if it has none) and the blocks of a text."""
    program = find_program("asciidoctor")
    if program is None:
        raise FormatError(f"{file.where}: only asciidoctor reads it: {INSTALL['asciidoctor']}")
    options = [part for option in _OPTIONS for part in ("-a", option)]
    arguments = ["-S", "secure", "--embedded", *options, "-o", "-", "-"]
    page = run_program([program, *arguments], decode_text(file.data, file.where).encode(), file.where)
    for notes in _FOOTNOTES.finditer(page):
        file.dropped["footnote"] += len(_FOOTNOTE.findall(notes[0]))
    page, include_count = _INCLUDE.subn("", page)
    file.dropped["included file"] += include_count
    page = _ADMONITION.sub(_admonition, page)
    return html_blocks(_NO_TEXT.sub("", _FOOTNOTES.sub("", page)), file.dropped, location=file.where)


def _admonition(block: re.Match[str]) -> str:
    """A note or a warning as docutils writes it, which is no table."""
    return f'<div class="admonition"><p class="admonition-title">{block[1].title()}</p>{block[2]}'
