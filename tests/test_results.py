"""The command in every result file is one that others can run, here or in an older revision, and writes that file."""

import argparse
import importlib
import json
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import typer

from autoais.base.errors import FormatError
from autoais.base.io.provenance import command
from scripts.make_results import FIGURES
from scripts.make_results import PAGES as RESULT_PAGES
from scripts.mutation import MODULES
from scripts.results_page import CHOICES, PARTS, metric_table

ROOT = Path(__file__).parents[1]
RESULTS = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "eval" / "results").rglob("*.json"))
OLDER = dict(  # results whose command is in an older revision only
    re.findall(r"^\| `([^`]+)` \|.*\| (\w+) \|$", (ROOT / "eval/results/README.md").read_text("utf-8"), re.MULTILINE)
)
OUTPUTS = ("out", "output", "report", "results", "file", "folder")  # the options that name what a command writes


class ParsedError(Exception):
    """Raised instead of running a command, with the values of its options."""


def commands(value: object) -> Iterator[str]:
    """The commands in the provenance of a result."""
    if isinstance(value, dict):
        for key, item in value.items():
            if key == "command" and isinstance(item, str):
                yield item
            else:
                yield from commands(item)


def parsed_script(monkeypatch: pytest.MonkeyPatch, argv: list[str]) -> dict[str, object]:
    parse, convert = argparse.ArgumentParser.parse_args, argparse.ArgumentParser._get_value

    def stop(self: argparse.ArgumentParser) -> None:
        raise ParsedError(vars(parse(self)))

    def value(self: argparse.ArgumentParser, action: argparse.Action, text: str) -> object:
        try:
            return convert(self, action, text)
        except (FormatError, OSError):  # the index or model is not here
            return text

    def stop_typer(function: Callable[..., object]) -> None:
        app = typer.Typer()
        app.command()(function)
        raise ParsedError(parsed(typer.main.get_command(app), "script", sys.argv[1:]))

    def stop_app(app: typer.Typer) -> None:
        raise ParsedError(parsed(typer.main.get_command(app), "script", sys.argv[1:]))

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", stop)
    monkeypatch.setattr(argparse.ArgumentParser, "_get_value", value)
    monkeypatch.setattr(typer, "run", stop_typer)
    monkeypatch.setattr(typer.Typer, "__call__", stop_app)
    module = argv[1] == "-m"
    monkeypatch.setattr(sys, "argv", argv[2:] if module else argv[1:])
    monkeypatch.delitem(sys.modules, argv[2], raising=False)
    run = partial(runpy.run_module, argv[2]) if module else partial(runpy.run_path, str(ROOT / argv[1]))
    with pytest.raises(ParsedError) as error:
        run(run_name="__main__")
    values = error.value.args[0]
    assert isinstance(values, dict)
    return values


def parsed_program(argv: list[str]) -> dict[str, object]:
    app = importlib.import_module(f"{argv[0]}.commands.main").app
    return parsed(typer.main.get_command(app), argv[0], argv[1:])


def parsed(command: Any, name: str, arguments: list[str]) -> dict[str, object]:  # noqa: ANN401  (of click)
    """The values of a command of typer, or of its subcommand, by name."""
    context = None
    while True:
        context = command.make_context(name, arguments, parent=context)
        if not hasattr(command, "resolve_command"):
            return dict(context.params)
        name, command, arguments = command.resolve_command(context, [*context._protected_args, *context.args])


@pytest.mark.parametrize("page", RESULT_PAGES, ids=lambda page: page.name)
def test_the_pages_of_results_are_those_of_their_files(page: Path) -> None:
    assert page.read_text("utf-8") == "".join(f"{line}\n" for line in RESULT_PAGES[page]())


def test_each_part_of_the_results_has_its_figure() -> None:
    assert {path.stem for path in FIGURES.iterdir()} == {part.name for part in PARTS}


def test_a_row_of_the_results_has_its_letters_and_no_figure_that_is_missing() -> None:
    metric = {"value": 0.5, "interval95": [0.25, 0.75]}
    metrics = {"autoais": metric, "em": {"value": None, "interval95": None}}
    system = {"label": "reader", "same_judge": True, "ways": {}, "tokens": None, "metrics": metrics}
    columns = {"autoais": "AutoAIS", "em": "exact match", "f1": "F1"}
    *_, row = metric_table({"systems": [system]}, columns, {"autoais": {"letters": {"reader": "a"}}})
    assert row == "| `reader`\\* | 50.0 (25.0 to 75.0) <sup>a</sup> |  |  |"


