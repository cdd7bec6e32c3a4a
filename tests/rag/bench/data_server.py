"""A server of this machine with made small copies of data sets, whose connections break off, and tables of them."""

import hashlib
import json
import time
import tomllib
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler
from importlib.resources import files
from pathlib import Path
from typing import Any

from tests.local_server import LocalServer, Quiet


class DataServer(LocalServer):
    """Serves `bodies` by path, those below `/moved/` by a redirect.

    `cuts` ends the next answers after so many bytes; `statuses` are those of the next answers, with a Retry-After of
    an hour; `tag` is the ETag of all files, and with `ignores_if_range` a part is sent whatever the version.
    """

    def __init__(self) -> None:
        super().__init__(_Handler)
        self.bodies: dict[str, bytes] = {}
        self.cuts: list[int] = []
        self.statuses: list[int] = []
        self.requests: list[tuple[str, str | None]] = []
        self.announced: int | None = None
        self.pause = 0.0
        self.tag: str | None = None
        self.ignores_if_range = False

    def table(self, folder: Path, **files_of_set: Any) -> Path:  # noqa: ANN401
        """A table with one data set, whose files are those bodies; a value is extra settings of a file."""
        entries = []
        for to, settings in files_of_set.items():
            name = settings.pop("name", to)
            facts = self._facts(f"/{name}") | settings
            entries.append({"to": f"made/{name}"} | {key: value for key, value in facts.items() if value is not None})
        dataset = {"description": "Made here", "licence": "ours", "source": "https://example.org", "files": entries}
        return _write_table(folder / "table.toml", {"made": dataset})

    def shipped_table(self, folder: Path, bodies: Mapping[str, bytes]) -> Path:
        """A copy of the table that ships, with made bodies, by place, in place of the files that have these places."""
        datasets = tomllib.loads(files("rag").joinpath("data", "datasets.toml").read_text("utf-8"))
        for dataset in datasets.values():
            for entry in dataset.get("files", ()):
                if (body := bodies.get(entry["to"])) is not None:
                    self.bodies[f"/{entry['to']}"] = body
                    entry.update(self._facts(f"/{entry['to']}"))
        return _write_table(folder / "datasets.toml", datasets)

    def _facts(self, path: str) -> dict[str, Any]:
        body = self.bodies[path]
        checksum = f"sha256:{hashlib.sha256(body).hexdigest()}"
        return {"url": f"{self.url}{path}", "size": len(body), "checksum": checksum}


def _write_table(path: Path, datasets: Mapping[str, Mapping[str, Any]]) -> Path:
    lines = []
    for name, dataset in datasets.items():
        lines += [f"[{name}]", *(f"{key} = {json.dumps(value)}" for key, value in dataset.items() if key != "files")]
        if "files" in dataset:
            rows = (", ".join(f"{key} = {json.dumps(value)}" for key, value in row.items()) for row in dataset["files"])
            lines += ["files = [", *(f"  {{ {row} }}," for row in rows), "]"]
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


class _Handler(Quiet, BaseHTTPRequestHandler):
    server: DataServer

    def do_GET(self) -> None:
        server, wanted = self.server, self.headers.get("Range")
        server.requests.append((self.path, wanted))
        if server.statuses and (status := server.statuses.pop(0)) != 200:
            self.send_response(status)
            self.send_header("Retry-After", "3600")
            self.end_headers()
            return
        if self.path.startswith("/moved/"):
            self.send_response(302)
            self.send_header("Location", self.path.removeprefix("/moved"))
            self.end_headers()
            return
        body = server.bodies.get(self.path)
        if body is None:
            self.send_error(404)
            return
        version = self.headers.get("If-Range")
        is_same_version = version in (None, server.tag) or server.ignores_if_range
        start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted and is_same_version else 0
        if start and start >= len(body):
            self.send_error(416)
            return
        self._send(body, start)

    def _send(self, body: bytes, start: int) -> None:
        server = self.server
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(server.announced or len(body) - start))
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
        if server.tag is not None:
            self.send_header("ETag", server.tag)
        self.end_headers()
        cut = server.cuts.pop(0) if server.cuts else len(body)
        rest = body[start:][:cut]
        for at in range(0, len(rest), 64 << 10):
            self.wfile.write(rest[at : at + (64 << 10)])
            time.sleep(server.pause)
