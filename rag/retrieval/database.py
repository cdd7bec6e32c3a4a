"""Vectors in a database of others: Qdrant, Milvus, LanceDB, OpenSearch, PostgreSQL (`rag.databases`).

The configuration names a dense retriever, whose data is the vectors, and the database that searches them. Passages stay
in the index, and hits have the scores of an exact search: the database proposes rows, which are scored with the index's
own vectors. A collection is named after the passages and the encoder, so that vectors of others are never searched.
"""

import hashlib
import os
import weakref
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from autoais.base.errors import first_line
from rag.base.errors import IndexingError, RagError, UserError
from rag.index.index import Index
from rag.index.manifest import DATABASE_FOLDER
from rag.index.parts import Needs, RowProgress, adding, open_part
from rag.index.retriever_config import RetrieverConfig, read_config
from rag.retrieval import RetrieverKind
from rag.retrieval.databases import DATABASES, Database
from rag.retrieval.dense import Dense, open_vectors, peak_memory
from rag.retrieval.encoders import open_encoder
from rag.retrieval.encoders.kinds import Encoder
from rag.retrieval.vectors import StoredVectors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from rag.retrieval.vectors import Rows, Scores

_KEY = "RAG_DATABASE_KEY"
_BATCH = 1_000  # vectors sent at once
_SETTINGS = ("database", "base", "url", "depth", "refine", "timeout")


def open_database(index: Index, config: RetrieverConfig) -> Dense:
    """Open a collection that `add` filled.

    Raises `IndexingError` if it is missing, half-filled or of other passages, `RagError` if the database cannot be
    reached.
    """
    open_part(index, config)  # raises if it is missing, or of other passages
    base = _base_config(config)
    part = open_vectors(index, base)
    vectors, collection = part.vectors, _collection(index, part.encoder)
    with _client_faults(_place(config, index)), ExitStack() as stack:
        database = stack.enter_context(closing(_connect(config, index)))
        count = database.count(collection)
        if count == vectors.rows:
            stack.pop_all()  # the retriever closes it
    if count != vectors.rows:
        state = "no such collection" if count is None else f"{count:,} vectors of {vectors.rows:,}"
        raise IndexingError(
            f"{_place(config, index)}: {collection}: {state}: fill it with rag index build --to DIR --retriever NAME"
        )
    searcher = _Searcher(database, collection, vectors, config, _place(config, index), part.longest)
    return Dense(f"{config.name}/{base.name}/{config.settings['database']}", part.encoder, searcher, index.store)


def needs(index: Index, config: RetrieverConfig, memory: int | None) -> Needs:
    """Estimate what `add` takes here: the vectors are streamed. A database in a folder keeps them once more."""
    rows, is_local = index.manifest["passages"], "://" not in _url(config, index)
    dimension = open_encoder(_base_config(config).setting("encoder", str)).dimension
    disk = 8 * rows * dimension if is_local else 0
    return Needs(
        memory=peak_memory() + 50 * _BATCH * dimension,
        resident=4 * rows * dimension if is_local else 0,
        disk=disk,
        why=f"vectors go to {_place(config, index)}",
    )


def add(index: Index, config: RetrieverConfig, memory: int | None, progress: RowProgress) -> None:
    """Fill the collection from the vectors of the base retriever, which must be in the index.

    A stopped run goes on after the batches that the database has. Raises `IndexingError` on a full disk, `RagError` if
    the database cannot be reached or refuses.
    """
    import numpy as np

    part = open_vectors(index, _base_config(config))
    vectors, collection = part.vectors, _collection(index, part.encoder)
    with ExitStack() as stack:
        stack.enter_context(adding(index, config, {"collection": collection}))
        stack.enter_context(_client_faults(_place(config, index)))
        database = stack.enter_context(closing(_connect(config, index)))
        count = database.count(collection)
        if count is None:
            database.create(collection, vectors.dimension)
        elif count > vectors.rows:
            raise IndexingError(
                f"{_place(config, index)}: {collection} has {count:,} vectors, more than {vectors.rows:,}"
            )
        start = (count or 0) // _BATCH * _BATCH
        for first in range(start, vectors.rows, _BATCH):
            rows = np.arange(first, min(first + _BATCH, vectors.rows))
            database.add(collection, first, vectors.take(rows).astype(np.float32))
            progress(int(rows[-1]) + 1, "stored")
        progress(vectors.rows, "building the index")
        database.finish(collection)
        count = database.count(collection)
        if count != vectors.rows:
            raise IndexingError(f"{_place(config, index)}: {collection} kept {count} vectors of {vectors.rows:,}")


