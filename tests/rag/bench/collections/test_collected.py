"""The format check and the grouping of HAGRID's builder, on answers as systems write them."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoais.base.answers import CitedAnswer
from rag.answer.generators.cited import CitedGenerator
from rag.answer.llms import Completion, Message
from rag.answer.llms.prompts import Prompt
from rag.base.types import Hit, Passage, Question
from rag.bench.collections.collected import (
    REASONS,
    Trailing,
    fault_of,
    group_sentences,
    identity,
    marker_in_text,
    with_quotes,
)

QUOTES = [
    Passage("p1", "Warsaw", "Warsaw is the capital of Poland. It lies on the Vistula."),
    Passage("p2", "Vistula", "The Vistula is the longest river of Poland."),
    Passage("p3", "Gdansk", "The Vistula flows into the sea near Gdansk."),
]


class Says:
    """A model that says one thing."""

    name, context = "says", 4096

    def __init__(self, text: str, *, cut: bool = False) -> None:
        self._completion = Completion(text, cut, 7, 2)

    def count(self, messages: list[Message]) -> int:
        return 50

    def complete(self, messages: list[Message], max_tokens: int, stop: object = ()) -> Completion:
        return self._completion

    def stream(self, messages: list[Message], max_tokens: int, stop: object = ()) -> list[Completion]:
        return [self._completion]


def written(text: str, *, cut: bool = False) -> CitedAnswer:
    """What a model's reply becomes."""
    generator = CitedGenerator(Says(text, cut=cut), Prompt.read("hagrid.v1"))  # type: ignore[arg-type]
    answer = generator.generate(Question("q", "Where is Warsaw?"), [Hit(quote, 1.0) for quote in QUOTES])
    return with_quotes(answer, QUOTES)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Warsaw lies on the Vistula [1].", None),
        ("Warsaw lies on the Vistula [1][2]. It is old.", None),
        ("According to [1], Warsaw is the capital.", None),
        ("Warsaw lies on the Vistula.", "no-citation"),
        ("Warsaw lies on the Vistula [4].", "number-out-of-range"),
        ("Warsaw lies on the Vistula [1][4].", "number-out-of-range"),
        ("Warsaw lies on the Vistula [0].", "number-out-of-range"),
        ("Warsaw was rebuilt in [1953], on the Vistula [1].", "number-out-of-range"),
        ("Warsaw lies on the Vistula [1] [-2].", "malformed-citation"),
        ("Warsaw lies on the Vistula [1] [].", "malformed-citation"),
        ("Warsaw lies on the Vistula (1). It is the capital [1].", "other-citation-form"),
        ("Context 2 says that the Vistula is long [2].", "other-citation-form"),
        ("The Vistula is long [2]. See https://example.org/vistula", "other-citation-form"),
        ("The Vistula is long [2](https://example.org/vistula).", "other-citation-form"),
        ("The Vistula is long (Kowalski et al., 2019) [2].", "other-citation-form"),
        ("The Vistula is long [2].\n\nReferences:\n[2] Vistula", "reference-list"),
        ("The Vistula is long [2]. Reference: [2]", "reference-list"),
        ("I do not know.", "abstained"),
        ("", "failed"),
        ("[1]", "failed"),
    ],
)
def test_the_format_check(text: str, reason: str | None) -> None:
    found = fault_of(written(text))
    assert (found[0] if found else None) == reason
    assert reason is None or reason in REASONS


def test_what_is_cut_at_the_token_limit_is_left_out() -> None:
    assert fault_of(written("Warsaw lies on the Vistula [1]. It is", cut=True)) == (
        "unfinished",
        "Warsaw lies on the Vistula. It is",
    )


def test_numbers_and_words_in_a_text_are_no_citations() -> None:
    assert fault_of(written("Its 44 sources (1924) are 17 in number (85), of documents 12 [1].")) is None


@pytest.mark.parametrize(
    ("trailing", "groups"),
    [
        ("own", [("A is B. C is D.", ("p1",)), ("E is F.", ("p2",)), ("G is H.", ())]),
        ("attach", [("A is B. C is D.", ("p1",)), ("E is F. G is H.", ("p2",))]),
    ],
)
def test_uncited_sentences_join_the_next_cited_one(
    trailing: Trailing, groups: list[tuple[str, tuple[str, ...]]]
) -> None:
    answer = group_sentences(written("A is B. C is D [1]. E is F [2]. G is H."), trailing)
    assert [(one.text, one.cites) for one in answer.sentences] == groups


def test_an_answer_with_many_empty_lines() -> None:
    answer = written("A is B [1].\n\n\nC is D [2].")
    blank = "\n" * 50_000
    longer = replace(answer, output=f"A is B [1].{blank}C is D [2].")
    assert fault_of(longer) is None
    assert [one.output for one in group_sentences(longer).sentences] == ["A is B [1].", "C is D [2]."]


def test_a_group_keeps_its_markers_as_written() -> None:
    answer = group_sentences(written("A is B.\nAs [1] says, C is D. [2] E is F [2][3]."))
    assert [one.output for one in answer.sentences] == ["A is B.\nAs [1] says, C is D. [2]", "E is F [2][3]."]
    assert [one.cites for one in answer.sentences] == [("p1", "p2"), ("p2", "p3")]


def test_list_items_are_cut_without_the_next_bullet() -> None:
    answer = group_sentences(written("Two rivers:\n- The Vistula is long [2].\n- The Oder is not [3]."))
    assert [one.text for one in answer.sentences] == ["Two rivers:\n- The Vistula is long.", "The Oder is not."]
    assert [one.output for one in answer.sentences] == [
        "Two rivers:\n- The Vistula is long [2].",
        "The Oder is not [3].",
    ]


@given(
    st.lists(st.sampled_from(["A is B.", "C was D in 1976.", "[1]", "[2][3]", "\n- ", " ", "1. ", "(x)"]), max_size=9)
)
def test_grouping_loses_no_sentence_and_no_citation(pieces: list[str]) -> None:
    answer = written(" ".join(pieces))
    for trailing in ("own", "attach"):
        made = group_sentences(answer, trailing)
        assert [cited for one in made.sentences for cited in one.cites] or not any(s.cites for s in answer.sentences)
        assert {c for one in made.sentences for c in one.cites} == {c for one in answer.sentences for c in one.cites}
        words = " ".join(one.text for one in made.sentences).split()
        assert sum(map(len, words)) >= sum(len("".join(one.text.split())) for one in answer.sentences)
        uncited = [number for number, one in enumerate(made.sentences) if not one.cites]
        assert uncited in ([], [len(made.sentences) - 1])


def test_text_that_looks_like_a_marker_is_found() -> None:
    quote = Passage("p1", text="The war began in [2] 1939. It ended in 1945.")
    from rag.base.types import Answer, Citation, CitedSentence

    text = "The war began in [2] 1939."
    sentence = CitedSentence(text, (Citation("p1", 0, len(text), text, "copied"),), 0, len(text))
    answer = Answer(Question("q", "When?"), text, (sentence,), (Hit(quote, 1.0),), "s")
    collected = group_sentences(with_quotes(answer, [quote, QUOTES[1]]))
    assert marker_in_text(collected) == text
    assert marker_in_text(group_sentences(written("A is B [1]."))) is None


def test_a_duplicate_has_the_same_words_and_citations() -> None:
    first, same, other = (written(text) for text in ("A is B [1].", "a is  B. [1]", "A is B [2]."))
    assert identity(group_sentences(first)) == identity(group_sentences(same)) != identity(group_sentences(other))
