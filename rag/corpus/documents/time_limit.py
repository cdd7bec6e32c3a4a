"""A time limit for Python code that may take for ever on hostile input, in any thread."""

import ctypes
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class _OutOfTimeError(BaseException):
    """Raised in the middle of the code; not an `Exception`, so that a parser that catches those does not catch it."""


def limited(work: Callable[[], T], seconds: float, error: Exception) -> T:
    """What `work` returns; raises `error` if it takes longer.

    A timer raises an exception in this thread, which a signal would do in the main thread alone. A single call into C,
    such as a regular expression, is not cut short.
    """
    raise_in = ctypes.pythonapi.PyThreadState_SetAsyncExc
    thread, lock = ctypes.c_ulong(threading.get_ident()), threading.Lock()
    over = late = False

    def fire() -> None:
        nonlocal late
        with lock:
            if not over:
                late = True
                raise_in(thread, ctypes.py_object(_OutOfTimeError))

    timer = threading.Timer(seconds, fire)
    timer.daemon = True
    # The exception can be raised at any place of this function, so all of it is inside the outer `try`.
    try:
        try:
            timer.start()
            return work()
        finally:
            timer.cancel()
            with lock:
                over = True
                if late:  # and perhaps not raised yet
                    raise_in(thread, None)
    except _OutOfTimeError:
        raise error from None
