"""An annotation study: its people, the item that each gets next, and their verdicts."""

import hmac
import time
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from autoais.base.io.jsonl import dumps, parse_object
from rag.annotate import queries, review
from rag.annotate.expected import is_right, item_is_right
from rag.annotate.export import export as export_study
from rag.annotate.items import Item, item_of, unstorable
from rag.annotate.links import Links, check_person
from rag.annotate.other_tools import export_to
from rag.annotate.past import past_items, redact
from rag.annotate.queries import ADJUDICATION, AUDIT, COMMENT, FLAG, UNDO, VERDICT, Row
from rag.annotate.queue import Queue
from rag.annotate.scheme_file import open_scheme
from rag.annotate.schemes import Question, flags_for
from rag.annotate.settings import Settings
from rag.annotate.shown import ShownTokens, limit_seconds
from rag.annotate.store import Database, batches, pairs, people, presses, study_facts
from rag.annotate.types import (
    MAX_EVIDENCE,
    Annotator,
    Audit,
    Evidence,
    Feedback,
    Inspection,
    PastItem,
    Phase,
    Progress,
    Role,
    Tie,
    VerdictRecord,
    Work,
)
from rag.base.errors import LinkError, PressError, UsageError, check_type

_MAX_REASON_LENGTH, _MAX_PRESS_LENGTH, _MAX_NAME_LENGTH, _MAX_PAUSE_SECONDS = 10_000, 100, 100, 24 * 3600.0
_CACHED_ITEMS = 2000


