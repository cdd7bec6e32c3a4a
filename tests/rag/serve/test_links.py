"""Links to passages with their marks: what is made can be read, and what is hostile marks nothing."""

from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.answer.export.sources import merge_spans
from rag.base.types import Answer, Citation, CitedSentence, Hit, Passage, Question
from rag.serve.links import answer_urls, passage_url, read_marks

SPANS = st.lists(st.tuples(st.integers(0, 500), st.integers(1, 80)).map(lambda one: (one[0], one[0] + one[1])))


@given(SPANS)
def test_what_is_made_is_read(spans: list[tuple[int, int]]) -> None:
    url = passage_url("http://localhost", "town", "bridge.md#1", spans)
    marks = parse_qs(urlsplit(url).query).get("mark", [""])[0]
    assert read_marks(marks) == list(merge_spans(spans))[:100]


@given(st.text())
def test_an_id_is_one_segment_of_the_path(identifier: str) -> None:
    identifier = identifier.encode("utf-8", "replace").decode()
    url = passage_url("https://rag.example.org/", "town", identifier)
    assert url.startswith("https://rag.example.org/p/town/")
    assert unquote(url.rpartition("/")[2]) == identifier


def test_a_link() -> None:
    url = passage_url("http://127.0.0.1:8000", "town", "a b/c.md#3", [(80, 99), (10, 40), (38, 52)])
    assert url == "http://127.0.0.1:8000/p/town/a%20b%2Fc.md%233?mark=10-52,80-99"


@pytest.mark.parametrize(
    "text",
    ["", "-", "1", "5-5", "9-3", "1-2,", "1-2;3-4", "-1-2", "1-2 ", "\u0661-\u0662", "1-" + "9" * 10, "1-2," * 200,
     "<script>", "1-2&x=3"],
)  # fmt: skip
def test_a_mark_of_another_form_marks_nothing(text: str) -> None:
    assert read_marks(text) == []


def test_an_answer_has_one_link_for_each_passage() -> None:
    passages = [Passage("a#1", "", "One. Two. Three."), Passage("b#1", "", "Four.")]
    sentences = (
        CitedSentence("Two.", (Citation("a#1", 5, 9, "Two."),), 0, 4),
        CitedSentence("One.", (Citation("a#1", 0, 4, "One."),), 5, 9),
    )
    answer = Answer(Question("q1", "?"), "Two. One.", sentences, tuple(Hit(one, 1.0) for one in passages), "test")
    assert answer_urls("http://x", "town", answer) == {
        "a#1": "http://x/p/town/a%231?mark=0-4,5-9",
        "b#1": "http://x/p/town/b%231",
    }
