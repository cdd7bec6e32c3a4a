"""What is written about `rag serve` fits it: options in the container, the unit and the handbook."""

import json
import re
from pathlib import Path

import pytest
import typer.main

from rag.cli import app
from rag.serve.service import Limits

ROOT = Path(__file__).parents[3]
FILES = ("deploy/Dockerfile", "deploy/rag.service", "docs/handbook/serving.md")


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
    text = (ROOT / "docs/handbook/serving.md").read_text("utf-8")
    limits = Limits()
    assert f"| questions that wait | {limits.waiting} |" in text
    assert f"| seconds of a request | {limits.seconds:g} |" in text
    assert f"another text | {limits.question:,} and {limits.text:,} |" in text
    assert limits.passages == limits.claims == 100
    assert "turns of a request | 100 |" in text
