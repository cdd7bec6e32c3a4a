"""`rag data`: parse, call, print."""

from pathlib import Path
from typing import Annotated

import typer

from rag.commands.options import JsonOption, note, print_json

data_app = typer.Typer(no_args_is_help=True, help="List public data sets, and download them for benchmarks.")

TableOption = Annotated[Path | None, typer.Option(help="Your own table of data sets (toml).")]
DataOption = Annotated[Path, typer.Option("--data", help="Data folder, that of `rag bench run --data`.")]
_ASK_FROM = 1_000_000_000  # bytes


@data_app.command("list")
def list_(
    table: TableOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the data sets with their licence, size and benchmarks."""
    from rag.bench.datasets import list_datasets
    from rag.commands.display_data import dataset_record, show_datasets

    datasets = list_datasets(table)
    if as_json:
        print_json([dataset_record(dataset) for dataset in datasets])
    else:
        show_datasets(datasets)


@data_app.command("fetch")
def fetch(
    names: Annotated[list[str], typer.Argument(metavar="NAME", help="Data sets of `rag data list`.")],
    data: DataOption,
    allow_network: Annotated[
        bool, typer.Option("--allow-network", help="Download what is missing (not with RAG_OFFLINE=1).")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before a download of more than 1 GB.")] = False,
    table: TableOption = None,
) -> None:
    """Download data sets into the data folder, where benchmarks look for them, and print the paths.

    Checks size and checksum where they are known. A stopped download continues.
    A wrong file is kept as NAME.wrong.
    """
    from rag.bench.datasets import fetch_dataset, find_dataset, measure_missing
    from rag.commands.display import step_bars
    from rag.commands.display_data import describe_missing

    datasets = [find_dataset(name, table) for name in dict.fromkeys(names)]
    missing = measure_missing(datasets, data)
    if missing.files and allow_network:
        note(describe_missing(missing, data))
        for dataset in datasets:
            note(f"{dataset.name}: {dataset.licence}; {dataset.source}")
        if missing.bytes >= _ASK_FROM and not yes:
            typer.confirm("Download?", abort=True, err=True)
    with step_bars(lambda _: None) as (progress, _):
        for dataset in datasets:
            for path in fetch_dataset(dataset, data, allow_network=allow_network, progress=progress):
                typer.echo(path)
