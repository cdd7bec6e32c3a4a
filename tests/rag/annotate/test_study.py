"""What a person is given and what becomes of their presses, the same on SQLite and on PostgreSQL."""

import json
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from autoais.formats.human_ratings.read import read_ratings
from rag.annotate.create import create_study, open_study
from rag.annotate.items import Cell, Item, Source, Table
from rag.annotate.settings import Settings
from rag.annotate.store import presses
from rag.annotate.study import Study
from rag.annotate.types import MAX_EVIDENCE, Entry, Evidence
from rag.base.errors import LinkError, PressError, StudyError, UsageError, UserError
from tests.conftest import present
from tests.rag.annotate.conftest import MakeStudy
from tests.rag.annotate.made import Clock, answer, finish, given, make_items, press


def rows(study: Study) -> list[Any]:
    with study.database.read() as connection:
        return list(connection.execute(sa.select(presses).order_by(presses.c.id)).all())


def exported(study: Study, tmp_path: Path) -> list[Any]:
    study.export(tmp_path / "out")
    return [json.loads(line) for line in (tmp_path / "out" / "ratings.jsonl").read_text("utf-8").splitlines()]


# --- what a person is given ------------------------------------------------------------------------------------------


def test_the_source_is_not_sent_before_the_first_verdict(make_study: MakeStudy) -> None:
    study = make_study(people=["ada"])
    work = given(study, "ada")
    assert (work.question.name, work.item.sources, work.verdicts) == ("interpretable", (), {})
    answer(study, "ada", work, "yes")
    shown = given(study, "ada")
    assert (shown.question.name, shown.item.id) == ("attributable", work.item.id)
    assert len(shown.item.sources) == 1
    assert shown.verdicts == {"interpretable": "yes"}


def test_a_no_to_the_first_question_ends_the_item(make_study: MakeStudy) -> None:
    study = make_study(people=["ada"])
    work = given(study, "ada")
    answer(study, "ada", work, "no")
    after = given(study, "ada")
    assert after.item.id != work.item.id
    assert (after.done_count, after.left_count) == (1, 5)


def test_a_table_and_its_title_are_not_sent_before_the_first_verdict(make_study: MakeStudy) -> None:
    table = Table(((Cell("Year", is_header=True), Cell("1998", is_highlighted=True)),), "Albums", "Solo", "Two albums.")
    item = Item("t", "The album came out in 1998.", kind="table", query="Albums", table=table)
    study = make_study(items=[item], people=["ada"])
    work = given(study, "ada")
    assert (work.item.table, work.item.query, work.item.text) == (None, "", item.text)
    answer(study, "ada", work, "yes")
    shown = given(study, "ada")
    assert shown.item.table == table


def test_what_is_sent_tells_neither_system_nor_answer_nor_what_is_expected(make_study: MakeStudy) -> None:
    (item,) = make_items(1)
    study = make_study(items=[item], people=["ada", "bob"])
    ada, bob = given(study, "ada"), given(study, "bob")
    assert ada.item.id != bob.item.id
    assert item.id not in ada.item.id
    assert (ada.item.answer, ada.item.system, ada.item.group, ada.item.expected) == ("", "", "", {})


def test_never_more_people_than_wanted_and_never_an_item_twice(make_study: MakeStudy) -> None:
    study = make_study(4)
    people = [f"p{n}" for n in range(5)]
    for person in people:
        study.invite(person)
    seen: Counter[str] = Counter()
    done = [[text for _ in range(9) if (text := finish(study, person))] for person in people]
    for texts in done:
        assert len(texts) == len(set(texts))
        seen.update(texts)
    assert set(seen.values()) == {3}
    assert len(seen) == 4
    progress = study.progress()
    assert (progress.total, progress.finished, progress.items) == (4, 4, {3: 4})


