"""The API for programs: `/v1/search`, `/v1/statistics`, `/v1/ask`, `/v1/judge`, `/v1/attribute`, `/v1/indexes`."""

import time
from collections.abc import AsyncGenerator, Callable, Iterator
from dataclasses import asdict
from typing import Any, TypeVar

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

import rag
from autoais.base.answers import to_row
from autoais.base.io.jsonl import dumps
from rag.base.errors import UsageError, UserError
from rag.base.types import Answer, Hit, Turn
from rag.retrieval.client import AskOptions
from rag.serve.http import EventStream, base_of, error_body, event, json_response, last_of, told_of, until_gone
from rag.serve.links import answer_urls, passage_url
from rag.serve.schemas import (
    AnswerResponse,
    AskRequest,
    AttributeRequest,
    ErrorResponse,
    IndexesResponse,
    JudgeRequest,
    JudgeResponse,
    SearchRequest,
    SearchResponse,
    StatisticsRequest,
    StatisticsResponse,
)
from rag.serve.service import Asked, Service

Found = TypeVar("Found")

_ERRORS: dict[int | str, dict[str, Any]] = {
    400: {"model": ErrorResponse, "description": "Something in the request cannot be used."},
    401: {"model": ErrorResponse, "description": "The key is missing or wrong."},
    404: {"model": ErrorResponse, "description": "There is no such index or system."},
    413: {"description": "The request is too large."},
    422: {"model": ErrorResponse, "description": "The request has another form."},
    429: {"model": ErrorResponse, "description": "Too many requests; `Retry-After` says when to try again."},
    503: {
        "model": ErrorResponse,
        "description": "The server, or one that it asks, is too busy; `Retry-After` says when to try again.",
    },
    504: {"model": ErrorResponse, "description": "The time limit is over."},
}
_EVENT = {
    "type": "object",
    "properties": {"event": {"enum": ["text", "answer", "error"]}, "data": {"type": "string", "description": "JSON."}},
    "required": ["event", "data"],
}
_STREAM: dict[int | str, dict[str, Any]] = {200: {"content": {"text/event-stream": {"schema": _EVENT}}}}


