"""The API by HTTP: the shapes of answers and errors, and nobody who gets in without being asked."""

import asyncio
import html
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("prometheus_client")
pytest.importorskip("mcp")

from starlette.testclient import TestClient

from autoais.base.answers import CitedAnswer, read_answers
from autoais.base.types import Citation, CitedSentence, Passage
from autoais.metrics.quotes import check_quotes
from rag.api import add_to_index, build_index
from rag.base.errors import UsageError
from rag.base.types import Hit
from rag.index.index import Index
from rag.serve import Limits, Service, create_app
from rag.serve import service as serving
from rag.serve.keys import Keys
from rag.serve.openai_schemas import ChatCompletion, ModelList, ModelObject, OpenAIError, ResponseObject
from rag.serve.schemas import AnswerResponse, IndexesResponse, JudgeResponse, SearchResponse
from rag.serve.schemas import QuoteCheck as QuoteResponse
from tests.rag.serve.served import make_index

QUESTION = "When did the Aller bridge open?"
KEY, OTHER = "k" * 20, "o" * 24


def client_of(index: Index, **options: Any) -> TestClient:  # noqa: ANN401
    limits = options.pop("limits", Limits(workers=2))
    app = create_app(Service({"town": index}, ["reader", "extractive"], limits=limits), **options)
    return TestClient(app, base_url=options.get("base_url") or "http://localhost:8000", raise_server_exceptions=False)


@pytest.fixture(scope="module")
def client(index: Index) -> Iterator[TestClient]:
    with client_of(index) as made:
        yield made


def told(response: Any) -> dict[str, Any]:  # noqa: ANN401
    found: dict[str, Any] = response.json()
    return found


# --- answers ----------------------------------------------------------------------------------------------------------


def test_an_answer_is_a_row_of_answers_jsonl(client: TestClient, tmp_path: Path) -> None:
    response = client.post("/v1/ask", json={"question": QUESTION, "id": "bridge"})
    assert response.status_code == 200, response.text
    row = AnswerResponse.model_validate(response.json(), strict=False)
    (tmp_path / "answers.jsonl").write_text(response.text + "\n", "utf-8")
    (read,) = read_answers(tmp_path / "answers.jsonl")
    assert (read.id, read.question, read.plain) == ("bridge", QUESTION, row.answer)
    assert "1931" in row.answer
    marks = []
    for sentence in row.sentences:
        (citation,) = sentence.citations
        text = next(one.text for one in row.passages if one.id == citation.passage)
        assert text[citation.start : citation.end] == citation.quote
        assert row.answer[sentence.start : sentence.end] == sentence.text
        marks.append(f"{citation.start}-{citation.end}")
    assert set(row.urls) == {one.id for one in row.passages}
    mark = f"?mark={','.join(marks)}"
    assert row.urls[citation.passage] == f"http://localhost:8000/p/town/bridge.md%231{mark}"
    assert row.verdicts is None


def test_a_stream_ends_with_the_same_object(client: TestClient) -> None:
    asked = {"question": QUESTION, "system": "extractive", "history": [{"question": "What?", "answer": "That."}]}
    whole = told(client.post("/v1/ask", json=asked))
    streamed = client.post("/v1/ask", json={**asked, "stream": True})
    assert streamed.headers["content-type"].startswith("text/event-stream")
    events = [part.split("\n", 1) for part in streamed.text.strip().split("\n\n")]
    (name, data), *others = events
    answer = json.loads(data.removeprefix("data: "))
    assert (name, others) == ("event: answer", [])  # the system does not stream
    assert answer.pop("seconds") > 0
    del whole["seconds"]
    assert answer == whole


def test_an_error_before_the_first_piece_has_its_own_status(client: TestClient) -> None:
    response = client.post("/v1/ask", json={"question": "?!", "stream": True})
    assert (response.status_code, told(response)["error"]["type"]) == (400, "QuestionError")


def test_verdicts_if_asked_for(client: TestClient) -> None:
    row = told(client.post("/v1/ask", json={"question": QUESTION, "verdicts": True}))
    AnswerResponse.model_validate(row, strict=False)
    assert [one["verdict"] for one in row["verdicts"]] == ["supported"] * len(row["sentences"])
    assert [one["quotes"] for one in row["verdicts"]] == [[]] * len(row["sentences"])


