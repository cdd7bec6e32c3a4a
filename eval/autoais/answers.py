"""The common record of a cited answer, and its lossless file format `answers.jsonl`, which any system can write."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from autoais.errors import FormatError
from autoais.io.jsonl import dumps, read_objects
from autoais.io.schema import (
    BOOLEAN,
    IDENTIFIER,
    INTEGER,
    NUMBER_OR_NULL,
    STRING,
    STRINGS_OR_NULL,
    TEXT_OR_NULL,
    Schema,
    faults,
    listed,
    record,
)
from autoais.text.wikipedia import Contents


class Support(StrEnum):
    """How far a cited passage supports a sentence, as people judged it (Liu et al. 2023; the TREC RAG track)."""

    FULL = "full"
    PARTIAL = "partial"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Citation:
    """What is known of one citation: the level people gave it, the words it rests on and where they stand.

    `start` and `end` (exclusive) are characters of the passage's text; `quote` may be known without them. `origin` is
    how the system came by the citation, in its own words (`cited`, `moved`...).
    """

    passage: str
    support: Support | None = None
    quote: str | None = None
    start: int | None = None
    end: int | None = None
    origin: str | None = None


@dataclass(frozen=True, slots=True)
class SentenceCited:
    """One sentence of an answer, without markers, and the ids of the passages it cites.

    `output` is the sentence as the system wrote it, with its markers. `informative`, `attributable` and `worthy`
    (makes a claim about the world that needs a source) are human labels, None where nobody judged. `citations` says
    more of single citations, where more is known; a passage may stand in it twice, for two quotes.
    """

    text: str
    cites: tuple[str, ...]
    output: str | None = None
    informative: bool | None = None
    attributable: bool | None = None
    worthy: bool | None = None
    citations: tuple[Citation, ...] = ()

    @property
    def support(self) -> dict[str, Support]:
        """The level people gave each cited passage they judged; the better one where they judged it twice."""
        best_first = list(Support)
        levels: dict[str, Support] = {}
        for one in self.citations:
            if one.support is not None:
                levels[one.passage] = min(levels.get(one.passage, one.support), one.support, key=best_first.index)
        return levels


@dataclass(frozen=True, slots=True)
class ShownPassage:
    """A passage the system showed or read: its headings ("Title, Section" or empty), text and title.

    The text is empty where only the id is known (TREC runs, Attributed-QA predictions without their corpus).
    """

    headings: str
    text: str
    title: str = ""
    score: float | None = None

    @property
    def section(self) -> str:
        """The headings below the title."""
        return Contents(self.title, self.headings, self.text).section

    @property
    def evidence(self) -> str:
        """What a judge reads: headings, then text, as the Attributed-QA premise has them (they resolve "he", "it")."""
        return f"{self.headings}. {self.text}" if self.headings and self.text else self.text


@dataclass(frozen=True, slots=True)
class Unresolved:
    """A marker that points to no passage, why, and the sentence it stands in (0-based; None where unknown)."""

    marker: str
    reason: str
    sentence: int | None = None

    @property
    def is_citation(self) -> bool:
        """False for what only looks like a marker and stayed in the text: `[1998]`, an interval, code (spec H2)."""
        return self.reason not in ("year-like", "interval", "code-like")


@dataclass(frozen=True, slots=True)
class CitedAnswer:
    """One row: what was asked, what was said, what was cited, and the passages.

    `passages` are in the order of the numbers that markers in `output` use (1-based), `ranking` in the retriever's.
    `answers` (reference strings) and `gold` (passage ids) are the benchmark's; empty where it has none.
    `short_answer` is the string exact match is taken on; None where the system gives none.
    `text` is the whole answer without markers, where it is not just its sentences with a space between; `output` is
    the text exactly as the system wrote it, with its markers. `informative` and `attributable` are human labels of
    the whole answer. `extra` holds what other formats say that this record has no name for.
    """

    id: str
    question: str
    sentences: tuple[SentenceCited, ...] = ()
    passages: dict[str, ShownPassage] = field(default_factory=dict)
    ranking: tuple[str, ...] = ()
    short_answer: str | None = None
    abstained: bool = False
    unresolved_markers: tuple[Unresolved, ...] = ()
    answers: tuple[str, ...] = ()
    gold: tuple[str, ...] = ()
    text: str | None = None
    output: str | None = None
    informative: bool | None = None
    attributable: bool | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def unresolved(self) -> int:
        """How many markers point to no passage, without those that only look like one."""
        return sum(one.is_citation for one in self.unresolved_markers)

    @property
    def plain(self) -> str:
        """The whole answer without markers."""
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
        "sentences": listed(
            record(
                {"text": STRING},
                {
                    "output": TEXT_OR_NULL,
                    "informative": _HUMAN,
                    "attributable": _HUMAN,
                    "worthy": _HUMAN,
                    "citations": listed(
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
        "passages": listed(
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
# `n` and the offsets of sentences follow from the rest.
_KNOWN = frozenset(SCHEMA["properties"])
# Between sentences: bullets, signs of headings and quotations, pipes, numbers of lists; never a word (spec H1).
_STRUCTURE = re.compile(r"(?:[\W_]|(?<!\w)\d{1,3}[.)](?=\s))*")


def read_answers(path: Path) -> Iterator[CitedAnswer]:
    """Stream `answers.jsonl`; `FormatError` at the first broken line or repeated id.

    A row must have `id` and `question`. `sentences` (`text`, `citations` of `passage`), `passages` (`id`, `text`,
    `rank`), `short_answer`, `abstained`, `unresolved`, `answers` and `gold` may be left out: nothing was said, shown,
    or known. A citation of an id that is not among the row's passages is unresolved and counted.
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
    """The answer of a row that fits `SCHEMA`; `FormatError` where its fields contradict each other."""
    listed = row.get("passages", [])
    passages = {one["id"]: _shown(one) for one in listed}
    if len(passages) < len(listed):
        raise FormatError(f"{where}: a passage id occurs twice among the row's passages")
    ranked = sorted(listed, key=lambda one: one["rank"]) if all("rank" in one for one in listed) else listed
    unresolved = [
        Unresolved(one["marker"], one.get("reason") or "", one.get("sentence")) for one in row.get("unresolved") or []
    ]
    sentences = []
    for number, item in enumerate(row.get("sentences", [])):
        sentence = _sentence(item)
        unknown = [cited for cited in sentence.cites if cited not in passages]
        unresolved += [Unresolved(cited, "unknown-id", number) for cited in unknown]
        sentences.append(_without(sentence, unknown))
    _check_covered(row, sentences, where)
    abstained = row.get("abstained", False)
    if abstained and sentences:
        raise FormatError(f"{where}: 'abstained' is true, yet there are sentences; leave one of them out")
    whole = row.get("answer")
    joined = " ".join(sentence.text for sentence in sentences)
    return CitedAnswer(
        id=str(row["id"]),
        question=row["question"],
        sentences=tuple(sentences),
        passages=passages,
        ranking=tuple(one["id"] for one in ranked),
        short_answer=row.get("short_answer"),
        abstained=abstained,
        unresolved_markers=tuple(unresolved),
        answers=tuple(row.get("answers") or ()),
        gold=tuple(row.get("gold") or ()),
        text=None if whole is None or whole == joined else whole,
        output=row.get("output"),
        informative=row.get("informative"),
        attributable=row.get("attributable"),
        extra={name: value for name, value in row.items() if name not in _KNOWN} | row.get("extra", {}),
    )


