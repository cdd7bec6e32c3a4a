"""`rag index`: parse, call, print."""

import shlex
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypedDict

import typer

from autoais.commands.main import AddressOption, EngineOption, WorkersOption, enter_engine
from rag.commands.options import FormatOption, JsonLinesOption, JsonOption, SkipBadOption, note, print_json

if TYPE_CHECKING:
    from rag.index.rebuild import Changes

# Commands import what they use, so that `rag --help` loads no engine.

index_app = typer.Typer(no_args_is_help=True, help="Build and inspect indexes.")

StrictOption = Annotated[
    bool, typer.Option("--strict", help="Stop at a document or page that cannot be read instead of skipping it.")
]
IncludeOption = Annotated[
    list[str] | None, typer.Option("--include", help="Glob of files to read in folders, such as '*.md' (default: all).")
]
ExcludeOption = Annotated[
    list[str] | None, typer.Option("--exclude", help="Glob of files to leave out in folders, such as 'old/**'.")
]
NetworkOption = Annotated[
    bool, typer.Option("--allow-network", help="Fetch sources that are URLs (not with RAG_OFFLINE=1).")
]
ReplaceOption = Annotated[
    bool, typer.Option("--replace", help="Replace an existing index, once the new one is complete.")
]
FolderArgument = Annotated[Path, typer.Argument(help="Index folder.")]

_SOURCES = "Corpus files (also .gz, .zst), folders of documents, or URLs of pages and sitemaps."


class _BuildOptions(TypedDict):
    """The options that `build_index` and `build_shards` share."""

    retrievers: list[str] | None
    memory: str | None
    format: str | None
    include: list[str]
    exclude: list[str]
    skip_bad: bool
    strict: bool
    replace: bool


@index_app.command()
def build(
    to: Annotated[Path, typer.Option(help="Folder of the index.")],
    sources: Annotated[list[str] | None, typer.Argument(metavar="[SOURCES]...", help=_SOURCES)] = None,
    retriever: Annotated[
        list[str] | None,
        typer.Option(
            help="Retriever whose data are added; without SOURCES, they are added to an existing index "
            "(default: hybrid for up to 20,000 passages of documents; bm25 adds nothing)."
        ),
    ] = None,
    memory: Annotated[
        str | None, typer.Option(help="Memory limit for searching vectors, such as 8GiB; selects their index type.")
    ] = None,
    format_: FormatOption = None,
    include: IncludeOption = None,
    exclude: ExcludeOption = None,
    shard: Annotated[
        str | None, typer.Option(metavar="N/M", help="Read only part N of M, as a shard of a large collection.")
    ] = None,
    shards: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="Build N shards in the folder and write the file that configures their search as one."
        ),
    ] = None,
    processes: Annotated[
        int | None,
        typer.Option(metavar="N", help="Build at most N shards at a time (default: one per core; on an engine, one)."),
    ] = None,
    skip_bad: SkipBadOption = False,
    strict: StrictOption = False,
    replace: ReplaceOption = False,
    allow_network: NetworkOption = False,
    engine: EngineOption = None,
    address: AddressOption = None,
    workers: WorkersOption = None,
) -> None:
    """Build an index, or add the data of a retriever to one.

    To change an existing index, use add, remove or update.
    """
    from rag.api import add_retriever, build_index, build_shards, check_retrievers
    from rag.base.terminal import pluralize
    from rag.commands.display import build_progress
    from rag.retrieval.encoders import encoding_on

    has_shards = shard is not None or shards is not None
    _check_sources(sources, retriever, memory=memory, engine=engine, has_shards=has_shards)
    _check_shards(shards, shard=shard, processes=processes, allow_network=allow_network)
    options: _BuildOptions = {
        "retrievers": check_retrievers(retriever),
        "memory": memory,
        "format": format_,
        "include": include or [],
        "exclude": exclude or [],
        "skip_bad": skip_bad,
        "strict": strict,
        "replace": replace,
    }
    with ExitStack() as stack:
        progress, log = stack.enter_context(build_progress())
        if sources and shards is not None:
            folder_of_shards = build_shards(
                sources,
                to,
                shards,
                processes=processes,
                engine=engine,
                address=address,
                workers=workers,
                progress=progress,
                log=log,
                **options,
            )
            log(f"{pluralize(shards, 'shard')} in {to}; search them as one with --retriever {folder_of_shards}")
            return
        stack.enter_context(encoding_on(enter_engine(engine, address, workers, stack)))
        if sources:
            build_index(sources, to, shard=shard, allow_network=allow_network, progress=progress, log=log, **options)
            if shard is None:
                log(f'ask it: rag ask "..." --index {shlex.quote(str(to))}')
        else:
            for name in retriever or []:
                add_retriever(to, name, memory=memory, progress=progress, log=log)


