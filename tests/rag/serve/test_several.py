"""Several indexes asked as one, by the API, the page and other clients: each citation opens in its own index."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("mcp")

from selectolax.lexbor import LexborHTMLParser as HTMLParser
from starlette.testclient import TestClient

import rag
from rag.base.errors import NotFoundError, UsageError
from rag.retrieval.client import Client
from rag.serve import Limits, Service, create_app
from scripts.browser import serving
from tests.rag.serve.served import make_index, other_index

OPENED = "When did the Aller bridge open?"
PARTS = "How many parts does the Aller bridge of another index have?"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Two indexes that can be searched as one, with the same ids, and the handbook, which cannot."""
    folder = tmp_path_factory.mktemp("several")
    served = {"town": make_index(folder), "other": other_index(folder / "other"), "handbook": rag.open_index()}
    found = Service(served, limits=Limits(workers=2))
    yield found
    found.close()


@pytest.fixture(scope="module")
def client(service: Service) -> Iterator[TestClient]:
    with TestClient(create_app(service), base_url="http://localhost", raise_server_exceptions=False) as found:
        yield found


def ask(client: TestClient, question: str, index: str) -> dict[str, Any]:
    reply = client.post("/v1/ask", json={"question": question, "index": index, "k": 16})
    assert reply.status_code == 200, reply.text
    row: dict[str, Any] = reply.json()
    return row


@pytest.mark.parametrize(("question", "name"), [(OPENED, "town"), (PARTS, "other")])
def test_an_answer_over_two_indexes_cites_the_one_that_it_comes_from(
    client: TestClient, question: str, name: str
) -> None:
    row = ask(client, question, "other+town")
    assert row["index"] == "town+other"
    cited = row["sentences"][0]["citations"][0]["passage"]
    assert cited.startswith(f"{name}:")
    assert {passage["id"].partition(":")[0] for passage in row["passages"]} == {"town", "other"}
    path = urlsplit(row["urls"][cited]).path
    assert path == f"/p/{name}/{cited.partition(':')[2].replace('/', '%2F').replace('#', '%23')}"
    assert client.get(row["urls"][cited]).status_code == 200
    assert client.get(f"/p/town%2Bother/{cited.replace('#', '%23')}").status_code == 200


def test_search_and_a_client_know_the_name(client: TestClient, service: Service) -> None:
    hits = client.post("/v1/search", json={"query": "bridge", "index": "town+other"}).json()
    assert {hit["id"].partition(":")[0] for hit in hits["hits"]} == {"town", "other"}
    with serving(create_app(Service(dict(service.indexes)))) as url:
        answer = Client(f"{url}/town+other").ask(OPENED)
        assert answer.citations[0].passage.startswith("town:")


def test_a_wrong_choice_is_told_in_one_line(client: TestClient, service: Service) -> None:
    for index, status, message in (
        ("town+none", 404, "no index called 'none'; there are: town, other, handbook"),
        ("town+town", 400, "'town+town' names an index twice"),
        ("town+handbook", 400, "town+handbook cannot be searched as one: ask each of these indexes"),
    ):
        reply = client.post("/v1/ask", json={"question": OPENED, "index": index})
        assert (reply.status_code, reply.json()["error"]["message"]) == (status, message)
    with pytest.raises(NotFoundError):
        service.index("town+none")
    with pytest.raises(UsageError):
        service.index("other+other")


def test_the_page_offers_what_can_be_asked_as_one(client: TestClient) -> None:
    tree = HTMLParser(client.get("/", params={"index": "town+other"}).text)
    options = [option.text() for option in tree.css("select[name=index] option")]
    assert options == ["town", "other", "handbook", "town+other"]
    assert [option.text() for option in tree.css("select[name=index] option[selected]")] == ["town+other"]
    assert "of town and other." in tree.css(".hero")[0].text()
    assert "town+other" in client.get("/?index=town+other").text, "a plus in an address that a person typed"


def test_the_page_answers_and_links_to_the_index_of_each_passage(client: TestClient) -> None:
    tree = HTMLParser(client.get("/", params={"q": OPENED, "index": "town+other", "whole": "1"}).text)
    href = tree.css("a.cite")[0].attributes["href"] or ""
    assert href.startswith("/p/town/bridge.md%23")
    assert client.get(href).status_code == 200


def test_examples_come_from_each_index(client: TestClient) -> None:
    found = client.get("/examples", params={"index": "town+other"}).json()["examples"]
    town = client.get("/examples", params={"index": "town"}).json()["examples"]
    assert [example["question"] for example in town][:1] == [example["question"] for example in found][:1]
    assert all("index=town%2Bother" in example["href"] for example in found)


def test_chat_programs_list_it_as_a_model(client: TestClient) -> None:
    names = [model["id"] for model in client.get("/v1/models").json()["data"]]
    assert "reader@town+other" in names
    body = {"model": "reader@town+other", "messages": [{"role": "user", "content": OPENED}]}
    assert "1931" in client.post("/v1/chat/completions", json=body).json()["choices"][0]["message"]["content"]


def test_an_updated_index_is_asked_together_with_the_others(tmp_path: Path) -> None:
    service = Service({"town": make_index(tmp_path), "other": other_index(tmp_path / "other")})
    try:
        before = service.index("town+other")
        assert service.index("other+town") is before
        (tmp_path / "documents" / "mill.md").write_text(
            "# The mill\n\nThe mill of Verden burned down in 1955.\n", "utf-8"
        )
        rag.update_index(tmp_path / "town.index")
        assert service.reopen() == ["town"]
        reply = service.ask("When did the mill of Verden burn down?", "town+other")
        assert reply.answer.citations[0].passage == "town:mill.md#1"
        assert service.index("town+other").manifest["checksum"] != before.manifest["checksum"]
    finally:
        service.close()


def test_only_some_choices_of_many_indexes_are_offered_and_kept_open(tmp_path: Path) -> None:
    first = make_index(tmp_path)
    few = Service(dict.fromkeys("abc", first))
    assert few.choices == ["a", "b", "c", "a+b", "a+c", "b+c", "a+b+c"]
    many = Service(dict.fromkeys("abcde", first))
    assert many.choices == ["a", "b", "c", "d", "e", "a+b+c+d+e"]
    few.close()
    many.close()
