"""OpenSearch: a server or cluster, whose k-NN plugin searches an index of vectors through HNSW."""

import ssl
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from rag.base.errors import missing_extra

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_MAX_HITS = 10_000  # hits of a query: the server's limit on `k`, and its default limit on `size`
_BYTES = 10 << 20  # of a bulk request; OpenSearch advises 5 to 15 MB


def connect(url: str, key: str | None, timeout: float) -> "OpenSearch":
    """Connect to `https://host:9200`, with a key `user:password`; its certificate is verified."""
    try:
        from opensearchpy import OpenSearch as Client
    except ImportError as error:
        raise missing_extra("the database opensearch", "opensearch") from error
    address = urlsplit(url)
    if address.scheme not in ("http", "https") or not address.hostname or address.username is not None:
        raise ValueError("url should be https://host:9200 or http://host:9200, without a user")
    return OpenSearch(
        Client(
            url,
            http_auth=key.encode().decode("latin-1") if key else None,  # sent as Latin-1: UTF-8 bytes
            timeout=timeout,
            max_retries=1,  # for a connection that the server has closed meanwhile
            ssl_context=ssl.create_default_context() if address.scheme == "https" else None,
        )
    )


class OpenSearch:
    """Indices of OpenSearch."""

    def __init__(self, client: Any) -> None:  # noqa: ANN401  (its type is imported only where it is used)
        self._client = client

    def count(self, collection: str) -> int | None:
        """The number of vectors; for a key that may only read, of those that the server has made visible by itself."""
        from opensearchpy.exceptions import AuthorizationException, NotFoundError

        try:
            with suppress(AuthorizationException):
                self._client.indices.refresh(index=collection)
            return int(self._client.count(index=collection)["count"])
        except NotFoundError:
            return None

    def create(self, collection: str, dimension: int) -> None:
        """Create an index whose writes are on disk before they are confirmed."""
        method = {"name": "hnsw", "engine": "faiss", "space_type": "innerproduct"}
        vector = {"type": "knn_vector", "dimension": dimension, "method": method}
        settings = {"index.knn": True, "index.translog.durability": "request"}
        body = {"settings": settings, "mappings": {"dynamic": "strict", "properties": {"vector": vector}}}
        self._client.indices.create(index=collection, body=body)

    def add(self, collection: str, first: int, vectors: "NDArray[np.float32]") -> None:
        """Store vectors; the ids of documents are rows. What a busy server refuses is sent again, after a pause."""
        from opensearchpy.helpers import bulk

        rows = enumerate(vectors.tolist(), first)
        _, failures = bulk(
            self._client,
            ({"_index": collection, "_id": str(row), "vector": vector} for row, vector in rows),
            chunk_size=len(vectors),
            max_chunk_bytes=_BYTES,
            max_retries=3,
            raise_on_error=False,
        )
        if failures:
            raise RuntimeError(f"{len(failures)} of {len(vectors)} vectors not stored: {_reason(failures[0]['index'])}")

    def finish(self, collection: str) -> None:
        """Make all vectors visible; the server indexes by itself."""
        self._client.indices.refresh(index=collection)

    def nearest(self, collection: str, queries: "NDArray[np.float32]", count: int) -> list[Sequence[int]]:
        """The rows of the nearest vectors."""
        limit, lines = min(count, _MAX_HITS), list[dict[str, Any]]()
        for query in queries.tolist():
            knn = {"vector": {"vector": query, "k": limit}}
            lines += [{}, {"size": limit, "_source": False, "query": {"knn": knn}}]
        return [_rows(response) for response in self._client.msearch(body=lines, index=collection)["responses"]]

    def close(self) -> None:
        """End the connection."""
        self._client.close()


def _rows(response: dict[str, Any]) -> list[int]:
    """The rows of a search's hits; raises if the search failed, on one shard or on all."""
    if "error" in response:
        raise RuntimeError(_reason(response))
    if response["timed_out"] or response["_shards"]["failed"]:
        raise RuntimeError("only a part of the vectors was searched")
    return [int(hit["_id"]) for hit in response["hits"]["hits"]]


def _reason(answer: dict[str, Any]) -> str:
    """Why an item of a request failed: its status, and the reason nearest to the cause."""
    error = answer["error"]
    cause = error.get("caused_by") or next(iter(error.get("root_cause", ())), error)
    return f"{answer['status']}, {cause['reason']}"