def _check_sources(
    sources: list[str] | None,
    retriever: list[str] | None,
    *,
    memory: str | None,
    engine: str | None,
    has_shards: bool,
) -> None:
    """Raise `UserError` if there is nothing to build, and for options of a build that lacks what they are for."""
    from rag.base.errors import UserError

    if not sources and not retriever:
        raise UserError("nothing to build: give SOURCES, or --retriever NAME to add data to an existing index")
    if memory is not None and not retriever:
        raise UserError("--memory is for the data that --retriever NAME adds")
    if engine is not None and not retriever:
        raise UserError("--engine is for the encoders of the data that --retriever NAME adds")
    if not sources and has_shards:
        raise UserError("--shard and --shards are for SOURCES; an index that is a shard stays one")


def _check_shards(shards: int | None, *, shard: str | None, processes: int | None, allow_network: bool) -> None:
    """Raise `UserError` for options that go only with shards, or never."""
    from rag.base.errors import UserError

    for other, is_set in (("--shard", shard), ("--allow-network", allow_network)):
        if shards is not None and is_set:
            raise UserError(f"give --shards or {other}, not both")
    if processes is not None and shards is None:
        raise UserError("--processes is for --shards")


@index_app.command()
def add(
    folder: FolderArgument,
    sources: Annotated[list[str], typer.Argument(help=_SOURCES)],
    format_: FormatOption = None,
    include: IncludeOption = None,
    exclude: ExcludeOption = None,
    skip_bad: SkipBadOption = False,
    strict: StrictOption = False,
    allow_network: NetworkOption = False,
) -> None:
    """Add sources to an index."""
    from rag.api import add_to_index
    from rag.commands.display import files_progress

    with files_progress("adding") as progress:
        changes = add_to_index(
            folder,
            sources,
            format=format_,
            include=include or [],
            exclude=exclude or [],
            skip_bad=skip_bad,
            strict=strict,
            allow_network=allow_network,
            progress=progress,
        )
    _note_changes(changes, folder)


@index_app.command()
def remove(
    folder: FolderArgument,
    targets: Annotated[list[str], typer.Argument(help="Sources, or files by name, path, URL or glob.")],
) -> None:
    """Remove sources or files from an index.

    The files stay on the disk, and later updates ignore them.
    """
    from rag.api import remove_from_index
    from rag.commands.display import files_progress

    with files_progress("removing") as progress:
        changes = remove_from_index(folder, targets, progress=progress)
    _note_changes(changes, folder)


@index_app.command()
def update(
    folder: FolderArgument,
    sources: Annotated[list[str] | None, typer.Argument(help="Some of its sources (default: all).")] = None,
    include: IncludeOption = None,
    exclude: ExcludeOption = None,
    skip_bad: Annotated[
        bool | None,
        typer.Option("--skip-bad/--no-skip-bad", help="Skip and count broken lines (default: as it was built)."),
    ] = None,
    restore: Annotated[
        bool, typer.Option("--restore", help="Also read files that `rag index remove` left out.")
    ] = False,
    allow_network: NetworkOption = False,
) -> None:
    """Read new and changed files, and drop deleted ones.

    Globs replace those that the index remembers; --exclude "" clears them. Removed files stay out.
    """
    from rag.api import update_index
    from rag.commands.display import files_progress

    with files_progress("updating") as progress:
        changes = update_index(
            folder,
            sources or [],
            include=include,
            exclude=exclude,
            skip_bad=skip_bad,
            restore=restore,
            allow_network=allow_network,
            progress=progress,
        )
    _note_changes(changes, folder)


@index_app.command()
def merge(
    indexes: Annotated[
        list[str], typer.Argument(help="Index folders: all shards of a build, or indexes of different sources.")
    ],
    to: Annotated[Path, typer.Option(help="Folder of the merged index.")],
    replace: ReplaceOption = False,
) -> None:
    """Merge several indexes into one, without reading their sources again."""
    from rag.api import merge_indexes
    from rag.commands.display import build_progress

    with build_progress() as (progress, log):
        merge_indexes(indexes, to, replace=replace, progress=progress, log=log)


