"""`rag serve` and `rag mcp`: parse, call, print."""

import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast, get_args

import typer

from rag.base.config import DEFAULT_JUDGE, DEFAULT_SYSTEM, default_of
from rag.commands.options import PriceOption

if TYPE_CHECKING:
    from rag.index.index import Index

# Commands import what they use, so that `rag --help` loads no engine.

IndexesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--index",
        metavar="[NAME=]DIR",
        help="Index folder, and the name that callers use; repeatable (default: RAG_INDEX, the config file, or the "
        "handbook that ships).",
    ),
]
SystemsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--system",
        metavar="[NAME=]SYSTEM",
        help="System, also with options (reader,k=8), and the name that callers use; repeatable.",
    ),
]
JudgeOption = Annotated[str, typer.Option(help="Judge of support, as for `autoais score`.")]
BaseOption = Annotated[
    str | None, typer.Option("--base-url", metavar="URL", help="Public address of the server; links begin with it.")
]


def serve(
    index: IndexesOption = None,
    system: SystemsOption = None,
    judge: JudgeOption = DEFAULT_JUDGE,
    host: Annotated[
        str, typer.Option(help="Address to listen on; any other address lets other machines connect.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on (0: any free port).")] = 8000,
    base_url: BaseOption = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option("--allow-host", metavar="NAME", help="Additional host name of this machine."),
    ] = None,
    key_file: Annotated[
        Path | None,
        typer.Option(
            "--key-file",
            metavar="FILE",
            help="Keys that callers must send, one per line; or set RAG_SERVER_KEY.",
        ),
    ] = None,
    allow_anonymous: Annotated[
        bool, typer.Option("--allow-anonymous", help="Let other machines connect without a key.")
    ] = False,
    rate: Annotated[
        int | None, typer.Option(min=1, help="Maximum requests per minute of a key or client (default: no limit).")
    ] = None,
    cors: Annotated[
        list[str] | None,
        typer.Option("--cors", metavar="ORIGIN", help="Site whose pages may call the API; repeatable."),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, max=256, help="Questions to answer in parallel (default: number of cores).")
    ] = None,
    waiting: Annotated[int, typer.Option(min=0, help="Maximum number of waiting questions; more are refused.")] = 64,
    seconds: Annotated[float, typer.Option(min=0.1, help="Time limit of a request in seconds.")] = 60.0,
    allow_uploads: Annotated[
        list[str] | None,
        typer.Option("--allow-uploads", metavar="NAME", help="Index that users may add documents to."),
    ] = None,
    originals: Annotated[
        bool | None,
        typer.Option(
            "--originals/--no-originals",
            help="Show the pages of cited PDFs, and let users download the files of the index (default: only if no "
            "other machine can connect).",
        ),
    ] = None,
    price: PriceOption = None,
    cite: Annotated[
        str,
        typer.Option(
            help="Citations in OpenAI's API: `markers` with annotations, Markdown `links` or `footnotes`, `open-webui`."
        ),
    ] = "markers",
    feedback: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Let people rate answers on the page; ratings go to FILE (jsonl)."),
    ] = None,
    log_questions: Annotated[
        bool, typer.Option("--log-questions", help="Write questions and outcomes to stderr (JSON lines).")
    ] = False,
) -> None:
    """Serve a web page and an HTTP API that answer questions, until Ctrl-C."""
    from autoais.base.urls import is_loopback
    from rag.base.errors import UsageError
    from rag.serve import Limits, serve_indexes
    from rag.serve.keys import read_keys
    from rag.serve.openai import Cite
    from rag.web.server import other_address

    if cite not in get_args(Cite):
        raise UsageError(f"--cite should be one of {', '.join(get_args(Cite))}, found {cite!r}")
    keys = read_keys(key_file)
    if key_file is not None and os.name == "posix" and key_file.stat().st_mode & stat.S_IROTH:
        with suppress(OSError):
            typer.echo(f"{key_file}: every user of this machine can read the keys: chmod o-rwx {key_file}", err=True)
    if not is_loopback(host):
        if base_url is None:
            example = other_address(host, port, "rag.example.org")
            raise UsageError(f"--host {host} needs --base-url too, the address that people type, such as {example}")
        if not keys and not allow_anonymous:
            raise UsageError(f"--host {host} lets other machines connect: give --key-file FILE, or --allow-anonymous")
    limits = Limits(workers or os.cpu_count() or 1, waiting, seconds)
    serve_indexes(
        open_indexes(index),
        systems=read_systems(system),
        judge=judge,
        limits=limits,
        host=host,
        port=port,
        base_url=base_url,
        keys=keys,
        rate=rate,
        cors=cors or (),
        hosts=allow_host or (),
        uploads=allow_uploads or (),
        originals=originals,
        price=price,
        feedback=feedback,
        cite=cast("Cite", cite),
        log_questions=log_questions,
        log=_log,
    )


def _log(line: str) -> None:
    """Print a line; a full disk or a closed pipe does not end the server."""
    try:
        typer.echo(line)
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # else the rest of the buffer would fail again at exit


def mcp(
    index: IndexesOption = None,
    system: SystemsOption = None,
    judge: JudgeOption = DEFAULT_JUDGE,
    base_url: BaseOption = None,
) -> None:
    """Serve MCP on standard input and output."""
    from rag.base.errors import missing_extra
    from rag.serve import Service

    try:
        from rag.serve.mcp import serve_stdio
    except ImportError as error:
        raise missing_extra("rag mcp", "serve") from error
    serve_stdio(Service(open_indexes(index), read_systems(system), judge=judge), base_url)


def open_indexes(values: Sequence[str] | None) -> dict[str, "Index"]:
    """Open the indexes of `[NAME=]DIR` options; without any, the handbook. The name defaults to the folder's."""
    from rag.base.errors import UsageError
    from rag.index.handbook import HANDBOOK
    from rag.index.open import open_index

    values = values or default_indexes()
    if not values:
        return {HANDBOOK: open_index(None)}
    indexes: dict[str, Index] = {}
    for value in values:
        name, folder = _split(value)
        path = Path(folder)
        name = name or path.resolve().name.removesuffix(".index")
        if name in indexes:
            raise UsageError(f"--index {value}: two indexes are called {name!r}; write NAME=DIR")
        indexes[name] = open_index(path)
    return indexes


def default_indexes() -> list[str]:
    """The index of RAG_INDEX or of the config file; empty without one."""
    default = default_of("index")
    return [default] if default else []


def read_systems(values: Sequence[str] | None) -> dict[str, str]:
    """Return the systems of `[NAME=]SYSTEM` options by the names that callers use."""
    from rag.base.errors import UsageError

    systems: dict[str, str] = {}
    for value in values or [default_of("system") or DEFAULT_SYSTEM]:
        name, system = _split(value)
        if (name or system) in systems:
            raise UsageError(f"--system {value}: two systems are called {name or system!r}; write NAME=SYSTEM")
        systems[name or system] = system
    return systems


def _split(text: str) -> tuple[str, str]:
    """Split `NAME=VALUE`; the name is empty if there is none, as in a path or options with equals signs."""
    name, equals, value = text.partition("=")
    return (name, value) if equals and not set("/:,") & set(name) else ("", text)
