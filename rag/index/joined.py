"""Several indexes on this machine, searched as one: Tantivy opens the segments of all of them side by side.

Terms are weighed by the statistics of all, as in one index that was built from the same passages.
"""

import json
import shutil
import tempfile
import weakref
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

import tantivy

from autoais.base.errors import first_line
from rag.base.errors import IndexingError
from rag.base.types import Passage
from rag.index.index import Index
from rag.index.passages import Store
from rag.index.postings import BM25, POSTINGS, faults
from rag.index.retriever_config import RetrieverConfig

_META = "meta.json"  # Tantivy's list of segments


class _Stores:
    """The passages of several stores: row r of store s has the number `r * stores + s`."""

    def __init__(self, stores: Sequence[Store]) -> None:
        self._stores = stores

    def rows(self, rows: Sequence[int]) -> list[Passage]:
        passages: dict[int, Passage] = {}
        for number, store in enumerate(self._stores):
            store_rows = [row for row in rows if row % len(self._stores) == number]
            if store_rows:
                passages |= zip(store_rows, store.rows([row // len(self._stores) for row in store_rows]), strict=True)
        return [passages[row] for row in rows]

    def get(self, identifier: str) -> Passage | None:
        return next((passage for store in self._stores if (passage := store.get(identifier))), None)

    def scan(self, first: int = 0) -> Iterator[Passage]:
        yield from islice(chain.from_iterable(store.scan() for store in self._stores), first, None)


class Joined(BM25):
    """BM25 over the passages of several indexes, with the weights of a configuration.

    Raises `IndexingError` for indexes of different versions, or that share a part of their files.
    """

    def __init__(self, indexes: Sequence[Index], config: RetrieverConfig) -> None:
        folder = Path(tempfile.mkdtemp(prefix="rag-"))
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        # Tantivy reads its segments in the order of the list; a hit gives the position of its segment in it.
        self._index_of, self._indexes = _link_segments(indexes, folder), len(indexes)
        with faults(lambda reason: f"the indexes cannot be searched as one: {reason}"):
            tantivy_index = tantivy.Index.open(str(folder))
        store = _Stores([index.store for index in indexes])
        counts = {name: sum(index.manifest[name] for index in indexes) for name in ("untitled", "passages")}
        super().__init__(tantivy_index, store, config, **counts, analysis=indexes[0].bm25.analysis)

    def _rows(self, addresses: list[Any]) -> list[int]:
        rows = super()._rows(addresses)
        return [
            row * self._indexes + self._index_of[address.segment_ord]
            for row, address in zip(rows, addresses, strict=True)
        ]


def _link_segments(indexes: Sequence[Index], folder: Path) -> list[int]:
    """Fill the folder with links to the segments of all indexes; returns the index of each segment."""
    common_meta: dict[str, Any] | None = None
    segments: list[Any] = []
    index_of: list[int] = []
    for number, index in enumerate(indexes):
        assert index.build is not None
        source = index.build / POSTINGS
        try:
            meta = json.loads((source / _META).read_bytes())
            own_segments = meta.pop("segments")
            meta.pop("opstamp")  # of the last change
            for path in source.glob("[!.]*"):
                if path.name != _META:
                    (folder / path.name).symlink_to(path.absolute())
        except FileExistsError:
            raise IndexingError(f"{index.build.parent} shares files with another shard: is it a copy of it?") from None
        except (OSError, ValueError, LookupError, AttributeError) as error:
            raise IndexingError(f"{source}: cannot be read ({first_line(error)}): build the index again") from error
        if common_meta not in (None, meta):
            raise IndexingError(f"{index.build.parent} was built by another version: build it again")
        common_meta = meta
        segments += own_segments
        index_of += [number] * len(own_segments)
    (folder / _META).write_text(json.dumps({**(common_meta or {}), "segments": segments, "opstamp": 0}), "utf-8")
    return index_of
