"""Mirrors a page, or the pages that a sitemap lists, in a folder of files, which is then read as any other folder.

A mirror holds a folder named after the host, and `pages.jsonl`, which knows the file of each page and what the server
said of its version.
"""

import codecs
import os
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from urllib.robotparser import RobotFileParser

from autoais.base.io.jsonl import dumps, read_objects, sync, write_atomic
from autoais.base.io.jsonl import field as field_of
from autoais.base.network import AGENT, Reply, RequestError, get
from autoais.base.progress import Progress
from autoais.base.urls import host_of, key_of, normalize_url
from rag.base.errors import FormatError, IndexingError, UserError
from rag.documents import unpack_gzip
from rag.documents.page_names import Names, page_name
from rag.documents.sitemaps import Sitemap, read_sitemap
from rag.documents.sources import MAX_FILE_SIZE

PAGES = "pages.jsonl"
_MAX_ROBOTS_BYTES = 1 << 20
_MAX_PAGES = 10_000
_MAX_SITEMAPS = 1_000
_PAGE_SECONDS = 60.0
_ALL_SECONDS = 3600.0
_IN_VAIN = 10  # failures in a row, after which the server is left alone
_MAX_NAMED_FAILURES = 20  # failures
_TEMPORARY = ".page-"
_NO_CHARSETS = ("utf-8", "idna", "punycode")  # nothing to do, or meant for names of hosts


@dataclass(frozen=True, slots=True)
class Page:
    """A page of a mirror: its URL without the scheme, its file below the host's folder, ETag and Last-Modified."""

    page: str
    file: str
    etag: str = ""
    modified: str = ""


@dataclass(slots=True)
class Report:
    """What a mirror could not get, and what it left out; old copies of pages that could not be had stay."""

    url: str
    pages: int = 0
    failed: int = 0
    reasons: list[str] = field(default_factory=list)  # the first of the failures
    notes: list[str] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)

    def fail(self, reason: str) -> None:
        """Count a failure."""
        self.failed += 1
        if len(self.reasons) < _MAX_NAMED_FAILURES:
            self.reasons.append(reason)

    def lines(self) -> Iterator[str]:
        """What to tell people, one line each."""
        yield from self.reasons
        yield from (f"{self.url}: {note}" for note in self.notes)
        if self.left_out:
            counts = ", ".join(f"{count:,} {reason}" for reason, count in sorted(self.left_out.items()))
            yield f"{self.url}: left out pages: {counts}"
        if self.failed:
            yield f"{self.url}: {self.failed:,} could not be fetched; old copies of pages stay"


def read_pages(folder: Path) -> dict[str, Page]:
    """The pages of a mirror by their URLs without scheme; raises `IndexingError` if their list is damaged."""
    if not (folder / PAGES).exists():
        return {}
    try:
        rows = read_objects(folder / PAGES)
        pages = [Page(*(field_of(row, name, str, location) for name in Page.__slots__)) for location, row in rows]
    except UserError as error:
        raise IndexingError(f"{error}: remove this web source from the index and add it again") from error
    return {page.page: page for page in pages}


