"""Pages from a real server on this machine that changes, breaks, drips, lies and leads elsewhere."""

import gzip
import hashlib
import random
import shutil
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

import rag as library
from autoais.base.network import RequestError, get
from autoais.base.urls import is_url, key_of, normalize_url
from rag.base.errors import FormatError, IndexingError, UsageError
from rag.documents import mirrors
from rag.documents.mirrors import Report, mirror, read_pages
from rag.documents.page_names import Names, page_name
from rag.documents.sitemaps import read_sitemap
from rag.index.files import read_files
from rag.index.folder import leftovers
from rag.index.open import open_index
from rag.index.update import update
from tests.conftest import Command, one_line_error
from tests.local_server import LocalServer, Quiet

Stream = Callable[["Handler"], None]
"""Writes an answer of its own to a request."""


class Server(LocalServer):
    """Serves `site`: pages by path, a number for an error, or a function that answers; keeps what was asked."""

    def __init__(self) -> None:
        super().__init__(Handler)
        self.site: dict[str, bytes | int | Stream] = {}
        self.headers: dict[str, dict[str, str]] = {}
        self.asked: list[tuple[str, int]] = []
        self.agents: set[str] = set()

    def at(self, path: str) -> str:
        return self.url + path

    def sitemap(self, *paths: str, path: str = "/sitemap.xml", root: str = "urlset") -> str:
        """Serve a sitemap of these paths or URLs; returns its URL."""
        entry = "url" if root == "urlset" else "sitemap"
        urls = [self.at(one) if one.startswith("/") else one for one in paths]
        rows = "".join(f"<{entry}><loc>\n {one} </loc></{entry}>" for one in urls)
        self.site[path] = f'<?xml version="1.0"?><{root} xmlns="http://s.org/0.9">{rows}</{root}>'.encode()
        return self.at(path)

    def forget(self) -> list[tuple[str, int]]:
        """What was asked since the last time."""
        asked, self.asked = self.asked, []
        return asked