def _note_changes(changes: "Changes", folder: Path) -> None:
    for line in changes.notes:
        note(line)
    for reason in changes.skipped:
        note(f"skipped {reason}")
    for part in changes.left_out:
        note(f"{part} was left out: rag index build --to {folder} --retriever NAME adds it again")
    note(str(changes))


@index_app.command("list")
def list_(
    folder: Annotated[Path, typer.Argument(help="Folder to look in.")] = Path(),
    as_json: JsonOption = False,
) -> None:
    """List the indexes in a folder, in ./indexes, and the default index."""
    from dataclasses import asdict

    from rag.base.errors import UserError

    if not folder.is_dir():
        raise UserError(f"{folder}: no such folder")

    from rag.base.config import default_of
    from rag.commands.display import show_indexes
    from rag.index.listing import find_indexes

    default = default_of("index")
    folders = [folder, *([Path(default)] if default else []), Path("indexes")]
    indexes = find_indexes(folders)
    if as_json:
        print_json([asdict(index) | {"path": str(index.path)} for index in indexes])
    else:
        show_indexes(indexes)
    if not indexes:
        note(f"no index in {folder.absolute()}: rag index build SOURCE --to NAME.index builds one")


@index_app.command()
def show(
    folder: FolderArgument,
    path: Annotated[
        str | None, typer.Argument(help="A file, by its name in the index or its path; or the id of a passage.")
    ] = None,
    as_json: JsonLinesOption = False,
) -> None:
    """List the files of an index, the passages of one file, or one passage."""
    from dataclasses import asdict
    from itertools import chain, islice

    from autoais.base.io.jsonl import dumps
    from rag.commands.display import show_files, show_passages
    from rag.index.listing import files_of, passages_of

    if path is None:
        records = files_of(folder)
        if as_json:
            for record in records:
                row = asdict(record)
                del row["sketch"]  # only updates need it
                row["repeats"] = len(record.repeats)
                typer.echo(dumps(row))
        else:
            show_files(records)
        return
    passages = passages_of(folder, path)
    first = list(islice(passages, 1))
    if not first:
        note(f"no passage of {path} is in {folder}: navigation, redirects, contents and duplicates are left out")
    if as_json:
        for passage in chain(first, passages):
            typer.echo(dumps(asdict(passage)))
    else:
        show_passages(chain(first, passages))


@index_app.command()
def verify(folder: FolderArgument) -> None:
    """Check every byte of an index for damage.

    Exits with code 2 if the index is damaged.
    """
    from rag.base.errors import IndexingError
    from rag.index.verify import verify as faults_of

    faults = faults_of(folder)
    if not faults:
        note(f"{folder} is whole")
        return
    for fault in faults[1:]:
        note(fault)
    raise IndexingError(f"{folder} is damaged: {faults[0]}: build the index again with rag index build --replace")


@index_app.command()
def info(
    folder: Annotated[Path | None, typer.Argument(help="Index folder (default: the handbook).")] = None,
) -> None:
    """Print the manifest of an index as JSON, and the size of the leftovers of killed builds."""
    from rag.index.listing import about
    from rag.index.open import open_index

    index = open_index(folder)
    print_json(index.manifest if folder is None or index.build is None else about(folder, index.manifest))


@index_app.command()
def fetch(
    name: Annotated[str, typer.Argument(help="Prebuilt Lucene index, such as miracl-v1.0-en.")],
    table: Annotated[Path | None, typer.Option(help="Your own table of prebuilt indexes (toml).")] = None,
) -> None:
    """Download a prebuilt Lucene index and print its folder.

    A broken download continues where it stopped. Search the index with --retriever lucene.
    """
    from rag.base.terminal import megabytes
    from rag.commands.display import step_bars
    from rag.index.download import fetch as fetch_index
    from rag.index.download import find_prebuilt, read_table

    item = find_prebuilt(name, read_table(table))
    note(f"{item.name}: {item.description}, {megabytes(item.size)} packed")
    with step_bars(lambda _: None) as (progress, _):
        home = fetch_index(item, progress)
    typer.echo(home)


@index_app.command("import")
def import_(
    folder: Annotated[Path, typer.Argument(help="Lucene index of Anserini or Pyserini that stores its texts.")],
    to: Annotated[Path, typer.Option(help="Folder of the index.")],
    skip_bad: SkipBadOption = False,
    replace: ReplaceOption = False,
) -> None:
    """Build an index from the passages of a Lucene index, for all retrievers."""
    from rag.api import import_index
    from rag.commands.display import build_progress

    with build_progress(indexing="passages") as (progress, log):
        import_index(folder, to, skip_bad=skip_bad, replace=replace, progress=progress, log=log)