def mirror(
    url: str,
    folder: Path,
    *,
    wanted: Callable[[str], bool] = lambda _: True,
    others: Mapping[str, str] | None = None,
    progress: Progress | None = None,
) -> Report:
    """Bring the mirror of a URL in a folder up to date, or make it.

    `wanted` chooses the pages of a sitemap by their files; `others` are pages that other mirrors have, with their
    files. Pages that are gone are deleted; after any other failure, the old copy stays and the report names it. Raises
    `IndexingError` if nothing was there before and nothing can be fetched, or if the folder cannot be written.
    """
    mirror_run = _Mirror(normalize_url(url), folder, wanted, others or {}, progress)
    if folder.is_symlink() or (folder / host_of(url)).is_symlink():
        raise IndexingError(
            f"{folder}: a link, where the pages of {url} should be: remove this source and add it again"
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for leftover in folder.glob(f"{_TEMPORARY}*"):  # of a killed run
            leftover.unlink()
        mirror_run.run()
        mirror_run.tidy()
    except OSError as error:
        raise IndexingError(f"{error.filename or folder}: cannot be written: {error.strerror or error}") from error
    return mirror_run.report


class _Mirror:
    def __init__(
        self,
        url: str,
        folder: Path,
        wanted: Callable[[str], bool],
        others: Mapping[str, str],
        progress: Progress | None,
    ) -> None:
        self._url, self._folder, self._wanted, self._progress = url, folder, wanted, progress
        self._host = host_of(url)
        self._home = folder / self._host
        self._others = others
        self._before = read_pages(folder)
        self._pages = dict(self._before)
        self._names = Names([*others.values(), *(page.file for page in self._before.values())])
        self._complete = True  # whether all that the sitemap lists is known
        self._until = time.monotonic() + _ALL_SECONDS
        self.report = Report(url)

    def run(self) -> None:
        """Fetch the page, or the sitemap and its pages; what was learned is kept even if it is interrupted."""
        key = key_of(self._url)
        try:
            reply = self._get(self._url, self._version(key))
            sitemap = None if reply.body is None else _sitemap_of(reply)
            if sitemap is None:
                self._single(key, reply)
                return
            if host_of(reply.url) != self._host:
                raise FormatError(f"{self._url}: redirects to another host; give {reply.url} itself")
            urls = self._sitemap_urls(sitemap)
            self._fetch(urls, self._robots())
        except (RequestError, FormatError) as error:
            if not self._before:
                raise IndexingError(str(error)) from error
            self.report.fail(str(error))
            self._pages = dict(self._before)
        finally:
            if self._pages != self._before:
                write_atomic(self._folder / PAGES, map(dumps, map(asdict, self._pages.values())))

    def tidy(self) -> None:
        """Delete the files of pages that are gone."""
        files = {page.file for page in self._pages.values()}
        self.report.pages = len(files)
        for path in sorted(self._home.rglob("*"), reverse=True):
            if path.is_symlink() or not path.is_dir():
                if path.relative_to(self._home).as_posix() not in files:
                    path.unlink()
            elif not any(path.iterdir()):
                path.rmdir()

    def _single(self, key: str, reply: Reply) -> None:
        if key in self._others:
            raise FormatError(f"{self._url} is a page of another web source of the index")
        if self._before.keys() - {key}:
            raise FormatError(f"{self._url}: is no longer a sitemap")
        self._save(key, reply)

    # --- sitemaps ----------------------------------------------------------------------------------------------

    def _sitemap_urls(self, first: Sitemap) -> list[str]:
        """The pages that sitemaps list, without those that are not of the host, not wanted or in other mirrors."""
        result: dict[str, str] = {}
        keys = {key_of(self._url)}
        queue = [first]
        for sitemap in queue:
            for url in sitemap.pages:
                self._consider(url, result)
            if len(result) > _MAX_PAGES:
                break
            for url in sitemap.sitemaps:
                if not self._ours(url) or key_of(url) in keys:
                    continue
                keys.add(key_of(url))
                if len(keys) > _MAX_SITEMAPS:
                    self._complete = False
                    self.report.fail(f"{self._url}: more than {_MAX_SITEMAPS:,} sitemaps")
                    break
                if time.monotonic() > self._until:
                    self._complete = False
                    break
                if (page := self._further(url)) is not None:
                    queue.append(page)
            if len(keys) > _MAX_SITEMAPS:
                break
        if len(result) > _MAX_PAGES:
            self.report.notes.append(
                f"lists more than {_MAX_PAGES:,} pages, of which the first are read: include (--include) chooses others"
            )
        if not result and self._complete:
            raise FormatError(f"{self._url}: the sitemap lists no pages of {self._host} that are read")
        return list(result.values())[:_MAX_PAGES]

    def _consider(self, url: str, result: dict[str, str]) -> None:
        if not self._ours(url):
            return
        key = key_of(url)
        name = self._before[key].file if key in self._before else page_name(normalize_url(url))
        if name is None or not self._wanted(name):
            return
        if key in self._others:
            self.report.left_out["of other web sources"] += 1
        else:
            result.setdefault(key, normalize_url(url))

    def _ours(self, url: str) -> bool:
        try:
            is_same_host = host_of(url) == self._host
        except UserError:  # no URL
            is_same_host = False
        self.report.left_out.update([] if is_same_host else ["of other hosts"])
        return is_same_host

    def _further(self, url: str) -> Sitemap | None:
        """A sitemap that another one lists; without it, no page can be known to be gone."""
        try:
            reply = self._get(normalize_url(url), same_host=True)
            result = _sitemap_of(reply)
            if result is None:
                raise FormatError(f"{url}: not a sitemap")
        except (RequestError, FormatError) as error:
            self._complete = False
            self.report.fail(str(error))
            return None
        return result

    def _robots(self) -> RobotFileParser:
        """The rules of the host; none if it has no robots.txt. An error of the server stops, as RFC 9309 says."""
        rules = RobotFileParser()
        scheme = self._url.partition("://")[0]
        try:
            reply = self._get(f"{scheme}://{self._host}/robots.txt", max_bytes=_MAX_ROBOTS_BYTES)
            rules.parse((reply.body or b"").decode("utf-8", "replace").splitlines())
        except RequestError as error:
            if error.status is None or error.status not in range(400, 500) or error.status == 429:
                raise
            rules.parse([])
        return rules

    # --- pages -------------------------------------------------------------------------------------------------

    def _fetch(self, urls: Sequence[str], rules: RobotFileParser) -> None:
        """Fetch pages, those first that are not there yet, and forget those that are gone or not listed any more."""
        permitted = [url for url in urls if rules.can_fetch(AGENT, url)]
        self.report.left_out.update(
            {"that robots.txt disallows": len(urls) - len(permitted)} if permitted != urls else {}
        )
        delay = float(rules.crawl_delay(AGENT) or 0)
        if self._complete:
            keys = {key_of(url) for url in permitted}
            self._pages = {key: page for key, page in self._pages.items() if key in keys}
        vain = 0
        for count, url in enumerate(sorted(permitted, key=lambda url: key_of(url) in self._before)):
            pause = delay if count else 0.0
            if vain == _IN_VAIN or time.monotonic() + pause > self._until:
                reason = f"{vain} failures in a row" if vain == _IN_VAIN else f"{_ALL_SECONDS / 60:,.0f} minutes"
                self.report.notes.append(f"stopped after {reason}; {len(permitted) - count:,} pages were not asked for")
                break
            time.sleep(pause)
            vain = 0 if self._page(url) else vain + 1
            if self._progress is not None:
                self._progress("fetching", count + 1, len(permitted))
        if not self._pages:
            reasons = [*self.report.reasons, *self.report.notes, "they are gone, or robots.txt disallows them"]
            raise FormatError(f"{self._url}: none of its {len(urls):,} pages can be read: {reasons[0]}")

    def _page(self, url: str) -> bool:
        """Fetch a page; False if that failed."""
        key = key_of(url)
        try:
            self._save(key, self._get(url, self._version(key), same_host=True))
        except RequestError as error:
            if not error.is_gone:
                self.report.fail(str(error))
                return False
            self._pages.pop(key, None)
            self.report.left_out["that are gone"] += 1
        except FormatError as error:
            self.report.fail(str(error))
        return True

    def _get(
        self,
        url: str,
        headers: Mapping[str, str] | None = None,
        *,
        same_host: bool = False,
        max_bytes: int | None = None,
    ) -> Reply:
        seconds = min(_PAGE_SECONDS, max(self._until - time.monotonic(), 1.0))
        return get(url, headers, seconds=seconds, max_bytes=max_bytes or MAX_FILE_SIZE, same_host=same_host)

    def _version(self, key: str) -> dict[str, str]:
        """The headers that ask for a page only if it has changed."""
        page = self._before.get(key)
        if page is None or not (self._home / page.file).is_file():
            return {}
        headers = {"If-None-Match": page.etag, "If-Modified-Since": page.modified}
        return {name: value for name, value in headers.items() if value}

    def _save(self, key: str, reply: Reply) -> None:
        """Write a page to its file, unless it is the same; raises `FormatError` for what is no document."""
        previous = self._before.get(key)
        if reply.body is None:
            if previous is None:
                raise FormatError(f"{key}: the server returned 304 for a page that is not there yet")
            return
        url = f"http://{key}"
        name = page_name(url, reply.content_type)
        if name is None:
            raise FormatError(f"{key}: {reply.content_type or 'no type'} is not a type of document or a sitemap")
        body = _text(reply, key)
        has_same_suffix = previous is not None and Path(previous.file).suffix == Path(name).suffix
        file = previous.file if previous is not None and has_same_suffix else self._names.take(url, name)
        self._write(self._home / file, body)
        etag, modified = (reply.headers.get(name, "") for name in ("ETag", "Last-Modified"))
        self._pages[key] = Page(key, file, etag, modified)

    def _write(self, path: Path, body: bytes) -> None:
        if not path.parent.resolve().is_relative_to(self._home.absolute().resolve()):  # a list that was tampered with
            raise FormatError(f"{path}: leads out of the mirror")
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_file() and path.read_bytes() == body:
            return
        descriptor, name = tempfile.mkstemp(prefix=_TEMPORARY, dir=self._folder)
        with os.fdopen(descriptor, "wb") as file:
            file.write(body)
        Path(name).chmod(0o644)
        sync(Path(name))
        Path(name).replace(path)


def _sitemap_of(reply: Reply) -> Sitemap | None:
    body = _plain(reply, reply.url)
    if body.startswith(b"\x1f\x8b"):  # sitemap.xml.gz
        try:
            body = unpack_gzip(body, reply.url)
        except FormatError:
            return None
    return read_sitemap(body, reply.url)


def _plain(reply: Reply, location: str) -> bytes:
    """The body without the encoding that some servers use although they were asked for none."""
    encoding = reply.headers.get("Content-Encoding", "identity").strip().lower()
    if encoding in ("gzip", "x-gzip"):
        return unpack_gzip(reply.body or b"", location)
    if encoding not in ("", "identity"):
        raise FormatError(f"{location}: sent in the encoding {encoding!r}, which was not asked for")
    return reply.body or b""


def _text(reply: Reply, location: str) -> bytes:
    """The body of a page; text in UTF-8, as a file does not know what the server said of its encoding."""
    body = _plain(reply, location)
    if not reply.content_type.startswith("text/"):
        return body
    try:
        charset = codecs.lookup(reply.charset).name
        if charset in _NO_CHARSETS:
            return body
        return body.decode("cp1252" if charset == "iso8859-1" else charset).encode("utf-8")  # as browsers do
    except (LookupError, ValueError):
        return body
