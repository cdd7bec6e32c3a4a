"""The API for programs: `/v1/search`, `/v1/statistics`, `/v1/ask`, `/v1/judge`, `/v1/attribute`, and what is served."""

import time
from collections.abc import AsyncGenerator, Callable, Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, TypeVar

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

import rag
from autoais.base.io.jsonl import dumps
from rag.base.errors import UsageError, UserError
from rag.base.rows import write_answer
from rag.base.types import Answer, Hit, Turn
from rag.base.utf16 import utf16_span
from rag.retrieval.client import AskOptions
from rag.serve.http import (
    EventStream,
    base_of,
    cancel_on_disconnect,
    error_body,
    error_parts,
    event,
    json_response,
    last_item,
)
from rag.serve.links import answer_urls, passage_url, read_marks
from rag.serve.originals import ServedOriginals
from rag.serve.schemas import (
    AnswerResponse,
    AskRequest,
    AttributeRequest,
    ErrorResponse,
    IndexesResponse,
    JudgeRequest,
    JudgeResponse,
    OriginalResponse,
    SearchRequest,
    SearchResponse,
    StatisticsRequest,
    StatisticsResponse,
)
from rag.serve.service import Reply, Service

if TYPE_CHECKING:
    from rag.answer.attribution.check import SentenceCheck

Result = TypeVar("Result")

ERRORS: dict[int | str, dict[str, Any]] = {
    400: {"model": ErrorResponse, "description": "Something in the request cannot be used."},
    401: {"model": ErrorResponse, "description": "The key is missing or wrong."},
    404: {"model": ErrorResponse, "description": "There is no such index or system."},
    413: {"description": "The request is too large."},
    422: {"model": ErrorResponse, "description": "The request has another form."},
    429: {"model": ErrorResponse, "description": "Too many requests; `Retry-After` says when to try again."},
    502: {"model": ErrorResponse, "description": "The language model did not answer."},
    503: {
        "model": ErrorResponse,
        "description": "The server, or one that it asks, is too busy; `Retry-After` says when to try again.",
    },
    504: {"model": ErrorResponse, "description": "The time limit is over."},
}
_EVENT = {
    "type": "object",
    "properties": {
        "event": {"enum": ["partial", "answer", "error"]},
        "data": {"type": "string", "description": "JSON."},
    },
    "required": ["event", "data"],
}
_STREAM: dict[int | str, dict[str, Any]] = {200: {"content": {"text/event-stream": {"schema": _EVENT}}}}