def _check_covered(row: Mapping[str, Any], sentences: Iterable[SentenceCited], where: str) -> None:
    """What stands outside the sentences would be shown and never judged."""
    answer = row.get("answer")
    if answer is None:
        return
    ends = {0}
    for text in filter(None, (sentence.text for sentence in sentences)):
        found = {start + len(text) for end in ends for start in _starts(answer, text, end)}
        ends = {min(found), max(found)} if found else set()
    if not any(_STRUCTURE.fullmatch(answer, end) for end in ends):
        raise FormatError(f"{where}: field 'answer' is not its sentences one after the other")


def _starts(answer: str, text: str, at: int) -> set[int]:
    """The first and the last place where the sentence may stand after mere structure: "1" stands twice in "1. 1"."""
    gap = _STRUCTURE.match(answer, at)
    stop = (gap.end() if gap else at) + len(text)
    first, last = answer.find(text, at, stop), answer.rfind(text, at, stop)
    while first >= 0 and not _STRUCTURE.fullmatch(answer, at, first):
        first = answer.find(text, first + 1, stop)
    while last > first >= 0 and not _STRUCTURE.fullmatch(answer, at, last):
        last = answer.rfind(text, at, last + len(text) - 1)
    return {first, last} if first >= 0 else set()


def _sentence(item: Mapping[str, Any]) -> SentenceCited:
    citations = tuple(
        Citation(
            one["passage"],
            Support(one["support"]) if one.get("support") else None,
            one.get("quote"),
            one.get("start"),
            one.get("end"),
            one.get("origin"),
        )
        for one in item.get("citations", [])
    )
    cites = tuple(dict.fromkeys(one.passage for one in citations))
    if citations == tuple(map(Citation, cites)):
        citations = ()  # nothing that `cites` does not say
    labels = (item.get("informative"), item.get("attributable"), item.get("worthy"))
    return SentenceCited(item["text"], cites, item.get("output"), *labels, citations)


