"""RAGChecker's files (`RAGResults`): one JSON object with `results`, before or after checking."""

from collections.abc import Iterable, Iterator
from typing import Any

from autoais.base.answers import CitedAnswer
from autoais.base.io.jsonl import dumps
from autoais.base.io.schema import IDENTIFIER, STRING, TEXT_OR_NULL, list_of, record
from autoais.formats.base import Format, Notes, Row, unique_id
from autoais.formats.contexts import (
    CONTEXT_FEATURES,
    context_answer,
    context_output,
    first_reference,
    passages_of,
    select_extra,
)
from autoais.formats.marked import in_document

_OTHERS = (
    "response_claims", "gt_answer_claims", "answer2response", "response2answer", "retrieved2response",
    "retrieved2answer", "metrics",
)  # fmt: skip


def _read(rows: Iterable[Row], notes: Notes) -> Iterator[CitedAnswer]:
    for _, row in rows:
        found = ((doc.get("doc_id"), "", doc["text"]) for doc in row["retrieved_context"])
        yield context_answer(
            str(row["query_id"]),
            row["query"],
            row["response"],
            passages_of((None if key is None else str(key), title, text) for key, title, text in found),
            references=[row["gt_answer"]] if row.get("gt_answer") else [],
            extra={name: row[name] for name in _OTHERS if name in row},
        )


def _write(answers: Iterable[CitedAnswer], notes: Notes) -> Iterator[str]:
    yield from in_document('{"results": [', (dumps(_row(answer, notes)) for answer in answers))


def _row(answer: CitedAnswer, notes: Notes) -> dict[str, Any]:
    return {
        "query_id": answer.id,
        "query": answer.question,
        "gt_answer": first_reference(answer, notes) or "",
        "response": context_output(answer, notes),
        "retrieved_context": [{"doc_id": key, "text": shown.evidence} for key, shown in answer.passages.items()],
        **select_extra(answer, _OTHERS),
    }


RAGCHECKER = Format(
    name="ragchecker",
    description="RAGChecker's JSON: {results: [{query_id, query, gt_answer, response, retrieved_context}]}",
    schema=record(
        {
            "query_id": IDENTIFIER,
            "query": STRING,
            "response": STRING,
            "retrieved_context": list_of(record({"text": STRING}, {"doc_id": {"type": ["string", "integer", "null"]}})),
        },
        {"gt_answer": TEXT_OR_NULL},
    ),
    required_fields=("query", "response", "retrieved_context"),
    read=_read,
    write=_write,
    ids=unique_id("query_id"),
    supports=CONTEXT_FEATURES | {"ids", "reference answers"},
)
