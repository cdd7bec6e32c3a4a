"""Blocks from Info files, which are the manuals of GNU programs: their nodes, headings and menus."""

import re
from collections import Counter
from collections.abc import Sequence

from rag.documents import navigation as nav
from rag.documents.blocks import Block, heading, squeezed
from rag.documents.encodings import decoded
from rag.documents.info_body import Body, bare, chunks, notes_of
from rag.documents.text_lines import indent_of
from rag.documents.titles import is_generic

_INFO = re.compile(
    rb"\x1f\f?\r?\n(?:File:|Indirect:|Tag Table:)|^START-INFO-DIR-ENTRY|\bproduced by makeinfo",
    re.IGNORECASE | re.MULTILINE,
)
_NO_NODE = re.compile(rb"\s*(?:Indirect|Tag Table|End Tag Table|Local Variables)", re.IGNORECASE)
_MARK = re.compile(rb"\0\x08\[[^\0]*\0\x08\]")  # of an image or an index
_NODE, _UP = (
    re.compile(rf"[,\t ] {{0,9}}{field}: ([^,\t]*?)(?:[,\t]| {{1,9}}(?:Next|Prev|Up): |$)", re.IGNORECASE)
    for field in ("Node", "Up")
)
_ENTRY = re.compile(r"^\* ([^:\n]+):[ \t]*\([^)\n]*\)(\.?)", re.MULTILINE)
_RANKS = {"*": 2, "=": 3, "-": 4, ".": 5}
_RULE = re.compile(r"([*=\-.])\1*")
_GAP = re.compile(r"\S\s{2,}\S")
_NUMBER = re.compile(r"(?:(?:Appendix|Chapter) )?(?:\d{1,3}|[A-Z])((?:\.\d{1,3})*) (?=.*[^\W\d_])", re.IGNORECASE)
_INDEX = re.compile(r"\bindex$")  # the name of a node that lists words
_LISTED = re.compile(r"\* \S.{0,200}?:(:|\s|$)")  # in a menu
_DEEP = 4  # columns that lines are indented at least which go on with an entry of a menu
_BETWEEN = "\v"  # nodes, as the sign that stands between them is in no text


def is_info(head: bytes) -> bool:
    """Whether the beginning of a file is that of an Info file."""
    return _INFO.search(head) is not None


def info_blocks(data: bytes, where: str, dropped: Counter[str]) -> tuple[str, list[Block]]:
    """The title ("" if there is none) and the blocks of a manual, or of one of the files that it is split into."""
    dropped[nav.FIGURE] += sum(mark.startswith(b"\0\x08[image") for mark in _MARK.findall(data))
    data = _MARK.sub(b"", data).replace(b"\x7f", b"").replace(b"\v", b" ")
    pages = [page for page in data.split(b"\x1f") if not _NO_NODE.match(page)]
    preamble, *nodes = decoded(_BETWEEN.encode().join(pages), where).split(_BETWEEN)
    manual = _Manual(dropped)
    for node in nodes:
        manual.read(node.strip("\f\n").split("\n"))
    return manual.title or _entry(preamble), manual.blocks


def _entry(preamble: str) -> str:
    """What the list of all manuals calls a manual."""
    entries = _ENTRY.findall(preamble)
    return next((squeezed(name) for name, whole in entries if whole), squeezed(entries[0][0]) if entries else "")


class _Manual:
    """Collects the blocks of the nodes of a manual."""

    def __init__(self, dropped: Counter[str]) -> None:
        self.title = ""
        self.blocks: list[Block] = []
        self._dropped = dropped
        self._levels = {"top": 1}  # of nodes

    def read(self, lines: Sequence[str]) -> None:
        """Read a node: a line that names it and its neighbours, and its text."""
        name, up = _NODE.search(lines[0]), _UP.search(lines[0])
        if name is None:
            return
        node = squeezed(name[1]).casefold()
        of_notes = node.endswith("-footnotes")
        pieces = [*chunks(_without_menu(lines[1:], node, self._dropped))]
        body = Body(self._dropped, notes_of(pieces, inside=of_notes))
        if pieces and not of_notes and node != "top" and _heading(pieces[0]) is None:
            above = self._levels.get(squeezed(up[1]).casefold(), 1) if up is not None else 1
            body.head(self._known(node, heading(bare(squeezed(name[1])), min(above + 1, 6))))
        for piece in pieces:
            found = _heading(piece)
            if found is not None and node == "top" and not self.title and not is_generic(found.text):
                self.title = found.text
            elif found is not None:
                body.head(self._known(node, found))
            body.read(piece if found is None else piece[2:])
        self.blocks += body.finish()

    def _known(self, node: str, found: Block) -> Block:
        """The heading, after its level was noted as that of the node, if it is its first."""
        self._levels.setdefault(node, found.level)
        return found


def _heading(lines: Sequence[str]) -> Block | None:
    """The heading that two lines are, of which the second is a rule; else None."""
    if len(lines) < 2 or lines[0][:1].isspace() or (rule := _RULE.fullmatch(lines[1])) is None:
        return None
    long = len(lines[0])
    if not 0.5 * long <= len(lines[1]) <= 2 * long or (len(lines) > 2 and _GAP.search(lines[0])):
        return None
    text = squeezed(lines[0])
    number = _NUMBER.match(text)
    if number is not None and (number[1] or rule[1] == "*"):  # a chapter has a number without a dot
        text = text[number.end() :]
    return heading(bare(text), _RANKS[rule[1]])


def _without_menu(lines: Sequence[str], node: str, dropped: Counter[str]) -> Sequence[str]:
    """The lines of a node without its menu; none of an index that has no text besides."""
    start = next((place for place, line in enumerate(lines) if line.lower().startswith("* menu:")), len(lines))
    if start == len(lines):
        return lines
    dropped[nav.CONTENTS] += 1
    rest = [*lines[:start], *lines[_end_of_menu(lines, start) :]]
    pieces = [*chunks(rest)]
    only_heading = len(pieces) == 1 and len(pieces[0]) == 2 and _heading(pieces[0]) is not None
    return [] if _INDEX.search(node) and (only_heading or not pieces) else rest


def _end_of_menu(lines: Sequence[str], start: int) -> int:
    """Where the text after a menu begins; what stands above further entries belongs to the menu, as their caption."""
    end, gap, text, sentence = start + 1, False, False, False
    for place, line in enumerate(lines[end:], end):
        listed = _LISTED.match(line)
        if listed is not None and (listed[1] == ":" or not sentence):  # below sentences, "* Name: text" may be an item
            end, gap, text, sentence = place + 1, False, False, False
        elif not line.strip():
            gap = True
        elif not text and (not gap or indent_of(line) >= _DEEP):
            end = place + 1
        else:
            text, sentence = True, sentence or line.rstrip()[-1] in ".!?:"
    return end
