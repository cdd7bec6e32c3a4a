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
from autoais.base.markers.sentences import sentences as parse_sentences
from autoais.base.types import Citation, CitedSentence, Passage, Support, Unresolved, references_as_tuples

WHOLE_CONTEXT = "whole context"
"""Origin of a citation that no system made: the answer is judged against all passages that it was given."""
_ABSTAINED = "'abstained' is true, yet there are sentences; leave one of them out"


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
            raise UsageError(f"answer {self.id!r}: {_ABSTAINED}")
        for sentence in sentences:
            for cited in sentence.cites:
                if cited not in self.passages:
                    raise CitationError(f"answer {self.id!r} cites passage {cited!r}, which is not among its passages")

    @property
    def unresolved(self) -> int:
        """The number of citation markers that resolve to no passage (`Unresolved.is_citation`)."""
        return sum(one.is_citation for one in self.unresolved_markers)

    @property
    def whole_context(self) -> bool:
        """Whether the answer is judged against all its passages, and cites nothing by itself (`WHOLE_CONTEXT`)."""
        origins = {one.origin for sentence in self.sentences for one in sentence.citations}
        return origins == {WHOLE_CONTEXT} and not self.unresolved_markers

    @property
    def is_list(self) -> bool:
        """Whether the answer is a list of items and not prose, as in ALCE's files of QAMPARI (lists of aliases)."""
        found = self.extra.get("answers")
        if not isinstance(found, list) or not found or not all(isinstance(one, list) for one in found):
            return False
        return all(isinstance(alias, str) for one in found for alias in one)

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
_KNOWN = frozenset(SCHEMA["properties"])
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
    seen: set[str] = set()
    for where, row in read_objects(path):
        for fault in faults(row, SCHEMA):
            raise FormatError(f"{where}: {fault}")
        answer = from_row(row, where)
        if answer.id in seen:
            raise FormatError(f"{where}: id {answer.id!r} occurs twice")
        seen.add(answer.id)
        yield answer


def from_row(row: Mapping[str, Any], where: str) -> CitedAnswer:
    """Return the answer of a row that fits `SCHEMA`; raises `FormatError` if its fields contradict each other.

    Without `sentences`, they are what the markers in `output`, else in `answer`, say: `[1]` is the first passage.
    """
    listed = row.get("passages", [])
    passages = {one["id"]: _passage(one) for one in listed}
    if len(passages) < len(listed):
        raise FormatError(f"{where}: a passage id occurs twice among the row's passages")
    row = _split(row, list(passages))
    ranked = sorted(listed, key=lambda one: one["rank"]) if all("rank" in one for one in listed) else listed
    unresolved = [
        Unresolved(one["marker"], one.get("reason") or "", one.get("sentence")) for one in row.get("unresolved") or []
    ]
    sentences = []
    for number, item in enumerate(row.get("sentences", [])):
        sentence, unknown = _sentence(item, passages)
        unresolved += [Unresolved(cited, "unknown-id", number) for cited in unknown]
        sentences.append(sentence)
    _check_covered(row, sentences, where)
    abstained = row.get("abstained", False)
    if abstained and sentences:
        raise FormatError(f"{where}: {_ABSTAINED}")
    whole = row.get("answer")
    joined = " ".join(sentence.text for sentence in sentences)
    return CitedAnswer(
        id=str(row["id"]),
        question=row["question"],
        sentences=tuple(sentences),
        passages=passages,
        ranking=tuple(one["id"] for one in ranked),
        scores={one["id"]: float(one["score"]) for one in listed if one.get("score") is not None},
        short_answer=row.get("short_answer"),
        abstained=abstained,
        unresolved_markers=tuple(unresolved),
        answers=tuple(row.get("answers") or ()),
        gold=tuple(row.get("gold") or ()),
        nuggets=tuple(map(tuple, row.get("nuggets") or ())),
        text=None if whole is None or whole == joined else whole,
        output=row.get("output"),
        informative=row.get("informative"),
        attributable=row.get("attributable"),
        extra={name: value for name, value in row.items() if name not in _KNOWN} | row.get("extra", {}),
    )


def _split(row: Mapping[str, Any], passages: Sequence[str]) -> Mapping[str, Any]:
    """Return the row with the sentences and citations of its text, if it has a text and no field `sentences`."""
    written = row.get("output") or row.get("answer") or ""
    if "sentences" in row or row.get("abstained") or not written.strip():
        return row
    read = parse_sentences(written, len(passages))
    unresolved = [
        {"marker": marker, "reason": reason, "sentence": number}
        for number, one in enumerate(read)
        for marker, reason in one.unresolved
    ]
    cited = [
        {"text": one.text, "citations": [{"passage": passages[n - 1]} for n in one.cites]} for one in read if one.text
    ]
    return {**row, "answer": None, "output": written, "sentences": cited, "unresolved": unresolved}


