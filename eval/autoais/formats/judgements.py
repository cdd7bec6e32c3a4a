"""The judgements of `autoais score --out`, a sentence a line; `autoais compare` reads them."""

from autoais.base.io.schema import IDENTIFIER, INTEGER, NUMBER_OR_NULL, STRING, TEXT_OR_NULL, list_of, record
from autoais.base.types import NOT_APPLICABLE, Verdict
from autoais.formats.base import Format

_VERDICT = {"type": "string", "enum": [*(verdict.value for verdict in Verdict), NOT_APPLICABLE]}

JUDGEMENTS = Format(
    name="judgements",
    description="judgements of `score --out` (jsonl), for `compare`: id, sentence, text, cites, verdict, judge",
    schema=record(
        {
            "id": IDENTIFIER,
            "sentence": {"type": ["integer", "null"], "minimum": 0},
            "text": STRING,
            "cites": list_of(STRING),
            "verdict": _VERDICT,
            "judge": STRING,
        },
        {
            "probability": NUMBER_OR_NULL,
            "reason": TEXT_OR_NULL,
            "alone": list_of(STRING),
            "evidence": list_of(record({"passage": STRING, "start": INTEGER, "end": INTEGER})),
            "unsupported": list_of(list_of(INTEGER)),
            "answer": _VERDICT,
            "scores": {"type": "object"},
        },
    ),
    required_fields=("id", "sentence", "verdict", "judge"),
)
