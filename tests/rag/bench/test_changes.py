"""What changed between two runs: told by question, and nothing where only times differ."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from autoais.base.errors import UserError
from rag.bench import read_items, run_changes
from rag.bench.items import write_items
from tests.conftest import Command
from tests.rag.bench.folders import edit, make_run


def test_other_times_are_no_change(tmp_path: Path, rag: Command) -> None:
    old, new = make_run(tmp_path / "old"), make_run(tmp_path / "new")
    path = new / "reader/items.jsonl"
    write_items(path, [replace(one, seconds=9.5) for one in read_items(path)])
    found = run_changes(old, new)
    assert (found["same"], found["inputs"], list(found["systems"])) == (True, [], ["reader", "extractive"])
    done = rag("bench", "changes", old, new)
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, "reader: the same hits, answers, verdicts and metrics")


def test_what_changed_is_told_once_and_by_question(tmp_path: Path, rag: Command) -> None:
    old = make_run(tmp_path / "old", hostile=False)
    new = make_run(tmp_path / "new", hostile=False, systems=("reader", "other"))
    path = new / "reader/items.jsonl"
    items = read_items(path)
    with_text = [place for place, one in enumerate(items) if one.sentences]
    first, second = with_text[:2]
    items[first] = replace(items[first], answer="Something else.", ranking=items[first].ranking[::-1])
    sentence = items[second].sentences[0]
    other = "not_attributable" if sentence.verdict == "attributable" else "attributable"
    sentences = (replace(sentence, verdict=other), *items[second].sentences[1:])
    items[second] = replace(items[second], sentences=sentences)
    write_items(path, items)
    edit(new / "run.json", versions={"python": "3.12"})
    metrics = json.loads((new / "reader/metrics.json").read_text())["metrics"]
    edit(new / "reader/metrics.json", judge="another", metrics=metrics | {"autoais": {"value": 0.123}})
    found = run_changes(old, new)
    reader = found["systems"]["reader"]
    assert (found["same"], found["only_old"], found["only_new"]) == (False, ["extractive"], ["other"])
    assert {"place": "versions.python", "old": "3.11", "new": "3.12"} in found["inputs"]
    assert {"place": "judge.reader", "old": "lexical@1/full.v1", "new": "another"} in found["inputs"]
    assert (reader["ranking"], reader["answer"]) == ([items[first].id], [items[first].id])
    assert (reader["verdicts"], reader["ways"]) == ([items[second].id], [])
    assert [(one["place"], one["new"]) for one in reader["metrics"]] == [("autoais", 0.123)]
    done = rag("bench", "changes", old, new)
    assert done.returncode == 1
    assert "reader: 1 list of hits, 1 answer, 1 verdict on the same answers, 1 metric differ" in done.stdout
    assert json.loads(rag("bench", "changes", old, new, "--json").stdout) == found


def test_other_questions_are_told(tmp_path: Path) -> None:
    old, new = make_run(tmp_path / "old", n=8, hostile=False), make_run(tmp_path / "new", n=9, hostile=False)
    found = run_changes(old, new)
    assert found["systems"]["reader"]["questions"] == ["q8"]
    assert not found["same"]
    with pytest.raises(UserError, match="no such folder"):
        run_changes(old, tmp_path / "gone")
