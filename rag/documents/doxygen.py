"""The declarations on Doxygen's pages, which are tables, and its indexes of members."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from rag.documents import navigation as nav
from rag.documents.blocks import Block, entry, heading, item
from rag.documents.normalize import squeeze
from rag.documents.titles import clean_heading

if TYPE_CHECKING:
    from selectolax.lexbor import LexborNode

_LOOSE = re.compile(r"\s+(?=[,)])|(\()\s+")


def read_members(table: "LexborNode", omissions: Counter[str]) -> Iterator[Block]:
    """The members of a class: declarations and what they do; those of a base class stand on its own page."""
    declaration = template = ""
    is_inherited = False  # the row above, whose description may not say so
    for line in table.css("tr"):
        cells = line.css("td")
        kinds = " ".join(cell.attributes.get("class") or "" for cell in cells)
        parts = (line.attributes.get("class") or "").split()
        title = line.css_first("h1, h2, h3, h4")
        if "inherit_header" in parts:
            omissions[nav.CONTENTS] += 1
        elif "inherit" in parts:
            is_inherited = True
        elif "mdesc" in kinds and is_inherited:
            is_inherited = False
        elif "memTemplParams" in kinds:
            template = squeeze(line.text()) + " "
        elif "mdesc" in kinds and declaration:
            yield entry(declaration, squeeze(line.text()))
            declaration = ""
        else:
            is_inherited = False
            if declaration:
                yield item(declaration, 0, "-")
            declaration = f"{template}{_declaration(cells)}" if "memItem" in kinds or "memTempl" in kinds else ""
            template = ""
            if title is not None:
                yield heading(clean_heading(title.text()), int((title.tag or "h2")[1]))
            elif not declaration and (text := squeeze(line.text())):
                yield Block(text)
    if declaration:
        yield item(declaration, 0, "-")


def prototype(node: "LexborNode") -> str:
    """The declaration of a member; "" if its parts do not stand in cells."""
    table = node.css_first("table.memname")
    if table is None or len(table.css("table")) > 1:
        return ""
    before = " ".join(squeeze(part.text()) for part in node.css("div.memtemplate"))
    labels = ", ".join(squeeze(part.text()) for part in node.css("span.mlabel"))
    return f"{before} {_declaration(table.css('td'))}{f' [{labels}]' if labels else ''}".lstrip()


def _declaration(cells: "list[LexborNode]") -> str:
    return _LOOSE.sub(r"\1", squeeze(" ".join(cell.text() for cell in cells)))


def lists_members(node: "LexborNode") -> bool:
    """Whether each item of a list is a name and links to where it stands: an index of members."""
    lines = node.css("li")
    for line in lines:
        places = ", ".join(squeeze(link.text()) for link in line.css("a.el[href]"))
        if not places or squeeze(line.text()).partition(" : ")[2] != places:
            return False
    return bool(lines)