class _Searcher:
    """Scores the rows that a database proposes, `refine` times the larger of k and `depth`."""

    def __init__(
        self,
        database: Database,
        collection: str,
        vectors: StoredVectors,
        config: RetrieverConfig,
        address: str,
        longest: float,
    ) -> None:
        self._database, self._collection, self._stored, self._longest = database, collection, vectors, longest
        self._depth, self._refine = config.setting("depth", int, 100), config.setting("refine", int, 2)
        if min(self._depth, self._refine) < 1:
            raise RagError(f"retriever {config.name}: depth and refine should be at least 1")
        self._place = address
        weakref.finalize(self, database.close)

    def search(self, queries: "NDArray[np.float32]", k: int) -> list[tuple["Rows", "Scores"]]:
        import numpy as np

        limit = min(self._refine * max(k, self._depth), self._stored.rows)
        with _client_faults(self._place):
            candidates = self._database.nearest(self._collection, queries.astype(np.float32), limit)
        if len(candidates) != len(queries):
            raise RagError(f"{self._place}: {len(candidates)} results for {len(queries)} queries")
        results = []
        for query, row_list in zip(queries, candidates, strict=True):
            rows = np.unique(np.array(row_list, dtype=np.int64))
            if rows.size and not 0 <= rows[0] <= rows[-1] < self._stored.rows:
                raise RagError(f"{self._place}: {self._collection} proposes rows that the index does not have")
            best_rows = self._stored.narrow(query, rows, k, self._longest)
            results.append(self._stored.best(query, best_rows, k))
        return results


def _base_config(config: RetrieverConfig) -> RetrieverConfig:
    config.check_settings(_SETTINGS)
    base = read_config(config.setting("base", str))
    if base.kind != "dense":
        raise RagError(
            f"retriever {config.name}: base should be a retriever of kind dense, found {base.name} ({base.kind})"
        )
    return base


def _collection(index: Index, encoder: Encoder) -> str:
    """The name of the collection: of the passages in their order of rows, and of the encoder."""
    key = f"{index.manifest['checksum']} {index.build.name if index.build else ''} {encoder.name}"
    return f"rag_{hashlib.sha256(key.encode()).hexdigest()[:24]}"


def _connect(config: RetrieverConfig, index: Index) -> Database:
    connect = DATABASES[config.setting("database", str)]
    return connect(_url(config, index), os.environ.get(_KEY) or None, config.setting("timeout", float, 30.0))


def _url(config: RetrieverConfig, index: Index) -> str:
    """Where the database is: the retriever's `url`, or a folder of the index."""
    url: str = config.setting("url", str, "")
    if not url:
        if index.build is None:
            raise IndexingError(
                f"the index {index.name} cannot hold the data of {config.name!r}: build one with rag index build"
            )
        return str(index.build.parent / DATABASE_FOLDER / config.name)
    try:
        secret = urlsplit(url).password
    except ValueError as error:  # http://[::1:6333
        raise RagError(f"retriever {config.name}: url: {error}") from error
    if secret:
        raise RagError(f"retriever {config.name}: url should hold no password; set {_KEY}")
    return url


def _place(config: RetrieverConfig, index: Index) -> str:
    return f"{config.setting('database', str)} at {_url(config, index)}"


@contextmanager
def _client_faults(address: str) -> Iterator[None]:
    """Raise what a client library raises as one line that names the database."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        key = os.environ.get(_KEY)
        text = first_line(error)
        raise RagError(f"{address}: {text.replace(key, '[key]') if key else text}") from error


KIND = RetrieverKind(open_database, needs, add, has_absolute_scores=True, outside=True)
