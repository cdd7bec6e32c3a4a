"""Requests to servers: whether they are allowed, how they are named, and limits on their size, time and redirects."""

import http.client
import os
import socket
import ssl
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from email.message import Message
from functools import cache, partial
from typing import Any
from urllib.parse import urljoin

from rag.base.errors import RagError, UserError
from rag.base.urls import host_of, normalize_url

AGENT = "attributed-rag"
HEADERS = {"User-Agent": AGENT, "Accept-Encoding": "identity"}
FAILURES = (urllib.error.URLError, http.client.HTTPException, ConnectionError, TimeoutError, ssl.SSLError)
"""What a broken connection raises."""

_BLOCK = 1 << 16
_REDIRECTS = 10
_REDIRECT_STATUSES = (301, 302, 303, 307, 308)
_GONE_STATUSES = (404, 410)


class RequestError(RagError):
    """A request failed; `status` is that of the server's answer, if there was one."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status

    @property
    def is_gone(self) -> bool:
        """Whether the server said that there is no such page."""
        return self.status in _GONE_STATUSES


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer of a server: the URL after redirects, the headers, and the body, None if it was not modified."""

    url: str
    headers: Message
    body: bytes | None

    @property
    def content_type(self) -> str:
        """The media type in lower case, empty if the server named none."""
        return self.headers.get_content_type() if self.headers.get("Content-Type") else ""


def is_offline() -> bool:
    """Whether RAG_OFFLINE forbids connections (Hugging Face has HF_HUB_OFFLINE)."""
    return os.environ.get("RAG_OFFLINE", "0") not in ("", "0")


def reason_of(error: Exception) -> str:
    """Why a connection failed, in the words of the error."""
    return str(error.reason if isinstance(error, urllib.error.URLError) else error) or type(error).__name__


def get(
    url: str,
    headers: Mapping[str, str] | None = None,
    *,
    seconds: float,
    largest: int,
    same_host: bool = False,
) -> Reply:
    """Request a page and read its body.

    Redirects lead to http and https only, and with `same_host` only to the same host. Raises `RequestError` for an
    answer other than 200 and 304, a redirect that is not followed, a broken connection, a body of more than `largest`
    bytes, or a request that takes longer than `seconds` in all.
    """
    target = normalize_url(url)
    with _Watch(seconds) as watch:
        opener = _opener(watch)
        with _faults(url, watch, seconds):
            for _ in range(_REDIRECTS):
                request = urllib.request.Request(target, headers={**HEADERS, **(headers or {})})
                try:
                    with opener.open(request, timeout=seconds) as response:
                        if response.status != http.client.OK:
                            raise RequestError(f"{url}: the server returned {response.status} {response.reason}")
                        body = _body(response, url, largest, watch)
                        return Reply(target, response.headers, body)
                except urllib.error.HTTPError as error:
                    with error:
                        if error.code == http.client.NOT_MODIFIED:
                            return Reply(target, error.headers, None)
                        target = _redirect_target(url, target, error, same_host=same_host)
    raise RequestError(f"{url}: more than {_REDIRECTS} redirects")


@dataclass(frozen=True, slots=True)
class Sent:
    """The answer of a server while it arrives: status, headers, and the body in blocks, which can be read once."""

    status: int
    headers: Message
    blocks: Iterator[bytes]


@contextmanager
def send(
    url: str, body: bytes | None, headers: Mapping[str, str] | None = None, *, seconds: float, largest: int
) -> Iterator[Sent]:
    """Send a body with POST, or ask with GET if it is None, and give the answer of whatever status; no redirects.

    Raises `RequestError` for a broken connection, more than `largest` bytes, or an exchange that takes longer than
    `seconds` in all; also while blocks are read.
    """
    request = urllib.request.Request(normalize_url(url), body, {**HEADERS, **(headers or {})})
    with _Watch(seconds) as watch:
        with _faults(url, watch, seconds):
            response = _opener(watch, any_status=True).open(request, timeout=seconds)
        with response:
            yield Sent(response.status, response.headers, _blocks(response, url, watch, seconds, largest))


