"""Blocks from HTML: the main content of a page, found by its structure."""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from rag.base.errors import FormatError
from rag.documents import navigation as nav
from rag.documents.blocks import Block, Kind
from rag.documents.exponents import write_scripts
from rag.documents.hidden import find_hidden, find_panels
from rag.documents.normalize import squeeze
from rag.documents.titles import is_generic, names_page, page_title
from rag.documents.walk import Page

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode

# What is removed, with as few selectors as can be, as each is tried on every element.
_REMOVED = """
    script, style, template, svg, select, img, rp, rt, del, s, strike,
    annotation, annotation-xml, sup:is(.reference, .footnote-ref), span:is(.permalink, .backrefs), label.ocn,
    a:is(.headerlink, .permalink, .anchorjs-link, .copiable-link, .copiable-anchor, .footnote-reference, .footnote-ref),
    a:is(.footnote-backref, .fn-backref, [name^="DOCF"], [id^="DOCF"], [href*="#DOCF"]),
    .linenos, .lineno, .linenodiv, .gutter, .mw-editsection, .viewcode-link, .viewcode-back,
    .previous_page, .next_page, .toc_page, [role=tooltip], .tooltip, .tooltiptext,
    .jp-InputPrompt, .jp-OutputPrompt, .input_prompt, .output_prompt, :is(.nbinput, .nboutput) > .prompt,
    .method-click-advice, div.title > span.mlabels, aside.footnote > span.label
"""
_MENUS = "div.header:has(> div.headertitle) > div.summary, div.title > div.ingroups"  # as Doxygen makes them
# As Doxygen and Sphinx make them, and MkDocs, whose other pages have a dialogue for searching outside of the text.
_SEARCH = "body.SRPage, h1#search-documentation, [role=main] #mkdocs-search-results, main #mkdocs-search-results"
_LISTING = ".fragment a[name=l00001], .fragment a#l00001, a.viewcode-back"
_DETAILS = 'a[href$="#details"], td.mdescRight a[href]'
_REFRESH = "meta[http-equiv=refresh i]"
# Shops set apart by style alone what is one word for us: `<span>Latte</span><span class="price">3.40</span>`.
_BLOCK_SEPARATOR = (
    'span + span:is([class*=price], [class*=amount], .value, [class$="-value"]), span[itemprop] + span[itemprop], '
    'span:is(.label, [class$="-label"]) + span, span.selected-value + span.selected-value, a + a.button'
)
# Boxes of tasks, as GitHub, Notion and Confluence write them, and of forms if they are filled in.
_BOXES = "li input[type=checkbox][disabled], li > div.checkbox, li[data-inline-task-id]"
# Boxes in others than these are switches of pages, which are drawn as tabs.
_FORM_BOXES = ":is(p, td, li, dd, label) > input:is([type=checkbox], [type=radio])"
_CHECKED = "input[checked]"
_TABS, _HIDDEN, _SIGNS = '[role="tab"]', "span > span[hidden]:last-child", "td > img[alt]"
TITLE = "document-title"  # class of a heading that is one by the style of an office file
MAX_DEPTH = 20_000  # elements in one another; the parser's time grows with the square of it
_TAG = re.compile(r"<(/?)([a-zA-Z][\w:-]*+)[^<>]*+(?<!/)>")  # of what has an end
_HEADINGS = frozenset(["h1", "h2", "h3", "h4", "h5", "h6", "dt", "summary"])
_WHOLE = frozenset(["body", "main", "article"])  # never removed for their class
_VOID = frozenset("area base br col embed hr img input link meta param source track wbr".split())
# Elements that need no end tag.
_OPEN = _VOID | frozenset(
    "p li dt dd tr td th thead tbody tfoot colgroup caption option optgroup rt rp html head body".split()
)
_MIN_MAIN_WORDS = 20  # words of a page's main element from which on it is taken, whatever stands around it
# Elements that XHTML may close in themselves, where HTML takes all that follows for their text.
_SWALLOWS = re.compile(
    # Most tags do not begin with two of these letters.
    r"<(?=[instx][cefimot])(iframe|script|style|title|textarea|noframes|noembed|noscript|xmp)\b([^<>]*)/>",
    re.IGNORECASE,
)
_EMPTY = re.compile(r"<([a-z][\w:-]*+)([^<>]*)/>")
_XHTML = 'xmlns="http://www.w3.org/1999/xhtml"'
_MARK = re.compile(r"\s*(?:yes|no|none|true|false|partly|partial|included|not included|[✓✔✗✘])\s*", re.IGNORECASE)
_NOTES = r"aside[epub\:type~=footnote], aside[role=doc-footnote], aside[epub\:type~=endnote], aside[role=doc-endnote]"
_NOTE_MARKS = r'sup > a[href*="#"], a[href*="#"] > sup, a[epub\:type~=noteref], a[role=doc-noteref]'
# What few pages have of these, all are searched for at once: each search goes through all elements.
_CHANGED = ", ".join([_TABS, "button", _HIDDEN, _SIGNS, _BLOCK_SEPARATOR, _BOXES, _CHECKED])
_LEFT_OUT = ", ".join([_MENUS, _NOTES, _NOTE_MARKS, _DETAILS])
_NO_TEXT = ", ".join([_REFRESH, _SEARCH, _LISTING])
_NOTE_MARK = re.compile(r"\s*[\[(]?(?:\d{1,4}|[a-z]|[*†‡§¶]{1,3})[\])]?\s*")
_WORDS = re.compile(r"\w+")
_QUESTION_WORDS = 3  # of a button that is no `Show more`
_BREAK = re.compile(r"<br\b[^<>]*>", re.IGNORECASE)


