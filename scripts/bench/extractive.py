"""Effect of each constant of the extractive generator on answer recall and on the rate of off-topic answers.

    python -m scripts.bench.extractive ../shared/data POOL.index \\
        --out eval/results/open-nq-pool/extractive-constants.json

Off-topic answers are answers from the handbook to Open-NQ questions, none of which it can answer. One constant is
changed at a time.
"""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from autoais.io.jsonl import dumps, write_atomic
from autoais.io.provenance import provenance
from autoais.metrics.short_answers import has_answer
from autoais.questions import read_questions
from autoais.types import Question
from rag.errors import QuestionError
from rag.generators import extractive
from rag.index.index import Index
from rag.index.open import open_index
from rag.types import Hit

CHANGES: list[tuple[str, float]] = [
    *(("_ENOUGH", value) for value in (0.0, 0.3, 0.5, 0.6)),
    *(("_RANK", value) for value in (0.5, 2.0)),
    *(("_OPENS", value) for value in (0.0, 0.8)),
    *(("_TYPE", value) for value in (0.0, 0.6)),
    *(("_LONG", value) for value in (0.0, 0.4)),
    *(("_WORTH", value) for value in (0.7, 0.9)),
]


def searched(index: Index, questions: list[Question]) -> list[tuple[Question, list[Hit]]]:
    """The top ten hits of each question that has search terms."""
    found = []
    for question in questions:
        try:
            found.append((question, index.bm25.search([question.text], 10)[0]))
        except QuestionError:
            continue
    return found


def main(
    data: Annotated[Path, typer.Argument(help="Data folder with nq/.")],
    index: Annotated[Path, typer.Argument(help="Index of the whole pool.")],
    out: Annotated[Path | None, typer.Option(help="Also write the table as JSON.")] = None,
) -> None:
    """Measure the shipped constants, then one changed constant at a time."""
    files = {"pool": data / "nq/nq_pool_dev.jsonl", "off_topic": data / "nq/NQ-open.dev.jsonl"}
    pool = searched(open_index(index), list(read_questions(files["pool"])))
    off_topic = searched(open_index(None), list(read_questions(files["off_topic"]))[:800])
    generator = extractive.Extractive()
    rows: list[dict[str, Any]] = []
    for name, value in [("as shipped", 0.0), *CHANGES]:
        shipped = getattr(extractive, name, None)
        if shipped is not None:
            setattr(extractive, name, value)
        recalled = sum(has_answer(generator.generate(q, hits).text, q.answers) for q, hits in pool)
        answered = sum(not generator.generate(q, hits).abstained for q, hits in off_topic)
        if shipped is not None:
            setattr(extractive, name, shipped)
        rows.append(
            {
                "constant": name,
                "value": None if shipped is None else value,
                "shipped": shipped,
                "answer_recall": round(recalled / len(pool), 4),
                "answered_off_topic": round(answered / len(off_topic), 4),
            }
        )
    table = Table(*rows[0], box=None)
    for row in rows:
        table.add_row(*("" if cell is None else str(cell) for cell in row.values()))
    Console(width=120).print(table)
    if out is not None:
        write_atomic(out, [dumps({"rows": rows, "provenance": provenance(files)}, indent=2)])


if __name__ == "__main__":
    typer.run(main)
