"""Items: what a person judges at a time. Reads and writes `items.jsonl`, and makes items of cited answers."""

import hashlib
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from autoais.base.answers import CitedAnswer
from autoais.base.io.jsonl import dumps, read_objects
from autoais.base.io.schema import BOOLEAN, IDENTIFIER, STRING, TEXT_OR_NULL, Schema, faults, list_of, record
from rag.annotate.schemes import FLAGS, KINDS, Kind, Scheme, Unit
from rag.base.errors import FormatError, UsageError


@dataclass(frozen=True, slots=True)
class Turn:
    """An earlier turn of a conversation."""

    speaker: str
    text: str


@dataclass(frozen=True, slots=True)
class Source:
    """A text that the item is judged against. `number` is its number in the answer's citations, if it has one."""

    id: str
    text: str
    title: str = ""
    section: str = ""
    number: int | None = None


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a table."""

    text: str
    is_header: bool = False
    is_highlighted: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """A table that a caption is judged against, with the texts around it; these may be empty."""

    rows: tuple[tuple[Cell, ...], ...]
    title: str = ""
    section: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True)
class Item:
    """What one person judges at a time.

    `sentence` (0-based) and `citation` (the id of a passage) are None where the whole answer, or all citations of the
    sentence, are judged. `passage` is the id of the source if that is judged by itself, without a `text`. `before` and
    `after` are the rest of the answer. `expected` has the right verdicts by question, which makes it a training or gold
    item, and `explanation` says why. `group` is the question that the answer belongs to. An item with `flags` is
    incomplete: it is kept, but nobody is asked about it.
    """

    id: str
    text: str = ""
    answer: str = ""
    sentence: int | None = None
    citation: str | None = None
    kind: Kind = "qa"
    turns: tuple[Turn, ...] = ()
    query: str = ""
    before: str = ""
    after: str = ""
    sources: tuple[Source, ...] = ()
    table: Table | None = None
    expected: Mapping[str, str] = field(default_factory=dict)
    explanation: str = ""
    system: str = ""
    flags: tuple[str, ...] = ()
    group: str = ""
    passage: str | None = None

    @property
    def unit(self) -> Unit:
        """Whether a whole answer, a sentence, a citation or a passage is judged."""
        if self.passage is not None:
            return "passage"
        if self.citation is not None:
            return "citation"
        return "answer" if self.sentence is None else "sentence"

    @property
    def has_source(self) -> bool:
        """Whether there is anything to judge the item against."""
        return self.table is not None or bool(self.sources)


_MAX_ID_LENGTH = 600  # PostgreSQL's indexes hold at most 2,704 bytes
_NUMBER: Schema = {"type": ["integer", "null"], "minimum": 0}
_CELL = record({"text": STRING}, {"header": BOOLEAN, "highlighted": BOOLEAN})
SCHEMA = record(
    {"id": IDENTIFIER},
    {
        "text": STRING,
        "answer": STRING,
        "sentence": _NUMBER,
        "citation": TEXT_OR_NULL,
        "kind": {"type": "string", "enum": [*KINDS]},
        "turns": list_of(record({"speaker": STRING, "text": STRING})),
        "query": STRING,
        "before": STRING,
        "after": STRING,
        "sources": list_of(
            record({"id": STRING, "text": STRING}, {"title": STRING, "section": STRING, "number": _NUMBER})
        ),
        "table": {
            **record(
                {"rows": {"type": "array", "items": list_of(_CELL)}},
                {"title": STRING, "section": STRING, "text": STRING},
            ),
            "type": ["object", "null"],
        },
        "expected": {"type": "object", "additionalProperties": STRING},
        "explanation": STRING,
        "system": STRING,
        "flags": list_of({"type": "string", "enum": [flag.value for flag in FLAGS]}),
        "group": {"type": ["string", "integer"]},
        "passage": TEXT_OR_NULL,
    },
)
"""The JSON Schema of a row of `items.jsonl`."""


def read_items(path: str | Path, *, flag_incomplete: bool = False) -> Iterator[Item]:
    """Stream `items.jsonl`; raises `FormatError` at a broken row, a duplicate id, or an item with missing parts.

    With `flag_incomplete`, an item with missing parts is kept with the flag `missing`.
    """
    ids: set[str] = set()
    for location, row in read_objects(Path(path)):
        item = item_of(row, location, flag_incomplete=flag_incomplete)
        if item.id in ids:
            raise FormatError(f"{location}: id {item.id[:60]!r} occurs twice")
        ids.add(item.id)
        yield item


def open_items(items: str | Path | Iterable[Item], *, flag_incomplete: bool = False) -> Iterable[Item]:
    """Return the items of a file, or those of a program, checked like rows; raises `FormatError`, as `read_items`."""
    if isinstance(items, str | Path):
        return read_items(items, flag_incomplete=flag_incomplete)
    # A study reads them back from such rows.
    return (item_of(to_row(item), f"item {item.id!r:.60}", flag_incomplete=flag_incomplete) for item in items)


def item_of(row: Mapping[str, Any], location: str, *, flag_incomplete: bool = False) -> Item:
    """Return the item of a row of `items.jsonl`; raises `FormatError`."""
    for fault in faults(dict(row), SCHEMA):
        raise FormatError(f"{location}: {fault}")
    for path, text in _texts(row):
        if wrong := unstorable(text):
            raise FormatError(f"{location}: field {path!r} holds {wrong}")
    for name in ("id", "answer"):
        if len(str(row.get(name, ""))) > _MAX_ID_LENGTH:
            raise FormatError(f"{location}: field {name!r} has more than {_MAX_ID_LENGTH} characters")
    table = row.get("table")
    item = Item(
        id=str(row["id"]),
        text=row.get("text", ""),
        answer=row.get("answer", ""),
        sentence=row.get("sentence"),
        citation=row.get("citation"),
        kind=row.get("kind", "qa"),
        turns=tuple(Turn(turn["speaker"], turn["text"]) for turn in row.get("turns", ())),
        query=row.get("query", ""),
        before=row.get("before", ""),
        after=row.get("after", ""),
        sources=tuple(_source(source) for source in row.get("sources", ())),
        table=None if table is None else _table(table),
        expected=dict(row.get("expected", {})),
        explanation=row.get("explanation", ""),
        system=row.get("system", ""),
        flags=tuple(row.get("flags", ())),
        group=str(row.get("group", "")),
        passage=row.get("passage"),
    )
    if missing := next(_missing(item, row), None):
        if not flag_incomplete:
            raise FormatError(f"{location}: {missing}; complete it, or flag such items (--flag-incomplete)")
        item = replace(item, flags=tuple(dict.fromkeys((*item.flags, "missing"))))
    return item


def _missing(item: Item, row: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is missing of an item. A list of sources that is there and empty says that nothing was cited."""
    if item.passage is None and not item.text.strip():
        yield f"field 'text' is {'empty' if 'text' in row else 'missing'}"
    if item.kind == "qa" and not item.query.strip() and not item.turns:
        yield "field 'query' is missing or empty, and there are no 'turns'"
    if item.kind == "table":
        if item.table is None or not any(item.table.rows):
            yield "field 'table' is missing, or has no cell"
    elif "sources" not in row:
        yield "field 'sources' is missing (an empty list says that nothing is cited)"
    for number, source in enumerate(item.sources):
        if not source.text.strip():
            yield f"field 'sources[{number}].text' is empty"
    for name, key in (("citation", item.citation), ("passage", item.passage)):
        if key is not None and key not in [source.id for source in item.sources]:
            yield f"field {name!r} names {key[:60]!r}, which is not among the sources"
    if item.passage is not None and len(item.sources) > 1:
        yield f"field 'sources' has {len(item.sources)} sources, where the passage {item.passage[:60]!r} stands alone"
    if len({source.id for source in item.sources}) < len(item.sources):
        yield "field 'sources' has an id twice"


