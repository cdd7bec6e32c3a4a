"""Reading of ratings: our own jsonl, Label Studio's JSON, or annotations of autojudge-annotate."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from autoais.base.errors import AIS_REPORT, FormatError, as_path
from autoais.base.io.files import records
from autoais.base.io.schema import (
    IDENTIFIER,
    STRING,
    faults,
    record,
)
from autoais.formats.human_ratings import autojudge, label_studio
from autoais.formats.human_ratings.ratings import LIKERT, SCHEMA, Rating, check_value, from_row


def read_ratings(path: str | Path) -> Iterator[Rating]:
    """Stream the ratings of a file: our own jsonl, Label Studio's JSON, or annotations of autojudge-annotate.

    A rating that occurs again with the same value is read once. Raises `FormatError` with file, line and field for a
    row that does not fit, for two different values of one annotator for the same item, question and phase, for two
    adjudications that contradict each other, for a question with both yes or no and values from 1 to 5, and for a file
    without ratings.
    """
    path = as_path("ratings", path)
    none = True
    for rating in distinct(_read(path)):
        none = False
        yield rating
    if none:
        raise FormatError(f"{path}: holds no ratings")


def distinct(ratings: Iterable[tuple[Rating, str]]) -> Iterator[Rating]:
    """Yield ratings, each given with its place, once.

    Raises `FormatError` for another value of one annotator, another adjudication of an item and question, and a value
    from 1 to 5 beside yes or no: nobody can tell which cut the people had in mind.
    """
    values: dict[tuple[str | None, ...], tuple[str, str]] = {}
    adjudications: dict[tuple[str, str], tuple[str, str]] = {}
    scale: tuple[bool, str] | None = None  # of the one question that has two: whether from 1 to 5, and where it was
    for rating, location in ratings:
        if rating.phase == "adjudication" and rating.key not in values:
            earlier, first = adjudications.setdefault((rating.item, rating.question), (rating.value, location))
            if earlier != rating.value:
                raise FormatError(
                    f"{location}: item {rating.item!r:.60} was adjudicated before, question {rating.question!r:.60}, "
                    f"with another value ({first}); keep one of the two"
                )
        if rating.phase == "study" and rating.question == "attributable":
            is_likert = rating.value in LIKERT
            scale = scale or (is_likert, location)
            other, first = scale
            if other != is_likert:
                raise FormatError(
                    f"{location}: question {rating.question!r} has the value {rating.value!r:.60}, and yes, no and "
                    f"values from 1 to 5 are two scales ({first} has the other); keep them in two files"
                )
        if rating.key not in values:
            values[rating.key] = rating.value, location
            yield rating
            continue
        earlier, first = values[rating.key]
        if earlier != rating.value:
            raise FormatError(
                f"{location}: annotator {rating.annotator!r:.60} rated item {rating.item!r:.60} before, question "
                f"{rating.question!r:.60} ({first}); keep one of the two"
            )


def _read(path: Path) -> Iterator[tuple[Rating, str]]:
    """Yield each rating with its `file:line`."""
    for location, row in records(path, SCHEMA["required"]):
        if isinstance(row, FormatError):
            raise FormatError(f"{row}; for majorities {AIS_REPORT}") if "INT & AIS" in str(row) else row
        if "press" in row and "kind" in row:
            raise FormatError(f"{location}: this is the log of presses; use ratings.jsonl beside it")
        if label_studio.is_task(row):
            yield from ((rating, location) for rating in label_studio.read(row, location))
        elif autojudge.is_annotation(row):
            yield from ((rating, location) for rating in autojudge.read(row, location))
        else:
            yield from_row(row, location), location


_EXPECTED = record({"id": IDENTIFIER, "expected": {"type": "object", "additionalProperties": STRING}})


def read_expected(path: str | Path) -> dict[str, dict[str, str]]:
    """Read the right values of gold items, by item and question, from a file of items (jsonl: id, expected).

    Items without `expected` are skipped. Raises `FormatError` for a row that does not fit, for a value that its
    question does not have, and if no item has any.
    """
    values_by_item: dict[str, dict[str, str]] = {}
    for location, row in records(as_path("gold", path)):
        if isinstance(row, FormatError):
            raise row
        if row.get("expected"):
            for fault in faults(row, _EXPECTED):
                raise FormatError(f"{location}: {fault}")
            for question, value in row["expected"].items():
                check_value(location, f"expected.{question}", question, str(value))
            values_by_item[str(row["id"])] = row["expected"]
    if not values_by_item:
        raise FormatError(f"{path}: no item has field 'expected'")
    return values_by_item
