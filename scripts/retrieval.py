"""Benchmarks retrievers on three question sets over one index: effectiveness, speed, memory and disk use.

    python scripts/retrieval.py bm25 a+b --data ../shared/data --index POOL.index --results eval/results/retrieval

Writes one report per retriever, `RETRIEVER.json`; a stopped run resumes with the sets missing from the report. Each set
runs in its own process, one query at a time, so that peak memory is that of one retriever on one set. `--markdown`
prints existing reports, with the figures of the index beside them (`parts.json`, at revision 2449ce1f).
"""

import json
import math
import os
import resource
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from autoais.base.errors import UserError
from autoais.base.io.jsonl import dumps, field, read_objects, round_floats, write_atomic
from autoais.base.io.paths import folder_size
from autoais.base.io.provenance import command, sha256_file, versions
from autoais.base.types import Question
from autoais.formats.questions import read_questions
from rag.index.retriever_config import read_config, walk_configs

T = TypeVar("T")

# Modules that load an index or numpy are imported late: a process inherits its parent's peak memory.

SETS = {"nq_pool_dev": "nq/nq_pool_dev.jsonl", "miracl": "miracl/dev_pool.jsonl", "clapnq": "clapnq/dev.jsonl"}
MEASURES = ("Success@1", "Success@5", "Success@20", "Success@100", "nDCG@10")
ANSWER_HITS = ("answer_hit@1", "answer_hit@5", "answer_hit@20")
K = 100
WARM_UP = 10  # untimed queries before the measurement
CLOSED_POOL = "a closed pool of {:,} English Wikipedia passages with the gold passages put in: not full Wikipedia"


def questions_of(path: Path) -> list[Question]:
    """The questions of a set; only the answerable ones if the set marks them."""
    rows = (row for _, row in read_objects(path))
    answerable = [field(row, "answerable", bool, str(path)) if "answerable" in row else True for row in rows]
    return [question for question, is_answerable in zip(read_questions(path), answerable, strict=True) if is_answerable]


def measure_set(name: str, folder: Path, path: Path) -> dict[str, Any]:
    """The results of one retriever on one set: measures with n and interval, latency in ms, queries/s, memory in MiB.

    Peak memory includes memory-mapped pages of the index, which the system can reclaim; private memory excludes them
    and is read after the last query.
    """
    from autoais.metrics.rates import Mean
    from autoais.metrics.runs import Run, open_measures, per_topic
    from autoais.metrics.short_answers import has_answer
    from rag.base.errors import QuestionError
    from rag.commands.display import progress_bar
    from rag.index.open import open_index
    from rag.retrieval import open_retriever

    questions = questions_of(path)
    answers = any(question.answers for question in questions)
    measures = open_measures([*MEASURES, *(ANSWER_HITS if answers else ())])
    retriever = open_retriever(name, open_index(folder))

    def search(question: Question) -> list[Any]:
        try:
            return retriever.search([question.text], K)[0]
        except QuestionError:  # no search terms; counts as an empty result
            return []

    for question in questions[:WARM_UP]:
        search(question)
    rankings: dict[str, list[str]] = {}
    answer_ranks: dict[str, int] = {}
    seconds: list[float] = []
    processor = 0.0
    with progress_bar(f"{name}, {path.stem}", len(questions), "queries") as advance:
        for number, question in enumerate(questions, 1):
            start, cpu_start = time.perf_counter(), time.process_time()
            hits = search(question)
            seconds.append(time.perf_counter() - start)
            processor += time.process_time() - cpu_start
            rankings[question.id] = [hit.passage.id for hit in hits]
            texts = enumerate((hit.passage.text for hit in hits[:20]), 1)
            first = next((rank for rank, text in texts if has_answer(text, question.answers)), None)
            if first is not None:
                answer_ranks[question.id] = first
            advance(number, "")
    peak, private = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, private_mib()
    qrels = {question.id: dict.fromkeys(question.gold, 1) for question in questions}
    values = per_topic(measures, qrels, Run(retriever.name, rankings), answer_ranks)
    return {
        "retriever": retriever.name,
        "questions": len(questions),
        "nothing_found": sum(not ids for ids in rankings.values()),
        "metrics": {measure: Mean.of(topic_values).record() for measure, topic_values in values.items()},
        "no_answer_hit": None if answers else "the questions have no short reference answers",
        "latency_ms": {"p50": 1e3 * _quantile(seconds, 0.5), "p95": 1e3 * _quantile(seconds, 0.95)},
        "queries_per_second": len(questions) / sum(seconds),
        "queries_per_cpu_second": len(questions) / processor,
        "load_average": os.getloadavg()[0],  # above the number of cores, trust CPU seconds, not latencies
        "peak_memory_mib": peak,
        "private_memory_mib": private,
    }


