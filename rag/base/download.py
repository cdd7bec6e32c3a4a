"""Downloads of files: a stopped one resumes, and a file appears only when its checksum is right."""

import hashlib
import lzma
import shutil
import tarfile
import time
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from gzip import BadGzipFile
from http import HTTPStatus
from pathlib import Path, PurePosixPath

from autoais.base.errors import first_line
from autoais.base.network import Head, Limits, RequestError, stream
from autoais.base.progress import Progress, no_progress
from rag.base.errors import RagError

CHECKSUM = "md5:[0-9a-f]{32}|sha256:[0-9a-f]{64}|git:[0-9a-f]{40}"
"""A regular expression of checksums; `git:` is the SHA-1 of a git blob."""

_LIMITS = Limits(seconds=60.0, is_idle_time=True, redirects=True)  # a large file may take hours
_ATTEMPTS = 4  # in a row without new data
_FIRST_WAIT, _MAX_WAIT = 1.0, 60.0  # seconds before the second attempt, which double, and of any
_BUSY_STATUSES = (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS)
_LOGIN_STATUSES = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)
_MAX_VERSION_LENGTH = 1000  # characters
_BLOCK = 1 << 20
# What servers send in place of a file that moved or needs a login, and git in place of one that it keeps elsewhere.
_OTHER_CONTENT = {
    b"<!doctype html": "a web page",
    b"<html": "a web page",
    b"version https://git-lfs": "a Git LFS pointer",
}


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file on a server: its URL, its size in bytes and its checksum (`CHECKSUM`); each None if it is not known.

    `page` is the address of the page that describes it, empty if there is none.
    """

    url: str
    size: int | None = None
    checksum: str | None = None
    page: str = ""


def download(file: RemoteFile, to: Path, progress: Progress = no_progress) -> None:
    """Download to `to`, unless it exists; `<to>.part` holds an unfinished download, which the next call continues.

    A file that has changed at the server meanwhile is begun again. What may pass, such as a busy server or a broken
    connection, is tried again a few times, with waiting; `progress` tells this, and counts bytes. A file with another
    size or checksum is kept as `<to>.wrong`. Raises `RagError` for that, for a connection that stays broken, for a
    refusal, for nothing or a web page in place of a file, and if the disk is too small.
    """
    if to.exists():
        return
    part = to.with_name(f"{to.name}.part")
    if file.size is not None:
        _check_space(part, file.size)
    _receive(file, to, part, progress)
    _version_file(part).unlink(missing_ok=True)
    _check(file, part, to)
    part.replace(to)


def has_checksum(path: Path, checksum: str) -> bool:
    """Whether a file has this checksum (`CHECKSUM`)."""
    return _digest(path, checksum.partition(":")[0]) == checksum


def unpack(archive: Path, to: Path) -> None:
    """Unpack a zip or tar file to the folder `to`, which appears only when it is complete; nothing goes elsewhere.

    If all members are in one folder, `to` is that folder. Raises `RagError` for an archive that cannot be read or is
    empty, which is kept as `<archive>.wrong`, and if the disk is too small.
    """
    work = to.with_name(f".{to.name}.unpacking")
    shutil.rmtree(work, ignore_errors=True)  # of a killed run
    try:
        work.mkdir()
        if zipfile.is_zipfile(archive):
            _extract_zip(archive, work)
        else:
            extract_tar(archive, work)
        members = list(work.iterdir())
        if not members:
            raise tarfile.TarError("it is empty")
        (members[0] if len(members) == 1 and members[0].is_dir() else work).replace(to)
    except tarfile.TarError as error:
        wrong = archive.with_name(f"{archive.name}.wrong")
        archive.replace(wrong)
        raise RagError(f"{archive.name} cannot be unpacked: {error}; it is kept as {wrong}") from error
    finally:
        shutil.rmtree(work, ignore_errors=True)


def extract_tar(archive: Path, folder: Path) -> None:
    """Extract a tar file; raises `TarError` if it is broken, or has a member outside or that is no file or folder."""
    if not tarfile.is_tarfile(archive):
        raise tarfile.TarError("it is no zip or tar file, or broken")
    with _as_tar_errors(), tarfile.open(archive) as tar:
        if hasattr(tarfile, "data_filter"):
            tar.extractall(folder, filter=lambda member, path: tarfile.data_filter(_check_member(member), path))
        else:  # Python 3.11.2, which Debian 12 has, knows no filters
            tar.extractall(folder, [_check_member(member) for member in tar])
        assert tar.fileobj is not None
        while tar.fileobj.read(_BLOCK):  # the checksum of a compressed file is at its end
            pass


def _check_member(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.name = member.name.lstrip("/")
    if ".." in PurePosixPath(member.name).parts or not (member.isreg() or member.isdir()):
        raise tarfile.TarError(f"{member.name!r} is outside of the archive's folder, or no file")
    return member


def _extract_zip(archive: Path, folder: Path) -> None:
    with _as_tar_errors(), zipfile.ZipFile(archive) as opened:
        size, free = sum(member.file_size for member in opened.infolist()), shutil.disk_usage(archive.parent).free
        if size > free:
            raise RagError(f"{archive.name} unpacks to {size:,} bytes, {free:,} are free")
        opened.extractall(folder)  # drops drives and `..` of names


@contextmanager
def _as_tar_errors() -> Iterator[None]:
    """Raise what broken, encrypted and hostile archives raise as `TarError` of one line."""
    try:
        yield
    except (
        tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, BadGzipFile, EOFError,
        RuntimeError, ValueError, OverflowError,
    ) as error:  # fmt: skip
        raise tarfile.TarError(first_line(error)) from error


def _digest(path: Path, algorithm: str) -> str:
    is_blob = algorithm == "git"
    digest = hashlib.new("sha1" if is_blob else algorithm, usedforsecurity=False)
    if is_blob:
        digest.update(b"blob %d\0" % path.stat().st_size)
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return f"{algorithm}:{digest.hexdigest()}"


def _check(file: RemoteFile, part: Path, to: Path) -> None:
    """Raise `RagError` unless the file is as announced; it is then kept under another name."""
    if fault := _find_fault(file, part):
        wrong = to.with_name(f"{to.name}.wrong")
        part.replace(wrong)
        raise RagError(f"{file.url}: {fault}; it is kept as {wrong}, the same command fetches it again")


def _find_fault(file: RemoteFile, part: Path) -> str:
    size = _size(part)
    if file.size is not None and size > file.size:
        return f"the server sent more than {file.size:,} bytes"
    if file.checksum is None or size != (file.size or size):
        with part.open("rb") as opened:
            head = opened.read(64).lstrip().lower()
        content = next((content for mark, content in _OTHER_CONTENT.items() if head.startswith(mark)), None)
        if content is not None:
            return f"the server sent {content}"
    if not size or size < (file.size or 0):
        return f"the server sent {size:,} bytes" + (f" of {file.size:,}" if file.size else "")
    if file.checksum is None:
        return ""
    digest = _digest(part, file.checksum.partition(":")[0])
    return "" if digest == file.checksum else f"its checksum should be {file.checksum}, found {digest}"


def _check_space(part: Path, size: int) -> None:
    free = shutil.disk_usage(part.parent).free + _size(part)
    if free < size:
        raise RagError(f"{part.parent}: {part.stem} takes {size:,} bytes, {free:,} are free")


def _receive(file: RemoteFile, to: Path, part: Path, progress: Progress) -> None:
    """Request the missing bytes until there are no more; raises `RagError` after a few requests in vain."""
    reason, max_size, vain, pause = "", 0, 0, 0.0
    while (before := _size(part)) < (file.size or 1) or file.size is None:
        max_size = max(max_size, before)
        try:
            _get(file, part, progress)
            if file.size is None:  # the server has sent all that it announced
                return
            reason, pause = "the connection broke off", 0.0
        except RequestError as error:
            is_shorter = before > 0 and error.status == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE
            if is_shorter and file.size is not None:
                return
            if is_shorter:  # all of it is fetched again
                part.unlink(missing_ok=True)
            elif error.status is not None and not _is_temporary(error.status):
                raise RagError(f"{error}{_advise(file, to, error)}") from error
            reason, pause = error.reason, error.retry_after
        vain = 0 if _size(part) > max_size else vain + 1
        if vain == _ATTEMPTS:
            raise RagError(f"{file.url}: {reason}{_describe_rest(_size(part), file.size)}")
        if vain:
            seconds = min(max(pause, _FIRST_WAIT * 2 ** (vain - 1)), _MAX_WAIT)
            progress(f"downloading {to.name} ({reason}; waiting {seconds:.0f} s)", _size(part), file.size or 0)
            time.sleep(seconds)


def _is_temporary(status: int) -> bool:
    return status >= HTTPStatus.INTERNAL_SERVER_ERROR or status in _BUSY_STATUSES


def _advise(file: RemoteFile, to: Path, error: RequestError) -> str:
    """The way out after a refusal, to be appended to what the server said."""
    if error.status in _LOGIN_STATUSES:
        page = f" at {file.page}" if file.page else ""
        return f"; if it needs an account, log in with a browser{page} and save the file as {to}"
    return "; it may have moved" if error.is_gone else ""


def _describe_rest(size: int, all_bytes: int | None) -> str:
    if not size:
        return "; nothing was downloaded, try again later"
    of_all = "" if all_bytes is None else f" of {all_bytes:,}"
    return f" after {size:,}{of_all} bytes; the same command continues from there"


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _get(file: RemoteFile, part: Path, progress: Progress) -> None:
    """Request the missing bytes; start from the beginning if the server ignores ranges or has another version now."""
    size, version = _size(part), _read_version(part)
    headers = {"Range": f"bytes={size}-"} if size else {}
    if headers and version:
        headers["If-Range"] = version
    with stream(file.url, None, headers, _LIMITS) as (head, blocks):
        is_partial = head.status == HTTPStatus.PARTIAL_CONTENT
        if not is_partial and head.status != HTTPStatus.OK:
            raise head.error(file.url)
        if is_partial:
            _check_rest(file, head, part, version)
        length, size = head.headers.get("Content-Length", ""), size if is_partial else 0
        total = file.size or (size + int(length) if length.isdecimal() else 0)
        _check_space(part, total)
        with part.open("ab" if is_partial else "wb") as opened:
            if not is_partial:
                _write_version(part, _version_of(head))
            for block in blocks:
                opened.write(block)
                size += len(block)
                progress(f"downloading {part.stem}", min(size, total) if total else size, total)
                if file.size is not None and size > file.size:  # than announced
                    return


def _check_rest(file: RemoteFile, head: Head, part: Path, version: str) -> None:
    """Raise `RequestError` unless a response holds the missing bytes of the same version."""
    if not head.headers.get("Content-Range", "").startswith(f"bytes {_size(part)}-"):
        raise RequestError(file.url, "the server sent another range than requested")
    if version and _version_of(head) not in ("", version):  # it does not know If-Range
        part.unlink()
        raise RequestError(file.url, "the file has changed at the server")


def _version_file(part: Path) -> Path:
    """Where the version of an unfinished download is written, as its server names it."""
    return part.with_name(f".{part.name}.version")


def _read_version(part: Path) -> str:
    path = _version_file(part)
    return path.read_text("latin-1") if path.exists() else ""


def _write_version(part: Path, version: str) -> None:
    if version:
        _version_file(part).write_text(version, "latin-1")
    else:
        _version_file(part).unlink(missing_ok=True)


def _version_of(head: Head) -> str:
    """What names the version of a file in If-Range: its ETag, or else its date; empty if the server says neither."""
    tag = head.headers.get("ETag", "")
    version = head.headers.get("Last-Modified", "") if not tag or tag.startswith("W/") else tag
    return version if len(version) <= _MAX_VERSION_LENGTH else ""
