"""The web application of a service: `create_app(Service({"handbook": rag.open_index()}))`."""

import asyncio
import re
import sys
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TypedDict, Unpack, get_type_hints

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

import rag
from autoais.base.io.jsonl import dumps
from rag.answer.llms import Price
from rag.api import open_index
from rag.base.config import DEFAULT_JUDGE, DEFAULT_SYSTEM
from rag.base.errors import UsageError, UserError, check_type
from rag.base.terminal import pluralize
from rag.index.index import Index
from rag.serve import documents_api, mcp, openai, pages
from rag.serve.api import Api
from rag.serve.gate import Gate, SignIn
from rag.serve.http import error_parts, error_response
from rag.serve.invalid import wrong_request
from rag.serve.keys import Keys
from rag.serve.library import Libraries
from rag.serve.metrics import CountRequests, Metrics
from rag.serve.openai import Cite
from rag.serve.originals import ServedOriginals
from rag.serve.service import Limits, Reply, Service
from rag.serve.uploads import Documents
from rag.web.security import list_hosts, middleware
from rag.web.server import serve

_ORIGIN = re.compile(r"https?://(?:[^/?#\s\[\]]+|\[[0-9a-fA-F:.]+\](?::\d+)?)")
MAX_BODY = 4 << 20  # characters of 100 pieces of evidence, and room for escapes


class AppOptions(TypedDict, total=False):
    """The options of an application.

    `base_url` is the public address, such as `https://rag.example.org`: links begin with it, and requests to its host
    are accepted, as are those to loopback names and `hosts`. With `keys`, every request needs one; `rate` is the number
    of requests in a minute that a key, or else a client, may send. Pages of the origins in `cors` may call the API.
    Documents may be added to the indexes named in `uploads`. `price` is that of a million tokens read and written,
    which pages show as costs; `cite` says how answers cite in OpenAI's API (`rag.serve.openai`). `originals` says
    whether callers may see the files that the indexes were built from; by default only where requests to no other than
    loopback names are accepted. `feedback` is the file that ratings of answers go to
    (`rag.serve.feedback`); without one, the page takes none.
    """

    base_url: str | None
    keys: Keys | None
    rate: int | None
    cors: Sequence[str]
    hosts: Sequence[str]
    uploads: Sequence[str]
    price: Price | None
    feedback: Path | None
    cite: Cite
    originals: bool | None


def create_app(service: Service, **options: Unpack[AppOptions]) -> FastAPI:
    """Return the application of a service.

    Raises `UsageError` for an address or an origin of another form, and for an index that takes no documents.
    """
    base_url, cors = options.get("base_url"), options.get("cors", ())
    metrics, sign_in = Metrics(service), SignIn(options.get("keys") or Keys(), base_url)
    host_names = (*list_hosts(base_url), *options.get("hosts", ()))
    *checks, body_limit = middleware(host_names, _on_other_host, max_body=MAX_BODY)
    mcp_routes, mcp_running = mcp.http_routes(service, base_url=base_url, hosts=host_names, max_body=MAX_BODY)
    origins = [*cors, *([base_url.rstrip("/")] if base_url else [])]
    gate = Middleware(Gate, sign_in=sign_in, rate=options.get("rate"), origins=origins, max_body=MAX_BODY)
    measure = Middleware(CountRequests, metrics=metrics)
    documents = {name: Documents(service, name) for name in options.get("uploads", ())}
    libraries = Libraries({name: those.is_upload for name, those in documents.items()})

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncGenerator[None, None]:
        reopening = asyncio.create_task(service.follow())
        async with mcp_running():
            yield
        reopening.cancel()
        await asyncio.gather(*(asyncio.to_thread(those.close) for those in documents.values()))
        service.close()

    async def ready(_: Request) -> Response:
        """Answer ok if a question would be answered now, and 503 if too many wait."""
        return PlainTextResponse("busy\n", 503) if service.workers.full else PlainTextResponse("ok\n")

    app = FastAPI(
        title="attributed-rag",
        version=rag.__version__,
        summary="Answers in which every sentence cites a passage and the span that supports it.",
        docs_url=None,  # both load scripts from other hosts
        redoc_url=None,
        telemetry={"tracing": False, "metrics": False, "logs": False, "auto_configure": False},  # nothing is sent
        middleware=[*checks, measure, *_cors(cors), gate, body_limit],
        exception_handlers={
            UserError: _on_user_error,
            RequestValidationError: _on_invalid,
            HTTPException: _on_http_error,
            Exception: _on_error,
        },
        lifespan=lifespan,
    )
    is_allowed = options.get("originals")
    if is_allowed is None:  # only this machine can ask, whose files they are
        is_allowed = base_url is None and not options.get("hosts")
    originals = ServedOriginals(service, is_allowed=is_allowed)
    app.include_router(Api(service, base_url, originals).router())
    app.add_route("/healthz", _health, include_in_schema=False)
    app.add_route("/readyz", ready, include_in_schema=False)
    app.add_route("/metrics", metrics.page, include_in_schema=False)
    page_routes = pages.routes(
        service,
        documents,
        libraries,
        price=options.get("price"),
        base_url=base_url,
        feedback=options.get("feedback"),
        originals=originals,
    )
    openai_routes = openai.routes(service, base_url=base_url, cite=options.get("cite", "markers"))
    document_routes = documents_api.routes(service, documents, libraries)
    app.router.routes.extend([*document_routes, *openai_routes, *mcp_routes, *sign_in.routes(), *page_routes])
    return app


