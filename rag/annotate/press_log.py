"""What a study records: who may press, what is checked first, and the row that is written."""

import time
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from sqlalchemy import Connection

from autoais.base.io.jsonl import dumps, parse_object
from rag.annotate import queries
from rag.annotate.items import Item, item_of, unstorable
from rag.annotate.links import Links
from rag.annotate.queries import COMMENT, FLAG, UNDO, VERDICT, Row
from rag.annotate.queue import Queue
from rag.annotate.ratings import evidence_in
from rag.annotate.redact import redact
from rag.annotate.scheme_file import open_scheme
from rag.annotate.schemes import Question
from rag.annotate.settings import Settings
from rag.annotate.shown import ShownTokens, limit_seconds
from rag.annotate.store import Database, pairs
from rag.annotate.types import MAX_EVIDENCE, Entry, Evidence, Work
from rag.base.errors import LinkError, PressError, UsageError

_MAX_REASON_LENGTH, _MAX_PRESS_LENGTH, _MAX_PAUSE_SECONDS = 10_000, 100, 24 * 3600.0
_CACHED_ITEMS = 2000


class PressLog:
    """A study as its parts share it: reading people, items and assignments, checking presses and writing them."""

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

    def _read_item(self, key: str) -> Item:
        with self.database.read() as connection:
            row = connection.execute(queries.ITEM, {"item": key}).scalar()
        if row is None:
            raise UsageError(f"no item called {key!r:.60}")
        return item_of(parse_object(row.encode(), "the database"), f"item {key!r:.60}", flag_incomplete=True)

    def _person(self, connection: Connection, person: str) -> Row:
        row = find_person(connection, person)
        if row is None or row.token_hash is None or (row.expires is not None and row.expires <= self.clock()):
            raise LinkError
        return row

    def _question(self, item: Item, verdicts: Mapping[str, str], phase: str) -> Question | None:
        if phase == "training":  # it ends with the last expected verdict
            questions = item.expected.keys() - {"flag"}
            if questions and questions <= verdicts.keys():
                return None
        return self.scheme.next_question(item.unit, verdicts, has_source=item.has_source)

    def _make_work(
        self,
        connection: Connection,
        person: Row,
        assignment: Row,
        question: Question,
        verdicts: Mapping[str, str],
        *,
        can_undo: bool,
    ) -> Work:
        """Return a question about an item, as the person's browser gets it."""
        done_count, left_count = self._queue.counts(connection, person)
        press = uuid.uuid4().hex
        return Work(
            item=redact(self.item(assignment.item), assignment.handle, question),
            question=question,
            verdicts=verdicts,
            phase="training" if assignment.phase == "training" else "study",
            done_count=done_count,
            left_count=left_count,
            press=press,
            can_undo=can_undo,
            attempt=assignment.attempt,
            shown=self.shown.make(person.id, assignment.handle, question.name, press),
            entered=_last_entered(connection, assignment, question),
        )

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
            raise PressError(f"question {question!r:.60} is not asked now: it was perhaps answered in another tab")
        return current

    def _check_shown(
        self, token: str | None, person: str, item: str, press: str, question: str, seconds: float | None
    ) -> float | None:
        """Return the seconds that count for an answer to what was shown. Raises `PressError`, as `verdict` says."""
        if token is None:
            return seconds
        token_content = self.shown.check(token, person, item, press)
        if token_content.question != question:
            raise PressError("the answer does not belong to the question that was shown; answer again")
        return limit_seconds(seconds, token_content.seconds)

    def _check_answer(self, item: Item, question: Question, entry: Entry) -> str:
        """Return the evidence as JSON; raises `PressError` for an answer that is none, or lacks what is required."""
        if entry.value not in question.values:
            values = ", ".join(question.values)
            raise PressError(f"the answers to {question.name!r} are {values}, found {entry.value!r:.60}")
        spans = self._spans(item, question, entry.value, entry.evidence)
        if self.settings.reasons == "required" and not entry.reason.strip():
            raise PressError("a reason is missing; write why")
        return spans

    def _record_entry(
        self,
        connection: Connection,
        assignment: Row,
        entry: Entry,
        content: Mapping[str, str],
        *,
        spans: str,
        seconds: float | None,
    ) -> None:
        """Record a verdict, with its checked evidence and time, and the comment."""
        self._record(connection, assignment, entry.press, content, spans=spans, reason=entry.reason, seconds=seconds)
        self._record_comment(connection, assignment, entry.comment)

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

    def _record_comment(self, connection: Connection, assignment: Row, comment: str) -> None:
        if comment.strip():
            content = press_content(COMMENT, assignment.annotator, assignment.item, COMMENT)
            self._record(connection, assignment, uuid.uuid4().hex, content, reason=comment)

    def _take_back(
        self, connection: Connection, assignment: Row, questions: Collection[str], *, press: str = ""
    ) -> None:
        """Take back what a person said last to some questions about an item."""
        parameters = {"person": assignment.annotator, "item": assignment.item, "attempt": assignment.attempt}
        for row in connection.execute(queries.STANDING, parameters).all():
            if row.question in questions:
                content = press_content(UNDO, assignment.annotator, assignment.item, row.question)
                self._record(connection, assignment, press or uuid.uuid4().hex, content, undoes=row.id)

    def _reopen(self, connection: Connection, assignment: Row) -> None:
        """Ask about a finished item again."""
        connection.execute(queries.REOPEN, {"key": assignment.handle, "now": self.clock()})
        self._reconsider(connection, assignment.item)

    def _reconsider(self, connection: Connection, item: str) -> None:
        connection.execute(queries.RECONSIDER, {"item": item, "wanted": self.settings.annotators})