def _check_nesting(text: str, location: str) -> None:
    """Raise `FormatError` for a page whose elements nest deeper than `MAX_DEPTH`, before it is parsed."""
    if text.count("<") - text.count("</") <= MAX_DEPTH:
        return
    depth = 0
    for tag in _TAG.finditer(text):
        end, name = tag.groups()
        if name.lower() not in _OPEN:
            depth = max(0, depth - 1) if end else depth + 1
            if depth > MAX_DEPTH:
                raise FormatError(f"{location}: its elements are nested more than {MAX_DEPTH:,} deep")


def html_blocks(
    text: str,
    omissions: Counter[str],
    name: str = "",
    location: str = "",
    change: "Callable[[LexborNode], None] | None" = None,
) -> tuple[str, list[Block]]:
    """The title ("" if there is none) and the blocks of a page; what is left out is counted in `omissions`.

    `change` is called with the body before it is read. Raises `FormatError`, which begins with `location` (default:
    the name), for elements that nest without end.
    """
    from selectolax.lexbor import LexborHTMLParser

    _check_nesting(text, location or name)
    tree = LexborHTMLParser(_BREAK.sub("<br>\n", _open_tags(text)))
    if tree.body is None:
        if tree.css_first("frameset") is not None:
            omissions[nav.FRAMES] += 1
        return "", []
    if (reason := _no_text(tree)) is not None:
        omissions[reason] += 1
        return "", []
    if change is not None:
        change(tree.body)
    tabs: dict[str, str] = {}
    panels: dict[int, LexborNode] = {}
    if tree.body.css_first(_CHANGED) is not None:
        tabs = _tab_labels(tree.body)
        panels = find_panels(tree.body)
        _change(tree.body, panels)
    for node in reversed(find_hidden(tree.body, panels)):  # the innermost first
        if not (node.tag == "a" and _holds_heading(node)):
            omissions[nav.HIDDEN] += bool(_WORDS.search(node.text()))
            node.decompose()
    for node in tree.body.css(_REMOVED):
        if node.tag not in _WHOLE and not (node.tag == "a" and _holds_heading(node)):
            node.decompose()
    if tree.body.css_first(_LEFT_OUT) is not None:
        _leave_out(tree.body, omissions)
    write_scripts(tree.body)
    page = Page(omissions, name=name, tabs=tabs)
    page.walk(_main(tree))
    blocks = page.finish()
    title, parent_link = tree.css_first("title"), tree.css_first('link[rel="up"], link[rel="home"], link[rel="start"]')
    parent_title = (parent_link.attributes.get("title") or "") if parent_link is not None else ""
    if title is None and _are_sections(blocks) and tree.css_first(f"h1.{TITLE}") is None:
        return "", blocks
    own_title = page_title(title.text() if title is not None else "", page.headings, parent_title)
    if is_generic(own_title) and names_page(name):
        own_title = ""  # so it is called as its file
    return own_title, list(_drop_title(blocks, own_title))


