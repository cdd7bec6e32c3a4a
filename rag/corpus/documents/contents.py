"""Leaves out lists that only repeat the headings below them: tables of contents that nothing in the file marks."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby

from rag.corpus.documents import navigation as nav
from rag.corpus.documents.blocks import Block, Kind

_FEWEST = 4  # items of a list of contents
_SHARE = 0.8  # of its items that stand below as headings
_BEFORE_WORDS = re.compile(r"^[\W\d_]+")  # marks and numbers, of items and of headings


def without_contents(blocks: Sequence[Block], dropped: Counter[str]) -> Iterator[Block]:
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


def _bare(text: str) -> str:
    return _BEFORE_WORDS.sub("", text).casefold()
