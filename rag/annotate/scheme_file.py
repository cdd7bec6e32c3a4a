"""Schemes of a study's own, in TOML: the questions, their choices, what is shown, and the guidelines."""

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar, cast, get_args

from autoais.base.errors import json_kind
from autoais.formats.human_ratings.ratings import FLAG, VALUES
from rag.annotate.items import unstorable
from rag.annotate.schemes import COMMAND_KEYS, Option, Part, Question, Scheme, Unit, scheme_of
from rag.base.errors import UserError

Value = TypeVar("Value")

SUFFIX = ".toml"
PASSAGE = "passage"
_MAX_BYTES = 1 << 20
_MAX_QUESTIONS, _MAX_CHOICES = 20, 12
_SCHEME_KEYS = ("name", "description", "unit", "guidelines", "questions")
_QUESTION_KEYS = (
    "name", "text", "help", "unit", "shows", "choices", "asked_if", "evidence_for", "words_for",
)  # fmt: skip
_CHOICE_KEYS = ("key", "value", "label")
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,39}")
_VALUE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}")
_NAME_RULE = "a name such as 'up-to-date' (small letters, digits, - and _)"


def open_scheme(name: str, folder: Path | None = None) -> Scheme:
    """Return the scheme of that name, or of the file, if the name ends in `.toml`; its path is relative to `folder`.

    Raises `UsageError` for an unknown name, and `UserError` that names the file and the key.
    """
    return read_scheme((folder or Path()) / name) if name.endswith(SUFFIX) else scheme_of(name)


def read_scheme(path: Path) -> Scheme:
    """Read a scheme; raises `UserError` that names the file, the key, and what was there."""
    return parse_scheme(read_toml(path, "a scheme"), str(path))


def read_toml(path: Path, kind: str) -> dict[str, Any]:
    """Read a TOML file that people write; raises `UserError` that names it, also for what no database stores."""
    try:
        content = path.read_bytes()
        if len(content) > _MAX_BYTES:
            raise UserError(f"{path}: has {len(content):,} bytes; {kind} has at most {_MAX_BYTES:,}")
        return tomllib.loads(content.decode("utf-8"))
    except OSError as error:
        raise UserError(f"{path}: cannot be read as {kind}: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}: cannot be read as {kind}: {error}") from error


def parse_scheme(values: Mapping[str, Any], location: str) -> Scheme:
    """Return the scheme of the keys and values of a file; raises `UserError`, which begins with `location`."""
    table = Table(values, location, _SCHEME_KEYS)
    default_unit = table.choice("unit", get_args(Unit), "answer")
    questions: list[Question] = []
    for row in table.tables("questions", _QUESTION_KEYS, 1, _MAX_QUESTIONS):
        questions.append(_question(row, default_unit, questions))
    return Scheme(
        table.name("name"),
        table.text("description", 300),
        tuple(questions),
        table.text("guidelines", 200_000, default=""),
    )


def _question(table: "Table", default_unit: str, earlier: list[Question]) -> Question:
    name, unit = table.name("name"), cast("Unit", table.choice("unit", get_args(Unit), default_unit))
    siblings = {question.name: question for question in earlier if question.unit == unit}
    if name == FLAG or name in siblings:
        raise table.error("name", f"{name!r} is taken; name the question otherwise")
    options = tuple(_option(row) for row in table.tables("choices", _CHOICE_KEYS, 2, _MAX_CHOICES))
    _check_options(table, name, options)
    values = [option.value for option in options]
    parts = (*get_args(Part), PASSAGE)
    shows = table.names("shows", parts, parts)
    if unit == PASSAGE and PASSAGE not in shows:
        raise table.error("shows", "lacks 'passage', which the question is about; add it")
    return Question(
        name,
        table.text("text", 500),
        options,
        unit,
        source="shown" if PASSAGE in shows else "hidden",
        asked_if=_conditions(table, siblings),
        evidence_for=table.names("evidence_for", values, () if PASSAGE in shows else None),
        words_for=table.names("words_for", values, () if PASSAGE in shows else None),
        hides=tuple(part for part in get_args(Part) if part not in shows),
        help=table.text("help", 2_000, default=""),
    )


def _option(table: "Table") -> Option:
    value = table.text("value", 40)
    if not _VALUE.fullmatch(value):
        raise table.error("value", f"should be letters, digits, - and _, found {value!r:.60}")
    return Option(table.text("key", 1), value, table.text("label", 200))


