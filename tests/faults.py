"""Faults that tests inject without tools of the system."""

import os
import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
_LIMIT = """
import resource, signal, sys
from pathlib import Path
path = Path(sys.argv[1])
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
"""


def killed_while_writing(code: str, path: Path, *, at_size: int) -> list[int]:
    """Run code that writes to `path`, and return the numbers that it printed; the system kills it at that size.

    The write that goes beyond the size is done in part, up to it; the one of the rest kills the process.
    """
    argv = [sys.executable, "-c", _LIMIT + code, str(path), str(at_size)]
    # Nor may the limit cut compiled modules off, which others import.
    environment = os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'eval'}", "PYTHONDONTWRITEBYTECODE": "1"}
    result = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == -signal.SIGXFSZ, result.stderr
    return [int(line) for line in result.stdout.split()]
