"""Where short answers stand in a text."""

import pytest

from autoais.metrics.short_answers import answer_spans, has_answer


@pytest.mark.parametrize(
    ("passage", "answers", "found"),
    [
        ("It was Édouard, then edouard.", ["Édouard"], ["Édouard"]),
        ("Cafe\u0301 or café", ["café"], ["Cafe\u0301", "café"]),
        ("In 1969, not 19690.", ["1969"], ["1969"]),
        ("The U.S. Senate", ["U.S. senate", "u . s ."], ["U.S.", "U.S. Senate"]),
        ("one one one", ["one one"], ["one one", "one one"]),
        ("nothing", ["", "  ", "some"], []),
    ],
)
def test_where_answers_stand(passage: str, answers: list[str], found: list[str]) -> None:
    assert [passage[start:end] for start, end in answer_spans(passage, answers)] == found
    assert has_answer(passage, answers) == bool(found)
