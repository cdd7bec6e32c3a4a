"""Leaves out what nothing in a file marks: lists that only repeat the headings below them, and names of other pages.

`Beginnings` finds those in texts that have no headings yet.
"""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import groupby

from rag.documents import navigation as nav
from rag.documents.blocks import Block, Kind
from rag.documents.normalize import squeeze

_MIN_COUNT = 4  # items of a list of contents
_REFERENCE = r"[\w.:+@/-]{1,100} ?\(\d\w{0,4}\)"
_REFERENCES = re.compile(rf"{_REFERENCE}(?:(?:[,;]| and| or|, and|, or)? {_REFERENCE})*\.?")  # ls(1), find(1).
_SHARE = 0.8  # of its items that stand below as headings
# Marks and numbers before the words of a line.
_BEFORE = re.compile(r"\s*(?:[-*+•‣–?o]\s+)?(?:\(?[\dA-Za-z]{1,3}[.)]\s*|\d{1,3}(?:\.\d{1,3})+\.?\s*|\d{1,3}\s+)*")
_BEFORE_WORDS = re.compile(r"^[\W\d_]+")  # marks and numbers, of items and of headings


def drop_contents(blocks: Sequence[Block], omissions: Counter[str]) -> Iterator[Block]:
    """The blocks without such lists, whose items are counted in `omissions`."""
    last = {_bare(block.text): position for position, block in enumerate(blocks) if block.kind is Kind.HEADING}
    last.pop("", None)
    position = 0
    for is_item, run in groupby(blocks, lambda block: block.kind is Kind.ITEM):
        items = [*run]
        position += len(items)
        if is_item and len(items) >= _MIN_COUNT:
            count = sum(last.get(_bare(block.text), -1) >= position for block in items)
            if count >= _SHARE * len(items):
                omissions[nav.CONTENTS] += len(items)
                continue
        yield from items


def drop_references(blocks: Iterable[Block], omissions: Counter[str]) -> Iterator[Block]:
    """The blocks without the names of other manual pages below `See also`; what else stands there is kept."""
    is_below = False
    for block in blocks:
        text = block.text
        if block.kind is Kind.HEADING:
            is_below = text.casefold() == "see also"
        elif block.kind is Kind.ENTRY and text[:10].casefold() == "see also: ":  # a heading in HTML
            is_below, text = True, text[10:]
        if is_below and block.kind in (Kind.TEXT, Kind.ENTRY) and _REFERENCES.fullmatch(text):
            omissions[nav.NAVIGATION] += 1
        else:
            yield block


def _bare(text: str) -> str:
    return _BEFORE_WORDS.sub("", text).casefold()


class Beginnings:
    """The words that lines or parts of a text begin with, without marks and numbers, and where they stand last.

    The texts are gone through when something is looked for among them.
    """

    def __init__(self, texts: Iterable[tuple[int, str]]) -> None:
        self._texts = texts

    @cached_property
    def _places(self) -> dict[str, int]:
        return {words: position for position, text in self._texts if (words := _words(text))}

    @cached_property
    def _sorted_words(self) -> list[str]:
        return sorted(self._places)

    def stand_below(self, text: str, position: int, *, is_whole: bool = False) -> bool:
        """Whether something after a position begins with a text: it is equal or, unless `is_whole`, longer."""
        words, keys = _words(text), self._sorted_words
        index = bisect_left(keys, words)
        if not words or index == len(keys):
            return False
        goes_on = not is_whole and len(words.split()) > 2 and keys[index].startswith(words)
        return (keys[index] == words or goes_on) and self._places[keys[index]] > position


def _words(text: str) -> str:
    before = _BEFORE.match(text)
    return squeeze(text[before.end() :] if before is not None else text).casefold()
