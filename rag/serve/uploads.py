"""Documents that people add to an index, replace and delete: checked one by one, and stored beside the index.

Changes wait in a queue; all that wait are made at once, in one update of the index. Until it is complete, questions are
answered from the old index. A change that fails, is cancelled or is killed leaves folder and index as they were. The
name of a file is never used as a path: the file is stored under a name made from its letters.
"""

import logging
import re
import secrets
import shutil
import tempfile
import threading
import time
import unicodedata
import weakref
from collections.abc import Iterator, Mapping, Sequence, Set
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from autoais.base.io.jsonl import dumps, parse_object, write_atomic
from autoais.base.io.locks import file_lock, lock_if_free
from autoais.base.io.provenance import sha256_file
from rag.api import add_to_index, list_documents, open_index, remove_from_index, update_index
from rag.base.errors import FormatError, IndexingError, UsageError, UserError
from rag.base.terminal import pluralize
from rag.documents import SUFFIXES, kind_of, load_document
from rag.index.files import roots_of
from rag.index.index import Index
from rag.index.listing import IndexedDocument
from rag.index.manifest import read_manifest
from rag.index.passages import keep_folder

if TYPE_CHECKING:
    from rag.serve.service import Service

MAX_BYTES = 64 << 20  # of all files of a form, and of one file
MAX_FILES = 100
_MAX_NAME_LENGTH = 80
_PATIENCE = 5.0  # seconds that the end of the server waits for a change to stop
_SHOWN_SECONDS = 900  # for which a change that has ended is shown
_MAX_SHOWN = 200
_INCOMING = ".incoming-"  # folders of files that are not in the index yet
_REMOVED = ".removed"  # files that a change replaces or deletes, until the index is complete
_JOURNAL = ".change.json"  # what a change puts into the folder
_LOCK = ".lock"
_UNCHANGED = "unchanged"
UNCHANGEABLE = "the server cannot change the index now; its log says why"
"""The message of a change that fails for a reason that only the operator can mend."""
_log = logging.getLogger(__name__)


class State(Enum):
    """Where a change stands."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(eq=False)
class Change:
    """A file to be added, or a document to be replaced or deleted.

    `name` is what people see. `path` is the new file, None to delete. `target` is the name under which the document is
    stored; empty for a file that gets a free name. `replaces` says whether it is there already. `message` says what
    became of the change. `finished` gets the state at the end, and is never an exception.
    """

    name: str
    path: Path | None
    target: str = ""
    id: str = field(default_factory=lambda: secrets.token_urlsafe(9))
    state: State = State.WAITING
    message: str = ""
    replaces: bool = False
    must_stop: bool = False
    ended: float = 0.0
    finished: "Future[State]" = field(default_factory=Future)

    @property
    def action(self) -> str:
        """What is done, as a participle."""
        return "deleted" if self.path is None else "replaced" if self.replaces else "added"

    def end(self, state: State, message: str = "") -> None:
        """Record what became of it, and remove its file."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)
        self.state, self.message, self.ended = state, message, time.monotonic()
        if not self.finished.done():
            self.finished.set_result(state)


class _StopError(Exception):
    """A change that is being made was cancelled."""


