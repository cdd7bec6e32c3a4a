"""Leaves tables of contents out of plain text."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from rag.documents import navigation as nav
from rag.documents.contents import Beginnings
from rag.documents.converters.text_chunks import Chunk
from rag.documents.converters.text_lines import GAP, RULE, indent_of

_LONG, _FEWEST, _WORDS = 20, 3, 12  # lines of long contents, of them that stand below, and words of each
_AGAIN = 5  # lines of contents without a title, all of which stand in the long ones above
_NAME_WORDS = 4  # of a line that ends as sentences do and may be none


def without_contents(chunks: Sequence[Chunk], dropped: Counter[str]) -> Iterator[Chunk]:
    """The chunks without tables of contents: lines that stand again below, each at the beginning of a chunk.

    Nearly all do, or most below the word `Contents`, as some go on from the line before. Of lines with dots before a
    page number half are enough, and none below that word; `Up to 1 hour ..... 2` is a price.
    """
    begins: list[tuple[int, str]] = []
    for place, chunk in enumerate(chunks):
        said = [line for line in chunk.lines[:3] if not RULE.fullmatch(line)]
        begins += ((place, " ".join(said[:count])) for count in (1, 2))
    beginnings = Beginnings(begins)
    last = _ends_of_long(chunks, beginnings)
    title: Chunk | None = None  # of contents, if they follow
    inside = False
    until = 0
    for place, chunk in enumerate(chunks):
        if place in last:
            until = last[place]
            dropped[nav.CONTENTS] += until - place
        if place < until:
            continue
        if nav.names_contents(chunk.lines[0]) and all(map(RULE.fullmatch, chunk.lines[1:])):
            if title is not None:
                yield title
            title, inside = chunk, False
            continue
        announced = title is not None or inside
        dotted = [line for line in chunk.lines if nav.is_contents_line(line)]
        if dotted and nav.are_contents(dotted):
            announced = announced or any(map(nav.names_contents, chunk.lines))
            below = sum(beginnings.stand_below(nav.named_by(line), place) for line in dotted)
            if announced or 2 * below >= len(dotted):
                dropped[nav.CONTENTS] += len(dotted)
                title, inside = None, True
                if rest := tuple(line for line in chunk.lines if not (line in dotted or nav.names_contents(line))):
                    yield replace(chunk, lines=rest, indent=indent_of(rest[0]))
                continue
        again = sum(
            beginnings.stand_below(line, place, whole=GAP.search(line.strip()) is not None) for line in chunk.lines
        )
        count = len(chunk.lines)
        inside = again >= max(1, 0.6 * count) if announced else again >= max(4, 0.9 * count)
        if inside:
            dropped[nav.CONTENTS] += len(chunk.lines)
        elif title is not None:
            yield title
        title = None
        if not inside:
            yield chunk
    if title is not None:
        yield title


def _ends_of_long(chunks: Sequence[Chunk], beginnings: Beginnings) -> dict[int, int]:
    """Where long contents begin, with their title, and where they end: lines that stand apart and are no sentences.

    A few stand below as they are; those of a glossary have signs around them there. Its parts may have contents of
    their own, without a title. The first heading of the text, which may follow at once, stands above in the contents.
    """
    ends: dict[int, int] = {}
    known: set[str] = set()  # lines of contents so far
    place = 0
    while place < len(chunks):
        titled = nav.names_contents(chunks[place].lines[0]) and all(map(RULE.fullmatch, chunks[place].lines[1:]))
        first = end = place + titled
        while end < len(chunks) and _may_be_named(chunks[end]):
            line = chunks[end].lines[0]
            again = line.strip().casefold() in known
            if not again and (not titled or (_is_sentence(line) and not beginnings.stand_below(line, end))):
                break
            end += 1
        said = [chunk.lines[0].strip().casefold() for chunk in chunks[first:end]]
        firsts = _firsts(said)
        while titled and said and firsts[len(said) - 1] < len(said) - 1:
            said.pop()
        below = (beginnings.stand_below(line, first + len(said) - 1) for line in said)
        if len(said) >= (_LONG if titled else _AGAIN) and (not titled or sum(below) >= _FEWEST):
            ends[place] = first + len(said)
            known.update(said)
        place = max(end, place + 1)
    return ends


def _firsts(lines: Sequence[str]) -> list[int]:
    """For each line, the place of the first one like it."""
    places: dict[str, int] = {}
    return [places.setdefault(line, place) for place, line in enumerate(lines)]


def _may_be_named(chunk: Chunk) -> bool:
    """Whether a chunk may be a line of contents without a page number."""
    line = chunk.lines[0]
    return len(chunk.lines) == 1 and len(line.split()) <= _WORDS and not nav.names_contents(line)


def _is_sentence(line: str) -> bool:
    return len(line.split()) > _NAME_WORDS and line[-1] in ".!?"
