"""A time limit for Python code that may take for ever on hostile input, in any thread."""

import ctypes
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")
_EVERY = 0.05  # seconds between two looks at what runs; its time counts from the first one
_REPEAT_SECONDS = 1.0  # seconds until the exception is raised again, as a bare `except:` may have caught it


class _OutOfTimeError(BaseException):
    """Raised in the middle of the code; not an `Exception`, so that a parser that catches those does not catch it."""


@dataclass(slots=True, eq=False)
class _Run:
    """Work that runs in a thread."""

    thread: int
    seconds: float
    began: float | None = None  # the time that the thread had used at the first look
    again: float = 0.0  # the earliest time to raise the exception
    late: bool = False


def limit_time(work: Callable[[], T], seconds: float, error: Exception) -> T:
    """What `work` returns; raises `error` if it takes more processor time, of this thread.

    Where that cannot be told, wall-clock time counts. A thread that watches all work raises an exception in this one,
    which a signal would do in the main thread alone. A single call into C, such as a regular expression, is not cut
    short.
    """
    _ignore_unraisable()
    run = _Run(threading.get_ident(), seconds)
    # The exception can be raised at any place of this function, so all of it is inside the outer `try`.
    try:
        try:
            _watcher.begin(run)
            result = work()
        finally:
            _watcher.end(run)
    except BaseException:
        _watcher.end(run)  # again, as it may have been raised in the middle of that
        if run.late:
            raise error from None
        raise
    if run.late:
        raise error
    return result


class _Watcher:
    """A thread that ends what takes too long. Runs share it: a thread a file costs more than reading a short one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._runs: set[_Run] = set()
        self._thread: threading.Thread | None = None  # while something runs

    def begin(self, run: _Run) -> None:
        with self._lock:
            self._runs.add(run)
            if self._thread is None or not self._thread.is_alive():  # as in a process that was forked
                self._thread = threading.Thread(target=self._watch, daemon=True)
                self._thread.start()

    def end(self, run: _Run) -> None:
        with self._lock:
            self._runs.discard(run)
            if run.late:  # and perhaps not raised yet
                _raise(run.thread, None)

    def _watch(self) -> None:
        while True:
            time.sleep(_EVERY)
            with self._lock:
                if not self._runs:
                    self._thread = None
                    return
                for run in self._runs:
                    used, now = _processor_time(run.thread), time.monotonic()
                    if run.began is None:
                        run.began = used
                    if used - run.began >= run.seconds and now >= run.again:
                        run.late, run.again = True, now + _REPEAT_SECONDS
                        _raise(run.thread, _OutOfTimeError)


_watcher = _Watcher()


def _raise(thread: int, error: type[BaseException] | None) -> None:
    """Raise an exception in a thread, or none."""
    value = None if error is None else ctypes.py_object(error)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), value)


def _ignore_unraisable() -> None:
    """Keep Python from printing the exception where nothing can catch it, such as in a callback of the collector.

    It is lost there, and raised again after `_REPEAT_SECONDS` seconds.
    """
    before = sys.unraisablehook
    if getattr(before, "ignores_out_of_time", False):
        return

    def hook(unraisable: "sys.UnraisableHookArgs") -> None:
        if not issubclass(unraisable.exc_type, _OutOfTimeError):
            before(unraisable)

    hook.ignores_out_of_time = True  # type: ignore[attr-defined]
    sys.unraisablehook = hook


def _processor_time(thread: int) -> float:
    """The processor time of a thread in seconds, which does not pass while a process is stopped."""
    clock = getattr(time, "pthread_getcpuclockid", None)
    return time.monotonic() if clock is None else time.clock_gettime(clock(thread))
