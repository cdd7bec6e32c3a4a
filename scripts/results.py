"""Prints the result of a measurement, and writes it to a file."""

from pathlib import Path
from typing import Any

from autoais.base.io.jsonl import dumps, round_floats, write_atomic


def tell(result: dict[str, Any], output: Path | None, digits: int = 4) -> None:
    """Print a result as JSON, its floats rounded, and write the same text to `output` if a file is given."""
    text = dumps(round_floats(result, digits), indent=2)
    print(text)
    if output is not None:
        write_atomic(output, [text])
