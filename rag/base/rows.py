"""The row of `answers.jsonl` of an `Answer`, with what only `rag` writes, and back."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from autoais.base.answers import SCHEMA, from_row, to_row
from autoais.base.errors import FormatError
from autoais.base.io.schema import (
    BOOLEAN,
    INTEGER,
    NUMBER_OR_NULL,
    STRING,
    TEXT_OR_NULL,
    Schema,
    faults,
    list_of,
    record,
)
from autoais.base.types import Support
from rag.base.types import Answer, Citation, CitedSentence, Hit, Question

_OFFSET: Schema = {"type": "integer", "minimum": 0}
_PAGE: Schema = {"type": ["integer", "null"], "minimum": 0}
_SPANS = list_of({"type": "array", "items": _OFFSET})
_PLACE = record({"passage": STRING, "quote": STRING}, {"differences": _SPANS})
_CHECK = record(
    {"verdict": STRING},
    {"unsupported": _SPANS, "nearest": _PLACE, "contradiction": _PLACE, "numbers": list_of(STRING)},
)
_TRACE = record(
    {},
    {
        "shown": list_of(STRING),
        "repair": record({}, dict.fromkeys(("moved", "attached", "removed"), INTEGER)),
        "checked": list_of(_CHECK),
        "tokens": record({"read": INTEGER, "written": INTEGER}),
    },
)
# What `autoais.base.answers.SCHEMA` leaves open: the fields that `rag` itself writes.
_ANSWER = record(
    {
        "id": STRING,
        "question": STRING,
        "answer": STRING,
        "system": STRING,
        "sentences": list_of(record({"text": STRING, "start": _OFFSET, "end": _OFFSET})),
        "passages": list_of(record({"id": STRING, "text": STRING, "rank": INTEGER}, {"page": _PAGE})),
        "abstained": BOOLEAN,
    },
    {
        "reason": TEXT_OR_NULL,
        "failed": BOOLEAN,
        "confidence": NUMBER_OR_NULL,
        "trace": _TRACE,
    },
)


def write_answer(answer: Answer, index: str | None = None, seconds: float | None = None) -> dict[str, Any]:
    """Return the row of an answer, with the page numbers of documents; `read_answer` restores it.

    `index` is the name of the index, `seconds` the time that answering took.
    """
    row = to_row(answer.to_cited(index, seconds))
    pages = {hit.passage.id: hit.passage.page for hit in answer.hits}
    for passage in row["passages"]:
        if pages[passage["id"]] is not None:
            passage["page"] = pages[passage["id"]]
    return row


def read_answer(row: Mapping[str, Any], question: Question | None = None) -> Answer:
    """Return the answer of a row that `rag` wrote. `question` has what rows leave out; its text is that of the row.

    Raises `FormatError` for a row that does not fit, `CitationError` for one that misquotes its passages.
    """
    for schema in (SCHEMA, _ANSWER):
        for fault in faults(row, schema):
            raise FormatError(fault)
    strange = set(row.get("trace", {}).get("shown", ())) - {passage["id"] for passage in row["passages"]}
    if strange:
        raise FormatError(f"passages that were shown, but are not there, such as {min(strange)!r}")
    identifier = row["id"] if question is None else question.id or row["id"]
    return _answer(row, replace(question or Question("", ""), id=identifier, text=row["question"]))


def _answer(row: Mapping[str, Any], question: Question) -> Answer:
    """The answer of a row that fits the schemas; raises `FormatError` or `CitationError` if it contradicts itself."""
    cited_answer = from_row(row, "the answer")
    pages = {passage["id"]: passage.get("page") for passage in row["passages"]}
    hits = []
    for identifier in cited_answer.ranking:
        page = pages[identifier]
        passage = replace(cited_answer.passages[identifier], page=None if page is None else int(page))
        hits.append(Hit(passage, cited_answer.scores.get(identifier, 0.0)))
    confidence = row.get("confidence")
    return Answer(
        question=question,
        text=row["answer"],
        sentences=tuple(_sentence(sentence) for sentence in row["sentences"]),
        hits=tuple(hits),
        system=row["system"],
        short_answer=row.get("short_answer"),
        # `from_row` adds citations of unknown passages, which `Answer` refuses.
        unresolved=cited_answer.unresolved_markers[: len(row.get("unresolved") or ())],
        abstained=row["abstained"],
        reason=row.get("reason"),
        failed=row.get("failed", False),
        confidence=None if confidence is None else float(confidence),
        trace=row.get("trace", {}),
    )


def _sentence(row: Mapping[str, Any]) -> CitedSentence:
    citations = []
    for citation in row.get("citations", ()):
        start, end = (None if citation.get(name) is None else int(citation[name]) for name in ("start", "end"))
        support = Support(citation["support"]) if citation.get("support") else None
        citations.append(
            Citation(citation["passage"], start, end, citation.get("quote"), citation.get("origin"), support)
        )
    return CitedSentence(row["text"], tuple(citations), int(row["start"]), int(row["end"]), row.get("output"))
