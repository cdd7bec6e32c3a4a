"""Dense retrieval: an encoder makes vectors of passages and queries, and the nearest by inner product are found."""

import resource
import sys
from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING

from autoais.io.jsonl import field
from rag.encoders import Encoder, open_encoder, passage_text
from rag.errors import FormatError, IndexingError, RagError
from rag.index.analysis import check_depth, check_query
from rag.index.parts import Needs, Tell, adding, open_part
from rag.index.passages import Store
from rag.index.recipes import Recipe
from rag.retrievers.vectors import (
    KINDS,
    SHARD,
    SMALL,
    Searcher,
    Shards,
    build,
    estimate,
    pick,
    settled,
    shard_path,
    write_shard,
)
from rag.types import Hit

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from rag.index.index import Index

_BATCH = 512  # passages that are encoded between two reports of progress


def retriever(index: "Index", recipe: Recipe) -> "Dense":
    """The part that `add` made, searched with the encoder that made it.

    Raises `IndexingError` where the part is missing or damaged, or the recipe's encoder is not the one it was made by.
    """
    home, part = open_part(index, recipe)
    where = str(home / "part.json")
    try:
        made_by, kind = field(part, "encoder", str, where), field(part, "index", str, where)
        dimension, size = field(part, "dimension", int, where), field(part, "shard", int, where)
        settings, longest = field(part, "settings", dict, where), field(part, "longest", float, where)
    except FormatError as error:
        raise IndexingError(f"the part is damaged ({error}): add it again") from error
    whole = all(type(value) is int and value >= 0 for value in settings.values())
    if kind not in KINDS or min(dimension, size) < 1 or not whole or settings.keys() != KINDS[kind].settings.keys():
        raise IndexingError(f"{where} is damaged: add the part again")
    encoder = _encoder(recipe)
    if (encoder.name, encoder.dimension) != (made_by, dimension):
        raise IndexingError(
            f"{home.name} was made by the encoder {made_by} ({dimension} numbers a vector), the recipe now names "
            f"{encoder.name} ({encoder.dimension}): add the part again, or give back the model"
        )
    shards = Shards(home, index.manifest["passages"], dimension, size)
    searcher = Searcher(shards, kind, settings, home / f"{kind}.faiss", longest=longest)
    return Dense(f"{recipe.name}/{encoder.name}/{kind}", encoder, searcher, index.store)


def needs(index: "Index", recipe: Recipe, memory: int | None) -> Needs:
    """What `add` will take; in `memory` this process as it is with its model loaded."""
    encoder = _encoder(recipe)
    rows = index.manifest["passages"]
    kind, settings, why = _choice(recipe, rows, encoder.dimension, memory)
    found = estimate(kind, rows, encoder.dimension, settings)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return Needs(found.memory + peak, found.resident, found.disk, why)


def add(index: "Index", recipe: Recipe, memory: int | None, tell: Tell) -> None:
    """Encode all passages in row order, shard by shard, and build the index of their vectors.

    A stopped run goes on at the first shard that is missing, and ends with the same bytes. Raises `IndexingError` for
    a vector that is no number, naming its passage, and on a full disk; nothing of the passages is in memory beyond a
    shard's vectors.
    """
    encoder = _encoder(recipe)
    rows = index.manifest["passages"]
    kind, settings, why = _choice(recipe, rows, encoder.dimension, memory)
    plan = {"encoder": encoder.name, "dimension": encoder.dimension, "shard": SHARD}
    with adding(index, recipe, plan) as (work, record):
        for stale in (*work.glob("*.new"), *work.glob("*.faiss")):
            stale.unlink()
        for number, first in enumerate(range(0, rows, SHARD)):
            if not shard_path(work, number).exists():
                last = min(first + SHARD, rows)
                write_shard(work, number, _encoded(index.store, encoder, first, last, tell))
        shards = Shards(work, rows, encoder.dimension, SHARD)
        if kind != "flat":
            build(kind, settings, shards, work / f"{kind}.faiss", tell)
        record |= {"index": kind, "settings": settings, "why": why, "longest": shards.longest()}


