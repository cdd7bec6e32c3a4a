"""A real server with OpenAI's chat completions, in a process of its own, that answers as a test scripts it.

Steps are taken in turn, the last again and again: `{"say": text}`, `{"status": n, "body": text, "headers": {}}`,
`{"say_if": [[part of the prompt, text], ...]}`; more keys of a step: `hang` and `dribble` (seconds), `cut` (bytes sent
before the connection is closed), `stall` (seconds before that), `without` (parameters that get a 400), `finish`,
`whole` (no stream where one is asked for), `forms` (types of `response_format` that do not get a 400), `max_values` (of
an enum in a schema that does not get a 400). A stream sends the words of `say` one by one; `pieces` (a number) ends it
after so many, `then` is sent behind.
"""

import contextlib
import json
import re
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import Any

EVENTS = "text/event-stream; charset=utf-8"
_scripts: dict[str, list[dict[str, Any]]] = {}
_logs: dict[str, list[dict[str, Any]]] = {}
_lock = threading.Lock()
_running = 0


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._send(200, json.dumps(_logs[self.path.split("/")[1]]))

    def do_PUT(self) -> None:
        name = self.path.split("/")[1]
        _scripts[name], _logs[name] = json.loads(self._body()), []
        self._send(200, "")

    def do_POST(self) -> None:
        global _running
        name, _, path = self.path[1:].partition("/")
        request = json.loads(self._body())
        with _lock:
            _running += 1
            step = _scripts[name].pop(0) if len(_scripts[name]) > 1 else _scripts[name][0]
            authorization = self.headers.get("Authorization", "")
            _logs[name].append({"path": path, "authorization": authorization, "running": _running, "body": request})
        try:
            with contextlib.suppress(OSError):  # a client that did not wait
                self._answer(step, request)
        finally:
            with _lock:
                _running -= 1

    def _answer(self, step: dict[str, Any], request: dict[str, Any]) -> None:
        time.sleep(step.get("hang", 0))
        for parameter in step.get("without", ()):
            if parameter in request:
                self._send(400, json.dumps({"error": {"message": f"Unsupported parameter: '{parameter}'"}}))
                return
        if (fault := _find_fault(request.get("response_format", {}), step)) is not None:
            self._send(400, json.dumps({"error": {"message": fault}}))
            return
        prompt = request["messages"][-1]["content"]
        reply = next((text for part, text in step.get("say_if", ()) if part in prompt), step.get("say"))
        choice = {"message": {"role": "assistant", "content": reply}, "finish_reason": step.get("finish", "stop")}
        usage = {"prompt_tokens": 7, "completion_tokens": 2}
        if request.get("stream") and "body" not in step and step.get("status", 200) == 200 and "whole" not in step:
            self._send(200, self._events(reply or "", usage, step), {"headers": {"Content-Type": EVENTS}} | step)
            return
        body = {"model": "tiny-1", "system_fingerprint": "fp_9", "choices": [choice], "usage": usage}
        self._send(step.get("status", 200), step.get("body", json.dumps(body)), step)

    def _events(self, reply: str, usage: dict[str, int], step: dict[str, Any]) -> str:
        pieces = [{"choices": [{"delta": {"content": word}}]} for word in re.findall(r"\S*\s*", reply) if word]
        last: list[dict[str, Any]] = [
            {"choices": [{"delta": {}, "finish_reason": step.get("finish", "stop")}], "model": "tiny-1"},
            {"choices": [], "usage": usage, "system_fingerprint": "fp_9"},
        ]
        first: list[dict[str, Any]] = [{"choices": [{"delta": {"role": "assistant", "content": None}}]}]
        events = [f"data: {json.dumps(event)}\n\n" for event in [*first, *pieces, *last]] + ["data: [DONE]\n\n"]
        max_pieces: int = step.get("pieces", len(events))
        ending: str = step.get("then", "")
        return ": ping\n\n" + "".join(events[:max_pieces]) + ending

    def _send(self, status: int, text: str, step: dict[str, Any] | None = None) -> None:
        step = step or {}
        body = text.encode()
        self.send_response(status)
        for name, value in step.get("headers", {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if "dribble" in step:
            for byte in body:
                self.wfile.write(bytes([byte]))
                time.sleep(step["dribble"])
        self.wfile.write(body[: step.get("cut", len(body))])
        time.sleep(step.get("stall", 0))
        self.close_connection = "cut" in step

    def _body(self) -> bytes:
        return self.rfile.read(int(self.headers["Content-Length"]))

    def log_message(self, *_: object) -> None:
        pass


def _find_fault(form: dict[str, Any], step: dict[str, Any]) -> str | None:
    """What a server that knows some forms of replies only, or only small schemas, says to another one."""
    if form and form["type"] not in step.get("forms", [form["type"]]):
        return f"response_format: the type {form['type']} is not available"
    enums = re.findall(r'"enum": \[([^\]]*)\]', json.dumps(form))
    values = max((len(enum.split(",")) for enum in enums), default=0)
    if values > step.get("max_values", values):
        return f"Invalid schema for response_format: at most {step['max_values']} enum values are allowed"
    return None


class ChatServer:
    """The process, and scripts under an address of their own each."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._names = count()

    def script(self, *steps: dict[str, Any], name: str = "") -> str:
        """A base URL that answers with these steps; of the same name, the same URL with other steps."""
        name = name or f"s{next(self._names)}"
        data = json.dumps(steps).encode()
        self._call(urllib.request.Request(f"http://127.0.0.1:{self.port}/{name}", data=data, method="PUT"))
        return f"http://127.0.0.1:{self.port}/{name}/v1"

    def log(self, base_url: str) -> list[dict[str, Any]]:
        """The requests to it, in order: path, authorization, body and how many requests were running."""
        log: list[dict[str, Any]] = json.loads(self._call(urllib.request.Request(base_url)))
        return log

    @staticmethod
    def _call(request: urllib.request.Request) -> bytes:
        with urllib.request.urlopen(request, timeout=10) as response:
            body: bytes = response.read()
        return body


@contextlib.contextmanager
def run_chat_server() -> Iterator[ChatServer]:
    """Start the server process and end it afterwards."""
    with subprocess.Popen([sys.executable, __file__], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield ChatServer(int(process.stdout.readline()))
        finally:
            process.terminate()


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    sys.stdout.write(f"{server.server_port}\n")
    sys.stdout.flush()
    server.serve_forever()
