"""Public data sets: where they are, and downloads of their files to where benchmarks expect them."""

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path, PurePosixPath

from autoais.base.io.locks import file_lock
from autoais.base.io.paths import free_space
from autoais.base.network import is_offline
from autoais.base.progress import Progress, no_progress
from rag.base.download import CHECKSUM, RemoteFile, download, has_checksum, unpack
from rag.base.errors import RagError, UsageError
from rag.bench.tables import Table, inside, read_table
from rag.index.download import cache_folder

_MAX_SIZE = 1 << 42  # bytes
_ARCHIVES = (".zip", ".tar", ".tgz")


@dataclass(frozen=True, slots=True)
class DatasetFile:
    """A file of a data set; `to` is its path below the data folder.

    `is_read` says that this project has read a file with the checksum. With `unpack`, the file is an archive (zip or
    tar), which is replaced by a folder of its name without the ending.
    """

    to: str
    remote: RemoteFile
    is_read: bool = False
    unpack: bool = False

    def path(self, data: str | Path) -> Path:
        """Return where the file is, or will be; of an archive, the folder that it is unpacked to."""
        path = inside(Path(data), self.to)
        return path.with_suffix("") if self.unpack else path

    def serves(self, path: str) -> bool:
        """Whether it brings what is at this path below the data folder: a file, a folder, or what is in an archive."""
        place, needed = PurePosixPath(self.to), PurePosixPath(path)
        if self.unpack:
            place = place.with_suffix("")
        return place.is_relative_to(needed) or (self.unpack and needed.is_relative_to(place))


@dataclass(frozen=True, slots=True)
class Dataset:
    """A public data set: its licence, its page, the benchmarks that read it, and its files.

    `login` says how to get one that needs an account; it has no files. `passages` is the number of passages of a
    corpus, None if it is not known.
    """

    name: str
    description: str
    licence: str
    source: str
    benchmarks: tuple[str, ...] = ()
    files: tuple[DatasetFile, ...] = ()
    login: str | None = None
    passages: int | None = None

    def missing(self, data: str | Path) -> list[DatasetFile]:
        """Return the files that are not in the data folder."""
        return [file for file in self.files if not file.path(data).exists()]


def list_datasets(table: str | Path | None = None) -> list[Dataset]:
    """Return the data sets of a TOML table, sorted by name; by default those that rag knows.

    Raises `RagError` for a table that cannot be read.
    """
    source = "datasets.toml" if table is None else str(table)
    file = files("rag").joinpath("data", source) if table is None else Path(table)
    tables, _ = read_table(file, source, "table of data sets")
    return [_read_dataset(name, tables.table(name)) for name in sorted(tables.row)]


def find_dataset(name: str, table: str | Path | None = None) -> Dataset:
    """Return the data set of that name; raises `RagError`, which names similar ones, if there is none."""
    datasets = {dataset.name: dataset for dataset in list_datasets(table)}
    if name in datasets:
        return datasets[name]
    similar_names = difflib.get_close_matches(name, datasets, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(similar_names)}?" if similar_names else f"there are: {', '.join(datasets)}"
    raise RagError(f"no data set called {name!r}; {hint}")


def find_datasets_of_files(paths: Sequence[str], table: str | Path | None = None) -> list[Dataset]:
    """Return the data sets that have these paths below the data folder, with only the files that are needed there."""
    datasets = []
    for dataset in list_datasets(table):
        if files_needed := tuple(file for file in dataset.files if any(map(file.serves, paths))):
            datasets.append(replace(dataset, files=files_needed))
    return datasets


def data_folder() -> Path:
    """The folder that data sets are downloaded to unless another is named: `data` in the folder of RAG_CACHE."""
    return cache_folder() / "data"


def choose_data_folder(data: str | Path | None, *, download: bool = False) -> Path | None:
    """Return `data`, or else `data_folder` if it exists or is downloaded to; otherwise None."""
    if data is not None:
        return Path(data)
    return data_folder() if download or data_folder().is_dir() else None


