"""The API of OpenAI over a service: chat completions, responses and models, for programs that speak it already.

The last user message is the question, the turns before it are the history; system messages are ignored, as systems have
their own prompts. Sampling options (`temperature`, `max_tokens`, `stop`, ...), tools that need not be called, and
unknown fields are ignored too, as many programs always send them; the header `X-Ignored-Parameters` names them. What
cannot be done and would change what an answer is (`n` above 1, a tool that must be called, images, JSON output) is
refused with 400.

The text begins with the short answer, if there is a certain one, and a blank line. It has markers (`[1]`, numbered by
first appearance), each with a `url_citation` annotation whose URL opens the
passage with the spans marked that this sentence cites. `cite` (an option of the server, and a field of a request) is
for programs that drop annotations: with `links` and `footnotes` the text is Markdown with a list of sources, and with
`open-webui` sources come as Open WebUI reads them. A stream has each sentence, with its annotations, when it is
complete and its citations are checked; text, annotations and `attributed_rag` are the same as without streaming. Only
an annotation in a delta of chat completions has an `index` too, by which the official clients accumulate lists.
"""

import asyncio
import json
import re
import time
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar, get_args

from fastapi.routing import APIRoute
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from autoais.base.io.jsonl import dumps
from rag.answer.export.escaping import one_line
from rag.answer.export.markdown import with_footnotes, with_links
from rag.answer.export.open_webui import source_cards
from rag.answer.export.openai import chat_annotations, response_annotations
from rag.answer.export.rendering import Rendered, short_answer_line, with_markers
from rag.answer.export.sources import NO_ANSWER, NOT_ANSWERED
from rag.base.errors import UsageError, UserError
from rag.base.types import Turn
from rag.serve.http import (
    EventStream,
    base_of,
    cancel_on_disconnect,
    error_parts,
    event,
    json_response,
    last_item,
    retry_header,
)
from rag.serve.invalid import field_path, wrong_field
from rag.serve.links import links_to
from rag.serve.openai_schemas import (
    ERRORS,
    ChatCompletion,
    CompletionDetails,
    ModelList,
    ModelObject,
    PromptDetails,
    ResponseObject,
    body_of,
)
from rag.serve.service import Reply, Service

Cite = Literal["markers", "links", "footnotes", "open-webui"]
Endpoint = Callable[[Request], Awaitable[Response]]

_PATIENCE = 5.0  # seconds before a stream begins without its answer; errors until then have their own status
_PING = 10.0  # seconds between comments in a stream that waits, so that nobody takes it for dead
_TURNS = 20  # the last turns of a history
_MARKERS = re.compile(r" ?(?:\[\[\d+\]\]\([^)\s]*\)|\[\^?\d{1,3}\]|\\\[\d{1,3}\\\])")
_SOURCES = re.compile(r"\n\n(?:Sources:\n\n1\. |\[\^1\]: ).*\Z", re.DOTALL)
_UNIONS = ("str", "list[_Part]", "list[_Message]")  # how pydantic names the kinds of a field
_TOOL_CHOICES = ("tool_choice", "function_call")
_PARAMETER = re.compile(r"\w[\w.-]{0,63}", re.ASCII)  # a name that may stand in a header
_MAX_IGNORED = 20  # names in the header
_WITH_LIST = {"links": with_links, "footnotes": with_footnotes}
_STREAM: dict[int | str, dict[str, Any]] = {200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}}
_UNSUPPORTED = ("audio", "background", "conversation", "previous_response_id", "prompt")


def routes(service: Service, *, base_url: str | None = None, cite: Cite = "markers") -> list[BaseRoute]:
    """Return the routes of the API; raises `UsageError` for another `cite`.

    `base_url` is the public address of the server (default: the request's own).
    """
    if cite not in get_args(Cite):
        raise UsageError(f"cite should be one of {', '.join(get_args(Cite))}, found {cite!r}")
    api = _API(service, base_url, cite)
    path_parameter = {"parameters": [{"name": "model", "in": "path", "required": True, "schema": {"type": "string"}}]}
    endpoints: list[tuple[str, Endpoint, str, type[BaseModel], dict[str, Any]]] = [
        ("/v1/chat/completions", api.chat, "POST", ChatCompletion, body_of(_ChatRequest)),
        ("/v1/responses", api.responses, "POST", ResponseObject, body_of(_ResponseRequest)),
        ("/v1/models", api.models, "GET", ModelList, {}),
        ("/v1/models/{model:path}", api.model, "GET", ModelObject, path_parameter),
    ]
    return [
        APIRoute(
            path,
            endpoint,
            methods=[method],
            response_model=model,
            responses={**ERRORS, **(_STREAM if method == "POST" else {})},
            openapi_extra=extra,
            tags=["OpenAI"],
        )
        for path, endpoint, method, model, extra in endpoints
    ]


