"""Measures the CPU seconds of importing the packages and starting the commands, beyond those of a bare Python.

    python -m scripts.bench.imports [--against REVISION] [--out eval/results/imports.json]

Each command runs in its own process; the commands alternate over several rounds, and the median counts. `--against`
also measures an older revision in the same run, from a git worktree and with the packages of this interpreter.
"""

import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer

from autoais.io.jsonl import dumps, write_atomic
from autoais.io.provenance import provenance

ROOT = Path(__file__).parents[2]
BARE = "pass"
COMMANDS = {
    "import rag": "import rag",
    "import autoais": "import autoais",
    "import rag.systems": "import rag.systems",
    "import autoais.scoring": "import autoais.scoring",
    "rag --help": "import sys; sys.argv = ['rag', '--help']; from rag.cli import main; main()",
    "autoais --help": "import sys; sys.argv = ['autoais', '--help']; from autoais.cli import main; main()",
}


def cpu(code: str, tree: Path) -> float:
    """User plus system CPU seconds of a Python process that runs the code with the packages of a tree."""
    environment = {**os.environ, "PYTHONPATH": f"{tree}:{tree / 'eval'}", "PYTHONDONTWRITEBYTECODE": ""}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], cwd=tree, env=environment, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure(trees: dict[str, Path], rounds: int) -> dict[str, dict[str, float]]:
    """The median of each command over the rounds, minus that of a bare Python, by tree."""
    seen: dict[str, dict[str, list[float]]] = {name: {} for name in trees}
    for number in range(rounds + 1):  # the first round fills the bytecode caches and does not count
        for name, tree in trees.items():
            for command, code in {"bare": BARE, **COMMANDS}.items():
                took = cpu(code, tree)
                if number:
                    seen[name].setdefault(command, []).append(took)
    medians = {name: {what: statistics.median(times) for what, times in of.items()} for name, of in seen.items()}
    return {
        name: {what: round(value - of["bare"], 4) for what, value in of.items() if what != "bare"}
        for name, of in medians.items()
    }


def main(
    against: Annotated[str | None, typer.Option(help="Another revision to measure in the same run.")] = None,
    rounds: Annotated[int, typer.Option(min=1, help="Number of runs of each command.")] = 9,
    out: Annotated[Path | None, typer.Option(help="Output file (json).")] = None,
) -> None:
    """Measure, print a table, and write the result to --out."""
    with tempfile.TemporaryDirectory() as folder:
        trees = {"this": ROOT}
        if against is not None:
            trees[against] = Path(folder) / "other"
            subprocess.run(["git", "worktree", "add", "--detach", trees[against], against], cwd=ROOT, check=True)
        try:
            found = measure(trees, rounds)
        finally:
            if against is not None:
                subprocess.run(["git", "worktree", "remove", "--force", trees[against]], cwd=ROOT, check=True)
    for command in COMMANDS:
        print(f"{command:<24}" + "  ".join(f"{name} {of[command]:.3f} s" for name, of in found.items()))
    result: dict[str, Any] = {"unit": "seconds of CPU beyond a bare Python", "rounds": rounds, "commands": found}
    if out is not None:
        write_atomic(out, [dumps({**result, "provenance": provenance({})}, indent=2)])


if __name__ == "__main__":
    typer.run(main)
