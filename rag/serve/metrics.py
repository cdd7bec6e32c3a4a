"""Counts for Prometheus: requests, seconds, questions that run and wait, abstentions. No label has a user's text."""

import time

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rag.serve.service import Reply, Service

_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
_METHODS = frozenset({"GET", "HEAD", "POST", "OPTIONS", "PUT", "PATCH", "DELETE"})


class Metrics:
    """The counts of one application. Labels are names that the operator gave, paths of routes, and status codes."""

    def __init__(self, service: Service) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)  # memory, CPU, open files
        names = ("method", "path", "status")
        self.requests = Counter("rag_requests", "HTTP requests.", names, registry=self.registry)
        self.seconds = Histogram(
            "rag_request_seconds", "Seconds of HTTP requests.", ["path"], buckets=_BUCKETS, registry=self.registry
        )
        self.questions = Counter(
            "rag_questions", "Questions, by outcome.", ["index", "system", "outcome"], registry=self.registry
        )
        self.answering = Histogram(
            "rag_question_seconds", "Seconds of answering.", ["system"], buckets=_BUCKETS, registry=self.registry
        )
        running = Gauge("rag_running", "Requests that have a worker.", registry=self.registry)
        running.set_function(lambda: service.workers.running)
        waiting = Gauge("rag_waiting", "Requests that wait for a worker.", registry=self.registry)
        waiting.set_function(lambda: service.workers.waiting)
        service.watch(self._count_answer, self._count_failure)

    def _count_answer(self, reply: Reply) -> None:
        outcome = "failed" if reply.answer.failed else "abstained" if reply.answer.abstained else "answered"
        self.questions.labels(reply.index, reply.system, outcome).inc()
        self.answering.labels(reply.system).observe(reply.seconds)

    def _count_failure(self, index: str, system: str) -> None:
        self.questions.labels(index, system, "failed").inc()

    async def page(self, request: Request) -> Response:
        """Answer `/metrics`."""
        return Response(generate_latest(self.registry), media_type=CONTENT_TYPE_LATEST)


class CountRequests:
    """Counts the requests of an application by the path of their route, such as `/p/{index}/{passage}`."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app, self._metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Count a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start, status = time.perf_counter(), 500

        async def record_status(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, record_status)
        finally:
            path = _path(scope)
            method = scope["method"] if scope["method"] in _METHODS else "other"
            self._metrics.requests.labels(method, path, str(status)).inc()
            self._metrics.seconds.labels(path).observe(time.perf_counter() - start)


def _path(scope: Scope) -> str:
    """Return the path of the request's route. Only FastAPI's own routes are in the scope."""
    if (route := scope.get("route")) is not None:
        return str(route.path)
    endpoint = scope.get("endpoint")
    paths = (
        candidate.path
        for candidate in scope["app"].routes
        if isinstance(candidate, Route) and candidate.endpoint == endpoint
    )
    return next(paths, "other") if endpoint is not None else "other"
