"""What a page hides: text that nobody sees goes; answers that a click shows stay."""

import re
from typing import TYPE_CHECKING

from rag.documents import navigation as nav

if TYPE_CHECKING:
    from selectolax.lexbor import LexborNode

_HIDDEN = (
    "[hidden], [aria-hidden=true], [style*=display i], [style*=visibility i], [style*=font-size i], "
    "[role=dialog], [role=alertdialog], [aria-modal=true]"
)
_OPENERS = "button[aria-controls][aria-expanded], [role=button][aria-controls][aria-expanded]"
# Not `opacity`, and nothing that is animated: such text appears when one scrolls to it.
_UNSEEN = re.compile(r"display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse)", re.IGNORECASE)
_NO_SIZE = re.compile(r"font-size\s*:\s*0+(?:\.0*)?(?:px|r?em|pt|%)?\s*(?:!important\s*)?(?:;|\Z)", re.IGNORECASE)
_FOLDED = re.compile(r"accordion|answer|collaps|expand|faq|folded|panel|spoiler|toggle|(?:^|[ _-])tab(?:$|[ _-])")
_CONTENT = "h1, main, [role=main], math"  # a formula is hidden behind its picture


def find_hidden(body: "LexborNode", panels: "dict[int, LexborNode]") -> "list[LexborNode]":
    """The elements that attributes hide, and dialogs, in order; without the `panels` that fold out."""
    ids = {panel.attributes.get("id") for panel in panels.values()}
    nodes = [node for node in body.css(_HIDDEN) if node.attributes.get("id", "") not in ids and _is_hidden(node)]
    content_ids = _around_content(body) if nodes else set()
    return [node for node in nodes if node.mem_id not in content_ids]


def _around_content(body: "LexborNode") -> set[int]:
    """The memory ids of what nobody hides for good: the elements around titles, main parts and formulas."""
    ancestors: set[int] = set()
    for content in body.css(_CONTENT):
        node: LexborNode | None = content
        while node is not None and node.mem_id not in ancestors:
            ancestors.add(node.mem_id)
            node = node.parent
    return ancestors


def find_panels(body: "LexborNode") -> "dict[int, LexborNode]":
    """The parts of a page that buttons fold out, by the memory ids of the buttons; menus are none."""
    openers = body.css(_OPENERS)
    by_id = {node.attributes.get("id"): node for node in body.css("[id]")} if openers else {}
    return {
        opener.mem_id: panel
        for opener in openers
        if (panel := by_id.get(opener.attributes.get("aria-controls"))) is not None and not _is_menu(panel)
    }


def _is_menu(panel: "LexborNode") -> bool:
    names = f"{panel.attributes.get('class') or ''} {panel.attributes.get('id') or ''}".lower()
    return (
        panel.tag in ("nav", "ul", "form", "dialog")
        or nav.suspicious(names)
        or nav.reason_by_name(names, panel.attributes.get("role")) is not None
        or panel.attributes.get("role") in ("menu", "listbox", "dialog")
    )


def _is_hidden(node: "LexborNode") -> bool:
    attributes = node.attributes
    if node.tag in ("body", "main", "article"):
        return False
    if attributes.get("role") in ("dialog", "alertdialog") or "aria-modal" in attributes:
        return True
    if attributes.get("role") in ("tabpanel", "region") or (attributes.get("hidden") or "").lower() == "until-found":
        return False
    if "hidden" in attributes:
        return True
    style = attributes.get("style") or ""
    if _NO_SIZE.search(style) and next(node.iter(), None) is None:
        return True  # elements inside may have a size of their own, as in mails
    is_unseen = _UNSEEN.search(style) is not None and "animation" not in style
    names = f"{attributes.get('class') or ''} {attributes.get('id') or ''}".lower()
    return (is_unseen or attributes.get("aria-hidden") == "true") and not _FOLDED.search(names)
