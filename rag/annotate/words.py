"""The words that people marked in passages: gold spans by majority, and how far people agree on words."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from autoais.base.io.jsonl import dumps
from autoais.formats.human_ratings.consensus import apply_flags, is_flagged
from autoais.formats.human_ratings.ratings import Rating
from autoais.formats.spans import Spans
from autoais.metrics.intervals import number_of
from autoais.metrics.spans import WORD, MarkedText, score_spans
from rag.annotate.items import Item, topic_of
from rag.annotate.schemes import Scheme


@dataclass(frozen=True, slots=True)
class MarkedPassage:
    """A passage with the spans of each person who answered about it, by the person's id; none for "no words"."""

    item: Item
    spans: dict[str, Spans]

    @property
    def text(self) -> str:
        """The text of the passage."""
        return self.item.sources[0].text

    def majority(self) -> Spans:
        """Return the characters that more than half of the people marked, without white space at the ends of spans."""
        counts = [0] * (len(self.text) + 1)
        for spans in self.spans.values():
            for position in {position for start, end in spans for position in range(start, end)}:
                counts[position] += 1
        return tuple(_runs(self.text, [2 * count > len(self.spans) for count in counts]))


def _runs(text: str, marks: Sequence[bool]) -> Iterator[tuple[int, int]]:
    """Yield the spans of a text that are marked; `marks` has one more entry, which is False."""
    start = None
    for position, is_marked in enumerate(marks):
        if is_marked and start is None:
            start = position
        elif not is_marked and start is not None:
            run = text[start:position]
            if run.strip():
                yield start + len(run) - len(run.lstrip()), position - len(run) + len(run.rstrip())
            start = None


def marked_passage(item: Item, scheme: Scheme, ratings: Sequence[Rating]) -> MarkedPassage | None:
    """Return a passage with what people marked; None if nobody was asked for words, or most flagged it.

    `ratings` are all of the item; those of the study count.
    """
    questions = {question.name for question in scheme.questions_of(item.unit) if question.words_for}
    if not questions or item.unit != "passage" or is_flagged(ratings):
        return None
    spans: dict[str, Spans] = {}
    for rating in apply_flags(ratings):
        if rating.phase == "study" and rating.question in questions:
            marks = tuple((span.start or 0, span.end or 0) for span in rating.evidence)
            spans[rating.annotator] = spans.get(rating.annotator, ()) + marks
    return MarkedPassage(item, spans) if spans else None


def write_span_gold(passages: Iterable[MarkedPassage]) -> Iterator[str]:
    """Yield the lines of a file of gold spans, as `autoais evaluate-spans` reads it: a question with its passages."""
    rows: dict[str, dict[str, Any]] = {}
    for passage in passages:
        key, source = passage.item.answer or passage.item.id, passage.item.sources[0]
        row = rows.setdefault(key, {"id": key, "question": passage.item.query, "passages": [], "spans": {}})
        row["passages"].append({"id": source.id, "text": passage.text})
        row["spans"][source.id] = [list(span) for span in passage.majority()]
    yield from map(dumps, rows.values())


def word_agreement(passages: Sequence[MarkedPassage]) -> dict[str, Any]:
    """Return how far people agree on the words, as JSON: passages, f1 (micro over all pairs of people), and alpha.

    F1 is between what two people marked in a passage; without marks of both, it counts nothing. Krippendorff's alpha is
    over words, each marked or not. Intervals are over questions.
    """
    import numpy as np

    from autoais.meta.agreement import krippendorff_alpha

    pairs = (
        MarkedText(topic_of(passage.item), passage.text, first, second)
        for passage in passages
        for first, second in combinations(passage.spans.values(), 2)
    )
    counts, questions = [], []
    for passage in passages:
        for word in WORD.finditer(passage.text):
            mark_count = sum(
                any(start < word.end() and word.start() < end for start, end in spans)
                for spans in passage.spans.values()
            )
            counts.append((len(passage.spans) - mark_count, mark_count))
            questions.append(number_of(topic_of(passage.item)))
    alpha = krippendorff_alpha(np.array(counts).reshape(-1, 2), questions)
    return {
        "passages": len(passages),
        "f1": score_spans(pairs).words.micro["f1"].record(),
        "alpha": alpha.record(),
    }


def marked_passages(ratings_by_item: Iterable[tuple[Item, Sequence[Rating]]], scheme: Scheme) -> list[MarkedPassage]:
    """Return the passages in which people were asked for words (`marked_passage`)."""
    passages = (marked_passage(item, scheme, ratings) for item, ratings in ratings_by_item)
    return [passage for passage in passages if passage is not None]
