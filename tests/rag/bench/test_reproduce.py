"""Reproductions: what others write is data, what ships is complete, and a value that differs is told."""

import json
from fnmatch import fnmatch
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.base.errors import UserError
from rag.bench import list_reproductions, read_reproduction, reproduce
from rag.bench.reproductions import COMMANDS, Reproduction, _safe, not_reproducible
from rag.bench.rerun import _find
from tests.conftest import Command, one_line_error

ROOT = Path(__file__).parents[3]
TOML = """
name = "towns"
reproduces = "our towns"
quick = true
inputs = ["answers.jsonl"]
{more}
[[steps]]
command = ["autoais", "score", "answers.jsonl", "--judge", "lexical", "--metrics", "none", "--json"]
tolerance = 0.01
[steps.expected]
questions = {questions}
metrics = {{ autoais = {{ value = {autoais} }} }}
"""
ANSWERS = [
    {"id": str(n), "question": f"{n}?", "passages": [{"id": "w", "title": "", "text": "Warsaw lies on a river."}],
     "sentences": [{"text": text, "citations": [{"passage": "w"}]}]}
    for n, text in enumerate(["Warsaw lies on a river.", "Cats purr loudly."])
]  # fmt: skip


def write(folder: Path, *, questions: int = 2, autoais: float = 0.5, more: str = "") -> Path:
    (folder / "answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ANSWERS), "utf-8")
    path = folder / "towns.toml"
    path.write_text(TOML.format(questions=questions, autoais=autoais, more=more), "utf-8")
    return path


# --- what is run ---------------------------------------------------------------------------------------------------


def test_values_are_compared_within_the_tolerance(tmp_path: Path, rag: Command) -> None:
    path, out = write(tmp_path, autoais=0.505), tmp_path / "out.json"
    done = rag("bench", "reproduce", path, "--out", out)
    assert done.returncode == 0, done.stderr
    assert "1 reproduction: 2 ok" in done.stdout
    assert "towns: autoais score answers.jsonl" in done.stderr
    record = json.loads(out.read_text())
    assert record["counts"] == {"ok": 2, "differs": 0, "failed": 0, "skipped": 0}
    (one,) = record["reproductions"]
    assert one["values"][1] == {
        "step": 1, "place": "metrics/autoais/value", "expected": 0.505, "found": 0.5, "difference": -0.005,
        "status": "ok", "reason": None,
    }  # fmt: skip
    assert record["provenance"]["inputs"]["towns"] == {
        "file": "towns.toml",
        "sha256": sha256(path.read_bytes()).hexdigest(),
    }


def test_a_value_that_differs_is_exit_code_1(tmp_path: Path, rag: Command) -> None:
    done = rag("bench", "reproduce", write(tmp_path, autoais=0.75))
    assert done.returncode == 1
    assert "1 ok, 1 differs" in done.stdout
    assert "-0.25" in done.stdout


def test_a_value_that_is_not_there_differs_and_a_command_that_fails_is_told(tmp_path: Path) -> None:
    path = write(tmp_path)
    path.write_text(path.read_text().replace("autoais = {", "nothing = {"))
    (result,) = reproduce(path)
    assert [(one.status, one.reason) for one in result.values] == [("ok", None), ("differs", "not in the output")]
    path.write_text(path.read_text().replace('"lexical"', '"nobody"'))
    (result,) = reproduce(path)
    assert not result.ok
    assert {one.status for one in result.values} == {"failed"}
    assert "exit code 2" in (result.values[0].reason or "")
    assert "no judge called 'nobody'" in (result.values[0].reason or "")


DATA = '[[data]]\nfile = "pages.jsonl"\nsha256 = "{}"\nsource = "https://example.org/pages"\n'


def test_missing_data_and_another_version_are_skipped_with_the_reason(tmp_path: Path, rag: Command) -> None:
    pages = tmp_path / "data" / "pages.jsonl"
    pages.parent.mkdir()
    path = write(tmp_path, more=DATA.format(sha256(b"right").hexdigest()))
    done = rag("bench", "reproduce", path)
    assert (done.returncode, "2 skipped" in done.stdout) == (0, True)
    assert "--data" in done.stdout
    (result,) = reproduce(path, data=pages.parent)
    assert result.skip_reason == f"{pages} is missing; name the folder of the data (https://example.org/pages)"
    pages.write_bytes(b"wrong")
    (result,) = reproduce(path, data=pages.parent)
    assert "another version" in (result.skip_reason or "")
    assert {one.status for one in result.values} == {"skipped"}
    assert result.ok
    pages.write_bytes(b"right")
    (result,) = reproduce(path, data=pages.parent)
    assert result.skip_reason is None
    with pytest.raises(UserError, match="is not a folder"):
        reproduce(path, data=tmp_path / "nowhere")


def test_a_command_cannot_change_the_data_or_the_inputs(tmp_path: Path) -> None:
    pages = tmp_path / "data" / "pages.jsonl"
    pages.parent.mkdir()
    pages.write_bytes(b"right")
    path = write(tmp_path, more=DATA.format(sha256(b"right").hexdigest()))
    before = (tmp_path / "answers.jsonl").read_bytes()
    steps = (
        "".join(
            f'[[steps]]\ncommand = ["autoais", "convert", "answers.jsonl", "{out}", "--to", "answers"]\n'
            for out in ("data/pages.jsonl", "copy.jsonl")
        )
        + '[[steps]]\ncommand = ["autoais", "convert", "copy.jsonl", "answers.jsonl", "--to", "answers"]\n'
    )
    path.write_text(path.read_text().replace("[[steps]]", steps + "[[steps]]", 1))
    (result,) = reproduce(path, data=pages.parent)
    assert result.ok
    assert pages.read_bytes() == b"right"
    assert (tmp_path / "answers.jsonl").read_bytes() == before


def test_a_package_that_is_not_installed_is_a_reason_to_skip(tmp_path: Path) -> None:
    (result,) = reproduce(write(tmp_path, more='packages = ["no_such_package"]'))
    assert result.skip_reason == "needs the Python package no_such_package, which is not installed"


def test_a_file_written_by_a_command_is_never_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", ".::eval")
    path = write(tmp_path)
    step = '[[steps]]\ncommand = ["autoais", "convert", "answers.jsonl", "json.py", "--to", "alce"]\n'
    path.write_text(path.read_text().replace("[[steps]]", step + "[[steps]]"))
    (result,) = reproduce(path)
    assert result.ok
    assert len(result.values) == 2


def test_only_quick_ones_are_run_if_asked(tmp_path: Path) -> None:
    path = write(tmp_path)
    path.write_text(path.read_text().replace("quick = true", "quick = false\nminutes = 9"))
    assert reproduce(path, quick=True) == []


def test_places_in_lists() -> None:
    rows = {"rows": [{"model": "a", "x": 1}, {"model": "b", "x": 2}, {"model": "b", "x": 3}]}
    assert _find(rows, ("rows", "model=a", "x")) == 1
    assert _find(rows, ("rows", "2", "x")) == 3
    for keys in (
        ("rows", "model=b", "x"),
        ("rows", "model=c", "x"),
        ("rows", "9"),
        ("rows", "-1"),
        ("rows", "0", "x", "y"),
    ):
        assert type(_find(rows, keys)) is object


# --- what others write ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ('name = "towns"', "", "setting 'name' is missing"),
        ("quick = true", "quick = 1", "'quick' should be true or false"),
        ("quick = true", "quick = false", "setting 'minutes' is missing"),
        ("quick = true", "quick = true\nsource = 1", "unknown setting 'source'"),
        ("tolerance = 0.01", "tolerance = -1", "'tolerance' should be a number from 0"),
        ("tolerance = 0.01", "tolerance = nan", "'tolerance' should be a number from 0"),
        ("questions = 2", "questions = nan", "'questions' should be a number, a string"),
        ("questions = 2", "questions = [1]", "'questions' should be a number, a string"),
        ("questions = 2", "questions = 1979-05-27", "'questions' should be a number, a string"),
        ("questions = 2", "a" + ".a" * 30 + " = 1", "should be a number, a string"),
        ("[steps.expected]\nquestions = 2\nmetrics = { autoais = { value = 0.5 } }", "", "no step has expected values"),
        ('["answers.jsonl"]', '["../answers.jsonl"]', "'inputs' should be files beside this one"),
        ('["answers.jsonl"]', '["/etc/passwd"]', "'inputs' should be files beside this one"),
        ('["answers.jsonl"]', '["nothing.jsonl"]', "'inputs' should be files beside this one"),
        ("quick = true", 'quick = true\npackages = ["os.path"]', "'packages' should be names of Python packages"),
        ('"--json"]', '"--json", 1]', "'command' should be a list"),
        ('"--json"]', '"--json", ""]', "'command' should be a list"),
        ("tolerance = 0.01", 'output = "../x.json"', "'output' should be a relative path"),
        ("[[steps]]", "[steps]", "'steps' should be a list"),
    ],
)
def test_a_file_that_is_not_a_reproduction_is_one_line(
    tmp_path: Path, rag: Command, old: str, new: str, error: str
) -> None:
    path = write(tmp_path)
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    one_line_error(rag("bench", "reproduce", path), "towns.toml", error)


