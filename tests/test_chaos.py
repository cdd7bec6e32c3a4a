"""A few of the faults of `make long-tests`."""

import shutil
import subprocess
import sys

import pytest

from scripts.chaos import SCENARIOS, trials

can_trace = (
    shutil.which("strace")
    and not subprocess.run(
        ["strace", "-qq", "-e", "trace=none", sys.executable, "-c", ""], capture_output=True, check=False
    ).returncode
)
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not can_trace, reason="needs strace, and leave to trace")]


# Not `train`: it takes a minute, and tests/rag/retrieval/test_reader.py kills a training.
@pytest.mark.parametrize("name", [scenario.name for scenario in SCENARIOS if scenario.max_faults is None])
def test_nothing_is_lost_when_a_command_is_killed_or_the_disk_is_full(name: str) -> None:
    results = [(fault.injection, problem) for _, fault, problem in trials(1, seed=7, only=[name])]
    assert len(results) == 1
    assert [result for result in results if result[1]] == []
