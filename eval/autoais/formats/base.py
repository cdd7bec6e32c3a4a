"""What a format is: how its records look, what they say in our terms, and what it cannot hold."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from autoais.answers import CitedAnswer
from autoais.io.schema import IDENTIFIER, Schema, faults
from autoais.labels import Labelled

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


CheckIds = Callable[[str, dict[str, Any]], Iterator[Fault]]
"""What is said of one record after the others of its file; the record need not fit the schema."""


def no_ids() -> CheckIds:
    """For a format whose records have nothing to differ or agree in."""
    return lambda where, row: iter(())


def no_faults(rows: Iterable[Row]) -> Iterator[Fault]:
    """For a format whose schema says all there is to check."""
    for _ in rows:
        pass
    return iter(())


@dataclass(frozen=True, slots=True)
class Format:
    """A format by name; `marks` are the fields by which a record is known, `says` what the format is for.

    `read` turns records into answers, `write` answers into lines, `labels` one record into human labels: None where
    the format has no such thing. `check` finds what a schema cannot say (numbers that point nowhere) in records that
    fit it, `ids` what must differ or agree among all records of a file. With `csv` a CSV must have the columns that
    the schema requires.
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
    ids: Callable[[], CheckIds] = no_ids
    keeps: frozenset[str] = field(default_factory=frozenset)
    csv: bool = False


def sound(row: Mapping[str, Any], name: str, schema: Schema = IDENTIFIER) -> str | None:
    """A field as a string; None where it is missing or does not fit the schema."""
    value = row.get(name)
    return None if any(faults(value, schema)) else str(value)


def said_twice(key: Callable[[dict[str, Any]], str | None], says: str) -> Callable[[], CheckIds]:
    """A check that what `key` takes out of each record differs; it takes None where there is nothing sound.

    `says` is the fault, with {key} and the place of the {first}.
    """

    def start() -> CheckIds:
        seen: dict[str, str] = {}

        def check(where: str, row: dict[str, Any]) -> Iterator[Fault]:
            found = key(row)
            if found is None:
                return
            if found in seen:
                yield Fault(where, says.format(key=repr(found[:60]), first=seen[found]))
            seen.setdefault(found, where)

        return check

    return start


def id_twice(name: str) -> Callable[[], CheckIds]:
    """A check that the id of that name differs in every record."""
    return said_twice(lambda row: sound(row, name), f"field {name!r}: {{key}} occurs twice (first at {{first}})")
