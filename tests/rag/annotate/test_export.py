"""The export: the same presses give the same bytes, and the answers bear the consensus."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from autoais import read_answers
from autoais.base.answers import CitedAnswer
from autoais.base.errors import UserError
from autoais.base.io.locks import lock_if_free
from autoais.base.types import Attribution, Citation, CitedSentence, Judgement, Passage, Verdict
from autoais.formats.human_ratings.read import read_ratings
from autoais.meta.ais_report import read_release as ais_ratings
from rag.annotate.create import create_study
from rag.annotate.guidelines import record_guidelines
from rag.annotate.settings import Settings
from rag.annotate.study import Study
from rag.annotate.triage import estimate, read_triage, triage
from rag.annotate.types import Entry, Evidence
from rag.base.errors import UsageError
from tests.judges import OneByOne
from tests.rag.annotate.conftest import MakeStudy
from tests.rag.annotate.made import Clock, answer, finish, given, make_items, press


def cited(number: int, sentences: int = 2) -> CitedAnswer:
    """An answer to question number // 2; the last sentence cites nothing."""
    passages = {f"p{n}": Passage(f"p{n}", "Title", f"Text {n}.") for n in range(sentences)}
    return CitedAnswer(
        f"q{number // 2}/{number % 2}",
        f"Question {number // 2}?",
        tuple(
            CitedSentence(f"Sentence {n} of {number}.", (Citation(f"p{n}"),) if n < sentences - 1 else ())
            for n in range(sentences)
        ),
        passages,
        extra={"query_id": f"q{number // 2}", "system": "reader"},
    )


def scripted(study: Study, clock: Clock) -> None:
    """Three people, a flag, an undo, evidence and an adjudication, always the same."""
    study.invite("boss", "admin")
    for number, person in enumerate(("cem", "ada", "bob")):
        study.invite(person)
        for turn in range(20):
            work = study.next(person)
            if work is None:
                break
            clock.now += 7.25
            name = f"{person}-{turn}"
            if turn == 3:
                study.flag(person, work.item.id, "expert", press=name)
            elif work.question.name == "informative":
                study.verdict(person, work.item.id, Entry("informative", "no" if turn == number else "yes", press=name))
            else:
                spans = [Evidence(work.item.sources[0].id, 0, 4)]
                study.verdict(
                    person, work.item.id, Entry("attributable", "yes", press=name, evidence=spans, reason="é\n")
                )
            if turn == 5:
                study.undo(person, press=f"{name}-undo")
    study.adjudicate("boss", "q0/0#0", "attributable", "no", press="last")


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_the_same_presses_give_the_same_bytes_on_both_databases(
    make_study: MakeStudy, tmp_path: Path, clock: Clock, database: str
) -> None:
    study = make_study(answers=[cited(n) for n in range(4)], scheme="hagrid")
    begun = clock.now
    scripted(study, clock)
    manifest = study.export(tmp_path / "one")
    study.export(tmp_path / "two")
    assert contents(tmp_path / "one") == contents(tmp_path / "two")

    clock.now = begun
    settings = Settings(annotators=3, gold_share=0.0, scheme="hagrid")
    other = create_study(tmp_path / "other", answers=[cited(n) for n in range(4)], settings=settings, clock=clock)
    scripted(other, clock)
    other.export(tmp_path / "three")
    other.close()
    assert contents(tmp_path / "one") == contents(tmp_path / "three")

    assert set(manifest["files"]) == {"ratings.jsonl", "presses.jsonl", "items.jsonl", "answers.jsonl", "hagrid.jsonl"}
    for name, file in manifest["files"].items():
        written = (tmp_path / "one" / name).read_bytes()
        assert (file["sha256"], file["bytes"]) == (hashlib.sha256(written).hexdigest(), len(written))
    assert manifest["items"] == {"study": 8}
    assert json.loads((tmp_path / "one" / "manifest.json").read_text("utf-8")) == manifest
    assert manifest["presses"]["undo"] == 3
    assert "database" not in manifest["settings"]


