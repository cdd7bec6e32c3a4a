"""Ctrl-C, also while modules load: a command ends with exit code 130 and no traceback.

A module that is interrupted while it loads may raise any error, as some turn a `KeyboardInterrupt` into another.
"""

import signal
import sys
from importlib import import_module
from types import FrameType
from typing import NoReturn

INTERRUPTED = 130  # 128 and the number of the signal, as shells have it
_received = False


def start(module: str) -> None:
    """Import the module of a command and call its `main`."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:  # as of a command in the background of a script
        signal.signal(signal.SIGINT, _interrupt)
    sys.unraisablehook = _unraisable
    try:
        import_module(module).main()
    except SystemExit:
        raise
    except BaseException:
        if not received():
            raise
        raise SystemExit(INTERRUPTED) from None


def received() -> bool:
    """Whether Ctrl-C was pressed, so that errors are those of the interruption."""
    return _received


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    global _received
    _received = True
    raise KeyboardInterrupt


def _unraisable(unraisable: "sys.UnraisableHookArgs") -> None:
    if not (_received and unraisable.exc_type is KeyboardInterrupt):
        sys.__unraisablehook__(unraisable)
