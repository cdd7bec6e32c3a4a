"""The passages of an index in one SQLite file, by row number (for engines) and by id (for citations)."""

import sqlite3
import weakref
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote

from autoais.base.errors import first_line
from autoais.base.io.jsonl import sync
from autoais.base.io.locks import shared_lock
from rag.base.errors import IndexingError
from rag.base.types import Passage

PASSAGES = "passages.sqlite"
_DAMAGE = "is damaged, build the index again"
COLUMNS = "id, title, text, section, headings, page"


class Store(Protocol):
    """Passages by row number, by id and in order."""

    def rows(self, rows: Sequence[int]) -> list[Passage]:
        """The passages in these rows, in the given order."""
        ...

    def get(self, identifier: str) -> Passage | None:
        """The passage with that id, or None."""
        ...

    def scan(self, first: int = 0) -> Iterator[Passage]:
        """Stream the passages, from a row on."""
        ...


class PassageStore:
    """Passages in rows 0 to n - 1, in the order they were added; ids are unique."""

    def __init__(self, connection: sqlite3.Connection, path: Path | None = None) -> None:
        self._connection = connection
        self._path = path
        self._columns = COLUMNS
        # Closes the connection with the last reference, so that callers need not.
        weakref.finalize(self, connection.close)

    @classmethod
    def create(cls, path: Path | None) -> "PassageStore":
        """Create a store at `path`, or in memory."""
        with faults("cannot be written"):
            store = cls(sqlite3.connect(path or ":memory:", isolation_level=None, check_same_thread=False), path)
            # No journal: an interrupted build is discarded as a whole.
            store._connection.executescript(
                "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA cache_size=-32768;"
                "CREATE TABLE passage (row INTEGER PRIMARY KEY, file INTEGER NOT NULL, id TEXT NOT NULL UNIQUE,"
                " title TEXT NOT NULL, text TEXT NOT NULL, section TEXT NOT NULL, headings TEXT, page INTEGER); BEGIN"
            )
        return store

    @classmethod
    def open(cls, path: Path) -> "PassageStore":
        """Open an existing store, read-only; its folder is kept from being removed as long as the store lives."""
        try:
            store = cls(read_only(path), path)
            keep_folder(store, path.parent)
            # Memory-mapped reads are faster, and only pages that are read become resident.
            store._connection.execute(f"PRAGMA mmap_size={1 << 40}")
            columns = [name for _, name, *_ in store._connection.execute("PRAGMA table_info(passage)")]
            if columns and "page" not in columns:  # an index from before pages were kept
                store._columns = COLUMNS.replace("page", "NULL")
            store._connection.execute(f"SELECT row, {store._columns} FROM passage LIMIT 1").fetchone()
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise IndexingError(
                f"{path}: cannot be read as a passage store ({first_line(error)}): build the index again"
            ) from error
        return store

    def add(self, first_row: int, passages: Sequence[Passage], file: int = 0) -> list[bool]:
        """Add passages of a file as rows from `first_row`; return which were added, as a repeated id is skipped.

        Rows are consecutive, without gaps. Raises `IndexingError` on a full or failing disk.
        """
        with faults("cannot be written"):
            return self._add(first_row, passages, file)

    def _add(self, first_row: int, passages: Sequence[Passage], file: int) -> list[bool]:
        values = [(file, *values_of(passage)) for passage in passages]
        sql = f"INSERT OR IGNORE INTO passage (row, file, {COLUMNS}) VALUES ({marks(2 + len(COLUMNS.split(',')))})"
        before = self._connection.total_changes
        self._connection.executemany(sql, ((first_row + i, *value) for i, value in enumerate(values)))
        if self._connection.total_changes - before == len(values):
            return [True] * len(values)
        # An id was repeated: remove the batch and add one at a time, so that rows have no gaps.
        self._connection.execute("DELETE FROM passage WHERE row >= ?", (first_row,))
        flags, row = [], first_row
        for value in values:
            before = self._connection.total_changes
            self._connection.execute(sql, (row, *value))
            flags.append(self._connection.total_changes > before)
            row += flags[-1]
        return flags

    def finish(self) -> None:
        """Commit and sync to disk."""
        with faults("cannot be written"):
            self._connection.execute("COMMIT")
            if self._path:
                sync(self._path)
                sync(self._path.parent)

    def rows(self, rows: Sequence[int]) -> list[Passage]:
        """The passages in these rows, in the given order."""
        if len(rows) > 500:  # SQLite limits the number of parameters
            return [p for i in range(0, len(rows), 500) for p in self.rows(rows[i : i + 500])]
        with faults(_DAMAGE):
            rows_found = self._connection.execute(
                f"SELECT row, {self._columns} FROM passage WHERE row IN ({marks(len(rows))})", rows
            )
            passages = {row: passage_of(values) for row, *values in rows_found}
        missing = next((row for row in rows if row not in passages), None)
        if missing is not None:
            raise IndexingError(f"the passage store {_DAMAGE}: row {missing} is missing")
        return [passages[row] for row in rows]

    def get(self, identifier: str) -> Passage | None:
        """The passage with that id, or None."""
        sql = f"SELECT {self._columns} FROM passage WHERE id = ?"
        with faults(_DAMAGE):
            values = self._connection.execute(sql, (identifier,)).fetchone()
        return passage_of(values) if values else None

    def of_file(self, number: int) -> Iterator[Passage]:
        """Stream the passages of a file of the index."""
        # Rows of a document that was changed are in no order, but its ids are numbered: shorter ones come first.
        sql = f"SELECT {self._columns} FROM passage WHERE file = ? ORDER BY length(id), id"
        with faults(_DAMAGE):
            for values in self._connection.execute(sql, (number,)):
                yield passage_of(values)

    def scan(self, first: int = 0) -> Iterator[Passage]:
        """Stream the passages, from a row on."""
        return (passage for _, passage in self.scan_files(first))

    def scan_files(self, first: int = 0) -> Iterator[tuple[int, Passage]]:
        """Stream (number of the file, passage), from a row on."""
        sql = f"SELECT file, {self._columns} FROM passage WHERE row >= ? ORDER BY row"
        return ((file, passage_of(values)) for file, *values in self._stream(sql, first))

    def ids(self) -> Iterator[str]:
        """Stream the ids, sorted."""
        return (identifier for (identifier,) in self._stream("SELECT CAST(id AS TEXT) FROM passage ORDER BY id"))

    def _stream(self, sql: str, *parameters: int) -> Iterator[Sequence[Any]]:
        """The rows of a query, by ordinary reads, as mapped pages would count as memory."""
        with faults(_DAMAGE), ExitStack() as stack:
            connection = self._connection
            if self._path is not None:
                connection = stack.enter_context(closing(read_only(self._path)))
            yield from connection.execute(sql, parameters)


