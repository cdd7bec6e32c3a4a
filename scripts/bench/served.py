"""`--concurrency auto` beside fixed numbers, against a simulated model server.

    python -m scripts.bench.served [--seconds 60] [--batch 4 --batch 32] [--fixed 1 --fixed 8 ...] [--out FILE]

The server is a simulation, in a process of its own: it has no model, and its delays are sleeps. It generates replies
of 20 to 60 tokens as a GPU does with a batch: a token takes 20 ms for up to `batch` replies at once, and longer for
more (the power 1.1 of their number over the batch), so that all together become a little slower. Beyond four times the
batch it answers 429, with `Retry-After: 1`. Each run asks the system `closed-book:openai:stub` new questions for so
many seconds and waits for the last answers; the start, when `auto` still looks for its number, is part of the time.
"""

import asyncio
import heapq
import json
import math
import multiprocessing
import os
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Annotated, Any

import typer

from autoais.io.jsonl import dumps, round_floats, write_atomic
from autoais.io.provenance import processor, provenance
from autoais.models.pace import AUTO, Pace
from rag.index.open import open_index
from rag.systems import answer_each, open_system
from rag.types import Question

TOKEN = 0.02  # seconds
PROMPT = 5  # tokens whose time reading the prompt takes
SHORTEST, LONGEST = 20, 60  # tokens of a reply
SLOWER = 1.1
QUEUE = 4  # requests for each of the batch; more are refused
RETRY_AFTER = 1  # seconds


class Batch:
    """Replies that are generated at once, each a token at a time, at a speed that depends on their number."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._tokens, self._at = 0.0, 0.0  # generated for each reply since the start; the time of that count
        self._running: list[tuple[float, int, asyncio.Future[None]]] = []
        self._number = 0
        self._changed = asyncio.Event()

    @property
    def full(self) -> bool:
        """Whether the server refuses another request."""
        return len(self._running) >= QUEUE * self._size

    async def generate(self, tokens: int) -> None:
        """Wait until a reply of so many tokens is there."""
        self._advance()
        done = asyncio.get_running_loop().create_future()
        self._number += 1
        heapq.heappush(self._running, (self._tokens + tokens, self._number, done))
        self._changed.set()
        await done

    async def run(self) -> None:
        """End replies when they are due."""
        while True:
            self._advance()
            while self._running and self._running[0][0] <= self._tokens + 1e-6:
                heapq.heappop(self._running)[2].set_result(None)
            self._changed.clear()
            wait = (self._running[0][0] - self._tokens) * self._token() if self._running else None
            try:
                await asyncio.wait_for(self._changed.wait(), wait)
            except TimeoutError:
                continue

    def _token(self) -> float:
        """Seconds of a token now."""
        return TOKEN * math.pow(max(1.0, len(self._running) / self._size), SLOWER)

    def _advance(self) -> None:
        now = time.monotonic()
        if self._running:
            self._tokens += (now - self._at) / self._token()
        self._at = now


async def serve(size: int, port: Connection) -> None:
    """Answer chat completions until the process is ended."""
    batch = Batch(size)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(line for line in head.lower().splitlines() if line.startswith(b"content-length:"))
        asked = json.loads(await reader.readexactly(int(length.split(b":")[1])))
        if batch.full:
            status, more = "429 Too Many Requests", f"Retry-After: {RETRY_AFTER}\r\n"
            reply: dict[str, Any] = {"error": "full"}
        else:
            prompt = asked["messages"][-1]["content"]
            tokens = SHORTEST + sha256(prompt.encode()).digest()[0] % (LONGEST - SHORTEST + 1)
            await batch.generate(PROMPT + tokens)
            choice = {"message": {"content": "Answer: It is so.\nShort: so"}, "finish_reason": "stop"}
            usage = {"prompt_tokens": len(prompt) // 4, "completion_tokens": tokens}
            status, more, reply = "200 OK", "", {"choices": [choice], "usage": usage}
        body = json.dumps(reply).encode()
        writer.write(f"HTTP/1.1 {status}\r\n{more}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode())
        writer.write(body)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, backlog=1024)
    port.send(server.sockets[0].getsockname()[1])
    async with server:
        await batch.run()


def serving(size: int, port: Connection) -> None:
    """The process of the server."""
    asyncio.run(serve(size, port))


@contextmanager
def served(size: int) -> Iterator[None]:
    """Start a server, and let OPENAI_BASE_URL name it."""
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=serving, args=(size, there), daemon=True)
    process.start()
    os.environ["OPENAI_BASE_URL"] = f"http://127.0.0.1:{here.recv()}/v1"
    try:
        yield
    finally:
        process.terminate()
        process.join()


def measured(concurrency: str, seconds: float) -> dict[str, Any]:
    """Ask for so many seconds: tokens a second, shares of requests sent again and of failed rows, median seconds."""
    system, pace = open_system("closed-book:openai:stub", open_index(None)), Pace(concurrency)
    began = time.monotonic()

    def questions() -> Iterator[Question]:
        number = 0
        while time.monotonic() - began < seconds:
            number += 1
            yield Question(str(number), f"What is number {number}?")

    written, times, failed = 0, [], 0
    for answer, took in answer_each(system, questions(), pace):
        written += 0 if answer.failed else answer.trace["tokens"]["written"]
        failed += answer.failed
        times.append(took)
    found = pace.served
    assert found is not None
    return {
        "tokens_per_second": written / (time.monotonic() - began),
        "refused": found.again / found.requests,
        "failed": failed / len(times),
        "median_seconds": statistics.median(times),
        "at_once": found.at_once,
        "answers": len(times),
    }


def main(
    batch: Annotated[list[int], typer.Option(help="Replies that the server generates at full speed.")] = [4, 32],  # noqa: B006
    fixed: Annotated[list[int], typer.Option(help="Fixed number of questions at once.")] = [1, 2, 4, 8, 16, 32, 64],  # noqa: B006
    seconds: Annotated[float, typer.Option(help="Seconds of each run.")] = 60.0,
    out: Annotated[Path | None, typer.Option(help="Output file (json).")] = None,
) -> None:
    """Measure, print, and write to --out."""
    servers = {}
    for size in batch:
        with served(size):
            runs = {str(one): measured(str(one), seconds) for one in [*fixed, AUTO]}
        best = max(map(str, fixed), key=lambda one: runs[one]["tokens_per_second"])
        share = runs[AUTO]["tokens_per_second"] / runs[best]["tokens_per_second"]
        servers[f"batch of {size}"] = {"best_fixed": int(best), "auto_to_best": share, "runs": runs}
        print(dumps(round_floats({f"batch of {size}": servers[f"batch of {size}"]}, 4), indent=2), flush=True)
    if out is not None:
        simulation = {
            "what": "no model: the delays are sleeps", "seconds_a_token": TOKEN, "tokens": [SHORTEST, LONGEST],
            "power": SLOWER, "refuses_beyond_batches": QUEUE, "retry_after": RETRY_AFTER,
        }  # fmt: skip
        found = {"processor": processor(), "seconds": seconds, "simulation": simulation, "servers": servers}
        write_atomic(out, [dumps(round_floats(found | {"provenance": provenance({})}, 4), indent=2)])


if __name__ == "__main__":
    typer.run(main)
