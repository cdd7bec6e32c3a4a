"""The ways in which a language model answers (`--answer`), beside systems that only quote: a row per system of runs.

    rag bench run open-nq-pool --limit 200 --seed 13 --system gguf:FILE,answer=quote --data DATA --index INDEX --out RUN
    python -m scripts.bench.ways RUN ... --out eval/results/ways.json

A citation is right if its passage is gold or holds a reference, which no judge decides; without references it has no
value. A span is exact if its quote stands at its place in the passage. Intervals have questions as units.
"""

from pathlib import Path
from statistics import median
from typing import Annotated, Any

import typer

from autoais.base.io.jsonl import parse_object, read_objects
from autoais.base.io.provenance import provenance
from autoais.metrics.rates import Rate
from autoais.metrics.short_answers import has_answer
from scripts.results import tell

Row = dict[str, Any]
METRICS = ("autoais", "right", "right@60", "right@120", "answerable_refused", "unanswerable_refused")


def measure_citations(rows: list[Row]) -> dict[str, Any]:
    """The shares of sentences that cite, and of citations that are right and exact."""
    cites, of_sentence = [], []
    right, exact, of_citation = [], [], []
    for number, row in enumerate(rows):
        texts = {passage["id"]: passage["text"] for passage in row["passages"]}
        for sentence in row["sentences"]:
            cites.append(bool(sentence["citations"]))
            of_sentence.append(number)
            for citation in sentence["citations"]:
                text = texts[citation["passage"]]
                exact.append(text[citation["start"] : citation["end"]] == citation["quote"])
                right.append(citation["passage"] in row.get("gold", ()) or has_answer(text, row.get("answers", ())))
                of_citation.append(number)
    rates = {"sentences_cited": Rate.of(cites, of_sentence), "spans_exact": Rate.of(exact, of_citation)}
    if any(row.get("answers") for row in rows):
        rates["citations_right"] = Rate.of(right, of_citation)
    return {name: rate.record() for name, rate in rates.items()}


def measure(folder: Path) -> Row:
    """The row of one system of a run."""
    metrics = parse_object((folder / "metrics.json").read_bytes(), str(folder))
    rows = [row for _, row in read_objects(folder / "answers.jsonl")]
    answered = [row for row in rows if row["sentences"]]
    seconds = [row["seconds"] for row in rows if row.get("seconds") is not None]
    tokens = [row["trace"]["tokens"] for row in rows if row.get("trace", {}).get("tokens")]
    return {
        **{name: metrics[name] for name in ("benchmark", "label", "system", "judge", "n", "right", "ways")},
        "metrics": {name: value for name, value in metrics["metrics"].items() if name in METRICS},
        **measure_citations(answered),
        "failed": sum(row["failed"] for row in rows),
        "words": median(len(row["answer"].split()) for row in answered) if answered else None,
        "short_answers": sum(bool(row.get("short_answer")) for row in answered),
        "tokens_read": median(count["read"] for count in tokens) if tokens else None,
        "seconds": round(median(seconds), 1) if seconds else None,
        "tokens_written": median(count["written"] for count in tokens) if tokens else None,
    }


def main(
    runs: Annotated[list[Path], typer.Argument(help="Folders of `rag bench run`.")],
    out: Annotated[Path | None, typer.Option(help="Output file (json).")] = None,
) -> None:
    """Measure each system of the runs."""
    folders = [path.parent for run in runs for path in sorted(run.glob("*/metrics.json"))]
    answers = {f"{folder.parent.name}/{folder.name}": folder / "answers.jsonl" for folder in folders}
    tell({"rows": [measure(folder) for folder in folders], "provenance": provenance(answers)}, out)


if __name__ == "__main__":
    typer.run(main)
