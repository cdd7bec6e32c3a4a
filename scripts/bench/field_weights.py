"""Choice of BM25's field weights: success on an index of the whole pool for several weights of the title field.

    python -m scripts.bench.field_weights ../shared/data POOL.index --out eval/results/open-nq-pool/weights.json

Success@k is a gold passage among the first k. The pool is closed, so the values do not apply to full Wikipedia. The
shipped weight was chosen on `nq`; the other sets took no part.
"""

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from autoais.io.provenance import provenance
from autoais.metrics.short_answers import has_answer
from autoais.types import Question
from rag.index.open import open_index
from rag.index.postings import BM25
from rag.index.recipes import Recipe
from scripts.retrieval import questions_of

KS = (1, 5, 20, 100)
SETS = {"nq": "nq/nq_pool_dev.jsonl", "miracl": "miracl/dev_pool.jsonl", "clapnq": "clapnq/dev.jsonl"}


def success(bm25: BM25, questions: list[Question]) -> dict[str, float]:
    """Success@k, and answer_hit@20 if the questions have reference answers."""
    counts = dict.fromkeys([f"Success@{k}" for k in KS], 0)
    if any(question.answers for question in questions):
        counts["answer_hit@20"] = 0
    for question in questions:
        (hits,) = bm25.search([question.text], max(KS))
        first = next((r for r, hit in enumerate(hits, 1) if hit.passage.id in question.gold), None)
        for k in KS:
            counts[f"Success@{k}"] += first is not None and first <= k
        if "answer_hit@20" in counts:
            counts["answer_hit@20"] += any(has_answer(hit.passage.text, question.answers) for hit in hits[:20])
    return {name: round(count / len(questions), 4) for name, count in counts.items()}


def main(
    data: Annotated[Path, typer.Argument(help="Data folder with nq/, miracl/ and clapnq/.")],
    index: Annotated[Path, typer.Argument(help="Index of the whole pool.")],
    out: Annotated[Path | None, typer.Option(help="Also write the table as JSON.")] = None,
) -> None:
    """Measure each weight on each set and print a table."""
    files = {name: data / path for name, path in SETS.items()}
    opened = open_index(index)
    rows: list[dict[str, Any]] = []
    for weight, stand_in in (
        (0.0, False),
        (0.1, False),
        (0.2, False),
        (0.2, True),
        (0.3, True),
        (0.5, True),
        (1.0, True),
    ):
        weights = {"contents": 1.0} | ({"title": weight} if weight else {})
        bm25 = opened.bm25.weighted(Recipe("bm25", "bm25", {"weights": weights}))
        bm25._mixed = stand_in
        for name, path in files.items():
            rows.append(
                {
                    "title_weight": weight,
                    "untitled_stand_in": stand_in,
                    "set": name,
                    **success(bm25, questions_of(path)),
                }
            )
    table = Table(*rows[0], box=None)
    for row in rows:
        table.add_row(*(str(row.get(column, "")) for column in rows[0]))
    Console(width=120).print(table)
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        record = {"rows": rows, "index": opened.manifest["checksum"], "provenance": provenance(files)}
        out.write_text(json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    typer.run(main)