class Handler(Quiet, BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        found = self.server.site.get(self.path, 404)
        self.server.agents.add(self.headers["User-Agent"])
        assert self.headers["Accept-Encoding"] == "identity"
        if callable(found):
            self.server.asked.append((self.path, 0))
            found(self)
            return
        body, status = (found, 200) if isinstance(found, bytes) else (b"<h1>error</h1>", found)
        tag = f'"{hashlib.sha256(body).hexdigest()[:8]}"'
        if status == 200 and self.headers["If-None-Match"] == tag:
            body, status = b"", 304
        self.server.asked.append((self.path, status))
        self.send_response(status)
        headers = {"Content-Type": "text/html", "ETag": tag} | self.server.headers.get(self.path, {})
        for name, value in headers.items():
            self.send_header(name, value)
        if status != 304:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """With a start page and two others."""
    monkeypatch.delenv("RAG_OFFLINE", raising=False)
    with Server() as server:
        server.site |= {path: page(path) for path in ("/", "/guide/intro.html", "/guide/faq")}
        yield server


def page(topic: str) -> bytes:
    """A page with enough words to be no twin of another."""
    draw = random.Random(topic)
    words = " ".join(f"so{draw.randrange(3000)}" for _ in range(70))
    return f"<title>{topic}</title><main><h1>{topic}</h1><p>The kettle of {topic}, {words}.</p></main>".encode()


def redirect(to: str) -> Stream:
    def answer(handler: Handler) -> None:
        handler.send_response(302)
        handler.send_header("Location", to)
        handler.end_headers()

    return answer


def endless(piece: bytes, pause: float = 0.0, *, headers: bool = True, length: int = 0) -> Stream:
    """Sends a piece for ever, after the headers or in their place."""

    def answer(handler: Handler) -> None:
        if headers:
            handler.send_response(200)
            handler.send_header("Content-Type", "text/html")
            if length:
                handler.send_header("Content-Length", str(length))
            handler.end_headers()
        try:
            while True:
                handler.wfile.write(piece)
                time.sleep(pause)
        except OSError:  # the client has had enough
            pass

    return answer


def files(folder: Path) -> list[str]:
    """The files of a mirror, without the folder of the host."""
    return sorted("/".join(path.relative_to(folder).parts[1:]) for path in folder.glob("*/**/*") if path.is_file())


def told(report: Report) -> str:
    return "\n".join(report.lines())


# --- pages and sitemaps ------------------------------------------------------------------------------------------


def test_a_sitemap_is_mirrored_and_asked_again_only_for_changes(server: Server, tmp_path: Path) -> None:
    url = server.sitemap("/", "/guide/intro.html", "/guide/faq", "http://elsewhere.example/x.html", "mailto:x@y.z")
    counted: list[tuple[str, int, int]] = []
    report = mirror(url, tmp_path, progress=lambda *step: counted.append(step))
    assert files(tmp_path) == ["guide/faq.html", "guide/intro.html", "index.html"]
    assert (tmp_path / server.host / "guide/intro.html").read_bytes() == page("/guide/intro.html")
    assert counted == [("fetching", 1, 3), ("fetching", 2, 3), ("fetching", 3, 3)]
    assert server.agents == {"attributed-rag"}
    assert told(report) == f"{url}: left out pages: 2 of other hosts"

    server.forget()
    before = (tmp_path / server.host / "index.html").stat()
    server.site["/guide/faq"] = page("changed")
    server.site["/guide/intro.html"] = 404
    report = mirror(url, tmp_path)
    assert server.forget()[2:] == [("/", 304), ("/guide/intro.html", 404), ("/guide/faq", 200)]
    assert files(tmp_path) == ["guide/faq.html", "index.html"]
    assert (tmp_path / server.host / "guide/faq.html").read_bytes() == page("changed")
    assert (tmp_path / server.host / "index.html").stat() == before
    assert "1 that are gone" in told(report)

    server.sitemap("/")
    mirror(url, tmp_path)
    assert files(tmp_path) == ["index.html"]
    assert not (tmp_path / server.host / "guide").exists()


def test_last_modified_is_sent_back_and_a_page_without_a_version_is_compared(server: Server, tmp_path: Path) -> None:
    since: list[str | None] = []

    def answer(handler: Handler) -> None:
        since.append(handler.headers["If-Modified-Since"])
        handler.send_response(304 if since[-1] else 200)
        handler.send_header("Content-Type", "text/html")
        handler.send_header("Last-Modified", "Sun, 22 Nov 2026 10:00:00 GMT")
        handler.end_headers()
        handler.wfile.write(b"" if since[-1] else page("x"))

    server.site["/x"] = answer
    server.headers["/"] = {"ETag": ""}
    written = set()
    for _ in range(2):
        mirror(server.at("/x"), tmp_path / "x")
        mirror(server.at("/"), tmp_path / "root")
        written.add((tmp_path / "root" / server.host / "index.html").stat().st_mtime_ns)
    assert len(written) == 1
    assert since == [None, "Sun, 22 Nov 2026 10:00:00 GMT"]
    assert server.asked.count(("/", 200)) == 2
    assert files(tmp_path / "root") == ["index.html"]


def test_sitemaps_of_sitemaps_are_followed_also_packed_ones(server: Server, tmp_path: Path) -> None:
    server.sitemap("/guide/intro.html", "/guide/faq", path="/a.xml")
    server.sitemap("/", "/guide/faq", path="/b.xml")
    packed = server.site.pop("/b.xml")
    assert isinstance(packed, bytes)
    server.site["/b.xml.gz"] = gzip.compress(packed)
    url = server.sitemap("/a.xml", "/b.xml.gz", "/index.xml", path="/index.xml", root="sitemapindex")
    assert mirror(url, tmp_path).failed == 0
    assert files(tmp_path) == ["guide/faq.html", "guide/intro.html", "index.html"]
    server.site["/a.xml"] = 500
    report = mirror(url, tmp_path)  # what that sitemap lists is not known: nothing is lost
    assert files(tmp_path) == ["guide/faq.html", "guide/intro.html", "index.html"]
    assert "a.xml: the server returned 500" in told(report)


def test_a_body_that_is_packed_all_the_same_and_text_in_another_encoding_are_read(
    server: Server, tmp_path: Path
) -> None:
    server.site["/"] = gzip.compress(page("packed"))
    server.headers["/"] = {"Content-Encoding": "gzip"}
    server.site["/latin"] = "Größe".encode("latin-1")
    server.headers["/latin"] = {"Content-Type": "text/plain; charset=ISO-8859-1"}
    mirror(server.sitemap("/", "/latin"), tmp_path)
    assert (tmp_path / server.host / "index.html").read_bytes() == page("packed")
    assert (tmp_path / server.host / "latin.txt").read_text("utf-8") == "Größe"
    server.headers["/"] = {"Content-Encoding": "br"}
    with pytest.raises(IndexingError, match="encoding 'br', which was not asked for"):
        mirror(server.at("/"), tmp_path / "br")


def test_robots_txt_chooses_pages_of_sitemaps_and_not_of_urls(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = server.sitemap("/", "/guide/intro.html", "/guide/faq")
    server.site["/robots.txt"] = b"User-agent: *\nDisallow: /guide/faq\nCrawl-delay: 7\n"
    pauses: list[float] = []
    monkeypatch.setattr("rag.documents.mirrors.time.sleep", pauses.append)
    assert "1 that robots.txt disallows" in told(mirror(url, tmp_path / "a"))
    assert files(tmp_path / "a") == ["guide/intro.html", "index.html"]
    assert sum(pauses) == 7
    assert mirror(server.at("/guide/faq"), tmp_path / "b").pages == 1
    server.site["/robots.txt"] = 503
    with pytest.raises(IndexingError, match=r"robots\.txt: the server returned 503"):
        mirror(url, tmp_path / "c")


def test_globs_choose_pages_before_they_are_asked_for(server: Server, tmp_path: Path) -> None:
    url = server.sitemap("/", "/guide/intro.html", "/guide/faq", "/picture.png")
    mirror(url, tmp_path, wanted=lambda name: name.startswith("guide/"))
    assert [path for path, _ in server.asked[2:]] == ["/guide/intro.html", "/guide/faq"]
    with pytest.raises(IndexingError, match="lists no pages of"):
        mirror(url, tmp_path / "none", wanted=lambda name: False)


def test_only_so_many_pages_are_read(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mirrors, "_MAX_PAGES", 2)
    report = mirror(server.sitemap("/guide/faq", "/", "/guide/intro.html"), tmp_path)
    assert files(tmp_path) == ["guide/faq.html", "index.html"]
    assert told(report).endswith(
        "lists more than 2 pages, of which the first are read: include (--include) chooses others"
    )


# --- servers that fail --------------------------------------------------------------------------------------------


def test_an_error_of_the_server_keeps_the_old_copy_and_is_named(server: Server, tmp_path: Path) -> None:
    url = server.sitemap("/", "/guide/faq")
    mirror(url, tmp_path)
    server.site["/guide/faq"] = 500
    report = mirror(url, tmp_path)
    assert files(tmp_path) == ["guide/faq.html", "index.html"]
    assert told(report).splitlines() == [
        f"{server.at('/guide/faq')}: the server returned 500 Internal Server Error",
        f"{url}: 1 could not be fetched; old copies of pages stay",
    ]
    server.site["/guide/faq"] = page("/guide/faq")
    server.forget()
    mirror(url, tmp_path)
    assert ("/guide/faq", 304) in server.asked


@pytest.mark.parametrize("broken", [500, 404, b"<h1>We are sorry</h1>", b"<urlset><url>", b"<urlset/>"])
def test_a_sitemap_that_fails_or_is_none_any_more_deletes_nothing(
    server: Server, tmp_path: Path, broken: bytes | int
) -> None:
    url = server.sitemap("/", "/guide/faq")
    mirror(url, tmp_path)
    kept = read_pages(tmp_path)
    server.site["/sitemap.xml"] = broken
    assert mirror(url, tmp_path).failed == 1
    assert files(tmp_path) == ["guide/faq.html", "index.html"]
    assert read_pages(tmp_path) == kept


def test_if_all_pages_are_gone_they_stay(server: Server, tmp_path: Path) -> None:
    url = server.sitemap("/", "/guide/faq")
    mirror(url, tmp_path)
    server.site |= {"/": 404, "/guide/faq": 410}
    assert "none of its 2 pages can be read: they are gone, or" in told(mirror(url, tmp_path))
    assert files(tmp_path) == ["guide/faq.html", "index.html"]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (endless(b"x" * (1 << 16)), "larger than 1 MiB"),
        (endless(b"x", 0.01), "no complete reply within 0.2 s"),
        (endless(b"x", 0.01, length=10_000), "no complete reply within 0.2 s"),
        (endless(b"x", 0.01, headers=False), "no complete reply within 0.2 s"),
        (redirect("file:///etc/passwd"), "redirects to 'file:///etc/passwd', which is not followed"),
        (redirect("http://localhost:1/x"), "redirects to another host, http://localhost:1/x"),
        (redirect("/x"), "more than 10 redirects"),
    ],
    ids=["endless", "drips", "drips-length", "drips-headers", "file", "host", "circle"],
)
def test_a_page_that_does_not_end_or_leads_elsewhere_is_named(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: Stream, reason: str
) -> None:
    monkeypatch.setattr(mirrors, "MAX_FILE_SIZE", 1 << 20)
    monkeypatch.setattr(mirrors, "_PAGE_SECONDS", 0.2)
    server.site["/x"] = answer
    started = time.monotonic()
    report = mirror(server.sitemap("/", "/x"), tmp_path)
    assert time.monotonic() - started < 30
    assert reason in report.reasons[0]
    assert files(tmp_path) == ["index.html"]


