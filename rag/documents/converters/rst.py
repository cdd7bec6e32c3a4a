"""Blocks from reStructuredText, by docutils and HTML; what only Sphinx knows is read as far as its text goes."""

import re
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from importlib import import_module
from pathlib import PurePosixPath
from typing import Any

from rag.documents import navigation as nav
from rag.documents.blocks import Block
from rag.documents.encodings import decode_text
from rag.documents.main_content import html_blocks
from rag.documents.raw_file import RawFile

_CALL = r"\.\.[ \t]+(?:\|[^|\n]+\|[ \t]+)?([\w:+.-]+)::"
_DIRECTIVE = re.compile(rf"^[ \t]*{_CALL}", re.MULTILINE)
_FIRST_DIRECTIVE = re.compile(rf"^{_CALL}(?:[ \t]|$)", re.MULTILINE)
_ROLE = re.compile(r"(?<![\w+.:-]):([\w+.-]+(?::[\w+.-]+)*):`")
_TARGET = re.compile(r"(?<!\0)\s*<[^<>]+>\Z")
_NAMED_REFERENCE = re.compile(r"(?P<title>.*\S)\s*(?<!\0)<[~!]?(?P<path>(?:\w+\.)+)(?P<name>\w+)>", re.DOTALL)
_SHORT_REFERENCE = re.compile(r"~[\w.:]+")
_UNKNOWN = re.compile(r"`(.+?)(?:\s*<[^<>]+>)?`__?|\|(.+)\|_{0,2}|(\[.+\])_", re.DOTALL)
_LABEL = "label"
_LABELS = frozenset(["ref", "numref"])
_REFERENCES = _LABELS | {"doc", "any", "term", "download", "class", "func", "meth", "mod"}
_PARAMETERS = frozenset("param parameter arg argument keyword kwarg kwparam".split())
_VERBATIM = frozenset("file samp command program kbd guilabel menuselection envvar genex regexp math code".split())
CONTENTS = frozenset(["toctree", "contents", "sectnum", "autosummary", "listing-table", "genindex"])
_SILENT = frozenset(
    """
    index program module currentmodule highlight default-domain py:module py:currentmodule tabularcolumns sectionauthor
    codeauthor moduleauthor literalinclude only-for graphviz digraph graph mermaid uml inheritance-diagram doctest-setup
    testsetup testcleanup todo todolist program-output command-output
    """.split()
)
CODE = frozenset(
    """
    code code-block sourcecode code-cell jupyter-execute ipython doctest testcode testoutput prompt console terminal
    plot
    """.split()
)
_PROSE = re.compile(r"-|(?![^\s(]*/)\S*[\s(]")  # of an argument alone: some words, an option or a declaration; no path
_SILENT_FIELD = re.compile(r"(?:orphan|tocdepth|nocomments|nosearch|no-search|copyright)\b|\w+: \$\w+\$", re.IGNORECASE)
_INDEXES = re.compile(r"^ {0,9}[*-] +:ref:`(?:genindex|modindex|search)` *$", re.MULTILINE)  # as sphinx-quickstart
_SIGNATURE = re.compile(
    r"^([ \t]*\.\. )class(::[ \t]+[\w.]+\()", re.MULTILINE
)  # Sphinx's; docutils has another `class`
_PARSING = threading.Lock()
CHANGES = {
    "versionadded": "New in version",
    "versionchanged": "Changed in version",
    "deprecated": "Deprecated since version",
}


def is_rst(text: str) -> bool:
    """Whether a text has a directive such as `.. note::` at the beginning of a line."""
    return _FIRST_DIRECTIVE.search(text) is not None


def read_rst(file: RawFile) -> tuple[str, list[Block]]:
    """The title ("" if there is none) and the blocks of a file."""
    return rst_blocks(decode_text(file.data, file.where), file.dropped, file.name)


def rst_blocks(text: str, omissions: Counter[str], name: str = "") -> tuple[str, list[Block]]:
    """The title ("" if there is none) and the blocks of a text."""
    parts = _publish(text, omissions)
    if parts is None:  # docutils fails on it, so it is read as it stands
        from rag.documents.plain_text.text import text_blocks

        return "", [*text_blocks(text, omissions)]
    _, blocks = html_blocks(parts["body"], omissions, name)
    title, _ = html_blocks(parts["html_title"], Counter(), name)
    _, content = html_blocks(parts["docinfo"], Counter(), name)  # ":Author: Ann"
    return title, [*(block for block in content if not _SILENT_FIELD.match(block.text)), *blocks]


def rst_html(text: str, omissions: Counter[str]) -> str:
    """A part of another document as HTML."""
    parts = _publish(text, omissions, doctitle_xform=False)
    return f"<pre>{escape(text)}</pre>" if parts is None else str(parts["body"])


