"""The diffs in CONTRIBUTING.md are real: each applies to this tree, and what it adds passes its test and the lint."""

import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
DIFFS = dict(re.findall(r"### (.+?)\n.*?```diff\n(.*?)```", TEXT, re.DOTALL))


def test_there_is_a_diff_for_each_thing_that_can_be_added() -> None:
    names = ["A retriever", "A judge", "A language model", "A corpus format", "An answer format", "A benchmark"]
    assert list(DIFFS) == names
    for diff in DIFFS.values():
        files = re.findall(r"^diff --git a/(\S+)", diff, re.MULTILINE)
        tests = [file for file in files if file.startswith("tests/")]
        rows = re.findall(r"^\+(?:\s+\"[\w-]+\": \"|[\w-]+ = \[)", diff, re.MULTILINE)
        assert len(tests) == 1
        assert len(files) - len(tests) - len(rows) == 1, "one file and one row (a benchmark has no row)"


@pytest.mark.slow
@pytest.mark.skipif(find_spec("ruff") is None, reason="the lint needs ruff, which the core alone has not")
def test_every_diff_applies_and_its_test_passes(tmp_path: Path) -> None:
    for folder in ("rag", "eval", "tests", "indexes", "prompts", "docs/handbook"):
        hidden = shutil.ignore_patterns("__pycache__", "results", ".*")
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=hidden)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for diff in DIFFS.values():
        applied = subprocess.run(
            ["git", "apply", "--unidiff-zero", "-"],
            input=diff,
            cwd=tmp_path,
            text=True,
            capture_output=True,
            check=False,
        )
        assert applied.returncode == 0, applied.stderr
    new = [file for diff in DIFFS.values() for file in re.findall(r"^\+\+\+ b/(\S+)", diff, re.MULTILINE)]
    tests = [file for file in new if file.startswith("tests/")]
    code = [file for file in new if file.endswith(".py")]
    for command in (["pytest", "-q", *tests], ["ruff", "check", *code]):
        done = subprocess.run(
            [sys.executable, "-m", *command], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
