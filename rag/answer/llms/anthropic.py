"""`anthropic:<model>`: Claude by Anthropic's SDK (the extra `anthropic`), and the cited blocks of its replies."""

import json
import os
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx2

from autoais.base.errors import first_line
from autoais.base.models.chat import check_base_url, estimated_tokens
from autoais.base.network import excerpt, read_retry_after
from rag.answer.llms import (
    CONTEXT,
    Completion,
    Message,
    ModelError,
    ModelUnavailableError,
    Schema,
    cut_at,
    in_pieces,
)
from rag.base.errors import RagError, missing_extra

try:
    import anthropic
except ImportError:
    raise missing_extra("anthropic:<model>", "anthropic") from None

_API = "https://api.anthropic.com"
_TIMEOUT = 120.0  # seconds for a whole reply
_CONNECTING = 10.0  # seconds for a connection
_RETRIES = 4  # after 0.5, 1, 2 and 4 seconds, or what the server asks for
_MAX_WAIT = 60.0  # seconds that the server may ask to wait before a retry; if it asks for more, there is none
_MAX_REPLY_BYTES = 4 << 20
_THOUGHT_TOKENS = 3000  # the limit of a reply counts thoughts too, which newer models write by themselves
_CUT = ("max_tokens", "model_context_window_exceeded")
_FIXES = {  # statuses that need a person, and what to do
    401: "set ANTHROPIC_API_KEY to a key that the server accepts",
    402: "the account needs credit",
    403: "the key has no access",
    404: "does the server have that model, and is ANTHROPIC_BASE_URL right?",
} | dict.fromkeys((301, 302, 307, 308), "set ANTHROPIC_BASE_URL to the new address")


@dataclass(frozen=True, slots=True)
class Block:
    """A complete text block of a reply, and its citations, as the server sent them (JSON)."""

    text: str
    citations: tuple[object, ...]


Piece = str | Block | Completion
"""What arrives of a reply: a piece of text (perhaps empty), a complete block, and last the completion."""

Pieces = Generator[Piece, None, None]


