"""A client of `rag serve`: search, ask, judge and attribute with the indexes and models of another machine.

    from rag.retrieval.client import Client

    answer = Client("http://127.0.0.1:8000/handbook").ask("What is citation precision?")

Replies are read as data of a stranger: what does not fit is an error, and an `Answer` checks its own citations.
"""

import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from http import HTTPStatus
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypedDict, Unpack
from urllib.parse import quote, unquote, urlsplit

from autoais.base.io.jsonl import dumps, parse_object
from autoais.base.io.schema import (
    NUMBER_OR_NULL,
    STRING,
    TEXT_OR_NULL,
    Schema,
    faults,
    list_of,
    record,
)
from autoais.base.network import Head, Limits, RequestError, excerpt, stream
from autoais.base.types import Judgement, Span, Verdict
from autoais.base.urls import is_loopback, normalize_url
from rag.base.errors import (
    AuthenticationError,
    BusyError,
    ModelFailureError,
    NotFoundError,
    QuestionError,
    RagError,
    TimeLimitError,
    UsageError,
    UserError,
    check_type,
)
from rag.base.rows import read_answer
from rag.base.types import Answer, Hit, Passage, Question
from rag.index.statistics import FIELDS, Statistics

if TYPE_CHECKING:
    from rag.base.types import Turn

__all__ = ["Client", "Found", "UnreachableError"]

_KEY = "RAG_REMOTE_KEY"
_HTTP_HOSTS = "RAG_REMOTE_HTTP_HOSTS"  # that get the key over plain HTTP too
_DAY = 24 * 3600
_SECONDS = 90.0  # of one request: longer than a server with the default limits takes
_MAX_REPLY_BYTES = 64 << 20  # bytes of one reply
_MAX_EXCERPT_LENGTH = 300  # characters of a server's own words in an error

_OFFSET: Schema = {"type": "integer", "minimum": 0}
_PAGE: Schema = {"type": ["integer", "null"], "minimum": 0}
_HIT = record(
    {"id": STRING, "text": STRING, "score": {"type": "number"}},
    {"title": STRING, "section": STRING, "headings": TEXT_OR_NULL, "page": _PAGE},
)
_SEARCH_REPLY = record(
    {
        "index": STRING,
        "checksum": STRING,
        "retriever": STRING,
        "results": list_of(record({"hits": list_of(_HIT)})),
    }
)
_STATISTICS_REPLY = record(
    {
        "statistics": list_of(
            record(
                {
                    "passages": _OFFSET,
                    "untitled": _OFFSET,
                    "lengths": record({name: {"type": "number"} for name in FIELDS}),
                    "frequencies": record({name: list_of(_OFFSET) for name in FIELDS}),
                }
            )
        )
    }
)
_JUDGEMENT = record(
    {"verdict": {"type": "string", "enum": [str(verdict) for verdict in Verdict]}},
    {
        "probability": NUMBER_OR_NULL,
        "reason": TEXT_OR_NULL,
        "evidence": list_of(record({"evidence": _OFFSET, "start": _OFFSET, "end": _OFFSET})),
        "unsupported": list_of({"type": "array", "items": _OFFSET}),
    },
)
_ERROR = record({"error": record({"message": STRING}, {"type": STRING})})
_KINDS = {error.__name__: error for error in (ModelFailureError, NotFoundError, TimeLimitError)}
_UNREACHABLE_STATUSES = (
    HTTPStatus.BAD_GATEWAY,
    HTTPStatus.SERVICE_UNAVAILABLE,
    HTTPStatus.GATEWAY_TIMEOUT,
)  # a proxy says so


class UnreachableError(BusyError):
    """A server cannot be reached, or does not answer in time; try again later."""


@dataclass(frozen=True, slots=True)
class Found:
    """The hits of each query, and what was searched: an index with its checksum, by a retriever with its name."""

    index: str
    checksum: str
    retriever: str
    hits: list[list[Hit]]


class AskOptions(TypedDict, total=False):
    """The options of a question that a server takes: retriever, number of passages, confidence below which to abstain.

    None means the system's default.
    """

    retriever: str | None
    k: int | None
    min_confidence: float | None


