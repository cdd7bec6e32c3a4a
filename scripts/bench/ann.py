"""Compares kinds of vector index with exact search: recall@100, queries per CPU-second, size and build time, with
what `rag plan` estimates.

    python -m scripts.bench.ann VECTORS --queries Q.npy [--tile 5000000] [--kinds ivf,rabitq] --out FILE

VECTORS is an index with the part of `--recipe`, or a `.npy` of shape (vectors, dimension). Q.npy holds real queries of
the same encoder; `--encoder NAME --topics FILE` encodes some instead. `--tile` repeats the vectors up to that number,
with seeded noise half as long as the vector added to each copy. Searches use one thread and one query at a time, like
the retriever; `flat_batch` is FAISS's exact search of all queries at once. Passages are not fetched. `--smaller FILE`
is a result with fewer vectors: `extrapolated` is what it says of this number, divided by what was measured: the size
of a vector, and the seconds of a build, which grow as `rag plan` estimates; for recall it is the difference.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

# Set before numpy is imported, so that CPU time does not include waiting threads.
os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

import numpy as np

from autoais.io.jsonl import dumps, round_floats
from autoais.io.provenance import provenance, versions
from autoais.questions import read_questions
from rag.encoders import open_encoder
from rag.index.open import open_index
from rag.index.parts import open_part
from rag.index.recipes import read_recipe
from rag.retrievers.vector_index import (
    KINDS,
    Searcher,
    build,
    choose_settings,
    estimate,
    estimate_seconds,
    faiss,
    pick,
)
from rag.retrievers.vectors import PER_FILE, StoredVectors, write_file
from scripts.results import tell

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]

K = 100
NOISE = 0.5
SEED = 7
MIRACL = (33_000_000, 256)  # passages, and dimension of a static vector
GIB = 2**30


def main() -> None:
    """Measure, print, and write to --out; the exit code is 1 if a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("vectors", type=Path)
    parser.add_argument("--recipe", default="static", help="recipe whose part of the index is taken")
    parser.add_argument("--queries", type=Path)
    parser.add_argument("--encoder")
    parser.add_argument("--topics", type=Path)
    parser.add_argument("--most", type=int, default=200, help="maximum number of queries")
    parser.add_argument("--tile", type=int)
    parser.add_argument("--kinds", default="hnsw,ivf,ivf-pq,opq-ivf-pq,rabitq,fastscan")
    parser.add_argument(
        "--set", action="append", default=[], metavar="SETTING=N", help="for all kinds that have this setting"
    )
    parser.add_argument("--smaller", type=Path)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    if given.queries:
        queries = np.load(given.queries)[: given.most].astype(np.float32)
    elif given.encoder and given.topics:
        asked = [question.text for question in islice(read_questions(given.topics), given.most)]
        queries = open_encoder(given.encoder).queries(asked)
    else:
        parser.error("give real queries: --queries, or --encoder and --topics")
    asked_for = {name: int(value) for name, _, value in (each.partition("=") for each in given.set)}
    with tempfile.TemporaryDirectory(prefix="rag-bench-") as temporary:
        stored = tiled(given.vectors, given.recipe, given.tile, Path(temporary))
        table = measure(stored, queries, given.kinds.split(","), asked_for, Path(temporary))
    if given.smaller:
        extrapolate(table["kinds"], json.loads(given.smaller.read_text("utf-8"))["kinds"])
    kind, why = pick(*MIRACL, 6 * GIB)
    resident = estimate(kind, *MIRACL, choose_settings(kind, *MIRACL, {})).resident
    bars = {
        "a kind of recall@100 >= 0.95 at >= 4 x flat's queries per CPU-second": any(
            row["recall@100"] >= 0.95 and row["times_flat"] >= 4 for row in table["kinds"]
        ),
        "every estimate within 15 % of the size": all(
            abs(row["estimate_over_size"] - 1) <= 0.15 for row in table["kinds"]
        ),
        "33M vectors of 256 numbers under 6 GiB resident": resident < 6 * GIB,
    }
    inputs = {"vectors": given.vectors, "queries": given.queries, "topics": given.topics}
    result = {
        "bars": bars,
        **table,
        "miracl": {"vectors": MIRACL[0], "dimension": MIRACL[1], "why": why, "resident_gib": resident / GIB},
        "versions": versions() | {"faiss": faiss().__version__},
        "provenance": provenance({role: path for role, path in inputs.items() if path and path.is_file()}),
    }
    tell(result, given.out)
    raise SystemExit(not all(bars.values()))


