"""Limits for the programs that convert documents: time, memory and what they write."""

import subprocess
import tempfile
from collections.abc import Sequence

from rag.base.errors import FormatError

SECONDS = 30  # of processor time for one file
MEMORY = 2 << 30  # bytes of address space
MAX_OUTPUT = 64 << 20  # bytes
# The shell sets the limits and then becomes the program: code between fork and exec is not safe in threads.
_LIMIT = 'ulimit -v "$1" 2>/dev/null; ulimit -t "$2" 2>/dev/null; ulimit -f "$3" 2>/dev/null; shift 3; exec "$@"'
_ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C.UTF-8", "HOME": "/nonexistent"}


def run_program(argv: Sequence[str], data: bytes, location: str) -> str:
    """Run a program in a process of its own with `data` as standard input; return what it writes, as UTF-8.

    The process has `SECONDS` of processor time (and twice as many of wall-clock time), `MEMORY` bytes and may write
    `MAX_OUTPUT` bytes. Raises `FormatError`, which begins with `location`, if it fails or exceeds a limit.
    """
    name = argv[0].rpartition("/")[2]
    limits = [str(MEMORY >> 10), str(SECONDS), str(MAX_OUTPUT >> 9)]
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        try:
            process = subprocess.run(
                ["/bin/sh", "-c", _LIMIT, "sh", *limits, *argv],
                input=data,
                stdout=output,
                stderr=errors,
                env=_ENVIRONMENT,
                timeout=2 * SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise FormatError(f"{location}: {name} takes longer than {2 * SECONDS} seconds") from None
        if process.returncode < 0:
            raise FormatError(
                f"{location}: {name} was stopped: it needs more than {SECONDS} seconds, {MEMORY >> 30} GiB or "
                f"{MAX_OUTPUT >> 20} MiB of output"
            )
        if process.returncode:
            errors.seek(0)
            reason = errors.read(10_000).decode("utf-8", "replace").strip() or "it gives no reason"
            raise FormatError(f"{location}: {name} cannot read it: {reason.splitlines()[0][:200]}")
        output.seek(0)
        return output.read().decode("utf-8", "replace")
