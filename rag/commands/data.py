"""`rag data`: parse, call, print."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rag.commands.options import JsonOption, note, print_json

if TYPE_CHECKING:
    from rag.bench.downloads import DownloadPlan

data_app = typer.Typer(no_args_is_help=True, help="List public data sets, and download them for benchmarks.")

TableOption = Annotated[Path | None, typer.Option(help="Your own table of data sets (toml).")]
YesOption = Annotated[bool, typer.Option("--yes", help="Do not ask before a download of more than 1 GB.")]
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
    data: Annotated[
        Path | None,
        typer.Option(help="Data folder, that of `rag bench run --data` (default: ~/.cache/attributed-rag/data)."),
    ] = None,
    allow_network: Annotated[
        bool, typer.Option("--allow-network", help="Download what is missing (not with RAG_OFFLINE=1).")
    ] = False,
    yes: YesOption = False,
    table: TableOption = None,
) -> None:
    """Download data sets into the data folder, where benchmarks look for them, and print the paths.

    Checks size and checksum where they are known. A stopped download continues.
    A wrong file is kept as NAME.wrong.
    """
    from rag.bench.datasets import data_folder, fetch_dataset, find_dataset, measure_missing
    from rag.bench.downloads import DownloadPlan
    from rag.commands.display import step_bars

    folder = data_folder() if data is None else data
    datasets = [find_dataset(name, table) for name in dict.fromkeys(names)]
    if allow_network:
        confirm_download(DownloadPlan(tuple(datasets), folder, measure_missing(datasets, folder)), yes=yes)
    with step_bars(lambda _: None) as (progress, _):
        for dataset in datasets:
            for path in fetch_dataset(dataset, folder, allow_network=allow_network, progress=progress):
                typer.echo(path)


def confirm_download(plan: "DownloadPlan", index: Path | None = None, *, yes: bool) -> None:
    """Print what a download takes, and the index at `index` that is built then; ask before gigabytes, unless `yes`."""
    from autoais.base.network import is_offline
    from rag.commands.display_data import describe_index, describe_missing

    if not plan.missing.files or is_offline():  # a download that is not allowed is refused later
        return
    note(describe_missing(plan.missing, plan.data))
    for dataset in (dataset for dataset in plan.datasets if dataset.missing(plan.data)):
        note(f"{dataset.name}: {dataset.licence}; {dataset.source}")
    if plan.index is not None and index is not None:
        note(describe_index(plan.index, index, plan.free))
    if plan.missing.bytes >= _ASK_FROM and not yes:
        typer.confirm("Download?", abort=True, err=True)
