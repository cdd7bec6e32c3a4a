"""`rag serve` in front of a model server that hangs, fails or is cut short: real processes on both sides."""

import asyncio
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from starlette.testclient import TestClient

from rag.base.errors import ModelFailureError
from rag.index.open import open_index
from rag.serve.app import create_app
from rag.serve.http import last_item
from rag.serve.service import Reply, Service
from tests.chat_server import ChatServer
from tests.rag.serve.served import BreaksOff, Running, make_index, model_system, running

QUESTION = "When did the Aller bridge open?"
MODEL = "openai:tiny"
SAYS = "The Aller bridge opened in 1931 [1]."


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    build = make_index(tmp_path_factory.mktemp("served")).build
    assert build is not None
    return build.parent


@pytest.fixture(scope="module")
def front(folder: Path, server: ChatServer) -> Iterator[Running]:
    """A server with one worker and three seconds, whose model server answers as each test scripts it."""
    base_url = server.script({"say": SAYS}, name="front")
    options = ("--system", MODEL, "--system", "reader", "--workers", "1", "--seconds", "3")
    with running(folder, *options, OPENAI_BASE_URL=base_url, OPENAI_API_KEY="sk-x") as found:
        yield found


def ask(front: Running, path: str = "/v1/ask", **body: Any) -> httpx2.Response:  # noqa: ANN401
    return httpx2.post(front.url + path, json=body, timeout=30)


CHAT = {"model": MODEL, "messages": [{"role": "user", "content": QUESTION}]}


def test_a_model_server_that_hangs_keeps_no_worker(front: Running, server: ChatServer) -> None:
    server.script({"say": SAYS, "hang": 60}, name="front")
    bodies: list[tuple[str, dict[str, Any]]] = [
        ("/v1/ask", {"question": QUESTION}),
        ("/v1/ask", {"question": QUESTION, "stream": True}),
        ("/v1/chat/completions", CHAT),
        ("/v1/chat/completions", CHAT | {"stream": True}),
    ]
    for path, body in bodies:
        assert "it took longer than 3 seconds" in ask(front, path, **body).text, (path, body)
        began = time.monotonic()
        assert ask(front, question=QUESTION, system="reader").status_code == 200
        assert time.monotonic() - began < 30  # the model server would be waited for 60 s


def test_who_hangs_up_before_the_first_word_ends_the_work(front: Running, server: ChatServer) -> None:
    server.script({"say": SAYS, "hang": 60}, name="front")
    with httpx2.Client(base_url=front.url) as client, pytest.raises(httpx2.ReadTimeout):
        client.post("/v1/ask", json={"question": QUESTION}, timeout=0.5)
    assert ask(front, question=QUESTION, system="reader").status_code == 200


def test_what_only_the_operator_can_mend_is_not_told_to_callers(front: Running, server: ChatServer) -> None:
    server.script({"status": 404, "body": "no such model at /srv/models"}, name="front")
    check_failure(front)


REASON = "the language model did not answer"


def check_failure(front: Running) -> None:
    """Fails unless each way to ask says that the model did not answer, in our words only."""
    for stream in (False, True):  # before the first text, a stream has the same status
        reply = ask(front, question=QUESTION, stream=stream)
        assert reply.status_code == 502
        assert reply.json() == {"error": {"type": "ModelFailureError", "message": REASON}}
        for path, body in (("/v1/chat/completions", CHAT), ("/v1/responses", {"model": MODEL, "input": QUESTION})):
            reply = ask(front, path, **body, stream=stream)
            assert reply.status_code == 502
            fields = {"message": REASON, "type": "server_error", "param": None, "code": "ModelFailureError"}
            assert reply.json() == {"error": fields}
    events = ask(front, "/ask", question=QUESTION).text
    assert events == f'event: failed\ndata: {{"message": "{REASON.capitalize()}."}}\n\n'
    page = httpx2.get(front.url, params={"q": QUESTION, "whole": "1"}, headers={"Accept": "text/html"}, timeout=30)
    assert page.status_code == 502
    assert f"{REASON.capitalize()}." in page.text
    assert "Not answered" not in page.text
    for text in (events, page.text):
        assert "sk-x" not in text
        assert "127.0.0.1" not in text.replace(front.url, "")
        assert "/srv" not in text


