"""Passages of 60 to 200 words from blocks, cut where the document's structure allows it."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate

from autoais.base.text.sentences import sentence_spans
from rag.base.types import Passage
from rag.documents.blocks import BLOCK_SEPARATOR, Block, Kind, keep_bare_headings

_MAX_WORDS = 200  # words of a passage
_TARGET_WORDS = 120  # words of the parts of a longer section
_MAX_WHOLE_WORDS = 150  # words; a shorter section stays one passage
_MIN_WORDS = 60  # words; a part is joined with others of its section if it is shorter
_TINY_WORDS = 30  # words; a section is joined with the next one if it is shorter
_MAX_WORD_LENGTH = 100  # characters
_TITLE_WORDS = 10  # of an item above paragraphs
_WORD = re.compile(r"\S+")
_QUESTION = re.compile(r"\s*(?:(?:-|\d+\.) )?(?:Q|Question)(?: ?\d+)?[.:)] ")  # whose answer stands below it
_STATEMENT = re.compile(r"\s(?:.*\d|.*[.!?]$)")  # a heading of several words that says something by itself


@dataclass(frozen=True, slots=True)
class _Unit:
    """Blocks that belong together, such as code with the sentence before it."""

    blocks: tuple[Block, ...]
    words: int


@dataclass
class _Section:
    path: tuple[str, ...]
    level: int
    blocks: list[Block] = field(default_factory=list)

    @cached_property  # once all blocks are there
    def words(self) -> int:
        return sum(map(_words, self.blocks))

    @property
    def is_tiny(self) -> bool:
        """Whether it is to be joined; the words of most sections are not counted for that to their end."""
        return all(words < _TINY_WORDS for words in accumulate(map(_words, self.blocks)))


def passages(blocks: Iterable[Block], name: str, title: str) -> Iterator[Passage]:
    """The passages of a document called `title`, with ids `name#1`, `name#2`, ..."""
    number = 0
    visited_keys: set[tuple[str, str]] = set()
    for section in _join_sections(_sections(blocks, title)):
        path = ", ".join(section.path)
        for part in _parts(_units(section.blocks)):
            text = BLOCK_SEPARATOR.join(block.text for block in part)
            if (path, text) in visited_keys or not any(map(str.isalnum, text)):
                continue
            visited_keys.add((path, text))
            number += 1
            yield Passage(f"{name}#{number}", title, text, path, page=part[0].page)


def _words(block: Block) -> int:
    return len(block.text.split())


def _sections(blocks: Iterable[Block], title: str) -> Iterator[_Section]:
    headings: dict[int, str] = {}
    section = _Section((), 0)
    for block in keep_bare_headings([*blocks], lambda text: text != title and _STATEMENT.search(text)):
        if block.kind is not Kind.HEADING:
            section.blocks.append(block)
            continue
        if section.blocks:
            yield section
        headings = {level: text for level, text in headings.items() if level < block.level}
        headings[block.level] = block.text
        section = _Section(_path(headings.values(), title), block.level)
    if section.blocks:
        yield section


def _path(headings: Iterable[str], title: str) -> tuple[str, ...]:
    """The headings without one that repeats the title or the heading above it."""
    previous, path = title.casefold(), []
    for text in headings:
        if text.casefold() != previous:
            path.append(text)
        previous = text.casefold()
    return tuple(path)


def _join_sections(sections: Iterable[_Section]) -> Iterator[_Section]:
    """Join a section of a few words with the next one; their headings then introduce their texts."""
    waiting: _Section | None = None
    for section in sections:
        if waiting is not None:
            common = _common(waiting.path, section.path)
            fits = waiting.words + section.words <= _TARGET_WORDS and section.level > 1
            if fits and len(common) >= max(len(section.path), len(waiting.path)) - 1:
                blocks = [*_with_heading(waiting, common), *_with_heading(section, common)]
                waiting = _Section(common, min(waiting.level, section.level) if common else section.level, blocks)
                if waiting.words >= _MIN_WORDS:
                    yield waiting
                    waiting = None
                continue
            yield waiting
            waiting = None
        if section.is_tiny:
            waiting = section
        else:
            yield section
    if waiting is not None:
        yield waiting


def _common(item: Sequence[str], other: Sequence[str]) -> tuple[str, ...]:
    count = 0
    while count < min(len(item), len(other)) and item[count] == other[count]:
        count += 1
    return tuple(item[:count])


def _with_heading(section: _Section, common: Sequence[str]) -> list[Block]:
    """The blocks of a section, its first one after the headings that the common path lacks."""
    part = ", ".join(section.path[len(common) :])
    first, *tail = section.blocks
    if not part:
        return section.blocks
    if first.kind is Kind.TEXT:
        return [Block(f"{part.rstrip(' :')}: {first.text}", Kind.ENTRY, 0, first.page), *tail]
    return [Block(f"{part.rstrip(' :')}:", Kind.LEAD, 0, first.page), *section.blocks]


def _units(blocks: Iterable[Block]) -> list[_Unit]:
    """Group each block with those that it introduces, and cut what is longer than a passage."""
    units: list[_Unit] = []
    open_ended = False
    before: Kind | None = None
    is_title_above = False  # the last block is an item by itself that may be the title of a paragraph
    for block in blocks:
        for piece, words in _pieces(block):
            open_ended = open_ended or (is_title_above and piece.kind is Kind.TEXT)
            belongs_together = units and (open_ended or _belongs(piece, units[-1].blocks[-1]))
            if belongs_together and units[-1].words + words <= _MAX_WORDS:
                units[-1] = _Unit((*units[-1].blocks, piece), units[-1].words + words)
            elif belongs_together and (chosen_blocks := _lead(units[-1], words)):
                result = units[-1].blocks[: -len(chosen_blocks)]
                units[-1] = _Unit(result, sum(map(_words, result)))
                units.append(_Unit((*chosen_blocks, piece), sum(map(_words, chosen_blocks)) + words))
            else:
                units.append(_Unit((piece,), words))
            open_ended = introduces(piece)
            is_title_above = before is not Kind.ITEM and words <= _TITLE_WORDS and _may_be_title(piece)
            before = piece.kind
    return _runs(units)


def _may_be_title(block: Block) -> bool:
    """Whether a block of a few words is an item and no sentence: what it is about may stand in paragraphs below it."""
    return block.kind is Kind.ITEM and block.text[-1] not in ".!?;,"


def _belongs(block: Block, before: Block) -> bool:
    """Whether a block is code after text, or the first item of a list in an item."""
    if block.kind is Kind.CODE:
        return before.kind is not Kind.CODE
    return block.kind is before.kind is Kind.ITEM and _indent(block) > _indent(before)


def _indent(block: Block) -> int:
    return len(block.text) - len(block.text.lstrip(" "))


def _lead(unit: _Unit, words: int) -> tuple[Block, ...]:
    """The blocks at the end of a unit that move to the next one with what they introduce; empty if they do not fit."""
    start = len(unit.blocks) - 1
    while start > 0 and introduces(unit.blocks[start - 1]):
        start -= 1
    blocks = unit.blocks[start:]
    return blocks if start > 0 and sum(map(_words, blocks)) + words <= _MAX_WORDS else ()


def _runs(units: Sequence[_Unit]) -> list[_Unit]:
    """Keep a short list or table in one piece, with the text before it."""
    result: list[_Unit] = []
    for unit in units:
        if (
            result
            and unit.blocks[0].kind in (Kind.ITEM, Kind.ROW)
            and result[-1].words + unit.words <= _MAX_WHOLE_WORDS
        ):
            last = result[-1].blocks[-1].kind
            if last is unit.blocks[0].kind or last in (Kind.TEXT, Kind.ENTRY):
                result[-1] = _Unit((*result[-1].blocks, *unit.blocks), result[-1].words + unit.words)
                continue
        result.append(unit)
    return result


def introduces(block: Block) -> bool:
    """Whether a block announces the next one."""
    if block.kind in (Kind.LEAD, Kind.CODE):
        return block.kind is Kind.LEAD
    return block.text.endswith((":", "：", ":-")) or _QUESTION.match(block.text) is not None


def _parts(units: Sequence[_Unit]) -> Iterator[list[Block]]:
    """Units in parts of about equal length, of at most `_MAX_WORDS` words unless one unit is longer."""
    total = sum(unit.words for unit in units)
    count = 1 if total <= _MAX_WHOLE_WORDS else -(-total // _TARGET_WORDS)
    part: list[Block] = []
    words = remaining = 0
    remaining = total
    for unit in units:
        target = remaining / count if count else _TARGET_WORDS
        full = part and words >= _MIN_WORDS and words + unit.words / 2 > target and remaining - words >= _MIN_WORDS / 2
        if full or (part and words + unit.words > _MAX_WORDS):
            yield part
            remaining -= words
            count = max(1, count - 1)
            part, words = [], 0
        part.extend(unit.blocks)
        words += unit.words
    if part:
        yield part


def _pieces(block: Block) -> Iterator[tuple[Block, int]]:
    """A block in pieces that fit into a passage, and their words.

    Code is cut between lines, text between sentences or else words.
    """
    if (words := _words(block)) <= _MAX_WORDS - _TINY_WORDS:
        yield block, words
        return
    cut = _code_pieces if block.kind is Kind.CODE else _text_pieces
    for number, text in enumerate(cut(block.text)):
        kind = block.kind if number == 0 or block.kind is Kind.CODE else Kind.TEXT
        piece = Block(text, kind, 0, block.page)
        yield piece, _words(piece)


def _code_pieces(text: str) -> Iterator[str]:
    """Lines of code in parts, where possible before a line that follows an empty one."""
    part: list[str] = []
    words = 0
    for line in text.split("\n"):
        length = len(line.split())
        after_gap = bool(part) and not part[-1].strip()
        if part and (words + length > _MAX_WORDS - _TINY_WORDS or (after_gap and words >= _TARGET_WORDS)):
            yield "\n".join(part).rstrip()
            part, words = [], 0
        if length > _MAX_WORDS - _TINY_WORDS:
            if words:
                yield "\n".join(part).rstrip()
            yield from (f"    {piece.strip()}" for piece in _by_words(line))
            part, words = [], 0
            continue
        if part or line.strip():
            part.append(line)
        words += length
    if words:
        yield "\n".join(part).rstrip()


def _by_words(line: str) -> Iterator[str]:
    ends = [word.end() for word in _WORD.finditer(line)]
    start = 0
    for end in [*ends[_MAX_WORDS - _TINY_WORDS - 1 : -1 : _MAX_WORDS - _TINY_WORDS], len(line)]:
        yield line[start:end]
        start = end


def _text_pieces(text: str) -> Iterator[str]:
    start = end = words = 0
    for first, last in _breakable(text):
        length = len(text[first:last].split())
        if words and words + length > _TARGET_WORDS:
            yield text[start:end].strip()
            start, words = first, 0
        end, words = last, words + length
    if piece := text[start:].strip():
        yield piece


def _breakable(text: str) -> Iterator[tuple[int, int]]:
    """The spans of sentences; one that is longer than a passage is split between words."""
    longest = _MAX_WORDS - _TINY_WORDS
    for first, last in _between_words(text):
        ends = [word.end() for word in _WORD.finditer(text, first, last)]
        for end in [*ends[longest - 1 : -1 : longest], last]:
            yield first, end
            first = end


def _between_words(text: str) -> Iterator[tuple[int, int]]:
    """The spans of sentences. A very long one is cut at any letter, so this adds the rest of the word.

    Scripts without spaces between words are cut where they were.
    """
    begin = 0
    for first, last in sentence_spans(text):
        if last <= begin:
            continue
        if last < len(text) and text[last - 1].isalnum() and text[last].isalnum():
            tail = _WORD.match(text, last, last + _MAX_WORD_LENGTH)
            if tail is not None and tail.end() - last < _MAX_WORD_LENGTH:
                last = tail.end()
        yield max(first, begin), last
        begin = last
