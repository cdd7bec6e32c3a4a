"""Vector databases beside the index's own search: time to fill, disk, memory, time of a query, what they find.

    python -m scripts.bench.databases INDEX --questions FILE --recipe lancedb [--recipe FILE.toml ...] [--out FILE]

The index must have the part of the base recipe (`static`). `recall@100` is the share of the 100 nearest passages of an
exact search that the recipe finds, and `Success@20` the share of questions with a gold passage among the first 20, for
both. Queries go one at a time; the median is told, beside that of the exact search of the same run. `private_mib` is
the memory of a process that opens and searches nothing else, without mapped files; that of the exact search is beside
it. The recipe `pgvector` gets a PostgreSQL server of its own, of the package pgserver; the disk of other servers is not
seen, nor the memory of any, Milvus's own among them.
"""

import importlib
import json
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer

from autoais.io.jsonl import dumps, round_floats, write_atomic
from autoais.io.paths import folder_size
from autoais.io.provenance import processor, provenance
from autoais.metrics.rates import Mean
from autoais.questions import read_questions
from autoais.types import Question
from rag.index.index import Index
from rag.index.integrity import PARTS
from rag.index.open import open_index
from rag.index.recipes import Recipe, read_recipe
from rag.retrievers import kind_of
from scripts.retrieval import apart, private_mib

_K = 100
_GOLD = 20
_WARM = 5  # questions before anything is timed


@dataclass(frozen=True)
class Found:
    """The ids of the hits of each question, best first; median of milliseconds, and memory in MiB."""

    hits: list[list[str]]
    median_ms: float
    private_mib: float | None


def searched(folder: Path, recipe: Recipe, questions: list[Question]) -> Found:
    """Search one question at a time; in a process of its own, `private_mib` is that of the search."""
    index = open_index(folder)
    retriever = kind_of(recipe).open(index, recipe)
    for question in questions[:_WARM]:
        retriever.search([question.text], _K)
    found, times = [], []
    for question in questions:
        began = time.perf_counter()
        (hits,) = retriever.search([question.text], _K)
        times.append(1000 * (time.perf_counter() - began))
        found.append([hit.passage.id for hit in hits])
    return Found(found, statistics.median(times), private_mib())


def filled(folder: Path, recipe: Recipe) -> float:
    """Fill the database and return the seconds; a process of its own lets go of the files of Milvus."""
    index, kind = open_index(folder), kind_of(recipe)
    assert kind.add is not None
    began = time.perf_counter()
    kind.add(index, recipe, None, lambda done, what: None)
    return time.perf_counter() - began


def success(questions: list[Question], hits: list[list[str]]) -> dict[str, Any]:
    """The share of questions with a gold passage among the first 20 hits, with n and interval."""
    both = zip(questions, hits, strict=True)
    return Mean.of([float(not set(ids[:_GOLD]).isdisjoint(asked.gold)) for asked, ids in both]).record()


@contextmanager
def served(recipe: Recipe) -> Iterator[tuple[Recipe, Path | None]]:
    """The recipe, and the folder of its server if it needs one of its own."""
    if recipe.settings["database"] != "pgvector" or recipe.settings["url"] != read_recipe("pgvector").settings["url"]:
        yield recipe, None
        return
    with tempfile.TemporaryDirectory(prefix="rag-pg.") as folder:
        server = importlib.import_module("pgserver").get_server(folder)
        try:
            settings = {**recipe.settings, "url": server.get_uri()}
            yield Recipe("bench-pgvector.v1", recipe.kind, settings), Path(folder)
        finally:
            server.cleanup()


def measured(index: Index, recipe: Recipe, questions: list[Question], exact: Found) -> dict[str, Any]:
    """What filling and searching a database takes, and what it finds."""
    assert index.build is not None
    home = index.build.parent
    with served(recipe) as (here, server):
        seconds = apart(filled, home, here)
        found = apart(searched, home, here, questions)
        folder = server or home / "databases" / recipe.name
        disk = folder_size(folder) if folder.exists() else None
    if server is not None:
        shutil.rmtree(index.build / PARTS / here.name)
    both = zip(found.hits, exact.hits, strict=True)
    return {
        "recipe": recipe.record(),
        "fill_seconds": seconds,
        "disk_bytes": disk,
        "private_mib": found.private_mib,
        "median_ms": found.median_ms,
        f"recall@{_K}": statistics.mean(len({*one} & {*other}) / len(other) for one, other in both if other),
        f"Success@{_GOLD}": success(questions, found.hits),
    }


def main(
    folder: Annotated[Path, typer.Argument(help="Index folder with the vectors.")],
    questions: Annotated[Path, typer.Option(help="Questions (jsonl).")],
    recipe: Annotated[list[str], typer.Option(help="Recipe of kind database; may be repeated.")],
    asked: Annotated[int, typer.Option(help="Number of questions.")] = 200,
    out: Annotated[
        Path | None, typer.Option(help="Output file (json), which keeps what it has of other recipes.")
    ] = None,
) -> None:
    """Measure, print, and write to --out."""
    index = open_index(folder)
    texts = list(islice(read_questions(questions), asked))
    base = read_recipe(recipe[0]).setting("base", str)
    exact = apart(searched, folder, read_recipe(base), texts)
    about = {"processor": processor(), "passages": index.manifest["passages"], "checksum": index.manifest["checksum"]}
    about |= {"questions": len(texts), "base": base, f"exact_Success@{_GOLD}": success(texts, exact.hits)}
    about = round_floats(about, 4)
    result: dict[str, Any] = {}
    if out is not None and out.exists():
        before = json.loads(out.read_text("utf-8"))
        result = before if all(before.get(name) == value for name, value in about.items()) else {}
    result = about | {"databases": result.get("databases", {})}
    for name in recipe:
        one: dict[str, Any] = {"exact_median_ms": exact.median_ms, "exact_private_mib": exact.private_mib}
        one |= measured(index, read_recipe(name), texts, exact)
        result["databases"][one["recipe"]["database"]] = one | {"provenance": provenance({"questions": questions})}
        print(dumps(round_floats({name: one}, 4), indent=2))
        if out is not None:
            write_atomic(out, [dumps(round_floats(result, 4), indent=2)])


if __name__ == "__main__":
    typer.run(main)