class Api:
    """The routes of `/v1`. All work is done in the service's worker threads, also that of writing JSON."""

    def __init__(self, service: Service, base_url: str | None, originals: ServedOriginals) -> None:
        self._service, self._base_url, self._originals = service, base_url, originals

    def router(self) -> APIRouter:
        """Return the routes."""
        router = APIRouter(prefix="/v1", tags=["v1"])
        for endpoint, model, extra_responses in (
            (self.search, SearchResponse, {}),
            (self.statistics, StatisticsResponse, {}),
            (self.ask, AnswerResponse, _STREAM),
            (self.judge, JudgeResponse, {}),
            (self.attribute, AnswerResponse, {}),
        ):
            router.add_api_route(
                f"/{endpoint.__name__}",
                endpoint,
                methods=["POST"],
                response_model=model,
                responses={**ERRORS, **extra_responses},
            )
        router.add_api_route("/original", self.original, response_model=OriginalResponse, responses={**ERRORS})
        router.add_api_route("/indexes", self.indexes, response_model=IndexesResponse)
        return router

    async def search(self, request: Request, body: SearchRequest) -> Response:
        """Find passages for a query, or for each of several."""
        base = base_of(request, self._base_url)
        return json_response(await cancel_on_disconnect(request, self._service.run(self._search, body, base)))

    async def statistics(self, request: Request, body: StatisticsRequest) -> Response:
        """Return the statistics that BM25 uses for the terms of queries, for a client that searches indexes as one."""
        return json_response(await cancel_on_disconnect(request, self._service.run(self._statistics, body)))

    async def ask(self, request: Request, body: AskRequest) -> Response:
        """Answer a question with citations: a row of `answers.jsonl`.

        With `stream`, the response is server-sent events: `partial` with the answer so far, each time that a sentence
        is complete, then `answer` with the same object as without, or `error`.
        """
        base = base_of(request, self._base_url)
        if body.stream:
            return await self._stream_answer(body, base)
        events = self._service.run_question(body.index, body.system, self._ask, body, base)
        return json_response(await cancel_on_disconnect(request, last_item(events)))

    async def _stream_answer(self, body: AskRequest, base: str) -> Response:
        events = self._service.run_question(body.index, body.system, self._pieces, body, base)
        first = b""
        while not first:  # an error before the first text has its own status
            first = await anext(events)

        async def send_events() -> AsyncGenerator[bytes, None]:
            try:
                yield first
                async for chunk in events:
                    if chunk:
                        yield chunk
            except UserError as error:
                yield event("error", error_body("", *error_parts(error)))
            finally:
                await events.aclose()

        return EventStream(send_events())

    async def judge(self, request: Request, body: JudgeRequest) -> Response:
        """Judge whether texts together support a claim."""
        return json_response(await cancel_on_disconnect(request, self._service.run(self._judge, body)))

    async def attribute(self, request: Request, body: AttributeRequest) -> Response:
        """Add citations to an answer of any system: each sentence cites the passage that supports it, or none."""
        base = base_of(request, self._base_url)
        return json_response(await cancel_on_disconnect(request, self._service.run(self._attribute, body, base)))

    async def original(self, request: Request, passage: str = "", index: str | None = None, mark: str = "") -> Response:
        """Find a passage in the file that it was read from: the pages of a PDF, with boxes around the words.

        `mark` are spans of the passage's text, such as 10-52,80-99 (characters, end exclusive); all of it by default.
        """
        if not passage:
            raise UsageError("the id of the passage is missing, such as ?passage=manual.pdf%233")
        if mark and not read_marks(mark):
            raise UsageError("mark should be spans such as 10-52,80-99")
        base = base_of(request, self._base_url)
        return json_response(await self._service.run(self._original, passage, self._name(index), mark, base))

    async def indexes(self) -> Response:
        """List what is served."""
        rows = [
            {"name": name, "checksum": str(index.manifest["checksum"]), "passages": index.manifest["passages"]}
            for name, index in self._service.indexes.items()
        ]
        return json_response(
            {
                "version": rag.__version__,
                "indexes": rows,
                "systems": list(self._service.systems),
                "judge": self._service.judge_name,
            }
        )

    # --- in worker threads --------------------------------------------------------------------------------------------

    def _search(self, body: SearchRequest, base: str) -> bytes:
        if (body.query is None) == (body.queries is None):
            raise UsageError("give either query or queries")
        queries = [body.query] if body.query is not None else body.queries or []
        statistics = None if body.statistics is None else [entry.statistics() for entry in body.statistics]
        header, lists = self._search_current_index(
            body,
            lambda: self._service.search_many(
                queries, body.index, retriever=body.retriever, k=body.k, statistics=statistics
            ),
        )
        results = [
            {"query": query, "hits": [_hit_row(rank, hit, header["index"], base) for rank, hit in enumerate(hits, 1)]}
            for query, hits in zip(queries, lists, strict=True)
        ]
        return _json(header | ({"results": results} if body.query is None else {"hits": results[0]["hits"]}))

    def _statistics(self, body: StatisticsRequest) -> bytes:
        header, statistics = self._search_current_index(
            body, lambda: self._service.statistics(body.queries, body.index, body.retriever)
        )
        return _json(header | {"statistics": [asdict(entry) for entry in statistics]})

    def _original(self, passage: str, index: str, mark: str, base: str) -> bytes:
        served = self._originals.locate(index, passage, read_marks(mark) or None)
        original = served.original
        pages = [
            {
                "page": page.number,
                "width": page.width,
                "height": page.height,
                "boxes": page.boxes,
                "image": f"{base}{picture}",
            }
            for page, picture in zip(original.pages, served.pictures, strict=True)
        ]
        return _json(
            {
                "index": index,
                "passage": passage,
                "file": original.name,
                "download": f"{base}{served.download}",
                "url": original.url,
                "page_count": original.page_count,
                "pages": pages,
                "note": original.note,
            }
        )

    def _name(self, index: str | None) -> str:
        return self._service.index_name(index or None)

    def _search_current_index(
        self, body: SearchRequest | StatisticsRequest, work: Callable[[], Result]
    ) -> tuple[dict[str, Any], Result]:
        """Do the work, and name what was searched. If the index is replaced meanwhile, do it again with the new one."""
        name = self._name(body.index)
        while True:
            retriever = self._service.retriever(body.index, body.retriever).name  # raises if there is no such index
            index = self._service.index(name)
            result = work()
            checksum = str(index.manifest["checksum"])
            if self._service.index(name).manifest["checksum"] == checksum:
                return {"index": name, "checksum": checksum, "retriever": retriever}, result

    def _ask(self, body: AskRequest, base: str) -> Iterator[bytes]:
        """Yield the answer as JSON at the end, and before that at each piece, so that the work can be stopped."""
        for reply in self._service.stream(*_target(body), **_options(body)):
            yield _json(self._row(reply, base, verdicts=body.verdicts)) if reply.is_complete else b""

    def _pieces(self, body: AskRequest, base: str) -> Iterator[bytes]:
        """Yield events; an empty one while the answer does not grow, so that the work can be stopped."""
        length = 0
        for reply in self._service.stream(*_target(body), **_options(body)):
            if reply.is_complete:
                yield event("answer", self._row(reply, base, verdicts=body.verdicts))
            elif len(reply.answer.text) > length:
                length = len(reply.answer.text)
                yield event("partial", self._row(reply, base, verdicts=False))
            else:
                yield b""

    def _row(self, reply: Reply, base: str, *, verdicts: bool) -> dict[str, Any]:
        row = answer_row(reply.answer, reply.index, reply.seconds, base)
        if verdicts:
            from rag.answer.attribution.check import check_answer

            checks = check_answer(reply.answer, self._service.judge_model, nearest=True)
            row["verdicts"] = [_check_row(check) for check in checks]
        return row

    def _judge(self, body: JudgeRequest) -> bytes:
        passages = body.passages()
        judgement = self._service.judge(body.claim, passages, body.question)
        evidence = [
            {**asdict(span), **utf16_span(passages[span.evidence].evidence, span.start, span.end)}
            for span in judgement.evidence
        ]
        return _json({**asdict(judgement), "evidence": evidence, "judge": self._service.judge_model.name})

    def _attribute(self, body: AttributeRequest, base: str) -> bytes:
        start = time.perf_counter()
        answer = self._service.attribute(body.question, body.answer, body.index, retriever=body.retriever, k=body.k)
        return _json(answer_row(answer, self._name(body.index), time.perf_counter() - start, base))


