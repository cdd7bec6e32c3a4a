"""What people say of answers on the page, as ratings that `autoais` reads, with the answers that they rated."""

import fcntl
import os
import secrets
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ValidationError
from starlette.requests import Request
from starlette.responses import Response

from autoais.base.io.jsonl import dumps, read_objects
from autoais.formats.human_ratings.ratings import Rating, to_row
from rag.base.errors import NotFoundError, RagError, UsageError, UserError
from rag.base.rows import write_answer
from rag.serve.http import json_response, read_json
from rag.serve.recent import RecentAnswers
from rag.serve.service import Reply, Service

_MODE = 0o600  # questions and answers are nobody else's business


class FeedbackFile:
    """A file of ratings (`ratings.jsonl`), and beside it `NAME.answers.jsonl` with each answer that was rated, once.

    `autoais ratings NAME.jsonl labelled.jsonl --to answers --answers NAME.answers.jsonl` makes them labels. Threads,
    and servers in other processes, share it. Raises `RagError` for a file that cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.answers = path, path.with_name(f"{path.name.removesuffix('.jsonl')}.answers.jsonl")
        self._lock = threading.Lock()
        try:
            for file in (self.path, self.answers):
                os.close(_open(file))
            self._ids = {row["id"] for _, row in read_objects(self.answers) if "id" in row}
        except (OSError, UserError) as error:
            raise RagError(f"feedback {path}: {error}") from error

    def add(self, rating: Rating, answer: dict[str, Any]) -> None:
        """Add a rating and, if it is the first of its answer, the row of the answer; raises `RagError` if it fails."""
        try:
            with self._lock:
                if answer["id"] not in self._ids:
                    _append(self.answers, dumps(answer))
                    self._ids.add(answer["id"])
                _append(self.path, dumps(to_row(rating)))
        except OSError as error:
            raise RagError(f"feedback {self.path}: {error}") from error


def _open(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, _MODE)


def _append(path: Path, line: str) -> None:
    """Append a line, all of it or nothing; another process waits meanwhile."""
    descriptor = _open(path)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        size, data = os.fstat(descriptor).st_size, f"{line}\n".encode()
        try:
            written = os.write(descriptor, data)
            if written < len(data):
                raise OSError(f"only {written} of {len(data)} bytes could be written")
        except OSError:
            os.ftruncate(descriptor, size)
            raise
    finally:
        os.close(descriptor)


class _Opinion(BaseModel):
    """What the script sends: of the whole answer, or of a source that a sentence (0-based) cites."""

    answer: str
    kind: Literal["answers", "no-answer", "wrong-source"]
    sentence: int | None = None
    passage: str | None = None


class FeedbackPages:
    """Takes the ratings of the page."""

    def __init__(self, service: Service, recent: RecentAnswers, file: FeedbackFile) -> None:
        self._service, self._recent, self._file = service, recent, file

    async def rate(self, request: Request) -> Response:
        """Store a rating of an answer that the server remembers: nobody can rate an answer that it did not give."""
        try:
            opinion = _Opinion.model_validate(await read_json(request))
        except ValidationError as error:
            raise UsageError("the feedback has another form") from error
        reply = self._recent.find_by_id(opinion.answer)
        if reply is None:
            raise NotFoundError("the server no longer remembers this answer; ask again to rate it")
        rating = _make_rating(opinion, reply)
        row = write_answer(reply.answer, reply.index, reply.seconds)
        await self._service.run(self._file.add, rating, row)
        return json_response({"message": "Thank you."})


def _make_rating(opinion: _Opinion, reply: Reply) -> Rating:
    """The rating of an opinion; raises `UsageError` for a source that the sentence does not cite."""
    answer, number, passage = reply.answer, opinion.sentence, opinion.passage
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
