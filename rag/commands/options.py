"""Options that several commands of `rag` have, and how commands print."""

from typing import Annotated

import typer

from autoais.base.terminal import print_json as print_json
from autoais.commands.assess import CorpusOption as CorpusOption
from autoais.commands.assess import JsonOption as JsonOption

JsonLinesOption = Annotated[bool, typer.Option("--json", help="Print JSON lines.")]
ResumeOption = Annotated[bool, typer.Option("--resume", help="Continue a stopped run.")]
SkipBadOption = Annotated[bool, typer.Option("--skip-bad", help="Skip and count broken lines instead of stopping.")]
FormatOption = Annotated[
    str | None, typer.Option("--format", help="Corpus format, or `documents` (default: detected).")
]
ConcurrencyOption = Annotated[
    str,
    typer.Option(metavar="N", help="Number of parallel requests to a model server (auto: adapt to its speed)."),
]
PriceOption = Annotated[
    tuple[float, float] | None,
    typer.Option(min=0, metavar="INPUT OUTPUT", help="Price per million input and output tokens."),
]


def note(text: str) -> None:
    """Print a line to stderr."""
    from rag.base import terminal

    terminal.note(text)
