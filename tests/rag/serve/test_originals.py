"""Originals over HTTP: what is shown of them, to whom, and what is refused."""

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("jinja2")
pytest.importorskip("mcp")
pytest.importorskip("prometheus_client")

from selectolax.lexbor import LexborHTMLParser as HTMLParser
from starlette.testclient import TestClient

import rag
from rag.serve.app import create_app
from rag.serve.keys import Keys
from rag.serve.service import Service
from tests.rag.documents.pdfs import Print, make_pdf
from tests.rag.serve.test_pages import events

FIRST, SECOND = "The old ferry crosses the river.", "A new bridge follows the harbour."
PDF = make_pdf([[Print(FIRST, 700), Print(SECOND, 660)]])
HTML = b"<title>Notes</title><p>The mayor wept in 1931.</p><script>alert(1)</script>"
KEY = "a-long-key-of-the-tests-0123456789"
ADDRESSES = (
    "/original/docs/ferry.pdf%231?page=1",
    "/download/docs/ferry.pdf%231",
    "/view/docs/n%C3%A4h%20%22x%22.html%231",
    "/v1/original?passage=ferry.pdf%231",
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "ferry.pdf").write_bytes(PDF)
    (docs / 'näh "x".html').write_bytes(HTML)
    (docs / "broken.md").write_text("# Broken\n\nSomething.\n", "utf-8")
    (tmp_path / "secret.md").write_text("# Secret\n\nThe vault.\n", "utf-8")
    return docs


@pytest.fixture
def service(folder: Path) -> Iterator[Service]:
    service = Service({"docs": rag.build_index(folder, folder.parent / "docs.index")}, ["extractive"])
    yield service
    service.close()


@pytest.fixture
def client(service: Service) -> TestClient:
    return TestClient(create_app(service), base_url="http://localhost", raise_server_exceptions=False)


def test_the_api_says_where_the_words_stand(client: TestClient) -> None:
    reply = client.get("/v1/original", params={"passage": "ferry.pdf#1", "mark": f"0-{len(FIRST)}"})
    assert reply.status_code == 200, reply.text
    body = reply.json()
    (page,) = body.pop("pages")
    assert body == {
        "index": "docs",
        "passage": "ferry.pdf#1",
        "file": "ferry.pdf",
        "download": "http://localhost/download/docs/ferry.pdf%231",
        "url": "",
        "page_count": 1,
        "note": "",
    }
    ((left, top, right, bottom),) = page["boxes"]
    assert (page["page"], page["width"], page["height"]) == (1, 600, 800)
    assert 0 < left < 50 / 600 < right < 0.5 < 0.85 * 800 / 600
    assert top < 95 / 800 < bottom < 105 / 800
    picture = client.get(page["image"])
    assert picture.headers["Content-Type"] == "image/png"
    assert picture.content.startswith(b"\x89PNG")
    assert picture.headers["Cache-Control"].startswith("private, max-age=")
    assert client.get(page["image"].partition("&v=")[0]).headers["Cache-Control"] == "no-store"


def test_a_picture_marks_the_words_of_a_link(client: TestClient) -> None:
    plain, first, whole = (
        client.get(f"/original/docs/ferry.pdf%231{query}") for query in ("?page=1", f"?mark=0-{len(FIRST)}", "")
    )
    assert {reply.headers["Content-Type"] for reply in (plain, first, whole)} == {"image/png"}
    assert len({plain.content, first.content, whole.content}) == 3
    assert first.headers["Cache-Control"] == "no-store"


def test_the_page_of_a_passage_shows_the_page_of_the_pdf_with_boxes(client: TestClient) -> None:
    tree = HTMLParser(client.get(f"/p/docs/ferry.pdf%231?mark=0-{len(FIRST)}").text)
    (image,) = tree.css(".original image")
    assert client.get(str(image.attributes["href"])).status_code == 200
    assert len(tree.css(".original rect")) == 1
    assert tree.css(".original svg")[0].attributes["aria-label"] == "Page 1 of ferry.pdf, with boxes around the words"
    assert len(HTMLParser(client.get("/p/docs/ferry.pdf%231").text).css(".original rect")) == 2  # all of the passage
    notes = HTMLParser(client.get("/p/docs/n%C3%A4h%20%22x%22.html%231").text)
    assert notes.css(".original") == []
    assert [link.text() for link in notes.css("a[download]")] == ["Download the file"]


def test_a_citation_names_the_page_where_its_words_stand(tmp_path: Path) -> None:
    ferry = [Print(f"The ferry carried {n} people on day {n}.", 700 - 20 * n) for n in range(3)]
    (tmp_path / "town.pdf").write_bytes(make_pdf([ferry, [Print("The bridge of Harnholm opened in 1931.", 700)]]))
    index = rag.build_index(tmp_path / "town.pdf", tmp_path / "town.index")
    assert [passage.page for passage in index.store.rows([0])] == [1]  # where the passage begins
    with TestClient(create_app(Service({"town": index}, ["extractive"])), base_url="http://localhost") as client:
        question = "When did the bridge of Harnholm open?"
        answer = dict(events(client, question=question, system="extractive"))["answer"]
        tree = HTMLParser(answer["html"])
        for css in (".passage header p", ".sources .quiet"):
            assert tree.css(css)[0].text().strip() == "page 2"
        assert "page 2: “" in tree.css(".copied[data-form=text]")[0].text()
        assert answer["record"]["row"]["passages"][0]["page"] == 2
        (tmp_path / "town.pdf").unlink()
        with_file_gone = dict(events(client, question=question, system="extractive"))["answer"]
        assert with_file_gone["record"]["row"]["passages"][0]["page"] == 1