class Documents:
    """The documents of an index that a service serves, which people may add to; threads share it.

    The files are stored in the folder `NAME.uploads` beside the index, which becomes one of its sources. Raises
    `UsageError` for an index that is not served, and for one that cannot take documents or be written.
    """

    def __init__(self, service: "Service", name: str) -> None:
        if name not in service.indexes:
            raise UsageError(f"no index called {name!r} to add documents to; there are: {', '.join(service.indexes)}")
        self._service, self.name = service, name
        self.folder = folder_of(service.indexes[name], name)
        self.uploads = self.folder.parent / f"{self.folder.name}.uploads"
        _check_writable(self.uploads, self.folder)
        with suppress(OSError):  # another user's folder, in which this one may write
            self.uploads.chmod(0o700)
        self._source, self._store = self.uploads.resolve(), _Store(self.uploads)
        self._lock = threading.Lock()
        self._worker: threading.Thread | None = None
        self._changes: list[Change] = []
        self.step, self.done_count, self.total = "", 0, 0
        with suppress(UserError), self._store.locked():  # else another server is changing it
            self._settle()

    # --- for the threads of requests ----------------------------------------------------------------------------------

    def new_file(self, file_name: str) -> Path:
        """Create a file that only its owner can read, for the content of a document that has this name."""
        return self._store.new_file("".join(PurePosixPath(safe_name(file_name) or "x").suffixes[-2:]))

    def submit(self, changes: Sequence[Change]) -> None:
        """Queue changes; their files belong to the queue from now on."""
        with self._lock:
            self._forget()
            self._changes += changes
            if self._worker is None:
                # A change that is killed at the end of the server is undone at the next start.
                self._worker = threading.Thread(target=self._work, name=f"documents-{self.name}", daemon=True)
                self._worker.start()

    def cancel(self, identifier: str) -> None:
        """Cancel a change, if it has not ended; one that is being made stops at its next step."""
        with self._lock:
            for change in self._changes:
                if change.id == identifier and change.state is State.WAITING:
                    change.end(State.CANCELLED)
                elif change.id == identifier:
                    change.must_stop = True

    @property
    def changes(self) -> list[Change]:
        """The changes that wait or are being made, and those that ended lately; the oldest first."""
        with self._lock:
            self._forget()
            return list(self._changes)

    @property
    def running(self) -> bool:
        """Whether a change waits or is being made."""
        with self._lock:
            return self._worker is not None

    def is_upload(self, document: IndexedDocument) -> bool:
        """Whether a document of the index was added here, so that it can be replaced and deleted."""
        return _resolve(document.source) == self._source and document.path.parent == document.source

    def close(self) -> None:
        """Cancel all changes, and wait some seconds for the one that is being made."""
        for change in self.changes:
            self.cancel(change.id)
        worker = self._worker
        if worker is not None:
            worker.join(_PATIENCE)
        if worker is None or not worker.is_alive():
            self._store.close()

    def _forget(self) -> None:
        """Forget changes that ended long ago, and the oldest of too many."""
        limit = time.monotonic() - _SHOWN_SECONDS
        ended = [change for change in self._changes if change.ended]
        old = {change.id for change in ended[:-_MAX_SHOWN]} | {change.id for change in ended if change.ended < limit}
        self._changes = [change for change in self._changes if change.id not in old]

    # --- in the worker ------------------------------------------------------------------------------------------------

    def _work(self) -> None:
        while batch := self._take():
            self.step, self.done_count, self.total = "checking", 0, 0
            try:
                with self._store.locked():
                    self._make(batch)
            except Exception as error:  # noqa: BLE001  (the thread goes on with what waits)
                _log.error("documents of %s were not changed: %s", self.name, error, exc_info=_is_fault(error))
                self._fail(batch, UNCHANGEABLE)

    def _take(self) -> list[Change]:
        """Return the changes that wait, at most one for each document; without any, the worker ends."""
        with self._lock:
            batch: list[Change] = []
            targets: set[str] = set()
            for change in self._changes:
                if change.state is State.WAITING and change.target not in targets:
                    change.state = State.RUNNING
                    batch.append(change)
                    targets.update([change.target] if change.target else [])
            if not batch:
                self._worker = None
            return batch

    def _make(self, batch: Sequence[Change]) -> None:
        """Check changes, make those that can be made, and undo them if one is cancelled or the index fails."""
        self._settle()
        documents = list_documents(open_index(self.folder))
        uploads = {document.path.name: document for document in documents if self.is_upload(document)}
        checksums = {item.sha256: item.path.name if self.is_upload(item) else item.name for item in documents}
        accepted: list[Change] = []
        try:
            for change in batch:
                self._stop_if_cancelled(batch)
                taken = {*uploads, *(other.target for other in accepted)}
                if problem := self._check(change, uploads, checksums, taken):
                    change.end(State.DONE if problem == _UNCHANGED else State.FAILED, problem)
                else:
                    accepted.append(change)
            if _would_be_empty(accepted, documents, uploads):
                self._fail(accepted, "an index needs a document with text; add another one before")
            elif accepted:
                self._store.apply({change.target: change.path for change in accepted})
                self._update_index({*uploads} | {change.target for change in accepted if change.path}, batch)
        except _StopError:
            self._settle()
            self._put_back(batch)
            return
        finally:
            documents = self._settle()
        if any(change.state is State.RUNNING for change in accepted):
            self.step = "opening the index"
            self._service.replace(self.name, open_index(self.folder))
            self._report(accepted, documents)

    def _check(
        self, change: Change, uploads: Mapping[str, IndexedDocument], checksums: dict[str, str], taken: Set[str]
    ) -> str:
        """Return why a change cannot be made, empty if it can; one with a new file gets its target.

        `checksums` have the names of documents.
        """
        change.replaces = change.target in uploads
        if change.path is None:
            return "" if change.replaces else "not there any more"
        name = safe_name(change.name)
        if name is None:
            return f"not a document ({', '.join(sorted(SUFFIXES))})"
        if change.target and _suffix(name) != _suffix(change.target):
            return f"not a {_suffix(change.target)} file as the document that it would replace"
        digest = sha256_file(change.path)
        if digest in checksums:
            return _UNCHANGED if checksums[digest] == change.target else f"already there, as {checksums[digest]}"
        change.target = change.target or _free(self.uploads, name, taken)
        try:
            document = load_document(change.path, change.target)
        except FormatError as error:
            return str(error).removeprefix(f"{change.path}: ")
        except Exception:  # noqa: BLE001  (a fault of a reader is no reason to refuse the other files)
            _log.exception("%s cannot be read", change.target)
            return "cannot be read"
        if not document.passages:
            return "has no text"
        checksums[digest] = change.target
        return ""

    def _update_index(self, names: set[str], batch: Sequence[Change]) -> None:
        """Bring the index up to date with the folder of uploads, in which it should have these files."""

        def report(step: str, done_count: int, total: int) -> None:
            self._stop_if_cancelled(batch)
            self.step, self.done_count, self.total = step, done_count, total

        self.step = "reading"
        roots = roots_of(read_manifest(self.folder), self.folder)
        is_source = any(root.source.path.resolve() == self._source for root in roots)
        if not is_source:
            add_to_index(self.folder, [self.uploads], progress=report)
        elif any((self.uploads / name).is_file() for name in names):
            update_index(self.folder, [self.uploads], progress=report)
        else:  # an update would take an empty folder for a disk that is not mounted
            remove_from_index(self.folder, [self.uploads], progress=report)

    def _report(self, accepted: Sequence[Change], documents: Sequence[IndexedDocument]) -> None:
        """End changes that were made, with what the new index has of their documents."""
        uploads = {document.path.name: document for document in documents if self.is_upload(document)}
        for change in accepted:
            document = uploads.get(change.target)
            if change.path is None:
                change.end(State.DONE)
            elif document is None:  # rag index remove has named it
                change.end(State.FAILED, "the index leaves out files of this name: send it under another one")
            else:
                parts = [pluralize(document.passages, "passage"), document.left_out]
                change.end(State.DONE, "; ".join(filter(None, parts)))

    def _stop_if_cancelled(self, batch: Sequence[Change]) -> None:
        if any(change.must_stop and change.state is State.RUNNING for change in batch):
            raise _StopError

    def _put_back(self, batch: Sequence[Change]) -> None:
        """End the changes that were cancelled, and queue the others again."""
        with self._lock:
            for change in batch:
                if change.state is State.RUNNING and change.must_stop:
                    change.end(State.CANCELLED)
                elif change.state is State.RUNNING:
                    change.state = State.WAITING

    def _fail(self, batch: Sequence[Change], message: str) -> None:
        for change in batch:
            if change.state is State.RUNNING:
                change.end(State.FAILED, message)

    def _settle(self) -> list[IndexedDocument]:
        """Undo what a change put into the folder or took from it, unless the index has it.

        Returns the documents of the index, none if no change has begun.
        """
        if self._store.is_settled:
            return []
        documents = list_documents(open_index(self.folder))
        self._store.settle({item.path.name: item.sha256 for item in documents if self.is_upload(item)})
        return documents


