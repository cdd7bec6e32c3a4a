"""Runs over many questions or answers: written row by row, resumed after a kill, retried if a model failed."""

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from autoais.answers import to_row
from autoais.errors import FormatError, UserError
from autoais.io.jsonl import check_outputs, dumps, field, parse_object, read_objects, sync, write_atomic
from autoais.io.locks import file_lock
from autoais.io.provenance import command, sha256_file, versions
from autoais.models.pace import AUTO, Pace, Served
from autoais.questions import read_questions
from rag.errors import RagError, check_type
from rag.index.index import Index
from rag.llms import Price, cost
from rag.progress import Count
from rag.systems import System, answer_each
from rag.types import Question

if TYPE_CHECKING:
    from rag.attribution.post_hoc import PostHoc
    from rag.attribution.revise import Reviser


@dataclass(frozen=True, slots=True)
class AnswerRun:
    """The summary of a run: the answers in the file, the failed ones among them, and the tokens of language models.

    `served` says what model servers did in this run.
    """

    answers: int
    failed: int
    prompt_tokens: int
    completion_tokens: int
    served: Served | None = None

    def cost(self, price: Price) -> float:
        """The cost of the tokens, given the prices per million input and output tokens."""
        return cost(self.prompt_tokens, self.completion_tokens, price)


@dataclass(frozen=True, slots=True)
class AttributionRun:
    """The summary of a run: the answers in the file, and the sentences with and without a source in this run."""

    answers: int
    attached: int
    uncited: int


def answer_file(
    questions: str | Path,
    out: str | Path,
    system: System,
    index: Index,
    *,
    concurrency: int | str = AUTO,
    resume: bool = False,
    retry_failed: bool = False,
    progress: Count | None = None,
) -> AnswerRun:
    """Answer every question of a file; each answer is appended to `out` (`answers.jsonl`) when it is complete.

    `resume` continues after the last row of a stopped run and ends with the same rows. `retry_failed` asks only the
    questions whose model failed and keeps the other rows. `concurrency` is the number of questions asked at once, or
    `auto`: as many as make a model server faster, and one of a system that asks none. Raises `RagError` if `out` exists
    and neither is set, or if `out` belongs to another run.
    """
    check_type("system", system, "an open system (rag.open_system)", System)
    check_type("index", index, "an open index (rag.open_index)", Index)
    questions, out, pace = Path(questions), Path(out), Pace(concurrency)
    if retry_failed and not out.exists():
        raise RagError(f"{out}: no such file; retry_failed (--retry-failed) needs the answers of an earlier run")
    listed = list(read_questions(questions))
    settings = _settings(system.name, index, "questions", questions)
    with Journal(out, settings, resume=resume or retry_failed) as journal:
        left, done, failed = pending(listed, journal.done), len(journal.done), len(journal.failed)
        if retry_failed:
            again = set(journal.failed)
            left, done, failed = [question for question in listed if question.id in again], done - failed, 0
        write = journal.renew if retry_failed else journal.write
        for answer, seconds in answer_each(system, left, pace):
            write(to_row(answer.to_cited(index.name, seconds)))
            done, failed = done + 1, failed + answer.failed
            if progress:
                progress(done, len(listed))
    return AnswerRun(done, failed, *tokens_of(out), pace.served)


def attribute_file(
    answers: str | Path,
    out: str | Path,
    post_hoc: "PostHoc",
    index: Index,
    *,
    reviser: "Reviser | None" = None,
    format: str | None = None,  # noqa: A002  (named like the command-line option)
    resume: bool = False,
    progress: Count | None = None,
) -> AttributionRun:
    """Add citations to the answers of a file, in any format that `autoais` reads, and write them to `out`.

    `reviser` drops or rewrites unsupported sentences. `resume` as for `answer_file`.
    """
    from rag.attribution.post_hoc import read_given

    answers, out = Path(answers), Path(out)
    check_outputs([answers], [out])
    given = list(read_given(answers, format))
    name = post_hoc.name if reviser is None else f"{post_hoc.name}>{reviser.name}"
    with Journal(out, _settings(name, index, "answers", answers), resume=resume) as journal:
        pending([answer.question for answer in given], journal.done)
        done, attached, uncited = len(journal.done), 0, 0
        for answer in given[done:]:
            started = time.perf_counter()
            attributed = post_hoc.attribute(answer)
            attached += attributed.trace["attribution"]["attached"]
            uncited += attributed.trace["attribution"]["uncited"]
            if reviser is not None:
                attributed = reviser.revise(attributed)
            journal.write(to_row(attributed.to_cited(index.name, time.perf_counter() - started)))
            done += 1
            if progress:
                progress(done, len(given))
    return AttributionRun(len(given), attached, uncited)


def _settings(system: str, index: Index, role: str, path: Path) -> dict[str, Any]:
    """Everything that determines the rows of a run, and its command."""
    return {
        "system": system,
        "index": {"name": index.name} | {key: index.manifest[key] for key in ("checksum", "recipe", "analyzer")},
        role: {"file": path.name, "sha256": sha256_file(path)},
        "versions": versions(),
        "command": command(),
    }


def tokens_of(answers: Path) -> tuple[int, int]:
    """The numbers of tokens that language models read and wrote for the answers of a file."""
    read = written = 0
    for where, row in read_objects(answers):
        trace = field(row, "trace", dict, where)
        if "tokens" in trace:
            tokens = field(trace, "tokens", dict, where)
            read += field(tokens, "read", int, where)
            written += field(tokens, "written", int, where)
    return read, written