def test_verdicts_have_the_quotations_of_a_sentence() -> None:
    quote = check_quotes(
        CitedAnswer(
            "a", "?", (CitedSentence('It says "the bridge is very red".', (Citation("b"),)),),
            {"b": Passage("b", "", "They say the bridge is red.")},
        )
    )[0].record()  # fmt: skip
    assert QuoteResponse.model_validate(quote, strict=False).diff == "the bridge is [-very-] red"
    assert set(quote) == set(QuoteResponse.model_fields)


def test_a_false_claim_is_contradicted_by_the_passage_that_says_otherwise(client: TestClient) -> None:
    false = {"question": "", "answer": "The Aller bridge has two arches of red brick."}
    row = told(client.post("/v1/attribute", json=false))
    AnswerResponse.model_validate(row, strict=False)
    (check,) = row["trace"]["checked"]
    assert (check["verdict"], check["numbers"]) == ("contradicted", ["three", "two"])
    assert check["contradiction"]["quote"] == "It has three arches of red brick."
    (place,) = [one for one in row["passages"] if one["id"] == check["contradiction"]["passage"]]
    assert (
        place["text"][check["contradiction"]["start"] : check["contradiction"]["end"]]
        == check["contradiction"]["quote"]
    )


def test_a_question_that_is_not_answered(client: TestClient) -> None:
    row = told(client.post("/v1/ask", json={"question": QUESTION, "min_confidence": 1.0}))
    AnswerResponse.model_validate(row, strict=False)
    assert row["abstained"]
    assert (row["answer"], row["sentences"]) == ("", [])
    assert row["urls"]


def test_hits_are_those_of_the_library(client: TestClient, index: Index) -> None:
    response = client.post("/v1/search", json={"query": QUESTION, "k": 2})
    found = SearchResponse.model_validate(response.json())
    hits = index.bm25.search([QUESTION], 2)[0]
    assert found.hits is not None
    assert [(one.id, one.score, one.text) for one in found.hits] == [
        (hit.passage.id, float(hit.score), hit.passage.text) for hit in hits
    ]
    assert (found.index, found.retriever) == ("town", index.bm25.name)
    assert found.checksum == index.manifest["checksum"]
    several = told(client.post("/v1/search", json={"queries": [QUESTION, "oven"], "k": 2}))
    assert several["results"][0] == {"query": QUESTION, "hits": told(response)["hits"]}
    assert several["results"][1]["hits"][0]["id"] == "ovens.md#1"
    assert told(client.post("/v1/search", json={"queries": []}))["results"] == []


def test_a_judgement(client: TestClient) -> None:
    evidence = ["The Aller is a river.", {"title": "The Aller bridge", "text": "It opened in 1931."}]
    response = client.post("/v1/judge", json={"claim": "The Aller bridge opened in 1931.", "evidence": evidence})
    found = JudgeResponse.model_validate(response.json(), strict=False)
    assert found.verdict == "attributable"
    assert found.judge.startswith("minilm@")
    none = told(client.post("/v1/judge", json={"claim": "The Aller bridge opened in 1931.", "evidence": []}))
    assert (none["verdict"], none["reason"]) == ("not_attributable", "nothing was cited")


def test_spans_have_offsets_for_javascript(tmp_path: Path) -> None:
    text = "🔔 The bell rings at noon. 🔔 It weighs two tons."
    (tmp_path / "bell.jsonl").write_text(json.dumps({"docid": "b#1", "title": "Bell", "text": text}) + "\n", "utf-8")
    bells = build_index(tmp_path / "bell.jsonl", tmp_path / "bell.index")
    with TestClient(create_app(Service({"bells": bells}, ["extractive"])), base_url="http://localhost:8000") as client:
        row = told(client.post("/v1/ask", json={"question": "How much does the bell weigh?"}))
        judged = told(
            client.post("/v1/judge", json={"claim": "The bell weighs two tons.", "evidence": [{"text": text}]})
        )
    AnswerResponse.model_validate(row, strict=False)
    JudgeResponse.model_validate(judged, strict=False)
    spans = [(row["answer"], sentence, sentence["text"]) for sentence in row["sentences"]]
    spans += [(text, one, one["quote"]) for sentence in row["sentences"] for one in sentence["citations"]]
    spans += [(text, one, text[one["start"] : one["end"]]) for one in judged["evidence"]]
    assert any(one["start_utf16"] > one["start"] for _, one, _ in spans)
    for whole, one, words in spans:
        units = whole.encode("utf-16-le")
        assert units[2 * one["start_utf16"] : 2 * one["end_utf16"]].decode("utf-16-le") == words


