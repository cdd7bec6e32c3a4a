"""Feeds broken inputs to what reads files, questions and replies: `make long-tests`.

    python -m scripts.fuzz [--cases N] [--seed N] [--only TARGET] [--case N] [--out REPORT]

`scripts/fuzzing/targets.py` lists the readers and their valid inputs; `scripts/fuzzing/mutations.py` breaks these. A
reader may accept a case, or refuse it with a `UserError`. All else is a finding: another exception, a wrong result,
more than 15 seconds, more than 1 GiB of memory, a crash. Cases run in worker processes, which are killed when a case
takes too long. A case depends on the seed, the target and its number only: `--only TARGET --case N` repeats it.
"""

import argparse
import multiprocessing
import os
import random
import re
import resource
import signal
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import chain
from multiprocessing.connection import Connection
from pathlib import Path

from autoais.base.errors import UserError
from autoais.base.io.jsonl import dumps, write_atomic
from autoais.base.io.provenance import provenance
from scripts.fuzzing.mutations import mutate
from scripts.fuzzing.targets import TARGETS, Case, Target

ROOT = Path(__file__).parents[1]
MAX_START_SECONDS = 120.0  # in which a worker loads modules and feeds the valid inputs
ACCEPTANCE, REFUSAL = "accepted", "refused"


@dataclass(frozen=True)
class Limits:
    """Seconds and bytes of a case, and bytes of address space of a worker."""

    seconds: float = 15.0  # a document has 9 s of processor time, and the machine is busy
    memory: int = 1 << 30
    addresses: int = 3 << 30  # so that a bomb ends its worker and not the machine


@dataclass(frozen=True)
class Result:
    """What became of a case: `accepted`, `refused`, or what is wrong."""

    target: str
    case: int
    outcome: str

    @property
    def is_finding(self) -> bool:
        """Whether something is wrong."""
        return self.outcome not in (ACCEPTANCE, REFUSAL)


# --- in a worker -----------------------------------------------------------------------------------------------------


def work(pipe: Connection, target: Target, seed: int, limits: Limits) -> None:
    """Feed the valid inputs and send what became of them, then run the cases whose numbers arrive."""
    os.setsid()  # killed together with processes of its own
    resource.setrlimit(resource.RLIMIT_AS, (limits.addresses, resource.getrlimit(resource.RLIMIT_AS)[1]))
    os.environ |= {"RAG_OFFLINE": "1", "HF_HUB_OFFLINE": "1", "RAG_CONFIG": os.devnull}
    os.environ.pop("OPENAI_BASE_URL", None)
    for kind in (UserWarning, RuntimeWarning, SyntaxWarning):  # people would see them
        warnings.simplefilter("error", kind)
    with tempfile.TemporaryDirectory() as temporary:
        os.chdir(temporary)
        seeds = target.seeds
        for name, data in seeds:
            outcome = feed(replace(target, refuses=False), name, data, random.Random(0))
            pipe.send(outcome if outcome == ACCEPTANCE else f"the valid seed {name!r} is not accepted: {outcome}")
        pipe.send("")
        peak = _peak()
        while (case := pipe.recv()) is not None:
            rng = random.Random(f"{seed} {target.name} {case}")
            name, data = rng.choice(seeds)
            outcome = feed(target, name, mutate(data, [sample for _, sample in seeds], rng), rng)
            if _peak() > max(limits.memory, peak):
                outcome = f"takes {_peak() >> 20:,} MiB of memory ({outcome})"
            peak = max(peak, _peak())
            pipe.send(outcome)


def feed(target: Target, name: str, data: bytes, rng: random.Random) -> str:
    """What became of an input: `accepted`, `refused`, or what is wrong."""
    # Threads of an index may still tidy up.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        try:
            target.feed(Case(name, data, Path(folder), rng))
        except UserError as error:
            message = str(error)
            if not message.strip() or "\n" in message:
                return f"an error of {message.count(chr(10)) + 1} lines: {message[:300]!r}"
            return REFUSAL if target.refuses else f"refused: {message[:200]!r}"
        except (Exception, SystemExit) as error:  # noqa: BLE001  (it is reported)
            frames = traceback.extract_tb(error.__traceback__)
            frame = [frame for frame in frames if frame.filename.startswith(str(ROOT))][-1]
            return f"{type(error).__name__}: {str(error)[:200]!a} at {frame.filename}:{frame.lineno}"
    return ACCEPTANCE


