"""Leaves tables of contents out of plain text."""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from rag.corpus.documents import navigation as nav
from rag.corpus.documents.blocks import squeezed
from rag.corpus.documents.text_chunks import Chunk
from rag.corpus.documents.text_lines import GAP, RULE, indent_of

_BEFORE = re.compile(r"\s*(?:[-*+•‣–?o]\s+)?(?:\(?[\dA-Za-z]{1,3}[.)]\s*|\d{1,3}(?:\.\d{1,3})+\.?\s*|\d{1,3}\s+)*")
_CONTENTS = re.compile(r"\s*(?:table of )?contents\s*:?\s*", re.IGNORECASE)
_DOTTED = re.compile(r"(?:\. ?){4,}")


def without_contents(chunks: Sequence[Chunk], dropped: Counter[str]) -> Iterator[Chunk]:
    """The chunks without tables of contents: lines that stand again below, each at the beginning of a chunk.

    Nearly all do, or most below the word `Contents`, as some go on from the line before. Of lines with dots before a
    page number half are enough, and none below that word; `Up to 1 hour ..... 2` is a price.
    """
    places: dict[str, int] = {}  # the last chunk that begins with these words
    for place, chunk in enumerate(chunks):
        said = [line for line in chunk.lines[:3] if not RULE.fullmatch(line)]
        for count in (1, 2):
            if words := _bare(" ".join(said[:count])):
                places[words] = place
    known = sorted(places)
    title: Chunk | None = None  # of contents, if they follow
    inside = False
    for place, chunk in enumerate(chunks):
        if _CONTENTS.fullmatch(chunk.lines[0]) and all(map(RULE.fullmatch, chunk.lines[1:])):
            if title is not None:
                yield title
            title, inside = chunk, False
            continue
        announced = title is not None or inside
        dotted = [line for line in chunk.lines if nav.is_contents_line(line)]
        if dotted and nav.are_contents(dotted):
            announced = announced or any(map(_CONTENTS.fullmatch, chunk.lines))
            names = [_bare(_DOTTED.split(line, maxsplit=1)[0]) for line in dotted]
            if announced or 2 * sum(_stands_below(name, place, known, places) for name in names) >= len(names):
                dropped[nav.CONTENTS] += len(dotted)
                title, inside = None, True
                if rest := tuple(line for line in chunk.lines if not (line in dotted or _CONTENTS.fullmatch(line))):
                    yield replace(chunk, lines=rest, indent=indent_of(rest[0]))
                continue
        lines = [(_bare(line), GAP.search(line.strip()) is None) for line in chunk.lines]
        again = sum(
            (running or words in places) and _stands_below(words, place, known, places) for words, running in lines
        )
        inside = again >= max(1, 0.6 * len(lines)) if announced else again >= max(4, 0.9 * len(lines))
        if inside:
            dropped[nav.CONTENTS] += len(chunk.lines)
        elif title is not None:
            yield title
        title = None
        if not inside:
            yield chunk
    if title is not None:
        yield title


def _bare(line: str) -> str:
    """The words of a line without marks and numbers before them."""
    return squeezed(_BEFORE.sub("", line, count=1)).casefold()


def _stands_below(words: str, place: int, known: Sequence[str], places: Mapping[str, int]) -> bool:
    """Whether a chunk after this place begins with these words, all of its line or, for a longer one, a part."""
    at = bisect_left(known, words)
    if (
        not words
        or at == len(known)
        or (known[at] != words and (len(words.split()) < 3 or not known[at].startswith(words)))
    ):
        return False
    return places[known[at]] > place