def unstorable(text: str) -> str | None:
    """Return why a text cannot be stored (PostgreSQL refuses NUL, UTF-8 a lone surrogate); None if it can."""
    if "\x00" in text:
        return "a NUL character (\\u0000)"
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return "half of a surrogate pair"
    return None


def _texts(value: object, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield each string of a JSON value, keys too, with its path."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            yield path or "(a name)", name
            yield from _texts(inner, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _texts(inner, f"{path}[{number}]")


def _source(row: Mapping[str, Any]) -> Source:
    return Source(row["id"], row["text"], row.get("title", ""), row.get("section", ""), row.get("number"))


def _table(row: Mapping[str, Any]) -> Table:
    rows = tuple(
        tuple(Cell(cell["text"], cell.get("header", False), cell.get("highlighted", False)) for cell in cells)
        for cells in row["rows"]
    )
    return Table(rows, row.get("title", ""), row.get("section", ""), row.get("text", ""))


def to_row(item: Item) -> dict[str, Any]:
    """Return the row of `items.jsonl`; `read_items` restores the same item."""
    table = item.table
    return {
        "id": item.id,
        "answer": item.answer,
        "sentence": item.sentence,
        "citation": item.citation,
        "kind": item.kind,
        "turns": [{"speaker": turn.speaker, "text": turn.text} for turn in item.turns],
        "query": item.query,
        "text": item.text,
        "before": item.before,
        "after": item.after,
        "sources": [
            {
                "id": source.id,
                "title": source.title,
                "section": source.section,
                "text": source.text,
                "number": source.number,
            }
            for source in item.sources
        ],
        "table": None
        if table is None
        else {
            "title": table.title,
            "section": table.section,
            "text": table.text,
            "rows": [
                [{"text": cell.text, "header": cell.is_header, "highlighted": cell.is_highlighted} for cell in cells]
                for cells in table.rows
            ],
        },
        "expected": dict(item.expected),
        "explanation": item.explanation,
        "system": item.system,
        "flags": list(item.flags),
        "group": item.group,
    } | ({} if item.passage is None else {"passage": item.passage})


def item_row(item: Item, place: int, pool: str) -> dict[str, Any]:
    """Return the columns of an item in the database: its place in the order of the study, and its pool."""
    return {
        "id": item.id,
        "place": place,
        "pool": pool,
        "answer": item.answer or item.id,
        "topic": topic_of(item),
        "open": True,
        "row": dumps(to_row(item)),
    }


def write_items(items: Iterable[Item]) -> Iterator[str]:
    """Yield the lines of `items.jsonl`."""
    for item in items:
        yield dumps(to_row(item))


# --- items of answers ------------------------------------------------------------------------------------------------


def items_of(
    answers: Iterable[CitedAnswer], scheme: Scheme, *, kind: Kind = "qa", flag_incomplete: bool = False
) -> Iterator[Item]:
    """Yield the items of cited answers that a scheme asks about: answers, sentences or citations; no abstentions.

    The sources of an item are the passages that it cites, in order. Ids are those of the answer, `ANSWER#SENTENCE` and
    `ANSWER#SENTENCE@PASSAGE` (0-based). Where a scheme asks about passages, each passage of a record is an item
    `ANSWER@PASSAGE`, also those of questions without an answer. `extra` may hold `query_id`, `system` and `turns` (rows
    of speaker and text). Raises `FormatError` for a passage without text, or with `flag_incomplete` flags its items as
    `missing`.
    """
    for answer in answers:
        for row in _rows(answer, scheme, kind):
            yield item_of(row, f"item {row['id']!r}", flag_incomplete=flag_incomplete)


def _rows(answer: CitedAnswer, scheme: Scheme, kind: Kind) -> Iterator[dict[str, Any]]:
    common = _common_fields(answer, kind)
    for key in answer.passages if "passage" in scheme.units else ():
        yield common | {"id": f"{answer.id}@{key}", "passage": key, "sources": _source_rows(answer, [key])}
    if answer.abstained or not answer.plain.strip():
        return
    if "answer" in scheme.units:
        ids = dict.fromkeys(passage for sentence in answer.sentences for passage in sentence.cites)
        yield common | {"id": answer.id, "text": answer.output or answer.plain, "sources": _source_rows(answer, ids)}
    # As written, with markers: "The reference is [1]." makes no sense without them.
    texts = [sentence.output or sentence.text for sentence in answer.sentences]
    for number, sentence in enumerate(answer.sentences):
        row: dict[str, Any] = common | {
            "sentence": number,
            "text": texts[number],
            "before": " ".join(texts[:number]),
            "after": " ".join(texts[number + 1 :]),
        }
        key = f"{answer.id}#{number}"
        if not sentence.text.strip():
            continue
        if "sentence" in scheme.units:
            yield row | {"id": key, "sources": _source_rows(answer, sentence.cites)}
        for passage in sentence.cites if "citation" in scheme.units else ():
            yield row | {"id": f"{key}@{passage}", "citation": passage, "sources": _source_rows(answer, [passage])}


def _common_fields(answer: CitedAnswer, kind: Kind) -> dict[str, Any]:
    system, group, turns = (answer.extra.get(name) for name in ("system", "query_id", "turns"))
    return {
        "answer": answer.id,
        "kind": kind,
        "turns": turns if isinstance(turns, list) else [],
        "query": answer.question,
        "system": system if isinstance(system, str) else "",
        "group": group if isinstance(group, str | int) else answer.question,
    }


def _source_rows(answer: CitedAnswer, passage_ids: Iterable[str]) -> list[dict[str, Any]]:
    numbers = {key: number for number, key in enumerate(answer.passages, 1)}
    passages = ((numbers[key], answer.passages[key]) for key in passage_ids)
    return [
        {"id": passage.id, "title": passage.title, "section": passage.section, "text": passage.text, "number": number}
        for number, passage in passages
    ]


_UNIT_HINTS: Mapping[Unit, str] = {
    "answer": "leave 'sentence' and 'citation' out",
    "sentence": "add 'sentence', such as 0, and no 'citation'",
    "citation": "add 'citation', the id of its source",
    "passage": "add 'passage', the id of its only source",
}


def check_items(items: Iterable[Item], scheme: Scheme, name: str, *, expected: bool = False) -> Iterator[Item]:
    """Yield the items. Raises `FormatError` for one that does not fit the scheme, or lacks `expected` verdicts."""
    for item in items:
        location = f"{name}: item {item.id[:60]!r}"
        if item.unit not in scheme.units:
            units = " or ".join(scheme.units)
            hint = " or ".join(_UNIT_HINTS[unit] for unit in scheme.units)
            raise FormatError(
                f"{location} is about one {item.unit}; scheme {scheme.name!r} asks about one {units}: {hint}"
            )
        if expected and not item.expected:
            raise FormatError(f"{location}: field 'expected' is missing; it holds the right verdict of each question")
        if expected and pool_of(item, scheme) == "unasked":
            raise FormatError(f"{location}: no question is asked about it, as it has no sources; add some")
        for question, value in item.expected.items() if expected else ():
            _check_expected_verdict(location, item, scheme, question, value)
        yield item


def pool_of(item: Item, scheme: Scheme) -> str:
    """Return where an item belongs: `study`, `flagged`, or `unasked`, as a question that shows sources needs some."""
    if item.flags:
        return "flagged"
    is_asked = scheme.next_question(item.unit, {}, has_source=item.has_source) is not None
    return "study" if is_asked else "unasked"


def _check_expected_verdict(location: str, item: Item, scheme: Scheme, question: str, value: str) -> None:
    if question == "flag":
        values: tuple[str, ...] = tuple(flag.value for flag in FLAGS if item.kind in flag.kinds)
    else:
        questions = [candidate for candidate in scheme.questions_of(item.unit) if candidate.name == question]
        if not questions:
            names = ", ".join(candidate.name for candidate in scheme.questions_of(item.unit))
            raise FormatError(f"{location}: field 'expected' has {question[:60]!r}; the questions are: {names}, flag")
        values = questions[0].values
    if value not in values:
        names = ", ".join(values)
        raise FormatError(f"{location}: field 'expected.{question}' should be one of {names}, found {value!r:.60}")


def topic_of(item: Item) -> str:
    """Return the question that the item's answer belongs to, as far as it is known."""
    return item.group or item.query or item.answer or item.id


def order_items(items: Sequence[Item], seed: int) -> list[Item]:
    """Shuffle the items, with the answers to one question far apart.

    The items of one answer stay together, as they share what must be read. The answers of a question with m answers
    are spread over m equal parts of the study.
    """
    answers: dict[str, list[Item]] = {}
    for item in items:
        answers.setdefault(item.answer or item.id, []).append(item)
    groups: dict[str, list[str]] = {}
    for key, answer_items in answers.items():
        groups.setdefault(topic_of(answer_items[0]), []).append(key)
    chance = random.Random(seed)
    positions: list[tuple[float, str]] = []
    for _, keys in sorted(groups.items()):
        keys.sort()
        chance.shuffle(keys)
        positions += [((number + chance.random()) / len(keys), key) for number, key in enumerate(keys)]
    return [item for _, key in sorted(positions) for item in answers[key]]


def attention_checks(items: Sequence[Item], n: int, question: str, value: str, seed: int = 0) -> dict[str, Item]:
    """Return n attention checks: gold items with the text of one item and the sources of another.

    Only a person who does not read them gets them wrong. The keys are the ids of the items whose text they have.
    `question` and `value` are the expected verdict, such as attributable and no. Two items are paired if they answer
    different questions, have as many sources, and share neither a text nor the table; the sources keep the numbers by
    which the item cites them. Raises `UsageError` if there are too few items.
    """
    chance = random.Random(f"attention checks {seed}")
    candidates = [item for item in items if item.has_source and not item.flags]
    checks: dict[str, Item] = {}
    for item in chance.sample(candidates, len(candidates)):
        if len(checks) == n:
            break
        other = next(
            (candidate for candidate in chance.sample(candidates, len(candidates)) if _is_foreign(item, candidate)),
            None,
        )
        if other is None:
            continue
        sources = tuple(
            replace(other_source, number=source.number)
            for other_source, source in zip(other.sources, item.sources, strict=True)
        )
        cited_index = next((index for index, source in enumerate(item.sources) if source.id == item.citation), None)
        checks[item.id] = replace(
            item,
            id=_pair_id(item.id, other.id),
            citation=item.citation if cited_index is None else sources[cited_index].id,
            passage=item.passage and sources[0].id,
            sources=sources,
            table=other.table,
            expected={question: value},
            explanation="The source is that of another item.",
        )
    if len(checks) < n:
        raise UsageError(
            f"{n} attention checks need more items than the {len(candidates)} with sources"
            f" ({len(checks)} of these have another item with as many sources)"
        )
    return checks


def _pair_id(first_id: str, second_id: str) -> str:
    """The id of an attention check of two items; an id that would be too long ends in a checksum."""
    pair_id = f"{first_id}~{second_id}"
    if len(pair_id) <= _MAX_ID_LENGTH:
        return pair_id
    checksum = hashlib.sha256(pair_id.encode()).hexdigest()
    return f"{first_id[: _MAX_ID_LENGTH - len(checksum) - 1]}~{checksum}"


def _is_foreign(item: Item, other: Item) -> bool:
    """Whether the sources of another item can take the place of an item's own in an attention check."""
    return (
        topic_of(other) != topic_of(item)
        and (other.kind, other.unit, len(other.sources)) == (item.kind, item.unit, len(item.sources))
        and (other.table is None) == (item.table is None)
        and (item.table is None or other.table != item.table)
        and not {source.text for source in other.sources} & {source.text for source in item.sources}
    )
