"""Leaves tables of contents out of plain text."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from rag.corpus.documents import navigation as nav
from rag.corpus.documents.contents import Beginnings
from rag.corpus.documents.text_chunks import Chunk
from rag.corpus.documents.text_lines import GAP, RULE, indent_of


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
    title: Chunk | None = None  # of contents, if they follow
    inside = False
    for place, chunk in enumerate(chunks):
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
