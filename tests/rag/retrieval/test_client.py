"""The client of a server: what it returns, and what it says of servers that are down, strange or hostile."""

import copy
import json
import socket
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

import rag as library
from autoais.base.answers import to_row
from autoais.base.types import Judgement, Span, Verdict
from rag.answer.served import ServedSystem
from rag.base.errors import (
    AuthenticationError,
    BusyError,
    ModelFailureError,
    NotFoundError,
    QuestionError,
    RagError,
    TimeLimitError,
    UsageError,
)
from rag.base.types import Answer, Passage, Question, Turn
from rag.retrieval.client import Client
from tests.conftest import Command, one_line_error
from tests.local_server import LocalServer, Quiet

QUESTION = "Where was Marie Curie born?"
Reply = bytes | Callable[["Handler"], None]


class Scripted(LocalServer):
    """Answers every request with `reply`: the bytes of a body with `status` and `headers`, or a function."""

    def __init__(self) -> None:
        super().__init__(Handler)
        self.reply: Reply = b"{}"
        self.status = 200
        self.headers: dict[str, str] = {}
        self.asked: list[tuple[str, str | None, dict[str, Any]]] = []

    def says(self, value: object, status: int = 200, **headers: str) -> None:
        self.reply = value if isinstance(value, bytes) else json.dumps(value).encode()
        self.status, self.headers = status, {name.replace("_", "-"): text for name, text in headers.items()}


class Handler(Quiet, BaseHTTPRequestHandler):
    server: Scripted

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append((self.path, self.headers["Authorization"], asked))
        if callable(self.server.reply):
            self.server.reply(self)
            return
        self.send_response(self.server.status)
        for name, value in self.server.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(self.server.reply)))
        self.end_headers()
        self.wfile.write(self.server.reply)


@pytest.fixture
def server() -> Iterator[Scripted]:
    with Scripted() as server:
        yield server


@pytest.fixture
def client(server: Scripted) -> Client:
    return Client(f"{server.url}/shelf", key="open-sesame", timeout=5)


@pytest.fixture
def answer(shelf: Path) -> Answer:
    return library.ask(Question("", QUESTION), shelf, min_confidence=0)


@pytest.fixture
def row(answer: Answer) -> dict[str, Any]:
    """What a server says to the question."""
    written: dict[str, Any] = json.loads(json.dumps(to_row(answer.to_cited("shelf"))))
    return written | {"id": "q1"}


def hits(*scores: float, **changes: object) -> dict[str, Any]:
    """A reply of /v1/search to one query."""
    rows = [
        {"id": f"p{n}", "title": "T", "section": "", "text": f"Text {n}.", "score": s} for n, s in enumerate(scores)
    ]
    found = {"index": "shelf", "checksum": "abc", "retriever": "bm25.v1", "results": [{"query": "x", "hits": rows}]}
    return {**found, **changes}


# --- what it sends and returns ----------------------------------------------------------------------------------------


def test_an_answer_is_the_one_of_the_server(
    client: Client, server: Scripted, row: dict[str, Any], answer: Answer
) -> None:
    server.says(row)
    found = client.ask(QUESTION)
    assert found.question == Question("q1", QUESTION)
    assert (found.text, found.sentences, found.system) == (answer.text, answer.sentences, answer.system)
    assert [hit.passage for hit in found.hits] == [hit.passage for hit in answer.hits]
    assert [hit.score for hit in found.hits] == pytest.approx([hit.score for hit in answer.hits], abs=1e-6)
    assert str(found) == str(answer)
    assert found.citations
    assert server.asked == [("/v1/ask", "Bearer open-sesame", {"question": QUESTION, "index": "shelf"})]


def test_the_asked_question_keeps_its_references(client: Client, server: Scripted, row: dict[str, Any]) -> None:
    server.says(row)
    asked = Question("nq-7", QUESTION, answers=("Warsaw",), gold=("a#2",))
    assert client.ask(asked).question == asked


