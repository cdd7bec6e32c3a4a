"""Prebuilt indexes: downloads into a cache folder."""

import difflib
import os
import re
import shutil
import tarfile
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from autoais.base.io.locks import file_lock
from autoais.base.network import is_offline
from autoais.base.progress import Progress, no_progress
from rag.base.download import CHECKSUM, RemoteFile, download, extract_tar
from rag.base.errors import RagError


@dataclass(frozen=True, slots=True)
class Prebuilt:
    """A packed index: its URL, its size in bytes, and its checksum, `md5:...` or `sha256:...`."""

    name: str
    url: str
    checksum: str
    size: int
    description: str = ""


def read_table(path: Path | None = None) -> dict[str, Prebuilt]:
    """The indexes of a TOML table by name (default: the table that ships with rag); raises `RagError` if invalid."""
    try:
        text = path.read_text("utf-8") if path else files("rag").joinpath("data", "prebuilt.toml").read_text("utf-8")
        return {name: _read_row(name, row) for name, row in tomllib.loads(text).items()}
    except (OSError, ValueError, RecursionError, AttributeError) as error:  # ValueError: not TOML, not UTF-8, a bad row
        raise RagError(f"{path}: cannot be read as a table of indexes: {error}") from error


def _read_row(name: str, row: Mapping[str, object]) -> Prebuilt:
    url, checksum, size = row.get("url"), row.get("checksum"), row.get("size")
    if not isinstance(url, str) or not url.startswith(("http://", "https://")):
        raise ValueError(f"{name}: url should start with https://, found {url!r}")
    if not isinstance(checksum, str) or not re.fullmatch(CHECKSUM, checksum):
        raise ValueError(f"{name}: checksum should be md5:... or sha256:..., found {checksum!r}")
    if type(size) is not int or size < 1:
        raise ValueError(f"{name}: size should be a number of bytes, found {size!r}")
    if Path(name).name != name or name.startswith("."):
        raise ValueError(f"{name!r} should be a plain name, as it becomes a folder")
    return Prebuilt(name, url, checksum, size, str(row.get("description", "")))


def find_prebuilt(name: str, table: dict[str, Prebuilt]) -> Prebuilt:
    """The index of that name; otherwise raises `RagError` with similar names."""
    if name in table:
        return table[name]
    similar_names = difflib.get_close_matches(name, table, n=3, cutoff=0.4)
    hint = f"did you mean {' or '.join(similar_names)}?" if similar_names else f"there are: {', '.join(sorted(table))}"
    raise RagError(f"no prebuilt index called {name!r}; {hint}")


def cache_folder() -> Path:
    """The folder for downloads: RAG_CACHE, or `~/.cache/attributed-rag`."""
    return Path(os.environ.get("RAG_CACHE") or Path.home() / ".cache" / "attributed-rag")


def fetch(item: Prebuilt, progress: Progress = no_progress) -> Path:
    """The folder of a prebuilt Lucene index in the cache; downloads and unpacks it first if it is missing.

    A stopped download resumes; `progress` counts bytes. Raises `RagError` if offline, or for a broken connection, a
    wrong checksum, an archive that is broken or holds no index, a full disk, or a second download of the same index at
    the same time.
    """
    home = cache_folder() / "indexes" / item.name
    if home.is_dir():
        return home
    if is_offline():
        raise RagError(f"{item.name} is not in {home.parent}, and this is offline: run rag index fetch {item.name}")
    try:
        home.parent.mkdir(parents=True, exist_ok=True)
        lock = home.with_name(f"{home.name}.lock")
        with file_lock(lock, RagError(f"{home.name} is being downloaded by another process")):
            if not home.is_dir():
                archive = home.with_name(f"{item.name}.archive")
                download(RemoteFile(item.url, item.size, item.checksum), archive, progress)
                _unpack(archive, home)
                archive.unlink()
    except OSError as error:
        raise RagError(f"{error.filename or home}: cannot be written: {error.strerror or error}") from error
    return home


def _unpack(archive: Path, home: Path) -> None:
    """Unpack the Lucene index of an archive to `home`, atomically; nothing is written outside."""
    work = home.with_name(f"{home.name}.unpacking")
    shutil.rmtree(work, ignore_errors=True)  # of a killed run
    try:
        extract_tar(archive, work)
        folders = {path.parent for path in work.rglob("segments_*")}
        if len(folders) != 1:
            raise tarfile.TarError(f"it should hold one Lucene index, found {len(folders)}")
        folders.pop().replace(home)
    except tarfile.TarError as error:
        archive.unlink()
        raise RagError(f"{home.name}: the archive cannot be used and was removed: {error}") from error
    finally:
        shutil.rmtree(work, ignore_errors=True)
