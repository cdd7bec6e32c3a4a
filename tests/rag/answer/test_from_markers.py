"""Answers from text with markers."""

from typing import Any

import pytest

import rag
from rag.base.errors import UsageError

HITS = [
    rag.Hit(rag.Passage("w", "", "It is large. Warsaw is the capital of Poland."), 2.0),
    rag.Hit(rag.Passage("c", "", "Curie was born in 1867."), 1.0),
    rag.Hit(rag.Passage("known by its id"), 0.5),
]


def test_markers_become_citations_of_the_nearest_sentence() -> None:
    answer = rag.parse_answer("Where?", "The capital of Poland is Warsaw [1]. Cats [1, 2]. No source.", HITS, "mine")
    assert answer.text == "The capital of Poland is Warsaw. Cats. No source."
    assert [[one.quote for one in sentence.citations] for sentence in answer.sentences] == [
        ["Warsaw is the capital of Poland."], [HITS[0].passage.text, HITS[1].passage.text], [],
    ]  # fmt: skip
    assert str(answer) == "The capital of Poland is Warsaw [1]. Cats [1][2]. No source."
    assert (answer.system, answer.question.text, answer.abstained) == ("mine", "Where?", False)


def test_markers_that_lead_nowhere_are_unresolved() -> None:
    answer = rag.parse_answer(rag.Question("7", "Who?"), "Curie [9]. Warsaw [3].", HITS, "mine")
    assert {one.marker: one.reason for one in answer.unresolved} == {"[9]": "out-of-range", "[3]": "empty"}
    assert not answer.citations
    assert answer.question.id == "7"


@pytest.mark.parametrize("text", ["", " \n"])
def test_no_text_is_an_abstention(text: str) -> None:
    answer = rag.parse_answer("Who?", text, [], "mine")
    assert (answer.abstained, answer.reason, answer.sentences) == (True, "the text has no sentence", ())


@pytest.mark.parametrize(("text", "hits"), [(None, HITS), ("a [1].", "w")])
def test_wrong_types_are_one_line(text: Any, hits: Any) -> None:  # noqa: ANN401
    with pytest.raises(UsageError, match="should be"):
        rag.parse_answer("Who?", text, hits, "mine")