# --- requests ----------------------------------------------------------------------------------------------------


class _RequestError(Exception):
    """A request that cannot be answered, with the field at fault."""

    def __init__(self, message: str, param: str | None = None, code: str | None = None, *, status: int = 400) -> None:
        super().__init__(message)
        self.param, self.code, self.status = param, code, status


class _Part(BaseModel):
    type: str
    text: str | None = None


class _Message(BaseModel):
    type: str = "message"
    role: str = ""
    content: str | list[_Part] | None = None


class _StreamOptions(BaseModel):
    include_usage: bool | None = None


class _ModelRequest(BaseModel):
    """The fields of both kinds of request."""

    model_config = ConfigDict(extra="allow")
    model: str
    stream: bool | None = None
    cite: Cite | None = None


class _ChatRequest(_ModelRequest):
    messages: list[_Message] = Field(min_length=1)
    n: int | None = None
    logprobs: bool | None = None
    modalities: list[str] | None = None
    response_format: dict[str, Any] | None = None
    stream_options: _StreamOptions | None = None


class _ResponseRequest(_ModelRequest):
    input: str | list[_Message]
    instructions: str | None = None
    metadata: dict[str, str] | None = None
    text: dict[str, Any] | None = None


R = TypeVar("R", bound=_ModelRequest)


async def _read(request: Request, kind: type[R]) -> R:
    """Return the parsed body; raises `_RequestError` if it is invalid, or asks for what is not supported."""
    try:
        body = json.loads(await request.body())
    except (ValueError, RecursionError):
        raise _RequestError("the body should be JSON") from None
    if not isinstance(body, dict):
        raise _RequestError("the body should be a JSON object")
    try:
        parsed = kind.model_validate(body)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        path = field_path(tuple(part for part in first["loc"] if part not in _UNIONS))
        raise _RequestError(wrong_field(dict(first), path), path) from None
    for name in _TOOL_CHOICES:
        if body.get(name) not in (None, "none", "auto"):
            message = f"{name}: should be none or auto, as this model calls no tools"
            raise _RequestError(message, name, "unsupported_value")
    for name in _UNSUPPORTED:
        if body.get(name):
            raise _RequestError(f"{name}: not supported here", name, "unsupported_parameter")
    return parsed


def _conversation(messages: Sequence[_Message], field: str, service: Service) -> tuple[str, list[Turn]]:
    """The question and the turns before it; turns without an answer are left out, as in `rag.answer.conversation`."""
    utterances: list[tuple[str, str]] = []
    for number, message in enumerate(messages):
        path = f"{field}[{number}]"
        if message.type != "message":
            raise _RequestError(f"{path}: only messages are supported, found type {message.type[:50]!r}", path)
        if message.role in ("system", "developer"):
            continue
        if message.role not in ("user", "assistant"):
            problem = f"found {message.role[:50]!r}"
            raise _RequestError(f"{path}.role: should be user, assistant or system, {problem}", f"{path}.role")
        utterances.append((message.role, _text(message, path)))
    last = max((index for index, (role, _) in enumerate(utterances) if role == "user"), default=None)
    if last is None:
        raise _RequestError(f"{field}: no user message", field)
    turns: list[Turn] = []
    for role, text in utterances[:last]:
        if role == "user":
            turns.append(Turn(text[: service.limits.question], ""))
        elif turns:
            answer = "" if text.startswith((NOT_ANSWERED, NO_ANSWER)) else _answer_of(text)
            before = f"{turns[-1].answer}\n" if turns[-1].answer else ""
            turns[-1] = Turn(turns[-1].question, (before + answer)[: service.limits.text])
    return utterances[last][1], [turn for turn in turns if turn.question.strip() and turn.answer.strip()][-_TURNS:]


