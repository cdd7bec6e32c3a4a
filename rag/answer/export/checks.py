"""The sentences of an answer that a judge rejected (`trace["checked"]`), as other formats list them.

The trace may come from a server or a file of others, so whatever does not fit the answer is left out.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from rag.answer.attribution.check import LABELS, REJECTED, SentenceVerdict, describe_rejection
from rag.answer.export.escaping import one_line, visible
from rag.answer.export.sources import Span, merge_spans
from rag.base.types import Answer, Passage

Pieces = tuple[tuple[str, bool], ...]
"""A text in pieces on one line, each with whether its words differ."""


@dataclass(frozen=True, slots=True)
class Rejection:
    """A sentence that is not supported: `label` says how it fares, `explanation` why.

    `source` is the passage that says otherwise, with its number if it is cited, and `quote` its words; None if the
    judge names none.
    """

    label: str
    claim: Pieces
    explanation: str
    quote: Pieces = ()
    source: Passage | None = None
    number: int | None = None


def list_rejections(answer: Answer) -> Iterator[Rejection]:
    """Yield the sentences that the judge does not find supported, in order; none of an answer without checks."""
    checks = answer.trace.get("checked")
    numbered_hits = answer.number_hits()
    passages = {hit.passage.id: hit.passage for _, _, hit in numbered_hits}
    cited_ids = {citation.passage for citation in answer.citations}
    numbers = {hit.passage.id: n for n, _, hit in numbered_hits if hit.passage.id in cited_ids}
    for sentence, check in zip(answer.sentences, checks if isinstance(checks, list) else (), strict=False):
        if not isinstance(check, Mapping) or check.get("verdict") not in REJECTED:
            continue
        verdict, clash = SentenceVerdict(check["verdict"]), check.get("numbers")
        numbers_that_clash = list(map(str, clash)) if isinstance(clash, list) else None
        reason = describe_rejection(verdict, cites=bool(sentence.citations), numbers=numbers_that_clash)
        explanation = one_line(reason[:1].upper() + reason[1:])
        claim = _split(sentence.text, check.get("unsupported"))
        place = check.get("contradiction")
        source = passages.get(str(place.get("passage"))) if isinstance(place, Mapping) else None
        if not isinstance(place, Mapping) or source is None or str(place.get("quote")) not in source.text:
            yield Rejection(LABELS[verdict], claim, explanation)
            continue
        quote = _split(str(place["quote"]), place.get("differences"))
        yield Rejection(LABELS[verdict], claim, explanation, quote, source, numbers.get(source.id))


def _split(text: str, spans: object) -> Pieces:
    """A text in pieces, at the spans that fit it."""
    marks = merge_spans(
        [span for span in map(_read_span, spans if isinstance(spans, list) else ()) if span is not None]
    )
    pieces, position = list[tuple[str, bool]](), 0
    for start, end in marks:
        pieces += [(text[position:start], False), (text[start:end], True)]
        position = max(position, end)
    pieces.append((text[position:], False))
    return tuple((visible(piece).replace("\n", " ").replace("\r", " "), differs) for piece, differs in pieces if piece)


def _read_span(value: object) -> Span | None:
    match value:
        case [int(start), int(end)] if 0 <= start < end:
            return start, end
    return None
