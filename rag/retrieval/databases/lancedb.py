"""LanceDB: a table in a folder or an object store (`s3://bucket/path`), searched in this process."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rag.base.errors import missing_extra

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_EXACT = 100_000  # vectors up to which a search reads all of them
_PROBES, _REFINE = 64, 4  # partitions searched, and how many candidates for each one wanted are compared exactly


def connect(url: str, key: str | None, timeout: float) -> "LanceDB":
    """Open a folder or a bucket; credentials of a bucket come from its own environment variables."""
    try:
        import lancedb
    except ImportError as error:
        raise missing_extra("the database lancedb", "lancedb") from error
    return LanceDB(lancedb.connect(url, api_key=key) if key else lancedb.connect(url))


class LanceDB:
    """Tables of LanceDB."""

    def __init__(self, database: Any) -> None:  # noqa: ANN401  (its type is imported only where it is used)
        self._database = database
        self._tables: dict[str, Any] = {}

    def count(self, collection: str) -> int | None:
        """The number of vectors."""
        if collection not in self._database.list_tables().tables:
            return None
        return int(self._table(collection).count_rows())

    def create(self, collection: str, dimension: int) -> None:
        """Create a table."""
        import pyarrow

        vector = pyarrow.list_(pyarrow.float32(), dimension)
        schema = pyarrow.schema([("row", pyarrow.int64()), ("vector", vector)])
        self._tables[collection] = self._database.create_table(collection, schema=schema)

    def add(self, collection: str, first: int, vectors: "NDArray[np.float32]") -> None:
        """Append vectors, after those of an interrupted batch are removed."""
        import pyarrow

        table = self._table(collection)
        if table.count_rows() > first:
            table.delete(f"row >= {first} AND row < {first + len(vectors)}")
        rows = pyarrow.array(range(first, first + len(vectors)), pyarrow.int64())
        values = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(vectors.ravel()), vectors.shape[1])
        table.add(pyarrow.table([rows, values], names=["row", "vector"]))

    def finish(self, collection: str) -> None:
        """Join the small files of the batches, and index a table that is too large to be read whole."""
        table = self._table(collection)
        table.optimize()
        if table.count_rows() > _EXACT:
            table.create_index(metric="dot", index_type="IVF_HNSW_SQ", replace=True)

    def nearest(self, collection: str, queries: "NDArray[np.float32]", count: int) -> list[Sequence[int]]:
        """The rows of the nearest vectors."""
        table = self._table(collection)
        results = []
        for query in queries:
            search = table.search(query, vector_column_name="vector").distance_type("dot").limit(count)
            search = search.nprobes(_PROBES).refine_factor(_REFINE).select(["row", "_distance"])
            results.append(search.to_arrow()["row"].to_pylist())
        return results

    def close(self) -> None:
        """Forget the tables; there is no connection."""
        self._tables.clear()

    def _table(self, collection: str) -> Any:  # noqa: ANN401
        if collection not in self._tables:
            self._tables[collection] = self._database.open_table(collection)
        return self._tables[collection]
