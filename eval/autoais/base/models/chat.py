"""Client for servers with OpenAI's chat completions API, with timeouts, retries and usage counts."""

import asyncio
import json
import math
import os
import random
import re
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeVar
from urllib.parse import urlsplit

import httpx2

from autoais.base.errors import FormatError, UserError
from autoais.base.io.jsonl import parse_object
from autoais.base.models import pace
from autoais.base.network import Limits, RequestError, excerpt, open_client, stream_async
from autoais.base.terminal import note

T = TypeVar("T")
OnText = Callable[[str], None]
Structure = Literal["json_schema", "json_object", "none"]
"""How a server was asked to hold a reply to a schema: by the schema, by "any JSON object", or by the prompt alone."""

_OPENAI = "https://api.openai.com/v1"
_TRANSIENT = {408, 409, 425, 429}  # statuses worth a retry, as are 5xx
_BUSY = {408, 429, 503, 504}  # statuses of a server that has too much to do
_FIXES = {  # statuses that need a person, and what to do
    401: "set OPENAI_API_KEY to a key that the server accepts",
    402: "the account needs credit",
    403: "the key has no access",
    404: "does the server have that model, and should OPENAI_BASE_URL end in /v1?",
    405: "should OPENAI_BASE_URL end in /v1?",
} | dict.fromkeys((301, 302, 307, 308), "set OPENAI_BASE_URL to the new address")
_OPTIONAL = ("max_tokens", "temperature", "seed", "stop", "stream_options")  # parameters a server may not support
_STRUCTURES: tuple[Structure, ...] = ("json_schema", "json_object")  # types of `response_format`, the best first
_LIMITS = ("maxLength", "minItems", "maxItems")  # keywords of a schema that a server may not support
_INVALID = {400, 422, 501}  # statuses of a server that does not take a parameter
# "Expected at most 500 enum values", "a constraint that has too many states", "compiled grammar is too large"
_SCHEMA = r"\b(?:schemas?|grammar|enums?|constraint)\b"
_SIZE = r"\b(?:too (?:many|large|big|long|complex)|at most|exceeds?|maximum|limits?)\b"
_SCHEMA_SIZE = re.compile(f"{_SCHEMA}[^\n]{{0,120}}{_SIZE}|{_SIZE}[^\n]{{0,40}}{_SCHEMA}", re.IGNORECASE)
_TOO_LONG = re.compile(
    r"context.?(?:length|size|window)|too many tokens|too long|inputs` (?:tokens|must)", re.IGNORECASE
)
_MAX_REPLY_BYTES = 4 << 20
_MAX_WAIT = 60.0  # seconds between retries, even if Retry-After asks for more
_BEAT = 1.0  # seconds between two calls of `on_text` while a server is silent
_MIN_FAILURES = 3  # identical failures before giving up on a server that has never answered


@dataclass(frozen=True, slots=True)
class Request:
    """One chat: `messages` are (role, content); `schema` is a JSON Schema for the reply, if the server supports it.

    The reply ends before the first occurrence of a text in `stop`; OpenAI accepts at most four.
    """

    model: str
    messages: tuple[tuple[str, str], ...]
    max_tokens: int = 512
    temperature: float = 0.0
    seed: int = 0
    schema: Mapping[str, Any] | None = None
    stop: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reply:
    """The text of a reply; `cut` if it was truncated at the token limit.

    Token counts are the server's, None if it reports none. They are ignored when replies are compared, and so is
    `structure`, the way in which the server was asked to follow the schema of the request.
    """

    text: str
    cut: bool = False
    prompt_tokens: int | None = field(default=None, compare=False)
    completion_tokens: int | None = field(default=None, compare=False)
    structure: Structure = field(default="none", compare=False)


@dataclass(frozen=True, slots=True)
class NoReply:
    """The reason for a missing reply, in one line, and whether the server found the prompt or the schema too large."""

    reason: str
    is_prompt_too_long: bool = field(default=False, compare=False)
    is_schema_too_large: bool = field(default=False, compare=False)


