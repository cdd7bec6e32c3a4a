"""Raised and lowered signs as characters, so that 10 to the sixth does not become 106.

Digits have characters of their own (`10⁶`, `log₂8`), which say no more than the page: a mark of a note stays one. Other
exponents stand behind `^`, indexes behind `_`, as in formulas of other formats.
"""

import re
from typing import TYPE_CHECKING

from rag.documents.normalize import squeeze

if TYPE_CHECKING:
    from selectolax.lexbor import LexborNode

_SCRIPTS = "sup, sub, msup, msub, msubsup, mfrac"
_RAISED = str.maketrans("0123456789+-−–=()", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁻⁼⁽⁾")
_LOWERED = str.maketrans("0123456789+-−–=()", "₀₁₂₃₄₅₆₇₈₉₊₋₋₋₌₍₎")
_NUMBER = re.compile(r"[+−–-]?\d{1,4}(?:[,–-] ?\d{1,4}){0,9}[+−–-]?")
_TERM = re.compile(r"[(+−–-]?\w{1,20}(?: ?[()+−–*/·×.^-]{1,2} ?\w{1,20}){0,3}\)?")
_BASE = re.compile(r"(?:\d|\)|\b[^\W\d_A-Z])\Z")  # before an exponent that is no number: 10, (a + b), n
_INDEXED = re.compile(r"(?:[\d)]|\b[^\W\d_])\Z")
_ENDING = re.compile(r"st|nd|rd|th|[a-h]|er|ère|ème|me|re|os?|as?|tm|sm|mc|r", re.IGNORECASE)  # 1st, 2e, and of notes
_MATH = frozenset(["msup", "msub", "msubsup", "mfrac"])


def write_scripts(body: "LexborNode") -> None:
    """Write what stands above or below the line of a page as characters on it."""
    nodes = [
        node
        for element in body.css(_SCRIPTS)
        for node in ([*element.iter()][1:] if element.tag in _MATH else [element])
    ]
    for node in reversed(nodes):  # the innermost first
        text = squeeze(node.text())
        parent = node.parent.tag if node.parent is not None else ""
        if parent == "mfrac":
            content = f"/{_in_brackets(text)}"
        elif parent in _MATH:
            is_above = parent == "msup" or (parent == "msubsup" and node.next is None)
            content = _number(text, is_above=is_above) or f"{'^' if is_above else '_'}{_in_brackets(text)}"
        elif node.tag == "sup":
            content = exponent(text, _before(node))
        else:
            content = index(text, _before(node), _after(node))
        if content:
            node.replace_with(content)
    if nodes:
        body.merge_text_nodes()


def exponent(text: str, before: str) -> str:
    """A raised text as characters; "" if it can stay as it is: `1st`, or a mark of a note that is no number."""
    if number := _number(text, is_above=True):
        return number
    if _TERM.fullmatch(text) and not _ENDING.fullmatch(text) and _BASE.search(before):
        return f"^{_in_brackets(text)}"
    return ""


def index(text: str, before: str, after: str) -> str:
    """A lowered text as characters; "" if nobody reads it as a part of what stands around it: `H2O`, `Vmax`."""
    if before[-1:].isdigit() or before.endswith(("/", "⁄")) or (after[:1].isdigit() and text[-1:].isdigit()):
        return _number(text, is_above=False)
    is_term = _TERM.fullmatch(text) and not text.isalnum()
    return f"_{_in_brackets(text)}" if is_term and _INDEXED.search(before) else ""


def _number(text: str, *, is_above: bool) -> str:
    return text.translate(_RAISED if is_above else _LOWERED) if _NUMBER.fullmatch(text) else ""


def _in_brackets(text: str) -> str:
    return text if text.isalnum() else f"({text})"


def _before(node: "LexborNode") -> str:
    return (node.prev.text() if node.prev is not None else "").rstrip("\n")


def _after(node: "LexborNode") -> str:
    return node.next.text() if node.next is not None else ""
