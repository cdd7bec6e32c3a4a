"""What a format is: how its records look, what they say in our terms, and what it cannot hold."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from autoais.answers import CitedAnswer
from autoais.labels import Labelled
from autoais.schema import Schema

Notes = Counter[str]
"""What happened how often that a person should know: rows dropped, ids unknown."""

Row = tuple[str, dict[str, Any]]
"""A record that fits its format's schema, and `file:line`."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing wrong with a file; a warning is a thing to look at that breaks no rule of the format."""

    where: str
    message: str
    warning: bool = False

    def __str__(self) -> str:
        return f"{self.where}: {'warning: ' if self.warning else ''}{self.message}"


def no_faults(rows: Iterable[Row]) -> Iterator[Fault]:
    """For a format whose schema says all there is to check."""
    for _ in rows:
        pass
    return iter(())


@dataclass(frozen=True, slots=True)
class Format:
    """A format by name; `marks` are the fields by which a record is known, `says` what the format is for.

    `read` turns records into answers, `write` answers into lines, `labels` one record into human labels: None where
    the format has no such thing. `check` finds what a schema cannot say (ids twice, numbers that point nowhere).
    `keeps` are the features (names in `convert.FEATURES`) that writing does not lose.
    """

    name: str
    says: str
    schema: Schema
    marks: tuple[str, ...]
    read: Callable[[Iterable[Row], Notes], Iterator[CitedAnswer]] | None = None
    write: Callable[[Iterable[CitedAnswer], Notes], Iterator[str]] | None = None
    labels: Callable[[dict[str, Any], str], Iterator[Labelled]] | None = None
    check: Callable[[Iterable[Row]], Iterator[Fault]] = no_faults
    keeps: frozenset[str] = field(default_factory=frozenset)
    csv: bool = False


def said_twice(name: str) -> Callable[[Iterable[Row]], Iterator[Fault]]:
    """A check that the field of that name differs in every record."""

    def check(rows: Iterable[Row]) -> Iterator[Fault]:
        seen: dict[str, str] = {}
        for where, row in rows:
            key = str(row[name])
            if key in seen:
                yield Fault(where, f"field {name!r}: {key[:60]!r} occurs twice (first at {seen[key]})")
            seen.setdefault(key, where)

    return check
