"""PostgreSQL with the extension pgvector: a table of rows and vectors, searched exactly or through HNSW."""

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from rag.base.errors import missing_extra

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_EXACT = 20_000  # vectors up to which a search reads all of them
_EFFORT, _MAX_EFFORT = 4, 1000  # vectors looked at for each that is asked for, and what pgvector allows
_LINKS = 400  # bytes of a vector in HNSW's graph besides its numbers
_MEMORY = 2 << 30  # that the server may use to build a graph; its own setting counts if it is larger


def connect(url: str, key: str | None, timeout: float) -> "PgVector":
    """Connect to `postgresql://user@host/database`."""
    try:
        import psycopg
    except ImportError as error:
        raise missing_extra("the database pgvector", "postgresql") from error
    password: dict[str, Any] = {"password": key} if key else {}
    options = f"-c statement_timeout={round(timeout * 1000)}"
    patience = max(2, round(timeout))
    return PgVector(
        lambda: psycopg.connect(url, autocommit=True, connect_timeout=patience, options=options, **password)
    )


class PgVector:
    """Tables of PostgreSQL."""

    def __init__(self, connect: Callable[[], Any]) -> None:  # its type is imported only where it is used
        self._connect, self._opened = connect, connect()

    @property
    def _connection(self) -> Any:  # noqa: ANN401
        """The connection; a new one after the server ended the one before, as a restart does."""
        if self._opened.closed:
            self._opened = self._connect()
        return self._opened

    def count(self, collection: str) -> int | None:
        """The number of vectors."""
        name = self._one("SELECT to_regclass(%s)", [collection])
        return None if name is None else int(self._one(f"SELECT count(*) FROM {_table_sql(collection)}"))

    def create(self, collection: str, dimension: int) -> None:
        """Create a table."""
        self._connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        self._connection.execute(
            f"CREATE TABLE {_table_sql(collection)} (row bigint PRIMARY KEY, vector vector({int(dimension)}) NOT NULL)"
        )

    def add(self, collection: str, first: int, vectors: "NDArray[np.float32]") -> None:
        """Copy vectors into the table, all or none."""
        table = _table_sql(collection)
        with self._connection.transaction(), self._connection.cursor() as cursor:
            cursor.execute(f"DELETE FROM {table} WHERE row BETWEEN %s AND %s", [first, first + len(vectors) - 1])
            with cursor.copy(f"COPY {table} (row, vector) FROM STDIN") as copy:
                for row, vector in enumerate(vectors.tolist(), first):
                    copy.write_row([row, _text(vector)])

    def finish(self, collection: str) -> None:
        """Index a table that is too large to be read whole."""
        rows = self.count(collection) or 0
        if rows > _EXACT:
            dimension = self._one(f"SELECT vector_dims(vector) FROM {_table_sql(collection)} LIMIT 1")
            self._index(collection, rows * (4 * dimension + _LINKS))
        self._connection.execute(f"ANALYZE {_table_sql(collection)}")

    def _index(self, collection: str, size: int) -> None:
        """Build a graph of so many bytes, in memory if the server has it: on disk that takes many times as long."""
        from psycopg import errors

        graph = (
            f"CREATE INDEX IF NOT EXISTS {_table_sql(collection + '_nearest')} ON {_table_sql(collection)} "
            "USING hnsw (vector vector_ip_ops)"
        )
        self._connection.execute("SET statement_timeout = 0")
        server_memory = self._one("SELECT pg_size_bytes(current_setting('maintenance_work_mem'))")
        self._connection.execute(f"SET maintenance_work_mem = '{max(server_memory, min(size, _MEMORY)) // 1024}kB'")
        try:
            self._connection.execute(graph)
        except (errors.DiskFull, errors.OutOfMemory):  # such as little shared memory in a container
            self._connection.execute("RESET maintenance_work_mem")
            self._connection.execute("SET max_parallel_maintenance_workers = 0")
            self._connection.execute(graph)

    def nearest(self, collection: str, queries: "NDArray[np.float32]", count: int) -> list[Sequence[int]]:
        """The rows of the nearest vectors."""
        self._connection.execute(f"SET hnsw.ef_search = {min(_MAX_EFFORT, _EFFORT * int(count))}")
        sql = f"SELECT row FROM {_table_sql(collection)} ORDER BY vector <#> %s::vector LIMIT %s"
        return [[row for (row,) in self._connection.execute(sql, [_text(query), count])] for query in queries.tolist()]

    def close(self) -> None:
        """End the connection."""
        self._opened.close()

    def _one(self, sql: str, values: Sequence[object] = ()) -> Any:  # noqa: ANN401
        return self._connection.execute(sql, values).fetchone()[0]


def _table_sql(collection: str) -> str:
    """The name of a table as SQL; ours need no quoting."""
    if not re.fullmatch(r"[a-z_][a-z0-9_]{0,62}", collection):
        raise ValueError(f"{collection!r} is no name of a table")
    return collection


def _text(vector: Sequence[float]) -> str:
    return f"[{','.join(map(str, vector))}]"