def _answer_of(text: str) -> str:
    """What an earlier answer says, without markers and sources: only the short answer, if it begins with one."""
    body = _SOURCES.sub("", text)
    first, _, rest = body.partition("\n\n")
    short = first.removeprefix("**").removesuffix("**")
    is_short_answer = short and "\n" not in short and _MARKERS.search(short) is None and short in one_line(rest)
    return short if is_short_answer else _MARKERS.sub("", body)


def _text(message: _Message, path: str) -> str:
    if not isinstance(message.content, list):
        return message.content or ""
    for number, part in enumerate(message.content):
        if part.type not in ("text", "input_text", "output_text", "refusal"):
            part_path = f"{path}.content[{number}]"
            raise _RequestError(
                f"{part_path}: only text is supported, found {part.type[:50]!r}", part_path, "unsupported_content"
            )
    return "\n".join(part.text or "" for part in message.content)


# --- the endpoints -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Rendition:
    """An answer as it is sent, whatever the endpoint."""

    reply: Reply
    rendering: Rendered
    draft: Rendered  # the sentences without the list of sources, which is sent last
    cards: list[dict[str, Any]] | None  # the sources for Open WebUI, which are sent last too

    @property
    def details(self) -> dict[str, Any]:
        """What OpenAI's objects have no field for. The official clients pass it on."""
        answer = self.reply.answer
        return {
            "abstained": answer.abstained,
            "failed": answer.failed,
            "reason": answer.reason,
            "confidence": None if answer.confidence is None else round(answer.confidence, 6),
            "question": self.reply.question,
            "index": self.reply.index,
            "system": self.reply.system,
        }

    @property
    def cut(self) -> bool:
        """Whether the language model stopped at its limit of tokens."""
        return bool(self.reply.answer.trace.get("stopped"))

    @property
    def tokens(self) -> tuple[int, int]:
        """Tokens that the language model read and wrote; zero for a system without one."""
        tokens = self.reply.answer.trace.get("tokens")
        counts = tokens if isinstance(tokens, Mapping) else {}
        return int(counts.get("read") or 0), int(counts.get("written") or 0)


class _API:
    def __init__(self, service: Service, base_url: str | None, cite: Cite) -> None:
        self._service = service
        self._base_url = base_url
        self._cite: Cite = cite
        self._started = int(time.time())

    async def chat(self, request: Request) -> Response:
        """Answer the last message of a user with citations, as a chat completion."""
        try:
            chat_request = await _read(request, _ChatRequest)
            _check_chat(chat_request)
            renditions = self._ask(
                request, chat_request, *_conversation(chat_request.messages, "messages", self._service)
            )
        except (_RequestError, UserError) as error:
            return _refusal(error)
        usage = chat_request.stream_options is not None and bool(chat_request.stream_options.include_usage)
        wire = _Chat(chat_request.model, usage)
        return _warn(await _respond(request, renditions, wire, stream=bool(chat_request.stream)), chat_request)

    async def responses(self, request: Request) -> Response:
        """Answer the last message of a user with citations, as a response."""
        try:
            response_request = await _read(request, _ResponseRequest)
            _check_format((response_request.text or {}).get("format"), "text.format")
            user_input = response_request.input
            messages = [_Message(role="user", content=user_input)] if isinstance(user_input, str) else user_input
            renditions = self._ask(request, response_request, *_conversation(messages, "input", self._service))
        except (_RequestError, UserError) as error:
            return _refusal(error)
        wire = _Responses(response_request)
        return _warn(await _respond(request, renditions, wire, stream=bool(response_request.stream)), response_request)

    async def models(self, _: Request) -> Response:
        """List the models: each system, and each system over each index."""
        return json_response({"object": "list", "data": [self._model(name) for name in self._names()]})

    async def model(self, request: Request) -> Response:
        """Describe one model."""
        name = request.path_params["model"]
        return json_response(self._model(name)) if name in self._names() else _refusal(self._unknown(name))

    def _ask(
        self, request: Request, model_request: _ModelRequest, question: str, history: Sequence[Turn]
    ) -> AsyncGenerator["_Rendition", None]:
        """Begin the work, which yields the answer so far, and at last the whole answer.

        Raises `_RequestError` for a model that is not served, `BusyError` if too many questions wait.
        """
        if model_request.model not in self._names():
            raise self._unknown(model_request.model)
        system, index = self._names()[model_request.model]
        base = base_of(request, self._base_url)
        cite = model_request.cite or self._cite
        has_cards = cite == "open-webui" and isinstance(model_request, _ChatRequest)

        def renditions() -> Iterator[_Rendition]:
            rendition: _Rendition | None = None
            for reply in self._service.stream(question, index, system, history=history):
                if rendition is None or reply.answer is not rendition.reply.answer:
                    if rendition and rendition.draft.text and short_answer_line(rendition.reply.answer) is None:
                        # The text has begun without a short answer: it is too late for one.
                        reply = replace(reply, answer=replace(reply.answer, short_answer=None))
                    rendition = _render(reply, base, cite, has_cards=has_cards)
                yield rendition

        return self._service.run_question(index, system, renditions)

    def _names(self) -> dict[str, tuple[str, str | None]]:
        """The models by name: each system over the first index, and over each index by name."""
        systems, indexes = self._service.systems, self._service.choices
        plain: dict[str, tuple[str, str | None]] = {system: (system, None) for system in systems}
        return plain | {f"{system}@{index}": (system, index) for system in systems for index in indexes}

    def _unknown(self, name: str) -> _RequestError:
        names = ", ".join(self._names())
        return _RequestError(f"no model {name[:100]!r}; there are: {names}", "model", "model_not_found", status=404)

    def _model(self, name: str) -> dict[str, Any]:
        return {"id": name, "object": "model", "created": self._started, "owned_by": "attributed-rag"}


