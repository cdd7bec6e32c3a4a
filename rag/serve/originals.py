"""The originals of passages, as pages and the API show them: pictures of PDF pages, boxes, and files to download.

Only files that the index was built from are given out, as they were when it was built (`rag.index.originals`).
"""

import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Generic, TypeVar
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from rag.base.errors import BusyError, FormatError, NotFoundError, UsageError
from rag.base.types import Passage
from rag.index.originals import Original, OriginalFile, Originals, Span
from rag.serve.links import passage_url, read_marks, view_url, viewed_as
from rag.serve.passages import ServedPassages, find_neighbour
from rag.serve.service import Reply, Service

WIDTH = 1_400
"""Pixels of the pictures of pages, which are smaller if the page is very tall."""

_MAX_CACHED_BYTES, _MAX_CACHED_PLACES = 32 << 20, 1_000
_REFUSED = "this server does not show originals (rag serve --originals shows them)"
_DAY = 24 * 3600
_VERSION = 12  # digits of a file's checksum
_NUMBER = re.compile(r"[1-9][0-9]{0,6}")
_NOT_IN_NAMES = re.compile(r"[^\w .()+,@-]", re.ASCII)
_BYTES = "application/octet-stream"

# No script, form, frame or request; an origin of its own, so that it is no page of this server.
_SANDBOX = (
    "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'none'; base-uri 'none'; "
    "frame-ancestors 'none'"
)

T = TypeVar("T")


class _Cache(Generic[T]):
    """Results of work by their keys, the latest ones up to a total size. Threads share it."""

    def __init__(self, limit: int, size: Callable[[T], int]) -> None:
        self._limit, self._size = limit, size
        self._lock = threading.Lock()
        self._items: OrderedDict[object, T] = OrderedDict()
        self._total = 0

    def get(self, key: object, work: Callable[[], T]) -> T:
        """Return the result for a key; do the work if there is none."""
        with self._lock:
            if key in self._items:
                self._items.move_to_end(key)
                return self._items[key]
        value = work()
        with self._lock:
            if key not in self._items:
                self._items[key] = value
                self._total += self._size(value)
            while self._total > self._limit:
                self._total -= self._size(self._items.popitem(last=False)[1])
        return value


@dataclass(frozen=True, slots=True)
class OriginalLinks:
    """Where a passage stands in its original, the addresses of the pictures of its pages, and that of the file.

    `view` is the address that shows an HTML or text file at the words; empty for other files.
    """

    original: Original
    pictures: tuple[str, ...]
    download: str
    view: str = ""


class ServedOriginals:
    """The originals of the passages of a service, if it may show them.

    Its methods raise `NotFoundError` if there is no such passage or page, if the file is not known, gone, changed or
    cannot be read, and if originals are not shown; `BusyError` if too many others are being read.
    """

    def __init__(self, service: Service, *, is_allowed: bool) -> None:
        self._service = service
        self.is_allowed = is_allowed
        self._pictures = _Cache[bytes](_MAX_CACHED_BYTES, len)
        self._places = _Cache[Original](_MAX_CACHED_PLACES, lambda _: 1)

    def locate(self, index: str, passage: str, spans: Sequence[Span] | None) -> OriginalLinks:
        """Find a passage, or spans of its text, in its original."""
        originals, indexed, file = self._open(index, passage)
        original = self._locate(originals, indexed, file, spans)
        address = f"{quote(index, safe='')}/{quote(passage, safe='')}"
        pictures = (f"/original/{address}?page={page.number}&v={file.checksum[:_VERSION]}" for page in original.pages)
        view = view_url(passage_url("", index, passage), file.name, indexed.text, spans or [(0, len(indexed.text))])
        return OriginalLinks(original, tuple(pictures), f"/download/{address}", view)

    def _locate(
        self, originals: Originals, passage: Passage, file: OriginalFile, spans: Sequence[Span] | None
    ) -> Original:
        key = (file.checksum, passage, None if spans is None else tuple(spans))
        with _not_found():
            return self._places.get(key, lambda: originals.locate_in(file, passage, spans))

    def with_pages(self, reply: Reply) -> Reply:
        """Return a reply whose cited passages of PDFs have the page where the first cited words stand.

        A passage that runs over several pages has the page where it begins, if the words cannot be found.
        """
        spans: dict[str, Span] = {}
        for citation in reply.answer.citations:
            spans.setdefault(citation.passage, citation.span)
        pages = {
            hit.passage.id: self._page_of(reply.passages, hit.passage, spans[hit.passage.id])
            for hit in reply.answer.hits
            if hit.passage.id in spans
        }
        hits = tuple(
            replace(hit, passage=replace(hit.passage, page=pages.get(hit.passage.id, hit.passage.page)))
            for hit in reply.answer.hits
        )
        return replace(reply, answer=replace(reply.answer, hits=hits))

    def _page_of(self, passages: ServedPassages, passage: Passage, span: Span) -> int | None:
        name, page = passage.id.rpartition("#")[0].lower(), passage.page
        if page is None or not name.removesuffix(".gz").endswith(".pdf"):
            return page
        after = find_neighbour(passages.index, passage, 1)
        if after is not None and after.page == page:  # nothing of it stands on the next page
            return page
        try:
            file = passages.originals.file_of(passage.id)
            pages = self._locate(passages.originals, passage, file, [span]).pages
        except (NotFoundError, BusyError):  # the file is gone, or many others are being read
            return page
        return pages[0].number if pages else page

    def find(self, index: str, passage: str, spans: Sequence[Span] | None) -> OriginalLinks | None:
        """Find a passage as `locate`; None if the index was not built from files, or originals are not shown."""
        if self.is_allowed and self._service.passages(index).originals.knows(passage):
            return self.locate(index, passage, spans)
        return None

    def draw(self, index: str, passage: str, number: int) -> tuple[bytes, str]:
        """Draw a page of a passage's PDF as a PNG; return it with the version of the file."""
        _, _, file = self._open(index, passage)
        return self._draw(file, number), file.checksum[:_VERSION]

    def draw_marked(self, index: str, passage: str, spans: Sequence[Span] | None) -> bytes:
        """Draw the first page with a passage, or spans of its text, as a PNG in which the words are marked."""
        pages = self.locate(index, passage, spans).original.pages
        file = self.file(index, passage)
        return self._draw(file, pages[0].number if pages else 1, pages[0].boxes if pages else ())

    def _draw(self, file: OriginalFile, number: int, boxes: Sequence[tuple[float, ...]] = ()) -> bytes:
        from rag.documents.converters.pdf_view import PARTS, draw_page

        if not file.is_pdf:
            raise NotFoundError(f"{file.name} is no PDF: it has no pages to show")
        parts = [
            (round(left * PARTS), round(top * PARTS), round(right * PARTS), round(bottom * PARTS))
            for left, top, right, bottom in boxes
        ]
        key = (file.checksum, number, tuple(parts))
        with _not_found():
            return self._pictures.get(key, lambda: draw_page(file.pdf, number, WIDTH, file.name, parts))

    def file(self, index: str, passage: str) -> OriginalFile:
        """Return the file of a passage."""
        return self._open(index, passage)[2]

    def _open(self, index: str, identifier: str) -> tuple[Originals, Passage, OriginalFile]:
        if not self.is_allowed:
            raise NotFoundError(_REFUSED)
        passages = self._service.passages(index)  # once: the index may be replaced meanwhile
        context = passages.find(identifier.encode("utf-8", "replace").decode())
        if context is None:
            raise NotFoundError(f"index {index!r} has no passage {identifier[:100]!r}")
        return passages.originals, context.passage, passages.originals.file_of(context.passage.id)


