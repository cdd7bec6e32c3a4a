"""The common record of a cited answer, and `answers.jsonl`, its lossless file format that any system can write."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from autoais.base.errors import CitationError, FormatError, UsageError, check_type, tuple_of
from autoais.base.io.jsonl import dumps, read_objects
from autoais.base.io.schema import (
    BOOLEAN,
    IDENTIFIER,
    INTEGER,
    NUMBER_OR_NULL,
    STRING,
    STRINGS_OR_NULL,
    TEXT_OR_NULL,
    Schema,
    faults,
    list_of,
    record,
)
from autoais.base.markers.sentences import parse_sentences
from autoais.base.types import Citation, CitedSentence, Passage, Support, Unresolved, references_as_tuples

WHOLE_CONTEXT = "whole context"
"""Origin of a citation that no system made: the answer is judged against all passages that it was given."""
_ABSTENTION_FAULT = "'abstained' is true, yet there are sentences; leave one of them out"


@dataclass(frozen=True, slots=True)
class CitedAnswer:
    """A question with its answer, citations and passages.

    `passages` (by id) follows the numbering of the markers in `output` (1-based), `ranking` the retriever's order.
    `scores` holds the retriever's scores by id, if known.
    `answers` (reference strings), `gold` (passage ids) and `nuggets` (`Question`) come from the benchmark; empty if it
    has none.
    `short_answer` is the string for exact match; None if the system gives none.
    `text` is the whole answer without markers; None if it is the sentences joined with spaces. `output` is the text
    exactly as the system wrote it, with markers. `informative` and `attributable` are human labels of the whole
    answer. `extra` holds fields of other formats that this record has no attribute for.
    Raises `CitationError` if a sentence cites a passage that is not in `passages`; such markers belong in
    `unresolved_markers`; raises `UsageError` for a field of the wrong type, and for sentences of an answer that
    abstained. Lists become tuples; type checkers ask for tuples.
    """

    id: str
    question: str
    sentences: tuple[CitedSentence, ...] = ()
    passages: Mapping[str, Passage] = field(default_factory=dict)
    ranking: tuple[str, ...] = ()
    scores: Mapping[str, float] = field(default_factory=dict)
    short_answer: str | None = None
    abstained: bool = False
    unresolved_markers: tuple[Unresolved, ...] = ()
    answers: tuple[str, ...] = ()
    gold: tuple[str, ...] = ()
    nuggets: tuple[tuple[str, ...], ...] = ()
    text: str | None = None
    output: str | None = None
    informative: bool | None = None
    attributable: bool | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        sentences = tuple_of(CitedSentence, "the sentences of an answer", self.sentences, "a list of CitedSentences")
        object.__setattr__(self, "sentences", sentences)
        references_as_tuples(self, "an answer", "ranking")
        check_type("the passages of an answer", self.passages, "a dict of Passages by id", Mapping)
        tuple_of(Passage, "the passages of an answer", self.passages.values(), "a dict of Passages by id")
        if self.abstained and sentences:
            raise UsageError(f"answer {self.id!r}: {_ABSTENTION_FAULT}")
        for sentence in sentences:
            for passage in sentence.cites:
                if passage not in self.passages:
                    raise CitationError(
                        f"answer {self.id!r} cites passage {passage!r}, which is not among its passages"
                    )

    @property
    def unresolved(self) -> int:
        """The number of citation markers that resolve to no passage (`Unresolved.is_citation`)."""
        return sum(marker.is_citation for marker in self.unresolved_markers)

    @property
    def whole_context(self) -> bool:
        """Whether the answer is judged against all its passages, and cites nothing by itself (`WHOLE_CONTEXT`)."""
        origins = {citation.origin for sentence in self.sentences for citation in sentence.citations}
        return origins == {WHOLE_CONTEXT} and not self.unresolved_markers

    @property
    def is_list(self) -> bool:
        """Whether the answer is a list of items and not prose, as in ALCE's files of QAMPARI (lists of aliases)."""
        items = self.extra.get("answers")
        if not isinstance(items, list) or not items or not all(isinstance(item, list) for item in items):
            return False
        return all(isinstance(alias, str) for item in items for alias in item)

    @property
    def plain(self) -> str:
        """The whole answer, without markers."""
        return " ".join(sentence.text for sentence in self.sentences) if self.text is None else self.text


