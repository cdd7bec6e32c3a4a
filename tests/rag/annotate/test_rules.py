"""The rules of assignment, whatever people, tabs, clocks and crashes do, in any order."""

import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from rag.annotate.create import create_study, open_study
from rag.annotate.settings import Settings
from rag.annotate.store import assignments, items, presses
from rag.annotate.study import Study
from rag.annotate.types import Entry, Work
from rag.base.errors import PressError
from tests.rag.annotate.made import Clock, make_items, press

PEOPLE = ("ada", "bob", "cem", "dee", "eve")
WANTED = 3
LEASE = 600.0


class Rules(RuleBasedStateMachine):
    """Five people on six items, three to each, with gold items; each may have two tabs open."""

    study: Study
    new_database: Callable[[], str]

    @initialize(answers=st.integers(1, 3))
    def begin(self, answers: int) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.clock = Clock()
        gold = [replace(item, expected={"attributable": "no"}) for item in make_items(2, "g")]
        made = create_study(
            Path(self.folder.name) / "study",
            items=make_items(6, answers=answers),
            gold=gold,
            settings=Settings(
                annotators=WANTED, lease_minutes=LEASE / 60, gold_share=0.3, database=self.new_database()
            ),
            clock=self.clock,
        )
        made.close()
        self.reopen()
        for person in PEOPLE:
            self.study.invite(person)
        self.tabs: dict[str, list[Work]] = defaultdict(list)
        self.acknowledged: dict[str, tuple[str, str, str]] = {}  # press: person, question, value

    def reopen(self) -> None:
        self.study = open_study(Path(self.folder.name) / "study", clock=self.clock)

    def teardown(self) -> None:
        if hasattr(self, "study"):
            self.study.close()
            self.folder.cleanup()

    @rule(person=st.sampled_from(PEOPLE))
    def load(self, person: str) -> None:
        """Load the page, in one tab more."""
        before = self.live()
        work = self.study.next(person)
        if work is not None:
            self.tabs[person].append(work)
            assert work.question.source == "shown" or not work.item.sources
        after = self.live()
        for item, people in after.items():  # whoever got a lease now found a place
            assert people <= before[item] or len(people) <= WANTED

    @precondition(lambda self: any(self.tabs.values()))
    @rule(data=st.data(), value=st.sampled_from(["yes", "no"]))
    def answer(self, data: st.DataObject, value: str) -> None:
        """Answer in any tab, also one that is out of date."""
        person = data.draw(st.sampled_from(sorted(person for person, tabs in self.tabs.items() if tabs)))
        work = data.draw(st.sampled_from(self.tabs[person]))
        new = work.press not in self.acknowledged
        if not new:
            value = self.acknowledged[work.press][2]
        try:
            self.study.verdict(person, work.item.id, Entry(work.question.name, value, press=work.press))
        except PressError:
            assert new
        else:
            self.acknowledged[work.press] = (person, work.question.name, value)

    @precondition(lambda self: any(self.tabs.values()))
    @rule(data=st.data())
    def flag(self, data: st.DataObject) -> None:
        """Flag in any tab."""
        person = data.draw(st.sampled_from(sorted(person for person, tabs in self.tabs.items() if tabs)))
        work = data.draw(st.sampled_from(self.tabs[person]))
        given = press()
        try:
            self.study.flag(person, work.item.id, "malformed", press=given)
        except PressError:
            return
        self.acknowledged[given] = (person, "flag", "malformed")

    @rule(person=st.sampled_from(PEOPLE))
    def undo(self, person: str) -> None:
        """Take the last press back."""
        given, could = press(), self.study.can_undo(person)
        try:
            self.study.undo(person, press=given)
        except PressError:
            assert not could
            return
        assert could
        self.acknowledged[given] = (person, "", "")

    @precondition(lambda self: any(map(self.study.past, PEOPLE)))
    @rule(data=st.data(), value=st.sampled_from(["yes", "no"]))
    def revise(self, data: st.DataObject, value: str) -> None:
        """Look at a past item again: answer one of its questions, or take the flag back."""
        person = data.draw(st.sampled_from([person for person in PEOPLE if self.study.past(person)]))
        entry = data.draw(st.sampled_from(self.study.past(person)))
        given = press()
        if entry.flag:
            self.study.take_back_flag(person, entry.item.id, press=given)
            self.acknowledged[given] = (person, "", "")
            return
        question = data.draw(st.sampled_from([verdict.question.name for verdict in entry.verdicts]))
        is_finished = self.study.revise(person, entry.item.id, Entry(question, value, press=given))
        assert is_finished == (question == "attributable" or value == "no" or len(entry.verdicts) == 2)
        self.acknowledged[given] = (person, question, value)

    @rule(seconds=st.sampled_from([1.0, LEASE / 2, LEASE + 1, -LEASE - 1, 1e7, -1e7]))
    def jump(self, seconds: float) -> None:
        """The clock goes on, or jumps either way."""
        self.clock.now += seconds

    @rule()
    def restart(self) -> None:
        """The process ends and starts again; open tabs stay."""
        self.study.close()
        self.reopen()

    def all(self, table: sa.Table) -> list[Any]:
        with self.study.database.read() as connection:
            return list(connection.execute(sa.select(table)).all())

    def live(self) -> dict[str, set[str]]:
        """Who finished or flagged an item or holds it, by item; gold items have places for all."""
        found: defaultdict[str, set[str]] = defaultdict(set)
        for one in self.all(assignments):
            is_live = one.state == "leased" and abs(self.clock.now - one.leased) <= LEASE
            if one.phase == "study" and (one.state != "leased" or is_live):
                found[one.item].add(one.annotator)
        return found

    @invariant()
    def each_acknowledged_press_is_a_row(self) -> None:
        # What a revision takes back has presses that nobody sent.
        rows = [row for row in self.all(presses) if row.kind != "undo" or row.press in self.acknowledged]
        assert {row.press for row in rows} == self.acknowledged.keys()
        assert len(rows) == len(self.acknowledged)
        for row in rows:
            person, question, value = self.acknowledged[row.press]
            assert row.annotator == person
            assert row.kind == "undo" or (row.question, row.value) == (question, value)

    @invariant()
    def nobody_has_an_item_twice(self) -> None:
        given = [(one.annotator, one.item) for one in self.all(assignments)]
        assert len(given) == len(set(given))

    @invariant()
    def states_follow_from_the_presses(self) -> None:
        rows = self.all(presses)
        undone = {row.undoes for row in rows}
        standing: defaultdict[tuple[str, str], dict[str, str]] = defaultdict(dict)
        for row in rows:
            if row.kind != "undo" and row.id not in undone:
                assert row.question not in standing[row.annotator, row.item]  # one answer to a question
                standing[row.annotator, row.item][row.question] = row.value
        finished: Counter[str] = Counter()
        for one in self.all(assignments):
            verdicts = standing[one.annotator, one.item]
            ended = "attributable" in verdicts or verdicts.get("interpretable") == "no"
            assert one.state == ("flagged" if "flag" in verdicts else "done" if ended else "leased")
            if one.state != "leased":
                finished[one.item] += 1
        for item in self.all(items):
            if item.pool == "study":
                assert item.open == (finished[item.id] < WANTED)


def test_the_rules_hold(new_database: Callable[[], str]) -> None:
    class Here(Rules):
        pass

    Here.new_database = staticmethod(new_database)
    limits = settings(max_examples=10, stateful_step_count=30, suppress_health_check=list(HealthCheck))
    run_state_machine_as_test(Here, settings=limits)
