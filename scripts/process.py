"""Runs a command and measures it: seconds, CPU seconds and peak memory of the process and those that it waited for."""

import json
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

# A process inherits its parent's peak memory, so a small process starts and watches the command.
_WATCH = """
import json, os, subprocess, sys, time
began = time.perf_counter()
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
_, status, used = os.wait4(process.pid, 0)
seconds = time.perf_counter() - began
print(json.dumps([os.waitstatus_to_exitcode(status), seconds, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024]))
"""


class Usage(NamedTuple):
    """What a command used: wall-clock and CPU seconds, and the peak of its resident memory in bytes."""

    seconds: float
    cpu: float
    peak: int


def measure_command(*command: str | Path, stderr: bool = False) -> Usage:
    """Run a command, which must succeed; its output is dropped, `stderr` only unless it is asked for."""
    argv = [sys.executable, "-S", "-c", _WATCH, *map(str, command)]
    process = subprocess.run(
        argv, stdout=subprocess.PIPE, stderr=None if stderr else subprocess.DEVNULL, check=True, text=True
    )
    code, seconds, cpu, peak = json.loads(process.stdout)
    if code:
        raise SystemExit(f"error: {' '.join(map(str, command))} ended with {code}")
    return Usage(seconds, cpu, peak)
