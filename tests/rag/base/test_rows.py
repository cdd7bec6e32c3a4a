"""An answer as a row, and back."""

import json
from dataclasses import replace
from typing import Any

import pytest

from autoais.base.errors import CitationError, FormatError
from rag.base.rows import read_answer, write_answer
from rag.base.types import Answer, Citation, CitedSentence, Hit, Passage, Question

TEXT = "The Aller bridge opened in 1931. It has three arches."
SENTENCE = "It opened in 1931."
PASSAGE = Passage("a.pdf#1", "The bridge", TEXT, "History", page=3)
ANSWER = Answer(
    Question("q1", "When did the Aller bridge open?"),
    SENTENCE,
    (CitedSentence(SENTENCE, (Citation(PASSAGE.id, 0, 32, TEXT[:32], "cited"),), 0, len(SENTENCE)),),
    (Hit(Passage("b#2", "Other", "Nothing."), 2.5), Hit(PASSAGE, 1.5)),
    "reader",
    "1931",
    confidence=0.75,
    trace={"tokens": {"read": 10, "written": 2}},
)


def test_an_answer_comes_back_from_its_row() -> None:
    row = json.loads(json.dumps(write_answer(ANSWER, "town", 0.5)))
    assert (row["index"], row["seconds"]) == ("town", 0.5)
    assert read_answer(row) == ANSWER
    assert read_answer(row, Question("q9", "")) == replace(ANSWER, question=Question("q9", ANSWER.question.text))


@pytest.mark.parametrize(
    "changes",
    [
        {"sentences": None},
        {"passages": [{"id": 3}]},
        {"trace": {"tokens": {"read": "<b>"}}},
        {"trace": {"shown": ["c"]}},
        {"system": 3},
    ],
)
def test_a_row_of_another_shape_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(FormatError):
        read_answer(write_answer(ANSWER) | changes)


def test_a_row_that_misquotes_is_refused() -> None:
    row = write_answer(ANSWER)
    row["sentences"][0]["citations"][0]["quote"] = "It was never built."
    with pytest.raises(CitationError, match="quotes"):
        read_answer(row)