def private_mib() -> float | None:
    """The memory of this process without mapped files, in MiB; None if the system does not tell."""
    status = Path("/proc/self/status")
    if not status.exists():  # not Linux
        return None
    (line,) = (line for line in status.read_text().splitlines() if line.startswith("RssAnon:"))
    return int(line.split()[1]) / 1024


def _quantile(values: list[float], share: float) -> float:
    """The smallest value that a fraction `share` of the values does not exceed."""
    return sorted(values)[math.ceil(share * len(values)) - 1]


def part_of(build: Path, name: str) -> Path:
    """The folder of a retriever's data in a build folder, whether or not it exists."""
    config = read_config(name)
    if config.kind == "bm25":
        return build / "bm25"
    if config.kind == "lucene":
        from rag.retrieval.lucene import DATA_CONFIG

        config = DATA_CONFIG
    return build / "parts" / config.name


def sizes(folder: Path, names: Iterable[str]) -> dict[str, int]:
    """The bytes on disk of each retriever's data in the index, and of the passages, which all retrievers share."""
    manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
    build = folder / manifest["build"]
    parts = {name: part_of(build, name) for name in names}
    part_sizes = {name: folder_size(part) for name, part in parts.items() if part.is_dir()}
    return {"passages": (build / "passages.sqlite").stat().st_size, **part_sizes}


