"""Corpora that passage ids point into: those of Attributed QA (and Pyserini), MIRACL (and our pool) and BEIR."""

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

from autoais.answers import ShownPassage
from autoais.errors import FormatError
from autoais.formats.base import Format, Notes, id_twice
from autoais.io.files import records
from autoais.io.schema import IDENTIFIER, STRING, TEXT_OR_NULL, faults, record
from autoais.text.wikipedia import parse

AQA = Format(
    name="aqa-corpus",
    says="Attributed QA's Wikipedia (jsonl): id and `contents` as « Title » « Title, Section » text; Pyserini's too",
    schema=record({"id": IDENTIFIER, "contents": STRING}),
    marks=("id", "contents"),
    ids=id_twice("id"),
)
MIRACL = Format(
    name="miracl-corpus",
    says="MIRACL's passages (jsonl): docid, title, text; our pool has the same fields",
    schema=record({"docid": IDENTIFIER, "text": STRING}, {"title": TEXT_OR_NULL, "section": TEXT_OR_NULL}),
    marks=("docid", "text"),
    ids=id_twice("docid"),
)
_BEIR = record({"_id": IDENTIFIER, "text": STRING}, {"title": TEXT_OR_NULL})
_WANTED = "a passage has id and contents, docid and text, or _id and text"
_SCHEMAS = {"docid": MIRACL.schema, "_id": _BEIR, "id": AQA.schema}


def find_passages(
    paths: Iterable[Path], ids: Collection[str], notes: Notes, *, skip_bad: bool = False
) -> dict[str, ShownPassage]:
    """The passages with those ids, read as a stream until all are found; an id that is not there is left out.

    `FormatError` at a broken line, because its passage would count as missing; with `skip_bad` it is counted instead.
    """
    found: dict[str, ShownPassage] = {}
    for path in paths:
        for where, row in records(path):
            if len(found) == len(ids):
                return found
            try:
                key = _key(row, where)
                if key in ids and key not in found:
                    found[key] = _passage(row, where)
            except FormatError:
                if not skip_bad:
                    raise
                notes["broken lines of the corpus, skipped"] += 1
    return found


def _key(row: dict[str, Any] | FormatError, where: str) -> str:
    if isinstance(row, FormatError):
        raise row
    for name in _SCHEMAS:
        if name in row:
            return str(row[name])
    found = ", ".join(sorted(row))[:200]
    raise FormatError(f"{where}: no passage among the fields {found}; {_WANTED}")


def _passage(row: dict[str, Any] | FormatError, where: str) -> ShownPassage:
    assert isinstance(row, dict)
    schema = next(schema for name, schema in _SCHEMAS.items() if name in row)
    for fault in faults(row, schema):
        raise FormatError(f"{where}: {fault}; {_WANTED}")
    if "contents" in row:
        parts = parse(row["contents"])
        return ShownPassage(parts.headings, parts.text, parts.title) if parts else ShownPassage("", row["contents"])
    title, section = row.get("title") or "", row.get("section") or ""
    return ShownPassage(", ".join(filter(None, (title, section))), row["text"], title)
