"""Asks any server with OpenAI's chat completions: bounded, patient and counted; one bad reply never ends a run."""

import asyncio
import email.utils
import json
import os
import random
import re
import threading
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from autoais.errors import FormatError, UserError
from autoais.io.jsonl import parse_object

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")
Tell = Callable[[str], None]

_OPENAI = "https://api.openai.com/v1"
_LATER = {408, 409, 425, 429}  # these and 5xx may pass by themselves
_MEND = {  # nobody but a person can mend these
    401: "set OPENAI_API_KEY to a key that it accepts",
    402: "the account needs credit",
    403: "the key does not give access to it",
    404: "does the server have that model, and should OPENAI_BASE_URL end in /v1?",
    405: "should OPENAI_BASE_URL end in /v1?",
} | dict.fromkeys((301, 302, 307, 308), "set OPENAI_BASE_URL to where it has moved")
_OPTIONAL = ("max_tokens", "temperature", "seed", "stop", "stream_options")  # a server may not know
_LONGEST_REPLY = 4_000_000  # bytes
_LONGEST_WAIT = 60.0  # seconds, whatever Retry-After says
_FEWEST = 3  # requests that must have failed in one way before a silent server is given up


@dataclass(frozen=True, slots=True)
class Request:
    """One chat: `messages` are (role, content); `schema` is a JSON Schema that the reply should keep, where it can.

    The reply ends before the first of the texts in `stop`, of which OpenAI takes at most four.
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
    """What the model said; `cut` where it was stopped at the most tokens it may write.

    Tokens are as the server counts them, None where it does not say; they make no two replies different.
    """

    text: str
    cut: bool = False
    prompt_tokens: int | None = field(default=None, compare=False)
    completion_tokens: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class NoReply:
    """Why there is no reply, in one line."""

    reason: str


@dataclass(slots=True)
class Usage:
    """What a client has used so far; tokens as the server counts them."""

    requests: int = 0
    retries: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0

    def __str__(self) -> str:
        return (
            f"{self.requests:,} requests, {self.retries:,} retries, "
            f"{self.prompt_tokens:,} tokens read, {self.completion_tokens:,} written"
        )


@dataclass(frozen=True, slots=True)
class _Response:
    status: int
    retry_after: str
    content: bytes
    told: bool = False


class _MayPassError(Exception):
    """This try failed, the next may not; `wait` is how many seconds the server asks for."""

    def __init__(self, reason: str, wait: float = 0.0) -> None:
        super().__init__(reason)
        self.wait = wait


class ChatClient:
    """A connection to one server, `base_url` and `api_key` from OPENAI_BASE_URL and OPENAI_API_KEY unless given.

    At most `concurrency` requests run at once; each has `timeout` seconds from first to last byte and is tried again
    up to `retries` times, after `backoff` seconds, twice as long each time (with jitter from `seed`), or after what
    Retry-After asks. `place` is host and path of the address, less a path of just `/v1`. `usage` counts; `served`
    names the models that replied and `refused` the parameters that the server would not take, so that a report can
    say so. Errors never contain the key. Several threads may ask at once, each up to `concurrency` requests.
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
        seed: int = 0,
    ) -> None:
        _need_httpx()
        self._key = (api_key or os.environ.get("OPENAI_API_KEY") or "").strip()
        if not re.fullmatch(r"[!-~]*", self._key):
            raise UserError("OPENAI_API_KEY holds a space or a character that no key has")
        given = base_url or os.environ.get("OPENAI_BASE_URL")
        if not given and not self._key:
            raise UserError("no model server: set OPENAI_BASE_URL (such as http://localhost:8000/v1) or OPENAI_API_KEY")
        if concurrency < 1 or timeout <= 0 or retries < 0 or backoff < 0:
            raise UserError("a chat client needs concurrency of 1 or more, a timeout, and no negative retries or waits")
        self.base_url = _checked(given or _OPENAI)
        address = urlsplit(self.base_url)
        self.place = address.netloc + ("" if address.path == "/v1" else address.path)
        self.concurrency = concurrency
        self.timeout = timeout
        self.retries = retries
        self.backoff = backoff
        self.usage = Usage()
        self.served: list[str] = []
        self.refused: frozenset[str] = frozenset()
        self._counting = threading.Lock()
        self._jitter = random.Random(seed)
        self._reached = self._answered = self._structured = False
        self._fate, self._fated = "", 0  # how the last request failed, and how many did so in a row

    def answer(self, requests: Sequence[Request]) -> list[Reply | NoReply]:
        """A reply, or why there is none, for each request in order; see `answer_async`.

        Called where an event loop runs already (a notebook), it blocks that loop until all replies are there.
        """
        return _run(self.answer_async(requests)) if requests else []

    def stream(self, request: Request, tell: Tell) -> Reply | NoReply:
        """As `answer` for one request; `tell` is given the text in pieces as they come (server-sent events).

        A request that fails is tried again only as long as nothing has been told. What `tell` raises ends the request
        and is raised here. A server that cannot stream tells everything at once.
        """
        (reply,) = _run(self._answer([request], tell))
        return reply

    async def answer_async(self, requests: Sequence[Request]) -> list[Reply | NoReply]:
        """A reply, or why there is none, for each request in order.

        `UserError` only where no request has ever succeeded and a person must act: nobody listens at the address, the
        server answers 401, 403, 404 or the like, or as many requests as run at once (at least 3) have all failed in
        the same way, each with all its tries.
        """
        return await self._answer(requests, None)

    async def _answer(self, requests: Sequence[Request], tell: Tell | None) -> list[Reply | NoReply]:
        import httpx

        replies: dict[int, Reply | NoReply] = {}
        waiting = iter(enumerate(requests))
        headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        headers["Content-Type"] = "application/json"
        limits = httpx.Limits(max_connections=self.concurrency)
        learned = asyncio.Event()
        if self._answered:
            learned.set()

        async def work(first: bool) -> None:
            if not first:
                await learned.wait()
            for place, request in waiting:
                replies[place] = await self._ask(http, request, learned, tell)

        async with httpx.AsyncClient(headers=headers, limits=limits, timeout=None) as http:
            # The first try goes alone: it learns what the server takes.
            workers = [asyncio.create_task(work(n == 0)) for n in range(min(self.concurrency, len(requests)))]
            try:
                await asyncio.gather(*workers)
            finally:
                for worker in workers:
                    worker.cancel()
                await asyncio.gather(*workers, return_exceptions=True)
        return [replies[place] for place in range(len(requests))]

    def excerpt(self, text: str, length: int = 160) -> str:
        """The beginning of a text on one printable line, without the key: for errors and reasons."""
        if self._key:
            text = text.replace(self._key, "[key]")
        line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
        return line if len(line) <= length else line[: length - 1] + "…"

    async def _ask(
        self, http: "httpx.AsyncClient", request: Request, learned: asyncio.Event, tell: Tell | None
    ) -> Reply | NoReply:
        tries, told = 0, False

        def tell_on(piece: str) -> None:
            nonlocal told
            told = True
            if tell is not None:
                tell(piece)

        while True:
            tries += 1
            try:
                reply = await self._once(http, request, None if tell is None else tell_on)
                learned.set()
                return reply
            except _MayPassError as error:
                learned.set()
                if tries > self.retries or told:
                    reason = f"{error} (in the middle of the reply)" if told else f"{error} (tried {tries} times)"
                    self._count_failure(request.model, reason, str(error).partition(":")[0])
                    return NoReply(reason)
                wait = self.backoff * 2 ** (tries - 1) * (0.5 + self._jitter.random())
                with self._counting:
                    self.usage.retries += 1
                await asyncio.sleep(min(max(wait, error.wait), _LONGEST_WAIT))

    def _count_failure(self, model: str, reason: str, fate: str) -> None:
        """`UserError` where the server has never answered and enough requests in a row had the same fate."""
        self._fated = self._fated + 1 if fate == self._fate else 1
        self._fate = fate
        if not self._answered and self._fated >= max(_FEWEST, self.concurrency):
            raise UserError(
                f"{self.base_url}, model {model!r}: no answer yet, {self._fated} requests have failed alike: {reason}; "
                "see what the server is doing, or give it a longer timeout or more retries"
            )

    async def _once(self, http: "httpx.AsyncClient", request: Request, tell: Tell | None) -> Reply | NoReply:
        without = self.refused
        while True:
            body = _body(request, without, stream=tell is not None)
            response = await self._post(http, body, tell)
            blamed = self._blamed(response, body)
            if not blamed:
                break
            without |= blamed
        said = self._said(response.content)
        if response.status == 200:
            reply = self._reply(response.content)
            if tell is not None and not response.told and isinstance(reply, Reply) and reply.text:
                tell(reply.text)
            self.refused |= without
            self._structured |= "response_format" in body
            self._answered = True
            return reply
        reason = f"the server answered {response.status}: {said}" if said else f"the server answered {response.status}"
        if response.status in _LATER or response.status >= 500:
            raise _MayPassError(reason, _seconds(response.retry_after))
        if response.status in _MEND and not self._answered:
            raise UserError(f"{self.base_url}, model {request.model!r}: {reason}; {_MEND[response.status]}")
        return NoReply(reason)

    async def _post(self, http: "httpx.AsyncClient", body: Mapping[str, Any], tell: Tell | None) -> _Response:
        import httpx

        with self._counting:
            self.usage.requests += 1
        content, size = bytearray(), 0
        events: _Events | None = None
        try:
            # The time is for the whole exchange: a server that sends one byte a second does not hold it up.
            async with (
                asyncio.timeout(self.timeout),
                http.stream("POST", f"{self.base_url}/chat/completions", content=json.dumps(body)) as response,
            ):
                kind = response.headers.get("Content-Type", "")
                if tell is not None and response.status_code == 200 and kind.startswith("text/event-stream"):
                    events = _Events(tell)
                async for piece in response.aiter_bytes():
                    size += len(piece)
                    if events is not None:
                        events.feed(piece)
                    else:
                        content += piece
                    if size > _LONGEST_REPLY:
                        raise _MayPassError(f"the reply is longer than {_LONGEST_REPLY} bytes")
        except TimeoutError:
            raise _MayPassError(f"no whole reply within {self.timeout:g} s") from None
        except httpx.RequestError as error:
            if isinstance(error, httpx.ConnectError) and not self._reached:
                raise UserError(
                    f"nothing answers at {self.base_url} ({self.excerpt(str(error))}); "
                    "start the server or set OPENAI_BASE_URL"
                ) from None
            raise _MayPassError(f"the connection failed: {self.excerpt(str(error)) or type(error).__name__}") from None
        except _BrokenError as error:
            raise _MayPassError(f"the server broke off: {self._said(error.event)}") from None
        self._reached = True
        if events is not None:
            content = bytearray(events.body())
        waits = response.headers.get("Retry-After", "")
        return _Response(response.status_code, waits, bytes(content), told=events is not None)

    def _blamed(self, response: _Response, body: Mapping[str, Any]) -> frozenset[str]:
        """The parameters to leave out after a 400: those it names, else the structure, if it was never taken."""
        if response.status not in (400, 422):
            return frozenset()
        text = response.content.decode("utf-8", "replace")
        named = frozenset(name for name in _OPTIONAL if name in body and name in text)
        if "response_format" in body and not self._structured and ("response_format" in text or not named):
            return named | {"response_format"}
        return named

    def _said(self, content: bytes) -> str:
        """The message of an error body, or its beginning."""
        text = content[:2000].decode("utf-8", "replace")
        try:
            error = parse_object(content, "error").get("error")
        except FormatError:
            return self.excerpt(text)
        message = error.get("message") if isinstance(error, dict) else error
        return self.excerpt(message if isinstance(message, str) else text)

    def _reply(self, content: bytes) -> Reply | NoReply:
        try:
            body = parse_object(content, "the reply")
        except FormatError as error:
            raise _MayPassError(f"{self.excerpt(str(error))}: {self._said(content)!r}") from None
        read = written = None
        match body.get("usage"):
            case {"prompt_tokens": int(prompt), "completion_tokens": int(completion)}:
                read, written = max(prompt, 0), max(completion, 0)
                with self._counting:
                    self.usage.prompt_tokens += read
                    self.usage.completion_tokens += written
        names = [self.excerpt(str(body[key]), 80) for key in ("model", "system_fingerprint") if body.get(key)]
        served = " ".join(names)
        if served and served not in self.served and len(self.served) < 100:
            self.served.append(served)
        match body.get("choices"):
            case [{"message": {"refusal": str(refusal)}}, *_] if refusal:
                return NoReply(f"the model refused: {self.excerpt(refusal)}")
            case [{"finish_reason": "content_filter"}, *_]:
                return NoReply("the server filtered the reply")
            case [{"message": {"content": str() | None as text}} as choice, *_]:
                return Reply(text or "", choice.get("finish_reason") == "length", read, written)
        raise _MayPassError(f"not a chat completion: {self._said(content)!r}")


