"""Dense retrieval: finds the passages whose vectors have the largest inner product with the query's."""

import os
import resource
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autoais.base.io.jsonl import field
from rag.base.errors import FormatError, IndexingError, RagError
from rag.base.types import Hit, Passage, best_first
from rag.index.analysis import check_query, check_search
from rag.index.index import Index
from rag.index.integrity import PART
from rag.index.parts import Needs, RowProgress, adding, beginning, open_part
from rag.index.passages import Store
from rag.index.retriever_config import RetrieverConfig
from rag.retrieval import MergeInput, RetrieverKind
from rag.retrieval.encoders import open_encoder
from rag.retrieval.encoders.kinds import BATCH, Encoder
from rag.retrieval.vector_index import (
    KINDS,
    SMALL,
    Searcher,
    VectorSearch,
    build,
    choose_settings,
    estimate,
    estimate_seconds,
    pick,
)
from rag.retrieval.vectors import PER_FILE, StoredVectors, file_path, write_file

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


_BATCH = BATCH  # passages encoded between two progress updates, if the encoder has no `at_once` of its own


@dataclass(frozen=True, slots=True)
class Part:
    """The open data of a retriever: its folder, encoder and vectors, the norm of the longest one, and their index."""

    home: Path
    encoder: Encoder
    vectors: StoredVectors
    longest: float
    kind: str
    settings: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class _Choice:
    """The kind of index of the vectors, its settings, and the reason if it is not that of the configuration."""

    kind: str
    settings: Mapping[str, int]
    why: str


def open_dense(index: Index, config: RetrieverConfig) -> "Dense":
    """Open the part that `add` built; raises as `open_vectors`."""
    part = open_vectors(index, config)
    searcher = Searcher(part.vectors, part.kind, part.settings, part.home / f"{part.kind}.faiss", longest=part.longest)
    return Dense(f"{config.name}/{part.encoder.name}/{part.kind}", part.encoder, searcher, index.store)


def open_vectors(index: Index, config: RetrieverConfig) -> Part:
    """Open the vectors that `add` wrote.

    Raises `IndexingError` if the part is missing or damaged, or was built with another encoder than the
    configuration's.
    """
    home, part = open_part(index, config)
    path = str(home / PART)
    try:
        encoder_name, kind = field(part, "encoder", str, path), field(part, "index", str, path)
        dimension, size = field(part, "dimension", int, path), field(part, "shard", int, path)
        settings, longest = field(part, "settings", dict, path), field(part, "longest", float, path)
    except FormatError as error:
        raise IndexingError(f"the data are damaged ({error}): add them again") from error
    is_valid = all(type(value) is int and value >= 0 for value in settings.values())
    if kind not in KINDS or min(dimension, size) < 1 or not is_valid or settings.keys() != KINDS[kind].settings.keys():
        raise IndexingError(f"{path} is damaged: add the data again")
    encoder = _encoder(config)
    if (encoder.name, encoder.dimension) != (encoder_name, dimension):
        raise IndexingError(
            f"{home.name} was built with the encoder {encoder_name} ({dimension} dimensions), but the retriever now "
            f"has {encoder.name} ({encoder.dimension}): add the data again, or restore the model"
        )
    return Part(
        home, encoder, StoredVectors(home, index.manifest["passages"], dimension, size), longest, kind, settings
    )


def needs(index: Index, config: RetrieverConfig, memory: int | None) -> Needs:
    """Estimate what `add` takes; `memory` includes this process with its model loaded."""
    encoder = _encoder(config)
    rows = index.manifest["passages"]
    choice = _choice(config, rows, encoder.dimension, memory)
    size = estimate(choice.kind, rows, encoder.dimension, choice.settings)
    return Needs(size.memory + peak_memory(), size.resident, size.disk, choice.why)


