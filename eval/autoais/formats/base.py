"""The `Format` interface: schema, reader, writer and checks of a file format."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from autoais.base.answers import CitedAnswer
from autoais.base.errors import FormatError
from autoais.base.io.notes import Notes as Notes
from autoais.base.io.schema import IDENTIFIER, Schema, faults
from autoais.base.labels import LabelledClaim

Row = tuple[str, dict[str, Any]]
"""A record that fits its format's schema, and `file:line`."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault of a file. A warning breaks no rule of the format."""

    location: str
    message: str
    warning: bool = False

    def __str__(self) -> str:
        return f"{self.location}: {'warning: ' if self.warning else ''}{self.message}"


def refuse_faults(faults: Iterable[Fault]) -> None:
    """Raise `FormatError` for the first fault that is no warning, for readers that it would mislead."""
    for fault in faults:
        if not fault.warning:
            raise FormatError(f"{fault}; `autoais validate` lists all faults of the file")


def dataset_name(path: str | Path) -> str:
    """Return the name of a data set that its file does not name: that of the file, up to the first dot."""
    return Path(path).name.partition(".")[0]


CheckIds = Callable[[str, dict[str, Any]], Iterator[Fault]]
"""Checks a record against the earlier records of its file; the record need not fit the schema."""


def no_ids() -> CheckIds:
    """Return a check that finds nothing, for formats without ids."""
    return lambda location, row: iter(())


def no_faults(rows: Iterable[Row]) -> Iterator[Fault]:
    """Read the rows and find nothing, for formats whose schema is the only check."""
    for _ in rows:
        pass
    return iter(())


def check_by_reading(*reads: Callable[[dict[str, Any], str], object]) -> Callable[[Iterable[Row]], Iterator[Fault]]:
    """Return a check that reports each `FormatError` of these functions of a record and its location."""

    def check(rows: Iterable[Row]) -> Iterator[Fault]:
        for location, row in rows:
            for function in reads:
                try:
                    function(row, location)
                except FormatError as error:
                    yield Fault(location, str(error).removeprefix(f"{location}: "))

    return check


@dataclass(frozen=True, slots=True)
class Format:
    """A file format; a record with all `required_fields` belongs to it.

    `read` turns records into answers, `write` answers into lines, `labels` one record into human labels; each is None
    if the format does not support it. `check` finds faults that the schema cannot express (such as citations of
    missing references) in records that fit the schema. `ids` checks values that must be unique or equal across the
    records of a file. With `csv`, a CSV must have the columns that the schema requires. `supports` holds the features
    (names in `convert.FEATURES`) that `write` keeps. `by_place` says whether a record names no ids, so that its answers
    are numbered by their places in the file.
    """

    name: str
    description: str
    schema: Schema
    required_fields: tuple[str, ...]
    read: Callable[[Iterable[Row], Notes], Iterator[CitedAnswer]] | None = None
    write: Callable[[Iterable[CitedAnswer], Notes], Iterator[str]] | None = None
    labels: Callable[[dict[str, Any], str], Iterator[LabelledClaim]] | None = None
    check: Callable[[Iterable[Row]], Iterator[Fault]] = no_faults
    ids: Callable[[], CheckIds] = no_ids
    supports: frozenset[str] = field(default_factory=frozenset)
    csv: bool = False
    by_place: Callable[[dict[str, Any]], bool] = lambda row: False


def get_valid(row: Mapping[str, Any], name: str, schema: Schema = IDENTIFIER) -> str | None:
    """Return a field as a string; None if it is missing or does not fit the schema."""
    value = row.get(name)
    return None if any(faults(value, schema)) else str(value)


def unique_key(key: Callable[[dict[str, Any]], str | None], message: str) -> Callable[[], CheckIds]:
    """Return a check that the `key` of each record is unique; a key of None is not checked.

    `message` has the placeholders {key} and {first}, the location of the first record with that key.
    """

    def start() -> CheckIds:
        locations: dict[str, str] = {}

        def check(location: str, row: dict[str, Any]) -> Iterator[Fault]:
            value = key(row)
            if value is None:
                return
            if value in locations:
                yield Fault(location, message.format(key=repr(value[:60]), first=locations[value]))
            locations.setdefault(value, location)

        return check

    return start


def unique_id(name: str) -> Callable[[], CheckIds]:
    """Return a check that the id field `name` is unique."""
    return unique_key(lambda row: get_valid(row, name), f"field {name!r}: {{key}} occurs twice (first at {{first}})")


def passage_ids(ids: Sequence[str | None], make_id: Callable[[int], str]) -> Iterator[str]:
    """Yield the ids of passages; `make_id(number)` (from 1) in place of one that is missing, empty or taken.

    A made-up id is never one that another passage was given.
    """
    known_ids, keys = set(ids), set[str]()
    for number, id_or_none in enumerate(ids, 1):
        key = id_or_none
        if key is None or not key.strip() or key in keys:
            key = make_id(number)
            while key in known_ids or key in keys:
                key += "'"
        keys.add(key)
        yield key
