"""Blocks from DocBook, the XML that manuals of KDE and many other programs are written in, by way of HTML.

Nothing else is read: no DTD, no other file. Entities are never expanded by the parser, as it does not know them.
"""

import re
import unicodedata
import xml.etree.ElementTree as ET
from collections import Counter
from html.entities import entitydefs, html5
from xml.parsers import expat

from autoais.base.errors import first_line
from rag.base.errors import FormatError
from rag.documents.blocks import Block
from rag.documents.docbook_html import SECTIONS, page_of, titles_of
from rag.documents.encodings import decoded
from rag.documents.html import html_blocks

DEEPEST = 100  # elements in one another
_DOCTYPE = re.compile(rb"<!DOCTYPE\s+(?:[\w.-]+:)?([\w.-]+)([^>\[]*)")
_TAG = re.compile(rb"<(?:[\w.-]{1,40}:)?([a-zA-Z][\w.-]{0,40})(?=[\s/>])")
_NAMESPACE = b"http://docbook.org/ns/docbook"
_ROOTS = frozenset(
    b"""
    appendix article book chapter glossary part preface qandaset refentry reference refsect1 sect1 sect2 sect3 sect4
    sect5 section set simplesect topic
    """.split()
)
_SIGN = re.compile(rb"<(?:para|simpara|formalpara|sect1|bookinfo|articleinfo|refmeta|refnamediv)\b")
_ALL = b"fragment"  # around a chapter that lies in a file of its own, which may be several elements
_REFERENCE = re.compile(r"&([\w.-]{1,60});")
_WORDS = {"eg": "e.g.", "etc": "etc.", "ie": "i.e."}  # of KDE
_JOINED = frozenset(["keycombo", "menuchoice"])  # whose parts are elements, for which entities stand
_MARKUP = re.compile(r"<[^<>]*>")
_LONGEST = 10_000  # characters of what an entity stands for
_LONGEST_INSIDE = 200  # of one inside of another
_MOST = 1_000_000  # characters that entities stand for in a document


def is_docbook(head: bytes) -> bool:
    """Whether the beginning of an XML file is that of a DocBook document."""
    if _NAMESPACE in head:
        return True
    doctype = _DOCTYPE.search(head)
    if doctype is not None and b"docbook" in doctype[2].lower():
        return True
    root = doctype or _TAG.search(head)
    return root is not None and root[1] in _ROOTS and _SIGN.search(head) is not None


def docbook_blocks(data: bytes, where: str, name: str, dropped: Counter[str]) -> tuple[str, list[Block]]:
    """The title ("" if there is none) and the blocks of a document."""
    root = parsed(decoded(data, where, markup=True), where)
    title, page = page_of(root, titles_of(root), dropped)
    _, blocks = html_blocks(page, dropped, name, where)
    return title, blocks


def parsed(text: str, where: str) -> ET.Element:
    """The elements of XML, with entities as text; raises `FormatError` if it is broken or nested too deep."""
    data = text.encode("utf-8", "replace")
    try:
        start, entities = _prolog(data)
        # Without its document type, the text has no entities that could expand to more; its lines keep their numbers.
        lines = b"\n" * data.count(b"\n", 0, start)
        found = _tree(b"<%s>%s%s</%s>" % (_ALL, lines, data[start:], _ALL), entities, where)
    except expat.ExpatError as error:
        raise FormatError(f"{where}: broken XML: {first_line(error)}") from error
    return found[0] if len(found) == 1 else found


class _FoundRootError(Exception):
    """Ends the reading of what is before the first element, which begins at its argument."""


def _prolog(data: bytes) -> tuple[int, dict[str, str]]:
    """Where the first element begins, and what entities stand for that are declared before it."""
    parser = expat.ParserCreate("utf-8")
    entities: dict[str, str] = {}

    def declared(name: str, parameter: bool, value: str | None, *_: object) -> None:
        if not parameter:
            entities.setdefault(name, _MARKUP.sub("", value or ""))  # another file stands for nothing

    def started(*_: object) -> None:
        raise _FoundRootError(parser.CurrentByteIndex)

    parser.EntityDeclHandler = declared
    parser.StartElementHandler = started
    try:
        parser.Parse(data, True)
    except _FoundRootError as found:
        return found.args[0], entities
    raise AssertionError("a document without elements was parsed")


def _tree(data: bytes, entities: dict[str, str], where: str) -> ET.Element:
    """The elements, with their names in lower case and without prefixes."""
    parser, builder = expat.ParserCreate("utf-8"), ET.TreeBuilder()
    parser.buffer_text = True
    parser.UseForeignDTD(True)  # so that unknown entities are no errors
    said = 0
    inside: list[str] = []
    known: dict[str, str] = {}

    def start(name: str, attributes: dict[str, str]) -> None:
        inside.append(_local(name))
        if len(inside) > DEEPEST + 1:
            raise FormatError(f"{where}: its elements are nested more than {DEEPEST} deep")
        builder.start(inside[-1], {_local(key): value for key, value in attributes.items()})

    def end(name: str) -> None:
        builder.end(inside.pop())

    def skipped(name: str, parameter: bool) -> None:
        nonlocal said
        if parameter or inside[-1] in SECTIONS:  # where no text stands, it is a chapter or a licence
            return
        if name not in known:
            known[name] = _shown(name, entities)
        text = known[name] if said < _MOST else name
        said += len(text)
        if inside[-1] in _JOINED:
            builder.start("phrase", {})
            builder.data(text)
            builder.end("phrase")
        else:
            builder.data(text)

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = builder.data
    parser.SkippedEntityHandler = skipped
    parser.Parse(data, True)
    return builder.close()


def _local(name: str) -> str:
    return name.rpartition(":")[2].lower()


def _shown(name: str, entities: dict[str, str]) -> str:
    """What a reader sees of an entity: its text, a character, or else its name."""
    value = entities.get(name)
    if value is None:
        return _character(name)
    return _REFERENCE.sub(lambda inner: _plain(inner[1], entities), value[:_LONGEST])[:_LONGEST]


def _plain(name: str, entities: dict[str, str]) -> str:
    """An entity inside of another: its text if that has no further ones, else its name."""
    value = entities.get(name, "")[:_LONGEST_INSIDE] or _character(name)
    return name if "&" in value else value


def _character(name: str) -> str:
    """What a name that is not declared stands for: a letter or a punctuation mark, a usual sign, or itself."""
    sign = html5.get(f"{name};", "")
    usual = name in entitydefs or (len(sign) == 1 and unicodedata.category(sign)[0] in "LP")
    return sign if usual else _WORDS.get(name, name)