def test_an_answer_of_others_gets_citations(client: TestClient) -> None:
    answer = "The Aller bridge opened in 1931 [7]. It is painted green and gold."
    row = told(client.post("/v1/attribute", json={"question": QUESTION, "answer": answer}))
    AnswerResponse.model_validate(row, strict=False)
    assert [[one["passage"] for one in sentence["citations"]] for sentence in row["sentences"]] == [["bridge.md#1"], []]


def test_what_is_served_is_listed(client: TestClient) -> None:
    found = IndexesResponse.model_validate(told(client.get("/v1/indexes")))
    assert [(one.name, one.passages) for one in found.indexes] == [("town", 4)]
    assert (found.systems, found.judge) == (["reader", "extractive"], "minilm")


# --- bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "body", "status", "kind", "word"),
    [
        ("ask", {}, 422, "UsageError", "question is missing"),
        ("ask", {"question": 7}, 422, "UsageError", "question should be a string, found 7"),
        ("ask", {"question": ""}, 400, "UsageError", "empty"),
        ("ask", {"question": "?!"}, 400, "QuestionError", "search"),
        ("ask", {"question": "x" * 2001}, 400, "UsageError", "2,001 characters"),
        ("ask", {"question": "Why?", "indx": "town"}, 422, "UsageError", "no field 'indx', did you mean 'index'?"),
        ("ask", {"qestion": "Why?"}, 422, "UsageError", "no field 'qestion', did you mean 'question'?"),
        ("ask", {"query": "Why?"}, 422, "UsageError", "no field 'query', did you mean 'question'?"),
        ("ask", {"question": "Why?", "zz": 1}, 422, "UsageError", "no field 'zz'; there are: question, id, index, "),
        ("judge", {"claim": "c", "evidence": [{"txt": "e"}]}, 422, "UsageError", "did you mean 'text'?"),
        ("ask", {"question": "Why?", "index": "../../etc"}, 404, "NotFoundError", "no index called"),
        ("ask", {"question": "Why?", "system": "gguf:/etc/passwd"}, 404, "NotFoundError", "no system called"),
        ("ask", {"question": "bridge", "k": 10**30}, 400, "UsageError", "k should be from 1 to 100"),
        ("ask", {"question": "bridge", "k": 1.5}, 422, "UsageError", "k should be an integer, found 1.5"),
        ("ask", {"question": "bridge", "k": True}, 422, "UsageError", "k should be an integer, found true or false"),
        ("ask", {"question": "bridge", "retriever": "/etc/passwd.toml"}, 400, "UsageError", "no retriever"),
        ("ask", {"question": "bridge", "system": "extractive", "min_confidence": 0.5}, 400, "UsageError", "no option"),
        (
            "ask",
            {"question": "bridge", "history": [{"question": "q"}]},
            422,
            "UsageError",
            "history[0].answer is missing",
        ),
        ("search", {"query": "bridge", "queries": []}, 400, "UsageError", "either query or queries"),
        ("search", {}, 400, "UsageError", "either query or queries"),
        ("search", {"query": "bridge", "k": 0}, 422, "UsageError", "k should be at least 1, found 0"),
        ("search", {"query": "bridge", "retriever": "reference"}, 400, "UsageError", "no retriever"),
        ("search", {"query": "bridge", "retriever": "bm25+pgvector"}, 400, "UsageError", "no retriever"),
        ("judge", {"claim": "", "evidence": []}, 400, "UsageError", "the claim is empty"),
        ("judge", {"claim": "c", "evidence": ["e" * 20_001]}, 400, "UsageError", "20,001"),
        ("judge", {"claim": "c", "evidence": ["e"] * 101}, 400, "UsageError", "101 pieces"),
        ("attribute", {"question": "q", "answer": " "}, 400, "UsageError", "the answer is empty"),
    ],
)
def test_bad_input_is_one_line_that_names_it(
    client: TestClient, path: str, body: dict[str, Any], status: int, kind: str, word: str
) -> None:
    response = client.post(f"/v1/{path}", json=body)
    error = told(response)["error"]
    assert (response.status_code, error["type"]) == (status, kind)
    assert word in error["message"]
    assert "\n" not in error["message"]


