"""Replies of language models on disk: a stopped run resumes, and a run again asks only for what failed."""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from types import TracebackType

from autoais.base.errors import FormatError, UserError
from autoais.base.io.journal import MAX_LINE_BYTES, AppendFile
from autoais.base.io.jsonl import dumps, parse_object
from autoais.base.models.chat import Request

_HEADER = b'{"autoais_replies": 1}\n'


class ReplyCache:
    """An append-only file (jsonl) of replies by request, with all of them in memory.

    Opening reads the file and removes an incomplete last line, which a kill has cut off; a damaged line elsewhere is
    skipped and counted (`damaged`). Raises `UserError` if the file is not a cache of replies, or has a line of more
    than 1 MiB, which a cache never writes (it is left unchanged); if it is in use by another process; and if it cannot
    be read or written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.damaged = 0
        self._replies: dict[str, str] = {}
        self._journal = AppendFile(path)
        try:
            self._load()
        except BaseException:  # release the lock whatever happened
            self._journal.close()
            raise

    def __enter__(self) -> "ReplyCache":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __len__(self) -> int:
        return len(self._replies)

    def get(self, endpoint: str, request: Request) -> str | None:
        """Return the text of the latest reply of that server to the request, or None."""
        return self._replies.get(_key(endpoint, request))

    def put(self, endpoint: str, replies: Iterable[tuple[Request, str]]) -> None:
        """Append texts of replies by request, all of them or none; they are in the file on return.

        A reply that makes a line of more than 1 MiB stays in memory only.
        """
        texts = {_key(endpoint, request): text for request, text in replies}
        lines = [f"{dumps({'key': key, 'text': text})}\n".encode() for key, text in texts.items()]
        if data := b"".join(line for line in lines if len(line) <= MAX_LINE_BYTES):
            self._journal.append(data)
        self._replies.update(texts)

    def close(self) -> None:
        """Flush to disk and release the lock."""
        self._journal.close()

    def _load(self) -> None:
        """Read the complete lines, and remove an incomplete last one."""
        lines = enumerate(self._journal.lines(), 1)
        _, first = next(lines, (1, b""))
        if first != _HEADER and not (_HEADER.startswith(first) and len(first) < len(_HEADER)):
            raise UserError(
                f"{self.path} is not a cache of replies; name a new file, or one written as a cache (--cache)"
            )
        for number, line in lines:
            if line.endswith(b"\n"):
                self._add(line)
            elif len(line) >= MAX_LINE_BYTES:
                raise UserError(
                    f"{self.path}:{number}: a line of more than {MAX_LINE_BYTES:,} bytes is no reply; "
                    "remove the line, or name another cache (--cache)"
                )
        self._journal.cut_incomplete_line()
        if self._journal.size == 0:  # new, or killed while writing the first line
            self._journal.append(_HEADER)

    def _add(self, line: bytes) -> None:
        try:
            row = parse_object(line, "")
        except FormatError:
            row = {}
        key, text = row.get("key"), row.get("text")
        if isinstance(key, str) and isinstance(text, str):
            self._replies[key] = text
        else:
            self.damaged += 1


def _key(endpoint: str, request: Request) -> str:
    """Hex SHA-256 of all that decides a reply."""
    content = json.dumps({"endpoint": endpoint, **asdict(request)}, sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()
