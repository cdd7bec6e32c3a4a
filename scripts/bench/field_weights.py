"""Choice of BM25's field weights: success on an index of the whole pool for several weights of the title field.

    python -m scripts.bench.field_weights ../shared/data POOL.index --out eval/results/open-nq-pool/weights.json

Success@k is a gold passage among the first k. `gain` is the difference in Success@1 from no title field, over the same
questions, with its test. The pool is closed, so the values do not apply to full Wikipedia. The shipped weight was
chosen on `nq`; the other sets took no part.
"""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from autoais.comparison import difference_of_means
from autoais.io.jsonl import dumps, round_floats, write_atomic
from autoais.io.provenance import provenance
from autoais.metrics.rates import Mean
from autoais.metrics.short_answers import has_answer
from autoais.types import Question
from rag.index.open import open_index
from rag.index.postings import BM25
from rag.index.recipes import Recipe
from scripts.retrieval import questions_of

KS = (1, 5, 20, 100)
SETS = {"nq": "nq/nq_pool_dev.jsonl", "miracl": "miracl/dev_pool.jsonl", "clapnq": "clapnq/dev.jsonl"}
WEIGHTS = ((0.0, False), (0.1, False), (0.2, False), (0.2, True), (0.3, True), (0.5, True), (1.0, True))


def success(bm25: BM25, questions: list[Question]) -> dict[str, list[float]]:
    """Success@k of each question, and answer_hit@20 if the questions have reference answers."""
    values: dict[str, list[float]] = {f"Success@{k}": [] for k in KS}
    if any(question.answers for question in questions):
        values["answer_hit@20"] = []
    for question in questions:
        (hits,) = bm25.search([question.text], max(KS))
        first = next((r for r, hit in enumerate(hits, 1) if hit.passage.id in question.gold), None)
        for k in KS:
            values[f"Success@{k}"].append(float(first is not None and first <= k))
        if "answer_hit@20" in values:
            found = any(has_answer(hit.passage.text, question.answers) for hit in hits[:20])
            values["answer_hit@20"].append(float(found))
    return values


def main(
    data: Annotated[Path, typer.Argument(help="Data folder with nq/, miracl/ and clapnq/.")],
    index: Annotated[Path, typer.Argument(help="Index of the whole pool.")],
    out: Annotated[Path | None, typer.Option(help="Also write the table as JSON.")] = None,
) -> None:
    """Measure each weight on each set and print a table."""
    files = {name: data / path for name, path in SETS.items()}
    asked = {name: questions_of(path) for name, path in files.items()}
    opened = open_index(index)
    untitled: dict[str, list[float]] = {}  # Success@1 without a title field, by set
    rows: list[dict[str, Any]] = []
    for weight, stand_in in WEIGHTS:
        weights = {"contents": 1.0} | ({"title": weight} if weight else {})
        bm25 = opened.bm25.weighted(Recipe("bm25", "bm25", {"weights": weights}))
        bm25._mixed = stand_in
        for name, questions in asked.items():
            values = success(bm25, questions)
            first = untitled.setdefault(name, values["Success@1"])
            row = {"title_weight": weight, "untitled_stand_in": stand_in, "set": name}
            row |= {measure: Mean.of(each).record() for measure, each in values.items()}
            rows.append(row | {"gain": difference_of_means(values["Success@1"], first)})
    columns = ("title_weight", "untitled_stand_in", "set", *(f"Success@{k}" for k in KS), "answer_hit@20")
    table = Table(*columns, box=None)
    for row in rows:
        told = [row.get(column, "") for column in columns]
        table.add_row(*(f"{one['value']:.4f}" if isinstance(one, dict) else str(one) for one in told))
    Console(width=120).print(table)
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        record = {"rows": rows, "index": opened.manifest["checksum"], "provenance": provenance(files)}
        write_atomic(out, [dumps(round_floats(record), indent=2)])


if __name__ == "__main__":
    typer.run(main)
