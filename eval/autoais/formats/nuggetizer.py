"""Nuggets of AutoNuggetizer and their assignments to answers (castorini/nuggetizer, package `nuggetizer`; TREC RAG).

Shapes: castorini/nuggetizer, src/nuggetizer/cli/adapters.py. A nugget file has a row per topic: `qid`, `query`,
`nuggets` of `text` and `importance` (`vital`, `okay` or `failed`). An assignment adds `assignment` to each nugget
(`support`, `partial_support`, `not_support` or `failed`), and to the row the text that was read: `answer_text` and
`run_id` of an answer, or `candidate_text` and `docid` of a passage. An assignment is a label of a claim with its
evidence; a failed one is none.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autoais.base.answers import CitedAnswer
from autoais.base.errors import FormatError, UserError
from autoais.base.io.files import records
from autoais.base.io.jsonl import dumps
from autoais.base.io.schema import IDENTIFIER, STRING, TEXT_OR_NULL, faults, list_of, record
from autoais.base.labels import LabelledClaim
from autoais.base.types import Attribution, Judge, Question, Support
from autoais.formats.base import Format, unique_key
from autoais.formats.trec import words

FAILED = "failed"
"""The importance, or the assignment, of a nugget for which the model gave nothing that can be used."""

_LEVELS = {"support": Support.FULL, "partial_support": Support.PARTIAL, "not_support": Support.NONE}
_ASSIGNMENTS = {level: name for name, level in _LEVELS.items()}
IMPORTANCES = ("vital", "okay")
ASSIGNMENTS = tuple(_LEVELS)


@dataclass(frozen=True, slots=True)
class Nugget:
    """A fact that an answer should hold; `importance` is `vital`, `okay` or `failed`."""

    text: str
    importance: str = "vital"


@dataclass(frozen=True, slots=True)
class NuggetBank:
    """The nuggets of a topic."""

    topic: str
    query: str
    nuggets: tuple[Nugget, ...]

    @property
    def question(self) -> Question:
        """The topic as a question with its vital nuggets, for nugget recall.

        Where it has nuggets and none is vital, its recall is 0 for every answer, as nuggetizer scores it: its one
        nugget has no phrase.
        """
        vital = tuple((nugget.text,) for nugget in self.nuggets if nugget.importance == "vital")
        return Question(self.topic, self.query, nuggets=vital or ((),) * bool(self.nuggets))

    def row(self) -> dict[str, Any]:
        """Return the row of a nugget file."""
        nuggets = [{"text": nugget.text, "importance": nugget.importance} for nugget in self.nuggets]
        return {"query": self.query, "qid": self.topic, "nuggets": nuggets}


def bank_of(row: Mapping[str, Any], location: str) -> NuggetBank:
    """Return the nuggets of a row; raises `FormatError` if it does not fit the schema."""
    for fault in faults(dict(row), NUGGETIZER.schema):
        raise FormatError(f"{location}: {fault}")
    # AutoNuggetizer takes a nugget without importance as vital.
    nuggets = (Nugget(nugget["text"], nugget.get("importance") or "vital") for nugget in row["nuggets"])
    return NuggetBank(str(row["qid"]), row.get("query") or row.get("text") or "", tuple(nuggets))


def read_nuggets(path: str | Path) -> Iterator[NuggetBank]:
    """Stream the nuggets of a file, by topic; raises `FormatError` for a broken row or a topic that comes twice."""
    topics: set[str] = set()
    for location, row in records(Path(path)):
        if isinstance(row, FormatError):
            raise row
        bank = bank_of(row, location)
        if bank.topic in topics:
            raise FormatError(f"{location}: topic {bank.topic!r} occurs twice")
        topics.add(bank.topic)
        yield bank


def assignment_lines(answers: Iterable[CitedAnswer], banks: Iterable[NuggetBank], judge: Judge) -> Iterator[str]:
    """Return the lines of a file of assignments: whether each answer, as the evidence, supports each nugget.

    Answers to topics without nuggets are left out. A judge that knows no partial support assigns none. Raises
    `UserError` if the judge does not decide, for the format cannot say so.
    """
    by_topic = {bank.topic: bank for bank in banks}
    for answer in answers:
        bank = by_topic.get(answer.id)
        if bank is None:
            continue
        evidence = (answer.plain,) if answer.plain.strip() else ()
        judgements = judge.judge([Attribution(nugget.text, evidence, bank.query) for nugget in bank.nuggets])
        levels = [judgement.verdict.support for judgement in judgements]
        if None in levels:
            raise UserError(f"answer {answer.id!r}: {judge.name} did not decide on a nugget; assignments are decided")
        yield dumps(assignment_row(answer, bank, [_ASSIGNMENTS[level] for level in levels if level is not None]))


def assignment_row(answer: CitedAnswer, bank: NuggetBank, assignments: Sequence[str]) -> dict[str, Any]:
    """Return the row of a file of assignments: how far the answer supports each nugget of the bank, in its order."""
    return {
        "query": bank.query,
        "qid": bank.topic,
        "answer_text": answer.plain,
        "response_length": words(answer.plain),
        "run_id": run_of(answer),
        "nuggets": [
            {"text": nugget.text, "importance": nugget.importance, "assignment": assignment}
            for nugget, assignment in zip(bank.nuggets, assignments, strict=True)
        ],
    }


def run_of(answer: CitedAnswer) -> str:
    """Return the name of the system that answered; `unknown` if the answer has none."""
    return str(answer.extra.get("system") or "unknown")


def read_assignments(path: str | Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Stream the rows of a file of assignments with their places (`file:line`).

    Raises `FormatError` for a broken row, a nugget without an assignment, and a text that comes twice.
    """
    places: dict[str | None, str] = {}
    for location, row in records(Path(path)):
        if isinstance(row, FormatError):
            raise row
        bank_of(row, location)
        if any("assignment" not in nugget for nugget in row["nuggets"]):
            raise FormatError(f"{location}: a nugget without 'assignment'; `autoais nuggets assign` makes assignments")
        if (before := places.setdefault(_key(row), location)) != location:
            raise FormatError(f"{location}: topic, run and document {_key(row)!r:.80} occur twice (first at {before})")
        yield location, row


