"""A PostgreSQL server of one's own, for tests and measurements; in a temporary folder, and gone at the end."""

import os
import pwd
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def postgresql_programs() -> Path | None:
    """The folder of the newest `initdb` and `pg_ctl`; Debian keeps them off the path. None if there are none."""
    paths = sorted(Path("/usr/lib/postgresql").glob("*/bin/pg_ctl"), key=lambda path: float(path.parts[-3]))
    on_path = shutil.which("pg_ctl")
    if paths:
        return paths[-1].parent
    return Path(on_path).resolve().parent if on_path else None


class Server:
    """A running server."""

    def __init__(self, folder: Path, programs: Path) -> None:
        self._folder, self._programs = folder, programs
        # The server refuses to run as root.
        self._user = "nobody" if os.geteuid() == 0 else None

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self._programs / program), "-D", str(self._folder / "data"), *arguments]
        with (self._folder / "log").open("ab") as log:
            process = subprocess.run(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/", user=self._user, check=False
            )
        if process.returncode:
            raise RuntimeError(f"{program} failed: {(self._folder / 'log').read_text('utf-8', 'replace')[-2000:]}")

    def create(self) -> None:
        """Make its data."""
        if self._user:
            os.chown(self._folder, pwd.getpwnam(self._user).pw_uid, -1)
        self._run("initdb", "-A", "trust", "-U", "rag", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync")

    def start(self, *, durable: bool = True) -> None:
        """Start it, on a socket in the folder and no port; a server that is not durable does not wait for the disk."""
        fsync = "on" if durable else "off"
        options = f"-k {self._folder} -c listen_addresses= -c max_connections=200 -c fsync={fsync}"
        self._run("pg_ctl", "-w", "-t", "60", "-l", str(self._folder / "server.log"), "-o", options, "start")

    def stop(self, mode: str = "fast") -> None:
        """Stop it; `immediate` is as if the power went."""
        self._run("pg_ctl", "-w", "-m", mode, "stop")

    def url(self, database: str = "postgres") -> str:
        """The URL of a database."""
        return f"postgresql://rag@/{database}?host={self._folder}"

    def empty_database(self) -> str:
        """The URL of the server's first database, without what was in it; quicker than a new one."""
        import psycopg

        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
        return self.url()

    def new_database(self) -> str:
        """Create an empty database; return its URL."""
        import psycopg

        name = f"study_{secrets.token_hex(6)}"
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{name}"'.encode())
        return self.url(name)


@contextmanager
def running_postgresql(*, durable: bool = True) -> Iterator[Server]:
    """A server for the time of the block; raises `RuntimeError` where there is none to start."""
    programs = postgresql_programs()
    if programs is None:
        raise RuntimeError("no PostgreSQL server here: apt-get install postgresql")
    folder = Path(tempfile.mkdtemp(prefix="rag-postgresql."))
    server = Server(folder, programs)
    try:
        server.create()
        server.start(durable=durable)
        try:
            yield server
        finally:
            server.stop("immediate")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