class MessagesClient:
    """Anthropic's Messages API at ANTHROPIC_BASE_URL, with the key ANTHROPIC_API_KEY, by the official SDK.

    The SDK asks a busy or failing server again. A reply may have 4 MiB and take 120 seconds. Errors never contain the
    key, and no redirect gets it. Threads may share a client.
    """

    def __init__(self, model: str) -> None:
        self._key = os.environ.get("ANTHROPIC_API_KEY", "").strip()
        if not self._key:
            raise RagError(f"anthropic:{model}: no key; set ANTHROPIC_API_KEY")
        if not (self._key.isascii() and self._key.isprintable()):
            raise RagError("ANTHROPIC_API_KEY contains a character outside printable ASCII")
        url = check_base_url(os.environ.get("ANTHROPIC_BASE_URL") or _API, "ANTHROPIC_BASE_URL", "https://host")
        self.name = f"anthropic:{model}@{url.partition('://')[2]}"
        self._model = model
        self._is_reached = False
        hooks = {"response": [self._restrict_response]}
        try:
            http = anthropic.DefaultHttpxClient(follow_redirects=False, event_hooks=hooks)
        except (ImportError, OSError, ValueError, httpx2.InvalidURL) as error:
            raise RagError(f"the proxies or certificates of the environment: {first_line(error)}") from error
        self._sdk = anthropic.Anthropic(
            api_key=self._key,
            base_url=url,
            timeout=httpx2.Timeout(_TIMEOUT, connect=_CONNECTING),
            max_retries=_RETRIES,
            default_headers={"Accept-Encoding": "identity"},
            http_client=http,
        )

    def ask(self, request: Mapping[str, Any]) -> Pieces:
        """Yield the blocks of a reply that comes whole, then its completion.

        `request` has the parameters of a message besides the model. Raises `ModelError` if there is no reply, if it is
        a refusal, or breaks off; `ModelUnavailableError` if a person must act.
        """
        with self._one_line_errors():
            # Plain JSON: the SDK's types are not checked, so that anything might be in them.
            message = self._sdk.post("/v1/messages", cast_to=object, body={"model": self._model, **request})
        yield from self._read(self._events_of(message))

    def stream(self, request: Mapping[str, Any]) -> Pieces:
        """Yield the reply as it arrives, or like `ask` if the server does not stream; errors are those of `ask`."""
        body = {"model": self._model, "stream": True, **request}
        with (
            self._one_line_errors(),
            self._sdk.post(
                "/v1/messages", cast_to=object, body=body, stream=True, stream_cls=anthropic.Stream[object]
            ) as events,
        ):
            is_whole = "json" in events.response.headers.get("Content-Type", "")
            yield from self._read(self._events_of(json.loads(events.response.read())) if is_whole else events)

    def _events_of(self, message: object) -> Iterator[object]:
        """Yield the events of a stream with the same reply; raises `ModelError` if it is no message."""
        if not isinstance(message, dict) or not isinstance(message.get("content"), list):
            raise ModelError(f"{self.name}: the reply is no message: {self._excerpt(str(message))!r}")
        yield {"type": "message_start", "message": message}
        for block in message["content"]:
            yield {"type": "content_block_start", "content_block": block}
        yield {"type": "message_delta", "delta": message}

    def _read(self, events: Iterable[object]) -> Iterator[Piece]:
        """Yield what the events hold; raises `ModelError` for a refusal and for a stream that breaks off."""
        reader = _EventReader()
        for event in events:
            yield from reader.read(event)
            yield ""
        yield from reader.end_block()
        if reader.stop_reason == "refusal":
            explanation = self._excerpt(reader.explanation)
            raise ModelError(f"{self.name}: the model refused" + (f": {explanation}" if explanation else ""))
        if reader.stop_reason is None:
            raise ModelError(f"{self.name}: the stream ended before the reply did")
        yield Completion(reader.text, reader.stop_reason in _CUT, reader.prompt_tokens, reader.completion_tokens)

    # --- what can go wrong --------------------------------------------------------------------------------------------

    def _restrict_response(self, response: httpx2.Response) -> None:
        """Restrict a response to what a program can wait for and keep, before the SDK reads it."""
        self._is_reached = True
        headers = response.headers
        headers.pop("Content-Encoding", None)  # none was asked for, and a small body can unpack to gigabytes
        headers.pop("Retry-After-Ms", None)
        wait = read_retry_after(headers.pop("Retry-After", ""))
        if wait > 0:
            headers["Retry-After"] = f"{wait:.3f}"
        if wait > _MAX_WAIT:
            headers["X-Should-Retry"] = "false"
        if isinstance(response.stream, httpx2.SyncByteStream):
            response.stream = _RestrictedStream(response.stream)

    @contextmanager
    def _one_line_errors(self) -> Iterator[None]:
        try:
            yield
        except anthropic.APIStatusError as error:
            raise self._status_error(error) from None
        except (anthropic.APITimeoutError, httpx2.TimeoutException):
            raise ModelError(f"{self.name}: no complete reply within {_TIMEOUT:.3g} s") from None
        except (anthropic.AnthropicError, httpx2.HTTPError, httpx2.InvalidURL) as error:
            reason = self._excerpt(first_line(error.__cause__ or error))
            if isinstance(error, anthropic.APIConnectionError) and not self._is_reached:
                way_out = "check the network and ANTHROPIC_BASE_URL"
                raise ModelUnavailableError(f"{self.name}: cannot connect ({reason}); {way_out}") from None
            raise ModelError(f"{self.name}: {reason}") from None
        except (ValueError, RecursionError) as error:  # bytes that are no JSON, or no UTF-8
            raise ModelError(f"{self.name}: the reply cannot be read: {self._excerpt(first_line(error))}") from None

    def _status_error(self, error: "anthropic.APIStatusError") -> RagError:
        message = self._excerpt(str(error.api_message or error.body or ""))
        status = error.status_code
        # An error in the middle of a stream has the status of its beginning.
        reason = "the server reported an error" if status == 200 else f"the server answered {status}"
        reason += f": {message}" if message else ""
        wait = read_retry_after(error.response.headers.get("Retry-After", ""))
        reason += f" (it asks to wait {wait:,.0f} s)" if wait >= 1 else ""
        if fix := _FIXES.get(status):
            return ModelUnavailableError(f"{self.name}: {reason}; {fix}")
        return ModelError(f"{self.name}: {reason}")

    def _excerpt(self, text: str) -> str:
        return excerpt(text, self._key)


class _RestrictedStream(httpx2.SyncByteStream):
    """The bytes of a response, up to a size and a time: a server may send a byte now and then, for ever."""

    def __init__(self, stream: httpx2.SyncByteStream) -> None:
        self._stream, self._end = stream, time.monotonic() + _TIMEOUT

    def __iter__(self) -> Iterator[bytes]:
        size = 0
        for block in self._stream:
            size += len(block)
            if size > _MAX_REPLY_BYTES:
                raise httpx2.ReadError(f"the reply is larger than {_MAX_REPLY_BYTES >> 20} MiB")
            if time.monotonic() > self._end:
                raise httpx2.ReadTimeout("no complete reply in time")
            yield block

    def close(self) -> None:
        self._stream.close()


