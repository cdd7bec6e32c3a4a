"""An annotation study: what each person is asked next, and what they answered."""

import hmac
import random
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from autoais.io.jsonl import dumps, parse_object
from rag.annotate.items import Item, item_of, unstorable
from rag.annotate.links import Links, check_person
from rag.annotate.schemes import Question, flags_for, scheme_of
from rag.annotate.settings import Settings
from rag.annotate.store import Database, about, assignments, items, pairs, people, presses
from rag.annotate.types import (
    Annotator,
    Audit,
    Evidence,
    Feedback,
    PersonProgress,
    Phase,
    Progress,
    Role,
    Tie,
    Work,
)
from rag.errors import LinkError, PressError, UsageError

__all__ = [
    "Annotator",
    "Audit",
    "Evidence",
    "Feedback",
    "PersonProgress",
    "Phase",
    "Progress",
    "Role",
    "Study",
    "Tie",
    "Work",
]

_VERDICT, _FLAG, _UNDO, _AUDIT, _ADJUDICATION = "verdict", "flag", "undo", "audit", "adjudication"
_LONGEST_REASON, _LONGEST_PRESS, _MOST_SPANS, _LONGEST_PAUSE = 10_000, 100, 100, 24 * 3600.0
_CACHED_ITEMS = 2000


