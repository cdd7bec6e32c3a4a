"""Injects faults into commands that write files, and checks that nothing is lost: `make long-tests`.

    python -m scripts.chaos [--sample N] [--seed N] [--only SCENARIO] [--jobs N] [--out REPORT]

Each scenario is a command and what finishes its work after a fault. `strace` stops the command at every call that
writes something, makes it durable or moves it, by SIGKILL, and lets every call that writes fail with ENOSPC from some
call on, as on a full disk. Then the work is finished, and its result has to be that of a run without
a fault. A command with a full disk has to end with one line. `--sample` injects so many faults of each scenario.
A kill counts only if it was reached: how many calls a thread makes differs a little from run to run.
"""

import argparse
import hashlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import repeat
from pathlib import Path
from typing import Any

import rag
from autoais.base.answers import write_answers
from autoais.base.io.jsonl import dumps, write_atomic
from autoais.base.io.provenance import provenance, sha256_file
from rag.answer.answer_files import answer_file
from rag.bench.collections import build_collection, open_collection
from rag.index.listing import files_of
from rag.retrieval import missing_retrievers

DURABLE_CALLS = (
    "fsync",
    "fdatasync",
    "rename",
    "renameat",
    "renameat2",
    "ftruncate",
    "unlink",
    "unlinkat",
    "mkdir",
    "rmdir",
)
WRITE_CALLS = (
    "write",
    "pwrite64",
    "writev",
    "ftruncate",
    "fallocate",
    "mkdir",
    "rename",
    "renameat",
    "renameat2",
    "fsync",
)
NOT_REACHED = ""
SECONDS = 120
STRACE = ("strace", "-f", "-qq", "--seccomp-bpf")  # with the filter, only the calls that are traced stop the command
TOWNS = ("Arlen", "Bexley", "Corvo", "Dunmore", "Elstow", "Farrow", "Gilden", "Hartley")
QUESTIONS = ("When was the mill in {t} built?", "How long is the canal of {t}?", "Who runs the ferry at {t}?")


@dataclass(frozen=True)
class Scenario:
    """A command under fault: how its folder is made, what finishes its work, and what the result is.

    `usable` raises if what the fault left cannot be used. `max_faults` faults are injected, drawn at random from all.
    """

    name: str
    prepare: Callable[[Path], None]
    command: Sequence[str]
    finish: Callable[[Path], Sequence[str]]
    result: Callable[[Path], str]
    usable: Callable[[Path], None] = lambda folder: None
    max_faults: int | None = None


@dataclass(frozen=True)
class Fault:
    """The nth call of a kind, in whichever thread it is, and what happens there."""

    call: str
    nth: int
    kills: bool

    @property
    def injection(self) -> str:
        """As `strace` writes it; a disk that is full stays full."""
        return f"{self.call}:{f'signal=KILL:when={self.nth}' if self.kills else f'error=ENOSPC:when={self.nth}+'}"


# --- what is run -----------------------------------------------------------------------------------------------------


def run(argv: Sequence[str], folder: Path, *strace: str) -> subprocess.CompletedProcess[str]:
    """Run `rag ...` or `autoais ...` in a folder, under strace if it is given."""
    program, *arguments = argv
    code = f"import sys; sys.argv[0] = {program!r}; from {program}.__main__ import main; main()"
    argv = [*strace, sys.executable, "-c", code, *arguments]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, map(os.path.abspath, sys.path)))}
    with subprocess.Popen(
        argv, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, errors="replace", start_new_session=True,
    ) as process:  # fmt: skip
        try:
            output, errors = process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # what strace runs lives on without it
            raise
    return subprocess.CompletedProcess(argv, process.returncode, output, errors)


def run_without_fault(scenario: Scenario, template: Path) -> tuple[str, dict[str, int]]:
    """The result without a fault, and how often each thread of the command makes each call, at most."""
    with tempfile.TemporaryDirectory() as temporary:
        folder, log = Path(temporary) / "work", Path(temporary) / "log"
        shutil.copytree(template, folder)
        calls = ",".join(sorted({*DURABLE_CALLS, *WRITE_CALLS}))
        process = run(scenario.command, folder, *STRACE, "-e", f"trace={calls}", "-o", str(log))
        if process.returncode:
            raise SystemExit(f"error: {scenario.name} fails without a fault: {process.stderr.strip()[-300:]}")
        counts: dict[tuple[str, str], int] = {}
        for line in log.read_text().splitlines():
            if match := re.match(r"(\d+) +(\w+)\(", line):
                counts[match.groups()] = counts.get(match.groups(), 0) + 1  # type: ignore[index, arg-type]
        max_counts: dict[str, int] = {}
        for (_, call), count in counts.items():
            max_counts[call] = max(max_counts.get(call, 0), count)
        return scenario.result(folder), max_counts


