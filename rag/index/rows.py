"""Changes the rows of a copy of a passage store, so that they stay 0 to n - 1 without gaps and few of them move."""

import sqlite3
from collections.abc import Collection, Iterable, Iterator
from contextlib import closing
from pathlib import Path

from autoais.base.io.jsonl import sync
from rag.base.types import Passage
from rag.index.passages import COLUMNS, faults, marks, passage_of, values_of

_AT_ONCE = 500  # SQLite limits the number of parameters


class RowEditor:
    """Takes the passages of new and changed files into a store that holds those of all files before.

    A passage that a changed file still has keeps its row. Others take the rows of passages that are gone, and at the
    end the last rows move into those that are left. `written` are the rows whose passage is another than before.
    """

    def __init__(self, path: Path, rows: int) -> None:
        self._path, self.rows = path, rows
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._free: list[int] = []  # rows of passages that are gone
        self._waiting: set[int] = set()  # rows of changed files whose passage has not come again
        self.written: set[int] = set()
        with faults("cannot be written"):
            # No journal: an interrupted update is discarded as a whole.
            self._connection.executescript("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; BEGIN")

    def start(self, deleted_files: Collection[int], changed_files: Collection[int]) -> None:
        """Remove the passages of deleted files, and expect those of changed files again; both by number."""
        with faults("cannot be written"):
            for row, file in self._connection.execute("SELECT row, file FROM passage ORDER BY row DESC"):
                if file in deleted_files:
                    self._free.append(row)
                elif file in changed_files:
                    self._waiting.add(row)
            self._remove(self._free)

    def put(self, passage: Passage, file: int) -> bool:
        """Take in a passage of a file; False if its id is that of another passage that stays."""
        sql = f"SELECT row, file, {COLUMNS} FROM passage WHERE id = ?"
        values = values_of(passage)
        with faults("cannot be written"):
            row_before = self._connection.execute(sql, values[:1]).fetchone()
            if row_before is None:
                row = self._free.pop() if self._free else self.rows
                self.rows = max(self.rows, row + 1)
            else:
                row = row_before[0]
                if row not in self._waiting:
                    return False
                self._waiting.remove(row)
                if row_before[1:] == (file, *values):
                    return True
            sql = f"REPLACE INTO passage (row, file, {COLUMNS}) VALUES ({marks(2 + len(values))})"
            self._connection.execute(sql, (row, file, *values))
            if row_before is None or row_before[2:] != values:
                self.written.add(row)
        return True

    def drop(self, files: Collection[int]) -> None:
        """Remove the passages of further files, by number."""
        if not files:
            return
        with faults("cannot be written"):
            rows = [row for row, file in self._connection.execute("SELECT row, file FROM passage") if file in files]
            self._remove(rows)
        self._free = sorted({*self._free, *rows}, reverse=True)
        self.written.difference_update(rows)
        self._waiting.difference_update(rows)

    def scan(self) -> Iterator[tuple[int, Passage]]:
        """The passages that stay, each with the number of its file, in the order of rows."""
        with faults("cannot be read"):
            for row, file, *values in self._connection.execute(
                f"SELECT row, file, {COLUMNS} FROM passage ORDER BY row"
            ):
                if row not in self._waiting:
                    yield file, passage_of(values)

    def drop_passages(self, ids: Iterable[str]) -> None:
        """Remove single passages, by id."""
        with faults("cannot be written"):
            sql = "SELECT row FROM passage WHERE id = ?"
            rows = [row for item in ids for row in self._connection.execute(sql, (item,)).fetchone() or ()]
            self._remove(rows)
        self._free = sorted({*self._free, *rows}, reverse=True)
        self.written.difference_update(rows)
        self._waiting.difference_update(rows)

    def finish(self) -> None:
        """Remove what did not come again, close the gaps, and sync to disk."""
        with faults("cannot be written"), closing(self._connection):
            self._remove(self._waiting)
            gaps = {*self._free, *self._waiting}
            self.rows, last = self.rows - len(gaps), self.rows
            tail = [row for row in range(self.rows, last) if row not in gaps]
            moves = list(zip(sorted(gap for gap in gaps if gap < self.rows), tail, strict=True))
            self._connection.executemany("UPDATE passage SET row = ? WHERE row = ?", moves)
            self.written = {row for row in self.written if row < self.rows} | {row for row, _ in moves}
            self._connection.execute("COMMIT")
            sync(self._path)

    def abandon(self) -> None:
        """Close the store as it is."""
        self._connection.close()

    def _remove(self, rows: Iterable[int]) -> None:
        all_rows = list(rows)
        for first in range(0, len(all_rows), _AT_ONCE):
            batch = all_rows[first : first + _AT_ONCE]
            self._connection.execute(f"DELETE FROM passage WHERE row IN ({marks(len(batch))})", batch)