_HUMAN: Schema = {"type": ["boolean", "null"]}
_OFFSET: Schema = {"type": ["integer", "null"], "minimum": 0}
SCHEMA = record(
    {"id": IDENTIFIER, "question": STRING},
    {
        "answer": TEXT_OR_NULL,
        "output": TEXT_OR_NULL,
        "short_answer": TEXT_OR_NULL,
        "abstained": BOOLEAN,
        "informative": _HUMAN,
        "attributable": _HUMAN,
        "answers": STRINGS_OR_NULL,
        "gold": STRINGS_OR_NULL,
        "nuggets": {"type": ["array", "null"], "items": {"type": "array", "items": STRING}},
        "sentences": list_of(
            record(
                {"text": STRING},
                {
                    "output": TEXT_OR_NULL,
                    "informative": _HUMAN,
                    "attributable": _HUMAN,
                    "worthy": _HUMAN,
                    "citations": list_of(
                        record(
                            {"passage": STRING},
                            {
                                "support": {"type": ["string", "null"], "enum": [*(s.value for s in Support), None]},
                                "quote": TEXT_OR_NULL,
                                "start": _OFFSET,
                                "end": _OFFSET,
                                "origin": TEXT_OR_NULL,
                            },
                        )
                    ),
                },
            )
        ),
        "passages": list_of(
            record(
                {"id": STRING, "text": STRING},
                {
                    "rank": INTEGER,
                    "title": TEXT_OR_NULL,
                    "section": TEXT_OR_NULL,
                    "headings": TEXT_OR_NULL,
                    "score": NUMBER_OR_NULL,
                },
            )
        ),
        "unresolved": {
            "type": ["array", "null"],
            "items": record({"marker": STRING}, {"reason": TEXT_OR_NULL, "sentence": _OFFSET}),
        },
        "extra": {"type": "object"},
    },
)
# `n` and the offsets of sentences are not in the schema: they follow from the rest.
_FIELDS = frozenset(SCHEMA["properties"])
# Allowed between sentences: bullets, heading and quotation marks, pipes, list numbers; never a word.
_STRUCTURE = re.compile(r"(?:[\W_]|(?<!\w)\d{1,3}[.)](?=\s))*")
_PIECE = re.compile(r"[\W_]|(?<!\w)\d{1,3}[.)]\s")


def read_answers(path: Path) -> Iterator[CitedAnswer]:
    """Stream `answers.jsonl`; raises `FormatError` at the first broken row or duplicate id.

    `id` and `question` are required. Without `sentences`, the text (`output`, else `answer`) is split by its markers,
    where `[1]` is the first passage. Optional are `sentences` (`text`, `citations` of `passage`), `passages` (`id`,
    `text`, `rank`), `short_answer`, `abstained`, `unresolved`, `answers` and `gold`. A citation of an id that is not
    among the row's passages is unresolved and counted.
    """
    ids: set[str] = set()
    for location, row in read_objects(path):
        for fault in faults(row, SCHEMA):
            raise FormatError(f"{location}: {fault}")
        answer = from_row(row, location)
        if answer.id in ids:
            raise FormatError(f"{location}: id {answer.id!r} occurs twice")
        ids.add(answer.id)
        yield answer


