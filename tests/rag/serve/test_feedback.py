"""Ratings of the page: stored as labels that `autoais` reads, with the answers, and only of answers that were given."""

import json
import stat
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
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
from autoais.formats.human_ratings.convert import convert_ratings
from autoais.formats.human_ratings.read import read_ratings
from rag.base.errors import RagError
from rag.index.index import Index
from rag.serve.app import create_app
from rag.serve.service import Service
from tests.conftest import present
from tests.rag.serve.test_pages import events

QUESTION = "When did the Aller bridge open?"


@pytest.fixture
def service(index: Index) -> Iterator[Service]:
    service = Service({"town": index}, ["reader"])
    yield service
    service.close()


@pytest.fixture
def client(service: Service, tmp_path: Path) -> Iterator[TestClient]:
    app = create_app(service, feedback=tmp_path / "feedback.jsonl")
    with TestClient(app, base_url="http://localhost", raise_server_exceptions=False) as client:
        yield client


def ask(client: TestClient) -> dict[str, Any]:
    """The row of a new answer."""
    row = dict(events(client, question=QUESTION))["answer"]["record"]["row"]
    assert isinstance(row, dict)
    return row


def test_ratings_become_labels_of_the_answers(client: TestClient, tmp_path: Path) -> None:
    first, second = ask(client), ask(client)
    passage = first["sentences"][0]["citations"][0]["passage"]
    opinions = [
        {"answer": first["id"], "kind": "wrong-source", "sentence": 0, "passage": passage},
        {"answer": first["id"], "kind": "no-answer"},
        {"answer": first["id"], "kind": "no-answer"},
        {"answer": second["id"], "kind": "answers"},
    ]
    for opinion in opinions:
        assert client.post("/feedback", json=opinion).status_code == 200
    path, answers = tmp_path / "feedback.jsonl", tmp_path / "feedback.answers.jsonl"
    assert [stat.S_IMODE(file.stat().st_mode) for file in (path, answers)] == [0o600, 0o600]
    assert [(rating.question, rating.value) for rating in read_ratings(path)] == [
        ("support", "none"),
        ("informative", "no"),
        ("informative", "no"),
        ("informative", "yes"),
    ]
    labelled = tmp_path / "labelled.jsonl"
    labelled.write_text("\n".join(convert_ratings(path, "answers", answers=answers)), "utf-8")
    one, two = autoais.read_answers(labelled)
    assert (one.informative, two.informative) == (False, True)
    assert one.sentences[0].citations[0].support == "none"
    assert one.id == first["id"]


@pytest.mark.parametrize(
    ("opinion", "status"),
    [
        ({}, 400),
        ({"kind": "great"}, 400),
        ({"answer": "q1"}, 404),
        ({"kind": "wrong-source"}, 400),
        ({"kind": "wrong-source", "sentence": 0, "passage": "other#1"}, 400),
        ({"kind": "wrong-source", "sentence": 99, "passage": "bridge.md#1"}, 400),
        ({"kind": "wrong-source", "sentence": -1, "passage": "bridge.md#1"}, 400),
    ],
)
def test_what_was_not_answered_cannot_be_rated(
    client: TestClient, tmp_path: Path, opinion: dict[str, Any], status: int
) -> None:
    known = {"answer": ask(client)["id"], "kind": "no-answer"} if opinion else {}
    assert client.post("/feedback", json=known | opinion).status_code == status
    assert (tmp_path / "feedback.jsonl").read_bytes() == b""


def test_an_answer_that_a_browser_stores_is_rated_after_a_restart(
    client: TestClient, index: Index, tmp_path: Path
) -> None:
    record = dict(events(client, question=QUESTION))["answer"]["record"]
    row = json.loads(json.dumps(record["row"]).replace(".0,", ","))  # as browsers write numbers
    path = tmp_path / "feedback.jsonl"
    assert stat.S_IMODE((tmp_path / "feedback.key").stat().st_mode) == 0o600
    opinion = {"answer": row["id"], "kind": "answers", "row": row, "signature": record["signature"]}
    restarted = create_app(Service({"town": index}, ["reader"]), feedback=path)
    with TestClient(restarted, base_url="http://localhost") as again:
        for change in (
            {"signature": "0" * 64},
            {"signature": "ä"},
            {"row": row | {"answer": "1932"}},
            {"answer": "q-1"},
        ):
            assert again.post("/feedback", json=opinion | change).status_code == 404
        assert path.read_bytes() == b""
        assert again.post("/feedback", json=opinion).status_code == 200
    assert [rating.answer for rating in read_ratings(path)] == [row["id"]]
    assert [answer.id for answer in autoais.read_answers(tmp_path / "feedback.answers.jsonl")] == [row["id"]]