def faults(counts: dict[str, int]) -> list[Fault]:
    """Every fault of a command that makes so many calls."""
    calls = [*DURABLE_CALLS, *(call for call in WRITE_CALLS if call not in DURABLE_CALLS)]
    kills = [Fault(call, nth, True) for call in calls for nth in range(1, counts.get(call, 0) + 1)]
    full = [Fault(call, nth, False) for call in WRITE_CALLS for nth in range(1, counts.get(call, 0) + 1)]
    return kills + full


def inject(scenario: Scenario, fault: Fault, *, template: Path, expected: str) -> str | None:
    """Inject a fault and finish the work; returns what is wrong, "" if the fault was not reached, or None."""
    # A killed process may still end a write while the folder is removed.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as temporary:
        folder = Path(temporary) / "work"
        shutil.copytree(template, folder)
        trace = (*STRACE, "-e", f"trace={fault.call}", "-e", f"inject={fault.injection}", "-o", os.devnull)
        try:
            process = run(scenario.command, folder, *trace)
            if problem := _exit_problem(process, fault):
                return problem
            if process.returncode == 0:
                if scenario.result(folder) != expected:
                    return "it ends with exit code 0, but its result is another"
                if fault.kills:
                    return NOT_REACHED
            scenario.usable(folder)
            finish = run(scenario.finish(folder), folder)
            if finish.returncode:
                return f"the work cannot be finished: {finish.stderr.strip()[-300:]}"
            result = scenario.result(folder)
        except subprocess.TimeoutExpired:
            return f"takes longer than {SECONDS} s"
        except Exception as error:  # noqa: BLE001  (it is reported)
            return f"{type(error).__name__}: {error}"
        return None if result == expected else "the result is another than without the fault"


def _exit_problem(process: subprocess.CompletedProcess[str], fault: Fault) -> str | None:
    if "Traceback" in process.stderr:
        return f"a traceback: {process.stderr.strip()[-300:]}"
    if fault.kills or process.returncode in (0, -9, 137):
        return None
    lines = [line for line in process.stderr.splitlines() if line.startswith("error: ")]
    # If standard error is on the full disk too, there is no line.
    if len(lines) > 1 or (not lines and fault.call not in ("write", "writev")):
        return f"exit code {process.returncode} with {len(lines)} lines of error: {process.stderr.strip()[-300:]}"
    return None


# --- scenarios -------------------------------------------------------------------------------------------------------


def write_documents(folder: Path, towns: Sequence[str] = TOWNS, year: int = 1800) -> None:
    """A page a town."""
    folder.mkdir(exist_ok=True)
    for number, town in enumerate(towns):
        page = (
            f"# {town}\n\nThe mill in {town} was built in {year + number} by the miller's guild of the valley.\n\n"
            f"## Water\n\nThe canal of {town} is {number + 3} miles long. Nora Finch runs the ferry at {town}.\n"
        )
        (folder / f"{town}.md").write_text(page)


def _build_index(folder: Path) -> None:
    write_documents(folder / "docs")
    rag.build_index(folder / "docs", folder / "x.index")


def _change_documents(folder: Path) -> None:
    _build_index(folder)
    write_documents(folder / "docs", TOWNS[:3], 1900)
    (folder / "docs" / "Arlen.md").unlink()
    (folder / "docs" / "New.md").write_text("# New\n\nThe lighthouse of New was lit in 1850 for the first time.\n")


def _write_more(folder: Path) -> None:
    _build_index(folder)
    write_documents(folder / "more", ("Kirby", "Lowick", "Marden"), 1700)


def _build_two(folder: Path) -> None:
    for name, towns in (("one", TOWNS[:5]), ("two", TOWNS[5:])):
        write_documents(folder / name, towns)
        rag.build_index(folder / name, folder / f"{name}.index", retrievers=["static"])


