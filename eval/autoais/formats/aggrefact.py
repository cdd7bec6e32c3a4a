"""LLM-AggreFact (Tang et al. 2024): a claim, the document to check it against and a binary label per row."""

from collections.abc import Iterable, Iterator
from typing import Any

from autoais.base.answers import CitedAnswer
from autoais.base.io.files import record_key
from autoais.base.io.schema import STRING, TEXT_OR_NULL, record
from autoais.base.labels import LabelledClaim
from autoais.base.types import Attribution
from autoais.formats.aqa import csv_table
from autoais.formats.base import Fault, Format, Notes, Row
from autoais.formats.claims import claim_answer, read_labels

_COLUMNS = ("dataset", "doc", "claim", "label", "contamination_identifier")


def _label(row: dict[str, Any], key: str) -> LabelledClaim:
    return LabelledClaim(row["dataset"], key, Attribution(row["claim"], (row["doc"],)), str(row["label"]) == "1")


def _read(rows: Iterable[Row], notes: Notes) -> Iterator[CitedAnswer]:
    for number, (_, row) in enumerate(rows, 1):
        mark = row.get("contamination_identifier")
        yield claim_answer(_label(row, str(number)), {"contamination_identifier": mark} if mark else {})


def _write(answers: Iterable[CitedAnswer], notes: Notes) -> Iterator[str]:
    return csv_table(_COLUMNS, _rows(answers, notes))


def _rows(answers: Iterable[CitedAnswer], notes: Notes) -> Iterator[tuple[str, ...]]:
    for answer, _, sentence, label in read_labels(answers, notes):
        doc = "\n\n".join(answer.passages[key].evidence for key in sentence.cites)
        dataset, mark = (str(answer.extra.get(name, "")) for name in ("dataset", "contamination_identifier"))
        yield dataset or "converted", doc, sentence.text, str(int(label)), mark


def _check(rows: Iterable[Row]) -> Iterator[Fault]:
    for location, row in rows:
        for name in ("doc", "claim"):
            if not row[name].strip():
                yield Fault(location, f"field {name!r} is empty: not attributable", warning=True)


AGGREFACT = Format(
    name="aggrefact",
    description="LLM-AggreFact's rows (csv or jsonl): dataset, doc, claim, label (1 = supported)",
    schema=record(
        {
            "dataset": STRING,
            "doc": STRING,
            "claim": STRING,
            "label": {"type": ["integer", "string"], "enum": [0, 1, "0", "1"]},
        },
        {"contamination_identifier": TEXT_OR_NULL},
    ),
    required_fields=("dataset", "doc", "claim", "label"),
    read=_read,
    write=_write,
    by_place=lambda row: True,
    labels=lambda row, location: iter([_label(row, record_key(location))]),
    check=_check,
    supports=frozenset(
        {
            "sentences",
            "boundaries of sentences",
            "labels of sentences",
            "labels of answers",
            "texts of passages",
            "citations beyond the first",
        }
    ),
    csv=True,
)
