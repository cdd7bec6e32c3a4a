"""What all pages share: escaping, static files, headers, hosts, limits and the server."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("starlette")
pytest.importorskip("jinja2")

from markupsafe import Markup
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.testclient import TestClient
from starlette.types import Message, Receive, Scope, Send

from autoais.base.urls import is_loopback
from rag.answer.export.escaping import visible
from rag.base.errors import RagError, UserError
from rag.web.pages import Pages, escape_text
from rag.web.security import HEADERS, FailureLimiter, csrf_token, is_csrf_token, list_hosts, middleware, signature
from rag.web.server import _ShutdownResponses, other_address, serve


@given(st.text())
def test_a_shown_text_keeps_its_offsets_and_can_be_sent(text: str) -> None:
    assert len(visible(text)) == len(text)
    visible(text).encode()


def test_what_a_browser_would_drop_or_reorder_is_replaced() -> None:
    assert visible("a\x00b\x1b[1m\u202egnp.\ud800") == "a\ufffdb\ufffd[1m\ufffdgnp.\ufffd"
    assert (
        visible("\u200bx\u2060\U000e0041\U000e0100\ufe01") == "\ufffdx\ufffd\ufffd\ufffd\ufffd"
    )  # what models read, people not
    # Persian, Hindi and emoji need joiners and the selector of emoji.
    kept = "\u0645\u06cc\u200c\u062e \u0915\u094d\u200d\u0937 \u2764\ufe0f \U0001f469\u200d\U0001f52c"
    assert visible(kept) == kept
    assert visible("a\tb\nc\rd \u200f \U0001f600 e\u0301") == "a\tb\nc\rd \u200f \U0001f600 e\u0301"


def test_escaping_keeps_markup_and_carriage_returns() -> None:
    assert escape_text("<b>&\"'\r\n") == "&lt;b&gt;&amp;&#34;&#39;&#13;\n"
    assert escape_text(Markup("<b>")) == "<b>"
    assert escape_text(3) == "3"


# --- an application of our own ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pages() -> Pages:
    return Pages("rag.web")


@pytest.fixture
def client(pages: Pages) -> TestClient:
    async def on_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        return pages.error(error.status_code, error.detail)

    async def fault(request: Request, error: Exception) -> Response:
        return pages.error(500, "A fault.")

    def other_host(request: Request, name: str) -> Response:
        return PlainTextResponse(f"not {name}", 400)

    async def hello(request: Request) -> Response:
        return PlainTextResponse("hello")

    async def body(request: Request) -> Response:
        return PlainTextResponse(str(len(await request.body())))

    async def broken(request: Request) -> Response:
        raise RuntimeError("secret")

    routes = [
        Route("/", hello),
        Route("/body", body, methods=["POST"]),
        Route("/broken", broken),
        Route("/static/{name:path}", pages.static),
    ]
    handlers = {HTTPException: on_error, Exception: fault}
    around = middleware(list_hosts("https://study.example.org"), other_host, max_body=100)
    app = Starlette(routes=routes, middleware=around, exception_handlers=handlers)
    return TestClient(app, base_url="http://127.0.0.1:8000", raise_server_exceptions=False)


@pytest.mark.parametrize("path", ["/", "/nothing", "/broken", "/static/web/style.css", "/static/web/none.css"])
def test_every_response_has_the_security_headers(client: TestClient, path: str) -> None:
    found = client.get(path)
    for name, value in HEADERS.items():
        if name != "Cache-Control":
            assert found.headers[name] == value
    assert "secret" not in found.text


def test_the_policy_allows_nothing_inline_and_nothing_from_elsewhere() -> None:
    policy = HEADERS["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    assert "http" not in policy
    assert "frame-ancestors 'none'" in policy


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:8000", 200),
        ("localhost", 200),
        ("[::1]:8000", 200),
        ("study.example.org", 200),
        ("STUDY.example.org:443", 200),
        ("evil.example", 400),
        ("[2001:db8::1]", 400),
        ("study.example.org.evil.example", 400),
        ("", 400),
    ],
)
def test_only_known_hosts_are_answered(client: TestClient, host: str, status: int) -> None:
    found = client.get("/", headers={"Host": host})
    assert (found.status_code, found.text) == (status, "hello" if status == 200 else f"not {host}")


def test_a_request_with_two_lengths_is_refused(client: TestClient) -> None:
    found = client.post("/body", content=b"x", headers={"Transfer-Encoding": "chunked", "Content-Length": "1"})
    assert (found.status_code, found.headers["connection"]) == (400, "close")
    assert found.headers["x-frame-options"] == "DENY"


def test_a_body_is_limited_by_its_length_and_by_what_comes(client: TestClient) -> None:
    def chunks() -> Iterator[bytes]:
        for _ in range(20):
            yield b"x" * 10

    assert client.post("/body", content=b"x" * 100).text == "100"
    for found in (client.post("/body", content=b"x" * 101), client.post("/body", content=chunks())):
        assert found.status_code == 413
        assert found.headers["X-Content-Type-Options"] == "nosniff"


def test_static_files_have_their_types_and_are_kept_by_version(client: TestClient, pages: Pages) -> None:
    found = client.get(pages.address("web/style.css"))
    assert found.headers["Content-Type"] == "text/css; charset=utf-8"
    assert "immutable" in found.headers["Cache-Control"]
    assert client.get("/static/web/style.css").headers["Cache-Control"] == "no-cache"
    assert client.get("/").headers["Cache-Control"] == "no-store"
    for path in ("/static/", "/static/../pages.py", "/static/web/%2e%2e/pages.py", "/static/web/..%2f..%2fpages.py"):
        assert client.get(path).status_code == 404


def test_style_and_scripts_name_no_other_host(pages: Pages) -> None:
    for package in ("rag.web", "rag.annotate"):
        for body in Pages(package)._files.values():
            text = body.decode().replace("http://www.w3.org/2000/svg", "")
            assert "http:" not in text
            assert "https:" not in text
            assert "@import" not in text


@pytest.mark.parametrize(
    "address", ["example.org", "ftp://example.org", "https://", "https://example.org/study", "https://example.org?a"]
)
def test_a_base_url_is_an_address_without_a_path(address: str) -> None:
    with pytest.raises(UserError, match="should be like https://"):
        list_hosts(address)


def test_a_csrf_token_belongs_to_its_session() -> None:
    assert is_csrf_token("session", csrf_token("session"))
    assert not is_csrf_token("other", csrf_token("session"))
    for token in ("", "x", "é", "\ud800", csrf_token("session")[:-1]):
        assert not is_csrf_token("session", token)
    assert signature("s", "a", "b") != signature("s", "ab")


def test_a_client_that_fails_often_waits_and_others_do_not() -> None:
    now = [0.0]
    limit = FailureLimiter(3, 60, clock=lambda: now[0])
    for _ in range(3):
        assert limit.wait("a") == 0
        limit.count_failure("a")
        now[0] += 10
    assert limit.wait("a") == 31
    assert limit.wait("b") == 0
    now[0] = 61
    assert limit.wait("a") == 0


def test_a_million_clients_take_no_more_memory() -> None:
    limit = FailureLimiter(3, 60)
    for n in range(20_000):
        limit.count_failure(str(n))
    assert len(limit._failures) == 10_000
    assert "19999" in limit._failures


# --- the server -------------------------------------------------------------------------------------------------------


def test_a_port_that_is_taken_is_told_in_one_line() -> None:
    pytest.importorskip("uvicorn")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(RagError, match=r"cannot listen on 127\.0\.0\.1 port \d+: .*choose another --port"):
            serve(Starlette(), port=taken.getsockname()[1])


SERVER = """
import sys
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from rag.web.server import serve

