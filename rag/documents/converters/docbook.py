"""Entities of DocBook, which pandoc does not read without its document type."""

import re
import unicodedata
from html import escape
from html.entities import entitydefs, html5

_DOCTYPE = re.compile(r"<!DOCTYPE\b[^\[>]*(?:\[.*?\]\s*)?>", re.DOTALL)
_ENTITY = re.compile(r"""<!ENTITY\s+([\w.-]+)\s+(?:"([^"]*)"|'([^']*)')\s*>""")
_REFERENCE = re.compile(r"&([\w.-]{1,60});")
_TAG = re.compile(r"<[^<>]*>")
_XML = frozenset(["amp", "lt", "gt", "quot", "apos"])
_WORDS = {"eg": "e.g.", "etc": "etc.", "ie": "i.e."}  # of KDE
_MAX_VALUE, _MAX_INNER = 10_000, 200  # characters of an entity, and of one inside of another
_MAX_TEXT = 1_000_000  # characters that the entities of a document may add


def replace_entities(text: str) -> str:
    """The XML without its document type; an entity is replaced by what it is declared as there, else by its name.

    An entity inside of another is replaced once, so nothing grows without end. Other files are never read.
    """
    prolog = _DOCTYPE.search(text)
    if prolog is None:
        values = {}
    else:
        values = {name: _TAG.sub("", double or single) for name, double, single in _ENTITY.findall(prolog[0])}
        text = text[: prolog.start()] + text[prolog.end() :]
    growth = 0

    def replace_inner(reference: re.Match[str]) -> str:
        value = values.get(reference[1], "")[:_MAX_INNER] or _character(reference[1])
        return reference[1] if "&" in value else value

    def replace(reference: re.Match[str]) -> str:
        nonlocal growth
        name = reference[1]
        if name in _XML:
            return reference[0]
        value = values.get(name)
        if value is None or growth > _MAX_TEXT:
            return escape(_character(name))
        label = _REFERENCE.sub(replace_inner, value[:_MAX_VALUE])[:_MAX_VALUE]
        growth += len(label)
        return escape(label)

    return _REFERENCE.sub(replace, text)


def _character(name: str) -> str:
    """What an entity that is not declared stands for: a letter or a sign of HTML, or its name."""
    sign = html5.get(f"{name};", "")
    is_usual = name in entitydefs or (len(sign) == 1 and unicodedata.category(sign)[0] in "LP")
    return sign if is_usual else _WORDS.get(name, name)
