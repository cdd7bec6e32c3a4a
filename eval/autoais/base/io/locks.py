"""File locks between processes."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from autoais.base.errors import UserError


@contextmanager
def file_lock(lock: Path, error: UserError, *, is_shared: bool = False) -> Iterator[None]:
    """Hold a lock on a file, exclusive or shared; raises `error`, with the process that excludes it, if there is one.

    The system releases the lock of a killed process. Raises `OSError` if the file cannot be created.
    """
    with lock.open("a") as file:  # "w" would empty the target of a link
        try:
            fcntl.flock(file, (fcntl.LOCK_SH if is_shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            raise type(error)(f"{error}{_holder(file.fileno())}") from None
        yield


def _holder(descriptor: int) -> str:
    """The process that holds a lock on a file, as the end of a message; empty where the system does not say it."""
    status = os.fstat(descriptor)
    file_id = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    with suppress(OSError):
        for line in Path("/proc/locks").read_text().splitlines():
            _, kind, _, _, process, file, *_ = line.replace("->", "").split()
            if (kind, file) == ("FLOCK", file_id) and int(process) > 0:
                return f" (process {process})"
    return ""


@contextmanager
def shared_lock(folder: Path) -> Iterator[None]:
    """Hold a shared lock on a folder that is there; raises `BlockingIOError` if a process holds it exclusively."""
    with _lock_folder(folder, fcntl.LOCK_SH):
        yield


@contextmanager
def lock_if_free(folder: Path) -> Iterator[bool]:
    """Yield whether no process holds a `shared_lock` on a folder; until the end of the block, none can take one."""
    try:
        with _lock_folder(folder, fcntl.LOCK_EX):
            yield True
    except BlockingIOError:
        yield False


@contextmanager
def _lock_folder(folder: Path, kind: int) -> Iterator[None]:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)
