"""`rag serve` in front of a model server that hangs, fails or is cut short: real processes on both sides."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from rag.index.open import open_index
from rag.serve.service import Service
from tests.chat_server import ChatServer
from tests.rag.serve.served import Running, make_index, running

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
    reply = ask(front, question=QUESTION)
    assert (reply.status_code, reply.json()["error"]["type"]) == (500, "InternalError")
    assert "/srv" not in reply.text
    assert "127.0.0.1" not in reply.text
    assert ask(front, question=QUESTION, stream=True).status_code == 500


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


def test_a_model_that_failed_is_logged_without_the_question(
    folder: Path, server: ChatServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", server.script({"say": SAYS}, {"status": 400, "body": "out of memory"}))
    service = Service({"town": open_index(folder)}, [MODEL])
    assert not service.ask(QUESTION).answer.failed
    assert caplog.text == ""
    assert service.ask(QUESTION).answer.failed
    service.close()
    assert (
        "system openai:tiny, index town: no answer: openai:tiny: the server answered 400: out of memory" in caplog.text
    )
    assert "Aller" not in caplog.text