def _peak() -> int:
    """The most bytes that this process, or a child of it that has ended, had in memory.

    Not `ru_maxrss` of this process, which begins with that of the process that started it.
    """
    line = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text("ascii"))
    return 1024 * max(int(line[1]) if line else 0, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)


# --- outside ---------------------------------------------------------------------------------------------------------


class Worker:
    """A process that runs cases of a target; after a crash or a timeout, a new one is started."""

    def __init__(self, target: Target, seed: int, limits: Limits) -> None:
        self._target, self._seed, self._limits = target, seed, limits
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, pipe = context.Pipe()
        arguments = (pipe, self._target, self._seed, self._limits)
        self._process = context.Process(target=work, args=arguments, daemon=False)
        self._process.start()
        pipe.close()
        while message := self._receive(MAX_START_SECONDS):
            if message != ACCEPTANCE:
                self.stop()
                raise SystemExit(f"error: {self._target.name}: {message}")

    def _receive(self, seconds: float) -> str:
        if not self._pipe.poll(seconds):
            return f"takes longer than {seconds:g} s"
        try:
            return str(self._pipe.recv())
        except (EOFError, ConnectionError):
            self._process.join()
            return f"the process ended with {self._process.exitcode}"

    def run(self, case: int) -> str:
        """What became of a case; a late case is run twice, as the machine may have been busy."""
        outcome = self._try(case)
        return self._try(case) if outcome.startswith("takes longer") else outcome

    def _try(self, case: int) -> str:
        self._pipe.send(case)
        outcome = self._receive(self._limits.seconds)
        if outcome.startswith(("takes", "the process", "MemoryError")):
            self.stop()
            self._start()
        return outcome

    def stop(self) -> None:
        """End the process and those that it started."""
        try:
            os.killpg(self._process.pid or 0, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):  # it has no group of its own yet
            self._process.kill()
        self._process.join()
        self._pipe.close()


def run_target(target: Target, cases: Sequence[int], seed: int, limits: Limits = Limits()) -> Iterator[Result]:
    """Yield the result of each case of a target."""
    worker = Worker(target, seed, limits)
    try:
        for case in cases:
            yield Result(target.name, case, worker.run(case))
    finally:
        worker.stop()


def run(cases: int, seed: int, only: Sequence[str] = (), workers: int = 2) -> Iterator[Result]:
    """Yield the results of so many cases, spread evenly over the targets."""
    targets = [target for target in TARGETS if not only or target.name in only]

    def run_share(number: int) -> list[Result]:
        results = []
        for result in run_target(targets[number], range(len(range(number, cases, len(targets)))), seed):
            if result.is_finding:
                print(f"--only {result.target} --case {result.case}: {result.outcome}", flush=True)
            results.append(result)
        return results

    with ThreadPoolExecutor(workers) as pool:
        yield from chain.from_iterable(pool.map(run_share, range(min(len(targets), cases))))


def main() -> None:
    """Run the cases, print the findings, and write the counts to --out."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=20_000, help="of all targets together")
    parser.add_argument("--seed", type=int, default=13)
    parser.add_argument("--only", action="append", default=[], choices=[target.name for target in TARGETS])
    parser.add_argument("--case", type=int, help="this case alone, of the target that --only names")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--out", type=Path, help="report (json)")
    options = parser.parse_args()
    if options.case is not None:
        if len(options.only) != 1:
            parser.error("--case needs one --only")
        (target,) = (target for target in TARGETS if target.name in options.only)
        (result,) = run_target(target, [options.case], options.seed)
        print(result.outcome)
        raise SystemExit(1 if result.is_finding else 0)
    counts: dict[str, Counter[str]] = {}
    findings = []
    for result in run(options.cases, options.seed, options.only, options.workers):
        row = counts.setdefault(result.target, Counter(cases=0, accepted=0, refused=0, findings=0))
        row["cases"] += 1
        row["findings" if result.is_finding else result.outcome] += 1
        if result.is_finding:
            findings.append({"target": result.target, "case": result.case, "outcome": result.outcome})
    total = sum(row["cases"] for row in counts.values())
    print(f"{total:,} cases, {len(findings)} findings")
    for name, row in counts.items():
        print(f"{name}: {row['accepted']:,} accepted, {row['refused']:,} refused, {row['findings']:,} findings")
    if options.out is not None:
        report = {"cases": total, "seed": options.seed, "findings": findings, "targets": counts}
        write_atomic(options.out, [dumps(report | {"provenance": provenance({})}, indent=2)])
    raise SystemExit(1 if findings else 0)


if __name__ == "__main__":
    main()
