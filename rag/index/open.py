"""Opens indexes: index folders, Lucene indexes built by Anserini, and the handbook that ships with rag."""

from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from rag.base.errors import IndexingError
from rag.index import handbook
from rag.index.analysis import analysis_of
from rag.index.index import Index
from rag.index.integrity import check_files
from rag.index.manifest import MANIFEST, read_manifest
from rag.index.passages import PASSAGES, PassageStore
from rag.index.postings import BM25, POSTINGS
from rag.index.retriever_config import RetrieverConfig

_ATTEMPTS = 5


def open_index(folder: Path | None) -> Index:
    """Open an index folder, also one built by Anserini; None opens the handbook that ships with rag.

    Raises `IndexingError` if the folder does not exist, is half-built, or was written by another version.
    """
    if folder is None:
        return _open_handbook()
    if not (folder / MANIFEST).exists() and any(folder.glob("segments_*")):
        from rag.index.lucene import open_lucene

        return open_lucene(folder)
    for attempt in range(_ATTEMPTS):
        manifest = read_manifest(folder)
        try:
            return open_build(folder, manifest)
        except IndexingError:  # an update may have replaced and removed the build meanwhile
            if attempt == _ATTEMPTS - 1 or read_manifest(folder)["build"] == manifest["build"]:
                raise
    raise AssertionError("the last attempt returns or raises")


def open_build(folder: Path, manifest: dict[str, Any]) -> Index:
    """Open the build that a manifest names; cheap checks only, as `rag index verify` reads every byte."""
    work = folder / manifest["build"]
    if not work.is_dir():
        raise IndexingError(f"{folder}: {MANIFEST} names {work.name!r}, which is missing; build the index again")
    store = PassageStore.open(work / PASSAGES)
    check_files(work, manifest.get("files", {}))
    counts = {name: manifest[name] for name in ("untitled", "passages")}
    config, analysis = RetrieverConfig.of(manifest["recipe"]), analysis_of(manifest.get("analyzer", ""))
    bm25 = BM25.open(work / POSTINGS, store, config, **counts, analysis=analysis)
    return Index(folder.resolve().name, work, manifest, store, bm25)


def _open_handbook() -> Index:
    """Open the index that the wheel holds, or the one in the user's cache folder, which is built if it is not current.

    If neither can be used, such as where the cache folder is read-only, the pages are indexed in memory.
    """
    shipped_folder = handbook.find_shipped_index()
    index = _open_current(shipped_folder) if shipped_folder is not None else None
    if index is not None:
        return index
    pages, folder = handbook.list_pages(), handbook.cache_folder()
    fingerprint = handbook.compute_fingerprint(pages)
    index = _open_current(folder, fingerprint)
    if index is None:
        with suppress(IndexingError, OSError):
            handbook.build_handbook(folder, pages, fingerprint)
            index = _open_current(folder, fingerprint)
    return index or handbook.index_in_memory(pages)


def _open_current(folder: Path, fingerprint: str | None = None) -> Index | None:
    """Open an index of the handbook; None if it is missing, damaged, or has another fingerprint than is asked for."""
    try:
        index = open_index(folder)
    except (IndexingError, OSError):
        return None
    if fingerprint not in (None, index.manifest.get(handbook.FINGERPRINT)):
        return None
    return replace(index, name=handbook.HANDBOOK, build=None)  # it takes no data of retrievers