def _publish(text: str, omissions: Counter[str], **options: bool) -> dict[str, Any] | None:
    """The HTML of a text in parts, as docutils makes it; None if it fails."""
    from docutils.core import publish_parts
    from docutils.utils import SystemMessage

    omissions[nav.CONTENTS] += sum(match in CONTENTS for match in _DIRECTIVE.findall(text))
    text, indexes = _INDEXES.subn("", _SIGNATURE.sub(r"\1py:class\2", text))
    omissions[nav.NAVIGATION] += indexes
    settings = {
        "_disable_config": True,
        "file_insertion_enabled": False,
        "raw_enabled": False,
        "report_level": 5,
        "halt_level": 5,
        "line_length_limit": 1_000_000,
        "syntax_highlight": "none",
        "math_output": "LaTeX",
        "initial_header_level": 2,
        "embed_stylesheet": False,
        "stylesheet_path": None,
        "smart_quotes": False,
        **options,
    }
    try:
        with _define_for(text):
            return dict(publish_parts(text, parser=_parser(), writer="html5", settings_overrides=settings))
    except (SystemMessage, RecursionError, AssertionError, ValueError, AttributeError, IndexError, KeyError, TypeError):
        return None


def _parser() -> Any:  # noqa: ANN401
    """docutils' parser without its search for addresses in running text, whose time grows with the text's square.

    References show the titles of what they lead to, and those that lead nowhere their bare text. A parameter, as in
    `:param int size:`, is shown as Sphinx does: `size (int)`.
    """
    from docutils import nodes
    from docutils.parsers.rst import Parser, states
    from docutils.transforms import Transform

    class Shown(Transform):  # type: ignore[misc,unused-ignore]
        default_priority = 855  # when docutils has marked what leads nowhere, before it puts the source in its place

        def apply(self) -> None:
            titles: dict[str, str] = {}
            for node in self.document.findall(nodes.Structural):
                title = next((child.astext() for child in node.children if isinstance(child, nodes.title)), "")
                titles.update(dict.fromkeys(node["names"], title))
            for node in self.document.findall(nodes.inline):
                if title := titles.get(nodes.fully_normalize_name(node.get(_LABEL, "")), ""):
                    node.children = [nodes.Text(title)]
            for node in self.document.findall(nodes.term):
                if node.astext().endswith("::"):  # of code, which docutils finds none of
                    node.children = [nodes.Text(node.astext()[:-1])]
            for node in self.document.findall(nodes.field_name):
                content = node.astext().split()
                if len(content) > 1 and content[0] in _PARAMETERS:
                    of_type = f" ({' '.join(content[1:-1])})" if len(content) > 2 else ""
                    node.children = [nodes.Text(content[-1] + of_type)]
            for node in [*self.document.findall(nodes.problematic)]:
                if unknown := _UNKNOWN.fullmatch(node.astext()):
                    node.parent.replace(node, nodes.Text(unknown[unknown.lastindex or 0]))

    class Reader(Parser):  # type: ignore[misc,unused-ignore]
        def get_transforms(self) -> list[Any]:
            return [*super().get_transforms(), Shown]

    inliner = states.Inliner()
    inliner.implicit_inline = lambda text, _: [nodes.Text(text)]
    return Reader(inliner=inliner)


@contextmanager
def _define_for(text: str) -> Iterator[None]:
    """Let docutils know the directives and roles of a text, which it would keep for all later ones, of all threads."""
    from docutils.parsers.rst import directives, roles

    with _PARSING:
        before = dict(directives._directives), dict(roles._roles)
        try:
            _learn(text)
            yield
        finally:
            for now, earlier in zip((directives._directives, roles._roles), before, strict=True):
                now.update(earlier)
                for name in now.keys() - earlier.keys():
                    del now[name]


def _learn(text: str) -> None:
    """Register the directives and roles of a text that docutils does not know, or knows with few options."""
    from docutils.parsers.rst import directives, roles
    from docutils.parsers.rst.languages import en

    result = {name.lower() for name in _DIRECTIVE.findall(text)}
    for name in result & en.directives.keys():
        module, kind = directives._directive_registry.get(en.directives[name], ("", ""))
        if module:
            part = getattr(import_module(f"docutils.parsers.rst.directives.{module}"), kind)
            if part.option_spec:
                lenient = type(kind, (part,), {"option_spec": _AnyOption(part.option_spec)})
                directives.register_directive(name, lenient)
    other, code = _directives()
    for name in result - {*en.directives, *directives._directives} | (CONTENTS - {"sectnum"}):
        directives.register_directive(name, other)
    for name in CODE:
        directives.register_directive(name, code)
    for name in {name.lower() for name in _ROLE.findall(text)} - {*en.roles, *roles._roles}:
        roles.register_local_role(name, _role)
    roles.register_local_role("", _default_role)