def press_content(kind: str, annotator: str, item: str, question: str, value: str = "") -> dict[str, str]:
    """Return the columns of a press that have to be the same if it is sent again."""
    return {"kind": kind, "annotator": annotator, "item": item, "question": question, "value": value}


def check_access(person: Row) -> None:
    """Raise `PressError` for a person who is blocked."""
    if person.blocked is not None:
        raise PressError("your part in this study has ended; nothing more is recorded")


def _last_entered(connection: Connection, assignment: Row, question: Question) -> Entry | None:
    parameters = {"person": assignment.annotator, "item": assignment.item, "attempt": assignment.attempt}
    row = connection.execute(queries.LAST_ENTERED, parameters | {"question": question.name}).first()
    if row is None:
        return None
    evidence = evidence_in(row.evidence)
    return Entry(row.question, row.value, press=row.press, evidence=evidence, reason=row.reason, seconds=row.seconds)


def check_texts(entry: Entry) -> None:
    """Raise `PressError` for a reason or comment that is too long, or holds what no database stores."""
    storable("reason", entry.reason, PressError)
    storable("comment", entry.comment, PressError)


def find_person(connection: Connection, person: str) -> Row | None:
    """Return the row of a person; None if there is none."""
    return None if unstorable(person) else connection.execute(queries.PERSON, {"person": person}).first()


def standing_verdicts(connection: Connection, assignment: Row) -> dict[str, str]:
    """Return a person's verdicts on an item by question, and the flag, without those that were taken back."""
    parameters = {"person": assignment.annotator, "item": assignment.item, "attempt": assignment.attempt}
    return {row.question: row.value for row in connection.execute(queries.STANDING, parameters)}


def storable(name: str, text: str, error: type[UsageError] | type[PressError]) -> str:
    """Return the text; raises an error if it is too long, or holds what no database stores."""
    if not isinstance(text, str):
        raise error(f"the {name} should be a string, found {type(text).__name__}")
    if wrong := unstorable(text):
        raise error(f"the {name} holds {wrong}")
    if len(text) > _MAX_REASON_LENGTH:
        raise error(f"the {name} has {len(text):,} characters; at most {_MAX_REASON_LENGTH:,} are kept")
    return text