@dataclass(slots=True)
class Usage:
    """Requests and tokens used so far, with token counts from the server."""

    requests: int = 0
    retries: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0

    def __str__(self) -> str:
        return (
            f"{self.requests:,} {'request' if self.requests == 1 else 'requests'}, "
            f"{self.retries:,} {'retry' if self.retries == 1 else 'retries'}, "
            f"{self.prompt_tokens:,} prompt tokens, {self.completion_tokens:,} completion tokens"
        )


class _RetryableError(Exception):
    """A failure worth a retry; `wait`: the delay in seconds that the server asks for; `busy`: it has too much to do."""

    def __init__(self, reason: str, wait: float = 0.0, *, busy: bool = False) -> None:
        super().__init__(reason)
        self.wait = min(wait, _MAX_WAIT)
        self.busy = busy


class ChatClient:
    """A client for one server; `base_url` and `api_key` default to OPENAI_BASE_URL and OPENAI_API_KEY.

    At most `concurrency` requests run at once. Each has `timeout` seconds from first to last byte and up to `retries`
    retries, the first after `backoff` seconds and each later one after twice the time (with jitter), or
    after the delay in Retry-After. `endpoint` is host and path of the address, without a path of just `/v1`. `usage`
    holds counts. For reports, `served` names the models that replied and `refused` the parameters that the server
    rejected. A server that rejects a JSON Schema (`json_schema` in `refused`) is asked for any JSON object, and if it
    rejects that too (`json_object`), by the prompt alone; a line on stderr says so once. Errors never contain the key.
    Threads may share a client; each may have `concurrency` requests running, or fewer if its code has a pace
    (`autoais.base.models.pace`).
    """

    def __init__(
        self,
        base_url: str | None = None,
        api_key: str | None = None,
        *,
        concurrency: int = 8,
        timeout: float = 60.0,
        retries: int = 5,
        backoff: float = 0.5,
    ) -> None:
        self._key = (api_key or os.environ.get("OPENAI_API_KEY") or "").strip()
        if not re.fullmatch(r"[!-~]*", self._key):
            raise UserError("OPENAI_API_KEY contains a space or a character outside printable ASCII")
        url = base_url or os.environ.get("OPENAI_BASE_URL")
        if not url and not self._key:
            raise UserError("no model server: set OPENAI_BASE_URL (such as http://localhost:8000/v1) or OPENAI_API_KEY")
        if concurrency < 1 or timeout <= 0 or retries < 0 or backoff < 0:
            raise UserError(
                "chat client: concurrency must be at least 1, timeout positive, retries and backoff not negative"
            )
        self.base_url = check_base_url(url or _OPENAI, "OPENAI_BASE_URL", "http://host:port/v1")
        address = urlsplit(self.base_url)
        self.endpoint = address.netloc + ("" if address.path == "/v1" else address.path)
        self.concurrency = concurrency
        self.timeout = timeout
        self.retries = retries
        self.backoff = backoff
        self.usage = Usage()
        self.served: list[str] = []
        self.refused: frozenset[str] = frozenset()
        self._counting = threading.Lock()
        self._jitter = random.Random(0)
        self._reached = self._answered = False
        self._accepted: set[str] = set()  # the types of `response_format` that the server has taken
        self._last_failure, self._alike = "", 0  # how the last request failed, and how many did so in a row

    def answer(self, requests: Sequence[Request]) -> list[Reply | NoReply]:
        """A reply, or the reason it is missing, for each request in order; see `answer_async`.

        If an event loop is already running (in a notebook), it blocks until all replies have arrived.
        """
        return _run(self.answer_async(requests)) if requests else []

    def stream(self, request: Request, on_text: OnText) -> Reply | NoReply:
        """Like `answer` for one request; `on_text` gets each piece of the text as it arrives (server-sent events).

        A failed request is retried only if no text has arrived yet. An exception in `on_text` ends the request and is
        re-raised here; so that it can, `on_text` also gets an empty text each second. If the server does not stream,
        the text comes whole.
        """
        (reply,) = _run(self._answer([request], on_text))
        return reply

    async def answer_async(self, requests: Sequence[Request]) -> list[Reply | NoReply]:
        """A reply, or the reason it is missing, for each request in order.

        Raises `UserError` only if no request has succeeded yet and a person must act: the server cannot be reached,
        the server answers 401, 403, 404 or the like, or `concurrency` requests in a row (at least 3) have failed the
        same way after all their retries.
        """
        return await self._answer(requests, None)

    async def _answer(self, requests: Sequence[Request], on_text: OnText | None) -> list[Reply | NoReply]:
        replies: dict[int, Reply | NoReply] = {}
        waiting = iter(enumerate(requests))
        first_reply, completion = asyncio.Event(), asyncio.Event()
        if self._answered:
            first_reply.set()

        async def work(first: bool) -> None:
            if not first:
                await first_reply.wait()
            for index, request in waiting:
                replies[index] = await self._ask(http, request, first_reply, on_text)
            completion.set()

        async def beat(tell: OnText) -> None:
            while not completion.is_set():
                try:
                    await asyncio.wait_for(completion.wait(), _BEAT)
                except TimeoutError:
                    tell("")

        async with open_client(self.concurrency) as http:
            # The first request goes alone, to learn which parameters the server accepts.
            workers = [asyncio.create_task(work(n == 0)) for n in range(min(self.concurrency, len(requests)))]
            if on_text is not None:
                workers.append(asyncio.create_task(beat(on_text)))
            try:
                await asyncio.gather(*workers)
            finally:
                for worker in workers:
                    worker.cancel()
                await asyncio.gather(*workers, return_exceptions=True)
        return [replies[index] for index in range(len(requests))]

    def excerpt(self, text: str, length: int = 160) -> str:
        """The beginning of a text on one printable line, without the key, for error messages and reasons."""
        return excerpt(text, self._key, length)

    async def _ask(
        self, http: httpx2.AsyncClient, request: Request, first_reply: asyncio.Event, on_text: OnText | None
    ) -> Reply | NoReply:
        tries, has_text = 0, False

        def forward(piece: str) -> None:
            nonlocal has_text
            has_text = True
            if on_text is not None:
                on_text(piece)

        while True:
            tries += 1
            try:
                reply = await self._ask_at_pace(http, request, None if on_text is None else forward, is_retry=tries > 1)
                first_reply.set()
                return reply
            except _RetryableError as error:
                first_reply.set()
                if tries > self.retries or has_text:
                    reason = f"{error} (in the middle of the reply)" if has_text else f"{error} (tried {tries} times)"
                    self._count_failure(request.model, reason, str(error).partition(":")[0])
                    return NoReply(reason)
                wait = self.backoff * 2 ** (tries - 1) * (0.5 + self._jitter.random())
                with self._counting:
                    self.usage.retries += 1
                await asyncio.sleep(min(max(wait, error.wait), _MAX_WAIT))

    async def _ask_at_pace(
        self, http: httpx2.AsyncClient, request: Request, on_text: OnText | None, *, is_retry: bool
    ) -> Reply | NoReply:
        """Ask once, at the pace of the code that calls."""
        pacer = pace.current()
        if pacer is None:
            return await self._once(http, request, on_text)
        ticket = await pacer.send(is_retry=is_retry)
        try:
            reply = await self._once(http, request, on_text)
        except BaseException as error:
            if isinstance(error, _RetryableError):
                pacer.add_failure(ticket, busy=error.busy, wait=error.wait)
            else:
                pacer.add_failure(ticket)
            raise
        if isinstance(reply, NoReply):
            pacer.add_failure(ticket)
        else:
            tokens = reply.completion_tokens
            pacer.add_reply(ticket, estimated_tokens(reply.text) if tokens is None else tokens)
        return reply

    def _count_failure(self, model: str, reason: str, failure: str) -> None:
        """Raise `UserError` if the server has never answered and enough requests in a row failed the same way."""
        self._alike = self._alike + 1 if failure == self._last_failure else 1
        self._last_failure = failure
        if not self._answered and self._alike >= max(_MIN_FAILURES, self.concurrency):
            raise UserError(
                f"{self.base_url}, model {model!r}: no reply yet, {self._alike} requests failed the same way: {reason}"
                "; check the server, or set a longer timeout or more retries"
            )

    async def _once(self, http: httpx2.AsyncClient, request: Request, on_text: OnText | None) -> Reply | NoReply:
        omissions = self.refused
        while True:
            body = _body(request, omissions, stream=on_text is not None)
            response = await self._post(http, body, on_text)
            is_schema_too_large = _is_schema_too_large(response, body)
            rejections = frozenset() if is_schema_too_large else self._find_rejections(response, body)
            if not rejections:
                break
            omissions |= rejections
        structure = _structure(body)
        if response.status == 200:
            reply = self._reply(response.content)
            if isinstance(reply, Reply):
                reply = replace(reply, structure=structure)
                if on_text is not None and not response.is_stream and reply.text:
                    on_text(reply.text)
            self._learn(omissions, structure, request)
            return reply
        message = self._error_message(response.content)
        reason = f"the server {response.verb}" + (f": {message}" if message else "")
        if response.status in _TRANSIENT or response.status >= 500:
            raise _RetryableError(reason, response.retry_after, busy=response.status in _BUSY)
        if response.status in _FIXES and not self._answered:
            raise UserError(f"{self.base_url}, model {request.model!r}: {reason}; {_FIXES[response.status]}")
        is_prompt_too_long = not is_schema_too_large and _TOO_LONG.search(reason) is not None
        return NoReply(reason, is_prompt_too_long, is_schema_too_large)

    def _learn(self, omissions: frozenset[str], structure: Structure, request: Request) -> None:
        """Remember what the server rejected before it replied, and say once that it takes no schema."""
        with self._counting:
            new_omissions = omissions - self.refused
            self.refused |= omissions
            self._answered = True
            self._accepted.add(structure)
        if request.schema is not None and new_omissions.intersection(_STRUCTURES):
            form = "any JSON object" if structure == "json_object" else "the prompt alone"
            note(
                f"{self.base_url}, model {request.model!r}: the server takes no JSON Schema for a reply "
                f"(response_format); its form is asked for by {form}"
            )

    async def _post(self, http: httpx2.AsyncClient, body: Mapping[str, Any], on_text: OnText | None) -> "_Response":
        """Send a request; an error that a server reports inside of a response of status 200 has its own status."""
        with self._counting:
            self.usage.requests += 1
        url, request_body = f"{self.base_url}/chat/completions", json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        content = bytearray()
        events: _Events | None = None
        try:
            limits = Limits(self.timeout, _MAX_REPLY_BYTES)
            async with stream_async(http, url, request_body, headers, limits) as (head, blocks):
                encoding = head.headers.get("Content-Encoding", "identity").strip().lower()
                if encoding not in ("", "identity") and head.status == 200:
                    raise _RetryableError(f"the reply is compressed ({encoding[:20]!r}), which was not asked for")
                if on_text is not None and head.status == 200 and head.content_type == "text/event-stream":
                    events = _Events(on_text)
                async for block in blocks:
                    if events is None:
                        content += block
                    else:
                        events.feed(block)
            response_body = bytes(content) if events is None else events.body()
        except RequestError as error:
            reason = self.excerpt(error.reason)
            if not error.is_connected and not self._reached:
                way_out = "start the server or set OPENAI_BASE_URL"
                raise UserError(f"cannot connect to {self.base_url} ({reason}); {way_out}") from None
            raise _RetryableError(reason, busy=not error.is_too_large) from None
        except _EventError as error:
            self._reached = True
            if events is not None and events.has_text:
                raise _RetryableError(f"the server reported an error: {self._error_message(error.event)}") from None
            return _Response(error.status, error.event, 0.0, is_stream=True, verb="reported an error")
        self._reached = True
        if head.status == 200 and events is None and (status := _error_status(response_body)) is not None:
            return _Response(status, response_body, head.retry_after, is_stream=False, verb="reported an error")
        return _Response(head.status, response_body, head.retry_after, events is not None, f"answered {head.status}")

    def _find_rejections(self, response: "_Response", body: Mapping[str, Any]) -> frozenset[str]:
        """The parameters to omit after a 400, 422 or 501, and the keywords of the schema.

        These are the parameters named in the response. The type of `response_format` is also omitted if no parameter is
        named, but not if the prompt is too long, and never once the server has accepted it.
        """
        if response.status not in _INVALID:
            return frozenset()
        text = response.content.decode("utf-8", "replace")
        names = frozenset(name for name in _OPTIONAL if name in body and name in text)
        structure = _structure(body)
        if structure == "none" or structure in self._accepted:
            return names
        if structure == "json_schema":
            schema = json.dumps(body["response_format"])
            if limits := frozenset(name for name in _LIMITS if f'"{name}"' in schema and name in text):
                return names | limits
        if "response_format" in text or structure in text or not (names or _TOO_LONG.search(text)):
            return names | {structure}
        return names

    def _error_message(self, content: bytes) -> str:
        """The message of an error body, or the beginning of the body."""
        text = content[:2000].decode("utf-8", "replace")
        try:
            error = _find_error(parse_object(content, "error"))
        except FormatError:
            return self.excerpt(text)
        return self.excerpt(text if error is None or error[0] is None else error[0])

    def _reply(self, content: bytes) -> Reply | NoReply:
        try:
            body = parse_object(content, "the reply")
        except FormatError as error:
            raise _RetryableError(f"{self.excerpt(str(error))}: {self._error_message(content)!r}") from None
        prompt_tokens = completion_tokens = None
        match body.get("usage"):
            case {"prompt_tokens": int(prompt), "completion_tokens": int(completion)}:
                prompt_tokens, completion_tokens = max(prompt, 0), max(completion, 0)
                with self._counting:
                    self.usage.prompt_tokens += prompt_tokens
                    self.usage.completion_tokens += completion_tokens
        names = [self.excerpt(str(body[key]), 80) for key in ("model", "system_fingerprint") if body.get(key)]
        model = " ".join(names)
        if model and model not in self.served and len(self.served) < 100:
            self.served.append(model)
        match body.get("choices"):
            case [{"message": dict(message)} as choice, *_] if (text := _text_of(message.get("content"))) is not None:
                if refusal := _refusal_of(message):
                    return NoReply(f"the model refused: {self.excerpt(refusal)}")
                if choice.get("finish_reason") == "content_filter":
                    return NoReply("the server filtered the reply")
                return Reply(text, choice.get("finish_reason") == "length", prompt_tokens, completion_tokens)
        raise _RetryableError(f"not a chat completion: {self._error_message(content)!r}")


