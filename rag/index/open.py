"""Opens indexes: index folders, Lucene indexes built by Anserini, and the handbook that ships with rag."""

from pathlib import Path

from rag.corpus.documents import read_document
from rag.corpus.reader import DOCUMENTS
from rag.errors import FormatError, IndexingError
from rag.index.build import write_passages
from rag.index.index import Index
from rag.index.manifest import BASE_RECIPE, MANIFEST, described, read_manifest
from rag.index.passages import PassageStore
from rag.index.postings import BM25, BM25Writer
from rag.index.recipes import Recipe, read_recipe
from rag.resources import folder as shipped_folder

HANDBOOK = "handbook"
_SMALL_HEAP_BYTES = 15_000_000  # Tantivy's minimum


def open_index(folder: Path | None) -> Index:
    """Open an index folder, also one built by Anserini; None indexes the handbook that ships with rag in memory.

    Raises `IndexingError` if the folder does not exist, is half-built, or was written by another version.
    """
    if folder is None:
        return _handbook()
    if not (folder / MANIFEST).exists() and any(folder.glob("segments_*")):
        from rag.index.lucene import open_lucene

        return open_lucene(folder)
    manifest = read_manifest(folder)
    work = folder / manifest["build"]
    if not work.is_dir():
        raise IndexingError(f"{folder}: {MANIFEST} names {work.name!r}, which is missing; build the index again")
    store = PassageStore.open(work / "passages.sqlite")
    counts = {name: manifest[name] for name in ("untitled", "passages")}
    name = folder.resolve().name
    return Index(name, work, manifest, store, BM25.open(work / "bm25", store, Recipe.of(manifest["recipe"]), **counts))


def _handbook() -> Index:
    pages = sorted(shipped_folder("handbook").iterdir(), key=lambda page: page.name)
    located = (
        (page.name, passage)
        for page in pages
        if page.name.endswith(".md")
        for passage in read_document(page, page.name)
    )
    store = PassageStore.create(None)
    postings = BM25Writer(None, _SMALL_HEAP_BYTES)
    counts, checksum = write_passages(located, store, postings, _raise, lambda _: None)
    manifest = described(["docs/handbook"], [DOCUMENTS], counts, checksum) | {"skipped": 0}
    return Index(HANDBOOK, None, manifest, store, BM25(postings.index, store, read_recipe(BASE_RECIPE), **counts))


def _raise(error: FormatError) -> None:
    raise error
