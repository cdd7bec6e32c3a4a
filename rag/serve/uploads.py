"""Documents that people add to an index: checked one by one, stored beside the index, and read into it.

One upload at a time for each index. While it is read, questions are answered from the old index; then the new one
replaces it. The name of a file is never used as a path: the file is stored under a name made from its letters.
"""

import logging
import re
import secrets
import shutil
import tempfile
import threading
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from markupsafe import Markup
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from autoais.base.io.provenance import sha256_file
from rag.api import add_to_index, open_index, update_index
from rag.base.errors import FormatError, IndexingError, NotFoundError, UsageError, UserError
from rag.base.terminal import pluralize
from rag.documents import SUFFIXES, kind_of, load_document
from rag.index.files import roots_of
from rag.index.index import Index
from rag.web.security import csrf_token, is_csrf_token

if TYPE_CHECKING:
    from rag.serve.service import Service
    from rag.serve.site import Site

MAX_BYTES = 64 << 20  # of all files of an upload
_MAX_FILES = 100
_COOKIE = "rag-documents"
_MAX_NAME_LENGTH = 80
_log = logging.getLogger(__name__)


@dataclass
class Upload:
    """An upload: its progress, and for each file its name, whether it was added, and a message."""

    step: str = "checking the files"
    done_count: int = 0
    total: int = 0
    running: bool = True
    problem: str = ""
    files: list[tuple[str, bool, str]] = field(default_factory=list)


class Documents:
    """Adds files to an index that a service serves; threads share it.

    The files are stored in the folder `NAME.uploads` beside the index, which becomes one of its sources. Raises
    `UsageError` for an index that is not served, and for one that cannot take documents or be written.
    """

    def __init__(self, service: "Service", name: str) -> None:
        if name not in service.indexes:
            raise UsageError(f"no index called {name!r} to add documents to; there are: {', '.join(service.indexes)}")
        self._service, self.name = service, name
        self._folder = folder_of(service.indexes[name], name)
        self._uploads = self._folder.parent / f"{self._folder.name}.uploads"
        _check_writable(self._uploads, self._folder)
        self._lock = threading.Lock()
        self.last: Upload | None = None

    def begin(self) -> Upload:
        """Return a new upload; raises `UsageError` while another one is running."""
        with self._lock:
            if self.last is not None and self.last.running:
                raise UsageError(f"documents are being added to {self.name}; try again when that is done")
            self.last = Upload()
            return self.last

    def add(self, upload: Upload, files: Sequence[tuple[str, Path]]) -> None:
        """Read files into the index: pairs of the name that a person gave and a temporary file, which is moved away.

        Problems are recorded in `upload`; files that cannot be read are skipped and listed there.
        """
        stored_paths: list[Path] = []
        try:
            self._uploads.mkdir(exist_ok=True)
            checksums = {sha256_file(path) for path in self._uploads.iterdir() if path.is_file()}
            for file_name, path in files:
                stored_path = self._store_file(upload, file_name, path, checksums)
                if stored_path is not None:
                    stored_paths.append(stored_path)
            if stored_paths:
                self._read(upload)
        except Exception as error:
            for stored_file in stored_paths:
                stored_file.unlink(missing_ok=True)
            upload.files = [
                (name, False, "not added" if is_added else message) for name, is_added, message in upload.files
            ]
            if not isinstance(error, UserError | OSError):
                upload.problem = "The server failed; nothing was added."
                raise
            _log.error("documents were not added to %s: %s", self.name, error)
            upload.problem = "Nothing was added: the server cannot change the index now; its log says why."
        finally:
            upload.running = False

    def _store_file(self, upload: Upload, file_name: str, path: Path, checksums: set[str]) -> Path | None:
        """Store a file that can be read and return its path. Return None for others, and for one of the `checksums`."""
        display_name = base_name(file_name)[:200] or "a file without a name"
        name = safe_name(file_name)
        if name is None:
            upload.files.append((display_name, False, f"not a document ({', '.join(sorted(SUFFIXES))})"))
            return None
        digest = sha256_file(path)
        if digest in checksums:
            upload.files.append((display_name, False, "already there"))
            return None
        target = _free(self._uploads, name)
        try:
            document = load_document(path, target.name)
        except FormatError as error:
            upload.files.append((display_name, False, str(error).removeprefix(f"{path}: ")))
            return None
        if not document.passages:
            upload.files.append((display_name, False, "has no text"))
            return None
        shutil.move(path, target)
        checksums.add(digest)
        upload.files.append((display_name, True, pluralize(len(document.passages), "passage")))
        return target

    def _read(self, upload: Upload) -> None:
        def report(step: str, done_count: int, total: int) -> None:
            upload.step, upload.done_count, upload.total = "reading the documents", done_count, total

        sources = {Path(root.source.path) for root in roots_of(self._service.indexes[self.name].manifest, self._folder)}
        if self._uploads.resolve() in {path.resolve() for path in sources}:
            update_index(self._folder, [self._uploads], progress=report)
        else:
            add_to_index(self._folder, [self._uploads], progress=report)
        upload.step = "opening the index"
        self._service.replace(self.name, open_index(self._folder))


def _check_writable(uploads: Path, folder: Path) -> None:
    """Create the folder of uploads; raises `UsageError` unless files can be written there and in the index."""
    for directory in (uploads, folder):
        try:
            directory.mkdir(exist_ok=True)
            with tempfile.TemporaryFile(dir=directory):
                pass
        except OSError as error:
            raise UsageError(
                f"{directory}: documents cannot be added, as it cannot be written: {error.strerror}"
            ) from None


