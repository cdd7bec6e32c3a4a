import json
from typing import Any

import pytest

from autoais.base.answers import from_row, to_row
from rag.base.errors import CitationError
from rag.base.types import Answer, Citation, CitedSentence, Hit, Passage, Question

TEXT = "Paul had a thorn. He wrote letters."
HITS = (Hit(Passage("x", "Luke", "Luke was a doctor."), 2.0), Hit(Passage("y", "Paul", "Paul had a thorn."), 1.0))
QUOTE = Citation("y", 0, 17, "Paul had a thorn.")


def said(start: int, end: int, *citations: Citation) -> CitedSentence:
    """A sentence of `TEXT`."""
    return CitedSentence(TEXT[start:end], citations, start, end)


def build(*sentences: CitedSentence, **fields: Any) -> Answer:  # noqa: ANN401
    return Answer(Question("q", "Who had a thorn?"), TEXT, sentences, HITS, "test", **fields)


@pytest.mark.parametrize(
    ("sentences", "says"),
    [
        ([said(0, 17, Citation("z", 0, 4, "Paul"))], "was not retrieved"),
        ([said(0, 17, Citation("y", 0, 4, "Saul"))], "quotes 'Saul'"),
        ([said(0, 17, Citation("y", 3, 3, ""))], "quotes ''"),
        ([said(0, 17, Citation("y", -5, 17, "horn."))], "quotes 'horn.'"),
        ([said(0, 17, Citation("y", None, None, "Paul"))], "quotes 'Paul'"),
        ([said(0, 17, Citation("y"))], "quotes ''"),
        ([said(0, 17, Citation("y", (0, 5), "q"))], r"cites 'y' from \(0, 5\) to 'q', which should be two integers"),  # type: ignore[arg-type]
        ([said(0, 99)], "does not fit"),
        ([said(5, 5)], "does not fit"),
        ([said(0, 17), said(10, 35)], "does not fit"),
        ([said(18, 35), said(0, 17)], "does not fit"),
        ([CitedSentence(TEXT[:17])], "does not fit"),
        ([CitedSentence("Saul had a thorn.", (), 0, 17)], "is 'Saul had a thorn.', which differs from the text there"),
    ],
)
def test_an_answer_that_miscites_cannot_be_built(sentences: list[CitedSentence], says: str) -> None:
    with pytest.raises(CitationError, match=says):
        build(*sentences)


def test_markers_are_numbered_in_order_of_first_mention_and_stand_before_the_stop() -> None:
    answer = build(said(0, 17, QUOTE), said(18, 35, Citation("x", 0, 4, "Luke"), QUOTE))
    assert str(answer) == "Paul had a thorn [1]. He wrote letters [2][1]."
    assert [(n, rank, hit.passage.id) for n, rank, hit in answer.number_hits()] == [(1, 2, "y"), (2, 1, "x")]
    assert [one.passage for one in answer.citations] == ["y", "x", "y"]


def test_a_marker_stands_after_code() -> None:
    text = "Run:\n\n    pip install ."
    hit = Hit(Passage("y", "", text), 1.0)
    quoted = CitedSentence(text, (Citation("y", 0, len(text), text),), 0, len(text))
    answer = Answer(Question("q", "How?"), text, (quoted,), (hit,), "s")
    assert str(answer) == "Run:\n\n    pip install . [1]"


def test_answers_are_hashed() -> None:
    assert (
        len({build(said(0, 17, QUOTE), trace={"tokens": [1]}), build(said(0, 17, QUOTE), trace={"tokens": [1]})}) == 1
    )


def test_an_uncited_sentence_is_rendered_without_a_marker() -> None:
    assert str(build(said(0, 17), said(18, 35, QUOTE))) == "Paul had a thorn. He wrote letters [1]."


def test_a_passage_quoted_twice_in_a_sentence_has_one_marker() -> None:
    assert str(build(said(0, 17, QUOTE, Citation("y", 0, 4, "Paul")))) == "Paul had a thorn [1]. He wrote letters."


def test_the_evaluators_record_is_the_row_that_is_written_and_comes_back_the_same() -> None:
    answer = build(said(0, 17, QUOTE), said(18, 35), short_answer="Paul", confidence=0.1234567, trace={"a": [1 / 3]})
    record = answer.to_cited("shelf", 0.123456789)
    row = json.loads(json.dumps(to_row(record)))
    assert (row["answer"], row["system"], row["index"], row["seconds"]) == (TEXT, "test", "shelf", 0.1235)
    assert (row["confidence"], row["trace"]) == (0.123457, {"a": [0.333333]})
    assert [(p["n"], p["rank"], p["id"], p["score"]) for p in row["passages"]] == [(1, 2, "y", 1.0), (2, 1, "x", 2.0)]
    assert row["sentences"][0]["citations"][0] == {"passage": "y", "start": 0, "end": 17, "quote": QUOTE.quote}
    assert {"answers", "gold"}.isdisjoint(row)
    assert to_row(from_row(row, "row")) == row