@pytest.mark.parametrize(
    "body",
    [
        b"", b"{", b"[]", b"null", b'"x"', b"NaN", b'{"question": "bridge", "k": 1e999}', b"\xff\xfe",
        b'{"question": "\xff"}',
        b'{"question": "bridge", "min_confidence": NaN}', b"[" * 200_000, b'{"question": ' + b'{"a":' * 50_000,
        b'{"question": "bridge", "k": ' + b"9" * 10_000 + b"}",
    ],
    ids=range(13),
)  # fmt: skip
def test_what_is_no_request(client: TestClient, body: bytes) -> None:
    response = client.post("/v1/ask", content=body, headers={"Content-Type": "application/json"})
    assert response.status_code in (400, 422)
    assert told(response)["error"]["message"]


@pytest.mark.parametrize(
    ("body", "kind", "says"),
    [
        (b"notjson", "application/json", "the body is not JSON"),
        (b'{"question": "secret"}', "", "the body is not read as JSON: send Content-Type: application/json"),
        (b"secret=1", "application/x-www-form-urlencoded", "send Content-Type: application/json"),
        (b'["secret"]', "application/json", "the body should be an object, found a list"),
        (b"", "application/json", "the body is missing"),
        (b'{"question": ["secret"]}', "application/json", "question should be a string, found a list"),
        (b'{"question": "?", "k": "secret"}', "application/json", "k should be an integer, found a string"),
    ],
)
def test_a_body_that_is_no_request_says_what_to_send(client: TestClient, body: bytes, kind: str, says: str) -> None:
    response = client.post("/v1/ask", content=body, headers={"Content-Type": kind} if kind else {})
    assert response.status_code == 422
    assert says in told(response)["error"]["message"]
    assert "secret" not in response.text


def test_the_errors_of_the_handbook_are_true(client: TestClient) -> None:
    page = (Path(__file__).parents[3] / "docs/handbook/reference/serving.md").read_text("utf-8")
    assert client.post("/v1/ask", json={"question": "Why?", "k": 500}).text in page
    assert told(client.post("/v1/ask", json={"qestion": "Why?"}))["error"]["message"] in page


def test_lone_surrogates_come_back_as_text(client: TestClient) -> None:
    body = rb'{"question": "When did the \ud800 Aller bridge open?", "id": "\udfff"}'
    response = client.post("/v1/ask", content=body, headers={"Content-Type": "application/json"})
    assert response.status_code in (200, 422)
    response.json()


def test_a_form_of_another_site_is_not_read(client: TestClient) -> None:
    for kind in ("text/plain", "application/x-www-form-urlencoded"):  # what a page may send without being asked
        response = client.post("/v1/ask", content=json.dumps({"question": QUESTION}), headers={"Content-Type": kind})
        assert response.status_code == 422


def test_too_large_a_body_is_refused(client: TestClient) -> None:
    response = client.post("/v1/ask", content=b"x" * (5 << 20), headers={"Content-Type": "application/json"})
    assert (response.status_code, told(response)["error"]["type"]) == (413, "UsageError")
    pieces = client.post(
        "/v1/ask", content=(b"x" * 65536 for _ in range(80)), headers={"Content-Type": "application/json"}
    )
    assert pieces.status_code == 413


def test_other_addresses_and_methods(client: TestClient) -> None:
    for method, path, status in (("GET", "/v1/ask", 405), ("POST", "/v1/nothing", 404), ("DELETE", "/healthz", 405)):
        response = client.request(method, path)
        assert (response.status_code, told(response)["error"]["type"]) == (status, "HTTPError")
    assert client.get("/v1/../../etc/passwd").status_code == 404
    page = client.get("/nothing", headers={"Accept": "text/html"})
    assert page.status_code == 404
    assert page.headers["content-type"].startswith("text/html")


def test_errors_of_openais_paths_have_openais_shape(client: TestClient) -> None:
    error = told(client.put("/v1/models"))["error"]
    assert set(error) == {"message", "type", "param", "code"}