def _labels(row: dict[str, Any], location: str) -> Iterator[LabelledClaim]:
    texts = (row.get(name) for name in ("answer_text", "candidate_text"))
    text = next((candidate for candidate in texts if candidate is not None), None)
    if text is None or not any("assignment" in nugget for nugget in row["nuggets"]):
        raise FormatError(f"{location}: nuggets that are assigned to no text; assignments have 'answer_text'")
    question, system = row.get("query") or row.get("text") or "", row.get("run_id") or ""
    for number, nugget in enumerate(row["nuggets"], 1):
        if nugget.get("assignment", FAILED) != FAILED:  # a failed one is no label
            level = _LEVELS[nugget["assignment"]]
            key = "/".join(filter(None, (str(row["qid"]), system, row.get("docid"), str(number))))
            yield LabelledClaim("nuggets", key, Attribution(nugget["text"], (text,) if text.strip() else (), question),
                           level is Support.FULL, system, support=level)  # fmt: skip


def _key(row: dict[str, Any]) -> str | None:
    parts = [row.get(name) for name in ("qid", "run_id", "docid")]
    return " ".join(str(part) for part in parts if part is not None) or None


_NUGGET = record(
    {"text": STRING},
    {
        "importance": {"type": "string", "enum": [*IMPORTANCES, FAILED]},
        "assignment": {"type": "string", "enum": [*ASSIGNMENTS, FAILED]},
    },
)
NUGGETIZER = Format(
    name="nuggetizer",
    description="AutoNuggetizer's nuggets by topic (jsonl), and their assignments to answers or passages",
    schema=record(
        {"qid": IDENTIFIER, "nuggets": list_of(_NUGGET)},
        {
            "query": STRING, "text": STRING, "answer_text": TEXT_OR_NULL, "candidate_text": TEXT_OR_NULL,
            "run_id": TEXT_OR_NULL, "docid": TEXT_OR_NULL,
        },
    ),
    required_fields=("qid", "nuggets"),
    labels=_labels,
    ids=unique_key(_key, "topic, run and document {key} occur twice (first at {first})"),
)  # fmt: skip
