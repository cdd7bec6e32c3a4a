"""The passages of an index in one SQLite file, by row number (what engines return) and by id (what answers cite)."""

import sqlite3
import weakref
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Protocol
from urllib.parse import quote

from autoais.io.jsonl import sync
from rag.errors import IndexingError
from rag.types import Passage

_COLUMNS = "id, title, text, section"


class Store(Protocol):
    """Passages by row number, by id and in order."""

    def rows(self, rows: Sequence[int]) -> list[Passage]:
        """The passages in these rows, in the order asked for."""
        ...

    def get(self, identifier: str) -> Passage | None:
        """The passage with that id, or None."""
        ...

    def scan(self, first: int = 0) -> Iterator[Passage]:
        """The passages from a row on, streaming."""
        ...


class PassageStore:
    """Rows 0..n-1 in the order they were added. Ids are unique; adding a known one is refused row by row."""

    def __init__(self, connection: sqlite3.Connection, path: Path | None = None) -> None:
        self._connection = connection
        self._path = path
        # A store lives as long as something uses it; nobody has to remember to close it.
        weakref.finalize(self, connection.close)

    @classmethod
    def create(cls, path: Path | None) -> "PassageStore":
        """A new store at `path`, or in memory."""
        with _faults("cannot be written"):
            store = cls(sqlite3.connect(path or ":memory:", isolation_level=None, check_same_thread=False), path)
            # No journal: a build that breaks off is thrown away whole (the manifest is written last).
            store._connection.executescript(
                "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA cache_size=-32768;"
                "CREATE TABLE passage (row INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE,"
                " title TEXT NOT NULL, text TEXT NOT NULL, section TEXT NOT NULL); BEGIN"
            )
        return store

    @classmethod
    def open(cls, path: Path) -> "PassageStore":
        """An existing store, read only."""
        try:
            store = cls(_read_only(path), path)
            # Memory-mapped reading saves time at every page of hits; only what is touched stays resident.
            store._connection.execute(f"PRAGMA mmap_size={1 << 40}")
            store._connection.execute(f"SELECT row, {_COLUMNS} FROM passage LIMIT 1").fetchone()
        except sqlite3.Error as error:
            raise IndexingError(f"{path}: cannot be read as a passage store: {error}") from error
        return store

    def add(self, first_row: int, passages: Sequence[Passage]) -> list[bool]:
        """Add passages as rows `first_row`, ... and say which were added; one whose id is known is not.

        Those added take the rows without gaps. Raises `IndexingError` on a full or failing disk.
        """
        with _faults("cannot be written"):
            return self._add(first_row, passages)

    def _add(self, first_row: int, passages: Sequence[Passage]) -> list[bool]:
        values = [(p.id, p.title, p.text, p.section) for p in passages]
        sql = f"INSERT OR IGNORE INTO passage (row, {_COLUMNS}) VALUES (?, ?, ?, ?, ?)"
        before = self._connection.total_changes
        self._connection.executemany(sql, ((first_row + i, *value) for i, value in enumerate(values)))
        if self._connection.total_changes - before == len(values):
            return [True] * len(values)
        # Some id was known: take the batch back and add one at a time, so that rows stay without gaps.
        self._connection.execute("DELETE FROM passage WHERE row >= ?", (first_row,))
        added, row = [], first_row
        for value in values:
            before = self._connection.total_changes
            self._connection.execute(sql, (row, *value))
            added.append(self._connection.total_changes > before)
            row += added[-1]
        return added

    def finish(self) -> None:
        """End the build: what was added is on disk."""
        with _faults("cannot be written"):
            self._connection.execute("COMMIT")
            if self._path:
                sync(self._path)
                sync(self._path.parent)

    def rows(self, rows: Sequence[int]) -> list[Passage]:
        """The passages in these rows, in the order asked for."""
        if len(rows) > 500:  # SQLite's limit on parameters, and no page is worth more
            return [p for i in range(0, len(rows), 500) for p in self.rows(rows[i : i + 500])]
        marks = ",".join("?" * len(rows))
        with _faults("is damaged, build the index again"):
            found = self._connection.execute(f"SELECT row, {_COLUMNS} FROM passage WHERE row IN ({marks})", rows)
            passages = {
                row: Passage(identifier, title, text, section) for row, identifier, title, text, section in found
            }
        return [passages[row] for row in rows]

    def get(self, identifier: str) -> Passage | None:
        """The passage with that id, or None."""
        sql = f"SELECT {_COLUMNS} FROM passage WHERE id = ?"
        with _faults("is damaged, build the index again"):
            found = self._connection.execute(sql, (identifier,)).fetchone()
        return Passage(*found) if found else None

    def scan(self, first: int = 0) -> Iterator[Passage]:
        """The passages from a row on, streaming, by ordinary reads: pages that are mapped would count as memory."""
        sql = f"SELECT {_COLUMNS} FROM passage WHERE row >= ? ORDER BY row"
        with _faults("is damaged, build the index again"), ExitStack() as stack:
            connection = self._connection
            if self._path is not None:
                connection = stack.enter_context(closing(_read_only(self._path)))
            for values in connection.execute(sql, (first,)):
                yield Passage(*values)


def _read_only(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{quote(str(path))}?mode=ro&immutable=1", uri=True, check_same_thread=False)


@contextmanager
def _faults(what: str) -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, OSError, UnicodeDecodeError) as error:
        raise IndexingError(f"the passage store {what}: {error}") from error
