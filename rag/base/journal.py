"""A file of rows, one for each question, that is written row by row and resumed after a kill."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from autoais.base.errors import FormatError, UserError
from autoais.base.io.journal import AppendFile
from autoais.base.io.jsonl import dumps, field, parse_object, read_objects, sync, write_atomic
from autoais.base.io.locks import file_lock
from rag.base.errors import RagError
from rag.base.types import Question


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
        self._renewals: AppendFile | None = None
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
            except OSError as error:
                raise RagError(f"{path}: cannot be written: {error.strerror}") from error
            self._rows = stack.enter_context(AppendFile(path))
            self._held = stack.pop_all()

    def _check_new(self, *, resume: bool) -> None:
        if self.path.exists() and not resume:
            raise RagError(f"{self.path} exists: resume it (--resume), or name another file")
        if self.path.exists() and not self._settings_path.exists():  # which the lock would create
            raise RagError(f"{self.path} cannot be resumed: {self._settings_path} is missing")

    def _check_settings(self, settings: Mapping[str, Any]) -> None:
        location = str(self._settings_path)
        try:
            before = parse_object(self._settings_path.read_bytes(), location)
        except (OSError, FormatError) as error:
            raise RagError(f"{self.path} cannot be resumed: {location} cannot be read") from error
        differences = [key for key, value in settings.items() if key != "command" and before.get(key) != value]
        if differences:
            raise RagError(
                f"{self.path} cannot be resumed: it was started with another {', '.join(differences)}; "
                "name a new file to start again"
            )

    def _recover(self) -> None:
        """Find the rows that are there, after those that a kill kept from their place are put there."""
        for path in (self.path, self._renewed_path):
            if path.exists():
                with AppendFile(path) as file:
                    file.cut_incomplete_line()
        self._merge()
        with self.path.open("rb") as rows:
            for number, line in enumerate(rows, 1):
                location = f"{self.path}:{number}"
                row = parse_object(line, location)
                self.done.append(field(row, "id", str, location))
                if row.get("failed") is True:
                    self.failed.append(self.done[-1])

    def write(self, record: Mapping[str, Any]) -> None:
        """Append one row; it is in the file on return."""
        self._append(self._rows, record)

    def renew(self, record: Mapping[str, Any]) -> None:
        """Write a row that replaces the one with its id; a kill does not undo it."""
        if self._renewals is None:
            self._renewals = self._held.enter_context(AppendFile(self._renewed_path))
        self._append(self._renewals, record)

    def _append(self, file: AppendFile, record: Mapping[str, Any]) -> None:
        try:
            file.append(f"{dumps(record)}\n".encode())
        except UserError as error:
            raise RagError(f"{error}; resuming (--resume) continues from here") from error

    def _merge(self) -> None:
        """Put the renewed rows in their places, all at once: a kill leaves the old file or the new one."""
        if not self._renewed_path.exists():
            return
        renewals = {field(row, "id", str, location): row for location, row in read_objects(self._renewed_path)}
        rows = ((field(row, "id", str, location), row) for location, row in read_objects(self.path))
        write_atomic(self.path, (dumps(renewals.get(key, row)) for key, row in rows))
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
        self._rows.close()
        if self._renewals is not None:
            self._renewals.close()
        try:
            self._merge()
        except OSError as error:
            raise RagError(f"{self.path}: cannot be written: {error.strerror}") from error


def pending(questions: Iterable[Question], done_ids: Sequence[str]) -> list[Question]:
    """The questions still to answer; raises `FormatError` if `done_ids` are not the first questions, in order."""
    question_list = list(questions)
    if [question.id for question in question_list[: len(done_ids)]] != list(done_ids):
        raise FormatError("the rows already written are not the first of these questions; was the file changed?")
    return question_list[len(done_ids) :]