def _holds_heading(link: "LexborNode") -> bool:
    """Whether a link has a heading in it or holds all words of the one around it, as some sites link to headings."""
    if link.css_first("h1, h2, h3, h4, h5, h6") is not None:
        return True
    parent = link.parent
    if parent is None or parent.tag not in _HEADINGS:
        return False
    words = _WORDS.findall(link.text())
    return bool(words) and words == _WORDS.findall(parent.text())


def _change(body: "LexborNode", panels: "dict[int, LexborNode]") -> None:
    """Say in words what a page shows by its looks."""
    _take_buttons(body, panels)
    _choose_words(body)
    for node in body.css(_SIGNS):
        mark = node.attributes["alt"] or ""
        if _MARK.fullmatch(mark) and node.parent is not None and not node.parent.text().strip():
            node.replace_with(mark)
    for node in body.css(_BLOCK_SEPARATOR):
        if node.prev is not None and node.prev.tag == node.tag:
            node.insert_before(" ")
    for node in body.css(_BOXES if body.css_first(_CHECKED) is None else f"{_BOXES}, {_FORM_BOXES}"):
        if node.tag != "input" or node.parent is None or node.parent.tag != "label" or node.parent.text().strip():
            _show_box(node)


def _leave_out(body: "LexborNode", omissions: Counter[str]) -> None:
    """Remove menus and notes, which are counted, and links to them."""
    for node in body.css(_MENUS):
        omissions[nav.NAVIGATION] += 1
        node.decompose()
    _take_notes(body, omissions)
    for link in body.css(_DETAILS):
        if link.text() == "More...":
            link.decompose()


def _tab_labels(body: "LexborNode") -> dict[str, str]:
    """The labels of tabs that are no headings, by the ids of the tabs and of the panels that they show."""
    labels: dict[str, str] = {}
    for tab in body.css(_TABS):
        previous = tab.parent
        if tab.css_first("h1, h2, h3, h4, h5, h6") is not None or (previous is not None and previous.tag in _HEADINGS):
            continue
        for name in (tab.attributes.get("id"), tab.attributes.get("aria-controls")):
            if name:
                labels[name] = squeeze(tab.text())
    return labels


def _take_buttons(body: "LexborNode", panels: "dict[int, LexborNode]") -> None:
    """Remove buttons but those that are all of a heading or one themselves: a click on a question shows its answer."""
    heading_words: dict[int, list[str]] = {}  # the words of headings, which may have many buttons
    for button in body.css("button"):
        previous = button.parent
        while previous is not None and previous.tag in ("span", "div", "b", "strong"):
            previous = previous.parent
        is_kept = "accordion" in (button.attributes.get("class") or "").split()
        if not is_kept and previous is not None and previous.tag in _HEADINGS:
            if previous.mem_id not in heading_words:
                heading_words[previous.mem_id] = _WORDS.findall(previous.text())
            is_kept = heading_words[previous.mem_id] == _WORDS.findall(button.text())
        if is_kept:
            button.unwrap()
        elif button.mem_id in panels and len(button.text().split()) >= _QUESTION_WORDS:
            continue  # as the summary of details
        else:
            button.decompose()


