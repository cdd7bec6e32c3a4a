"""What a judge rejected is listed in Markdown and HTML, whatever the trace of an answer has in it."""

from dataclasses import replace
from typing import Any

import pytest

from rag.answer.export import to_html, to_markdown
from rag.base.types import Answer, Citation, CitedSentence, Hit, Passage, Question

DOGS = Passage("dogs", "Guests", "Each guest may bring <three> dogs. The pond is closed.")
CLAIM = "Each guest may bring *two* dogs."
ANSWER = Answer(
    Question("q", "How many dogs?"),
    f"{CLAIM} It rains.",
    (
        CitedSentence(CLAIM, (Citation("dogs", 0, 34, DOGS.text[:34]),), 0, 32),
        CitedSentence("It rains.", (), 33, 42),
    ),
    (Hit(DOGS, 1.0),),
    "test",
)
CONTRADICTION = {"passage": "dogs", "start": 0, "end": 34, "quote": DOGS.text[:34], "differences": [[22, 27]]}
CHECK = {
    "verdict": "contradicted",
    "unsupported": [[22, 25]],
    "contradiction": CONTRADICTION,
    "numbers": ["three", "two"],
}


def export(*checks: object) -> tuple[str, str]:
    answer = replace(ANSWER, trace={"checked": list(checks)})
    return to_markdown(answer), to_html(answer)


def test_a_contradicted_sentence_stands_beside_what_its_source_says() -> None:
    markdown, html = export(CHECK, {"verdict": "not_enough"})
    assert r"- Contradicted: “Each guest may bring \***two**\* dogs.” The source says three, not two: “" in markdown
    assert r"Each guest may bring \<**three**> dogs.”[^1]" in markdown
    assert "- Not supported: “It rains.” Nothing is cited.\n" in markdown
    assert "“<bdi>Each guest may bring *<mark>two</mark>* dogs.</bdi>” The source says three, not two: “" in html
    assert '<bdi>Each guest may bring &lt;<mark>three</mark>&gt; dogs.</bdi>” <a href="#source-1">[1]</a>' in html


def test_what_is_supported_is_not_listed() -> None:
    for text in export({"verdict": "supported"}, {"verdict": "no_claim"}):
        assert "Checked against" not in text


def test_a_sentence_that_cites_nothing_names_the_passage_that_says_otherwise() -> None:
    answer = replace(ANSWER, sentences=(replace(ANSWER.sentences[0], citations=()),), trace={"checked": [CHECK]})
    assert r"<**three**> dogs.” (Guests)" in to_markdown(answer)
    assert "dogs.</bdi>” (Guests)</li>" in to_html(answer)


HOSTILE: list[Any] = [
    None, 3, "x", [], {}, {"verdict": 3}, {"verdict": "<b>"}, CHECK | {"unsupported": 5}, CHECK | {"numbers": "x"},
    CHECK | {"unsupported": [[5, 2], [0, 9999], [-1, 3], ["a", "b"], None, [1]]},
    CHECK | {"contradiction": {"passage": "nope", "quote": "x"}}, CHECK | {"contradiction": []},
    CHECK | {"contradiction": CONTRADICTION | {"quote": "<script>alert(1)</script>"}},
    CHECK | {"contradiction": CONTRADICTION | {"differences": {"a": 1}}}, CHECK | {"numbers": ["<b>x</b>", "[y](z)"]},
]  # fmt: skip


@pytest.mark.parametrize("check", HOSTILE)
def test_a_trace_of_others_is_text_or_left_out(check: object) -> None:
    markdown, html = export(check)
    assert "<script>" not in markdown + html
    assert "<b>" not in markdown.replace(r"\<b>", "") + html
    assert "](z)" not in markdown.replace(r"\](z)", "")