def run_apart(function: Callable[..., T], *arguments: object) -> T:
    """Call a function in a process of its own."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


def retriever_name(name: str, folder: Path) -> str:
    """The full name of a retriever, with the versions of its models."""
    from rag.index.open import open_index
    from rag.retrieval import open_retriever

    return open_retriever(name, open_index(folder)).name


def report(name: str, data: Path, folder: Path, path: Path) -> None:
    """Measure the sets missing from the report, and write it after each set.

    A report for another retriever, index or depth is started over, a set measured with another model is measured again.
    """
    configs = dict(walk_configs(name))
    manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
    settings = {
        "recipe": name,
        "recipes": [config.record() for config in configs.values()],
        "index": {key: manifest[key] for key in ("checksum", "passages", "untitled", "analyzer")},
        "closed_pool": CLOSED_POOL.format(manifest["passages"]),
        "k": K,
    }
    previous = json.loads(path.read_text("utf-8")) if path.exists() else {}
    is_same = all(previous.get(key) == value for key, value in json.loads(dumps(settings)).items())
    sets = previous.get("sets", {}) if is_same else {}
    if sets:
        model_name = run_apart(retriever_name, name, folder)
        sets = {set_name: row for set_name, row in sets.items() if row["retriever"] == model_name}
    for set_name, file in SETS.items():
        sha256 = sha256_file(data / file)
        if sets.get(set_name, {}).get("sha256") == sha256:
            continue
        measurement = run_apart(measure_set, name, folder, data / file)
        sets[set_name] = {"file": file, "sha256": sha256, **measurement}
        result = {
            **settings,
            "part_bytes": sizes(folder, configs),
            "cores": os.cpu_count(),
            "sets": {key: sets[key] for key in SETS if key in sets},
            "licence": "CC BY-SA 3.0 (Natural Questions, Wikipedia's text); Apache-2.0 (MIRACL, CLAPnq)",
            "provenance": {"command": command(), "versions": versions()},
        }
        write_atomic(path, [dumps(round_floats(result, 4), indent=2)])


def main(
    retrievers: Annotated[list[str], typer.Argument(help="Retrievers: names in indexes/, .toml files, or a+b.")],
    data: Annotated[Path | None, typer.Option(help="Data folder with nq/, miracl/ and clapnq/.")] = None,
    index: Annotated[Path | None, typer.Option(help="Index of the whole pool, with the retrievers' data.")] = None,
    results: Annotated[Path, typer.Option(help="Folder for the reports.")] = Path("eval/results/retrieval"),
    markdown: Annotated[bool, typer.Option("--markdown", help="Only print existing reports.")] = False,
) -> None:
    """Measure each retriever on each set and print the results as a table."""
    reports = []
    try:
        for name in retrievers:
            path = results / f"{Path(name).name.removesuffix('.toml')}.json"
            if not markdown:
                if data is None or index is None:
                    raise UserError("--data and --index are required, except with --markdown")
                report(name, data, index, path)
            reports.append(json.loads(path.read_text("utf-8")))
    except UserError as error:
        raise SystemExit(f"error: {error}") from None
    if markdown:
        print("\n".join(as_markdown(reports, results / "parts.json")))
    else:
        show(reports)


def as_markdown(reports: Sequence[dict[str, Any]], parts_file: Path) -> Iterator[str]:
    """The lines of two Markdown tables: effectiveness and speed, and the size and build cost of the indexes."""
    parts = json.loads(parts_file.read_text("utf-8"))["parts"] if parts_file.exists() else {}
    names = (*MEASURES, *ANSWER_HITS)
    yield f"Over {reports[0]['closed_pool']}. Means in percent; times on {reports[0]['cores']} cores."
    yield ""
    yield f"| retriever | set | n | {' | '.join(names)} | p50 ms | p95 ms | q/s | q/CPU-s | peak MiB | private MiB |"
    yield f"|---|---|{'---|' * (len(names) + 7)}"
    for report in reports:
        for name, result in report["sets"].items():
            means = (result["metrics"].get(measure) for measure in names)
            cells = ["-" if mean is None else f"{100 * mean['value']:.1f}" for mean in means]
            speeds = (result["queries_per_second"], result["queries_per_cpu_second"])
            memory = (result["peak_memory_mib"], result["private_memory_mib"])
            cells += [f"{value:.1f}" for value in (*result["latency_ms"].values(), *speeds)]
            cells += ["-" if size is None else f"{size:.0f}" for size in memory]
            yield f"| {Path(report['recipe']).stem} | {name} | {result['questions']} | {' | '.join(cells)} |"
    yield ""
    yield "| retriever | parts | MB beside the passages | wall s | CPU s | peak MiB |"
    yield "|---|---|---|---|---|---|"
    for report in reports:
        sizes = {part: size for part, size in report["part_bytes"].items() if part != "passages"}
        costs = [parts[part] for part in sizes if part in parts]
        cells = ["-"] * 3
        if sizes and len(costs) == len(sizes):
            sums = (sum(part[key] for part in costs) for key in ("seconds", "cpu_seconds"))
            cells = [f"{value:.0f}" for value in (*sums, max(part["peak_memory_mib"] for part in costs))]
        size = sum(sizes.values()) / 1e6
        yield f"| {Path(report['recipe']).stem} | {', '.join(sizes)} | {size:.0f} | {' | '.join(cells)} |"


def show(reports: Sequence[dict[str, Any]]) -> None:
    """Print a table with one row per retriever and set, and means in percent."""

    from autoais.base.terminal import new_console, new_table

    names = (*MEASURES, *ANSWER_HITS)
    table = new_table("retriever", "set", "n", *names, "p50 ms", "p95 ms", "q/s", "peak MiB", words=2)
    for report in reports:
        for name, result in report["sets"].items():
            means = (result["metrics"].get(measure) for measure in names)
            cells = ["-" if mean is None else f"{100 * mean['value']:.1f}" for mean in means]
            speeds = (*result["latency_ms"].values(), result["queries_per_second"], result["peak_memory_mib"])
            cells += [f"{value:.1f}" for value in speeds]
            table.add_row(report["recipe"], name, str(result["questions"]), *cells)
    new_console().print(table)


if __name__ == "__main__":
    typer.run(main)
