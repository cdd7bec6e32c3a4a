"""The walk over the elements of a page: what each one is, and which are left out.

It has a stack of its own, because pages can nest deeper than Python recurses.
"""

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rag.documents import navigation as nav
from rag.documents.blocks import Block, Kind, heading, row
from rag.documents.builder import BREAK, CALLOUT, BlockBuilder
from rag.documents.doxygen import lists_members, prototype, read_members
from rag.documents.html_tables import cells_of, is_layout, short_cells, tags_inside
from rag.documents.list_marks import open_list
from rag.documents.normalize import squeeze
from rag.documents.titles import clean_heading, is_name

if TYPE_CHECKING:
    from selectolax.lexbor import LexborNode

_IGNORED_TAGS = frozenset(
    """
    script style noscript template svg nav footer select option textarea input head iframe object embed applet
    audio video canvas map dialog datalist frame noframes link meta
    """.split()
)
_INLINE = frozenset(
    """
    a abbr acronym b bdi bdo big cite code data dfn em font i ins kbd label mark math mi mo mn mrow ms msub msup
    msubsup mfrac mtext mstyle mspace msqrt mover munder mtable mtr mtd semantics nobr output q ruby rb samp small
    span strong sub sup time tt u var wbr img br
    """.split()
)
_HEADINGS = frozenset(["h1", "h2", "h3", "h4", "h5", "h6"])
_LISTS = frozenset(["ul", "ol", "menu", "dir"])
_EXAMPLES = frozenset(["example", "note", "warning", "tip", "caution", "important", "listing", "code-example"])
_NUMBERED_CLASSES = frozenset(["chapter", "appendix", "section", "unnumbered"])
_NUMBER = re.compile(r"^(?:\d{1,3}|[A-Z])\s+(?=[^\W\d_])")
_CONTAINERS = frozenset(["list", "table", "dl"])
_MAX_DEPTH = 20  # lists and tables in one another; deeper ones are not looked at as a whole, which takes time
_PROSE = 80  # words in paragraphs, without links, of what is no navigation
_BOLD_WORDS = 10  # of a paragraph that is a heading
_SITE = re.compile(r"https?://([^/?#\s]+)", re.IGNORECASE)
_MAX_LINKS_ELSEWHERE = 5  # to one other site, of a list that is no menu
_MAX_ROW_LENGTH = 300  # characters of a row of links without signs between them
_LINKS_ONLY, _FEW_LINKS = 0.8, 0.2  # of the characters of a list or table
_LEAD_WORDS = 12  # of a line that announces a list
_SENTENCE_END = re.compile(r"[.!?]\s")
_IS_PAGE = re.compile(r"\.x?html?(?:\.gz)?$", re.IGNORECASE)  # of a site; not a README or a book
_QUERY = re.compile(r"[?#].*", re.DOTALL)
_LANGUAGE = re.compile(r"\blanguage-(?!(?:te?xt|plain(?:text)?|none|nohighlight|markdown|md)\b)\w")


