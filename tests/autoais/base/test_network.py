"""Requests to real servers on this machine, through proxies and inside of an event loop; see also `test_mirrors.py`."""

import asyncio
import email.utils
import os
import signal
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoais.base.network import Limits, Reply, RequestError, get, read_retry_after, stream
from tests.local_server import LocalServer, Quiet

LIMITS = Limits(seconds=5, max_bytes=1000)


class Server(LocalServer):
    """Says hello, and keeps the address and the headers of each request."""

    def __init__(self) -> None:
        super().__init__(Handler)
        self.requests: list[tuple[str, dict[str, str]]] = []


class Handler(Quiet, BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.requests.append((self.path, dict(self.headers)))
        if self.path == "/slow":
            time.sleep(3)
        if self.path == "/closes":
            return
        if self.path == "/stranger":
            self.wfile.write(b"220 mail.example.org ESMTP\r\n\r\n")
            return
        self.send_response(200)
        self.send_header("ETag", '"\xe9"')
        self.send_header("Content-Type", "Text/HTML; Charset=ISO-8859-1")
        self.send_header("Content-Length", "5")
        self.end_headers()
        self.wfile.write(b"hello")

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(418)
        self.send_header("Retry-After", "7")
        self.end_headers()
        for number in range(3):
            self.wfile.write(body + b"%d" % number)
            self.wfile.flush()
            time.sleep(0.4)

    def do_CONNECT(self) -> None:
        self.server.requests.append((self.path, {}))
        self.send_error(403)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    with Server() as server:
        yield server


def read(url: str, headers: dict[str, str] | None = None) -> Reply:
    return get(url, headers, seconds=5, max_bytes=1000)


def test_a_page_has_its_type_and_its_version_can_be_sent_back(server: Server) -> None:
    reply = read(f"{server.url}/a b?x=\xf6")
    assert (reply.body, reply.status, reply.content_type, reply.charset) == (b"hello", 200, "text/html", "iso-8859-1")
    read(reply.url, {"If-None-Match": reply.headers["ETag"]})
    (path, first), (_, second) = server.requests
    assert path == "/a%20b?x=%C3%B6"
    assert (first["User-Agent"], first["Accept-Encoding"]) == ("attributed-rag", "identity")
    assert second["If-None-Match"] == '"\xe9"'


def test_a_response_of_any_status_arrives_in_blocks(server: Server) -> None:
    with stream(f"{server.url}/x", b"say ", {"Content-Type": "text/plain"}, LIMITS) as (head, blocks):
        assert (head.status, head.retry_after, head.content_type) == (418, 7.0, "")
        assert next(blocks) == b"say 0"
        assert b"".join(blocks) == b"say 1say 2"
    with stream(f"{server.url}/x", b"x" * 600, None, LIMITS) as (_, blocks), pytest.raises(RequestError) as error:
        list(blocks)
    assert error.value.is_too_large


def test_an_error_of_the_caller_stays_the_same(server: Server) -> None:
    with pytest.raises(KeyError, match="mine"), stream(f"{server.url}/x", None, None, LIMITS):
        raise KeyError("mine")


def test_the_time_without_a_byte_may_be_limited_instead_of_all(server: Server) -> None:
    with stream(f"{server.url}/x", b"y", None, Limits(1.0, is_idle_time=True)) as (_, blocks):
        assert b"".join(blocks) == b"y0y1y2"  # in 1.2 seconds
    with (
        stream(f"{server.url}/x", b"y", None, Limits(1.0)) as (_, blocks),
        pytest.raises(RequestError, match="no complete reply within 1 s"),
    ):
        list(blocks)
    with (
        pytest.raises(RequestError, match="no data for 1 s"),
        stream(f"{server.url}/slow", None, None, Limits(1.0, is_idle_time=True)),
    ):
        pass


def test_it_works_where_an_event_loop_runs(server: Server) -> None:
    async def notebook() -> bytes | None:
        return read(server.url).body

    assert asyncio.run(notebook()) == b"hello"


def test_a_request_can_be_interrupted_and_leaves_no_thread(server: Server) -> None:
    before = time.monotonic()
    timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        read(f"{server.url}/slow")
    assert time.monotonic() - before < 2.5
    assert not any("portal" in thread.name for thread in threading.enumerate())


@pytest.mark.parametrize(
    ("url", "reason", "is_connected"),
    [
        ("http://127.0.0.1:9/", "Connection refused", False),
        ("http://nobody.invalid/", "not known|failure in name resolution|No address", False),
        ("{server}/closes", "disconnected without sending a response", True),
        ("{server}/stranger", "illegal status line", True),
    ],
)
def test_what_fails_is_one_line(server: Server, url: str, reason: str, is_connected: bool) -> None:
    url = url.format(server=server.url)
    with pytest.raises(RequestError, match=reason) as error:
        read(url)
    assert str(error.value) == f"{url}: {error.value.reason}"
    assert str(error.value).isprintable()
    assert (error.value.is_connected, error.value.status) == (is_connected, None)


def test_proxies_come_from_the_environment(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", server.url)
    monkeypatch.setenv("https_proxy", server.url)
    assert read("http://example.invalid/x").body == b"hello"
    with pytest.raises(RequestError, match="the proxy refused: 403"):
        read("https://example.invalid/x")
    assert [path for path, _ in server.requests] == ["http://example.invalid/x", "example.invalid:443"]
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    assert read(server.url).body == b"hello"
    monkeypatch.setenv("all_proxy", "gopher://x")
    with pytest.raises(RequestError, match="the proxies or certificates of the environment: Unknown scheme"):
        read(server.url)


def test_retry_after_may_be_a_date() -> None:
    assert 8 < read_retry_after(email.utils.formatdate(time.time() + 10, usegmt=True)) <= 10
    assert read_retry_after(email.utils.formatdate(0, usegmt=True)) == 0


@given(st.text() | st.from_regex(r"[A-Z][a-z]{2}, \d{1,3} [A-Z][a-z]{2} \d{1,6} \d\d:\d\d:\d\d \S{0,5}"))
def test_any_retry_after_is_a_number_ofread_retry_after(value: str) -> None:
    assert 0 <= read_retry_after(value) < float("inf")
