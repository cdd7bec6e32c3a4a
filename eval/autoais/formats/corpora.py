"""Readers of passage corpora, one passage a line: MIRACL, MS MARCO, BEIR, Attributed QA, Pyserini, DPR, RAGTruth."""

import csv
import json
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from autoais.base.errors import FormatError, UserError, field_names
from autoais.base.io.files import allow_long_cells, lines
from autoais.base.io.jsonl import dumps, field, identifier, parse_object
from autoais.base.io.notes import Notes
from autoais.base.registry import Registry
from autoais.base.text import wikipedia
from autoais.base.types import Passage

_MAX_LINES = 1000  # lines to look at when detecting the format; the first ones may be broken
_DPR_HEADER = b"id\ttext\ttitle"


@dataclass(frozen=True, slots=True)
class CorpusFormat:
    """A corpus format: `detect` recognises a line, `parse` turns a line into a passage.

    `parse` takes the line and `file:line`, and raises `FormatError`. A first line equal to `header` is skipped.
    `fields` are those that a line of JSON must have, to name the nearest format of a line that fits none.
    """

    description: str
    detect: Callable[[bytes], bool]
    parse: Callable[[bytes, str], Passage]
    header: bytes | None = None
    fields: tuple[str, ...] = ()


def _has(line: bytes, *names: str) -> dict[str, Any] | None:
    """Return the JSON object of a line if it has these fields, else None."""
    try:
        row = json.loads(line.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) and row.keys() >= set(names) else None


def _is_aqa(line: bytes) -> bool:
    row = _has(line, "id", "contents")
    return row is not None and str(row["contents"]).startswith("« ")


def _is_dpr(line: bytes) -> bool:
    return line.rstrip(b"\r\n") == _DPR_HEADER or (not line.startswith(b"{") and line.count(b"\t") == 2)


def _fields(key: str, line: bytes, location: str, text: str = "text") -> Passage:
    row = parse_object(line, location)
    # Titles are optional (767 MIRACL passages of the pool have none), texts are not.
    title, section = (
        field(row, name, str, location) if row.get(name) is not None else "" for name in ("title", "section")
    )
    return Passage(identifier(row, key, location), title, field(row, text, str, location), section)


def _json(description: str, key: str, text: str = "text") -> CorpusFormat:
    """Return a format of JSON lines with an id, a text, and title and section where they are known."""
    fields = (key, text)
    parse = partial(_fields, key, text=text)
    return CorpusFormat(description, lambda line: _has(line, *fields) is not None, parse, fields=fields)


def _pyserini(line: bytes, location: str) -> Passage:
    row = parse_object(line, location)
    return Passage(identifier(row, "id", location), text=field(row, "contents", str, location))


def _aqa(line: bytes, location: str) -> Passage:
    # Contents without the « » marks are a text without headings, as in Attributed QA's released script.
    row = parse_object(line, location)
    contents, key = field(row, "contents", str, location), identifier(row, "id", location)
    return wikipedia.parse(contents, key) or Passage(key, text=contents)


def _ragtruth(line: bytes, location: str) -> Passage:
    """Return the source: a text to summarize, a question with its passages, or a JSON object to describe."""
    row = parse_object(line, location)
    source = row["source_info"]
    if isinstance(source, dict):
        source = source["passages"] if isinstance(source.get("passages"), str) else dumps(source)
    elif not isinstance(source, str):
        raise FormatError(f"{location}: field 'source_info' should be a string or an object, found {source!r:.60}")
    return Passage(identifier(row, "source_id", location), text=source)


def _dpr(line: bytes, location: str) -> Passage:
    allow_long_cells(len(line))
    try:
        cells = next(csv.reader([line.decode("utf-8")], delimiter="\t"), [])
    except UnicodeDecodeError as error:
        raise FormatError(f"{location}: not UTF-8 at byte {error.start}") from error
    except csv.Error as error:
        raise FormatError(f"{location}: not a TSV row: {error}") from error
    if len(cells) != 3:
        raise FormatError(f"{location}: expected three columns (id, text, title), found {len(cells)}")
    key, text, title = cells
    return Passage(key, title, text)


