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


def fingerprints(
    folder: Path, before: Path | None = None, fingerprints_before: Fingerprints | None = None
) -> dict[str, Any]:
    """The sizes and checksums of the files of a build or a part, without parts, locks and other hidden files.

    The checksum of a file that is a hard link to one in `before` is taken from `fingerprints_before`.
    """
    stamps: dict[str, Any] = {}
    for path in sorted(folder.rglob("*")):
        relative = path.relative_to(folder)
        name = relative.as_posix()
        if not path.is_file() or name.startswith(f"{PARTS}/") or name == PART or path.name.startswith("."):
            continue
        if (
            before is not None
            and fingerprints_before is not None
            and name in fingerprints_before
            and _same(path, before / name)
        ):
            stamps[name] = dict(fingerprints_before[name])
        else:
            stamps[name] = {"bytes": path.stat().st_size, "sha256": sha256_file(path)}
    return stamps


def _same(path: Path, other: Path) -> bool:
    return other.exists() and path.samefile(other)


def size_faults(folder: Path, files: Fingerprints) -> Iterator[str]:
    """Yield what is wrong with the sizes of files."""
    for name, stamp in files.items():
        try:
            size = (folder / name).stat().st_size
        except OSError:
            yield f"{name} is missing"
            continue
        if size != stamp["bytes"]:
            yield f"{name} has {size:,} bytes, not {stamp['bytes']:,}"


def find_faults(folder: Path, files: Fingerprints) -> Iterator[str]:
    """Yield what is wrong with the sizes of files, and with the checksums of the smallest, up to 16 MiB in all."""
    wrong = list(size_faults(folder, files))
    yield from wrong
    if wrong:
        return
    small, total = {}, 0
    for name, stamp in sorted(files.items(), key=lambda item: (item[1]["bytes"], item[0])):
        total += stamp["bytes"]
        if total <= _AT_ONCE:
            small[name] = stamp
    yield from checksum_faults(folder, small)


def checksum_faults(folder: Path, files: Fingerprints) -> Iterator[str]:
    """Yield what is wrong with the checksums of files, which must be there."""
    for name, stamp in files.items():
        if sha256_file(folder / name) != stamp["sha256"]:
            yield f"{name} has another checksum than when it was written"


def check_files(folder: Path, files: Fingerprints) -> None:
    """Raise `IndexingError` if a file of a build is missing or damaged."""
    for fault in find_faults(folder, files):
        raise IndexingError(f"{folder} is damaged, {fault}: build the index again")