class Client:
    """Speaks to a server of `rag serve`.

    `url` is the address of the server, with the name of one of its indexes after the last slash unless the first one is
    meant: `http://host:8000/handbook`. `key` defaults to RAG_REMOTE_KEY. Over plain HTTP it is sent to this machine and
    to the hosts in RAG_REMOTE_HTTP_HOSTS (separated by commas); for another one, `RagError` is raised. `timeout` is the
    most seconds that a request may take, from the first byte to the last. Threads may share a client.

    Whatever goes wrong is a `RagError` of one line, which names the server and never holds the key: `NotFoundError` for
    an index or system that is not served, `BusyError`, `UnreachableError`, `TimeLimitError`, `ModelFailureError` for a
    language model that did not answer, or `QuestionError` for a question that cannot be searched, in the server's
    words.
    """

    def __init__(self, url: str, key: str | None = None, *, timeout: float = _SECONDS) -> None:
        check_type("url", url, "the address of a server (str)", str)
        self._base, self.index = _place(url)
        self.timeout = timeout
        if not 0 < timeout <= _DAY:
            raise RagError(f"timeout should be a number of seconds above 0, at most {_DAY:,}, found {timeout:g}")
        self._key = (os.environ.get(_KEY) or "" if key is None else key).strip()
        if not re.fullmatch(r"[!-~]*", self._key):
            raise RagError(f"the key of {self._base} contains a space or a character outside printable ASCII")
        if self._key and not _is_private(self._base):
            way_out = f"use https://, or name the host in {_HTTP_HOSTS} if the network is yours"
            raise RagError(f"{self._base}: the key is not sent over http://, where others can read it; {way_out}")

    def __repr__(self) -> str:
        return f"Client({self.url!r})"

    @property
    def url(self) -> str:
        """The address of the server, and of the index where one was named."""
        return self._base + (f"/{quote(self.index, safe='')}" if self.index else "")

    def search(self, query: str, *, retriever: str = "bm25", k: int = 10) -> list[Hit]:
        """Return at most k hits, best first, as `rag.search` does."""
        check_type("query", query, "a string", str)
        return self.search_each([query], retriever=retriever, k=k).hits[0]

    def search_each(
        self,
        queries: Sequence[str],
        *,
        retriever: str = "bm25",
        k: int = 10,
        statistics: Sequence[Statistics] | None = None,
    ) -> Found:
        """Search several queries in one request; without queries, only say what would be searched.

        With `statistics`, one for each query, BM25 searches as a part of a larger collection.
        """
        body: dict[str, Any] = {"queries": list(queries), "retriever": retriever, "k": k, **self._index_field()}
        if statistics is not None:
            body["statistics"] = [asdict(query_statistics) for query_statistics in statistics]
        reply = self._read("/v1/search", body, _SEARCH_REPLY)
        if len(reply["results"]) != len(queries):
            raise self._strange(f"{len(reply['results'])} results for {len(queries)} queries")
        hits = [[_hit(row) for row in result["hits"]] for result in reply["results"]]
        for listed_hits in hits:
            self._check_hits(listed_hits, k)
        return Found(reply["index"], reply["checksum"], reply["retriever"], hits)

    def statistics(self, queries: Sequence[str], *, retriever: str = "bm25") -> list[Statistics]:
        """Return what BM25 weighs the terms of each query by, on the server."""
        reply = self._read(
            "/v1/statistics",
            {"queries": list(queries), "retriever": retriever, **self._index_field()},
            _STATISTICS_REPLY,
        )
        if len(reply["statistics"]) != len(queries):
            raise self._strange(f"{len(reply['statistics'])} statistics for {len(queries)} queries")
        try:
            return [
                Statistics(
                    row["passages"],
                    row["untitled"],
                    row["lengths"],
                    {name: tuple(frequencies) for name, frequencies in row["frequencies"].items()},
                )
                for row in reply["statistics"]
            ]
        except UserError as error:
            raise self._strange(str(error)) from error

    def ask(
        self,
        question: str | Question,
        *,
        system: str | None = None,
        history: Sequence["Turn"] = (),
        **options: Unpack[AskOptions],
    ) -> Answer:
        """Answer a question with one of the server's systems (default: its first).

        `history` holds the turns that the question follows up on. `options` are retriever, k and min_confidence, as far
        as the server allows them.
        """
        body = self._question(question, system, history, options)
        return self._answer(self._read("/v1/ask", body, None), question, is_rewritten=bool(history))

    def stream(
        self,
        question: str | Question,
        *,
        system: str | None = None,
        history: Sequence["Turn"] = (),
        **options: Unpack[AskOptions],
    ) -> Iterator[Answer]:
        """Yield the answer so far, with its complete sentences, as the server writes it; last, the answer of `ask`."""
        body = self._question(question, system, history, options) | {"stream": True}
        event = ""
        for event, data in self._events("/v1/ask", body):
            row = self._parse(data)
            if event == "error":
                raise self._error(row, 200)
            if event in ("partial", "answer"):
                yield self._answer(row, question, is_rewritten=bool(history))
        if event != "answer":
            raise self._strange("the stream ended before the answer")

    def judge(self, claim: str, evidence: Sequence[str | Passage], question: str = "") -> Judgement:
        """Judge whether texts or passages together support a claim, by the server's judge."""
        check_type("claim", claim, "a string", str)
        if isinstance(evidence, str):
            evidence = [evidence]
        texts = [item if isinstance(item, str) else item.evidence for item in evidence]
        body = {"claim": claim, "evidence": texts, "question": question}
        reply = self._read("/v1/judge", body, _JUDGEMENT)
        spans = [Span(int(row["evidence"]), int(row["start"]), int(row["end"])) for row in reply.get("evidence", [])]
        for span in spans:
            if span.evidence >= len(texts) or not span.start < span.end <= len(texts[span.evidence]):
                raise self._strange(f"a span {span.start}:{span.end} that text {span.evidence} does not have")
        parts = [tuple(map(int, offsets)) for offsets in reply.get("unsupported", [])]
        for part in parts:
            if len(part) != 2 or not part[0] < part[1] <= len(claim):
                raise self._strange(f"a part {part} that the claim does not have")
        try:
            verdict = Verdict(reply["verdict"])
            return Judgement(verdict, reply.get("probability"), reply.get("reason"), tuple(spans), tuple(parts))  # type: ignore[arg-type]
        except UserError as error:
            raise self._strange(str(error)) from error

    def attribute(self, question: str, answer: str, *, retriever: str = "bm25", k: int = 10) -> Answer:
        """Add citations to an existing answer, as `rag.attribute` does."""
        check_type("question", question, "a string", str)
        check_type("answer", answer, "a string", str)
        body = {"question": question, "answer": answer, "retriever": retriever, "k": k, **self._index_field()}
        return self._answer(self._read("/v1/attribute", body, None), question)

    # --- requests ---------------------------------------------------------------------------------------------------

    def _index_field(self) -> dict[str, str]:
        return {"index": self.index} if self.index else {}

    def _question(
        self, question: str | Question, system: str | None, history: Sequence["Turn"], options: Mapping[str, object]
    ) -> dict[str, Any]:
        check_type("question", question, "a string or a Question", str, Question)
        text = question.text if isinstance(question, Question) else question
        body: dict[str, Any] = {"question": text, **self._index_field()}
        if system is not None:
            body["system"] = system
        if history:
            body["history"] = [{"question": turn.question, "answer": turn.answer} for turn in history]
        return body | {name: value for name, value in options.items() if value is not None}

    def _read(self, path: str, body: Mapping[str, Any], schema: Schema | None) -> dict[str, Any]:
        """Send a request and return the object of the reply."""
        with self._send(path, body, "application/json") as blocks:
            row = self._parse(b"".join(blocks))
        if schema is not None:
            self._check(row, schema)
        return row

    def _events(self, path: str, body: Mapping[str, Any]) -> Iterator[tuple[str, bytes]]:
        """Send a request and yield the name and data of each server-sent event."""
        with self._send(path, body, "text/event-stream") as blocks:
            name, data = "", b""
            for line in _lines(blocks):
                if line.startswith(b"event:"):
                    name = line[6:].strip().decode("utf-8", "replace")
                elif line.startswith(b"data:"):
                    data += line[5:].strip()
                elif not line:
                    if data:
                        yield name, data
                    name, data = "", b""

    @contextmanager
    def _send(self, path: str, body: Mapping[str, Any], accept: str) -> Iterator[Iterator[bytes]]:
        """Send a request and give the blocks of the reply; raises the error of a reply that is not 200."""
        url = self._base + path
        headers = {"Content-Type": "application/json", "Accept": accept}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        try:
            limits = Limits(self.timeout, _MAX_REPLY_BYTES)
            with stream(url, dumps(body).encode(), headers, limits) as (head, blocks):
                if head.status != HTTPStatus.OK:
                    raise self._status_error(head, b"".join(blocks))
                yield blocks
        except RequestError as error:
            hint = "" if error.is_connected else "; is `rag serve` running there?"
            raise UnreachableError(f"{self._base}: {self._excerpt(error.reason)}{hint}") from error

    # --- replies ----------------------------------------------------------------------------------------------------

    def _answer(self, row: dict[str, Any], question: str | Question, *, is_rewritten: bool = False) -> Answer:
        sent = question if isinstance(question, Question) else Question("", question)
        try:
            answer = read_answer(row, sent)
        except (UserError, ValueError) as error:
            raise self._strange(str(error)) from error
        if not is_rewritten and row["question"].strip() != sent.text.strip():
            raise self._strange(f"the answer to another question, {row['question']!r}")
        return answer

    def _check(self, row: dict[str, Any], schema: Schema) -> None:
        for fault in faults(row, schema):
            raise self._strange(fault)

    def _check_hits(self, hits: Sequence[Hit], k: int) -> None:
        if len(hits) > k:
            raise self._strange(f"{len(hits)} hits, more than {k}")
        if any((-first.score, first.passage.id) >= (-two.score, two.passage.id) for first, two in pairwise(hits)):
            raise self._strange("hits that are not in order of score and id")
        if len({hit.passage.id for hit in hits}) < len(hits):
            raise self._strange("a passage twice among the hits")

    def _parse(self, data: bytes) -> dict[str, Any]:
        try:
            return parse_object(data, "the reply")
        except UserError as error:
            raise self._strange(str(error)) from error

    def _strange(self, problem: str) -> RagError:
        return RagError(f"{self._base}: not a reply of this version of rag: {self._excerpt(problem)}")

    def _status_error(self, head: Head, content: bytes) -> UserError:
        """The error of a reply with another status than 200."""
        if 300 <= head.status < 400:
            address = self._excerpt(str(head.headers.get("Location")))
            return RagError(f"{self._base}: the server has moved; name its new address: {address}")
        try:
            row = parse_object(content, "the reply")
            fits = not any(faults(row, _ERROR))
        except UserError:
            row, fits = {}, False
        if not fits:
            error = UnreachableError if head.status in _UNREACHABLE_STATUSES else RagError
            return error(f"{self._base}: no server of this version of rag answers there (status {head.status})")
        return self._error(row, head.status, math.ceil(head.retry_after) or None)

    def _error(self, row: dict[str, Any], status: int, seconds: int | None = None) -> UserError:
        self._check(row, _ERROR)
        message, kind = self._excerpt(row["error"]["message"]), row["error"].get("type")
        if kind == QuestionError.__name__:
            return QuestionError(message)
        if status in (401, 403):
            return AuthenticationError(f"{self._base}: {message}; set {_KEY} to a key that the server knows")
        if seconds is not None and "try again in" not in message:
            message += f"; try again in {seconds} s"
        message = f"{self._base}: {message}"
        return BusyError(message, seconds) if kind == BusyError.__name__ else _KINDS.get(str(kind), RagError)(message)

    def _excerpt(self, text: str) -> str:
        return excerpt(text, self._key, _MAX_EXCERPT_LENGTH)