class _EventReader:
    """Reads the events of a stream, whatever they are: text blocks, how the reply ended, and tokens.

    Thoughts and calls of tools have deltas of other types, and are left out.
    """

    def __init__(self) -> None:
        self.stop_reason: str | None = None
        self.explanation = ""  # of a refusal
        self._usage: dict[object, object] = {}
        self._texts: list[str] = []  # of complete blocks
        self._pieces: list[str] = []  # of the block that is open
        self._citations: list[object] = []

    @property
    def text(self) -> str:
        return "".join(self._texts)

    @property
    def prompt_tokens(self) -> int:
        """Tokens of the request, those in a cache too."""
        return sum(
            self._count(name) for name in ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
        )

    @property
    def completion_tokens(self) -> int:
        return self._count("output_tokens")

    def _count(self, name: str) -> int:
        value = self._usage.get(name)
        return max(0, int(value)) if isinstance(value, int) else 0

    def read(self, event: object) -> Iterator[Piece]:
        """Yield the text that an event adds, and the block that it completes."""
        match event:
            case {"type": "message_start", "message": {"usage": dict(usage)}}:
                self._usage |= usage
            case {"type": "content_block_start", **fields}:
                yield from self.end_block()
                match fields.get("content_block"):
                    case {"type": "text", **block}:
                        text, citations = block.get("text"), block.get("citations")
                        yield from self._add(text if isinstance(text, str) else "")
                        self._citations += citations if isinstance(citations, list) else ()
            case {"type": "content_block_delta", "delta": {"type": "text_delta", "text": str(text)}}:
                yield from self._add(text)
            case {"type": "content_block_delta", "delta": {"type": "citations_delta", "citation": citation}}:
                self._citations.append(citation)
            case {"type": "content_block_stop"}:
                yield from self.end_block()
            case {"type": "message_delta", "delta": {"stop_reason": str(reason), **details}, **fields}:
                self.stop_reason = reason
                match details.get("stop_details"):
                    case {"explanation": str(text)} | {"category": str(text)}:
                        self.explanation = text
                match fields.get("usage"):
                    case dict(usage):
                        self._usage |= {name: value for name, value in usage.items() if value is not None}

    def _add(self, text: str) -> Iterator[Piece]:
        if text:
            self._pieces.append(text)
            yield text

    def end_block(self) -> Iterator[Piece]:
        """Yield the open block, if there is one."""
        if self._pieces or self._citations:
            block = Block("".join(self._pieces), tuple(self._citations))
            self._texts.append(block.text)
            self._pieces, self._citations = [], []
            yield block


class Anthropic:
    """A model that is asked for text, such as one that answers from memory; citations need the system `anthropic`.

    The API has no temperature and no seed. Schemas are ignored. Tokens are estimated as one per three bytes.
    """

    def __init__(self, model: str, *, context: int = CONTEXT, temperature: float = 0.0, seed: int = 0) -> None:
        if temperature or seed:
            raise RagError(f"anthropic:{model} takes no temperature and no seed; leave them out")
        self.context = context
        self._client = MessagesClient(model)
        self.name = f"{self._client.name}/{context}"

    def count(self, messages: Sequence[Message]) -> int:
        """An estimate, above the counts of common tokenizers for most languages."""
        return sum(estimated_tokens(message.content) for message in messages)

    def complete(
        self, messages: Sequence[Message], max_tokens: int, stop: Sequence[str] = (), *, schema: Schema | None = None
    ) -> Completion:
        """The reply; raises `ModelError` with the server's message, or `ModelUnavailableError` if the user must act."""
        *_, completion = self._client.ask(_text_request(messages, max_tokens))
        assert isinstance(completion, Completion)
        return cut_at(completion, stop)

    def stream(
        self, messages: Sequence[Message], max_tokens: int, stop: Sequence[str] = (), *, schema: Schema | None = None
    ) -> Iterator[str | Completion]:
        """Yield the reply as the server sends it; raises `ModelError` also if the stream breaks off."""

        def write(on_text: Callable[[str], None]) -> Completion:
            for piece in self._client.stream(_text_request(messages, max_tokens)):
                if isinstance(piece, str):
                    on_text(piece)
                elif isinstance(piece, Completion):
                    return piece
            raise AssertionError("a stream ends with its completion, or raises")

        return in_pieces(write, stop)


def _text_request(messages: Sequence[Message], max_tokens: int) -> dict[str, Any]:
    turns = [{"role": message.role, "content": message.content} for message in messages if message.role != "system"]
    system = "\n\n".join(message.content for message in messages if message.role == "system")
    request = {"max_tokens": max_tokens + _THOUGHT_TOKENS, "messages": turns}
    return request | ({"system": system} if system else {})
