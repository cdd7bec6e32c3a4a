"""ALCE's files (Gao et al. 2023): results, a JSON document with `data`, a list of questions, docs and outputs.

Its files of questions are a JSON list of the same records without outputs.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from autoais.base.answers import CitedAnswer
from autoais.base.errors import FormatError
from autoais.base.io.jsonl import dumps
from autoais.base.io.schema import IDENTIFIER, STRING, STRINGS_OR_NULL, TEXT_OR_NULL, Schema, faults, list_of, record
from autoais.base.markers.sentences import MarkedSentence, parse_sentence, parse_sentences
from autoais.base.types import Citation, CitedSentence, Passage, Question, Unresolved
from autoais.formats.base import Fault, Format, Notes, Row, passage_ids
from autoais.formats.markers import in_document, restore_answer

_REFERENCES = ("answer", "answers", "annotations", "qa_pairs", "claims")
_ITEM = re.compile(r"(?:[^,\[]|\[[^\[\]]*\]|\[)+")  # a comma in a marker separates no items
_REFERENCES_SCHEMA: dict[str, Schema] = {
    "answers": {"type": ["array", "null"], "items": {"type": ["string", "array"], "items": STRING}},
    "qa_pairs": {"type": ["array", "null"], "items": record({"short_answers": list_of(STRING)})},
    "claims": STRINGS_OR_NULL,
    "annotations": {"type": ["array", "null"], "items": record({}, {"long_answer": TEXT_OR_NULL})},
}
_DOCS = list_of(record({"text": STRING}, {"id": IDENTIFIER, "title": TEXT_OR_NULL, "sent": TEXT_OR_NULL}))
_QUESTION: Schema = record(
    {"question": STRING, "docs": list_of(record({"text": STRING}, {"title": TEXT_OR_NULL}))},
    {"sample_id": IDENTIFIER, "id": IDENTIFIER, **_REFERENCES_SCHEMA},
)


def is_alce_question(row: Mapping[str, Any]) -> bool:
    """Whether a row is a question of ALCE with its docs."""
    docs = row.get("docs")
    return "question" in row and isinstance(docs, list) and all(isinstance(doc, Mapping) for doc in docs)


def question_of(row: Mapping[str, Any], location: str, number: int) -> Question:
    """Return the question of a row of ALCE's data, with all short answers (ASQA) or aliases (QAMPARI) as references.

    `number` is its id if it has neither `sample_id` nor `id`. Raises `FormatError`, which starts with `location`.
    """
    for fault in faults(row, _QUESTION):
        raise FormatError(f"{location}: {fault}")
    lists = [pair["short_answers"] for pair in row.get("qa_pairs") or ()]
    lists += [aliases if isinstance(aliases, list) else [aliases] for aliases in row.get("answers") or ()]
    references = dict.fromkeys(alias for aliases in lists for alias in aliases if alias.strip())
    return Question(_key(row, number), row["question"], tuple(references))


def docs_of(row: Mapping[str, Any], question: Question) -> Iterator[Passage]:
    """Yield the docs of a question in their order, without those that have no text.

    The id is `QUESTION:NUMBER` where it is missing or taken.
    """
    ids = [None if doc.get("id") is None else str(doc["id"]) for doc in row["docs"]]
    for key, doc in zip(passage_ids(ids, lambda number: f"{question.id}:{number}"), row["docs"], strict=True):
        if doc["text"].strip():
            yield Passage(key, doc.get("title") or "", doc["text"])


def references_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a row that ALCE's measures of answers read (`autoais.metrics.alce_answers`)."""
    return {name: row[name] for name in _REFERENCES if row.get(name) is not None}


def _key(row: Mapping[str, Any], number: int) -> str:
    return str(next((row[name] for name in ("sample_id", "id") if row.get(name) is not None), number))


def _read(rows: Iterable[Row], notes: Notes) -> Iterator[CitedAnswer]:
    for number, (_, row) in enumerate(rows, 1):
        yield _answer(row, str(row.get("sample_id", number)))


