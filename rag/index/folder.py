"""The folder of an index: who may write to it, and what killed or replaced builds left behind."""

import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from autoais.base.io.jsonl import parse_object
from autoais.base.io.locks import file_lock, lock_if_free
from rag.base.errors import FormatError, IndexingError
from rag.index.manifest import BUILD, DATABASE_FOLDER, MANIFEST, WEB

LOCK = ".rag-lock"


@contextmanager
def lock_folder(to: Path) -> Iterator[None]:
    """Create the folder, or check that it is an index or empty, lock it against other writers, and sweep it."""
    if to.exists() and not to.is_dir():
        raise IndexingError(f"{to} is a file; name a folder for the index")
    with ExitStack() as stack:
        try:
            to.mkdir(parents=True, exist_ok=True)
            if not all(_ours(path.name) for path in to.iterdir()):
                raise IndexingError(f"{to} holds other files and is not an index; name a new or an empty folder")
            busy = IndexingError(f"{to}: another build is running in it; wait for it")
            stack.enter_context(file_lock(to / LOCK, busy))
            sweep(to)
        except OSError as error:
            raise IndexingError(f"{to}: cannot be written: {error.strerror}") from error
        yield


def _ours(name: str) -> bool:
    # A kill while the manifest is written can leave `.manifest.json.*`.
    return name in (MANIFEST, LOCK, DATABASE_FOLDER) or name.startswith((BUILD, WEB, f".{MANIFEST}."))


def sweep(to: Path) -> None:
    """Remove what killed and replaced builds left, under the lock; what an open index still reads stays."""
    for path in _leftover_paths(to):
        if path.is_dir():
            with lock_if_free(path) as free:
                if free:
                    shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def leftovers(to: Path) -> int:
    """The bytes of what `sweep` would remove, if nobody reads it, beyond what the index itself uses."""
    inodes_in_use = {path.stat().st_ino for name in _current(to) or () for path in (to / name).rglob("*")}
    files = [
        file
        for path in _leftover_paths(to)
        for file in (path.rglob("*") if path.is_dir() else [path])
        if file.is_file()
    ]
    inodes = {(status := file.stat()).st_ino: status.st_size for file in files}
    return sum(size for inode, size in inodes.items() if inode not in inodes_in_use)


def in_use(to: Path, name: str) -> bool:
    """Whether the manifest names a build or a mirror."""
    return name in (_current(to) or ())


def _leftover_paths(to: Path) -> list[Path]:
    current = _current(to)
    if current is None:  # the manifest is damaged: any build may be the one it named
        return []
    names_in_use = {MANIFEST, LOCK, DATABASE_FOLDER, *current}
    return [path for path in to.iterdir() if _ours(path.name) and path.name not in names_in_use]


def _current(to: Path) -> set[str] | None:
    """The names of the build and the mirrors in use: none without a manifest, None if the manifest is damaged."""
    path = to / MANIFEST
    if not path.exists():
        return set()
    try:
        manifest = parse_object(path.read_bytes(), str(path))
        mirrors = {root["path"].partition("/")[0] for root in manifest.get("roots", []) if root.get("url")}
        names = {str(manifest["build"]), *mirrors}
    except (OSError, FormatError, LookupError, TypeError, AttributeError):
        return None
    return names if all(name.startswith((BUILD, WEB)) for name in names) else None
