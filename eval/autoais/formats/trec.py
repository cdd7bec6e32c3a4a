"""Runs of the TREC RAG track, 2024 and 2025, and TREC AutoJudge's reports: reader, writer, checks and fixes."""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

from autoais.base.answers import CitedAnswer
from autoais.base.io.jsonl import dumps
from autoais.base.io.schema import IDENTIFIER, INTEGER, STRING, TEXT_OR_NULL, list_of, record
from autoais.base.types import Citation, CitedSentence, Passage, Unresolved
from autoais.formats.base import CheckIds, Fault, Format, Notes, Row, get_valid, unique_key

REFERENCES = {"trec-rag-24": 20, "trec-rag-25": 100}
WORDS = 400
_DOCID = re.compile(r"^msmarco_v2\.1_doc_\d+_\d+#\d+_\d+$")
KEEPS = frozenset({"ids", "sentences", "boundaries of sentences", "citations beyond the first", "passages not cited"})


def words(text: str) -> int:
    """Return the length as the track counts it: white-space tokens after NFKC."""
    return len(unicodedata.normalize("NFKC", text).split())


def _about(row: dict[str, Any]) -> dict[str, Any]:
    """Return the object that names topic and run: the row, or its metadata in a 2025 run."""
    metadata = row.get("metadata")
    if not isinstance(metadata, dict):
        return row
    return metadata if "topic_id" not in row or {"narrative_id", "run_id"} <= metadata.keys() else row


def _topic(row: dict[str, Any]) -> str | None:
    metadata = _about(row)
    return get_valid(metadata, "topic_id" if metadata is row else "narrative_id")


def _text(row: dict[str, Any]) -> str:
    """Return the text of the topic; empty if a 2025 row omits it."""
    metadata = _about(row)
    return get_valid(metadata, "topic" if metadata is row else "narrative", STRING) or ""


def _resolve(row: dict[str, Any], citation: object) -> str | None:
    """Return the docid of a citation: a 0-based number (2024, and format 1 of 2025) or a docid (format 2 of 2025)."""
    references = row["references"]
    if isinstance(citation, str):
        return citation if citation in references else None
    number = int(citation) if isinstance(citation, int | float) else -1
    return references[number] if 0 <= number < len(references) else None


def read_run(rows: Iterable[Row], notes: Notes, texts: str = "") -> Iterator[CitedAnswer]:
    """Yield the answers of a run of 2024 or 2025, or of reports, whose field `texts` has those of the documents."""
    for _, row in rows:
        documents = row[texts] if texts else {}
        sentences, unresolved = [], []
        for number, item in enumerate(row["answer"]):
            pairs = [(citation, _resolve(row, citation)) for citation in item["citations"]]
            unresolved += [Unresolved(str(citation), "out-of-range", number) for citation, key in pairs if key is None]
            cites = dict.fromkeys(key for _, key in pairs if key is not None)
            sentences.append(CitedSentence(item["text"], tuple(map(Citation, cites))))
        metadata = _about(row)
        by_docid = any(isinstance(citation, str) for item in row["answer"] for citation in item["citations"])
        names = row.keys() if metadata is row else ("run_id", "narrative_id", "narrative")
        extra = {name: value for name, value in metadata.items() if name not in names}
        yield CitedAnswer(
            id=_topic(row) or "",
            question=_text(row),
            sentences=tuple(sentences),
            passages={key: _passage(key, documents.get(key) or {}) for key in row["references"]},
            ranking=tuple(dict.fromkeys(row["references"])),
            unresolved_markers=tuple(unresolved),
            extra={"system": str(metadata["run_id"])}
            | ({"metadata": extra} if extra else {})
            | ({"citations_by": "docid"} if by_docid else {}),
        )


def _passage(key: str, document: dict[str, Any]) -> Passage:
    return Passage(key, document.get("title") or "", document.get("text") or "")


def _select_references(answer: CitedAnswer, limit: int | None, notes: Notes) -> list[str]:
    """Return up to `limit` references in the order of the passages; cited ones have priority, then the best ranked."""
    cites = [key for sentence in answer.sentences for key in sentence.cites]
    ranking = list(dict.fromkeys([*cites, *answer.ranking, *answer.passages]))
    if limit is not None and len(ranking) > limit:
        notes[f"references beyond {limit}, left out with the citations to them"] += len(ranking) - limit
    keep = set(ranking[:limit])
    return [key for key in answer.passages if key in keep]


