"""Qdrant: a server, or without one, a folder that its client searches exactly (for some ten thousand vectors)."""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag.base.errors import missing_extra

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def connect(url: str, key: str | None, timeout: float) -> "Qdrant":
    """Connect to a server (`http://host:6333`), or open a folder."""
    try:
        from qdrant_client import QdrantClient
    except ImportError as error:
        raise missing_extra("the database qdrant", "qdrant") from error
    if "://" in url:
        return Qdrant(QdrantClient(url=url, api_key=key, timeout=max(1, round(timeout)), check_compatibility=False))
    Path(url).mkdir(parents=True, exist_ok=True)
    with _no_advice():
        return Qdrant(QdrantClient(path=url))


@contextmanager
def _no_advice() -> Iterator[None]:
    """Hide the client's warning that a folder is slow for more than 20,000 vectors; the handbook says it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield


class Qdrant:
    """Collections of Qdrant."""

    def __init__(self, client: Any) -> None:  # noqa: ANN401  (its type is imported only where it is used)
        self._client = client

    def count(self, collection: str) -> int | None:
        """The number of vectors."""
        if not self._client.collection_exists(collection):
            return None
        return int(self._client.count(collection, exact=True).count)

    def create(self, collection: str, dimension: int) -> None:
        """Create a collection."""
        from qdrant_client.models import Distance, VectorParams

        self._client.create_collection(collection, VectorParams(size=dimension, distance=Distance.DOT))

    def add(self, collection: str, first: int, vectors: "NDArray[np.float32]") -> None:
        """Store vectors; the ids of points are rows."""
        from qdrant_client.models import Batch

        rows: list[Any] = list(range(first, first + len(vectors)))
        with _no_advice():
            self._client.upsert(collection, Batch(ids=rows, vectors=vectors.tolist()), wait=True)

    def finish(self, collection: str) -> None:
        """A server indexes by itself."""

    def nearest(self, collection: str, queries: "NDArray[np.float32]", count: int) -> list[Sequence[int]]:
        """The rows of the nearest vectors."""
        from qdrant_client.models import QueryRequest

        requests = [QueryRequest(query=query, limit=count) for query in queries.tolist()]
        return [
            [point.id for point in results.points] for results in self._client.query_batch_points(collection, requests)
        ]

    def close(self) -> None:
        """End the connection."""
        self._client.close()
