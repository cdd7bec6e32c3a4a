"""open-rag-eval's csv (Vectara): a row per passage; the answer, with markers `[1]`, is in the first row of a run."""

import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

from autoais.answers import CitedAnswer
from autoais.formats.aqa import csv_table
from autoais.formats.base import Format, Notes, Row
from autoais.formats.marked import sentences, written_answer
from autoais.io.schema import IDENTIFIER, STRING, record
from autoais.types import Citation, CitedSentence, Passage, Unresolved

_COLUMNS = ("query_id", "query", "query_run", "passage_id", "passage", "generated_answer")
_NUMBER = re.compile(r"\[?(\d{1,4})\]?")  # a passage's id is the marker that cites it


def _run(row: Row) -> tuple[str, str]:
    return row[1].get("query_id") or row[1]["query"], row[1].get("query_run") or ""


def _read(rows: Iterable[Row], notes: Notes) -> Iterator[CitedAnswer]:
    for (query, run), group in groupby(rows, _run):
        listed = [row for _, row in group]
        yield _answer(query if run in ("", "1") else f"{query}/{run}", run, listed)


def _answer(key: str, run: str, rows: list[dict[str, Any]]) -> CitedAnswer:
    passages: dict[str, Passage] = {}
    by_number: dict[int, str] = {}
    for row in rows:
        given = row["passage_id"].strip()
        if not given and not row["passage"].strip():
            continue
        number = _NUMBER.fullmatch(given)
        passages[given] = Passage(given, text=row["passage"])
        by_number.setdefault(int(number[1]) if number else len(by_number) + 1, given)
    output = next((row["generated_answer"] for row in rows if row["generated_answer"].strip()), "")
    marked = sentences(output, max(by_number, default=0))
    bad = []
    for place, one in enumerate(marked):
        bad += [Unresolved(*marker, place) for marker in one.unresolved]
        bad += [Unresolved(f"[{n}]", "out-of-range", place) for n in one.cites if n not in by_number]
    return CitedAnswer(
        id=key,
        question=rows[0]["query"],
        sentences=tuple(
            CitedSentence(m.text, tuple(Citation(by_number[n]) for n in m.cites if n in by_number)) for m in marked
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
        changed = sum(one != key for one, key in zip(ids, answer.passages, strict=True))
        if changed:
            notes["ids of passages, written as the numbers of their markers"] += changed
        output = written_answer(answer, notes)
        output = output if output.strip() else ""
        run = str(answer.extra.get("query_run", "1"))
        head = (answer.id.removesuffix(f"/{run}"), answer.question, run)
        shown = [(key, passage.evidence) for key, passage in zip(ids, answer.passages.values(), strict=True)]
        for number, (key, text) in enumerate(shown or [("", "")]):
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
    supports=frozenset(
        {"sentences", "citations beyond the first", "texts of passages", "passages not cited", "markers as written"}
    ),
    csv=True,
)
