"""An open index: passages, postings, and the folder of parts that retrievers add."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rag.base.errors import IndexingError
from rag.index.passages import Store
from rag.index.postings import BM25


@dataclass(frozen=True, slots=True)
class Index:
    """An open index: its manifest, its passages and the BM25 retriever over them.

    `build` is the folder with its files and the parts that retrievers add (`rag.index.parts`). It is None for an index
    in memory, and for an index built by Anserini, whose folder is `lucene` and which only Lucene can search. It is None
    too for several indexes that are searched as one (`rag.index.joined`), which are its `members`, by name.
    """

    name: str
    build: Path | None
    manifest: dict[str, Any]
    store: Store
    postings: BM25 | None
    lucene: Path | None = None
    members: Mapping[str, "Index"] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"Index({self.name!r}, {self.manifest['passages']:,} passages)"

    @property
    def bm25(self) -> BM25:
        """BM25 with the retriever `bm25`; raises `IndexingError` for an index built by Anserini."""
        if self.postings is None:
            raise IndexingError(
                f"{self.name} is a Lucene index: search it with the retriever `lucene` (--retriever lucene), or "
                "import it (rag index import)"
            )
        return self.postings
