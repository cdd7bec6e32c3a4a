"""Blocks from Mallard, the XML that the help of GNOME's programs is written in, by way of HTML.

As of DocBook, nothing else is read: what a page includes from other files is missing.
"""

import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterator
from html import escape

from rag.documents import navigation as nav
from rag.documents.blocks import Block, squeezed
from rag.documents.docbook import parsed
from rag.documents.encodings import decoded
from rag.documents.html import html_blocks

_NAMESPACE = b"http://projectmallard.org/1"
_HTML = {
    "item": "li", "list": "ul", "quote": "blockquote", "steps": "ol", "table": "table", "tbody": "tbody", "td": "td",
    "tfoot": "tbody", "th": "th", "thead": "thead", "tr": "tr", "tree": "ul",
}  # fmt: skip
_CODE = frozenset(["code", "screen", "synopsis"])
_SEQUENCES = {"guiseq": " -> ", "keyseq": "+"}
_NO_TEXT = frozenset(["comment", "include", "info", "links", "rules", "thumb", "tt"])
_STYLES = frozenset(["advanced", "bug", "important", "tip", "warning"])  # of notes


def is_mallard(head: bytes) -> bool:
    """Whether the beginning of a file is that of a page of Mallard."""
    return _NAMESPACE in head.replace(b"\0", b"")  # also in UTF-16


def mallard_blocks(data: bytes, where: str, name: str, dropped: Counter[str]) -> tuple[str, list[Block]]:
    """The title ("" if there is none) and the blocks of a page."""
    root = parsed(decoded(data, where, markup=True), where)
    _name_links(root)
    title = _title(root)
    page = "".join(_content(root, 1, dropped))
    _, blocks = html_blocks(f"<!DOCTYPE html><body>{page}</body>", dropped, name, where)
    return title, blocks


def _name_links(root: ET.Element) -> None:
    """Give links without a text that of the title that they lead to in the page."""
    titles = {f"#{node.get('id')}": node.find("title") for node in root.iter() if node.get("id")}
    for link in root.iter("link"):
        if (title := titles.get(link.get("xref", ""))) is not None and not _said(link).strip():
            link.text = _text(title)


def _title(node: ET.Element) -> str:
    """The title of an element, which it loses; "" if there is none."""
    title = node.find("title")
    if title is None:
        return ""
    node.remove(title)
    return _text(title)


def _text(node: ET.Element) -> str:
    return squeezed(_said(node))


def _said(node: ET.Element) -> str:
    """The text of an element without that of images and comments."""
    return "".join([node.text or "", *(text for child in node for text in (_inline(child), child.tail or ""))])


def _inline(node: ET.Element) -> str:
    """The text of an element in a line."""
    if node.tag in _SEQUENCES:
        sign = " " if node.get("type") == "sequence" else _SEQUENCES[node.tag]
        return sign.join(filter(None, map(_text, node)))
    if node.tag == "link":
        return _said(node) or node.get("xref") or node.get("href") or ""
    return "" if node.tag == "media" or node.tag in _NO_TEXT or not _is_for_all(node) else _said(node)


def _content(node: ET.Element, depth: int, dropped: Counter[str]) -> Iterator[str]:
    """The HTML of what is in a block; `depth` is the number of sections around it."""
    yield escape(node.text or "", quote=False)
    for child in node:
        yield from _element(child, depth, dropped)
        yield escape(child.tail or "", quote=False)


def _element(node: ET.Element, depth: int, dropped: Counter[str]) -> Iterator[str]:
    tag = node.tag
    if tag in _NO_TEXT or not _is_for_all(node):
        return
    if tag == "section":
        yield _tagged(f"h{min(depth + 1, 6)}", _title(node))
        yield from _content(node, depth + 1, dropped)
    elif tag in ("p", "title"):
        yield _tagged("p", _text(node), "title" if tag == "title" else "")
    elif tag in _CODE:
        yield f"<pre>\n{escape(''.join(node.itertext()), quote=False)}</pre>"
    elif tag == "terms":
        yield _tagged("p", _title(node), "title")
        for item in node:
            terms = [_text(term) for term in item.findall("title")]
            while _title(item):
                pass
            yield from ("<dl>", *(_tagged("dt", term) for term in terms), "<dd>")
            yield from _content(item, depth, dropped)
            yield "</dd></dl>"
    elif tag == "note":
        style = next((style for style in (node.get("style") or "").split() if style in _STYLES), "note")
        yield _tagged("p", _title(node) or style.capitalize(), "admonition-title")
        yield from _content(node, depth, dropped)
    elif tag in ("figure", "media"):
        dropped[nav.FIGURE] += not (text := squeezed("".join(node.itertext())))
        yield _tagged("figcaption", text)
    elif tag == "choose":
        branch = next((part for part in node if part.tag in ("else", "when") and _is_for_all(part)), None)
        if branch is not None:
            yield from _content(branch, depth, dropped)
    elif name := _HTML.get(tag, ""):
        yield from _block(node, "ol" if tag == "list" and node.get("type") == "numbered" else name, depth, dropped)
    elif tag in _SEQUENCES or tag == "link":
        yield escape(_inline(node), quote=False)
    else:
        yield from _content(node, depth, dropped)


def _block(node: ET.Element, name: str, depth: int, dropped: Counter[str]) -> Iterator[str]:
    """A block, below its title."""
    yield _tagged("p", _title(node), "title")
    if name == "thead":
        for cell in node.iter("td"):
            cell.tag = "th"
    yield f'<{name} colspan="{escape(node.get("colspan", "1"))}" rowspan="{escape(node.get("rowspan", "1"))}">'
    yield from _content(node, depth, dropped)
    yield f"</{name}>"


def _tagged(tag: str, text: str, name: str = "") -> str:
    return f"<{tag}{f' class={name}' if name else ''}>{escape(text, quote=False)}</{tag}>" if text else ""


def _is_for_all(node: ET.Element) -> bool:
    """Whether an element is no text for one system alone, such as `platform:gnome-classic`."""
    return (node.get("test") or "!").startswith("!")