def test_the_rows_are_those_that_autoais_reads(make_study: MakeStudy, tmp_path: Path, clock: Clock) -> None:
    study = make_study(answers=[cited(n) for n in range(4)], scheme="hagrid")
    scripted(study, clock)
    study.export(tmp_path / "out")
    ratings = list(read_ratings(tmp_path / "out" / "ratings.jsonl"))
    assert {one.annotator for one in ratings} == {"ada", "bob", "boss", "cem"}
    assert sum(one.revised for one in ratings) == 3
    one = next(one for one in ratings if one.question == "attributable" and one.phase == "study")
    assert (one.answer, one.system, one.reason, one.seconds) == (one.item.partition("#")[0], "reader", "é\n", 7.25)
    assert (one.evidence[0].start, one.evidence[0].end) == (0, 4)
    assert one.at is not None
    assert one.at.startswith("2027-01-15T08:")
    assert one.at.endswith("Z")


def test_answers_bear_the_consensus(make_study: MakeStudy, tmp_path: Path) -> None:
    study = make_study(answers=[cited(0)], scheme="hagrid")
    for person, value in (("ada", "yes"), ("bob", "yes"), ("cem", "no")):
        study.invite(person)
        finish(study, person, "yes", value)
        finish(study, person, "yes")  # the sentence without a citation is asked one question
        assert study.next(person) is None
    study.export(tmp_path / "out")
    (labelled,) = read_answers(tmp_path / "out" / "answers.jsonl")
    assert [(one.informative, one.attributable) for one in labelled.sentences] == [(True, True), (True, False)]
    assert (labelled.informative, labelled.attributable) == (True, False)
    (row,) = [json.loads(line) for line in (tmp_path / "out" / "hagrid.jsonl").read_text("utf-8").splitlines()]
    assert row["answers"][0]["attributable"] == 0
    assert [one["attributable"] for one in row["answers"][0]["sentences"]] == [1, 0]


def test_who_is_left_out_counts_for_nothing(make_study: MakeStudy, tmp_path: Path) -> None:
    study = make_study(answers=[cited(0)], scheme="hagrid")
    for person, value in (("ada", "no"), ("bob", "yes"), ("cem", "no")):
        study.invite(person)
        finish(study, person, "yes", value)
    study.block("cem", "did not read")
    manifest = study.export(tmp_path / "all")
    assert "without" not in manifest
    (labelled,) = read_answers(tmp_path / "all" / "answers.jsonl")
    assert labelled.sentences[0].attributable is False
    manifest = study.export(tmp_path / "out", exclude=["cem", "ada"])
    assert (manifest["without"], manifest["ratings"]) == (["ada", "cem"], {"study": 2})
    (labelled,) = read_answers(tmp_path / "out" / "answers.jsonl")
    assert labelled.sentences[0].attributable is True
    assert {one.annotator for one in read_ratings(tmp_path / "out" / "ratings.jsonl")} == {"bob"}
    assert (tmp_path / "out" / "presses.jsonl").read_bytes() == (tmp_path / "all" / "presses.jsonl").read_bytes()
    with pytest.raises(UserError, match="no person called 'eve'; there are: ada, bob, cem"):
        study.export(tmp_path / "out", exclude=["eve"])


def test_a_folder_that_another_process_writes_is_left_alone(make_study: MakeStudy, tmp_path: Path) -> None:
    study, out = make_study(2), tmp_path / "out"
    study.export(out)
    before = contents(out)
    with lock_if_free(out), pytest.raises(UserError, match="another process is writing it"):
        study.export(out)
    assert contents(out) == before
    assert study.export(out)


def test_whole_answers_are_exported_as_the_csv_of_ais(make_study: MakeStudy, tmp_path: Path) -> None:
    study = make_study(answers=[cited(0), cited(2)])
    for person in ("ada", "bob", "cem"):
        study.invite(person)
        finish(study, person, "yes", "no" if person == "cem" else "yes")
        finish(study, person, "no")
    study.export(tmp_path / "out")
    rows = ais_ratings(tmp_path / "out" / "ais.csv")
    assert sorted((one.interpretable, one.attributable, one.attributable_agree) for one in rows) == [
        (False, False, None),
        (True, True, 2),
    ]
    assert {one.is_flagged for one in rows} == {False}


def test_a_study_without_presses_is_exported(make_study: MakeStudy, tmp_path: Path) -> None:
    manifest = make_study(2).export(tmp_path / "out")
    assert (manifest["ratings"], manifest["finished"]) == ({}, 0)
    assert (tmp_path / "out" / "ratings.jsonl").read_bytes() == b""


