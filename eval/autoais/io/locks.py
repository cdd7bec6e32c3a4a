"""File locks between processes."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from autoais.errors import UserError


@contextmanager
def exclusive_lock(lock: Path, error: UserError) -> Iterator[None]:
    """Hold an exclusive lock on a file; raises `error` if another process holds it.

    The system releases the lock of a killed process. Raises `OSError` if the file cannot be created.
    """
    with lock.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise error from None
        yield
