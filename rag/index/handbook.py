"""The index of the handbook: it ships built in a wheel; a checkout builds it once, in the user's cache folder."""

import hashlib
import os
from collections.abc import Iterable
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import autoais
from rag.base.resources import folder as shipped_folder
from rag.base.types import DOCUMENTS
from rag.index.index import Index
from rag.index.manifest import BASE_RETRIEVER, describe_index
from rag.index.passages import PASSAGES, PassageStore
from rag.index.postings import BM25, POSTINGS, BM25Writer
from rag.index.retriever_config import read_config

HANDBOOK = "handbook"
FINGERPRINT = "fingerprint"  # of pages and code, in the manifest
_HEAP_BYTES = 15_000_000  # Tantivy's minimum
_TEXTS = Path(autoais.__file__).parent / "base" / "text"
_CODE = (Path(__file__).parents[1] / "documents", Path(__file__).parent, _TEXTS)  # what reads and indexes the pages

Page = tuple[str, Traversable]
"""The name and the file of a page, such as `reference/ais.md`."""


def list_pages() -> list[Page]:
    """The pages of the handbook, by name; raises `RuntimeError` if they are not installed."""
    return [
        (f"{part.name}/{page.name}", page)
        for part in sorted(shipped_folder("handbook").iterdir(), key=lambda part: part.name)
        if part.is_dir()
        for page in sorted(part.iterdir(), key=lambda page: page.name)
        if page.name.endswith(".md")
    ]


def find_shipped_index() -> Path | None:
    """The folder of the index that the wheel holds; None in a checkout."""
    folder = files("rag").joinpath("_shipped", "handbook-index")
    return folder if isinstance(folder, Path) and folder.is_dir() else None


def cache_folder() -> Path:
    """The folder of the index that this checkout builds, below RAG_CACHE or else the user's cache folder."""
    from platformdirs import user_cache_path

    cache = Path(os.environ.get("RAG_CACHE") or user_cache_path("attributed-rag"))
    checkout = hashlib.sha256(str(Path(__file__).resolve()).encode()).hexdigest()
    return cache / f"handbook-{checkout[:12]}.index"


def compute_fingerprint(pages: Iterable[Page]) -> str:
    """The SHA-256 of the pages, and of the state of the code that reads and indexes them."""
    digest = hashlib.sha256()
    for name, page in pages:
        digest.update(f"{name}\0{hashlib.sha256(page.read_bytes()).hexdigest()}\0".encode())
    for folder in _CODE:
        for path in sorted(folder.glob("**/*.py")):
            status = path.stat()  # reading all code takes longer than reading the pages
            digest.update(f"{path.name}\0{status.st_size}\0{status.st_mtime_ns}\0".encode())
    return digest.hexdigest()


def build_handbook(to: Path, pages: Iterable[Page], fingerprint: str = "") -> None:
    """Build the index in the folder `to`, in place of an older one; a build that is killed leaves that one as it was.

    Raises `IndexingError` if the folder cannot be written, or if another process is building there.
    """
    # An index in a folder is opened without the modules that read documents.
    from rag.index.build import building, write_manifest
    from rag.index.integrity import fingerprints

    with building(to, replace=True) as work:
        store = PassageStore.create(work / PASSAGES)
        # One thread, so that all machines write the same postings.
        manifest = _write(pages, store, BM25Writer(work / POSTINGS, _HEAP_BYTES, shard=True))
        folder = {"build": work.name, "roots": [], "dead": 0, FINGERPRINT: fingerprint, "files": fingerprints(work)}
        write_manifest(to, manifest | folder)


def index_in_memory(pages: Iterable[Page]) -> Index:
    """The index, in memory only."""
    store, postings = PassageStore.create(None), BM25Writer(None, _HEAP_BYTES)
    manifest = _write(pages, store, postings)
    counts = {name: manifest[name] for name in ("untitled", "passages")}
    return Index(HANDBOOK, None, manifest, store, BM25(postings.index, store, read_config(BASE_RETRIEVER), **counts))


def _write(pages: Iterable[Page], store: PassageStore, postings: BM25Writer) -> dict[str, Any]:
    """Write the passages of the pages, and return what describes them."""
    from rag.documents import read_document
    from rag.index.build import PassageWriter

    with PassageWriter(store, postings) as writer:
        _, checksum = writer.add((name, passage) for name, page in pages for passage in read_document(page, name))
    return describe_index(["docs/handbook"], [DOCUMENTS], writer.counts, checksum) | {"skipped": 0}