@dataclass(frozen=True, slots=True)
class _Response:
    """A response: its status, or the one of an error that it reports; `verb` says which, for messages."""

    status: int
    content: bytes
    retry_after: float
    is_stream: bool
    verb: str


class _EventError(Exception):
    """The server sent an error within a stream."""

    def __init__(self, event: bytes, status: int) -> None:
        super().__init__()
        self.event, self.status = event, status


class _Events:
    """Calls `on_text` with the text of server-sent events, and assembles the body of the equivalent plain reply."""

    def __init__(self, on_text: OnText) -> None:
        self._tell = on_text
        self._rest = b""
        self._event = b""
        self._pieces: list[str] = []
        self._refusal: list[str] = []
        self._finish: str | None = None
        self._more: dict[str, Any] = {}
        self._has_choice = self._ended = False

    @property
    def has_text(self) -> bool:
        """Whether `on_text` was called."""
        return bool(self._pieces)

    def feed(self, content: bytes) -> None:
        """Read the next bytes; raises `_EventError` for an error event and `_RetryableError` for invalid events."""
        *lines, self._rest = (self._rest + content).split(b"\n")
        for line in lines:
            name, _, data = line.strip().partition(b":")
            if name == b"event":
                self._event = data.strip()
            elif name == b"error" or (name == b"data" and self._event == b"error"):  # the first is llama.cpp's
                raise _EventError(data.strip(), _error_status(data) or 500)
            elif name == b"data":
                self._take(data.strip())
            elif not name:
                self._event = b""

    def _take(self, data: bytes) -> None:
        if data == b"[DONE]":
            self._ended = True
            return
        try:
            event = parse_object(data, "a piece of the reply")
        except FormatError as error:
            raise _RetryableError(" ".join(str(error).split())[:160]) from None
        if _find_error(event) is not None:
            raise _EventError(data, _error_status(data) or 500)
        self._more |= {key: event[key] for key in ("model", "system_fingerprint", "usage") if event.get(key)}
        match event.get("choices"):
            case [{"delta": dict(delta)} as choice, *_]:
                self._has_choice = True
                if isinstance(finish := choice.get("finish_reason"), str):
                    self._finish, self._ended = finish, True
                self._refusal.append(_refusal_of(delta))
                piece = _text_of(delta.get("content"))
                if piece is None:
                    raise _RetryableError("not a piece of a reply: its content is no text")
                if piece:
                    self._pieces.append(piece)
                    self._tell(piece)

    def body(self) -> bytes:
        """The reply as one chat completion; raises `_RetryableError` if the stream ended before the reply did."""
        if not self._ended or not self._has_choice:
            raise _RetryableError("the stream ended before the reply did" if self._has_choice else "an empty stream")
        message = {"content": "".join(self._pieces), "refusal": "".join(self._refusal)}
        return json.dumps({**self._more, "choices": [{"message": message, "finish_reason": self._finish}]}).encode()


