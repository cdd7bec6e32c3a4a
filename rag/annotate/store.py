"""The database of a study: SQLite beside the settings, or PostgreSQL by URL. Both behave the same.

Writers take turns: a write transaction sees all that was committed before it, and nothing of another one.
"""

import math
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from autoais.base.errors import first_line
from rag.base.errors import StudyError, UserError, missing_extra

try:
    import sqlalchemy as sa
    from sqlalchemy import event, exc
except ImportError:
    raise missing_extra("rag annotate", "annotate") from None

_IDLE_SECONDS = 1.0
BUSY_SECONDS = 10.0
"""How long a transaction waits for others before it gives up."""

IN_CREATION = "making"
"""Name of a fact: the study is being created. The first opening removes it."""

SOURCE_FILE = "made of"
"""Name of a fact: the file in the folder that the items come from. Studies of earlier versions lack it."""

GUIDELINES = "guidelines"
"""Name of a fact: the checksums of the guidelines (`rag.annotate.guidelines.record_guidelines`)."""

metadata = sa.MetaData()
_COUNT = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

study_facts = sa.Table(  # the study: id, format, scheme, annotators, ...
    "study",
    metadata,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("value", sa.Text, nullable=False),
)
items = sa.Table(
    "item",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("place", _COUNT, nullable=False),  # in the order in which items are given out
    sa.Column("pool", sa.Text, nullable=False),  # study, training, gold
    sa.Column("answer", sa.Text, nullable=False),
    sa.Column("topic", sa.Text, nullable=False),  # the question that the answer belongs to
    sa.Column("open", sa.Boolean, nullable=False),  # needs more people
    sa.Column("row", sa.Text, nullable=False),  # as in items.jsonl
    sa.Index("item_open", "pool", "open", "place"),
    sa.Index("item_answer", "answer", "pool", "open", "place"),
)
people = sa.Table(
    "person",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("role", sa.Text, nullable=False),
    sa.Column("token_hash", sa.Text, unique=True),  # null: revoked
    sa.Column("expires", sa.Float(53)),
    sa.Column("passed", sa.Boolean, nullable=False),
    sa.Column("attempt", _COUNT, nullable=False),  # at the training round, from 1
    sa.Column("blocked", sa.Text),  # the reason
    sa.Column("exempt", sa.Boolean, nullable=False),  # from blocking by gold items, since an admin lifted it
)
assignments = sa.Table(
    "assignment",
    metadata,
    sa.Column("handle", sa.Text, primary_key=True),  # the item's id for this person
    sa.Column("annotator", sa.Text, sa.ForeignKey("person.id"), nullable=False),
    sa.Column("item", sa.Text, sa.ForeignKey("item.id"), nullable=False),
    sa.Column("attempt", _COUNT, nullable=False),  # 0 outside the training round
    sa.Column("phase", sa.Text, nullable=False),  # training, study, gold
    sa.Column("state", sa.Text, nullable=False),  # leased, done, flagged
    sa.Column("turn", _COUNT, nullable=False),  # of this person, from 1
    sa.Column("opened", sa.Float(53), nullable=False),
    sa.Column("leased", sa.Float(53), nullable=False),  # the lease ends so many minutes later
    sa.UniqueConstraint("annotator", "item", "attempt"),
    sa.Index("assignment_item", "item", "state"),
    sa.Index("assignment_person", "annotator", "state", "turn"),
)
batches = sa.Table(  # which items are for named people only; studies of earlier versions get it when they are opened
    "batch",
    metadata,
    sa.Column("item", sa.Text, sa.ForeignKey("item.id"), primary_key=True),
    sa.Column("annotator", sa.Text, sa.ForeignKey("person.id"), primary_key=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Index("batch_person", "annotator", "item"),
)
presses = sa.Table(  # append only
    "press",
    metadata,
    sa.Column("id", _COUNT, primary_key=True, autoincrement=True),
    sa.Column("press", sa.Text, unique=True, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),  # verdict, flag, comment, undo, audit, adjudication
    sa.Column("annotator", sa.Text, sa.ForeignKey("person.id"), nullable=False),
    sa.Column("item", sa.Text, sa.ForeignKey("item.id"), nullable=False),
    sa.Column("attempt", _COUNT, nullable=False),
    sa.Column("phase", sa.Text, nullable=False),  # training, study, gold, audit, adjudication
    sa.Column("question", sa.Text, nullable=False),
    sa.Column("value", sa.Text, nullable=False),
    sa.Column("evidence", sa.Text, nullable=False),  # JSON
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("seconds", sa.Float(53)),
    sa.Column("at", sa.Float(53), nullable=False),
    sa.Column("undoes", _COUNT, unique=True),  # the press that an undo takes back
    sa.Index("press_person", "annotator", "id"),
    sa.Index("press_item", "item", "annotator", "id"),
    sqlite_autoincrement=True,
)
_APPEND_ONLY = {
    "sqlite": [
        f"CREATE TRIGGER press_no_{verb} BEFORE {verb} ON press "
        "BEGIN SELECT RAISE(ABORT, 'presses are never changed'); END"
        for verb in ("UPDATE", "DELETE")
    ],
    "postgresql": [
        "CREATE FUNCTION press_append_only() RETURNS trigger AS "
        "$$ BEGIN RAISE EXCEPTION 'presses are never changed'; END $$ LANGUAGE plpgsql",
        "CREATE TRIGGER press_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON press "
        "FOR EACH STATEMENT EXECUTE FUNCTION press_append_only()",
    ],
}


class Database:
    """The database of a study. Transactions raise `StudyError`, on one line, if it cannot be reached or is full."""

    def __init__(self, url: str, *, create: bool = False, busy_seconds: float = BUSY_SECONDS) -> None:
        self._busy = busy_seconds
        self._turn = threading.Lock()
        self._file: Path | None = None
        self._inode: tuple[int, int] | None = None
        if url.startswith(("postgresql://", "postgres://")):
            self.engine = self._postgresql("postgresql+psycopg://" + url.partition("://")[2])
        else:
            self._file = Path(url).absolute()
            self.engine = self._sqlite(self._file, create)
        self.name = str(self.engine.url.set(drivername="postgresql").render_as_string()) if not self._file else url

    def _sqlite(self, path: Path, create: bool) -> "sa.Engine":
        def connect() -> sqlite3.Connection:
            # In the mode `rw`, SQLite does not replace a missing file by an empty one.
            mode = "rwc" if create else "rw"
            connection = sqlite3.connect(
                f"{path.as_uri()}?mode={mode}",
                uri=True,
                timeout=self._busy,
                check_same_thread=False,
                isolation_level=None,
            )
            for setting in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
                connection.execute(f"PRAGMA {setting}").close()
            return connection

        engine = sa.create_engine("sqlite://", creator=connect, poolclass=sa.QueuePool, pool_size=8, max_overflow=64)
        event.listen(engine, "begin", _begin_sqlite)
        return engine

    def _postgresql(self, url: str) -> "sa.Engine":
        milliseconds = int(self._busy * 1000)
        options = f"-c lock_timeout={milliseconds} -c synchronous_commit=on -c client_encoding=UTF8 -c timezone=UTC"
        try:
            parsed = sa.make_url(url)
        except (exc.ArgumentError, ValueError):
            raise UserError("the database should be a URL such as postgresql://user@host/name") from None
        try:
            engine = sa.create_engine(
                parsed,
                pool_size=8,
                max_overflow=32,
                pool_timeout=self._busy,
                connect_args={"connect_timeout": 10, "options": options},
            )
        except ImportError:
            raise missing_extra("a PostgreSQL database", "postgresql") from None
        event.listen(engine, "begin", _begin_postgresql)
        event.listen(engine, "checkout", _check_idle)
        event.listen(engine, "checkin", _note_idle)
        return engine

    @contextmanager
    def read(self, *, snapshot: bool = False) -> Iterator["sa.Connection"]:
        """A connection for reading; with `snapshot` all statements see the same state."""
        with self._transaction(snapshot=snapshot) as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator["sa.Connection"]:
        """A transaction that is committed, to disk, at the end of the block, and rolled back if an error leaves it."""
        # Threads of this process wait here, where waiting is fair and quick; other processes wait in the database.
        if not self._turn.acquire(timeout=self._busy):
            raise StudyError(f"{self.name}: the database is busy; nothing was recorded: try again")
        try:
            with self._transaction(write=True) as connection:
                yield connection
        finally:
            self._turn.release()

    @contextmanager
    def _transaction(self, *, write: bool = False, snapshot: bool = False) -> Iterator["sa.Connection"]:
        try:
            self._check_file()
            with self.engine.connect() as connection:
                options: dict[str, Any] = {"write": write}
                if self._file is None and not write:  # what SQLite reads in a transaction always is a snapshot
                    options["isolation_level"] = "REPEATABLE READ" if snapshot else "AUTOCOMMIT"
                with connection.execution_options(**options).begin():
                    yield connection
        except (exc.DBAPIError, exc.TimeoutError, sqlite3.Error) as error:
            raise StudyError(f"{self.name}: {_reason(error)}; nothing was recorded") from error

    def _check_file(self) -> None:
        """Raise `StudyError` if the file is gone: open connections would go on writing to it."""
        if self._file is None:
            return
        try:
            status = self._file.stat()
        except OSError:
            self._forget()
            if self._inode is not None:
                raise StudyError(f"{self.name}: the database is gone; put it back; nothing was recorded") from None
            return
        inode = status.st_dev, status.st_ino
        if self._inode not in (None, inode):
            self._forget()
        self._inode = inode

    def _forget(self) -> None:
        self.engine.dispose()

    @contextmanager
    def create(self) -> Iterator["sa.Connection"]:
        """A transaction that begins with empty tables; raises `UserError` if the database holds a study.

        A study that was never opened (`IN_CREATION`) is replaced: its creation was killed before the folder was there.
        """
        with self.write() as connection:
            if not sa.inspect(connection).has_table(study_facts.name):
                metadata.create_all(connection)
                for statement in _APPEND_ONLY[connection.dialect.name]:
                    connection.exec_driver_sql(statement)
            elif fact(connection, IN_CREATION) is None:
                raise UserError(f"{self.name} holds a study already; name another database")
            else:
                for table in (study_facts, items):
                    connection.execute(sa.delete(table))
            yield connection

    def upgrade(self) -> None:
        """Add what the database of an earlier version lacks."""
        with self.read() as connection:
            if sa.inspect(connection).has_table(batches.name):
                return
        with self.write() as connection:
            batches.create(connection, checkfirst=True)

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()


def fact(connection: "sa.Connection", name: str) -> str | None:
    """Return a fact of the study; None if it is not recorded."""
    value = connection.execute(sa.select(study_facts.c.value).where(study_facts.c.name == name)).scalar()
    return None if value is None else str(value)


def pairs(connection: "sa.Connection", query: "sa.Select[Any]") -> dict[str, Any]:
    """Return the rows of a query of two columns by the first one."""
    return {row[0]: row[1] for row in connection.execute(query)}


def _begin_sqlite(connection: "sa.Connection") -> None:
    write = connection.get_execution_options().get("write")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")


def _note_idle(_: object, record: "sa.pool.ConnectionPoolEntry") -> None:
    record.info["idle since"] = time.monotonic()


def _check_idle(connection: Any, record: "sa.pool.ConnectionPoolEntry", _: object) -> None:  # noqa: ANN401
    """Test a connection that was idle; the pool replaces one that was closed."""
    if time.monotonic() - record.info.get("idle since", math.inf) > _IDLE_SECONDS:
        try:
            connection.execute("SELECT 1")
            connection.rollback()
        except connection.Error as error:
            raise exc.DisconnectionError from error


_LOCK = 0x616E6E6F74617465  # "annotate"


def _begin_postgresql(connection: "sa.Connection") -> None:
    if connection.get_execution_options().get("write"):
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_LOCK})")


def _reason(error: BaseException) -> str:
    """The reason as one line, without SQL or its values."""
    cause = error.orig if isinstance(error, exc.DBAPIError) and error.orig is not None else error
    if isinstance(error, exc.TimeoutError):
        return "all connections of the database are in use"
    return first_line(cause)