COMMAND = '"autoais", "score", "answers.jsonl", "--judge", "lexical", "--metrics", "none", "--json"'


@pytest.mark.parametrize(
    "command",
    [
        '"sh", "-c", "true"', '"/bin/sh"', '"python", "x.py"', '"python", "-c", "1"', '"python", "-m", "http.server"',
        '"python", "-m", "scripts.lock"', '"rag", "train"', '"rag", "bench", "reproduce"', '"rag"',
        '"autoais", "train"', '"rag", "index", "fetch", "x"', '"autoais score"', '"rag", "--version", "answer"',
    ],
)  # fmt: skip
def test_another_command_is_refused(tmp_path: Path, rag: Command, command: str) -> None:
    path = write(tmp_path)
    path.write_text(path.read_text().replace(COMMAND, command))
    one_line_error(rag("bench", "reproduce", path), "towns.toml", "may not be run; there are: autoais ais-report")


@pytest.mark.parametrize(
    "argument",
    [
        "/etc/passwd", "../x", "a/../../x", "--out=/etc/passwd", "--out=../x", "x=../y", "a,/b", "~/x", "~root/x",
        "os:system", "package.module:Class", "https://example.org", "hf:someone/model", "reader,retriever=/x",
        "-o/etc/x", "a\\b", "C:x", "a\nb",
    ],
)  # fmt: skip
def test_an_argument_that_names_code_or_a_file_elsewhere_is_refused(
    tmp_path: Path, rag: Command, argument: str
) -> None:
    path = write(tmp_path)
    path.write_text(path.read_text().replace('"--json"', json.dumps(argument)))
    one_line_error(rag("bench", "reproduce", path), "towns.toml", "may not be given")