def _text_of(content: object) -> str | None:
    """The text of the content of a message, which may be a list of parts, without thoughts; None if it is none."""
    parts = content if isinstance(content, list) else [content]
    texts: list[str] = []
    for part in parts:
        match part:
            case str(text):
                texts.append(text)
            case {"type": "text" | "output_text", "text": str(text)}:
                texts.append(text)
            case dict() | None:  # thoughts, references, pictures
                pass
            case _:
                return None
    return "".join(texts)


def _refusal_of(message: Mapping[str, Any]) -> str:
    """The refusal of a message or one of the parts of its content; empty if it has none."""
    content = message.get("content")
    parts = [message, *(content if isinstance(content, list) else [])]
    return "".join(part["refusal"] for part in parts if isinstance(part, dict) and isinstance(part.get("refusal"), str))


def _find_error(body: Mapping[str, Any]) -> tuple[str | None, int | None] | None:
    """The message and the status of the error that a body reports, if it is one; None for those that it does not say.

    OpenAI writes `{"error": {"message": ..., "code": ...}}`; other servers write a text as the error, or the fields
    beside it, or `finish_reason` "error".
    """
    error: Mapping[str, Any]
    match body:
        case {"error": dict(fields)} if fields:
            error = fields
        case {"error": message} if message:
            error = {**body, "message": message}
        case {"choices": [{"finish_reason": "error", **choice}, *_]}:
            choice_error = choice.get("error")
            error = choice_error if isinstance(choice_error, dict) else {"message": choice_error or "the model failed"}
        case {"choices": [_, *_]}:
            return None
        case {"object": "error"} | {"error_message": _} | {"error_type": _} | {"detail": _} | {"message": _}:
            error = body
        case _:
            return None
    messages = [error.get(key) for key in ("message", "error_message", "detail", "error_type", "type")]
    statuses = [str(part.get(key)) for key in ("code", "status", "status_code") for part in (error, body)]
    return (
        next((message for message in messages if isinstance(message, str) and message.strip()), None),
        next((int(status) for status in statuses if re.fullmatch("[45][0-9]{2}", status)), None),
    )


