"""A person looks at past items again, revises them, and comments on them."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rag.annotate.shown import MIN_SHOWN
from rag.annotate.study import Study
from rag.annotate.types import Entry, Evidence
from rag.base.errors import PressError
from tests.rag.annotate.conftest import MakeStudy
from tests.rag.annotate.made import Clock, answer, finish, given, make_items, press


def exported(study: Study, folder: Path, name: str = "ratings.jsonl") -> list[Any]:
    study.export(folder / "out")
    return [json.loads(line) for line in (folder / "out" / name).read_text("utf-8").splitlines()]


def labels(study: Study, folder: Path) -> set[tuple[str, str, str]]:
    return {(row["annotator"], row["question"], row["value"]) for row in exported(study, folder)}


def test_past_items_are_ones_own_and_the_last_is_first(make_study: MakeStudy) -> None:
    study = make_study(3, people=["ada", "bob"])
    texts = [finish(study, "ada", "no") for _ in range(3)]
    finish(study, "bob")
    past = study.past("ada")
    assert [entry.item.text for entry in past] == texts[::-1]
    assert all((entry.item.sources, entry.item.expected, entry.item.system) == ((), {}, "") for entry in past)
    assert [[(one.question.name, one.value) for one in entry.verdicts] for entry in past] == [
        [("interpretable", "no")]
    ] * 3
    assert study.past("ada", start=1, limit=1) == past[1:2]
    with pytest.raises(PressError, match="not given to you"):
        study.past_item("bob", past[0].item.id)


def test_a_revision_is_kept_beside_the_first_verdict_and_exports_take_the_last(
    make_study: MakeStudy, clock: Clock, tmp_path: Path
) -> None:
    study = make_study(2, people=["ada"])
    work = given(study, "ada")
    finish(study, "ada", "yes", "no")
    finish(study, "ada", "yes", "yes")
    clock.now += 60
    again = study.past_work("ada", work.item.id, "attributable")
    assert len(again.item.sources) == 1
    clock.now += 3
    sent = {"press": again.press, "reason": "I read on.", "seconds": 2.5, "shown": again.shown}
    for _ in range(2):
        assert study.revise("ada", work.item.id, Entry("attributable", "yes", **sent))  # type: ignore[arg-type]
    rows = exported(study, tmp_path)
    (row,) = [row for row in rows if row["revised"]]
    assert (row["question"], row["value"], row["reason"], row["seconds"]) == ("attributable", "yes", "I read on.", 2.5)
    entry = study.past_item("ada", work.item.id)
    (first,) = entry.verdicts[1].earlier
    assert (first[0], entry.verdicts[1].value, entry.verdicts[1].at - first[1]) == ("no", "yes", 63)
    pressed = [row for row in exported(study, tmp_path, "presses.jsonl") if row["question"] == "attributable"]
    assert [(one["kind"], one["value"]) for one in pressed if one["item"] == row["item"]] == [
        ("verdict", "no"),
        ("undo", ""),
        ("verdict", "yes"),
    ]
    assert study.progress().people[0].done == 2
    assert study.next("ada") is None


def test_a_past_verdict_has_its_evidence_and_reason(make_study: MakeStudy) -> None:
    study = make_study(1, people=["ada"])
    work = given(study, "ada")
    answer(study, "ada", work, "yes")
    source = given(study, "ada").item.sources[0]
    span = Evidence(source.id, 0, 5)
    study.verdict(
        "ada", work.item.id, Entry("attributable", "yes", press=press(), evidence=[span], reason="It says so.")
    )
    (verdict,) = study.past_item("ada", work.item.id).verdicts[1:]
    assert (verdict.evidence, verdict.reason) == ((span,), "It says so.")
    records = study.verdicts(question="attributable")
    assert [record.evidence for record in records] == [(span,)]


def test_a_revision_takes_back_what_does_not_follow_and_asks_what_does(make_study: MakeStudy, tmp_path: Path) -> None:
    study = make_study(2, annotators=1, people=["ada"])
    work = given(study, "ada")
    finish(study, "ada", "yes", "yes")
    finish(study, "ada", "no")
    assert study.revise("ada", work.item.id, Entry("interpretable", "no", press=press()))
    assert labels(study, tmp_path) == {("ada", "interpretable", "no")}
    assert study.progress().finished == 2
    assert not study.revise("ada", work.item.id, Entry("interpretable", "yes", press=press()))
    assert study.progress().finished == 1
    asked = given(study, "ada")
    assert (asked.item.id, asked.question.name) == (work.item.id, "attributable")
    answer(study, "ada", asked, "no")
    assert study.progress().finished == 2
    rows = exported(study, tmp_path)
    assert [row["source_seen"] for row in rows if row["question"] == "interpretable" and row["value"] == "yes"] == [
        True
    ]


def test_what_cannot_be_revised(make_study: MakeStudy, clock: Clock) -> None:
    gone = [replace(one, expected={"interpretable": "no"}) for one in make_items(1, "t")]
    study = make_study(3, training=gone, people=["ada", "bob"])
    trained = given(study, "ada")
    finish(study, "ada", "no")
    finish(study, "bob", "no")
    held = given(study, "ada")

    def refused(item: str, question: str, words: str, **more: Any) -> None:  # noqa: ANN401
        with pytest.raises(PressError, match=words):
            study.revise("ada", item, Entry(question, "no", press=more.pop("press", None) or press(), **more))

    refused(trained.item.id, "interpretable", "training round")
    refused(held.item.id, "interpretable", "have not finished")
    refused(given(study, "bob").item.id, "interpretable", "not given to you")
    finish(study, "ada", "yes", "no")
    refused(held.item.id, "worthy", "have not answered 'worthy'")
    again = study.past_work("ada", held.item.id, "attributable")
    clock.now += MIN_SHOWN / 2
    refused(held.item.id, "attributable", "less than half a second", press=again.press, shown=again.shown)
    clock.now += 5
    refused(held.item.id, "interpretable", "does not belong", press=again.press, shown=again.shown)
    flagged = given(study, "ada")
    study.flag("ada", flagged.item.id, "malformed", press=press())
    refused(flagged.item.id, "interpretable", "take the flag back first")
    study.block("ada", "asked to stop")
    refused(held.item.id, "attributable", "has ended")


def test_an_old_flag_is_taken_back_and_the_item_judged(make_study: MakeStudy, tmp_path: Path) -> None:
    study = make_study(2, annotators=1, people=["ada"])
    work = given(study, "ada")
    study.flag("ada", work.item.id, "malformed", press=press(), comment="Half a sentence.")
    finish(study, "ada", "no")
    assert study.progress().finished == 2
    entry = study.past("ada")[1]
    assert (entry.flag, entry.verdicts, entry.comment) == ("malformed", (), "Half a sentence.")
    for _ in range(2):
        study.take_back_flag("ada", entry.item.id, press="once")
    with pytest.raises(PressError, match="not flagged"):
        study.take_back_flag("ada", entry.item.id, press="twice")
    assert study.progress().finished == 1
    finish(study, "ada", "yes", "yes")
    assert study.progress().flags == {}
    assert len(labels(study, tmp_path)) == 3


def test_comments_are_kept_and_are_no_ratings(make_study: MakeStudy, tmp_path: Path, clock: Clock) -> None:
    study = make_study(2, people=["ada", "bob"])
    work = given(study, "ada")
    clock.now += 4
    study.comment("ada", work.item.id, "Is Arlen a town?", press="c1")
    clock.now += 3
    study.verdict("ada", work.item.id, Entry("interpretable", "no", press=press(), comment="It is one."))
    (entry,) = study.past("ada")
    assert entry.comment == "It is one."
    study.comment("ada", work.item.id, "", press="c2")
    study.comment("ada", work.item.id, "", press="c2")
    assert study.past("ada")[0].comment == ""
    (row,) = exported(study, tmp_path)
    assert (row["question"], row["seconds"]) == (
        "interpretable",
        7.0,
    )  # a comment is no press that time is counted from
    comments = [one for one in exported(study, tmp_path, "presses.jsonl") if one["kind"] == "comment"]
    assert [one["reason"] for one in comments] == ["Is Arlen a town?", "It is one.", ""]
    with pytest.raises(PressError, match="not given to you"):
        study.comment("bob", work.item.id, "Whose?", press="c3")
    with pytest.raises(PressError, match="used before"):
        study.comment("ada", work.item.id, "Other.", press="c1")


def test_a_gold_item_looks_like_others_among_past_items(make_study: MakeStudy) -> None:
    gold = [replace(one, expected={"interpretable": "no"}, explanation="So.") for one in make_items(3, "g")]
    study = make_study(8, gold=gold, gold_share=0.5, people=["ada"])
    while finish(study, "ada", "no"):
        pass
    past = study.past("ada")
    golden = [entry for entry in past if entry.item.text.startswith("The g")]
    assert golden
    assert all((entry.item.expected, entry.item.explanation) == ({}, "") for entry in past)
    assert study.revise("ada", golden[0].item.id, Entry("interpretable", "no", press=press()))
