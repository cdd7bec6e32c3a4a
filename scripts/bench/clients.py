"""Compares how many questions a second two checkouts serve, and watches the memory of the newer one.

    git worktree add ../old 2449ce1f
    python -m scripts.bench.clients ../old --out eval/results/clients.json

Starts `rag serve` of this checkout and of the other one, with the handbook and the default system, and asks both the
same questions from 1, 4, 16 and 64 clients, in turns. The ratios are those of one run on one machine. Then this server
is asked until it has answered 2,000 questions; `memory` has its resident memory after each 100.
"""

import argparse
import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from itertools import cycle, islice
from pathlib import Path
from statistics import median
from typing import Any

from autoais.base.io.provenance import processor, provenance
from scripts.results import tell

ROOT = Path(__file__).parents[2]
QUESTIONS = ROOT / "eval" / "benchmarks" / "handbook" / "questions.jsonl"
CLIENTS = (1, 4, 16, 64)
ROUNDS = 2
ROUND_SIZE = 96  # questions
MEMORY_QUESTIONS = 2000  # during which the memory is measured
_START = 120  # seconds that a server may take to start


class Server:
    """A running server of a checkout."""

    def __init__(self, process: "subprocess.Popen[bytes]", port: int) -> None:
        self._process, self._port = process, port
        self.answered = 0

    def ask(self, question: str) -> None:
        """Ask a question; raises `OSError` unless it is answered."""
        body = json.dumps({"question": question}).encode()
        request = urllib.request.Request(
            f"http://127.0.0.1:{self._port}/v1/ask", body, {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=120) as reply:
            json.load(reply)
        self.answered += 1

    def rate(self, questions: Sequence[str], clients: int) -> float:
        """Return the questions a second with so many clients."""
        start = time.perf_counter()
        with ThreadPoolExecutor(clients) as pool:
            list(pool.map(self.ask, questions))
        return len(questions) / (time.perf_counter() - start)

    def megabytes(self) -> float:
        """Return the resident memory of the server and its children."""
        pids = [self._process.pid]
        children = Path(f"/proc/{pids[0]}/task/{pids[0]}/children").read_text("ascii").split()
        pages = sum(int(Path(f"/proc/{pid}/statm").read_text("ascii").split()[1]) for pid in [*pids, *children])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


@contextmanager
def serve(checkout: Path) -> Iterator[Server]:
    """Start the server of a checkout on a free port, and stop it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    path = os.pathsep.join(map(str, (checkout, checkout / "eval")))
    command = [sys.executable, "-m", "rag", "serve", "--port", str(port)]
    environment = {**os.environ, "PYTHONPATH": path, "RAG_CACHE": str(checkout / "work" / "cache")}
    with subprocess.Popen(
        command, cwd=checkout, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        try:
            deadline = time.monotonic() + _START
            while True:
                try:
                    with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5):
                        break
                except OSError:
                    if time.monotonic() > deadline or process.poll() is not None:
                        raise
                    time.sleep(0.2)
            yield Server(process, port)
        finally:
            process.terminate()


def main() -> None:
    """Measure, print, and write to --out."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=Path, help="the other checkout")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    questions = [json.loads(line)["question"] for line in QUESTIONS.read_text("utf-8").splitlines()]
    batch = list(islice(cycle(questions), ROUND_SIZE))
    commit = subprocess.run(
        ["git", "rev-parse", "--short=8", "HEAD"], cwd=options.old, check=True, capture_output=True, text=True
    ).stdout.strip()
    result: dict[str, Any] = {"processor": processor(), "old": commit, "questions_a_round": ROUND_SIZE, "clients": {}}
    with ExitStack() as stack:
        servers = {"old": stack.enter_context(serve(options.old.resolve())), "new": stack.enter_context(serve(ROOT))}
        for server in servers.values():
            server.rate(batch, 2)
        for clients in CLIENTS:
            rates: dict[str, list[float]] = {name: [] for name in servers}
            for _ in range(ROUNDS):
                for name, server in servers.items():
                    rates[name].append(server.rate(batch, clients))
            ratio = median(new / old for old, new in zip(rates["old"], rates["new"], strict=True))
            result["clients"][str(clients)] = {**rates, "new_by_old": ratio}
        new = servers["new"]
        memory = {str(new.answered): new.megabytes()}
        while new.answered < MEMORY_QUESTIONS:
            new.rate(batch, 4)
            memory[str(new.answered)] = new.megabytes()
    tell(result | {"memory": memory, "provenance": provenance({})}, options.out)


if __name__ == "__main__":
    main()
