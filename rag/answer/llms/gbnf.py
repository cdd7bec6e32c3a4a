"""A JSON Schema as a grammar of llama.cpp (GBNF): the reply is JSON with the keys in order, on one line.

llama.cpp can read a schema itself, but then lets the model indent, which doubles the tokens of a reply.
"""

import json
from collections.abc import Mapping
from typing import Any

# A small model forgets the backslash of a quotation mark inside a string, which so would end at 'She sang "': no string
# ends with a space or an opening bracket. `maxLength` does not count these.
_CHARACTER = r'" "? [(\[]? ([^" (\[\\\x7F\x00-\x1F] | "\\" (["\\/bfnrt] | "u" [0-9a-fA-F]{4}))'
_COMMA = '", "'


def schema_to_gbnf(schema: Mapping[str, Any]) -> str:
    """The grammar of a schema of objects, arrays (`minItems`, `maxItems`), enums, booleans and strings.

    All properties of an object are required; a string may have `minLength` and `maxLength`. Raises `ValueError` for any
    other schema.
    """
    # Each part has a rule of its own: llama.cpp refuses a grammar that repeats long rules many times.
    rules: dict[str, str] = {}
    root = _add_rule(schema, rules)
    lines = [f"root ::= {root}", *(f"{name} ::= {body}" for body, name in rules.items()), f"character ::= {_CHARACTER}"]
    return "\n".join(lines) + "\n"


def _add_rule(schema: Mapping[str, Any], rules: dict[str, str]) -> str:
    """The name of the rule of a schema; `rules` has the names by their bodies."""
    body = _body(schema, rules)
    return rules.setdefault(body, f"r{len(rules)}")


def _body(schema: Mapping[str, Any], rules: dict[str, str]) -> str:
    if "enum" in schema:
        return " | ".join(_literal(json.dumps(value)) for value in schema["enum"])
    match schema.get("type"):
        case "object":
            members = (
                f"{_literal(json.dumps(name) + ': ')} {_add_rule(value, rules)}"
                for name, value in schema["properties"].items()
            )
            return f'"{{" {f" {_COMMA} ".join(members)} "}}"'
        case "array":
            return f'"[" {_items(schema, _add_rule(schema["items"], rules))} "]"'
        case "boolean":
            return '"true" | "false"'
        case "string":
            repeat = f"{{{schema.get('minLength', 0)},{schema.get('maxLength', '')}}}"
            return rf'"\"" character{repeat} "\""'
    raise ValueError(f"no grammar for the schema {json.dumps(schema)[:200]}")


def _items(schema: Mapping[str, Any], item: str) -> str:
    minimum, maximum = schema.get("minItems", 0), schema.get("maxItems")
    items = f"{item} ({_COMMA} {item}){{{max(0, minimum - 1)},{'' if maximum is None else maximum - 1}}}"
    return items if minimum else f"({items})?"


def _literal(text: str) -> str:
    """A text in GBNF, whose strings are escaped as in JSON."""
    return json.dumps(text)
