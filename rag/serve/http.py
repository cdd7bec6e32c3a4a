"""What the routes of `rag serve` share: JSON, errors, event streams, and clients that disconnect."""

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from typing import TypeVar

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from autoais.base.io.jsonl import dumps
from rag.base.errors import (
    BusyError,
    ModelFailureError,
    NotFoundError,
    QuestionError,
    TimeLimitError,
    UsageError,
    UserError,
)
from rag.retrieval.client import UnreachableError
from rag.web.pages import Pages, sentence
from rag.web.security import HEADERS

T = TypeVar("T")

_OPENAI = ("/v1/chat/", "/v1/completions", "/v1/responses", "/v1/models")
_PROGRAMS = ("/v1/", "/mcp", "/healthz", "/readyz", "/metrics", "/openapi.json")
_OPENAI_CODES = {401: ("invalid_request_error", "invalid_api_key"), 429: ("requests", "rate_limit_exceeded")}
_PAGES = Pages("rag.web")
_UNREACHABLE = "a server that this needs does not answer now; try again later"
_FAULT = "the server cannot answer this now; its log says why"
_log = logging.getLogger(__name__)


def base_of(request: Request, base_url: str | None) -> str:
    """Return the address that links begin with: the configured one, or else that of the request."""
    return base_url.rstrip("/") if base_url else f"{request.url.scheme}://{request.url.netloc}"


def json_response(value: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return JSON; non-ASCII characters are sent as they are."""
    body = value if isinstance(value, bytes) else dumps(value).encode()
    return Response(body, status, headers, "application/json")


def status_of(error: UserError) -> int:
    """Return the HTTP status of an error: 400 if the caller can fix it, 500 if only the operator can, or its own."""
    if isinstance(error, NotFoundError):
        return 404
    if isinstance(error, BusyError):
        return 503
    if isinstance(error, ModelFailureError):
        return 502
    if isinstance(error, TimeLimitError):
        return 504
    return 400 if isinstance(error, UsageError | QuestionError) else 500


def error_parts(error: UserError) -> tuple[int, str, str]:
    """Return the status, the type and the message of an error for its caller.

    An error that only the operator can fix may name paths and addresses: it is logged, and the caller gets another
    line.
    """
    status = status_of(error)
    if status != 500 and not isinstance(error, UnreachableError):
        return status, type(error).__name__, str(error)
    _log.error("%s", error)
    return (503, "BusyError", _UNREACHABLE) if status == 503 else (500, "InternalError", _FAULT)


def retry_header(status: int) -> dict[str, str]:
    """Return the header that says when to try again; empty if that would not help."""
    return {"Retry-After": "5"} if status == 503 else {}


def error_body(path: str, status: int, kind: str, message: str) -> dict[str, object]:
    """Return the JSON of an error, in OpenAI's shape for the paths of its API."""
    if path.startswith(_OPENAI):
        default = ("invalid_request_error" if status < 500 else "server_error", kind)
        error_type, code = _OPENAI_CODES.get(status, default)
        return {"error": {"message": message, "type": error_type, "param": None, "code": code}}
    return {"error": {"type": kind, "message": message}}


def error_response(
    request: Request, status: int, kind: str, message: str, headers: Mapping[str, str] | None = None
) -> Response:
    """Return an error: JSON for programs, a page for browsers."""
    headers = {**HEADERS, **retry_header(status), **(headers or {})}
    if not wants_page(request):
        return json_response(error_body(request.scope["path"], status, kind, message), status, headers)
    return _PAGES.error(status, sentence(message), headers)


async def read_json(request: Request) -> object:
    """Return the JSON that the script of a page sends; raises `UsageError` for another body.

    No form of another site can send this content type.
    """
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise HTTPException(415, "what is sent should be JSON")
    try:
        return json.loads(await request.body())
    except (ValueError, RecursionError, ClientDisconnect) as error:
        raise UsageError("what was sent is not JSON") from error


def with_messages(
    endpoint: Callable[[Request], Awaitable[Response]],
) -> Callable[[Request], Awaitable[Response]]:
    """Return the endpoint with its errors as JSON for the script of a page: a message of one sentence."""

    async def answer(request: Request) -> Response:
        try:
            return await endpoint(request)
        except UserError as error:
            status, _, message = error_parts(error)
            return json_response({"message": sentence(message)}, status, retry_header(status))
        except HTTPException as error:
            return json_response({"message": sentence(error.detail)}, error.status_code, error.headers)

    return answer


def wants_page(request: Request) -> bool:
    """Return whether a browser asks for a page."""
    return not request.scope["path"].startswith(_PROGRAMS) and "text/html" in request.headers.get("accept", "")


async def cancel_on_disconnect(request: Request, work: Awaitable[T]) -> T:
    """Return the result of the work; a client that disconnects cancels it. The body must have been read."""
    task, disconnect = asyncio.ensure_future(work), asyncio.ensure_future(_wait_for_disconnect(request))
    try:
        await asyncio.wait({task, disconnect}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise HTTPException(499, "the client hung up")
    finally:
        task.cancel()
        disconnect.cancel()


async def _wait_for_disconnect(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def last_item(items: AsyncGenerator[T, None]) -> T:
    """Return the last item; there must be one. Cancelling the call ends the work."""
    async with aclosing(items):
        async for item in items:
            last = item
    return last


class EventStream(StreamingResponse):
    """Server-sent events from a generator, which is closed when the client disconnects."""

    def __init__(self, events: AsyncGenerator[bytes, None]) -> None:
        # Without this header, proxies such as nginx buffer the events.
        super().__init__(events, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})
        self._events = events

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the events."""
        try:
            await super().__call__(scope, receive, send)
        except ClientDisconnect:
            pass
        finally:
            await self._events.aclose()


def event(name: str, value: object) -> bytes:
    """Return one server-sent event with JSON, which has no line ends."""
    return f"event: {name}\ndata: {dumps(value)}\n\n".encode()