def _questions(folder: Path) -> None:
    _build_index(folder)
    rows = [{"id": f"{t}{n}", "question": q.format(t=t)} for t in TOWNS[:4] for n, q in enumerate(QUESTIONS)]
    (folder / "q.jsonl").write_text("".join(dumps(row) + "\n" for row in rows))


def _answer_questions(folder: Path) -> None:
    _questions(folder)
    index = rag.open_index(folder / "x.index")
    answer_file(folder / "q.jsonl", folder / "given.jsonl", rag.open_system("extractive", index), index)


def _write_recipe(folder: Path) -> None:
    """A network with random weights, and a recipe that trains it for a few steps."""
    from tests.tiny import tiny_bert

    _build_index(folder)
    pages = [path.read_text() for path in sorted((folder / "docs").iterdir())]
    base = tiny_bert(folder / "base", pages)
    rows = [f"when was the mill in {town} built by the guild\t['{1800 + n}']\n" for n, town in enumerate(TOWNS)]
    (folder / "asked.txt").write_text("".join(rows))
    (folder / "recipe.toml").write_text(
        f'name = "tiny"\nkind = "reader"\nseed = 1\nbase = "base"\n'
        f'base_sha256 = "{sha256_file(base / "model.safetensors")}"\n'
        "depth = 8\nothers = 2\nleast = -1.0\nheld_out = []\n"
        '[questions]\n"asked.txt" = 1\n[labelled]\n[schedule]\nrate = 1e-3\nbatch = 6\nwarm_up = 2\ndecay = 0.5\n'
    )


def _model(folder: Path) -> str:
    """Every file of the model, and what its record says except how long things took."""
    return _digest({path.name: sha256_file(path) for path in sorted((folder / "model").iterdir()) if path.is_file()})


def _index(folder: Path) -> str:
    """Every passage of the index, its answers to a search, and that it is whole and alone in its folder."""
    index = rag.open_index(folder / "x.index")
    hits = [hit.passage.id for hit in rag.search("the canal and the mill", index=index, k=10)]
    rows = sorted(str(passage) for passage in index.store.scan())
    leftovers = sorted(path.name for path in (folder / "x.index").iterdir() if path.name.startswith(".rag-build"))
    parts = sorted(path.name for path in (folder / "x.index").glob(".rag-build-*/parts/*"))
    return _digest(rows, hits, rag.verify_index(folder / "x.index"), len(leftovers), parts)


def _searchable(folder: Path) -> None:
    """The index answers, with its old or its new passages."""
    if not rag.search("the ferry", index=folder / "x.index"):
        raise AssertionError("the index finds nothing")


def _answers_if_published(folder: Path) -> None:
    """The index answers from the moment that it has a manifest, with or without its vectors."""
    if (folder / "x.index" / "manifest.json").exists():
        _searchable(folder)
        rag.ask(QUESTIONS[0].format(t=TOWNS[0]), folder / "x.index")


def _benchmark(folder: Path) -> None:
    _build_index(folder)
    rows = [{"id": t, "question": QUESTIONS[0].format(t=t), "answers": ["18"]} for t in TOWNS[:3]]
    (folder / "q.jsonl").write_text("".join(dumps(row) + "\n" for row in rows))
    (folder / "towns.toml").write_text(
        'name = "towns"\nversion = 1\ndescription = "Towns"\nlicence = "ours"\nclosed_pool = true\nk = 3\n'
        f'right = "answer_in_text"\n[questions]\nfile = "q.jsonl"\ncount = {len(rows)}\n'
        f'sha256 = "{sha256_file(folder / "q.jsonl")}"\n[corpus]\nfolder = "docs"\n'
    )


def _run_digest(folder: Path) -> str:
    """Every row of the run without its times, and the metrics without what says how they were made."""
    home = folder / "RUN" / "extractive"
    rows = [_rows(f"RUN/extractive/{name}.jsonl")(folder) for name in ("answers", "judgements", "items")]
    metrics = json.loads((home / "metrics.json").read_text("utf-8"))
    leftovers = sorted(path.name for path in (folder / "RUN").rglob(".*") if path.name != ".lock")
    return _digest(rows, {key: metrics[key] for key in ("ways", "metrics", "n")}, leftovers)


