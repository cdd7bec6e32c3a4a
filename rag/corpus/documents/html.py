"""Blocks from HTML: the main content of a page, found by its structure.

The page is walked once, with a stack of its own because pages can nest deeper than Python recurses.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rag.corpus.documents import navigation as nav
from rag.corpus.documents.blocks import Block, Kind, code, entry, heading, item, row, squeezed
from rag.corpus.documents.tables import Cell, cells_of, is_layout
from rag.corpus.documents.text import is_prose, plain_blocks
from rag.corpus.documents.titles import clean_heading, page_title

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode

_DROPPED = frozenset(
    """
    script style noscript template svg nav footer button select option textarea input head iframe object embed applet
    audio video canvas map dialog datalist frame noframes link meta
    """.split()
)
_REMOVED = ", ".join(
    """
    script style template svg button select img rp rt [hidden] annotation annotation-xml sup.reference
    a.headerlink a.permalink a.anchorjs-link a.copiable-link a.copiable-anchor a.footnote-backref a.fn-backref
    .linenos .lineno .linenodiv .gutter .mw-editsection .viewcode-link .viewcode-back
    .previous_page .next_page .toc_page
    """.split()
)
_INLINE = frozenset(
    """
    a abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd label mark math mi mo mn mrow ms msub msup
    msubsup mfrac mtext mstyle mspace msqrt mover munder mtable mtr mtd semantics nobr output q ruby rb s samp small
    span strike strong sub sup time tt u var wbr img br
    """.split()
)
_HEADINGS = frozenset(["h1", "h2", "h3", "h4", "h5", "h6"])
_LISTS = frozenset(["ul", "ol", "menu", "dir"])
_CALLOUT = re.compile(
    r"(?:note|notes|tip|warning|caution|important|hint|danger|attention|error|info|see also|todo|remark)\W?",
    re.IGNORECASE,
)
_CAPTION_WORDS = 12  # a longer caption of a figure says something by itself
_LONGEST_ROW = 300  # characters of a row of links
_LINKS_ONLY = 0.8  # of the characters of a list or table
_BAR = re.compile(r"(?<=\S) [|>»/·•→\\] (?=\S)")
_EXAMPLES = frozenset(["example", "note", "warning", "tip", "caution", "important", "listing", "code-example"])
_NUMBERED = frozenset(["chapter", "appendix", "section", "unnumbered"])
_NUMBER = re.compile(r"^(?:\d{1,3}|[A-Z])\s+(?=[^\W\d_])")
_CHANGE = re.compile(r"(?:new|added|changed|deprecated|removed) (?:in|since) version [\w.]+\W*", re.IGNORECASE)
_QUERY = re.compile(r"[?#].*", re.DOTALL)
_BREAK = re.compile(r"<br\b[^>]*>", re.IGNORECASE)


@dataclass(slots=True)
class _List:
    """An open list: the number of the next item, or None if items have no numbers."""

    number: int | None


def html_blocks(text: str, dropped: Counter[str], name: str = "") -> tuple[str, list[Block]]:
    """The title ("" if there is none) and the blocks of a page; what is left out is counted in `dropped`."""
    from selectolax.lexbor import LexborHTMLParser

    tree = LexborHTMLParser(_BREAK.sub("<br>\n", text))
    if tree.body is None:
        if tree.css_first("frameset") is not None:
            dropped["frame sets"] += 1
        return "", []
    if _redirects(tree):
        dropped["redirects"] += 1
        return "", []
    for node in tree.body.css(_REMOVED):
        node.decompose()
    page = _Page(dropped, name)
    page.walk(_main(tree))
    blocks = page.finish()
    title, up = tree.css_first("title"), tree.css_first('link[rel="up"], link[rel="home"], link[rel="start"]')
    above = (up.attributes.get("title") or "") if up is not None else ""
    found = page_title(title.text() if title is not None else "", page.headings, above)
    return found, list(_titled(blocks, found))


def _redirects(tree: "LexborHTMLParser") -> bool:
    """Whether a page only sends the browser to another one."""
    refresh = tree.css_first("meta[http-equiv=refresh i]")
    if refresh is None:
        return False
    delay, _, target = (refresh.attributes.get("content") or "").partition(";")
    return delay.strip() in ("0", "1", "2", "3", "4", "5") and "url" in target.lower()


def _main(tree: "LexborHTMLParser") -> "LexborNode":
    body = tree.body
    assert body is not None
    found = body.css("main, [role=main]")
    if len(found) == 1 and len(found[0].text()) > 0.2 * len(body.text()):
        return found[0]
    return body


def _titled(blocks: list[Block], title: str) -> Iterator[Block]:
    """The blocks without a first heading that only words the title differently."""
    words = set(re.findall(r"\w+", title.casefold()))
    first = True
    for block in blocks:
        if block.kind is Kind.HEADING and first:
            first = False
            own = set(re.findall(r"\w+", block.text.casefold()))
            if block.level == 1 and words and (own <= words or words <= own):
                continue
        yield block


@dataclass(slots=True)
class _Page:
    """Collects blocks during the walk over a page."""

    dropped: Counter[str]
    name: str
    blocks: list[Block] = field(default_factory=list)
    headings: list[tuple[int, str]] = field(default_factory=list)
    inline: list[str] = field(default_factory=list)
    linked: int = 0  # characters of the text in `inline` that are links
    lists: list[_List] = field(default_factory=list)
    mark: str | None = None  # of the list item whose text is next
    term: str = ""  # that the next text defines
    terms: list[str] = field(default_factory=list)
    index_next: bool = False  # the next list or table is an index

    def walk(self, root: "LexborNode") -> None:
        stack: list[LexborNode | str] = [root]
        while stack:
            node = stack.pop()
            if isinstance(node, str):
                self._close(node)
                continue
            tag = node.tag or ""
            if tag == "-text":
                self.inline.append(node.text(deep=False))
            elif tag in _INLINE:
                self._inline(node, tag, stack)
            elif tag[0] != "-" and tag not in _DROPPED:
                self._open(node, tag, stack)
            elif tag in ("nav", "footer"):
                self.dropped[nav.NAVIGATION] += 1

    def finish(self) -> list[Block]:
        self._flush()
        return self.blocks

    def _inline(self, node: "LexborNode", tag: str, stack: "list[LexborNode | str]") -> None:
        if tag == "br":
            self.inline.append(" ")
        elif tag == "a" and (node.attributes.get("href") or "").strip():
            self.linked += len(node.text().strip())
            stack.extend(_children(node))
        elif node.first_child is not None:
            stack.extend(_children(node))

    def _open(self, node: "LexborNode", tag: str, stack: "list[LexborNode | str]") -> None:
        self._flush()
        if tag == "p":
            self._paragraph(node)
        elif tag in _HEADINGS:
            self._heading(node, int(tag[1]))
        elif tag in ("pre", "listing", "xmp"):
            self._code(node.text())
        elif self._left_out(node, tag):
            pass
        elif tag == "table":
            self._table(node, stack)
        elif tag in _LISTS:
            self.lists.append(_List(_start(node) if tag == "ol" else None))
            self._enter(node, "list", stack)
        elif tag == "li":
            self._item()
            self._enter(node, "li", stack)
        elif tag == "dt":
            self.terms.append(squeezed(node.text()).lstrip(": "))
        elif tag == "summary":
            self._undefined()
            self.term = squeezed(node.text())
        elif tag == "dd":
            self._define()
            self._enter(node, "dd", stack)
        elif tag in ("caption", "figcaption"):
            self._caption(node.text(), figure=tag == "figcaption")
        elif tag == "div" and self._special(node):
            pass
        else:
            self._enter(node, tag, stack)

    def _special(self, node: "LexborNode") -> bool:
        """Whether the class of a `div` says what it is: code or a title of Doxygen, the caption of a picture."""
        parts = (node.attributes.get("class") or "").split()
        if "fragment" in parts:
            self._code("\n".join(line.text().rstrip("\n") for line in node.css("div.line")) or node.text())
        elif "title" in parts and not self.headings and not self.blocks and len(node.css("div, h1, h2")) == 1:
            self._heading(node, 1)
        elif "caption" in parts:
            self._caption(node.text(), figure=True)
        else:
            return False
        return True

    def _enter(self, node: "LexborNode", end: str, stack: "list[LexborNode | str]") -> None:
        stack.append(end)
        stack.extend(_children(node))

    def _close(self, end: str) -> None:
        self._flush()
        if end == "list":
            self.lists.pop()
            self.mark = None
        elif end == "li":
            self.mark = None
        elif end in ("dd", "dl", "details"):
            if end != "dd":
                self._define()
            self._undefined()

    def _left_out(self, node: "LexborNode", tag: str) -> bool:
        """Whether an element is navigation, a table of contents or an index; counts it."""
        attributes = node.attributes
        names = f"{attributes.get('class') or ''} {attributes.get('id') or ''}".lower()
        why = nav.reason_by_name(names, attributes.get("role")) if names != " " or "role" in attributes else None
        if why and tag != "body":
            self.dropped[why] += 1
            return True
        listed = tag in _LISTS or tag in ("table", "dl")
        if listed and self.index_next:
            self.index_next = False
            self.dropped[nav.CONTENTS] += 1
            return True
        if not listed and tag not in ("aside", "header") and not nav.suspicious(names):
            return False
        if tag == "body":
            return False
        return self._links_only(node, listed=listed, certain=not listed or nav.suspicious(names))

    def _links_only(self, node: "LexborNode", *, listed: bool, certain: bool) -> bool:
        """Whether the text of an element is mostly links that are no part of what the page says."""
        links = node.css("a[href]")
        if not links:
            return False
        length = len(squeezed(node.text()))
        share = sum(len(squeezed(link.text())) for link in links) / max(1, length)
        if share < (0.5 if certain else _LINKS_ONLY):
            return False
        lead = self.blocks[-1] if self.blocks and self.blocks[-1].text.endswith(":") else None
        inside = all((link.attributes.get("href") or "").startswith("#") for link in links)
        if listed and not certain:
            if lead is not None and not inside and len(links) <= 15:
                return False
            if len(links) < 3 and not inside and self.blocks and self.blocks[-1].kind is not Kind.HEADING:
                return False
        if lead is not None and lead.kind in (Kind.TEXT, Kind.LEAD) and listed:
            self.blocks.pop()
        self.dropped[nav.CONTENTS if inside or listed else nav.NAVIGATION] += 1
        return True

    def _paragraph(self, node: "LexborNode") -> None:
        names = _names(node)
        if names:
            if "admonition-title" in names.split():
                self._undefined()
                self.term = squeezed(node.text())
                return
            if "title" in names.split():
                parent = node.parent
                self._caption(node.text(), figure=parent is not None and "figure" in _names(parent))
                return
            if (why := nav.reason_by_name(names, None)) is not None:
                self.dropped[why] += 1
                return
        text = squeezed(node.text())
        if (lines := _code_lines(node, text)) is not None:
            self._code(lines)
            return
        if len(text) < _LONGEST_ROW:
            self.linked = sum(len(link.text().strip()) for link in node.css("a[href]"))
        self._text(text)
        self.linked = 0

    def _heading(self, node: "LexborNode", level: int) -> None:
        text = clean_heading(node.text())
        names = _names(node).split()
        if not _NUMBERED.isdisjoint(names):  # Texinfo numbers without a dot
            text = _NUMBER.sub("", text, count=1)
        if not any(map(str.isalpha, text)):
            return
        if _CALLOUT.fullmatch(text):
            self.term = text
        elif level == 1 and self._elsewhere(node):
            self.dropped[nav.NAVIGATION] += 1
        elif level > 2 and (text[-1] == ":" or _in_example(node)):
            self._caption(text, figure=False)
        else:
            self._undefined()
            self.headings.append((level, text if "chapter" in names else squeezed(node.text())))
            self.blocks.append(heading(text, level))

    def _elsewhere(self, node: "LexborNode") -> bool:
        """Whether a heading is only a link to another page, as the name of a site is."""
        link = node.css_first("a[href]")
        if link is None or squeezed(link.text()) != squeezed(node.text()):
            return False
        address = link.attributes.get("href") or ""
        target = _QUERY.sub("", address)
        if not target:
            return False
        return target.rsplit("/", 1)[-1] != self.name.rsplit("/", 1)[-1]

    def _code(self, text: str) -> None:
        if is_prose(text):
            for block in plain_blocks(text, self.dropped):
                below = heading(block.text, min(6, block.level + 1))
                self.blocks.append(below if block.kind is Kind.HEADING else block)
        elif (lines := code(text)) is not None:
            self._lead_in()
            self.blocks.append(lines)

    def _lead_in(self) -> None:
        """A term or item whose first block is no text."""
        if self.term:
            self.blocks.append(entry(self.term, ""))
            self.term = ""
        self.mark = None

    def _item(self) -> None:
        opened = self.lists[-1] if self.lists else _List(None)
        if opened.number is None:
            self.mark = "-"
        else:
            self.mark = f"{opened.number}."
            opened.number += 1

    def _define(self) -> None:
        """The terms before a definition become what the next text defines."""
        self._undefined()
        self.term = ", ".join(text for text in self.terms if text)
        self.terms = []

    def _undefined(self) -> None:
        """A term without a definition is a text of its own."""
        if self.term and any(map(str.isalnum, self.term)) and not _CALLOUT.fullmatch(self.term):
            self.blocks.append(Block(self.term, Kind.LEAD))
        self.term = ""

    def _caption(self, text: str, *, figure: bool) -> None:
        text = squeezed(text)
        if _CALLOUT.fullmatch(text):
            self.term = text
        elif figure and len(text.split()) < _CAPTION_WORDS:
            self.dropped[nav.FIGURE] += 1
        elif text:
            self.blocks.append(
                Block(text if figure or text[-1] in ".:!?" else f"{text}:", Kind.TEXT if figure else Kind.LEAD)
            )

    def _flush(self) -> None:
        """End the text collected so far."""
        if self.inline:
            text = squeezed("".join(self.inline))
            self.inline = []
            if text:
                self._text(text)
        self.linked = 0

    def _text(self, text: str) -> None:
        if not any(map(str.isalnum, text)) or (len(text) <= 8 and self.linked and text[0] in "[(" and text[-1] in "])"):
            return
        if nav.is_boilerplate(text):
            self.dropped[nav.BOILERPLATE] += 1
        elif self.linked and (self._bar(text) or nav.is_navigation(text)):
            self.dropped[nav.NAVIGATION] += 1
        elif nav.is_contents_line(text):
            self.dropped[nav.CONTENTS] += 1
        elif nav.announces_index(text):
            self.index_next = True
        elif self.term and _CHANGE.fullmatch(text):
            self.term += f" ({text.rstrip('.: ')})"
        elif self.mark:
            self.blocks.append(
                item(f"{self.term}: {text}" if self.term else text, max(0, len(self.lists) - 1), self.mark)
            )
            self.mark, self.term = None, ""
        elif self.term:
            self.blocks.append(entry(self.term, text))
            self.term = ""
        elif _CALLOUT.fullmatch(text):
            self.term = text.rstrip(":")
        else:
            self.blocks.append(Block(text))

    def _bar(self, text: str) -> bool:
        """A row of links: `Modules | Directives | FAQ` or `Home > Manual > Modules`."""
        bars = _BAR.findall(text)
        return len(bars) >= 2 and self.linked >= 0.7 * (len(text) - 3 * len(bars))

    def _table(self, node: "LexborNode", stack: "list[LexborNode | str]") -> None:
        if is_layout(node):
            self._enter(node, "table", stack)
            return
        caption = node.css_first("caption")
        if caption is not None:
            self._caption(caption.text(), figure=False)
        self.mark = None
        names: list[str] = []
        if self.term:
            self._lead_in()
        rows = cells_of(node)
        for cells in rows:
            self._row(cells, names, alone=len(rows) == 1)

    def _row(self, cells: list[Cell], names: list[str], *, alone: bool) -> None:
        texts = [cell.text for cell in cells]
        if all(cell.header for cell in cells):
            if len(cells) > 1:
                names[:] = texts
            elif texts and texts[0]:
                self._caption(texts[0], figure=False)
        elif len(cells) == 2 and cells[0].header and not names and texts[0] and texts[1]:
            self.blocks.append(entry(texts[0], texts[1]))
        elif (block := row(texts, names)) is not None and any(map(str.isalnum, block.text)):
            if nav.is_contents_line(block.text):
                self.dropped[nav.CONTENTS] += 1
            else:
                self.blocks.append(Block(block.text, Kind.LEAD) if alone else block)


def _children(node: "LexborNode") -> "list[LexborNode]":
    """The children of a node, the last one first."""
    children = list(node.iter(include_text=True))
    children.reverse()
    return children


def _names(node: "LexborNode") -> str:
    attributes = node.attributes
    return f"{attributes.get('class') or ''} {attributes.get('id') or ''}".lower().strip()


def _code_lines(node: "LexborNode", text: str) -> str | None:
    """The lines of a paragraph that is all code, broken by `<br>` or inside of an example; else None."""
    found = node.css("code, tt, kbd, samp")
    if len(found) != 1 or squeezed(found[0].text()) != text or not text:
        return None
    if found[0].css_first("br") is None and not _in_example(node):
        return None
    lines = (line.lstrip(" \t") for line in node.text().split("\n"))
    return "\n".join(line.replace("\xa0", " ") for line in lines if line.strip())


def _in_example(node: "LexborNode") -> bool:
    """Whether a heading only names an example or a note."""
    parent = node.parent
    return parent is not None and not _EXAMPLES.isdisjoint(_names(parent).split())


def _start(node: "LexborNode") -> int:
    start = node.attributes.get("start") or "1"
    return int(start) if start.isascii() and start.isdigit() and len(start) < 6 else 1
