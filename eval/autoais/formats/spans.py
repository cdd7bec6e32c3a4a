"""Questions with passages and gold spans, and files of predicted spans (JSON Lines).

A gold row is `{"id", "question", "passages": [{"id", "text"}], "spans": {"<passage>": [...]}}`, a row of predictions
`{"id", "spans"}`. A span is `[start, end]` (characters, end exclusive) or the text itself, which is located. A passage
without an entry has no spans.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from autoais.base.errors import FormatError, json_kind
from autoais.base.io.jsonl import field, identifier, read_objects
from autoais.formats.acl_verbatim import chunks_of, is_acl_verbatim

Spans = tuple[tuple[int, int], ...]
"""Characters (start, end) of a text, end exclusive."""


@dataclass(frozen=True, slots=True)
class SpanGold:
    """A question with the texts of its passages, and the spans that people marked in them, both by passage."""

    id: str
    texts: Mapping[str, str]
    spans: Mapping[str, Spans]


def locate(text: str, quote: str) -> tuple[int, int] | None:
    """Return where a quote first stands in a text, else None.

    If it does not stand there as it is, white space and case count for nothing, and if that is not enough, neither does
    what stands between its words, such as the bars of a table.
    """
    if not quote.strip():
        return None
    if (start := text.find(quote)) >= 0:
        return start, start + len(quote)
    for gap, pieces in ((r"\s+", quote.split()), (r"\W+", re.findall(r"\w+", quote))):
        if pieces and (match := re.search(gap.join(map(re.escape, pieces)), text, re.IGNORECASE)):
            return match.span()
    return None


def read_span_gold(path: Path) -> Iterator[SpanGold]:
    """Read questions with gold spans, ours or ACL-Verbatim's (`autoais.formats.acl_verbatim`), numbered as they come.

    Raises `FormatError` for a broken row, an id that occurs twice, a span outside its passage, and a file without rows.
    """
    ids = set()
    for number, (source, row) in enumerate(read_objects(path), 1):
        gold = _gold(row, source, number)
        if gold.id in ids:
            raise FormatError(f"{source}: id {gold.id[:60]!r} occurs twice")
        ids.add(gold.id)
        yield gold
    if not ids:
        raise FormatError(f"{path}: holds no questions")


def read_span_predictions(path: Path) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Yield (`file:line`, id, spans as they are) of each row; `spans_of` reads them by the texts of the question.

    Raises `FormatError` for a broken row and an id that occurs twice.
    """
    ids = set()
    for source, row in read_objects(path):
        key = identifier(row, "id", source)
        if key in ids:
            raise FormatError(f"{source}: id {key[:60]!r} occurs twice")
        ids.add(key)
        yield source, key, field(row, "spans", dict, source)


def holds_spans(path: Path) -> bool:
    """Whether the first row of a file has `spans`; others are answers with citations."""
    return any("spans" in row for _, row in islice(read_objects(path), 1))


def spans_of(spans: Mapping[str, Any], texts: Mapping[str, str], source: str) -> dict[str, Spans]:
    """Return the spans of a field `spans`, by passage, in the texts of the passages.

    Raises `FormatError`, which starts with `source`, for a passage without a text, and for what is no span of it.
    """
    return {
        passage: tuple(
            _span(span, passage, texts, f"{source}: field 'spans'") for span in _list(entry, passage, source)
        )
        for passage, entry in spans.items()
    }


def _gold(row: Mapping[str, Any], source: str, number: int) -> SpanGold:
    if is_acl_verbatim(row):
        chunks = list(chunks_of(row, source))
        texts = {passage.id: passage.text for passage, _ in chunks}
        if len(texts) < len(chunks):
            raise FormatError(f"{source}: field 'results': a chunk occurs twice")
        spans: Mapping[str, Any] = {passage.id: list(quotes) for passage, quotes in chunks}
        return SpanGold(str(number), texts, spans_of(spans, texts, source))
    texts = {}
    for index, passage in enumerate(field(row, "passages", list, source)):
        location = f"{source}: field 'passages[{index}]'"
        if not isinstance(passage, Mapping):
            raise FormatError(f"{location} should be an object with id and text, found {json_kind(passage)}")
        key = identifier(passage, "id", location)
        if key in texts:
            raise FormatError(f"{location}: the id {key[:60]!r} occurs twice")
        texts[key] = field(passage, "text", str, location)
    return SpanGold(identifier(row, "id", source), texts, spans_of(field(row, "spans", dict, source), texts, source))


def _list(entry: object, passage: str, source: str) -> list[Any]:
    if not isinstance(entry, list):
        raise FormatError(f"{source}: field 'spans': {passage[:60]!r} should have a list, found {json_kind(entry)}")
    return entry


def _span(span: object, passage: str, texts: Mapping[str, str], location: str) -> tuple[int, int]:
    if passage not in texts:
        raise FormatError(f"{location}: {passage[:60]!r} is none of the passages of the question")
    text = texts[passage]
    if isinstance(span, str):
        if (located := locate(text, span)) is None:
            raise FormatError(f"{location}: {span[:60]!r} does not stand in the passage {passage[:60]!r}")
        return located
    if not (isinstance(span, list) and len(span) == 2 and all(type(offset) is int for offset in span)):
        raise FormatError(
            f"{location}: a span of {passage[:60]!r} should be [start, end] or its text, found {str(span)[:60]}"
        )
    start, end = span
    if not 0 <= start <= end <= len(text):
        length = f"{len(text):,} characters"
        raise FormatError(f"{location}: the span {start} to {end} lies outside the passage {passage[:60]!r} ({length})")
    return start, end