def _check_options(table: "Table", name: str, options: tuple[Option, ...]) -> None:
    keys, values = [option.key for option in options], [option.value for option in options]
    for field, entries in (("key", keys), ("value", values)):
        if twice := next((entry for entry in entries if entries.count(entry) > 1), None):
            raise table.error("choices", f"two have the {field} {twice!r}; change one of them")
    for key in keys:
        if key in COMMAND_KEYS or not (key.isascii() and key.isalnum() and key == key.lower()):
            command_keys = ", ".join(COMMAND_KEYS)
            raise table.error(
                "choices", f"should have keys that are a small letter or a digit, but not {command_keys}, found {key!r}"
            )
    digits = [value.isdecimal() for value in values]
    if any(digits) and not (all(digits) and all(len(value) == 1 for value in values)):
        raise table.error("choices", "values should be words, or all digits (a scale), found both or longer numbers")
    fixed_values = VALUES.get(name)
    if fixed_values is not None and (other := next((value for value in values if value not in fixed_values), None)):
        raise table.error(
            "choices",
            f"{name!r} has the values {', '.join(fixed_values)}, found {other!r}; name the question otherwise",
        )


def _conditions(table: "Table", siblings: Mapping[str, Question]) -> dict[str, tuple[str, ...]]:
    conditions = Table(table.value("asked_if", dict, {}), f"{table.location}.asked_if", tuple(siblings))
    return {name: conditions.names(name, siblings[name].values, ()) for name in conditions.values}


class Table:
    """A table of a TOML file, read strictly. All errors are `UserError`s that name file, key, and what was there."""

    def __init__(self, values: Mapping[str, Any], location: str, keys: tuple[str, ...]) -> None:
        self.values, self.location = values, location
        if unknown := sorted(values.keys() - set(keys)):
            allowed = f"there are: {', '.join(keys)}" if keys else "there is none to name here"
            raise UserError(f"{location}: unknown key {unknown[0][:60]!r}; {allowed}")

    def error(self, key: str, message: str) -> UserError:
        """Return an error about a key."""
        return UserError(f"{self.location}: {key} {message}")

    def value(self, key: str, kind: type[Value], default: Value | None = None) -> Value:
        """Return a value of this type; without a default, the key has to be there."""
        value = self.values.get(key, default)
        if value is None:
            raise self.error(key, "is missing; add it")
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            expected = {str: "a string", dict: "a table", list: "a list", bool: "true or false", int: "an integer"}
            raise self.error(key, f"should be {expected[kind]}, found {json_kind(value)}")
        return value

    def text(self, key: str, longest: int, default: str | None = None) -> str:
        """Return a string that is not blank and at most so long; a default may be empty."""
        value = self.value(key, str, default)
        if default is None and not value.strip():
            raise self.error(key, "is empty; write it")
        if len(value) > longest:
            raise self.error(key, f"has {len(value):,} characters; at most {longest:,} fit")
        if wrong := unstorable(value):
            raise self.error(key, f"holds {wrong}; remove it")
        return value

    def name(self, key: str) -> str:
        """Return a name that can stand in files and forms."""
        value = self.text(key, 40)
        if not _NAME.fullmatch(value):
            raise self.error(key, f"should be {_NAME_RULE}, found {value!r:.60}")
        return value

    def choice(self, key: str, allowed: tuple[str, ...], default: str | None = None) -> str:
        """Return one of the allowed strings."""
        value = self.text(key, 100, default)
        if value not in allowed:
            raise self.error(key, f"should be one of {', '.join(allowed)}, found {value!r:.60}")
        return value

    def names(
        self, key: str, allowed: "list[str] | tuple[str, ...]", default: tuple[str, ...] | None
    ) -> tuple[str, ...]:
        """Return a list of allowed strings, each once; with a default of None the key must not be there."""
        if default is None:
            if key in self.values:
                raise self.error(key, "needs the passage on the page; add it to shows")
            return ()
        entries = self.value(key, list, list(default))
        for entry in entries:
            if entry not in allowed:
                raise self.error(key, f"should hold some of {', '.join(allowed)}, found {entry!r:.60}")
        if key in self.values and not entries:
            raise self.error(key, f"is an empty list; name some of {', '.join(allowed)}, or leave it out")
        return tuple(dict.fromkeys(entries))

    def tables(self, key: str, keys: tuple[str, ...], least: int, most: int) -> list["Table"]:
        """Return the tables of a list."""
        rows = self.value(key, list)
        if not least <= len(rows) <= most:
            raise self.error(key, f"should have {least} to {most} entries, found {len(rows)}")
        tables = []
        for number, row in enumerate(rows):
            location = f"{self.location}: {key}[{number}]"
            if not isinstance(row, dict):
                raise UserError(f"{location} should be a table, found {json_kind(row)}")
            tables.append(Table(row, location, keys))
        return tables
