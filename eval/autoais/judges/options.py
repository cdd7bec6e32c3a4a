"""Parsing of judge options given on the command line as `KEY=VALUE`."""

import math
from collections.abc import Iterable

from autoais.base.errors import UserError


def parse_options(options: Iterable[str]) -> dict[str, int | float | str]:
    """Keyword arguments for options like `["threshold=0.7", "dtype=auto"]`; numbers, `true` and `false` are converted.

    Dashes in names become underscores. Raises `UserError` if an option has no `=` or no valid name, is repeated, or is
    `nan` or infinite.
    """
    parsed: dict[str, int | float | str] = {}
    for option in options:
        name, equals, value = option.partition("=")
        name = name.strip().replace("-", "_")
        if not equals or not name.isidentifier():
            raise UserError(f"judge option {option!r}: should be KEY=VALUE, such as threshold=0.7")
        if name in parsed:
            raise UserError(f"judge option {name!r} is given twice")
        parsed[name] = _value(value.strip(), option)
    return parsed


def _value(text: str, option: str) -> int | float | str:
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            number = kind(text)
        except ValueError:
            continue
        if not math.isfinite(number):
            raise UserError(f"judge option {option!r}: not a finite number")
        return number
    return text
