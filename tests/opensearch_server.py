"""A stand-in for an OpenSearch server, written from its documentation: what `rag.retrieval.databases.opensearch` asks
for.

It keeps vectors in memory and searches them exactly. As in OpenSearch, what is added is found only after a refresh, an
item of a bulk request or a search of several can fail by itself, and errors have their types and reasons. A test sets
who may log in, how late answers come, and what fails.
"""

import base64
import json
import re
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from typing import Any

import numpy as np

from tests.local_server import LocalServer, Quiet

SHARDS = {"total": 1, "successful": 1, "skipped": 0, "failed": 0}
_WINDOW = 10_000  # the largest `k` and `size`


class RefusedError(Exception):
    """An answer that is an error."""

    def __init__(self, status: int, kind: str, reason: str, **details: object) -> None:
        self.status = status
        self.error: dict[str, Any] = {"type": kind, "reason": reason, **details}

    @property
    def body(self) -> dict[str, Any]:
        return {"error": {"root_cause": [self.error], **self.error}, "status": self.status}


class Index:
    """The vectors of an index by the ids of their documents: those that are visible, and all that were added."""

    def __init__(self, name: str, body: dict[str, Any]) -> None:
        self.settings, self.mappings = body["settings"], body["mappings"]
        ((self.field, field),) = self.mappings["properties"].items()
        if field["type"] != "knn_vector" or not self.settings["index.knn"]:
            raise RefusedError(400, "mapper_parsing_exception", f"No handler for type [{field['type']}]")
        if (method := field["method"]) != {"name": "hnsw", "engine": "faiss", "space_type": "innerproduct"}:
            raise RefusedError(400, "mapper_parsing_exception", f"this stand-in does not know {method}")
        self.name, self.dimension = name, field["dimension"]
        self.visible: dict[str, list[float]] = {}
        self.added: dict[str, list[float]] = {}

    def add(self, key: str, document: dict[str, Any]) -> str:
        """Keep a document; `created` or `updated`."""
        if unknown := document.keys() - {self.field}:
            reason = f"mapping set to strict, dynamic introduction of {sorted(unknown)} within [_doc] is not allowed"
            raise RefusedError(400, "strict_dynamic_mapping_exception", reason)
        vector = document[self.field]
        if len(vector) != self.dimension:
            reason = f"failed to parse field [{self.field}] of type [knn_vector] in document with id '{key}'."
            cause = f"Vector dimension mismatch. Expected: {self.dimension}, Given: {len(vector)}"
            details = {"type": "illegal_argument_exception", "reason": cause}
            raise RefusedError(400, "mapper_parsing_exception", reason, caused_by=details)
        result = "updated" if key in self.added else "created"
        self.added[key] = vector
        return result

    def search(self, body: dict[str, Any]) -> dict[str, Any]:
        """The nearest of the visible vectors."""
        ((field, query),) = body["query"]["knn"].items()
        k, size = query["k"], body.get("size", 10)
        if field != self.field or len(query["vector"]) != self.dimension:
            raise RefusedError(400, "query_shard_exception", "Query vector has invalid dimension")
        if not 0 < k <= _WINDOW or size > _WINDOW:
            raise RefusedError(400, "illegal_argument_exception", f"[knn] requires k to be in the range (0, {_WINDOW}]")
        keys = list(self.visible)
        products = np.array([self.visible[key] for key in keys]).reshape(-1, self.dimension) @ query["vector"]
        hits = []
        for n in np.argsort(-products, kind="stable")[: min(k, size)]:
            score = 1 + products[n] if products[n] > 0 else 1 / (1 - products[n])
            hit = {"_index": self.name, "_id": keys[n], "_score": float(score)}
            hits.append(hit if body.get("_source") is False else hit | {"_source": {self.field: self.visible[keys[n]]}})
        total = {"value": min(k, len(keys)), "relation": "eq"}
        result = {"total": total, "max_score": hits[0]["_score"] if hits else None, "hits": hits}
        return {"took": 1, "timed_out": False, "_shards": SHARDS, "hits": result, "status": 200}


