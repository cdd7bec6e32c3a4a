"""open-rag-eval's csv (Vectara): a row per passage; the answer, with markers `[1]`, is in the first row of a run."""

import re
from collections.abc import Iterable, Iterator
from itertools import count, groupby
from typing import Any

from autoais.base.answers import CitedAnswer
from autoais.base.errors import FormatError
from autoais.base.io.schema import IDENTIFIER, STRING, record
from autoais.base.markers.sentences import parse_sentences
from autoais.base.types import Citation, CitedSentence, Passage, Unresolved
from autoais.formats.aqa import csv_table
from autoais.formats.base import Fault, Format, Notes, Row
from autoais.formats.markers import restore_answer

_COLUMNS = ("query_id", "query", "query_run", "passage_id", "passage", "generated_answer")
_NUMBER = re.compile(r"\[?(\d{1,4})\]?")  # a passage's id is the marker that cites it


def _run(row: Row) -> tuple[str, str]:
    return str(row[1].get("query_id", row[1]["query"])), row[1].get("query_run") or "1"


def _find_faults(rows: Iterable[Row]) -> Iterator[tuple[Row, str | None]]:
    """Yield each row with its fault, if it would lose data of the rows before it."""
    locations: dict[tuple[str, str], str] = {}
    for (query, run), group in groupby(rows, _run):
        first = locations.get((query, run))
        answer, ids = "", dict[str, str]()
        for location, row in group:
            locations.setdefault((query, run), location)
            key, output = _id(row), row["generated_answer"].strip()
            fault = None
            if first:
                fault = f"run {run[:60]!r} of query {query[:60]!r} began at {first}; its rows should be adjacent"
            elif key and key in ids:
                fault = f"field 'passage_id': {key[:60]!r} occurs twice in its run (first at {ids[key]})"
            elif answer and output and output != answer:
                fault = f"field 'generated_answer': a second answer in run {run[:60]!r} of query {query[:60]!r}"
            ids.setdefault(key, location)
            answer = answer or output
            yield (location, row), fault


def _id(row: dict[str, Any]) -> str:
    """Return the id of a passage; `[1]` for `1`, empty if there is none."""
    text: str = row["passage_id"].strip()
    number = _NUMBER.fullmatch(text)
    return f"[{int(number[1])}]" if number else text


def _check(rows: Iterable[Row]) -> Iterator[Fault]:
    for (location, _), fault in _find_faults(rows):
        if fault:
            yield Fault(location, fault)


def _sound(rows: Iterable[Row]) -> Iterator[Row]:
    for (location, row), fault in _find_faults(rows):
        if fault:
            raise FormatError(f"{location}: {fault}")
        yield location, row


def _read(rows: Iterable[Row], notes: Notes) -> Iterator[CitedAnswer]:
    for (query, run), group in groupby(_sound(rows), _run):
        run_rows = [row for _, row in group]
        yield _answer(query if run == "1" else f"{query}/{run}", run_rows[0].get("query_run") or "", run_rows)


def _answer(key: str, run: str, rows: list[dict[str, Any]]) -> CitedAnswer:
    passages: dict[str, Passage] = {}
    by_number: dict[int, str] = {}
    keys = {_id(row) for row in rows}
    free = (number for number in count(1) if f"[{number}]" not in keys)  # for ids that are empty or no numbers
    for row in rows:
        key_text = row["passage_id"].strip()
        if not key_text and not row["passage"].strip():
            continue
        match = _NUMBER.fullmatch(key_text)
        number = int(match[1]) if match else next(free)
        key_text = key_text or f"[{number}]"
        passages[key_text] = Passage(key_text, text=row["passage"])
        by_number[number] = key_text
    output = next((row["generated_answer"] for row in rows if row["generated_answer"].strip()), "")
    parsed = parse_sentences(output, max(by_number, default=0))
    bad = []
    for index, sentence in enumerate(parsed):
        bad += [Unresolved(*marker, index) for marker in sentence.unresolved]
        bad += [Unresolved(f"[{n}]", "out-of-range", index) for n in sentence.cites if n not in by_number]
    return CitedAnswer(
        id=key,
        question=rows[0]["query"],
        sentences=tuple(
            CitedSentence(m.text, tuple(Citation(by_number[n]) for n in m.cites if n in by_number)) for m in parsed
        ),
        passages=passages,
        ranking=tuple(passages),
        unresolved_markers=tuple(bad),
        output=output,
        extra={"query_run": run} if run else {},
    )


def _write(answers: Iterable[CitedAnswer], notes: Notes) -> Iterator[str]:
    return csv_table(_COLUMNS, _rows(answers, notes))


def _rows(answers: Iterable[CitedAnswer], notes: Notes) -> Iterator[tuple[str, ...]]:
    for answer in answers:
        ids = [f"[{number}]" for number in range(1, len(answer.passages) + 1)]
        change_count = sum(marker != key for marker, key in zip(ids, answer.passages, strict=True))
        if change_count:
            notes["ids of passages, written as the numbers of their markers"] += change_count
        output = restore_answer(answer, notes)
        output = output if output.strip() else ""
        run = str(answer.extra.get("query_run", "1"))
        head = (answer.id.removesuffix(f"/{run}"), answer.question, run)
        texts = [(key, passage.evidence) for key, passage in zip(ids, answer.passages.values(), strict=True)]
        for number, (key, text) in enumerate(texts or [("", "")]):
            yield (*head, key, text, "" if number else output)


OPEN_RAG_EVAL = Format(
    name="open-rag-eval",
    description="open-rag-eval's csv: query_id, query, query_run, passage_id ([1]), passage, generated_answer",
    schema=record(
        {"query": STRING, "passage_id": STRING, "passage": STRING, "generated_answer": STRING},
        {"query_id": IDENTIFIER, "query_run": STRING},
    ),
    required_fields=("query", "passage_id", "passage", "generated_answer"),
    read=_read,
    write=_write,
    check=_check,
    supports=frozenset(
        {
            "ids",
            "sentences",
            "citations beyond the first",
            "texts of passages",
            "passages not cited",
            "markers as written",
            "unresolved markers in the text",
        }
    ),
    csv=True,
)
