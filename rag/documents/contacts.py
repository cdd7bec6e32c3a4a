"""Blocks from address books (.vcf): a person is a row."""

import re
from collections import Counter
from collections.abc import Iterator
from quopri import decodestring

from rag.base.errors import FormatError
from rag.documents.blocks import Block, row
from rag.documents.calendars import said, unfolded

_LINE = re.compile(r'(?:[\w-]+\.)?([\w-]+)((?:;(?:[^":]|"[^"]*")*)?):(.*)')
_QUOTED = re.compile(r"QUOTED-PRINTABLE", re.IGNORECASE)
_KIND = re.compile(r"\b(home|work|cell|mobile|fax)\b", re.IGNORECASE)
_PART = re.compile(r"(?<!\\);")
_NAMES = {
    "FN": "Name", "NICKNAME": "Nickname", "ORG": "Organisation", "TITLE": "Title", "ROLE": "Role", "TEL": "Phone",
    "EMAIL": "E-mail", "ADR": "Address", "BDAY": "Birthday", "URL": "Web", "NOTE": "Note",
}  # fmt: skip


def contact_blocks(text: str, where: str, dropped: Counter[str]) -> list[Block]:
    """The people of an address book; pictures are counted in `dropped`."""
    blocks: list[Block] = []
    person: dict[str, list[str]] = {}
    found = False
    for line in _lines(text):
        parts = _LINE.fullmatch(line)
        if parts is None:
            continue
        name, kinds, value = parts[1].upper(), parts[2], parts[3]
        if _QUOTED.search(kinds):
            value = decodestring(value.encode()).decode("utf-8", "replace").replace("\r\n", ", ")
        if name == "BEGIN" and value.strip().upper() == "VCARD":
            person, found = {}, True
        elif name == "END":
            cells = [", ".join(dict.fromkeys(person.get(key, ()))) for key in _NAMES]
            blocks += [block] if (block := row(cells, _NAMES.values())) is not None else []
            person = {}
        elif name in _NAMES:
            if shown := _shown(name, value):
                kind = _KIND.search(kinds) if name in ("TEL", "EMAIL", "ADR") else None
                person.setdefault(name, []).append(f"{shown} ({kind[1].lower()})" if kind else shown)
        elif name == "N" and (shown := " ".join(filter(None, map(said, _PART.split(value)[1::-1])))):
            person.setdefault("FN", [shown])
        else:
            dropped["picture of a person"] += name == "PHOTO"
    if not found:
        raise FormatError(f"{where}: not an address book: it has no BEGIN:VCARD")
    return blocks


def _lines(text: str) -> Iterator[str]:
    """The lines of a text, whole: quoted ones go on after an equals sign."""
    begun: list[str] = []
    for line in unfolded(text):
        if line.endswith("=") and (begun or _QUOTED.search(line)):
            begun.append(line[:-1])
        else:
            yield "".join([*begun, line])
            begun = []
    yield "".join(begun)


def _shown(name: str, value: str) -> str:
    if name in ("ADR", "ORG"):
        return ", ".join(filter(None, map(said, _PART.split(value))))
    return said(value.removeprefix("tel:").removeprefix("mailto:"))
