"""The answer as one text with its citations in it, and the places where they stand."""

from dataclasses import dataclass, field

from rag.answer.export.escaping import visible
from rag.answer.export.sources import Link, Source, abstention_notice, list_sources
from rag.base.types import Answer


@dataclass(frozen=True, slots=True)
class Place:
    """Characters `start` to `end` (exclusive) of a rendered text: one citation of a source, such as `[1]`."""

    start: int
    end: int
    source: Source


@dataclass(frozen=True, slots=True)
class Rendered:
    """A text with citations, and their places in order."""

    text: str
    places: tuple[Place, ...] = ()


@dataclass(slots=True)
class Writer:
    """Puts a rendered text together."""

    length: int = 0
    _parts: list[str] = field(default_factory=list)
    _places: list[Place] = field(default_factory=list)

    def write(self, text: str) -> None:
        """Add text."""
        self._parts.append(text)
        self.length += len(text)

    def cite(self, source: Source, text: str) -> None:
        """Add the text of a citation."""
        start = self.length
        self.write(text)
        self._places.append(Place(start, self.length, source))

    def finish(self) -> Rendered:
        """Return the whole."""
        return Rendered("".join(self._parts), tuple(self._places))


def with_markers(answer: Answer, link: Link | None = None) -> Rendered:
    """The text of `str(answer)`, with markers such as `[1]`; for an abstention, a sentence that says so.

    Hidden characters are U+FFFD.
    """
    if answer.abstained:
        return Rendered(abstention_notice(answer))
    by_number = {source.number: source for source in list_sources(answer, link)}
    writer = Writer()
    for text, numbers in answer.pieces():
        writer.write(visible(text))
        for position, number in enumerate(numbers):
            writer.write("" if position else " ")
            writer.cite(by_number[number], f"[{number}]")
    return writer.finish()
