"""Writes the lock files: exact versions with hashes of all that `make ask` and `make test` install.

    make lock

Torch and what it brings (gigabytes of CUDA) are left out of the second file; the Makefile installs a CPU build first.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
FILES = {"requirements.lock": (), "requirements-dev.lock": ("all", "dev", "docs")}
TORCH = re.compile(r"(torch|triton|nvidia-|cuda-)")


def compile_requirements(extras: tuple[str, ...]) -> str:
    """Requirements with hashes, for every system and Python."""
    options = [part for extra in extras for part in ("--extra", extra)]
    argv = [
        sys.executable, "-m", "uv", "pip", "compile", "pyproject.toml", *options, "--universal", "--python-version",
        "3.11", "--generate-hashes", "--no-header", "--no-annotate", "--quiet",
    ]  # fmt: skip
    return subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def main() -> None:
    """Write both files."""
    for name, extras in FILES.items():
        blocks = re.split(r"^(?=\S)", compile_requirements(extras), flags=re.MULTILINE)
        pins = [block for block in blocks if block and not TORCH.match(block)]
        (ROOT / name).write_text("# Written by `make lock`.\n" + "".join(pins), "utf-8")
        print(f"{name}: {len(pins)} packages")


if __name__ == "__main__":
    main()