def test_only_its_owner_can_read_an_export(make_study: MakeStudy, tmp_path: Path) -> None:
    folder = tmp_path / "export"
    make_study().export(folder)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}


def test_an_export_that_cannot_be_written(make_study: MakeStudy, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="cannot be written"):
        make_study(2).export(tmp_path / "file")


# --- triage ----------------------------------------------------------------------------------------------------------


class Sure(OneByOne):
    """Sure of all items but every third one."""

    name = "sure"

    def of(self, one: Attribution) -> Judgement:
        n = int(one.claim.split()[2])
        verdict = Verdict.ATTRIBUTABLE if n % 2 else Verdict.NOT_ATTRIBUTABLE
        return Judgement(verdict, 0.5 if n % 3 == 0 else 0.02 + 0.96 * (n % 2))


def test_people_get_what_the_judge_is_not_sure_of_first_and_a_sample_of_the_rest(
    make_study: MakeStudy, tmp_path: Path
) -> None:
    study = make_study(90, annotators=1, judge=Sure(), sample_share=0.5)
    rows = {row.item: row for row in read_triage(study.folder / "triage.jsonl")}
    assert len(rows) == 90
    chosen = [row for row in rows.values() if row.chosen]
    assert sum(not row.confident for row in chosen) == 30
    assert 15 <= sum(row.confident for row in chosen) <= 45
    assert {row.sampling for row in rows.values()} == {0.5, 1.0}
    study.invite("ada")
    numbers = []
    while (work := study.next("ada")) is not None:
        assert "sure" not in repr(work)
        number = int(work.item.text.split()[2])
        numbers.append(number)
        answer(study, "ada", work, "yes")
        study.verdict("ada", work.item.id, Entry("attributable", "yes" if number % 2 else "no", press=press()))
    assert len(numbers) == len(chosen)
    assert all(number % 3 == 0 for number in numbers[:30])
    manifest = study.export(tmp_path / "out")
    assert manifest["items"] == {"judged": 90 - len(chosen), "study": len(chosen)}
    found = json.loads((tmp_path / "out" / "triage.json").read_text("utf-8"))
    assert (found["value"], found["n"], found["labelled"]) == (0.5, 90, len(chosen))
    assert found["interval95"][0] < 0.5 < found["interval95"][1]


def test_a_rated_item_without_a_source_counts_as_not_attributable(make_study: MakeStudy, tmp_path: Path) -> None:
    items = [replace(item, sources=()) if number == 0 else item for number, item in enumerate(make_items(3))]
    study = make_study(items=items, annotators=1, judge=Sure(), sample_share=1.0)
    study.invite("ada")
    while finish(study, "ada", "yes", "yes"):
        pass
    study.export(tmp_path / "out")
    assert json.loads((tmp_path / "out" / "triage.json").read_text("utf-8"))["labelled"] == 3


def test_an_item_that_most_flagged_gives_the_estimate_no_label(make_study: MakeStudy, tmp_path: Path) -> None:
    study = make_study(4, annotators=3, judge=Sure(), sample_share=1.0)
    for person in ("ada", "bob", "eve"):
        study.invite(person)
        while (work := study.next(person)) is not None:
            if person != "ada" and work.item.text.split()[2] == "0":
                study.flag(person, work.item.id, "malformed", press=press())
                continue
            answer(study, person, work, "yes")
            study.verdict(person, work.item.id, Entry("attributable", "yes", press=press()))
    study.export(tmp_path / "out")
    assert json.loads((tmp_path / "out" / "triage.json").read_text("utf-8"))["labelled"] == 3


def test_the_estimate_corrects_a_judge_that_is_wrong() -> None:
    blind = OneByOne()
    blind.says = Judgement(Verdict.ATTRIBUTABLE, 0.99)
    items = make_items(400)
    rows = triage(items, blind, sample_share=0.5)
    truth = {item.id: number % 4 != 0 for number, item in enumerate(items)}
    labels = {row.item: truth[row.item] for row in rows if row.chosen}
    found = estimate(rows, labels, {item.id: item.id for item in items})
    low, high = found["interval95"]
    assert found["judge"]["share"] == 1.0
    assert low < 0.75 < high < 0.9
    assert found["strata"]["confident"]["sampling"] == 0.5
    by_tens = estimate(rows, labels, {item.id: str(number % 40) for number, item in enumerate(items)})
    assert (found["questions"], by_tens["questions"]) == (400, 40)
    assert by_tens["value"] == found["value"]
    assert by_tens["interval95"][0] < low  # every fourth item is wrong, and these are of the same ten questions