def _label_answers(folder: Path) -> None:
    """A collection, and its answers with labels."""
    _questions(folder)
    collection = build_collection(folder / "C", folder / "q.jsonl", systems=["extractive"], index=folder / "x.index",
                            retriever="bm25")  # fmt: skip
    answers = (replace(answer, informative=True, attributable=False) for answer in collection.answers())
    (folder / "labels.jsonl").write_text("".join(f"{line}\n" for line in write_answers(answers)))


def _collection(folder: Path) -> str:
    """Every file of the collection and of its journals, but not the records of which command began them."""
    paths = [path for path in sorted((folder / "C").rglob("*")) if path.is_file()]
    paths = [path for path in paths if path.name != ".lock" and not path.name.endswith(".run.json")]
    return _digest({str(path.relative_to(folder)): sha256_file(path) for path in paths})


def _check_sums(folder: Path) -> None:
    """The files of the collection are those of its checksums."""
    home = open_collection(folder / "C").folder
    for line in (home / "SHA256SUMS").read_text().splitlines():
        digest, name = line.split("  ")
        if sha256_file(home / name) != digest:
            raise AssertionError(f"{name} is not that of SHA256SUMS")


def _rows(name: str) -> Callable[[Path], str]:
    def read(folder: Path) -> str:
        rows = [json.loads(line) for line in (folder / name).read_text("utf-8").splitlines()]
        return _digest([{key: value for key, value in row.items() if key != "seconds"} for row in rows])

    return read


def _report(folder: Path) -> str:
    report = json.loads((folder / "report.json").read_text("utf-8"))
    return _digest([value for key, value in report.items() if key != "provenance"], _rows("judged.jsonl")(folder))


def _run(folder: Path) -> str:
    return _digest((folder / "run.trec").read_text("utf-8"))


def _digest(*values: Any) -> str:  # noqa: ANN401  (JSON)
    return hashlib.sha256(dumps(list(values)).encode()).hexdigest()


def _finish_build(folder: Path) -> Sequence[str]:
    """The command again, unless it had come to its end: an index that is complete is an error."""
    is_published = (folder / "x.index" / "manifest.json").exists()
    return UPDATE if is_published and not missing_retrievers(rag.open_index(folder / "x.index")) else BUILD


def _finish_add(folder: Path) -> Sequence[str]:
    """The command again, unless it had come to its end: a source that the index has is an error."""
    names = {Path(record.name).name for record in files_of(folder / "x.index")}
    return UPDATE if "Kirby.md" in names else ADD


def _finish_remove(folder: Path) -> Sequence[str]:
    """The command again, unless it had come to its end: a file that is not in the index is an error.

    An update then clears what was left of the old build.
    """
    names = {record.name for record in files_of(folder / "x.index")}
    return REMOVE if "Bexley.md" in names else UPDATE


def _resume(name: str, command: Sequence[str]) -> Callable[[Path], Sequence[str]]:
    """The command again, with --resume if there is something to resume."""
    return lambda folder: [*command, "--resume"] if (folder / name).exists() else command


BUILD = ("rag", "index", "build", "docs", "--to", "x.index")
ADD = ("rag", "index", "add", "x.index", "more")
REMOVE = ("rag", "index", "remove", "x.index", "Bexley.md", "Corvo.md")
UPDATE = ("rag", "index", "update", "x.index")
MERGE = ("rag", "index", "merge", "one.index", "two.index", "--to", "x.index")
PART = ("rag", "index", "build", "--to", "x.index", "--retriever", "static")
ANSWER = ("rag", "answer", "q.jsonl", "--system", "extractive", "--index", "x.index", "--out", "a.jsonl")
ATTRIBUTE = ("rag", "attribute", "given.jsonl", "--index", "x.index", "--judge", "lexical", "--out", "b.jsonl")
SCORE = ("autoais", "score", "given.jsonl", "--judge", "lexical", "--cache", "cache.jsonl", "--out", "judged.jsonl",
         "--report", "report.json")  # fmt: skip
TRAIN = ("rag", "train", "recipe.toml", "--index", "x.index", "--data", ".", "--out", "model", "--short")
BENCH = ("rag", "bench", "run", "towns.toml", "--data", ".", "--index", "x.index", "--system", "extractive",
         "--judge", "lexical", "--out", "RUN")  # fmt: skip
COLLECT = ("rag", "collect", "build", "C", "--questions", "q.jsonl", "--system", "extractive", "--index", "x.index",
           "--retriever", "bm25")  # fmt: skip