def test_options_and_history_are_sent(client: Client, server: Scripted, row: dict[str, Any]) -> None:
    server.says(row | {"question": "Where did Marie Curie die?"})
    found = client.ask("And die?", system="extractive", history=[Turn(QUESTION, "Warsaw")], k=3, retriever=None)
    assert found.question.text == "Where did Marie Curie die?"
    (_, _, body), *_ = server.asked
    assert body == {
        "question": "And die?",
        "index": "shelf",
        "system": "extractive",
        "history": [{"question": QUESTION, "answer": "Warsaw"}],
        "k": 3,
    }


def test_hits_have_all_of_a_passage(client: Client, server: Scripted) -> None:
    reply = hits(2.5, 1 / 3)
    reply["results"][0]["hits"][1] |= {"headings": "Own", "page": 4, "section": "S"}
    server.says(reply)
    first, second = client.search("x", k=2, retriever="bm25-rerank")
    assert (first.passage, first.score) == (Passage("p0", "T", "Text 0."), 2.5)
    assert (second.passage, second.score) == (Passage("p1", "T", "Text 1.", "S", "Own", 4), 1 / 3)
    assert server.asked[0][2] == {"queries": ["x"], "retriever": "bm25-rerank", "k": 2, "index": "shelf"}


def test_a_stream_ends_with_the_answer(client: Client, server: Scripted, row: dict[str, Any], answer: Answer) -> None:
    so_far = row | {"answer": "", "sentences": []}
    event = f": ping\n\nevent: partial\ndata: {json.dumps(so_far)}\n\n"
    server.says((event + f"event: answer\r\ndata: {json.dumps(row)}\r\n\r\n").encode())
    first, last = client.stream(QUESTION)
    assert (first.text, first.sentences, first.hits) == ("", (), last.hits)
    assert str(last) == str(answer)
    assert server.asked[0][2]["stream"] is True


def test_a_judgement(client: Client, server: Scripted) -> None:
    span = {"evidence": 1, "start": 0, "end": 4}
    said = {"verdict": "attributable", "probability": 0.75, "reason": None, "evidence": [span], "unsupported": [[0, 3]]}
    server.says(said | {"judge": "minilm"})
    passages: list[str | Passage] = ["A text.", Passage("x", "Rome", "It has hills.")]
    found = client.judge("Its hills are seven.", passages, "How many?")
    assert found == Judgement(Verdict.ATTRIBUTABLE, 0.75, None, (Span(1, 0, 4),), ((0, 3),))
    evidence = ["A text.", "Rome. It has hills."]
    assert server.asked[0][2] == {"claim": "Its hills are seven.", "evidence": evidence, "question": "How many?"}


def test_attribution(client: Client, server: Scripted, row: dict[str, Any], answer: Answer) -> None:
    server.says(row)
    assert client.attribute(QUESTION, answer.text, k=3).sentences == answer.sentences
    body = {"question": QUESTION, "answer": answer.text, "retriever": "bm25", "k": 3, "index": "shelf"}
    assert server.asked[0][0] == "/v1/attribute"
    assert server.asked[0][2] == body


def test_a_served_system_is_a_system(client: Client, server: Scripted, row: dict[str, Any], answer: Answer) -> None:
    server.says(row)
    system = ServedSystem(client, "reader", k=3)
    assert system.name == f"reader@{client.url}"
    assert [str(one) for one in system.answer([QUESTION])] == [str(answer)]
    assert server.asked[0][2]["system"] == "reader"


def test_a_served_system_whose_model_fails_has_a_failed_answer(client: Client, server: Scripted) -> None:
    server.says({"error": {"type": "ModelFailureError", "message": "the language model did not answer"}}, 502)
    system = ServedSystem(client)
    (found,) = system.answer([QUESTION])
    assert (found.failed, found.abstained) == (True, True)
    assert (found.reason or "").endswith("the language model did not answer")
    assert [one.failed for one in system.stream(QUESTION)] == [True]