def _check_chat(chat_request: _ChatRequest) -> None:
    if chat_request.n not in (None, 1):
        raise _RequestError(
            f"n: should be 1, as a question has one answer, found {chat_request.n}", "n", "unsupported_value"
        )
    if chat_request.logprobs:
        raise _RequestError("logprobs: answers have no log probabilities", "logprobs", "unsupported_value")
    if chat_request.modalities not in (None, [], ["text"]):
        raise _RequestError("modalities: only text is supported", "modalities", "unsupported_value")
    _check_format(chat_request.response_format, "response_format")


def _check_format(requested_format: object, field: str) -> None:
    """Raise `_RequestError` unless a text is wanted."""
    if requested_format is not None and not (
        isinstance(requested_format, dict) and requested_format.get("type") in (None, "text")
    ):
        raise _RequestError(
            f"{field}: a cited answer is text, as JSON has no place for citations; POST /v1/ask returns the answer "
            "with its sentences and citations as JSON",
            field,
            "unsupported_value",
        )


def _warn(response: Response, model_request: _ModelRequest) -> Response:
    """Name the parameters that were sent and have no effect, in a header."""
    sent = {**(model_request.model_extra or {}), "instructions": getattr(model_request, "instructions", None)}
    names = [
        name
        for name, value in sent.items()
        if value not in (None, "", [], {})
        and name not in (*_TOOL_CHOICES, *_UNSUPPORTED)
        and _PARAMETER.fullmatch(name)
    ]
    if names:
        response.headers["X-Ignored-Parameters"] = ", ".join(sorted(names)[:_MAX_IGNORED])
    return response


def _render(reply: Reply, base: str, cite: Cite, *, has_cards: bool) -> _Rendition:
    answer, link = reply.answer, links_to(base, reply.index)
    write = _WITH_LIST.get(cite)
    rendering = write(answer, link) if write else with_markers(answer, link)
    draft = write(answer, link, sources=False) if write else rendering
    if has_cards:  # Open WebUI would make cards of the annotations too
        rendering, draft = Rendered(rendering.text), Rendered(draft.text)
    cards = source_cards(answer, link) if has_cards else None
    return _Rendition(reply, rendering, draft if answer.sentences else Rendered(""), cards)


async def _respond(
    request: Request, renditions: AsyncGenerator[_Rendition, None], wire: "_Chat | _Responses", *, stream: bool
) -> Response:
    """Return a whole answer, or a stream of it. An error before the first text has its own status in both."""
    try:
        if not stream:
            return json_response(wire.full(await cancel_on_disconnect(request, last_item(renditions))))
        first = asyncio.ensure_future(anext(renditions))
        try:
            await asyncio.wait({first}, timeout=_PATIENCE)
        except asyncio.CancelledError:
            first.cancel()
            raise
        if first.done():
            first.result()
    except UserError as error:
        return _refusal(error)
    return EventStream(_events(first, renditions, wire))


