"""Vectors of passages: float16 files on disk, and exact search over them."""

import math
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING

from autoais.base.errors import first_line
from autoais.base.io.jsonl import sync
from rag.base.errors import IndexingError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]
    HalfVectors = NDArray[np.float16]
    Rows = NDArray[np.int64]
    Scores = NDArray[np.float64]

PER_FILE = 50_000  # vectors per file
_BLOCK = 2048  # vectors scored at once: a block fits in the CPU cache
_QUERIES = 64  # queries scored at once


def file_path(folder: Path, number: int) -> Path:
    """The path of a file of vectors: `vectors-00000.npy` and so on."""
    return folder / f"vectors-{number:05}.npy"


def write_file(folder: Path, number: int, vectors: "HalfVectors") -> None:
    """Write one file of vectors atomically; raises `OSError` on a full disk."""
    import numpy as np

    path = file_path(folder, number)
    temporary = path.with_suffix(".new")
    with temporary.open("wb") as file:
        np.save(file, vectors)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    sync(folder)


class StoredVectors:
    """The vectors of rows 0 to rows - 1, memory-mapped from files of `size` vectors each; the last may have fewer.

    Raises `IndexingError` for a file that is missing, damaged or of another dimension.
    """

    def __init__(self, folder: Path, rows: int, dimension: int, size: int) -> None:
        import numpy as np

        self.rows, self.dimension, self.size = rows, dimension, size
        self.paths: list[Path] = []
        self._files: list[HalfVectors] = []
        for number, first in enumerate(range(0, rows, size)):
            path = file_path(folder, number)
            shape = (min(size, rows - first), dimension)
            try:
                vectors = np.load(path, mmap_mode="r", allow_pickle=False)
            except Exception as error:  # a damaged header, which numpy parses as Python, can raise anything
                raise IndexingError(f"{path}: cannot be read ({first_line(error)}): add the data again") from error
            if vectors.shape != shape or vectors.dtype != np.float16:
                description = f"{vectors.dtype} of {vectors.shape}"
                raise IndexingError(f"{path}: holds {description}, not float16 of {shape}: add the data again")
            self.paths.append(path)
            self._files.append(vectors)

    def __iter__(self) -> Iterator["HalfVectors"]:
        """The vectors in row order, file by file, read from disk, as mapped pages would count as memory."""
        import numpy as np

        return (np.load(path, allow_pickle=False) for path in self.paths)

    def take(self, rows: "Rows") -> "HalfVectors":
        """The vectors of these rows, in the given order."""
        import numpy as np

        vectors = np.empty((len(rows), self.dimension), np.float16)
        numbers = rows // self.size
        for number in np.unique(numbers):
            mask = numbers == number
            vectors[mask] = self._files[number][rows[mask] - number * self.size]
        return vectors

    def longest(self) -> float:
        """The norm of the longest vector."""
        import numpy as np

        squares = (np.einsum("ij,ij->i", wide, wide).max() for wide in (part.astype(np.float32) for part in self))
        return math.sqrt(max(float(square) for square in squares))

    def scores(self, query: "Vectors", rows: "Rows") -> "Scores":
        """The inner products with these rows, each summed separately, so that batches and threads change none."""
        import numpy as np

        products = self.take(rows).astype(np.float64) * query.astype(np.float64)
        return np.asarray(products.sum(axis=1))

    def nearest(self, queries: "Vectors", k: int, longest: float) -> list["Rows"]:
        """The rows of the top k vectors per query, and of all others that could tie with or outrank them.

        Scores are only exact to float32 here, so rows within that error of the k-th are included; the caller sorts by
        `scores`. `longest` is the norm of the longest vector.
        """
        import numpy as np

        units, slack = _units(queries), self._slack(longest)
        candidates: list[Rows] = []
        for first in range(0, len(queries), _QUERIES):
            batch = units[first : first + _QUERIES]
            parts = _threads(os.getpid()).map(
                self._scan, range(len(self._files)), repeat(batch), repeat(k), repeat(slack)
            )
            for pieces in zip(*parts, strict=True):  # one query, every file
                rows, rough = (np.concatenate(side) for side in zip(*pieces, strict=True))
                candidates.append(rows[_among_best(rough, k, slack)])
        return candidates

    def narrow(self, query: "Vectors", rows: "Rows", k: int, longest: float) -> "Rows":
        """Those of these rows that `nearest` would keep."""
        (unit,) = _units(query[None])
        return rows[_among_best(_products(_widen(self.take(rows)), unit * _SMALLER), k, self._slack(longest))]

    def best(self, query: "Vectors", rows: "Rows", k: int) -> tuple["Rows", "Scores"]:
        """(rows, scores), best first: the top k of these rows, and all others that tie with the k-th."""
        import numpy as np

        scores = self.scores(query, rows)
        order = np.argsort(-scores, kind="stable")
        best_order = order[scores[order] >= scores[order[min(k, len(order)) - 1]]] if len(order) else order
        return rows[best_order], scores[best_order]

    def _slack(self, longest: float) -> float:
        return 4 * self.dimension * 2.0**-24 * longest

    def _scan(self, number: int, units: "Vectors", k: int, slack: float) -> list[tuple["Rows", "Vectors"]]:
        """Per query, the rows of a file that could be in the top k, and their approximate scores."""
        import numpy as np

        vectors, small_units = self._files[number], units * _SMALLER
        scores = np.empty((len(units), len(vectors)), np.float32)
        for first in range(0, len(vectors), _BLOCK):
            wide = _widen(vectors[first : first + _BLOCK])
            for query_scores, unit in zip(scores, small_units, strict=True):
                query_scores[first : first + len(wide)] = _products(wide, unit)
        best = [_among_best(query_scores, k, slack) for query_scores in scores]
        return [
            (positions + number * self.size, query_scores[positions])
            for positions, query_scores in zip(best, scores, strict=True)
        ]


@cache
def _threads(process: int) -> ThreadPoolExecutor:
    """The threads that scan, shared by all searches of a process, so that several at once do not crowd the cores."""
    return ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="rag-scan")


def _units(queries: "Vectors") -> "Vectors":
    """The queries with norm 1, so that no score overflows float32."""
    import numpy as np

    lengths = np.sqrt(np.square(queries, dtype=np.float64).sum(axis=1, keepdims=True))
    units: Vectors = (queries / np.maximum(lengths, 1e-30)).astype(np.float32)
    return units


_SMALLER = 2.0**112  # the factor by which `_widen` reduces a number


def _widen(vectors: "HalfVectors") -> "Vectors":
    """Convert float16 to float32 by shifting bits; the result is 2**112 times too small.

    numpy's conversion takes five times as long, which would be most of the time of a search.
    """
    import numpy as np

    bits = np.left_shift(vectors.view(np.int16), 13, dtype=np.int32)  # copies the sign bit upwards
    np.bitwise_and(bits, np.int32(-0x70002000), out=bits)  # clears its copies in the exponent
    return bits.view(np.float32)


def _products(vectors: "Vectors", query: "Vectors") -> "Vectors":
    """Inner products with each row. Not with `@`, because BLAS would start threads besides ours."""
    import numpy as np

    vecdot = getattr(np, "vecdot", None)  # since numpy 2
    products: Vectors = np.einsum("ij,j->i", vectors, query) if vecdot is None else vecdot(vectors, query)
    return products


def _among_best(scores: "Vectors", k: int, slack: float) -> "Rows":
    import numpy as np

    if len(scores) <= k:
        return np.arange(len(scores))
    return np.flatnonzero(scores >= np.partition(scores, len(scores) - k)[len(scores) - k] - 2 * slack)
