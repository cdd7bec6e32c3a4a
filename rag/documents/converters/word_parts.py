"""What mammoth leaves out of Word files, or stumbles over: formulas, numbers of lists, links to what is not there."""

import io
import re
import xml.etree.ElementTree as ET
import zipfile
from collections.abc import Collection

from rag.documents.archives import open_zip, read_member
from rag.documents.blocks import Block, Kind
from rag.documents.converters.word_numbering import Numbering, attribute, read_numbering

_TEXT_PART = re.compile(r"word/((?:document|footnotes|endnotes)\d*\.xml)")
_SIGNS = {"sup": "^", "sub": "_", "den": "/"}  # of the parts of formulas
_SEPARATORS = ("separator", "continuationSeparator")  # types of notes that are lines, not text
_BEGIN, _END = "\ue0b1", "\ue0b2"  # around the number that Word shows before a paragraph: no letters of any text
_LABEL = re.compile(rf"{_BEGIN}([^{_BEGIN}{_END}]*){_END} ?")
_LABEL_OF_ITEM = re.compile(rf"(?:\d+\.|-) {_LABEL.pattern}")
_LABEL_OF_TEXT = re.compile(rf"(?<!<li>){_LABEL.pattern}")


def mend_parts(data: bytes, location: str) -> bytes:
    """The Word file with formulas as text (`E=mc^2`, `a/b`), with the numbers that Word shows before paragraphs, and
    without references to links, pictures and notes that it lacks.

    `take_labels` and `label_items` turn the numbers into text. Raises `FormatError` for a broken archive, `ParseError`
    for a broken part.
    """
    with open_zip(data, location) as archive:
        files = {file.filename: read_member(archive, file.filename, location) for file in archive.infolist()}
    parts = {name: ET.fromstring(files[name]) for name in files if _TEXT_PART.fullmatch(name)}
    numbering = read_numbering(*(_parse(files.get(f"word/{name}.xml")) for name in ("numbering", "styles")))
    notes = {_note(note) for part in parts.values() for note in part if attribute(note, "type") not in _SEPARATORS}
    for name, part in parts.items():
        links = _parse(files.get(_TEXT_PART.sub(r"word/_rels/\1.rels", name)))
        _mend(part, numbering, notes, {link.get("Id", "") for link in links})
        files[name] = ET.tostring(part, "utf-8")
    output = io.BytesIO()
    with zipfile.ZipFile(output, "w") as copy:
        for name, content in files.items():
            copy.writestr(name, content)
    return output.getvalue()


def take_labels(page: str) -> str:
    """The page of HTML with the numbers of paragraphs as their text, except for those of the items of lists."""
    return _LABEL_OF_TEXT.sub(r"\1 ", page)


def label_items(block: Block) -> Block:
    """The block with the number that Word shows in place of the one that the item of a list got."""
    if _END not in block.text:
        return block
    text = _LABEL_OF_ITEM.sub(r"\1 ", block.text, count=1) if block.kind is Kind.ITEM else block.text
    return Block(_LABEL.sub(r"\1 ", text).rstrip(), block.kind, block.level, block.page)


def _parse(content: bytes | None) -> ET.Element:
    return ET.Element("none") if content is None else ET.fromstring(content)


def _mend(root: ET.Element, numbering: Numbering, notes: Collection[tuple[str, str]], links: Collection[str]) -> None:
    space = root.tag.rpartition("}")[0] + "}"
    waiting = [(root, False)]
    while waiting:
        element, in_cell = waiting.pop()
        name = _name(element)
        for key, value in [*element.items()]:
            if key.endswith(("}id", "}embed", "}link")) and "/relationships}" in key and value not in links:
                del element.attrib[key]
        if name == "oMath":
            _as_run(element, _formula(element), space)
        elif name == "oMathPara":
            element.tag = f"{space}smartTag"
        elif name in ("footnoteReference", "endnoteReference") and _note(element) not in notes:
            element.tag = f"{space}proofErr"
        elif name == "p" and (label := numbering.next_label(element)) and (in_cell or _has_text(element)):
            run = ET.Element("r")
            _as_run(run, f"{_BEGIN}{label}{_END}", space)
            element.insert(1, run)  # below the properties, which make it a list
        children = [child for child in element if _name(child) != "Choice"]  # mammoth reads the other one of the two
        waiting += [(child, in_cell or name == "tc") for child in reversed(children)]


def _formula(formula: ET.Element) -> str:
    """The signs of a formula: those of sums and brackets are attributes, the numbers and letters elements."""
    parts = []
    for element in formula.iter():
        name = _name(element)
        parts.append(
            element.text or "" if name == "t" else attribute(element, "val") if name == "chr" else _SIGNS.get(name, "")
        )
    return "".join(parts)


def _as_run(element: ET.Element, text: str, space: str) -> None:
    """Make an element a run of text."""
    tail = element.tail
    element.clear()
    element.tag, element.tail = f"{space}r", tail
    ET.SubElement(element, f"{space}t").text = text


def _has_text(paragraph: ET.Element) -> bool:
    return any(_name(element) == "t" and (element.text or "").strip() for element in paragraph.iter())


def _note(element: ET.Element) -> tuple[str, str]:
    """The kind of a note or of a reference to one, and its number."""
    return _name(element).removesuffix("Reference"), attribute(element, "id")


def _name(element: ET.Element) -> str:
    return element.tag.rpartition("}")[2]
