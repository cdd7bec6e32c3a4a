"""`manifest.json`: written last, it names the build folder of the passages and describes how it was built."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from autoais.base.io.jsonl import field, parse_object, strings
from autoais.base.io.provenance import versions
from rag.base.errors import FormatError, IndexingError, UserError
from rag.base.types import DOCUMENTS
from rag.index.analysis import ANALYSIS
from rag.index.postings import weights_of
from rag.index.retriever_config import RetrieverConfig, read_config

FORMAT_VERSION = 2
MANIFEST = "manifest.json"
BUILD = ".rag-build-"
WEB = ".rag-web-"  # mirrors of pages, which `roots` of the manifest name
DATABASE_FOLDER = "databases"  # local vector databases, beside the builds: an update keeps them
BASE_RETRIEVER = "bm25"
_BASE_RETRIEVER_NOTE = "k1 and b are fixed by tantivy's Python binding"

Fingerprints = Mapping[str, Mapping[str, Any]]
"""The size (`bytes`) and `sha256` of each file of a folder, by its path in it."""


def is_path(text: str) -> bool:
    """Whether a text of a manifest can be a path; the JSON of a damaged one can hold lone surrogates and NUL."""
    try:
        return b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:
        return False


def read_fingerprints(record: Mapping[str, Any], location: str) -> Fingerprints:
    """The field `files` of a manifest (older ones lack it); raises `FormatError` if a path leads out of the folder."""
    files = field(record, "files", dict, location) if "files" in record else {}
    for name, stamp in files.items():
        if not isinstance(stamp, Mapping) or not is_path(name) or Path(name).is_absolute() or ".." in Path(name).parts:
            raise FormatError(f"{location}: {name[:100]!r} is not a file of the folder with its checksum")
        field(stamp, "bytes", int, location), field(stamp, "sha256", str, location)
    return files


FEW_PASSAGES = 20_000
"""Passages of documents up to which a new index gets vectors."""


def default_parts(formats: str, passages: int, *, shard: bool = False) -> tuple[str, ...]:
    """The retrievers whose parts a new index gets unless others are named: `hybrid` for documents, if they are few.

    Empty for corpus files, shards, and more passages than `FEW_PASSAGES`, whose vectors would take more than a few
    minutes. `formats` is that of a manifest.
    """
    return ("hybrid",) if formats == DOCUMENTS and not shard and passages <= FEW_PASSAGES else ()


def is_shard(manifest: Mapping[str, Any]) -> bool:
    """Whether an index was built as a part of its sources (`--shard`)."""
    return any("shard" in root for root in manifest.get("roots", ()))


def describe_index(sources: list[str], formats: list[str], counts: Mapping[str, int], checksum: str) -> dict[str, Any]:
    """The part of the manifest that every index has."""
    return {
        "format_version": FORMAT_VERSION,
        "sources": sources,
        "format": ", ".join(formats),
        **counts,
        "checksum": f"sha256:{checksum}",
        "recipe": read_config(BASE_RETRIEVER).record(),
        "recipe_note": _BASE_RETRIEVER_NOTE,
        "analyzer": ANALYSIS.description,
        "versions": versions(),
    }


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of an index folder; raises `IndexingError` if it is missing, damaged or of another version."""
    path = folder / MANIFEST
    _check_there(folder)
    try:
        manifest = parse_object(path.read_bytes(), str(path))
        version = field(manifest, "format_version", int, str(path))
    except (OSError, FormatError) as error:
        raise IndexingError(f"the manifest is damaged ({error}): build the index again") from error
    _check_version(version, folder)
    try:
        weights_of(RetrieverConfig.of(manifest["recipe"]))
        counts = [field(manifest, name, int, str(path)) for name in ("passages", "untitled")]
        build = field(manifest, "build", str, str(path))
        read_fingerprints(manifest, str(path))
        field(manifest, "checksum", str, str(path))
        manifest["retrievers"] = list(strings(manifest, "retrievers", str(path)))
    except (UserError, ValueError, LookupError, TypeError, AttributeError, OverflowError) as error:
        raise IndexingError(f"the manifest is damaged ({error}): build the index again") from error
    # `build` becomes a path: it must not point outside of the index folder.
    if min(counts) < 0 or not build.startswith(BUILD) or Path(build).name != build:
        raise IndexingError(f"{path} is damaged: build the index again")
    return manifest


def _check_there(folder: Path) -> None:
    """Raise `IndexingError` for a folder without a manifest."""
    if not folder.exists():
        raise IndexingError(f"no index at {folder}: build one with rag index build SOURCE --to {folder}")
    if not (folder / MANIFEST).exists():
        if folder.is_dir() and any(p.name.startswith(BUILD) for p in folder.iterdir()):
            raise IndexingError(f"the index at {folder} is half-built (no {MANIFEST}): build it again")
        of_documents = f": build one of its documents with rag index build {folder} --to NAME.index"
        raise IndexingError(f"{folder} is not an index (no {MANIFEST}){of_documents if folder.is_dir() else ''}")


def _check_version(version: int, folder: Path) -> None:
    """Raise `IndexingError` for an index of another format version."""
    if version > FORMAT_VERSION:
        raise IndexingError(
            f"{folder} is an index of format {version}, this version reads {FORMAT_VERSION}: upgrade attributed-rag"
        )
    if version < FORMAT_VERSION:
        raise IndexingError(
            f"{folder} is an index of the older format {version}, this version reads {FORMAT_VERSION}: "
            "build it again with rag index build"
        )
