"""Whether the files of an index are as they were written: sizes and some checksums on opening."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from autoais.base.io.provenance import sha256_file
from rag.base.errors import IndexingError
from rag.index.manifest import Fingerprints

PART = "part.json"
PARTS = "parts"
_AT_ONCE = 16 << 20  # bytes that are read in some hundredths of a second


def fingerprints(folder: Path, before: Path | None = None, known: Fingerprints | None = None) -> dict[str, Any]:
    """The sizes and checksums of the files of a build or a part, without parts, locks and other hidden files.

    The checksum of a file that is a hard link to one in `before` is taken from `known`.
    """
    found: dict[str, Any] = {}
    for path in sorted(folder.rglob("*")):
        within = path.relative_to(folder)
        name = within.as_posix()
        if not path.is_file() or name.startswith(f"{PARTS}/") or name == PART or path.name.startswith("."):
            continue
        if before is not None and known is not None and name in known and _same(path, before / name):
            found[name] = dict(known[name])
        else:
            found[name] = {"bytes": path.stat().st_size, "sha256": sha256_file(path)}
    return found


def _same(one: Path, other: Path) -> bool:
    return other.exists() and one.samefile(other)


def size_faults(folder: Path, files: Fingerprints) -> Iterator[str]:
    """Yield what is wrong with the sizes of files."""
    for name, recorded in files.items():
        try:
            size = (folder / name).stat().st_size
        except OSError:
            yield f"{name} is missing"
            continue
        if size != recorded["bytes"]:
            yield f"{name} has {size:,} bytes, not {recorded['bytes']:,}"


def changed(folder: Path, files: Fingerprints) -> Iterator[str]:
    """Yield what is wrong with the sizes of files, and with the checksums of the smallest, up to 16 MiB in all."""
    wrong = list(size_faults(folder, files))
    yield from wrong
    if wrong:
        return
    small, total = {}, 0
    for name, recorded in sorted(files.items(), key=lambda item: (item[1]["bytes"], item[0])):
        total += recorded["bytes"]
        if total <= _AT_ONCE:
            small[name] = recorded
    yield from checksum_faults(folder, small)


def checksum_faults(folder: Path, files: Fingerprints) -> Iterator[str]:
    """Yield what is wrong with the checksums of files, which must be there."""
    for name, recorded in files.items():
        if sha256_file(folder / name) != recorded["sha256"]:
            yield f"{name} has another checksum than when it was written"


def check_files(folder: Path, files: Fingerprints) -> None:
    """Raise `IndexingError` if a file of a build is `changed`."""
    for fault in changed(folder, files):
        raise IndexingError(f"{folder} is damaged, {fault}: build the index again")
