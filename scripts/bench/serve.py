"""Users at once on `rag serve`: throughput against a loop in one process, overhead of a request, memory.

    python -m scripts.bench.serve --out eval/results/serve.json [--index DIR] [--questions FILE] [--stage NAME]

Throughput: USERS connections send the next question as soon as they have an answer; the same questions go through the
library in a loop, in a process of its own. Both take turns, ROUNDS times. Overhead: one user, each question once by
HTTP and once by the library, in turns; the median of the differences. Memory: the resident size of the server after
1,000 and after SOAK further requests. Questions are those of a file, or one about each section of the handbook. The
client is one thread that parses nothing but the length; it runs on the same cores. Throughput and overhead should be
measured when nothing else runs; memory takes half an hour and may share the machine. Each stage is written when it is
done, into what the file has of the others.
"""

import asyncio
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import cycle, islice
from pathlib import Path
from typing import Annotated, Any

import typer

from autoais.io.jsonl import dumps, round_floats, write_atomic
from autoais.io.provenance import processor, provenance
from autoais.questions import read_questions
from rag.index.index import Index
from rag.index.open import open_index
from rag.systems import open_system

ROOT = Path(__file__).parents[2]
_BARS: dict[str, Callable[[dict[str, Any]], bool]] = {  # whether it is missed
    "throughput": lambda found: found["share"] < 0.9,
    "overhead": lambda found: found["difference_ms"] > 15,
    "memory": lambda found: found["growth"] > 0.05,
}
_WARM = 10  # questions before anything is measured
_AFTER = 1_000  # requests after which memory is measured first
_FOLDER = {"PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "eval")))}

LOOP = """
import json, sys, time
from pathlib import Path
from rag.index.open import open_index
from rag.systems import open_system
index, system, warm, *questions = json.load(sys.stdin)
opened = open_system(system, open_index(Path(index) if index else None))
for question in questions[:warm]:
    opened.ask(question)
began = time.perf_counter()
for question in questions:
    opened.ask(question)
print(time.perf_counter() - began)
"""


def questions_of(index: Index, file: Path | None) -> list[str]:
    """The questions of a file, or one about each section of the index."""
    if file is not None:
        return [question.text for question in read_questions(file)]
    headings = dict.fromkeys(passage.headings for passage in index.store.scan())
    return [f"What is said about {heading}?" for heading in headings]


# --- the server and its clients -----------------------------------------------------------------------------------


class Server:
    """`rag serve` in a process of its own."""

    def __init__(self, index: Path | None, system: str, workers: int | None) -> None:
        options = [] if index is None else ["--index", f"bench={index}"]
        options += [] if workers is None else ["--workers", str(workers)]
        command = [
            sys.executable,
            "-m",
            "rag",
            "serve",
            "--port",
            "0",
            "--seconds",
            "600",
            "--system",
            system,
            *options,
        ]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ | _FOLDER)
        assert self.process.stdout is not None
        found = (line for line in self.process.stdout if line.startswith("http://"))
        self.port = int(next(found).rpartition(":")[2])

    def memory(self) -> float:
        """Resident MB."""
        pages = Path(f"/proc/{self.process.pid}/statm").read_text("utf-8").split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE") / 1e6

    def seconds(self) -> float:
        """CPU seconds so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text("utf-8").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def serving(index: Path | None, system: str, workers: int | None) -> Iterator[Server]:
    """A server, which is told to stop at the end."""
    server = Server(index, system, workers)
    try:
        yield server
    finally:
        server.process.terminate()
        server.process.wait(timeout=30)


class Connection:
    """A user's connection, which stays open."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def open(cls, port: int) -> "Connection":
        """Connect."""
        return cls(*await asyncio.open_connection("127.0.0.1", port, limit=1 << 20))

    async def ask(self, question: str) -> float:
        """Ask, read the answer, and return the seconds it took; raises `RuntimeError` for a status above 400."""
        body = json.dumps({"question": question}).encode()
        head = (
            f"POST /v1/ask HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
        )
        began = time.perf_counter()
        self._writer.write(head.encode() + b"\r\n\r\n" + body)
        told = await self._reader.readuntil(b"\r\n\r\n")
        length = int(told.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
        answer = await self._reader.readexactly(length)
        if not told.startswith((b"HTTP/1.1 200", b"HTTP/1.1 400")):  # 400: no content word
            raise RuntimeError(f"{told[:30]!r} {answer[:200]!r}")
        return time.perf_counter() - began

    def close(self) -> None:
        """Hang up."""
        self._writer.close()


async def together(port: int, users: int, questions: Sequence[str]) -> tuple[float, list[float]]:
    """The seconds in all, and of each request, of users who share the questions."""
    left, seconds = iter(questions), []

    async def user() -> None:
        connection = await Connection.open(port)
        for question in left:
            seconds.append(await connection.ask(question))
        connection.close()

    began = time.perf_counter()
    await asyncio.gather(*(user() for _ in range(users)))
    return time.perf_counter() - began, seconds


# --- what is measured ---------------------------------------------------------------------------------------------


def looped(index: Path | None, system: str, questions: Sequence[str]) -> float:
    """The seconds that the questions take in a loop, in a process of its own."""
    given = json.dumps([index and str(index), system, _WARM, *questions])
    command = [sys.executable, "-c", LOOP]
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=True, env=os.environ | _FOLDER)
    return float(done.stdout)


