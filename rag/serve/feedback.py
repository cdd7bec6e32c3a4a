"""What people say of answers on the page, as ratings that `autoais` reads, with the answers that they rated."""

import fcntl
import hashlib
import hmac
import json
import os
import secrets
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ValidationError
from starlette.requests import Request
from starlette.responses import Response

from autoais.base.io.jsonl import dumps, read_objects
from autoais.formats.human_ratings.ratings import Rating, to_row
from rag.base.errors import NotFoundError, RagError, UsageError, UserError
from rag.base.rows import read_answer, write_answer
from rag.base.types import Answer
from rag.serve.http import json_response, read_json
from rag.serve.recent import RecentAnswers
from rag.serve.service import Service

_MODE = 0o600  # questions and answers are nobody else's business


class FeedbackFile:
    """A file of ratings (`ratings.jsonl`), and beside it `NAME.answers.jsonl` with each answer that was rated, once.

    `autoais ratings NAME.jsonl labelled.jsonl --to answers --answers NAME.answers.jsonl` makes them labels. `NAME.key`
    is the secret that signs answers: a browser that stores an answer with its signature can rate it whenever it likes.
    Threads, and servers in other processes, share the files. Raises `RagError` for one that cannot be written.
    """

    def __init__(self, path: Path) -> None:
        name = path.name.removesuffix(".jsonl")
        self.path, self.answers = path, path.with_name(f"{name}.answers.jsonl")
        self._lock = threading.Lock()
        try:
            for file in (self.path, self.answers):
                os.close(_open(file))
            self._ids, self._size = self._read_ids(), self.answers.stat().st_size
            self._key = _read_key(path.with_name(f"{name}.key"))
        except (OSError, UserError) as error:
            raise RagError(f"feedback {path}: {error}") from error

    def sign(self, row: Mapping[str, Any]) -> str:
        """Return the signature of the row of an answer; it fits only this row, and no one else can make it."""
        text = json.dumps(_with_whole_numbers(row), sort_keys=True)
        return hmac.digest(self._key, text.encode(), hashlib.sha256).hex()

    def has_signed(self, row: Mapping[str, Any], signature: str) -> bool:
        """Return whether the signature is that of the row, which may have been stored by a browser."""
        try:
            expected_signature = self.sign(row)
        except RecursionError:  # lists in lists: no answer has them
            return False
        return hmac.compare_digest(expected_signature.encode(), signature.encode("utf-8", "replace"))

    def add(self, rating: Rating, answer: dict[str, Any]) -> None:
        """Add a rating and, if it is the first of its answer, the row of the answer; raises `RagError` if it fails."""
        try:
            with self._lock:
                with _locked(self.answers) as descriptor:
                    if os.fstat(descriptor).st_size != self._size:  # another process has added answers
                        self._ids = self._read_ids()
                    if answer["id"] not in self._ids:
                        _write(descriptor, dumps(answer))
                        self._ids.add(answer["id"])
                    self._size = os.fstat(descriptor).st_size
                with _locked(self.path) as descriptor:
                    _write(descriptor, dumps(to_row(rating)))
        except (OSError, UserError) as error:
            raise RagError(f"feedback {self.path}: {error}") from error

    def _read_ids(self) -> set[str]:
        return {row["id"] for _, row in read_objects(self.answers) if "id" in row}


def _open(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, _MODE)


def _read_key(path: Path) -> bytes:
    """The secret of a file, which is made if there is none."""
    descriptor = _open(path)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        key = os.read(descriptor, 1024)
        if not key:
            key = secrets.token_hex(32).encode()
            if os.write(descriptor, key) < len(key):
                raise OSError("the secret could not be written")
        return key
    finally:
        os.close(descriptor)


def _with_whole_numbers(value: Any) -> Any:  # noqa: ANN401  (JSON)
    """JSON with 1.0 as 1: browsers do not tell them apart."""
    match value:
        case dict():
            return {key: _with_whole_numbers(item) for key, item in value.items()}
        case list() | tuple():
            return [_with_whole_numbers(item) for item in value]
        case float() if value.is_integer():
            return int(value)
    return value


@contextmanager
def _locked(path: Path) -> Iterator[int]:
    """Open a file to append to; another process waits meanwhile."""
    descriptor = _open(path)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)


def _write(descriptor: int, line: str) -> None:
    """Append a line, all of it or nothing."""
    size, data = os.fstat(descriptor).st_size, f"{line}\n".encode()
    try:
        written = os.write(descriptor, data)
        if written < len(data):
            raise OSError(f"only {written} of {len(data)} bytes could be written")
    except OSError:
        os.ftruncate(descriptor, size)
        raise


class _Opinion(BaseModel):
    """What the script sends: of the whole answer, or of a source that a sentence (0-based) cites.

    `row` and `signature` are those of the answer, if the browser stores it.
    """

    answer: str
    kind: Literal["answers", "no-answer", "wrong-source"]
    sentence: int | None = None
    passage: str | None = None
    row: dict[str, Any] | None = None
    signature: str = ""


class FeedbackPages:
    """Takes the ratings of the page."""

    def __init__(self, service: Service, recent: RecentAnswers, file: FeedbackFile) -> None:
        self._service, self._recent, self._file = service, recent, file

    async def rate(self, request: Request) -> Response:
        """Store a rating of an answer that the server gave: it remembers the answer, or has signed it."""
        try:
            opinion = _Opinion.model_validate(await read_json(request))
        except ValidationError as error:
            raise UsageError("the feedback has another form") from error
        await self._service.run(self._rate, opinion)
        return json_response({"message": "Thank you."})

    def _rate(self, opinion: _Opinion) -> None:
        reply, row = self._recent.find_by_id(opinion.answer), opinion.row
        if reply is not None:
            answer, row = reply.answer, write_answer(reply.answer, reply.index, reply.seconds)
        elif row is not None and row.get("id") == opinion.answer and self._file.has_signed(row, opinion.signature):
            answer = read_answer(row)
        else:
            raise NotFoundError("the server no longer knows this answer; ask again to rate it")
        self._file.add(_make_rating(opinion, answer), row)


def _make_rating(opinion: _Opinion, answer: Answer) -> Rating:
    """The rating of an opinion; raises `UsageError` for a source that the sentence does not cite."""
    number, passage = opinion.sentence, opinion.passage
    item, question, value = answer.question.id, "informative", "yes" if opinion.kind == "answers" else "no"
    if opinion.kind == "wrong-source":
        if number is None or not 0 <= number < len(answer.sentences) or passage not in answer.sentences[number].cites:
            raise UsageError("the sentence does not cite this source")
        item, question, value = f"{item}#{number}/{passage}", "support", "none"
    else:
        number = passage = None
    return Rating(
        item,
        f"visitor-{secrets.token_hex(4)}",  # one of each rating: visitors are not followed
        question,
        value,
        answer=answer.question.id,
        sentence=number,
        citation=passage,
        at=datetime.now(UTC).isoformat(timespec="seconds"),
        system=answer.system,
    )