def _without(sentence: SentenceCited, unknown: list[str]) -> SentenceCited:
    if not unknown:
        return sentence
    return SentenceCited(
        sentence.text,
        tuple(cited for cited in sentence.cites if cited not in unknown),
        sentence.output,
        sentence.informative,
        sentence.attributable,
        sentence.worthy,
        tuple(one for one in sentence.citations if one.passage not in unknown),
    )


def _shown(passage: Mapping[str, Any]) -> ShownPassage:
    title = passage.get("title") or ""
    headings = passage.get("headings")
    if headings is None:
        headings = _headings(title, passage.get("section") or "")
    return ShownPassage(headings, passage["text"], title, passage.get("score"))


def _headings(title: str, section: str) -> str:
    return ", ".join(filter(None, (title, section)))


def write_answers(answers: Iterable[CitedAnswer]) -> Iterator[str]:
    """The lines of `answers.jsonl`; `read_answers` gives the same answers back."""
    for answer in answers:
        yield dumps(to_row(answer))


def to_row(answer: CitedAnswer) -> dict[str, Any]:
    """The answer as JSON; what is empty or unknown is left out."""
    plain = answer.plain
    ranks = {key: rank for rank, key in enumerate(dict.fromkeys((*answer.ranking, *answer.passages)), 1)}
    sentences = []
    at = 0
    for sentence in answer.sentences:
        start = plain.find(sentence.text, at)
        place = {"start": start, "end": start + len(sentence.text)} if start >= 0 else {}
        at = place.get("end", at)
        sentences.append(
            {
                "text": sentence.text,
                **place,
                **_known(output=sentence.output, informative=sentence.informative, attributable=sentence.attributable),
                **_known(worthy=sentence.worthy),
                "citations": [
                    {
                        "passage": one.passage,
                        **_known(support=one.support, quote=one.quote, start=one.start, end=one.end),
                        **_known(origin=one.origin),
                    }
                    for one in sentence.citations or map(Citation, sentence.cites)
                ],
            }
        )
    row = {
        "id": answer.id,
        "question": answer.question,
        "answer": plain,
        **_known(output=answer.output),
        "short_answer": answer.short_answer,
        "sentences": sentences,
        "passages": [
            {
                "n": number,
                "rank": ranks[key],
                "id": key,
                "title": shown.title,
                "section": shown.section,
                **({} if shown.headings == _headings(shown.title, shown.section) else {"headings": shown.headings}),
                "text": shown.text,
                **_known(score=shown.score),
            }
            for number, (key, shown) in enumerate(answer.passages.items(), 1)
        ],
        "unresolved": [
            {"marker": one.marker, "reason": one.reason, **_known(sentence=one.sentence)}
            for one in answer.unresolved_markers
        ],
        "abstained": answer.abstained,
        **_known(informative=answer.informative, attributable=answer.attributable),
        "answers": list(answer.answers),
        "gold": list(answer.gold),
    }
    clashing = {name: value for name, value in answer.extra.items() if name in _KNOWN}
    row |= {name: value for name, value in answer.extra.items() if name not in _KNOWN}
    return row | ({"extra": clashing} if clashing else {})


def _known(**values: object) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
