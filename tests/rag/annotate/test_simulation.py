"""Simulated annotators work through a real study in Chromium, and are told apart from people."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("playwright")
pytest.importorskip("uvicorn")
pytest.importorskip("itsdangerous")
pytest.importorskip("jinja2")
pytest.importorskip("python_multipart")
pytest.importorskip("sqlalchemy")

from autoais.base.errors import UserError
from rag.annotate.items import Item
from scripts.browser import CHROMIUM
from scripts.simulate_study import Habits, choose_option, right_option, run
from tests.rag.annotate.web_study import ANSWER, BRIDGE, CITATION, make_study


def test_a_study_that_does_not_say_so_is_not_simulated(tmp_path: Path) -> None:
    study = make_study(tmp_path)
    with pytest.raises(UserError, match="should say that this is a simulation"):
        run(study.folder)
    assert study.progress().people == ()


def test_the_model_follows_the_words_and_errs_as_often_as_it_says() -> None:
    options = [{"value": "yes"}, {"value": "no"}]
    shown = {"question": "attributable", "sourced": True, "options": options, "judged": "The bridge opened in 1931."}
    assert right_option(shown | {"source": "It opened in 1931: the bridge."}, 13) == 0
    assert right_option(shown | {"source": "A ferry crossed the river."}, 13) == 1
    texts = [{**shown, "source": f"The bridge opened in 1931. {n}"} for n in range(2000)]
    for person, rate in enumerate((0.04, 0.07, 0.10, 0.13, 0.16)):
        wrong = sum(choose_option(one, person, 13) != 0 for one in texts) / len(texts)
        assert wrong == pytest.approx(rate, abs=0.03)
    likert = [{"value": str(n)} for n in (5, 4, 3, 2, 1)]
    assert {choose_option({**one, "options": likert}, 4, 13) for one in texts} == {0, 1}


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium (Debian: chromium)")
def test_simulated_annotators_finish_a_study(tmp_path: Path) -> None:
    items = [replace(ANSWER, id=f"q{n}", answer=f"q{n}", text=f"{ANSWER.text} {n}") for n in range(3)]
    study = make_study(tmp_path, *items, title="A simulation", evidence="required")
    found = run(study.folder, people=3)
    assert found["simulation"].endswith("No person was involved.")
    assert found["console"] == []
    progress = study.progress()
    assert sum(one.done + one.flagged for one in progress.people) == 9
    assert {one.id for one in progress.people} == {"simulated-1", "simulated-2", "simulated-3"}
    manifest = study.export(tmp_path / "exported")
    assert "simulation" in json.dumps(manifest)
    again = make_study(tmp_path / "again", *items, title="A simulation", evidence="required")
    told = run(again.folder, people=3)
    assert told["annotators"] == found["annotators"]


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium (Debian: chromium)")
@pytest.mark.parametrize(("scheme", "unit"), [("ais", ANSWER), ("trec", CITATION)])
def test_flags_double_clicks_reloads_and_two_tabs_end_with_every_label_that_was_meant(
    tmp_path: Path, scheme: str, unit: Item
) -> None:
    texts = [
        BRIDGE,
        "The Aller bridge opened in 1931.",
        "A ferry.",
        "Arches of brick.",
        "Nothing of the kind.",
        "1931.",
    ]
    items = [
        replace(unit, id=f"q{n}", answer=f"q{n}", query=f"When? {n}", text=text, turns=(), before="", after="")
        for n, text in enumerate(texts)
    ]
    study = make_study(tmp_path, *items, title="A simulation", scheme=scheme, annotators=5)
    habits = Habits(flagged=0.1, undone=0.15, doubled=0.5, reloaded=0.25, in_two_tabs=0.2)
    found = run(study.folder, people=5, habits=habits)
    logs = found["annotators"]
    for name in ("flags", "undone", "doubled", "reloaded", "in_two_tabs"):
        assert sum(log[name] for log in logs.values()) > 0, name
    progress = study.progress()
    assert (progress.finished, progress.total) == (6, 6)
    assert sum(one.done + one.flagged for one in progress.people) == 30
    for name, meant in found["meant"].items():
        recorded = {
            entry.item.id: {verdict.question.name: verdict.value for verdict in entry.verdicts}
            | ({"flag": entry.flag} if entry.flag else {})
            for entry in study.past(name)
        }
        assert recorded == meant
        assert "nothing left for you to judge" in logs[name]["end"]
    taken_back = [one for one in study.verdicts(limit=1000) if one.taken_back]
    assert len(taken_back) == sum(log["undone"] for log in logs.values())
    assert found["console"] == []
