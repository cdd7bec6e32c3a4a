"""Nuggets of AutoNuggetizer and their assignments to answers (castorini/nuggetizer, package `nuggetizer`; TREC RAG).

Shapes: castorini/nuggetizer, src/nuggetizer/cli/adapters.py. A nugget file has a row per topic: `qid`, `query`,
`nuggets` of `text` and `importance` (`vital` or `okay`). An assignment adds `assignment` to each nugget (`support`,
`partial_support`, `not_support`), and to the row the text that was read: `answer_text` and `run_id` of an answer, or
`candidate_text` and `docid` of a passage. An assignment is a label of a claim with its evidence.
"""

from collections.abc import Iterable, Iterator, Mapping
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

_LEVELS = {"support": Support.FULL, "partial_support": Support.PARTIAL, "not_support": Support.NONE}
_ASSIGNMENTS = {level: name for name, level in _LEVELS.items()}


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
        if any(judgement.verdict.support is None for judgement in judgements):
            raise UserError(f"answer {answer.id!r}: {judge.name} did not decide on a nugget; assignments are decided")
        yield dumps(
            {
                "query": bank.query,
                "qid": bank.topic,
                "answer_text": answer.plain,
                "response_length": words(answer.plain),
                "run_id": str(answer.extra.get("system", "unknown")),
                "nuggets": [
                    {
                        "text": nugget.text,
                        "importance": nugget.importance,
                        "assignment": _ASSIGNMENTS[judgement.verdict.support],
                    }
                    for nugget, judgement in zip(bank.nuggets, judgements, strict=True)
                    if judgement.verdict.support is not None
                ],
            }
        )


def _labels(row: dict[str, Any], location: str) -> Iterator[LabelledClaim]:
    texts = (row.get(name) for name in ("answer_text", "candidate_text"))
    text = next((candidate for candidate in texts if candidate is not None), None)
    if text is None or not any("assignment" in nugget for nugget in row["nuggets"]):
        raise FormatError(f"{location}: nuggets that are assigned to no text; assignments have 'answer_text'")
    question, system = row.get("query") or row.get("text") or "", row.get("run_id") or ""
    for number, nugget in enumerate(row["nuggets"], 1):
        if "assignment" in nugget:
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
        "importance": {"type": "string", "enum": ["vital", "okay", "failed"]},
        "assignment": {"type": "string", "enum": list(_LEVELS)},
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