class Study:
    """A study; `open_study` returns it. Thread-safe. Methods raise `StudyError` if the database cannot be reached."""

    def __init__(
        self,
        folder: Path,
        settings: Settings,
        database: Database,
        links: Links,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.folder, self.settings, self.scheme = folder, settings, open_scheme(settings.scheme, folder)
        self.database = database
        self._links, self.clock = links, clock
        self.shown = ShownTokens(links, clock)
        self.item = lru_cache(_CACHED_ITEMS)(self._read_item)
        database.upgrade()
        with database.read() as connection:
            self.pools: dict[str, int] = pairs(connection, queries.POOLS)
        self._queue = Queue(settings, self.pools, links, clock)

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
            row = _find_person(connection, id)
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
        self._change(id, blocked=_storable("reason", reason, UsageError))

    def unblock(self, id: str) -> None:  # noqa: A002
        """Unblock a person. Gold items block them no more; after a failed training round, all its attempts are left."""
        with self.database.write() as connection:
            row = _find_person(connection, id)
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
                if _find_person(connection, person) is None:
                    raise UsageError(f"no person called {person!r:.60}; invite them first")
            known = set(connection.execute(queries.STUDY_ITEMS).scalars())
            if unknown := [item for item in items if item not in known]:
                raise UsageError(f"no item called {unknown[0]!r:.60} is to be judged; items.jsonl of an export has all")
            connection.execute(sa.delete(batches).where(batches.c.name == name))
            for row in rows:
                pair = (batches.c.item == row["item"]) & (batches.c.annotator == row["annotator"])
                connection.execute(sa.delete(batches).where(pair))
                connection.execute(sa.insert(batches).values(row))
            connection.execute(queries.RECONSIDER_ALL, {"wanted": self.settings.annotators})

    def _change(self, id: str, **values: object) -> None:  # noqa: A002
        with self.database.write() as connection:
            if _find_person(connection, id) is None:
                raise _unknown(id)
            connection.execute(sa.update(people).where(people.c.id == id).values(values))
            connection.execute(queries.RELEASE, {"person": id})

    def _person(self, connection: Connection, person: str) -> Row:
        row = _find_person(connection, person)
        if row is None or row.token_hash is None or (row.expires is not None and row.expires <= self.clock()):
            raise LinkError
        return row

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
        item, verdicts = self.item(assignment.item), _verdicts(connection, assignment)
        question = self._question(item, verdicts, assignment.phase)
        if question is None:
            return None
        done_count, left_count = self._queue.counts(connection, person)
        press = uuid.uuid4().hex
        return Work(
            item=redact(item, assignment.handle, question),
            question=question,
            verdicts=verdicts,
            phase="training" if assignment.phase == "training" else "study",
            done_count=done_count,
            left_count=left_count,
            press=press,
            can_undo=_last_press(connection, person.id) is not None,
            attempt=assignment.attempt,
            shown=self.shown.make(person.id, assignment.handle, question.name, press),
        )

    def _question(self, item: Item, verdicts: Mapping[str, str], phase: str) -> Question | None:
        if phase == "training":  # it ends with the last expected verdict
            questions = item.expected.keys() - {"flag"}
            if questions and questions <= verdicts.keys():
                return None
        return self.scheme.next_question(item.unit, verdicts, has_source=item.has_source)

    def _read_item(self, key: str) -> Item:
        with self.database.read() as connection:
            row = connection.execute(queries.ITEM, {"item": key}).scalar()
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
        comment: str = "",
        seconds: float | None = None,
        shown: str | None = None,
    ) -> Feedback | None:
        """Record a verdict on `Work.item.id`; returns after the commit, in training with feedback.

        Raises `PressError` if the person is blocked or never held the item, the question is not the one asked now (as
        in a second tab), the value is not among the options, or evidence or a reason is required and missing. With
        `shown`, which is `Work.shown`, also if another question was shown, or this one for less than `MIN_SHOWN`. A
        verdict after the lease has expired is recorded. `seconds` is the time for this question, at most that since it
        was `shown`; without it, the time since then, or since the person's last press. `comment` is on the item.
        """
        reason, comment = _storable("reason", reason, PressError), _storable("comment", comment, PressError)
        with self.database.write() as connection:
            person = self._person(connection, annotator)
            assignment = self._assignment(connection, person, item)
            content = {
                "kind": VERDICT,
                "annotator": person.id,
                "item": assignment.item,
                "question": question,
                "value": value,
            }
            full_item = self.item(assignment.item)
            if self._is_repeated(connection, press, content):
                return self._feedback(full_item, assignment, question, value)
            _check_access(person)
            verdicts = _verdicts(connection, assignment)
            scheme_question = self._check_question(assignment, full_item, verdicts, question)
            seconds = self._check_shown(shown, person.id, item, press, question, seconds)
            spans = self._check_answer(full_item, scheme_question, value, evidence, reason)
            self._record(connection, assignment, press, content, spans=spans, reason=reason, seconds=seconds)
            self._record_comment(connection, assignment, comment)
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
        comment = _storable("comment", comment, PressError)
        with self.database.write() as connection:
            person = self._person(connection, annotator)
            assignment = self._assignment(connection, person, item)
            content = {
                "kind": FLAG,
                "annotator": person.id,
                "item": assignment.item,
                "question": "flag",
                "value": reason,
            }
            if self._is_repeated(connection, press, content):
                return
            _check_access(person)
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
        """Take back this person's last press; it stays in the log.

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
            _check_access(person)
            parameters = {"person": person.id, "item": last.item, "attempt": last.attempt}
            assignment = connection.execute(queries.ASSIGNMENT_OF, parameters).one()
            content = {"kind": UNDO, "annotator": person.id, "item": last.item, "question": last.question, "value": ""}
            self._record(connection, assignment, press, content, undoes=last.id)
            if assignment.state == "leased":
                self._queue.renew(connection, person, assignment)
            else:
                self._reopen(connection, assignment)

    def can_undo(self, annotator: str) -> bool:
        """Whether there is a press to take back, also when nothing is left to do."""
        with self.database.read() as connection:
            return _last_press(connection, self._person(connection, annotator).id) is not None

    # --- past items ------------------------------------------------------------------------------------------------

    def past(self, annotator: str, *, start: int = 0, limit: int = 50) -> list[PastItem]:
        """Return what a person has finished or flagged, the last item first; none of the training round."""
        with self.database.read(snapshot=True) as connection:
            person = self._person(connection, annotator)
            query = queries.PAST_ASSIGNMENTS.offset(start).limit(limit)
            return past_items(self, connection, person.id, connection.execute(query, {"person": person.id}).all())

    def past_item(self, annotator: str, item: str) -> PastItem:
        """Return what a person said about a finished item (`Work.item.id`); raises `PressError` if it is none."""
        with self.database.read(snapshot=True) as connection:
            person = self._person(connection, annotator)
            assignment = self._assignment(connection, person, item)
            _check_past(assignment)
            return past_items(self, connection, person.id, [assignment])[0]

    def past_work(self, annotator: str, item: str, question: str) -> Work:
        """Return a question that a person has answered about a finished item, to answer it again with `revise`.

        Raises `PressError` if there is none.
        """
        with self.database.read(snapshot=True) as connection:
            person = self._person(connection, annotator)
            assignment = self._assignment(connection, person, item)
            _check_past(assignment)
            verdicts = _verdicts(connection, assignment)
            full_item = self.item(assignment.item)
            past_question = self._past_question(full_item, verdicts, question)
            done_count, left_count = self._queue.counts(connection, person)
            press = uuid.uuid4().hex
            return Work(
                item=redact(full_item, assignment.handle, past_question),
                question=past_question,
                verdicts=verdicts,
                phase="study",
                done_count=done_count,
                left_count=left_count,
                press=press,
                can_undo=False,
                shown=self.shown.make(person.id, assignment.handle, question, press),
            )

    def revise(
        self,
        annotator: str,
        item: str,
        question: str,
        value: str,
        *,
        press: str,
        evidence: Sequence[Evidence] = (),
        reason: str = "",
        comment: str = "",
        seconds: float | None = None,
        shown: str | None = None,
    ) -> bool:
        """Replace this person's verdict on a finished item. The log keeps the first one; exports take the last.

        Later verdicts that do not follow from the new one are taken back too. Returns whether the item is still
        finished; if not, what is to be asked after the new verdict is asked next. Raises `PressError`, as for
        `verdict`, and for an item that is flagged or of the training round.
        """
        reason, comment = _storable("reason", reason, PressError), _storable("comment", comment, PressError)
        with self.database.write() as connection:
            person = self._person(connection, annotator)
            assignment = self._assignment(connection, person, item)
            content = {
                "kind": VERDICT,
                "annotator": person.id,
                "item": assignment.item,
                "question": question,
                "value": value,
            }
            if self._is_repeated(connection, press, content):
                return bool(assignment.state != "leased")
            _check_access(person)
            _check_past(assignment)
            full_item, verdicts = self.item(assignment.item), _verdicts(connection, assignment)
            past_question = self._past_question(full_item, verdicts, question)
            seconds = self._check_shown(shown, person.id, item, press, question, seconds)
            spans = self._check_answer(full_item, past_question, value, evidence, reason)
            remaining = self._follow(full_item, verdicts | {question: value})
            self._take_back(connection, assignment, (verdicts.keys() - remaining.keys()) | {question})
            self._record(connection, assignment, press, content, spans=spans, reason=reason, seconds=seconds)
            self._record_comment(connection, assignment, comment)
            is_finished = self._question(full_item, remaining, assignment.phase) is None
            if not is_finished:
                self._reopen(connection, assignment)
            return is_finished

    def take_back_flag(self, annotator: str, item: str, *, press: str) -> None:
        """Take back a person's flag, also an old one: the item is asked next. Raises `PressError` if there is none."""
        with self.database.write() as connection:
            person = self._person(connection, annotator)
            assignment = self._assignment(connection, person, item)
            content = {"kind": UNDO, "annotator": person.id, "item": assignment.item, "question": FLAG, "value": ""}
            if self._is_repeated(connection, press, content):
                return
            _check_access(person)
            if assignment.state != "flagged" or assignment.phase == "training":
                raise PressError("you have not flagged this item, or have taken the flag back")
            self._take_back(connection, assignment, {FLAG}, press=press)
            self._reopen(connection, assignment)

    def comment(self, annotator: str, item: str, text: str, *, press: str) -> None:
        """Record a comment on an item that this person was given; the last one counts, and an empty one removes it.

        Raises `PressError`, as for `verdict`.
        """
        text = _storable("comment", text, PressError)
        with self.database.write() as connection:
            person = self._person(connection, annotator)
            assignment = self._assignment(connection, person, item)
            content = {"kind": COMMENT, "annotator": person.id, "item": assignment.item, "reason": text}
            if not self._is_repeated(connection, press, content):
                _check_access(person)
                content |= {"question": COMMENT, "value": ""}
                self._record(connection, assignment, press, content, reason=text)

    def _past_question(self, item: Item, verdicts: Mapping[str, str], question: str) -> Question:
        if "flag" in verdicts:
            raise PressError("you flagged this item; take the flag back first")
        if question not in verdicts:
            raise PressError(f"you have not answered {question!r:.60} about this item")
        return self.scheme.question_of(item.unit, question)

    def _follow(self, item: Item, verdicts: Mapping[str, str]) -> dict[str, str]:
        """Return the verdicts on questions that are asked after the verdicts before them."""
        remaining: dict[str, str] = {}
        for question in self.scheme.questions_of(item.unit):
            is_asked = all(remaining.get(name) in values for name, values in question.asked_if.items())
            if question.name in verdicts and is_asked:
                remaining[question.name] = verdicts[question.name]
        return remaining

    def _take_back(
        self, connection: Connection, assignment: Row, questions: Collection[str], *, press: str = ""
    ) -> None:
        """Take back what a person said last to some questions about an item."""
        parameters = {"person": assignment.annotator, "item": assignment.item, "attempt": assignment.attempt}
        for row in connection.execute(queries.STANDING, parameters).all():
            if row.question in questions:
                content = {"kind": UNDO, "annotator": assignment.annotator, "item": assignment.item, "value": ""}
                content["question"] = row.question
                self._record(connection, assignment, press or uuid.uuid4().hex, content, undoes=row.id)

    def _reopen(self, connection: Connection, assignment: Row) -> None:
        """Ask about a finished item again."""
        connection.execute(queries.REOPEN, {"key": assignment.handle, "now": self.clock()})
        self._reconsider(connection, assignment.item)

    def _record_comment(self, connection: Connection, assignment: Row, comment: str) -> None:
        if comment.strip():
            content = {"kind": COMMENT, "annotator": assignment.annotator, "item": assignment.item}
            content |= {"question": COMMENT, "value": ""}
            self._record(connection, assignment, uuid.uuid4().hex, content, reason=comment)

    # --- checks and rows -------------------------------------------------------------------------------------------

    def _assignment(self, connection: Connection, person: Row, handle: str) -> Row:
        parameters = {"person": person.id, "handle": handle}
        assignment = None if unstorable(handle) else connection.execute(queries.ASSIGNMENT, parameters).first()
        if assignment is None:
            raise PressError("this item was not given to you")
        return assignment

    def _is_repeated(self, connection: Connection, press: str, content: Mapping[str, str]) -> bool:
        """Whether the press is recorded already; raises `PressError` if it was for something else."""
        if not isinstance(press, str) or not 1 <= len(press) <= _MAX_PRESS_LENGTH or not press.isprintable():
            raise PressError(f"the id of a press should be 1 to {_MAX_PRESS_LENGTH} printable characters")
        row = connection.execute(queries.PRESS, {"press": press}).first()
        if row is None:
            return False
        if any(getattr(row, name) != value for name, value in content.items()):
            raise PressError("this press was used before, for something else; load the page again")
        return True

    def _check_question(self, assignment: Row, item: Item, verdicts: Mapping[str, str], question: str) -> Question:
        if assignment.state != "leased":
            raise PressError("this item is finished already, perhaps in another tab")
        current = self._question(item, verdicts, assignment.phase)
        if current is None or current.name != question:
            raise PressError(f"question {question!r:.60} is not the one asked now, perhaps because of another tab")
        return current

    def _check_shown(
        self, token: str | None, person: str, item: str, press: str, question: str, seconds: float | None
    ) -> float | None:
        """Return the seconds that count for an answer to what was shown. Raises `PressError`, as `verdict` says."""
        if token is None:
            return seconds
        shown = self.shown.check(token, person, item, press)
        if shown.question != question:
            raise PressError("the answer does not belong to the question that was shown; answer again")
        return limit_seconds(seconds, shown.seconds)

    def _check_answer(
        self, item: Item, question: Question, value: str, evidence: Sequence[Evidence], reason: str
    ) -> str:
        """Return the evidence as JSON; raises `PressError` for an answer that is none, or lacks what is required."""
        if value not in question.values:
            values = ", ".join(question.values)
            raise PressError(f"the answers to {question.name!r} are {values}, found {value!r:.60}")
        spans = self._spans(item, question, value, evidence)
        if self.settings.reasons == "required" and not reason.strip():
            raise PressError("a reason is missing; write why")
        return spans

    def _spans(self, item: Item, question: Question, value: str, evidence: Sequence[Evidence]) -> str:
        """Return the evidence as JSON; raises `PressError` for what is not in the sources, or is missing."""
        lengths = {source.id: len(source.text) for source in item.sources}
        if evidence and question.words_for and value not in question.words_for:
            raise PressError(
                "words are marked, but the answer is that there are none; unmark them, or answer otherwise"
            )
        if evidence and self.settings.evidence == "off" and not question.words_for:
            raise PressError("this study takes no evidence")
        if len(evidence) > MAX_EVIDENCE:
            raise PressError(f"there should be at most {MAX_EVIDENCE} pieces of evidence, found {len(evidence)}")
        for span in evidence:
            if span.passage not in lengths or not 0 <= span.start < span.end <= lengths[span.passage]:
                raise PressError(f"the evidence {span.start} to {span.end} is not in the sources of the item")
        if value in question.words_for and not evidence:
            raise PressError("no words are marked; mark them in the passage, or answer that there are none")
        # The evidence of a table is its highlighted cells: there is no text to select.
        if self.settings.evidence == "required" and value in question.evidence_for and lengths and not evidence:
            raise PressError("the evidence is missing; select what supports the text in the source")
        return dumps([{"passage": span.passage, "start": span.start, "end": span.end} for span in evidence])

    def _record(
        self,
        connection: Connection,
        assignment: Row,
        press: str,
        content: Mapping[str, str],
        *,
        spans: str = "[]",
        reason: str = "",
        seconds: float | None = None,
        undoes: int | None = None,
    ) -> None:
        now = self.clock()
        if seconds is None and content["kind"] in (VERDICT, FLAG):
            last = connection.execute(queries.LAST_TIME, {"person": assignment.annotator}).scalar()
            seconds = now - max(assignment.opened, 0.0 if last is None else last)
        # Not if a clock was set back or forward, nor for NaN.
        is_plausible = seconds is not None and 0 <= seconds <= _MAX_PAUSE_SECONDS
        values = {
            "press": press,
            "attempt": assignment.attempt,
            "phase": assignment.phase,
            "evidence": spans,
            "reason": reason,
            "seconds": seconds if is_plausible else None,
            "at": now,
            "undoes": undoes,
        }
        connection.execute(queries.ADD_PRESS, dict(content) | values)

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

    def _reconsider(self, connection: Connection, item: str) -> None:
        connection.execute(queries.RECONSIDER, {"item": item, "wanted": self.settings.annotators})

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
            item_is_right(self.item(assignment.item), _verdicts(connection, assignment), self.scheme)
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
        reason = _storable("reason", reason, PressError)
        content = {"kind": kind, "annotator": admin, "item": item, "question": question, "value": value}
        for name, text in content.items():
            _storable(name, text, PressError)
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


