"""The record of one question in a run: what was asked, answered and judged. Runs write it; reports and compare read it.

A run folder may come from somebody else, so every field of a row is checked when it is read.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from autoais.base.errors import FormatError, UserError
from autoais.base.io.jsonl import dumps, read_objects, write_atomic
from autoais.base.io.schema import (
    BOOLEAN,
    INTEGER,
    NUMBER_OR_NULL,
    STRING,
    TEXT_OR_NULL,
    Schema,
    faults,
    list_of,
    record,
)
from autoais.base.types import NOT_APPLICABLE, Verdict

ANSWERED_WAYS = ("right_attributed", "right_unattributed", "wrong_attributed", "wrong_unattributed")
OUTCOMES = (*ANSWERED_WAYS, "refused_right", "refused_wrong", "undecided")
"""What can happen to a question: the four ways of an answer, a refusal (right if the question has no answer), or
undecided: the judge or the benchmark cannot say."""

VERDICTS = (*map(str, Verdict), NOT_APPLICABLE)


@dataclass(frozen=True, slots=True)
class ItemCitation:
    """A citation: the passage's id, the span of its text that supports (end exclusive), and the verdict on it alone.

    The passage is not among the item's if its text is unknown. The verdict is None if single citations were not judged.
    """

    passage: str
    start: int | None
    end: int | None
    verdict: str | None


@dataclass(frozen=True, slots=True)
class ItemSentence:
    """A sentence of an answer; `verdict` is that on all its citations together.

    `start` and `end` are character offsets into the answer. `unsupported` holds the spans of `text` without support.
    `human` says whether people found the sentence attributable; None if nobody was asked.
    """

    text: str
    start: int | None
    end: int | None
    verdict: str
    probability: float | None
    citations: tuple[ItemCitation, ...]
    unsupported: tuple[tuple[int, int], ...]
    human: bool | None = None


@dataclass(frozen=True, slots=True)
class ItemPassage:
    """What a reader of a report needs of a passage."""

    title: str
    section: str
    text: str
    url: str | None


@dataclass(frozen=True, slots=True)
class Item:
    """One question of a run, with its answer, judgements and scores; None where unknown.

    `references`, `gold` and `nuggets` are those of the question. `missing`: the system gave no answer; `failed`: its
    model failed. `passages` holds the cited passages and the first hits; `ranking` the ids of all hits. `right`: the
    answer is right by the benchmark's rule; `attributed`: every sentence is supported (AutoAIS). `way` is in
    `OUTCOMES`. `first_gold` and `answer_hit` are ranks, from 1, of the first gold passage and of the first that holds a
    reference. `span_f1` is the F1 of the cited words against those that people marked as the answer.
    """

    id: str
    question: str
    kind: str | None
    collection: str | None
    answerable: bool
    references: tuple[str, ...]
    gold: tuple[str, ...]
    nuggets: tuple[tuple[str, ...], ...]
    answer: str
    short_answer: str | None
    abstained: bool
    failed: bool
    missing: bool
    reason: str | None
    confidence: float | None
    sentences: tuple[ItemSentence, ...]
    passages: Mapping[str, ItemPassage]
    ranking: tuple[str, ...]
    right: bool | None
    attributed: bool | None
    way: str
    em: float | None
    f1: float | None
    answer_recall: bool | None
    nugget_recall: float | None
    first_gold: int | None
    answer_hit: int | None
    seconds: float | None
    tokens_read: int | None
    tokens_written: int | None
    words: int
    span_f1: float | None = None

    @property
    def cites(self) -> list[str]:
        """The ids of the cited passages, without duplicates, in order of mention."""
        return list(dict.fromkeys(citation.passage for sentence in self.sentences for citation in sentence.citations))

    def to_row(self) -> dict[str, Any]:
        """The item as JSON, all keys present; `human` and `span_f1` only where people were asked."""
        row: dict[str, Any] = json.loads(dumps(asdict(self)))
        if self.span_f1 is None:
            del row["span_f1"]
        for sentence in row["sentences"]:
            if sentence["human"] is None:
                del sentence["human"]
        return row


_OFFSET: Schema = {"type": ["integer", "null"], "minimum": 0}
_RANK: Schema = {"type": ["integer", "null"], "minimum": 1}
_COUNT: Schema = {"type": ["integer", "null"], "minimum": 0}
_TRUTH: Schema = {"type": ["boolean", "null"]}
_VERDICT: Schema = {"type": "string", "enum": list(VERDICTS)}
_VERDICT_OR_NULL: Schema = {"type": ["string", "null"], "enum": [*VERDICTS, None]}
_CITATION = record({"passage": STRING, "start": _OFFSET, "end": _OFFSET, "verdict": _VERDICT_OR_NULL})
_SENTENCE = record(
    {
        "text": STRING, "start": _OFFSET, "end": _OFFSET, "verdict": _VERDICT, "probability": NUMBER_OR_NULL,
        "citations": list_of(_CITATION), "unsupported": list_of(list_of({"type": "integer", "minimum": 0})),
    },
    {"human": _TRUTH},
)  # fmt: skip
_PASSAGE = record({"title": STRING, "section": STRING, "text": STRING, "url": TEXT_OR_NULL})

ITEM: Schema = record(
    {
        "id": STRING | {"pattern": r"\S"}, "question": STRING, "kind": TEXT_OR_NULL, "collection": TEXT_OR_NULL,
        "answerable": BOOLEAN, "references": list_of(STRING), "gold": list_of(STRING),
        "nuggets": list_of(list_of(STRING)),
        "answer": STRING, "short_answer": TEXT_OR_NULL, "abstained": BOOLEAN, "failed": BOOLEAN, "missing": BOOLEAN,
        "reason": TEXT_OR_NULL, "confidence": NUMBER_OR_NULL, "sentences": list_of(_SENTENCE),
        "passages": {"type": "object", "additionalProperties": _PASSAGE}, "ranking": list_of(STRING), "right": _TRUTH,
        "attributed": _TRUTH, "way": {"type": "string", "enum": list(OUTCOMES)}, "em": NUMBER_OR_NULL,
        "f1": NUMBER_OR_NULL, "answer_recall": _TRUTH, "nugget_recall": NUMBER_OR_NULL, "first_gold": _RANK,
        "answer_hit": _RANK, "seconds": NUMBER_OR_NULL, "tokens_read": _COUNT, "tokens_written": _COUNT,
        "words": INTEGER | {"minimum": 0},
    },
    {"span_f1": NUMBER_OR_NULL},
)  # fmt: skip
"""The JSON Schema of a row of items.jsonl."""

_SHARES = ("confidence", "em", "f1", "nugget_recall", "span_f1")  # 0 to 1


def item_from_row(row: Mapping[str, Any], source: str) -> Item:
    """Return the item of a row of items.jsonl; raises `FormatError`, which starts with `source`, for a broken one."""
    for fault in faults(row, ITEM):
        raise FormatError(f"{source}: {fault}")
    for name in _SHARES:
        if row.get(name) is not None and not 0 <= row[name] <= 1:
            raise FormatError(f"{source}: field {name!r} should be from 0 to 1, found {row[name]}")
    if row["seconds"] is not None and row["seconds"] < 0:
        raise FormatError(f"{source}: field 'seconds' should be at least 0, found {row['seconds']}")
    passages = {key: ItemPassage(**_select_fields(ItemPassage, passage)) for key, passage in row["passages"].items()}
    sentences = tuple(
        _sentence(sentence, passages, f"{source}: field 'sentences[{number}]'")
        for number, sentence in enumerate(row["sentences"])
    )
    lists = {name: tuple(row[name]) for name in ("references", "gold", "ranking")}
    nuggets = tuple(tuple(phrases) for phrases in row["nuggets"])
    return Item(
        **_select_fields(Item, row) | lists | {"nuggets": nuggets, "passages": passages, "sentences": sentences}
    )


def _select_fields(kind: type, row: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a dataclass: rows may have more of them."""
    return {field.name: row[field.name] for field in fields(kind) if field.name in row}


