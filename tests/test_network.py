"""No command opens a connection unless it is asked for one."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.commands import ROOT
from tests.tiny import TOWNS, text, tiny_bert

pytestmark = pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")
ENVIRONMENT = {key: value for key, value in os.environ.items() if not key.startswith(("HF_", "RAG_"))}


def sockets(folder: Path, *argv: str) -> list[str]:
    """The sockets of the internet that a Python program opens."""
    log = folder / "log"
    traced = ["strace", "-f", "--seccomp-bpf", "-qq", "-e", "trace=socket", "-o", str(log), sys.executable, *argv]
    done = subprocess.run(
        traced,
        cwd=folder,
        env=ENVIRONMENT | {"PYTHONPATH": f"{ROOT}:{ROOT / 'eval'}"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    if "ptrace" in done.stderr:
        pytest.skip("strace may not trace here")
    assert done.returncode == 0, done.stderr
    return [line for line in log.read_text().splitlines() if "AF_INET" in line]


def command(program: str, *arguments: str) -> Sequence[str]:
    code = f"import sys; sys.argv[0] = {program!r}; from {program}.__main__ import main; main()"
    return ("-c", code, *arguments)


def test_a_connection_is_seen(tmp_path: Path) -> None:
    code = "import socket; socket.socket(socket.AF_INET, socket.SOCK_STREAM).close()"
    assert len(sockets(tmp_path, "-c", code)) == 1


def test_the_commands_open_none(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "mill.md").write_text("# Arlen\n\nThe mill in Arlen was built in 1801 by Nora Finch.\n")
    (tmp_path / "q.jsonl").write_text('{"id": "1", "question": "When was the mill in Arlen built?"}\n')
    for one in (
        command("rag", "index", "build", "docs", "--to", "x.index"),
        command("rag", "search", "mill", "--index", "x.index", "--retriever", "bm25-rerank"),
        command("rag", "ask", "When was the mill in Arlen built?", "--index", "x.index", "--min-confidence", "0"),
        command("rag", "answer", "q.jsonl", "--index", "x.index", "--out", "a.jsonl"),
        command("autoais", "score", "a.jsonl", "--judge", "minilm"),
        command("rag", "doctor"),
    ):
        assert sockets(tmp_path, *one) == []


@pytest.mark.slow
def test_a_model_in_a_folder_is_opened_without_a_look_at_the_hub(tmp_path: Path) -> None:
    pytest.importorskip("sentence_transformers", reason="needs the extra dense")
    folder = tiny_bert(tmp_path / "model", [text(town, 1) for town in TOWNS])
    code = f"from rag.retrieval.encoders import open_encoder; open_encoder('st:{folder}').queries(['a'])"
    assert sockets(tmp_path, "-c", code) == []