CORPORA: Registry[CorpusFormat] = Registry(
    "autoais.corpora",
    "corpus format",
    {
        "miracl": _json("MIRACL's jsonl: docid, title, text; our pool has the same fields", "docid"),
        # Its headings are those of the whole page, not of the segment: they are no part of the passage.
        "msmarco-v2.1": _json("MS MARCO v2.1's segments (jsonl), for TREC RAG: docid, segment", "docid", "segment"),
        "beir": _json("BEIR's corpus.jsonl: _id, title, text", "_id"),
        "aqa": CorpusFormat(
            "Attributed QA's Wikipedia (jsonl): id and contents as « Title » « Title, Section » text", _is_aqa, _aqa
        ),
        "pyserini": CorpusFormat(
            "Pyserini's jsonl: id, contents",
            lambda line: _has(line, "id", "contents") is not None,
            _pyserini,
            fields=("id", "contents"),
        ),
        "ragtruth": CorpusFormat(
            "RAGTruth's source_info.jsonl: source_id, source_info",
            lambda line: _has(line, "source_id", "source_info") is not None,
            _ragtruth,
            fields=("source_id", "source_info"),
        ),
        "dpr": CorpusFormat("DPR's psgs_w100.tsv: id, text, title", _is_dpr, _dpr, _DPR_HEADER),
    },
)


def detect_corpus(path: Path) -> str:
    """Return the format of a corpus file, by its first line that fits one; raises `FormatError` if none does."""
    kinds = list(CORPORA.items())
    first: bytes | None = None
    for line in islice((line for line in lines(path) if line.strip()), _MAX_LINES):
        if b"\0" in line:
            raise FormatError(f"{path} contains zero bytes, so it is not UTF-8 text; corpora are: {', '.join(CORPORA)}")
        first = line if first is None else first
        for name, kind in kinds:
            if kind.detect(line):
                return name
    if first is None:
        raise FormatError(f"{path} is empty")
    raise FormatError(f"{path}:1: not a corpus format known here; there are: {', '.join(CORPORA)}{_nearest(first)}")


def _nearest(line: bytes) -> str:
    """Return the fields of a line of JSON, and the fields of the nearest format, or of all, that it lacks."""
    row = _has(line)
    if row is None:
        return ""
    fields = {name: kind.fields for name, kind in CORPORA.items() if kind.fields}
    name, names = max(fields.items(), key=lambda item: sum(name in row for name in item[1]))
    missing = [field_name for field_name in names if field_name not in row]
    if len(missing) < len(names):
        hint = f"the nearest is {name}, which also has {', '.join(missing)}"
    else:
        hint = f"a passage has {', or '.join(' and '.join(names) for names in fields.values())}"
    return f"; found fields {field_names(row)}; {hint}"


def read_passages(
    path: Path, name: str | None = None, progress: Callable[[int], None] = lambda _: None, *, empty: bool = False
) -> Iterator[tuple[str, Passage | FormatError]]:
    """Yield (`file:line`, passage) for each line of a corpus file, plain or compressed; (`file:line`, error) if broken.

    Every passage has an id and, unless `empty` is set, a text. `progress` gets the number of bytes read so far.
    """
    kind = CORPORA[name or detect_corpus(path)]
    for number, line in enumerate(lines(path, progress), 1):
        if not line.strip() or (kind.header is not None and number == 1 and line.rstrip(b"\r\n") == kind.header):
            continue
        location = f"{path}:{number}"
        try:
            yield location, _check_passage(kind.parse(line, location), location, empty=empty)
        except FormatError as error:
            yield location, error


def _check_passage(passage: Passage, location: str, *, empty: bool) -> Passage:
    if not passage.id.strip():
        raise FormatError(f"{location}: the id is empty")
    if not empty and not passage.text.strip():
        raise FormatError(f"{location}: passage {passage.id!r} has no text")
    return passage


def find_passages(
    paths: Iterable[Path], ids: Collection[str], notes: Notes, *, skip_bad: bool = False
) -> dict[str, Passage]:
    """Return the passages with these ids, streaming the files until all are found; missing ids are left out.

    Raises `FormatError` for a broken line, because its passage would count as missing; with `skip_bad` the line is
    counted in `notes` instead.
    """
    passages: dict[str, Passage] = {}
    for path in paths:
        for _, passage in read_passages(path, empty=True):
            if len(passages) == len(ids):
                return passages
            if isinstance(passage, FormatError):
                if not skip_bad:
                    raise passage
                notes.tell("broken_lines", "broken lines of the corpus, skipped")
            elif passage.id in ids and passage.id not in passages:
                passages[passage.id] = passage
    return passages


def check_corpus_format(name: str | None, other_names: Collection[str] = ()) -> None:
    """Raise `UserError` unless `name` is a corpus format, one of `other_names`, or None (to be detected)."""
    if name is not None and name not in CORPORA and name not in other_names:
        raise UserError(f"no corpus format called {name!r}; there are: {', '.join([*CORPORA, *other_names])}")
