"""DeepEval's test cases, as `EvaluationDataset` reads and saves them in JSON (`LLMTestCase`, single turn)."""

from collections.abc import Iterable, Iterator

from autoais.base.answers import CitedAnswer
from autoais.base.io.jsonl import dumps
from autoais.base.io.schema import STRING, STRINGS_OR_NULL, TEXT_OR_NULL, record
from autoais.formats.base import Format, Notes, Row
from autoais.formats.contexts import (
    CONTEXT_FEATURES,
    context_answer,
    context_output,
    first_reference,
    passages_of,
    select_extra,
    texts,
)

_OTHERS = (
    "context", "name", "additional_metadata", "comments", "tools_called", "expected_tools", "source_file", "tags",
)  # fmt: skip


def _read(rows: Iterable[Row], notes: Notes) -> Iterator[CitedAnswer]:
    for number, (_, row) in enumerate(rows, 1):
        yield context_answer(
            str(number),
            row["input"],
            row["actual_output"],
            passages_of((None, "", text) for text in row.get("retrieval_context") or ()),
            references=[row["expected_output"]] if row.get("expected_output") else [],
            extra={name: row[name] for name in _OTHERS if name in row},
        )


def _write(answers: Iterable[CitedAnswer], notes: Notes) -> Iterator[str]:
    for answer in answers:
        reference = first_reference(answer, notes)
        yield dumps(
            {
                "input": answer.question,
                "actual_output": context_output(answer, notes),
                **({} if reference is None else {"expected_output": reference}),
                "retrieval_context": texts(answer),
                **select_extra(answer, _OTHERS),
            }
        )


DEEPEVAL = Format(
    name="deepeval",
    description="DeepEval's test cases (a JSON list or jsonl): input, actual_output, retrieval_context",
    schema=record(
        {"input": STRING, "actual_output": TEXT_OR_NULL},
        {"retrieval_context": STRINGS_OR_NULL, "context": STRINGS_OR_NULL, "expected_output": TEXT_OR_NULL},
    ),
    required_fields=("input", "actual_output"),
    read=_read,
    write=_write,
    by_place=lambda row: True,
    supports=CONTEXT_FEATURES | {"reference answers"},
)