def _error_status(content: bytes) -> int | None:
    """The status of an error that a body of status 200 reports, 500 if it says none; None if it is no error."""
    try:
        error = _find_error(parse_object(content, "the reply"))
    except FormatError:
        return None
    return None if error is None else error[1] or 500


def _structure(body: Mapping[str, Any]) -> Structure:
    structure: Structure = body.get("response_format", {}).get("type", "none")
    return structure


def _is_schema_too_large(response: _Response, body: Mapping[str, Any]) -> bool:
    if response.status not in _INVALID | {413} or _structure(body) != "json_schema":
        return False
    return _SCHEMA_SIZE.search(response.content[:2000].decode("utf-8", "replace")) is not None


def _run(work: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine, even if an event loop is already running."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    # Loops cannot be nested, but a second one can run in another thread.
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


def check_base_url(url: str, variable: str, example: str) -> str:
    """The address without trailing slashes; errors do not quote it, since it may contain a password."""
    url = url.strip().rstrip("/")
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and parts.hostname and (parts.port is None or parts.port > 0)
    except ValueError:
        good = False
    if not good or not url.isprintable() or re.search(r"[\s@?#]", url):
        raise UserError(f"{variable} should look like {example}, without a user, password or query")
    return url


def _body(request: Request, omissions: frozenset[str], *, stream: bool = False) -> dict[str, Any]:
    messages = [{"role": role, "content": content} for role, content in request.messages]
    parameters: dict[str, Any] = {
        "temperature": request.temperature,
        "seed": request.seed,
        "max_tokens": request.max_tokens,
    }
    if request.stop:
        parameters["stop"] = list(request.stop)
    if stream:
        parameters["stream_options"] = {"include_usage": True}
    if request.schema is not None and (structure := next((s for s in _STRUCTURES if s not in omissions), None)):
        parameters["response_format"] = {"type": structure}
        if structure == "json_schema":
            schema = _without_keywords(request.schema, omissions)
            parameters["response_format"]["json_schema"] = {"name": "reply", "strict": True, "schema": schema}
    body: dict[str, Any] = {"model": request.model, "messages": messages}
    if stream:
        body["stream"] = True
    body |= {name: value for name, value in parameters.items() if name not in omissions}
    if "max_tokens" in omissions:  # OpenAI's newer models use another name for it
        body["max_completion_tokens"] = request.max_tokens
    return body


def _without_keywords(schema: Any, keywords: frozenset[str]) -> Any:  # noqa: ANN401  (JSON)
    """A schema without some of its keywords at any depth; a property may be called like a keyword."""
    if isinstance(schema, list):
        return [_without_keywords(value, keywords) for value in schema]
    if not isinstance(schema, Mapping):
        return schema
    return {
        key: {name: _without_keywords(value, keywords) for name, value in part.items()}
        if key == "properties" and isinstance(part, Mapping)
        else _without_keywords(part, keywords)
        for key, part in schema.items()
        if key not in keywords
    }


def estimated_tokens(text: str) -> int:
    """One token per three bytes of UTF-8: more than common tokenizers need for English, about right for CJK."""
    return math.ceil(len(text.encode("utf-8", "surrogatepass")) / 3)
