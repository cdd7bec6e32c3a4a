"""Verifiability (Liu et al. 2023): judgements of single citations, and whole annotated responses."""

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

from autoais.base.answers import CitedAnswer
from autoais.base.io.files import record_key
from autoais.base.io.jsonl import dumps
from autoais.base.io.schema import BOOLEAN, STRING, TEXT_OR_NULL, Schema, faults, list_of, record
from autoais.base.labels import LabelledClaim, clean_claim
from autoais.base.types import Attribution, Citation, CitedSentence, Passage, Support
from autoais.formats.base import Fault, Format, Notes, Row, unique_id
from autoais.formats.markers import restore_answer

_JUDGEMENT_LEVELS = {"complete_support": Support.FULL, "partial_support": Support.PARTIAL, "no_support": Support.NONE}
_ANNOTATION_LEVELS = {
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

# --- judgements: one statement and one source per line -------------------------------------------------------------


def _source(row: dict[str, Any]) -> Passage:
    title = row.get("source_title") or ""
    text = row.get("source_text") or ""
    return Passage(row["source_url"], title, text if text.strip() else row.get("source_raw_text") or "")


def _judgements_read(rows: Iterable[Row], notes: Notes) -> Iterator[CitedAnswer]:
    """Yield one answer per run of rows with the same query and response; its id is its first line."""
    for (query, response), group in groupby(rows, lambda row: (row[1]["query"], row[1]["response"])):
        passages: dict[str, Passage] = {}
        statements: dict[str, list[Citation]] = {}
        first = ""
        for location, row in group:
            first = first or record_key(location)
            url = row["source_url"]
            passages.setdefault(url, _source(row))
            level = _JUDGEMENT_LEVELS[row["source_supports_statement"]]
            citation = Citation(url, quote=row.get("source_localized_evidence"), support=level)
            statements.setdefault(row["statement"], []).append(citation)
        yield CitedAnswer(
            id=f"line {first}",
            question=query,
            sentences=tuple(_statement(text, citations) for text, citations in statements.items()),
            passages=passages,
            ranking=tuple(passages),
            output=response,
        )


def _statement(
    text: str, citations: list[Citation], attributable: bool | None = None, worthy: bool | None = None
) -> CitedSentence:
    return CitedSentence(clean_claim(text), tuple(citations), output=text, attributable=attributable, worthy=worthy)


def _judgements_labels(row: dict[str, Any], location: str) -> Iterator[LabelledClaim]:
    """Yield the label of a row; only complete support is attributable, since AIS requires full support."""
    attribution = Attribution(clean_claim(row["statement"]), (_source(row).evidence,), row["query"])
    level = _JUDGEMENT_LEVELS[row["source_supports_statement"]]
    key = f"line {record_key(location)}"
    yield LabelledClaim("Verifiability", key, attribution, level is Support.FULL, support=level)


def _judgements_write(answers: Iterable[CitedAnswer], notes: Notes) -> Iterator[str]:
    names = {level: name for name, level in _JUDGEMENT_LEVELS.items()}
    for answer in answers:
        response = answer.output if answer.output is not None else restore_answer(answer, notes)
        for sentence in answer.sentences:
            for url in sentence.cites:
                level = sentence.support.get(url)
                if level is None:
                    notes["citations without a level of support, left out"] += 1
                    continue
                quotes = [
                    citation.quote for citation in sentence.citations if citation.passage == url and citation.quote
                ]
                passage = answer.passages[url]
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
                        "source_url": url,
                    }
                )


def _judgements_check(rows: Iterable[Row]) -> Iterator[Fault]:
    for location, row in rows:
        if not _source(row).text.strip():
            yield Fault(location, "fields 'source_text' and 'source_raw_text' are empty", warning=True)
        if row["source_supports_statement"] == "no_support" and row.get("source_localized_evidence"):
            yield Fault(
                location, "field 'source_localized_evidence' is given, but the support is 'no_support'", warning=True
            )


JUDGEMENTS = Format(
    name="liu-judgements",
    description="Liu et al.'s verifiability judgements (gzipped jsonl): statement, source and support per line",
    schema=record(
        {
            "query": STRING,
            "response": STRING,
            "statement": STRING,
            "source_supports_statement": {"type": "string", "enum": list(_JUDGEMENT_LEVELS)},
            "source_url": STRING,
        },
        dict.fromkeys(
            ("source_title", "source_content_title", "source_date", "source_author", "source_text",
             "source_raw_text", "source_localized_evidence"),
            TEXT_OR_NULL,
        ),
    ),
    required_fields=("statement", "source_supports_statement"),
    read=_judgements_read,
    write=_judgements_write,
    labels=_judgements_labels,
    check=_judgements_check,
    supports=frozenset(
        {"sentences", "boundaries of sentences", "citations beyond the first", "texts of passages",
         "levels of support", "markers as written"}
    ),
)  # fmt: skip

# --- annotations: one whole response per line ----------------------------------------------------------------------


