"""Measures index time, search latency and cold start on the whole pool, as ratios to bare Tantivy in the same run.

    python -m scripts.bench.engine ../shared/data --out eval/results/engine.json

Takes about five minutes, and 2 GB of disk in a temporary folder. Other work on the machine disturbs the timings, so
runs alternate and medians are compared.
"""

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import tantivy
import typer
from tantivy import Occur, Query

from autoais.base.io.jsonl import dumps, write_atomic
from autoais.base.io.provenance import provenance, versions
from autoais.base.types import Question
from autoais.formats.questions import read_questions
from rag.index.analysis import query_terms
from rag.index.open import open_index
from scripts.bench.bare import analyzer
from scripts.process import measure_command

FOLDER = Path(__file__).parent
QUESTION = "who got the first nobel prize in physics"

Measurement = Callable[[int], tuple[float, float]]


def time_command(*command: str | Path) -> tuple[float, float]:
    """Wall seconds and peak resident memory (MB) of a command."""
    usage = measure_command(*command)
    return usage.seconds, usage.peak / 1e6


def alternating(runs: int, a: Measurement, b: Measurement) -> dict[str, Any]:
    """Run a, b, a, b ...; returns median seconds, maximum memory, and the median of the pairwise ratios a / b."""
    pairs = [(a(n), b(n)) for n in range(runs)]
    return {
        "runs": runs,
        "seconds": statistics.median(x[0] for x, _ in pairs),
        "bare_seconds": statistics.median(y[0] for _, y in pairs),
        "ratio": statistics.median(x[0] / y[0] for x, y in pairs),
        "peak_mb": max(x[1] for x, _ in pairs),
        "bare_peak_mb": max(y[1] for _, y in pairs),
    }


def search_latency(index: Path, bare: Path, questions: Sequence[Question], k: int) -> dict[str, Any]:
    """Latencies of three searches, alternating per query.

    These are our search, bare Tantivy with passages fetched like ours, and bare Tantivy up to scores and addresses,
    which are of no use to a caller yet.
    """
    bm25 = open_index(index).bm25
    bare_index = tantivy.Index.open(str(bare))
    bare_index.register_tokenizer("english", analyzer())
    searcher = bare_index.searcher()
    seconds: dict[str, list[float]] = {"ours": [], "bare": [], "bare_addresses": []}
    for question in questions:
        terms = query_terms(question.text)
        times = [time.perf_counter()]
        bm25.search([question.text], k)
        times.append(time.perf_counter())
        query = Query.boolean_query(
            [
                (Occur.Should, Query.term_query(bare_index.schema, field, term, index_option="freq"))
                for term in terms
                for field in ("title", "text")
            ]
        )
        hits = searcher.search(query, k, count=False).hits
        times.append(time.perf_counter())
        for _, address in hits:
            searcher.doc(address).get_first("id")
        times.append(time.perf_counter())
        seconds["ours"].append(times[1] - times[0])
        seconds["bare_addresses"].append(times[2] - times[1])
        seconds["bare"].append(times[3] - times[1])
    result: dict[str, Any] = {"queries": len(questions), "k": k}
    for name, values in seconds.items():
        cuts = statistics.quantiles(values, n=20)
        result |= {f"{name}_p50_ms": cuts[9] * 1e3, f"{name}_p95_ms": cuts[18] * 1e3}
    result["p50_ratio"] = result["ours_p50_ms"] / result["bare_p50_ms"]
    result["p50_ratio_to_addresses"] = result["ours_p50_ms"] / result["bare_addresses_p50_ms"]
    return result


def main(
    data: Annotated[Path, typer.Argument(help="Data folder with wiki/ and nq/.")],
    output: Annotated[Path | None, typer.Option("--out", help="Also write the results as JSON.")] = None,
    runs: Annotated[int, typer.Option(help="Number of index builds of each kind.")] = 3,
) -> None:
    """Measure and print; the exit code is 1 if a bar is missed."""
    corpus, questions = data / "wiki/passages.jsonl.zst", data / "nq/nq_pool_dev.jsonl"
    rag = Path(sys.executable).with_name("rag")
    with tempfile.TemporaryDirectory(prefix="rag-bench-") as temporary:
        home = Path(temporary)
        index, bare = home / "ours.index", home / "bare"
        builds = alternating(
            runs,
            lambda n: time_command(rag, "index", "build", corpus, "--to", index),
            lambda n: time_command(sys.executable, FOLDER / "bare.py", "index", corpus, f"{bare}{n}"),
        )
        searches = search_latency(index, home / "bare0", list(read_questions(questions)), 100)
        cold = alternating(
            11,
            lambda n: time_command(rag, "ask", QUESTION, "--system", "extractive", "--index", index),
            lambda n: time_command(sys.executable, FOLDER / "bare.py", "query", f"{bare}0", QUESTION),
        )
    helps = alternating(
        11,
        lambda n: time_command(rag, "--help"),
        lambda n: time_command(sys.executable, "-c", "import typer, rich.console"),
    )
    bars = {
        "index build <= 1.5 x bare loop": (builds["ratio"], 1.5),
        "index build peak <= 1024 MB": (builds["peak_mb"], 1024),
        "search p50 (k=100) <= 1.3 x bare query": (searches["p50_ratio"], 1.3),
        "the same <= 1.3 x addresses only": (searches["p50_ratio_to_addresses"], 1.3),
        "cold ask <= 0.8 s": (cold["seconds"], 0.8),
        "cold ask peak <= 250 MB": (cold["peak_mb"], 250),
        "rag --help <= 0.4 s": (helps["seconds"], 0.4),
    }
    for name, (value, bar) in bars.items():
        print(f"{'met   ' if value <= bar else 'MISSED'} {name:42} {value:8.3f}")
    if output is not None:
        result = {
            "bars": {name: {"value": round(value, 3), "bar": bar} for name, (value, bar) in bars.items()},
            "index": builds,
            "search": searches,
            "cold_ask": cold,
            "help": helps,
            "cores": os.cpu_count(),
            "versions": versions(),
            "provenance": provenance({"corpus": corpus, "questions": questions}),
        }
        write_atomic(output, [dumps(result, indent=2)])
    raise SystemExit(any(value > bar for value, bar in bars.values()))


if __name__ == "__main__":
    typer.run(main)
