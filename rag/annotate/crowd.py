"""People of crowd services in a study: who they are there, what they accepted, what they said of themselves.

These records have tables of their own, beside the verdicts, and are in no export of the study: its annotators have
names made of the service's ids and the study's secret, and `write_participants` says who is who.
"""

import hashlib
import hmac
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from autoais.base.io.jsonl import dumps, write_atomic
from rag.annotate import queries
from rag.annotate.crowd_file import CROWD, PARAMETERS, CrowdSettings, PersonQuestion, read_crowd
from rag.annotate.items import unstorable
from rag.annotate.links import read_key
from rag.annotate.ratings import utc
from rag.annotate.store import assignments, people
from rag.annotate.study import Study
from rag.base.errors import LinkError, PressError, UsageError, UserError

_ID = re.compile(r"[A-Za-z0-9_.:-]{1,100}")
_MAX_ANSWER = 1_000  # characters
PREVIEW = "ASSIGNMENT_ID_NOT_AVAILABLE"
"""The `assignmentId` of a worker of MTurk who only looks at a task."""

_metadata = sa.MetaData()
participants = sa.Table(
    "participant",
    _metadata,
    sa.Column("annotator", sa.Text, primary_key=True),
    sa.Column("service", sa.Text, nullable=False),
    sa.Column("participant", sa.Text, nullable=False),
    sa.Column("task", sa.Text, primary_key=True),
    sa.Column("session", sa.Text, primary_key=True),
    sa.Column("joined", sa.Float(53), nullable=False),
)
consents = sa.Table(
    "consent",
    _metadata,
    sa.Column("annotator", sa.Text, primary_key=True),
    sa.Column("sha256", sa.Text, primary_key=True),
    sa.Column("version", sa.Text, nullable=False),
    sa.Column("text", sa.Text, nullable=False),
    sa.Column("at", sa.Float(53), nullable=False),
)
person_answers = sa.Table(
    "person_answer",
    _metadata,
    sa.Column("annotator", sa.Text, primary_key=True),
    sa.Column("question", sa.Text, primary_key=True),
    sa.Column("value", sa.Text, nullable=False),  # empty: asked, and not answered
    sa.Column("at", sa.Float(53), nullable=False),
)


@dataclass(frozen=True, slots=True)
class Status:
    """What a person still has to do, besides items.

    `must_consent`: the consent text is not accepted. `questions` are those about the person that are not answered.
    `is_participant`: the person came from a service. `has_done_all`: the number of items for a participant is done.
    """

    must_consent: bool
    questions: tuple[PersonQuestion, ...]
    is_participant: bool
    has_done_all: bool


