"""Items, what one person judges at a time: `items.jsonl`, and items of cited answers."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from autoais.answers import CitedAnswer
from autoais.errors import FormatError
from autoais.io.jsonl import dumps, read_objects
from autoais.io.schema import BOOLEAN, IDENTIFIER, INTEGER, STRING, Schema, faults, listed, record
from rag.annotate.schemes import KINDS, Kind, Scheme, Unit, flags_for


@dataclass(frozen=True, slots=True)
class Turn:
    """An earlier turn of a conversation."""

    speaker: str
    text: str


@dataclass(frozen=True, slots=True)
class Source:
    """A text that the item is judged against."""

    id: str
    text: str
    title: str = ""
    section: str = ""


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a table."""

    text: str
    header: bool = False
    highlighted: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """A table that a caption is judged against, with the texts around it; these may be empty."""

    rows: tuple[tuple[Cell, ...], ...]
    title: str = ""
    section: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True)
class Item:
    """What one person judges at a time.

    `sentence` (0-based) and `citation` (the id of a passage) are None where the whole answer, or all citations of the
    sentence, are judged. `before` and `after` are the rest of the answer. `expected` has the right verdicts by question,
    which makes it a training or gold item, and `explanation` says why. `group` is the question that the answer belongs
    to; by default the query.
    """

    id: str
    text: str
    answer: str = ""
    sentence: int | None = None
    citation: str | None = None
    kind: Kind = "qa"
    turns: tuple[Turn, ...] = ()
    query: str = ""
    before: str = ""
    after: str = ""
    sources: tuple[Source, ...] = ()
    table: Table | None = None
    expected: Mapping[str, str] = field(default_factory=dict)
    explanation: str = ""
    system: str = ""
    flags: tuple[str, ...] = ()
    group: str = ""

    @property
    def unit(self) -> Unit:
        """Whether a whole answer, a sentence or a citation is judged."""
        if self.citation is not None:
            return "citation"
        return "answer" if self.sentence is None else "sentence"

    @property
    def has_source(self) -> bool:
        """Whether there is anything to judge the item against."""
        return self.table is not None or bool(self.sources)
