"""A server with Anthropic's Messages API, whole and streamed, that answers as a test scripts it.

It follows https://platform.claude.com/docs/en/api/messages and /build-with-claude/streaming: a request needs
`anthropic-version`, `model`, `max_tokens` and `messages`, and no blank text; a stream sends the text of a block in
pieces, then its citations.
"""

import contextlib
import json
import re
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

USAGE = {"input_tokens": 70, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 30, "output_tokens": 9}


@dataclass(frozen=True)
class Step:
    """A reply: its content blocks, or another status with a body.

    `more` adds to the message. `then` is sent after `max_events` events instead of the rest, and may be no event.
    `pause` is the time in seconds after each 100 bytes.
    """

    content: Sequence[Any] = ()
    stop_reason: object = "end_turn"
    status: int = 200
    body: bytes | None = None
    headers: dict[str, str] = field(default_factory=dict)
    more: dict[str, Any] = field(default_factory=dict)
    max_events: int | None = None
    then: bytes = b""
    pause: float = 0.0


def text(words: str, *citations: object) -> dict[str, Any]:
    """A text block."""
    return {"type": "text", "text": words, "citations": list(citations) or None}


def cite(document: object, start: object, end: object, **more: object) -> dict[str, Any]:
    """A citation of content blocks."""
    location = {"document_index": document, "start_block_index": start, "end_block_index": end}
    return {"type": "content_block_location", "cited_text": "?", "document_title": None, **location, **more}


def failure(status: int, kind: str, message: str, **headers: str) -> Step:
    """A reply with an error, which asks for a retry at once unless the headers say otherwise."""
    error = {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}
    return Step(status=status, body=json.dumps(error).encode(), headers={"Retry-After": "0.001"} | headers)


class MessagesServer:
    """The server, its address, its requests so far, and the steps that it takes in turn, the last again and again."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.url = ""

    def script(self, *steps: Step) -> None:
        """Take these steps from now on."""
        self.steps, self.requests, self.headers = list(steps), [], []

    def take(self) -> Step:
        """The next step."""
        return self.steps.pop(0) if len(self.steps) > 1 else self.steps[0]


@contextlib.contextmanager
def run_messages_server() -> Iterator[MessagesServer]:
    """Run a server in a thread."""
    messages = MessagesServer()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            messages.requests.append(request)
            messages.headers.append({name.lower(): value for name, value in self.headers.items()})
            step = messages.take()
            with contextlib.suppress(OSError):  # a client that did not wait
                self._answer(request, step)

        def _answer(self, request: dict[str, Any], step: Step) -> None:
            fault = _find_fault(self.path, messages.headers[-1], request)
            if fault:
                step = failure(400, "invalid_request_error", fault)
            if step.status == 200 and step.body is None:
                stream = bool(request.get("stream"))
                kind = "text/event-stream; charset=utf-8" if stream else "application/json"
                body = _events(step) if stream else _dump(_message(step))
                self._send(200, body, {"Content-Type": kind}, step.pause)
            else:
                headers = {"Content-Type": "application/json"} | step.headers
                self._send(step.status, step.body or b"", headers, step.pause)

        def _send(self, status: int, body: bytes, headers: dict[str, str], pause: float) -> None:
            self.send_response(status)
            for name, value in ({"Content-Length": str(len(body))} | headers).items():
                self.send_header(name, value)
            self.end_headers()
            while pause and body:
                self.wfile.write(body[:100])
                body = body[100:]
                time.sleep(pause)
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    messages.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield messages
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _find_fault(path: str, headers: dict[str, str], request: dict[str, Any]) -> str:
    """What the service would refuse in a request, or nothing."""
    if path != "/v1/messages" or "anthropic-version" not in headers:
        return f"no such path: {path}"
    if missing := {"model", "max_tokens", "messages"} - request.keys():
        return f"missing: {sorted(missing)}"
    if unknown := request.keys() - {"model", "max_tokens", "messages", "system", "stream"}:
        return f"{sorted(unknown)}: Extra inputs are not permitted"
    for message in request["messages"]:
        content = message["content"]
        for block in content if isinstance(content, list) else [{"type": "text", "text": content}]:
            parts = block["source"]["content"] if block["type"] == "document" else [block]
            if not all(part["text"].strip() for part in parts):
                return "text content blocks must contain non-whitespace text"
    return ""


def _message(step: Step) -> dict[str, Any]:
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-1", "content": step.content}
    return message | {"stop_reason": step.stop_reason, "stop_sequence": None, "usage": USAGE} | step.more


def _dump(value: object) -> bytes:
    return json.dumps(value).encode()


def _events(step: Step) -> bytes:
    message = _message(step) | {"content": [], "stop_reason": None, "usage": USAGE | {"output_tokens": 1}}
    events: list[dict[str, Any]] = [{"type": "message_start", "message": message}, {"type": "ping"}]
    for index, block in enumerate(step.content):
        if not isinstance(block, dict) or block.get("type") not in ("text", "thinking"):
            events.append({"type": "content_block_start", "index": index, "content_block": block})
        else:
            start, deltas = _split(block)
            events.append({"type": "content_block_start", "index": index, "content_block": start})
            events += ({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas)
        events.append({"type": "content_block_stop", "index": index})
    delta = {"stop_reason": step.stop_reason, "stop_sequence": None} | step.more
    events.append({"type": "message_delta", "delta": delta, "usage": {"output_tokens": USAGE["output_tokens"]}})
    events.append({"type": "message_stop"})
    lines = [b"event: " + event["type"].encode() + b"\ndata: " + _dump(event) + b"\n\n" for event in events]
    return b"".join(lines[: step.max_events]) + step.then


def _split(block: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The beginning of a block, and the deltas that complete it."""
    if block["type"] == "thinking":
        deltas: list[dict[str, Any]] = [{"type": "thinking_delta", "thinking": block["thinking"]}]
        return block | {"thinking": ""}, [*deltas, {"type": "signature_delta", "signature": "s"}]
    words = block.get("text")
    pieces = re.findall(r"\s*\S+|\s+$", words) if isinstance(words, str) else [words]
    citations = block.get("citations")
    locations = citations if isinstance(citations, list) else []
    deltas = [{"type": "text_delta", "text": piece} for piece in pieces]
    return {"type": "text", "text": "", "citations": []}, [
        *deltas,
        *({"type": "citations_delta", "citation": location} for location in locations),
    ]
