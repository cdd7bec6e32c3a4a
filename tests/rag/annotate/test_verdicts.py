"""Single verdicts for the admin, warnings, and the judge's verdict beside those of people."""

from pathlib import Path

import pytest

from autoais.judges import open_judge
from rag.annotate.study import Study
from rag.annotate.types import Entry
from rag.base.errors import UsageError
from tests.rag.annotate.conftest import MakeStudy
from tests.rag.annotate.made import Clock, finish, given, make_items, press


def judge_all(study: Study, clock: Clock, person: str, values: str, seconds: float) -> None:
    """Answer items of `ais-direct` with y and n, over and over, in so much time each."""
    while (work := study.next(person)) is not None:
        clock.now += seconds
        # The number of the item, so that each person says the same of it whatever the order.
        value = values[int(work.item.text.split()[2]) % len(values)]
        study.verdict(
            person,
            work.item.id,
            Entry(work.question.name, {"y": "yes", "n": "no"}[value], press=press(), seconds=seconds),
        )


def test_verdicts_are_filtered_and_fast_ones_marked(make_study: MakeStudy, clock: Clock) -> None:
    study = make_study(4, scheme="ais-direct", people=["ada", "bob"])
    judge_all(study, clock, "ada", "yn", 1.0)
    judge_all(study, clock, "bob", "y", 8.0)
    study.undo("bob", press=press())
    study.flag("bob", given(study, "bob").item.id, "malformed", press=press())
    assert len(study.verdicts()) == 9
    times = [one.at for one in study.verdicts()]
    assert times == sorted(times, reverse=True)
    assert [one.annotator for one in study.verdicts(fast=True)] == ["ada"] * 4
    assert all(one.is_fast and one.seconds == 1.0 for one in study.verdicts(annotator="ada"))
    assert len(study.verdicts(annotator="bob", value="yes")) == 4
    assert [one.taken_back for one in study.verdicts(annotator="bob", value="yes")] == [True, False, False, False]
    assert [one.value for one in study.verdicts(question="flag")] == ["malformed"]
    assert len(study.verdicts(item="q0/0", limit=1)) == 1
    assert study.verdicts(annotator="'; DROP TABLE press; --") == []
    people = {one.id: one.fast for one in study.progress().people}
    assert people == {"ada": 4, "bob": 0}


def test_warnings_name_work_that_is_too_fast_or_too_uniform(make_study: MakeStudy, clock: Clock) -> None:
    study = make_study(24, scheme="ais-direct", people=["ada", "bob", "cem"])
    judge_all(study, clock, "ada", "yn", 9.0)
    judge_all(study, clock, "bob", "y", 9.0)
    judge_all(study, clock, "cem", "yn", 1.0)
    found = {(one.annotator, one.text) for one in study.progress().warnings}
    assert found == {
        (
            "bob",
            "The answer to 'attributable' was 'yes' on 24 of 24 items; others say so in 50% of their verdicts on these"
            " items.",
        ),
        ("cem", "Half of 24 verdicts took less than 1.0 seconds each; fast_seconds is 1.5."),
    }


@pytest.mark.parametrize(("n", "ada"), [(24, "y"), (19, "yn")])
def test_uniform_work_is_no_warning_where_others_say_the_same_or_items_are_few(
    make_study: MakeStudy, clock: Clock, n: int, ada: str
) -> None:
    study = make_study(n, scheme="ais-direct", people=["ada", "bob"])
    judge_all(study, clock, "ada", ada, 9.0)
    judge_all(study, clock, "bob", "y", 9.0)
    assert study.progress().warnings == ()


def test_the_judge_is_shown_beside_an_item_after_people_have_finished_it(make_study: MakeStudy, tmp_path: Path) -> None:
    study = make_study(
        items=make_items(2), judge=open_judge("lexical"), scheme="ais-direct", annotators=2, people=["ada", "bob"]
    )
    study.invite("boss", "admin")
    finish(study, "ada", "yes")
    item = study.verdicts()[0].item
    assert study.inspect(item).judge is None
    study.comment("ada", study.past("ada")[0].item.id, "Look.", press=press())
    for person in ("ada", "bob"):
        while finish(study, person, "no"):
            pass
    assert len(study.ties()) == 1
    assert study.inspect(item).judge is None  # the admin has to decide first
    study.adjudicate("boss", item, "attributable", "yes", press=press())
    inspection = study.inspect(item)
    assert inspection.judge is not None
    assert inspection.judge.judge.startswith("lexical")
    assert [(one.annotator, one.value) for one in inspection.verdicts] == [("ada", "yes"), ("bob", "no")]
    assert [(name, text) for name, text, _ in inspection.comments] == [("ada", "Look.")]
    with pytest.raises(UsageError, match="no item called"):
        study.inspect("q9")
