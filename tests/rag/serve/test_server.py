"""A real server process on a real socket: slow and idle clients, clients that hang up, and an end in order."""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")
pytest.importorskip("prometheus_client")
pytest.importorskip("mcp")

import rag.web.server
from tests.conftest import Command, one_line_error
from tests.rag.serve.served import Running, make_index, running

QUESTION = {"question": "When did the Aller bridge open?"}
KEY = "s3cret-key-of-20-or-more"

# An impatient server, and a system that writes a piece every 20 ms for so many seconds.
SLOW_SYSTEM = """
import time
import rag.answer.systems, rag.web.connection
from rag.answer.systems import System, SystemKind
from rag.base.types import Answer
rag.web.connection.MAX_REQUEST_SECONDS = rag.web.connection.MAX_UNREAD_SECONDS = 1.0
class Slow(System):
    name = "slow"
    streams = True
    def respond(self, question):
        return Answer(question, "", (), (), self.name, abstained=True)
    def stream(self, question):
        try:
            for n in range(int(50 * float(question.text.split()[1]))):
                time.sleep(0.02)
                yield Answer(question, "x" * 40_000 * n, (), (), self.name)
        finally:
            sys.stderr.write("the stream has ended\\n")
        yield self.respond(question)
rag.answer.systems.SYSTEMS.register("slow", SystemKind("slow", "nothing", "bm25", 1, lambda settings: Slow()))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("server")
    index = make_index(folder)
    assert index.build is not None
    return index.build.parent


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Running]:
    with running(folder, "--system", "reader", "--system", "slow", "--workers", "2", before=SLOW_SYSTEM) as found:
        yield found


def request(body: dict[str, Any]) -> bytes:
    sent = json.dumps(body).encode()
    head = "POST /v1/ask HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(sent)}\r\n\r\n".encode() + sent


def ask(port: int, body: dict[str, Any], **headers: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("POST", "/v1/ask", json.dumps(body), {"Content-Type": "application/json", **headers})
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def metric(port: int, name: str) -> float:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", "/metrics")
    text = connection.getresponse().read().decode()
    connection.close()
    return next(float(line.split()[-1]) for line in text.splitlines() if line.startswith(f"{name} "))


def wait_until(condition: Any, seconds: float = 20) -> None:  # noqa: ANN401
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)


def test_it_answers(server: Running) -> None:
    status, body = ask(server.port, QUESTION)
    assert status == 200
    assert "1931" in json.loads(body)["answer"]


@pytest.mark.slow
def test_a_thousand_idle_connections_hold_nobody(server: Running) -> None:
    idle = []
    try:
        for _ in range(1000):
            idle.append(socket.create_connection(("127.0.0.1", server.port), timeout=30))
        assert ask(server.port, QUESTION)[0] == 200
        wait_until(lambda: idle[0].recv(1) == b"")  # a client that says nothing is sent away
    finally:
        for one in idle:
            one.close()
    assert ask(server.port, QUESTION)[0] == 200


@pytest.mark.slow
def test_who_drips_is_sent_away(server: Running) -> None:
    heads = [b"POST /v1/ask HTTP/1.1\r\nHost: localhost\r\n", b"POST /v1/ask HTTP/1.1\r\nHost: localhost\r\n"]
    heads[1] += b"Content-Type: application/json\r\nContent-Length: 100000\r\n\r\n"
    for head, drop in zip(heads, (b"X-A: b\r\n", b" "), strict=True):
        with socket.create_connection(("127.0.0.1", server.port), timeout=30) as dripping:
            dripping.sendall(head)
            began = time.monotonic()
            try:
                while time.monotonic() - began < 20:
                    dripping.sendall(drop)
                    time.sleep(0.1)
            except OSError:
                pass
            assert time.monotonic() - began < 15
    assert ask(server.port, QUESTION)[0] == 200


def test_a_client_that_hangs_up_ends_the_work_of_its_stream(server: Running) -> None:
    for _ in range(4):  # more than there are workers
        with socket.create_connection(("127.0.0.1", server.port), timeout=30) as reading:
            reading.sendall(request({"question": "bridge 30", "system": "slow", "stream": True}))
            assert b"200 OK" in reading.recv(100)
    wait_until(lambda: metric(server.port, "rag_running") == 0, 20)  # the streams would take 30 s each
    assert ask(server.port, QUESTION)[0] == 200


def test_clients_that_hang_up_leave_the_queue(server: Running) -> None:
    waiting = []
    for _ in range(30):
        one = socket.create_connection(("127.0.0.1", server.port), timeout=30)
        one.sendall(request({"question": "bridge 30", "system": "slow"}))
        waiting.append(one)
    wait_until(lambda: metric(server.port, "rag_waiting") == 28)
    for one in waiting:
        one.close()
    wait_until(lambda: metric(server.port, "rag_waiting") == 0)
    began = time.monotonic()
    assert ask(server.port, QUESTION)[0] == 200
    assert time.monotonic() - began < 10


@pytest.mark.slow
def test_slow_readers_hold_no_worker(folder: Path) -> None:
    with running(folder, "--system", "slow", "--system", "reader", "--workers", "1", before=SLOW_SYSTEM) as server:
        reading = socket.socket()
        reading.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        reading.settimeout(30)
        reading.connect(("127.0.0.1", server.port))
        with reading:
            reading.sendall(request({"question": "bridge 5", "system": "slow", "stream": True}))
            assert b"200 OK" in reading.recv(100)  # and no more
            assert ask(server.port, {**QUESTION, "system": "reader"})[0] == 200  # when the stream is written
            time.sleep(2)
            left = sum(map(len, iter(lambda: reading.recv(1 << 16), b"")))
            assert left < 250 * 40_000  # the end is not sent: nobody waits for ever to be read


def test_broken_requests_do_not_break_the_server(server: Running) -> None:
    for sent in (b"\x00\xff\n\n", b"GET / HTTP/9.9\r\n\r\n", b"GET " + b"/" * 100_000, b"POST /v1/ask HTTP/1.1\r\n\r\n",
                 b"GET /p/town/%ff%00%2e%2e HTTP/1.1\r\nHost: localhost\r\n\r\n",
                 b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n",
                 ):  # fmt: skip
        with socket.create_connection(("127.0.0.1", server.port), timeout=30) as one:
            try:
                one.sendall(sent)
                first = one.recv(12)
            except OSError:
                continue
            assert not first or int(first.split()[1]) < 500, (sent[:50], first)
    assert ask(server.port, QUESTION)[0] == 200


@pytest.mark.slow
def test_a_request_with_two_lengths_is_refused(server: Running) -> None:
    smuggled = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    lines = b"POST /v1/ask HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n"
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as one:
        one.sendall(lines + b"0\r\n\r\n" + smuggled)
        found = b"".join(iter(lambda: one.recv(65536), b""))  # until the server closes
    assert found.startswith(b"HTTP/1.1 400 ")
    assert b"may not have both Content-Length and Transfer-Encoding" in found
    assert found.count(b"HTTP/1.1 ") == 1


def test_what_runs_is_finished_before_the_end(folder: Path) -> None:
    with running(folder, "--system", "slow", "--workers", "2", before=SLOW_SYSTEM) as server:
        found: list[tuple[int, bytes]] = []
        asking = [
            threading.Thread(target=lambda: found.append(ask(server.port, {"question": "bridge 2"}))) for _ in range(2)
        ]
        for one in asking:
            one.start()
        idle = socket.create_connection(("127.0.0.1", server.port), timeout=30)
        wait_until(lambda: metric(server.port, "rag_running") == 2)
        began = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        for one in asking:
            one.join()
        server.process.wait(timeout=10)
        assert [status for status, _ in found] == [200, 200]
        assert time.monotonic() - began < 10
        idle.close()


@pytest.mark.slow
def test_the_end_does_not_wait_for_what_hangs(folder: Path) -> None:
    assert rag.web.server._GRACE == 8
    shorter = f"{SLOW_SYSTEM}\nimport rag.web.server\nrag.web.server._GRACE = 1"
    with running(folder, "--system", "slow", "--workers", "1", before=shorter) as server:
        hanging = threading.Thread(target=lambda: _quietly(server.port, {"question": "bridge 60"}), daemon=True)
        hanging.start()
        wait_until(lambda: metric(server.port, "rag_running") == 1)
        server.process.send_signal(signal.SIGTERM)
        server.process.wait(timeout=8)


@pytest.mark.slow
def test_the_end_comes_in_time_and_who_waits_is_told_at_once(folder: Path) -> None:
    with running(folder, "--system", "slow", "--workers", "1", before=SLOW_SYSTEM) as server:
        hanging = threading.Thread(target=lambda: _quietly(server.port, {"question": "bridge 60"}), daemon=True)
        hanging.start()
        wait_until(lambda: metric(server.port, "rag_running") == 1)
        told: list[Any] = []
        waiting = threading.Thread(
            target=lambda: told.extend((*ask(server.port, {"question": "bridge 1"}), time.monotonic()))
        )
        waiting.start()
        wait_until(lambda: metric(server.port, "rag_waiting") == 1)
        began = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        waiting.join()
        status, body, at = told
        assert (status, json.loads(body)["error"]["message"]) == (503, "the server is stopping; ask again later")
        assert at - began < 8
        server.process.wait(timeout=20)
        assert time.monotonic() - began < 10


@pytest.mark.slow
def test_a_full_disk_stops_no_answer_and_leaves_no_traceback(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "keys").write_text(f"{KEY}\n", "utf-8")
    (tmp_path / "keys").chmod(0o644)
    for errors in (Path("/dev/full"), tmp_path / "errors"):
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        command = [sys.executable, "-m", "rag", "serve", "--index", f"town={folder}", "--port", str(port)]
        command += ["--log-questions", "--key-file", str(tmp_path / "keys")]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
        with Path("/dev/full").open("w") as full, errors.open("w") as stderr:
            process = subprocess.Popen(command, stdout=full, stderr=stderr, env=environment)
        try:
            wait_until(lambda: _listens(port), 300)  # noqa: B023
            assert ask(port, QUESTION, Authorization=f"Bearer {KEY}")[0] == 200
        finally:
            process.terminate()
            process.wait(timeout=30)
    warned, logged = (tmp_path / "errors").read_text("utf-8").splitlines()
    assert "every user of this machine can read the keys: chmod o-rwx" in warned
    assert json.loads(logged)["question"] == QUESTION["question"]


@pytest.mark.slow
@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="needs IPv6")
def test_all_addresses_are_those_of_ipv4_too_and_clients_of_a_proxy_count_apart(folder: Path) -> None:
    options = ("--host", "::", "--base-url", "http://localhost", "--allow-anonymous", "--rate", "1")
    with running(folder, *options) as server:
        told = [ask(server.port, QUESTION, **{"X-Forwarded-For": one})[0] for one in ("192.0.2.1", "192.0.2.2") * 2]
    assert told == [200, 200, 429, 429]


def _listens(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


def _quietly(port: int, body: dict[str, Any]) -> None:
    try:
        ask(port, body)
    except OSError:
        pass
    except http.client.HTTPException:
        pass


@pytest.mark.slow
def test_questions_and_keys_are_not_logged(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "keys").write_text(f"# of the team\n{KEY}\n", "utf-8")
    (tmp_path / "keys").chmod(0o600)
    right = {"Authorization": f"Bearer {KEY}"}
    for options, logged in (((), False), (("--log-questions",), True)):
        with running(folder, "--key-file", str(tmp_path / "keys"), *options) as server:
            assert ask(server.port, QUESTION)[0] == 401
            assert ask(server.port, {"question": "Who is zebra bridge?"}, **right)[0] == 200
            assert ask(server.port, {"question": "zebra", "index": "zebra"}, **right)[0] == 404
            assert ask(server.port, {"question": "zebra"}, Authorization="Bearer zebra")[0] == 401
            server.process.send_signal(signal.SIGTERM)
            said, wrote = server.process.communicate(timeout=20)
        assert KEY not in said + wrote
        lines = wrote.splitlines()
        assert ("zebra" in said + wrote) == logged
        if logged:
            (row,) = map(json.loads, lines)
            assert row["question"] == "Who is zebra bridge?"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--index", "nowhere"], ["no index at nowhere"]),
        (["--index", "a/b=nowhere"], ["a/b=nowhere"]),
        (["--system", "nothing"], ["no system called 'nothing'"]),
        (["--system", "gguf:nowhere.gguf"], ["nowhere.gguf"]),
        (["--judge", "nobody"], ["no judge called 'nobody'"]),
        (["--system", "reader", "--system", "reader"], ["two systems are called 'reader'"]),
        (["--host", "0.0.0.0"], ["--base-url"]),
        (["--host", "0.0.0.0", "--base-url", "http://x"], ["--key-file", "--allow-anonymous"]),
        (["--base-url", "x"], ["base URL 'x'"]),
        (["--base-url", "http://["], ["base URL 'http://['"]),
        (["--key-file", "nowhere"], ["nowhere", "cannot be read"]),
        (["--cors", "x"], ["origin 'x'"]),
        (["--cite", "x"], ["--cite should be one of markers, links, footnotes, open-webui, found 'x'"]),
        (["--allow-uploads", "other"], ["other"]),
        (
            ["--host", "256.1.1.1", "--base-url", "http://x", "--allow-anonymous"],
            ["cannot listen on 256.1.1.1", "--host"],
        ),
        (
            ["--host", "192.0.2.1", "--base-url", "http://x", "--allow-anonymous"],
            ["192.0.2.1 port 8000: Cannot assign requested address; choose another --host"],
        ),
    ],
    ids=lambda one: " ".join(one),
)
def test_errors_are_one_line(rag: Command, arguments: list[str], words: list[str]) -> None:
    result = rag("serve", *arguments)
    lines = [line for line in result.stderr.splitlines() if line]
    assert len(lines) == 1, result
    one_line_error(result, *words)


@pytest.mark.parametrize("key", ["short", "with spaces in the middle of it", "ä" * 20, "x" * 501])
def test_a_weak_key_is_refused_without_being_shown(rag: Command, tmp_path: Path, key: str) -> None:
    (tmp_path / "keys").write_text(f"{'y' * 30}\n{key}\n", "utf-8")
    result = rag("serve", "--key-file", str(tmp_path / "keys"))
    one_line_error(result, "key 2", "20 to 500")
    assert key not in result.stderr


def test_the_defaults_are_those_of_rag_ask(rag: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAG_INDEX", "nowhere.index")
    one_line_error(rag("serve"), "no index at nowhere.index")
    monkeypatch.delenv("RAG_INDEX")
    monkeypatch.setenv("RAG_SYSTEM", "nobody")
    one_line_error(rag("serve"), "no system called 'nobody'")


@pytest.mark.slow
def test_rag_mcp_speaks_only_mcp(folder: Path) -> None:
    message = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    done = subprocess.run(
        [sys.executable, "-m", "rag", "mcp", "--index", f"town={folder}"],
        input=json.dumps(message) + "\n", capture_output=True, text=True, timeout=120, check=False,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert all(json.loads(line)["jsonrpc"] == "2.0" for line in done.stdout.splitlines()), done
