"""Milvus: a server or cluster, or without one, a file that milvus-lite searches in this process."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag.base.errors import missing_extra

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_EFFORT, _MAX_EFFORT = 4, 32_768  # candidates of a search in the graph: times the count, and Milvus's limit


def connect(url: str, key: str | None, timeout: float) -> "Milvus":
    """Connect to a server (`http://host:19530`), or open a folder."""
    try:
        from pymilvus import MilvusClient
    except ImportError as error:
        raise missing_extra("the database milvus", "milvus") from error
    if "://" not in url:
        Path(url).mkdir(parents=True, exist_ok=True)
        url = str(Path(url) / "milvus.db")
    return Milvus(MilvusClient(url, token=key or "", timeout=timeout))


class Milvus:
    """Collections of Milvus."""

    def __init__(self, client: Any) -> None:  # noqa: ANN401  (its type is imported only where it is used)
        self._client = client

    def count(self, collection: str) -> int | None:
        """The number of vectors."""
        if not self._client.has_collection(collection):
            return None
        self._client.load_collection(collection)
        (row,) = self._client.query(collection, filter="", output_fields=["count(*)"], consistency_level="Strong")
        return int(row["count(*)"])

    def create(self, collection: str, dimension: int) -> None:
        """Create a collection."""
        self._client.create_collection(
            collection,
            dimension=dimension,
            primary_field_name="row",
            id_type="int",
            vector_field_name="vector",
            metric_type="IP",
            auto_id=False,
            consistency_level="Strong",
        )

    def add(self, collection: str, first: int, vectors: "NDArray[np.float32]") -> None:
        """Store vectors; the primary keys are rows."""
        rows = [{"row": row, "vector": vector} for row, vector in enumerate(vectors.tolist(), first)]
        self._client.upsert(collection, rows)

    def finish(self, collection: str) -> None:
        """Make what was added durable; a server indexes by itself."""
        self._client.flush(collection)

    def nearest(self, collection: str, queries: "NDArray[np.float32]", count: int) -> list[Sequence[int]]:
        """The rows of the nearest vectors."""
        effort = {"params": {"ef": min(_EFFORT * count, _MAX_EFFORT)}}  # of the graph, which Milvus chooses by itself
        results = self._client.search(
            collection, queries.tolist(), limit=count, search_params=effort, consistency_level="Strong"
        )
        # Some versions of the client call the primary key `id`.
        return [[hit["row"] if "row" in hit else hit["id"] for hit in hits] for hits in results]

    def close(self) -> None:
        """End the connection."""
        self._client.close()