@pytest.mark.parametrize(
    ("url", "base", "index"),
    [
        ("http://host:8000", "http://host:8000", None),
        ("http://host:8000/", "http://host:8000", None),
        ("HTTP://Host/handbook", "http://host", "handbook"),
        ("https://host/behind/a/proxy/", "https://host/behind/a/proxy", None),
        ("http://[::1]:8000/a%2Fb", "http://[::1]:8000", "a/b"),
    ],
)
def test_the_index_follows_the_last_slash(url: str, base: str, index: str | None) -> None:
    client = Client(url)
    assert (client._base, client.index) == (base, index)
    assert Client(client.url).url == client.url


@pytest.mark.parametrize("url", ["host:8000", "ftp://host/x", "http://", "http://a:b@host/x", "http://host/x?y=1", ""])
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="the address of a server should look like http://host:8000"):
        Client(url)


def test_a_key_and_a_timeout_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAG_REMOTE_KEY", "two words")
    with pytest.raises(RagError, match=r"^the key of http://host contains a space") as told:
        Client("http://host")
    assert "two words" not in str(told.value)
    with pytest.raises(RagError, match="timeout should be a number of seconds above 0"):
        Client("http://host", "k", timeout=0)
    with pytest.raises(RagError, match=r"at most 86,400, found 1e\+300"):
        Client("http://host", "k", timeout=1e300)


