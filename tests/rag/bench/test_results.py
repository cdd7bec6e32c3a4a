"""Run folders of others: a missing, truncated or strange file is one line; runs that do not compare are refused."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from autoais.base.errors import UserError
from autoais.base.io.provenance import sha256_file
from rag.bench.results import group_systems, read_run
from tests.rag.bench.folders import edit, make_run


def test_a_run_is_read(tmp_path: Path) -> None:
    run = read_run(make_run(tmp_path / "run"))
    assert (run.benchmark, run.version, run.licence, run.judge) == ("towns", "1", "CC BY-SA 4.0", "lexical@1/full.v1")
    assert {one.label: one.system for one in run.systems} == {
        label: f"{label} (a system of tests)" for label in ("reader", "extractive")
    }
    files = ("items.jsonl", "judgements.jsonl", "metrics.json")
    assert set(run.inputs()) == {
        "run.json",
        *(f"{label}/{name}" for label in ("reader", "extractive") for name in files),
    }


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def drop_last(path: Path) -> None:
    path.write_text("".join(line + "\n" for line in path.read_text("utf-8").split("\n")[:-2]), "utf-8")


def odd_interval(run: Path, ends: list[int]) -> None:
    edit(run / "reader/metrics.json", metrics={"em": {"value": 1, "interval95": ends}})


BROKEN: dict[str, tuple[Callable[[Path], object], str]] = {
    "no manifest": (lambda run: (run / "run.json").unlink(), "run.json: no such file"),
    "truncated manifest": (lambda run: truncate(run / "run.json"), "run.json: not JSON"),
    "manifest of something else": (lambda run: (run / "run.json").write_text("[]"), "run.json"),
    "no benchmark": (lambda run: edit(run / "run.json", benchmark={}), "'benchmark.name' is missing"),
    "no systems": (lambda run: edit(run / "run.json", systems={}), "names no systems"),
    "a label out of the folder": (lambda run: edit(run / "run.json", systems={"../reader": "x"}), "'../reader'"),
    "an absolute label": (lambda run: edit(run / "run.json", systems={"/etc": "x"}), "'/etc'"),
    "a strange label": (lambda run: edit(run / "run.json", systems={"a\n\x1b[31m": "x"}), "cannot be the name"),
    "stage missing": (lambda run: (run / "reader/metrics.json").unlink(), "the stage `measure` of reader is missing"),
    "items missing": (lambda run: (run / "reader/items.jsonl").unlink(), "the stage `measure` of reader is missing"),
    "items truncated in a row": (lambda run: truncate(run / "reader/items.jsonl"), "items.jsonl:24: not JSON"),
    "items truncated after a row": (lambda run: drop_last(run / "reader/items.jsonl"), "do not add up"),
    "items edited": (lambda run: edit(run / "reader/items.jsonl", way="right_unattributed"), "do not add up"),
    "other questions": (lambda run: edit(run / "reader/items.jsonl", question="Why?"), "have answered other questions"),
    "metrics truncated": (lambda run: truncate(run / "reader/metrics.json"), "metrics.json: not JSON"),
    "metrics without ways": (lambda run: edit(run / "reader/metrics.json", ways={}), "'ways."),
    "a metric that is no number": (
        lambda run: edit(run / "reader/metrics.json", metrics={"em": {"value": "<b>"}}), "'metrics.em.value'",
    ),
    "an interval of three": (lambda run: odd_interval(run, [0, 1, 2]), "interval95"),
    "an interval of one": (lambda run: odd_interval(run, [0]), "interval95"),
}  # fmt: skip


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_run_is_one_line(tmp_path: Path, case: str) -> None:
    run = make_run(tmp_path / "run")
    damage, said = BROKEN[case]
    damage(run)
    with pytest.raises(UserError) as error:
        read_run(run)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_a_folder_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such folder"):
        read_run(tmp_path / "absent")


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"benchmark": "villages"}, "/a/reader ran the benchmark 'towns 1', .*/b/reader 'villages 1'"),
        ({"judge": "lexical@1/sentence.v1"}, "was judged by 'lexical@1/full.v1'"),
        ({"n": 20}, "other questions: 4 only in the first, 0 only in the second"),
        ({"seed": 1, "hostile": False}, "other questions"),
    ],
)
def test_runs_that_do_not_compare_are_refused_or_kept_apart(tmp_path: Path, other: dict[str, int], said: str) -> None:
    runs = [read_run(make_run(tmp_path / "a")), read_run(make_run(tmp_path / "b", **other))]  # type: ignore[arg-type]
    with pytest.raises(UserError, match=said) as found:
        group_systems(runs)
    assert "a/a/" not in str(found.value)
    groups = group_systems(runs, allow_different=True)
    assert [len(group.systems) for group in groups] == [2, 2]
    assert {one.label for group in groups for one in group.systems} == {
        "a/reader", "a/extractive", "b/reader", "b/extractive",
    }  # fmt: skip


def test_a_closed_pool_does_not_compare_with_another_corpus(tmp_path: Path) -> None:
    runs = [make_run(tmp_path / name) for name in "ab"]
    for label in ("reader", "extractive"):
        edit(runs[0] / label / "metrics.json", closed_pool=True)
    with pytest.raises(UserError, match="searched other corpora"):
        group_systems(map(read_run, runs))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"benchmark": {"name": "towns", "version": "1", "right": "em"}}, "have other rules or references"),
        ({"data": {"corpus": {"": {"path": "other", "sha256": None}}}}, "searched other passages"),
        ({"indexes": {"": {"checksum": "sha256:1"}}}, "searched other passages"),
    ],
)
def test_another_rule_or_corpus_under_the_same_name_is_told(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    runs = [make_run(tmp_path / name) for name in "ab"]
    edit(runs[0] / "run.json", indexes={"": {"checksum": "sha256:0"}})
    edit(runs[1] / "run.json", **change)
    with pytest.raises(UserError, match=said):
        group_systems(map(read_run, runs))
    groups = group_systems(map(read_run, runs), allow_different=True)
    assert [group.name.endswith(f", of {name}") for group, name in zip(groups, "ab", strict=True)] == [True, True]


def test_a_run_that_opened_no_index_compares_and_so_does_another_comment(tmp_path: Path) -> None:
    runs = [make_run(tmp_path / name) for name in "abc"]
    edit(runs[0] / "run.json", indexes={"": {"checksum": "sha256:0"}})
    edit(runs[1] / "run.json", benchmark={"name": "towns", "version": "1", "sha256": "1" * 64})
    edit(runs[2] / "run.json", indexes={"": {"checksum": "sha256:0"}, "more": {"checksum": "sha256:1"}})
    (group,) = group_systems(map(read_run, runs))
    assert len(group.systems) == 6


@pytest.mark.parametrize("name", ["judgements.jsonl", "metrics.json", "items.jsonl"])
def test_a_file_that_is_not_what_its_stage_wrote_is_refused(tmp_path: Path, name: str) -> None:
    run = make_run(tmp_path / "run")
    path = run / "reader" / name
    edit(run / "run.json", stages={"judge": {f"reader/{name}": {"rows": 1, "sha256": sha256_file(path)}}})
    read_run(run)
    path.write_bytes(path.read_bytes() + b"\n")
    again = "rag bench run BENCHMARK.toml --out .* --stage judge, with its file, --data and --index as before"
    with pytest.raises(UserError, match=f"{name} was changed after it was written; make it again: {again}"):
        read_run(run)
    if name == "judgements.jsonl":
        path.unlink()
        with pytest.raises(UserError, match=f"{name} is missing"):
            read_run(run)


def test_runs_of_the_same_questions_form_one_group(tmp_path: Path) -> None:
    runs = [make_run(tmp_path / "a", systems=["reader"]), make_run(tmp_path / "b", systems=["llm"])]
    (group,) = group_systems(map(read_run, runs))
    assert [one.label for one in group.systems] == ["reader", "llm"]
    with pytest.raises(UserError, match="named twice"):
        group_systems([read_run(runs[0]), read_run(runs[0])])


def test_the_generator_is_hostile(tmp_path: Path) -> None:
    row = json.loads((make_run(tmp_path / "run") / "reader/items.jsonl").read_text("utf-8").split("\n")[0])
    texts = (row["id"], row["question"], row["kind"], *row["references"], *row["ranking"])
    assert all("<script>" in text for text in texts if text != row["references"][0])