def peak_memory() -> int:
    """The largest memory of this process so far, in bytes; a loaded model is a part of it."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def add(index: Index, config: RetrieverConfig, memory: int | None, progress: RowProgress) -> None:
    """Encode all passages in row order, file by file, and build an index of their vectors.

    At most one file of vectors is in memory. A stopped run resumes at the batch that it was at and ends with the same
    bytes. Raises `IndexingError` on a full disk, and for a passage whose vector is not finite.
    """
    encoder = _encoder(config)
    rows = index.manifest["passages"]
    choice = _choice(config, rows, encoder.dimension, memory)
    plan = {"encoder": encoder.name, "dimension": encoder.dimension, "shard": PER_FILE}
    with adding(index, config, plan) as (work, record):
        for stale in (*work.glob("*.new"), *work.glob("*.faiss")):
            stale.unlink()
        for number, first in enumerate(range(0, rows, PER_FILE)):
            partial = file_path(work, number).with_suffix(".part")
            if not file_path(work, number).exists():
                last = min(first + PER_FILE, rows)
                write_file(work, number, _encode(index.store, encoder, first, last, partial, progress))
            partial.unlink(missing_ok=True)
        record |= _build_index(StoredVectors(work, rows, encoder.dimension, PER_FILE), choice, work, progress)


def _build_index(vectors: StoredVectors, choice: _Choice, work: Path, progress: RowProgress) -> dict[str, Any]:
    """Build the index of the vectors in the work folder; returns what the manifest of the part says of them."""
    if choice.kind != "flat":
        build(choice.kind, choice.settings, vectors, work / f"{choice.kind}.faiss", progress)
    return {"index": choice.kind, "settings": choice.settings, "why": choice.why, "longest": vectors.longest()}


def seconds(index: Index, config: RetrieverConfig, memory: int | None) -> float:
    """Estimate what building the index of the vectors takes, once they are encoded."""
    encoder = _encoder(config)
    rows = index.manifest["passages"]
    choice = _choice(config, rows, encoder.dimension, memory)
    return estimate_seconds(choice.kind, rows, encoder.dimension, choice.settings)


def update(old: Index, new: Index, config: RetrieverConfig, changed_rows: Sequence[int], progress: RowProgress) -> None:
    """Bring the part of an index into an updated one: only these rows are encoded, and an index of FAISS is built anew.

    Raises `IndexingError` if the part is damaged or its encoder is another one now.
    """
    encoder = _encoder(config)
    home, part = open_part(old, config)
    plan = {"encoder": encoder.name, "dimension": encoder.dimension, "shard": part["shard"]}
    if any(part[name] != value for name, value in plan.items()):
        raise IndexingError(f"{home.name} was built with another encoder: add the data again")
    rows, size, encoded = new.manifest["passages"], part["shard"], 0
    with adding(new, config, plan, updating=True) as (work, record):
        for number, first in enumerate(range(0, rows, size)):
            last = min(first + size, rows)
            file_rows = [row for row in changed_rows if first <= row < last]
            vectors = _resize(file_path(home, number), last - first, encoder.dimension)
            for start in range(0, len(file_rows), _BATCH):
                batch = file_rows[start : start + _BATCH]
                vectors[[row - first for row in batch]] = _encode_batch(encoder, new.store.rows(batch))
                encoded += len(batch)
                progress(encoded, "encoded")
            write_file(work, number, vectors)
        all_vectors = StoredVectors(work, rows, encoder.dimension, size)
        choice = _Choice(part["index"], part["settings"], part["why"])
        record |= _build_index(all_vectors, choice, work, lambda count, step: None)


def _resize(path: Path, rows: int, dimension: int) -> "NDArray[np.float16]":
    """The first vectors of a file, with zeros for those that it lacks or if there is no such file."""
    import numpy as np

    vectors = np.zeros((rows, dimension), np.float16)
    if path.exists():
        old_vectors = np.load(path)[:rows]
        vectors[: len(old_vectors)] = old_vectors
    return vectors


def merge(olds: Sequence[MergeInput], new: Index, config: RetrieverConfig, progress: RowProgress) -> str:
    """Copy the vectors of several indexes; an index of FAISS is left to `add`, which has a limit of memory.

    Raises `IndexingError` if a part is damaged or the encoders are not the same.
    """
    parts = [open_part(old, config) for old, _ in olds]
    encoder, dimension = parts[0][1]["encoder"], parts[0][1]["dimension"]
    if any((part["encoder"], part["dimension"]) != (encoder, dimension) for _, part in parts):
        raise IndexingError("the indexes have vectors of different encoders")
    rows = new.manifest["passages"]
    choice = _choice(config, rows, dimension, None)
    flat = choice.kind == "flat" and all(part["index"] == "flat" for _, part in parts)
    plan = {"encoder": encoder, "dimension": dimension, "shard": PER_FILE}
    with (adding if flat else beginning)(new, config, plan, updating=True) as (work, record):
        for number, vectors in enumerate(_regroup(_remaining_vectors(olds, parts))):
            write_file(work, number, vectors)
            progress(number * PER_FILE + len(vectors), "copied")
        if flat:
            record |= _build_index(StoredVectors(work, rows, dimension, PER_FILE), choice, work, progress)
    return "" if flat else "its vectors are copied, their index is built anew"


def _remaining_vectors(
    olds: Sequence[MergeInput], parts: Sequence[tuple[Path, Mapping[str, Any]]]
) -> Iterator["NDArray[np.float16]"]:
    """The vectors of several parts, without those of rows that are left out."""
    import numpy as np

    for (old, omitted_rows), (home, part) in zip(olds, parts, strict=True):
        file_vectors = StoredVectors(home, old.manifest["passages"], part["dimension"], part["shard"])
        for first, vectors in zip(range(0, file_vectors.rows, file_vectors.size), file_vectors, strict=True):
            yield np.delete(
                vectors, [row - first for row in omitted_rows if first <= row < first + len(vectors)], axis=0
            )


def _regroup(pieces: Iterable["NDArray[np.float16]"]) -> Iterator["NDArray[np.float16]"]:
    """The same vectors in pieces of `PER_FILE`, of which the last may have fewer."""
    import numpy as np

    buffer: list[NDArray[np.float16]] = []
    for piece in pieces:
        buffer.append(piece)
        while sum(map(len, buffer)) >= PER_FILE:
            joint = np.concatenate(buffer)
            yield joint[:PER_FILE]
            buffer = [joint[PER_FILE:]]
    if sum(map(len, buffer)):
        yield np.concatenate(buffer)


def _encoder(config: RetrieverConfig) -> Encoder:
    return open_encoder(config.setting("encoder", str))


def _choice(config: RetrieverConfig, rows: int, dimension: int, memory: int | None) -> _Choice:
    """The index of the configuration, or one that fits the memory limit in bytes; raises `RagError` if none does."""
    kind, reason = config.setting("index", str, ""), ""
    if kind and kind not in KINDS:
        raise RagError(f"retriever {config.name}: no index called {kind!r}; there are: {', '.join(KINDS)}")
    config.check_settings(["encoder", "index", *(KINDS[kind].settings if kind else ())])
    settings_given = {name: config.setting(name, int) for name in config.settings if name not in ("encoder", "index")}
    if rows < SMALL:
        if kind not in ("", "flat"):
            reason = f"flat, as {kind} is for {SMALL:,} passages or more"
        kind, settings_given = "flat", {}
    elif not kind:
        kind, reason = ("flat", "") if memory is None else pick(rows, dimension, memory)
    settings = choose_settings(kind, rows, dimension, settings_given)
    size = estimate(kind, rows, dimension, settings).resident
    if memory is not None and size > memory:
        way_out = (
            "; a configuration without 'index' lets the memory pick one (--memory)"
            if "index" in config.settings
            else ""
        )
        raise RagError(
            f"retriever {config.name}: its {kind} index keeps {size / 2**20:,.1f} MiB in memory, above the "
            f"{memory / 2**20:,.1f} MiB given{way_out}"
        )
    return _Choice(kind, settings, reason)


def _encode(
    store: Store, encoder: Encoder, first: int, last: int, partial: Path, progress: RowProgress
) -> "NDArray[np.float16]":
    """The vectors of these rows, checked to be finite.

    Each batch is appended to the file `partial`, and what a stopped run left there is not encoded again.
    """
    import numpy as np

    with partial.open("ab+") as file:
        # Whole batches only: a kill can end a write anywhere, and on a GPU a vector depends on its batch.
        batch_bytes = _BATCH * encoder.dimension * np.dtype(np.float16).itemsize
        batches = min(file.tell() // batch_bytes, (last - first) // _BATCH)
        file.truncate(batches * batch_bytes)
        start = first + batches * _BATCH
        if start > first:
            progress(start, "encoded")
        passing = islice(store.scan(start), last - start)
        while passages := list(islice(passing, getattr(encoder, "at_once", _BATCH))):
            file.write(_encode_batch(encoder, passages).tobytes())
            file.flush()
            os.fsync(file.fileno())
            start += len(passages)
            progress(start, "encoded")
    return np.fromfile(partial, np.float16).reshape(last - first, encoder.dimension)


def _encode_batch(encoder: Encoder, passages: Sequence[Passage]) -> "NDArray[np.float16]":
    """The vectors of passages; raises `IndexingError` for one that is not finite."""
    import numpy as np

    vectors = encoder.passages([passage.contents for passage in passages])
    _check_shape(encoder, vectors.shape, len(passages))
    with np.errstate(over="ignore"):  # values above 65,504 become infinite
        stored_vectors = vectors.astype(np.float16)
    for row in np.flatnonzero(~np.isfinite(stored_vectors).all(axis=1)).tolist():
        raise IndexingError(
            f"passage {passages[row].id!r}: the encoder {encoder.name} returned a vector with a value that is not "
            "finite, or above 65,504"
        )
    return stored_vectors


def _check_shape(encoder: Encoder, shape: tuple[int, ...], texts: int) -> None:
    if shape != (texts, encoder.dimension):
        raise RagError(f"the encoder {encoder.name} returned {shape} for {texts} texts, not {texts, encoder.dimension}")


class Dense:
    """Finds the k passages whose vectors are nearest to a query's.

    A query of unknown words has the zero vector, which is equally near to all passages, and finds nothing.
    """

    def __init__(self, name: str, encoder: Encoder, searcher: VectorSearch, store: Store) -> None:
        self.name = name
        self._encoder, self._searcher, self._store = encoder, searcher, store

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """Return k hits per query; raises `QuestionError` for a query that `check_query` refuses."""
        import numpy as np

        check_search(queries, k)
        for query in queries:
            check_query(query)
        if not queries:
            return []
        vectors = self._encoder.queries(queries)
        _check_shape(self._encoder, vectors.shape, len(queries))
        if not np.isfinite(vectors).all():
            raise RagError(f"the encoder {self._encoder.name} returned a vector for the question that is not finite")
        candidates = []
        for vector, (rows, scores) in zip(vectors, self._searcher.search(vectors, k), strict=True):
            if not vector.any():
                rows, scores = rows[:0], scores[:0]
            passages = self._store.rows(rows.tolist())
            hits = [Hit(passage, score) for passage, score in zip(passages, scores.tolist(), strict=True)]
            candidates.append(best_first(hits)[:k])
        return candidates


KIND = RetrieverKind(open_dense, needs, add, update, seconds, has_absolute_scores=True, merge=merge)
