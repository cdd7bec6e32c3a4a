"""FlashRAG's results (`intermediate_data.json`): a JSON list of questions, each with the output of the pipeline."""

from collections.abc import Iterable, Iterator
from typing import Any

from autoais.base.answers import CitedAnswer
from autoais.base.io.jsonl import dumps
from autoais.base.io.schema import IDENTIFIER, STRING, STRINGS_OR_NULL, TEXT_OR_NULL, record
from autoais.base.types import Passage
from autoais.formats.base import Format, Notes, Row
from autoais.formats.contexts import CONTEXT_FEATURES, context_answer, context_output, passages_of, select_extra

_EXTRA = ("metadata",)
_OUTPUTS = ("retrieval_result", "pred")  # the other fields of `output` (prompt, metric_score, ...) are kept


def _read(rows: Iterable[Row], notes: Notes) -> Iterator[CitedAnswer]:
    for number, (_, row) in enumerate(rows, 1):
        output = row["output"]
        docs = output.get("retrieval_result") or ()
        passages = passages_of((str(doc["id"]) if "id" in doc else None, *_split(doc)) for doc in docs)
        scores = {
            key: float(doc["score"])
            for key, doc in zip(passages, docs, strict=True)
            if isinstance(doc.get("score"), int | float) and not isinstance(doc["score"], bool)
        }
        output_extra = {name: value for name, value in output.items() if name not in _OUTPUTS}
        other = {"flashrag": output_extra} if output_extra else {}
        yield context_answer(
            str(number) if row.get("id") is None else str(row["id"]),
            row["question"],
            output["pred"],
            passages,
            references=row.get("golden_answers") or (),
            scores=scores,
            extra={name: row[name] for name in _EXTRA if name in row} | other,
        )


def _split(doc: dict[str, Any]) -> tuple[str, str]:
    """Return title and text: the first line of `contents` is the title, in quotation marks in FlashRAG's Wikipedia."""
    title, line, text = doc["contents"].partition("\n")
    if not line:
        return doc.get("title") or "", doc["contents"]
    is_quoted = len(title) > 1 and title.startswith('"') and title.endswith('"')
    return title[1:-1] if is_quoted else title, text


def _write(answers: Iterable[CitedAnswer], notes: Notes) -> Iterator[str]:
    for answer in answers:
        output_extra = answer.extra.get("flashrag")
        yield dumps(
            {
                "id": answer.id,
                "question": answer.question,
                "golden_answers": list(answer.answers),
                "output": {
                    "retrieval_result": [
                        {"id": key, "contents": _contents(passage)}
                        | ({"score": answer.scores[key]} if key in answer.scores else {})
                        for key, passage in answer.passages.items()
                    ],
                    "pred": context_output(answer, notes),
                    **(output_extra if isinstance(output_extra, dict) else {}),
                },
                **select_extra(answer, _EXTRA),
            }
        )


def _contents(passage: Passage) -> str:
    title = passage.title or passage.headings
    return f'"{title}"\n{passage.text}' if title or "\n" in passage.text else passage.text


FLASHRAG = Format(
    name="flashrag",
    description="FlashRAG's intermediate_data.json (a JSON list or jsonl): question, golden_answers, output",
    schema=record(
        {
            "question": STRING,
            "output": record(
                {"pred": TEXT_OR_NULL},
                {
                    "retrieval_result": {
                        "type": ["array", "null"],
                        "items": record({"contents": STRING}, {"id": IDENTIFIER, "title": TEXT_OR_NULL}),
                    }
                },
            ),
        },
        {"id": {"type": ["string", "integer", "null"], "pattern": r"\S"}, "golden_answers": STRINGS_OR_NULL},
    ),
    required_fields=("question", "golden_answers", "output"),
    read=_read,
    write=_write,
    by_place=lambda row: row.get("id") is None,
    supports=CONTEXT_FEATURES | {"ids", "titles of passages", "scores of passages", "reference answers"},
)
