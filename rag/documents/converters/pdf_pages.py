"""The lines of a PDF, read by `pdf_worker.py` in a process of its own that is stopped when it takes too long."""

import atexit
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, NamedTuple

from rag.base.errors import FormatError

SECONDS = 60.0  # for one file
_WORKER = Path(__file__).with_name("pdf_worker.py")


class Line(NamedTuple):
    """A line of text; positions and the font size are tenths of a point, from the lower left corner of the page.

    `cells` has three numbers for each part of a line that wide gaps part: where it begins in the text, its left and its
    right.
    """

    text: str
    left: int
    right: int
    y: int
    size: int
    look: int
    cells: Sequence[int] = ()

    @property
    def is_slanted(self) -> bool:
        """Whether the line is neither level nor upright, as a watermark."""
        return bool(self.look & 4)

    @property
    def mono(self) -> bool:
        """Whether the letters are of the same width."""
        return bool(self.look & 1)


class Pages(NamedTuple):
    """A file's title, its bookmarks (level, title, page from 0, height on the page) and the lines of each page.

    `unmapped`: the pages without lines as their fonts do not say which letters they draw.
    """

    title: str
    outline: list[tuple[int, str, int, float | None]]
    lines: list[list[Line]]
    unmapped: int = 0


def read_pages(data: bytes, location: str, seconds: float | None = None) -> Pages:
    """Read a PDF; raises `FormatError` if it is broken, encrypted, has no text or takes longer than `seconds`."""
    rows = _rows(data, location, SECONDS if seconds is None else seconds)
    first = next(rows)
    pages = [*rows]
    unmapped = pages.count("unmapped")
    lines = [[Line(*line) for line in page] if page != "unmapped" else [] for page in pages]
    if not any(lines) and unmapped:
        raise FormatError(
            f"{location}: the fonts of its {unmapped} pages do not say which letters they draw: "
            "it needs text recognition (OCR) first"
        )
    if not any(lines):
        raise FormatError(
            f"{location}: no text on its {len(lines)} pages: scanned pages need text recognition (OCR) first"
        )
    return Pages(first["title"] or "", [tuple(mark) for mark in first["outline"]], lines, unmapped)


def _rows(data: bytes, location: str, limit: float) -> Iterator[Any]:
    """What the worker writes about a file."""
    with _lock:
        process = _start_worker()
        late = threading.Event()

        def stop() -> None:
            late.set()
            process.kill()

        timer = threading.Timer(limit, stop)
        timer.start()
        is_done = False
        try:
            process.stdin.write(b"%d\n" % len(data))
            process.stdin.write(data)
            process.stdin.flush()
            for line in process.stdout:
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
                _stop()
    if late.is_set():
        raise FormatError(f"{location}: the PDF takes longer than {limit:g} seconds to read")
    raise FormatError(f"{location}: the PDF cannot be read: the reader crashed on it or ran out of memory")


def _explain_error(location: str, error: str) -> str:
    if "assword" in error:
        return f"{location}: the PDF is encrypted: save it without a password first"
    if "No module named" in error:
        return f"{location}: reading PDFs needs pypdfium2: pip install pypdfium2"
    return f"{location}: the PDF cannot be read: {error}"


class _Worker(NamedTuple):
    process: "subprocess.Popen[bytes]"
    stdin: IO[bytes]
    stdout: IO[bytes]

    def kill(self) -> None:
        self.process.kill()


_lock = threading.Lock()
_running: list[_Worker] = []


def _start_worker() -> _Worker:
    if not _running or _running[0].process.poll() is not None:
        _stop()
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
        _running.append(_Worker(process, process.stdin, process.stdout))
    return _running[0]


@atexit.register
def _stop() -> None:
    while _running:
        worker = _running.pop()
        worker.kill()
        worker.process.wait()
        for stream in (worker.stdin, worker.stdout):
            with suppress(OSError):
                stream.close()
