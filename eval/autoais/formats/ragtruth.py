"""RAGTruth (Niu et al. 2024): responses of language models with the spans that their source does not support.

`response.jsonl` has the responses; `source_info.jsonl` has their sources, which are a corpus (`--corpus`).
"""

from collections.abc import Iterable, Iterator
from typing import Any

from autoais.base.answers import CitedAnswer
from autoais.base.io.schema import IDENTIFIER, STRING, TEXT_OR_NULL, record
from autoais.base.text.sentences import sentence_spans
from autoais.base.types import Citation, CitedSentence, Passage
from autoais.formats.base import Fault, Format, Notes, Row, refuse_faults, unique_id


def _read(rows: Iterable[Row], notes: Notes) -> Iterator[CitedAnswer]:
    for location, row in rows:
        refuse_faults(_offset_faults(location, row))
        if row.get("quality") not in (None, "good"):
            notes["responses whose quality is not 'good', left out as in RAGTruth's baseline"] += 1
            continue
        yield _answer(row)


def _answer(row: dict[str, Any]) -> CitedAnswer:
    """Return the response: each sentence cites the source, and is attributable unless a labelled span overlaps it.

    Spans marked `implicit_true` are true, but not in the source, so their sentences are not attributable (AIS).
    """
    source, response = str(row["source_id"]), row["response"]
    sentences = tuple(
        CitedSentence(
            response[start:end],
            (Citation(source),),
            attributable=not any(span["start"] < end and start < span["end"] for span in row["labels"]),
        )
        for start, end in sentence_spans(response)
    )
    fields: dict[str, Any] = {name: row[name] for name in ("split", "temperature") if name in row}
    return CitedAnswer(
        id=str(row["id"]),
        question="",
        sentences=sentences,
        passages={source: Passage(source)},
        ranking=(source,),
        output=response,
        attributable=not row["labels"],
        extra={"dataset": "RAGTruth", "system": row["model"], **fields},
    )


def _check(rows: Iterable[Row]) -> Iterator[Fault]:
    for location, row in rows:
        yield from _offset_faults(location, row)
        for number, span in enumerate(row["labels"]):
            start, end = int(span["start"]), int(span["end"])
            words = row["response"][start:end]
            if _is_inside(span, row) and span.get("text", words) != words:
                text = f"its 'text' is not the response from {start} to {end}: {words[:60]!r}"
                yield Fault(location, f"field 'labels[{number}]': {text}")


def _offset_faults(location: str, row: dict[str, Any]) -> Iterator[Fault]:
    """Yield the labels whose span is not in the response."""
    for number, span in enumerate(row["labels"]):
        if not _is_inside(span, row):
            offsets = f"{int(span['start'])} to {int(span['end'])}"
            message = f"is {offsets}, and the response has the characters 0 to {len(row['response'])}"
            yield Fault(location, f"field 'labels[{number}]' {message}")


def _is_inside(span: dict[str, Any], row: dict[str, Any]) -> bool:
    return int(span["start"]) < int(span["end"]) <= len(row["response"])


_OFFSET = {"type": "integer", "minimum": 0}

RAGTRUTH = Format(
    name="ragtruth",
    description="RAGTruth's response.jsonl: responses with unsupported spans; --corpus source_info.jsonl has the texts",
    schema=record(
        {
            "id": IDENTIFIER,
            "source_id": IDENTIFIER,
            "model": STRING,
            "labels": {
                "type": "array",
                "items": record({"start": _OFFSET, "end": _OFFSET}, {"text": STRING, "label_type": STRING}),
            },
            "response": STRING,
        },
        {"quality": TEXT_OR_NULL, "split": TEXT_OR_NULL, "temperature": {"type": ["number", "null"]}},
    ),
    required_fields=("source_id", "model", "labels", "response"),
    read=_read,
    check=_check,
    ids=unique_id("id"),
)