def throughput(
    server: Server, index: Path | None, system: str, users: int, questions: Sequence[str], rounds: int
) -> dict[str, Any]:
    """Questions a second of both, and what users wait."""
    asyncio.run(together(server.port, users, questions[:_WARM]))
    loops, served, waited = [], [], []
    cpu = 0.0
    for _ in range(rounds):
        loops.append(len(questions) / looped(index, system, questions))
        before = server.seconds()
        seconds, each = asyncio.run(together(server.port, users, questions))
        cpu += server.seconds() - before
        served.append(len(questions) / seconds)
        waited += each
    waited.sort()
    return {
        "users": users,
        "questions": len(questions),
        "loop_per_second": loops,
        "served_per_second": served,
        "share": statistics.median(served) / statistics.median(loops),
        "server_cpu_ms_per_question": 1000 * cpu / (rounds * len(questions)),
        "wait_ms": {
            "median": 1000 * statistics.median(waited),
            "p95": 1000 * waited[int(0.95 * (len(waited) - 1))],
            "max": 1000 * waited[-1],
        },
    }


def overhead(server: Server, index: Index, system: str, questions: Sequence[str]) -> dict[str, float]:
    """Milliseconds of one user by HTTP and by the library, and the median of the differences."""
    opened = open_system(system, index)
    for question in questions[:_WARM]:
        opened.ask(question)

    async def measured() -> list[tuple[float, float]]:
        connection = await Connection.open(server.port)
        for question in questions[:_WARM]:
            await connection.ask(question)
        found = []
        for question in questions:
            served = await connection.ask(question)
            began = time.perf_counter()
            opened.ask(question)
            found.append((1000 * served, 1000 * (time.perf_counter() - began)))
        connection.close()
        return found

    pairs = asyncio.run(measured())
    return {
        "questions": len(pairs),
        "served_ms": statistics.median(one for one, _ in pairs),
        "library_ms": statistics.median(other for _, other in pairs),
        "difference_ms": statistics.median(one - other for one, other in pairs),
    }


def soaked(server: Server, users: int, questions: Sequence[str], soak: int) -> dict[str, float]:
    """Resident MB of the server after some requests and after many more."""
    endless = cycle(questions)
    asyncio.run(together(server.port, users, list(islice(endless, _AFTER))))
    first = server.memory()
    asyncio.run(together(server.port, users, list(islice(endless, soak))))
    last = server.memory()
    return {"requests": soak, "first_mb": first, "last_mb": last, "growth": last / first - 1}


def main(
    out: Annotated[Path | None, typer.Option(help="Output file (json).")] = None,
    index: Annotated[Path | None, typer.Option(help="Index folder (default: the handbook).")] = None,
    questions: Annotated[Path | None, typer.Option(help="Questions (default: one about each section).")] = None,
    system: Annotated[str, typer.Option(help="System that answers.")] = "reader",
    users: Annotated[int, typer.Option(help="Users at once.")] = 32,
    asked: Annotated[int, typer.Option(help="Questions of a round.")] = 400,
    rounds: Annotated[int, typer.Option(help="Rounds.")] = 3,
    soak: Annotated[int, typer.Option(help="Requests between the two measurements of memory.")] = 9_000,
    workers: Annotated[int | None, typer.Option(help="Workers of the server (default: its own).")] = None,
    stage: Annotated[list[str] | None, typer.Option(help="throughput, overhead or memory (default: all).")] = None,
) -> None:
    """Measure, print, and write to --out; exits with 1 if a bar is missed."""
    opened = open_index(index)
    every = questions_of(opened, questions)
    some = list(islice(cycle(every), asked))
    about = {
        "processor": processor(),
        "cores": os.cpu_count(),
        "index": opened.name,
        "checksum": opened.manifest["checksum"],
        "passages": opened.manifest["passages"],
        "system": system,
    }
    result: dict[str, Any] = json.loads(out.read_text("utf-8")) if out is not None and out.exists() else {}
    inputs = {} if questions is None else {"questions": questions}
    missed = False
    with serving(index, system, workers) as server:
        stages: dict[str, Callable[[], dict[str, Any]]] = {
            "throughput": lambda: throughput(server, index, system, users, some, rounds),
            "overhead": lambda: overhead(server, opened, system, some[:200]),
            "memory": lambda: soaked(server, users, every, soak),
        }
        for name in stage or stages:
            measured = stages[name]()
            missed |= _BARS[name](measured)
            result[name] = about | measured | {"provenance": provenance(inputs)}
            print(dumps(round_floats({name: result[name]}, 4), indent=2))
            if out is not None:
                write_atomic(out, [dumps(round_floats(result, 4), indent=2)])
    if missed:
        raise SystemExit(1)


if __name__ == "__main__":
    typer.run(main)
