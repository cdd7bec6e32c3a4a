"""Parsing of judge options given on the command line as `KEY=VALUE`."""

import math
from collections.abc import Iterable

from autoais.base.errors import UserError


def parse_options(options: Iterable[str], kind: str = "judge option") -> dict[str, int | float | str]:
    """Keyword arguments for options like `["threshold=0.7", "dtype=auto"]`; numbers, `true` and `false` are converted.

    Dashes in names become underscores. `kind` names an option in errors. Raises `UserError` if an option has no `=` or
    no valid name, is repeated, or is `nan`, infinite or too large.
    """
    parsed: dict[str, int | float | str] = {}
    for option in options:
        name, equals, value = option.partition("=")
        name = name.strip().replace("-", "_")
        if not equals or not name.isidentifier():
            raise UserError(f"{kind} {option!r}: should be KEY=VALUE, such as threshold=0.7")
        if name in parsed:
            raise UserError(f"{kind} {name!r} is given twice")
        try:
            parsed[name] = _value(value.strip())
        except OverflowError:
            raise UserError(f"{kind} {option!r}: not a finite number") from None
    return parsed


def _value(text: str) -> int | float | str:
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            number = kind(text)
        except ValueError:
            continue
        if not math.isfinite(number):
            raise OverflowError(text)
        return number
    return text