async def _events(
    first: "asyncio.Future[_Rendition]", renditions: AsyncGenerator[_Rendition, None], wire: "_Chat | _Responses"
) -> AsyncGenerator[bytes, None]:
    """Yield each sentence with its annotations, then the end; comments while there is nothing else to send."""
    clock = asyncio.get_running_loop().time
    task, sent, quiet = first, Rendered(""), clock()
    try:
        for chunk in wire.begin():
            yield chunk
        while True:
            await asyncio.wait({task}, timeout=max(0.0, quiet + _PING - clock()))
            if clock() >= quiet + _PING:
                quiet = clock()
                yield b": the answer is being written\n\n"
            if not task.done():
                continue
            try:
                rendition = task.result()
            except StopAsyncIteration:
                break
            task = asyncio.ensure_future(anext(renditions))
            if rendition.draft.text != sent.text and _is_beginning(sent, rendition.draft):
                for chunk in wire.text(rendition.draft, sent):
                    yield chunk
                sent, quiet = rendition.draft, clock()
        if not _is_beginning(sent, rendition.rendering):
            yield wire.failure("the answer changed while it was written; ask again")
            return
        for chunk in (*wire.text(rendition.rendering, sent), *wire.end(rendition)):
            yield chunk
    except UserError as error:
        yield wire.failure(error_parts(error)[2])
    finally:  # also of a client that hung up
        if task.done():
            await renditions.aclose()
        else:
            task.cancel()


def _is_beginning(sent: Rendered, longer: Rendered) -> bool:
    """Whether a text begins with what was sent, and its annotations too."""
    annotations = response_annotations(sent)
    return longer.text.startswith(sent.text) and response_annotations(longer)[: len(annotations)] == annotations


# --- chat completions --------------------------------------------------------------------------------------------


class _Chat:
    """One chat completion, as one object or as events."""

    def __init__(self, model: str, usage: bool = False) -> None:
        self._head = {"id": _id("chatcmpl-"), "created": int(time.time()), "model": model}
        self._usage = usage

    def full(self, rendition: _Rendition) -> dict[str, Any]:
        message = {
            "role": "assistant",
            "content": rendition.rendering.text,
            "refusal": None,
            "annotations": chat_annotations(rendition.rendering),
        }
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _finish(rendition)}
        usage = {"usage": _chat_usage(rendition), "attributed_rag": rendition.details}
        sources = {} if rendition.cards is None else {"sources": rendition.cards}
        return self._head | {"object": "chat.completion", "choices": [choice]} | usage | sources

    def begin(self) -> Iterator[bytes]:
        yield self._chunk({"role": "assistant", "content": ""})

    def text(self, longer: Rendered, sent: Rendered) -> Iterator[bytes]:
        delta: dict[str, Any] = {"content": longer.text[len(sent.text) :]}
        count = len(chat_annotations(sent))
        if annotations := chat_annotations(longer)[count:]:
            delta["annotations"] = [{"index": index} | value for index, value in enumerate(annotations, count)]
        if any(delta.values()):
            yield self._chunk(delta)

    def end(self, rendition: _Rendition) -> Iterator[bytes]:
        for card in rendition.cards or ():
            yield self._without_choice(event={"type": "source", "data": card})
        yield self._chunk({}, finish=_finish(rendition), attributed_rag=rendition.details)
        if self._usage:
            yield self._without_choice(usage=_chat_usage(rendition))
        yield b"data: [DONE]\n\n"

    def failure(self, message: str) -> bytes:
        return _data({"error": {"message": message, "type": "server_error", "param": None, "code": None}})

    def _without_choice(self, **fields: object) -> bytes:
        return _data(self._head | {"object": "chat.completion.chunk", "choices": []} | fields)

    def _chunk(self, delta: dict[str, Any], finish: str | None = None, **extra: object) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        usage = {"usage": None} if self._usage else {}
        return _data(self._head | {"object": "chat.completion.chunk", "choices": [choice]} | usage | extra)


def _finish(rendition: _Rendition) -> str:
    return "length" if rendition.cut else "stop"


def _chat_usage(rendition: _Rendition) -> dict[str, Any]:
    """The tokens, with the details that the official clients know; ours are of text, and never cached."""
    input_tokens, output_tokens = rendition.tokens
    return {
        "prompt_tokens": input_tokens,
        "completion_tokens": output_tokens,
        "total_tokens": input_tokens + output_tokens,
        "prompt_tokens_details": dict.fromkeys(PromptDetails.model_fields, 0),
        "completion_tokens_details": dict.fromkeys(CompletionDetails.model_fields, 0),
    }