class Study:
    """A study; made by `open_study`. Thread-safe. Methods raise `StudyError` if the database cannot be reached."""

    def __init__(
        self,
        folder: Path,
        settings: Settings,
        database: Database,
        links: Links,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.folder, self.settings, self.scheme = folder, settings, scheme_of(settings.scheme)
        self.database = database
        self._links, self._clock = links, clock
        self._lease = settings.lease_minutes * 60
        self.item = lru_cache(_CACHED_ITEMS)(self._read_item)
        with database.read() as connection:
            sizes = sa.select(items.c.pool, sa.func.count()).group_by(items.c.pool)
            self.pools: dict[str, int] = pairs(connection, sizes)

    # --- people ----------------------------------------------------------------------------------------------------

    def sign_in(self, token: str) -> Annotator:
        """Return the person of a link; raises `LinkError`, whatever is wrong with it."""
        person = self._links.person(token)
        with self.database.read() as connection:
            row = self._person(connection, person)
        if not hmac.compare_digest(row.token_hash, self._links.hash(token)):
            raise LinkError
        return _annotator(row)

    def annotator(self, id: str) -> Annotator:  # noqa: A002
        """Return a person by id; raises `LinkError` if there is none, or their link is revoked or has expired."""
        with self.database.read() as connection:
            return _annotator(self._person(connection, id))

    def invite(self, id: str, role: Role = "annotator", *, days: float | None = None) -> str:  # noqa: A002
        """Add a person, or replace the link of one; return the token of their link, which is stored nowhere.

        The link ends after so many days, or never. Raises `UsageError` for an id that cannot be used.
        """
        check_person(id)
        if role not in ("annotator", "admin"):
            raise UsageError(f"the role should be annotator or admin, found {role!r:.60}")
        if days is not None and not 0 < days <= 36_500:
            raise UsageError(f"days should be more than 0 and at most 36,500, found {days}")
        token = self._links.make(id)
        link = {
            "role": role,
            "token_hash": self._links.hash(token),
            "expires": None if days is None else self._clock() + days * 24 * 3600,
        }
        with self.database.write() as connection:
            if _person_row(connection, id) is None:
                passed = not self.pools.get("training")
                new = {"id": id, "passed": passed, "attempt": 1, "exempt": False}
                connection.execute(sa.insert(people).values(new | link))
            else:
                connection.execute(sa.update(people).where(people.c.id == id).values(link))
        return token

    def revoke(self, id: str) -> None:  # noqa: A002
        """End a person's link at once, and their leases; their ratings stay. Raises `UsageError` for an unknown id."""
        self._change(id, token_hash=None)

    def block(self, id: str, reason: str) -> None:  # noqa: A002
        """Give a person no more items; raises `UsageError` for an unknown id, or without a reason."""
        if not reason.strip():
            raise UsageError("a reason to block a person is missing")
        self._change(id, blocked=_storable("reason", reason, UsageError))

    def unblock(self, id: str) -> None:  # noqa: A002
        """Let a person go on, whatever their gold items say; who failed the training round gets its attempts again."""
        with self.database.write() as connection:
            row = _person_row(connection, id)
            if row is None:
                raise UsageError(f"no person called {id!r:.60}")
            if row.blocked is not None:
                values = {"exempt": True} if row.passed else {"attempt": row.attempt + 1}
                connection.execute(sa.update(people).where(people.c.id == id).values(values | {"blocked": None}))

    def _change(self, id: str, **values: object) -> None:  # noqa: A002
        with self.database.write() as connection:
            if not connection.execute(sa.update(people).where(people.c.id == id).values(values)).rowcount:
                raise UsageError(f"no person called {id!r:.60}")
            self._release(connection, id)

    def _release(self, connection: "sa.Connection", person: str) -> None:
        mine = (assignments.c.annotator == person) & (assignments.c.state == "leased")
        connection.execute(sa.update(assignments).where(mine).values(leased=0.0))

    def _person(self, connection: "sa.Connection", person: str) -> "sa.Row[Any]":
        row = None if unstorable(person) else _person_row(connection, person)
        if row is None or row.token_hash is None or (row.expires is not None and row.expires <= self._clock()):
            raise LinkError
        return row

    # --- work ------------------------------------------------------------------------------------------------------

    def next(self, annotator: str) -> Work | None:
        """Return what the person does now: the item they hold, else one leased to them; None if nothing is left.

        None also for who is blocked. Items are given out in the order of the study, first come first served. After an
        item come the others of the same answer, and then, if there is one, an answer to another question.
        """
        with self.database.read() as connection:
            person = self._person(connection, annotator)
            if person.blocked is not None:
                return None
            held = self._held(connection, person)
            if held is not None and self._is_fresh(held):
                return self._work(connection, person, held)
        with self.database.write() as connection:
            person = self._person(connection, annotator)
            if person.blocked is not None:
                return None
            held = self._held(connection, person)
            if held is not None:
                connection.execute(_of(held).values(leased=self._clock()))
            else:
                self._give(connection, person)
                held = self._held(connection, person)
            return None if held is None else self._work(connection, person, held)

    def _is_fresh(self, held: "sa.Row[Any]") -> bool:
        """Whether more than half of the lease is left."""
        return bool(held.phase == "training" or abs(self._clock() - held.leased) < self._lease / 2)

    def _live(self) -> "sa.ColumnElement[bool]":
        """A lease lasts so long before and after its time, so that one from a clock that was ahead ends too."""
        now = self._clock()
        return (assignments.c.state == "leased") & assignments.c.leased.between(now - self._lease, now + self._lease)

    def _held(self, connection: "sa.Connection", person: "sa.Row[Any]") -> "sa.Row[Any] | None":
        mine = assignments.c.annotator == person.id
        if person.passed:
            holds = self._live() & (assignments.c.phase != "training")
        else:
            holds = (assignments.c.state == "leased") & (assignments.c.attempt == person.attempt)
        found = sa.select(assignments).where(mine & holds).order_by(assignments.c.turn).limit(1)
        return connection.execute(found).first()

    def _give(self, connection: "sa.Connection", person: "sa.Row[Any]") -> None:
        """Lease an item to a person who holds none, if there is one."""
        if not person.passed:
            self._give_training(connection, person)
            return
        expired = sa.select(assignments).where(
            (assignments.c.annotator == person.id)
            & (assignments.c.state == "leased")
            & (assignments.c.phase != "training")
        )
        for one in connection.execute(expired.order_by(assignments.c.turn)).all():
            if one.phase == "gold" or self._has_place(connection, one.item, person.id):
                connection.execute(_of(one).values(leased=self._clock()))
                return
        found = self._next_item(connection, person)
        if found is None:
            return
        turn = self._turns(connection, person) + 1
        if self.pools.get("gold") and self._gold_turns(person.id, turn)[turn - 1]:
            seen = sa.select(assignments.c.item).where(assignments.c.annotator == person.id)
            unseen = sa.select(items.c.id).where((items.c.pool == "gold") & items.c.id.not_in(seen))
            if keys := [key for (key,) in connection.execute(unseen.order_by(items.c.place))]:
                # Not the same gold item at the same time for everybody: people talk.
                chosen = random.Random(f"{self.settings.seed} gold {person.id} {turn}").choice(keys)
                self._assign(connection, person, chosen, "gold", turn)
                return
        self._assign(connection, person, found, "study", turn)

    def _give_training(self, connection: "sa.Connection", person: "sa.Row[Any]") -> None:
        mine = (assignments.c.annotator == person.id) & (assignments.c.attempt == person.attempt)
        seen = sa.select(assignments.c.item).where(mine)
        unseen = sa.select(items.c.id).where((items.c.pool == "training") & items.c.id.not_in(seen))
        found = connection.execute(unseen.order_by(items.c.place).limit(1)).scalar()
        if found is not None:
            turn = connection.execute(sa.select(sa.func.count()).where(mine)).scalar_one() + 1
            self._assign(connection, person, found, "training", turn)

    def _assign(self, connection: "sa.Connection", person: "sa.Row[Any]", item: str, phase: Phase, turn: int) -> None:
        attempt, now = person.attempt if phase == "training" else 0, self._clock()
        handle = self._links.handle(person.id, item, attempt)
        values = {"handle": handle, "annotator": person.id, "item": item, "attempt": attempt, "phase": phase}
        state = {"state": "leased", "turn": turn, "opened": now, "leased": now}
        connection.execute(sa.insert(assignments).values(values | state))

    def _places_taken(self, item: "sa.ColumnElement[str] | str", but: str) -> "sa.ScalarSelect[int]":
        """Others who finished the item or hold it now."""
        other = (assignments.c.item == item) & (assignments.c.annotator != but)
        taken = other & ((assignments.c.state == "done") | self._live())
        return sa.select(sa.func.count()).where(taken).scalar_subquery()

    def _has_place(self, connection: "sa.Connection", item: str, person: str) -> bool:
        taken = connection.execute(sa.select(self._places_taken(item, person))).scalar_one()
        return bool(taken < self.settings.annotators)

    def _next_item(self, connection: "sa.Connection", person: "sa.Row[Any]") -> str | None:
        mine = sa.select(assignments.c.handle).where(
            (assignments.c.item == items.c.id) & (assignments.c.annotator == person.id)
        )
        free = (items.c.pool == "study") & items.c.open & ~mine.exists()
        free = free & (self._places_taken(items.c.id, person.id) < self.settings.annotators)
        last = connection.execute(
            sa.select(items.c.answer, items.c.topic)
            .join(assignments, assignments.c.item == items.c.id)
            .where((assignments.c.annotator == person.id) & (assignments.c.phase == "study"))
            .order_by(assignments.c.turn.desc())
            .limit(1)
        ).first()
        wanted = (
            [sa.true()] if last is None else [items.c.answer == last.answer, items.c.topic != last.topic, sa.true()]
        )
        for which in wanted:
            query = sa.select(items.c.id).where(free & which).order_by(items.c.place).limit(1)
            if (found := connection.execute(query).scalar()) is not None:
                return str(found)
        return None

    def _turns(self, connection: "sa.Connection", person: "sa.Row[Any]") -> int:
        mine = (assignments.c.annotator == person.id) & (assignments.c.phase != "training")
        return int(connection.execute(sa.select(sa.func.max(assignments.c.turn)).where(mine)).scalar() or 0)

    def _gold_turns(self, person: str, turns: int) -> list[bool]:
        """Whether a gold item comes at each turn of a person, while there are any."""
        chance = random.Random(f"{self.settings.seed} {person}")
        return [chance.random() < self.settings.gold_share for _ in range(turns)]

    def _work(self, connection: "sa.Connection", person: "sa.Row[Any]", held: "sa.Row[Any]") -> Work:
        item, verdicts = self.item(held.item), _verdicts(connection, held)
        question = self._question(item, verdicts, held.phase)
        if question is None:  # a finished item is not held
            raise RuntimeError(f"item {item.id!r} has no further question")
        done, left = self._counts(connection, person)
        return Work(
            item=_sent(item, held.handle, question),
            question=question,
            verdicts=verdicts,
            phase="training" if held.phase == "training" else "study",
            done=done,
            left=left,
            press=uuid.uuid4().hex,
            can_undo=_last_press(connection, person.id) is not None,
            attempt=held.attempt,
        )

    def _question(self, item: Item, verdicts: Mapping[str, str], phase: str) -> Question | None:
        if phase == "training":  # it ends when all that can be told has been
            told = item.expected.keys() - {"flag"}
            if told and told <= verdicts.keys():
                return None
        return self.scheme.next_question(item.unit, verdicts, has_source=item.has_source)

    def _counts(self, connection: "sa.Connection", person: "sa.Row[Any]") -> tuple[int, int]:
        """Items that the person has finished, and that are left, in such a way that no gold item stands out."""
        count = sa.func.count
        mine = assignments.c.annotator == person.id
        if not person.passed:
            now = mine & (assignments.c.attempt == person.attempt) & (assignments.c.state != "leased")
            done = connection.execute(sa.select(count()).where(now)).scalar_one()
            return done, self.pools["training"] - done
        states = (
            sa.select(assignments.c.phase, assignments.c.state, count(), count().filter(items.c.open))
            .join(items, items.c.id == assignments.c.item)
            .where(mine & (assignments.c.phase != "training"))
            .group_by(assignments.c.phase, assignments.c.state)
        )
        done = turns = gold = held = opened = 0
        for phase, state, n, n_open in connection.execute(states):
            turns += n
            done += n if state != "leased" else 0
            held += n if state == "leased" else 0
            gold += n if phase == "gold" else 0
            opened += n_open if phase == "study" else 0
        open_items = (items.c.pool == "study") & items.c.open
        study = connection.execute(sa.select(count()).where(open_items)).scalar_one() - opened
        gold = self.pools.get("gold", 0) - gold
        left = held + study
        if gold > 0 and study > 0:
            chance = random.Random(f"{self.settings.seed} {person.id}")
            for _ in range(turns):
                chance.random()
            while study > 0 and gold > 0:
                if chance.random() < self.settings.gold_share:
                    gold, left = gold - 1, left + 1
                else:
                    study -= 1
        return done, left

    def _read_item(self, key: str) -> Item:
        with self.database.read() as connection:
            row = connection.execute(sa.select(items.c.row).where(items.c.id == key)).scalar()
        if row is None:
            raise UsageError(f"no item called {key!r:.60}")
        return item_of(parse_object(row.encode(), "the database"), f"item {key!r:.60}", flag_incomplete=True)

    # --- presses ---------------------------------------------------------------------------------------------------

    def verdict(
        self,
        annotator: str,
        item: str,
        question: str,
        value: str,
        *,
        press: str,
        evidence: Sequence[Evidence] = (),
        reason: str = "",
        seconds: float | None = None,
    ) -> Feedback | None:
        """Record a verdict on `Work.item.id`; returns after the commit, in training with feedback.

        Raises `PressError` if the person never held the item, the question is not the one asked now (as in a second
        tab), the value is not among the options, or evidence or a reason is required and missing. A verdict after the
        lease has expired is recorded. `seconds` is the time for this question; without it, the time since the person's
        last press.
        """
        reason = _storable("reason", reason, PressError)
        with self.database.write() as connection:
            person = self._person(connection, annotator)
            held = self._assignment(connection, person, item)
            given = {"kind": _VERDICT, "annotator": person.id, "item": held.item, "question": question, "value": value}
            whole = self.item(held.item)
            if self._is_repeated(connection, press, given):
                return self._feedback(whole, held, question, value)
            asked = self._asked(connection, held, whole, question)
            if value not in asked.values:
                raise PressError(f"the answers to {question!r} are {', '.join(asked.values)}, found {value!r:.60}")
            spans = self._spans(whole, asked, value, evidence)
            if self.settings.reasons == "required" and not reason.strip():
                raise PressError("a reason is missing; write why")
            self._record(connection, held, press, given, spans=spans, reason=reason, seconds=seconds)
            self._renew(connection, held)
            if self._question(whole, _verdicts(connection, held), held.phase) is None:
                self._finish(connection, person, held, "done")
            return self._feedback(whole, held, question, value)

    def flag(self, annotator: str, item: str, reason: str, *, press: str) -> None:
        """Take an item out of this person's queue, with a reason of `flags_for(item.kind)`; others still rate it."""
        with self.database.write() as connection:
            person = self._person(connection, annotator)
            held = self._assignment(connection, person, item)
            given = {"kind": _FLAG, "annotator": person.id, "item": held.item, "question": "flag", "value": reason}
            if self._is_repeated(connection, press, given):
                return
            reasons = [one.value for one in flags_for(self.item(held.item).kind)]
            if reason not in reasons:
                raise PressError(f"the reasons for a flag are {', '.join(reasons)}, found {reason!r:.60}")
            if held.state != "leased":
                raise PressError("this item is finished already, perhaps in another tab")
            self._record(connection, held, press, given)
            self._finish(connection, person, held, "flagged")

    def undo(self, annotator: str, *, press: str) -> None:
        """Take back this person's last press; it stays in the log. Raises `PressError` if there is none.

        Presses of the training round are not taken back: its feedback has been seen.
        """
        with self.database.write() as connection:
            person = self._person(connection, annotator)
            if self._is_repeated(connection, press, {"kind": _UNDO, "annotator": person.id}):
                return
            last = _last_press(connection, person.id)
            if last is None:
                raise PressError("there is nothing to take back")
            held = connection.execute(
                sa.select(assignments).where(
                    (assignments.c.annotator == person.id)
                    & (assignments.c.item == last.item)
                    & (assignments.c.attempt == last.attempt)
                )
            ).one()
            given = {"kind": _UNDO, "annotator": person.id, "item": last.item, "question": last.question, "value": ""}
            self._record(connection, held, press, given, undoes=last.id)
            if held.state == "leased":
                self._renew(connection, held)
            else:
                connection.execute(_of(held).values(state="leased", leased=self._clock()))
                self._reconsider(connection, held.item)

    def can_undo(self, annotator: str) -> bool:
        """Whether there is a press to take back, also when nothing is left to do."""
        with self.database.read() as connection:
            return _last_press(connection, self._person(connection, annotator).id) is not None

    def _assignment(self, connection: "sa.Connection", person: "sa.Row[Any]", handle: str) -> "sa.Row[Any]":
        mine = (assignments.c.handle == handle) & (assignments.c.annotator == person.id)
        found = None if unstorable(handle) else connection.execute(sa.select(assignments).where(mine)).first()
        if found is None:
            raise PressError("this item was not given to you")
        return found

    def _is_repeated(self, connection: "sa.Connection", press: str, given: Mapping[str, str]) -> bool:
        """Whether the press is recorded already; raises `PressError` if it was for something else."""
        if not isinstance(press, str) or not 1 <= len(press) <= _LONGEST_PRESS or not press.isprintable():
            raise PressError(f"the id of a press should be 1 to {_LONGEST_PRESS} printable characters")
        found = connection.execute(sa.select(presses).where(presses.c.press == press)).first()
        if found is None:
            return False
        if any(getattr(found, name) != value for name, value in given.items()):
            raise PressError("this press was used before, for something else; load the page again")
        return True

    def _asked(self, connection: "sa.Connection", held: "sa.Row[Any]", item: Item, question: str) -> Question:
        if held.state != "leased":
            raise PressError("this item is finished already, perhaps in another tab")
        asked = self._question(item, _verdicts(connection, held), held.phase)
        if asked is None or asked.name != question:
            raise PressError(f"question {question!r:.60} is not the one asked now, perhaps because of another tab")
        return asked

    def _spans(self, item: Item, question: Question, value: str, evidence: Sequence[Evidence]) -> str:
        """Return the evidence as JSON; raises `PressError` for what is not in the sources, or is missing."""
        lengths = {source.id: len(source.text) for source in item.sources}
        if len(evidence) > _MOST_SPANS or (evidence and self.settings.evidence == "off"):
            raise PressError(f"there should be at most {_MOST_SPANS} pieces of evidence, and none if it is off")
        for one in evidence:
            if one.passage not in lengths or not 0 <= one.start < one.end <= lengths[one.passage]:
                raise PressError(f"the evidence {one.start} to {one.end} is not in the sources of the item")
        # The evidence of a table is its highlighted cells: there is no text to select.
        if self.settings.evidence == "required" and value in question.evidence_for and lengths and not evidence:
            raise PressError("the evidence is missing; select what supports the text in the source")
        return dumps([{"passage": one.passage, "start": one.start, "end": one.end} for one in evidence])

    def _record(
        self,
        connection: "sa.Connection",
        held: "sa.Row[Any]",
        press: str,
        given: Mapping[str, str],
        *,
        spans: str = "[]",
        reason: str = "",
        seconds: float | None = None,
        undoes: int | None = None,
    ) -> None:
        now = self._clock()
        if seconds is None and given["kind"] != _UNDO:
            mine = presses.c.annotator == held.annotator
            last = connection.execute(
                sa.select(presses.c.at).where(mine).order_by(presses.c.id.desc()).limit(1)
            ).scalar()
            seconds = now - max(held.opened, 0.0 if last is None else last)
        known = seconds is not None and 0 <= seconds <= _LONGEST_PAUSE  # else a clock was set, or it is no number
        values = {
            "press": press,
            "attempt": held.attempt,
            "phase": held.phase,
            "evidence": spans,
            "reason": reason,
            "seconds": seconds if known else None,
            "at": now,
            "undoes": undoes,
        }
        connection.execute(sa.insert(presses).values(dict(given) | values))

    def _renew(self, connection: "sa.Connection", held: "sa.Row[Any]") -> None:
        """Begin the lease anew; not if it has expired and others have taken all places."""
        if held.phase != "study" or self._has_place(connection, held.item, held.annotator):
            connection.execute(_of(held).values(leased=self._clock()))

    def _finish(self, connection: "sa.Connection", person: "sa.Row[Any]", held: "sa.Row[Any]", state: str) -> None:
        connection.execute(_of(held).values(state=state))
        if held.phase == "training":
            self._end_training(connection, person)
        elif held.phase == "gold":
            self._check_gold(connection, person)
        else:
            self._reconsider(connection, held.item)
        person = self._person(connection, person.id)
        # The next item in the same commit: the page that follows only reads.
        if person.blocked is None and self._held(connection, person) is None:
            self._give(connection, person)

    def _reconsider(self, connection: "sa.Connection", item: str) -> None:
        """An item needs more people until k finished it, or k flagged it."""
        states = sa.select(assignments.c.state, sa.func.count()).where(assignments.c.item == item)
        counts: dict[str, int] = pairs(connection, states.group_by(assignments.c.state))
        needs = max(counts.get("done", 0), counts.get("flagged", 0)) < self.settings.annotators
        connection.execute(sa.update(items).where(items.c.id == item).values(open=needs))

    def reconsider_all(self) -> None:
        """Decide again which items need more people, after `annotators` has changed."""
        with self.database.write() as connection:
            for key in connection.execute(sa.select(items.c.id).where(items.c.pool == "study")).scalars().all():
                self._reconsider(connection, key)
            number = sa.update(about).where(about.c.name == "annotators")
            connection.execute(number.values(value=str(self.settings.annotators)))

    def _feedback(self, item: Item, held: "sa.Row[Any]", question: str, value: str) -> Feedback | None:
        expected = item.expected.get(question)
        if held.phase != "training" or expected is None:
            return None
        return Feedback(is_right(value, expected), expected, item.explanation)

    def _end_training(self, connection: "sa.Connection", person: "sa.Row[Any]") -> None:
        """Let the person pass, try again or be blocked, if this was the last item of the round."""
        n = self.pools["training"]
        outcomes = self._outcomes(connection, person, "training", person.attempt)
        if len(outcomes) < n:
            return
        right = sum(outcomes)
        if right / n >= self.settings.pass_mark:
            values: dict[str, object] = {"passed": True}
        elif person.attempt % self.settings.training_attempts == 0:
            mark = self.settings.pass_mark
            values = {"blocked": f"did not pass the training round: {right} of {n} right, the pass mark is {mark:.0%}"}
        else:
            values = {"attempt": person.attempt + 1}
        connection.execute(sa.update(people).where(people.c.id == person.id).values(values))

    def _check_gold(self, connection: "sa.Connection", person: "sa.Row[Any]") -> None:
        """Block who has too few gold items right, if the study is set so."""
        mark = self.settings.block_below
        if not mark or person.exempt:
            return
        outcomes = self._outcomes(connection, person, "gold", 0)
        right, n = sum(outcomes), len(outcomes)
        if n >= self.settings.block_after and right / n < mark:
            reason = f"{right} of {n} gold items right, the mark is {mark:.0%}"
            connection.execute(sa.update(people).where(people.c.id == person.id).values(blocked=reason))
            self._release(connection, person.id)

    def _outcomes(self, connection: "sa.Connection", person: "sa.Row[Any]", phase: Phase, attempt: int) -> list[bool]:
        """Whether each finished training or gold item of a person is right."""
        finished = sa.select(assignments).where(
            (assignments.c.annotator == person.id)
            & (assignments.c.phase == phase)
            & (assignments.c.attempt == attempt)
            & (assignments.c.state != "leased")
        )
        return [
            item_is_right(self.item(one.item), _verdicts(connection, one, flags=True))
            for one in connection.execute(finished.order_by(assignments.c.turn)).all()
        ]

    # --- admin -----------------------------------------------------------------------------------------------------

    def progress(self) -> Progress:
        """Return how far the study and its people are."""
        from rag.annotate.review import progress

        return progress(self)

    def audit_sample(self, n: int) -> list[Audit]:
        """Return up to n finished ratings that nobody has audited, drawn with the study's seed."""
        from rag.annotate.review import audit_sample

        return audit_sample(self, n)

    def ties(self) -> list[Tie]:
        """Return the ties of finished items that nobody has adjudicated."""
        from rag.annotate.review import ties

        return ties(self)

    def record_audit(
        self, admin: str, item: str, question: str, annotator: str, value: str, *, press: str, reason: str = ""
    ) -> None:
        """Record what an admin answers about an item (by its own id), to check what `annotator` answered.

        It is compared with the verdicts of all who answered the question. Raises `PressError`.
        """
        with self.database.read() as connection:
            if unstorable(annotator) or _person_row(connection, annotator) is None:
                raise PressError(f"no person called {annotator!r:.60}")
        self._review(_AUDIT, admin, item, question, value, press, reason)

    def adjudicate(self, admin: str, item: str, question: str, value: str, *, press: str, reason: str = "") -> None:
        """Decide a question about an item (by its own id) in the place of the majority; the last decision counts."""
        self._review(_ADJUDICATION, admin, item, question, value, press, reason)

    def _review(self, kind: str, admin: str, item: str, question: str, value: str, press: str, reason: str) -> None:
        reason = _storable("reason", reason, PressError)
        given = {"kind": kind, "annotator": admin, "item": item, "question": question, "value": value}
        for name, text in given.items():
            _storable(name, text, PressError)
        whole = self.item(item)
        asked = [one for one in self.scheme.questions_of(whole.unit) if one.name == question]
        if not asked or value not in asked[0].values:
            raise PressError(f"{value!r:.60} is no answer to a question {question!r:.60} of this item")
        with self.database.write() as connection:
            if self._person(connection, admin).role != "admin":
                raise PressError("only an admin can do this")
            if self._is_repeated(connection, press, given):
                return
            values = {
                "press": press,
                "attempt": 0,
                "phase": kind,
                "evidence": "[]",
                "reason": reason,
                "at": self._clock(),
            }
            connection.execute(sa.insert(presses).values(given | values))

    def export(self, out: str | Path) -> Mapping[str, Any]:
        """Write ratings, answers with consensus and the manifest to a folder; return the manifest."""
        from rag.annotate.export import export

        return export(self, Path(out))

    def ready(self) -> None:
        """Raise `StudyError` if the database cannot be reached."""
        with self.database.read() as connection:
            connection.execute(sa.select(people.c.id).limit(1)).first()

    def close(self) -> None:
        """Close the connections to the database."""
        self.database.close()


def is_right(value: str | None, expected: str) -> bool:
    """Whether a verdict is the expected one; on the scale from 1 to 5, also one beside it."""
    if value is not None and value.isdecimal() and expected.isdecimal():
        return abs(int(value) - int(expected)) <= 1
    return value == expected


def item_is_right(item: Item, verdicts: Mapping[str, str]) -> bool:
    """Whether all verdicts on a training or gold item are as expected, and it is flagged only if that is expected."""
    flag = item.expected.get("flag")
    if flag is not None or "flag" in verdicts:
        return verdicts.get("flag") == flag
    return all(is_right(verdicts.get(question), value) for question, value in item.expected.items())


def _sent(item: Item, handle: str, question: Question) -> Item:
    """Return what may be sent of an item while the question is asked."""
    sent = replace(item, id=handle, answer="", group="", system="", expected={}, explanation="", flags=())
    if question.source == "hidden":
        sent = replace(sent, sources=(), table=None)
        if item.kind != "qa":  # a summary or caption stands by itself
            sent = replace(sent, query="", turns=())
    return sent


def _annotator(row: "sa.Row[Any]") -> Annotator:
    return Annotator(row.id, row.role, row.passed, row.blocked)


def _person_row(connection: "sa.Connection", person: str) -> "sa.Row[Any] | None":
    return connection.execute(sa.select(people).where(people.c.id == person)).first()


def _of(held: "sa.Row[Any]") -> "sa.Update":
    return sa.update(assignments).where(assignments.c.handle == held.handle)


def _not_undone() -> "sa.ColumnElement[bool]":
    undo = presses.alias("undo")
    return ~sa.select(undo.c.id).where(undo.c.undoes == presses.c.id).exists()


def _verdicts(connection: "sa.Connection", held: "sa.Row[Any]", *, flags: bool = False) -> dict[str, str]:
    """Return a person's verdicts on an item by question, without those that were taken back."""
    kinds = (_VERDICT, _FLAG) if flags else (_VERDICT,)
    mine = (presses.c.annotator == held.annotator) & (presses.c.item == held.item)
    which = mine & (presses.c.attempt == held.attempt) & presses.c.kind.in_(kinds) & _not_undone()
    found = sa.select(presses.c.question, presses.c.value).where(which).order_by(presses.c.id)
    return pairs(connection, found)


def _last_press(connection: "sa.Connection", person: str) -> "sa.Row[Any] | None":
    """Return the last press that can be taken back."""
    mine = (presses.c.annotator == person) & (presses.c.phase != "training") & presses.c.kind.in_((_VERDICT, _FLAG))
    return connection.execute(
        sa.select(presses).where(mine & _not_undone()).order_by(presses.c.id.desc()).limit(1)
    ).first()


def _storable(name: str, text: str, error: type[UsageError] | type[PressError]) -> str:
    """Return the text; raises an error if it is too long, or holds what no database stores."""
    if not isinstance(text, str):
        raise error(f"the {name} should be a string, found {type(text).__name__}")
    if wrong := unstorable(text):
        raise error(f"the {name} holds {wrong}")
    if len(text) > _LONGEST_REASON:
        raise error(f"the {name} has {len(text):,} characters; at most {_LONGEST_REASON:,} are kept")
    return text
