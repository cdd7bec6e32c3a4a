"""A collection in several indexes, in folders and on other machines, searched at the same time.

Every shard is an ordinary index with passages that no other shard has. Each is searched by the same retriever, and the
hits are merged by score. With vectors they are those of one index, to the last bit. With BM25, the shards on this
machine are searched as one index (`rag.index.joined`). If there are servers, all parts are asked for their statistics
first, and then search with those of all: the same passages in the same order as in one index, with scores that agree to
32-bit precision (Elasticsearch calls this `dfs_query_then_fetch`).
"""

import logging
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from rag.base.errors import QuestionError, RagError, UserError
from rag.base.types import Hit, best_first
from rag.documents.sources import MAX_SHARDS
from rag.index.analysis import check_query, check_search
from rag.index.index import Index
from rag.index.joined import Joined
from rag.index.open import open_index
from rag.index.postings import BM25
from rag.index.retriever_config import RetrieverConfig, read_config
from rag.index.statistics import Statistics
from rag.retrieval import PartRetriever, Retriever, RetrieverKind, open_retriever
from rag.retrieval.client import Client
from rag.retrieval.remote import IndexChangedError, Remote

T = TypeVar("T")

_WHEN_MISSING = ("error", "skip")
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Shard:
    """A shard: its folder or address, its retriever, what identifies its passages, and its index if it is here.

    `lock` is held while it is searched: not every engine is thread-safe, but a `Remote` is.
    """

    place: str
    retriever: Retriever
    engine: str
    checksum: str
    index: Index | None = None
    lock: AbstractContextManager[object] = field(default_factory=threading.Lock)


def open_shards(index: Index, config: RetrieverConfig) -> "Shards":
    """Open all shards, each of which must answer now; `index` is not searched.

    Raises `RagError` for shards that are searched by different retrievers, or that hold the same passages.
    """
    config.check_settings(["shards", "recipe", "missing", "timeout"])
    addresses = _places(config)
    missing = config.setting("missing", str, "error")
    if missing not in _WHEN_MISSING:
        raise RagError(
            f"retriever {config.name}: missing should be one of {', '.join(_WHEN_MISSING)}, found {missing!r}"
        )
    inner, timeout = config.setting("recipe", str, "bm25"), config.setting("timeout", float, 30.0)
    with ThreadPoolExecutor(len(addresses)) as pool:
        shards = list(pool.map(lambda address: _open(_find_folder(address, config.home), inner, timeout), addresses))
    _check_apart(shards)
    checksums = ",".join(sorted(shard.checksum.removeprefix("sha256:")[:12] for shard in shards))
    bm25 = read_config(inner).kind == "bm25"
    parts = _join_local(shards, read_config(inner)) if bm25 else shards
    return Shards(f"shards({shards[0].engine}@{checksums})", parts, bm25=bm25, skip=missing == "skip")


def _places(config: RetrieverConfig) -> list[str]:
    """The folders and addresses of a configuration; raises `RagError` for none, too many and repeated ones."""
    addresses: list[str] = config.setting("shards", list)
    if not 1 <= len(addresses) <= MAX_SHARDS or not all(isinstance(address, str) and address for address in addresses):
        raise RagError(f"retriever {config.name}: shards should be 1 to {MAX_SHARDS} folders or addresses of servers")
    if len(set(addresses)) < len(addresses):
        raise RagError(f"retriever {config.name}: a shard is named twice")
    return addresses


def _check_apart(shards: Sequence[_Shard]) -> None:
    """Raise `RagError` unless the shards are searched by the same retriever and hold different passages."""
    first, addresses = shards[0], dict[str, str]()
    for shard in shards:
        if shard.engine != first.engine:
            raise RagError(f"{shard.place} is searched by {shard.engine}, {first.place} by {first.engine}")
    for shard in shards:
        if shard.checksum in addresses:
            raise RagError(f"{shard.place} holds the same passages as {addresses[shard.checksum]}")
        addresses[shard.checksum] = shard.place