def test_answers_of_one_question_do_not_come_in_a_row(make_study: MakeStudy) -> None:
    study = make_study(items=make_items(12, answers=3), people=["ada"])
    texts = [finish(study, "ada") for _ in range(12)]
    order = [int(text.split()[2]) // 3 for text in texts if text]
    assert len(order) == 12
    assert all(a != b for a, b in pairwise(order))


def test_sentences_of_one_answer_come_together(make_study: MakeStudy) -> None:
    source = (Source("p", "Text."),)
    items = [
        Item(f"{a}#{n}", f"{a} {n}", a, n, query=a, sources=source, group=a[0])
        for a in ("a1", "a2", "b1", "b2")
        for n in range(3)
    ]
    study = make_study(items=items, scheme="ais-sentences", people=["ada"])
    answers = [text.split()[0] for _ in items if (text := finish(study, "ada"))]
    changes = [b for a, b in pairwise(answers) if a != b]
    assert len(changes) == 3
    assert [answer[0] for answer in answers[::3]] in (["a", "b", "a", "b"], ["b", "a", "b", "a"])


def test_the_order_follows_from_the_seed(make_study: MakeStudy, tmp_path: Path) -> None:
    def order(seed: int, name: str) -> list[str | None]:
        study = create_study(tmp_path / name, items=make_items(20), settings=Settings(seed=seed))
        study.invite("ada")
        found = [finish(study, "ada") for _ in range(20)]
        study.close()
        return found

    assert order(1, "a") == order(1, "b") != order(2, "c")


def test_an_item_without_sources_is_only_asked_what_needs_none(make_study: MakeStudy) -> None:
    study = make_study(items=[Item("a", "Blue.", query="Colour?")], people=["ada"])
    assert finish(study, "ada", "yes") == "Blue."
    assert study.next("ada") is None


# --- presses ---------------------------------------------------------------------------------------------------------


def test_a_press_is_recorded_once(make_study: MakeStudy) -> None:
    study = make_study(people=["ada"])
    work = given(study, "ada")
    for _ in range(3):
        answer(study, "ada", work, "no")
    assert len(rows(study)) == 1


def test_a_press_cannot_be_used_for_something_else(make_study: MakeStudy) -> None:
    study = make_study(people=["ada", "bob"])
    work, other = given(study, "ada"), given(study, "bob")
    answer(study, "ada", work, "yes")
    with pytest.raises(PressError, match="used before"):
        study.verdict("ada", work.item.id, Entry("interpretable", "no", press=work.press))
    with pytest.raises(PressError, match="used before"):
        study.verdict("bob", other.item.id, Entry("interpretable", "yes", press=work.press))
    assert len(rows(study)) == 1


def test_two_tabs_of_one_person(make_study: MakeStudy) -> None:
    study = make_study(people=["ada"])
    first, second = given(study, "ada"), given(study, "ada")
    assert first.item.id == second.item.id
    assert first.press != second.press
    answer(study, "ada", first, "yes")
    with pytest.raises(PressError, match="is not asked now"):
        answer(study, "ada", second, "no")
    shown = given(study, "ada")
    answer(study, "ada", shown, "no")
    with pytest.raises(PressError, match="finished already"):
        study.flag("ada", shown.item.id, "malformed", press=press())
    assert [row.value for row in rows(study)] == ["yes", "no"]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"value": "maybe"}, "the answers to 'interpretable' are yes, no"),
        ({"value": "yes\0"}, "found 'yes"),
        ({"question": "attributable"}, "is not asked now"),
        ({"question": "'; DROP TABLE press; --"}, "is not asked now"),
        ({"item": "'; DROP TABLE press; --"}, "not given to you"),
        ({"item": "\0"}, "not given to you"),
        ({"item": "q0/0"}, "not given to you"),
        ({"press": ""}, "id of a press"),
        ({"press": "a\0"}, "id of a press"),
        ({"press": "a" * 101}, "id of a press"),
        ({"reason": "a\0b"}, "NUL"),
        ({"reason": "a" * 10_001}, "10,001 characters"),
        ({"reason": "\ud800"}, "surrogate"),
    ],
)
def test_a_press_that_does_not_fit_is_refused(make_study: MakeStudy, values: dict[str, str], words: str) -> None:
    study = make_study(people=["ada"])
    work = given(study, "ada")
    sent = {"item": work.item.id, "question": "interpretable", "value": "yes", "press": "p1", "reason": ""} | values
    with pytest.raises(PressError, match=words) as caught:
        study.verdict(
            "ada", sent["item"], Entry(sent["question"], sent["value"], press=sent["press"], reason=sent["reason"])
        )
    assert "\n" not in str(caught.value)
    assert rows(study) == []


HOSTILE = "'; DROP TABLE press; -- \" <script> %s :x {} \\ é 東京 \N{GRINNING FACE}\n\t"


def test_sql_in_every_field_is_only_text(make_study: MakeStudy, tmp_path: Path) -> None:
    name = HOSTILE.strip().replace("\n", "")
    item = Item(HOSTILE, HOSTILE, "", query=HOSTILE, sources=(Source(HOSTILE, HOSTILE, HOSTILE),), system=HOSTILE)
    study = make_study(items=[item, *make_items(1)], title=HOSTILE)
    study.invite(name, "admin")
    for _ in range(2):
        work = given(study, name)
        study.verdict(name, work.item.id, Entry("interpretable", "yes", press=work.press, reason=HOSTILE))
        work = given(study, name)
        evidence = [Evidence(work.item.sources[0].id, 0, 3)]
        study.verdict(
            name, work.item.id, Entry("attributable", "yes", press=work.press, evidence=evidence, reason=HOSTILE)
        )
    study.adjudicate(name, HOSTILE, "attributable", "no", press=HOSTILE.strip().replace("\n", ""), reason=HOSTILE)
    study.block(name, HOSTILE)
    found = exported(study, tmp_path)
    assert {row["reason"] for row in found} == {HOSTILE}
    assert {row["annotator"] for row in found} == {name}
    assert HOSTILE in {row["item"] for row in found}
    assert len(list(read_ratings(tmp_path / "out" / "ratings.jsonl"))) == 5


