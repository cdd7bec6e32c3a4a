"""The tab Documents: the documents of an index as a list, and forms to add, replace and delete those of people."""

import asyncio
import hashlib
import re
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from markupsafe import Markup
from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException
from starlette.middleware import Middleware
from starlette.middleware.body_limit import RequestBodyLimitMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from rag.base.errors import NotFoundError, UsageError
from rag.base.terminal import megabytes, pluralize
from rag.documents import SUFFIXES
from rag.index.index import Index
from rag.serve.library import Entry, Libraries
from rag.serve.links import passage_url
from rag.serve.site import Site
from rag.serve.uploads import MAX_BYTES, MAX_FILES, Change, Documents, State, base_name
from rag.web.security import csrf_token, is_csrf_token

MAX_BODY = MAX_BYTES + (1 << 20)  # of a form with files
_COOKIE = "rag-documents"
_PAGE_SIZE = 50
_TOO_LARGE = f"That is more than {MAX_BYTES >> 20} MiB; send fewer files at a time."
_ORDERS = (("name", "by name"), ("newest", "newest first"), ("largest", "largest first"))
_FILTERS = (("all", "all documents"), ("uploaded", "added on this page"), ("left-out", "not read whole"))


class DocumentPages:
    """The pages of documents; `documents` are those that people may change, by the name of the index."""

    def __init__(self, site: Site, documents: Mapping[str, Documents], libraries: Libraries) -> None:
        self._site, self._documents, self._libraries = site, documents, libraries

    def routes(self) -> list[Route]:
        """Return the routes."""
        wrap, larger = self._site.with_error_pages, Middleware(RequestBodyLimitMiddleware, max_body_size=MAX_BODY)
        return [
            Route("/documents", wrap(self.page)),
            Route("/documents/{index}", wrap(self.upload), methods=["POST"], middleware=[larger]),
            Route("/documents/{index}/delete", wrap(self.delete), methods=["POST"]),
            Route("/documents/{index}/cancel", wrap(self.cancel), methods=["POST"]),
            Route("/documents/{index}/progress", wrap(self.progress)),
        ]

    # --- the page -----------------------------------------------------------------------------------------------------

    async def page(self, request: Request) -> Response:
        """Show the documents of an index, and if people may change them the forms and the latest changes."""
        names = [name for name, index in self._site.service.indexes.items() if has_documents(index)]
        name = request.query_params.get("index") or next(iter([*self._documents, *names]), "")
        if name not in names:
            raise NotFoundError(f"no index called {name[:100]!r} lists its documents")
        session = request.cookies.get(_COOKIE, "")
        fresh = session if re.fullmatch(r"[\w-]{20,100}", session, re.ASCII) else secrets.token_urlsafe(24)
        token, documents = csrf_token(fresh), self._documents.get(name)
        response = self._site.page(
            request,
            "documents.html.j2",
            "Documents",
            csrf=token,
            name=name,
            names=names,
            suffixes=", ".join(sorted(SUFFIXES)),
            max_bytes=MAX_BYTES,
            max_files=MAX_FILES,
            takes_files=documents is not None,
            report=documents and self._report(documents, token),
            refreshes=documents is not None and documents.running and "follow" in request.query_params,
            **await asyncio.to_thread(self._list, name, token, request.query_params),
        )
        if fresh != session:
            secure = request.url.scheme == "https"
            response.set_cookie(_COOKIE, fresh, path="/documents", secure=secure, httponly=True, samesite="strict")
        return response

    def _list(self, name: str, token: str, parameters: Mapping[str, str]) -> dict[str, Any]:
        """Return the values of the list: a page of what is searched for."""
        index = self._site.service.indexes[name]
        library = self._libraries.open(name, index)
        query, order, show = (parameters.get(key, "") for key in ("q", "order", "show"))
        entries = library.find(query, order or "name", show or "all")
        page_count = max(1, -(-len(entries) // _PAGE_SIZE))
        text = parameters.get("page", "1")
        number = min(max(int(text) if re.fullmatch("[0-9]{1,9}", text) else 1, 1), page_count)
        shown = entries[(number - 1) * _PAGE_SIZE : number * _PAGE_SIZE]

        def address(target: int) -> str:
            values = {"index": name, "q": query, "order": order, "show": show, "page": target}
            return f"/documents?{urlencode({key: value for key, value in values.items() if value})}"

        return {
            "query": query,
            "order": order or "name",
            "show": show or "all",
            "orders": _ORDERS,
            "filters": _FILTERS,
            "library": self._site.part(
                "library.html.j2",
                name=name,
                csrf=token,
                checksum=index.manifest["checksum"],
                count=f"{pluralize(len(library), 'document')}, {pluralize(index.manifest['passages'], 'passage')}",
                match_count=None if len(entries) == len(library) else len(entries),
                rows=[_row(entry, name, index) for entry in shown],
                page=number,
                page_count=page_count,
                before=address(number - 1) if number > 1 else "",
                after=address(number + 1) if number < page_count else "",
            ),
        }

    def _report(self, documents: Documents, token: str) -> Markup:
        changes = documents.changes
        return self._site.part(
            "changes.html.j2",
            name=documents.name,
            csrf=token,
            changes=list(reversed(changes)),
            open_states=(State.WAITING, State.RUNNING),
            State=State,
            running=documents.running,
            step=documents.step,
            done_count=documents.done_count,
            total=documents.total,
        )

    # --- changes ------------------------------------------------------------------------------------------------------

    async def upload(self, request: Request) -> Response:
        """Take the files of the form: new documents, or one that replaces the document named in `replace`."""
        documents = self._find_documents(request)
        length = request.headers.get("content-length", "")
        if length.isdecimal() and int(length[:20]) > MAX_BODY:
            raise HTTPException(413, _TOO_LARGE)
        try:
            form = await request.form(max_files=MAX_FILES, max_fields=5)
        except (MultiPartException, ClientDisconnect):
            raise HTTPException(400, f"The files could not be read; at most {MAX_FILES} at a time.") from None
        try:
            _check_token(request, form)
            files = [file for file in form.getlist("files") if isinstance(file, UploadFile) and file.filename]
            target = form.get("replace", "")
            if not files or (target and len(files) != 1):
                raise UsageError("choose one file" if target else "no file was chosen")
            if sum(file.size or 0 for file in files) > MAX_BYTES:
                raise HTTPException(413, _TOO_LARGE)
            if target:
                await self._check_upload(documents, target)
            documents.submit(await _receive(documents, files, str(target)))
        finally:
            await form.close()
        return self._respond(request, documents)

    async def delete(self, request: Request) -> Response:
        """Delete the document named in `document`."""
        documents, form = await self._read_form(request)
        target = form.get("document", "")
        await self._check_upload(documents, target)
        documents.submit([Change(str(target), None, str(target))])
        return self._respond(request, documents)

    async def cancel(self, request: Request) -> Response:
        """Cancel the change whose id is in `change`."""
        documents, form = await self._read_form(request)
        documents.cancel(str(form.get("change", "")))
        return self._respond(request, documents)

    async def progress(self, request: Request) -> Response:
        """Return the changes as HTML, whether one is being made, and the checksum of the index."""
        return self._progress(request, self._find_documents(request))

    async def _check_upload(self, documents: Documents, target: object) -> None:
        """Raise `NotFoundError` unless a document was added by people."""
        index = self._site.service.indexes[documents.name]
        library = await asyncio.to_thread(self._libraries.open, documents.name, index)
        if target not in library.uploads:
            raise NotFoundError(f"no document {str(target)[:100]!r} was added to {documents.name} on this page")

    async def _read_form(self, request: Request) -> tuple[Documents, FormData]:
        documents = self._find_documents(request)
        form = await request.form(max_files=0, max_fields=5)
        _check_token(request, form)
        return documents, form

    def _respond(self, request: Request, documents: Documents) -> Response:
        """Return the progress to the script, and the page to a browser without it."""
        if request.headers.get("X-Requested-With") == "fetch":
            return self._progress(request, documents)
        return RedirectResponse(f"/documents?{urlencode({'index': documents.name, 'follow': 1})}", 303)

    def _progress(self, request: Request, documents: Documents) -> Response:
        token = csrf_token(request.cookies.get(_COOKIE, ""))
        return JSONResponse(
            {
                "running": documents.running,
                "html": str(self._report(documents, token)),
                "checksum": self._site.service.indexes[documents.name].manifest["checksum"],
            }
        )

    def _find_documents(self, request: Request) -> Documents:
        name = request.path_params["index"]
        if name not in self._documents:
            raise NotFoundError(f"no index called {name[:100]!r} takes documents")
        return self._documents[name]


def has_documents(index: Index) -> bool:
    """Return whether an index knows its documents."""
    return index.build is not None and index.lucene is None and "roots" in index.manifest


def _check_token(request: Request, form: FormData) -> None:
    token = form.get("csrf")
    if not is_csrf_token(request.cookies.get(_COOKIE, ""), token if isinstance(token, str) else ""):
        raise HTTPException(403, "The form is not from a page of this server: reload it and try again.")


async def _receive(documents: Documents, files: Sequence[UploadFile], target: str) -> list[Change]:
    """Copy the files of a form to files of our own."""
    paths: list[Path] = []
    changes = []
    try:
        for file in files:
            name = file.filename or ""
            paths.append(documents.new_file(name))
            with paths[-1].open("wb") as copy:
                while chunk := await file.read(1 << 20):
                    copy.write(chunk)
            changes.append(Change(base_name(name)[:200] or "a file without a name", paths[-1], target))
    except BaseException:  # a full disk
        for path in paths:
            path.unlink(missing_ok=True)
        raise
    return changes


def _row(entry: Entry, name: str, index: Index) -> dict[str, object]:
    """Return the values of a row of the list."""
    document = entry.document
    first = f"{document.name}#1"
    return {
        "id": f"d-{hashlib.sha256(document.name.encode('utf-8', 'replace')).hexdigest()[:12]}",
        "label": entry.label,
        "href": passage_url("", name, first) if document.passages and index.store.get(first) else "",
        "place": entry.place,
        "url": document.url,
        "size": f"{document.size} bytes" if document.size < 1000 else megabytes(document.size),
        "date": document.modified.strftime("%Y-%m-%d") if document.modified else "",
        "passages": pluralize(document.passages, "passage"),
        "left_out": document.left_out,
        "upload": entry.upload,
    }
