"""What the cards of the shipped models have in common."""

import textwrap
from collections.abc import Iterator
from typing import Any


def paragraph(text: str) -> Iterator[str]:
    """The wrapped lines of a paragraph or list item; continuation lines of an item are indented."""
    item = text.startswith("- ")
    yield from textwrap.wrap(
        " ".join(text.split()), 118, subsequent_indent="  " if item else "", break_on_hyphens=False
    )


def base(record: dict[str, Any], command: str) -> Iterator[str]:
    """The base weights, and the recipe with the command that trains by it."""
    yield from paragraph(
        f"""- Base weights: sentence-transformers/all-MiniLM-L6-v2 (Apache-2.0), SHA-256
        `{record["base"]["sha256"]}`."""
    )
    yield from paragraph(
        f"""- Recipe: `eval/recipes/{record["recipe"]["file"]}`, SHA-256 `{record["recipe"]["sha256"]}`;
        reproduce it with `{command}`."""
    )


def files(record: dict[str, Any]) -> Iterator[str]:
    """The files and their checksums."""
    yield from ("", "## Files", "")
    yield from (f"- `{name}`: SHA-256 `{digest}`" for name, digest in record["files"].items())
