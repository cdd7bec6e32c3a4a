"""Terminal output of `rag data`."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autoais.base.terminal import clean
from rag.base.terminal import megabytes, pluralize
from rag.bench.datasets import Dataset, Missing
from rag.commands.display import duration
from rag.commands.display_bench import show_line

if TYPE_CHECKING:
    from rag.retrieval.planning import Step

_BYTES_PER_SECOND = 10_000_000  # of a connection, to say how long a download may take


def dataset_record(dataset: Dataset) -> dict[str, Any]:
    """Return what `rag data list` says of a data set, as JSON."""
    return {
        "name": dataset.name,
        "description": dataset.description,
        "licence": dataset.licence,
        "source": dataset.source,
        "benchmarks": list(dataset.benchmarks),
        "login": dataset.login,
        "passages": dataset.passages,
        "files": [
            {
                "to": file.to,
                "url": file.remote.url,
                "size": file.remote.size,
                "checksum": file.remote.checksum,
                "read": file.is_read,
                "unpack": file.unpack,
            }
            for file in dataset.files
        ],
    }


def show_datasets(datasets: Sequence[Dataset]) -> None:
    """Print the data sets, and what is known of their files; a terminal's width wraps the lines."""
    for dataset in datasets:
        show_line(f"{clean(dataset.name)}: {_describe_files(dataset)}", style="bold")
        show_line(clean(dataset.description), indent=4)
        show_line(clean(f"licence: {dataset.licence}; {dataset.source}"), indent=4)
        if dataset.benchmarks:
            show_line(clean(f"benchmarks: {', '.join(dataset.benchmarks)}"), indent=4)
        if dataset.login is not None:
            show_line(clean(f"needs an account: {dataset.login}"), indent=4)


def _describe_files(dataset: Dataset) -> str:
    if not dataset.files:
        return "by hand"
    sizes = [file.remote.size for file in dataset.files]
    size = "size unknown" if None in sizes else megabytes(sum(size or 0 for size in sizes))
    parts = [pluralize(len(dataset.files), "file"), size]
    if without := sum(file.remote.checksum is None for file in dataset.files):
        parts.append("no checksum" if without == len(dataset.files) else f"{without} without a checksum")
    if not all(file.is_read for file in dataset.files):
        parts.append("address never tried")
    return ", ".join(parts)


def describe_missing(missing: Missing, data: Path) -> str:
    """Return a line about a download: files, bytes, what is free, and the time of a long one."""
    unknown = f", {missing.of_unknown_size} of unknown size" if missing.of_unknown_size else ""
    size = f"{megabytes(missing.bytes)}{unknown}" if missing.bytes else "size unknown"
    seconds = missing.bytes / _BYTES_PER_SECOND
    time = f"; {duration(seconds)} at {megabytes(_BYTES_PER_SECOND)} a second" if seconds >= 10 else ""
    return f"{pluralize(missing.files, 'file')} to {data}: {size}; {megabytes(missing.free)} free{time}"


def describe_index(step: "Step", index: Path, free: int) -> str:
    """Return a line about an index that is built after a download, and what the download leaves free on its disk."""
    shortage = ", which is not enough" if free < step.disk else ""
    return (
        f"then an index in {index}: about {megabytes(step.disk)} of disk ({megabytes(max(free, 0))} free after the "
        f"download{shortage}), {megabytes(step.memory)} of memory, {duration(step.seconds)} on two cores ({step.why})"
    )
