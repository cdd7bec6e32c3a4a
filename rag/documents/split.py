"""Passages of 60 to 200 words from blocks, cut where the document's structure allows it.

In scripts without blanks, two letters count as a word.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate, chain

from autoais.base.text.scripts import UNSPACED
from autoais.base.text.sentences import sentence_spans
from rag.base.types import Passage
from rag.documents.blocks import BLOCK_SEPARATOR, CELL_SEPARATOR, CODE_INDENT, Block, Kind, keep_bare_headings

_MAX_WORDS = 200  # words of a passage
_MAX_CHARACTERS = 2000  # characters of a passage
_TARGET_WORDS = 120  # words of the parts of a longer section
_MAX_WHOLE_WORDS = 150  # words; a shorter section stays one passage
_MIN_WORDS = 60  # words; a part is joined with others of its section if it is shorter
_TINY_WORDS = 30  # words; a section is joined with the next one if it is shorter
_MAX_PIECE_WORDS = _MAX_WORDS - _TINY_WORDS
_MAX_PIECE_CHARACTERS = 1900
_MAX_HEADING_LENGTH = 300  # characters; a longer one is text
_MAX_WORD_LENGTH = 100  # characters
_TITLE_WORDS = 10  # of an item above paragraphs
_LABEL_WORDS, _LABEL_LENGTH = 25, 200  # words and characters of what each part of a long row begins with
_QUESTION = re.compile(r"\s*(?:(?:-|\d+\.) )?(?:Q|Question)(?: ?\d+)?[.:)] ")  # whose answer stands below it
_COLUMN = re.compile(r"[^:|]{1,60}: (?=\S)")  # its name before a cell
_WORD = re.compile(rf"[{UNSPACED}]{{1,2}}|[^\s{UNSPACED}]+")
_UNSPACED = re.compile(f"[{UNSPACED}]")
_GAP = re.compile(r"[\s,;:.!?|/&=)\]}>，、；：。．！？）」』》]")  # where a text without sentences is best cut
# What belongs to the character before it, besides marks: joiners, two vowels, tones of emoji.
_JOINED = frozenset("\u200c\u200d\u0e33\u0eb3\U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff")
_JAMO = re.compile("[\u1100-\u11ff\U0001f1e6-\U0001f1ff]{2}")  # parts of Korean syllables, and of flags
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
    if len(title) > _MAX_HEADING_LENGTH:
        title = title[: _best_cut(title, 0, _MAX_HEADING_LENGTH)].rstrip()
    number = 0
    visited_keys: set[tuple[str, str]] = set()
    for section in _join_sections(_sections(blocks, title)):
        path = ", ".join(section.path)
        for part in (piece for blocks in _parts(_units(section.blocks)) for piece in _fitting(blocks)):
            text = BLOCK_SEPARATOR.join(block.text for block in part)
            if (path, text) in visited_keys or not any(map(str.isalnum, text)):
                continue
            visited_keys.add((path, text))
            number += 1
            yield Passage(f"{name}#{number}", title, text, path, page=part[0].page)


def _words(block: Block) -> int:
    return count_words(block.text)


def count_words(text: str) -> int:
    """The words of a text, by its blanks; two letters of a script without blanks count as a word."""
    return len(_WORD.findall(text) if _UNSPACED.search(text) else text.split())


def _sections(blocks: Iterable[Block], title: str) -> Iterator[_Section]:
    headings: dict[int, str] = {}
    section = _Section((), 0)
    for block in keep_bare_headings([*blocks], lambda text: text != title and _STATEMENT.search(text)):
        if block.kind is not Kind.HEADING:
            section.blocks.append(block)
            continue
        if len(block.text) > _MAX_HEADING_LENGTH:
            section.blocks.append(Block(block.text, page=block.page))
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


def _fitting(blocks: Sequence[Block]) -> Iterator[Sequence[Block]]:
    """The blocks of a part in about equal pieces of at most `_MAX_CHARACTERS`, which few words may exceed."""
    total = sum(len(block.text) + len(BLOCK_SEPARATOR) for block in blocks)
    target = total / -(-total // _MAX_CHARACTERS)
    piece: list[Block] = []
    length = 0
    for block in blocks:
        size = len(block.text) + len(BLOCK_SEPARATOR)
        if piece and (length + size > _MAX_CHARACTERS or length + size / 2 > target):
            yield piece
            piece, length = [], 0
        piece.append(block)
        length += size
    yield piece


def _pieces(block: Block) -> Iterator[tuple[Block, int]]:
    """A block in pieces that fit into a passage, and their words.

    Code is cut between lines, a row of a table between cells, text between sentences or else words.
    """
    words = _words(block)
    if _fits(words, len(block.text)):
        yield block, words
        return
    if block.kind is Kind.ROW:
        texts = _row_pieces(block)
    else:
        texts = (_code_pieces if block.kind is Kind.CODE else _text_pieces)(block.text)
    for number, text in enumerate(texts):
        kind = block.kind if number == 0 or block.kind in (Kind.CODE, Kind.ROW) else Kind.TEXT
        piece = Block(text, kind, 0, block.page)
        yield piece, _words(piece)


def _fits(words: int, characters: int) -> bool:
    return words <= _MAX_PIECE_WORDS and characters <= _MAX_PIECE_CHARACTERS


def _row_pieces(block: Block) -> Iterator[str]:
    """The cells of a row in parts that begin with what the row is about; a cell is cut only if it does not fit."""
    cells = block.text.split(CELL_SEPARATOR)
    label = block.label or cells[0]
    if count_words(label) > _LABEL_WORDS or len(label) > _LABEL_LENGTH:
        label = ""
    room = _MAX_PIECE_WORDS - count_words(label)
    target = len(label) + len(block.text) / -(-_words(block) // room)  # so that the last part is not a rest
    part: list[str] = []
    for cell in chain.from_iterable(map(_cell_pieces, cells)):
        text = _with_label([*part, cell], label)
        if part and (len(text) - len(cell) / 2 > target or not _fits(count_words(text), len(text))):
            yield _with_label(part, label)
            part = []
        part.append(cell)
    yield _with_label(part, label)


def _with_label(cells: Sequence[str], label: str) -> str:
    text = CELL_SEPARATOR.join(cells)
    is_there = label in cells or text.startswith(label)
    return text if not label or is_there else f"{label}{CELL_SEPARATOR}{text}"


def _cell_pieces(text: str) -> Iterator[str]:
    """A cell in pieces that fit; each begins with the name of its column."""
    if _fits(count_words(text) + _LABEL_WORDS, len(text) + _LABEL_LENGTH):
        yield text
        return
    name = _COLUMN.match(text)
    for number, piece in enumerate(_text_pieces(text)):
        yield f"{name[0]}{piece}" if number and name is not None else piece


def _code_pieces(text: str) -> Iterator[str]:
    """Lines of code in parts, where possible before a line that follows an empty one."""
    part: list[str] = []
    words = length = 0
    for line in text.split("\n"):
        line_words = count_words(line)
        after_gap = bool(part) and not part[-1].strip()
        fits = _fits(words + line_words, length + len(line) + 1)
        if part and (not fits or (after_gap and words >= _TARGET_WORDS)):
            if words:
                yield "\n".join(part).rstrip()
            part, words, length = [], 0, 0
        if not _fits(line_words, len(line)):
            pieces = (line[start:end].strip() for start, end in _stretches(line, 0, len(line)))
            yield from (f"{CODE_INDENT}{piece}" for piece in pieces if piece)
            continue
        if part or line.strip():
            part.append(line)
            words, length = words + line_words, length + len(line) + 1
    if words:
        yield "\n".join(part).rstrip()


def _text_pieces(text: str) -> Iterator[str]:
    start = end = words = 0
    for first, last in _breakable(text):
        size = count_words(text[first:last])
        if words and (words + size > _TARGET_WORDS or last - start > _MAX_PIECE_CHARACTERS):
            yield text[start:end].strip()
            start, words = first, 0
        end, words = last, words + size
    if piece := text[start:].strip():
        yield piece


def _breakable(text: str) -> Iterator[tuple[int, int]]:
    """The spans of sentences; one that is longer than a passage is split between words."""
    for first, last in _between_words(text):
        yield from _stretches(text, first, last)


def _stretches(text: str, start: int, last: int) -> Iterator[tuple[int, int]]:
    """The spans of a text that fit into a passage, cut between words, or else between characters with their marks."""
    words, end = 0, start
    for word in _WORD.finditer(text, start, last):
        if words and not _fits(words + 1, word.end() - start):
            end = _best_cut(text, start, end)
            yield start, end
            start, words = end, count_words(text[end : word.start()])
        while word.end() - start > _MAX_PIECE_CHARACTERS:
            end = _best_cut(text, start, start + _MAX_PIECE_CHARACTERS)
            yield start, end
            start, words = end, 0
        words, end = words + 1, word.end()
    if start < last:
        yield start, last


def _best_cut(text: str, start: int, end: int) -> int:
    """Where to cut before `end`: there if a blank follows, else after the last gap, else between characters."""
    if text[end : end + 1].isspace():
        return end
    gaps = [gap.end() for gap in _GAP.finditer(text, end - (end - start) // 4, end)]
    if gaps:
        return gaps[-1]
    cut = end
    while cut > start and _is_inside_character(text, cut):
        cut -= 1
    return cut if cut > start else end


def _is_inside_character(text: str, place: int) -> bool:
    return (
        unicodedata.category(text[place]).startswith("M")
        or text[place] in _JOINED
        or text[place - 1] == "\u200d"
        or _JAMO.match(text, place - 1) is not None
    )


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
        while last < len(text) and _is_inside_character(text, last):
            last += 1
        yield max(first, begin), last
        begin = last
