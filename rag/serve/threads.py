"""Threads of questions, which browsers store: the server shows and exports what they send, and stores nothing."""

from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response

from rag.answer.export import THREAD_FORMATS, export_thread
from rag.base.errors import NotFoundError, UsageError, UserError
from rag.serve.http import base_of, error_parts, json_response, read_json
from rag.serve.service import Service
from rag.serve.turns import TurnRenderer, check_export, export_turn, file_response, read_place, read_turn
from rag.web.pages import sentence

MAX_TURNS = 100
"""Turns of one request."""


class ThreadPages:
    """What the script of the page sends of a thread comes back as HTML or as a file, without asking again."""

    def __init__(self, service: Service, turns: TurnRenderer, base_url: str | None) -> None:
        self._service, self._turns, self._base_url = service, turns, base_url

    async def show(self, request: Request) -> Response:
        """Return the HTML of stored turns, and what a follow-up is asked with; a message for one that does not fit."""
        turns, base = _read_list(_read_object(await read_json(request))), base_of(request, self._base_url)
        return json_response({"turns": await self._service.run(self._show, turns, base)})

    def _show(self, values: Sequence[object], base: str) -> list[dict[str, object]]:
        parts: list[dict[str, object]] = []
        for value in values:
            try:
                turn = read_turn(value, self._service)
                html = self._turns.answer(turn, read_place(value), base)
                parts.append({"html": html, "turn": turn.history})
            except UserError as error:
                parts.append({"message": sentence(error_parts(error)[2])})
        return parts

    async def check(self, request: Request) -> Response:
        """Return the verdicts of a stored answer whose verdicts the browser did not wait for."""
        return json_response(await self._service.run(self._check, await read_json(request)))

    def _check(self, value: object) -> dict[str, object]:
        turn, limits = read_turn(value, self._service), self._service.limits
        texts = [hit.passage.text for hit in turn.answer.hits]
        if len(turn.answer.sentences) > limits.claims or len(texts) > limits.passages:
            raise UsageError(f"at most {limits.claims} sentences and {limits.passages} passages can be checked at once")
        if max(map(len, [turn.answer.text, *texts])) > limits.text:
            raise UsageError("the stored answer is too long to be checked")
        return self._turns.verdicts(turn.with_checks(self._service.judge_model), read_place(value))

    async def export(self, request: Request) -> Response:
        """Return a thread as a file, in one of `THREAD_FORMATS`."""
        name = request.path_params["format"]
        if name not in THREAD_FORMATS:
            raise NotFoundError(f"no format {name[:40]!r}; there are: {', '.join(THREAD_FORMATS)}")
        body = _read_object(await read_json(request))
        title = body.get("title")
        if not isinstance(title, str):
            raise UsageError("'title' should be a string")
        base = base_of(request, self._base_url)
        return await self._service.run(self._export, title, _read_list(body), name, base)

    def _export(self, title: str, values: Sequence[object], name: str, base: str) -> Response:
        turns = [read_turn(value, self._service).for_export(base) for value in values]
        body, form = export_thread(title, turns, name), THREAD_FORMATS[name]
        return file_response(body, title, form.suffix, form.media_type)

    async def export_one(self, request: Request) -> Response:
        """Return a stored answer as a file, in one of `rag.serve.turns.EXPORTS`."""
        name = request.path_params["format"]
        check_export(name)
        value, base = await read_json(request), base_of(request, self._base_url)
        return await self._service.run(self._export_one, value, name, base)

    def _export_one(self, value: object, name: str, base: str) -> Response:
        return export_turn(read_turn(value, self._service), name, base)


def _read_object(body: object) -> dict[str, object]:
    if not isinstance(body, dict):
        raise UsageError("a thread should be an object")
    return body


def _read_list(body: dict[str, object]) -> list[object]:
    turns = body.get("turns")
    if not isinstance(turns, list) or len(turns) > MAX_TURNS:
        raise UsageError(f"'turns' should be a list of at most {MAX_TURNS}")
    return turns