def _sentence(row: Mapping[str, Any], passages: Mapping[str, ItemPassage], source: str) -> ItemSentence:
    probability = row["probability"]
    if probability is not None and not 0 <= probability <= 1:
        raise FormatError(f"{source}: its probability should be from 0 to 1, found {probability}")
    citations = tuple(ItemCitation(**_select_fields(ItemCitation, citation)) for citation in row["citations"])
    for citation in citations:
        length = len(passages[citation.passage].text) if citation.passage in passages else None
        _check_span(
            citation.start, citation.end, length or None, f"{source}, a citation"
        )  # no length: the text is unknown
    _check_span(row["start"], row["end"], None, source)
    for span in row["unsupported"]:
        if len(span) != 2:
            raise FormatError(f"{source}: 'unsupported' should hold pairs of offsets, found {len(span)} numbers")
        _check_span(span[0], span[1], len(row["text"]), f"{source}, 'unsupported'")
    spans = tuple((start, end) for start, end in row["unsupported"])
    return ItemSentence(**_select_fields(ItemSentence, row) | {"citations": citations, "unsupported": spans})


def _check_span(start: int | None, end: int | None, length: int | None, source: str) -> None:
    if (start is None) != (end is None):
        raise FormatError(f"{source}: 'start' and 'end' should both be given, or both be null")
    if start is not None and end is not None and not start <= end <= (end if length is None else length):
        raise FormatError(
            f"{source}: the span {start} to {end} lies outside its text ({length or 'unknown'} characters)"
        )


def read_items(path: str | Path) -> list[Item]:
    """Read items.jsonl. Raises `FormatError` for a broken row or an id that occurs twice, `UserError` for no rows."""
    items: dict[str, Item] = {}
    for source, row in read_objects(Path(path)):
        item = item_from_row(row, source)
        if item.id in items:
            raise FormatError(f"{source}: the id {item.id[:60]!r} occurs twice; every question needs its own")
        items[item.id] = item
    if not items:
        raise UserError(f"{path}: no items in it; measure the run again")
    return list(items.values())


def write_items(path: str | Path, items: Iterable[Item]) -> None:
    """Write items.jsonl, atomically; the same items give the same bytes."""
    write_atomic(Path(path), (dumps(item.to_row()) for item in items))
