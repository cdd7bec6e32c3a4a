"""A server whose system searches on another machine: one that hangs, one that is gone, and one with another index."""

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("prometheus_client")
pytest.importorskip("mcp")

from starlette.testclient import TestClient

import rag.serve.service
from rag.api import build_index, open_index
from rag.base.errors import RagError
from rag.index.index import Index
from rag.retrieval.client import UnreachableError
from rag.serve import Limits, Service, create_app
from scripts.browser import serving
from tests.conftest import write_corpus

QUESTION = "When did the Aller bridge open?"


@contextmanager
def fronted(index: Index, retriever: str, **limits: float) -> Iterator[Service]:
    """A service with the system `near`, and the system `far`, which searches by the retriever."""
    systems = {"near": "extractive", "far": f"extractive,retriever={retriever}"}
    made = Service({"town": index}, systems, limits=Limits(**{"workers": 2, **limits}))  # type: ignore[arg-type]
    made.system("far")
    made.system("near")
    yield made
    made.close()


@pytest.mark.parametrize("shards", [False, True])
def test_an_index_that_is_replaced_is_opened_again(index: Index, tmp_path: Path, shards: bool) -> None:
    rows = [("t#1", "Tower", "The tower of Verden is 62 metres high.")]
    other = build_index(write_corpus(tmp_path / "other.jsonl", rows), tmp_path / "other.index")
    with serving(create_app(far := Service({"town": index}, limits=Limits(workers=1)))) as address:
        retriever = tmp_path / "parts.toml"
        retriever.write_text(f'name = "p.v1"\nkind = "shards"\nshards = ["{address}"]\nmissing = "skip"\n', "utf-8")
        with fronted(index, str(retriever) if shards else f"remote:{address}") as service:
            before = service.ask(QUESTION, system="far").answer
            assert "1931" in before.text
            far.replace("town", other)
            after = service.ask("How high is the tower of Verden?", system="far").answer
            assert "62" in after.text
            assert after.system != before.system


def test_a_machine_that_is_gone_is_no_business_of_callers(index: Index, caplog: pytest.LogCaptureFixture) -> None:
    with serving(create_app(Service({"town": index}, limits=Limits(workers=1)))) as address:
        front = fronted(index, f"remote:{address}")
        service = front.__enter__()
    with front_client(service) as client:
        for path, body in (
            ("/v1/ask", {"question": QUESTION, "system": "far"}),
            ("/v1/ask", {"question": QUESTION, "system": "far", "stream": True}),
            ("/v1/chat/completions", {"model": "far", "messages": [{"role": "user", "content": QUESTION}]}),
        ):
            caplog.clear()
            reply = client.post(path, json=body)
            assert (reply.status_code, reply.headers["retry-after"]) == (503, "5"), reply.text
            assert "does not answer now; try again later" in reply.json()["error"]["message"]
            assert "127.0.0.1" not in reply.text
            assert f"{address}: " in caplog.text  # where the operator looks
        events = client.post("/ask", json={"question": QUESTION, "system": "far", "index": "town"}).text
        assert "does not answer now" in events
        assert "127.0.0.1" not in events
        page = client.get("/", params={"q": QUESTION, "system": "far", "whole": 1}, headers={"Accept": "text/html"})
        assert (page.status_code, "127.0.0.1" in page.text) == (503, False)
        text = client.get("/metrics").text
        assert 'rag_questions_total{index="town",outcome="failed",system="far"} 5.0' in text
        assert client.post("/v1/ask", json={"question": QUESTION, "system": "near"}).status_code == 200
    front.__exit__(None, None, None)


def front_client(service: Service) -> TestClient:
    return TestClient(create_app(service), base_url="http://localhost:8000", raise_server_exceptions=False)


def test_a_machine_that_hangs_stops_nothing_else(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rag.serve.service, "_PATIENCE", 0.2)
    app = create_app(Service({"town": index}, limits=Limits(workers=1)))
    hangs, go = threading.Event(), threading.Event()

    async def hanging(scope: Any, receive: Any, send: Any) -> None:  # noqa: ANN401  (ASGI)
        import asyncio

        while hangs.is_set() and not go.is_set():
            await asyncio.sleep(0.02)
        await app(scope, receive, send)

    with serving(hanging) as address, fronted(index, f"remote:{address}", seconds=60) as service:
        hangs.set()
        first = threading.Thread(target=lambda: service.ask(QUESTION, system="far"))
        first.start()
        with front_client(service) as client:
            while not service.workers.running:  # one of the two workers may be held
                threading.Thread(
                    target=client.post, args=("/v1/ask",), kwargs={"json": {"question": QUESTION, "system": "far"}}
                ).start()
                time.sleep(0.1)
            for _ in range(3):
                assert client.post("/v1/ask", json={"question": QUESTION, "system": "near"}).status_code == 200
            reply = client.post("/v1/ask", json={"question": QUESTION, "system": "far"})
            assert reply.status_code == 503
            go.set()
            first.join()
            assert "1931" in service.ask(QUESTION, system="far").answer.text  # it has come back


def test_searches_of_another_machine_run_side_by_side(index: Index) -> None:
    app = create_app(Service({"town": index}, limits=Limits(workers=1)))
    both = threading.Barrier(2, timeout=20)
    counted = threading.Event()

    async def together(scope: Any, receive: Any, send: Any) -> None:  # noqa: ANN401  (ASGI)
        import asyncio

        if counted.is_set():
            await asyncio.to_thread(both.wait)  # breaks unless two are there at once
        await app(scope, receive, send)

    with serving(together) as address, fronted(index, f"remote:{address}", workers=4) as service:
        counted.set()
        found: list[str] = []
        asking = [
            threading.Thread(target=lambda: found.append(service.ask(QUESTION, system="far").answer.text))
            for _ in range(2)
        ]
        for one in asking:
            one.start()
        for one in asking:
            one.join()
        assert len(found) == 2


def test_a_run_still_refuses_an_index_that_has_changed(index: Index, tmp_path: Path) -> None:
    from rag.api import open_system

    rows = [("t#1", "Tower", "The tower of Verden is 62 metres high.")]
    other = build_index(write_corpus(tmp_path / "other.jsonl", rows), tmp_path / "other.index")
    with serving(create_app(far := Service({"town": index}, limits=Limits(workers=1)))) as address:
        system = open_system("extractive", index, retriever=f"remote:{address}")
        far.replace("town", open_index(other.build.parent) if other.build else other)
        with pytest.raises(RagError, match="start again"):
            system.ask(QUESTION)
    with pytest.raises(UnreachableError, match="Connection refused"):
        system.ask(QUESTION)


def test_an_error_that_only_the_operator_can_mend(index: Index, caplog: pytest.LogCaptureFixture) -> None:
    service = Service({"town": index}, limits=Limits(workers=1))
    secret = "/var/lib/secret: cannot be read"

    def broken(*_: object, **__: object) -> Any:  # noqa: ANN401
        raise RagError(secret)

    service.stream = broken  # type: ignore[method-assign]
    with caplog.at_level(logging.ERROR), front_client(service) as client:
        for path, body in (
            ("/v1/ask", {"question": QUESTION}),
            ("/v1/chat/completions", {"model": "reader", "messages": [{"role": "user", "content": QUESTION}]}),
        ):
            reply = client.post(path, json=body)
            assert reply.status_code == 500
            assert reply.json()["error"]["message"] == "the server cannot answer this now; its log says why"
        assert caplog.text.count(secret) == 2
        assert 'outcome="failed"' in client.get("/metrics").text
    service.close()