def test_too_few_labels_give_no_estimate() -> None:
    rows = triage(make_items(10), Sure())
    topics = {row.item: row.item for row in rows}
    assert estimate(rows, {}, topics)["value"] is None
    assert "at least 2 are needed" in estimate(rows, {}, topics)["reason"]
    assert estimate([], {}, {}) == {"value": None, "reason": "the judge judged no item", "n": 0, "labelled": 0}


@pytest.mark.parametrize("numbers", [{"confident": 0.5}, {"confident": 1.1}, {"sample_share": 0.0}])
def test_numbers_out_of_range(numbers: dict[str, float]) -> None:
    call: Callable[..., object] = triage
    with pytest.raises(UsageError, match="confident should be above"):
        call(make_items(1), Sure(), **numbers)


def test_an_attribution_has_the_whole_source() -> None:
    judge = Sure()
    triage(make_items(1), judge)
    assert judge.asked[0].evidence == ("Colours. It is known that q 0 is blue.",)


def test_an_export_goes_to_no_folder_with_something_else(make_study: MakeStudy, tmp_path: Path) -> None:
    study = make_study(2)
    out = tmp_path / "out"
    first = study.export(out)
    assert study.export(out) == first  # again
    assert first["notes"] == ["items of the study that are not finished: 2 of 2"]
    (out / "manifest.json").unlink()  # as if killed
    assert study.export(out) == first
    with pytest.raises(UserError, match=r"is not an export \(it holds .*name an empty folder"):
        study.export(study.folder)
    assert (study.folder / "study.toml").exists()
    for name, text in (("collection.json", "{}"), ("manifest.json", "{}"), ("answers.jsonl", "")):
        other = tmp_path / name.partition(".")[0]
        other.mkdir()
        (other / name).write_text(text)
        with pytest.raises(UserError, match=f"is not an export .it holds {name}"):
            study.export(other)
        assert (other / name).read_text() == text


def test_ratings_without_a_label_are_noted(make_study: MakeStudy, tmp_path: Path) -> None:
    study = make_study(answers=[cited(0)], scheme="hagrid", annotators=3)
    for name in ("ada", "bob", "cem"):
        study.invite(name)
    finish(study, "ada", "yes", "yes")
    for name in ("bob", "cem"):
        work = given(study, name)
        study.flag(name, work.item.id, "expert", press=f"flag-{name}")
    notes = study.export(tmp_path / "out")["notes"]
    assert "ratings of flagged items, without a label: 2" in notes


def test_answers_that_are_gone_are_an_error_and_change_nothing(make_study: MakeStudy, tmp_path: Path) -> None:
    study = make_study(answers=[cited(0)], scheme="hagrid")
    study.export(tmp_path / "out")
    before = contents(tmp_path / "out")
    (study.folder / "answers.jsonl").unlink()
    with pytest.raises(UserError, match="is missing, the answers of the study"):
        study.export(tmp_path / "out")
    assert contents(tmp_path / "out") == before


def test_the_manifest_says_under_which_guidelines_people_worked(make_study: MakeStudy, tmp_path: Path) -> None:
    study = make_study(2, guidelines="mine.md", annotators=1)
    study.invite("ada")
    for text, presses in (("Judge.", 2), ("Judge well.", 1)):
        (study.folder / "mine.md").write_text(text, "utf-8")
        record_guidelines(study)
        finish(study, "ada", *(("yes", "yes") if presses == 2 else ("no",)))
    found = study.export(tmp_path / "out")
    assert [(one["sha256"], one["presses"]) for one in found["guidelines"]] == [
        (hashlib.sha256(text.encode()).hexdigest(), presses) for text, presses in (("Judge.", 2), ("Judge well.", 1))
    ]
    assert "the guidelines changed during the study; presses under each version: 2 and 1" in found["notes"]