class _BrokenError(Exception):
    """The server sent an error in the middle of a reply."""

    def __init__(self, event: bytes) -> None:
        super().__init__()
        self.event = event


class _Events:
    """Tells the text of server-sent events piece by piece, and puts together the body it would have had at once."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._rest = b""
        self._pieces: list[str] = []
        self._refusal: list[str] = []
        self._finish: str | None = None
        self._more: dict[str, Any] = {}
        self._ended = False

    def feed(self, content: bytes) -> None:
        """Take the next bytes; `_BrokenError` where they are an error, `_MayPassError` where they are no event."""
        *lines, self._rest = (self._rest + content).split(b"\n")
        for line in lines:
            if line.startswith(b"data:"):
                self._take(line[5:].strip())

    def _take(self, data: bytes) -> None:
        if data == b"[DONE]":
            self._ended = True
            return
        try:
            event = parse_object(data, "a piece of the reply")
        except FormatError as error:
            raise _MayPassError(" ".join(str(error).split())[:160]) from None
        if event.get("error"):
            raise _BrokenError(data)
        self._more |= {key: event[key] for key in ("model", "system_fingerprint", "usage") if event.get(key)}
        match event.get("choices"):
            case [{"delta": dict(delta)} as choice, *_]:
                if isinstance(finish := choice.get("finish_reason"), str):
                    self._finish, self._ended = finish, True
                if isinstance(refusal := delta.get("refusal"), str):
                    self._refusal.append(refusal)
                if isinstance(piece := delta.get("content"), str) and piece:
                    self._pieces.append(piece)
                    self._tell(piece)

    def body(self) -> bytes:
        """The same reply as one chat completion; `_MayPassError` where the stream ended before the reply did."""
        if not self._ended:
            raise _MayPassError("the stream ended before the reply did")
        message = {"content": "".join(self._pieces), "refusal": "".join(self._refusal)}
        return json.dumps({**self._more, "choices": [{"message": message, "finish_reason": self._finish}]}).encode()


def _run(work: Coroutine[Any, Any, T]) -> T:
    """What a coroutine returns, also where an event loop runs already."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    # A loop cannot run inside another one, but beside it in a thread.
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