@dataclass(slots=True)
class Page(BlockBuilder):
    """The blocks of the page called `name`.

    `tabs` are the labels of tabs by their ids, and by those of the panels that they show.
    """

    name: str = ""
    depth: int = 0  # of lists and tables in one another
    tabs: dict[str, str] = field(default_factory=dict)

    def walk(self, root: "LexborNode") -> None:
        """Read an element and all below it."""
        stack: list[LexborNode | str] = [root]
        while stack:
            node = stack.pop()
            if isinstance(node, str):
                self._close(node)
                continue
            tag = node.tag or ""
            if tag == "-text":
                self.inline.append(node.text_content or "")
            elif tag in _INLINE or ":" in tag:  # Word marks places and people in the middle of a sentence
                self._inline(node, tag, stack)
            elif tag[0] != "-" and (tag not in _IGNORED_TAGS or _is_source(node)):
                self._open(node, tag, stack)
            elif tag in ("input", "textarea"):
                self.inline.append(" ")
            elif tag in ("nav", "footer"):
                self.dropped[nav.NAVIGATION] += 1

    def _inline(self, node: "LexborNode", tag: str, stack: "list[LexborNode | str]") -> None:
        if tag == "br":
            self.inline.append(BREAK)
        elif tag == "a" and _leads(node):
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
            self._code(node.text(), certain=_names_language(node))
        elif self._is_left_out(node, tag):
            pass
        elif tag == "table":
            self._table(node, stack)
        elif tag in _LISTS:
            self.lists.append(open_list(node))
            self._enter(node, "list", stack)
        elif tag == "li":
            self._item(node.attributes.get("value"))
            self._enter(node, "li", stack)
        elif tag == "dt":
            self.terms.append(squeeze(node.text()).lstrip(": "))
        elif tag in ("summary", "button"):
            self._flush_term()
            self.term = squeeze(node.text())
        elif tag == "dd":
            self._start_definition()
            self._enter(node, "dd", stack)
        elif tag in ("caption", "figcaption"):
            self._caption(node.text(), figure=tag == "figcaption")
        elif tag in ("div", "tr") and self._special(node):
            pass
        elif self.tabs and node.attributes.get("role") == "tab" and node.attributes.get("id") in self.tabs:
            pass  # said above its panel
        else:
            if self.tabs and (label := self._tab_of(node)):
                self._flush_term()
                self.term = label
            self._enter(node, tag, stack)

    def _tab_of(self, panel: "LexborNode") -> str:
        """The label of the tab that shows an element; "" if none does."""
        if panel.attributes.get("role") != "tabpanel":
            return ""
        names = (panel.attributes.get("aria-labelledby"), panel.attributes.get("id"))
        return next((self.tabs[name] for name in names if name in self.tabs), "")

    def _special(self, node: "LexborNode") -> bool:
        """Whether a class says what an element is, such as Doxygen's code, declaration or title, or it is a row."""
        parts = (node.attributes.get("class") or "").split()
        if node.tag == "tr" and "question" in parts:  # of DocBook
            self.blocks.append(Block(squeeze(node.text()).removeprefix("Q:").lstrip(), Kind.LEAD))
        elif node.tag == "tr":
            return self._short_row(node)
        elif "fragment" in parts:
            self._code("\n".join(line.text().rstrip("\n") for line in node.css("div.line")) or node.text())
        elif "memproto" in parts and (declaration := prototype(node)):
            self._code(declaration)
        elif "title" in parts and self._is_page_title(node):
            self.dropped[nav.NAVIGATION] += len(self.blocks)  # above the title stands the header of all pages
            self.blocks.clear()
            self._heading(node, 1)
        elif "caption" in parts:
            self._caption(node.text(), figure=True)
        else:
            return False
        return True

    def _is_page_title(self, node: "LexborNode") -> bool:
        """Whether an element with the class of titles is that of the page: the first text, or as Doxygen sets it."""
        first = not self.blocks or (node.parent is not None and "headertitle" in _names(node.parent).split())
        return first and not self.headings and len(node.css("div, h1, h2")) == 1

    def _short_row(self, line: "LexborNode") -> bool:
        """Whether a row of a table for layout is one of data, such as a thing and its price."""
        block = row(short_cells(line)) if self.depth <= _MAX_DEPTH else None
        if block is not None:
            self._flush_term()
            self.blocks.append(block)
        return block is not None

    def _enter(self, node: "LexborNode", end: str, stack: "list[LexborNode | str]") -> None:
        self.depth += end in _CONTAINERS
        stack.append(end)
        stack.extend(_children(node))

    def _close(self, end: str) -> None:
        self._flush()
        self.depth -= end in _CONTAINERS
        if end == "list":
            self.lists.pop()
            self.mark = None
        elif end == "li":
            self.mark = None
        elif end in ("dd", "dl", "details"):
            if end != "dd":
                self._start_definition()
            self._flush_term()

    def _is_left_out(self, node: "LexborNode", tag: str) -> bool:
        """Whether an element is navigation, a table of contents or an index; counts it."""
        attributes = node.attributes
        names = f"{attributes.get('class') or ''} {attributes.get('id') or ''}".lower()
        if tag == "section" or "section" in names.split():  # its id comes from its heading: "Languages", "Search"
            names = (attributes.get("class") or "").lower()
        reason = nav.reason_by_name(names, attributes.get("role")) if names.strip() or "role" in attributes else None
        if "directory" in names.split() and node.css_first("table.directory") is not None:  # of Doxygen, not of shops
            reason = nav.CONTENTS
        if reason == nav.CONTENTS and tag in _LISTS and _has_few_links(node):
            reason = None  # Texinfo calls lists without bullets so
        if reason and tag != "body" and not _is_prose(node):
            if reason == nav.CONTENTS:
                self._take_lead()
            self.dropped[reason] += 1
            return True
        if nav.suspicious(names) and nav.is_share_bar(names, squeeze(node.text())):
            self.dropped[nav.NAVIGATION] += 1
            return True
        is_list = tag in _LISTS or tag in ("table", "dl")
        if is_list and self.index_next:
            self.index_next = False
            return True
        if self.depth > _MAX_DEPTH:
            return False
        if not is_list and tag not in ("aside", "header") and not nav.suspicious(names):
            return False
        if tag != "aside" and node.css_first("a[href]") is None:
            return False  # what follows looks at links
        if tag == "body" or _is_prose(node):
            return False
        if tag == "aside" and nav.names_contents(squeeze(node.text())):  # which a script fills
            self.dropped[nav.NAVIGATION] += 1
            return True
        if tag == "ul" and lists_members(node):
            self.dropped[nav.CONTENTS] += 1
            return True
        return self._links_only(node, is_list=is_list, certain=not is_list or nav.suspicious(names))

    def _links_only(self, node: "LexborNode", *, is_list: bool, certain: bool) -> bool:
        """Whether the text of an element is mostly links that are no part of what the page says."""
        links = [link for link in node.css("a[href]") if _leads(link)]
        if not links:
            return False
        text = squeeze(node.text())
        share = sum(len(squeeze(link.text())) for link in links) / max(1, len(text))
        if share < (0.5 if certain else _LINKS_ONLY) and not (is_list and nav.is_navigation(text)):
            return False
        lead = self.blocks[-1] if self.blocks and self.blocks[-1].text.endswith(":") else None
        is_inside = all((link.attributes.get("href") or "").startswith("#") for link in links)
        if is_list and not certain:
            if not is_inside and nav.are_facts([link.text() for link in links]):
                return False
            if _lead_elsewhere(links):
                return False
            if lead is not None and not is_inside and len(links) <= 15:
                return False
            below_text = bool(self.blocks) and self.blocks[-1].kind is not Kind.HEADING
            neighbours = any(nav.leads_to_neighbour(link.text()) for link in links)
            if len(links) < 3 and not is_inside and below_text and not neighbours:
                return False
        if is_list:
            self._take_lead()
        self.dropped[nav.CONTENTS if is_inside or is_list else nav.NAVIGATION] += 1
        return True

    def _take_lead(self) -> None:
        """Remove the line that announces what is left out; a longer one says something by itself."""
        lead = self.blocks[-1] if self.blocks else None
        if lead is None or lead.kind not in (Kind.TEXT, Kind.LEAD):
            return
        announces = lead.text.endswith(":") and len(lead.text.split()) <= _LEAD_WORDS
        if nav.names_contents(lead.text) or (announces and not _SENTENCE_END.search(lead.text)):
            self.blocks.pop()

    def _paragraph(self, node: "LexborNode") -> None:
        names = _names(node)
        if names:
            if "admonition-title" in names.split():
                self._flush_term()
                self.term = squeeze(node.text())
                return
            if "title" in names.split():
                parent = node.parent
                self._caption(node.text(), figure=parent is not None and "figure" in _names(parent))
                return
            if (reason := nav.reason_by_name(names, None)) is not None:
                self.dropped[reason] += 1
                return
        text = squeeze(node.text())
        tags = tags_inside(node)
        if self._is_bold_heading(node, text):
            self.blocks.append(Block(text, Kind.LEAD))
            return
        if "a" in tags and (len(text) < _MAX_ROW_LENGTH or " · " in text or " | " in text):
            self.linked = sum(len(link.text().strip()) for link in node.css("a[href]") if _leads(link))
        if "br" in tags and text.endswith(squeeze(node.text())):
            for line_end in node.css("br"):
                line_end.insert_before(BREAK)
            text = node.text()
        self._lines(text)
        self.linked = 0

    def _is_bold_heading(self, node: "LexborNode", text: str) -> bool:
        """Whether a short paragraph, all of it bold, stands above another one, a list or a table."""
        if (
            self.lists
            or self.terms
            or self.term
            or not text[:1].isalnum()
            or text[-1] in ".!,;"
            or CALLOUT.fullmatch(text)
        ):
            return False
        bold = node.css_first("b, strong")
        if bold is None or len(text.split()) > _BOLD_WORDS or squeeze(bold.text()) != text:
            return False
        following = _next(node)
        return following is not None and following.tag in ("p", "ul", "ol", "table", "div")

    def _heading(self, node: "LexborNode", level: int) -> None:
        text = clean_heading(node.text())
        names = _names(node).split()
        if not _NUMBERED_CLASSES.isdisjoint(names):  # Texinfo numbers without a dot
            text = _NUMBER.sub("", text, count=1)
        content = any(map(str.isalpha, text))
        if not content and not is_name(text):
            return
        if level > 2 and CALLOUT.fullmatch(text):
            self.term = text
        elif level == 1 and self._elsewhere(node):
            self.dropped[nav.NAVIGATION] += 1
        elif level > 2 and (text[-1] == ":" or _in_example(node) or (level > 3 and not content)):
            # A deep code, such as the status of a reply, has an end that nothing marks.
            self._caption(text, figure=False)
        else:
            self._flush_term()
            self.index_next = False
            self.headings.append((level, text if "chapter" in names else squeeze(node.text())))
            self.blocks.append(heading(text, level))

    def _elsewhere(self, node: "LexborNode") -> bool:
        """Whether a heading is only a link to another page, as the name of a site is."""
        link = node.css_first("a[href]")
        if link is None or squeeze(link.text()) != squeeze(node.text()):
            return False
        address = link.attributes.get("href") or ""
        target = _QUERY.sub("", address)
        if not target or not _IS_PAGE.search(self.name):
            return False
        return target.rsplit("/", 1)[-1] != self.name.rsplit("/", 1)[-1]

    def _table(self, node: "LexborNode", stack: "list[LexborNode | str]") -> None:
        if self.depth <= _MAX_DEPTH and "memberdecls" in _names(node).split() and len(node.css("table")) == 1:
            self.blocks += read_members(node, self.dropped)
            return
        if self.depth > _MAX_DEPTH or is_layout(node):
            self._enter(node, "table", stack)
            return
        caption = node.css_first("caption")
        if caption is not None:
            self._caption(caption.text(), figure=False)
        self.mark, self.row_name = None, ""
        names: list[str] = []
        if self.term:
            self._lead_in()
        for cells in cells_of(node):
            self._row(cells, names)