class Api:
    """The routes of `/v1`. All work is done in the service's worker threads, also that of writing JSON."""

    def __init__(self, service: Service, base_url: str | None) -> None:
        self._service, self._base_url = service, base_url

    def router(self) -> APIRouter:
        """Return the routes."""
        router = APIRouter(prefix="/v1", tags=["v1"])
        for endpoint, model, more in (
            (self.search, SearchResponse, {}),
            (self.statistics, StatisticsResponse, {}),
            (self.ask, AnswerResponse, _STREAM),
            (self.judge, JudgeResponse, {}),
            (self.attribute, AnswerResponse, {}),
        ):
            router.add_api_route(
                f"/{endpoint.__name__}", endpoint, methods=["POST"], response_model=model, responses={**_ERRORS, **more}
            )
        router.add_api_route("/indexes", self.indexes, response_model=IndexesResponse)
        return router

    async def search(self, request: Request, asked: SearchRequest) -> Response:
        """Find passages for a query, or for each of several."""
        base = base_of(request, self._base_url)
        return json_response(await until_gone(request, self._service.run(self._search, asked, base)))

    async def statistics(self, request: Request, asked: StatisticsRequest) -> Response:
        """Say what BM25 weighs the terms of queries by, for a client that searches several indexes as one."""
        return json_response(await until_gone(request, self._service.run(self._statistics, asked)))

    async def ask(self, request: Request, asked: AskRequest) -> Response:
        """Answer a question with citations: a row of `answers.jsonl`.

        With `stream`, the response is server-sent events: `text` with `{"text": piece}`, then `answer` with the same
        object as without, or `error`.
        """
        base = base_of(request, self._base_url)
        if asked.stream:
            return await self._streamed(asked, base)
        events = self._service.run_question(asked.index, asked.system, self._ask, asked, base)
        return json_response(await until_gone(request, last_of(events)))

    async def _streamed(self, asked: AskRequest, base: str) -> Response:
        events = self._service.run_question(asked.index, asked.system, self._pieces, asked, base)
        first = b""
        while not first:  # an error before the first text has its own status
            first = await anext(events)

        async def sent() -> AsyncGenerator[bytes, None]:
            try:
                yield first
                async for one in events:
                    if one:
                        yield one
            except UserError as error:
                yield event("error", error_body("", *told_of(error)))
            finally:
                await events.aclose()

        return EventStream(sent())

    async def judge(self, request: Request, asked: JudgeRequest) -> Response:
        """Judge whether texts together support a claim."""
        return json_response(await until_gone(request, self._service.run(self._judge, asked)))

    async def attribute(self, request: Request, asked: AttributeRequest) -> Response:
        """Add citations to an answer of any system: each sentence cites the passage that supports it, or none."""
        base = base_of(request, self._base_url)
        return json_response(await until_gone(request, self._service.run(self._attribute, asked, base)))

    async def indexes(self) -> Response:
        """List what is served."""
        listed = [
            {"name": name, "checksum": str(index.manifest["checksum"]), "passages": index.manifest["passages"]}
            for name, index in self._service.indexes.items()
        ]
        return json_response(
            {
                "version": rag.__version__,
                "indexes": listed,
                "systems": list(self._service.systems),
                "judge": self._service.judge_name,
            }
        )

    # --- in worker threads --------------------------------------------------------------------------------------------

    def _search(self, asked: SearchRequest, base: str) -> bytes:
        if (asked.query is None) == (asked.queries is None):
            raise UsageError("give either query or queries")
        queries = [asked.query] if asked.query is not None else asked.queries or []
        whole = None if asked.statistics is None else [one.statistics() for one in asked.statistics]
        searched, lists = self._searched(
            asked,
            lambda: self._service.search_many(queries, asked.index, recipe=asked.recipe, k=asked.k, statistics=whole),
        )
        results = [
            {"query": query, "hits": [_hit_row(rank, hit, searched["index"], base) for rank, hit in enumerate(hits, 1)]}
            for query, hits in zip(queries, lists, strict=True)
        ]
        return _json(searched | ({"results": results} if asked.query is None else {"hits": results[0]["hits"]}))

    def _statistics(self, asked: StatisticsRequest) -> bytes:
        searched, found = self._searched(
            asked, lambda: self._service.statistics(asked.queries, asked.index, asked.recipe)
        )
        return _json(searched | {"statistics": [asdict(one) for one in found]})

    def _name(self, index: str | None) -> str:
        return index or next(iter(self._service.indexes))

    def _searched(
        self, asked: SearchRequest | StatisticsRequest, work: Callable[[], Found]
    ) -> tuple[dict[str, Any], Found]:
        """Do the work, and name what was searched; if the index is replaced meanwhile, do it again with the new one."""
        name = self._name(asked.index)
        while True:
            retriever = self._service.retriever(asked.index, asked.recipe).name  # raises if there is no such index
            index = self._service.indexes[name]
            found = work()
            if self._service.indexes[name] is index:
                return {"index": name, "checksum": str(index.manifest["checksum"]), "retriever": retriever}, found

    def _ask(self, asked: AskRequest, base: str) -> Iterator[bytes]:
        """Yield the answer as JSON at the end, and before that at each piece, so that the work can be stopped."""
        for piece in self._service.stream(*_place(asked), **_options(asked)):
            yield b"" if isinstance(piece, str) else _json(self._row(piece, base, verdicts=asked.verdicts))

    def _pieces(self, asked: AskRequest, base: str) -> Iterator[bytes]:
        """Yield events; nothing for a piece without text, so that the work can be stopped."""
        for piece in self._service.stream(*_place(asked), **_options(asked)):
            if isinstance(piece, Asked):
                yield event("answer", self._row(piece, base, verdicts=asked.verdicts))
            else:
                yield event("text", {"text": piece}) if piece else b""

    def _row(self, asked: Asked, base: str, *, verdicts: bool) -> dict[str, Any]:
        row = answer_row(asked.answer, asked.index, asked.seconds, base)
        if verdicts:
            from rag.serve.checking import check_answer

            checks = check_answer(asked.answer, self._service.judge_model)
            names = ("verdict", "probability", "reason", "unsupported")
            row["verdicts"] = [{name: getattr(check, name) for name in names} for check in checks]
        return row

    def _judge(self, asked: JudgeRequest) -> bytes:
        found = self._service.judge(asked.claim, asked.passages(), asked.question)
        return _json({**asdict(found), "judge": self._service.judge_model.name})

    def _attribute(self, asked: AttributeRequest, base: str) -> bytes:
        started = time.perf_counter()
        answer = self._service.attribute(asked.question, asked.answer, asked.index, recipe=asked.recipe, k=asked.k)
        return _json(answer_row(answer, self._name(asked.index), time.perf_counter() - started, base))


def answer_row(answer: Answer, index: str, seconds: float, base: str) -> dict[str, Any]:
    """Return the row of `answers.jsonl` of an answer, with the page numbers of documents, and a link per passage."""
    row = to_row(answer.to_cited(index, seconds))
    pages = {hit.passage.id: hit.passage.page for hit in answer.hits}
    for passage in row["passages"]:
        if pages[passage["id"]] is not None:
            passage["page"] = pages[passage["id"]]
    return {**row, "urls": answer_urls(base, index, answer)}


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


def _place(asked: AskRequest) -> tuple[str, str | None, str | None]:
    return asked.question, asked.index, asked.system


def _options(asked: AskRequest) -> _AskOptions:
    return {"history": [turn.turn() for turn in asked.history], "identifier": asked.id, **asked.options()}


def _json(value: object) -> bytes:
    return dumps(value).encode()
