"""A rating of a person, and its row in `ratings.jsonl`."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from autoais.base.errors import FormatError, UsageError, check_type
from autoais.base.io.jsonl import dumps
from autoais.base.io.schema import (
    BOOLEAN,
    IDENTIFIER,
    NUMBER_OR_NULL,
    STRING,
    TEXT_OR_NULL,
    Schema,
    faults,
    list_of,
    record,
)
from autoais.base.types import Citation

FLAG = "flag"
"""The question of a row that sets an item aside; its value is the reason."""

SIMULATED_PREFIX = "simulated-"
"""How the name of an annotator begins who is no person (`scripts/simulate_study.py`)."""

SIMULATED_LABELS = "simulated_labels"
"""The field of `CitedAnswer.extra` that is true if labels of the answer are simulated."""

TIES = "ties"
"""The field of `CitedAnswer.extra` with the places whose support people are split on: sentence and citation, or null.

`{"sentence": null, "citation": null}` is the whole answer.
"""

PHASES = ("study", "training", "gold", "audit", "adjudication")
LIKERT = ("1", "2", "3", "4", "5")  # 5: fully (Rashkin et al. 2023, ablation A2)
RELAXED_CUT, STRICT_CUT = 4, 5  # the least Likert value that counts as a yes; the paper's two cuts

_YES_NO = ("yes", "no")
VALUES: Mapping[str, tuple[str, ...]] = {
    "interpretable": _YES_NO,
    "attributable": (*_YES_NO, *LIKERT),
    "informative": _YES_NO,
    "worthy": _YES_NO,
    "supported": (*_YES_NO, "contradict"),
    "support": ("full", "partial", "none", "inaccessible", "contradict", "unclear"),
}
"""The values of the questions that have a meaning here (Rashkin, Kamalloo, Liu et al.); others may have any values."""


@dataclass(frozen=True, slots=True)
class Rating:
    """The answer `value` of one annotator to one question about one item.

    The item is the whole answer `answer` if `sentence` (0-based) is None, its sentence, or, if `citation` names a
    passage, that citation of the sentence. Without `answer`, `item` is the id of the answer. `seconds` is the time
    that the annotator took, `at` when (ISO 8601, UTC). `phase` is one of `PHASES`; only ratings of the study and
    adjudications count for the consensus. `evidence` are spans of passages that the annotator chose, `reason` is
    written by the annotator. `revised`: the annotator took back an earlier value. `system` made the answer. An audit's
    value is what the auditor would have said; `audited` is the annotator whose rating was checked, None for all.
    `source_seen`: the question was asked without the source, but the annotator had seen it before, and went back.
    """

    item: str
    annotator: str
    question: str
    value: str
    answer: str | None = None
    sentence: int | None = None
    citation: str | None = None
    seconds: float | None = None
    at: str | None = None
    phase: str = "study"
    system: str = ""
    evidence: tuple[Citation, ...] = ()
    reason: str = ""
    revised: bool = False
    audited: str | None = None
    source_seen: bool = False

    def __post_init__(self) -> None:
        for name in ("item", "annotator", "question", "value"):
            check_type(f"the {name} of a rating", getattr(self, name), "a string", str)
        if self.phase not in PHASES:
            raise UsageError(f"the phase of a rating should be one of {', '.join(PHASES)}, found {self.phase!r:.60}")

    @property
    def key(self) -> tuple[str | None, ...]:
        """The item, question and annotator that have one value."""
        return self.item, self.question, self.annotator, self.phase, self.audited

    @property
    def answer_id(self) -> str:
        """The id of the answer that it is about."""
        return self.item if self.answer is None else self.answer


_INDEX: Schema = {"type": ["integer", "null"], "minimum": 0}
SCHEMA = record(
    {"item": IDENTIFIER, "annotator": IDENTIFIER, "question": IDENTIFIER, "value": IDENTIFIER},
    {
        "answer": TEXT_OR_NULL,
        "sentence": _INDEX,
        "citation": TEXT_OR_NULL,
        "seconds": NUMBER_OR_NULL | {"minimum": 0},
        "at": TEXT_OR_NULL,
        "phase": {"type": "string", "enum": list(PHASES)},
        "system": TEXT_OR_NULL,
        "evidence": list_of(record({"passage": STRING}, {"start": _INDEX, "end": _INDEX})),
        "reason": TEXT_OR_NULL,
        "revised": BOOLEAN,
        "audited": TEXT_OR_NULL,
        "source_seen": BOOLEAN,
    },
)


_WHOLE = re.compile(r"(-?[0-9]+)[.,]0+")
"""A whole number as pandas and spreadsheets write it where a cell of its column is empty."""


def from_row(row: Mapping[str, Any], location: str) -> Rating:
    """Return the rating of a row; raises `FormatError` for one that does not fit, and an impossible value or span."""
    for fault in faults(row, SCHEMA):
        raise FormatError(f"{location}: {fault}")
    value = str(row["value"])
    if whole := _WHOLE.fullmatch(value):
        value = whole[1]
    check_value(location, "value", row["question"], value)
    if row.get("citation") is not None and row.get("sentence") is None:
        raise FormatError(f"{location}: field 'citation' is given without field 'sentence'")
    spans = []
    for number, span in enumerate(row.get("evidence", ())):
        start, end = span.get("start"), span.get("end")
        if (start is None) != (end is None) or (start is not None and start > end):
            raise FormatError(f"{location}: field 'evidence[{number}]': start {start} and end {end} are no span")
        spans.append(Citation(span["passage"], start, end))
    return Rating(
        item=str(row["item"]),
        annotator=str(row["annotator"]),
        question=str(row["question"]),
        value=value,
        answer=row.get("answer"),
        sentence=row.get("sentence"),
        citation=row.get("citation"),
        seconds=row.get("seconds"),
        at=row.get("at"),
        phase=row.get("phase", "study"),
        system=row.get("system") or "",
        evidence=tuple(spans),
        reason=row.get("reason") or "",
        revised=row.get("revised", False),
        audited=row.get("audited"),
        source_seen=row.get("source_seen", False),
    )


def check_value(location: str, field: str, question: str, value: str) -> None:
    """Raise `FormatError` for a value that the question does not have."""
    values = VALUES.get(question)
    if values is not None and value not in values:
        raise FormatError(
            f"{location}: field {field!r}: question {question!r} has {', '.join(values)}, found {value[:60]!r}"
        )


def to_row(rating: Rating) -> dict[str, Any]:
    """Return the rating as a JSON object, with all fields; `audited` only in an audit, `source_seen` only if true."""
    row: dict[str, Any] = {
        "item": rating.item,
        "answer": rating.answer,
        "sentence": rating.sentence,
        "citation": rating.citation,
        "annotator": rating.annotator,
        "question": rating.question,
        "value": rating.value,
        "seconds": rating.seconds,
        "at": rating.at,
        "phase": rating.phase,
        "system": rating.system,
        "evidence": [
            {"passage": citation.passage}
            | ({} if citation.start is None else {"start": citation.start, "end": citation.end})
            for citation in rating.evidence
        ],
        "reason": rating.reason,
        "revised": rating.revised,
    }
    if rating.audited is not None:
        row["audited"] = rating.audited
    return row | {"source_seen": True} if rating.source_seen else row


def write_ratings(ratings: Iterable[Rating]) -> Iterator[str]:
    """Yield the lines of `ratings.jsonl`, for `io.jsonl.write_atomic`; `read_ratings` restores the same ratings."""
    return (dumps(to_row(rating)) for rating in ratings)