def test_a_connection_that_breaks_off_and_a_length_that_is_too_large_are_named(server: Server) -> None:
    def cut(handler: Handler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", "1000")
        handler.end_headers()
        handler.wfile.write(b"x" * 10)

    server.site["/cut"] = cut
    with pytest.raises(RequestError, match="cut: the connection broke off"):
        get(server.at("/cut"), seconds=5, max_bytes=1 << 20)
    server.site["/empty"] = 204
    with pytest.raises(RequestError, match="the server returned 204"):
        get(server.at("/empty"), seconds=5, max_bytes=1 << 20)
    with pytest.raises(RequestError, match="SSL"):
        get(server.at("/").replace("http:", "https:"), seconds=5, max_bytes=1 << 20)
    with pytest.raises(RequestError, match="Connection refused"):
        get("http://127.0.0.1:9/", seconds=5, max_bytes=1 << 20)


def test_a_single_page_may_move_to_another_host_and_a_sitemap_may_not(server: Server, tmp_path: Path) -> None:
    other = f"http://localhost:{server.server_address[1]}"
    server.site["/moved"] = redirect(f"{other}/guide/faq")
    mirror(server.at("/moved"), tmp_path / "page")
    assert files(tmp_path / "page") == ["moved.html"]
    server.sitemap("/")
    server.site["/old.xml"] = redirect(f"{other}/sitemap.xml")
    with pytest.raises(IndexingError, match="redirects to another host; give http://localhost"):
        mirror(server.at("/old.xml"), tmp_path / "map")


def test_a_server_that_is_slow_for_ever_or_fails_for_ever_is_left_alone(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = [f"/{number}.html" for number in range(8)]
    server.site |= dict.fromkeys(pages, page("x"))
    url = server.sitemap(*pages)
    with monkeypatch.context() as context:
        context.setattr(mirrors, "_ALL_SECONDS", 0.0)
        with pytest.raises(IndexingError, match="none of its 8 pages can be read: stopped after 0 minutes"):
            mirror(url, tmp_path / "late")
    mirror(url, tmp_path)
    monkeypatch.setattr(mirrors, "_IN_VAIN", 3)
    server.site |= dict.fromkeys(pages[2:], 503)
    server.forget()
    report = mirror(url, tmp_path)
    assert len(server.asked) == 2 + 2 + 3
    assert "stopped after 3 failures in a row; 3 pages were not asked for" in told(report)
    assert len(files(tmp_path)) == 8


# --- what comes in ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "xml",
    [
        '<!DOCTYPE lolz [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">]><urlset><url><loc>http://h/&b;</loc></url></urlset>',
        '<!DOCTYPE urlset SYSTEM "http://elsewhere.example/x.dtd"><urlset/>',
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_a_sitemap_with_a_doctype_is_refused(xml: str, encoding: str) -> None:
    with pytest.raises(FormatError, match="a sitemap with a DOCTYPE"):
        read_sitemap(f'<?xml version="1.0" encoding="{encoding}"?>{xml}'.encode(encoding), "x.xml")


def test_what_is_no_sitemap_is_none_and_a_broken_one_is_an_error() -> None:
    for other in (b"", b"text", page("x"), b"<!doctype html><p>x", b"<?xml version='1.0'?><!DOCTYPE html><html/>"):
        assert read_sitemap(other, "x") is None
    for broken in (b"<urlset><url>", b"<urlset>" + b"<a>" * 50, b"<urlset>\xff</urlset>"):
        with pytest.raises(FormatError, match="x: a broken sitemap"):
            read_sitemap(broken, "x")
    found = read_sitemap(
        b"<s:urlset xmlns:s='s' xmlns:i='i'><s:url><s:loc>http://h/a?x=1&amp;y</s:loc>"
        b"<i:image><i:loc>http://h/p.png</i:loc></i:image><i:loc>no</i:loc></s:url></s:urlset>",
        "x",
    )
    assert found is not None
    assert found.pages == ["http://h/a?x=1&y"]


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/", "index.html"),
        ("/guide/", "guide/index.html"),
        ("/guide/intro.html", "guide/intro.html"),
        ("/page.php?id=3&lang=de", "page.php_id=3_lang=de.html"),
        ("/a%20b/Gr%C3%B6%C3%9Fe", "a_b/Größe.html"),
        ("/../../etc/passwd", "_./_./etc/passwd.html"),
        ("/%2e%2e/%2E%2E/x", "_./_./x.html"),
        ("/%2e%2e%2f%2e%2e%2fetc%2fpasswd", "_._.._etc_passwd.html"),
        ("/..\\..\\x", "_._.._x.html"),
        ("//etc/passwd", "etc/passwd.html"),
        ("/a%00b/.hidden", "a_b/_hidden.html"),
        ("/x.html?../../y", "x.html__._.._y.html"),
    ],
)
def test_no_name_of_a_page_leads_elsewhere(path: str, name: str) -> None:
    found = page_name(normalize_url(f"http://h{path}"))
    assert found == name
    assert not {"..", ".", ""} & set(found.split("/"))


def test_names_that_are_long_or_taken_are_replaced_by_short_ones_of_their_own() -> None:
    for path in (f"/{'x' * 201}", f"/{'ü' * 101}.html", "/a" * 40, f"/a?{'q' * 300}"):
        found = page_name(normalize_url(f"http://h{path}"))
        assert found is not None
        assert len(found.encode()) < 150
    names = Names(["a/b.html"])
    assert names.take("http://h/a/c", "a/c.html") == "a/c.html"
    clashes = ["a/b.html", "A/B.html", "a/b.html/c.html", "a"]
    taken = [names.take(f"http://h/{number}", name) for number, name in enumerate(clashes)]
    assert len({*taken, *clashes}) == 8
    assert not any("/" in name for name in taken)


def test_the_type_of_a_page_gives_the_suffix_that_its_path_lacks() -> None:
    assert page_name("http://h/a", "application/pdf") == "a.pdf"
    assert page_name("http://h/a.md", "text/plain") == "a.md"
    assert page_name("http://h/a.md", "text/html") == "a.md.html"
    assert page_name("http://h/guide", "text/html") == "guide.html"
    assert page_name("http://h/a.htm", "") == "a.htm"
    assert page_name("http://h/a", "image/png") is None


def test_urls_are_http_and_written_in_one_way() -> None:
    assert normalize_url(" HTTPS://Example.ORG:443/a b?q=ü#part ") == "https://example.org/a%20b?q=%C3%BC"
    assert normalize_url("http://bücher.example") == "http://xn--bcher-kva.example/"
    assert key_of("http://h:80/x") == key_of("https://h/x") == "h/x"
    assert is_url("ftp://x")
    assert not is_url("docs/a.html")
    for wrong in ("ftp://h/x", "http://", "http://u:secret@h/", "http://h:x/", "http://a_b c/", "http://../x/"):
        with pytest.raises(UsageError) as error:
            normalize_url(wrong)
        assert "secret" not in str(error.value)


def test_a_mirror_that_was_tampered_with_writes_nothing_outside(server: Server, tmp_path: Path) -> None:
    url = server.sitemap("/", "/guide/faq")
    folder = tmp_path / "m"
    mirror(url, folder)
    listed = folder / "pages.jsonl"
    listed.write_text(listed.read_text().replace('"index.html"', '"../../out/index.html"'))
    assert "leads out of the mirror" in told(mirror(url, folder))
    assert not (tmp_path / "out").exists()
    listed.write_text("{}")
    with pytest.raises(IndexingError, match="remove this web source"):
        mirror(url, folder)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/mine").touch()
    (tmp_path / "link").mkdir()
    (tmp_path / "link" / server.host).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(IndexingError, match="a link, where the pages"):
        mirror(url, tmp_path / "link")
    assert (tmp_path / "elsewhere/mine").exists()


# --- indexes ------------------------------------------------------------------------------------------------------


def names(index: Path) -> list[str]:
    found = open_index(index).build
    assert found is not None
    return [record.name for record in read_files(found)]


def folders_of_pages(index: Path) -> int:
    return len(list(index.glob(".rag-web-*")))


def test_an_index_of_a_site_is_built_updated_and_emptied(server: Server, tmp_path: Path, rag: Command) -> None:
    url, home, host = server.sitemap("/", "/guide/intro.html"), tmp_path / "i.index", server.host
    one_line_error(rag("index", "build", url, "--to", home), url, "--allow-network")
    assert not home.exists()
    assert server.asked == []
    assert rag("index", "build", url, "--to", home, "--allow-network").returncode == 0
    assert names(home) == [f"{host}/guide/intro.html", f"{host}/index.html"]
    assert open_index(home).manifest["sources"] == [url]
    one_line_error(rag("index", "add", home, url, "--allow-network"), url, "is a source of")
    one_line_error(rag("index", "add", home, server.at("/")), "--allow-network")
    one_line_error(rag("index", "add", home, server.at("/"), "--allow-network"), "a page of another web source")

    assert rag("index", "add", home, server.at("/guide/faq"), "--allow-network").stderr == "1 new, 2 unchanged\n"
    assert folders_of_pages(home) == 2
    server.forget()
    left = rag("index", "update", home).stderr
    assert left.startswith("2 web sources not asked for changes: --allow-network")
    assert left.endswith("3 unchanged\n")
    assert server.asked == []
    assert rag("index", "update", home, "--allow-network").stderr == "3 unchanged\n"
    server.site["/guide/faq"] = page("another")
    assert rag("index", "update", home, server.at("/guide/faq"), "--allow-network").stderr == (
        "1 changed, 2 unchanged\n"
    )
    found = rag("search", "another", "--index", home, "--json").stdout
    assert f'"{host}/guide/faq.html#1"' in found

    server.sitemap("/", "/guide/intro.html", "/guide/faq")  # that page is a source by itself: it is not read twice
    assert "1 of other web sources" in rag("index", "update", home, "--allow-network").stderr
    assert rag("index", "remove", home, server.at("/guide/intro.html")).stderr == "1 deleted, 2 unchanged\n"
    assert rag("index", "update", home, "--allow-network").stderr.endswith("2 unchanged\n")
    assert rag("index", "remove", home, url).stderr == "1 deleted, 1 unchanged\n"
    assert (folders_of_pages(home), leftovers(home)) == (1, 0)
    assert library.verify_index(home) == []


def test_an_update_whose_server_fails_loses_nothing_and_says_so(server: Server, tmp_path: Path) -> None:
    home = tmp_path / "i.index"
    library.build_index(server.sitemap("/", "/guide/faq"), home, allow_network=True)
    server.site |= {"/": 500, "/sitemap.xml": server.site["/sitemap.xml"]}
    server.site["/guide/faq"] = page("another")
    changes = library.update_index(home, allow_network=True)
    assert (changes.changed, changes.unchanged) == ((f"{server.host}/guide/faq.html",), 1)
    assert changes.notes[0] == f"{server.at('/')}: the server returned 500 Internal Server Error"
    server.site["/sitemap.xml"] = 503
    assert str(library.update_index(home, allow_network=True)) == "2 unchanged"
    one_page = server.at("/guide/faq")
    library.build_index(one_page, home, allow_network=True, replace=True)
    server.site["/guide/faq"] = 404
    assert "the server returned 404" in library.update_index(home, allow_network=True).notes[0]
    assert names(home) == [f"{server.host}/guide/faq.html"]


def test_a_strict_source_fails_with_its_first_page(server: Server, tmp_path: Path, rag: Command) -> None:
    url, home = server.sitemap("/", "/guide/faq"), tmp_path / "i.index"
    server.site["/guide/faq"] = 500
    failed = rag("index", "build", url, "--to", home, "--allow-network", "--strict")
    one_line_error(failed, "/guide/faq: the server returned 500")
    assert not home.exists()
    server.site["/guide/faq"] = page("/guide/faq")
    library.build_index(url, home, allow_network=True, strict=True)
    server.site["/"] = 500
    with pytest.raises(IndexingError, match="returned 500"):
        update(home, allow_network=True)


def test_offline_wins_over_the_option(
    server: Server, tmp_path: Path, rag: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, home = server.at("/"), tmp_path / "i.index"
    library.build_index(url, home, allow_network=True)
    server.forget()
    monkeypatch.setenv("RAG_OFFLINE", "1")
    one_line_error(rag("index", "build", url, "--to", tmp_path / "x.index", "--allow-network"), url, "RAG_OFFLINE")
    one_line_error(rag("index", "add", home, server.at("/guide/faq"), "--allow-network"), "RAG_OFFLINE")
    assert rag("index", "update", home, "--allow-network").stderr == (
        f"{url} not asked for changes: RAG_OFFLINE is set, unset it to fetch pages\n1 unchanged\n"
    )
    assert server.asked == []


def test_a_build_or_an_addition_that_fails_leaves_no_mirror(
    server: Server, tmp_path: Path, rag: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, url = tmp_path / "i.index", server.at("/")
    one_line_error(rag("index", "build", server.at("/gone"), "--to", home, "--allow-network"), "404 Not Found")
    assert not home.exists()
    library.build_index(url, home, allow_network=True)
    kept = next(home.glob(".rag-web-*"))
    before = open_index(home).manifest
    one_line_error(rag("index", "add", home, server.at("/gone"), "--allow-network"), "404 Not Found")
    one_line_error(rag("index", "build", url, "--to", home, "--allow-network"), "already exists")
    server.forget()
    missing = rag("index", "build", url, tmp_path / "no", "--to", home, "--replace", "--allow-network")
    one_line_error(missing, "does not exist")
    assert server.asked == []
    with monkeypatch.context() as context:
        context.setattr("rag.index.build._fill", _interrupted)
        with pytest.raises(KeyboardInterrupt):
            library.build_index(url, home, allow_network=True, replace=True)
    assert [path.name for path in home.glob(".rag-web-*")] == [kept.name]
    assert open_index(home).manifest == before

    (home / ".rag-web-killed").mkdir()  # as a kill leaves one
    library.build_index(server.at("/guide/faq"), home, allow_network=True, replace=True)
    assert folders_of_pages(home) == 1
    assert not kept.exists()
    assert names(home) == [f"{server.host}/guide/faq.html"]


def _interrupted(*_: object) -> None:
    raise KeyboardInterrupt


def test_a_site_and_a_folder_share_an_index(server: Server, tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "a.html").write_bytes(page("a"))
    home = tmp_path / "i.index"
    library.build_index([docs, server.at("/")], home, allow_network=True)
    assert names(home) == ["docs/a.html", f"{server.host}/index.html"]
    (docs / "b.html").write_bytes(page("b"))
    changes = library.update_index(home, docs)
    assert (changes.new, changes.notes) == (("docs/b.html",), ())
    moved = home.rename(tmp_path / "moved.index")
    server.site["/"] = page("another")
    assert library.update_index(moved, allow_network=True).changed == (f"{server.host}/index.html",)
    assert library.update_index(moved).unchanged == 3

    server.site["/"] = page("after the kill")  # of an update that had only fetched the page
    mirror(server.at("/"), next(moved.glob(".rag-web-*")))
    assert library.update_index(moved).changed == (f"{server.host}/index.html",)
    library.build_index(docs, moved, replace=True)
    assert folders_of_pages(moved) == 0


def test_mirrors_are_merged_and_updated(server: Server, tmp_path: Path) -> None:
    one, two, home = (tmp_path / f"{name}.index" for name in ("one", "two", "merged"))
    library.build_index(server.at("/"), one, allow_network=True, retrievers=["bm25"])
    library.build_index(server.sitemap("/guide/intro.html", "/guide/faq"), two, allow_network=True, retrievers=["bm25"])
    with pytest.raises(IndexingError, match="which an update would read twice"):
        library.merge_indexes([one, shutil.copytree(one, tmp_path / "copy.index")], home)
    library.merge_indexes([one, two], home)
    for folder in (one, two):
        shutil.rmtree(folder)
    assert (folders_of_pages(home), leftovers(home), library.verify_index(home)) == (2, 0, [])
    server.forget()
    assert str(library.update_index(home, allow_network=True)) == "3 unchanged"
    assert ("/", 304) in server.forget()
    server.site["/guide/faq"] = page("another")
    assert library.update_index(home, allow_network=True).changed == (f"{server.host}/guide/faq.html",)
    with pytest.raises(KeyboardInterrupt):
        library.merge_indexes([home, _other(tmp_path)], one, progress=_when_merging)
    assert not one.exists()
    with pytest.raises(KeyboardInterrupt):
        library.merge_indexes([home, tmp_path / "other.index"], _other(tmp_path / "x"), progress=_when_merging,
                              replace=True)  # fmt: skip
    assert folders_of_pages(tmp_path / "x" / "other.index") == 0


def _other(folder: Path) -> Path:
    (folder / "docs").mkdir(parents=True)
    (folder / "docs" / "a.html").write_bytes(page("a"))
    library.build_index(folder / "docs", folder / "other.index", retrievers=["bm25"])
    return folder / "other.index"


def _when_merging(step: str, done: int, total: int) -> None:
    if step == "merging":
        raise KeyboardInterrupt


def test_a_manifest_cannot_lead_the_mirror_elsewhere(server: Server, tmp_path: Path, rag: Command) -> None:
    home = tmp_path / "i.index"
    library.build_index(server.at("/"), home, allow_network=True)
    text = (home / "manifest.json").read_text()
    folder = next(home.glob(".rag-web-*")).name
    for wrong in (f"{folder}/..", f"../{folder}", f"{folder}/{server.host}/x", f"other/{server.host}"):
        (home / "manifest.json").write_text(text.replace(f"{folder}/{server.host}", wrong, 1))
        one_line_error(rag("index", "update", home, "--allow-network"), "is damaged")
    assert folders_of_pages(home) == 1


def test_wrong_urls_are_one_line(tmp_path: Path, server: Server, rag: Command) -> None:
    to = ("--to", tmp_path / "i.index", "--allow-network")
    one_line_error(rag("index", "build", "ftp://h/x", *to), "'ftp://h/x' is not an http or https URL")
    one_line_error(rag("index", "build", "http://h/x", "https://h/x", *to), "given twice")
    one_line_error(rag("index", "build", "http://h/x", *to, "--format", "dpr"), "cannot be read as dpr")
    server.headers["/"] = {"Content-Type": "image/png"}
    one_line_error(rag("index", "build", server.at("/"), *to), "image/png is not a type of document")
    with pytest.raises(UsageError, match="give it as a string"):
        library.build_index(Path("https://h/x"), tmp_path / "i.index", allow_network=True)