def _is_private(url: str) -> bool:
    """Whether nobody on the way can read what is sent, or the user has said that it does not matter."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    trusted_hosts = {name.strip().lower() for name in os.environ.get(_HTTP_HOSTS, "").split(",")}
    return parts.scheme == "https" or is_loopback(host) or host in trusted_hosts


def _place(url: str) -> tuple[str, str | None]:
    """The address without trailing slash, and the name of the index, which follows its last slash."""
    expected = "the address of a server should look like http://host:8000 or http://host:8000/index"
    try:
        address = normalize_url(url)
    except UserError as error:
        raise UsageError(f"{expected}: {error}") from error
    if "?" in address:
        raise UsageError(f"{expected}, without a query: {url[:200]!r}")
    base, _, name = address.rpartition("/")
    return base, unquote(name) or None


def _lines(blocks: Iterable[bytes]) -> Iterator[bytes]:
    remainder = b""
    for block in blocks:
        *lines, remainder = (remainder + block).split(b"\n")
        yield from (line.removesuffix(b"\r") for line in lines)


def _hit(row: Mapping[str, Any]) -> Hit:
    headings: Any = row.get("headings")  # None: derived from title and section
    page = row.get("page")
    passage = Passage(
        row["id"],
        row.get("title", ""),
        row["text"],
        row.get("section", ""),
        headings,
        None if page is None else int(page),
    )
    return Hit(passage, float(row["score"]))