def test_the_key_comes_from_the_environment(
    server: Scripted, row: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAG_REMOTE_KEY", "from-env")
    server.says(row)
    Client(server.url).ask(QUESTION)
    monkeypatch.delenv("RAG_REMOTE_KEY")
    Client(server.url).ask(QUESTION)
    assert [key for _, key, _ in server.asked] == ["Bearer from-env", None]


def test_the_key_of_an_own_server_is_sent_to_nobody(
    server: Scripted, row: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAG_SERVER_KEY", "of-our-own-server")
    server.says(row)
    Client(server.url).ask(QUESTION)
    assert [key for _, key, _ in server.asked] == [None]


def test_the_key_does_not_travel_where_others_can_read_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAG_REMOTE_KEY", "k3y")
    for url in ("http://10.0.0.5:8000/docs", "http://search.lab", "http://localhost.example.org"):
        with pytest.raises(
            RagError, match=r"not sent over http://.*; use https://, or name the host in RAG_REMOTE_HTTP"
        ):
            Client(url)
        Client(url, "")  # without a key
    for url in ("https://search.lab", "http://127.0.0.2:8000", "http://localhost:8000", "http://[::1]:8000"):
        Client(url)
    monkeypatch.setenv("RAG_REMOTE_HTTP_HOSTS", "10.0.0.5, Search.lab")
    for url in ("http://10.0.0.5:8000/docs", "http://search.lab"):
        Client(url)
    with pytest.raises(RagError, match=r"^http://10\.0\.0\.6: the key is not sent"):
        Client("http://10.0.0.6")


# --- servers that refuse ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "kind", "error", "message"),
    [
        (400, "QuestionError", QuestionError, "^it cannot be searched$"),
        (400, "UsageError", RagError, "it cannot be searched$"),
        (
            401,
            "AuthenticationError",
            AuthenticationError,
            "; set RAG_REMOTE_KEY to a key that the server knows$",
        ),
        (404, "NotFoundError", NotFoundError, "it cannot be searched$"),
        (502, "ModelFailureError", ModelFailureError, "it cannot be searched$"),
        (503, "BusyError", BusyError, "it cannot be searched; try again in 2 s$"),
        (504, "TimeLimitError", TimeLimitError, "it cannot be searched$"),
    ],
)
def test_what_the_server_refuses(
    client: Client, server: Scripted, status: int, kind: str, error: type[RagError], message: str
) -> None:
    wait = {"Retry_After": "2"} if status == 503 else {}
    server.says({"error": {"type": kind, "message": "it cannot be searched"}}, status, **wait)
    with pytest.raises(error, match=message) as told:
        client.ask(QUESTION)
    assert error is QuestionError or str(told.value).startswith(f"{server.url}: ")
    assert type(told.value) is error


def test_a_busy_server_says_once_when_to_try_again(client: Client, server: Scripted) -> None:
    error = {"type": "BusyError", "message": "too many requests; try again in 7 seconds"}
    server.says({"error": error}, 429, Retry_After="7")
    with pytest.raises(BusyError, match=r"too many requests; try again in 7 seconds$") as told:
        client.ask(QUESTION)
    assert told.value.retry_after == 7
    server.says({"error": error}, 503)
    with pytest.raises(BusyError) as told:
        client.ask(QUESTION)
    assert told.value.retry_after is None


def test_an_error_in_a_stream(client: Client, server: Scripted, row: dict[str, Any]) -> None:
    error = json.dumps({"error": {"type": "TimeLimitError", "message": "too slow"}})
    server.says(f"event: partial\ndata: {json.dumps(row)}\n\nevent: error\ndata: {error}\n\n".encode())
    answers = client.stream(QUESTION)
    assert next(answers).text == row["answer"]
    with pytest.raises(TimeLimitError, match="too slow"):
        next(answers)


def test_words_of_a_server_are_one_printable_line_without_the_key(client: Client, server: Scripted) -> None:
    words = "your key open-sesame\nis \x1b[31mwrong\u202e " + "x" * 2000
    server.says({"error": {"type": "Error", "message": words}}, 400)
    with pytest.raises(RagError) as told:
        client.ask(QUESTION)
    line = str(told.value)
    assert line.startswith(f"{server.url}: your key [key] is [31mwrong xxx")
    assert line.isprintable()
    assert len(line) < 400


# --- servers that are down, slow, strange or hostile ------------------------------------------------------------------


def test_a_server_that_is_down() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(RagError, match=f"^{url}: .*refused; is `rag serve` running there"):
            Client(url).search("x")


@pytest.mark.parametrize(("status", "body"), [(404, b"<h1>Not found</h1>"), (500, b"{}"), (502, b'{"error": "no"}')])
def test_another_program_answers(client: Client, server: Scripted, status: int, body: bytes) -> None:
    server.says(body, status)
    with pytest.raises(RagError, match=f"no server of this version of rag answers there .status {status}.$"):
        client.ask(QUESTION)


def test_a_redirect_is_not_followed(client: Client, server: Scripted) -> None:
    server.says(b"", 307, Location="http://elsewhere.example/v1/ask")
    with pytest.raises(RagError, match="has moved; name its new address: http://elsewhere"):
        client.ask(QUESTION)
    assert len(server.asked) == 1  # the key went nowhere else


@pytest.mark.parametrize(
    "body", [b"", b"[1]", b"{", b"\xff", b'{"a": NaN}', b'{"a": 1, "a": 2}', b"[" * 100_000, b'{"a": 1e999}']
)
def test_broken_json(client: Client, server: Scripted, body: bytes) -> None:
    server.says(body)
    with pytest.raises(RagError, match=f"^{server.url}: not a reply of this version of rag: the reply: ") as told:
        client.search("x")
    assert str(told.value).isprintable()


def _drip(handler: Handler) -> None:
    handler.send_response(200)
    handler.end_headers()
    while not handler.wfile.closed:
        try:
            handler.wfile.write(b" ")
        except OSError:
            return
        time.sleep(0.05)


def _drip_headers(handler: Handler) -> None:
    while True:
        try:
            handler.wfile.write(b"HTTP/1.0 200 OK\r\n"[:1] or b"")
        except OSError:
            return
        time.sleep(0.05)


def _hang(handler: Handler) -> None:
    time.sleep(3)


def _flood(handler: Handler) -> None:
    handler.send_response(200)
    handler.end_headers()
    block = b" " * (1 << 20)
    try:
        while True:
            handler.wfile.write(block)
    except OSError:
        return


def _cut(handler: Handler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b"{")


@pytest.mark.parametrize("slow", [_drip, _drip_headers, _hang])
def test_slow_replies_end(server: Scripted, slow: Callable[[Handler], None]) -> None:
    server.reply = slow
    with pytest.raises(RagError, match=f"^{server.url}: no complete reply within 0.4 s$"):
        Client(server.url, timeout=0.4).ask(QUESTION)


def test_a_slow_stream_ends(server: Scripted, row: dict[str, Any]) -> None:
    def dribble(handler: Handler) -> None:
        handler.send_response(200)
        handler.end_headers()
        try:
            while True:
                handler.wfile.write(f"event: partial\ndata: {json.dumps(row)}\n\n".encode())
                time.sleep(0.05)
        except OSError:
            return

    server.reply = dribble
    answers = Client(server.url, timeout=0.4).stream(QUESTION)
    assert next(answers).text == row["answer"]
    with pytest.raises(RagError, match=f"^{server.url}: no complete reply within 0.4 s$"):
        list(answers)


def test_endless_replies_end(client: Client, server: Scripted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rag.retrieval.client._MAX_REPLY_BYTES", 4 << 20)
    server.reply = _flood
    with pytest.raises(RagError, match=f"^{server.url}: the response is larger than 4 MiB$"):
        client.ask(QUESTION)


def test_broken_connections(client: Client, server: Scripted) -> None:
    server.reply = _cut
    with pytest.raises(RagError, match=f"^{server.url}: .*(broke off|IncompleteRead)"):
        client.ask(QUESTION)


@pytest.mark.parametrize(
    "events", [b"", b'event: other\ndata: {"text": "So"}\n\n', b"event: answer\ndata: {}", b"x\n\n\n"]
)
def test_a_stream_without_an_end(client: Client, server: Scripted, events: bytes) -> None:
    server.says(events)
    with pytest.raises(RagError, match="the stream ended before the answer"):
        list(client.stream(QUESTION))


def _changed(row: dict[str, Any], change: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    made = copy.deepcopy(row)
    change(made)
    return made


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda row: row["sentences"][0]["citations"][0].update(start=1), "quotes"),
        (lambda row: row["sentences"][0]["citations"][0].update(quote="Invented."), "quotes 'Invented.'"),
        (lambda row: row["sentences"][0]["citations"][0].update(end=10**9), "quotes"),
        (lambda row: row["sentences"][0]["citations"][0].pop("start"), "quotes"),
        (lambda row: row["sentences"][0]["citations"][0].update(passage="z#9"), "cites passage 'z#9'"),
        (lambda row: row["sentences"][0].update(start=5), "sentence 5:"),
        (lambda row: row["sentences"][0].update(start=-1), "should be at least 0"),
        (lambda row: row["sentences"][0].update(end=True), "should be an integer"),
        (lambda row: row["sentences"][0].pop("end"), "'sentences.0..end' is missing"),
        (lambda row: row.update(answer=row["answer"] + " And more."), "should be the row's sentences in order"),
        (lambda row: row["passages"].append(row["passages"][0]), "a passage id occurs twice"),
        (lambda row: row["passages"][0].update(text=5), "should be a string"),
        (lambda row: row["passages"][0].update(score="1"), "should be a number or null"),
        (lambda row: row.update(abstained=True), "'abstained' is true, yet there are sentences"),
        (lambda row: row.update(confidence="high"), "'confidence' should be a number or null"),
        (lambda row: row.update(trace=[]), "'trace' should be an object"),
        (lambda row: row.update(trace={"shown": ["z#9"]}), "such as 'z#9'"),
        (lambda row: row.update(trace={"repair": {"moved": "x"}}), "should be an integer"),
        (lambda row: row.update(question="Who was Attila?"), "the answer to another question, 'Who was Attila"),
        (lambda row: row.pop("system"), "'system' is missing"),
    ],
)
def test_an_answer_that_contradicts_itself(
    client: Client, server: Scripted, row: dict[str, Any], change: Callable[[dict[str, Any]], object], message: str
) -> None:
    server.says(_changed(row, change))
    with pytest.raises(RagError, match=message) as told:
        client.ask(QUESTION)
    assert str(told.value).startswith(f"{server.url}: not a reply of this version of rag: ")
    assert str(told.value).isprintable()


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (hits(1.0, 2.0), "not in order"),
        (hits(1.0, 1.0, 1.0), "3 hits, more than 2"),
        (hits(2.0, results=[]), "0 results for 1 queries"),
        (hits(2.0, checksum=7), "'checksum' should be a string"),
        (hits(2.0, results=[{"hits": [{"id": "a", "text": "x", "score": "1"}]}]), "score' should be a number"),
        (hits(2.0, results=[{"hits": [{"id": "a", "text": "x", "score": s} for s in (2, 1)]}]), "a passage twice"),
        (hits(2.0, results=[{"hits": [{"id": "a", "text": "x", "score": 1, "page": -1}]}]), "at least 0"),
    ],
)
def test_hits_that_contradict_themselves(client: Client, server: Scripted, reply: object, message: str) -> None:
    server.says(reply)
    with pytest.raises(RagError, match=message) as told:
        client.search("x", k=2)
    assert str(told.value).startswith(f"{server.url}: not a reply of this version of rag: ")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"verdict": "maybe"}, "'verdict' should be one of"),
        ({"probability": 1.5}, "should be from 0 to 1"),
        ({"evidence": [{"evidence": 1, "start": 0, "end": 1}]}, "a span 0:1 that text 1 does not have"),
        ({"evidence": [{"evidence": 0, "start": 0, "end": 99}]}, "a span 0:99"),
        ({"unsupported": [[0, 99]]}, "that the claim does not have"),
        ({"unsupported": [[0]]}, "that the claim does not have"),
    ],
)
def test_a_judgement_that_does_not_fit(
    client: Client, server: Scripted, changes: dict[str, object], message: str
) -> None:
    server.says({"verdict": "attributable", "probability": 0.5, **changes})
    with pytest.raises(RagError, match=message):
        client.judge("A claim.", ["A text."])


