"""Named people get named items, and items are added to a running study."""

from pathlib import Path

import pytest
import sqlalchemy as sa

from autoais.base.answers import CitedAnswer
from autoais.base.types import Citation, CitedSentence, Passage
from rag.annotate import add_items, open_study
from rag.annotate.store import batches
from rag.annotate.study import Study
from rag.annotate.types import Entry
from rag.base.errors import FormatError, UsageError
from tests.rag.annotate.conftest import MakeStudy
from tests.rag.annotate.made import finish, given, make_items, press


def work(study: Study, person: str) -> list[str]:
    """The texts of all items that a person is given."""
    texts = []
    while (text := finish(study, person)) is not None:
        texts.append(text)
    return texts


def text_of(*numbers: int) -> list[str]:
    return [f"The q {number} is blue." for number in numbers]


def test_named_people_get_named_items_first_and_nobody_else_gets_them(make_study: MakeStudy) -> None:
    study = make_study(6, annotators=2, people=["ada", "bob", "cem"])
    study.assign("first", items=["q4/0", "q5/0"], people=["ada"])
    study.assign("second", items=["q3/0"], people=["ada", "bob", "cem"])
    assert given(study, "ada").left_count == 6
    assert given(study, "bob").left_count == 4
    ada, bob, cem = work(study, "ada"), work(study, "bob"), work(study, "cem")
    assert set(ada[:3]) == set(text_of(3, 4, 5))
    assert set(ada) == set(text_of(*range(6)))
    assert bob[0] == text_of(3)[0]
    assert set(bob) == set(text_of(0, 1, 2, 3))
    assert cem == text_of(3)  # two have judged the others
    progress = study.progress()
    assert (progress.finished, progress.total, progress.items) == (6, 6, {1: 2, 2: 3, 3: 1})
    assert [(one.name, one.annotator, one.done, one.items) for one in progress.batches] == [
        ("first", "ada", 2, 2),
        ("second", "ada", 1, 1),
        ("second", "bob", 1, 1),
        ("second", "cem", 1, 1),
    ]


def test_an_item_of_a_batch_is_finished_when_each_of_its_people_has_finished_or_flagged_it(
    make_study: MakeStudy,
) -> None:
    study = make_study(1, annotators=5, people=["ada", "bob", "cem"])
    study.assign("all", items=["q0/0"], people=["ada", "bob"])
    assert study.next("cem") is None
    finish(study, "ada")
    assert study.progress().finished == 0
    study.flag("bob", given(study, "bob").item.id, "malformed", press=press())
    assert study.progress().finished == 1


def test_a_batch_is_replaced_and_ended_while_people_work(make_study: MakeStudy) -> None:
    study = make_study(2, annotators=1, people=["ada", "bob"])
    held = given(study, "ada")
    study.assign("one", items=["q0/0", "q1/0"], people=["bob"])
    study.verdict("ada", held.item.id, Entry("interpretable", "no", press=press()))  # what she holds is still recorded
    assert study.next("ada") is None
    assert set(work(study, "bob")) == set(text_of(0, 1))
    study.assign("one", items=["q0/0"], people=["ada"])
    assert study.progress().finished == (2 if held.item.text == text_of(0)[0] else 1)
    study.assign("one", items=[], people=[])
    assert study.progress().batches == ()
    assert study.progress().finished == 2


@pytest.mark.parametrize(
    ("name", "items", "people", "words"),
    [
        ("", ["q0/0"], ["ada"], "name of a batch"),
        ("b\0", ["q0/0"], ["ada"], "name of a batch"),
        ("b", ["q9"], ["ada"], "no item called 'q9'"),
        ("b", ["\0"], ["ada"], "no item called"),
        ("b", ["q0/0"], ["eve"], "no person called 'eve'"),
    ],
)
def test_a_batch_that_does_not_fit_changes_nothing(
    make_study: MakeStudy, name: str, items: list[str], people: list[str], words: str
) -> None:
    study = make_study(1, people=["ada"])
    with pytest.raises(UsageError, match=words):
        study.assign(name, items=items, people=people)
    assert study.progress().batches == ()


def test_a_database_from_before_batches_opens(make_study: MakeStudy) -> None:
    study = make_study(2, people=["ada"])
    finish(study, "ada")
    with study.database.write() as connection:
        batches.drop(connection)
    settings = study.folder / "study.toml"
    lines = settings.read_text("utf-8").splitlines()
    settings.write_text("\n".join(line for line in lines if not line.startswith("fast_seconds")) + "\n", "utf-8")
    for _ in range(2):
        again = open_study(study.folder)
        finish(again, "ada")
        again.assign("b", items=["q0/0"], people=["ada"])
        assert again.progress().batches[0].done == 1
        again.close()


def test_a_study_that_a_flag_left_unfinished_is_finished_when_it_is_opened(make_study: MakeStudy) -> None:
    study = make_study(1, annotators=2, people=["ada", "bob"])
    finish(study, "ada")
    study.flag("bob", given(study, "bob").item.id, "malformed", press=press())
    with study.database.write() as connection:  # as versions before left it
        connection.execute(sa.text("UPDATE item SET open = (1 = 1)"))
    again = open_study(study.folder)
    assert again.progress().finished == 1
    again.close()


# --- items added later -----------------------------------------------------------------------------------------------


def test_items_are_added_to_a_study_that_is_served(make_study: MakeStudy) -> None:
    served = make_study(1, annotators=1, people=["ada"])
    work(served, "ada")
    other = open_study(served.folder)
    assert add_items(other, items=make_items(3)[1:]) == 2
    other.close()
    assert given(served, "ada").left_count == 2
    assert set(work(served, "ada")) == set(text_of(1, 2))
    assert (served.progress().finished, served.progress().total) == (3, 3)
    assert len((served.folder / "items.jsonl").read_text("utf-8").splitlines()) == 3
    assert (served.folder / "items.jsonl").stat().st_mode & 0o777 == 0o600


def cited(number: int) -> CitedAnswer:
    sentence = CitedSentence(f"Town {number} is small.", (Citation("p"),))
    return CitedAnswer(f"a{number}", f"Is town {number} small?", (sentence,), {"p": Passage("p", text="It is small.")})


def test_answers_are_added_and_exported(make_study: MakeStudy, tmp_path: Path) -> None:
    study = make_study(answers=[cited(0)], annotators=1, people=["ada"])
    finish(study, "ada")
    assert add_items(study, answers=[cited(1)]) == 1
    finish(study, "ada")
    study.export(tmp_path / "out")
    assert len((tmp_path / "out" / "answers.jsonl").read_text("utf-8").splitlines()) == 2


def test_an_addition_that_does_not_fit_adds_nothing(make_study: MakeStudy) -> None:
    study = make_study(2, people=["ada"])
    before = (study.folder / "items.jsonl").read_bytes()
    with pytest.raises(FormatError, match="'q1/0' is in the study already"):
        add_items(study, items=make_items(4)[1:])
    with pytest.raises(UsageError, match="made of items"):
        add_items(study, answers=[cited(0)])
    with pytest.raises(UsageError, match="either items or answers"):
        add_items(study)
    assert (study.folder / "items.jsonl").read_bytes() == before
    assert study.progress().total == 2
