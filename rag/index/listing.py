"""Lists the indexes in folders, the files of an index, and the passages of a file."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from autoais.base.io.paths import folder_size
from rag.base.errors import IndexingError
from rag.base.terminal import pluralize
from rag.base.types import DOCUMENTS, Passage
from rag.documents.mirrors import read_pages
from rag.documents.sources import MAX_FILE_SIZE, Source
from rag.index.files import TOO_LARGE, FileRecord, read_files, roots_of
from rag.index.folder import leftovers
from rag.index.index import Index
from rag.index.integrity import PART, PARTS, size_faults
from rag.index.manifest import BUILD, MANIFEST, read_manifest
from rag.index.passages import PASSAGES, PassageStore


@dataclass(frozen=True, slots=True)
class FoundIndex:
    """An index in a folder; `problem` says why it cannot be used, if so."""

    path: Path
    passages: int = 0
    sources: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    bytes: int = 0
    problem: str = ""


def find_indexes(folders: Iterable[Path]) -> list[FoundIndex]:
    """The indexes among these folders and the folders in them."""
    indexes: dict[Path, FoundIndex] = {}
    for folder in folders:
        children = sorted(folder.iterdir()) if folder.is_dir() else []
        for path in [folder, *children]:
            if path.is_dir() and path.resolve() not in indexes and is_index(path):
                indexes[path.resolve()] = _describe_index(path)
    return list(indexes.values())


def is_index(path: Path) -> bool:
    """Whether a folder looks like an index, also a half-built one."""
    try:
        return (path / MANIFEST).is_file() or any(child.name.startswith(BUILD) for child in path.iterdir())
    except OSError:  # not ours to read
        return False


def _describe_index(path: Path) -> FoundIndex:
    try:
        manifest = read_manifest(path)
        build = path / manifest["build"]
        problem = "" if build.is_dir() else f"{build.name} is missing"
        problem = next(size_faults(build, manifest.get("files", {})), problem)
        parts = tuple(sorted(part.parent.name for part in (build / PARTS).glob(f"*/{PART}")))
        sources = tuple(map(str, manifest["sources"]))
        return FoundIndex(path, manifest["passages"], sources, parts, folder_size(build), problem)
    except (IndexingError, KeyError, TypeError) as error:
        return FoundIndex(path, problem=str(error))


def about(index: Path, manifest: dict[str, Any]) -> dict[str, Any]:
    """A manifest for people: without checksums per file, with the size on disk and what killed builds left there."""
    summary = {name: value for name, value in manifest.items() if name not in ("files", "dead")}
    return summary | {"bytes": folder_size(index / manifest["build"]), "leftover_bytes": leftovers(index)}


def files_of(index: Path) -> list[FileRecord]:
    """The files of an index, in order; raises `IndexingError` for an index that does not know them."""
    manifest = read_manifest(index)
    roots_of(manifest, index)
    return read_files(index / manifest["build"])


def passages_of(index: Path, name: str) -> Iterator[Passage]:
    """Yield the passages of a file, by its name or path, or the passage with that id.

    Raises `IndexingError` if there is neither.
    """
    manifest = read_manifest(index)
    roots = roots_of(manifest, index)
    build = index / manifest["build"]
    for record in read_files(build):
        path = roots[record.source].source.path
        if name == record.name or Path(name).resolve() == (path / record.within).resolve():
            return PassageStore.open(build / PASSAGES).of_file(record.number)
    passage = PassageStore.open(build / PASSAGES).get(name)
    if passage is not None:
        return iter([passage])
    raise IndexingError(f"{index} has no file {name!r}: rag index show {index} lists its files")


@dataclass(frozen=True, slots=True)
class IndexedDocument:
    """A file of an index.

    `name` is what the ids of its passages begin with, `path` where it lies, `source` the folder or file that the index
    was given, `url` the address of a web page. `size` is in bytes and `sha256` the checksum when it was read (empty if
    that proves nothing); `modified` is None if the file is gone. `passages` is their number, and `left_out` says what
    is missing of it and why, empty if nothing is.
    """

    name: str
    path: Path
    source: Path
    url: str
    size: int
    modified: datetime | None
    passages: int
    left_out: str
    sha256: str


def list_documents(index: Index) -> list[IndexedDocument]:
    """The files of an open index, in order; raises `IndexingError` for an index that does not know them."""
    if index.members:
        raise IndexingError(f"{index.name} is several indexes: list the documents of each of them")
    if index.build is None or index.lucene is not None:
        raise IndexingError(f"{index.name} does not know its files: rag index build makes an index that does")
    roots = roots_of(index.manifest, index.build.parent)
    urls = [source_urls(root.source) for root in roots]
    documents = []
    for record in read_files(index.build):
        source = roots[record.source].source
        path = source.path / record.within if record.within else source.path
        documents.append(
            IndexedDocument(
                record.name,
                path,
                source.path,
                urls[record.source].get(record.within, ""),
                record.stamp.size,
                _time_of(record, path),
                record.passages,
                describe_omissions(record, source.format),
                record.stamp.sha256 if record.stamp.sha256 != TOO_LARGE else "",
            )
        )
    return documents


def describe_omissions(record: FileRecord, format_name: str) -> str:
    """What is missing of a file and why; empty if nothing is."""
    if record.stamp.sha256 == TOO_LARGE:
        return f"not read: larger than {MAX_FILE_SIZE >> 20} MiB"
    parts = []
    if record.bad and format_name == DOCUMENTS:
        parts.append("could not be read")
    elif record.bad:
        parts.append(f"{pluralize(record.bad, 'line')} could not be read")
    if record.twin:
        parts.append(f"repeats {record.twin}")
    if record.loss:
        parts.append(f"without {record.loss}" if record.passages else record.loss)
    if record.repeats:
        is_or_are = "is" if len(record.repeats) == 1 else "are"
        parts.append(f"{pluralize(len(record.repeats), 'passage')} {is_or_are} in other documents")
    return "; ".join(parts)


def source_urls(source: Source) -> dict[str, str]:
    """The URLs of the pages of a web source, by the paths of their files in it; none for other sources."""
    scheme = urlsplit(source.url).scheme
    if scheme not in ("http", "https"):
        return {}
    return {page.file: f"{scheme}://{page.page}" for page in read_pages(source.path.parent).values()}


def _time_of(record: FileRecord, path: Path) -> datetime | None:
    """When a file was modified: as it was read, or if that is not known, as it is now."""
    nanoseconds = record.stamp.mtime
    if nanoseconds is None:
        try:
            nanoseconds = path.stat().st_mtime_ns
        except OSError:
            return None
    return datetime.fromtimestamp(nanoseconds / 1e9, UTC)
