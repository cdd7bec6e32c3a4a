"""Whether every byte of an index is as it was written (`rag index verify`)."""

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from autoais.base.errors import first_line
from autoais.base.io.jsonl import field, parse_object
from rag.base.errors import FormatError, IndexingError
from rag.index.files import FILES, combine_checksums, read_files
from rag.index.integrity import PART, PARTS, checksum_faults, size_faults
from rag.index.manifest import Fingerprints, read_fingerprints, read_manifest
from rag.index.passages import COLUMNS, PASSAGES, read_only
from rag.index.postings import POSTINGS, count_documents


def verify(index: Path) -> list[str]:
    """What is wrong with an index, one line each: every byte is read. Raises `IndexingError` if it cannot be opened."""
    manifest = read_manifest(index)
    build = index / manifest["build"]
    if not build.is_dir():
        return [f"{build.name} is missing"]
    faults = list(_files(build, manifest.get("files", {})))
    faults += _passages(build, manifest)
    faults += _table(build, manifest)
    if not any(fault.startswith(f"{POSTINGS}/") for fault in faults):  # Tantivy may panic, which prints many lines
        faults += _postings(build, manifest)
    for part in sorted((build / PARTS).glob(f"*/{PART}")):
        faults += (f"{PARTS}/{part.parent.name}: {fault}" for fault in _part(part, manifest))
    return faults


def _files(folder: Path, files: Fingerprints) -> Iterator[str]:
    wrong = list(size_faults(folder, files))
    yield from wrong
    intact_files = {name: files[name] for name in files if not any(fault.startswith(f"{name} ") for fault in wrong)}
    yield from checksum_faults(folder, intact_files)


def _passages(build: Path, manifest: Mapping[str, Any]) -> Iterator[str]:
    try:
        with closing(read_only(build / PASSAGES)) as connection:
            for (fault,) in connection.execute("PRAGMA integrity_check(3)"):
                if fault != "ok":
                    yield f"{PASSAGES}: {first_line(fault)}"
            rows, last = connection.execute("SELECT count(*), max(row) FROM passage").fetchone()
            if rows != manifest["passages"] or last != rows - 1:
                yield f"{PASSAGES} has {rows:,} rows up to {last}, not {manifest['passages']:,}"
            texts = [name.strip() for name in COLUMNS.split(",")[:4]]
            odd = " OR ".join(f"typeof({name}) <> 'text'" for name in texts)
            (count,) = connection.execute(f"SELECT count(*) FROM passage WHERE {odd}").fetchone()
            if count:
                yield f"{PASSAGES} has {count:,} rows with a value that is not text"
    except (sqlite3.Error, OSError, UnicodeDecodeError) as error:
        yield f"{PASSAGES} cannot be read: {first_line(error)}"


def _table(build: Path, manifest: Mapping[str, Any]) -> Iterator[str]:
    if "roots" not in manifest:
        return
    try:
        records = read_files(build)
    except IndexingError as error:
        yield str(error)
        return
    total = sum(record.passages for record in records)
    if total != manifest["passages"]:
        yield f"{FILES} counts {total:,} passages, not {manifest['passages']:,}"
    if f"sha256:{combine_checksums(records)}" != manifest["checksum"]:
        yield f"{FILES} and the manifest have other checksums of the passages"


def _postings(build: Path, manifest: Mapping[str, Any]) -> Iterator[str]:
    try:
        count = count_documents(build / POSTINGS)
    except IndexingError as error:
        yield f"{POSTINGS}: {error}"
        return
    if count != manifest["passages"]:
        yield f"{POSTINGS} has {count:,} documents, not {manifest['passages']:,}"


def _part(path: Path, manifest: Mapping[str, Any]) -> Iterator[str]:
    try:
        part = parse_object(path.read_bytes(), PART)
        if field(part, "checksum", str, PART) != manifest["checksum"]:
            yield "was built from other passages than the index"
        yield from _files(path.parent, read_fingerprints(part, PART))
    except (OSError, FormatError) as error:
        yield f"cannot be read: {error}"
