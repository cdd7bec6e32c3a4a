"""Verifiability (Liu et al. 2023, spec D1 and D2): judgements of single citations, and whole annotated responses."""

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

from autoais.answers import Citation, CitedAnswer, SentenceCited, ShownPassage, Support
from autoais.formats.base import Fault, Format, Notes, Row, id_twice
from autoais.formats.marked import written_answer
from autoais.io.jsonl import dumps
from autoais.io.schema import BOOLEAN, STRING, TEXT_OR_NULL, Schema, faults, listed, record
from autoais.labels import Labelled, clean_claim
from autoais.types import Attribution

_JUDGED = {"complete_support": Support.FULL, "partial_support": Support.PARTIAL, "no_support": Support.NONE}
_ANNOTATED = {
    "Citation Completely Supports Statement": Support.FULL,
    "Citation Partially Supports Statement": Support.PARTIAL,
    "Citation Provides No Support for Statement": Support.NONE,
    "Citation Inaccessible": Support.NONE,
    "Citation Completely Supports but Also Refutes Statement": Support.NONE,
    "Statement is Unclear, Can't Make Judgment": Support.NONE,
}
_UNION = {"Yes": True, "No": False, "Citations Contradict Each Other": False}
_LIKERT: Schema = {
    "type": ["string", "null"],
    "enum": ["Strongly Disagree", "Disagree", "Neutral", "Agree", "Strongly Agree", None],
}

# --- judgements: a statement and one of its sources a line ---------------------------------------------------------


def _source(row: dict[str, Any]) -> ShownPassage:
    title = row.get("source_title") or ""
    text = row.get("source_text") or ""
    return ShownPassage(title, text if text.strip() else row.get("source_raw_text") or "", title)


def _judgements_read(rows: Iterable[Row], notes: Notes) -> Iterator[CitedAnswer]:
    """Rows that follow each other with the same query and response are one answer, named by its first line."""
    for (query, response), group in groupby(rows, lambda row: (row[1]["query"], row[1]["response"])):
        passages: dict[str, ShownPassage] = {}
        statements: dict[str, list[Citation]] = {}
        first = ""
        for where, row in group:
            first = first or where.rpartition(":")[2]
            url = row["source_url"]
            passages.setdefault(url, _source(row))
            level = _JUDGED[row["source_supports_statement"]]
            citation = Citation(url, level, row.get("source_localized_evidence"))
            statements.setdefault(row["statement"], []).append(citation)
        yield CitedAnswer(
            id=f"line {first}",
            question=query,
            sentences=tuple(_statement(text, citations) for text, citations in statements.items()),
            passages=passages,
            ranking=tuple(passages),
            output=response,
        )


def _statement(text: str, citations: list[Citation], **labels: bool | None) -> SentenceCited:
    cites = tuple(dict.fromkeys(one.passage for one in citations))
    return SentenceCited(clean_claim(text), cites, text, citations=tuple(citations), **labels)


def _judgements_labels(row: dict[str, Any], where: str) -> Iterator[Labelled]:
    """Complete support is attributable; partial support is not (AIS asks for all of it)."""
    attribution = Attribution(clean_claim(row["statement"]), (_source(row).evidence,), row["query"])
    full = _JUDGED[row["source_supports_statement"]] is Support.FULL
    yield Labelled("Verifiability", f"line {where.rpartition(':')[2]}", attribution, full)


def _judgements_write(answers: Iterable[CitedAnswer], notes: Notes) -> Iterator[str]:
    names = {level: name for name, level in _JUDGED.items()}
    for answer in answers:
        response = answer.output if answer.output is not None else written_answer(answer, notes)
        for sentence in answer.sentences:
            for cited in sentence.cites:
                level = sentence.support.get(cited)
                if level is None:
                    notes["citations without a level of support, left out"] += 1
                    continue
                quotes = [one.quote for one in sentence.citations if one.passage == cited and one.quote]
                passage = answer.passages[cited]
                yield dumps(
                    {
                        "query": answer.question,
                        "response": response,
                        "statement": sentence.output or sentence.text,
                        "source_title": passage.headings or None,
                        "source_content_title": None,
                        "source_date": None,
                        "source_author": None,
                        "source_text": passage.text,
                        "source_raw_text": passage.text,
                        "source_supports_statement": names[level],
                        "source_localized_evidence": "\n".join(quotes) or None,
                        "source_url": cited,
                    }
                )