@contextmanager
def _not_found() -> Iterator[None]:
    """Turn the error of a PDF that cannot be read into one that callers may see: it names no paths."""
    try:
        yield
    except FormatError as error:
        raise NotFoundError(str(error)) from error


class OriginalPages:
    """The pictures of pages, HTML and text files in a sandbox, and the files to download."""

    def __init__(self, service: Service, originals: ServedOriginals) -> None:
        self._service, self._originals = service, originals

    async def picture(self, request: Request) -> Response:
        """Return a page of a PDF as a PNG: that of a number without marks, or the one with the words of `mark`."""
        index, passage = request.path_params["index"], request.path_params["passage"]
        page, version = request.query_params.get("page"), ""
        if page is None:
            spans = read_marks(request.query_params.get("mark", "")) or None
            picture = await self._service.run(self._originals.draw_marked, index, passage, spans)
        elif _NUMBER.fullmatch(page):
            picture, version = await self._service.run(self._originals.draw, index, passage, int(page))
        else:
            raise UsageError("page should be the number of a page, such as ?page=1")
        # Pages are not kept in caches; a picture whose address has the version of the file never changes.
        is_fixed = bool(version) and request.query_params.get("v") == version
        headers = {"Cache-Control": f"private, max-age={_DAY}, immutable"} if is_fixed else {}
        return Response(picture, media_type="image/png", headers=headers)

    async def view(self, request: Request) -> Response:
        """Return an HTML or text file as it was read; browsers run nothing in it, and load nothing for it."""
        index, passage = request.path_params["index"], request.path_params["passage"]
        file = await self._service.run(self._originals.file, index, passage)
        media_type = viewed_as(file.name)
        if not media_type:
            raise NotFoundError(f"{file.name} can only be saved")
        headers = {"Content-Security-Policy": _SANDBOX, "Content-Type": media_type}  # its charset may be in the file
        if media_type == "text/plain":
            headers["Content-Type"] += "; charset=utf-8"
        return Response(file.data, headers=headers)

    async def download(self, request: Request) -> Response:
        """Return the file of a passage to be saved."""
        index, passage = request.path_params["index"], request.path_params["passage"]
        file = await self._service.run(self._originals.file, index, passage)
        name = PurePosixPath(file.name).name
        plain = _NOT_IN_NAMES.sub("_", name.encode("ascii", "replace").decode())
        headers = {"Content-Disposition": f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='')}"}
        is_plain_pdf = name.lower().endswith(".pdf")
        return Response(file.data, media_type="application/pdf" if is_plain_pdf else _BYTES, headers=headers)
