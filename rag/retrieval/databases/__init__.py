"""Vector databases: each keeps vectors by row number and proposes the rows nearest to a query.

The retriever of kind `database` (`rag.retrieval.database`) fills and searches them. It scores what they propose with
the index's own vectors, so that a database decides only which passages are found, never their scores.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from autoais.base.registry import Registry
from rag.base.errors import RagError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Database(Protocol):
    """A connection to a database. A collection holds the vectors of one index, each under its row number.

    Methods may raise whatever the client library raises; the retriever reports it in one line.
    """

    def count(self, collection: str) -> int | None:
        """The number of vectors of a collection, exactly; None if there is no such collection."""
        ...

    def create(self, collection: str, dimension: int) -> None:
        """Create a collection for vectors that are compared by their inner product."""
        ...

    def add(self, collection: str, first: int, vectors: "NDArray[np.float32]") -> None:
        """Store the vectors of rows from `first` on, and return when they are durable.

        A row that is there is replaced: a run that was stopped adds its last batch again.
        """
        ...

    def finish(self, collection: str) -> None:
        """Build what makes the search fast, once all vectors are there."""
        ...

    def nearest(self, collection: str, queries: "NDArray[np.float32]", count: int) -> list[Sequence[int]]:
        """The rows of about the `count` largest inner products with each query, in any order."""
        ...

    def close(self) -> None:
        """End the connection."""
        ...


Connect = Callable[[str, str | None, float], Database]
"""`connect(url, key, timeout)`: `url` is an address or a folder, `timeout` in seconds."""

DATABASES: Registry[Connect] = Registry(
    "rag.databases",
    "vector database",
    {
        "lancedb": "rag.retrieval.databases.lancedb:connect",
        "milvus": "rag.retrieval.databases.milvus:connect",
        "opensearch": "rag.retrieval.databases.opensearch:connect",
        "pgvector": "rag.retrieval.databases.pgvector:connect",
        "qdrant": "rag.retrieval.databases.qdrant:connect",
    },
    RagError,
)
