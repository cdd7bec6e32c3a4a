"""A time limit for Python code that may take for ever on hostile input, in any thread."""

import ctypes
import sys
import threading
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
_AGAIN = 1.0  # seconds until the exception is raised again, as a bare `except:` may have caught it


class _OutOfTimeError(BaseException):
    """Raised in the middle of the code; not an `Exception`, so that a parser that catches those does not catch it."""


def limited(work: Callable[[], T], seconds: float, error: Exception) -> T:
    """What `work` returns; raises `error` if it takes more processor time, of this thread.

    Where that cannot be told, wall-clock time counts. A timer raises an exception in this thread, which a signal would
    do in the main thread alone. A single call into C, such as a regular expression, is not cut short.
    """
    _ignore_unraisable()
    raise_in = ctypes.pythonapi.PyThreadState_SetAsyncExc
    number, lock = threading.get_ident(), threading.Lock()
    thread, began = ctypes.c_ulong(number), _used(number)
    over = late = False
    timers: list[threading.Timer] = []

    def wait(length: float) -> None:
        timers[:] = [threading.Timer(length, fire)]
        timers[0].daemon = True
        timers[0].start()

    def fire() -> None:
        nonlocal late
        with lock:
            if over:
                return
            left = seconds - (_used(number) - began)
            if left <= 0:
                late = True
                raise_in(thread, ctypes.py_object(_OutOfTimeError))
            wait(max(left, 0.02) if left > 0 else _AGAIN)

    # The exception can be raised at any place of this function, so all of it is inside the outer `try`.
    try:
        try:
            wait(seconds)
            found = work()
        finally:
            with lock:
                over = True
                if late:  # and perhaps not raised yet
                    raise_in(thread, None)
                for timer in timers:
                    timer.cancel()
    except BaseException:
        if late:
            raise error from None
        raise
    if late:
        raise error
    return found


def _ignore_unraisable() -> None:
    """Keep Python from printing the exception where nothing can catch it, such as in a callback of the collector.

    It is lost there, and raised again after `_AGAIN` seconds.
    """
    before = sys.unraisablehook
    if getattr(before, "ignores_out_of_time", False):
        return

    def hook(unraisable: "sys.UnraisableHookArgs") -> None:
        if not issubclass(unraisable.exc_type, _OutOfTimeError):
            before(unraisable)

    hook.ignores_out_of_time = True  # type: ignore[attr-defined]
    sys.unraisablehook = hook


def _used(thread: int) -> float:
    """The processor time of a thread in seconds, which does not pass while a process is stopped."""
    clock = getattr(time, "pthread_getcpuclockid", None)
    return time.monotonic() if clock is None else time.clock_gettime(clock(thread))