def is_silent(name: str) -> bool:
    """Whether a directive says nothing by itself: it sets something, or is filled from a program."""
    return name in _SILENT or name.startswith(("auto", "doxygen"))


def role_text(name: str, text: str) -> str:
    """What a role shows: of `title <target>` the title, of `~package.name` the name, of a document its name."""
    last = name.lower().rpartition(":")[2]
    if last in _VERBATIM:
        return text
    target_match = _TARGET.search(text)
    if target_match and (target_match[0][0].isspace() or last in _REFERENCES):
        return text[: target_match.start()] or text
    label = text.lstrip("!")
    if last == "doc":
        return PurePosixPath(label.removesuffix("/index") or label).name or label
    return label[1:].rpartition(".")[2] if _SHORT_REFERENCE.fullmatch(label) else label


def _role(name: str, raw: str, text: str, *_: Any, **__: Any) -> tuple[list[Any], list[Any]]:  # noqa: ANN401
    from docutils import nodes

    label = nodes.inline(raw, role_text(name, text).replace("\0", ""))
    if name.lower().rpartition(":")[2] in _LABELS and not _TARGET.search(text):
        label[_LABEL] = text
    return [label], []


def _default_role(_: str, raw: str, text: str, *__: Any, **___: Any) -> tuple[list[Any], list[Any]]:  # noqa: ANN401
    from docutils import nodes

    name_match = _NAMED_REFERENCE.fullmatch(text)
    if _SHORT_REFERENCE.fullmatch(text):
        label = text[1:].rpartition(".")[2]
    elif name_match and (
        name_match["name"] in name_match["title"] or name_match["path"].count(".") > 1
    ):  # not `open <notes.txt>`
        label = name_match["title"]
    else:
        label = text
    return [nodes.inline(raw, label.replace("\0", ""))], []


def _directives() -> tuple[Any, Any]:
    """The directive for what docutils does not know, and the one for code."""
    from docutils import nodes
    from docutils.parsers.rst import Directive

    class Lenient(Directive):  # type: ignore[misc,unused-ignore]
        optional_arguments = 1
        final_argument_whitespace = True
        has_content = True
        option_spec = _AnyOption()

    class Other(Lenient):
        """A directive of Sphinx or another extension: its argument is a term, its content the definition."""

        def run(self) -> list[nodes.Node]:
            name = self.name.lower()
            if name in CONTENTS or is_silent(name):
                return []
            argument = " ".join(self.arguments[0].split()).replace(" \\ ", " ") if self.arguments else ""
            content: Any = nodes.Element()
            self.state.nested_parse(self.content, self.content_offset, content)
            if name in CHANGES:
                first = content.children[0].astext() if content.children else ""
                number, _, tail = argument.partition(" ")
                words = f"{CHANGES[name]} {number}: {self._inline(tail).astext()} {first}".strip().rstrip(":")
                return [nodes.paragraph("", words), *content.children[1:]]
            if name == "seealso":
                head = nodes.paragraph("", "See also", classes=["admonition-title"])
                return [head, self._inline(argument), *content.children]
            if not argument or name in ("only", "ifconfig", "rst-class", "container"):
                return [*content.children]
            if not content.children:
                return [nodes.paragraph("", argument)] if _PROSE.match(argument) else []
            entry = nodes.definition_list_item("", nodes.term("", argument), nodes.definition("", *content.children))
            return [nodes.definition_list("", entry)]

        def _inline(self, text: str) -> nodes.Node:
            result, _ = self.state.inline_text(text, self.lineno)
            return nodes.paragraph("", "", *result)

    class Code(Lenient):
        """Lines of code, whose first may stand where another directive has its argument."""

        def run(self) -> list[nodes.Node]:
            lines = [*self.content]
            words = self.arguments[0].split("\n") if self.arguments else []
            neighbours = self.block_text.partition("::")[2].partition("\n")[0].strip()
            if self.name.lower() == "plot" and neighbours:  # of a file, with its caption
                caption: Any = nodes.Element()
                self.state.nested_parse(self.content, self.content_offset, caption)
                return [*caption.children]
            if lower := words[1:] if neighbours else words:
                lines = [*lower, "", *lines]
            return [nodes.literal_block("", "\n".join(lines))]

    return Other, Code


class _AnyOption(dict[str, Any]):
    """Takes every option of a directive; knows how those in it are read."""

    def __bool__(self) -> bool:
        return True

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401
        return self.get(name, lambda value: value)
