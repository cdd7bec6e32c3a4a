"""Ctrl-C while modules load, which is where a short command spends its time."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands import ROOT

CODE = "import sys; sys.argv[0] = {0!r}; from {0}.__main__ import main; main()"
ASK = ("rag", "ask", "What is citation precision?")
SCORE = ("autoais", "score", "answers.jsonl", "--judge", "minilm")


@pytest.mark.parametrize(
    ("command", "module"),
    [(ASK, name) for name in ("typer", "rag.answer.systems", "numpy", "onnxruntime", "tantivy")]
    + [(SCORE, name) for name in ("typer", "autoais.judges", "sentencex")],
)
def test_a_command_that_is_stopped_while_modules_load_ends_quietly(
    command: tuple[str, ...], module: str, tmp_path: Path
) -> None:
    answer = {"id": "1", "question": "who?", "answer": "Ann.", "sentences": [], "passages": []}
    (tmp_path / "answers.jsonl").write_text(f"{answer}\n".replace("'", '"'))
    program, *arguments = command
    argv = [sys.executable, "-v", "-c", CODE.format(program), *arguments]
    environment = os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'eval'}"}
    with subprocess.Popen(
        argv, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        folder, _, name = module.replace(".", "/").rpartition("/")
        begins = re.compile(rf"# code object from .*/{folder}/?(__pycache__/)?{name}[./]")
        for line in process.stderr:  # the line with which Python begins to run the module
            if begins.match(line):
                process.send_signal(signal.SIGINT)
                break
        else:
            pytest.fail(f"{module} was not imported")
        told = [line for line in process.stderr if not line.startswith(("#", "import ", "matches"))]
    assert process.returncode == 130, told
    assert not any("Traceback" in line or line.startswith("error") for line in told), told


def test_a_module_that_fails_for_another_reason_keeps_its_traceback() -> None:
    code = "from autoais.base.interrupts import start; start('json.nothing')"
    environment = os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'eval'}"}
    result = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert "ModuleNotFoundError: No module named 'json.nothing'" in result.stderr


def test_an_interrupt_that_is_ignored_stays_ignored(tmp_path: Path) -> None:
    # As for a command that a script runs in the background.
    (tmp_path / "long.py").write_text("import os, signal\ndef main():\n    os.kill(os.getpid(), signal.SIGINT)\n")
    ignored = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)"
    code = f"{ignored}; from autoais.base.interrupts import start; start('long')"
    environment = os.environ | {"PYTHONPATH": f"{tmp_path}:{ROOT}:{ROOT / 'eval'}"}
    result = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.parametrize("program", ["autoais", "rag"])
def test_the_usage_names_the_command_as_people_type_it(program: str) -> None:
    environment = os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'eval'}"}
    call = [sys.executable, "-m", program, "nothing"]
    result = subprocess.run(call, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 2
    assert result.stderr.splitlines()[0] == f"Usage: {program} [OPTIONS] COMMAND [ARGS]..."