class Journal:
    """An `answers.jsonl` that is written one complete row at a time and can be resumed after a kill.

    `settings` (everything that determines the rows, and the command) are stored in `<name>.run.json` next to it, which
    is locked until the end; a run cannot be resumed with other settings, because its rows would be inconsistent. `done`
    are the ids of the rows that the file held, `failed` those whose model failed (`Answer.failed`). Rows that replace
    others (`renew`) wait in `<name>.renewed` until the journal is closed, or opened again after a kill. Raises
    `RagError` if another process writes the file.
    """

    def __init__(self, path: Path, settings: Mapping[str, Any], *, resume: bool) -> None:
        self.path = path
        self._settings_path = path.with_name(path.name + ".run.json")
        self._renewed_path = path.with_name(path.name + ".renewed")
        self._renewals: TextIO | None = None
        self.done: list[str] = []
        self.failed: list[str] = []
        self._check_new(resume=resume)
        busy = RagError(f"{path}: another process is writing it; wait for it, or name another file")
        with ExitStack() as stack:
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                stack.enter_context(file_lock(self._settings_path, busy))
                self._check_new(resume=resume)
                if path.exists():
                    self._check_settings(settings)
                    self._recover()
                else:  # a resumed run keeps its first settings; written in place, as the lock is that of the file
                    self._renewed_path.unlink(missing_ok=True)  # of a file that was deleted since
                    self._settings_path.write_text(dumps(settings, indent=2) + "\n", "utf-8")
                    sync(self._settings_path)
                self._file: TextIO = path.open("a", encoding="utf-8", newline="\n")
            except OSError as error:
                raise RagError(f"{path}: cannot be written: {error.strerror}") from error
            stack.callback(self._shut)
            self._held = stack.pop_all()

    def _check_new(self, *, resume: bool) -> None:
        if self.path.exists() and not resume:
            raise RagError(f"{self.path} exists: resume it (--resume), or name another file")
        if self.path.exists() and not self._settings_path.exists():  # which the lock would create
            raise RagError(f"{self.path} cannot be resumed: {self._settings_path} is missing")

    def _check_settings(self, settings: Mapping[str, Any]) -> None:
        where = str(self._settings_path)
        try:
            before = parse_object(self._settings_path.read_bytes(), where)
        except (OSError, FormatError) as error:
            raise RagError(f"{self.path} cannot be resumed: {where} cannot be read") from error
        changed = [key for key, value in settings.items() if key != "command" and before.get(key) != value]
        if changed:
            raise RagError(
                f"{self.path} cannot be resumed: it was started with another {', '.join(changed)}; "
                "name a new file to start again"
            )

    def _recover(self) -> None:
        """Find the rows that are there, after those that a kill kept from their place are put there."""
        _cut(self.path)
        self._merge()
        with self.path.open("rb") as file:
            for number, line in enumerate(file, 1):
                where = f"{self.path}:{number}"
                row = parse_object(line, where)
                self.done.append(field(row, "id", str, where))
                if row.get("failed") is True:
                    self.failed.append(self.done[-1])

    def write(self, record: Mapping[str, Any]) -> None:
        """Append one row and flush the file."""
        self._append(self._file, record)

    def renew(self, record: Mapping[str, Any]) -> None:
        """Write a row that replaces the one with its id; a kill does not undo it."""
        if self._renewals is None:
            try:
                self._renewals = self._renewed_path.open("a", encoding="utf-8", newline="\n")
            except OSError as error:
                raise RagError(f"{self._renewed_path}: cannot be written: {error.strerror}") from error
        self._append(self._renewals, record)

    def _append(self, file: TextIO, record: Mapping[str, Any]) -> None:
        try:
            file.write(dumps(record) + "\n")
            file.flush()
        except OSError as error:
            raise RagError(
                f"{self.path}: cannot be written: {error.strerror}; resuming (--resume) continues from here"
            ) from error

    def _merge(self) -> None:
        """Put the renewed rows in their places, all at once: a kill leaves the old file or the new one."""
        if not self._renewed_path.exists():
            return
        _cut(self._renewed_path)
        renewed = {field(row, "id", str, where): row for where, row in read_objects(self._renewed_path)}
        rows = ((field(row, "id", str, where), row) for where, row in read_objects(self.path))
        write_atomic(self.path, (dumps(renewed.get(key, row)) for key, row in rows))
        self._renewed_path.unlink()

    def __enter__(self) -> "Journal":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Close the files and put renewed rows in their places; an error is not replaced by another."""
        with self._held:
            if kind is None:
                self._finish()
            else:
                with suppress(UserError):
                    self._finish()

    def _finish(self) -> None:
        try:
            self._file.flush()
            os.fsync(self._file.fileno())
            self._shut()
            self._merge()
        except OSError as error:
            raise RagError(f"{self.path}: cannot be written: {error.strerror}") from error

    def _shut(self) -> None:
        for file in (self._file, self._renewals):
            if file is not None:
                with suppress(OSError):
                    file.close()


def _cut(path: Path) -> None:
    """Remove a last row without a line end, which a kill has cut off."""
    with path.open("rb+") as file:
        whole = 0
        for line in file:
            if not line.endswith(b"\n"):
                break
            whole += len(line)
        file.truncate(whole)


def pending(questions: Iterable[Question], done: Sequence[str]) -> list[Question]:
    """The questions still to answer; raises `FormatError` if `done` are not the first questions, in order."""
    listed = list(questions)
    if [question.id for question in listed[: len(done)]] != list(done):
        raise FormatError("the rows already written are not the first of these questions; was the file changed?")
    return listed[len(done) :]
