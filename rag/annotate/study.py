"""An annotation study: its people, the item that each gets next, and their verdicts."""

import hmac
import time
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
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
from rag.annotate.queries import ADJUDICATION, AUDIT, FLAG, UNDO, VERDICT, Row
from rag.annotate.queue import Queue
from rag.annotate.scheme_file import open_scheme
from rag.annotate.schemes import Question, flags_for
from rag.annotate.settings import Settings
from rag.annotate.store import Database, pairs, people, presses, study_facts
from rag.annotate.types import (
    MAX_EVIDENCE,
    Annotator,
    Audit,
    Evidence,
    Feedback,
    Phase,
    Progress,
    Role,
    Tie,
    Work,
)
from rag.base.errors import LinkError, PressError, UsageError, check_type

_MAX_REASON_LENGTH, _MAX_PRESS_LENGTH, _MAX_PAUSE_SECONDS = 10_000, 100, 24 * 3600.0
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
        self._links, self._clock = links, clock
        self.item = lru_cache(_CACHED_ITEMS)(self._read_item)
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
            "expires": None if days is None else self._clock() + days * 24 * 3600,
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

    def _change(self, id: str, **values: object) -> None:  # noqa: A002
        with self.database.write() as connection:
            if _find_person(connection, id) is None:
                raise _unknown(id)
            connection.execute(sa.update(people).where(people.c.id == id).values(values))
            connection.execute(queries.RELEASE, {"person": id})

    def _person(self, connection: Connection, person: str) -> Row:
        row = _find_person(connection, person)
        if row is None or row.token_hash is None or (row.expires is not None and row.expires <= self._clock()):
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
        return Work(
            item=redact(item, assignment.handle, question),
            question=question,
            verdicts=verdicts,
            phase="training" if assignment.phase == "training" else "study",
            done_count=done_count,
            left_count=left_count,
            press=uuid.uuid4().hex,
            can_undo=_last_press(connection, person.id) is not None,
            attempt=assignment.attempt,
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
        seconds: float | None = None,
    ) -> Feedback | None:
        """Record a verdict on `Work.item.id`; returns after the commit, in training with feedback.

        Raises `PressError` if the person is blocked or never held the item, the question is not the one asked now (as
        in a second tab), the value is not among the options, or evidence or a reason is required and missing. A verdict
        after the lease has expired is recorded. `seconds` is the time for this question; without it, the time since the
        person's last press.
        """
        reason = _storable("reason", reason, PressError)
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
            if value not in scheme_question.values:
                values = ", ".join(scheme_question.values)
                raise PressError(f"the answers to {question!r} are {values}, found {value!r:.60}")
            spans = self._spans(full_item, scheme_question, value, evidence)
            if self.settings.reasons == "required" and not reason.strip():
                raise PressError("a reason is missing; write why")
            self._record(connection, assignment, press, content, spans=spans, reason=reason, seconds=seconds)
            if self._question(full_item, verdicts | {question: value}, assignment.phase) is None:
                self._finish(connection, person, assignment, "done")
            else:
                self._queue.renew(connection, person, assignment)
            return self._feedback(full_item, assignment, question, value)

    def flag(self, annotator: str, item: str, reason: str, *, press: str) -> None:
        """Take an item out of this person's queue, with a reason of `flags_for(item.kind)`; others still rate it.

        Raises `PressError`, as for `verdict`.
        """
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
            self._record(connection, assignment, press, content)
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
                connection.execute(queries.REOPEN, {"key": assignment.handle, "now": self._clock()})
                self._reconsider(connection, assignment.item)

    def can_undo(self, annotator: str) -> bool:
        """Whether there is a press to take back, also when nothing is left to do."""
        with self.database.read() as connection:
            return _last_press(connection, self._person(connection, annotator).id) is not None

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
        now = self._clock()
        if seconds is None and content["kind"] != UNDO:
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

    def record_audit(self, admin: str, item: str, question: str, value: str, *, press: str, reason: str = "") -> None:
        """Record what an admin answers about an item (by its own id), to check all who answered the question.

        Raises `PressError`.
        """
        self._review(AUDIT, admin, item, question, value, press, reason)

    def adjudicate(
        self, admin: str, item: str, question: str, value: str, *, press: str, reason: str = "", overwrite: bool = False
    ) -> None:
        """Decide a question about an item (by its own id) in the place of the consensus.

        `overwrite` replaces an earlier decision; without it, a question that is decided raises `PressError`.
        """
        self._review(ADJUDICATION, admin, item, question, value, press, reason, overwrite=overwrite)

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
                "at": self._clock(),
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


def redact(item: Item, handle: str, question: Question) -> Item:
    """Return the item without what a browser must not get while the question is asked."""
    visible_item = replace(item, id=handle, answer="", group="", system="", expected={}, explanation="", flags=())
    if question.source == "hidden":
        visible_item = replace(visible_item, sources=(), table=None)
        if item.kind != "qa":  # a summary or caption is judged by itself
            visible_item = replace(visible_item, query="", turns=())
    if "question" in question.hides:
        visible_item = replace(visible_item, query="", turns=())
    if "claim" in question.hides:
        visible_item = replace(visible_item, text="", before="", after="")
    return visible_item


def _annotator(row: Row) -> Annotator:
    return Annotator(row.id, row.role, row.passed, row.blocked)


def _check_access(person: Row) -> None:
    if person.blocked is not None:
        raise PressError("your part in this study has ended; nothing more is recorded")


def _unknown(person: str) -> UsageError:
    return UsageError(f"no person called {person!r:.60}; rag annotate progress lists them")


def _find_person(connection: Connection, person: str) -> Row | None:
    return None if unstorable(person) else connection.execute(queries.PERSON, {"person": person}).first()


def _verdicts(connection: Connection, assignment: Row) -> dict[str, str]:
    """Return a person's verdicts on an item by question, and the flag, without those that were taken back."""
    parameters = {"person": assignment.annotator, "item": assignment.item, "attempt": assignment.attempt}
    return {question: value for question, value in connection.execute(queries.STANDING, parameters)}  # noqa: C416


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