class _Store:
    """The folder of uploads: its files, and those that a change adds, replaces or removes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._journal, self._removed = folder / _JOURNAL, folder / _REMOVED
        for path in folder.glob(f"{_INCOMING}*"):
            with suppress(OSError), lock_if_free(path) as is_free:  # of a server that was killed
                if is_free:
                    shutil.rmtree(path, ignore_errors=True)
        self._incoming = Path(tempfile.mkdtemp(prefix=_INCOMING, dir=folder))
        self.close = weakref.finalize(self, shutil.rmtree, self._incoming, ignore_errors=True)
        keep_folder(self, self._incoming)
        (folder / _LOCK).touch(0o600)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Exclude other servers; raises `IndexingError` if one is making a change."""
        busy = IndexingError(f"{self._folder}: another server is changing the documents")
        with file_lock(self._folder / _LOCK, busy):
            yield

    def new_file(self, suffix: str) -> Path:
        """Create an empty file outside of the index."""
        path = self._incoming / f"{secrets.token_hex(8)}{suffix}"
        path.touch(0o600)
        return path

    def apply(self, files: Mapping[str, Path | None]) -> None:
        """Put copies of files into the folder under these names, and take away what is to be replaced or deleted."""
        checksums = {name: sha256_file(path) for name, path in files.items() if path is not None}
        write_atomic(self._journal, [dumps({"new": checksums})])
        self._removed.mkdir(mode=0o700, exist_ok=True)
        for name, path in files.items():
            target = self._folder / name
            if target.exists():
                target.replace(self._removed / name)
            if path is not None:
                copy = self.new_file(".copy")
                shutil.copyfile(path, copy)
                copy.replace(target)

    @property
    def is_settled(self) -> bool:
        """Whether no change has begun."""
        return not self._journal.exists() and not self._removed.exists()

    def settle(self, indexed: Mapping[str, str]) -> None:
        """End a change: it is kept or undone, file by file, as the index has it; `indexed` are names and checksums."""
        new = self._read_journal()
        removed = {path.name: path for path in self._removed.glob("*")} if self._removed.exists() else {}
        for name in {*new, *removed}:
            target, old = self._folder / name, removed.get(name)
            if indexed.get(name) == new.get(name):
                if old is not None:
                    old.unlink()
                continue
            if name in new and target.is_file() and sha256_file(target) == new[name]:
                target.unlink()
            if old is not None and not target.exists():
                old.replace(target)
        shutil.rmtree(self._removed, ignore_errors=True)
        self._journal.unlink(missing_ok=True)

    def _read_journal(self) -> dict[str, str]:
        try:
            new = parse_object(self._journal.read_bytes(), str(self._journal)).get("new")
        except (OSError, UserError):  # it is written first, so that nothing has been changed yet
            return {}
        pairs = new.items() if isinstance(new, dict) else ()
        return {name: str(digest) for name, digest in pairs if Path(name).name == name}


