"""The API of documents: `GET /v1/documents`, and `PUT` and `DELETE /v1/documents/{name}` for those that people add."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from fastapi import Query
from fastapi.routing import APIRoute
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException
from starlette.middleware.body_limit import RequestBodyLimitMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from rag.base.errors import NotFoundError, UsageError
from rag.documents import SUFFIXES
from rag.serve.api import ERRORS
from rag.serve.http import json_response
from rag.serve.library import Entry, Filter, Libraries, Order
from rag.serve.service import Service
from rag.serve.uploads import MAX_BYTES, UNCHANGEABLE, Change, Documents, State, base_name, safe_name

PATH = "/v1/documents"
_TOO_LARGE = f"the document has more than {MAX_BYTES:,} bytes"
_INDEX = Field(None, description="Name of an index; the first one if none is given.")
_FILE = {"content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}, "required": True}


class _Query(BaseModel):
    """The parameters of an address; unknown ones are refused, so that a typo is not ignored."""

    model_config = ConfigDict(extra="forbid")


class DocumentsQuery(_Query):
    """Which documents to list."""

    index: str | None = _INDEX
    q: str = Field("", max_length=1_000, description="Words that the name or the place should have.")
    order: Order = "name"
    show: Filter = Field("all", description="`uploaded`: added by people; `left-out`: not read whole.")
    offset: int = Field(0, ge=0, le=1_000_000_000)
    limit: int = Field(100, ge=1, le=1_000)


class ChangeQuery(_Query):
    """The index to change."""

    index: str | None = Field(
        None, description="Name of an index; the first one that takes documents if none is given."
    )


class DocumentInfo(BaseModel):
    """A document of an index."""

    name: str = Field(description="What the ids of its passages begin with, before `#`.")
    place: str = Field(description="The folder or file that the index was given, or the URL; empty if it was added.")
    upload: str | None = Field(description="Its name for PUT and DELETE; null if it was not added by people.")
    size: int = Field(description="Bytes.")
    modified: str | None = Field(description="ISO 8601, UTC; null if it is not known.")
    passages: int
    left_out: str = Field(description="What is missing of it and why; empty if nothing is.")


class DocumentsResponse(BaseModel):
    """Documents of an index; `total` is the number of all that match."""

    index: str
    checksum: str
    total: int
    documents: list[DocumentInfo]


class ChangeResponse(BaseModel):
    """What became of a document, and the index after it."""

    index: str
    checksum: str
    passages: int
    document: DocumentInfo | None = Field(description="Null for a document that was deleted.")


def routes(service: Service, documents: Mapping[str, Documents], libraries: Libraries) -> list[APIRoute]:
    """Return the routes; `documents` are those that callers may change, by the name of the index."""
    api = _DocumentsApi(service, documents, libraries)
    listing = APIRoute(PATH, api.list, methods=["GET"], response_model=DocumentsResponse, **_common())
    put = APIRoute(
        f"{PATH}/{{name}}",
        api.put,
        methods=["PUT"],
        response_model=ChangeResponse,
        openapi_extra={"requestBody": _FILE},
        **_common(),
    )
    put.app = RequestBodyLimitMiddleware(put.app, MAX_BYTES + 1)
    delete = APIRoute(f"{PATH}/{{name}}", api.delete, methods=["DELETE"], response_model=ChangeResponse, **_common())
    return [listing, put, delete]


def _common() -> dict[str, Any]:
    return {"responses": ERRORS, "tags": ["v1"]}


class _DocumentsApi:
    def __init__(self, service: Service, documents: Mapping[str, Documents], libraries: Libraries) -> None:
        self._service, self._documents, self._libraries = service, documents, libraries

    async def list(self, body: Annotated[DocumentsQuery, Query()]) -> Response:
        """List the documents of an index, with what was left out of each."""
        name = body.index or next(iter(self._service.indexes))
        index = self._service.indexes.get(name)
        if index is None:
            raise NotFoundError(f"no index called {name[:100]!r}; there are: {', '.join(self._service.indexes)}")
        library = await asyncio.to_thread(self._libraries.open, name, index)
        entries = library.find(body.q, body.order, body.show)
        return json_response(
            {
                "index": name,
                "checksum": str(index.manifest["checksum"]),
                "total": len(entries),
                "documents": [_info(entry) for entry in entries[body.offset : body.offset + body.limit]],
            }
        )

    async def put(self, request: Request, name: str, body: Annotated[ChangeQuery, Query()]) -> Response:
        """Add a document, or replace the one that was added with this name; returns once the index is complete.

        The name is stored with its letters and digits only; `upload` of the response is the name from then on.
        """
        documents = self._find(body.index)
        target = safe_name(name)
        if target is None:
            raise UsageError(f"{base_name(name)[:100]!r} is not a document ({', '.join(sorted(SUFFIXES))})")
        path = documents.new_file(name)
        try:
            await _receive(request, path)
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        return await self._make(documents, Change(base_name(name)[:200], path, target))

    async def delete(self, name: str, body: Annotated[ChangeQuery, Query()]) -> Response:
        """Delete a document that was added; returns once its passages have left the index."""
        documents = self._find(body.index)
        library = await self._open(documents)
        if name not in library.uploads:
            raise NotFoundError(f"no document {name[:100]!r} was added to {documents.name}")
        return await self._make(documents, Change(name, None, name))

    def _find(self, name: str | None) -> Documents:
        name = name or next(iter(self._documents), "")
        if name not in self._documents:
            raise NotFoundError(f"no index called {name[:100]!r} takes documents: rag serve --allow-uploads NAME")
        return self._documents[name]

    async def _open(self, documents: Documents) -> Any:  # noqa: ANN401
        return await asyncio.to_thread(self._libraries.open, documents.name, self._service.indexes[documents.name])

    async def _make(self, documents: Documents, change: Change) -> Response:
        """Queue a change, wait for its end, and return what became of it. A client that hangs up does not stop it."""
        documents.submit([change])
        state = await asyncio.shield(asyncio.wrap_future(change.finished))
        if state is State.CANCELLED:
            raise HTTPException(409, "the change was cancelled")
        if change.message == UNCHANGEABLE:
            raise HTTPException(503, change.message, {"Retry-After": "60"})
        if state is State.FAILED:
            raise UsageError(f"{change.name}: {change.message}")
        library = await self._open(documents)
        entry = None if change.path is None else library.uploads.get(change.target)
        return json_response(
            {
                "index": documents.name,
                "checksum": str(library.index.manifest["checksum"]),
                "passages": library.index.manifest["passages"],
                "document": entry and _info(entry),
            }
        )


async def _receive(request: Request, path: Path) -> None:
    length, size = request.headers.get("content-length", ""), 0
    if length.isdecimal() and int(length[:20]) > MAX_BYTES:
        raise HTTPException(413, _TOO_LARGE)
    try:
        with path.open("wb") as file:
            async for chunk in request.stream():
                size += len(chunk)
                if size > MAX_BYTES:
                    raise HTTPException(413, _TOO_LARGE)
                file.write(chunk)
    except ClientDisconnect:
        raise HTTPException(400, "the document did not come whole") from None


def _info(entry: Entry) -> dict[str, object]:
    document = entry.document
    return {
        "name": document.name,
        "place": entry.place,
        "upload": entry.upload or None,
        "size": document.size,
        "modified": document.modified.isoformat(timespec="seconds") if document.modified else None,
        "passages": document.passages,
        "left_out": document.left_out,
    }
