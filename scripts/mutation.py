"""Changes the evaluator's figures in every small way and counts the changes that no test sees: hours.

    python -m scripts.mutation [--only MODULE] [--out REPORT]

Needs mutmut. Each module is tried with the tests that belong to it, in a copy of the repository, one process at a time.
A survivor is a change after which these tests still pass; the report shows each.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from autoais.base.io.jsonl import dumps, write_atomic
from autoais.base.io.provenance import provenance

ROOT = Path(__file__).parents[1]
METRICS = ("tests/autoais/metrics",)
META = ("tests/autoais/meta/test_meta.py", "tests/autoais/metrics/test_intervals.py")
MODULES = {
    "metrics/intervals": (*METRICS, "tests/autoais/meta/test_meta.py"),
    "metrics/paired": ("tests/autoais/metrics/test_paired.py",),
    "metrics/rates": (*METRICS, "tests/autoais/metrics/test_scoring.py"),
    "metrics/scores": (*METRICS, "tests/autoais/metrics/test_scoring.py"),
    "metrics/claims": METRICS,
    "metrics/alce": METRICS,
    "metrics/hagrid": METRICS,
    "metrics/liu": METRICS,
    "metrics/trec": METRICS,
    "metrics/ppi": METRICS,
    "metrics/alce_answers": METRICS,
    "metrics/scoring": (*METRICS, "tests/autoais/metrics/test_scoring.py", "tests/autoais/test_api.py"),
    "metrics/nuggets": METRICS,
    "metrics/extractive": ("tests/autoais/metrics/test_extractive.py", "tests/autoais/meta/test_ais_report.py"),
    "metrics/short_answers": METRICS,
    "metrics/attrscore": (*METRICS, *META),
    "metrics/comparison": ("tests/autoais/metrics/test_comparison.py", "tests/autoais/metrics/test_runs.py"),
    "meta/agreement": (
        "tests/autoais/metrics/test_comparison.py",
        "tests/autoais/meta/test_agreement.py",
        "tests/autoais/meta/test_ais_report.py",
    ),
    "meta/agreement_report": ("tests/autoais/meta/test_agreement_report.py",),
    "meta/ais_report": ("tests/autoais/meta/test_ais_report.py",),
    "meta/correlation": META,
    "meta/evaluate": META,
    "metrics/human": ("tests/autoais/metrics/test_human.py", "tests/autoais/metrics/test_scoring.py"),
    "meta/logistic": ("tests/autoais/meta/test_calibrate.py",),
    "meta/calibrate": ("tests/autoais/meta/test_calibrate.py",),
}
PROCESSES = ("people_read_figures", "no_width_of_terminal", "how_the_judge_was_asked")  # tests that start one
SETTINGS = """
[tool.mutmut]
source_paths = ["src"]
only_mutate = ["src/autoais/{module}.py"]
also_copy = [{others}]
pytest_add_cli_args = ["-p", "no:cacheprovider", "--hypothesis-profile=ci", "-k", "not {others_see}"]
pytest_add_cli_args_test_selection = [{tests}]
"""


def copy(work: Path) -> None:
    """Copy the tracked files; the package lies in `src`, where mutmut looks for it."""
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    for name in names.decode().split("\0")[:-1]:
        source, target = ROOT / name, work / name.replace("eval/autoais/", "src/autoais/")
        if source.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)


def mutate_module(work: Path, module: str) -> dict[str, Any]:
    """Mutate one module; returns counts, and the names of the survivors."""
    shutil.rmtree(work / "mutants", ignore_errors=True)
    settings = (ROOT / "pyproject.toml").read_text("utf-8")
    settings = settings.replace('pythonpath = [".", "eval"]', 'pythonpath = [".", "src"]')
    files = sorted(
        path.name for path in work.iterdir() if path.name not in ("src", "tests", "mutants", "pyproject.toml")
    )
    table = SETTINGS.format(
        module=module,
        others_see=" and not ".join(PROCESSES),
        others=", ".join(f'"{name}"' for name in files),
        tests=", ".join(f'"{name}"' for name in MODULES[module]),
    )
    (work / "pyproject.toml").write_text(settings + table, "utf-8")
    mutmut(work, "run", "--max-children", "1")
    mutmut(work, "export-cicd-stats")
    counts = json.loads((work / "mutants/mutmut-cicd-stats.json").read_text("utf-8"))
    rows = [line.split(":") for line in mutmut(work, "results").splitlines() if ":" in line]
    names = [name.strip() for name, status in rows if status.strip() != "timeout"]  # an endless loop is noticed
    survivors = {name: change(mutmut(work, "show", name)) for name in names}
    return {"killed": counts["killed"] + counts["timeout"], "total": counts["total"], "survivors": survivors}


def mutmut(work: Path, *arguments: str) -> str:
    """Run mutmut in the copy; returns what it prints."""
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": ""}
    command = [str(Path(sys.executable).with_name("mutmut")), *arguments]
    process = subprocess.run(command, cwd=work, env=environment, capture_output=True, check=False, text=True)
    if process.returncode:
        raise SystemExit(f"mutmut {' '.join(arguments)}: {process.stdout[-2000:]}{process.stderr[-2000:]}")
    return process.stdout


def change(diff: str) -> list[str]:
    """Return the removed and the added lines of a diff."""
    return [line for line in diff.splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---")]


def main() -> None:
    """Try the modules and write what was killed."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--only", choices=list(MODULES), action="append", help="Module; repeatable (default: all).")
    parser.add_argument("--work", type=Path, help="Keep the copy in this folder.")
    parser.add_argument("--out", type=Path, help="Write the report (json); modules that are not tried stay in it.")
    options = parser.parse_args()
    os.nice(19)
    modules: dict[str, Any] = {}
    if options.out is not None and options.out.exists():
        modules = json.loads(options.out.read_text("utf-8"))["modules"]
    with tempfile.TemporaryDirectory() as folder:
        work = options.work or Path(folder)
        copy(work)
        for module in options.only or MODULES:
            modules[module] = mutate_module(work, module)
            counts = modules[module]
            print(f"{module}: {counts.get('killed', 0)} of {counts['total']} killed", flush=True)
            if options.out is not None:
                totals = {key: sum(row.get(key, 0) for row in modules.values()) for key in ("killed", "total")}
                write_atomic(
                    options.out, [dumps({**totals, "modules": modules, "provenance": provenance({})}, indent=2)]
                )


if __name__ == "__main__":
    main()