def passage_of(values: Sequence[Any]) -> Passage:
    """The passage of a row; raises `IndexingError` for values of other types, which SQLite accepts."""
    *texts, headings, page = values
    fits = all(type(text) is str for text in texts)
    if not fits or not isinstance(headings, str | None) or not isinstance(page, int | None):
        raise IndexingError(f"the passage store {_DAMAGE}: row {texts[0]!r:.60} holds a value of another type")
    return Passage(*values)


def values_of(passage: Passage) -> tuple[str | int | None, ...]:
    """The values of `COLUMNS`; headings only if they differ from title and section, as in a few of Attributed QA."""
    headings = None if passage.headings == passage.default_headings else passage.headings
    return passage.id, passage.title, passage.text, passage.section, headings, passage.page


def marks(n: int) -> str:
    """The placeholders of n values in SQL."""
    return ",".join("?" * n)


def read_only(path: Path) -> sqlite3.Connection:
    """A connection to a database that nobody changes."""
    return sqlite3.connect(f"file:{quote(str(path))}?mode=ro&immutable=1", uri=True, check_same_thread=False)


def keep_folder(owner: object, folder: Path) -> None:
    """Hold a shared lock on a folder as long as `owner` lives, so that no update removes it meanwhile."""
    try:
        lock = ExitStack()
        lock.enter_context(shared_lock(folder))
    except BlockingIOError:
        raise IndexingError(f"{folder} is being removed; try again") from None
    except OSError:  # a file system without locks
        return
    weakref.finalize(owner, lock.close)


@contextmanager
def faults(problem: str) -> Iterator[None]:
    """Raise errors of SQLite as one `IndexingError`."""
    try:
        yield
    except (sqlite3.Error, OSError, UnicodeDecodeError) as error:
        raise IndexingError(f"the passage store {problem}: {first_line(error)}") from error