def _encoder(recipe: Recipe) -> Encoder:
    return open_encoder(recipe.setting("encoder", str))


def _choice(recipe: Recipe, rows: int, dimension: int, memory: int | None) -> tuple[str, dict[str, int], str]:
    """Kind of index, its settings and why: the recipe's, or with a memory budget the one that fits."""
    kind, why = recipe.setting("index", str, ""), ""
    if kind and kind not in KINDS:
        raise RagError(f"recipe {recipe.name}: no index called {kind!r}; there are: {', '.join(KINDS)}")
    recipe.only(["encoder", "index", *(KINDS[kind].settings if kind else ())])
    given = {name: recipe.setting(name, int) for name in recipe.settings if name not in ("encoder", "index")}
    if rows < SMALL:
        if kind not in ("", "flat"):
            why = f"flat, as {kind} is for {SMALL:,} passages or more"
        kind, given = "flat", {}
    elif not kind:
        kind, why = ("flat", "") if memory is None else pick(rows, dimension, memory)
    settings = settled(kind, rows, dimension, given)
    held = estimate(kind, rows, dimension, settings).resident
    if memory is not None and held > memory:
        way_out = "; a recipe without 'index' lets --memory pick one" if "index" in recipe.settings else ""
        raise RagError(
            f"recipe {recipe.name}: its {kind} index keeps {held / 2**20:,.1f} MiB in memory, above the "
            f"{memory / 2**20:,.1f} MiB given{way_out}"
        )
    return kind, settings, why


def _encoded(store: Store, encoder: Encoder, first: int, last: int, tell: Tell) -> "NDArray[np.float16]":
    """The vectors of these rows, each a finite number."""
    import numpy as np

    found = np.empty((last - first, encoder.dimension), np.float16)
    passing = islice(store.scan(first), last - first)
    for start in range(first, last, _BATCH):
        passages = list(islice(passing, _BATCH))
        vectors = encoder.passages([passage_text(passage) for passage in passages])
        _check_shape(encoder, vectors.shape, len(passages))
        with np.errstate(over="ignore"):  # above 65,504 it becomes infinite
            rounded = vectors.astype(np.float16)
        for row in np.flatnonzero(~np.isfinite(rounded).all(axis=1)):
            raise IndexingError(
                f"passage {passages[row].id!r}: the encoder {encoder.name} makes a vector of it that holds no number, "
                "or one above 65,504"
            )
        found[start - first : start - first + len(passages)] = rounded
        tell(start + len(passages), "encoded")
    return found


def _check_shape(encoder: Encoder, shape: tuple[int, ...], texts: int) -> None:
    if shape != (texts, encoder.dimension):
        raise RagError(f"the encoder {encoder.name} made {shape} of {texts} texts, not {(texts, encoder.dimension)}")


class Dense:
    """Finds the passages whose vectors are nearest a query's: k of them, where the index holds as many.

    A query of which the encoder knows no word has the vector 0, to which all are equally near, and finds nothing.
    """

    def __init__(self, name: str, encoder: Encoder, searcher: Searcher, store: Store) -> None:
        self.name = name
        self._encoder, self._searcher, self._store = encoder, searcher, store

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """For each query k hits; `QuestionError` for one that `check_query` refuses."""
        import numpy as np

        check_depth(k)
        for query in queries:
            check_query(query)
        if not queries:
            return []
        vectors = self._encoder.queries(queries)
        _check_shape(self._encoder, vectors.shape, len(queries))
        if not np.isfinite(vectors).all():
            raise RagError(f"the encoder {self._encoder.name} makes a vector of the question that holds no number")
        found = []
        for vector, (rows, scores) in zip(vectors, self._searcher.search(vectors, k), strict=True):
            if not vector.any():
                rows, scores = rows[:0], scores[:0]
            passages = self._store.rows(rows.tolist())
            hits = [Hit(passage, score) for passage, score in zip(passages, scores.tolist(), strict=True)]
            found.append(sorted(hits, key=lambda hit: (-hit.score, hit.passage.id))[:k])
        return found
