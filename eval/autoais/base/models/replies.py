"""Replies of language models on disk: a stopped run resumes, and a run again asks only for what failed."""

import fcntl
import hashlib
import json
import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from types import TracebackType

from autoais.base.errors import FormatError, UserError
from autoais.base.io.jsonl import dumps, parse_object
from autoais.base.models.chat import Request

_HEADER = b'{"autoais_replies": 1}\n'


class ReplyCache:
    """An append-only file (jsonl) of replies by request, with all of them in memory.

    Opening reads the file and removes an incomplete last line, which a kill has cut off; a damaged line elsewhere is
    skipped and counted (`damaged`). Raises `UserError` if the file is not a cache of replies (it is left unchanged), is
    in use by another process, or cannot be read or written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.damaged = 0
        self._replies: dict[str, str] = {}
        self._descriptor = self._claim()
        try:
            self._end = self._recover()
        except BaseException:  # release the lock whatever happened
            os.close(self._descriptor)
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
        """Append texts of replies by request, all of them or none; they are in the file on return."""
        texts = {_key(endpoint, request): text for request, text in replies}
        if texts:
            self._append("".join(f"{dumps({'key': key, 'text': text})}\n" for key, text in texts.items()).encode())
            self._replies.update(texts)

    def close(self) -> None:
        """Flush to disk and release the lock."""
        if self._descriptor < 0:
            return
        descriptor, self._descriptor = self._descriptor, -1
        try:
            os.fsync(descriptor)
        except OSError as error:
            raise self._unwritable(error) from error
        finally:
            os.close(descriptor)

    def _claim(self) -> int:
        if self.path.exists() and not self.path.is_file():
            raise UserError(f"{self.path} is not a regular file; name a file for the cache of replies")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise self._unwritable(error) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(descriptor)
            if isinstance(error, BlockingIOError):
                raise UserError(f"{self.path} is in use by another run; wait for it, or name another cache") from error
            raise UserError(f"{self.path}: cannot be locked: {error.strerror}") from error
        return descriptor

    def _recover(self) -> int:
        """Read the complete lines, remove an incomplete last one, and return the offset of the next line."""
        with os.fdopen(os.dup(self._descriptor), "rb") as file:
            first = file.readline()
            if first != _HEADER and not (_HEADER.startswith(first) and len(first) < len(_HEADER)):
                raise UserError(
                    f"{self.path} is not a cache of replies; name a new file, or one written as a cache (--cache)"
                )
            end = len(first) if first == _HEADER else 0  # killed while writing the first line
            for line in file:
                if not line.endswith(b"\n"):
                    break
                end += len(line)
                self._add(line)
        try:
            os.ftruncate(self._descriptor, end)
        except OSError as error:
            raise self._unwritable(error) from error
        self._end = end
        if end == 0:
            self._append(_HEADER)
        return self._end

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

    def _append(self, data: bytes) -> None:
        try:
            remainder = memoryview(data)
            while remainder:
                remainder = remainder[os.write(self._descriptor, remainder) :]
        except OSError as error:
            with suppress(OSError):  # otherwise the next opening removes the incomplete line
                os.ftruncate(self._descriptor, self._end)
            raise self._unwritable(error) from error
        self._end += len(data)

    def _unwritable(self, error: OSError) -> UserError:
        return UserError(f"{self.path}: cannot be written: {error.strerror}")


def _key(endpoint: str, request: Request) -> str:
    """Hex SHA-256 of all that decides a reply."""
    content = json.dumps({"endpoint": endpoint, **asdict(request)}, sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()