def test_a_fault_says_nothing_about_itself(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("secret")

    monkeypatch.setattr(Service, "search_many", broken)
    response = client.post("/v1/search", json={"query": "bridge"})
    assert response.status_code == 500
    assert "secret" not in response.text
    assert told(response)["error"]["type"] == "InternalError"


def test_an_index_that_is_updated_meanwhile_is_served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "_REOPEN_S", 0.05)
    index = make_index(tmp_path)
    assert index.build is not None
    with TestClient(create_app(Service({"town": index}, ["extractive"])), base_url="http://localhost") as client:
        (tmp_path / "more").mkdir()
        (tmp_path / "more" / "tower.md").write_text("# Tower\n\nThe tower of Verden is 62 metres high.\n", "utf-8")
        add_to_index(index.build.parent, tmp_path / "more")
        asked = {"query": "tower of Verden"}
        for _ in range(200):
            hits = client.post("/v1/search", json=asked).json()["hits"]
            if hits and hits[0]["id"] == "more/tower.md#1":
                break
            time.sleep(0.05)
        assert hits[0]["id"] == "more/tower.md#1"


def test_hits_and_checksum_are_of_the_same_index(index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "new.md").write_text("# Another bridge\n\nThe bridge of Harnholm opened in 1887.\n")
    other = build_index(tmp_path / "new.md", tmp_path / "new.index")
    service = Service({"town": index})
    search = service.search_many

    def replaced(*arguments: Any, **options: Any) -> list[list[Hit]]:  # noqa: ANN401
        found = search(*arguments, **options)
        service.replace("town", other)
        return found

    monkeypatch.setattr(service, "search_many", replaced)
    with TestClient(create_app(service), base_url="http://localhost") as client:
        found = told(client.post("/v1/search", json={"query": "bridge"}))
    assert found["checksum"] == other.manifest["checksum"]
    assert [hit["id"] for hit in found["hits"]] == ["new.md#1"]


# --- OpenAPI ----------------------------------------------------------------------------------------------------------


def test_the_api_describes_itself(client: TestClient) -> None:
    schema = told(client.get("/openapi.json"))
    assert schema["openapi"].startswith("3.1")
    names = (
        "search",
        "statistics",
        "ask",
        "judge",
        "attribute",
        "original",
        "indexes",
        "documents",
        "documents/{name}",
    )
    spoken = ("chat/completions", "responses", "models", "models/{model}")
    assert set(schema["paths"]) == {f"/v1/{name}" for name in (*names, *spoken)}
    ask = schema["paths"]["/v1/ask"]["post"]["responses"]
    assert {"200", "400", "404", "422", "503", "504"} <= set(ask)
    assert set(ask["200"]["content"]) == {"application/json", "text/event-stream"}


def test_what_openais_api_takes_and_returns_is_as_described(client: TestClient) -> None:
    schema = told(client.get("/openapi.json"))
    chat = schema["paths"]["/v1/chat/completions"]["post"]
    body = chat["requestBody"]["content"]["application/json"]["schema"]
    assert {"model", "messages", "stream", "cite"} <= set(body["properties"])
    assert "$ref" not in json.dumps(body)
    assert set(chat["responses"]["200"]["content"]) == {"application/json", "text/event-stream"}
    asked = {"model": "reader", "messages": [{"role": "user", "content": "When did the Aller bridge open?"}]}
    completion = ChatCompletion.model_validate(told(client.post("/v1/chat/completions", json=asked)))
    assert completion.choices[0].message.annotations
    given = {"model": "reader", "input": "When did the Aller bridge open?"}
    response = ResponseObject.model_validate(told(client.post("/v1/responses", json=given)))
    assert response.output[0].content[0].annotations
    models = ModelList.model_validate(told(client.get("/v1/models"))).data
    assert models[0] == ModelObject.model_validate(told(client.get("/v1/models/reader")))
    assert [one.id for one in models][-1] == "extractive@town"
    refused = OpenAIError.model_validate(client.get("/v1/models/none").json())
    assert refused.error.code == "model_not_found"


def test_no_page_loads_from_other_hosts(client: TestClient) -> None:
    assert client.get("/docs").status_code == client.get("/redoc").status_code == 404


# --- who may come in --------------------------------------------------------------------------------------------------