def _blocks(
    response: http.client.HTTPResponse, url: str, watch: "_Watch", seconds: float, largest: int
) -> Iterator[bytes]:
    size = 0
    while True:
        with _faults(url, watch, seconds):
            block = response.read1(_BLOCK)
            watch.check()
        size += len(block)
        if size > largest:
            raise RequestError(f"{url}: the reply is larger than {largest >> 20} MiB")
        if not block:
            break
        yield block
    if response.length:  # what is missing
        raise RequestError(f"{url}: the connection broke off")


@contextmanager
def _faults(url: str, watch: "_Watch", seconds: float) -> Iterator[None]:
    """Turn what a broken connection raises into `RequestError`."""
    try:
        yield
    except (*FAILURES, OSError, ValueError) as error:
        late = watch.late or isinstance(error, TimeoutError)
        reason = f"it took longer than {seconds:.3g} seconds" if late else reason_of(error)
        raise RequestError(f"{url}: {reason}") from error


def _redirect_target(url: str, target: str, error: urllib.error.HTTPError, *, same_host: bool) -> str:
    """The URL that a redirect leads to; any other answer raises `RequestError`."""
    location = error.headers.get("Location")
    if error.code not in _REDIRECT_STATUSES or not location:
        raise RequestError(f"{url}: the server returned {error.code} {error.reason}", error.code) from error
    try:
        new_url = normalize_url(urljoin(target, location))
    except UserError as reason:
        raise RequestError(f"{url}: redirects to {location[:200]!r}, which is not followed: {reason}") from error
    if same_host and host_of(new_url) != host_of(url):
        raise RequestError(f"{url}: redirects to another host, {new_url}")
    return new_url


def _body(response: http.client.HTTPResponse, url: str, largest: int, watch: "_Watch") -> bytes:
    """The body, read in blocks so that an endless one ends."""
    body = bytearray()
    while block := response.read1(_BLOCK):
        body += block
        if len(body) > largest:
            raise RequestError(f"{url}: more than {largest >> 20} MiB, the most that a page may have")
    watch.check()
    if response.length:  # what is missing
        raise RequestError(f"{url}: the connection broke off")
    return bytes(body)


class _Watch:
    """Cuts a connection when its time is over, as the timeout of a socket starts anew with every byte."""

    def __init__(self, seconds: float) -> None:
        self.late = False
        self._socket: socket.socket | None = None
        self._timer = threading.Timer(seconds, self._cut)
        self._timer.daemon = True

    def __enter__(self) -> "_Watch":
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()

    def attach(self, connection: socket.socket) -> None:
        """Watch this connection from now on."""
        self._socket = connection
        self.check()

    def check(self) -> None:
        """Raise `TimeoutError` if the time is over."""
        if self.late:
            raise TimeoutError

    def _cut(self) -> None:
        self.late = True
        if self._socket is not None:
            with suppress(OSError):  # closed meanwhile
                # Not the method of an SSL socket, which is not made for another thread.
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)


class _Http(http.client.HTTPConnection):
    watch: _Watch

    def connect(self) -> None:
        super().connect()
        self.watch.attach(self.sock)


class _Https(_Http, http.client.HTTPSConnection):
    pass


class _Handler(urllib.request.HTTPHandler, urllib.request.HTTPSHandler):
    def __init__(self, watch: _Watch) -> None:
        super().__init__(context=_certificates())
        self._watch = watch

    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(partial(self._connection, _Http), req)

    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(partial(self._connection, _Https), req, context=_certificates())

    def _connection(self, kind: type[_Http], host: str, **options: Any) -> _Http:  # noqa: ANN401
        connection = kind(host, **options)
        connection.watch = self._watch
        return connection


@cache
def _certificates() -> ssl.SSLContext:
    return ssl.create_default_context()


def _opener(watch: _Watch, *, any_status: bool = False) -> urllib.request.OpenerDirector:
    """For http and https alone; redirects are left to `get`. With `any_status`, no status is an error."""
    opener = urllib.request.OpenerDirector()
    errors = () if any_status else (urllib.request.HTTPDefaultErrorHandler(), urllib.request.HTTPErrorProcessor())
    for handler in (
        urllib.request.ProxyHandler(),
        _Handler(watch),
        *errors,
        urllib.request.UnknownHandler(),
    ):
        opener.add_handler(handler)
    return opener