def _judgements_check(rows: Iterable[Row]) -> Iterator[Fault]:
    for where, row in rows:
        if not _source(row).text.strip():
            yield Fault(where, "fields 'source_text' and 'source_raw_text' are empty", warning=True)
        if row["source_supports_statement"] == "no_support" and row.get("source_localized_evidence"):
            yield Fault(
                where, "field 'source_localized_evidence' is given, yet the support is 'no_support'", warning=True
            )


JUDGEMENTS = Format(
    name="liu-judgements",
    says="Liu et al.'s verifiability judgements (gzipped jsonl): a statement, one source and its support a line",
    schema=record(
        {
            "query": STRING,
            "response": STRING,
            "statement": STRING,
            "source_supports_statement": {"type": "string", "enum": list(_JUDGED)},
            "source_url": STRING,
        },
        dict.fromkeys(
            ("source_title", "source_content_title", "source_date", "source_author", "source_text",
             "source_raw_text", "source_localized_evidence"),
            TEXT_OR_NULL,
        ),
    ),
    marks=("statement", "source_supports_statement"),
    read=_judgements_read,
    write=_judgements_write,
    labels=_judgements_labels,
    check=_judgements_check,
    keeps=frozenset(
        {"sentences", "citations beyond the first", "texts of passages", "levels of support", "markers as written"}
    ),
)  # fmt: skip

# --- annotations: a whole response a line --------------------------------------------------------------------------


_CITATIONS = listed(
    record(
        {
            "text": STRING,
            "start_index": {"type": "integer", "minimum": 0},
            "end_index": {"type": "integer", "minimum": 0},
        },
        {"link_target": TEXT_OR_NULL},
    )
)


def _annotations_read(rows: Iterable[Row], notes: Notes) -> Iterator[CitedAnswer]:
    for _, row in rows:
        links = {one["text"]: one.get("link_target") or one["text"] for one in row["citations"]}
        sentences = []
        for statement, texts in row["statements_to_citation_texts"].items():
            judged = row["annotation"]["statement_to_annotation"].get(statement, {})
            levels = {}
            for one in judged.get("citation_annotations") or ():
                levels[one["citation_text"]] = one
                if one["citation_supports"] not in list(_ANNOTATED)[:3]:
                    notes["citations inaccessible, contradicting or unclear, read as no support (spec D3)"] += 1
            citations = [_annotated(text, links.get(text, text), levels) for text in texts]
            union, worthy = judged.get("statement_supported"), judged.get("statement_is_verification_worthy")
            attributable = None if union is None else _UNION[union]
            sentences.append(_statement(statement, citations, attributable=attributable, worthy=worthy))
        passages = {one.passage: ShownPassage("", "") for s in sentences for one in s.citations}
        annotation = row["annotation"]
        yield CitedAnswer(
            id=row["id"],
            question=row["query"],
            sentences=tuple(sentences),
            passages={key: ShownPassage("", "") for key in links.values()} | passages,
            ranking=tuple(dict.fromkeys([*links.values(), *passages])),
            output=row["response"],
            extra={
                "system": row["system_name"],
                "split": row["split"],
                "citations": row["citations"],
                **{name: annotation[name] for name in ("fluency", "perceived_utility") if annotation.get(name)},
            },
        )


def _annotated(text: str, link: str, levels: dict[str, dict[str, Any]]) -> Citation:
    judged = levels.get(text)
    if judged is None:
        return Citation(link)
    return Citation(link, _ANNOTATED[judged["citation_supports"]], judged.get("evidence"))


