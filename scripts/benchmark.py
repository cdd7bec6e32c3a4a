"""Runs a benchmark from raw data to report: index, answers, judgements. A stopped run resumes where it was.

    python scripts/benchmark.py open-nq-pool ../shared/data --work work --results eval/results

Each step runs a command of `rag` or `autoais`; the report records the commands.
"""

import json
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

from autoais.errors import UserError
from autoais.io.jsonl import read_objects
from rag.benchmarks import read_benchmark
from rag.index.open import open_index


def command(name: str, *arguments: str | Path) -> None:
    """Print a command and run it; exit with its exit code if it fails."""
    print("$", name, *arguments, flush=True)
    done = subprocess.run([Path(sys.executable).with_name(name), *arguments], check=False)
    if done.returncode:
        raise SystemExit(done.returncode)


def main(
    name: Annotated[str, typer.Argument(help="Name of a benchmark in eval/benchmarks.")],
    data: Annotated[Path, typer.Argument(help="Data folder.")],
    work: Annotated[Path, typer.Option(help="Folder for index and answers (not committed).")] = Path("work"),
    results: Annotated[Path, typer.Option(help="Folder for the report.")] = Path("eval/results"),
    system: Annotated[str, typer.Option(help="System that answers.")] = "reader",
) -> None:
    """Check the data, build the index if it is missing, answer, score, and write the report."""
    try:
        benchmark = read_benchmark(name)
        questions, corpus = benchmark.questions.check(data), benchmark.corpus.check(data)
    except UserError as error:
        raise SystemExit(f"error: {error}") from None
    index = work / f"{name}-{benchmark.corpus.sha256[:12]}.index"  # a new index per corpus
    answers = work / f"{name}.{system}.jsonl"
    report = results / name / f"{system}.json"
    if not (index / "manifest.json").exists():
        command("rag", "index", "build", corpus, "--format", benchmark.format, "--to", index)
    k = str(benchmark.k)
    command("rag", "answer", questions, "--index", index, "--system", system, "--k", k, "--out", answers, "--resume")
    judgements = work / f"{name}.{system}.judgements.jsonl"
    command("autoais", "score", answers, "--questions", questions, "--out", judgements, "--report", report)
    result = json.loads(report.read_text("utf-8"))
    manifest = open_index(index).manifest
    seconds = sorted(row["seconds"] for _, row in read_objects(answers))
    run = json.loads(answers.with_name(answers.name + ".run.json").read_text("utf-8"))
    result = {
        "benchmark": f"{benchmark.name}.v{benchmark.version}",
        "description": benchmark.description,
        "closed_pool": benchmark.closed_pool,
        "licence": benchmark.licence,
        "system": run["system"],
        **result,
        "corpus": {"file": benchmark.corpus.file, "sha256": benchmark.corpus.sha256},
        "index": {key: manifest[key] for key in ("checksum", "passages", "untitled", "recipe", "analyzer", "command")},
        "answer_command": run["command"],
        "seconds_a_question": {
            "p50": statistics.median(seconds),
            "p95": seconds[int(0.95 * len(seconds))],
            "mean": round(statistics.fmean(seconds), 4),
        },
    }
    report.write_text(json.dumps(result, indent=2, ensure_ascii=False) + "\n", "utf-8")
    print(f"report in {report}")


if __name__ == "__main__":
    typer.run(main)