async def hello(request):
    return PlainTextResponse("hello")

serve(Starlette(routes=[Route("/in/{token}", hello)]), port=0, log=lambda line: print(line, flush=True))
"""


@pytest.mark.parametrize(("path", "is_json"), [("/v1/ask", True), ("/v1/chat/completions", True), ("/", False)])
def test_a_request_that_the_end_of_the_server_cuts_off_is_told_so(path: str, is_json: bool) -> None:
    async def cut_off(scope: Scope, receive: Receive, send: Send) -> None:
        raise asyncio.CancelledError

    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        return {"type": "http.request"}

    asyncio.run(_ShutdownResponses(cut_off)({"type": "http", "path": path}, receive, send))
    assert sent[0]["status"] == 503
    assert (b"retry-after", b"10") in sent[0]["headers"]
    body = sent[1]["body"].decode()
    if is_json:
        assert json.loads(body) == {
            "error": {"type": "BusyError", "message": "the server is stopping; ask again later"}
        }
    else:
        assert body == "the server is stopping\n"


def test_the_server_says_where_it_is_logs_no_address_and_stops_when_told() -> None:
    pytest.importorskip("uvicorn")
    path = {"PYTHONPATH": os.pathsep.join(sys.path)}
    started = subprocess.Popen(
        [sys.executable, "-c", SERVER], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ | path
    )
    assert started.stdout
    address = started.stdout.readline().strip()
    assert started.stdout.readline() == "Only this machine can reach it.\n"
    with urllib.request.urlopen(f"{address}/in/secret", timeout=30) as reply:
        assert reply.read() == b"hello"
        assert "Server" not in reply.headers
    started.send_signal(signal.SIGTERM)
    said = "".join(started.communicate(timeout=30))
    assert "secret" not in said
    assert "Traceback" not in said


def test_loopback_is_recognised() -> None:
    assert all(map(is_loopback, ["127.0.0.1", "127.8.8.8", "::1", "localhost"]))
    assert not any(map(is_loopback, ["0.0.0.0", "::", "192.168.1.2", "example.org"]))


@pytest.mark.parametrize(
    ("host", "wanted"),
    [("10.0.0.7", "10.0.0.7"), ("fe80::1", "[fe80::1]"), ("0.0.0.0", "a.example"), ("::", "a.example")],
)
def test_an_example_of_an_address_can_be_used(host: str, wanted: str) -> None:
    found = other_address(host, 8000, "a.example")
    assert found == f"http://{wanted}:8000"
    assert list_hosts(found)[-1] == wanted
