"""DocBook's elements as those of HTML that say the same."""

import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Callable, Mapping
from html import escape

from rag.documents import navigation as nav
from rag.documents.blocks import squeezed

SECTIONS = frozenset(
    """
    appendix article bibliodiv bibliography book chapter colophon dedication glossary glossdiv part partintro preface
    qandadiv qandaset refentry reference refsect1 refsect2 refsect3 refsection refsynopsisdiv sect1 sect2 sect3 sect4
    sect5 section set simplesect topic
    """.split()
)
_CALLOUTS = frozenset(["caution", "danger", "important", "note", "tip", "warning"])
_CODE = frozenset(
    """
    classsynopsis constructorsynopsis fieldsynopsis literallayout methodsynopsis programlisting screen synopsis
    """.split()
)
_LISTS = {
    "calloutlist": "ol",
    "itemizedlist": "ul",
    "orderedlist": "ol",
    "procedure": "ol",
    "simplelist": "ul",
    "stepalternatives": "ul",
    "substeps": "ol",
}
_ITEMS = frozenset(["callout", "listitem", "member", "step"])
_PARTS = frozenset(
    """
    abstract address answer attribution biblioentry bibliomixed blockquote caption epigraph equation example figure
    formalpara glossdef highlights informalequation informalexample informalfigure para screenshot sidebar simpara
    """.split()
)
_TABLES = frozenset(["informaltable", "segmentedlist", "table"])
_ENTRIES = frozenset(["glossentry", "varlistentry"])
_TERMS = frozenset(["abbrev", "acronym", "glossterm", "term"])
_SEE = {"glosssee": "See", "glossseealso": "See also"}
_PEOPLE = frozenset(["author", "editor", "othercredit", "person", "personname"])  # whose parts are names
_BLOCKS = (
    SECTIONS | _CALLOUTS | _CODE | frozenset(_LISTS) | _ITEMS | _PARTS | _TABLES | _ENTRIES | frozenset(_SEE)
    | frozenset("bibliolist cmdsynopsis entry funcsynopsis glosslist qandaentry question seg".split())
    | frozenset("td th variablelist".split())
)  # fmt: skip
_CONTENTS = frozenset(["index", "lot", "setindex", "toc"])
_NO_TEXT = frozenset(
    """
    alt anchor areaspec beginpage co colspec comment coref graphic include indexterm inlinegraphic
    inlinemediaobject label refmeta remark spanspec subtitle svg textobject title titleabbrev
    imageobject videoobject audioobject screeninfo
    """.split()
)
_QUESTION = 30  # words of a question that is a heading
_WIDEST = 100  # columns of a table
_LONGEST = 200  # characters of a title that a reference shows


def page_of(root: ET.Element, titles: Mapping[str, str], dropped: Counter[str]) -> tuple[str, str]:
    """The title of a document ("" if it has none) and an HTML page of the rest; `titles` are those of its parts."""
    page = _Page(titles, dropped)
    if root.tag in SECTIONS or root.tag == "fragment":
        page.content(root, 1)
    else:
        page.element(root, 1)
    return page.title(root), f"<!DOCTYPE html><body>{''.join(page.parts)}</body>"


def titles_of(root: ET.Element) -> dict[str, str]:
    """What references to parts show, by their ids: a label, a title, a term, or a text that is meant for it."""
    page = _Page({}, Counter())
    texts = {node.get("endterm") for node in root.iter()}
    titles: dict[str, str] = {}
    for node in root.iter():
        if not (key := node.get("id")):
            continue
        term = next((child for child in node if child.tag in ("glossterm", "term")), None)
        text = node.get("xreflabel") or page.title(node) or (squeezed(page.said(term)) if term is not None else "")
        if not text and key in texts:
            text = squeezed(page.said(node))
        if text:
            titles[key] = text[:_LONGEST]
    return titles


