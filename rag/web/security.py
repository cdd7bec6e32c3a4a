"""Security of the pages: headers, allowed hosts, tokens against forged requests, limits on size and guesses."""

import hmac
import re
import time
from collections import deque
from collections.abc import Callable, Sequence
from urllib.parse import urlsplit

from starlette.datastructures import MutableHeaders
from starlette.middleware import Middleware
from starlette.middleware.body_limit import RequestBodyLimitMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rag.base.errors import UserError

HostRefusal = Callable[[Request, str], Response]
"""Makes the response to a request for another host; it gets the name of that host."""

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")

HEADERS = {
    "Cache-Control": "no-store",  # pages are private; static files say otherwise
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Referrer-Policy": "same-origin",  # with no-referrer, browsers send forms of our own pages with Origin: null
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",  # frame-ancestors, for browsers that do not know it
}


def middleware(hosts: Sequence[str], refuse: HostRefusal, *, max_body: int) -> list[Middleware]:
    """Return the middleware of an application: headers, one length, Host check, at most `max_body` bytes.

    A page of another host cannot reach the application by DNS rebinding, as its Host header names that host; `refuse`
    makes the response.
    """
    return [
        Middleware(_AddHeaders),
        Middleware(_CheckLength),
        Middleware(_CheckHost, hosts=hosts, refuse=refuse),
        Middleware(RequestBodyLimitMiddleware, max_body_size=max_body),
    ]


def list_hosts(base_url: str | None) -> tuple[str, ...]:
    """Return the names that a Host header may have: loopback, and the host of the public address.

    Raises `UserError` if `base_url` is no address of a host, such as `https://study.example.org`.
    """
    if base_url is None:
        return LOOPBACK
    try:
        parts = urlsplit(base_url)
    except ValueError as error:  # http://[
        raise UserError(f"base URL {base_url!r}: {error}") from error
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.path.strip("/") or parts.query:
        raise UserError(f"base URL {base_url!r}: should be like https://study.example.org, without a path")
    return (*LOOPBACK, f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname)


class _AddHeaders:
    """Adds `HEADERS` to responses that do not have them."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, with_headers)


class _CheckLength:
    """Refuses a request with both Content-Length and Transfer-Encoding, which h11 lets through.

    A proxy that believes the other header would take the rest of the body for the next request (RFC 9112, 6.3).
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        names = {name.lower() for name, _ in scope.get("headers", ())}
        if {b"content-length", b"transfer-encoding"} <= names:
            message = "a request may not have both Content-Length and Transfer-Encoding\n"
            await PlainTextResponse(message, 400, {"Connection": "close"})(scope, receive, send)
        else:
            await self._app(scope, receive, send)


class _CheckHost:
    """Starlette's check of the Host header, with an answer that says what to do."""

    def __init__(self, app: ASGIApp, hosts: Sequence[str], refuse: HostRefusal) -> None:
        self._app, self._hosts, self._refuse = app, hosts, refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_allowed = False

        async def pass_on(scope: Scope, receive: Receive, send: Send) -> None:
            nonlocal is_allowed
            is_allowed = True
            await self._app(scope, receive, send)

        async def filter_send(message: Message) -> None:
            if is_allowed:  # the check's own answer is left out
                await send(message)

        await TrustedHostMiddleware(pass_on, self._hosts, www_redirect=False)(scope, receive, filter_send)
        if not is_allowed:
            request = Request(scope, receive)
            name = re.sub(r":\d*$", "", request.headers.get("host", ""))[:100]
            await self._refuse(request, name)(scope, receive, send)


def signature(session: str, *parts: str) -> str:
    """Return a signature of the parts; only a holder of the session cookie can make it."""
    return hmac.new(
        session.encode("utf-8", "replace"), "\0".join(parts).encode("utf-8", "replace"), "sha256"
    ).hexdigest()


def csrf_token(session: str) -> str:
    """Return the token that forms of this session send back; pages of other hosts do not know it."""
    return signature(session, "csrf")


def is_csrf_token(session: str, token: str) -> bool:
    """Return whether the token belongs to the session, in constant time."""
    return hmac.compare_digest(csrf_token(session).encode(), token.encode("utf-8", "replace"))


def client_of(request: Request) -> str:
    """Return the address of the client; empty if the server does not know it."""
    return request.client.host if request.client else ""


class FailureLimiter:
    """Counts failures by client: at most `limit` within `seconds`. For one event loop, without locks.

    The defaults are those for wrong keys and links.
    """

    _MAX_CLIENTS = 10_000  # clients remembered

    def __init__(self, limit: int = 20, seconds: float = 60.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._limit, self._seconds, self._clock = limit, seconds, clock
        self._failures: dict[str, deque[float]] = {}

    def count_failure(self, client: str) -> None:
        """Count a failure of the client."""
        failures = self._failures.pop(client, None) or deque(maxlen=self._limit)
        failures.append(self._clock())
        self._failures[client] = failures  # at the end: the client that failed last is forgotten last
        while len(self._failures) > self._MAX_CLIENTS:
            del self._failures[next(iter(self._failures))]

    def wait(self, client: str) -> int:
        """Return how many seconds the client must wait, 0 if it may try."""
        failures = self._failures.get(client)
        if not failures or len(failures) < self._limit:
            return 0
        remaining = failures[0] + self._seconds - self._clock()
        return max(0, int(remaining) + 1) if remaining > 0 else 0
