"""One process at a time."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from autoais.errors import UserError


@contextmanager
def alone(lock: Path, otherwise: UserError) -> Iterator[None]:
    """Hold a file's lock, which a killed process gives back; `otherwise` is raised where another process holds it.

    `OSError` where the file cannot be made.
    """
    with lock.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise otherwise from None
        yield
