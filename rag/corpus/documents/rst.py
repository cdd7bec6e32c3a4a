"""Blocks from reStructuredText, by docutils and HTML; what only Sphinx knows is read as far as its text goes."""

import re
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rag.corpus.documents import navigation as nav
from rag.corpus.documents.blocks import Block
from rag.corpus.documents.html import html_blocks

_CALL = r"\.\.[ \t]+(?:\|[^|\n]+\|[ \t]+)?([\w:+.-]+)::"
_DIRECTIVE = re.compile(rf"^[ \t]*{_CALL}", re.MULTILINE)
_UNINDENTED = re.compile(rf"^{_CALL}(?:[ \t]|$)", re.MULTILINE)
_ROLE = re.compile(r"(?<![\w+.:-]):([\w+.-]+(?::[\w+.-]+)*):`")
_TARGET = re.compile(r"<[^<>]+>\Z")
_CONTENTS = frozenset(["toctree", "contents", "sectnum", "autosummary", "listing-table", "genindex"])
_SILENT = frozenset(
    """
    index program module currentmodule highlight default-domain py:module py:currentmodule tabularcolumns sectionauthor
    codeauthor moduleauthor automodule autoclass autofunction automethod autoattribute literalinclude only-for graphviz
    digraph graph inheritance-diagram doctest-setup testsetup testcleanup
    """.split()
)
_LEFT_OUT = re.compile(r"(?:orphan|tocdepth|nocomments|nosearch|no-search|copyright)\b|\w+: \$\w+\$", re.IGNORECASE)
_PARSING = threading.Lock()
_CHANGES = {
    "versionadded": "New in version",
    "versionchanged": "Changed in version",
    "deprecated": "Deprecated since version",
}


def is_rst(text: str) -> bool:
    """Whether a text has a directive such as `.. note::` at the beginning of a line."""
    return _UNINDENTED.search(text) is not None


def rst_blocks(text: str, dropped: Counter[str], name: str = "") -> tuple[str, list[Block]]:
    """The title ("" if there is none) and the blocks of a text."""
    from docutils.core import publish_parts
    from docutils.utils import SystemMessage

    dropped[nav.CONTENTS] += sum(found in _CONTENTS for found in _DIRECTIVE.findall(text))
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
    }
    try:
        with _defined_for(text):
            parts = publish_parts(text, parser=_parser(), writer="html5", settings_overrides=settings)
    except (SystemMessage, RecursionError, AssertionError, ValueError, AttributeError, IndexError, KeyError, TypeError):
        # A text that docutils fails on is read as it stands.
        from rag.corpus.documents.text import plain_blocks

        return "", [*plain_blocks(text, dropped)]
    _, blocks = html_blocks(parts["body"], dropped, name)
    title, _ = html_blocks(parts["html_title"], Counter(), name)
    _, said = html_blocks(parts["docinfo"], Counter(), name)  # ":Author: Ann"
    return title, [*(block for block in said if not _LEFT_OUT.match(block.text)), *blocks]


def _parser() -> Any:  # noqa: ANN401
    """docutils' parser without its search for addresses in running text, whose time grows with the text's square."""
    from docutils import nodes
    from docutils.parsers.rst import Parser, states

    inliner = states.Inliner()
    inliner.implicit_inline = lambda text, _: [nodes.Text(text)]
    return Parser(inliner=inliner)


@contextmanager
def _defined_for(text: str) -> Iterator[None]:
    """Let docutils know the directives and roles of a text, which it would keep for all later ones, of all threads."""
    from docutils.parsers.rst import directives, roles

    with _PARSING:
        before = dict(directives._directives), dict(roles._roles)
        try:
            _learn(text)
            yield
        finally:
            for now, then in zip((directives._directives, roles._roles), before, strict=True):
                now.update(then)
                for name in now.keys() - then.keys():
                    del now[name]


def _learn(text: str) -> None:
    """Register the directives and roles of a text that docutils does not know."""
    from docutils.parsers.rst import directives, roles
    from docutils.parsers.rst.languages import en

    known = {*en.directives, *directives._directives}
    for name in {found.lower() for found in _DIRECTIVE.findall(text)} - known | (_CONTENTS - {"sectnum"}):
        directives.register_directive(name, _other_directive())
    for name in {found.lower() for found in _ROLE.findall(text)} - {*en.roles, *roles._roles}:
        roles.register_local_role(name, _role)


def _role(name: str, raw: str, text: str, *_: Any, **__: Any) -> tuple[list[Any], list[Any]]:  # noqa: ANN401
    """The text of a reference: `title <target>`, `~package.name` or `name`."""
    from docutils import nodes

    titled = _TARGET.search(text)
    shown = text[: titled.start()].rstrip() if titled else text.lstrip("!")
    if not titled and shown.startswith("~"):
        shown = shown[1:].rpartition(".")[2]
    return [nodes.inline(raw, shown.replace("\0", ""))], []


def _other_directive() -> Any:  # noqa: ANN401
    from docutils import nodes
    from docutils.parsers.rst import Directive

    class Other(Directive):  # type: ignore[misc,unused-ignore]
        """A directive of Sphinx or another extension: its argument is a term, its content the definition."""

        optional_arguments = 1
        final_argument_whitespace = True
        has_content = True
        option_spec = _AnyOption()

        def run(self) -> list[nodes.Node]:
            name = self.name.lower()
            if name in _CONTENTS or name in _SILENT:
                return []
            argument = " ".join(self.arguments[0].split()) if self.arguments else ""
            content: Any = nodes.Element()
            self.state.nested_parse(self.content, self.content_offset, content)
            if name in _CHANGES:
                first = content.children[0] if content.children else nodes.paragraph()
                number, _, rest = argument.partition(" ")
                said = f"{_CHANGES[name]} {number}: {rest} {first.astext()}".strip().rstrip(":")
                return [nodes.paragraph("", said), *content.children[1:]]
            if not argument or name in ("only", "ifconfig", "rst-class", "container"):
                return [*content.children]
            if not content.children:
                return [nodes.paragraph("", argument)]
            if name in ("code-block", "sourcecode", "highlight"):
                return [nodes.literal_block("", "\n".join(self.content))]
            entry = nodes.definition_list_item("", nodes.term("", argument), nodes.definition("", *content.children))
            return [nodes.definition_list("", entry)]

    return Other


class _AnyOption(dict[str, Any]):
    """Takes every option of a directive."""

    def __bool__(self) -> bool:
        return True

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401
        return lambda value: value
