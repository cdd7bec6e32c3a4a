"""What is written about `rag serve` fits it: options in the container, the unit and the handbook."""

import json
import os
import re
from pathlib import Path

import pytest
import typer.main

from rag.api import build_index, update_index
from rag.commands.main import app
from rag.serve.service import Limits
from tests.rag.serve.served import documents

ROOT = Path(__file__).parents[3]
FILES = ("deploy/Dockerfile", "deploy/rag.service", "docs/handbook/reference/serving.md")


def options(command: str) -> set[str]:
    group = typer.main.get_command(app)
    found = group.commands[command]  # type: ignore[attr-defined]
    return {name for parameter in found.params for name in parameter.opts}


@pytest.mark.parametrize("file", FILES)
def test_every_option_that_is_named_is_one(file: str) -> None:
    text = (ROOT / file).read_text("utf-8")
    if file.endswith("Dockerfile"):
        found = {*json.loads(re.search(r"^ENTRYPOINT (.*)$", text, re.MULTILINE)[1])}  # type: ignore[index]
        found |= {*json.loads(re.search(r"^CMD (.*)$", text, re.MULTILINE)[1])}  # type: ignore[index]
        named = {one for one in found if one.startswith("--")}
    elif file.endswith(".service"):
        named = set(re.findall(r"(?<= )--[a-z-]+", re.search(r"^ExecStart=(.*)$", text, re.MULTILINE)[1]))  # type: ignore[index]
    else:
        named = set(re.findall(r"(?<=`)--[a-z-]+", text))
        assert len(named) >= 12
    assert named
    assert named <= options("serve"), named - options("serve")


def test_the_limits_that_the_handbook_names() -> None:
    text = (ROOT / "docs/handbook/reference/serving.md").read_text("utf-8")
    limits = Limits()
    assert f"| questions that wait | {limits.waiting} |" in text
    assert f"| seconds of a request | {limits.seconds:g} |" in text
    assert f"another text | {limits.question:,} and {limits.text:,} |" in text
    assert limits.passages == limits.claims == 100
    assert "turns of a request | 100 |" in text


def test_an_index_can_be_served_by_another_user(tmp_path: Path) -> None:
    """No file is for its owner alone, neither in a new index nor in an updated one."""
    folder = documents(tmp_path / "documents")
    build_index(folder, tmp_path / "town.index")
    (folder / "mill.md").write_text("# Mill\n\nThe mill of Verden is old.\n", "utf-8")
    for change in (lambda: None, lambda: update_index(tmp_path / "town.index")):
        change()
        files = [path for path in (tmp_path / "town.index").rglob("*") if path.is_file()]
        private = {path.name for path in files if not path.stat().st_mode & 0o044}
        assert {path.name for path in files} >= {"meta.json", ".managed.json"}
        assert not {name for name in private if "lock" not in name}


def test_an_index_of_a_careful_user_stays_private(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        build_index(documents(tmp_path / "documents"), tmp_path / "town.index")
    finally:
        os.umask(before)
    (meta,) = tmp_path.glob("town.index/*/bm25/meta.json")
    assert meta.stat().st_mode & 0o077 == 0
