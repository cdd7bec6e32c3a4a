"""Titles and headings of plain text."""

import re
from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace

from rag.corpus.documents.blocks import Block, Kind, heading, squeezed, with_bare_headings
from rag.corpus.documents.text_chunks import Chunk
from rag.corpus.documents.text_lines import (
    BULLET,
    CHAPTER,
    GAP,
    GOES_ON,
    LABEL,
    NUMBERED,
    RULE,
    are_narrow,
    indent_of,
    wordy,
)
from rag.corpus.documents.titles import is_generic

_DATE = re.compile(  # "6 October 2025" has no number of a heading
    r"(?:January|February|March|April|May|June|July|August|September|October|November|December)\b|.*\b(?:19|20)\d\d$"
)
_ARTICLE = re.compile(r"(?:article|section|annex|schedule|artikel|clause)\s+[\dIVX]", re.IGNORECASE)
_PARAGRAPH = re.compile(  # "§ 3 Notice", "Article 3", "Article 3: Notice"
    r"\s*(?:§ ?\d{1,4}[a-z]?|(?i:article|artikel|clause|annex|schedule) (?:\d{1,3}|[IVX]{1,5}))\b\W*(?:$|(?=[A-ZÄÖÜ]))"
)
_TITLE_WORDS = 5  # of one without a mark
_NUMBERED_WORDS = 25  # of one such as 2.1
_HEADLINE_WORDS = 10  # of the first line of a text


def titled(text: str, blocks: Sequence[Block]) -> tuple[str, list[Block]]:
    """The title of a plain text ("" if it has none) and its blocks without it.

    That is the only heading of the top rank at the beginning, or a first line above all others: a heading that has no
    text of its own before the next of its rank, or a line that stands alone and is no sentence. Another heading without
    text stays as a line of text.
    """
    headings = [block for block in blocks if block.kind is Kind.HEADING]
    first = blocks[0] if blocks else None
    if first is None or len(blocks) == 1:
        return "", [*with_bare_headings(blocks)]
    title = ""
    if first.kind is Kind.HEADING:
        same = sum(block.level <= first.level for block in headings)
        following = blocks[1]
        over = following.kind is Kind.HEADING and following.level <= first.level
        others = headings[1:]
        if first.text.isupper() and all(not one.text.isupper() or _ARTICLE.match(one.text) for one in others):
            over = True  # capitals that stand above numbers
        if (same == 1 or over) and not (first.level > 1 and is_generic(first.text)):
            title = first.text
    elif _is_title_line(text, first) and sum(block.level == 1 for block in headings) != 1:
        title = first.text
    return title, [*with_bare_headings(blocks[1:] if title else blocks)]


def _is_title_line(text: str, first: Block) -> bool:
    """Whether the first block is a line that stands alone and may be a title."""
    start = text.lstrip().splitlines()
    line = start[0].strip()
    words = line.split()
    return (
        first.kind is Kind.TEXT
        and squeezed(line) == first.text
        and len(start) > 1
        and not start[1].strip()
        and len(line) > 1
        and len(words) <= _HEADLINE_WORDS
        and (line[0].isupper() or line[0].isdigit())
        and (line[-1].isalnum() or line[-1] in ')?”"')
        and not LABEL.match(line)
        and not _DATE.search(line)
        and sum(map(str.isalpha, line)) >= 0.5 * len(line)
    )


def with_titles(chunks: Sequence[Chunk], base: int) -> list[Chunk]:
    """The chunks, with short lines as headings that stand between paragraphs, or lists, if there are two or more."""
    said = [_is_paragraph(chunk, base) for chunk in chunks]
    listed = [_is_listed(chunk) for chunk in chunks]
    above = {  # a list, such as `Drinks` above its prices
        place
        for place in range(len(chunks) - 1)
        if _may_be_title(chunks[place], base) and listed[place + 1] and (place < 2 or listed[place - 1])
    }
    titles = {
        place
        for place in range(len(chunks) - 1)
        if _may_be_title(chunks[place], base) and said[place + 1] and (not place or said[place - 1])
    }
    titles = (titles if len(titles) > 1 else set()) | (above if len(above) > 1 else set())
    return [replace(chunk, title=True) if place in titles else chunk for place, chunk in enumerate(chunks)]


