"""Runs `pdf_worker.py` in a process of its own, which is stopped when a file takes too long."""

import atexit
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, NamedTuple

from rag.base.errors import BusyError, FormatError

_WORKER = Path(__file__).with_name("pdf_worker.py")


class _Running(NamedTuple):
    process: "subprocess.Popen[bytes]"
    stdin: IO[bytes]
    stdout: IO[bytes]


class PdfProcess:
    """A worker process that starts with the first file. Threads share it, one file after the other."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: _Running | None = None
        atexit.register(self._stop)

    def rows(
        self,
        data: bytes,
        location: str,
        seconds: float,
        request: Mapping[str, object] | None = None,
        patience: float = -1,
    ) -> Iterator[Any]:
        """Yield what the worker writes about a file; `request` says what it should do other than read all lines.

        Raises `FormatError`, which begins with `location`, if the file cannot be read within `seconds`, and `BusyError`
        if other files take longer than `patience` seconds (-1: no limit).
        """
        with self.turn(patience):
            running = self._start()
            late = threading.Event()

            def stop() -> None:
                late.set()
                running.process.kill()

            timer = threading.Timer(seconds, stop)
            timer.start()
            is_done = False
            try:
                running.stdin.write(json.dumps({"bytes": len(data), **(request or {})}).encode() + b"\n")
                running.stdin.write(data)
                running.stdin.flush()
                for line in running.stdout:
                    row = json.loads(line)
                    is_done = row is None or (isinstance(row, dict) and "error" in row)
                    if row is None:
                        return
                    if is_done:
                        raise FormatError(_explain_error(location, row["error"]))
                    yield row
            except (OSError, ValueError):
                pass  # the process ended, also in the middle of a line
            finally:
                timer.cancel()
                if not is_done:
                    self._stop()
        if late.is_set():
            raise FormatError(f"{location}: the PDF takes longer than {seconds:g} seconds to read")
        raise FormatError(f"{location}: the PDF cannot be read: the reader crashed on it or ran out of memory")

    @contextmanager
    def turn(self, patience: float = -1) -> Iterator[None]:
        """Hold the worker; raises `BusyError` if others hold it longer than `patience` seconds (-1: no limit)."""
        if not self._lock.acquire(timeout=patience):
            raise BusyError("too many PDFs are being read; try again later")
        try:
            yield
        finally:
            self._lock.release()

    def _start(self) -> _Running:
        if self._running is None or self._running.process.poll() is not None:
            self._stop()
            paths = os.pathsep.join(part for part in sys.path if part)
            process = subprocess.Popen(
                # -P: the worker's folder has modules with names of the standard library's.
                [sys.executable, "-P", str(_WORKER)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": paths},
            )
            assert process.stdin is not None
            assert process.stdout is not None
            self._running = _Running(process, process.stdin, process.stdout)
        return self._running

    def _stop(self) -> None:
        running, self._running = self._running, None
        if running is None:
            return
        running.process.kill()
        running.process.wait()
        for stream in (running.stdin, running.stdout):
            with suppress(OSError):
                stream.close()


def _explain_error(location: str, error: str) -> str:
    if "assword" in error:
        return f"{location}: the PDF is encrypted: save it without a password first"
    if "No module named" in error:
        return f"{location}: reading PDFs needs pypdfium2: pip install pypdfium2"
    return f"{location}: the PDF cannot be read: {error}"