def test_only_known_hosts(index: Index) -> None:
    app = client_of(index, base_url="https://rag.example.org", hosts=["rag"]).app
    statuses = {}
    for host in (
        "localhost:8000",
        "127.0.0.1",
        "rag.example.org",
        "rag:8000",
        "evil.example",
        "rag.example.org.evil.example",
    ):
        statuses[host] = TestClient(app, base_url=f"http://{host}").get("/healthz").status_code
    assert list(statuses.values()) == [200, 200, 200, 200, 400, 400], statuses


def test_another_host_is_told_which_option_allows_it(client: TestClient) -> None:
    says = "his server does not answer to the name 'evil.example'; rag serve --allow-host NAME allows it"
    reply = client.get("/v1/indexes", headers={"Host": "evil.example:8000"})
    assert (reply.status_code, told(reply)["error"]) == (400, {"type": "HTTPError", "message": f"t{says}"})
    page = client.get("/", headers={"Host": "evil.example", "Accept": "text/html"})
    assert page.headers["content-type"].startswith("text/html")
    assert f"T{says}." in html.unescape(page.text)
    assert page.headers["x-frame-options"] == "DENY"


def test_links_begin_with_the_public_address(index: Index) -> None:
    client = TestClient(client_of(index, base_url="https://rag.example.org/").app, base_url="http://localhost:8000")
    row = told(client.post("/v1/ask", json={"question": QUESTION}))
    assert all(url.startswith("https://rag.example.org/p/town/") for url in row["urls"].values())


def test_pages_of_other_sites_may_call_only_if_allowed(client: TestClient, index: Index) -> None:
    asking = {
        "Origin": "https://app.example.org",
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "content-type,authorization",
    }
    assert "access-control-allow-origin" not in client.options("/v1/ask", headers=asking).headers
    allowed = client_of(index, cors=["https://app.example.org"], keys=Keys([KEY]))
    reply = allowed.options("/v1/ask", headers=asking)
    assert reply.status_code == 200
    assert reply.headers["access-control-allow-origin"] == "https://app.example.org"
    assert "access-control-allow-credentials" not in reply.headers
    other = allowed.options("/v1/ask", headers={**asking, "Origin": "https://evil.example"})
    assert "access-control-allow-origin" not in other.headers
    for origin in ("app.example.org", "https://app.example.org/", "ftp://x", "null", "http://["):
        with pytest.raises(UsageError, match="origin"):
            client_of(index, cors=[origin])


@pytest.fixture(scope="module")
def locked(index: Index) -> Iterator[TestClient]:
    with client_of(index, keys=Keys([KEY, OTHER])) as made:
        yield made


def test_with_keys_every_request_needs_one(locked: TestClient) -> None:
    messages = set()
    for headers in (
        {},
        {"Authorization": "Bearer"},
        {"Authorization": f"Bearer {KEY[:-1]}"},
        {"Authorization": f"Bearer {KEY}x"},
        {"Authorization": f"Basic {KEY}"},
        {"Authorization": KEY},
        {"Cookie": f"rag-session={KEY}"},
        {"Cookie": "rag-session="},
    ):
        for path in ("/v1/indexes", "/v1/models"):
            response = locked.get(path, headers=headers)
            assert response.status_code == 401
            assert response.headers["www-authenticate"] == "Bearer"
            messages.add(told(response)["error"]["message"])
    assert len(messages) == 1
    assert KEY[:8] not in messages.pop()
    for path in ("/v1/ask", "/metrics", "/mcp", "/nothing", "/v1/../metrics"):
        assert locked.post(path, json={"question": QUESTION}).status_code in (401, 429)
    for path in ("/healthz", "/readyz", "/openapi.json"):
        assert locked.get(path).status_code == 200
    for key in (KEY, OTHER):
        assert locked.get("/v1/indexes", headers={"Authorization": f"Bearer {key}"}).status_code == 200


def test_a_host_header_with_a_path_opens_nothing(locked: TestClient) -> None:
    for host in ("localhost:8000/healthz?", "localhost:8000/static/", "localhost:8000/healthz#"):
        for path in ("/v1/indexes", "/metrics"):
            assert locked.get(path, headers={"Host": host}).status_code in (400, 401, 429)


