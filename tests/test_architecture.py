"""docs/architecture.md says how the code is built; what it names is there, and its stack is the one that is checked."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/architecture.md").read_text("utf-8")
LAYERS = {
    contract["containers"][0]: contract["layers"]
    for contract in tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    if contract["type"] == "layers"
}


def test_every_path_is_there() -> None:
    paths = re.findall(r"`((?:rag|eval|docs|prompts|indexes|scripts|tests)/[\w./-]*|[\w.]+\.(?:py|md))`", PAGE)
    assert len(paths) > 60
    missing = [path for path in paths if "/" in path and not (ROOT / path).exists()]
    assert missing == []
    names = {path.name for folder in ("rag", "eval/autoais") for path in (ROOT / folder).rglob("*.py")}
    names |= {path.name for path in ROOT.iterdir()}
    assert [path for path in paths if "/" not in path and path not in names] == []


def test_every_table_is_where_the_page_says() -> None:
    tables = re.findall(r"`([A-Z_]{4,})` `([\w/]+\.py)`", PAGE)
    assert len(tables) == 7
    for name, path in tables:
        assert re.search(rf"^{name}\b", (ROOT / path).read_text("utf-8"), re.MULTILINE), (name, path)


@pytest.mark.parametrize(("package", "column"), [("rag", 0), ("autoais", 1)])
def test_the_stack_is_the_one_that_is_checked(package: str, column: int) -> None:
    layers = [room for layer in LAYERS[package] for room in re.split(r"\s*\|\s*", layer)]
    drawing = PAGE.split("```text\n")[1].split("```")[0].splitlines()
    rooms = [line[1 + 49 * column :].split(" ", 1)[0] for line in drawing[2:]]
    drawn = [room for room in rooms if room in layers]
    unnamed = {"__main__", "testing"}  # an entry point, and what tests of other packages call
    assert set(drawn) == set(layers) - unnamed
    depth = {room: number for number, layer in enumerate(LAYERS[package]) for room in re.split(r"\s*\|\s*", layer)}
    assert [depth[room] for room in drawn] == sorted(depth[room] for room in drawn)


def test_each_room_says_in_a_sentence_what_it_is() -> None:
    for package, folder in (("rag", ROOT / "rag"), ("autoais", ROOT / "eval/autoais")):
        for room in {room for layer in LAYERS[package] for room in re.split(r"\s*\|\s*", layer)}:
            path = folder / room / "__init__.py"
            if path.exists():
                first = (ast.get_docstring(ast.parse(path.read_text("utf-8"))) or "").split("\n")[0]
                assert first.endswith((".", ":")), path
