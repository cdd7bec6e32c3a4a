"""A JSON Schema as a grammar of llama.cpp (GBNF): the reply is JSON with the keys in order, on one line.

llama.cpp can read a schema itself, but then lets the model indent, which doubles the tokens of a reply.
"""

import json
from collections.abc import Mapping
from typing import Any

_CHARACTER = r'[^"\\\x7F\x00-\x1F] | "\\" (["\\/bfnrt] | "u" [0-9a-fA-F]{4})'
_COMMA = '", "'


def schema_to_gbnf(schema: Mapping[str, Any]) -> str:
    """The grammar of a schema of objects, arrays (`minItems`, `maxItems`), enums, booleans and strings (`maxLength`).

    All properties of an object are required. Raises `ValueError` for any other schema.
    """
    return f"root ::= {_rule(schema)}\ncharacter ::= {_CHARACTER}\n"


def _rule(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        return f"({' | '.join(_literal(json.dumps(value)) for value in schema['enum'])})"
    match schema.get("type"):
        case "object":
            members = (f"{_literal(json.dumps(name) + ': ')} {_rule(value)}" for name, value in _properties(schema))
            return f'"{{" {f" {_COMMA} ".join(members)} "}}"'
        case "array":
            return f'"[" {_items(schema)} "]"'
        case "boolean":
            return '("true" | "false")'
        case "string":
            repeat = f"{{0,{schema['maxLength']}}}" if "maxLength" in schema else "*"
            return rf'"\"" character{repeat} "\""'
    raise ValueError(f"no grammar for the schema {json.dumps(schema)[:200]}")


def _properties(schema: Mapping[str, Any]) -> list[tuple[str, Any]]:
    return list(schema["properties"].items())


def _items(schema: Mapping[str, Any]) -> str:
    item, minimum, maximum = _rule(schema["items"]), schema.get("minItems", 0), schema.get("maxItems")
    repeat = f"{{{max(0, minimum - 1)},{'' if maximum is None else maximum - 1}}}"
    items = f"{item} ({_COMMA} {item}){repeat}"
    return items if minimum else f"({items})?"


def _literal(text: str) -> str:
    """A text in GBNF, whose strings are escaped as in JSON."""
    return json.dumps(text)