def from_row(row: Mapping[str, Any], location: str) -> CitedAnswer:
    """Return the answer of a row that fits `SCHEMA`; raises `FormatError` if its fields contradict each other.

    Without `sentences`, they are what the markers in `output`, else in `answer`, say: `[1]` is the first passage.
    """
    passage_rows = row.get("passages", [])
    passages = {passage["id"]: _passage(passage) for passage in passage_rows}
    if len(passages) < len(passage_rows):
        raise FormatError(f"{location}: a passage id occurs twice among the row's passages")
    row = _split(row, list(passages))
    ranking = (
        sorted(passage_rows, key=lambda passage: passage["rank"])
        if all("rank" in passage for passage in passage_rows)
        else passage_rows
    )
    unresolved = [
        Unresolved(marker["marker"], marker.get("reason") or "", marker.get("sentence"))
        for marker in row.get("unresolved") or []
    ]
    sentences = []
    for number, item in enumerate(row.get("sentences", [])):
        sentence, unknown = _sentence(item, passages)
        unresolved += [Unresolved(passage, "unknown-id", number) for passage in unknown]
        sentences.append(sentence)
    _check_coverage(row, sentences, location)
    is_abstention = row.get("abstained", False)
    if is_abstention and sentences:
        raise FormatError(f"{location}: {_ABSTENTION_FAULT}")
    answer_text = row.get("answer")
    sentence_text = " ".join(sentence.text for sentence in sentences)
    return CitedAnswer(
        id=str(row["id"]),
        question=row["question"],
        sentences=tuple(sentences),
        passages=passages,
        ranking=tuple(passage["id"] for passage in ranking),
        scores={passage["id"]: float(passage["score"]) for passage in passage_rows if passage.get("score") is not None},
        short_answer=row.get("short_answer"),
        abstained=is_abstention,
        unresolved_markers=tuple(unresolved),
        answers=tuple(row.get("answers") or ()),
        gold=tuple(row.get("gold") or ()),
        nuggets=tuple(map(tuple, row.get("nuggets") or ())),
        text=None if answer_text is None or answer_text == sentence_text else answer_text,
        output=row.get("output"),
        informative=row.get("informative"),
        attributable=row.get("attributable"),
        extra={name: value for name, value in row.items() if name not in _FIELDS} | row.get("extra", {}),
    )


def _split(row: Mapping[str, Any], passages: Sequence[str]) -> Mapping[str, Any]:
    """Return the row with the sentences and citations of its text, if it has a text and no field `sentences`."""
    output = row.get("output") or row.get("answer") or ""
    if "sentences" in row or row.get("abstained") or not output.strip():
        return row
    sentences = parse_sentences(output, len(passages))
    unresolved = [
        {"marker": marker, "reason": reason, "sentence": number}
        for number, sentence in enumerate(sentences)
        for marker, reason in sentence.unresolved
    ]
    rows = [
        {"text": sentence.text, "citations": [{"passage": passages[n - 1]} for n in sentence.cites]}
        for sentence in sentences
        if sentence.text
    ]
    return {**row, "answer": None, "output": output, "sentences": rows, "unresolved": unresolved}


def _check_coverage(row: Mapping[str, Any], sentences: Iterable[CitedSentence], location: str) -> None:
    """Raise `FormatError` if the answer has text outside its sentences, which would be shown but never judged."""
    answer = row.get("answer")
    if answer is None:
        return
    ends = {0}
    for text in filter(None, (sentence.text for sentence in sentences)):
        offsets = {start + len(text) for end in ends for start in _starts(answer, text, end)}
        ends = {min(offsets), max(offsets)} if offsets else set()
    if not any(_STRUCTURE.fullmatch(answer, end) for end in ends):
        raise FormatError(f"{location}: field 'answer' should be the row's sentences in order, without other text")


def _starts(answer: str, text: str, position: int) -> set[int]:
    """Return the first and last offset where `text` may start, after structure only: "1" starts twice in "1. 1"."""
    positions = [position]
    while piece := _PIECE.match(answer, positions[-1]):
        positions.append(piece.end())
    starts = [start for start in positions if answer.startswith(text, start)]
    return {starts[0], starts[-1]} if starts else set()


def _sentence(item: Mapping[str, Any], passages: Mapping[str, Passage]) -> tuple[CitedSentence, list[str]]:
    """Return the sentence, and the cited ids that are not among the passages."""
    citations = tuple(
        Citation(
            citation["passage"],
            citation.get("start"),
            citation.get("end"),
            citation.get("quote"),
            citation.get("origin"),
            Support(citation["support"]) if citation.get("support") else None,
        )
        for citation in item.get("citations", [])
    )
    sentence = CitedSentence(
        item["text"],
        tuple(citation for citation in citations if citation.passage in passages),
        output=item.get("output"),
        informative=item.get("informative"),
        attributable=item.get("attributable"),
        worthy=item.get("worthy"),
    )
    return sentence, list(dict.fromkeys(citation.passage for citation in citations if citation.passage not in passages))


def _passage(row: Mapping[str, Any]) -> Passage:
    headings: Any = row.get("headings")  # None: derived from title and section
    return Passage(row["id"], row.get("title") or "", row["text"], row.get("section") or "", headings)


@runtime_checkable
class HasCited(Protocol):
    """An answer of another class that converts to a `CitedAnswer`, such as `rag.Answer`."""

    def to_cited(self) -> CitedAnswer:
        """Return the answer as a `CitedAnswer`."""
        ...