_CITATIONS = list_of(
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
        links = {citation["text"]: citation.get("link_target") or citation["text"] for citation in row["citations"]}
        sentences = []
        for statement, texts in row["statements_to_citation_texts"].items():
            labels = row["annotation"]["statement_to_annotation"].get(statement, {})
            levels = {}
            for label in labels.get("citation_annotations") or ():
                levels[label["citation_text"]] = label
                if label["citation_supports"] not in list(_ANNOTATION_LEVELS)[:3]:
                    notes.tell(
                        "unclear_support", "citations inaccessible, contradicting or unclear, read as no support"
                    )
            citations = [_citation(text, links.get(text, text), levels) for text in texts]
            union, worthy = labels.get("statement_supported"), labels.get("statement_is_verification_worthy")
            attributable = None if union is None else _UNION[union]
            sentences.append(_statement(statement, citations, attributable=attributable, worthy=worthy))
        targets = (citation.passage for sentence in sentences for citation in sentence.citations)
        urls = dict.fromkeys([*links.values(), *targets])
        annotation = row["annotation"]
        yield CitedAnswer(
            id=row["id"],
            question=row["query"],
            sentences=tuple(sentences),
            passages={key: Passage(key) for key in urls},
            ranking=tuple(urls),
            output=row["response"],
            extra={
                "system": row["system_name"],
                "split": row["split"],
                "citations": row["citations"],
                **{name: annotation[name] for name in ("fluency", "perceived_utility") if annotation.get(name)},
            },
        )


def _citation(text: str, link: str, levels: dict[str, dict[str, Any]]) -> Citation:
    label = levels.get(text)
    if label is None:
        return Citation(link)
    return Citation(link, quote=label.get("evidence"), support=_ANNOTATION_LEVELS[label["citation_supports"]])


def _annotations_write(answers: Iterable[CitedAnswer], notes: Notes) -> Iterator[str]:
    for answer in answers:
        if count := sum(sentence.worthy is None and sentence.attributable is None for sentence in answer.sentences):
            notes["sentences without a label, written as not worth verifying: the format has no null"] += count
        numbers = {key: f"[{n}]" for n, key in enumerate(answer.passages, 1)}
        source_citations = answer.extra.get("citations")
        as_given = source_citations is not None and not any(
            faults(source_citations, _CITATIONS)
        )  # an answers.jsonl may hold anything there
        if isinstance(source_citations, list) and as_given:
            numbers |= {
                citation.get("link_target") or citation["text"]: citation["text"]
                for citation in reversed(source_citations)
            }
        response = answer.output if answer.output is not None else restore_answer(answer, notes)
        yield dumps(
            {
                "id": answer.id,
                "query": answer.question,
                "response": response,
                "split": answer.extra.get("split", "unknown"),
                "system_name": str(answer.extra.get("system", "unknown")),
                "citations": source_citations if as_given else _find_markers(response, numbers),
                "statements_to_citation_texts": {
                    sentence.output or sentence.text: [numbers[key] for key in sentence.cites]
                    for sentence in answer.sentences
                },
                "annotation": {
                    "fluency": answer.extra.get("fluency"),
                    "perceived_utility": answer.extra.get("perceived_utility"),
                    "statement_to_annotation": {
                        sentence.output or sentence.text: _annotation(sentence, numbers)
                        for sentence in answer.sentences
                    },
                },
            }
        )


def _find_markers(response: str, numbers: dict[str, str]) -> list[dict[str, Any]]:
    """Return the first occurrence of each marker in the response."""
    return [
        {"text": text, "start_index": start, "end_index": start + len(text), "link_target": key}
        for key, text in numbers.items()
        if (start := response.find(text)) >= 0
    ]


def _annotation(sentence: CitedSentence, numbers: dict[str, str]) -> dict[str, Any]:
    names = {level: name for name, level in reversed(_ANNOTATION_LEVELS.items())}
    # Without a label of worthiness, a statement that people judged is worth verifying.
    worthy = sentence.attributable is not None if sentence.worthy is None else sentence.worthy
    union = {True: "Yes", False: "No", None: None}[sentence.attributable]
    quotes = {citation.passage: citation.quote for citation in sentence.citations if citation.quote}
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
    for location, row in rows:
        yield from (Fault(location, message) for message in _find_contradictions(row))


def _find_contradictions(row: dict[str, Any]) -> Iterator[str]:
    for number, citation in enumerate(row["citations"]):
        if row["response"][int(citation["start_index"]) : int(citation["end_index"])] != citation["text"]:
            yield f"field 'citations[{number}]': the response has no {citation['text']!r} at its offsets"
    annotations = row["annotation"]["statement_to_annotation"]
    for statement in row["statements_to_citation_texts"].keys() ^ annotations.keys():
        yield f"statement {statement[:60]!r} occurs in only one of the two dictionaries"
    for statement, annotation in annotations.items():
        worthy = annotation["statement_is_verification_worthy"]
        has_support = annotation.get("statement_supported") is not None
        if worthy != has_support:
            yield f"statement {statement[:60]!r}: 'statement_supported' should be null if and only if it is not worthy"


ANNOTATIONS = Format(
    name="liu-annotations",
    description="Liu et al.'s annotated responses (jsonl): statements with citations, worthiness and support",
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
                                            "citation_supports": {"type": "string", "enum": list(_ANNOTATION_LEVELS)},
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
    required_fields=("statements_to_citation_texts", "annotation"),
    read=_annotations_read,
    write=_annotations_write,
    check=_annotations_check,
    ids=unique_id("id"),
    supports=frozenset(
        {"ids", "systems", "sentences", "boundaries of sentences", "citations beyond the first",
         "passages not cited", "levels of support", "labels of sentences", "worthiness", "markers as written"}
    ),
)  # fmt: skip