def test_many_at_once_and_a_restart_break_no_line(client: TestClient, index: Index, tmp_path: Path) -> None:
    identifiers = [ask(client)["id"] for _ in range(4)]
    with ThreadPoolExecutor(8) as pool:
        replies = list(
            pool.map(
                lambda n: client.post("/feedback", json={"answer": identifiers[n % 4], "kind": "answers"}), range(40)
            )
        )
    assert {reply.status_code for reply in replies} == {200}
    restarted = create_app(Service({"town": index}, ["reader"]), feedback=tmp_path / "feedback.jsonl")
    with TestClient(restarted, base_url="http://localhost") as again:
        again.post("/feedback", json={"answer": ask(again)["id"], "kind": "answers"})
    assert len(list(read_ratings(tmp_path / "feedback.jsonl"))) == 41
    assert len(list(autoais.read_answers(tmp_path / "feedback.answers.jsonl"))) == 5


def test_it_is_off_unless_there_is_a_file(service: Service) -> None:
    with TestClient(create_app(service), base_url="http://localhost") as client:
        html = dict(events(client, question=QUESTION))["answer"]["html"]
        assert "data-rate" not in html
        assert client.post("/feedback", json={}).status_code == 404


def test_the_page_offers_it(client: TestClient) -> None:
    tree = HTMLParser(dict(events(client, question=QUESTION))["answer"]["html"])
    assert present(tree.css_first(".rating")).attributes["data-answer"]
    assert {str(node.attributes["data-rate"]) for node in tree.css("[data-rate]")} == {
        "answers",
        "no-answer",
        "wrong-source",
    }


def test_a_file_that_cannot_be_written_is_refused_at_the_start(service: Service, tmp_path: Path) -> None:
    (tmp_path / "bad.answers.jsonl").write_text("no json\n", "utf-8")
    for path in (tmp_path / "none" / "f.jsonl", tmp_path / "bad.jsonl"):
        with pytest.raises(RagError, match=r"^feedback "):
            create_app(service, feedback=path)


def test_another_site_cannot_rate(client: TestClient) -> None:
    body = json.dumps({"answer": ask(client)["id"], "kind": "answers"})
    assert client.post("/feedback", content=body, headers={"Content-Type": "text/plain"}).status_code == 415
    assert client.post("/feedback", json={}, headers={"Origin": "https://evil.example"}).status_code == 403


def test_servers_that_share_the_files_store_an_answer_once(service: Service, tmp_path: Path) -> None:
    file = tmp_path / "feedback.jsonl"
    apps = [create_app(service, feedback=file) for _ in range(2)]
    clients = [TestClient(app, base_url="http://localhost") for app in apps]
    record = dict(events(clients[0], question=QUESTION))["answer"]["record"]
    opinion = {"answer": record["row"]["id"], "kind": "answers", "row": record["row"], "signature": record["signature"]}
    assert [client.post("/feedback", json=opinion).status_code for client in clients] == [200, 200]
    assert len((tmp_path / "feedback.answers.jsonl").read_text("utf-8").splitlines()) == 1
    assert len(file.read_text("utf-8").splitlines()) == 2


def test_a_row_of_lists_in_lists_is_no_answer_of_the_server(client: TestClient) -> None:
    row = f'{{"id": "q1", "a": {"[" * 600}{"]" * 600}}}'
    body = f'{{"answer": "q1", "kind": "answers", "row": {row}, "signature": "x"}}'
    assert client.post("/feedback", content=body, headers={"Content-Type": "application/json"}).status_code == 404
