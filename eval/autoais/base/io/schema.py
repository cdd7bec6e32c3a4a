"""JSON Schemas (draft 2020-12) of records, and a checker that names every field that does not fit.

A format's reader and validator use the same schema, so the validator reports whatever the reader rejects.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from functools import lru_cache
from typing import Any

from autoais.base.errors import field_names, json_kind

Schema = dict[str, Any]

_NAMES = {
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}
_MIN_SIMILARITY = 0.8  # of two names (difflib): a letter more or less, a wrong ending
_PLURAL = {"string": "strings", "object": "objects", "integer": "integers", "number": "numbers"}

STRING: Schema = {"type": "string"}
TEXT_OR_NULL: Schema = {"type": ["string", "null"]}
BOOLEAN: Schema = {"type": "boolean"}
INTEGER: Schema = {"type": "integer"}
NUMBER: Schema = {"type": "number"}
NUMBER_OR_NULL: Schema = {"type": ["number", "null"]}
LABEL: Schema = {"type": ["integer", "null"], "enum": [0, 1, None]}
IDENTIFIER: Schema = {"type": ["string", "integer"], "pattern": r"\S"}
STRINGS_OR_NULL: Schema = {"type": ["array", "null"], "items": STRING}


def record(required: Mapping[str, Schema], optional: Mapping[str, Schema] | None = None) -> Schema:
    """Return the schema of an object; other fields are allowed."""
    return {"type": "object", "required": list(required), "properties": {**required, **(optional or {})}}


def list_of(item: Schema, **limits: int | bool) -> Schema:
    """Return the schema of a list of such items."""
    return {"type": "array", "items": item, **limits}


def faults(value: object, schema: Schema, path: str = "", *, limits: bool = True) -> Iterator[str]:
    """Yield a message for every field that does not fit the schema; `path` is the field's path ("" for the record).

    Supports the keywords that the formats use: type, enum, pattern, required, properties, items, minimum, maxItems,
    uniqueItems. Without `limits` the last two are ignored: a list that is too long can still be read.
    """
    kinds = _kinds(schema)
    if kinds and not any(_has_type(value, kind) for kind in kinds):
        yield f"{_field(path)} should be {_describe_types(schema)}, found {json_kind(value)}"
        return
    if "enum" in schema and not any(
        value == choice and isinstance(value, bool) == isinstance(choice, bool) for choice in schema["enum"]
    ):
        choices = ", ".join("null" if choice is None else repr(choice) for choice in schema["enum"])
        yield f"{_field(path)} should be one of {choices}, found {str(value)[:60]!r}"
    if isinstance(value, str) and "pattern" in schema and not re.search(schema["pattern"], value):
        yield f"{_field(path)} is empty" if not value.strip() else f"{_field(path)} is malformed: {value[:60]!r}"
    if isinstance(value, int | float) and "minimum" in schema and value < schema["minimum"]:
        yield f"{_field(path)} should be at least {schema['minimum']}, found {value}"
    if isinstance(value, dict):
        yield from _object_faults(value, schema, path, limits)
    if isinstance(value, list):
        yield from _list_faults(value, schema, path, limits)


def _object_faults(value: dict[str, Any], schema: Schema, path: str, limits: bool) -> Iterator[str]:
    for name in schema.get("required", ()):
        if name not in value:
            names = field_names(value)
            yield f"{_field(_join(path, name))} is missing (found: {names})"
    for name, inner in schema.get("properties", {}).items():
        if name in value:
            yield from faults(value[name], inner, _join(path, name), limits=limits)
    properties, inner = schema.get("properties", {}), schema.get("additionalProperties", {})
    for name in [name for name in value if name not in properties] if inner else ():
        yield from faults(value[name], inner, _join(path, name), limits=limits)


def _list_faults(value: list[Any], schema: Schema, path: str, limits: bool) -> Iterator[str]:
    inner = schema.get("items", {})
    kinds = _kinds(inner)
    strange = [item for item in value if kinds and not any(_has_type(item, kind) for kind in kinds)]
    if strange:
        yield f"{_field(path)} should be {_describe_types(schema)}, found {json_kind(strange[0])} in it"
    for number, item in enumerate(value):
        if not kinds or any(_has_type(item, kind) for kind in kinds):
            yield from faults(item, inner, f"{path}[{number}]", limits=limits)
    if limits and len(value) > schema.get("maxItems", len(value)):
        yield f"{_field(path)} has {len(value)} items, more than {schema['maxItems']}"
    if limits and schema.get("uniqueItems"):
        counts = Counter(json.dumps(item, sort_keys=True) for item in value)
        if duplicates := [item for item, count in counts.items() if count > 1]:
            yield f"{_field(path)} has an item twice: {duplicates[0][:60]}"


def find_misspellings(value: object, schema: Schema, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield (field, known field) for each unknown field with nearly the name of a known one that its object lacks.

    Other unknown fields are data of their own. Fields are paths such as `sentences[].text`.
    """
    if isinstance(value, list):
        for item in value:
            yield from find_misspellings(item, schema.get("items", {}), f"{path}[]")
    elif isinstance(value, dict):
        properties, free = schema.get("properties", {}), schema.get("additionalProperties")
        absent = tuple(name for name in properties if name not in value)
        for name, inner in value.items():
            if name in properties:
                yield from find_misspellings(inner, properties[name], _join(path, name))
            elif isinstance(free, dict):
                yield from find_misspellings(inner, free, _join(path, name))
            elif suggestion := _closest_name(name[:60], absent):
                yield _join(path, name[:60]), _join(path, suggestion)


@lru_cache  # the records of a file have the same fields
def _closest_name(name: str, names: tuple[str, ...]) -> str | None:
    return next(iter(get_close_matches(name, names, n=1, cutoff=_MIN_SIMILARITY)), None)


def _kinds(schema: Schema) -> list[str]:
    kind = schema.get("type", [])
    return [kind] if isinstance(kind, str) else list(kind)


def _has_type(value: object, kind: str) -> bool:
    # In JSON Schema 1.0 is an integer and true is not, unlike in Python.
    if isinstance(value, bool):
        return kind == "boolean"
    match kind:
        case "string":
            return isinstance(value, str)
        case "integer":
            return isinstance(value, int) or (isinstance(value, float) and value.is_integer())
        case "number":
            return isinstance(value, int | float)
        case "array":
            return isinstance(value, list)
        case "object":
            return isinstance(value, dict)
        case "null":
            return value is None
        case _:
            return False


def _describe_types(schema: Schema) -> str:
    names = []
    for kind in _kinds(schema):
        inner = _kinds(schema.get("items", {}))
        plural = " or ".join(_PLURAL[item_kind] for item_kind in inner if item_kind in _PLURAL)
        names.append(f"a list of {plural}" if kind == "array" and plural else _NAMES[kind])
    return " or ".join(names)


def _field(path: str) -> str:
    return f"field {path!r}" if path else "the record"


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