def answer_row(answer: Answer, index: str, seconds: float, base: str) -> dict[str, Any]:
    """Return the row of `answers.jsonl` of an answer, with what a client needs to show it.

    These are the page numbers of documents, a link per passage, and spans in UTF-16 code units beside those in
    characters.
    """
    row = write_answer(answer, index, seconds)
    texts = {hit.passage.id: hit.passage.text for hit in answer.hits}
    for sentence in row["sentences"]:
        sentence |= utf16_span(answer.text, sentence["start"], sentence["end"])
        for citation in sentence["citations"]:
            citation |= utf16_span(texts[citation["passage"]], citation["start"], citation["end"])
    return {**row, "urls": answer_urls(base, index, answer)}


def _check_row(check: "SentenceCheck") -> dict[str, Any]:
    """Return a check with its quotations; fields that say nothing are there too, but for spans of passages."""
    always: dict[str, Any] = {"probability": None, "reason": None, "unsupported": []}
    return always | check.record() | {"quotes": [quote.record() for quote in check.quotes]}


def _hit_row(rank: int, hit: Hit, index: str, base: str) -> dict[str, Any]:
    """Return a hit; its score is not rounded, so that a remote ranking is the same to the last bit."""
    passage = hit.passage
    return {
        "rank": rank,
        "id": passage.id,
        "title": passage.title,
        "section": passage.section,
        **({} if passage.headings == passage.default_headings else {"headings": passage.headings}),
        **({} if passage.page is None else {"page": passage.page}),
        "text": passage.text,
        "score": float(hit.score),
        "url": passage_url(base, index, passage.id),
    }


class _AskOptions(AskOptions):
    history: list[Turn]
    identifier: str


def _target(body: AskRequest) -> tuple[str, str | None, str | None]:
    return body.question, body.index, body.system


def _options(body: AskRequest) -> _AskOptions:
    return {"history": [turn.turn() for turn in body.history], "identifier": body.id, **body.options()}


def _json(value: object) -> bytes:
    return dumps(value).encode()