def folder_of(index: Index, name: str) -> Path:
    """Return the folder of an index that can take documents; raises `UsageError` for others."""
    if index.build is None or index.lucene is not None:
        raise UsageError(f"index {name!r} is not a folder that documents can be added to; build one: rag index build")
    try:
        roots_of(index.manifest, index.build.parent)
    except IndexingError as error:
        raise UsageError(str(error)) from None
    return index.build.parent


def base_name(file_name: str) -> str:
    """Return the last part of a name that a browser sent; some send a whole path."""
    return re.split(r"[/\\]", file_name)[-1]


def safe_name(file_name: str) -> str | None:
    """Return a file name made of the letters and digits of another, with its suffix; None if it is no document's."""
    name = unicodedata.normalize("NFC", base_name(file_name))
    kind = kind_of(name)
    if kind is None:
        return None
    gzip_suffix = ".gz" if name.lower().endswith(".gz") else ""
    stem = PurePosixPath(name[: len(name) - len(gzip_suffix)])
    letters = re.sub(r"[^\w]+", "-", stem.stem, flags=re.UNICODE).strip("-_")[:_MAX_NAME_LENGTH]
    return f"{letters or 'document'}{kind}{gzip_suffix}"


def _free(folder: Path, name: str) -> Path:
    """Return a path in the folder that does not exist yet."""
    stem, dot, suffix = name.partition(".")
    target, number = folder / name, 1
    while target.exists():
        number += 1
        target = folder / f"{stem}-{number}{dot}{suffix}"
    return target


class UploadPages:
    """The page of documents."""

    def __init__(self, site: "Site", names: Sequence[str]) -> None:
        self._site = site
        self._documents = {name: Documents(site.service, name) for name in names}

    async def page(self, request: Request) -> Response:
        """Show a form for each index, and the result of the last upload."""
        session = request.cookies.get(_COOKIE, "")
        fresh = session if re.fullmatch(r"[\w-]{20,100}", session, re.ASCII) else secrets.token_urlsafe(24)
        response = self._site.page(
            request,
            "documents.html.j2",
            "Documents",
            csrf=csrf_token(fresh),
            suffixes=", ".join(sorted(SUFFIXES)),
            most=MAX_BYTES >> 20,
            most_files=_MAX_FILES,
            rows=[
                (name, self._site.service.indexes[name].manifest["passages"], self._report(documents))
                for name, documents in self._documents.items()
            ],
        )
        if any(documents.last is not None and documents.last.running for documents in self._documents.values()):
            response.headers["Refresh"] = "3; url=/documents"  # for a browser without the script, which polls
        if fresh != session:
            secure = request.url.scheme == "https"
            response.set_cookie(_COOKIE, fresh, path="/documents", secure=secure, httponly=True, samesite="strict")
        return response

    async def upload(self, request: Request) -> Response:
        """Take the files of the form, and begin to read them."""
        documents = self._find_documents(request)
        length = request.headers.get("content-length", "")
        if length.isdecimal() and int(length) > MAX_BYTES + (1 << 20):
            raise HTTPException(413, f"That is more than {MAX_BYTES >> 20} MiB; send fewer files at a time.")
        try:
            form = await request.form(max_files=_MAX_FILES, max_fields=5)
        except (MultiPartException, ClientDisconnect):
            raise HTTPException(400, f"The files could not be read; at most {_MAX_FILES} at a time.") from None
        try:
            token = form.get("csrf")
            if not is_csrf_token(request.cookies.get(_COOKIE, ""), token if isinstance(token, str) else ""):
                raise HTTPException(403, "The form is not from a page of this server: reload it and try again.")
            files = [file for file in form.getlist("files") if isinstance(file, UploadFile) and file.filename]
            if not files:
                raise UsageError("no file was chosen")
            if sum(file.size or 0 for file in files) > MAX_BYTES:
                raise HTTPException(413, f"That is more than {MAX_BYTES >> 20} MiB; send fewer files at a time.")
            upload = documents.begin()
            try:
                await self._begin(documents, upload, files)
            except BaseException:
                upload.running = False
                raise
        finally:
            await form.close()
        if request.headers.get("X-Requested-With") == "fetch":
            return self._progress(documents)
        return RedirectResponse("/documents", 303)

    async def _begin(self, documents: Documents, upload: Upload, files: Sequence[UploadFile]) -> None:
        """Copy the files to a folder of their own, and read them in a thread: the request ends before."""
        folder = Path(tempfile.mkdtemp(prefix="rag-upload-"))
        pairs = []
        try:
            for number, file in enumerate(files):
                suffix = "".join(PurePosixPath(safe_name(file.filename or "") or "x").suffixes[-2:])
                path = folder / f"{number}{suffix}"
                with path.open("wb") as target:
                    while chunk := await file.read(1 << 20):
                        target.write(chunk)
                pairs.append((file.filename or "", path))
        except BaseException:  # a full disk, a client that hung up
            shutil.rmtree(folder, ignore_errors=True)
            raise

        def work() -> None:
            try:
                documents.add(upload, pairs)
            finally:
                shutil.rmtree(folder, ignore_errors=True)

        threading.Thread(target=work, name=f"upload-{documents.name}").start()

    async def progress(self, request: Request) -> Response:
        """Return the progress of an upload."""
        return self._progress(self._find_documents(request))

    def _progress(self, documents: Documents) -> Response:
        running = documents.last is not None and documents.last.running
        return JSONResponse({"running": running, "html": str(self._report(documents))})

    def _report(self, documents: Documents) -> Markup:
        return self._site.part("upload.html.j2", upload=documents.last, name=documents.name)

    def _find_documents(self, request: Request) -> Documents:
        name = request.path_params["index"]
        if name not in self._documents:
            raise NotFoundError(f"no index called {name[:100]!r} takes documents")
        return self._documents[name]