def run_row(answer: CitedAnswer, limit: int | None, notes: Notes) -> dict[str, Any]:
    """Return a row of a run of 2024, with up to `limit` references."""
    references = _select_references(answer, limit, notes)
    return {
        "run_id": str(answer.extra.get("system", "unknown")),
        "topic_id": answer.id,
        "topic": answer.question,
        "references": references,
        "response_length": sum(words(sentence.text) for sentence in answer.sentences),
        "answer": _sentences(answer, references, by_docid=False),
    }


def _write_24(answers: Iterable[CitedAnswer], notes: Notes) -> Iterator[str]:
    for answer in answers:
        yield dumps(run_row(answer, REFERENCES["trec-rag-24"], notes))


def _write_25(answers: Iterable[CitedAnswer], notes: Notes) -> Iterator[str]:
    return map(dumps, _rows_25(answers, notes))


def _write_reports(answers: Iterable[CitedAnswer], notes: Notes) -> Iterator[str]:
    for answer in answers:
        (row,) = _rows_25([answer], notes)
        passages = (answer.passages[key] for key in row["references"])
        documents = {
            passage.id: {"id": passage.id, "title": passage.headings or None, "text": passage.text}
            for passage in passages
        }
        yield dumps(row | {"documents": documents})


def _rows_25(answers: Iterable[CitedAnswer], notes: Notes) -> Iterator[dict[str, Any]]:
    for answer in answers:
        references = _select_references(answer, REFERENCES["trec-rag-25"], notes)
        metadata = {
            "team_id": "unknown",
            "run_id": str(answer.extra.get("system", "unknown")),
            "narrative_id": answer.id,
        }
        metadata |= {"narrative": answer.question} if answer.question else {}
        extra = answer.extra.get("metadata")
        by_docid = answer.extra.get("citations_by") == "docid"
        yield {
            "metadata": metadata | (extra if isinstance(extra, dict) else {}),
            "references": references,
            "answer": _sentences(answer, references, by_docid=by_docid),
        }


def _sentences(answer: CitedAnswer, references: list[str], *, by_docid: bool) -> list[dict[str, Any]]:
    numbers = {key: number for number, key in enumerate(references)}
    return [
        {
            "text": sentence.text,
            "citations": [key if by_docid else numbers[key] for key in sentence.cites if key in numbers],
        }
        for sentence in answer.sentences
    ]


# --- checks and fixes ----------------------------------------------------------------------------------------------


def _ids() -> CheckIds:
    topic_twice = unique_key(_topic, "topic {key} occurs twice (first at {first})")()
    first: str | None = None

    def check(location: str, row: dict[str, Any]) -> Iterator[Fault]:
        nonlocal first
        yield from topic_twice(location, row)
        run = get_valid(_about(row), "run_id", STRING)
        first = run if first is None else first
        if run is not None and run != first:
            yield Fault(location, f"field 'run_id' is {run!r}, in the first row it is {first!r}; a file holds one run")

    return check


def _check(rows: Iterable[Row]) -> Iterator[Fault]:
    for location, row in rows:
        yield from _row_faults(location, row)


def _row_faults(location: str, row: dict[str, Any]) -> Iterator[Fault]:
    length = sum(words(item["text"]) for item in row["answer"])
    if length > WORDS:
        yield Fault(location, f"field 'answer' has {length} words, more than {WORDS}")
    if row.get("response_length", length) != length:
        message = f"field 'response_length' is {row['response_length']}, counted {length}"
        yield Fault(location, message, warning=True)
    kinds = {isinstance(citation, str) for item in row["answer"] for citation in item["citations"]}
    if len(kinds) > 1:
        yield Fault(location, "field 'answer' cites by number and by docid; a row should use one of them")
    for number, item in enumerate(row["answer"]):
        name = f"answer[{number}].citations"
        for citation in item["citations"]:
            if _resolve(row, citation) is None:
                expected = "the references" if isinstance(citation, str) else f"0 to {len(row['references']) - 1}"
                yield Fault(location, f"field {name!r}: {citation!r} is not among {expected}")
        if len(set(map(str, item["citations"]))) < len(item["citations"]):
            yield Fault(location, f"field {name!r} has a citation twice", warning=True)
    strange = [key for key in row["references"] if not _DOCID.match(key)]
    if strange:
        message = f"field 'references': {strange[0]!r} is not a docid of the track's corpus ({len(strange)} such)"
        yield Fault(location, message, warning=True)


TopicRow = tuple[str, str | None, str]
"""`file:line` of a row, its topic's id (None if missing or malformed), and its topic's text."""


def topic_row(location: str, row: dict[str, Any]) -> TopicRow:
    """Return what `check_topics` needs of a row, which need not fit the schema."""
    return location, _topic(row), _text(row)