def _join_local(shards: Sequence[_Shard], config: RetrieverConfig) -> list[_Shard]:
    """The shards, with those on this machine as one."""
    local_shards = [shard for shard in shards if shard.index is not None]
    if len(local_shards) < 2:
        return list(shards)
    bm25 = Joined([shard.index for shard in local_shards if shard.index is not None], config)
    local_shard = _Shard(", ".join(shard.place for shard in local_shards), bm25, local_shards[0].engine, "")
    return [local_shard, *(shard for shard in shards if shard.index is None)]


def _find_folder(address: str, home: Path | None) -> str:
    """The folder of that name beside the configuration, if it moved there with it."""
    if "://" in address or home is None or Path(address).exists():
        return address
    sibling = home / Path(address).name
    return str(sibling) if sibling.exists() else address


def _open(address: str, retriever: str, timeout: float) -> _Shard:
    if "://" in address:
        remote = Remote(Client(address, timeout=timeout), retriever)
        return _Shard(address, remote, remote.engine, remote.checksum, lock=nullcontext())
    index = open_index(Path(address))
    searcher = open_retriever(retriever, index)
    return _Shard(address, searcher, searcher.name, index.manifest["checksum"], index)


class Shards:
    """Searches all shards at once and merges their hits; several with `bm25` are all `PartRetriever`s.

    Threads may share it. With `skip`, a shard that fails is left out of a search, and a warning is logged for each
    search without it; otherwise its error is raised. An error is raised too if all fail, or if the passages of one have
    changed (`IndexChangedError`).
    """

    def __init__(self, name: str, shards: Sequence[_Shard], *, bm25: bool = False, skip: bool = False) -> None:
        self.name, self._shards, self._bm25, self._skip = name, shards, bm25, skip

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """Return at most k hits per query; raises `RagError` for a passage that two shards have."""
        check_search(queries, k)
        for query in queries:
            check_query(query)
        if not queries:
            return []
        if self._bm25 and len(self._shards) > 1:
            statistics = self._each(self._shards, lambda shard: _part(shard).statistics(queries))
            collection = [
                Statistics.of(parts)
                for parts in zip(*(shard_statistics for _, shard_statistics in statistics), strict=True)
            ]
            answering = [shard for shard, _ in statistics]
            lists = self._each(answering, lambda shard: _part(shard).search_within(queries, k, collection))
        else:
            lists = self._each(self._shards, lambda shard: shard.retriever.search(queries, k))
        return [_merge_hits(hits, k) for hits in zip(*(shard_hits for _, shard_hits in lists), strict=True)]

    def _each(self, shards: Sequence[_Shard], work: Callable[[_Shard], list[T]]) -> list[tuple[_Shard, list[T]]]:
        """The result of each shard that answers; raises the error of one that does not, unless it may be skipped."""
        waiting = [(shard, _start(work, shard)) for shard in shards]
        results: list[tuple[_Shard, list[T]]] = []
        faults: list[UserError] = []
        for shard, future in waiting:
            try:
                results.append((shard, future.result()))
            except (QuestionError, IndexChangedError):
                raise
            except UserError as error:
                if not self._skip:
                    raise
                faults.append(error)
                _log.warning("searched without the shard %s: %s", shard.place, error)
        if not results:
            raise faults[0]
        return results


def _start(work: Callable[[_Shard], T], shard: _Shard) -> Future[T]:
    """Do the work in a daemon thread: one that hangs holds up neither another search nor the end of the process."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            with shard.lock:
                result = work(shard)
        except BaseException as error:  # noqa: BLE001  (raised by future.result())
            future.set_exception(error)
        else:
            future.set_result(result)

    threading.Thread(target=run, daemon=True, name="rag-shard").start()
    return future


def _part(shard: _Shard) -> PartRetriever:
    assert isinstance(shard.retriever, BM25 | Remote)
    return shard.retriever


def _merge_hits(lists: Sequence[Sequence[Hit]], k: int) -> list[Hit]:
    hits = best_first(hit for shard_hits in lists for hit in shard_hits)
    ids: set[str] = set()
    for hit in hits:
        if hit.passage.id in ids:
            raise RagError(f"two shards have the passage {hit.passage.id!r}")
        ids.add(hit.passage.id)
    return hits[:k]


KIND = RetrieverKind(open_shards)
