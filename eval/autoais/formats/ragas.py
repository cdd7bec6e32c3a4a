"""RAGAS's datasets (`EvaluationDataset.to_jsonl`, `to_csv`): single-turn samples; conversations are refused."""

from collections.abc import Iterable, Iterator

from autoais.answers import CitedAnswer
from autoais.formats.base import Format, Notes, Row
from autoais.formats.contexts import (
    CONTEXT_FEATURES,
    context_answer,
    context_output,
    first_reference,
    kept,
    lists,
    passages_of,
    strings_in,
    texts,
)
from autoais.io.jsonl import dumps
from autoais.io.schema import STRING, TEXT_OR_NULL, record

_OTHERS = ("reference_contexts", "multi_responses", "rubric", "rubrics")


def _read(rows: Iterable[Row], notes: Notes) -> Iterator[CitedAnswer]:
    for number, (where, row) in enumerate(rows, 1):
        contexts = strings_in(row, "retrieved_contexts", where)
        yield context_answer(
            str(number),
            row["user_input"],
            row["response"],
            passages_of((None, "", text) for text in contexts),
            references=[row["reference"]] if row.get("reference") else [],
            extra={name: row[name] for name in _OTHERS if name in row},
        )


def _write(answers: Iterable[CitedAnswer], notes: Notes) -> Iterator[str]:
    for answer in answers:
        reference = first_reference(answer, notes)
        yield dumps(
            {
                "user_input": answer.question,
                "retrieved_contexts": texts(answer),
                "response": context_output(answer, notes),
                **({} if reference is None else {"reference": reference}),
                **kept(answer, _OTHERS),
            }
        )


RAGAS = Format(
    name="ragas",
    description="RAGAS's single-turn samples (jsonl, csv or a JSON list): user_input, retrieved_contexts, response",
    schema=record(
        {"user_input": STRING, "response": TEXT_OR_NULL},
        {"retrieved_contexts": {"type": ["array", "string", "null"], "items": STRING}, "reference": TEXT_OR_NULL},
    ),
    required_fields=("user_input", "response"),
    read=_read,
    write=_write,
    check=lists("retrieved_contexts"),
    supports=CONTEXT_FEATURES | {"reference answers"},
    csv=True,
)
