"""Annotators at once on `rag annotate serve`, which is killed meanwhile: what is lost, how quick are pages?

    python -m scripts.bench.annotate --out eval/results/annotate.json

Each annotator is a thread of this process that talks HTTP to a server in a process of its own: it opens its link,
answers as the page's script does (a form, which brings the next page), and waits a random time, THINK seconds on
average, and at least as long as a question has to be shown. A form that gets no answer is sent again, with the same
press, until it is acknowledged. The server is killed (SIGKILL) at equal parts of the labels and started again. At the
end the acknowledged presses, the rows of the database and the export are compared. The times are of each answered
form; those of a server that is being killed are none.
Run it when nothing else runs: both processes share the cores.
"""

import http.client
import json
import os
import random
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from html import unescape
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote, urlencode

import typer

from autoais.base.io.jsonl import dumps, round_floats, write_atomic
from autoais.base.io.provenance import processor, provenance
from rag.annotate.create import create_study, open_study
from rag.annotate.items import Item, Source
from rag.annotate.settings import Settings
from rag.annotate.shown import MIN_SHOWN
from scripts.postgresql import running_postgresql

ROOT = Path(__file__).parents[2]
PER_ITEM = 5  # people; each gives two labels
_FIELDS = re.compile(rb'<input type="hidden" name="(\w+)" value="([^"]*)">')
_FORM = re.compile(rb'<form id="press".*?</form>', re.DOTALL)
_GIVE_UP = 120.0


def make_items(n: int) -> list[Item]:
    """Answers of 60 words, with two sources of 100."""
    words = "the annotator reads every word of an answer and of its source before a key is pressed ".split()
    text = " ".join(words * 4)
    sources = tuple(Source(f"p{number}", " ".join(words * 6)) for number in range(2))
    return [
        Item(f"q{number}", f"Answer {number} says that {text}", query=f"What about {number}?", sources=sources)
        for number in range(n)
    ]


