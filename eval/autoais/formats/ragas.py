"""RAGAS's datasets (`EvaluationDataset.to_jsonl`, `to_csv`): single-turn samples; conversations are refused.

Until RAGAS 0.2 a dataset had other names: question, answer, contexts, ground_truth (earlier: ground_truths, a list).
"""

from collections.abc import Iterable, Iterator

from autoais.base.answers import CitedAnswer
from autoais.base.io.jsonl import dumps
from autoais.base.io.schema import STRING, TEXT_OR_NULL, Schema, record
from autoais.formats.base import Format, Notes, Row
from autoais.formats.contexts import (
    CONTEXT_FEATURES,
    context_answer,
    context_output,
    first_reference,
    lists,
    passages_of,
    select_extra,
    strings_in,
    texts,
)

_OTHERS = ("reference_contexts", "multi_responses", "rubric", "rubrics")


def _read(rows: Iterable[Row], notes: Notes) -> Iterator[CitedAnswer]:
    for number, (location, row) in enumerate(rows, 1):
        contexts = strings_in(row, "retrieved_contexts", location)
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
                **select_extra(answer, _OTHERS),
            }
        )


def _read_0_1(rows: Iterable[Row], notes: Notes) -> Iterator[CitedAnswer]:
    for number, (location, row) in enumerate(rows, 1):
        references = [row["ground_truth"]] if row.get("ground_truth") else strings_in(row, "ground_truths", location)
        contexts = passages_of((None, "", text) for text in strings_in(row, "contexts", location))
        yield context_answer(str(number), row["question"], row["answer"], contexts, references=references)


_STRINGS: Schema = {"type": ["array", "string", "null"], "items": STRING}

RAGAS_0_1 = Format(
    name="ragas-0.1",
    description="samples of RAGAS before 0.2 (jsonl, csv or a JSON list): question, answer, contexts, ground_truth",
    schema=record(
        {"question": STRING, "answer": TEXT_OR_NULL, "contexts": _STRINGS},
        {"ground_truth": TEXT_OR_NULL, "ground_truths": _STRINGS},
    ),
    required_fields=("question", "answer", "contexts"),
    read=_read_0_1,
    by_place=lambda row: True,
    check=lists("contexts", "ground_truths"),
    csv=True,
)

RAGAS = Format(
    name="ragas",
    description="RAGAS's single-turn samples (jsonl, csv or a JSON list): user_input, retrieved_contexts, response",
    schema=record(
        {"user_input": STRING, "response": TEXT_OR_NULL},
        {"retrieved_contexts": _STRINGS, "reference": TEXT_OR_NULL},
    ),
    required_fields=("user_input", "response"),
    read=_read,
    write=_write,
    by_place=lambda row: True,
    check=lists("retrieved_contexts"),
    supports=CONTEXT_FEATURES | {"reference answers"},
    csv=True,
)