# --- the command line -------------------------------------------------------------------------------------------------


def test_ask_a_server(rag: Command, server: Scripted, row: dict[str, Any], answer: Answer) -> None:
    server.says(row)
    done = rag("ask", QUESTION, "--server", f"{server.url}/shelf", "--k", "3", "--system", "extractive")
    assert done.returncode == 0, done.stderr
    assert str(answer) in done.stdout
    assert server.asked[0][2] == {"question": QUESTION, "index": "shelf", "system": "extractive", "k": 3}
    written = json.loads(rag("ask", QUESTION, "--server", server.url, "--json").stdout)
    assert written["sentences"] == row["sentences"]
    assert "system" not in server.asked[1][2]


def test_a_stream_of_a_server_is_printed(rag: Command, server: Scripted, row: dict[str, Any], answer: Answer) -> None:
    said = json.dumps({"text": str(answer)})
    server.says(f"event: text\ndata: {said}\n\nevent: answer\ndata: {json.dumps(row)}\n\n".encode())
    assert str(answer) in rag("ask", QUESTION, "--server", server.url, "--stream").stdout


def test_search_on_a_server(rag: Command, server: Scripted) -> None:
    def reply(handler: Handler) -> None:
        found = hits(2.0)
        found["results"] = found["results"] if handler.server.asked[-1][2]["queries"] else []
        body = json.dumps(found).encode()
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    server.reply = reply
    done = rag("search", "a text", "--server", f"{server.url}/shelf", "--retriever", "bm25-rerank", "--k", "1")
    assert done.returncode == 0, done.stderr
    assert "Text 0." in done.stdout
    assert server.asked[-1][2] == {"queries": ["a text"], "retriever": "bm25-rerank", "k": 1, "index": "shelf"}


@pytest.mark.parametrize(
    "options",
    [
        ("--index", "x"), ("--answer", "point"), ("--words", "90"), ("--rounds", "2"), ("--prompt", "p"),
        ("--context", "512"), ("--temperature", "1"), ("--seed", "1"), ("--revise", "drop"), ("--repair",),
    ],
)  # fmt: skip
def test_what_a_server_decides_cannot_be_chosen(rag: Command, options: tuple[str, ...]) -> None:
    done = rag("ask", QUESTION, "--server", "http://127.0.0.1:1", *options)
    one_line_error(done, f"{options[0]} and --server exclude each other")
    if options[0] == "--index":
        one_line_error(rag("search", "x", "--server", "http://127.0.0.1:1", *options), "name the index after")


def test_a_server_that_is_down_is_one_line(rag: Command) -> None:
    one_line_error(rag("ask", QUESTION, "--server", "http://127.0.0.1:1"), "http://127.0.0.1:1: ")
