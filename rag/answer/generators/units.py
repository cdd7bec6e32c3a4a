"""Units of a passage: the pieces that an answer quotes whole (a sentence, list item, code block, table row).

The text of a passage from a document follows the conventions of `rag.documents`: blocks separated by a blank
line; a list item begins with "- " or "1. "; each line of code begins with four spaces; the cells of a table row are
separated by " | ". Other passages are sentences.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

from autoais.base.text.sentences import sentence_spans
from rag.base.types import Citation, CitedSentence, Passage

_LINE = re.compile(r"[^\n]*(?:\n|$)")
_ITEM = re.compile(r"[ \t]*(?:[-*•]|\(?\d{1,3}[.)]|[a-z][.)])[ \t]")
_OPENS = re.compile(r"\(?\d{1,3}(?:\.\d{1,3})*[.)]|(?:Yes|No)[.!]")  # what is no sentence by itself
_CODE = "    "
ENTRY = re.compile(r"(?:[^.!?\n]{1,60}|[^.!\n]{1,120}\?): \S")  # "term: what it means", "Question?: answer"
# A sentence that leans on the one before it.
_LEANS = re.compile(
    r"(?:but|however|though|therefore|thus|hence|so|then|otherwise|instead|also|moreover|furthermore|nevertheless|"
    r"consequently|similarly|likewise|conversely|this|that|these|those|it|its|they|their|them|he|she|his|her|such|"
    r"both|here|there|in this|in that|in these|in such|for this|for these|as a result|as such|because of this|"
    r"the (?:former|latter|same|first|second|other)|if so|if not|note that this)\b",
    re.IGNORECASE,
)
SENTENCE, ITEM, CODE, ROW = "sentence", "item", "code", "row"


@dataclass(frozen=True, slots=True)
class Unit:
    """A stretch of a passage's text, in characters, with its kind and number of words.

    `leads`: it ends with a colon, or breaks off before a list, a table or code, so that what follows belongs to it.
    `leans`: it depends on the unit before it ("However, ..."). `entry`: how many units before it the entry begins that
    it is a part of ("term: what it means ... Default: 3."), 0 at the beginning; None outside of entries.
    """

    start: int
    end: int
    kind: str
    words: int
    leads: bool
    leans: bool
    entry: int | None = None


def split_units(text: str) -> list[Unit]:
    """The units of a passage's text, in order; together they hold all of it but white space."""
    pieces: list[Unit] = []
    for start, end in _blocks(text):
        block = text[start:end]
        kind = _kind(block)
        if kind in (CODE, ROW):
            pieces.append(_unit(text, start, end, kind))
            continue
        begin = len(pieces)
        for first, last in _sentences(block):
            pieces.append(_unit(text, start + first, start + last, kind))
        if kind == SENTENCE and begin < len(pieces) and ENTRY.match(text, pieces[begin].start):
            pieces[begin:] = [replace(unit, entry=position) for position, unit in enumerate(pieces[begin:])]
    return [
        replace(unit, leads=True) if _announces(text, unit, after) else unit
        for unit, after in zip_longest(pieces, pieces[1:])
    ]


def entry_start(pieces: Sequence[Unit], position: int) -> int | None:
    """The place where the entry begins that the unit is a part of, if any."""
    back = pieces[position].entry
    return None if back is None else position - back


def quote_units(pieces: Iterable[tuple[Passage, Unit]]) -> tuple[str, tuple[CitedSentence, ...]]:
    """The text and sentences of an answer that quotes units of passages.

    Units of one line stay in a line, and sentences of two passages run on. White space is normalised, except in code.
    """
    text, sentences = "", []
    before: tuple[Passage, Unit] | None = None
    for passage, unit in pieces:
        if before is not None:
            text += " " if _runs_on(before, (passage, unit)) else "\n"
        quote = passage.text[unit.start : unit.end]
        line = quote if unit.kind == CODE else " ".join(quote.split())
        citation = Citation(passage.id, unit.start, unit.end, quote, "copied")
        start = len(text)
        text += line
        sentences.append(CitedSentence(line, (citation,), start, len(text)))
        before = passage, unit
    return text, tuple(sentences)


def _runs_on(before: tuple[Passage, Unit], after: tuple[Passage, Unit]) -> bool:
    """Whether a unit continues the line before it: no line break stands between them.

    Of two passages, only sentences run on, unless the second begins an entry, or introduces a list or code.
    """
    (passage, first), (next_passage, second) = before, after
    if passage is next_passage:
        return "\n" not in passage.text[first.end : second.start]
    return first.kind == second.kind == SENTENCE and second.entry != 0 and not second.leads


def _sentences(block: str) -> list[tuple[int, int]]:
    """The sentences of a block; a number, "Yes." or "No." is not cut from what follows."""
    spans: list[tuple[int, int]] = []
    for start, end in sentence_spans(block):
        if spans and _OPENS.fullmatch(block, *spans[-1]):
            start = spans.pop()[0]
        spans.append((start, end))
    return spans


def _announces(text: str, unit: Unit, after: Unit | None) -> bool:
    """Whether a sentence breaks off before a list, a table or code."""
    return after is not None and unit.kind == SENTENCE != after.kind and text[unit.end - 1].isalnum()


def _blocks(text: str) -> Iterator[tuple[int, int]]:
    """The blocks, with the indentation of their first line; a line that begins a list item begins a block."""
    begin, end = None, 0
    for line in _LINE.finditer(text):
        blank = not line.group().strip()
        code = line.group().startswith(_CODE)  # a blank line of code is part of it
        if begin is not None and not code and (blank or _ITEM.match(line.group())):
            yield begin, end
            begin = None
        if not blank:
            begin = line.start() if begin is None else begin
            end = line.end()
    if begin is not None:
        yield begin, end


def _kind(block: str) -> str:
    lines = block.rstrip("\n").split("\n")
    if _ITEM.match(block) and (len(lines) == 1 or not block.startswith(_CODE)):  # an item of a list in a list
        return ITEM
    if all(line.startswith(_CODE) or not line.strip() for line in lines):
        return CODE
    return ROW if " | " in lines[0] and len(lines) == 1 else SENTENCE


def _unit(text: str, start: int, end: int, kind: str) -> Unit:
    piece = text[start:end]
    if kind != CODE:
        start += len(piece) - len(piece.lstrip())
    end -= len(piece) - len(piece.rstrip())
    piece = text[start:end]
    entry = ENTRY.match(piece) is not None
    leans = kind == SENTENCE and not entry and (_LEANS.match(piece) is not None or piece[:1].islower())
    return Unit(start, end, kind, len(piece.split()), piece.endswith(":"), leans)
