"""Lists the indexes in folders, the files of an index, and the passages of a file."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autoais.base.io.paths import folder_size
from rag.base.errors import IndexingError
from rag.base.types import Passage
from rag.index.files import FileRecord, read_files, roots_of
from rag.index.folder import leftovers
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
