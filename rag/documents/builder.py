"""Blocks from the texts of a page, as the walk over it meets them."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby

from rag.documents import navigation as nav
from rag.documents.blocks import Block, Kind, code, entry, heading, item, row
from rag.documents.html_tables import Cell
from rag.documents.list_marks import OpenList
from rag.documents.normalize import squeeze
from rag.documents.plain_text.code import is_prose
from rag.documents.plain_text.text import text_blocks

CALLOUT = re.compile(
    r"(?:note|notes|tip|warning|caution|important|hint|danger|attention|error|info|see also|todo|remark)\W?",
    re.IGNORECASE,
)
_BULLET = re.compile(r"\A[-–•·] (?=\S)")  # that stands in the text of an item too
_MAX_LINKS, _MAX_ANNOUNCED_LINKS = (
    5,
    15,
)  # paragraphs that are links: a list of pages, unless a colon stands above so many
_CAPTION_WORDS = 12  # a longer caption of a figure says something by itself
_PERSON = re.compile(r"[A-Z]\w+\.? (?:[A-Z][\w.-]* )*[A-Z][\w-]+, \w")  # "Jane Smith, head teacher"
_BAR = re.compile(r"(?<=\S) [|>»/·•→\\] (?=\S)")
_LABELS = ("Q:", "A:")  # of questions and answers, in cells of their own
BREAK = "\x1e"  # ends a line, where a page says so; a space for all who do not ask
_PARAGRAPH = re.compile(rf"{BREAK}\s*{BREAK}[\s{BREAK}]*")
_FACT_WORDS = 12  # in a line that is a fact
# "Tuesday: 9 to 12", "Adults £5", "Sunday closed"
_FACT = re.compile(
    r"[^\W\d_][^:]{0,40}: ?\S.*|[^\W\d_].*[\s£€$]\d[\d.,:–-]*\s?(?:[%€£$ap]\.?m?\.?|[kc]?[mg]|l)?|\w.* (?:closed|free)",
    re.IGNORECASE,
)
_LABELLED = re.compile(r"[^\W\d_][^:.!?]{0,50}: ?\S")  # "Tuesday: 9 to 12"
_HEADS = re.compile(r"[^\W_](?:.*[^.,;:!?])?")  # what may stand as a heading before its text
_SENTENCE = re.compile(r"[.!?][\"')\]”’]{0,3}\Z")
_LABEL_WORDS, _SENTENCE_WORDS = 8, 6
_CHANGE = re.compile(r"(?:new|added|changed|deprecated|removed) (?:in|since) version [\w.]+\W*", re.IGNORECASE)


@dataclass(slots=True)
class BlockBuilder:
    """Collects the blocks of a page."""

    dropped: Counter[str]
    blocks: list[Block] = field(default_factory=list)
    headings: list[tuple[int, str]] = field(default_factory=list)
    inline: list[str] = field(default_factory=list)
    linked: int = 0  # characters of the text in `inline` that are links
    lists: list[OpenList] = field(default_factory=list)
    mark: str | None = None  # of the list item whose text is next
    term: str = ""  # that the next text defines
    terms: list[str] = field(default_factory=list)
    links: list[Block] = field(default_factory=list)  # paragraphs that are a link
    row_name: str = ""  # the first cell of the last row that has one
    index_next: bool = False  # the next list or table is an index, which was counted

    def finish(self) -> list[Block]:
        """The blocks of the whole page, without long runs of paragraphs that are links, as lists of links go too."""
        self._flush()
        only = {id(block) for block in self.links}
        result: list[Block] = []
        for link_length, run in groupby(self.blocks, lambda block: id(block) in only):
            blocks = [*run]
            is_announced = len(blocks) <= _MAX_ANNOUNCED_LINKS and bool(result) and result[-1].text.endswith(":")
            if (
                not link_length
                or len(blocks) < _MAX_LINKS
                or is_announced
                or nav.are_facts([block.text for block in blocks])
            ):
                result += blocks
            else:
                self.dropped[nav.NAVIGATION] += len(blocks)
        return result

    def _code(self, text: str, *, certain: bool = False) -> None:
        if not certain and is_prose(text):
            for block in text_blocks(text, self.dropped):
                subheading = heading(block.text, min(6, block.level + 1))
                self.blocks.append(subheading if block.kind is Kind.HEADING else block)
        elif (lines := code(text)) is not None:
            self._lead_in()
            self.blocks.append(lines)

    def _lead_in(self) -> None:
        """A term or item whose first block is no text."""
        if self.term:
            self.blocks.append(entry(self.term, ""))
            self.term = ""
        self.mark = None

    def _item(self, value: str | None = None) -> None:
        self.mark = self.lists[-1].next_mark(value) if self.lists else "-"

    def _start_definition(self) -> None:
        """The terms before a definition become what the next text defines."""
        self._flush_term()
        self.term = ", ".join(text for text in self.terms if text)
        self.terms = []

    def _flush_term(self) -> None:
        """A term without a definition is a text of its own."""
        if self.term and any(map(str.isalnum, self.term)) and not CALLOUT.fullmatch(self.term):
            self.blocks.append(Block(self.term, Kind.LEAD))
        self.term = ""

    def _caption(self, text: str, *, figure: bool) -> None:
        text = squeeze(text)
        if CALLOUT.fullmatch(text):
            self.term = text
        elif figure and len(text.split()) < _CAPTION_WORDS and not _PERSON.match(text):
            self.dropped[nav.FIGURE] += 1
        elif text:
            self.blocks.append(
                Block(text if figure or text[-1] in ".:!?" else f"{text}:", Kind.TEXT if figure else Kind.LEAD)
            )

    def _flush(self) -> None:
        """End the text collected so far."""
        if self.inline:
            text = "".join(self.inline)
            self.inline = []
            if not text.isspace():
                self._lines(text)
        self.linked = 0

    def _lines(self, text: str) -> None:
        """A text whose lines end with `BREAK`: two of them end a paragraph, and lines that are all facts stay apart."""
        if self.linked or BREAK not in text:
            lines = [line for line in map(squeeze, text.split(BREAK)) if line]
            if joined := " ".join(_join_label(lines)):
                self._text(joined)
            return
        for part in _PARAGRAPH.split(text):
            lines = _join_label([line for line in map(squeeze, part.split(BREAK)) if line])
            if self.mark or self.term or not (_are_facts(lines) or all(map(_LABELLED.match, lines))):
                lines = [" ".join(lines)] if lines else []
            for line in lines:
                self._text(line)

    def _text(self, text: str) -> None:
        if (
            not any(map(str.isalnum, text))
            or text in _LABELS
            or (len(text) <= 8 and self.linked and text[0] in "[(" and text[-1] in "])")
        ):
            return
        self.index_next = False
        if nav.is_boilerplate(text):
            self.dropped[nav.BOILERPLATE] += 1
        elif (self.linked and self._bar(text)) or (self.linked and nav.is_navigation(text)):
            self.dropped[nav.NAVIGATION] += 1
        elif nav.announces_index(text):
            self.dropped[nav.CONTENTS] += 1
            self.index_next = True
        elif self.term and _CHANGE.fullmatch(text):
            self.term += f" ({text.rstrip('.: ')})"
        elif self.mark:
            text = _BULLET.sub("", text, count=1) if self.mark == "-" else text
            self.blocks.append(
                item(
                    f"{self.term.rstrip(' :')}: {text}" if self.term else text,
                    min(max(0, len(self.lists) - 1), 8),
                    self.mark,
                )
            )
            self.mark, self.term = None, ""
        elif self.term:
            self.blocks.append(entry(self.term, text))
            self.term = ""
        elif CALLOUT.fullmatch(text):
            self.term = text.rstrip(":")
        else:
            self.blocks.append(Block(text))
            if self.linked >= len(text):
                self.links.append(self.blocks[-1])

    def _bar(self, text: str) -> bool:
        """A row of links: `Modules | Directives | FAQ` or `Home > Manual > Modules`."""
        bars = len(_BAR.findall(text))
        if bars == 1:
            # A bar inside of one link is part of a name: "Names / Values".
            return not (self.mark or self.term) and len(text) - 4 <= self.linked <= len(text) - 2
        return bars > 1 and self.linked >= 0.7 * (len(text) - 3 * bars)

    def _row(self, cells: list[Cell], names: list[str]) -> None:
        texts = [cell.text for cell in cells]
        if len(texts) > 2 and names and names[0] and not texts[0] and texts[-1]:
            texts[0] = self.row_name  # a further example, say, of what the row above names
        self.row_name = texts[0] if texts else ""
        if all(cell.header for cell in cells):
            if len(cells) > 1:
                names[:] = texts
            elif texts and texts[0]:
                self._caption(texts[0], figure=False)
        elif cells[0].alone and names and texts[0]:  # "Starters", above rows of soups
            self.blocks.append(Block(texts[0], Kind.LEAD if len(texts[0].split()) < _CAPTION_WORDS else Kind.TEXT))
        elif len(cells) == 2 and cells[0].header and not names and texts[0] and texts[1]:
            self.blocks.append(entry(texts[0], texts[1]))
        elif (block := row(texts, names)) is not None and any(map(str.isalnum, block.text)):
            self.blocks.append(block)


def _join_label(lines: list[str]) -> list[str]:
    """The lines, the first with a colon if it is a few words above one sentence or more: a heading that runs in."""
    if len(lines) != 2 or not _HEADS.fullmatch(lines[0]) or len(lines[0].split()) > _LABEL_WORDS:
        return lines
    is_text = (
        len(lines[1].split()) >= _SENTENCE_WORDS and _SENTENCE.search(lines[1]) is not None and lines[1][0].isupper()
    )
    return [f"{lines[0]}: {lines[1]}"] if is_text else lines


def _are_facts(lines: Sequence[str]) -> bool:
    """Whether short lines name things and what they cost, measure or when they are: more than half of them."""
    if any(len(line.split()) > _FACT_WORDS for line in lines):
        return False
    match = sum(_FACT.fullmatch(line) is not None for line in lines)
    return match > 1 and 2 * match > len(lines)