def check_topics(rows: Iterable[TopicRow], topics: dict[str, str], path: str) -> Iterator[Fault]:
    """Check that exactly the official topics are answered, with their official texts."""
    missing = dict(topics)
    for location, key, text in rows:
        if key is None:
            continue
        if key not in topics:
            yield Fault(location, f"topic {key!r} is not an official topic")
        elif text and text != topics[key]:
            yield Fault(location, f"the text of topic {key!r} is not the official {topics[key][:60]!r}")
        missing.pop(key, None)
    for key in missing:
        yield Fault(path, f"topic {key!r} is not answered")


def fix(row: dict[str, Any], limit: int) -> tuple[dict[str, Any], list[str]]:
    """Return a copy of a row within the track's limits, and the list of changes.

    Removes duplicate references and renumbers the 0-based citations (the track's own validator does not), trims
    references to `limit` with the citations of the trimmed ones, drops unresolved citations, and drops sentences from
    the end until the answer has at most 400 words.
    """
    changes = []
    unique = list(dict.fromkeys(row["references"]))
    if len(unique) < len(row["references"]):
        changes.append(f"removed {len(row['references']) - len(unique)} duplicate references")
    references = unique[:limit]
    if len(references) < len(unique):
        changes.append(f"trimmed references from {len(unique)} to {limit}")
    number = {key: n for n, key in enumerate(references)}
    answer, drop_count = [], 0
    for item in row["answer"]:
        pairs = [(citation, _resolve(row, citation)) for citation in item["citations"]]
        valid_pairs = [(citation, key) for citation, key in pairs if key is not None and key in number]
        drop_count += len(pairs) - len(valid_pairs)
        numbers = dict.fromkeys(citation if isinstance(citation, str) else number[key] for citation, key in valid_pairs)
        answer.append(item | {"citations": list(numbers)})
    if drop_count:
        changes.append(f"dropped {drop_count} citations without a reference")
    length, sentences = sum(words(item["text"]) for item in answer), len(answer)
    while length > WORDS:
        length -= words(answer.pop()["text"])
    if len(answer) < sentences:
        changes.append(f"dropped the last {sentences - len(answer)} of {sentences} sentences")
    result = row | {"references": references, "answer": answer}
    if row.get("response_length", length) != length:
        result["response_length"] = length
        changes.append(f"set response_length to {length}")
    return result, changes


def _answer_schema(citation: dict[str, Any]) -> dict[str, Any]:
    return list_of(record({"text": STRING, "citations": list_of(citation)}))


TREC_24 = Format(
    name="trec-rag-24",
    description="TREC RAG 2024's runs (jsonl): topic, up to 20 references, sentences that cite them by 0-based number",
    schema=record(
        {
            "run_id": STRING,
            "topic_id": IDENTIFIER,
            "topic": STRING,
            "references": list_of(STRING, maxItems=REFERENCES["trec-rag-24"], uniqueItems=True),
            "answer": _answer_schema(INTEGER),
        },
        {"response_length": INTEGER},
    ),
    required_fields=("run_id", "topic_id", "references", "answer"),
    read=read_run,
    write=_write_24,
    check=_check,
    ids=_ids,
    supports=KEEPS | {"systems"},
)
_FIELDS_25 = {
    "metadata": record(
        {"team_id": STRING, "run_id": STRING, "narrative_id": IDENTIFIER},
        {
            "narrative": TEXT_OR_NULL,
            "type": {"type": "string", "enum": ["manual", "automatic"]},
            "prompt": TEXT_OR_NULL,
        },
    ),
    "references": list_of(STRING, maxItems=REFERENCES["trec-rag-25"], uniqueItems=True),
    "answer": _answer_schema({"type": ["integer", "string"]}),
}
_DOCUMENT = record({"text": STRING}, {"id": STRING, "title": TEXT_OR_NULL, "url": TEXT_OR_NULL})
TREC_25 = Format(
    name="trec-rag-25",
    description="TREC RAG 2025's runs (jsonl): metadata, up to 100 references, citations by 0-based number or by docid",
    schema=record(_FIELDS_25),
    required_fields=("metadata", "references", "answer"),
    read=read_run,
    write=_write_25,
    check=_check,
    ids=_ids,
    supports=KEEPS | {"systems"},
)
REPORTS = Format(
    name="autojudge-reports",
    description="TREC AutoJudge's reports (jsonl): as trec-rag-25, with the texts of the documents",
    schema=record(_FIELDS_25 | {"documents": {"type": "object", "additionalProperties": _DOCUMENT}}),
    required_fields=("metadata", "references", "answer", "documents"),
    read=partial(read_run, texts="documents"),
    write=_write_reports,
    check=_check,
    ids=_ids,
    supports=KEEPS | {"systems", "texts of passages", "titles of passages"},
)
