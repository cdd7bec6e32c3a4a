"""TruLens's records (`Record`), which hold the calls of an app."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from autoais.base.answers import CitedAnswer
from autoais.base.io.schema import IDENTIFIER, STRING, TEXT_OR_NULL, list_of, record
from autoais.formats.base import Format, Notes, Row, unique_id
from autoais.formats.contexts import context_answer, passages_of

_TEXTS = ("page_content", "text")  # the fields of LangChain's and LlamaIndex's documents


def _records_read(rows: Iterable[Row], notes: Notes) -> Iterator[CitedAnswer]:
    for number, (_, row) in enumerate(rows, 1):
        contexts = dict.fromkeys(text for call in row.get("calls") or () for text in _retriever_texts(call))
        yield context_answer(
            str(row.get("record_id", number)),
            row["main_input"],
            row["main_output"],
            passages_of((None, "", text) for text in contexts),
            extra={"system": row["app_id"]} if isinstance(row.get("app_id"), str) else {},
        )


def _retriever_texts(call: Mapping[str, Any]) -> Iterator[str]:
    """Yield the texts that a call returned as a list: those of a retriever."""
    results = call.get("rets")
    for result in results if isinstance(results, list) else ():
        text = next((result[name] for name in _TEXTS if name in result), None) if isinstance(result, dict) else result
        if isinstance(text, str):
            yield text


RECORDS = Format(
    name="trulens-records",
    description="TruLens's records (jsonl or a JSON list): main_input, main_output, calls; lists returned are contexts",
    schema=record(
        {"main_input": STRING, "main_output": TEXT_OR_NULL},
        {"record_id": IDENTIFIER, "calls": list_of(record({})) | {"type": ["array", "null"]}},
    ),
    required_fields=("main_input", "main_output"),
    read=_records_read,
    by_place=lambda row: "record_id" not in row,
    ids=unique_id("record_id"),
)
