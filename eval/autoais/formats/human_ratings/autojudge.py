"""TREC AutoJudge's annotation tool (package `autojudge-annotate`): its annotations (jsonl) as ratings, and back.

It has one scale for everything, Perfect, Mostly Good, So-so and Bad. For a cited document they are full, partial,
partial and no support; for a report they stay what they are, a `rating`. Annotations of documents by themselves, and
those that are not rated, are not read.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from autoais.base.answers import CitedAnswer
from autoais.base.errors import FormatError
from autoais.base.io.jsonl import dumps
from autoais.base.io.schema import IDENTIFIER, INTEGER, STRING, TEXT_OR_NULL, faults, list_of, record
from autoais.base.types import Citation
from autoais.formats.base import Notes
from autoais.formats.human_ratings.consensus import apply_flags
from autoais.formats.human_ratings.ratings import Rating
from autoais.formats.human_ratings.texts import answer_of, sources_of

_LEVELS = {"Perfect": "full", "Mostly Good": "partial", "So-so": "partial", "Bad": "none"}
_WORDS = {"full": "Perfect", "partial": "Mostly Good", "none": "Bad"}
_NOT_RATED = "Not rated"
_SPANS = list_of(record({"start": INTEGER, "end": INTEGER}))
_SCHEMA = record(
    {
        "topic_id": IDENTIFIER,
        "username": STRING,
        "rating": {"type": "string", "enum": [*_LEVELS, _NOT_RATED]},
    },
    {
        "comment": TEXT_OR_NULL,
        "run_id": STRING,
        "spans": _SPANS,
        "citation": record(
            {"sentence_idx": {"type": "integer", "minimum": 0}, "docid": TEXT_OR_NULL, "report": {"type": "object"}}
        ),
    },
)


def is_annotation(row: Mapping[str, Any]) -> bool:
    """Whether a record is an annotation of autojudge-annotate."""
    return "topic_id" in row and "username" in row and "rating" in row


def read(row: Mapping[str, Any], location: str) -> Iterator[Rating]:
    """Yield the rating of an annotation, if it has one; the answer is named by its topic, the system by its run."""
    for fault in faults(row, _SCHEMA):
        raise FormatError(f"{location}: {fault}")
    topic, rating = str(row["topic_id"]), row["rating"]
    if rating == _NOT_RATED or "document" in row:
        return
    annotator, reason = row["username"] or "unknown", row.get("comment") or ""
    if "citation" not in row:
        run = str(row.get("run_id", ""))
        yield Rating(f"r|{topic}|{run}", annotator, "rating", rating, topic, system=run, reason=reason)
        return
    citation = row["citation"]
    run, sentence, docid = str(citation["report"].get("run_id", "")), int(citation["sentence_idx"]), citation["docid"]
    item = f"c|{topic}|{run}|{sentence}"
    if docid is None:
        yield Rating(item, annotator, "rating", rating, topic, sentence, system=run, reason=reason)
        return
    spans = tuple(_evidence(row.get("spans", ()), citation, docid))
    yield Rating(
        f"{item}|{docid}", annotator, "support", _LEVELS[rating], topic, sentence, docid,
        system=run, evidence=spans, reason=reason,
    )  # fmt: skip


def _evidence(spans: Iterable[Mapping[str, Any]], citation: Mapping[str, Any], docid: str) -> Iterator[Citation]:
    """Yield the marked spans of the document, without offsets that do not fit its text."""
    text = (citation.get("document") or {}).get("text") or ""
    for span in spans:
        start, end = int(span["start"]), int(span["end"])
        fits = 0 <= start <= end and text[start:end] == span.get("text")
        yield Citation(docid, start, end) if fits else Citation(docid)


def write(ratings: Iterable[Rating], answers: Mapping[str, CitedAnswer], notes: Notes) -> Iterator[str]:
    """Yield an annotation per rated citation; `notes` counts the ratings that the tool has no place for.

    Only ratings of the study are written, without those of annotators who flagged the item: an annotation has no phase.
    """
    rating_list = list(ratings)
    keys = {rating.key for rating in apply_flags(rating_list) if rating.phase == "study"}
    for rating in rating_list:
        if rating.citation is None or rating.sentence is None or rating.value not in _WORDS:
            notes["ratings other than full, partial or no support of a citation, left out"] += 1
            continue
        if rating.key not in keys:
            notes["ratings of flagged items or of other phases than the study, left out"] += 1
            continue
        answer = answer_of(rating, answers)
        sources_of(rating, answers)  # raises if the sentence does not cite it
        sentences = [{"text": s.text, "citations": list(s.cites)} for s in answer.sentences]
        documents = {
            key: {"id": key, "text": passage.text, "title": passage.headings or None, "url": None}
            for key, passage in answer.passages.items()
        }
        report = {
            "team_id": "attributed-rag",
            "run_id": rating.system,
            "topic_id": answer.id,
            "sentences": sentences,
            "documents": documents,
        }
        body = answer.passages[rating.citation].text
        yield dumps(
            {
                "dataset": "attributed-rag",
                "request_id": answer.id,
                "topic_id": answer.id,
                "username": rating.annotator,
                "rating": _WORDS[rating.value],
                "comment": rating.reason,
                "spans": [
                    {"start": span[0], "end": span[1], "text": body[span[0] : span[1]]}
                    for e in rating.evidence
                    if e.start is not None and (span := e.span)
                ],
                "report_spans": [],
                "citation": {
                    "report": report,
                    "sentence_idx": rating.sentence,
                    "sentence": sentences[rating.sentence],
                    "docid": rating.citation,
                    "document": documents[rating.citation],
                },
            }
        )