def _would_be_empty(
    accepted: Sequence[Change], documents: Sequence[IndexedDocument], uploads: Mapping[str, IndexedDocument]
) -> bool:
    """Return whether changes only delete documents, and no text would be left."""
    if not accepted or any(change.path is not None for change in accepted):
        return False
    deleted = {uploads[change.target].name for change in accepted}
    return not any(item.passages or item.left_out for item in documents if item.name not in deleted)


def _is_fault(error: Exception) -> bool:
    return not isinstance(error, UserError | OSError)


def _check_writable(uploads: Path, folder: Path) -> None:
    """Create the folder of uploads; raises `UsageError` unless files can be written there and in the index."""
    for directory in (uploads, folder):
        try:
            directory.mkdir(mode=0o700, exist_ok=True)
            with tempfile.TemporaryFile(dir=directory):
                pass
        except OSError as error:
            raise UsageError(
                f"{directory}: documents cannot be added, as it cannot be written: {error.strerror}"
            ) from None


def folder_of(index: Index, name: str) -> Path:
    """Return the folder of an index that can take documents; raises `UsageError` for others."""
    if index.build is None or index.lucene is not None:
        raise UsageError(f"index {name!r} is not a folder that documents can be added to; build one: rag index build")
    try:
        roots_of(index.manifest, index.build.parent)
    except IndexingError as error:
        raise UsageError(str(error)) from None
    return index.build.parent


def base_name(file_name: str) -> str:
    """Return the last part of a name that a browser sent; some send a whole path."""
    return re.split(r"[/\\]", file_name)[-1]


def safe_name(file_name: str) -> str | None:
    """Return a file name made of the letters and digits of another, with its suffix; None if it is no document's."""
    name = unicodedata.normalize("NFC", base_name(file_name))
    kind = kind_of(name)
    if kind is None:
        return None
    gzip_suffix = ".gz" if name.lower().endswith(".gz") else ""
    stem = PurePosixPath(name[: len(name) - len(gzip_suffix)])
    letters = re.sub(r"[^\w]+", "-", stem.stem, flags=re.UNICODE).strip("-_")[:_MAX_NAME_LENGTH]
    return f"{letters or 'document'}{kind}{gzip_suffix}"


def _suffix(name: str) -> str:
    """Return the suffix that says how a file is read."""
    return f"{kind_of(name)}{'.gz' if name.lower().endswith('.gz') else ''}"


def _free(folder: Path, name: str, taken: Set[str]) -> str:
    """Return a name in the folder that does not exist yet."""
    stem, dot, suffix = name.partition(".")
    target, number = name, 1
    while target in taken or (folder / target).exists():
        number += 1
        target = f"{stem}-{number}{dot}{suffix}"
    return target


@lru_cache(maxsize=256)
def _resolve(path: Path) -> Path:
    return path.resolve()
