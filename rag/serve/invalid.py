"""One-line messages for invalid requests. They repeat numbers and names of fields, and never texts."""

from collections.abc import Collection, Mapping
from difflib import get_close_matches
from math import isfinite
from typing import Any

from pydantic import BaseModel

_LIMITS = {
    "greater_than_equal": ("at least", "ge"),
    "greater_than": ("more than", "gt"),
    "less_than_equal": ("at most", "le"),
    "less_than": ("less than", "lt"),
}
_KINDS = {
    "bool_type": "true or false",
    "dict_type": "an object",
    "float_type": "a number",
    "int_type": "an integer",
    "list_type": "a list",
    "model_attributes_type": "an object",
    "string_type": "a string",
}
_TYPE_NAMES = {dict: "an object", list: "a list", str: "a string", bool: "true or false", type(None): "null"}


def wrong_request(errors: list[dict[str, Any]], model: type[BaseModel]) -> str:
    """Return the first fault of a request whose body should be a `model`; an unknown field is named before others."""
    error = _unknown_or_first(errors)
    location = error["loc"][1:]  # without "body"
    if error["type"] == "json_invalid":
        return "the body is not JSON"
    if not location:
        if isinstance(error["input"], bytes):
            return "the body is not read as JSON: send Content-Type: application/json"
        return wrong_field(error, "the body")
    if error["type"] == "extra_forbidden":
        way_out = _way_out(error, errors, _names(model, is_nested=len(location) > 1))
        return f"no field {field_path(location)[:100]!r}{way_out}"
    return wrong_field(error, field_path(location))


def wrong_arguments(errors: list[dict[str, Any]], model: type[BaseModel]) -> str:
    """Return the first fault of the arguments of a tool; an unknown one is named before others."""
    error = _unknown_or_first(errors)
    name = field_path(error["loc"]) or "arguments"
    if error["type"] == "extra_forbidden":
        return f"unknown argument {name[:100]!r}{_way_out(error, errors, list(model.model_fields))}"
    return wrong_field(error, name)


def _unknown_or_first(errors: list[dict[str, Any]]) -> dict[str, Any]:
    return next((entry for entry in errors if entry["type"] == "extra_forbidden"), errors[0])


def _way_out(unknown: Mapping[str, Any], errors: list[dict[str, Any]], names: Collection[str]) -> str:
    """Return the end of a message: the name that was meant, or all names.

    A name that is missing beside the only unknown one was meant, however different it is.
    """
    is_only = sum(entry["type"] == "extra_forbidden" for entry in errors) == 1
    beside = [entry for entry in errors if entry["type"] == "missing" and entry["loc"][:-1] == unknown["loc"][:-1]]
    missing = [str(entry["loc"][-1]) for entry in beside] if is_only else []
    meant = get_close_matches(str(unknown["loc"][-1])[:60], names, n=1) or missing
    return f", did you mean {meant[0]!r}?" if meant else f"; there are: {', '.join(names)}"


def wrong_field(error: Mapping[str, Any], field: str) -> str:
    """Return the message for an error of pydantic in a field."""
    kind, value = error["type"], error.get("input")
    if kind == "missing":
        return f"{field} is missing"
    if kind in _LIMITS:
        phrase, limit = _LIMITS[kind]
        if isinstance(value, float) and not isfinite(value):
            return f"{field} should be a number from 0 to 1"
        return f"{field} should be {phrase} {error['ctx'][limit]}, found {_describe(value)}"
    if kind in _KINDS:
        return f"{field} should be {_KINDS[kind]}, found {_describe(value)}"
    return f"{field}: {error['msg']}"


def _describe(value: object) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)[:20]
    return _TYPE_NAMES.get(type(value), "something else")


def field_path(location: tuple[int | str, ...]) -> str:
    """Return the path of a field as text: `messages[0].content`."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location).removeprefix(".")


def _names(model: type[BaseModel], *, is_nested: bool) -> list[str]:
    """Return the names of the fields of a request, or of the objects in it."""
    schema = model.model_json_schema()
    objects = schema.get("$defs", {}).values() if is_nested else [schema]
    return [name for entry in objects for name in entry.get("properties", ())]