def _has_few_links(node: "LexborNode") -> bool:
    """Whether nearly all text of an element is none of links."""
    link_length = sum(len(squeeze(link.text())) for link in node.css("a[href]"))
    return link_length < _FEW_LINKS * len(squeeze(node.text()))


def _is_source(node: "LexborNode") -> bool:
    """Whether a footer says who is quoted."""
    return node.tag == "footer" and node.parent is not None and node.parent.tag == "blockquote"


def _leads(link: "LexborNode") -> bool:
    """Whether a link leads to a page; an address for mail or a number to call is what the page says."""
    address = (link.attributes.get("href") or "").strip()
    return bool(address) and not address.lower().startswith(("mailto:", "tel:"))


def _lead_elsewhere(links: list["LexborNode"]) -> bool:
    """Whether links lead to other sites, as a reading list does; many to the same one may be the menu of a site."""
    matches = [_SITE.match((link.attributes.get("href") or "").strip()) for link in links]
    sites = {match[1].lower() if match else None for match in matches}
    return None not in sites and (len(sites) > 1 or len(links) <= _MAX_LINKS_ELSEWHERE)


def _children(node: "LexborNode") -> "list[LexborNode]":
    """The children of a node, the last one first."""
    children = list(node.iter(include_text=True))
    children.reverse()
    return children


def _next(node: "LexborNode") -> "LexborNode | None":
    """The element after this one."""
    following = node.next
    while following is not None and (following.tag or "-")[0] == "-":
        following = following.next
    return following


def _is_prose(node: "LexborNode") -> bool:
    """Whether an element holds so much text besides links that it is no navigation, whatever its name is."""
    words = 0
    for paragraph in node.css("p, pre, dd"):
        link_length = sum(len(link.text().split()) for link in paragraph.css("a[href]"))
        part = len(paragraph.text().split()) - link_length
        words += part if part > 2 * link_length else 0
        if words >= _PROSE:
            return True
    return False


def _names(node: "LexborNode") -> str:
    attributes = node.attributes
    return f"{attributes.get('class') or ''} {attributes.get('id') or ''}".lower().strip()


def _names_language(node: "LexborNode") -> bool:
    """Whether preformatted text says in which language it is written, as a fence of Markdown does."""
    code_node = node.css_first("code[class*=language-]")
    return code_node is not None and _LANGUAGE.search(code_node.attributes.get("class") or "") is not None


def _in_example(node: "LexborNode") -> bool:
    """Whether a heading only names an example or a note."""
    parent = node.parent
    return parent is not None and not _EXAMPLES.isdisjoint(_names(parent).split())
