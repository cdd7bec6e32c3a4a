"""Search on another machine: the index and the retriever of a server (`rag serve`), by its `/v1/search`.

The name `remote:http://host:8000/handbook` is that of the server and, after the last slash, of one of its indexes. A
.toml file (kind = "remote") also names the retriever there, `recipe`, and the `timeout` in seconds.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rag.base.errors import BusyError, NotFoundError, RagError, TimeLimitError
from rag.base.types import Hit
from rag.index.analysis import check_query, check_search
from rag.index.index import Index
from rag.index.retriever_config import RetrieverConfig
from rag.index.statistics import Statistics
from rag.retrieval import RetrieverKind
from rag.retrieval.client import Client, Found, UnreachableError

_BATCH = 16  # queries of one request


class IndexChangedError(RagError):
    """The index on the server is another one than at first."""


def open_remote(index: Index, config: RetrieverConfig) -> "Remote":
    """Ask the server what it would search; `index` is not searched."""
    config.check_settings(["url", "recipe", "timeout"])
    client = Client(config.setting("url", str), timeout=config.setting("timeout", float, 90.0))
    return Remote(client, config.setting("recipe", str, "bm25"))


class Remote:
    """Searches an index of a server, many queries in a request.

    The name holds the checksum of the index and the name of the retriever there, not the address: the same index on
    another machine gives the same hits. Threads may share it. Raises `IndexChangedError` once the index on the server
    is another one than at first, and `UnreachableError` for a server that does not answer.
    """

    def __init__(self, client: Client, retriever: str = "bm25") -> None:
        self._client, self._retriever = client, retriever
        reply = client.search_each([], retriever=retriever, k=1)
        self.name, self.engine, self.checksum = _name(reply), reply.retriever, reply.checksum

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """Return at most k hits per query."""
        return self._search(queries, k, None)

    def statistics(self, queries: Sequence[str]) -> list[Statistics]:
        """Return what BM25 weighs the terms of each query by there."""
        with _far():
            return [
                query_statistics
                for part in _batches(queries)
                for query_statistics in self._client.statistics(part, retriever=self._retriever)
            ]

    def search_within(self, queries: Sequence[str], k: int, statistics: Sequence[Statistics]) -> list[list[Hit]]:
        """Return at most k hits per query by BM25 with these statistics."""
        return self._search(queries, k, statistics)

    def _search(self, queries: Sequence[str], k: int, statistics: Sequence[Statistics] | None) -> list[list[Hit]]:
        check_search(queries, k)
        for query in queries:
            check_query(query)
        hits: list[list[Hit]] = []
        for part in _batches(queries):
            batch_statistics = None if statistics is None else statistics[len(hits) : len(hits) + len(part)]
            with _far():
                reply = self._client.search_each(part, retriever=self._retriever, k=k, statistics=batch_statistics)
            if (name := _name(reply)) != self.name:
                message = f"the index has changed from {self.name} to {name}; start again"
                raise IndexChangedError(f"{self._client.url}: {message}")
            hits += reply.hits
        return hits


@contextmanager
def _far() -> Iterator[None]:
    """Raise errors of this machine instead of the other's: whoever asks a server here need not know of that one."""
    try:
        yield
    except (BusyError, TimeLimitError) as error:
        raise UnreachableError(str(error)) from error
    except NotFoundError as error:
        raise RagError(str(error)) from error


def _batches(queries: Sequence[str]) -> list[Sequence[str]]:
    return [queries[start : start + _BATCH] for start in range(0, len(queries), _BATCH)]


def _name(reply: Found) -> str:
    return f"remote({reply.retriever}@{reply.index}/{reply.checksum[:12]})"


KIND = RetrieverKind(open_remote)
