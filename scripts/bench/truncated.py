"""What truncated vectors cost: recall of the gold passages, and overlap with the hits of whole vectors.

    python -m scripts.bench.truncated INDEX --questions FILE [--dimensions 128 64] [--out FILE]

INDEX has the part of the recipe `static`. Its vectors are cut and searched exactly, in blocks; nothing is written to
the index. The questions have `gold`, the ids of passages of the index.
"""

from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from autoais.io.jsonl import dumps, read_objects, round_floats, write_atomic
from autoais.io.provenance import provenance
from rag.encoders import open_encoder
from rag.index.open import open_index
from rag.index.parts import open_part
from rag.index.recipes import read_recipe
from rag.retrievers.vectors import StoredVectors

if TYPE_CHECKING:
    from numpy.typing import NDArray

_KS = (20, 100)
_TOP = max(_KS)


def cut(vectors: "NDArray[Any]", size: int) -> "NDArray[np.float32]":
    """The first numbers of vectors with norm 1, again with norm 1."""
    kept = vectors[:, :size].astype(np.float32)
    found: NDArray[np.float32] = kept / np.maximum(np.linalg.norm(kept, axis=1, keepdims=True), 1e-30)
    return found


def nearest(stored: StoredVectors, queries: "NDArray[np.float32]", size: int) -> "NDArray[np.int64]":
    """The rows of the nearest passages of each query, best first."""
    scores = np.full((len(queries), _TOP), -np.inf, np.float32)
    rows = np.zeros((len(queries), _TOP), np.int64)
    wanted, first = cut(queries, size), 0
    for vectors in stored:
        found = wanted @ cut(vectors, size).T
        both = np.concatenate([scores, found], axis=1)
        numbers = np.concatenate([rows, np.broadcast_to(np.arange(first, first + len(vectors)), found.shape)], axis=1)
        best = np.argsort(-both, axis=1, kind="stable")[:, :_TOP]
        scores, rows = np.take_along_axis(both, best, 1), np.take_along_axis(numbers, best, 1)
        first += len(vectors)
    return rows


def main(
    folder: Annotated[Path, typer.Argument(help="Index folder with the part `static`.")],
    questions: Annotated[Path, typer.Option(help="Questions (jsonl) with `gold`.")],
    dimensions: Annotated[list[int] | None, typer.Option(help="Numbers kept; may be repeated.")] = None,
    asked: Annotated[int, typer.Option(help="Number of questions.")] = 500,
    out: Annotated[Path | None, typer.Option(help="Output file (json).")] = None,
) -> None:
    """Measure, print, and write to --out."""
    index, recipe = open_index(folder), read_recipe("static")
    home, part = open_part(index, recipe)
    stored = StoredVectors(home, index.manifest["passages"], part["dimension"], part["shard"])
    listed = [row for _, row in islice(read_objects(questions), asked)]
    queries = open_encoder("static").queries([row["question"] for row in listed])
    whole: list[set[int]] = []
    result: dict[str, Any] = {"questions": len(listed), "passages": stored.rows, "dimensions": {}}
    for size in [stored.dimension, *(dimensions or (128, 64))]:
        rows = nearest(stored, queries, size)
        found = [[passage.id for passage in index.store.rows(each.tolist())] for each in rows]
        told: dict[str, float] = {}
        for k in _KS:
            hit = [bool({*ids[:k]} & {*row["gold"]}) for ids, row in zip(found, listed, strict=True)]
            told[f"success@{k}"] = float(np.mean(hit))
        whole = whole or [set(each.tolist()) for each in rows]
        told[f"overlap@{_TOP}"] = float(
            np.mean([len(one & {*each.tolist()}) / _TOP for one, each in zip(whole, rows, strict=True)])
        )
        result["dimensions"][str(size)] = told
        print(size, told)
    if out is not None:
        found_by = {**result, "provenance": provenance({"questions": questions})}
        write_atomic(out, [dumps(round_floats(found_by, 4), indent=2)])


if __name__ == "__main__":
    typer.run(main)
