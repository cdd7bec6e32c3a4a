"""The files that an index was built of, as data: `files.jsonl` in the build folder, and the sources in the manifest."""

import hashlib
import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from autoais.base.io.jsonl import dumps, field, read_objects, strings, write_atomic
from autoais.base.io.provenance import sha256_file
from autoais.base.urls import host_of
from rag.base.errors import FormatError, IndexingError, UsageError, UserError
from rag.documents.sources import MAX_FILE_SIZE, Shard, Source
from rag.index.manifest import WEB, is_path

FILES = "files.jsonl"
_SMALL = 1 << 20
TOO_LARGE = "too large"
"""In place of the checksum of a document that is not read."""
_MIN_AGE_NS = (
    2_000_000_000  # nanoseconds: a file modified this shortly before it was read can change again with the same time
)


@dataclass(frozen=True, slots=True)
class Stamp:
    """What tells whether a file has changed: its checksum, and as a quick check its size and its time in nanoseconds.

    The time is None where it proves nothing, and the checksum is empty for a file that changed while it was read.
    """

    sha256: str
    size: int
    mtime: int | None

    @classmethod
    def of(cls, path: Path, *, document: bool = False) -> "Stamp":
        """The stamp of a file; an empty one for a folder or a file that cannot be read.

        A document that is too large to be read is not read for its checksum either.
        """
        try:
            status = path.stat()
            is_old = time.time_ns() - status.st_mtime_ns > _MIN_AGE_NS
            if document and status.st_size > MAX_FILE_SIZE:
                return cls(TOO_LARGE, status.st_size, status.st_mtime_ns if is_old else None)
            small = status.st_size < _SMALL  # for which the buffer of a streamed hash takes longer than the hash
            digest = hashlib.sha256(path.read_bytes()).hexdigest() if small else sha256_file(path)
            return cls(digest, status.st_size, status.st_mtime_ns if is_old else None)
        except OSError:
            return cls("", 0, None)

    def after_reading(self, path: Path) -> "Stamp":
        """The stamp once the file was read: without a checksum if it changed meanwhile."""
        try:
            status = path.stat()
        except OSError:
            return replace(self, sha256="", mtime=None)
        is_same = status.st_size == self.size and self.mtime in (None, status.st_mtime_ns)
        return self if is_same else replace(self, sha256="", mtime=None)

    def if_unchanged(self, path: Path) -> "Stamp | None":
        """The stamp of today if the file is as it was, by size and time or else by its checksum; None if it changed."""
        try:
            status = path.stat()
            if status.st_size != self.size or not self.sha256:
                return None
            if status.st_mtime_ns == self.mtime:
                return self
            now = Stamp.of(path, document=self.sha256 == TOO_LARGE)
        except OSError:
            return None
        return now if now.sha256 == self.sha256 else None


@dataclass(frozen=True, slots=True)
class FileRecord:
    """A file of an index: its name, where it lies, its stamp, and what was read of it.

    `number` marks its rows in the passage store, `source` is its place among the manifest's sources, `checksum` is that
    of its passages. `bad` counts what was skipped. `twin` names the file that it repeats, if it was left out for that;
    `sketch` is what other documents are compared with (`rag.documents.duplicates`), `repeats` are the keys of passages
    that were left out as files before it hold them, too. `loss` says what may be missed of it.
    """

    number: int
    source: int
    name: str
    within: str
    stamp: Stamp
    passages: int
    checksum: str
    bad: int = 0
    twin: str = ""
    sketch: str = ""
    repeats: tuple[str, ...] = ()
    loss: str = ""


def write_files(build: Path, records: Iterable[FileRecord]) -> None:
    """Write the table of files of a build."""
    # Not `asdict`, which copies deeply and takes longer than all else here.
    rows = ({name: getattr(record, name) for name in FileRecord.__slots__} for record in records)
    write_atomic(build / FILES, (dumps({**row, "stamp": asdict(row["stamp"])}) for row in rows))


def read_files(build: Path) -> list[FileRecord]:
    """The table of files of a build; raises `IndexingError` if it is missing or damaged."""
    try:
        return [_record(row, location) for location, row in read_objects(build / FILES)]
    except UserError as error:
        raise IndexingError(f"{error}: build the index again") from error