def test_evidence_must_lie_in_the_sources(make_study: MakeStudy) -> None:
    study = make_study(1, evidence="required", people=["ada"])
    work = given(study, "ada")
    answer(study, "ada", work, "yes")
    work = given(study, "ada")
    (source,) = work.item.sources
    end = len(source.text)
    for wrong in (("x", 0, 3), (source.id, 0, end + 1), (source.id, 3, 3), (source.id, -1, 3)):
        with pytest.raises(PressError, match="not in the sources"):
            study.verdict(
                "ada", work.item.id, Entry("attributable", "yes", press=work.press, evidence=[Evidence(*wrong)])
            )
    many = [Evidence(source.id, 0, 1)] * (MAX_EVIDENCE + 1)
    with pytest.raises(PressError, match="at most 100 pieces of evidence, found 101"):
        study.verdict("ada", work.item.id, Entry("attributable", "yes", press=work.press, evidence=many))
    with pytest.raises(PressError, match="evidence is missing"):
        answer(study, "ada", work, "yes")
    study.verdict(
        "ada", work.item.id, Entry("attributable", "yes", press=work.press, evidence=[Evidence(source.id, 0, end)])
    )
    assert json.loads(rows(study)[-1].evidence) == [{"passage": source.id, "start": 0, "end": end}]


def test_no_evidence_is_wanted_for_a_no(make_study: MakeStudy) -> None:
    study = make_study(1, evidence="required", reasons="required", people=["ada"])
    work = given(study, "ada")
    with pytest.raises(PressError, match="a reason is missing"):
        study.verdict("ada", work.item.id, Entry("interpretable", "yes", press=work.press, reason=" "))
    study.verdict("ada", work.item.id, Entry("interpretable", "yes", press=work.press, reason="clear"))
    study.verdict("ada", work.item.id, Entry("attributable", "no", press=press(), reason="says green"))
    assert study.next("ada") is None


def test_seconds_are_measured_where_a_page_sends_none(make_study: MakeStudy, clock: Clock) -> None:
    study = make_study(people=["ada"])
    work = given(study, "ada")
    clock.now += 12.5
    answer(study, "ada", work, "yes")
    clock.now += 4
    study.verdict("ada", work.item.id, Entry("attributable", "yes", press=press()))
    for sent in (float("nan"), -1.0, 1e9):
        work = given(study, "ada")
        study.verdict("ada", work.item.id, Entry("interpretable", "no", press=work.press, seconds=sent))
    work = given(study, "ada")
    study.verdict("ada", work.item.id, Entry("interpretable", "no", press=work.press, seconds=3.25))
    assert [row.seconds for row in rows(study)] == [12.5, 4.0, None, None, None, 3.25]


def test_a_flag_takes_an_item_out_of_ones_own_queue_only(make_study: MakeStudy, tmp_path: Path) -> None:
    study = make_study(1)
    for person in ("ada", "bob", "cem", "dee"):
        study.invite(person)
    work = given(study, "ada")
    with pytest.raises(PressError, match="reasons for a flag are missing, malformed"):
        study.flag("ada", work.item.id, "boring", press=press())
    study.flag("ada", work.item.id, "malformed", press=work.press)
    study.flag("ada", work.item.id, "malformed", press=work.press)
    assert study.next("ada") is None
    assert all(finish(study, person) for person in ("bob", "cem"))
    assert study.next("dee") is None
    assert study.progress().flags == {"malformed": 1}
    first = exported(study, tmp_path)[0]
    assert (first["question"], first["value"]) == ("flag", "malformed")


def test_a_flag_leaves_no_study_unfinished(make_study: MakeStudy) -> None:
    people = ["ada", "bob", "cem"]
    study = make_study(4, annotators=3, people=people)
    for person in people:
        while (work := study.next(person)) is not None:
            if person == "bob" and work.item.text == "The q 2 is blue.":
                study.flag(person, work.item.id, "malformed", press=press())
            else:
                finish(study, person)
    progress = study.progress()
    assert (progress.finished, progress.total, progress.items) == (4, 4, {2: 1, 3: 3})


def test_an_item_that_all_flag_is_not_given_to_everybody(make_study: MakeStudy) -> None:
    study = make_study(1)
    flagged = 0
    for number in range(9):
        study.invite(f"p{number}")
        work = study.next(f"p{number}")
        if work is not None:
            study.flag(f"p{number}", work.item.id, "missing", press=press())
            flagged += 1
    assert flagged == 3


# --- undo ------------------------------------------------------------------------------------------------------------