def test_cells_of_the_choices_are_short() -> None:
    choices = tomllib.loads(CHOICES.read_text("utf-8"))["choices"]
    assert not [row["part"] for row in choices for cell in ("chosen_on", "elsewhere") if len(row[cell].split()) > 15]


def recorded(result: str) -> list[str]:
    lines = sorted(set(commands(json.loads((ROOT / result).read_text("utf-8")))))
    for line in lines:
        words = shlex.split(line)
        assert not [word for word in words if word.startswith(("/", "~", "../../")) or ".rag-build-" in word], line
    return lines


def is_older(result: str) -> bool:
    return result.removeprefix("eval/results/") in OLDER


@pytest.mark.parametrize("result", [result for result in RESULTS if not is_older(result)])
def test_the_command_of_a_result_writes_it(result: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    outputs = set()
    for line in recorded(result):
        argv = shlex.split(line)
        values = parsed_script(monkeypatch, argv) if argv[0] == "python" else parsed_program(argv)
        outputs |= {path.resolve() for name, path in values.items() if name in OUTPUTS and isinstance(path, Path)}
    assert {ROOT / result, (ROOT / result).parent} & outputs


@pytest.mark.parametrize("result", [result for result in RESULTS if is_older(result)])
def test_the_command_of_an_older_result_is_in_its_revision(result: str) -> None:
    lines = recorded(result)
    assert any(result in line or str(Path(result).parent) in line for line in lines), lines
    for line in lines:
        argv = shlex.split(line)
        script = f"{argv[2].replace('.', '/')}.py" if argv[1] == "-m" else argv[1]
        assert_in_revision(script if argv[0] == "python" else "pyproject.toml", OLDER[result[len("eval/results/") :]])


def test_only_results_that_exist_are_listed_as_older() -> None:
    assert set(OLDER) <= {result.removeprefix("eval/results/") for result in RESULTS}


def assert_in_revision(path: str, revision: str) -> None:
    """Assert that the file is in the revision, where the checkout has its history."""
    git = ["git", "-C", str(ROOT), "cat-file", "-e"]
    if shutil.which("git") and not subprocess.run([*git, revision], capture_output=True, check=False).returncode:
        process = subprocess.run([*git, f"{revision}:{path}"], capture_output=True, text=True, check=False)
        assert process.returncode == 0, process.stderr


PAGES = [
    *(ROOT / "docs").rglob("*.md"), *(ROOT / "eval").rglob("*.toml"), *(ROOT / "eval").rglob("*.md"),
    *(ROOT / "rag").rglob("*.md"), *(ROOT / "rag").rglob("*.py"), *(ROOT / "eval/autoais").rglob("*.py"),
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "Makefile")),
]  # fmt: skip
SCRIPT = re.compile(r"\bscripts([./])(\w+(?:\1\w+)*)(\.py\b)?[^\s`]*`?(?: at revision (\w+))?")


def test_every_script_that_a_page_names_is_there_or_has_its_revision() -> None:
    count = 0
    for page in PAGES:
        for separator, name, suffix, revision in SCRIPT.findall(page.read_text("utf-8")):
            if (separator == "/") != bool(suffix):  # a folder, or the end of a sentence
                continue
            count += 1
            path = f"scripts/{name.replace('.', '/')}.py"
            if revision:
                assert_in_revision(path, revision)
            else:
                assert (ROOT / path).is_file() or (ROOT / path[:-3]).is_dir(), (page, path)
    assert count > 30


def test_modules_to_mutate_and_their_tests_are_there() -> None:
    for module, tests in MODULES.items():
        for path in (f"eval/autoais/{module}.py", *tests):
            assert (ROOT / path).exists(), path


def test_a_recorded_command_can_be_typed_by_others(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    here = tmp_path / "a" / "checkout"
    (here / "scripts").mkdir(parents=True)
    monkeypatch.chdir(here)
    argv = ["/usr/bin/autoais", "score", str(here / "x y.jsonl"), str(tmp_path / "a" / "data"), "/etc/q", "--top", "5"]
    monkeypatch.setattr(sys, "argv", argv)
    assert command() == "autoais score 'x y.jsonl' ../data /etc/q --top 5"
    (here / "scripts" / "count.py").write_text("from autoais.base.io.provenance import command; print(command())")
    for words in (["scripts/count.py"], ["-m", "scripts.count"]):
        process = subprocess.run(
            [sys.executable, *words, "5"], env=os.environ | {"PYTHONPATH": f"{ROOT / 'eval'}:."}, check=True,
            capture_output=True, text=True,
        )  # fmt: skip
        assert process.stdout == f"python {' '.join(words)} 5\n"