def _answer(row: dict[str, Any], key: str) -> CitedAnswer:
    passages: dict[str, Passage] = {}
    scores: dict[str, float] = {}
    ids = [str(doc["id"]) if "id" in doc else None for doc in row["docs"]]
    for key_of_doc, doc in zip(passage_ids(ids, "doc {}".format), row["docs"], strict=True):
        title, score = doc.get("title") or "", doc.get("score")
        text = doc.get("sent") or doc["text"]
        passages[key_of_doc] = Passage(key_of_doc, title, text)
        if isinstance(score, int | float) and not isinstance(score, bool):
            scores[key_of_doc] = float(score)
    order = tuple(passages)
    given_answers = row.get("answers")
    strings = isinstance(given_answers, list) and all(isinstance(answer, str) for answer in given_answers)
    parse = parse_sentences if strings or not given_answers else _items
    items = parse(row["output"] or "", len(order))
    return CitedAnswer(
        id=key,
        question=row["question"],
        sentences=tuple(CitedSentence(m.text, tuple(Citation(order[n - 1]) for n in m.cites)) for m in items),
        passages=passages,
        ranking=order,
        scores=scores,
        unresolved_markers=tuple(Unresolved(*bad, n) for n, m in enumerate(items) for bad in m.unresolved),
        answers=tuple(given_answers) if strings and given_answers else (),
        output=row["output"],
        extra={name: row[name] for name in _REFERENCES if name in row and not (name == "answers" and strings)},
    )


def _items(output: str, n: int) -> list[MarkedSentence]:
    """Parse a list of items between commas, as QAMPARI's outputs are."""
    parsed = (parse_sentence(item.strip(), n) for item in _ITEM.findall(output.rstrip().rstrip(".").rstrip(",")))
    return [item for item in parsed if item.text.strip() or item.unresolved]


def _write(answers: Iterable[CitedAnswer], notes: Notes) -> Iterator[str]:
    yield from in_document('{"args": {}, "data": [', (dumps(_row(answer, notes)) for answer in answers))


def _row(answer: CitedAnswer, notes: Notes) -> dict[str, Any]:
    return {
        "sample_id": answer.id,
        "question": answer.question,
        **{name: answer.extra[name] for name in _REFERENCES if name in answer.extra},
        **({"answers": list(answer.answers)} if answer.answers else {}),
        "docs": [
            {"id": key, "title": passage.title or passage.headings, "text": passage.text}
            | ({"score": answer.scores[key]} if key in answer.scores else {})
            for key, passage in answer.passages.items()
        ],
        "output": restore_answer(answer, notes),
    }


def _check(rows: Iterable[Row]) -> Iterator[Fault]:
    locations: dict[str, str] = {}
    for number, (location, row) in enumerate(rows, 1):
        key = str(row.get("sample_id", number))
        if key in locations:
            yield Fault(location, f"field 'sample_id': {key!r} occurs twice (first at {locations[key]})")
        locations.setdefault(key, location)
        answer = _answer(row, key)
        for bad in answer.unresolved_markers:
            yield Fault(location, f"field 'output': marker {bad.marker} is {bad.reason}", warning=True)
        if not answer.sentences:
            yield Fault(location, "field 'output' is empty: ALCE leaves the answer out, we count it as 0", warning=True)


ALCE = Format(
    name="alce",
    description="ALCE's result JSON: {args, data: [{question, docs, output, ...}]}",
    schema=record(
        {
            "question": STRING,
            "docs": _DOCS,
            "output": TEXT_OR_NULL,
        },
        {"sample_id": IDENTIFIER, **_REFERENCES_SCHEMA},
    ),
    required_fields=("question", "docs", "output"),
    read=_read,
    write=_write,
    check=_check,
    by_place=lambda row: "sample_id" not in row,
    supports=frozenset(
        {"ids", "sentences", "citations beyond the first", "texts of passages", "titles of passages",
         "scores of passages", "passages not cited", "reference answers", "markers as written",
         "unresolved markers in the text"}
    ),
)  # fmt: skip