def _record(row: dict[str, Any], location: str) -> FileRecord:
    stamp = field(row, "stamp", dict, location)
    numbers = {name: field(row, name, int, location) for name in ("number", "source", "passages", "bad")}
    texts = {name: field(row, name, str, location) for name in ("name", "within", "checksum", "twin", "sketch")}
    if not is_path(texts["within"]):
        raise FormatError(f"{location}: field 'within' is not a path: {texts['within'][:100]!r}")
    mtime = None if stamp.get("mtime") is None else field(stamp, "mtime", int, location)
    stamp_of_file = Stamp(field(stamp, "sha256", str, location), field(stamp, "size", int, location), mtime)
    repeats = strings(row, "repeats", location) if "repeats" in row else ()  # an index of before has none
    loss = field(row, "loss", str, location) if "loss" in row else ""
    return FileRecord(stamp=stamp_of_file, **numbers, **texts, repeats=repeats, loss=loss)  # type: ignore[arg-type]


def combine_checksums(records: Iterable[FileRecord]) -> str:
    """The checksum of an index: that of its only file's passages, or the SHA-256 of those of its files, in order."""
    checksums = [record.checksum for record in records if record.passages]
    return checksums[0] if len(checksums) == 1 else hashlib.sha256("".join(checksums).encode()).hexdigest()


# --- sources -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Root:
    """A source as the manifest remembers it; its path relative to the index comes before the absolute one."""

    source: Source
    skip_bad: bool = False
    strict: bool = False

    def record(self, index: Path) -> dict[str, Any]:
        """The dict for the manifest."""
        source = self.source
        absolute = Path(os.path.normpath(source.path.absolute()))
        mirror = {"url": source.url} if source.url else {}
        part = {"shard": str(source.shard)} if source.shard else {}
        globs = {"removed": list(source.removed)} if source.removed else {}
        return {
            **mirror,
            **part,
            "path": "/".join(source.path.parts[-2:]) if mirror else os.path.relpath(absolute, index.resolve()),
            "absolute": str(absolute),
            "format": source.format,
            "prefix": source.prefix,
            "include": list(source.include),
            "exclude": list(source.exclude),
            **globs,
            "skip_bad": self.skip_bad,
            "strict": self.strict,
        }

    @classmethod
    def of(cls, record: Mapping[str, Any], index: Path, location: str) -> "Root":
        """From the manifest; a relative path that leads nowhere gives way to the absolute one."""
        texts = {name: field(record, name, str, location) for name in ("path", "absolute", "format", "prefix")}
        for name in ("path", "absolute"):
            if not is_path(texts[name]):
                raise FormatError(f"{location}: field {name!r} is not a path: {texts[name][:100]!r}")
        absolute = Path(texts["absolute"])
        relative = Path(os.path.normpath(index.resolve() / texts["path"]))
        include, exclude, removed_globs = (
            strings(record, name, location) for name in ("include", "exclude", "removed")
        )
        path = relative if relative.exists() or not absolute.exists() else absolute
        url = field(record, "url", str, location) if "url" in record else ""
        if url:
            path = _mirror(index, texts["path"], url, location)
        try:
            shard = Shard.parse(field(record, "shard", str, location)) if "shard" in record else None
        except UsageError as error:
            raise FormatError(f"{location}: {error}") from error
        source = Source(path, texts["format"], texts["prefix"], include, exclude, url, shard, removed_globs)
        return cls(source, field(record, "skip_bad", bool, location), field(record, "strict", bool, location))


def _mirror(index: Path, path: str, url: str, location: str) -> Path:
    """The folder of a web source; another index's is never it, and nothing outside is written or deleted."""
    folder, _, host = path.partition("/")
    try:
        if folder.startswith(WEB) and host == host_of(url):
            return index / folder / host
    except UserError as error:
        raise FormatError(f"{location}: {error}") from error
    raise FormatError(f"{location}: {path!r} is not the folder of {url}")


def roots_of(manifest: Mapping[str, Any], index: Path) -> list[Root]:
    """The sources of an index; raises `IndexingError` for an index that does not know them."""
    if "roots" not in manifest:
        raise IndexingError(f"{index} does not know its sources: build it again with rag index build --replace")
    try:
        records = manifest["roots"]
        if not isinstance(records, list) or not all(isinstance(record, dict) for record in records):
            raise FormatError("field 'roots' should be a list of objects")
        return [Root.of(record, index, "manifest.json") for record in records]
    except FormatError as error:
        raise IndexingError(f"the manifest of {index} is damaged ({error}): build the index again") from error