def fetch_dataset(
    name: str | Dataset,
    data: str | Path | None = None,
    *,
    allow_network: bool = False,
    table: str | Path | None = None,
    progress: Progress = no_progress,
) -> list[Path]:
    """Download the files of a data set that are not in the data folder (`data_folder`), and return the paths of all.

    A stopped download goes on where it stopped. `progress` counts bytes of a file. Raises `UsageError` without
    `allow_network` or with RAG_OFFLINE if a file is missing, and `RagError` for a data set that needs a login, a file
    that is there with another checksum, and as `rag.base.download.download` does. What is there stays.
    """
    dataset = name if isinstance(name, Dataset) else find_dataset(name, table)
    folder = data_folder() if data is None else Path(data)
    if dataset.login is not None:
        raise RagError(f"{dataset.name} needs an account: {dataset.login}")
    for file in dataset.files:
        _check_present(file, inside(folder, file.to))
    if dataset.missing(folder) and (reason := _refusal(allow_network)):
        raise UsageError(f"{dataset.name} is not in {folder}; {reason}")
    try:
        for file in dataset.missing(folder):
            _fetch(file, folder, progress)
    except OSError as error:
        raise RagError(f"{error.filename or folder}: cannot be written: {error.strerror or error}") from error
    return [file.path(folder) for file in dataset.files]


def _fetch(file: DatasetFile, folder: Path, progress: Progress) -> None:
    to = inside(folder, file.to)
    to.parent.mkdir(parents=True, exist_ok=True)
    lock = to.with_name(f".{to.name}.lock")
    with file_lock(lock, RagError(f"{to} is being downloaded by another process")):
        download(file.remote, to, progress)
        if file.unpack:
            unpack(to, file.path(folder))
            to.unlink()
    lock.unlink(missing_ok=True)


def _refusal(allow_network: bool) -> str:
    if is_offline():
        return "RAG_OFFLINE is set, unset it to download"
    return "" if allow_network else "--allow-network (from Python, allow_network=True) downloads it"


def _check_present(file: DatasetFile, path: Path) -> None:
    size, checksum = file.remote.size, file.remote.checksum
    if not path.exists():
        return
    if not path.is_file():
        fault = "it is a folder"
    elif size is not None and path.stat().st_size != size:
        fault = f"it should have {size:,} bytes, found {path.stat().st_size:,}"
    elif checksum is not None and not has_checksum(path, checksum):
        fault = f"its checksum should be {checksum}"
    else:
        return
    raise RagError(f"{path} is another file: {fault}; move it away to fetch it again")


def _read_dataset(name: str, table: Table) -> Dataset:
    table.only("description", "licence", "source", "benchmarks", "login", "files", "passages")
    if ("files" in table.row) == ("login" in table.row):
        raise RagError(f"{table.source}: should have either files or login")
    dataset = Dataset(
        name,
        table.line("description"),
        table.line("licence"),
        table.line("source"),
        table.lines("benchmarks") if "benchmarks" in table.row else (),
        tuple(_read_file(file, table.line("source")) for file in table.tables("files")) if "files" in table.row else (),
        table.line("login") if "login" in table.row else None,
        table.number("passages", _MAX_SIZE) if "passages" in table.row else None,
    )
    if len({file.path("") for file in dataset.files}) < len(dataset.files):
        raise RagError(f"{table.source}: two files have the same place; each should have a 'to' of its own")
    return dataset


def _read_file(table: Table, page: str) -> DatasetFile:
    table.only("to", "url", "size", "checksum", "read", "unpack")
    url, checksum = table.line("url"), table.line("checksum") if "checksum" in table.row else None
    if not url.startswith(("https://", "http://")):
        raise table.error("url", "an address that starts with https:// or http://", url)
    if checksum is not None and not re.fullmatch(CHECKSUM, checksum):
        raise table.error("checksum", "md5:..., sha256:... or git:...", checksum)
    size = table.number("size", _MAX_SIZE) if "size" in table.row else None
    is_read, unpack = (name in table.row and table.flag(name) for name in ("read", "unpack"))
    to = table.path("to")
    if unpack and Path(to).suffix not in _ARCHIVES:
        raise table.error("to", f"the name of an archive, with {', '.join(_ARCHIVES)} at its end", to)
    return DatasetFile(to, RemoteFile(url, size, checksum, page), is_read, unpack)


@dataclass(frozen=True, slots=True)
class Missing:
    """The files that are still to be downloaded: their number, bytes as far as known, and how many have no known size.

    `free` are the bytes that are free where the data folder is, or will be.
    """

    files: int
    bytes: int
    of_unknown_size: int
    free: int


def measure_missing(datasets: Sequence[Dataset], data: str | Path) -> Missing:
    """Return what a download of these data sets would take."""
    sizes = [file.remote.size for dataset in datasets for file in dataset.missing(data)]
    known_sizes = [size for size in sizes if size is not None]
    return Missing(len(sizes), sum(known_sizes), sizes.count(None), free_space(Path(data)))
