"""Choice of BM25's field weights: success on an index of the whole pool for several weights of the title field.

    python -m scripts.bench.field_weights ../shared/data POOL.index --out eval/results/open-nq-pool/weights.json

The shipped weight was chosen on `nq`; the other sets took no part. On `nq`, `miracl` and `clapnq`, Success@k is a gold
passage among the first k. They flatter titles, as gold passages were put into the pool. No gold passages were put there
for `dpr`, 3,000 questions of DPR's development set: of these, the share with an answer string among the first k
hits is told. `from_untitled` and `from_shipped` are differences from no title field and from the shipped weight over
the same questions, with tests. The pool is closed, so the values do not apply to full Wikipedia.
"""

import math
import random
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
from autoais.questions import read_questions
from autoais.text.folding import questions_key
from autoais.training.prepare import held_out
from autoais.types import Question
from rag.index.open import open_index
from rag.index.postings import BM25
from rag.index.recipes import Recipe
from scripts.retrieval import questions_of

KS = (1, 5, 20, 100)
HITS = (1, 5, 20)
DPR = "topics/topics.dpr.nq.dev.txt"
MOST = 3000  # questions of DPR
NEVER = ("nq/nq_pool_dev.jsonl", "nq/NQ-open.dev.jsonl", "miracl/dev_pool.jsonl", "clapnq/dev.jsonl")
SETS = {"nq": "nq/nq_pool_dev.jsonl", "miracl": "miracl/dev_pool.jsonl", "clapnq": "clapnq/dev.jsonl"}
UNTITLED, SHIPPED = (0.0, False), (0.2, True)  # weight of titles, and whether a missing one has a stand-in
WEIGHTS = (UNTITLED, (0.2, False), SHIPPED, *((each, True) for each in (0.3, 0.4, 0.5, 0.7, 1.0)))


def of_dpr(data: Path) -> list[Question]:
    """Questions with answer strings that no evaluation set has, chosen by chance."""
    never = held_out(data / file for file in NEVER)
    asked = [each for each in read_questions(data / DPR) if questions_key(each.text) not in never]
    return random.Random(1).sample(asked, MOST)


def success(bm25: BM25, questions: list[Question]) -> dict[str, list[float]]:
    """Success@k of each question if they have gold passages, and answer_hit@k if they have reference answers."""
    values: dict[str, list[float]] = {}
    for question in questions:
        (hits,) = bm25.search([question.text], max(KS))
        if question.gold:
            first = next((r for r, hit in enumerate(hits, 1) if hit.passage.id in question.gold), math.inf)
            for k in KS:
                values.setdefault(f"Success@{k}", []).append(float(first <= k))
        if question.answers:
            holding = (
                r for r, hit in enumerate(hits[: max(HITS)], 1) if has_answer(hit.passage.text, question.answers)
            )
            first = next(holding, math.inf)
            for k in HITS:
                values.setdefault(f"answer_hit@{k}", []).append(float(first <= k))
    return values


def main(
    data: Annotated[Path, typer.Argument(help="Data folder with nq/, miracl/ and clapnq/.")],
    index: Annotated[Path, typer.Argument(help="Index of the whole pool.")],
    out: Annotated[Path | None, typer.Option(help="Also write the table as JSON.")] = None,
) -> None:
    """Measure each weight on each set and print a table."""
    files = {name: data / path for name, path in SETS.items()}
    asked = {"dpr": of_dpr(data)} | {name: questions_of(path) for name, path in files.items()}
    opened = open_index(index)
    found = {}
    for weight, stand_in in WEIGHTS:
        weights = {"contents": 1.0} | ({"title": weight} if weight else {})
        bm25 = opened.bm25.weighted(Recipe("bm25", "bm25", {"weights": weights}))
        bm25._mixed = stand_in
        for name, questions in asked.items():
            found[weight, stand_in, name] = success(bm25, questions)
    rows: list[dict[str, Any]] = []
    for (weight, stand_in, name), values in found.items():
        row = {"title_weight": weight, "untitled_stand_in": stand_in, "set": name}
        row |= {measure: Mean.of(each).record() for measure, each in values.items()}
        for what, other in (("from_untitled", UNTITLED), ("from_shipped", SHIPPED)):
            theirs = found[(*other, name)]
            compared = [measure for measure in values if measure.endswith(("@1", "@20"))]
            row[what] = {measure: difference_of_means(values[measure], theirs[measure]) for measure in compared}
        rows.append(row)
    measures = (*(f"Success@{k}" for k in KS), *(f"answer_hit@{k}" for k in HITS))
    columns = ("title_weight", "untitled_stand_in", "set", *measures)
    table = Table(*columns, box=None)
    for row in rows:
        told = [row.get(column, "") for column in columns]
        table.add_row(*(f"{one['value']:.4f}" if isinstance(one, dict) else str(one) for one in told))
    Console(width=120).print(table)
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        record = {
            "rows": rows,
            "index": opened.manifest["checksum"],
            "provenance": provenance({"dpr": data / DPR} | files),
        }
        write_atomic(out, [dumps(round_floats(record), indent=2)])


if __name__ == "__main__":
    typer.run(main)