def _need_httpx() -> None:
    try:
        import httpx  # noqa: F401
    except ImportError:
        raise UserError('asking a model server needs httpx: pip install "attributed-rag[llm]"') from None


def _checked(url: str) -> str:
    """The address without a slash at the end; what was given is not shown, a password may be in it."""
    url = url.strip().rstrip("/")
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and parts.hostname and (parts.port is None or parts.port > 0)
    except ValueError:
        good = False
    if not good or not url.isprintable() or re.search(r"[\s@?#]", url):
        raise UserError("OPENAI_BASE_URL should look like http://host:port/v1, without a user, password or query")
    return url


def _body(request: Request, without: frozenset[str], *, stream: bool = False) -> dict[str, Any]:
    messages = [{"role": role, "content": content} for role, content in request.messages]
    wanted: dict[str, Any] = {
        "temperature": request.temperature,
        "seed": request.seed,
        "max_tokens": request.max_tokens,
    }
    if request.stop:
        wanted["stop"] = list(request.stop)
    if stream:
        wanted["stream_options"] = {"include_usage": True}
    if request.schema is not None:
        schema = {"name": "reply", "strict": True, "schema": request.schema}
        wanted["response_format"] = {"type": "json_schema", "json_schema": schema}
    body: dict[str, Any] = {"model": request.model, "messages": messages}
    if stream:
        body["stream"] = True
    body |= {name: value for name, value in wanted.items() if name not in without}
    if "max_tokens" in without:  # OpenAI's own newer models know it by another name
        body["max_completion_tokens"] = request.max_tokens
    return body


def _seconds(retry_after: str) -> float:
    """Retry-After, in seconds or as a date (RFC 9110, 10.2.3); 0 where it says nothing that can be read."""
    if re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", retry_after):
        return float(retry_after)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(retry_after).timestamp() - time.time())
    except (ValueError, OverflowError):
        return 0.0