def _check_access(person: Row) -> None:
    if person.blocked is not None:
        raise PressError("your part in this study has ended; nothing more is recorded")


def _check_past(assignment: Row) -> None:
    if assignment.phase == "training":
        raise PressError("items of the training round are not looked at again")
    if assignment.state == "leased":
        raise PressError("you have not finished this item")


def _unknown(person: str) -> UsageError:
    return UsageError(f"no person called {person!r:.60}; rag annotate progress lists them")


def _find_person(connection: Connection, person: str) -> Row | None:
    return None if unstorable(person) else connection.execute(queries.PERSON, {"person": person}).first()


def _verdicts(connection: Connection, assignment: Row) -> dict[str, str]:
    """Return a person's verdicts on an item by question, and the flag, without those that were taken back."""
    parameters = {"person": assignment.annotator, "item": assignment.item, "attempt": assignment.attempt}
    return {row.question: row.value for row in connection.execute(queries.STANDING, parameters)}


def _last_press(connection: Connection, person: str) -> Row | None:
    return connection.execute(queries.LAST_PRESS, {"person": person}).first()


def _storable(name: str, text: str, error: type[UsageError] | type[PressError]) -> str:
    """Return the text; raises an error if it is too long, or holds what no database stores."""
    if not isinstance(text, str):
        raise error(f"the {name} should be a string, found {type(text).__name__}")
    if wrong := unstorable(text):
        raise error(f"the {name} holds {wrong}")
    if len(text) > _MAX_REASON_LENGTH:
        raise error(f"the {name} has {len(text):,} characters; at most {_MAX_REASON_LENGTH:,} are kept")
    return text
