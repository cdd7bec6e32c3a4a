"""Runs an application with uvicorn."""

import asyncio
import errno
import os
import socket
from collections.abc import Callable

from starlette.applications import Starlette
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from autoais.base.urls import is_loopback
from rag.base.errors import RagError, missing_extra

_GRACE = 8  # seconds that running requests have when the server stops: with what follows, 10 at most
_IDLE = 75  # seconds that a connection stays open between requests: longer than clients and proxies keep theirs
_PROXIES = "127.0.0.1,::1,::ffff:127.0.0.1"  # this machine
_PORT_FAULTS = (errno.EADDRINUSE, errno.EACCES)


def serve(
    app: Starlette,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    log: Callable[[str], None] = lambda line: None,
    stopping: Callable[[], None] = lambda: None,
) -> None:
    """Serve until SIGINT or SIGTERM. `log` receives the address, and whether only this machine can reach it.

    `stopping` is called when the end begins. Nothing is logged about requests: addresses may hold personal links. The
    client's address and scheme are those of the X-Forwarded headers of a proxy on this machine, or of one whose address
    is in FORWARDED_ALLOW_IPS. Port 0 takes a free one. Raises `RagError` if the address or the port cannot be used, or
    without uvicorn.
    """
    try:
        import uvicorn

        from rag.web.connection import Connection
    except ImportError as error:
        raise missing_extra("the server", "web") from error
    _allow_connections()
    try:
        address_info = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        is_dual = host == "::" and socket.has_dualstack_ipv6()  # IPv4 too
        listening = socket.create_server((host, port), family=address_info[0], backlog=2048, dualstack_ipv6=is_dual)
    except OSError as error:
        option = "--port" if error.errno in _PORT_FAULTS else "--host"
        reason = (error.strerror or str(error)).partition(" (while")[0]
        raise RagError(f"cannot listen on {host} port {port}: {reason}; choose another {option}") from None
    # asyncio sets it only for sockets that name their protocol; without it, small answers come 40 ms late.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with listening:
        log(address(host, listening.getsockname()[1]))
        log("Only this machine can reach it." if is_loopback(host) else f"Other machines can reach it on {host}.")
        config = uvicorn.Config(
            _ShutdownResponses(app),
            log_level="warning",
            access_log=False,
            server_header=False,
            http=Connection,
            ws="none",
            timeout_keep_alive=_IDLE,
            timeout_graceful_shutdown=_GRACE,
            forwarded_allow_ips=os.environ.get("FORWARDED_ALLOW_IPS") or _PROXIES,
        )

        class Server(uvicorn.Server):
            async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
                stopping()
                await super().shutdown(sockets)

        Server(config).run(sockets=[listening])


def address(host: str, port: int) -> str:
    """Return the address of a server on a host and a port; IPv6 has brackets."""
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def other_address(host: str, port: int, example: str) -> str:
    """Return an address that other machines might use: of the host, or of `example` where it stands for all."""
    return address(example if host in ("0.0.0.0", "::") else host, port)


class _ShutdownResponses:
    """Answers 503 to requests that the end of the server interrupts; else clients would get an error 500."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        has_started = False

        async def note_start(message: Message) -> None:
            nonlocal has_started
            has_started = True
            await send(message)

        try:
            await self._app(scope, receive, note_start)
        except asyncio.CancelledError:
            if not has_started:
                later = {"Retry-After": "10"}
                if scope["path"].startswith("/v1/"):  # an API, whose errors are one object
                    error = {"type": "BusyError", "message": "the server is stopping; ask again later"}
                    await JSONResponse({"error": error}, 503, later)(scope, receive, send)
                else:
                    await PlainTextResponse("the server is stopping\n", 503, later)(scope, receive, send)


def _allow_connections() -> None:
    """Raise the limit of open files to what the system allows: a thousand idle connections must not fill it."""
    try:
        import resource

        _, limit = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    except (ImportError, OSError, ValueError):  # Windows; not allowed
        return