def _is_listed(chunk: Chunk) -> bool:
    """Whether lines are the items of a list, or stand by themselves."""
    lines = [line.strip() for line in chunk.lines]
    if chunk.term or chunk.title or len(lines) < 2 or lines[0].isupper():
        return False
    return all(map(BULLET.match, lines)) or all(map(GAP.search, lines)) or are_narrow(lines)


def _may_be_title(chunk: Chunk, base: int) -> bool:
    line = chunk.lines[0].strip()
    words = line.split()
    return (
        len(chunk.lines) == 1
        and not chunk.signs
        and chunk.indent == base
        and len(words) <= _TITLE_WORDS
        and line[0].isupper()
        and all(word[0].isalpha() for word in words)
        and line[-1].isalpha()
    )


def _is_paragraph(chunk: Chunk, base: int) -> bool:
    return (
        not (chunk.term or chunk.title)
        and chunk.indent == base
        and chunk.lines[-1][-1] in ".!?"
        and not BULLET.match(chunk.lines[0])
        and any(map(wordy, chunk.lines))
    )


def underlined(lines: list[str], rules: list[tuple[str, bool]]) -> Generator[Block, None, list[str]]:
    """Yield the headings that have a line of signs below (and above) them; return the other lines."""
    above = len(lines) >= 3 and RULE.fullmatch(lines[0]) is not None and lines[0].strip() == lines[2].strip()
    if above:
        del lines[0]
    rule = RULE.fullmatch(lines[1]) if len(lines) >= 2 and not RULE.fullmatch(lines[0]) else None
    if rule is not None and len(lines[1].strip()) >= 0.5 * len(lines[0].strip()):
        rank = rule[1], above
        if rank not in rules:
            rules.append(rank)
        yield heading(squeezed(lines[0]), min(rules.index(rank) + 1, 6))
        del lines[:2]
    return [line for line in lines if not RULE.fullmatch(line)]


def first_heading(lines: list[str], base: int, level: int) -> Iterator[Block]:
    """The heading that lines begin with, if there is one, which they lose; `level` is that of one without a number."""
    if count := _heading_lines(lines, base):
        text = " ".join(lines[:count])
        number = CHAPTER.match(text) or NUMBERED.match(text)
        if number:  # "A.1" stands where "1" does: "A." is no heading
            level = 2 + number[1].count(".") - ("." in number[1] and number[1][0].isalpha())
        yield heading(squeezed(text[number.end() :] if number else text), min(level, 6))
        del lines[:count]


def _heading_lines(lines: Sequence[str], base: int) -> int:
    """How many of the first lines are a heading: one, or two of a numbered one that goes on."""
    if len(lines) == 1 and CHAPTER.match(lines[0]) and len(lines[0].split()) <= _NUMBERED_WORDS:
        return int(lines[0].strip()[-1] not in ".,;:!")
    number = NUMBERED.match(lines[0])
    if number is not None and ("." in number[1] or lines[-1].endswith("?")):
        more = lines[1:]
        alone = len(more) <= 1 and not any(BULLET.match(line) or NUMBERED.match(line) for line in more)
        return len(lines) if alone and _is_heading(" ".join(lines), base, _NUMBERED_WORDS, ".,;:!") else 0
    if _PARAGRAPH.match(lines[0]) and len(lines[0].split()) <= _HEADLINE_WORDS and lines[0][-1] not in ".,;!":
        return int(not any(map(_PARAGRAPH.match, lines[1:])))
    sentence = lines[-1][-1] in ".!" or GOES_ON.search(lines[0].lower()) or any(map(str.isdigit, lines[0]))
    if len(lines) > 1 and all(map(str.isupper, lines)) and sentence:
        return 0  # or entries, "POLICE 110"
    return int((len(lines) == 1 or lines[0].isupper()) and _is_heading(lines[0], base))


def _is_heading(line: str, base: int, longest: int = 10, ends: str = ".,;:!?") -> bool:
    text = line.strip()
    if len(text.split()) > longest or text[-1] in ends or indent_of(line) > base or not text[0].isalnum():
        return False
    number = NUMBERED.match(line)
    said = text if number is None else line[number.end() :]
    letters = [c for c in said if c.isalpha()]
    if len(letters) < 0.6 * len(said.replace(" ", "")):
        return False
    if number is not None and number.group().strip().isdigit() and (not said[0].isupper() or _DATE.match(said)):
        return False  # "24 hours", "6 October 2025"
    return len(letters) >= 3 and (number is not None or (text.isupper() and "_" not in text))