def test_an_html_file_is_shown_at_the_words_in_a_sandbox(client: TestClient) -> None:
    page = HTMLParser(client.get("/p/docs/n%C3%A4h%20%22x%22.html%231?mark=0-12").text)
    (link,) = [link for link in page.css("a.button") if link.text() == "Show in the document"]
    path, _, fragment = str(link.attributes["href"]).partition("#")
    assert fragment == ":~:text=The%20mayor%20we"
    reply = client.get(path)
    assert (reply.content, reply.headers["Content-Type"]) == (HTML, "text/html")
    policy = reply.headers["Content-Security-Policy"].split("; ")
    assert policy[:2] == ["sandbox", "default-src 'none'"]  # without allow-scripts and allow-same-origin
    assert not any("http" in part or "'self'" in part for part in policy)
    assert client.get("/view/docs/broken.md%231").headers["Content-Type"] == "text/plain; charset=utf-8"
    assert client.get("/view/docs/ferry.pdf%231").status_code == 404


def test_a_file_is_downloaded_as_it_was_read(client: TestClient) -> None:
    reply = client.get("/download/docs/n%C3%A4h%20%22x%22.html%231")
    assert reply.content == HTML
    assert reply.headers["Content-Type"] == "application/octet-stream"
    assert reply.headers["X-Content-Type-Options"] == "nosniff"
    assert reply.headers["Content-Disposition"] == (
        "attachment; filename=\"n_h _x_.html\"; filename*=UTF-8''n%C3%A4h%20%22x%22.html"
    )
    assert "default-src 'none'" in reply.headers["Content-Security-Policy"]
    pdf = client.get("/download/docs/ferry.pdf%231")
    assert (pdf.content, pdf.headers["Content-Type"]) == (PDF, "application/pdf")
    assert pdf.headers["Content-Disposition"].startswith("attachment;")


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/download/docs/..%2Fsecret.md%231", 404),
        ("/download/docs/%2Fetc%2Fpasswd%231", 404),
        ("/download/docs/ferry.pdf", 404),
        ("/download/other/ferry.pdf%231", 404),
        ("/download/docs/%ED%A0%80%231", 404),
        ("/original/docs/ferry.pdf%231?page=0", 400),
        ("/original/docs/ferry.pdf%231?page=2", 404),
        ("/original/docs/ferry.pdf%231?page=99999999", 400),
        ("/original/docs/broken.md%231?page=1", 404),
        ("/v1/original", 400),
        ("/v1/original?passage=ferry.pdf%231&mark=x", 400),
        ("/v1/original?passage=ferry.pdf%231&index=other", 404),
        ("/v1/original?passage=..%2Fsecret.md%231", 404),
    ],
)
def test_what_is_not_there_is_refused_in_one_line(client: TestClient, path: str, status: int, folder: Path) -> None:
    reply = client.get(path)
    assert reply.status_code == status, reply.text
    assert str(folder.parent) not in reply.text
    assert "vault" not in reply.text


def test_a_file_that_changed_is_not_shown_and_the_page_says_so(client: TestClient, folder: Path) -> None:
    assert client.get(ADDRESSES[0]).status_code == 200
    (folder / "ferry.pdf").write_bytes(PDF + b"\n")
    (folder / 'näh "x".html').write_bytes(HTML + b"\n")
    assert {client.get(address).status_code for address in ADDRESSES} == {404}  # not from a cache either
    tree = HTMLParser(client.get("/p/docs/ferry.pdf%231").text)
    (note,) = tree.css(".original-note")
    assert note.text() == (
        "The original is not shown: ferry.pdf has changed since it was read: rag index update reads it again."
    )
    assert FIRST in tree.css(".here")[0].text()


@pytest.mark.parametrize(
    "options", [{"originals": False}, {"base_url": "https://rag.example.org"}, {"hosts": ["box.example.org"]}]
)
def test_originals_are_refused_unless_only_this_machine_asks(service: Service, options: dict[str, object]) -> None:
    client = TestClient(create_app(service, **options), base_url="http://localhost")  # type: ignore[arg-type]
    for address in ADDRESSES:
        reply = client.get(address)
        assert reply.status_code == 404
        assert "does not show originals" in reply.text
    page = client.get("/p/docs/ferry.pdf%231")
    assert page.status_code == 200
    assert "/original/" not in page.text
    assert "/download/" not in page.text
    allowed = create_app(service, **(options | {"originals": True}))  # type: ignore[arg-type]
    assert TestClient(allowed, base_url="http://localhost").get(ADDRESSES[0]).status_code == 200


def test_originals_need_the_key(service: Service) -> None:
    client = TestClient(create_app(service, keys=Keys([KEY])), base_url="http://localhost", follow_redirects=False)
    for address in ADDRESSES:
        assert client.get(address).status_code == 401
        assert client.get(address, headers={"Authorization": f"Bearer {KEY}"}).status_code == 200
