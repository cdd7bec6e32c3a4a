"""An opened index: passages, postings, and where the parts that recipes add lie."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rag.errors import IndexingError
from rag.index.passages import Store
from rag.index.postings import BM25


@dataclass(frozen=True, slots=True)
class Index:
    """An opened index: its manifest, its passages and the BM25 retriever over them.

    `build` is the folder that holds them and the parts that recipes add (`rag.index.parts`). It is None for an index
    in memory, and for one that Anserini made: that one's folder is `lucene`, and its only BM25 is Lucene's.
    """

    name: str
    build: Path | None
    manifest: dict[str, Any]
    store: Store
    postings: BM25 | None
    lucene: Path | None = None

    @property
    def bm25(self) -> BM25:
        """BM25 as the recipe `bm25` has it; `IndexingError` for an index that Anserini made."""
        if self.postings is None:
            raise IndexingError(
                f"{self.name} is a Lucene index: search it by --recipe lucene, or import it (rag index import)"
            )
        return self.postings