def as_cited_answer(answer: object, number: int = 1) -> CitedAnswer:
    """Return an answer from a `CitedAnswer`, a row of `answers.jsonl` (a dict), or an object with `to_cited`.

    `number` names the row in errors. Raises `UsageError` for other types, `FormatError` for a row that does not fit.
    """
    if isinstance(answer, CitedAnswer):
        return answer
    if isinstance(answer, HasCited):
        return answer.to_cited()
    if not isinstance(answer, Mapping):
        kinds = "a CitedAnswer, a rag.Answer or a row of answers.jsonl (a dict)"
        raise UsageError(f"answer {number}: should be {kinds}, found {type(answer).__name__}")
    for fault in faults(dict(answer), SCHEMA):
        raise FormatError(f"answer {number}: {fault}")
    return from_row(answer, f"answer {number}")


def write_answers(answers: Iterable[CitedAnswer]) -> Iterator[str]:
    """Yield the lines of `answers.jsonl`; `read_answers` restores the same answers."""
    for answer in answers:
        yield dumps(to_row(answer))


# The system's own fields (`index`, `trace`, `seconds`, ...) have fixed places; unknown fields of other formats go last.
_ORDER = (
    "id", "question", "system", "index", "answer", "output", "short_answer", "sentences", "passages", "unresolved",
    "abstained", "failed", "reason", "confidence", "trace", "seconds", "informative", "attributable", "answers", "gold",
    "nuggets",
)  # fmt: skip


def to_row(answer: CitedAnswer) -> dict[str, Any]:
    """Return the answer as a JSON object; missing labels, output, references and gold passages are left out."""
    plain = answer.plain
    row = {
        "id": answer.id,
        "question": answer.question,
        "answer": plain,
        **_drop_missing(output=answer.output),
        "short_answer": answer.short_answer,
        "sentences": list(_sentence_rows(answer.sentences, plain)),
        "passages": list(_passage_rows(answer)),
        "unresolved": [
            {"marker": marker.marker, "reason": marker.reason, **_drop_missing(sentence=marker.sentence)}
            for marker in answer.unresolved_markers
        ],
        "abstained": answer.abstained,
        **_drop_missing(informative=answer.informative, attributable=answer.attributable),
        **({"answers": list(answer.answers)} if answer.answers else {}),
        **({"gold": list(answer.gold)} if answer.gold else {}),
        **({"nuggets": [list(phrases) for phrases in answer.nuggets]} if answer.nuggets else {}),
    }
    clashing = {name: value for name, value in answer.extra.items() if name in _FIELDS}
    row |= {name: value for name, value in answer.extra.items() if name not in _FIELDS}
    sorted_row = {name: row[name] for name in _ORDER if name in row} | row
    return sorted_row | ({"extra": clashing} if clashing else {})


def _sentence_rows(sentences: Iterable[CitedSentence], plain: str) -> Iterator[dict[str, Any]]:
    position = 0
    for sentence in sentences:
        start = plain.find(sentence.text, position) if sentence.start is None else sentence.start
        span = {"start": start, "end": start + len(sentence.text)} if start >= 0 else {}
        position = span.get("end", position)
        yield {
            "text": sentence.text,
            **span,
            **_drop_missing(
                output=sentence.output, informative=sentence.informative, attributable=sentence.attributable
            ),
            **_drop_missing(worthy=sentence.worthy),
            "citations": [
                {
                    "passage": citation.passage,
                    **_drop_missing(
                        start=citation.start,
                        end=citation.end,
                        quote=citation.quote,
                        origin=citation.origin,
                        support=citation.support,
                    ),
                }
                for citation in sentence.citations
            ],
        }


def _passage_rows(answer: CitedAnswer) -> Iterator[dict[str, Any]]:
    ranks = {key: rank for rank, key in enumerate(dict.fromkeys((*answer.ranking, *answer.passages)), 1)}
    for number, (key, passage) in enumerate(answer.passages.items(), 1):
        yield {
            "n": number,
            "rank": ranks[key],
            "id": key,
            "title": passage.title,
            "section": passage.section,
            **({} if passage.headings == passage.default_headings else {"headings": passage.headings}),
            "text": passage.text,
            **_drop_missing(score=answer.scores.get(key)),
        }


def _drop_missing(**values: object) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