def test_pages_of_other_sites_cannot_send_forms(index: Index) -> None:
    client = client_of(index, base_url="https://rag.example.org", cors=["https://app.example.org"])
    statuses = []
    for origin in (
        "https://rag.example.org",
        "https://app.example.org",
        "https://evil.example",
        "null",
        "https://rag.example.org.evil.example",
        "http://[",
    ):
        reply = client.post("/v1/search", json={"query": "bridge"}, headers={"Origin": origin})
        statuses.append(reply.status_code)
    assert statuses == [200, 200, 403, 403, 403, 403]
    assert client.get("/v1/indexes", headers={"Origin": "https://evil.example"}).status_code == 200  # unreadable there
    local = client_of(index)
    for origin, status in (("http://localhost:8000", 200), ("http://localhost:9000", 403)):
        assert local.post("/v1/search", json={"query": "bridge"}, headers={"Origin": origin}).status_code == status


def test_too_many_wrong_keys(index: Index) -> None:
    client = client_of(index, keys=Keys([KEY]))
    statuses = [client.get("/v1/indexes", headers={"Authorization": "Bearer x"}).status_code for _ in range(21)]
    assert statuses == [401] * 20 + [429]
    right = client.get("/v1/indexes", headers={"Authorization": f"Bearer {KEY}"})
    assert right.status_code == 200  # others behind the same proxy go on
    signed_in = client.post("/sign-in", data={"key": KEY, "next": "/"}, follow_redirects=False)
    assert signed_in.status_code == 303


def test_wrong_keys_are_counted_for_pages_too(index: Index) -> None:
    client = client_of(index, keys=Keys([KEY]))
    page, wrong = {"Accept": "text/html"}, {"Authorization": "Bearer x"}
    for _ in range(30):  # a browser that has no key yet
        assert client.get("/", headers=page, follow_redirects=False).status_code == 303
    assert client.get("/v1/indexes", headers=page, follow_redirects=False).status_code == 401  # not for people
    statuses = [client.get("/", headers=page | wrong, follow_redirects=False).status_code for _ in range(20)]
    assert statuses == [303] * 19 + [429]
    cookie = page | {"Cookie": "rag-session=guess"}
    assert client.get("/", headers=cookie, follow_redirects=False).status_code == 429


def test_a_browser_signs_in_once(index: Index) -> None:
    client = client_of(index, keys=Keys([KEY]), base_url="http://localhost:8000")
    html = {"Accept": "text/html"}
    sent = client.get("/p/town/bridge.md%231?mark=0-5", headers=html, follow_redirects=False)
    assert sent.status_code == 303
    assert sent.headers["location"] == "/sign-in?next=%2Fp%2Ftown%2Fbridge.md%25231%3Fmark%3D0-5"
    page = client.get(sent.headers["location"], headers=html)
    assert page.status_code == 200
    assert 'name="key"' in page.text
    wrong = client.post("/sign-in", data={"key": KEY[:-1], "next": "/"}, follow_redirects=False)
    assert (wrong.status_code, "set-cookie" in wrong.headers) == (401, False)
    forged = client.post(
        "/sign-in", data={"key": KEY}, headers={"Origin": "https://evil.example"}, follow_redirects=False
    )
    assert forged.status_code == 403
    right = client.post("/sign-in", data={"key": KEY, "next": "/v1/indexes"}, follow_redirects=False)
    assert (right.status_code, right.headers["location"]) == (303, "/v1/indexes")
    cookie = right.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "samesite=lax" in cookie.lower()
    assert KEY not in cookie
    assert client.get("/v1/indexes").status_code == 200
    client.post("/sign-out", follow_redirects=False)
    client.cookies.clear()
    assert client.get("/v1/indexes").status_code == 401


@pytest.mark.parametrize(
    "wanted", ["//evil.example", "https://evil.example", "/\\evil.example", "javascript:x", "", "/\n"]
)
def test_signing_in_leads_nowhere_else(index: Index, wanted: str) -> None:
    client = client_of(index, keys=Keys([KEY]))
    sent = client.post("/sign-in", data={"key": KEY, "next": wanted}, follow_redirects=False)
    assert sent.headers["location"] == "/"


def test_so_many_requests_in_a_minute(index: Index) -> None:
    client = client_of(index, rate=3, keys=Keys([KEY, OTHER]))
    mine, theirs = ({"Authorization": f"Bearer {key}"} for key in (KEY, OTHER))
    assert [client.get("/v1/indexes", headers=mine).status_code for _ in range(4)] == [200, 200, 200, 429]
    refused = client.get("/v1/indexes", headers=mine)
    assert 1 <= int(refused.headers["retry-after"]) <= 21
    assert client.get("/v1/indexes", headers=theirs).status_code == 200
    assert client.get("/healthz").status_code == 200