@pytest.mark.parametrize(
    "step",
    [
        {"status": 400, "body": "out of memory at /srv/models, key sk-x"},
        {"say": ""},
    ],
)
def test_a_model_that_fails_is_no_abstention(front: Running, server: ChatServer, step: dict[str, Any]) -> None:
    server.script(step, name="front")
    check_failure(front)


def test_a_model_that_fails_after_its_first_sentence_ends_the_streams_with_an_error(folder: Path) -> None:
    model_system(BreaksOff(f"{SAYS} It has three arches [1]. It"), "breaks")
    service = Service({"town": open_index(folder)}, ["breaks"])
    with TestClient(create_app(service), base_url="http://localhost") as client:
        events = client.post("/v1/ask", json={"question": QUESTION, "stream": True}).text
        chat = client.post("/v1/chat/completions", json=CHAT | {"model": "breaks", "stream": True}).text
        page = client.post("/ask", json={"question": QUESTION}).text
    service.close()
    assert events.startswith("event: partial")
    assert events.endswith(
        f'event: error\ndata: {{"error": {{"type": "ModelFailureError", "message": "{REASON}"}}}}\n\n'
    )
    assert "1931" in chat
    assert f'"message": "{REASON}"' in chat.split("\n\n")[-2]
    names = [line for line in page.splitlines() if line.startswith("event: ")]
    assert (names[0], names[-1]) == ("event: draft", "event: failed")
    for text in (events, chat, page):
        assert not any(secret in text for secret in ("sk-secret", "10.0.0.7", "/srv"))


def test_an_answer_that_was_cut_says_so_to_openais_clients(front: Running, server: ChatServer) -> None:
    server.script({"say": f"{SAYS} It has", "finish": "length"}, name="front")
    whole = ask(front, "/v1/chat/completions", **CHAT).json()
    assert whole["choices"][0]["finish_reason"] == "length"
    lines = ask(front, "/v1/chat/completions", **CHAT, stream=True).text.split("\n\n")
    events = [json.loads(line[6:]) for line in lines if line.startswith("data: {")]
    assert [one["choices"][0]["finish_reason"] for one in events][-1] == "length"
    asked = {"model": MODEL, "input": QUESTION}
    response = ask(front, "/v1/responses", **asked).json()
    assert (response["status"], response["incomplete_details"]) == ("incomplete", {"reason": "max_output_tokens"})
    assert "event: response.incomplete\n" in ask(front, "/v1/responses", **asked, stream=True).text


async def ask_service(service: Service) -> Reply:
    return await last_item(service.run_question("town", MODEL, service.stream, QUESTION))


def test_a_model_that_failed_is_logged_without_the_question(
    folder: Path, server: ChatServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", server.script({"say": SAYS}, {"status": 400, "body": "out of memory"}))
    service = Service({"town": open_index(folder)}, [MODEL])
    seen: list[bool] = []
    failures: list[str] = []
    service.watch(lambda reply: seen.append(reply.answer.failed), lambda index, system: failures.append(system))
    assert service.ask(QUESTION).answer.text
    assert caplog.text == ""
    with pytest.raises(ModelFailureError, match="the language model did not answer"):
        asyncio.run(ask_service(service))
    assert (seen, failures) == ([False, True], [])  # counted once
    service.close()
    assert (
        "system openai:tiny, index town: no answer: openai:tiny: the server answered 400: out of memory" in caplog.text
    )
    assert "Aller" not in caplog.text


@pytest.mark.parametrize(
    "step", [{"say": "No idea, says /srv/judge with key sk-x."}, {"status": 400, "body": "/srv sk-x"}]
)
def test_the_words_of_a_judges_server_stay_in_the_log(
    folder: Path,
    server: ChatServer,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    step: dict[str, Any],
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", server.script(step))
    service = Service({"town": open_index(folder)}, ["reader"], judge="llm:tiny")
    claim = {"claim": "The bridge opened in 1931.", "evidence": [{"text": "It is a bridge."}]}
    with TestClient(create_app(service), base_url="http://localhost") as client:
        judgement = client.post("/v1/judge", json=claim).json()
    service.close()
    assert (judgement["verdict"], judgement["reason"]) == ("undecided", "the judge gave no verdict")
    assert judgement["judge"].startswith("llm:tiny/")  # and not where its server is
    assert "/srv" in caplog.text
