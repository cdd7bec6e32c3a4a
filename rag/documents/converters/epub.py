"""Blocks from e-books: the pages of an .epub in the order of reading."""

import posixpath
import xml.etree.ElementTree as ET
import zipfile
from collections import Counter
from urllib.parse import unquote

from autoais.base.errors import first_line
from rag.base.errors import FormatError
from rag.documents import navigation as nav
from rag.documents.archives import open_zip, read_member
from rag.documents.blocks import Block, Kind, heading
from rag.documents.encodings import decode_text
from rag.documents.main_content import html_blocks
from rag.documents.normalize import squeeze
from rag.documents.raw_file import RawFile

_CONTAINER = "META-INF/container.xml"


def read_epub(file: RawFile) -> tuple[str, list[Block]]:
    """The title of a book ("" if it has none) and its blocks."""
    with open_zip(file.data, file.where) as archive:
        if "META-INF/encryption.xml" in archive.namelist() and _is_locked(archive, file.where):
            raise FormatError(f"{file.where}: protected against copying (DRM), so it cannot be read")
        package = _package(archive, file.where)
        root = _xml(archive, package, file.where)
        title = next((squeeze(node.text or "") for node in root.iter() if _tag(node) == "title"), "")
        blocks: list[Block] = []
        for path in dict.fromkeys(_spine(root, package, file.dropped)):
            page_location = f"{file.where}/{' '.join(path.split())}"
            text = decode_text(read_member(archive, path, file.where), page_location, markup=True)
            name, page = html_blocks(text, file.dropped, location=page_location)
            if page and page[0].kind is not Kind.HEADING and name and name != title:
                blocks.append(heading(name, 1))
            blocks += page
    return title, blocks


def _is_locked(archive: zipfile.ZipFile, location: str) -> bool:
    """Whether more than the fonts is encrypted."""
    text = read_member(archive, "META-INF/encryption.xml", location).lower()
    return b"html" in text


def _package(archive: zipfile.ZipFile, location: str) -> str:
    root = _xml(archive, _CONTAINER, location)
    for node in root.iter():
        if _tag(node) == "rootfile" and (path := node.get("full-path")):
            return path
    raise FormatError(f"{location}: broken: {_CONTAINER} names no book")


def _spine(root: ET.Element, package: str, omissions: Counter[str]) -> list[str]:
    """The paths of the pages in the order of reading, without the table of contents."""
    folder = posixpath.dirname(package)
    items: dict[str, ET.Element] = {}
    for node in root.iter():
        if _tag(node) == "item" and (key := node.get("id")):
            items[key] = node
    paths = []
    for node in root.iter():
        item = items.get(node.get("idref") or "") if _tag(node) == "itemref" else None
        if item is None or not (item.get("media-type") or "").endswith(("html+xml", "html")):
            continue
        if "nav" in (item.get("properties") or "").split():
            omissions[nav.CONTENTS] += 1
            continue
        paths.append(posixpath.normpath(posixpath.join(folder, unquote((item.get("href") or "").partition("#")[0]))))
    return paths


def _xml(archive: zipfile.ZipFile, name: str, location: str) -> ET.Element:
    try:
        return ET.fromstring(decode_text(read_member(archive, name, location), location, markup=True))
    except ET.ParseError as error:
        raise FormatError(f"{location}: broken: {name!r}: {first_line(error)}") from error


def _tag(node: ET.Element) -> str:
    return node.tag.rpartition("}")[2] if isinstance(node.tag, str) else ""