class OpenSearchServer(LocalServer):
    """The server on a free port."""

    def __init__(self) -> None:
        super().__init__(_Handler)
        self.indices: dict[str, Index] = {}
        self.users: dict[str, str] = {}  # name and password; nobody: all may do all
        self.readers: set[str] = set()  # users who may only read
        self.seconds = 0.0  # how late answers come
        self.fails: dict[str, list[RefusedError]] = {}  # of the document with this id, one after the other
        self.failed_shards = 0
        self.asked: list[str] = []

    def index(self, name: str) -> Index:
        """Raises if it is missing; this server creates none by itself."""
        if name not in self.indices:
            details = {"index": name, "resource.id": name, "resource.type": "index_or_alias", "index_uuid": "_na_"}
            raise RefusedError(404, "index_not_found_exception", f"no such index [{name}]", **details)
        return self.indices[name]

    def create(self, name: str, body: dict[str, Any]) -> dict[str, Any]:
        if name in self.indices:
            reason = f"index [{name}/9Xx] already exists"
            raise RefusedError(400, "resource_already_exists_exception", reason, index=name, index_uuid="9Xx")
        self.indices[name] = Index(name, body)
        return {"acknowledged": True, "shards_acknowledged": True, "index": name}

    def refresh(self, name: str) -> dict[str, Any]:
        index = self.index(name)
        index.visible = dict(index.added)
        return {"_shards": {"total": 2, "successful": 1, "failed": 0}}

    def count(self, name: str) -> dict[str, Any]:
        return {"count": len(self.index(name).visible), "_shards": SHARDS}

    def bulk(self, lines: list[dict[str, Any]]) -> dict[str, Any]:
        items = []
        for action, document in zip(lines[::2], lines[1::2], strict=True):
            target = action["index"]
            name, key = target["_index"], target["_id"]
            item = {"_index": name, "_id": key}
            try:
                if self.fails.get(key):
                    raise self.fails[key].pop(0)
                result = self.index(name).add(key, document)
                status = 201 if result == "created" else 200
                items.append({"index": item | {"result": result, "_shards": SHARDS, "status": status}})
            except RefusedError as error:
                items.append({"index": item | {"status": error.status, "error": error.error}})
        return {"took": 1, "errors": any("error" in item["index"] for item in items), "items": items}

    def search(self, name: str, lines: list[dict[str, Any]]) -> dict[str, Any]:
        responses = []
        for header, body in zip(lines[::2], lines[1::2], strict=True):
            try:
                result = self.index(header.get("index", name)).search(body)
                responses.append(result | {"_shards": SHARDS | {"failed": self.failed_shards}})
            except RefusedError as error:
                responses.append(error.body)
        return {"took": 1, "responses": responses}


class _Handler(Quiet, BaseHTTPRequestHandler):
    server: OpenSearchServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_PUT(self) -> None:
        self._answer(r"/(\w+)")

    def do_POST(self) -> None:
        self._answer(r"/(?:(\w+)/)?(_bulk|_count|_msearch|_refresh)")

    def _answer(self, paths: str) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"] or 0)).decode()
        self.server.asked.append(f"{self.command} {self.path}")
        time.sleep(self.server.seconds)
        try:
            match = re.fullmatch(paths, self.path)
            if match is None:
                reason = f"no handler found for uri [{self.path}] and method [{self.command}]"
                raise RefusedError(400, "illegal_argument_exception", reason)
            if self._check_user(changes=match[match.lastindex or 0] not in ("_count", "_msearch")):
                self._send(200, json.dumps(self._result(*match.groups(), body=body)))
        except RefusedError as error:
            self._send(error.status, json.dumps(error.body))

    def _result(self, name: str, action: str = "", *, body: str) -> dict[str, Any]:
        if not action:
            return self.server.create(name, json.loads(body))
        if action == "_refresh":
            return self.server.refresh(name)
        if action == "_count":
            return self.server.count(name)
        if not body.endswith("\n"):
            raise RefusedError(
                400, "illegal_argument_exception", "The bulk request must be terminated by a newline [\\n]"
            )
        lines = [json.loads(line) for line in body.splitlines()]
        return self.server.bulk(lines) if action == "_bulk" else self.server.search(name, lines)

    def _check_user(self, changes: bool) -> bool:
        """Whether the user may do this; answers whoever is unknown."""
        if not self.server.users:
            return True
        login = self.headers.get("Authorization", "").removeprefix("Basic ")
        user, _, password = base64.b64decode(login).decode().partition(":")
        if self.server.users.get(user) != password:
            self._send(401, "Unauthorized", "text/plain; charset=UTF-8")
            return False
        if changes and user in self.server.readers:
            raise RefusedError(
                403, "security_exception", f"no permissions for [indices:admin/refresh] and User [name={user}]"
            )
        return True

    def _send(self, status: int, text: str, kind: str = "application/json; charset=UTF-8") -> None:
        body = text.encode()
        with suppress(OSError):  # a client that did not wait
            self.send_response(status)
            self.send_header("Content-Type", kind)
            if status == 401:
                self.send_header("WWW-Authenticate", 'Basic realm="OpenSearch Security"')
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