def _annotations_write(answers: Iterable[CitedAnswer], notes: Notes) -> Iterator[str]:
    for answer in answers:
        numbers = {key: f"[{n}]" for n, key in enumerate(answer.passages, 1)}
        given = answer.extra.get("citations")
        as_given = given is not None and not any(faults(given, _CITATIONS))  # an answers.jsonl may hold anything there
        if isinstance(given, list) and as_given:
            numbers |= {one.get("link_target") or one["text"]: one["text"] for one in reversed(given)}
        response = answer.output if answer.output is not None else written_answer(answer, notes)
        yield dumps(
            {
                "id": answer.id,
                "query": answer.question,
                "response": response,
                "split": answer.extra.get("split", "unknown"),
                "system_name": str(answer.extra.get("system", "unknown")),
                "citations": given if as_given else _found(response, numbers),
                "statements_to_citation_texts": {
                    one.output or one.text: [numbers[cited] for cited in one.cites] for one in answer.sentences
                },
                "annotation": {
                    "fluency": answer.extra.get("fluency"),
                    "perceived_utility": answer.extra.get("perceived_utility"),
                    "statement_to_annotation": {
                        one.output or one.text: _annotation(one, numbers) for one in answer.sentences
                    },
                },
            }
        )


def _found(response: str, numbers: dict[str, str]) -> list[dict[str, Any]]:
    """Where each marker stands first in the response."""
    return [
        {"text": text, "start_index": at, "end_index": at + len(text), "link_target": key}
        for key, text in numbers.items()
        if (at := response.find(text)) >= 0
    ]


def _annotation(sentence: SentenceCited, numbers: dict[str, str]) -> dict[str, Any]:
    names = {level: name for name, level in reversed(_ANNOTATED.items())}
    # A statement that people judged was worth it, where nothing else is said.
    worthy = sentence.attributable is not None if sentence.worthy is None else sentence.worthy
    union = {True: "Yes", False: "No", None: None}[sentence.attributable]
    quotes = {one.passage: one.quote for one in sentence.citations if one.quote}
    levels = [
        {"citation_text": numbers[key], "citation_supports": names[level], "evidence": quotes.get(key)}
        for key, level in sentence.support.items()
    ]
    return {
        "statement_is_verification_worthy": worthy,
        "statement_supported": union if worthy else None,
        "citation_annotations": levels if worthy else None,
    }


def _annotations_check(rows: Iterable[Row]) -> Iterator[Fault]:
    for where, row in rows:
        yield from (Fault(where, message) for message in _inconsistent(row))


def _inconsistent(row: dict[str, Any]) -> Iterator[str]:
    for number, one in enumerate(row["citations"]):
        if row["response"][int(one["start_index"]) : int(one["end_index"])] != one["text"]:
            yield f"field 'citations[{number}]': the response has no {one['text']!r} at its offsets"
    annotated = row["annotation"]["statement_to_annotation"]
    for statement in row["statements_to_citation_texts"].keys() ^ annotated.keys():
        yield f"statement {statement[:60]!r} stands in one of the two dictionaries only"
    for statement, judged in annotated.items():
        worthy = judged["statement_is_verification_worthy"]
        given = judged.get("statement_supported") is not None
        if worthy != given:
            yield f"statement {statement[:60]!r}: 'statement_supported' should be null exactly where it is not worthy"


ANNOTATIONS = Format(
    name="liu-annotations",
    says="Liu et al.'s annotated responses (jsonl): statements, whether they need and have support, citations",
    schema=record(
        {
            "id": STRING,
            "query": STRING,
            "response": STRING,
            "split": STRING,
            "system_name": STRING,
            "citations": _CITATIONS,
            "statements_to_citation_texts": {
                "type": "object",
                "additionalProperties": {"type": "array", "items": STRING},
            },
            "annotation": record(
                {
                    "statement_to_annotation": {
                        "type": "object",
                        "additionalProperties": record(
                            {"statement_is_verification_worthy": BOOLEAN},
                            {
                                "statement_supported": {"type": ["string", "null"], "enum": [*_UNION, None]},
                                "citation_annotations": {
                                    "type": ["array", "null"],
                                    "items": record(
                                        {
                                            "citation_text": STRING,
                                            "citation_supports": {"type": "string", "enum": list(_ANNOTATED)},
                                        },
                                        {"evidence": TEXT_OR_NULL},
                                    ),
                                },
                            },
                        ),
                    }
                },
                {"fluency": _LIKERT, "perceived_utility": _LIKERT},
            ),
        }
    ),
    marks=("statements_to_citation_texts", "annotation"),
    read=_annotations_read,
    write=_annotations_write,
    check=_annotations_check,
    ids=id_twice("id"),
    keeps=frozenset(
        {"sentences", "citations beyond the first", "passages not cited", "levels of support", "labels of sentences",
         "worthiness", "markers as written"}
    ),
)  # fmt: skip