# --- responses ---------------------------------------------------------------------------------------------------


class _Responses:
    """One response, as one object or as events."""

    def __init__(self, response_request: _ResponseRequest) -> None:
        self._head = {
            "id": _id("resp_"),
            "object": "response",
            "created_at": int(time.time()),
            "model": response_request.model,
            "instructions": response_request.instructions,
            "metadata": response_request.metadata or {},
            "error": None,
            "incomplete_details": None,
            "parallel_tool_calls": False,
            "tool_choice": "none",
            "tools": [],
            "text": {"format": {"type": "text"}},
            "truncation": "disabled",
            "previous_response_id": None,
            "store": False,
        }
        self._item = _id("msg_")
        self._place = {"item_id": self._item, "output_index": 0, "content_index": 0}
        self._opened = False
        self._sequence = -1

    def full(self, rendition: _Rendition) -> dict[str, Any]:
        part = self._part(rendition.rendering.text, response_annotations(rendition.rendering))
        input_tokens, output_tokens = rendition.tokens
        usage = {
            "input_tokens": input_tokens,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": output_tokens,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": input_tokens + output_tokens,
        }
        final_fields = {"completed_at": int(time.time()), "usage": usage, "attributed_rag": rendition.details}
        if rendition.cut:
            final_fields["incomplete_details"] = {"reason": "max_output_tokens"}
        status = "incomplete" if rendition.cut else "completed"
        return self._response(status, [self._message(status, [part])]) | final_fields

    def begin(self) -> Iterator[bytes]:
        for name in ("created", "in_progress"):
            yield self._event(f"response.{name}", response=self._response("in_progress", []))

    def text(self, longer: Rendered, sent: Rendered) -> Iterator[bytes]:
        if not self._opened:
            self._opened = True
            yield self._event("response.output_item.added", output_index=0, item=self._message("in_progress", []))
            yield self._event("response.content_part.added", **self._place, part=self._part("", []))
        if text := longer.text[len(sent.text) :]:
            yield self._event("response.output_text.delta", **self._place, delta=text, logprobs=[])
        count = len(response_annotations(sent))
        for index, annotation in enumerate(response_annotations(longer)[count:], count):
            fields = {"annotation_index": index, "annotation": annotation}
            yield self._event("response.output_text.annotation.added", **self._place, **fields)

    def end(self, rendition: _Rendition) -> Iterator[bytes]:
        part = self._place
        full = self.full(rendition)
        (message,) = full["output"]
        (content,) = message["content"]
        yield self._event("response.output_text.done", **part, text=content["text"], logprobs=[])
        yield self._event("response.content_part.done", **part, part=content)
        yield self._event("response.output_item.done", output_index=0, item=message)
        yield self._event(f"response.{full['status']}", response=full)

    def failure(self, message: str) -> bytes:
        response = self._response("failed", []) | {"error": {"code": "server_error", "message": message}}
        return self._event("response.failed", response=response)

    def _response(self, status: str, output: list[dict[str, Any]]) -> dict[str, Any]:
        return self._head | {"status": status, "output": output}

    def _message(self, status: str, content: list[dict[str, Any]]) -> dict[str, Any]:
        return {"id": self._item, "type": "message", "role": "assistant", "status": status, "content": content}

    def _part(self, text: str, annotations: list[dict[str, Any]]) -> dict[str, Any]:
        return {"type": "output_text", "text": text, "annotations": annotations, "logprobs": []}

    def _event(self, kind: str, **fields: object) -> bytes:
        self._sequence += 1
        return event(kind, {"type": kind, "sequence_number": self._sequence, **fields})


# --- what is sent ------------------------------------------------------------------------------------------------


def _data(value: object) -> bytes:
    """A server-sent event without a name, as chat completions have them."""
    return f"data: {dumps(value)}\n\n".encode()


def _id(prefix: str) -> str:
    return prefix + uuid.uuid4().hex


def _refusal(error: "_RequestError | UserError") -> Response:
    """The response of an error in the shape of OpenAI's API."""
    if isinstance(error, _RequestError):
        status, param, code, message = error.status, error.param, error.code, str(error)
    else:
        param = None
        status, code, message = error_parts(error)
    kind = "invalid_request_error" if status < 500 else "server_error"
    error_fields = {"message": message, "type": kind, "param": param, "code": code}
    return json_response({"error": error_fields}, status, retry_header(status))
