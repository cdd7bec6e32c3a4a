"""Runs an application with uvicorn."""

import ipaddress
import socket
from collections.abc import Callable

from starlette.applications import Starlette

from rag.errors import RagError, missing_extra
from rag.web.security import LOOPBACK

_GRACE = 10  # seconds that running requests have when the server stops


def serve(
    app: Starlette, *, host: str = "127.0.0.1", port: int = 8000, tell: Callable[[str], None] = lambda line: None
) -> None:
    """Serve until SIGINT or SIGTERM. `tell` receives the address, and whether only this machine can reach it.

    Nothing is logged about requests: addresses may hold personal links. Behind a proxy on this machine, the client's
    address and scheme are those of its X-Forwarded headers. Port 0 takes a free one. Raises `RagError` if the port
    cannot be used, or without uvicorn.
    """
    try:
        import uvicorn
    except ImportError as error:
        raise missing_extra("the server", "annotate") from error
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        listening = socket.create_server((host, port), family=found[0], backlog=2048)
    except OSError as error:
        raise RagError(
            f"cannot listen on {host} port {port}: {error.strerror or error}; choose another --port"
        ) from None
    with listening:
        name = f"[{host}]" if ":" in host else host
        tell(f"http://{name}:{listening.getsockname()[1]}")
        tell("Only this machine can reach it." if is_loopback(host) else f"Other machines can reach it on {host}.")
        config = uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=_GRACE,
        )
        uvicorn.Server(config).run(sockets=[listening])


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach the host."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() in LOOPBACK
