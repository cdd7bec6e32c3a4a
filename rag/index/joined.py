"""Several indexes on this machine, searched as one: Tantivy opens the segments of all of them side by side.

Terms are weighed by the statistics of all, as in one index that was built from the same passages. So BM25 is fair
between a small and a large index, which merging lists of each by rank would not be: every index would get as many hits.
"""

import hashlib
import json
import shutil
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

import tantivy

from autoais.base.errors import first_line
from autoais.base.io.jsonl import dumps
from rag.base.errors import IndexingError, UsageError
from rag.base.types import Passage
from rag.index.index import Index
from rag.index.passages import Store
from rag.index.postings import BM25, POSTINGS, faults
from rag.index.retriever_config import RetrieverConfig

_META = "meta.json"  # Tantivy's list of segments
_SEPARATOR = ":"  # between the name of an index and the id of a passage in it
_NAMES_SEPARATOR = "+"


def join(indexes: Mapping[str, Index]) -> Index:
    """Several indexes as one. Its passages are called `name:id`, so that ids are unique and say where they come from.

    Raises `UsageError` for fewer than two indexes, one that is there twice and a name with `:` or `+`; `IndexingError`
    for indexes without a folder of ours, of different analyzers or of different versions.
    """
    _check_members(indexes)
    members = {name: _prefix_ids(name, index) for name, index in indexes.items()}
    first_member, *_ = members.values()
    digest = hashlib.sha256(dumps([[name, index.manifest["checksum"]] for name, index in members.items()]).encode())
    formats = {name for index in members.values() for name in str(index.manifest.get("format", "")).split(", ")}
    manifest = {
        "format": ", ".join(sorted(formats)),
        "passages": sum(index.manifest["passages"] for index in members.values()),
        "untitled": sum(index.manifest["untitled"] for index in members.values()),
        "checksum": f"sha256:{digest.hexdigest()}",
        "recipe": first_member.manifest["recipe"],
        "analyzer": first_member.manifest.get("analyzer", ""),
    }
    bm25 = Joined(list(members.values()), first_member.bm25.config)
    return Index(join_names(members), None, manifest, bm25.store, bm25, members=members)


def can_join(index: Index) -> bool:
    """Whether an index can be searched as one with others: it has a folder, and is not of Anserini."""
    return index.build is not None and index.postings is not None


def joined_id(name: str, identifier: str) -> str:
    """What a passage, or the file of one, is called in a joined index; `name` is that of its own index."""
    return f"{name}{_SEPARATOR}{identifier}"


def split_id(index: str, identifier: str) -> tuple[str, str]:
    """The name of an index and the id of a passage in it, for a passage of several indexes (`index` is `a+b`).

    For a passage of one index, both as they are.
    """
    name, separator, own_id = identifier.partition(_SEPARATOR)
    names = split_names(index)
    return (name, own_id) if len(names) > 1 and separator and name in names else (index, identifier)


def split_names(index: str) -> list[str]:
    """The names of the indexes of `a+b`."""
    return index.split(_NAMES_SEPARATOR)


def join_names(names: Iterable[str]) -> str:
    """The name of several indexes as one."""
    return _NAMES_SEPARATOR.join(names)


def _check_members(indexes: Mapping[str, Index]) -> None:
    if len(indexes) < 2:
        raise UsageError(f"two or more indexes can be searched as one, found {len(indexes)}")
    (first_name, first_index), *_ = indexes.items()
    places: dict[object, str] = {}
    for name, index in indexes.items():
        if not name or _SEPARATOR in name or _NAMES_SEPARATOR in name:
            raise UsageError(f"an index that is searched with others needs a name without ':' and '+', found {name!r}")
        if index.members:
            raise UsageError(f"{index.name} is several indexes already: name each of them")
        if not can_join(index):
            way_out = "import it (rag index import)" if index.lucene else "build one with rag index build"
            raise IndexingError(f"{name} cannot be searched with other indexes, as it is in no index folder: {way_out}")
        for place in (index.build, index.manifest["checksum"]):
            if place in places:
                raise UsageError(f"{name} has the same passages as {places[place]}: name one of them")
            places[place] = name
        if index.bm25.analysis != first_index.bm25.analysis:
            analyzers = f"{index.bm25.analysis.name} and {first_index.bm25.analysis.name}"
            raise IndexingError(
                f"{name} and {first_name} cannot be searched as one, as they have different analyzers ({analyzers}): "
                "build the older one again"
            )


def _prefix_ids(name: str, index: Index) -> Index:
    """The same index, whose passages have its name before their ids."""
    store = _PrefixedStore(name, index.store)
    return replace(index, store=store, postings=index.bm25.with_store(store))


class _PrefixedStore:
    """The passages of a store, with the name of their index before their ids."""

    def __init__(self, name: str, store: Store) -> None:
        self._name, self._store = name, store

    def rows(self, rows: Sequence[int]) -> list[Passage]:
        return [self._rename(passage) for passage in self._store.rows(rows)]

    def get(self, identifier: str) -> Passage | None:
        name, separator, own_id = identifier.partition(_SEPARATOR)
        passage = self._store.get(own_id) if separator and name == self._name else None
        return None if passage is None else self._rename(passage)

    def scan(self, first: int = 0) -> Iterator[Passage]:
        return map(self._rename, self._store.scan(first))

    def _rename(self, passage: Passage) -> Passage:
        return replace(passage, id=joined_id(self._name, passage.id))


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
        self.store = _Stores([index.store for index in indexes])
        counts = {name: sum(index.manifest[name] for index in indexes) for name in ("untitled", "passages")}
        super().__init__(tantivy_index, self.store, config, **counts, analysis=indexes[0].bm25.analysis)

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
            raise IndexingError(f"{index.build.parent} shares files with another index: is it a copy of it?") from None
        except (OSError, ValueError, LookupError, AttributeError) as error:
            raise IndexingError(f"{source}: cannot be read ({first_line(error)}): build the index again") from error
        if common_meta not in (None, meta):
            raise IndexingError(f"{index.build.parent} was built by another version: build it again")
        common_meta = meta
        segments += own_segments
        index_of += [number] * len(own_segments)
    (folder / _META).write_text(json.dumps({**(common_meta or {}), "segments": segments, "opstamp": 0}), "utf-8")
    return index_of
