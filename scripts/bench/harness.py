"""Measures a whole benchmark run, and what the harness adds to the bare stages.

    python -m scripts.bench.harness DATA INDEX --out eval/results/harness.json

First `rag bench run open-nq-pool --system reader` over all 2,000 questions: seconds, peak memory and the main metrics;
and the page of its report in Chromium (`scripts.bench.page`). Then, on LIMIT questions, taking turns: `rag bench run`
and `rag bench report`, against `rag answer` and `autoais score`, which answer and judge the same without a run folder.
The ratio is of CPU seconds, of which both pay the start of two processes; reading and checking the data of the
benchmark is paid by the harness alone, so the ratio falls with more questions.
Last, a run on LIMIT questions is killed up to ten times, at random moments drawn by seed, and resumed; its files have
to be those of a run that nothing stopped, times aside.
"""

import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer

from autoais.io.provenance import processor, provenance
from rag.bench.report.tables import metric_of
from rag.bench.results import read_run
from scripts.bench.page import page
from scripts.process import Used, measured
from scripts.results import tell
from scripts.timeless import timeless

RAG, AUTOAIS = ([sys.executable, "-m", name] for name in ("rag", "autoais"))
KILLS, SEED = 10, 13
METRICS = ("right", "em", "f1", "answer_recall", "autoais", "answerable_refused")


def summed(*commands: list[str]) -> Used:
    """What commands, one after the other, use together; of memory, the larger peak."""
    used = [measured(*command) for command in commands]
    return Used(sum(one.seconds for one in used), sum(one.cpu for one in used), max(one.peak for one in used))


def bench(data: Path, index: Path, out: Path, limit: int | None) -> list[str]:
    """The command of a benchmark run."""
    sampled = [] if limit is None else ["--limit", str(limit)]
    where = ["--data", str(data), "--index", str(index), "--out", str(out)]
    return [*RAG, "bench", "run", "open-nq-pool", "--system", "reader", *where, *sampled]


def resumed(command: list[str], run: Path, seconds: float) -> int:
    """Run a command that takes about `seconds`, killed at random moments and resumed; returns the number of kills."""
    chance, kills = random.Random(SEED), 0
    for _ in range(KILLS):
        process = subprocess.Popen(_again(command, run), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            if process.wait(chance.uniform(1, 2 * seconds / KILLS)):
                raise SystemExit(f"error: {' '.join(command)} failed")
            break  # it came to its end
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            kills += 1
    measured(*_again(command, run))
    return kills


def _again(command: list[str], run: Path) -> list[str]:
    return [*command, "--resume"] if (run / "run.json").exists() else command


def main(
    data: Annotated[Path, typer.Argument(help="Folder of the data.")],
    index: Annotated[Path, typer.Argument(help="Index of the pool.")],
    out: Annotated[Path, typer.Option(help="Output file (json).")],
    limit: Annotated[int, typer.Option(help="Questions of each turn.")] = 400,
    rounds: Annotated[int, typer.Option(help="Turns.")] = 3,
) -> None:
    """Measure, print, and write to --out."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        used = measured(*bench(data, index, folder / "whole", None))
        whole = {"questions": 2000, "seconds": used.seconds, "cpu_s": used.cpu, "peak_memory_mb": used.peak / 1e6}
        (reader,) = read_run(folder / "whole").systems
        metrics = {name: metric_of(reader.metrics, name) for name in METRICS}
        drawn = page(folder / "whole")
        turns = []
        for number in range(rounds):
            run, answers = folder / str(number), folder / f"{number}.jsonl"
            harness = summed(bench(data, index, run, limit), [*RAG, "bench", "report", str(run)])
            answer = [*RAG, "answer", str(run / "questions.jsonl"), "--index", str(index), "--k", "20"]
            score = [*AUTOAIS, "score", str(answers), "--metrics", "all", "--out", str(folder / "judged.jsonl")]
            bare = summed([*answer, "--out", str(answers)], score)
            turns.append({"harness_cpu_s": harness.cpu, "bare_cpu_s": bare.cpu, "ratio": harness.cpu / bare.cpu})
        first, other = folder / "first", folder / "killed"
        seconds = measured(*bench(data, index, first, limit)).seconds
        kills = resumed(bench(data, index, other, limit), other, seconds)
        killed = {"questions": limit, "kills": kills, "same_files": timeless(first) == timeless(other)}
    result: dict[str, Any] = {
        "processor": processor(),
        "whole": whole | {"system": reader.system, "metrics": metrics},
        "page": drawn,
        "overhead": {
            "questions": limit,
            "ratio": statistics.median(turn["ratio"] for turn in turns),
            "turns": turns,
        },
        "killed": killed,
        "provenance": provenance({"questions": data / "nq" / "nq_pool_dev.jsonl"}),
    }
    tell(result, out)


if __name__ == "__main__":
    typer.run(main)
