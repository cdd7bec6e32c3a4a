"""An annotation study: its people, the item that each gets next, and their verdicts."""

import hmac
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from rag.annotate import queries, review
from rag.annotate.expected import is_right, item_is_right
from rag.annotate.export import export as export_study
from rag.annotate.items import Item, unstorable
from rag.annotate.links import check_person
from rag.annotate.other_tools import export_to
from rag.annotate.past import PastWork
from rag.annotate.press_log import check_access, check_texts, find_person, press_content, standing_verdicts, storable
from rag.annotate.queries import ADJUDICATION, AUDIT, FLAG, UNDO, VERDICT, Row
from rag.annotate.schemes import flags_for
from rag.annotate.store import batches, people, presses, study_facts
from rag.annotate.types import (
    Annotator,
    Audit,
    Entry,
    Feedback,
    Inspection,
    Phase,
    Progress,
    Role,
    Tie,
    VerdictRecord,
    Work,
)
from rag.base.errors import LinkError, PressError, UsageError, check_type

_MAX_NAME_LENGTH = 100


class Study(PastWork):
    """A study; `open_study` returns it. Thread-safe. Methods raise `StudyError` if the database cannot be reached."""

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

    def invite(
        self,
        id: str,  # noqa: A002
        role: Role | None = None,
        *,
        days: float | None = None,
        new: bool = False,
    ) -> str:
        """Add a person, or replace a person's link. Return the token of the link, which is stored nowhere.

        Without `role`, a new person is an annotator, and an earlier one keeps the role. The link expires after `days`,
        or never. Raises `UsageError` for an id that cannot be used, or with `new` for an id that is taken.
        """
        check_person(id)
        if role not in (None, "annotator", "admin"):
            raise UsageError(f"the role should be annotator or admin, found {role!r:.60}")
        if days is not None and not 0 < days <= 36_500:
            raise UsageError(f"days should be more than 0 and at most 36,500, found {days}")
        token = self._links.make(id)
        link: dict[str, object] = {
            "token_hash": self._links.hash(token),
            "expires": None if days is None else self.clock() + days * 24 * 3600,
        }
        if role is not None:
            link["role"] = role
        with self.database.write() as connection:
            row = find_person(connection, id)
            if row is None:
                has_passed = not self.pools.get("training")
                first = {"id": id, "role": "annotator", "passed": has_passed, "attempt": 1, "exempt": False}
                connection.execute(sa.insert(people).values(first | link))
            elif new:
                raise UsageError(f"there is a person called {id!r:.60} already; use New link in their row")
            else:
                connection.execute(sa.update(people).where(people.c.id == id).values(link))
        return token

    def revoke(self, id: str) -> None:  # noqa: A002
        """End a person's link at once, and their leases; their ratings stay. Raises `UsageError` for an unknown id."""
        self._change(id, token_hash=None)

    def block(self, id: str, reason: str) -> None:  # noqa: A002
        """Block a person, who gets no more items. Raises `UsageError` for an unknown id, or without a reason."""
        if not reason.strip():
            raise UsageError("a reason to block a person is missing")
        self._change(id, blocked=storable("reason", reason, UsageError))

    def unblock(self, id: str) -> None:  # noqa: A002
        """Unblock a person. Gold items block them no more; after a failed training round, all its attempts are left."""
        with self.database.write() as connection:
            row = find_person(connection, id)
            if row is None:
                raise _unknown(id)
            if row.blocked is not None:
                values = {"exempt": True} if row.passed else {"attempt": row.attempt + 1}
                connection.execute(sa.update(people).where(people.c.id == id).values(values | {"blocked": None}))

    def assign(self, name: str, *, items: Collection[str], people: Collection[str]) -> None:
        """Give items, by their own ids, to named people only: a batch. It replaces an earlier batch of that name.

        Such an item comes before others, and is finished when each of its people has finished or flagged it. People of
        several batches of an item all get it. Without items or people, the batch ends, and its items are for everybody.
        Raises `UsageError` for an unknown person, or an item that is not one of the study to judge.
        """
        if not name.strip() or len(name) > _MAX_NAME_LENGTH or unstorable(name):
            raise UsageError(f"the name of a batch should be 1 to {_MAX_NAME_LENGTH} characters, found {name!r:.60}")
        rows = [{"name": name, "item": item, "annotator": person} for item in items for person in people]
        with self.database.write() as connection:
            for person in people:
                if find_person(connection, person) is None:
                    raise UsageError(f"no person called {person!r:.60}; invite them first")
            study_items = set(connection.execute(queries.STUDY_ITEMS).scalars())
            if unknown := [item for item in items if item not in study_items]:
                raise UsageError(f"no item called {unknown[0]!r:.60} is to be judged; items.jsonl of an export has all")
            connection.execute(sa.delete(batches).where(batches.c.name == name))
            for row in rows:
                pair = (batches.c.item == row["item"]) & (batches.c.annotator == row["annotator"])
                connection.execute(sa.delete(batches).where(pair))
                connection.execute(sa.insert(batches).values(row))
            connection.execute(queries.RECONSIDER_ALL, {"wanted": self.settings.annotators})

    def _change(self, id: str, **values: object) -> None:  # noqa: A002
        with self.database.write() as connection:
            if find_person(connection, id) is None:
                raise _unknown(id)
            connection.execute(sa.update(people).where(people.c.id == id).values(values))
            connection.execute(queries.RELEASE, {"person": id})

    # --- work ------------------------------------------------------------------------------------------------------

    def next(self, annotator: str) -> Work | None:
        """Return the person's current item, or lease the next one; None if none is left or the person is blocked.

        Items are leased in the order of the study, first come, first served. After an item come the others of the same
        answer, and then, if possible, an answer to another question.
        """
        with self.database.read() as connection:
            person = self._person(connection, annotator)
            if person.blocked is not None:
                return None
            assignment = self._queue.current_assignment(connection, person)
            if assignment is not None and self._queue.is_fresh(assignment):
                work = self._work(connection, person, assignment)
                if work is not None:
                    return work
        with self.database.write() as connection:
            person = self._person(connection, annotator)
            if person.blocked is not None:
                return None
            assignment = self._queue.current_assignment(connection, person)
            if assignment is not None:
                self._queue.start_lease(connection, assignment)
            else:
                self._queue.lease_next(connection, person)
                assignment = self._queue.current_assignment(connection, person)
            return None if assignment is None else self._work(connection, person, assignment)

    def _work(self, connection: Connection, person: Row, assignment: Row) -> Work | None:
        """Return what to send; None if another tab finished the item since `assignment` was read."""
        item, verdicts = self.item(assignment.item), standing_verdicts(connection, assignment)
        question = self._question(item, verdicts, assignment.phase)
        if question is None:
            return None
        can_undo = _last_press(connection, person.id) is not None
        return self._make_work(connection, person, assignment, question, verdicts, can_undo=can_undo)

    # --- presses ---------------------------------------------------------------------------------------------------

    def verdict(self, annotator: str, item: str, entry: Entry) -> Feedback | None:
        """Record a verdict on `Work.item.id`; returns after the commit, in training with feedback.

        Raises `PressError` if the person is blocked or never held the item, the question is not the one asked now (as
        in a second tab), the value is not among the options, or evidence or a reason is required and missing. With
        `Entry.shown`, also if another question was shown, or this one for less than `MIN_SHOWN`. A verdict after the
        lease has expired is recorded.
        """
        check_texts(entry)
        question, value = entry.question, entry.value
        with self.database.write() as connection:
            person = self._person(connection, annotator)
            assignment = self._assignment(connection, person, item)
            content = press_content(VERDICT, person.id, assignment.item, question, value)
            full_item = self.item(assignment.item)
            if self._is_repeated(connection, entry.press, content):
                return self._feedback(full_item, assignment, question, value)
            check_access(person)
            verdicts = standing_verdicts(connection, assignment)
            scheme_question = self._check_question(assignment, full_item, verdicts, question)
            seconds = self._check_shown(entry.shown, person.id, item, entry.press, question, entry.seconds)
            spans = self._check_answer(full_item, scheme_question, entry)
            self._record_entry(connection, assignment, entry, content, spans=spans, seconds=seconds)
            if self._question(full_item, verdicts | {question: value}, assignment.phase) is None:
                self._finish(connection, person, assignment, "done")
            else:
                self._queue.renew(connection, person, assignment)
            return self._feedback(full_item, assignment, question, value)

    def flag(
        self, annotator: str, item: str, reason: str, *, press: str, comment: str = "", shown: str | None = None
    ) -> None:
        """Take an item out of this person's queue, with a reason of `flags_for(item.kind)`; others still rate it.

        The item has had this person: nobody else gets it for them. Raises `PressError`, as for `verdict`.
        """
        comment = storable("comment", comment, PressError)
        with self.database.write() as connection:
            person = self._person(connection, annotator)
            assignment = self._assignment(connection, person, item)
            content = press_content(FLAG, person.id, assignment.item, FLAG, reason)
            if self._is_repeated(connection, press, content):
                return
            check_access(person)
            reasons = [flag.value for flag in flags_for(self.item(assignment.item).kind)]
            if reason not in reasons:
                raise PressError(f"the reasons for a flag are {', '.join(reasons)}, found {reason!r:.60}")
            if assignment.state != "leased":
                raise PressError("this item is finished already, perhaps in another tab")
            if shown is not None:
                self.shown.check(shown, person.id, item, press)
            self._record(connection, assignment, press, content)
            self._record_comment(connection, assignment, comment)
            self._finish(connection, person, assignment, "flagged")

    def undo(self, annotator: str, *, press: str) -> None:
        """Take back this person's last press; it stays in the log, and `Work.entered` has what was entered.

        Raises `PressError` if there is none, or the person is blocked. Presses of the training round are not
        taken back: its feedback has been seen.
        """
        with self.database.write() as connection:
            person = self._person(connection, annotator)
            if self._is_repeated(connection, press, {"kind": UNDO, "annotator": person.id}):
                return
            last = _last_press(connection, person.id)
            if last is None:
                raise PressError("there is nothing to take back")
            check_access(person)
            parameters = {"person": person.id, "item": last.item, "attempt": last.attempt}
            assignment = connection.execute(queries.ASSIGNMENT_OF, parameters).one()
            content = press_content(UNDO, person.id, last.item, last.question)
            self._record(connection, assignment, press, content, undoes=last.id)
            if assignment.state == "leased":
                self._queue.renew(connection, person, assignment)
            else:
                self._reopen(connection, assignment)

    def can_undo(self, annotator: str) -> bool:
        """Whether there is a press to take back, also when nothing is left to do."""
        with self.database.read() as connection:
            return _last_press(connection, self._person(connection, annotator).id) is not None

    def _finish(self, connection: Connection, person: Row, assignment: Row, state: str) -> None:
        connection.execute(queries.END, {"key": assignment.handle, "ended": state})
        if assignment.phase == "study":
            self._reconsider(connection, assignment.item)
        else:
            if assignment.phase == "training":
                self._end_training(connection, person)
            else:
                self._check_gold(connection, person)
            person = self._person(connection, person.id)
        # The next item in the same commit: the page that follows only reads.
        if person.blocked is None:
            self._queue.lease_next(connection, person)

    def is_settled(self) -> bool:
        """Whether the column `open` is right for all items.

        It may be wrong if `annotators` was changed while another process ran with the old number.
        """
        with self.database.read() as connection:
            return connection.execute(queries.STALE_ITEM, {"wanted": self.settings.annotators}).first() is None

    def reconsider_all(self) -> None:
        """Decide again which items need more people, after `annotators` has changed."""
        with self.database.write() as connection:
            connection.execute(queries.RECONSIDER_ALL, {"wanted": self.settings.annotators})
            number = sa.update(study_facts).where(study_facts.c.name == "annotators")
            connection.execute(number.values(value=str(self.settings.annotators)))

    def _feedback(self, item: Item, assignment: Row, question: str, value: str) -> Feedback | None:
        expected = item.expected.get(question)
        if assignment.phase != "training" or expected is None:
            return None
        return Feedback(is_right(value, expected), expected, item.explanation)

    def _end_training(self, connection: Connection, person: Row) -> None:
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

    def _check_gold(self, connection: Connection, person: Row) -> None:
        """Block a person with too few gold items right, if the settings say so."""
        mark = self.settings.block_below
        if not mark or person.exempt:
            return
        outcomes = self._outcomes(connection, person, "gold", 0)
        right, n = sum(outcomes), len(outcomes)
        if n >= self.settings.block_after and right / n < mark:
            reason = f"{right} of {n} gold items right, the mark is {mark:.0%}"
            connection.execute(sa.update(people).where(people.c.id == person.id).values(blocked=reason))
            connection.execute(queries.RELEASE, {"person": person.id})

    def _outcomes(self, connection: Connection, person: Row, phase: Phase, attempt: int) -> list[bool]:
        """Whether each finished training or gold item of a person is right."""
        parameters = {"person": person.id, "phase": phase, "attempt": attempt}
        return [
            item_is_right(self.item(assignment.item), standing_verdicts(connection, assignment), self.scheme)
            for assignment in connection.execute(queries.FINISHED_ASSIGNMENTS, parameters).all()
        ]

    # --- admin -----------------------------------------------------------------------------------------------------

    def progress(self) -> Progress:
        """Return how far the study and its people are."""
        return review.progress(self)

    def audit_sample(self, n: int) -> list[Audit]:
        """Return up to n ratings that nobody has audited, of items that their annotators have finished, by chance."""
        return review.audit_sample(self, n)

    def ties(self) -> list[Tie]:
        """Return the ties of finished items that nobody has adjudicated."""
        return review.ties(self)

    def verdicts(
        self,
        *,
        annotator: str = "",
        question: str = "",
        value: str = "",
        item: str = "",
        fast: bool = False,
        start: int = 0,
        limit: int = 200,
    ) -> list[VerdictRecord]:
        """Return single verdicts and flags, the last one first, also those that were taken back.

        Each filter that is given has to fit; `fast` are those in less than `fast_seconds` of the settings.
        """
        filters = {"annotator": annotator, "question": question, "value": value, "item": item}
        return review.verdicts(self, filters, fast=fast, start=start, limit=limit)

    def inspect(self, item: str) -> Inspection:
        """Return an item, by its own id, with all verdicts and comments; raises `UsageError` if there is none."""
        return review.inspect(self, item)

    def record_audit(
        self,
        admin: str,
        item: str,
        question: str,
        value: str,
        *,
        press: str,
        reason: str = "",
        shown: str | None = None,
    ) -> None:
        """Record what an admin answers about an item (by its own id), to check all who answered the question.

        Raises `PressError`; `shown` is as for `verdict`, made by `Study.shown.make`.
        """
        self._review(AUDIT, admin, item, question, value, press, reason, shown=shown)

    def adjudicate(
        self,
        admin: str,
        item: str,
        question: str,
        value: str,
        *,
        press: str,
        reason: str = "",
        overwrite: bool = False,
        shown: str | None = None,
    ) -> None:
        """Decide a question about an item (by its own id) in the place of the consensus.

        `overwrite` replaces an earlier decision; without it, a question that is decided raises `PressError`.
        """
        self._review(ADJUDICATION, admin, item, question, value, press, reason, overwrite=overwrite, shown=shown)

    def _review(
        self,
        kind: str,
        admin: str,
        item: str,
        question: str,
        value: str,
        press: str,
        reason: str,
        *,
        overwrite: bool = True,
        shown: str | None = None,
    ) -> None:
        reason = storable("reason", reason, PressError)
        content = press_content(kind, admin, item, question, value)
        for name, text in content.items():
            storable(name, text, PressError)
        try:
            full_item = self.item(item)
        except UsageError as error:
            raise PressError(str(error)) from error
        questions = [candidate for candidate in self.scheme.questions_of(full_item.unit) if candidate.name == question]
        if not questions or value not in questions[0].values:
            raise PressError(f"{value!r:.60} is no answer to a question {question!r:.60} of this item")
        with self.database.write() as connection:
            if self._person(connection, admin).role != "admin":
                raise PressError("only an admin can do this")
            if self._is_repeated(connection, press, content):
                return
            self._check_shown(shown, admin, item, press, question, None)
            if not overwrite:
                decisions = sa.select(presses.c.annotator, presses.c.value).where(
                    presses.c.kind == kind, presses.c.item == item, presses.c.question == question
                )
                earlier = connection.execute(decisions.order_by(presses.c.id.desc()).limit(1)).first()
                if earlier is not None:
                    raise PressError(f"{earlier.annotator} has decided this: {earlier.value}; load the page again")
            values = {
                "press": press,
                "attempt": 0,
                "phase": kind,
                "evidence": "[]",
                "reason": reason,
                "at": self.clock(),
            }
            connection.execute(queries.ADD_PRESS, content | values)

    def export(self, folder: str | Path, *, exclude: Collection[str] = (), to: str | None = None) -> Mapping[str, Any]:
        """Write ratings, answers with consensus and the manifest to a folder; return the manifest.

        With `to` it writes the formats of another tool instead (`rag.annotate.other_tools.export_to`).
        What the people in `exclude` said counts for nothing. Raises `UserError` for an unknown person, and for a folder
        that cannot be written or that another process writes.
        """
        check_type("exclude", exclude, "a list of names", list, tuple, set, frozenset)
        if to is not None:
            return export_to(self, Path(folder), to, exclude=exclude)
        return export_study(self, Path(folder), exclude=exclude)

    def ready(self) -> None:
        """Raise `StudyError` if the database cannot be reached."""
        with self.database.read() as connection:
            connection.execute(sa.select(people.c.id).limit(1)).first()

    def close(self) -> None:
        """Close the connections to the database."""
        self.database.close()


def _annotator(row: Row) -> Annotator:
    return Annotator(row.id, row.role, row.passed, row.blocked)


def _unknown(person: str) -> UsageError:
    return UsageError(f"no person called {person!r:.60}; rag annotate progress lists them")


def _last_press(connection: Connection, person: str) -> Row | None:
    return connection.execute(queries.LAST_PRESS, {"person": person}).first()