@given(st.text(max_size=30))
def test_a_safe_argument_stays_below_the_folder(argument: str) -> None:
    if _safe(argument):
        for piece in argument.replace(",", "=").split("="):
            assert (Path("/work/run") / piece).resolve().is_relative_to("/work/run")
        assert ":" not in argument


def test_an_input_that_is_a_link_elsewhere_is_not_read(tmp_path: Path) -> None:
    path = write(tmp_path)
    (tmp_path / "answers.jsonl").unlink()
    (tmp_path / "answers.jsonl").symlink_to("/etc/hostname")
    (result,) = reproduce(path)
    assert {one.status for one in result.values} == {"failed"}
    assert "leaves" in (result.values[0].reason or "")


def test_an_unknown_name_lists_the_known_ones(rag: Command) -> None:
    one_line_error(rag("bench", "reproduce", "nobody"), "no reproduction called 'nobody'", "ais-tables")


# --- what ships ----------------------------------------------------------------------------------------------------


def test_the_list_shows_all_and_what_cannot_be_reproduced(rag: Command) -> None:
    printed = rag("bench", "reproduce", "--list").stdout
    for one in list_reproductions():
        assert one.name in printed
    assert "attributed-qa-tables" in printed
    assert "not at hand" in printed


@pytest.mark.parametrize("one", list_reproductions(), ids=lambda one: one.name)
def test_a_shipped_reproduction_points_at_files_that_exist(one: Reproduction) -> None:
    assert one.name == one.path.stem
    used = {word for step in one.steps for word in step.command}
    for name in one.inputs:
        assert (one.path.parent / name).is_file()
        assert name in used
    assert {word for word in used if word.startswith("inputs/")} == set(one.inputs)
    listed = {f"data/{needed.file.file}" for needed in one.data}
    assert {word for word in used if word.startswith("data/")} <= listed
    for step in one.steps:
        words = " ".join(step.command)
        assert any(words.startswith(f"{known} ") for known in COMMANDS)
        if step.result is not None:  # our own: the values are those of the file
            result = json.loads((ROOT / step.result).read_text("utf-8"))
            for keys, expected in step.expected.items():
                assert _find(result, keys) == expected, (step.result, keys)


def test_every_input_is_used_and_every_result_file_is_accounted_for() -> None:
    shipped = list_reproductions()
    there = {f"inputs/{path.name}" for path in (ROOT / "eval/reproductions/inputs").iterdir()}
    assert there == {name for one in shipped for name in one.inputs}
    made = {step.result for one in shipped for step in one.steps}
    patterns = [row["name"] for row in not_reproducible()]
    for path in (ROOT / "eval" / "results").rglob("*.json"):
        name = path.relative_to(ROOT).as_posix()
        assert name in made or any(fnmatch(name, pattern) for pattern in patterns), (
            f"{name}: add a reproduction, or say in eval/reproductions/not-reproducible.toml why there is none"
        )


@pytest.mark.slow
@pytest.mark.parametrize("name", [one.name for one in list_reproductions() if one.quick])
def test_the_quick_ones_come_out_as_expected(name: str, request: pytest.FixtureRequest) -> None:
    needs_data = bool(read_reproduction(name).data)
    data: Any = request.getfixturevalue("shared_data") if needs_data else None
    (result,) = reproduce(name, data=data)
    if result.skip_reason is not None:
        pytest.skip(result.skip_reason)
    assert [one for one in result.values if one.status != "ok"] == []
