"""`autoais evaluate-spans`: predicted spans, or the spans that answers cite, against a file of gold spans."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from autoais import formats
from autoais.base.answers import CitedAnswer
from autoais.base.errors import FormatError, UserError
from autoais.formats.spans import SpanGold, Spans, holds_spans, read_span_gold, read_span_predictions, spans_of
from autoais.metrics.spans import find_cited_spans, mark_texts, score_spans


def evaluate_span_files(predictions: Path, gold: Path) -> dict[str, Any]:
    """Score predictions against gold spans (`autoais.formats.spans`); returns `SpanScores.record()` and `notes`.

    `predictions` are spans, or cited answers in any format of `autoais schema`: their spans are what they cite. All
    questions of `gold` count: one without a prediction has no spans. Predictions for other questions are left out.
    Raises `FormatError` for a broken row, and `UserError` if no question of `gold` has a prediction.
    """
    questions = {question.id: question for question in read_span_gold(gold)}
    predicted: dict[str, tuple[Mapping[str, Spans], Mapping[str, str]]] = {}
    n_others = 0
    for key, spans, texts in _read(predictions, questions):
        if key in questions:
            predicted[key] = spans, texts
        else:
            n_others += 1
    if not predicted:
        raise UserError(f"{predictions}: predicts for none of the {len(questions):,} questions of {gold}; other ids?")
    result = score_spans(
        marked
        for key, question in questions.items()
        for marked in mark_texts(question, *predicted.get(key, ({}, question.texts)))
    )
    notes = []
    if missing := len(questions) - len(predicted):
        notes.append(f"{missing:,} of {len(questions):,} questions have no prediction: counted as without spans")
    if n_others:
        notes.append(f"{n_others:,} predictions are for other questions: left out")
    return result.record() | {"notes": notes}


def _read(
    path: Path, questions: Mapping[str, SpanGold]
) -> Iterator[tuple[str, Mapping[str, Spans], Mapping[str, str]]]:
    """Yield id, spans and texts of each prediction, both by passage; without spans for a question without gold."""
    if holds_spans(path):
        for source, key, spans in read_span_predictions(path):
            texts = questions[key].texts if key in questions else {}
            yield key, spans_of(spans, texts, source) if key in questions else {}, texts
        return
    ids = set()
    for answer in formats.read(path):
        if answer.id in ids:
            raise FormatError(f"{path}: answer {answer.id[:60]!r} occurs twice")
        ids.add(answer.id)
        texts = _texts(answer, questions[answer.id], path) if answer.id in questions else {}
        yield answer.id, find_cited_spans(answer, texts) if answer.id in questions else {}, texts


def _texts(answer: CitedAnswer, question: SpanGold, path: Path) -> dict[str, str]:
    """The texts of the passages of a question, and of others that the answer cites."""
    texts = dict(question.texts)
    for passage in (key for sentence in answer.sentences for key in sentence.cites):
        text = texts.setdefault(passage, answer.passages[passage].text)
        if not text:
            raise FormatError(
                f"{path}: answer {answer.id[:60]!r} cites {passage[:60]!r}, whose text is in neither file"
            )
    return texts
