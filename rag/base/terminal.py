"""Lines for people: consoles, counts with their nouns, sizes, and text that cannot control the terminal."""

import re
from pathlib import Path

from rich.console import Console

from autoais.base.io.paths import free_space


def open_console(*, stderr: bool = False) -> Console:
    """Return a console that prints text as it is, without markup or highlighting."""
    return Console(stderr=stderr, highlight=False, markup=False, emoji=False)


def note(text: str) -> None:
    """Print a line to standard error."""
    open_console(stderr=True).print(clean(text), soft_wrap=True)


def pluralize(n: int, noun: str) -> str:
    """Format a count with its noun: `1 passage`, `1,200 passages`."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def megabytes(n: int) -> str:
    """Format bytes in MB: 1234567890 is `1,235 MB`, 345678 is `0.3 MB`, and 45678 is `46 kB`."""
    return f"{n / 1e3:.0f} kB" if 0 < n < 1e5 else f"{n / 1e6:,.{int(0 < n < 9.5e6)}f} MB"


_JOINERS = "\u200c\u200d\u200e\u200f"  # invisible, but needed in Persian, Arabic and emoji


def clean(text: str) -> str:
    """Remove control characters and overrides, so that a passage cannot control the terminal, and empty lines."""
    text = re.sub(r"\n\s*\n", "\n", text)
    return "".join(c if c.isprintable() or c in "\n\t" + _JOINERS else " " if c.isspace() else "�" for c in text)


def free_disk(folder: Path) -> str:
    """The free disk space at a folder, which need not exist yet."""
    return megabytes(free_space(folder))
