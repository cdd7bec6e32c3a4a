"""Shards beside one index: how often they find the same passages, and the time of a query.

    python -m scripts.bench.shards INDEX --questions FILE --work DIR [--shards 8] [--recipe bm25] [--out FILE]

Shards are folders on this machine, built in DIR from the passages of the index (`rag index build --shard`) and kept
there. Questions go one at a time, in turns to both; the medians and their ratio are told.
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
from rag.api import add_recipe, build_index
from rag.index.index import Index
from rag.index.open import open_index
from rag.index.recipes import Recipe
from rag.retrievers import Retriever, open_retriever, parts_of
from rag.retrievers.shards import open_shards

_K = 20
_WARM = 10  # questions before anything is timed


def spread(index: Index, work: Path, shards: int) -> list[Path]:
    """The folders of the shards, built if they are missing."""
    folders = [work / f"{n:03}-of-{shards:03}.index" for n in range(1, shards + 1)]
    if all(folder.exists() for folder in folders):
        return folders
    work.mkdir(parents=True, exist_ok=True)
    source = work / "passages.jsonl"
    with source.open("w", encoding="utf-8") as file:
        for passage in index.store.scan():
            row = {"docid": passage.id, "title": passage.title, "text": passage.text}
            file.write(json.dumps(row) + "\n")
    for number, folder in enumerate(folders, 1):
        build_index(source, folder, shard=f"{number}/{shards}", replace=True)
    source.unlink()
    return folders


def timed(retriever: Retriever, question: str) -> tuple[list[str], float]:
    """The ids of the hits, and milliseconds."""
    began = time.perf_counter()
    (hits,) = retriever.search([question], _K)
    return [hit.passage.id for hit in hits], 1000 * (time.perf_counter() - began)


def compared(one: Retriever, several: Retriever, questions: list[str]) -> dict[str, Any]:
    """Both on the same questions."""
    for question in questions[:_WARM]:
        one.search([question], _K), several.search([question], _K)
    pairs = [(timed(one, question), timed(several, question)) for question in questions]
    same = [ours == theirs for (ours, _), (theirs, _) in pairs]
    shares = [len(set(ours) & set(theirs)) / max(1, len(ours)) for (ours, _), (theirs, _) in pairs]
    alone, together = (statistics.median(times) for times in zip(*((a[1], b[1]) for a, b in pairs), strict=True))
    return {
        f"same_first_{_K}": statistics.mean(same),
        f"overlap@{_K}": statistics.mean(shares),
        "one_ms": alone,
        "shards_ms": together,
        "ratio": together / alone,
    }


def main(
    folder: Annotated[Path, typer.Argument(help="Index folder.")],
    questions: Annotated[Path, typer.Option(help="Questions (jsonl).")],
    work: Annotated[Path, typer.Option(help="Folder for the shards.")],
    recipe: Annotated[list[str], typer.Option(help="Retriever; may be repeated.")],
    shards: Annotated[int, typer.Option(min=2, help="Number of shards.")] = 8,
    asked: Annotated[int, typer.Option(help="Number of questions.")] = 2_000,
    out: Annotated[Path | None, typer.Option(help="Output file (json).")] = None,
) -> None:
    """Measure, print, and write to --out."""
    index = open_index(folder)
    texts = [question.text for question in islice(read_questions(questions), asked)]
    folders = spread(index, work, shards)
    result: dict[str, Any] = {
        "processor": processor(),
        "passages": index.manifest["passages"],
        "checksum": index.manifest["checksum"],
        "shards": shards,
        "questions": len(texts),
        "recipes": {},
    }
    for name in recipe:
        for each in folders:
            if any(True for _ in parts_of(name)):
                add_recipe(each, name)
        settings = {"shards": [str(each) for each in folders], "recipe": name}
        several = open_shards(index, Recipe("shards", "shards", settings))
        result["recipes"][name] = compared(open_retriever(name, index), several, texts)
        print(dumps(round_floats({name: result["recipes"][name]}, 4), indent=2))
    if out is not None:
        found = result | {"provenance": provenance({"questions": questions})}
        write_atomic(out, [dumps(round_floats(found, 4), indent=2)])


if __name__ == "__main__":
    typer.run(main)
