"""What the wheel holds, and that the evaluator stands by itself."""

import ast
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import get_args

import pytest

import autoais
import rag
from autoais.judges.prompts import Kind, prompt_names
from hatch_build import HANDBOOK_INDEX, SHIPPED, shipped
from rag.base import resources
from rag.index.handbook import index_in_memory, list_pages

ROOT = Path(__file__).parents[1]


def test_autoais_never_imports_rag() -> None:
    for path in (ROOT / "eval" / "autoais").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{path}: relative import"
                names = [node.module or ""]
            assert not any(name.split(".")[0] == "rag" for name in names), f"{path}:{node}"


@pytest.mark.slow
def test_autoais_runs_where_rag_cannot_be_imported() -> None:
    code = (
        "import sys; sys.modules['rag'] = None\n"
        "import pkgutil, importlib, autoais\n"
        "for m in pkgutil.walk_packages(autoais.__path__, 'autoais.'):\n"
        "    try: importlib.import_module(m.name)\n"
        "    except ImportError as error:\n"
        "        part = m.name.split('.')[1]\n"  # the parts that need an extra, or the tool that they are for
        "        if part != 'integrations' and (part, error.name) != ('training', 'torch'): raise"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": str(ROOT / "eval")})


@pytest.mark.parametrize("package", [rag, autoais])
def test_public_names_are_what_is_imported(package: object) -> None:
    exported = package.__all__  # type: ignore[attr-defined]
    assert sorted(exported) == list(exported)
    assert all(hasattr(package, name) for name in exported)


@pytest.mark.slow
def test_the_wheel_holds_both_packages_and_the_data_and_nothing_else(tmp_path: Path) -> None:
    built = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        inside = {name for name in archive.namelist() if ".dist-info/" not in name}
    code = {path.removeprefix("eval/") for path in _tracked("rag", "eval/autoais")}
    index = {name for name in inside if name.startswith(f"{HANDBOOK_INDEX}/")}
    assert inside - index == code | set(shipped(ROOT).values())
    assert f"{HANDBOOK_INDEX}/manifest.json" in index
    assert any(name.endswith("/passages.sqlite") for name in index)
    assert {"rag/py.typed", "autoais/py.typed", "rag/_shipped/handbook/reference/ais.md"} <= inside
    assert "rag/_shipped/benchmarks/handbook/questions.jsonl" in inside
    assert {f"autoais/_shipped/prompts/{name}.txt" for name in prompt_names()} <= inside
    assert {f"autoais/_shipped/prompts/assessor/{name}.txt" for name in prompt_names("assessor")} <= inside
    _assert_index_is_opened(wheel, tmp_path / "installed")


def _assert_index_is_opened(wheel: Path, installed: Path) -> None:
    """Assert that an install of the wheel searches the index in it as the checkout does, and reads no page."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(installed)
    code = (
        "import sys, rag; from rag.index import handbook\n"
        "handbook.cache_folder = handbook.index_in_memory = handbook.list_pages = None\n"
        "from rag.index.open import open_index; index = open_index(None)\n"
        "assert index.name == 'handbook' and index.build is None\n"
        "print([hit.passage.id for hit in rag.search('citation precision', index)], 'rag.documents' in sys.modules)"
    )
    command = [sys.executable, "-c", code]
    process = subprocess.run(command, cwd=installed, env={}, capture_output=True, text=True, check=False)
    hits = rag.search("citation precision", index_in_memory(list_pages()))
    assert process.stdout == f"{[hit.passage.id for hit in hits]} False\n", process.stderr


def _tracked(*folders: str) -> list[str]:
    listed = [
        p for folder in folders for p in (ROOT / folder).rglob("*") if p.is_file() and "__pycache__" not in p.parts
    ]
    return [p.relative_to(ROOT).as_posix() for p in listed]


def test_the_hook_and_the_resources_agree() -> None:
    of_rag = {source: f"rag/_shipped/{kind}" for kind, source in resources._IN_CHECKOUT.items()}
    of_autoais = {kind: f"autoais/_shipped/{place}" for kind, place in (
        ("prompts/judge", "prompts"), ("prompts/assessor", "prompts/assessor"))}  # fmt: skip
    assert of_autoais | of_rag == SHIPPED
    assert any(path.startswith("eval/benchmarks/everyday/documents/") for path in shipped(ROOT))
    for kind in get_args(Kind):
        names = {path.split("/")[-1] for path in shipped(ROOT) if path.startswith(f"prompts/{kind}/")}
        assert names == {f"{name}.txt" for name in prompt_names(kind)}


def test_the_wheel_is_built_with_the_packages_that_the_project_depends_on() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    hook = project["tool"]["hatch"]["build"]["targets"]["wheel"]["hooks"]["custom"]
    assert set(hook["dependencies"]) <= set(project["project"]["dependencies"])


def test_faiss_cpu_and_faiss_gpu_are_never_installed_together() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert any(r.startswith("faiss-gpu") for r in extras["gpu"])
    assert "gpu" not in extras["all"][0]
    for requirements in extras.values():
        assert len({r.split(">")[0] for r in requirements} & {"faiss-cpu", "faiss-gpu"}) <= 1


def test_the_changelog_knows_this_version() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert f"## {version}" in (ROOT / "CHANGELOG.md").read_text()
