"""HTTP: the one module that opens connections, with limits on time, size and redirects, and errors of one line.

`get` reads a page, `stream` gives a response while it arrives; both may be called where an event loop runs, as in a
notebook. `stream_async` is for code that has an event loop, and many requests for one client (`open_client`).

Proxies come from the environment, certificates from the system. Nothing asks for compressed responses, of which a small
one can unpack to gigabytes.
"""

import asyncio
import email.utils
import os
import re
import socket
import ssl
import sys
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from email.message import Message
from functools import cache
from http import HTTPStatus
from urllib.parse import urljoin

import httpx2
from anyio.from_thread import BlockingPortal, start_blocking_portal

from autoais.base.errors import UserError, first_line
from autoais.base.urls import host_of, normalize_url

AGENT = "attributed-rag"
_HEADERS = {"User-Agent": AGENT, "Accept-Encoding": "identity"}
_MAX_REDIRECTS = 10
_REDIRECT_STATUSES = (301, 302, 303, 307, 308)
_GONE_STATUSES = (HTTPStatus.NOT_FOUND, HTTPStatus.GONE)


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a request.

    `seconds` is the time of the whole request, or with `is_idle_time` the time until something arrives. `max_bytes` is
    the size of the body. `redirects` to http and https are followed, with `same_host` only those to the same host;
    without `redirects`, such a response is one like others.
    """

    seconds: float
    max_bytes: int = sys.maxsize
    is_idle_time: bool = False
    redirects: bool = False
    same_host: bool = False


class RequestError(UserError):
    """A request failed; `reason` is the message without the URL, and may hold words of the server.

    `status` is that of the response, if there was one; `retry_after` are the seconds after which the server wants to
    be asked again, 0 if it did not say. `is_connected` says whether a connection was made, `is_too_large` whether the
    body was larger than allowed.
    """

    def __init__(
        self,
        url: str,
        reason: str,
        status: int | None = None,
        *,
        retry_after: float = 0.0,
        is_connected: bool = True,
        is_too_large: bool = False,
    ) -> None:
        super().__init__(f"{url}: {reason}")
        self.reason = reason
        self.status = status
        self.retry_after = retry_after
        self.is_connected = is_connected
        self.is_too_large = is_too_large

    @property
    def is_gone(self) -> bool:
        """Whether the server said that there is no such page."""
        return self.status in _GONE_STATUSES


@dataclass(frozen=True, slots=True)
class Head:
    """What a server says before the body: the URL after redirects, the status with its phrase, and the headers."""

    url: str
    status: int
    phrase: str
    headers: Mapping[str, str]

    @property
    def content_type(self) -> str:
        """The media type in lower case, empty if the server named none."""
        return self._type.get_content_type() if self._type["Content-Type"] else ""

    @property
    def charset(self) -> str:
        """The character encoding in lower case, UTF-8 if the server named none."""
        return self._type.get_content_charset("utf-8")

    @property
    def _type(self) -> Message:
        message = Message()
        message["Content-Type"] = self.headers.get("Content-Type", "")
        return message

    @property
    def retry_after(self) -> float:
        """The seconds after which the server wants to be asked again, 0 if it does not say."""
        return read_retry_after(self.headers.get("Retry-After", ""))

    def error(self, url: str) -> RequestError:
        """Return the error of a request whose response has another status than expected."""
        reason = excerpt(f"the server returned {self.status} {self.phrase}")
        return RequestError(url, reason, self.status, retry_after=self.retry_after)


@dataclass(frozen=True, slots=True)
class Reply(Head):
    """A response that was read; its body is None if it was not modified (304)."""

    body: bytes | None


def is_offline() -> bool:
    """Whether RAG_OFFLINE forbids connections (Hugging Face has HF_HUB_OFFLINE)."""
    return os.environ.get("RAG_OFFLINE", "0") not in ("", "0")


def get(
    url: str, headers: Mapping[str, str] | None = None, *, seconds: float, max_bytes: int, same_host: bool = False
) -> Reply:
    """Request a page and read its body, following redirects.

    Raises `RequestError` as `stream` does, and for a status other than 200 and 304.
    """
    limits = Limits(seconds, max_bytes, redirects=True, same_host=same_host)
    with stream(url, None, headers, limits) as (head, blocks):
        if head.status not in (HTTPStatus.OK, HTTPStatus.NOT_MODIFIED):
            raise head.error(url)
        body = b"".join(blocks) if head.status == HTTPStatus.OK else None
        return Reply(head.url, head.status, head.phrase, head.headers, body)


@contextmanager
def stream(
    url: str, body: bytes | None, headers: Mapping[str, str] | None, limits: Limits
) -> Iterator[tuple[Head, Iterator[bytes]]]:
    """Send a body with POST, or request with GET if it is None; give the head of the response, and its body in blocks.

    The status may be any. Raises `RequestError` for a connection that cannot be made or breaks, and for a response that
    exceeds the limits, also while blocks are read.
    """
    # The event loop runs in a thread of its own, as one may run in the thread of the caller.
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(open_client()) as client,
        portal.wrap_async_context_manager(stream_async(client, url, body, headers, limits)) as (head, blocks),
    ):
        yield head, _wait_for_each(portal, blocks)


def _wait_for_each(portal: BlockingPortal, blocks: AsyncIterator[bytes]) -> Iterator[bytes]:
    while block := portal.call(anext, blocks, b""):
        yield block


def open_client(max_connections: int = 1) -> httpx2.AsyncClient:
    """Return a client for `stream_async`, to be used with `async with`.

    Raises `RequestError` for proxies or certificates of the environment that cannot be used.
    """
    limits = httpx2.Limits(max_connections=max_connections)
    try:
        return httpx2.AsyncClient(headers=_HEADERS, limits=limits, timeout=None, verify=_certificates())
    except (ImportError, OSError, ValueError, httpx2.InvalidURL) as error:
        raise RequestError("the proxies or certificates of the environment", first_line(error)) from error


@cache
def _certificates() -> ssl.SSLContext:
    return httpx2.create_ssl_context()  # reads all certificates, which takes 20 ms


@asynccontextmanager
async def stream_async(
    client: httpx2.AsyncClient, url: str, body: bytes | None, headers: Mapping[str, str] | None, limits: Limits
) -> AsyncIterator[tuple[Head, AsyncIterator[bytes]]]:
    """`stream` with a client for many requests, in its event loop."""
    deadline = _Deadline(url, limits)
    target = normalize_url(url)
    for _ in range(_MAX_REDIRECTS):
        request = client.build_request("GET" if body is None else "POST", target, content=body)
        request.headers.update(httpx2.Headers(headers, encoding="latin-1"))
        async with deadline.keep():
            response = await client.send(request, stream=True)
        response.headers.encoding = "latin-1"  # of any bytes, which are the same when they are sent back
        location = response.headers.get("Location")
        if not limits.redirects or response.status_code not in _REDIRECT_STATUSES or not location:
            break
        await response.aclose()
        target = _redirect_target(url, target, location, same_host=limits.same_host)
    else:
        raise RequestError(url, f"more than {_MAX_REDIRECTS} redirects")
    try:
        head = Head(target, response.status_code, response.reason_phrase, response.headers)
        yield head, _limit_blocks(response, limits.max_bytes, deadline)
    finally:
        await response.aclose()


def _redirect_target(url: str, target: str, location: str, *, same_host: bool) -> str:
    """The URL that a redirect leads to; raises `RequestError` if it is not followed."""
    try:
        new_url = normalize_url(urljoin(target, location))
    except (UserError, ValueError) as reason:
        raise RequestError(url, f"redirects to {location[:200]!r}, which is not followed: {reason}") from None
    if same_host and host_of(new_url) != host_of(url):
        raise RequestError(url, f"redirects to another host, {new_url}")
    return new_url


async def _limit_blocks(response: httpx2.Response, max_bytes: int, deadline: "_Deadline") -> AsyncIterator[bytes]:
    blocks, size = response.aiter_raw(), 0
    while True:
        async with deadline.keep():
            block = await anext(blocks, b"")
        size += len(block)
        if size > max_bytes:
            reason = f"the response is larger than {max_bytes >> 20} MiB"
            raise RequestError(deadline.url, reason, is_too_large=True)
        if not block:
            return
        yield block


class _Deadline:
    """The time limit of a request. A timeout for each read would not do, as a server may send a byte now and then."""

    def __init__(self, url: str, limits: Limits) -> None:
        self.url = url
        self._seconds, self._is_idle_time = limits.seconds, limits.is_idle_time
        self._end = time.monotonic() + limits.seconds

    @asynccontextmanager
    async def keep(self) -> AsyncIterator[None]:
        """Interrupt what takes too long; raises `RequestError` for this and for what breaks."""
        try:
            async with asyncio.timeout(self._seconds if self._is_idle_time else self._end - time.monotonic()):
                yield
        except TimeoutError:
            failure = "no data for" if self._is_idle_time else "no complete reply within"
            raise RequestError(self.url, f"{failure} {self._seconds:.3g} s") from None
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            is_connected = not isinstance(error, httpx2.ConnectError)
            raise RequestError(self.url, _reason(error), is_connected=is_connected) from error


def _reason(error: BaseException) -> str:
    """What the first error of a chain says, such as the words of the operating system."""
    if "without sending complete message body" in str(error):
        return "the connection broke off"
    prefix = "the proxy refused: " if isinstance(error, httpx2.ProxyError) else ""
    while cause := error.__cause__ or next((part for part in error.args if isinstance(part, BaseException)), None):
        error = cause.exceptions[0] if isinstance(cause, BaseExceptionGroup) else cause
    words = os.strerror(error.errno) if isinstance(error, ConnectionError) and error.errno else str(error)
    if isinstance(error, socket.gaierror):
        words = f"the address of the host cannot be looked up: {error.strerror}"
    return excerpt(prefix + words) or "the connection broke off"


def read_retry_after(text: str) -> float:
    """The seconds of a Retry-After header, a number or a date (RFC 9110, section 10.2.3); 0 if it is unreadable."""
    if re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", text):
        return float(text)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(text).timestamp() - time.time())
    except (ValueError, OverflowError):
        return 0.0


def excerpt(text: str, secret: str = "", max_length: int = 200) -> str:
    """The beginning of somebody else's text on one printable line, without the secret."""
    if secret:
        text = text.replace(secret, "[key]")
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= max_length else line[: max_length - 1] + "…"
