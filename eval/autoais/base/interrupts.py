"""The start of a command. Ctrl-C ends it with exit code 130 and no traceback, also while modules load.

A module that is interrupted while it loads may raise any error, as some turn a `KeyboardInterrupt` into another.
"""

import gc
import os
import signal
import sys
import threading
from contextlib import suppress
from importlib import import_module
from types import FrameType
from typing import NoReturn

EXIT_CODE = 130  # 128 and the number of the signal, as shells have it
_GC_THRESHOLD = 100_000  # loading and one question make fewer containers: collecting took 5 to 10 % of the CPU time
_is_interrupted = False


def start(module: str) -> None:
    """Import the module of a command and call its `main`."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:  # as of a command in the background of a script
        signal.signal(signal.SIGINT, _interrupt)
    sys.unraisablehook = _unraisable
    gc.set_threshold(_GC_THRESHOLD)
    try:
        import_module(module).main()
    except SystemExit as end:
        if end.code == EXIT_CODE:
            _leave()
        raise
    except BaseException:
        if not is_interrupted():
            raise
        _leave()
        raise SystemExit(EXIT_CODE) from None


def _leave() -> None:
    """End at once if daemon threads still work: Python would free what their native code uses, and crash."""
    if threading.active_count() > 1:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        os._exit(EXIT_CODE)


def is_interrupted() -> bool:
    """Whether Ctrl-C was pressed, which explains any error that follows."""
    return _is_interrupted


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    global _is_interrupted
    _is_interrupted = True
    raise KeyboardInterrupt


def _unraisable(unraisable: "sys.UnraisableHookArgs") -> None:
    if not (_is_interrupted and unraisable.exc_type is KeyboardInterrupt):
        sys.__unraisablehook__(unraisable)
