"""Files of lines that one process appends to; a kill or a full disk costs at most the lines that it was writing."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from autoais.base.errors import UserError, unreadable
from autoais.base.io.locks import file_lock

MAX_LINE_BYTES = 1 << 20
_SYNC = 16  # appends between two calls of fsync
_BLOCK = 1 << 16  # bytes that are read at once in search of the last line end


class AppendFile:
    """A file of lines that is locked, and appended to, by one process; `size` is its length in bytes.

    The lines of an `append` are in the file when it returns. A kill in the middle of one leaves an incomplete last
    line, which stays until `cut_incomplete_line` or `cut` removes it. Raises `UserError` if the path is not that of a
    regular file, if another process has opened it so, and if it cannot be read or written.
    """

    def __init__(self, path: Path) -> None:
        if path.exists() and not path.is_file():
            raise UserError(f"{path} is not a regular file; name another file")
        busy = UserError(f"{path} is in use by another run; wait for it, or name another file")
        self.path = path
        self._appends = 0
        with ExitStack() as stack:
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                stack.enter_context(file_lock(path, busy))
                self._descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
                stack.callback(os.close, self._descriptor)
                self.size = os.fstat(self._descriptor).st_size
            except OSError as error:
                raise self._unwritable(error) from error
            self._resources = stack.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the file; an error of the block is not replaced by one of closing."""
        if kind is None:
            self.close()
        else:
            with suppress(UserError):
                self.close()

    def lines(self) -> Iterator[bytes]:
        """The lines from the start, each with its end; one of more than `MAX_LINE_BYTES` comes in pieces of that."""
        try:
            with self.path.open("rb") as file:
                while line := file.readline(MAX_LINE_BYTES):
                    yield line
        except OSError as error:
            raise unreadable(self.path, error) from error

    def line_at(self, offset: int) -> bytes:
        """The line that begins there, without its end; of a line without end, `MAX_LINE_BYTES` and more."""
        line = b""
        while b"\n" not in line and len(line) <= MAX_LINE_BYTES:
            try:
                piece = os.pread(self._descriptor, 1 << 14, offset + len(line))
            except OSError as error:
                raise unreadable(self.path, error) from error
            if not piece:
                break
            line += piece
        return line.partition(b"\n")[0]

    def append(self, data: bytes) -> None:
        """Write lines at the end, all of them or, with an error, none."""
        try:
            remainder = memoryview(data)
            while remainder:
                remainder = remainder[os.write(self._descriptor, remainder) :]
            self._appends += 1
            if self._appends % _SYNC == 0:
                os.fsync(self._descriptor)
        except OSError as error:
            with suppress(OSError):  # otherwise the next run removes the incomplete line
                os.ftruncate(self._descriptor, self.size)
            raise self._unwritable(error) from error
        self.size += len(data)

    def cut(self, size: int) -> None:
        """Shorten the file to that many bytes."""
        try:
            os.ftruncate(self._descriptor, size)
        except OSError as error:
            raise self._unwritable(error) from error
        self.size = size

    def cut_incomplete_line(self) -> None:
        """Remove a last line without a line end, which a kill has cut off."""
        end = self.size
        while end:
            start = max(0, end - _BLOCK)
            try:
                block = os.pread(self._descriptor, end - start, start)
            except OSError as error:
                raise unreadable(self.path, error) from error
            if (position := block.rfind(b"\n")) >= 0:
                end = start + position + 1
                break
            end = start
        if end < self.size:
            self.cut(end)

    def close(self) -> None:
        """Flush to disk and release the lock."""
        if self._descriptor < 0:
            return
        descriptor, self._descriptor = self._descriptor, -1
        with self._resources:
            try:
                os.fsync(descriptor)
            except OSError as error:
                raise self._unwritable(error) from error

    def _unwritable(self, error: OSError) -> UserError:
        return UserError(f"{self.path}: cannot be written: {error.strerror}")