class _Page:
    """Collects the HTML of a document."""

    def __init__(self, titles: Mapping[str, str], dropped: Counter[str]) -> None:
        self.parts: list[str] = []
        self._titles, self._dropped = titles, dropped

    def title(self, node: ET.Element) -> str:
        """The title of a part; of a manual page, its name and section."""
        for place in (node, *(child for child in node if child.tag.endswith("info"))):
            if (found := place.find("title")) is not None:
                return squeezed(self.said(found))
        if node.tag != "refentry":
            return ""
        name, section = node.find("refmeta/refentrytitle"), node.find("refmeta/manvolnum")
        if name is None:
            name, section = node.find("refnamediv/refname"), None
        text = squeezed(self.said(name)) if name is not None else ""
        return f"{text}({squeezed(self.said(section))})" if section is not None else text

    def content(self, node: ET.Element, depth: int) -> None:
        """Add what is in an element; `depth` is the number of sections around it."""
        self._text(node.text)
        for child in node:
            self.element(child, depth)
            self._text(child.tail)

    def element(self, node: ET.Element, depth: int) -> None:
        """Add an element."""
        tag = node.tag
        if tag in _NO_TEXT or self._left_out(node):
            return
        if tag.endswith("info"):
            for part in node.findall("abstract"):
                self.content(part, depth)
        elif tag in SECTIONS:
            self._section(node, depth)
        elif (special := _SPECIAL.get(tag)) is not None:
            special(self, node, depth)
        elif tag in _CODE:
            self._code(self.said(node))
        elif tag in _CALLOUTS:
            self._callout(node, depth)
        elif tag in _LISTS:
            self._list(node, depth)
        elif tag in _TABLES:
            self._title(node)
            self._table(node)
        elif tag in _ITEMS:
            self.parts.append("<li>")
            self._tagged("p", self.title(node))
            self.content(node, depth)
            self.parts.append("</li>")
        elif tag in _BLOCKS:
            self._title(node)
            self._wrap("p" if tag in ("para", "simpara") else "div", node, depth)
        else:
            self._text(self.of(node))

    def _left_out(self, node: ET.Element) -> bool:
        """Whether an element is a footnote, contents or a notice; counts it."""
        why = (
            "footnote" if node.tag == "footnote"
            else nav.CONTENTS if node.tag in _CONTENTS
            else nav.BOILERPLATE if node.tag == "legalnotice"
            else ""
        )  # fmt: skip
        if why:
            self._dropped[why] += 1
        return bool(why)

    def _text(self, text: str | None) -> None:
        if text:
            self.parts.append(escape(text, quote=False))

    def _tagged(self, tag: str, text: str, name: str = "") -> None:
        if text:
            self.parts.append(f"<{tag}{f' class={name}' if name else ''}>{escape(text, quote=False)}</{tag}>")

    def _wrap(self, tag: str, node: ET.Element, depth: int) -> None:
        self.parts.append(f"<{tag}>")
        self.content(node, depth)
        self.parts.append(f"</{tag}>")

    def _code(self, text: str) -> None:
        self.parts.append(f"<pre>\n{escape(text, quote=False)}</pre>")

    def _title(self, node: ET.Element) -> None:
        """The title of what is no section introduces it; that of a figure is its caption."""
        if node.tag in ("figure", "informalfigure"):
            self._tagged("figcaption", self.title(node))
        else:
            self._tagged("p", self.title(node), "admonition-title" if node.tag == "formalpara" else "title")

    def _section(self, node: ET.Element, depth: int) -> None:
        title = self.title(node) or ("Synopsis" if node.tag == "refsynopsisdiv" else "")
        self._tagged(f"h{min(depth + 1, 6)}", title)
        self.content(node, depth + bool(title))

    def _callout(self, node: ET.Element, depth: int) -> None:
        self._tagged("p", self.title(node) or node.tag.capitalize(), "admonition-title")
        self.content(node, depth)

    def _list(self, node: ET.Element, depth: int) -> None:
        if node.tag == "simplelist" and node.get("type") == "inline":
            self._text(self._members(node))
            return
        self._title(node)
        tag, start = _LISTS[node.tag], node.get("startingnumber") or "1"
        kept = tag == "ol" and start.isascii() and start.isdigit() and len(start) < 6
        self.parts.append(f"<ol start={start}>" if kept else f"<{tag}>")
        self.content(node, depth)
        self.parts.append(f"</{tag}>")

    def _entries(self, node: ET.Element, depth: int) -> None:
        self._title(node)
        self.content(node, depth)

    def _entry(self, node: ET.Element, depth: int) -> None:
        """A term with its definition."""
        self.parts.append("<dl>")
        for child in node:
            if child.tag in _TERMS:
                self._tagged("dt", self.said(child))
            elif child.tag in ("listitem", "glossdef"):
                self._wrap("dd", child, depth)
            elif child.tag in _SEE:
                self._tagged("dd", self._see(child))
        self.parts.append("</dl>")

    def _question(self, node: ET.Element, depth: int) -> None:
        """A question and its answers."""
        question = node.find("question")
        text = squeezed(self.said(question)) if question is not None else ""
        short = len(text.split()) <= _QUESTION
        if question is not None and short:
            self._tagged(f"h{min(depth + 1, 6)}", text)
        for child in node:
            if child is not question or not short:
                self.element(child, depth + short)

    def _names(self, node: ET.Element, depth: int) -> None:
        """The names of a manual page and what it is for."""
        names = ", ".join(squeezed(self.said(name)) for name in node.findall("refname"))
        purpose = node.find("refpurpose")
        self._tagged(f"h{min(depth + 1, 6)}", "Name")
        self._tagged("p", f"{names} - {squeezed(self.said(purpose))}" if purpose is not None else names)

    def _media(self, node: ET.Element, depth: int) -> None:
        """Of an image, its caption and the text that stands for it."""
        for caption in node.findall("caption"):
            self._tagged("figcaption", squeezed(self.said(caption)))
        for text in node.findall("textobject"):
            said = [self.said(part) for part in text if part.tag in ("para", "phrase", "simpara")]
            self._tagged("figcaption", squeezed(" ".join(said)))
            self._dropped[nav.FIGURE] += not said

    def _related(self, node: ET.Element, depth: int) -> None:
        self._tagged("p", self._see(node))

    def _source(self, node: ET.Element, depth: int) -> None:
        """What a bibliography says of a source."""
        self._tagged("p", squeezed(self._cited(node)))

    def _author(self, node: ET.Element, depth: int) -> None:
        """Who said what follows."""
        self._tagged("p", squeezed(self._cited(node)), "title")

    def _synopsis(self, node: ET.Element, depth: int) -> None:
        """A call of a command or of functions."""
        if node.tag == "cmdsynopsis":
            self._code(" ".join(filter(None, (self._argument(child) for child in node))))
            return
        for child in node:
            if child.tag == "funcprototype":
                parts = [squeezed(self.said(part)) for part in child if part.tag not in ("funcdef", "void", "varargs")]
                parts += ["..."] if child.find("varargs") is not None else []
                name = "".join(squeezed(self.said(part)) for part in child.findall("funcdef"))
                self._code(f"{name}({', '.join(parts) or 'void'});")
            elif child.tag == "funcsynopsisinfo":
                self._code(self.said(child))

    def _argument(self, node: ET.Element, *, inside: bool = False) -> str:
        """A part of the call of a command: `[-v]`, `{on | off}...`; `inside` of a group, which has its own brackets."""
        if node.tag == "sbr":
            return "\n"
        if node.tag not in ("arg", "group"):
            return squeezed(self.said(node))
        if node.tag == "group":
            text = " | ".join(filter(None, (self._argument(child, inside=True) for child in node)))
        else:
            inner = [squeezed(node.text or "")]
            for child in node:
                inner += [self._argument(child), squeezed(child.tail or "")]
            text = " ".join(filter(None, inner))
        optional = ("", "") if inside else ("[", "]")
        left, right = {"plain": ("", ""), "req": ("{", "}")}.get(node.get("choice", "opt"), optional)
        return f"{left}{text}{right}{'...' if node.get('rep') == 'repeat' else ''}" if text else ""

    def _table(self, node: ET.Element) -> None:
        self.parts.append("<table>")
        if node.tag == "segmentedlist":
            self._row([part for part in node if part.tag == "segtitle"], "th", {})
            for item in node.findall("seglistitem"):
                self._row([*item], "td", {})
        for group in (child for child in (node, *node) if child.tag in (*_TABLES, "tgroup")):
            columns = {spec.get("colname", ""): place for place, spec in enumerate(group.findall("colspec"))}
            for part in (group, *group):
                if part is group or part.tag in ("tbody", "tfoot", "thead"):
                    for row in (child for child in part if child.tag in ("row", "tr")):
                        self._row([*row], "th" if part.tag == "thead" else "td", columns)
        self.parts.append("</table>")

    def _row(self, cells: list[ET.Element], tag: str, columns: Mapping[str, int]) -> None:
        self.parts.append("<tr>")
        for cell in cells:
            first, last = columns.get(cell.get("namest", ""), 0), columns.get(cell.get("nameend", ""), 0)
            wide = cell.get("colspan") or str(min(max(1, last - first + 1), _WIDEST) if cell.get("nameend") else 1)
            more = cell.get("morerows") or "0"
            high = cell.get("rowspan") or (
                str(int(more) + 1) if more.isascii() and more.isdigit() and len(more) < 4 else "1"
            )
            name = "th" if cell.tag == "th" else tag
            text = escape(squeezed(self.said(cell)), quote=False)
            self.parts.append(f'<{name} colspan="{escape(wide)}" rowspan="{escape(high)}">{text}</{name}>')
        self.parts.append("</tr>")

    def said(self, node: ET.Element) -> str:
        """The text of an element as running text, with what is no text of it left out."""
        parts = [node.text or ""]
        for child in node:
            text = self.of(child)
            parts.append(f" {text} " if child.tag in _BLOCKS else text)
            parts.append(child.tail or "")
        return "".join(parts)

    def of(self, node: ET.Element) -> str:
        """The text of an element, as it stands in another."""
        if node.tag in _NO_TEXT or self._left_out(node):
            return ""
        special = _INLINE.get(node.tag)
        return special(self, node) if special is not None else self.said(node)

    def _joined(self, node: ET.Element, sign: str) -> str:
        texts = [node.text or "", *(text for child in node for text in (self.of(child), child.tail or ""))]
        return sign.join(filter(None, map(squeezed, texts)))

    def _keys(self, node: ET.Element) -> str:
        return self._joined(node, " " if node.get("action") == "seq" else "+")

    def _menus(self, node: ET.Element) -> str:
        keys = "".join(f" ({squeezed(self.of(child))})" for child in node if child.tag == "shortcut")
        path = (squeezed(self.of(child)) for child in node if child.tag != "shortcut")
        return " -> ".join(filter(None, path)) + keys

    def _quote(self, node: ET.Element) -> str:
        return f"“{self.said(node).strip()}”"

    def _page_name(self, node: ET.Element) -> str:
        name, section = node.find("refentrytitle"), node.find("manvolnum")
        text = squeezed(self.said(name)) if name is not None else ""
        return f"{text}({squeezed(self.said(section))})" if section is not None else text

    def _members(self, node: ET.Element) -> str:
        return self._joined(node, ", ")

    def _see(self, node: ET.Element) -> str:
        return f"{_SEE[node.tag]} {squeezed(self._reference(node))}."

    def _cited(self, node: ET.Element) -> str:
        """The text of a source or an author, or its parts with signs between them."""
        parts = [(self._part(child), child.tail or "") for child in node]
        texts = (node.text or "", *(tail for _, tail in parts))
        if not parts or any(map(str.strip, texts)):
            return "".join([node.text or "", *(text + tail for text, tail in parts)])
        return (" " if node.tag in _PEOPLE else ", ").join(filter(None, (squeezed(text) for text, _ in parts)))

    def _part(self, node: ET.Element) -> str:
        if node.tag in ("subtitle", "title") or not (node.tag in _NO_TEXT or node.tag in _INLINE):
            return "" if self._left_out(node) else self._cited(node)
        return self.of(node)

    def _reference(self, node: ET.Element) -> str:
        """The text of a link, or else the title, address or id that it leads to."""
        if (text := self.said(node)).strip():
            return text
        address = node.get("url") or node.get("href") or ""
        target = node.get("linkend") or node.get("otherterm") or address.removeprefix("#")
        return self._titles.get(node.get("endterm") or "") or self._titles.get(target) or target


_SPECIAL: dict[str, Callable[[_Page, ET.Element, int], None]] = {
    "attribution": _Page._author,
    "biblioentry": _Page._source,
    "bibliolist": _Page._entries,
    "bibliomixed": _Page._source,
    "cmdsynopsis": _Page._synopsis,
    "funcsynopsis": _Page._synopsis,
    "glossentry": _Page._entry,
    "glosslist": _Page._entries,
    "glosssee": _Page._related,
    "glossseealso": _Page._related,
    "mediaobject": _Page._media,
    "qandaentry": _Page._question,
    "refnamediv": _Page._names,
    "variablelist": _Page._entries,
    "varlistentry": _Page._entry,
}
_INLINE: dict[str, Callable[[_Page, ET.Element], str]] = {
    "attribution": _Page._cited,
    "biblioentry": _Page._cited,
    "bibliomixed": _Page._cited,
    "citerefentry": _Page._page_name,
    "glosssee": _Page._see,
    "glossseealso": _Page._see,
    "keycombo": _Page._keys,
    "link": _Page._reference,
    "menuchoice": _Page._menus,
    "quote": _Page._quote,
    "simplelist": _Page._members,
    "ulink": _Page._reference,
    "xref": _Page._reference,
}