PACK = ("rag", "collect", "pack", "C", "--answers", "labels.jsonl")
SEARCH = ("rag", "search", "--questions", "q.jsonl", "--index", "x.index", "--run", "run.trec")

SCENARIOS = (
    Scenario("build", lambda f: write_documents(f / "docs"), BUILD, _finish_build, _index, _answers_if_published),
    Scenario("add", _write_more, ADD, _finish_add, _index, _searchable),
    Scenario("remove", _build_index, REMOVE, _finish_remove, _index, _searchable),
    Scenario("update", _change_documents, UPDATE, lambda f: UPDATE, _index, _searchable),
    Scenario("merge", _build_two, MERGE, lambda f: [*MERGE, "--replace"], _index),
    Scenario("part", _build_index, PART, lambda f: PART, _index, _searchable),
    Scenario("answer", _questions, ANSWER, _resume("a.jsonl", ANSWER), _rows("a.jsonl")),
    Scenario("attribute", _answer_questions, ATTRIBUTE, _resume("b.jsonl", ATTRIBUTE), _rows("b.jsonl")),
    Scenario("score", _answer_questions, SCORE, lambda f: SCORE, _report),
    Scenario("search", _questions, SEARCH, lambda f: SEARCH, _run),
    Scenario("bench", _benchmark, BENCH, _resume("RUN/run.json", BENCH), _run_digest),
    Scenario("collect", _questions, COLLECT, _resume("C/collection.json", COLLECT), _collection),
    Scenario("pack", _label_answers, PACK, lambda f: PACK, _collection, _check_sums),
    Scenario("train", _write_recipe, TRAIN, lambda f: TRAIN, _model, max_faults=60),
)


def trials(
    sample: int | None, seed: int, only: Sequence[str] = (), jobs: int = 1
) -> Iterator[tuple[Scenario, Fault, str | None]]:
    """Yield each scenario and fault with what `inject` returns."""
    for scenario in SCENARIOS:
        if only and scenario.name not in only:
            continue
        with tempfile.TemporaryDirectory() as temporary:
            template = Path(temporary) / "made"
            template.mkdir()
            scenario.prepare(template)
            expected, calls = run_without_fault(scenario, template)
            selection = faults(calls)
            limit = min(number for number in (sample, scenario.max_faults, len(selection)) if number is not None)
            selection = random.Random(f"{seed} {scenario.name}").sample(selection, limit)
            print(f"{scenario.name}: {limit} faults ...", flush=True)
            with ThreadPoolExecutor(jobs) as pool:
                problems = pool.map(partial(inject, scenario, template=template, expected=expected), selection)
                yield from zip(repeat(scenario), selection, problems, strict=False)


def main() -> None:
    """Run the trials, print what was wrong, and write the counts to --out."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, help="faults of each scenario (default: all)")
    parser.add_argument("--seed", type=int, default=13)
    parser.add_argument("--only", action="append", default=[], help="a scenario; repeatable")
    parser.add_argument("--jobs", type=int, default=2, help="faults at once (default: 2)")
    parser.add_argument("--out", type=Path, help="report (json)")
    options = parser.parse_args()
    if shutil.which("strace") is None:
        raise SystemExit("error: strace is missing: apt-get install strace")
    counts: dict[str, dict[str, int]] = {}
    failures = []
    for scenario, fault, problem in trials(options.sample, options.seed, options.only, options.jobs):
        row = counts.setdefault(scenario.name, {"kills": 0, "full disks": 0, "not reached": 0, "failed": 0})
        row["not reached" if problem == NOT_REACHED else "kills" if fault.kills else "full disks"] += 1
        if problem:
            row["failed"] += 1
            failures.append(f"{scenario.name}, {fault.injection}: {problem}")
            print(failures[-1], flush=True)
    total = sum(row["kills"] + row["full disks"] for row in counts.values())
    print(f"{total:,} faults, {len(failures)} failed")
    for name, row in counts.items():
        print(f"{name}: {', '.join(f'{count} {kind}' for kind, count in row.items())}")
    if options.out is not None:
        result = {"faults": total, "failed": failures, "scenarios": counts, "provenance": provenance({})}
        write_atomic(options.out, [dumps(result, indent=2)])
    raise SystemExit(1 if failures else 0)


if __name__ == "__main__":
    main()
