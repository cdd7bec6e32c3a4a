"""The folder that a run or a collection is written to: its lock, its record, and how stopped work goes on."""

import re
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from autoais.base.io.jsonl import dumps, parse_object, round_floats, write_atomic
from autoais.base.io.locks import file_lock
from autoais.base.io.provenance import sha256_file
from autoais.base.io.schema import Schema, faults
from autoais.base.progress import Progress
from rag.base.errors import FormatError, RagError
from rag.base.journal import Journal, pending
from rag.bench.question_files import BenchQuestion

LOCK = ".lock"
START_AGAIN = "name a new folder to start again"
_TEMPORARY = re.compile(r"\.(?P<name>.+)\.[0-9a-f]{16}")  # a file of `write_atomic` that is not in its place yet


@contextmanager
def lock_folder(folder: Path, *, is_shared: bool = False) -> Iterator[None]:
    """Hold the lock of a folder, which is created; `is_shared` lets others read it too, but not write.

    An error leaves no folder that was not there, unless a file was written. Raises `RagError` if another process holds
    the lock, and in place of an `OSError`.
    """
    busy = RagError(f"{folder}: another process is using it; wait for it, or name another folder")
    is_new = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with file_lock(folder / LOCK, busy, is_shared=is_shared):
            try:
                yield
            finally:
                if is_new and [path.name for path in folder.iterdir()] == [LOCK]:
                    shutil.rmtree(folder)
    except OSError as error:
        raise RagError(f"{error.filename or folder}: cannot be read or written: {error.strerror}") from error


def sweep_folder(folder: Path, record: str, names: re.Pattern[str], own_files: Collection[str] = ()) -> None:
    """Remove the temporary files that killed writes of `names` left in a folder and in those in it.

    Raises `RagError` if the folder has no file `record` yet and holds anything but `own_files`, which a kill at the
    start leaves.
    """
    temporaries = [
        path
        for path in [*folder.glob(".*"), *folder.glob("*/.*")]
        if (match := _TEMPORARY.fullmatch(path.name)) and names.fullmatch(match["name"])
    ]
    if not (folder / record).exists():
        own_names = {LOCK, *own_files, *(path.name for path in temporaries)}
        if foreign := sorted(path.name for path in folder.iterdir() if path.name not in own_names):
            raise RagError(f"{folder} is not empty (it holds {foreign[0]}); name a new folder")
    for path in temporaries:
        path.unlink()


def write_record(path: Path, record: Mapping[str, Any]) -> None:
    """Write a record as JSON, atomically."""
    write_atomic(path, [dumps(round_floats(dict(record)), indent=2)])


def read_record(path: Path, schema: Schema, advice: str) -> dict[str, Any]:
    """Read a record; raises `RagError` if it cannot be read, `FormatError` if it is broken or breaks the schema."""
    try:
        record = parse_object(path.read_bytes(), str(path))
    except OSError as error:
        problem = "no such file" if isinstance(error, FileNotFoundError) else f"cannot be read: {error.strerror}"
        raise RagError(f"{path}: {problem}; {advice}") from error
    for fault in faults(record, schema):
        raise FormatError(f"{path}: {fault}")
    return record


def count_examples(values: Iterable[str], max_examples: int) -> dict[str, Any]:
    """Return what a record says of problems: their number, and the first ones."""
    examples = list(values)
    return {"count": len(examples), "examples": examples[:max_examples]}


def find_differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return the keys of `now` that have another value in `before`, or none."""
    return [key for key, value in now.items() if before.get(key) != value]


def check_same(folder: Path, differences: Sequence[str], advice: str = START_AGAIN) -> None:
    """Raise `RagError` if work was started with other settings or data than it is to go on with."""
    if differences:
        names = ", ".join(sorted(differences))
        raise RagError(f"{folder} cannot be continued: it was started with other {names}; {advice}")


def check_file(path: Path, sha256: str, advice: str = START_AGAIN) -> None:
    """Raise `RagError` if a complete file is gone, or is no longer the one of this checksum."""
    if not path.is_file():
        raise RagError(f"{path} is missing; {advice}")
    if sha256_file(path) != sha256:
        raise RagError(f"{path} was changed after it was written; {advice}")


def write_rows(
    path: Path,
    questions: Sequence[BenchQuestion],
    settings: Mapping[str, Any],
    make_rows: Callable[[Sequence[BenchQuestion]], Iterable[Mapping[str, Any]]],
    progress: Progress,
    step: str,
    retry_step: str | None = None,
) -> None:
    """Write a row for each question, in their order; the rows that a stopped run has written stay (`Journal`).

    `make_rows` yields the row of each question that it gets. With `retry_step`, the rows whose model had failed are
    made again.
    """
    with Journal(path, settings, resume=path.exists()) as journal:
        pending([question.question for question in questions], journal.done)
        count = len(journal.done)
        for number, row in enumerate(make_rows(questions[count:]), count + 1):
            journal.write(row)
            progress(step, number, len(questions))
        if retry_step is not None:
            failed_ids = set(journal.failed)
            failed_questions = [question for question in questions if question.question.id in failed_ids]
            for number, row in enumerate(make_rows(failed_questions), 1):
                journal.renew(row)
                progress(retry_step, number, len(failed_questions))
