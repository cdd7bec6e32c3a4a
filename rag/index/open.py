"""Opens indexes: index folders, Lucene indexes built by Anserini, and the handbook that ships with rag."""

from pathlib import Path
from typing import Any

from rag.base.errors import IndexingError
from rag.base.resources import folder as shipped_folder
from rag.documents.sources import DOCUMENTS
from rag.index.index import Index
from rag.index.integrity import check_files
from rag.index.manifest import BASE_RETRIEVER, MANIFEST, described, read_manifest
from rag.index.passages import PASSAGES, PassageStore
from rag.index.postings import BM25, POSTINGS, BM25Writer
from rag.index.retriever_config import RetrieverConfig, read_config

HANDBOOK = "handbook"
_SMALL_HEAP_BYTES = 15_000_000  # Tantivy's minimum
_ATTEMPTS = 5


def open_index(folder: Path | None) -> Index:
    """Open an index folder, also one built by Anserini; None indexes the handbook that ships with rag in memory.

    Raises `IndexingError` if the folder does not exist, is half-built, or was written by another version.
    """
    if folder is None:
        return _handbook()
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
    name = folder.resolve().name
    return Index(
        name, work, manifest, store, BM25.open(work / POSTINGS, store, RetrieverConfig.of(manifest["recipe"]), **counts)
    )


def _handbook() -> Index:
    # An index in a folder is opened without the modules that read documents.
    from rag.documents import read_document
    from rag.index.build import PassageWriter

    handbook = shipped_folder("handbook")
    pages = [
        (f"{part.name}/{page.name}", page)
        for part in sorted(handbook.iterdir(), key=lambda part: part.name)
        if part.is_dir()
        for page in sorted(part.iterdir(), key=lambda page: page.name)
        if page.name.endswith(".md")
    ]
    located = ((name, passage) for name, page in pages for passage in read_document(page, name))
    store = PassageStore.create(None)
    postings = BM25Writer(None, _SMALL_HEAP_BYTES)
    with PassageWriter(store, postings) as writer:
        _, checksum = writer.add(located)
    counts = writer.counts
    manifest = described(["docs/handbook"], [DOCUMENTS], counts, checksum) | {"skipped": 0}
    return Index(HANDBOOK, None, manifest, store, BM25(postings.index, store, read_config(BASE_RETRIEVER), **counts))
