"""Lossless splitting of long or multiple evidence texts into windows for judges with a length limit."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from autoais.base.text.sentences import boundaries
from autoais.base.types import Span


@dataclass(frozen=True, slots=True)
class Window:
    """A piece of the evidence that a judge reads, and the spans it consists of, in order.

    `text` is the text of the spans, each stripped of outer white space, joined by newlines.
    """

    text: str
    spans: tuple[Span, ...]


def windows(texts: Sequence[str], count: Callable[[str], int], budget: int) -> list[Window]:
    """Whole sentences of one or several texts, packed in order into windows of at most `budget` tokens.

    `count` returns the tokens of a text including everything around it (prompt, special tokens). Texts that fit make
    one window. Otherwise each window repeats the last sentence of the previous one if both sentences fit. A sentence
    longer than the budget is split at words, and a word at characters. Every character of every text is in the spans
    of at least one window; empty texts have none. A window exceeds the budget only if a single character does, so
    callers that must not truncate check the length of what they send.
    """
    spans = [Span(i, 0, len(text)) for i, text in enumerate(texts) if text]
    if not spans:
        return []
    if count(_text(texts, spans)) <= budget:
        return [_window(texts, spans)]
    overhead = count("")
    units = [unit for span in spans for unit in _units(texts[span.evidence], span.evidence, count, budget, overhead)]
    costs = [count(_text(texts, [unit])) - overhead for unit in units]
    room = budget - overhead
    result: list[Window] = []
    start = end = 0
    while end < len(units):
        end, total = start + 1, costs[start]
        while end < len(units) and total + costs[end] <= room:
            total += costs[end]
            end += 1
        # Token counts are not quite additive, so the joined text is counted again.
        while end - start > 1 and count(_text(texts, units[start:end])) > budget:
            end -= 1
        result.append(_window(texts, units[start:end]))
        repeats = end - start > 1 and end < len(units) and costs[end - 1] + costs[end] <= room
        start = end - 1 if repeats else end
    return result


def _units(text: str, evidence: int, count: Callable[[str], int], budget: int, overhead: int) -> Iterator[Span]:
    """The sentences of a text, each with the white space after it; sentences that are too long are split.

    A piece takes at most a third of the room, so that windows over a text without sentences overlap too.
    """
    starts = [start for start, _ in boundaries(text)]
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        if count(text[start:end].strip()) <= budget:
            yield Span(evidence, start, end)
        else:
            limit = overhead + max(1, (budget - overhead) // 3)
            yield from (Span(evidence, a, b) for a, b in _pieces(text, start, end, count, limit))


def _pieces(text: str, start: int, end: int, count: Callable[[str], int], limit: int) -> Iterator[tuple[int, int]]:
    """Halve a span, preferably at a word near its middle, until each piece is within the limit."""
    waiting = [(start, end)]
    while waiting:
        start, end = waiting.pop()
        if end - start < 2 or count(text[start:end].strip()) <= limit:
            yield start, end
        else:
            middle = _middle(text, start, end)
            waiting += [(middle, end), (start, middle)]


def _middle(text: str, start: int, end: int) -> int:
    """The start of a word near the middle, else the middle."""
    middle = (start + end) // 2
    after = re.compile(r"\s(?=\S)").search(text, middle, end)
    if after:
        return after.end()
    before = max(text.rfind(blank, start, middle) for blank in (" ", "\n", "\t")) + 1
    return before if before > start else middle


def _text(texts: Sequence[str], spans: Sequence[Span]) -> str:
    merged_spans = _merge(spans)
    return "\n".join(piece for s in merged_spans if (piece := texts[s.evidence][s.start : s.end].strip()))


def _window(texts: Sequence[str], units: Sequence[Span]) -> Window:
    return Window(_text(texts, units), tuple(_merge(units)))


def _merge(units: Sequence[Span]) -> list[Span]:
    """The spans, with adjacent ones of the same text merged."""
    spans = list(units[:1])
    for unit in units[1:]:
        last = spans[-1]
        if (unit.evidence, unit.start) == (last.evidence, last.end):
            spans[-1] = Span(last.evidence, last.start, unit.end)
        else:
            spans.append(unit)
    return spans
