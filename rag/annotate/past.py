"""What a person has judged: the items, what they said, what that replaced, and revisions."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from sqlalchemy import Connection

from rag.annotate import queries
from rag.annotate.items import Item
from rag.annotate.press_log import PressLog, check_access, check_texts, press_content, standing_verdicts, storable
from rag.annotate.queries import COMMENT, FLAG, UNDO, VERDICT, Row
from rag.annotate.ratings import evidence_in
from rag.annotate.record import StudyRecord
from rag.annotate.redact import redact
from rag.annotate.schemes import Question
from rag.annotate.types import Entry, PastItem, PastVerdict, Work
from rag.base.errors import PressError


def past_items(study: StudyRecord, connection: Connection, person: str, assignments: Sequence[Row]) -> list[PastItem]:
    """Return what a person said about the items of finished assignments, in their order."""
    presses: defaultdict[str, list[Row]] = defaultdict(list)
    parameters = {"person": person, "items": [assignment.item for assignment in assignments]}
    for row in connection.execute(queries.PAST_PRESSES, parameters):
        presses[row.item].append(row)
    return [_past_item(study, assignment, presses[assignment.item]) for assignment in assignments]


def _past_item(study: StudyRecord, assignment: Row, presses: Sequence[Row]) -> PastItem:
    item = study.item(assignment.item)
    verdicts = []
    for question in study.scheme.questions_of(item.unit):
        rows = [row for row in presses if row.kind == VERDICT and row.question == question.name]
        standing = [row for row in rows if not row.taken_back]
        if standing:
            last = standing[-1]
            earlier = tuple((row.value, row.at) for row in rows if row.id < last.id)
            evidence = evidence_in(last.evidence)
            verdicts.append(PastVerdict(question, last.value, last.at, earlier, evidence, last.reason))
    flags = [row.value for row in presses if row.kind == FLAG and not row.taken_back]
    comments = [row.reason for row in presses if row.kind == COMMENT]
    last_question = verdicts[-1].question if verdicts else study.scheme.questions_of(item.unit)[0]
    return PastItem(
        redact(item, assignment.handle, last_question),
        tuple(verdicts),
        flags[-1] if flags else "",
        comments[-1] if comments else "",
    )


class PastWork(PressLog):
    """The part of a study in which people look at what they have judged, revise it, and comment on it."""

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
            verdicts = standing_verdicts(connection, assignment)
            full_item = self.item(assignment.item)
            past_question = self._past_question(full_item, verdicts, question)
            return self._make_work(connection, person, assignment, past_question, verdicts, can_undo=False)

    def revise(self, annotator: str, item: str, entry: Entry) -> bool:
        """Replace this person's verdict on a finished item. The log keeps the first one; exports take the last.

        Later verdicts that do not follow from the new one are taken back too. Returns whether the item is still
        finished; if not, what is to be asked after the new verdict is asked next. Raises `PressError`, as for
        `verdict`, and for an item that is flagged or of the training round.
        """
        check_texts(entry)
        question = entry.question
        with self.database.write() as connection:
            person = self._person(connection, annotator)
            assignment = self._assignment(connection, person, item)
            content = press_content(VERDICT, person.id, assignment.item, question, entry.value)
            if self._is_repeated(connection, entry.press, content):
                return bool(assignment.state != "leased")
            check_access(person)
            _check_past(assignment)
            full_item, verdicts = self.item(assignment.item), standing_verdicts(connection, assignment)
            past_question = self._past_question(full_item, verdicts, question)
            seconds = self._check_shown(entry.shown, person.id, item, entry.press, question, entry.seconds)
            spans = self._check_answer(full_item, past_question, entry)
            remaining = self._follow(full_item, verdicts | {question: entry.value})
            self._take_back(connection, assignment, (verdicts.keys() - remaining.keys()) | {question})
            self._record_entry(connection, assignment, entry, content, spans=spans, seconds=seconds)
            is_finished = self._question(full_item, remaining, assignment.phase) is None
            if not is_finished:
                self._reopen(connection, assignment)
            return is_finished

    def take_back_flag(self, annotator: str, item: str, *, press: str) -> None:
        """Take back a person's flag, also an old one: the item is asked next. Raises `PressError` if there is none."""
        with self.database.write() as connection:
            person = self._person(connection, annotator)
            assignment = self._assignment(connection, person, item)
            content = press_content(UNDO, person.id, assignment.item, FLAG)
            if self._is_repeated(connection, press, content):
                return
            check_access(person)
            if assignment.state != "flagged" or assignment.phase == "training":
                raise PressError("you have not flagged this item, or have taken the flag back")
            self._take_back(connection, assignment, {FLAG}, press=press)
            self._reopen(connection, assignment)

    def comment(self, annotator: str, item: str, text: str, *, press: str) -> None:
        """Record a comment on an item that this person was given; the last one counts, and an empty one removes it.

        Raises `PressError`, as for `verdict`.
        """
        text = storable("comment", text, PressError)
        with self.database.write() as connection:
            person = self._person(connection, annotator)
            assignment = self._assignment(connection, person, item)
            content = press_content(COMMENT, person.id, assignment.item, COMMENT)
            if not self._is_repeated(connection, press, content | {"reason": text}):
                check_access(person)
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


def _check_past(assignment: Row) -> None:
    if assignment.phase == "training":
        raise PressError("items of the training round are not looked at again")
    if assignment.state == "leased":
        raise PressError("you have not finished this item")
