"""Prebuilt indexes: downloads into a cache folder, with resume and checksum."""

import difflib
import hashlib
import os
import re
import shutil
import tarfile
import tomllib
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from gzip import BadGzipFile
from http import HTTPStatus
from importlib.resources import files
from pathlib import Path, PurePosixPath

from autoais.base.io.locks import file_lock
from autoais.base.network import Limits, RequestError, is_offline, stream
from autoais.base.progress import Progress, no_progress
from rag.base.errors import RagError

_LIMITS = Limits(seconds=60.0, is_idle_time=True, redirects=True)  # a large file may take hours
_ATTEMPTS = 4  # in a row without new data


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
    if not isinstance(checksum, str) or not re.fullmatch("md5:[0-9a-f]{32}|sha256:[0-9a-f]{64}", checksum):
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
                download(item, archive, progress)
                _unpack(archive, home)
                archive.unlink()
    except OSError as error:
        raise RagError(f"{error.filename or home}: cannot be written: {error.strerror or error}") from error
    return home


def download(item: Prebuilt, to: Path, progress: Progress = no_progress) -> None:
    """Download to `to`, which appears only when the checksum is right; `<to>.part` holds an unfinished download."""
    if to.exists():
        return
    part = to.with_name(f"{to.name}.part")
    free = shutil.disk_usage(part.parent).free + _size(part)
    if free < item.size:
        raise RagError(f"{part.parent}: {item.name} takes {item.size:,} bytes packed, {free:,} are free")
    _receive(item, part, progress)
    algorithm, _, expected = item.checksum.partition(":")
    with part.open("rb") as file:
        digest = hashlib.file_digest(file, lambda: hashlib.new(algorithm, usedforsecurity=False)).hexdigest()
    if digest != expected:
        part.unlink()
        raise RagError(
            f"{item.url}: {algorithm} should be {expected}, found {digest}: the file was removed, fetch again"
        )
    part.replace(to)


def _receive(item: Prebuilt, part: Path, progress: Progress) -> None:
    """Request the missing bytes until all are there; raises `RagError` after a few requests in vain."""
    reason, max_size, vain = "", 0, 0
    while (before := _size(part)) < item.size:
        max_size = max(max_size, before)
        try:
            _get(item, part, progress)
            reason = "the connection broke off"
        except RequestError as error:
            if error.status == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:  # the server's file is shorter
                part.unlink(missing_ok=True)
            if error.status is not None:
                raise RagError(str(error)) from error
            reason = error.reason
        vain = 0 if _size(part) > max_size else vain + 1
        if vain == _ATTEMPTS:
            raise RagError(
                f"{item.url}: {reason} after {_size(part):,} of {item.size:,} bytes; "
                "the same command continues from there"
            )


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _get(item: Prebuilt, part: Path, progress: Progress) -> None:
    """Request the missing bytes; if the server ignores ranges, start from the beginning."""
    size = _size(part)
    headers = {"Range": f"bytes={size}-"} if size else {}
    with stream(item.url, None, headers, _LIMITS) as (head, blocks):
        is_partial = head.status == HTTPStatus.PARTIAL_CONTENT
        if not is_partial and head.status != HTTPStatus.OK:
            raise head.error(item.url)
        if is_partial and not head.headers.get("Content-Range", "").startswith(f"bytes {size}-"):
            raise RequestError(item.url, "the server sent another range than requested")
        with part.open("ab" if is_partial else "wb") as file:
            size = file.tell()
            for block in blocks:
                file.write(block[: item.size - size])
                size += len(block)
                progress("downloading", min(size, item.size), item.size)
                if size > item.size:  # longer than announced: the rest is dropped, and the checksum decides
                    return


def _extract(archive: tarfile.TarFile, work: Path) -> None:
    """Extract an archive; raises `TarError` for a member that would be written outside."""
    if hasattr(tarfile, "data_filter"):
        archive.extractall(work, filter="data")
        return
    for member in archive:  # Python 3.11.2, which Debian 12 has, knows no filters
        member.name = member.name.lstrip("/")
        if ".." in PurePosixPath(member.name).parts or not (member.isreg() or member.isdir()):
            raise tarfile.TarError(f"{member.name!r} is outside of the archive's folder, or no file")
    archive.extractall(work)


def _unpack(archive: Path, home: Path) -> None:
    """Unpack the Lucene index of an archive to `home`, atomically; nothing is written outside."""
    work = home.with_name(f"{home.name}.unpacking")
    shutil.rmtree(work, ignore_errors=True)  # of a killed run
    try:
        with tarfile.open(archive) as tar:
            _extract(tar, work)
        folders = {path.parent for path in work.rglob("segments_*")}
        if len(folders) != 1:
            raise tarfile.TarError(f"it should hold one Lucene index, found {len(folders)}")
        folders.pop().replace(home)
    except (tarfile.TarError, BadGzipFile, EOFError, zlib.error) as error:
        archive.unlink()
        raise RagError(f"{home.name}: the archive cannot be used and was removed: {error}") from error
    finally:
        shutil.rmtree(work, ignore_errors=True)