def _choose_words(body: "LexborNode") -> None:
    """Show the last of words that are all hidden until a script chooses one: `Command` or `Ctrl`."""
    for last in body.css(_HIDDEN):
        previous = last.parent
        words = [*previous.iter(include_text=True)] if previous is not None else []
        lines = [word for word in words if word.tag != "-text" or word.text().strip()]
        if len(lines) > 1 and all(item.tag == "span" and "hidden" in item.attributes for item in lines):
            del last.attrs["hidden"]


def _take_notes(body: "LexborNode", omissions: Counter[str]) -> None:
    """Remove footnotes of books, which are counted, and the numbers in the text that lead to notes."""
    for note in body.css(_NOTES):
        omissions["footnote"] += 1
        note.decompose()
    for mark in body.css(_NOTE_MARKS):
        if _NOTE_MARK.fullmatch(mark.text()):
            mark.decompose()


def _show_box(node: "LexborNode") -> None:
    """Say whether a task of a list is done, as Markdown does."""
    names = (node.attributes.get("class") or "").split()
    box = "[x] " if "checked" in node.attributes or "checked" in names or "checkbox-on" in names else "[ ] "
    if node.tag != "li":
        node.replace_with(box)
    elif (first := node.child) is not None:
        first.insert_before(box)


def _are_sections(blocks: list[Block]) -> bool:
    """Whether several headings have the top rank, and none of them is a title that stands above all others."""
    headings = [position for position, block in enumerate(blocks) if block.kind is Kind.HEADING]
    top = min((blocks[position].level for position in headings), default=0)
    positions = [position for position in headings if blocks[position].level == top]
    # A first one without text above it, and before the next, is a title.
    return len(positions) > 1 and not (positions[0] == headings[0] == 0 and positions[1] == 1)


def _open_tags(text: str) -> str:
    """The page without elements that close in themselves, which HTML knows only for a few."""
    text = _SWALLOWS.sub(r"<\1\2></\1>", text)
    if _XHTML not in text[:4096]:
        return text
    return _EMPTY.sub(lambda tag: tag[0] if tag[1] in _VOID else f"<{tag[1]}{tag[2]}></{tag[1]}>", text)


def _no_text(tree: "LexborHTMLParser") -> str | None:
    """Why a page says nothing by itself: it redirects, searches, or lists a file of source code; else None."""
    if tree.css_first(_NO_TEXT) is None:
        return None
    if _redirects(tree):
        return nav.REDIRECT
    if tree.css_first(_SEARCH) is not None:
        return nav.SEARCH
    return nav.LISTING if tree.css_first(_LISTING) is not None else None


def _redirects(tree: "LexborHTMLParser") -> bool:
    """Whether a page only sends the browser to another one."""
    refresh = tree.css_first(_REFRESH)
    if refresh is None or (refresh.parent is not None and refresh.parent.tag == "noscript"):
        return False
    delay, _, target = (refresh.attributes.get("content") or "").partition(";")
    return delay.strip() in ("0", "1", "2", "3", "4", "5") and "url" in target.lower()


def _main(tree: "LexborHTMLParser") -> "LexborNode":
    body = tree.body
    assert body is not None
    elements = body.css("main, [role=main]")
    if len(elements) == 1:
        text = elements[0].text()
        if len(text.split()) >= _MIN_MAIN_WORDS or len(text) > 0.2 * len(body.text()):
            return elements[0]
    return body


def _drop_title(blocks: list[Block], title: str) -> Iterator[Block]:
    """The blocks without a first heading that only words the title differently."""
    words = set(_WORDS.findall(title.casefold()))
    first = True
    for block in blocks:
        if block.kind is Kind.HEADING and first:
            first = False
            part = set(_WORDS.findall(block.text.casefold()))
            if block.level == 1 and words and (part <= words or words <= part):
                continue
        yield block