def test_more_than_may_wait_are_told_to_come_back(index: Index) -> None:
    app = create_app(service := Service({"town": index}, limits=Limits(workers=1, waiting=0, seconds=0.3)))
    client, go = TestClient(app, base_url="http://localhost"), threading.Event()
    thread = threading.Thread(target=lambda: asyncio.run(_held(service, go)))
    thread.start()
    while not service.workers.running:
        pass
    response = client.post("/v1/ask", json={"question": QUESTION})
    assert (response.status_code, response.headers["retry-after"]) == (503, "5")
    assert client.get("/readyz").status_code == 503
    streamed = client.post("/v1/ask", json={"question": QUESTION, "stream": True})
    assert (streamed.status_code, told(streamed)["error"]["type"]) == (503, "BusyError")
    go.set()
    thread.join()
    assert client.get("/readyz").status_code == 200


async def _held(service: Service, go: threading.Event) -> None:
    from contextlib import suppress

    from rag.base.errors import TimeLimitError

    with suppress(TimeLimitError):
        await service.run(go.wait)


def test_time_is_limited(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    go = threading.Event()
    monkeypatch.setattr(Service, "search_many", lambda *_, **__: go.wait())
    client = client_of(index, limits=Limits(workers=1, seconds=0.1))
    response = client.post("/v1/search", json={"query": "bridge"})
    go.set()
    assert (response.status_code, told(response)["error"]["type"]) == (504, "TimeLimitError")


def test_a_number_that_is_none(client: TestClient) -> None:
    body = '{"question": "When?", "min_confidence": NaN}'
    response = client.post("/v1/ask", content=body, headers={"Content-Type": "application/json"})
    assert told(response)["error"]["message"] == "min_confidence should be a number from 0 to 1"


# --- metrics ----------------------------------------------------------------------------------------------------------


def test_counts_have_no_text_of_users(index: Index) -> None:
    client = client_of(index)
    client.post("/v1/ask", json={"question": "When did the zebra bridge open?", "min_confidence": 0.0})
    client.post("/v1/ask", json={"question": QUESTION, "min_confidence": 1.0})
    client.post("/v1/ask", json={"question": "zebra", "index": "zebra"})
    client.get("/zebra")
    client.get("/healthz")
    client.request("ZEBRA", "/healthz")
    text = client.get("/metrics").text
    assert 'rag_requests_total{method="POST",path="/v1/ask",status="200"} 2.0' in text
    assert 'rag_requests_total{method="POST",path="/v1/ask",status="404"} 1.0' in text
    assert 'rag_requests_total{method="GET",path="/healthz",status="200"} 1.0' in text
    assert 'outcome="abstained",system="reader"} 1.0' in text
    assert "rag_waiting 0.0" in text
    assert "zebra" not in text.lower()


def test_a_question_that_takes_too_long_has_failed(index: Index) -> None:
    go = threading.Event()
    service = Service({"town": index}, limits=Limits(workers=1, seconds=0.2))
    stream = service.stream

    def slow(*args: Any, **options: Any) -> Iterator[Any]:  # noqa: ANN401
        go.wait(20)
        return stream(*args, **options)

    service.stream = slow  # type: ignore[method-assign]
    with TestClient(create_app(service), base_url="http://localhost:8000") as client:
        assert client.post("/v1/ask", json={"question": QUESTION}).status_code == 504
        go.set()
        while service.workers.running:
            time.sleep(0.01)
        counted = [line for line in client.get("/metrics").text.splitlines() if line.startswith("rag_questions_total{")]
    assert counted == ['rag_questions_total{index="town",outcome="failed",system="reader"} 1.0']


def test_an_answer_that_cannot_be_logged_is_sent_all_the_same(index: Index) -> None:
    def full(_: object) -> None:
        raise OSError(28, "No space left on device")

    service = Service({"town": index}, limits=Limits(workers=1))
    service.watch(full)
    with TestClient(create_app(service), base_url="http://localhost:8000") as client:
        assert client.post("/v1/ask", json={"question": QUESTION}).status_code == 200
        assert 'outcome="answered"' in client.get("/metrics").text