def extrapolate(found: list[dict[str, Any]], fewer: list[dict[str, Any]]) -> None:
    """Add to each kind what was measured with fewer vectors says of it, over what was measured."""
    before = {row["kind"]: row for row in fewer}
    for row in found:
        if (small := before.get(row["kind"])) is not None:
            seconds = small["built_cpu_seconds"] * row["estimated_seconds"] / small["estimated_seconds"]
            row["extrapolated"] = {
                "bytes_a_vector": small["bytes_a_vector"] / row["bytes_a_vector"],
                "built_cpu_seconds": seconds / row["built_cpu_seconds"],
                "recall@100": small["recall@100"] - row["recall@100"],
            }


def tiled(source: Path, recipe: str, to: int | None, folder: Path) -> StoredVectors:
    """The original vectors, then noisy copies of them, up to `to` vectors."""
    if source.is_dir():
        index = open_index(source)
        home, part = open_part(index, read_recipe(recipe))
        real = np.concatenate(list(StoredVectors(home, index.manifest["passages"], part["dimension"], part["shard"])))
    else:
        real = np.load(source).astype(np.float16)
    rng = np.random.default_rng(SEED)
    rows = to or len(real)
    for number, first in enumerate(range(0, rows, PER_FILE)):
        taken = np.arange(first, min(first + PER_FILE, rows))
        vectors = real[taken % len(real)].astype(np.float32)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        moved = vectors + rng.standard_normal(vectors.shape, np.float32) * NOISE * lengths / vectors.shape[1] ** 0.5
        moved *= lengths / np.maximum(np.linalg.norm(moved, axis=1, keepdims=True), 1e-30)
        copies = (taken >= len(real))[:, None]
        write_file(folder, number, np.where(copies, moved, vectors).astype(np.float16))
    return StoredVectors(folder, rows, real.shape[1], PER_FILE)


def measure(
    stored: StoredVectors, queries: "Vectors", kinds: list[str], asked: dict[str, int], folder: Path
) -> dict[str, Any]:
    """The measurements of exact search and of each kind."""
    engine = faiss()
    flat = engine.IndexFlatIP(stored.dimension)
    for vectors in stored:
        flat.add(vectors.astype(np.float32))
    batch, _ = timed(lambda: flat.search(queries, K), len(queries))
    one, _ = timed(lambda: [flat.search(query[None], K) for query in queries], len(queries))
    longest = stored.longest()
    exact = Searcher(stored, "flat", {}, None, longest=longest)
    ours, best = timed(partial(one_by_one, exact, queries), len(queries))
    gold = [set(rows[:K].tolist()) for rows, _ in best]
    found = []
    for kind in kinds:
        wanted = {name: value for name, value in asked.items() if name in KINDS[kind].settings}
        settings = choose_settings(kind, stored.rows, stored.dimension, wanted)
        path = folder / f"{kind}.faiss"
        began = time.process_time()
        build(kind, settings, stored, path, lambda done, what: None)
        built = time.process_time() - began
        searcher = Searcher(stored, kind, settings, path, longest=longest)
        rate, lists = timed(partial(one_by_one, searcher, queries), len(queries))
        recall = [len(truth & set(rows[:K].tolist())) / K for truth, (rows, _) in zip(gold, lists, strict=True)]
        size, guess = path.stat().st_size, estimate(kind, stored.rows, stored.dimension, settings)
        found.append(
            {
                "kind": kind,
                "settings": settings,
                "recall@100": sum(recall) / len(recall),
                "queries_per_cpu_second": rate,
                "times_flat": rate / one,
                "times_flat_batch": rate / batch,
                "built_cpu_seconds": built,
                "estimated_seconds": estimate_seconds(kind, stored.rows, stored.dimension, settings),
                "bytes_a_vector": size / stored.rows,
                "estimate_over_size": guess.resident / size,
            }
        )
        print(dumps(round_floats(found[-1], 4)), file=sys.stderr)
        path.unlink()
    return {
        "vectors": stored.rows,
        "dimension": stored.dimension,
        "queries": len(queries),
        "flat_queries_per_cpu_second": one,
        "flat_batch_queries_per_cpu_second": batch,
        "our_flat_queries_per_cpu_second": ours,
        "kinds": found,
    }


def one_by_one(searcher: Searcher, queries: "Vectors") -> list[Any]:
    """The rows and scores of each query, searched one at a time."""
    return [searcher.search(query[None], K)[0] for query in queries]


def timed(run: Callable[[], Any], queries: int) -> tuple[float, Any]:
    """Queries per CPU-second of the second of two runs, and its result."""
    run()
    began = time.process_time()
    found = run()
    return queries / (time.process_time() - began), found


if __name__ == "__main__":
    main()
