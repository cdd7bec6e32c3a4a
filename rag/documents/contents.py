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
from rag.documents.blocks import Block, Kind, squeeze

_FEWEST = 4  # items of a list of contents
_REFERENCE = r"[\w.:+@/-]{1,100} ?\(\d\w{0,4}\)"
_REFERENCES = re.compile(rf"{_REFERENCE}(?:(?:[,;]| and| or|, and|, or)? {_REFERENCE})*\.?")  # ls(1), find(1).
_SHARE = 0.8  # of its items that stand below as headings
# Marks and numbers before the words of a line.
_BEFORE = re.compile(r"\s*(?:[-*+•‣–?o]\s+)?(?:\(?[\dA-Za-z]{1,3}[.)]\s*|\d{1,3}(?:\.\d{1,3})+\.?\s*|\d{1,3}\s+)*")
_BEFORE_WORDS = re.compile(r"^[\W\d_]+")  # marks and numbers, of items and of headings


def drop_contents(blocks: Sequence[Block], dropped: Counter[str]) -> Iterator[Block]:
    """The blocks without such lists, whose items are counted in `dropped`."""
    last = {_bare(block.text): place for place, block in enumerate(blocks) if block.kind is Kind.HEADING}
    last.pop("", None)
    place = 0
    for is_item, run in groupby(blocks, lambda block: block.kind is Kind.ITEM):
        listed = [*run]
        place += len(listed)
        if is_item and len(listed) >= _FEWEST:
            below = sum(last.get(_bare(block.text), -1) >= place for block in listed)
            if below >= _SHARE * len(listed):
                dropped[nav.CONTENTS] += len(listed)
                continue
        yield from listed


def drop_references(blocks: Iterable[Block], dropped: Counter[str]) -> Iterator[Block]:
    """The blocks without the names of other manual pages below `See also`; what else stands there is kept."""
    inside = False
    for block in blocks:
        text = block.text
        if block.kind is Kind.HEADING:
            inside = text.casefold() == "see also"
        elif block.kind is Kind.ENTRY and text[:10].casefold() == "see also: ":  # a heading in HTML
            inside, text = True, text[10:]
        if inside and block.kind in (Kind.TEXT, Kind.ENTRY) and _REFERENCES.fullmatch(text):
            dropped[nav.NAVIGATION] += 1
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
        return {words: place for place, text in self._texts if (words := _words(text))}

    @cached_property
    def _sorted_words(self) -> list[str]:
        return sorted(self._places)

    def stand_below(self, text: str, place: int, *, whole: bool = False) -> bool:
        """Whether something after a place begins with a text: it is the same or, unless `whole`, goes on after it."""
        words, known = _words(text), self._sorted_words
        at = bisect_left(known, words)
        if not words or at == len(known):
            return False
        goes_on = not whole and len(words.split()) > 2 and known[at].startswith(words)
        return (known[at] == words or goes_on) and self._places[known[at]] > place


def _words(text: str) -> str:
    before = _BEFORE.match(text)
    return squeeze(text[before.end() :] if before is not None else text).casefold()