class Server:
    """`rag annotate serve` in a process of its own, always on the same port."""

    def __init__(self, study: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port: int = free.getsockname()[1]
        self._command = [sys.executable, "-m", "rag", "annotate", "serve", str(study), "--port", str(self.port)]
        self._process: subprocess.Popen[bytes] | None = None
        self.cpu = 0.0
        """CPU seconds of those that were killed."""

    def start(self) -> float:
        """Start it; return the seconds until it answers."""
        start_time = time.perf_counter()
        path = {"PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "eval")))}
        self._process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL, env=os.environ | path)
        while time.perf_counter() - start_time < _GIVE_UP:
            if self._process.poll() is not None:
                raise RuntimeError(f"the server ended with {self._process.returncode}")
            try:
                connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
                connection.request("GET", "/healthz")
                if connection.getresponse().read() == b"ok\n":
                    return time.perf_counter() - start_time
            except OSError:
                time.sleep(0.05)
            finally:
                connection.close()
        raise RuntimeError("the server does not answer")

    def kill(self) -> None:
        """Kill it, as if the power went for this process."""
        if self._process is not None:
            self._process.kill()
            _, _, usage = os.wait4(self._process.pid, 0)
            self.cpu += usage.ru_utime + usage.ru_stime
            self._process.returncode = -9  # it has been waited for
            self._process = None


class Person(threading.Thread):
    """An annotator, who works until nothing is left."""

    def __init__(self, name: str, token: str, port: int, think: float) -> None:
        super().__init__(name=name, daemon=True)
        self.acknowledged: dict[str, str] = {}  # press: value
        self.seconds: list[float] = []
        self.retries = 0
        self.error: str | None = None
        self._token, self._port, self._think = token, port, think
        self._chance = random.Random(name)
        self._connection: http.client.HTTPConnection | None = None

    def run(self) -> None:
        """Open the link, then answer what is asked."""
        try:
            self._work()
        except Exception as error:  # noqa: BLE001  (told by the main thread)
            self.error = f"{type(error).__name__}: {error}"
        finally:
            if self._connection is not None:
                self._connection.close()

    def _work(self) -> None:
        _, cookie, _ = self._ask("GET", f"/in/{quote(self._token)}", None, "")
        _, _, page = self._ask("GET", "/", None, cookie)
        while (form := _FORM.search(page)) is not None:
            time.sleep(max(1.1 * MIN_SHOWN, self._chance.uniform(0, 2 * self._think)))
            fields = {name.decode(): unescape(value.decode()) for name, value in _FIELDS.findall(form[0])}
            first = fields["question"] == "interpretable"
            fields["value"] = "yes" if first or self._chance.random() < 0.7 else "no"
            start_time = time.perf_counter()
            retries = self.retries
            _, _, page = self._ask("POST", "/press", fields, cookie)
            if retries == self.retries:
                self.seconds.append(time.perf_counter() - start_time)
            self.acknowledged[fields["press"]] = fields["value"]

    def _ask(self, method: str, path: str, fields: dict[str, str] | None, cookie: str) -> tuple[int, str, bytes]:
        """Return status, cookie and body; asks again while the server is away."""
        body = None if fields is None else urlencode(fields)
        headers = {"Cookie": cookie} if cookie else {}
        if body is not None:
            headers |= {"Content-Type": "application/x-www-form-urlencoded", "X-Requested-With": "fetch"}
        deadline = time.monotonic() + _GIVE_UP
        while True:
            try:
                if self._connection is None:
                    self._connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
                self._connection.request(method, path, body, headers)
                response = self._connection.getresponse()
                page = response.read()
            except (OSError, http.client.HTTPException):
                if self._connection is not None:
                    self._connection.close()
                self._connection, self.retries = None, self.retries + 1
                if time.monotonic() > deadline:
                    raise
                time.sleep(self._chance.uniform(0.05, 0.2))
                continue
            if response.status >= 400:
                raise RuntimeError(f"{method} {path}: {response.status} {page[-300:]!r}")
            return response.status, (response.getheader("Set-Cookie") or "").partition(";")[0], page


def measure(folder: Path, *, database: str, annotators: int, labels: int, kills: int, think: float) -> dict[str, Any]:
    """Run a study to its end; return the counts and times."""
    study = create_study(
        folder / "study",
        items=make_items(max(1, labels // (2 * PER_ITEM))),
        settings=Settings(annotators=PER_ITEM, database=database, title="Load"),
    )
    tokens = {f"p{number:02}": study.invite(f"p{number:02}") for number in range(annotators)}
    study.close()
    label_count = study.pools["study"] * 2 * PER_ITEM
    server = Server(folder / "study")
    people = [Person(name, token, server.port, think) for name, token in tokens.items()]
    try:
        server.start()
        start_time = time.perf_counter()
        restarts = run(server, people, label_count, kills)
        seconds = time.perf_counter() - start_time
    finally:
        server.kill()
    pages = sorted(1000 * wait for person in people for wait in person.seconds)
    return {
        **compare(folder, people, label_count),
        "seconds": seconds,
        "labels_per_second": label_count / seconds,
        "server_cpu_ms_per_label": 1000 * server.cpu / label_count,
        "page_ms": {
            "n": len(pages),
            "median": statistics.median(pages),
            "p95": pages[int(0.95 * (len(pages) - 1))],
            "p99": pages[int(0.99 * (len(pages) - 1))],
            "max": pages[-1],
        },
        "sent_again": sum(person.retries for person in people),
        "restart_s": restarts,
        "errors": sorted({person.error for person in people if person.error}),
    }


def count_labels(people: list[Person]) -> int:
    """The presses that the server has acknowledged."""
    return sum(len(person.acknowledged) for person in people)


def run(server: Server, people: list[Person], label_count: int, kills: int) -> list[float]:
    """Let people work until nothing is left; return the seconds that the server was away after each kill."""
    restarts = []
    for person in people:
        person.start()
    for number in range(kills):
        limit = label_count * (number + 1) // (kills + 1)
        while count_labels(people) < limit and any(person.is_alive() for person in people):
            time.sleep(0.02)
        server.kill()
        restarts.append(server.start())
    for person in people:
        person.join()
    return restarts


def compare(folder: Path, people: list[Person], label_count: int) -> dict[str, Any]:
    """Compare what was acknowledged with the rows and with the export."""
    study = open_study(folder / "study")
    study.export(folder / "export")
    progress = study.progress()
    study.close()
    rows = [json.loads(line) for line in (folder / "export" / "presses.jsonl").read_text("utf-8").splitlines()]
    ratings = [json.loads(line) for line in (folder / "export" / "ratings.jsonl").read_text("utf-8").splitlines()]
    values_by_press = {press: value for person in people for press, value in person.acknowledged.items()}
    rows_by_press = {row["press"]: row["value"] for row in rows}
    row_counts = Counter((row["annotator"], row["item"], row["question"]) for row in rows)
    return {
        "labels": label_count,
        "acknowledged": len(values_by_press),
        "rows": len(rows),
        "exported": len(ratings),
        "lost": sum(rows_by_press.get(press) != value for press, value in values_by_press.items()),
        "doubled": sum(n - 1 for n in row_counts.values()) + len(rows) - len(rows_by_press),
        "items_with_five": progress.items.get(PER_ITEM, 0),
        "items": progress.total,
    }


def main(
    output: Annotated[Path, typer.Option("--out", help="Output file (json).")],
    annotators: Annotated[int, typer.Option(help="People at once.")] = 50,
    labels: Annotated[int, typer.Option(help="Labels in all.")] = 20_000,
    kills: Annotated[int, typer.Option(help="Times that the server is killed.")] = 3,
    think: Annotated[float, typer.Option(help="Seconds between page and verdict, on average.")] = 1.0,
    databases: Annotated[str, typer.Option(help="Databases, comma-separated.")] = "sqlite,postgresql",
) -> None:
    """Measure, print, and write to --out; exits with 1 if a label was lost or doubled."""
    runs = {}
    for name in databases.split(","):
        options: dict[str, Any] = {"annotators": annotators, "labels": labels, "kills": kills, "think": think}
        with tempfile.TemporaryDirectory() as folder:
            if name == "postgresql":
                with running_postgresql() as postgresql:
                    runs[name] = measure(Path(folder), database=postgresql.url(), **options)
            else:
                runs[name] = measure(Path(folder), database="", **options)
        print(name, dumps(round_floats(runs[name], 3), indent=2))
    result = {
        "processor": processor(),
        "annotators": annotators,
        "kills": kills,
        "think_s": think,
        "runs": runs,
        "provenance": provenance({}),
    }
    write_atomic(output, [dumps(round_floats(result, 3), indent=2)])
    if any(run["lost"] or run["doubled"] or run["errors"] for run in runs.values()):
        raise SystemExit(1)


if __name__ == "__main__":
    typer.run(main)