def test_undo_over_the_reveal_is_exported_as_revised(make_study: MakeStudy, tmp_path: Path) -> None:
    study = make_study(people=["ada"])
    work = given(study, "ada")
    assert not work.can_undo
    answer(study, "ada", work, "yes")
    shown = given(study, "ada")
    assert shown.can_undo
    study.undo("ada", press="u1")
    study.undo("ada", press="u1")
    again = given(study, "ada")
    assert (again.item, again.question.name, again.verdicts) == (work.item, "interpretable", {})
    answer(study, "ada", again, "no")
    assert [row.kind for row in rows(study)] == ["verdict", "undo", "verdict"]
    (rating,) = exported(study, tmp_path)
    assert (rating["question"], rating["value"], rating["revised"]) == ("interpretable", "no", True)
    assert rating["source_seen"]
    pressed = (tmp_path / "out" / "presses.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(line)["source_seen"] for line in pressed] == [False, False, True]


def test_undo_gives_back_what_was_entered(make_study: MakeStudy) -> None:
    study = make_study(people=["ada"])
    work = given(study, "ada")
    assert work.entered is None
    answer(study, "ada", work, "yes")
    asked = given(study, "ada")
    assert asked.entered is None
    span = Evidence(asked.item.sources[0].id, 0, 5)
    entry = Entry("attributable", "yes", press=press(), evidence=(span,), reason="It says so.", seconds=2.0)
    study.verdict("ada", work.item.id, entry)
    study.undo("ada", press=press())
    assert given(study, "ada").entered == entry
    study.undo("ada", press=press())
    first = given(study, "ada")
    assert first.entered is not None
    assert (first.question.name, first.entered.value, first.entered.evidence) == ("interpretable", "yes", ())
    answer(study, "ada", first, "yes")
    assert given(study, "ada").entered == entry
    finish(study, "ada", "no")
    assert given(study, "ada").entered is None


@pytest.mark.parametrize("without", ["an earlier yes", "a source"])
def test_undo_that_goes_back_over_no_source_is_told_from_one_that_does(
    make_study: MakeStudy, tmp_path: Path, without: str
) -> None:
    study = make_study(
        items=[replace(one, sources=()) if without == "a source" else one for one in make_items(2)], people=["ada"]
    )
    finish(study, "ada", "no" if without == "an earlier yes" else "yes")
    study.undo("ada", press=press())
    finish(study, "ada", "no")
    (rating,) = exported(study, tmp_path)
    assert (rating["value"], rating["revised"]) == ("no", True)
    assert "source_seen" not in rating
    pressed = (tmp_path / "out" / "presses.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(line)["source_seen"] for line in pressed] == [False, False, False]


def test_undo_reaches_back_over_finished_items(make_study: MakeStudy) -> None:
    study = make_study(3, people=["ada"])
    first = given(study, "ada")
    finish(study, "ada", "no")
    finish(study, "ada", "no")
    study.undo("ada", press=press())
    study.undo("ada", press=press())
    with pytest.raises(PressError, match="nothing to take back"):
        study.undo("ada", press=press())
    work = given(study, "ada")
    assert (work.item.id, work.done_count, work.left_count) == (first.item.id, 0, 3)
    assert {finish(study, "ada") for _ in range(3)} == {f"The q {n} is blue." for n in range(3)}
    assert study.next("ada") is None
    assert study.can_undo("ada")


def test_undo_of_a_finished_item_keeps_its_place(make_study: MakeStudy) -> None:
    study = make_study(1)
    for person in ("ada", "bob", "cem"):
        study.invite(person)
        finish(study, person)
    study.invite("dee")
    study.undo("ada", press=press())
    assert study.next("dee") is None
    assert study.progress().items == {2: 1}
    finish(study, "ada", "no")
    assert study.progress().finished == 1


def test_undo_takes_a_flag_back(make_study: MakeStudy, tmp_path: Path) -> None:
    study = make_study(1, people=["ada"])
    work = given(study, "ada")
    study.flag("ada", work.item.id, "missing", press=press())
    study.undo("ada", press=press())
    finish(study, "ada", "no")
    assert [(row["question"], row["value"]) for row in exported(study, tmp_path)] == [("interpretable", "no")]


def test_presses_are_never_changed(make_study: MakeStudy) -> None:
    study = make_study(people=["ada"])
    finish(study, "ada", "no")
    for statement in (sa.update(presses).values(value="yes"), sa.delete(presses)):
        with pytest.raises(StudyError, match="never changed"), study.database.write() as connection:
            connection.execute(statement)
    assert [row.value for row in rows(study)] == ["no"]


# --- leases and clocks -----------------------------------------------------------------------------------------------


def test_a_lease_ends_and_a_late_verdict_is_recorded(make_study: MakeStudy, clock: Clock, tmp_path: Path) -> None:
    study = make_study(1, lease_minutes=10.0, annotators=1, people=["ada", "bob"])
    work = given(study, "ada")
    assert study.next("bob") is None
    clock.now += 601
    assert finish(study, "bob", "no") is not None
    answer(study, "ada", work, "yes")
    study.verdict("ada", work.item.id, Entry("attributable", "no", press=press()))
    assert study.next("ada") is None
    assert len(exported(study, tmp_path)) == 3
    assert study.progress().items == {2: 1}


def test_an_expired_lease_that_nobody_took_goes_on(make_study: MakeStudy, clock: Clock) -> None:
    study = make_study(3, lease_minutes=10.0, people=["ada"])
    work = given(study, "ada")
    answer(study, "ada", work, "yes")
    clock.now += 10_000
    again = given(study, "ada")
    assert (again.item.id, again.question.name) == (work.item.id, "attributable")


@pytest.mark.parametrize("jump", [1e8, -1e8])
def test_a_clock_that_jumps_loses_and_doubles_nothing(make_study: MakeStudy, clock: Clock, jump: float) -> None:
    study = make_study(2, annotators=1, lease_minutes=10.0, people=["ada", "bob"])
    ada, bob = given(study, "ada"), given(study, "bob")
    clock.now += jump
    answer(study, "ada", ada, "no")
    answer(study, "bob", bob, "no")
    clock.now -= jump
    assert study.next("ada") is None
    assert study.next("bob") is None
    assert study.progress().items == {1: 2}
    assert len(rows(study)) == 2


def test_a_lease_from_a_clock_that_was_ahead_ends(make_study: MakeStudy, clock: Clock) -> None:
    study = make_study(1, annotators=1, lease_minutes=10.0, people=["ada", "bob"])
    clock.now += 1e6
    assert study.next("ada") is not None
    clock.now -= 1e6
    assert study.next("bob") is not None


# --- links -----------------------------------------------------------------------------------------------------------


def test_a_link_signs_in_until_it_is_revoked(make_study: MakeStudy) -> None:
    study = make_study()
    token = study.invite("ada")
    assert study.sign_in(token).id == "ada"
    study.revoke("ada")
    with pytest.raises(LinkError):
        study.sign_in(token)
    with pytest.raises(LinkError):
        study.annotator("ada")
    with pytest.raises(LinkError):
        study.next("ada")
    fresh = study.invite("ada", "admin")
    assert study.sign_in(fresh).role == "admin"
    with pytest.raises(LinkError):
        study.sign_in(token)


def test_whatever_is_wrong_with_a_link_the_error_is_the_same(
    make_study: MakeStudy, clock: Clock, tmp_path: Path
) -> None:
    study = make_study()
    other = create_study(tmp_path / "other", items=make_items(1), clock=clock)
    good, revoked, expired = study.invite("ada"), study.invite("bob"), study.invite("cem", days=1)
    study.revoke("bob")
    clock.now += 25 * 3600
    tampered = good[:-1] + ("A" if good[-1] != "A" else "B")
    bad = [revoked, expired, tampered, other.invite("ada"), "", "guess", "a.b", "\0", "é", "\ud800", "x" * 10_000]
    messages = set()
    for token in bad:
        with pytest.raises(LinkError) as caught:
            study.sign_in(token)
        messages.add(str(caught.value))
    other.close()
    assert len(messages) == 1
    assert study.sign_in(good).id == "ada"


def test_tokens_are_not_stored(make_study: MakeStudy) -> None:
    study = make_study()
    token = study.invite("ada")
    study.close()
    kept = [path.read_bytes() for path in study.folder.iterdir()]
    assert not any(token.encode() in one for one in kept)


def test_all_files_of_a_study_and_of_its_exports_are_for_their_owner(make_study: MakeStudy, tmp_path: Path) -> None:
    study = make_study(2, training=training(), people=["ada"])
    (tmp_path / "shared").mkdir(mode=0o755)
    for folder in (tmp_path / "out", tmp_path / "shared"):
        for _ in range(2):  # also where files are written again
            study.export(folder)
        assert folder.stat().st_mode & 0o777 == 0o700
        assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}
    assert {path.stat().st_mode & 0o777 for path in study.folder.iterdir()} == {0o600}


def test_the_secret_is_for_its_owner_and_made_once(make_study: MakeStudy) -> None:
    study = make_study()
    key = study.folder / "key"
    assert key.stat().st_mode & 0o777 == 0o600
    assert study.folder.stat().st_mode & 0o777 == 0o700
    secret, token = key.read_text(), study.invite("ada")
    again = open_study(study.folder)
    assert key.read_text() == secret
    assert again.sign_in(token).id == "ada"
    again.close()
    key.unlink()
    with pytest.raises(StudyError, match="secret cannot be read"):
        open_study(study.folder)


@pytest.mark.parametrize("name", ["", " ", "a\nb", "a\0", "x" * 101, "\ud800"])
def test_an_id_that_cannot_be_shown_is_refused(make_study: MakeStudy, name: str) -> None:
    with pytest.raises(UsageError, match="1 to 100 printable characters"):
        make_study(1).invite(name)


@pytest.mark.parametrize("name", ["eve", "\0", "\udcff"])
def test_unknown_people(make_study: MakeStudy, name: str) -> None:
    study = make_study(1)
    with pytest.raises(UsageError, match="no person called"):
        study.revoke(name)
    with pytest.raises(UsageError, match="no person called"):
        study.block(name, "x")
    with pytest.raises(UsageError, match="no person called"):
        study.unblock(name)
    with pytest.raises(LinkError):
        study.next(name)


# --- training and gold -----------------------------------------------------------------------------------------------


def training(n: int = 2) -> list[Item]:
    return [
        replace(item, expected={"interpretable": "yes", "attributable": "no"}, explanation="Read again.")
        for item in make_items(n, "t")
    ]


def test_a_training_round_with_feedback_retries_and_an_end(make_study: MakeStudy, tmp_path: Path) -> None:
    study = make_study(2, training=training(), training_attempts=2, pass_mark=1.0, people=["ada"])
    assert not study.sign_in(study.invite("ada")).has_passed
    for attempt in (1, 2):
        for number in range(2):
            work = given(study, "ada")
            assert (work.phase, work.done_count, work.left_count, work.attempt) == (
                "training",
                number,
                2 - number,
                attempt,
            )
            assert not work.can_undo
            told = present(study.verdict("ada", work.item.id, Entry("interpretable", "yes", press=work.press)))
            assert told.right
            told = present(study.verdict("ada", work.item.id, Entry("attributable", "yes", press=press())))
            assert (told.right, told.expected, told.explanation) == (False, "no", "Read again.")
    assert study.next("ada") is None
    assert study.annotator("ada").block_reason == (
        "did not pass the training round: 0 of 2 right, the pass mark is 100%"
    )
    with pytest.raises(PressError, match="nothing to take back"):
        study.undo("ada", press=press())
    study.unblock("ada")
    for _ in range(2):
        finish(study, "ada", "yes", "no")
    assert study.annotator("ada").has_passed
    work = given(study, "ada")
    assert (work.phase, work.done_count, work.left_count) == ("study", 0, 2)
    finish(study, "ada")
    assert Counter(row["phase"] for row in exported(study, tmp_path)) == {"training": 4, "study": 2}


def test_gold_items_come_at_the_set_share_and_cannot_be_told(make_study: MakeStudy, tmp_path: Path) -> None:
    study = make_study(60, gold=training(20), gold_share=0.2, people=["ada"])
    gold, previous = [], None
    while (work := study.next("ada")) is not None:
        assert work.phase == "study"
        assert (work.item.expected, work.item.explanation, work.attempt) == ({}, "", 0)
        if previous is not None:  # the counts do not tell either
            assert (work.done_count, work.left_count) == (previous.done_count + 1, previous.left_count - 1)
        previous = work
        gold.append(work.item.text.startswith("The t"))
        finish(study, "ada", "yes", "no")
    assert len(gold) == 60 + sum(gold)
    assert 8 <= sum(gold) <= 20
    (ada,) = study.progress().people
    assert (ada.gold, ada.gold_right, ada.done) == (sum(gold), 1.0, len(gold))
    phases = Counter(row["phase"] for row in exported(study, tmp_path))
    assert phases == {"gold": 2 * sum(gold), "study": 120}


def test_nobody_judges_an_item_and_an_attention_check_of_it(make_study: MakeStudy, tmp_path: Path) -> None:
    study = make_study(12, annotators=1, attention=4, gold_share=0.5)
    assert study.pools == {"check": 4, "gold": 4, "study": 8}
    study.invite("ada")
    texts = []
    while (text := finish(study, "ada")) is not None:
        texts.append(text)
    assert len(texts) == len(set(texts)) == 12  # a check has the text of its item
    assert Counter(row["phase"] for row in exported(study, tmp_path)) == {"gold": 8, "study": 16}
    assert study.progress().total == 8


def test_gold_does_not_come_between_two_sentences_of_an_answer(make_study: MakeStudy) -> None:
    source = (Source("p", "Text."),)
    items = [
        Item(f"a{a}#{n}", f"a{a} {n}", f"a{a}", n, query=f"q{a}", sources=source) for a in range(12) for n in range(5)
    ]
    gold = [
        Item(f"g{n}#0", f"gold{n} 0", f"g{n}", 0, query=f"g{n}", sources=source, expected={"attributable": "yes"})
        for n in range(20)
    ]
    study = make_study(items=items, gold=gold, gold_share=0.2, scheme="ais-sentences", people=["ada"])
    seen, left = [], []
    while (work := study.next("ada")) is not None:
        left.append(work.left_count)
        seen.append(work.item.text.split()[0])
        finish(study, "ada")
    changes = [a for a, b in pairwise([*seen, ""]) if a != b]
    assert len(changes) == len(set(changes)) == len(set(seen))  # no answer is interrupted
    assert 6 <= sum(one.startswith("gold") for one in seen) == len(seen) - 60
    assert left == list(range(len(seen), 0, -1))


@pytest.mark.parametrize(("mark", "is_blocked"), [(0.0, False), (0.6, True)])
def test_who_misses_gold_items_is_blocked_if_that_is_set(
    make_study: MakeStudy, tmp_path: Path, mark: float, is_blocked: bool
) -> None:
    study = make_study(30, gold=training(10), gold_share=0.5, block_after=3, block_below=mark, people=["ada", "bob"])
    while finish(study, "ada", "yes", "yes"):
        pass
    reason = study.annotator("ada").block_reason
    assert reason == ("0 of 3 gold items right, the mark is 60%" if is_blocked else None)
    if is_blocked:
        before = study.progress().ratings
        study.unblock("ada")
        while finish(study, "ada", "yes", "yes"):
            pass
        assert study.annotator("ada").block_reason is None
        assert study.progress().ratings > before


def test_who_is_blocked_holds_no_item(make_study: MakeStudy) -> None:
    study = make_study(1, annotators=1, people=["ada", "bob"])
    assert study.next("ada") is not None
    assert study.next("bob") is None
    study.block("ada", "asked to stop")
    assert study.next("ada") is None
    assert study.next("bob") is not None


def test_who_is_blocked_records_nothing_but_a_press_sent_again_is_acknowledged(make_study: MakeStudy) -> None:
    study = make_study(3, people=["ada"])
    work = given(study, "ada")
    answer(study, "ada", work, "no")
    held = given(study, "ada")
    study.block("ada", "asked to stop")
    answer(study, "ada", work, "no")
    with pytest.raises(PressError, match="has ended"):
        answer(study, "ada", held, "no")
    with pytest.raises(PressError, match="has ended"):
        study.flag("ada", held.item.id, "expert", press=press())
    with pytest.raises(PressError, match="has ended"):
        study.undo("ada", press=press())
    assert len(rows(study)) == 1


# --- admin -----------------------------------------------------------------------------------------------------------


def vote(study: Study, values: dict[str, str]) -> None:
    """Each person answers the first question of the only item."""
    for person, value in values.items():
        study.invite(person)
        work = given(study, person)
        if value == "flag":
            study.flag(person, work.item.id, "expert", press=press())
        else:
            study.verdict(
                person, work.item.id, Entry(work.question.name, value, press=press(), reason=f"{person} says")
            )


def test_ties_are_adjudicated_by_an_admin(make_study: MakeStudy, tmp_path: Path) -> None:
    study = make_study(1, scheme="ais-direct", annotators=3)
    study.invite("boss", "admin")
    vote(study, {"ada": "yes", "bob": "no"})
    assert study.ties() == []  # one more is to come
    vote(study, {"cem": "flag"})
    (tie,) = study.ties()
    assert (tie.item.id, tie.item.system, tie.question.name) == ("q0/0", "reader", "attributable")
    assert tie.votes == {"no": 1, "yes": 1}
    assert tie.reasons == {"no": ("bob says",), "yes": ("ada says",)}
    with pytest.raises(PressError, match="only an admin"):
        study.adjudicate("ada", "q0/0", "attributable", "no", press=press())
    with pytest.raises(PressError, match="is no answer"):
        study.adjudicate("boss", "q0/0", "attributable", "perhaps", press=press())
    with pytest.raises(PressError, match="no item called 'q9'"):
        study.adjudicate("boss", "q9", "attributable", "no", press=press())
    study.adjudicate("boss", "q0/0", "attributable", "yes", press="a1")
    study.adjudicate("boss", "q0/0", "attributable", "yes", press="a1")
    with pytest.raises(PressError, match="boss has decided this: yes; load the page again"):
        study.adjudicate("boss", "q0/0", "attributable", "no", press="a2")
    study.adjudicate("boss", "q0/0", "attributable", "no", press="a2", overwrite=True)
    assert study.ties() == []
    found = exported(study, tmp_path)
    assert [(row["annotator"], row["value"]) for row in found if row["phase"] == "adjudication"] == [("boss", "no")]


def test_an_export_counts_the_ties_that_leave_its_labels_undecided(make_study: MakeStudy, tmp_path: Path) -> None:
    study = make_study(1, scheme="ais-direct", annotators=3)
    vote(study, {"ada": "yes", "bob": "no"})
    assert (study.progress().finished, study.progress().ties) == (0, 0)
    manifest = study.export(tmp_path / "out")
    assert manifest["ties"] == 1
    assert "ties, without a label until an admin or more people decide them: 1" in manifest["notes"]
    assert study.export(tmp_path / "out", exclude=["bob"])["ties"] == 0


def test_two_people_tie_and_an_admin_decides(make_study: MakeStudy, tmp_path: Path) -> None:
    study = make_study(1, scheme="ais-direct", annotators=2)
    study.invite("boss", "admin")
    vote(study, {"ada": "yes", "bob": "no"})
    assert study.progress().ties == len(study.ties()) == 1
    study.adjudicate("boss", "q0/0", "attributable", "yes", press=press())
    assert (study.progress().ties, study.export(tmp_path / "out")["ties"]) == (0, 0)


def test_a_tie_on_what_the_consensus_leaves_out_is_not_to_be_decided(make_study: MakeStudy) -> None:
    study = make_study(1, annotators=5)
    for person, values in {"ada": "yn", "bob": "yy", "cem": "n", "dee": "n", "eve": "n"}.items():
        study.invite(person)
        finish(study, person, *({"y": "yes", "n": "no"}[value] for value in values))
    assert study.ties() == []
    assert study.progress().ties == 0


def test_the_share_of_gold_counts_finished_items_only(make_study: MakeStudy) -> None:
    study = make_study(30, gold=training(10), gold_share=0.5, people=["ada"])
    while (work := study.next("ada")) is not None and not work.item.text.startswith("The t"):
        finish(study, "ada")
    assert work is not None
    answer(study, "ada", work, "yes")
    assert study.progress().people[0].gold == 0
    finish(study, "ada", "no")
    (ada,) = study.progress().people
    assert (ada.gold, ada.gold_right) == (1, 1.0)


def test_audits_check_finished_ratings_once(make_study: MakeStudy, tmp_path: Path) -> None:
    study = make_study(4, scheme="ais-direct")
    study.invite("boss", "admin")
    for person, value in (("ada", "yes"), ("bob", "no")):
        study.invite(person)
        for _ in range(4):
            finish(study, person, value)
    assert study.audit_sample(2) == study.audit_sample(2) == study.audit_sample(4)[:2]
    while study.audit_sample(1):
        (audit,) = study.audit_sample(1)
        study.record_audit("boss", audit.item.id, audit.question.name, "yes", press=press(), reason="read")
    people = {one.id: one for one in study.progress().people}
    assert (people["ada"].audited, people["ada"].audit_right, people["bob"].audit_right) == (4, 1.0, 0.0)
    assert (people["ada"].agreement, people["boss"].agreement) == (0.0, None)
    assert Counter(row["phase"] for row in exported(study, tmp_path)) == {"study": 8, "audit": 4}
    with pytest.raises(PressError, match="no item called 'q9'"):
        study.record_audit("boss", "q9", "attributable", "yes", press=press())


def test_an_audit_is_of_what_a_person_has_finished(make_study: MakeStudy) -> None:
    study = make_study(3)
    for person in ("ada", "bob"):
        study.invite(person)
    work = given(study, "ada")
    answer(study, "ada", work, "yes")
    assert study.audit_sample(9) == []
    finish(study, "ada", "no")
    work = given(study, "bob")
    study.flag("bob", work.item.id, "missing", press=press())
    found = study.audit_sample(9)
    assert [(one.question.name, one.annotator, one.value) for one in found] == [
        ("interpretable", "ada", "yes"),
        ("attributable", "ada", "no"),
    ]
    study.undo("ada", press=press())
    assert study.audit_sample(9) == []


def test_audits_of_values_from_1_to_5_are_right_on_the_same_side(make_study: MakeStudy) -> None:
    study = make_study(1, scheme="ais-likert")
    study.invite("boss", "admin")
    for person, value in {"ada": "4", "bob": "3"}.items():
        study.invite(person)
        finish(study, person, "yes", value)
    study.record_audit("boss", "q0/0", "attributable", "5", press=press())
    people = {one.id: one for one in study.progress().people}
    assert (people["ada"].audit_right, people["bob"].audit_right) == (1.0, 0.0)


def test_progress_counts_people_items_and_agreement(make_study: MakeStudy, clock: Clock) -> None:
    study = make_study(4, scheme="ais-direct")
    for person, values in (("ada", "yynn"), ("bob", "yynn"), ("cem", "yyn")):
        study.invite(person)
        for letter in values:
            work = given(study, person)
            clock.now += 10
            answer(study, person, work, {"y": "yes", "n": "no"}[letter])
    progress = study.progress()
    assert (progress.total, progress.finished, progress.items) == (4, 3, {2: 1, 3: 3})
    assert (progress.ratings, progress.ties, progress.alpha) == (11, 0, {"attributable": 1.0})
    assert [(one.id, one.done, one.median_seconds, one.agreement) for one in progress.people] == [
        ("ada", 4, 10.0, 1.0),
        ("bob", 4, 10.0, 1.0),
        ("cem", 3, 10.0, 1.0),
    ]


def test_a_study_can_be_opened_by_two_processes_and_its_settings_changed(make_study: MakeStudy) -> None:
    study = make_study(1, annotators=1, people=["ada", "bob"])
    finish(study, "ada", "no")
    assert study.next("bob") is None
    settings = study.folder / "study.toml"
    settings.write_text(settings.read_text("utf-8").replace("annotators = 1", "annotators = 3"), "utf-8")
    again = open_study(study.folder)
    assert again.next("bob") is not None
    again.close()
    settings.write_text(settings.read_text("utf-8").replace('"ais"', '"trec"'), "utf-8")
    with pytest.raises(UserError, match="the scheme of a study is fixed"):
        open_study(study.folder)


def test_items_are_finished_again_after_a_process_with_the_settings_from_before(make_study: MakeStudy) -> None:
    served = make_study(1, annotators=3, people=["ada"])
    settings = served.folder / "study.toml"
    settings.write_text(settings.read_text("utf-8").replace("annotators = 3", "annotators = 1"), "utf-8")
    open_study(served.folder).close()  # such as `rag annotate progress`, which records the new setting
    finish(served, "ada", "no")  # by the process that still has the old one
    again = open_study(served.folder)
    assert again.progress().finished == 1
    again.close()


def test_a_database_holds_one_study(make_study: MakeStudy, tmp_path: Path) -> None:
    study = make_study(1)
    if not study.settings.database:
        pytest.skip("a folder holds one study: tested with create_study")
    with pytest.raises(UserError, match="holds a study already"):
        create_study(tmp_path / "again", items=make_items(1), settings=study.settings)
    assert not (tmp_path / "again").exists()


def test_questions_alone_are_no_answers(tmp_path: Path) -> None:
    path = tmp_path / "questions.jsonl"
    path.write_text('{"id": "1", "question": "Why?"}\n', "utf-8")
    with pytest.raises(UserError, match="no record has an answer with sentences; are they questions alone"):
        create_study(tmp_path / "study", answers=path)
