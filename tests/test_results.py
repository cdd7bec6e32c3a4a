"""The command in every result file is one that others can run, and it writes that file."""

import argparse
import importlib
import json
import os
import runpy
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import typer

from autoais.errors import FormatError
from autoais.io.provenance import command
from scripts.make_results import FIGURES, PAGE, PARTS, further_table, lines

ROOT = Path(__file__).parents[1]
RESULTS = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "eval" / "results").rglob("*.json"))


OUTPUTS = ("out", "report", "results")  # the options that name what a command writes


class ParsedError(Exception):
    """Raised instead of running a command, with the values of its options."""


def commands(value: object) -> Iterator[str]:
    """The commands in the provenance of a result."""
    if isinstance(value, dict):
        for key, one in value.items():
            if key == "command" and isinstance(one, str):
                yield one
            else:
                yield from commands(one)


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
    with pytest.raises(ParsedError) as found:
        run(run_name="__main__")
    values = found.value.args[0]
    assert isinstance(values, dict)
    return values


def parsed_program(argv: list[str]) -> dict[str, object]:
    app = importlib.import_module(f"{argv[0]}.cli").app
    return parsed(typer.main.get_command(app), argv[0], argv[1:])


def parsed(command: Any, name: str, arguments: list[str]) -> dict[str, object]:  # noqa: ANN401  (of click)
    """The values of a command of typer, or of its subcommand, by name."""
    context = None
    while True:
        context = command.make_context(name, arguments, parent=context)
        if not hasattr(command, "resolve_command"):
            return dict(context.params)
        name, command, arguments = command.resolve_command(context, [*context._protected_args, *context.args])


def test_the_page_of_results_is_that_of_the_result_files() -> None:
    assert PAGE.read_text("utf-8") == "".join(f"{line}\n" for line in lines())
    assert {path.stem for path in FIGURES.iterdir()} == {part.name for part in PARTS}


def test_further_metrics_have_a_row_for_each_system() -> None:
    metric = {"value": 0.5, "interval95": [0.25, 0.75]}
    metrics = dict.fromkeys(["autoais", "autoais_second", "liu_precision", "trec_recall", "trec_precision"], metric)
    metrics["liu_recall"] = {"value": None, "interval95": None}
    one = {"label": "reader", "same_judge": True, "ways": {}, "metrics": metrics}
    *_, row = further_table({"second_judge": "lexical", "systems": [one]})
    half = "50.0 (25 to 75)"
    assert row == f"| `reader`\\* | {half} | {half} |  | {half} | {half} | {half} |"


@pytest.mark.parametrize("result", RESULTS)
def test_the_command_of_a_result_writes_it(result: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    recorded = sorted(set(commands(json.loads((ROOT / result).read_text("utf-8")))))
    written = set()
    for line in recorded:
        argv = shlex.split(line)
        assert not [one for one in argv if one.startswith(("/", "~", "../../")) or ".rag-build-" in one], line
        values = parsed_script(monkeypatch, argv) if argv[0] == "python" else parsed_program(argv)
        written |= {path.resolve() for name, path in values.items() if name in OUTPUTS and isinstance(path, Path)}
    assert {ROOT / result, (ROOT / result).parent} & written, recorded


def test_a_recorded_command_can_be_typed_by_others(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    here = tmp_path / "a" / "checkout"
    (here / "scripts").mkdir(parents=True)
    monkeypatch.chdir(here)
    given = ["/usr/bin/autoais", "score", str(here / "x y.jsonl"), str(tmp_path / "a" / "data"), "/etc/q", "--top", "5"]
    monkeypatch.setattr(sys, "argv", given)
    assert command() == "autoais score 'x y.jsonl' ../data /etc/q --top 5"
    (here / "scripts" / "count.py").write_text("from autoais.io.provenance import command; print(command())")
    for how, said in ((["scripts/count.py"], "scripts/count.py"), (["-m", "scripts.count"], "-m scripts.count")):
        done = subprocess.run(
            [sys.executable, *how, "5"], env=os.environ | {"PYTHONPATH": f"{ROOT / 'eval'}:."}, check=True,
            capture_output=True, text=True,
        )  # fmt: skip
        assert done.stdout == f"python {said} 5\n"
