"""Threads: what a browser stores is shown and exported again without asking, and hostile rows are refused."""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("jinja2")
pytest.importorskip("mcp")
pytest.importorskip("prometheus_client")

from selectolax.lexbor import LexborHTMLParser as HTMLParser
from starlette.testclient import TestClient

import autoais
from rag.serve.app import create_app
from rag.serve.service import Service
from tests.conftest import present
from tests.rag.serve.served import make_index
from tests.rag.serve.test_pages import events, hostile, texts

QUESTION = "When did the Aller bridge open?"
THREAD = "/t/abcdefgh12345678"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    service = Service({"town": make_index(tmp_path_factory.mktemp("town"))}, ["reader"])
    yield service
    service.close()


@pytest.fixture(scope="module")
def client(service: Service) -> Iterator[TestClient]:
    with TestClient(create_app(service), base_url="http://localhost", raise_server_exceptions=False) as client:
        yield client


@pytest.fixture(scope="module")
def shown(client: TestClient) -> dict[str, dict[str, Any]]:
    """The events of an answer."""
    return dict(events(client, question=QUESTION, index="town", place="t2"))


@pytest.fixture
def record(shown: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The answer as the browser stores it."""
    turn = shown["answer"]["record"] | {"checks": shown["verdicts"]["checks"], "place": "t2"}
    return copy.deepcopy(turn)


def show(client: TestClient, *turns: object) -> list[dict[str, Any]]:
    reply = client.post("/thread", json={"turns": turns})
    assert reply.status_code == 200, reply.text
    parts: list[dict[str, Any]] = reply.json()["turns"]
    return parts


def test_a_stored_answer_is_shown_as_it_was_without_asking(
    client: TestClient, service: Service, shown: dict[str, dict[str, Any]], record: dict[str, Any]
) -> None:
    replies: list[object] = []
    service.watch(replies.append)
    turn = json.loads(json.dumps(record))
    (first, second) = show(client, turn, turn | {"place": "t3"})
    old, new = HTMLParser(shown["answer"]["html"]), HTMLParser(first["html"])
    for css in (".short", ".sentence .words", ".cite", ".passage .page", ".meta", ".copied"):
        assert texts(new, css) == texts(old, css)
    assert texts(new, ".summary") == ["All sentences are word for word from their sources."]
    assert [link.attributes["href"] for link in new.css(".cite")] == [
        link.attributes["href"] for link in old.css(".cite")
    ]
    assert first["turn"] == shown["answer"]["turn"]
    assert present(HTMLParser(second["html"]).css_first(".passage")).attributes["id"] == "t3-p1"
    assert replies == []


def test_verdicts_that_a_reload_cut_off_are_made_again(
    client: TestClient, shown: dict[str, dict[str, Any]], record: dict[str, Any]
) -> None:
    del record["checks"]
    reply = client.post("/verdicts", json=record)
    assert (reply.status_code, reply.json()) == (200, shown["verdicts"])
    record["row"] |= {
        "answer": "Yes." * 101,
        "sentences": [{"text": "Yes.", "start": 4 * n, "end": 4 * n + 4, "citations": []} for n in range(101)],
    }
    reply = client.post("/verdicts", json=record)
    assert reply.status_code == 400
    assert "At most 100 sentences" in reply.json()["message"]


def test_an_answer_of_an_index_that_is_gone_is_still_shown(client: TestClient, record: dict[str, Any]) -> None:
    record["row"]["index"] = "gone"
    (turn,) = show(client, record)
    assert "1931" in texts(HTMLParser(turn["html"]), ".short")
    assert not HTMLParser(turn["html"]).css(".beside")


def set_in(path: str, value: object) -> Any:  # noqa: ANN401
    """A change of a stored turn: the path, and the new value."""
    return pytest.param(path.split("."), value, id=path)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        set_in("row", None),
        set_in("row.sentences", "<script>alert(1)</script>"),
        set_in("row.sentences.0.citations.0.quote", "It never opened."),
        set_in("row.sentences.0.citations.0.passage", "other#1"),
        set_in("row.sentences.0.start", 10**400),
        set_in("row.passages.0.page", "x"),
        set_in("row.index", 3),
        set_in("row.seconds", "<b>"),
        set_in("row.trace", {"tokens": {"read": "<b>", "written": 1}}),
        set_in("question", None),
        set_in("system", ["reader"]),
        set_in("checks", []),
        set_in("checks.0.verdict", "<b>"),
        set_in("checks.0.nearest", {"passage": "other#1", "start": 0, "end": 1}),
        set_in("checks.0.contradiction", {"passage": "bridge.md#1"}),
        set_in("checks.0.quotes", [{"quote": "x", "status": "misquoted", "spans": []}]),
        set_in("checks.0.quotes", [{"quote": "x" * 9_999, "status": "misquoted", "spans": [[0, 0, 1]]}]),
    ],
)
def test_a_row_that_contradicts_itself_is_refused_and_the_others_are_shown(
    client: TestClient, record: dict[str, Any], path: list[str], value: object
) -> None:
    broken: Any = copy.deepcopy(record)
    target = broken
    for name in path[:-1]:
        target = target[int(name) if name.isdigit() else name]
    target[path[-1]] = value
    refused, fine = show(client, broken, record)
    assert refused == {"message": refused["message"]}
    assert refused["message"].startswith("The stored answer") or "check" in refused["message"]
    assert "html" in fine
    assert client.post("/thread/html", json={"title": "x", "turns": [broken]}).status_code == 400
    assert client.post("/export/json", json=broken).status_code == 400


def test_hostile_texts_of_a_row_are_text(client: TestClient, record: dict[str, Any]) -> None:
    evil = '<img src=x onerror=alert(1)>"><script>alert(2)</script>\u202e'
    row = record["row"]
    for passage in row["passages"]:
        passage |= {"title": evil, "section": evil}
    row |= {"question": evil, "short_answer": evil, "system": evil, "index": evil}
    record |= {"question": evil, "system": evil, "place": '"><script>'}
    record["checks"][0] |= {"verdict": "undecided", "reason": evil}
    (turn,) = show(client, record)
    assert "alert(" in turn["html"]
    hostile(turn["html"])
    page = client.post("/thread/html", json={"title": evil, "turns": [record]}).text
    assert not HTMLParser(page).css("script, img, [onerror]")


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"no", 400),
        (b"[]", 400),
        (b'{"turns": 3}', 400),
        (b'{"turns": [' + b"3," * 200 + b"3]}", 400),
        (b"[" * 100_000, 400),
        (b"x" * 5_000_000, 413),
    ],
)
def test_a_bad_thread_is_refused_in_one_line(client: TestClient, body: bytes, status: int) -> None:
    reply = client.post("/thread", content=body, headers={"Content-Type": "application/json"})
    assert reply.status_code == status
    if status == 400:
        assert reply.json()["message"].endswith(".")


def test_no_form_of_another_site_can_send_a_thread(client: TestClient) -> None:
    for path in ("/thread", "/thread/html", "/verdicts", "/export/json"):
        assert client.post(path, content=b"{}", headers={"Content-Type": "text/plain"}).status_code == 415


def test_a_thread_has_an_address_and_needs_the_browser_that_asked(client: TestClient) -> None:
    page = HTMLParser(client.get(THREAD).text)
    assert present(page.css_first("#thread")).attributes["data-thread"] == THREAD.removeprefix("/t/")
    assert "needs JavaScript" in page.html if page.html else False
    assert client.get("/t/<script>", headers={"Accept": "text/html"}).status_code == 404


@pytest.mark.parametrize(
    ("name", "suffix", "holds"),
    [("markdown", ".md", "[^2-1]: "), ("html", ".html", "<mark>"), ("json", ".json", '"verdicts"')],
)
def test_a_thread_is_exported_whole(
    client: TestClient, record: dict[str, Any], name: str, suffix: str, holds: str, tmp_path: Path
) -> None:
    reply = client.post(f"/thread/{name}", json={"title": "The Bridge!", "turns": [record, record]})
    assert reply.status_code == 200
    assert holds in reply.text
    assert f'filename="the-bridge{suffix}"' in reply.headers["Content-Disposition"]
    if name == "json":
        (tmp_path / "thread.json").write_text(reply.text, "utf-8")
        assert [answer.id for answer in autoais.read_answers(tmp_path / "thread.json")] == ["t1", "t2"]
    else:
        assert "http://localhost/p/town/bridge.md%231" in reply.text


def test_a_thread_has_no_other_format(client: TestClient) -> None:
    reply = client.post("/thread/pdf", json={"title": "x", "turns": []})
    assert reply.status_code == 404
    assert reply.json()["message"] == "No format 'pdf'; there are: markdown, html, json."


def test_a_stored_answer_is_exported_as_it_was(client: TestClient, record: dict[str, Any]) -> None:
    record["question"] = "Another question?"
    reply = client.post("/export/bibtex", json=record)
    assert "@misc{bridge-md" in reply.text
    assert 'filename="another-question.bib"' in reply.headers["Content-Disposition"]


def test_an_answer_is_copied_in_three_ways(shown: dict[str, dict[str, Any]]) -> None:
    tree = HTMLParser(shown["answer"]["html"])
    assert texts(tree, "button.copy") == ["Text with footnotes c", "Markdown with footnotes", "Sources as BibTeX"]
    copies = {str(node.attributes["data-form"]): node.text() for node in tree.css(".copied")}
    assert copies["text"].startswith("1931\n\nThe Aller bridge opened in 1931. [1]")
    assert copies["markdown"].startswith("**1931**\n\nThe Aller bridge opened in 1931[^1].")
    assert "[^1]: [The Aller bridge, History](http://localhost/p/town/bridge.md%231" in copies["markdown"]
    assert "url = {http://localhost/p/town/bridge.md%231" in copies["bibtex"]
