"""Runs `rag` and `autoais` for tests: in this process where that is the same, else in a process of its own."""

import io
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from importlib import import_module
from pathlib import Path
from unittest.mock import patch

ROOT = Path(__file__).parents[1]

Result = subprocess.CompletedProcess[str]
Command = Callable[..., Result]


# Variables that a command reads when it runs. Python, and what it imports, may read others when they start.
OWN_VARIABLES = ("RAG_", "OPENAI_")


def in_process(program: str) -> Command:
    """The command as a function call; with environment variables of others as keywords, as a process of its own.

    What it prints is captured in Python, so that a test of what C or Java prints needs `as_process`.
    """
    run_process = as_process(program)

    def run(*arguments: str | Path, **environment: str) -> Result:
        if not all(name.startswith(OWN_VARIABLES) for name in environment):
            return run_process(*arguments, **environment)
        cli = import_module(f"{program}.commands.main")
        argv = [program, *map(str, arguments)]
        stdout, stderr = _stream(), _stream()
        argv_before, sys.argv = sys.argv, argv
        try:
            with redirect_stdout(stdout), redirect_stderr(stderr), patch.dict(os.environ, environment):
                code = _code(lambda: cli.run(cli.app))
        finally:
            sys.argv = argv_before
        return subprocess.CompletedProcess(argv, code, _text(stdout), _text(stderr))

    return run


def as_process(program: str) -> Command:
    """The command as people run it, in a process of its own; keywords are environment variables."""

    def run(*arguments: str | Path, **environment: str) -> Result:
        code = f"import sys; sys.argv[0] = {program!r}; from {program}.commands.main import main; main()"
        argv = [sys.executable, "-c", code, *map(str, arguments)]
        return subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            encoding="utf-8",
            env=os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'eval'}"} | environment,
            timeout=120,
            check=False,
        )

    return run


def stop(program: str, number: signal.Signals, out: Path, *arguments: str | Path) -> subprocess.CompletedProcess[bytes]:
    """Send a signal to the command in a process of its own, once its output file has 20 kB."""
    argv = [sys.executable, "-m", program, *map(str, arguments)]
    environment = os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'eval'}"}
    with subprocess.Popen(argv, env=environment, stderr=subprocess.PIPE) as process:
        deadline = time.monotonic() + 60
        while (not out.exists() or out.stat().st_size < 20_000) and time.monotonic() < deadline:
            time.sleep(0.002)
        process.send_signal(number)
        _, stderr = process.communicate(timeout=60)
    return subprocess.CompletedProcess(argv, process.returncode, b"", stderr)


def _stream() -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="replace", newline="")


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    buffer = stream.buffer
    assert isinstance(buffer, io.BytesIO)
    return buffer.getvalue().decode("utf-8")


def _code(command: Callable[[], object]) -> int:
    """The exit code of a command, as a shell would see it; an exception prints its traceback."""
    try:
        command()
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        sys.stderr.write(f"{end.code}\n")
        return 1
    except Exception:  # noqa: BLE001  (a process would print it and exit with 1)
        traceback.print_exc()
        return 1
    return 0