def _check_covered(row: Mapping[str, Any], sentences: Iterable[CitedSentence], where: str) -> None:
    """Raise `FormatError` if the answer has text outside its sentences, which would be shown but never judged."""
    answer = row.get("answer")
    if answer is None:
        return
    ends = {0}
    for text in filter(None, (sentence.text for sentence in sentences)):
        found = {start + len(text) for end in ends for start in _starts(answer, text, end)}
        ends = {min(found), max(found)} if found else set()
    if not any(_STRUCTURE.fullmatch(answer, end) for end in ends):
        raise FormatError(f"{where}: field 'answer' should be the row's sentences in order, without other text")


def _starts(answer: str, text: str, at: int) -> set[int]:
    """Return the first and last offset where `text` may start, after structure only: "1" starts twice in "1. 1"."""
    places = [at]
    while piece := _PIECE.match(answer, places[-1]):
        places.append(piece.end())
    found = [place for place in places if answer.startswith(text, place)]
    return {found[0], found[-1]} if found else set()


def _sentence(item: Mapping[str, Any], passages: Mapping[str, Passage]) -> tuple[CitedSentence, list[str]]:
    """Return the sentence, and the cited ids that are not among the passages."""
    citations = tuple(
        Citation(
            one["passage"],
            one.get("start"),
            one.get("end"),
            one.get("quote"),
            one.get("origin"),
            Support(one["support"]) if one.get("support") else None,
        )
        for one in item.get("citations", [])
    )
    sentence = CitedSentence(
        item["text"],
        tuple(one for one in citations if one.passage in passages),
        output=item.get("output"),
        informative=item.get("informative"),
        attributable=item.get("attributable"),
        worthy=item.get("worthy"),
    )
    return sentence, list(dict.fromkeys(one.passage for one in citations if one.passage not in passages))


def _passage(row: Mapping[str, Any]) -> Passage:
    headings: Any = row.get("headings")  # None: derived from title and section
    return Passage(row["id"], row.get("title") or "", row["text"], row.get("section") or "", headings)


@runtime_checkable
class HasCited(Protocol):
    """An answer of another class that converts to a `CitedAnswer`, such as `rag.Answer`."""

    def to_cited(self) -> CitedAnswer:
        """Return the answer as a `CitedAnswer`."""
        ...


def as_cited(answer: object, number: int = 1) -> CitedAnswer:
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
        **_known(output=answer.output),
        "short_answer": answer.short_answer,
        "sentences": list(_sentence_rows(answer.sentences, plain)),
        "passages": list(_passage_rows(answer)),
        "unresolved": [
            {"marker": one.marker, "reason": one.reason, **_known(sentence=one.sentence)}
            for one in answer.unresolved_markers
        ],
        "abstained": answer.abstained,
        **_known(informative=answer.informative, attributable=answer.attributable),
        **({"answers": list(answer.answers)} if answer.answers else {}),
        **({"gold": list(answer.gold)} if answer.gold else {}),
        **({"nuggets": [list(phrases) for phrases in answer.nuggets]} if answer.nuggets else {}),
    }
    clashing = {name: value for name, value in answer.extra.items() if name in _KNOWN}
    row |= {name: value for name, value in answer.extra.items() if name not in _KNOWN}
    ordered = {name: row[name] for name in _ORDER if name in row} | row
    return ordered | ({"extra": clashing} if clashing else {})


def _sentence_rows(sentences: Iterable[CitedSentence], plain: str) -> Iterator[dict[str, Any]]:
    at = 0
    for sentence in sentences:
        start = plain.find(sentence.text, at) if sentence.start is None else sentence.start
        place = {"start": start, "end": start + len(sentence.text)} if start >= 0 else {}
        at = place.get("end", at)
        yield {
            "text": sentence.text,
            **place,
            **_known(output=sentence.output, informative=sentence.informative, attributable=sentence.attributable),
            **_known(worthy=sentence.worthy),
            "citations": [
                {
                    "passage": one.passage,
                    **_known(start=one.start, end=one.end, quote=one.quote, origin=one.origin, support=one.support),
                }
                for one in sentence.citations
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
            **_known(score=answer.scores.get(key)),
        }


def _known(**values: object) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
