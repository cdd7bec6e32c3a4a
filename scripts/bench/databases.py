"""Vector databases beside the index's own search: time to fill, disk, time of a query, recall@100.

    python -m scripts.bench.databases INDEX --questions FILE --recipe lancedb [--recipe FILE.toml ...] [--out FILE]

The index must have the part of the base recipe (`static`). Recall@100 is the share of the 100 nearest passages of an
exact search that the recipe finds. Queries go one at a time; the median is told, beside that of the exact search of the
same run. Disk is what a database in the index's folder holds; that of a server is not seen.
"""

import json
import statistics
import time
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer

from autoais.io.jsonl import dumps, round_floats, write_atomic
from autoais.io.provenance import processor, provenance
from autoais.questions import read_questions
from rag.index.index import Index
from rag.index.open import open_index
from rag.index.recipes import read_recipe
from rag.retrievers import Retriever, kind_of, open_retriever

_K = 100
_WARM = 5  # questions before anything is timed


def searched(retriever: Retriever, questions: list[str]) -> tuple[list[set[str]], float]:
    """The ids of the hits of each question, and the median of milliseconds."""
    for question in questions[:_WARM]:
        retriever.search([question], _K)
    found, times = [], []
    for question in questions:
        began = time.perf_counter()
        (hits,) = retriever.search([question], _K)
        times.append(1000 * (time.perf_counter() - began))
        found.append({hit.passage.id for hit in hits})
    return found, statistics.median(times)


def size(folder: Path) -> int:
    """The bytes of the files in a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def measured(index: Index, name: str, questions: list[str], exact: list[set[str]]) -> dict[str, Any]:
    """What filling and searching a database takes."""
    recipe = read_recipe(name)
    kind = kind_of(recipe)
    assert kind.add is not None
    assert index.build is not None
    folder = index.build.parent / "databases" / recipe.name
    began = time.perf_counter()
    kind.add(index, recipe, None, lambda done, what: None)
    seconds = time.perf_counter() - began
    hits, median = searched(open_retriever(name, index), questions)
    shares = [len(one & other) / len(other) for one, other in zip(hits, exact, strict=True) if other]
    return {
        "recipe": recipe.record(),
        "fill_seconds": seconds,
        "disk_bytes": size(folder) if folder.exists() else None,
        "median_ms": median,
        f"recall@{_K}": statistics.mean(shares),
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
    texts = [question.text for question in islice(read_questions(questions), asked)]
    base = read_recipe(recipe[0]).setting("base", str)
    exact, median = searched(open_retriever(base, index), texts)
    about = {"processor": processor(), "passages": index.manifest["passages"], "checksum": index.manifest["checksum"]}
    about |= {"questions": len(texts), "base": base}
    result: dict[str, Any] = {}
    if out is not None and out.exists():
        before = json.loads(out.read_text("utf-8"))
        result = before if all(before.get(name) == value for name, value in about.items()) else {}
    result = about | {"databases": result.get("databases", {})}
    for name in recipe:
        one = {"exact_median_ms": median} | measured(index, name, texts, exact)
        result["databases"][one["recipe"]["database"]] = one | {"provenance": provenance({"questions": questions})}
        print(dumps(round_floats({name: one}, 4), indent=2))
        if out is not None:
            write_atomic(out, [dumps(round_floats(result, 4), indent=2)])


if __name__ == "__main__":
    typer.run(main)