class Crowd:
    """The people of a study as `crowd.toml` wants them. Methods raise `StudyError` if the database is not there."""

    def __init__(self, study: Study, *, clock: Callable[[], float] = time.time) -> None:
        self._study, self._clock = study, clock
        path = study.folder / CROWD
        self.exists = path.is_file()
        self.settings = read_crowd(path) if self.exists else CrowdSettings()
        self._key = read_key(study.folder / "key")
        self._sha256 = hashlib.sha256(self.settings.consent.encode()).hexdigest()
        if self.exists:
            with study.database.write() as connection:
                _metadata.create_all(connection)

    def _sign(self, *parts: str) -> str:
        return hmac.new(self._key, "\0".join(("crowd", *parts)).encode(), hashlib.sha256).hexdigest()

    @property
    def key(self) -> str:
        """The secret part of the link by which people of the service come."""
        return self._sign("join")[:32]

    def link(self, base_url: str) -> str:
        """Return the link for the service, with its placeholders; raises `UsageError` if `crowd.toml` names none."""
        service = self.settings.service
        if not self.exists:
            raise UsageError(f"{self._study.folder / CROWD} is missing; `rag annotate init --crowd` adds it")
        if not service:
            raise UsageError(f"{self._study.folder / CROWD}: service is missing; name prolific or mturk there")
        address = f"{base_url.rstrip('/')}/join/{self.key}"
        if service == "mturk":  # the page of the task adds them
            return address
        return f"{address}?" + "&".join(f"{name}={{{{%{name}%}}}}" for name in PARAMETERS[service])

    def is_key(self, key: str) -> bool:
        """Whether a link of this study has this secret, and people of a service may come."""
        return bool(self.settings.service) and hmac.compare_digest(self.key.encode(), key.encode("utf-8", "replace"))

    def join(self, parameters: Mapping[str, str]) -> str:
        """Return the token of the person with these parameters of the service's link; a new one each time.

        Raises `UsageError` for a parameter that is missing or no id, `LinkError` for a person whose link was revoked.
        """
        service = self.settings.service
        ids = []
        for name in PARAMETERS[service]:
            value = parameters.get(name, "")
            if not _ID.fullmatch(value):
                state = f"is no id: {value!r:.60}" if value else "is missing"
                raise UsageError(f"the link lacks who you are ({name} {state}); open it from the task again")
            ids.append(value)
        participant, task, session = ids
        person = f"p-{self._sign(service, participant)[:16]}"
        with self._study.database.read() as connection:
            row = connection.execute(sa.select(people.c.role, people.c.token_hash).where(people.c.id == person)).first()
        if row is not None and (row.role != "annotator" or row.token_hash is None):
            raise LinkError
        token = self._study.invite(person)
        with self._study.database.write() as connection:
            values = {"annotator": person, "task": task, "session": session}
            if connection.execute(sa.select(participants.c.joined).filter_by(**values)).first() is None:
                values |= {"service": service, "participant": participant}
                connection.execute(sa.insert(participants).values(joined=self._clock(), **values))
        return token

    def status(self, person: str) -> Status:
        """Return what a person has to do before and after the items."""
        if not self.exists:
            return Status(False, (), False, False)
        with self._study.database.read() as connection:
            is_accepted = self._has(connection, consents, annotator=person, sha256=self._sha256)
            query = sa.select(person_answers.c.question).where(person_answers.c.annotator == person)
            answered = set(connection.execute(query).scalars())
            is_participant = self._has(connection, participants, annotator=person)
            done_count = connection.execute(
                sa.select(sa.func.count()).where(
                    (assignments.c.annotator == person)
                    & (assignments.c.phase != "training")
                    & (assignments.c.state != "leased")
                )
            ).scalar_one()
        limit = self.settings.items
        return Status(
            bool(self.settings.consent) and not is_accepted,
            tuple(question for question in self.settings.questions if question.name not in answered),
            is_participant,
            is_participant and 0 < limit <= done_count,
        )

    def _has(self, connection: sa.Connection, table: sa.Table, **values: str) -> bool:
        return connection.execute(sa.select(sa.literal(1)).select_from(table).filter_by(**values)).first() is not None

    def accept(self, person: str, sha256: str) -> None:
        """Record that a person accepts the consent text with this checksum; raises `PressError` for another text."""
        if not hmac.compare_digest(sha256.encode("utf-8", "replace"), self._sha256.encode()):
            raise PressError("the text has changed; read it again")
        with self._study.database.write() as connection:
            if not self._has(connection, consents, annotator=person, sha256=self._sha256):
                values = {"version": self.settings.consent_version, "text": self.settings.consent}
                row = {"annotator": person, "sha256": self._sha256, "at": self._clock()}
                connection.execute(sa.insert(consents).values(row | values))

    @property
    def consent_sha256(self) -> str:
        """The checksum of the consent text."""
        return self._sha256

    def answer(self, person: str, answers: Mapping[str, str]) -> None:
        """Record what a person says of themselves, by question; raises `PressError` for what is missing or no choice.

        A question that is not required may have no answer, which is recorded too.
        """
        rows = []
        for question in self.settings.questions:
            value = answers.get(question.name, "").strip()
            if question.required and not value:
                raise PressError(f"an answer is missing: {question.text[:200]}")
            if value and question.choices and value not in question.choices:
                raise PressError(f"{value!r:.60} is none of the choices of: {question.text[:200]}")
            if len(value) > _MAX_ANSWER or unstorable(value):
                raise PressError(f"the answer should be a text of at most {_MAX_ANSWER:,} characters")
            rows.append({"annotator": person, "question": question.name, "value": value, "at": self._clock()})
        with self._study.database.write() as connection:
            connection.execute(sa.delete(person_answers).where(person_answers.c.annotator == person))
            if rows:
                connection.execute(sa.insert(person_answers), rows)

    def end(self, person: str) -> None:
        """Give the items that a person holds to others."""
        with self._study.database.write() as connection:
            connection.execute(queries.RELEASE, {"person": person})

    def code(self, person: str) -> str:
        """Return the code that a participant enters at the service; empty if there is none."""
        if self.settings.service == "mturk" and not self.settings.completion_code:
            return self._sign("code", person)[:10].upper()
        return self.settings.completion_code

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield the participants, and others who accepted or answered something: JSON, by annotator."""
        if not self.exists:
            return
        with self._study.database.read(snapshot=True) as connection:
            tables = {
                table.name: connection.execute(sa.select(table)).all()
                for table in (participants, consents, person_answers)
            }
        for person in sorted({str(row.annotator) for rows in tables.values() for row in rows}):
            own = {name: [row for row in rows if row.annotator == person] for name, rows in tables.items()}
            sessions = sorted(own["participant"], key=lambda row: (row.joined, row.session))
            yield {
                "annotator": person,
                "service": sessions[0].service if sessions else "",
                "participant": sessions[0].participant if sessions else "",
                "sessions": [{"task": row.task, "session": row.session, "joined": utc(row.joined)} for row in sessions],
                "code": self.code(person) if sessions else "",
                "consent": [
                    {"version": row.version, "sha256": row.sha256, "at": utc(row.at), "text": row.text}
                    for row in sorted(own["consent"], key=lambda row: row.at)
                ],
                "answers": {
                    row.question: row.value for row in sorted(own["person_answer"], key=lambda row: row.question)
                },
            }


def write_participants(study: Study, path: Path) -> int:
    """Write who the participants are, what they accepted and said of themselves, for the owner only; return how many.

    It has ids of people, which the export has not. Raises `UserError` if the study has no `crowd.toml`, or the file
    cannot be written.
    """
    crowd = Crowd(study)
    if not crowd.exists:
        raise UserError(f"{study.folder / CROWD} is missing; without it a study has no participants")
    rows = list(crowd.rows())
    try:
        path.touch(mode=0o600)
        path.chmod(0o600)
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror or error}") from error
    write_atomic(path, map(dumps, rows))
    return len(rows)