def serve_indexes(
    indexes: Mapping[str, Index | str | Path],
    *,
    systems: Sequence[str] | Mapping[str, str] = (DEFAULT_SYSTEM,),
    judge: str = DEFAULT_JUDGE,
    limits: Limits | None = None,
    host: str = "127.0.0.1",
    port: int = 8000,
    log_questions: bool = False,
    log: Callable[[str], None] = lambda line: None,
    **options: Unpack[AppOptions],
) -> None:
    """Serve pages and APIs over indexes, by name, until SIGINT or SIGTERM; `rag serve` as a library call.

    `systems`, `judge` and `limits` are those of `Service`, `options` those of the application (`AppOptions`).
    `log_questions` writes questions and outcomes to stderr, as JSON lines; `log` receives the lines that `rag serve`
    prints. Raises `UserError` for what cannot be opened or used.
    """
    check_type("indexes", indexes, "a dict of names and indexes", Mapping)
    open_indexes = {name: index if isinstance(index, Index) else open_index(index) for name, index in indexes.items()}
    service = Service(open_indexes, systems, judge=judge, limits=limits)
    app = create_app(service, **options)
    if log_questions:
        service.watch(_log)
    service.warm()
    for name, index in service.indexes.items():
        log(f"{name}: {pluralize(index.manifest['passages'], 'passage')}")
    serve(app, host=host, port=port, log=log, stopping=service.stop)


def _log(reply: Reply) -> None:
    entry = {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "index": reply.index,
        "system": reply.system,
        "question": reply.question,
        "abstained": reply.answer.abstained,
        "failed": reply.answer.failed,
        "seconds": round(reply.seconds, 3),
    }
    sys.stderr.write(f"{dumps(entry)}\n")
    sys.stderr.flush()


def _cors(origins: Sequence[str]) -> list[Middleware]:
    for origin in origins:
        if origin != "*" and not _ORIGIN.fullmatch(origin):
            raise UsageError(f"origin {origin!r}: should be like https://app.example.org, without a path, or *")
    cors = Middleware(
        CORSMiddleware,
        allow_origins=list(origins),
        allow_methods=["GET", "POST"],
        allow_headers=["Authorization", "Content-Type"],
        expose_headers=["Retry-After", "X-Ignored-Parameters"],
    )
    return [cors] if origins else []


async def _health(request: Request) -> Response:
    """Say that the process is alive."""
    return PlainTextResponse("ok\n")


async def _on_user_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, UserError)
    return error_response(request, *error_parts(error))


async def _on_invalid(request: Request, error: Exception) -> Response:
    """Name the field that is wrong, without repeating texts of the request."""
    assert isinstance(error, RequestValidationError)
    model: type[BaseModel] = get_type_hints(request.scope["endpoint"])["body"]
    return error_response(request, 422, "UsageError", wrong_request(list(error.errors()), model))


def _on_other_host(request: Request, name: str) -> Response:
    message = f"this server does not answer to the name {name!r}; rag serve --allow-host NAME allows it"
    return error_response(request, 400, "HTTPError", message)


async def _on_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return error_response(request, error.status_code, "HTTPError", str(error.detail), error.headers)


async def _on_error(request: Request, error: Exception) -> Response:
    """Say that the server failed, without details; its log has them."""
    return error_response(request, 500, "InternalError", "the server has a fault; its log says more")
