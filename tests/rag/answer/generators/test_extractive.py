from hypothesis import given
from hypothesis import strategies as st

from rag.answer.generators.extractive import Extractive
from rag.answer.systems import open_system
from rag.base.types import Answer, Hit, Passage, Question
from rag.index.open import open_index


def answer(question: str, *texts: str, title: str = "") -> Answer:
    hits = [Hit(Passage(str(n), title, text), 10.0 - n) for n, text in enumerate(texts)]
    return Extractive().generate(Question("q", question), hits)


def test_it_quotes_the_sentence_that_answers() -> None:
    made = answer("When was Curie born?", "Curie lived in Paris for years. Curie was born in Warsaw in 1867.")
    assert made.text.startswith("Curie was born in Warsaw in 1867.")
    assert made.sentences[0].citations[0].quote == "Curie was born in Warsaw in 1867."


def test_a_definition_comes_first_also_by_its_abbreviation() -> None:
    other = "Scores of the ILO grew in every year of the long survey."
    made = answer(
        "What is the ILO?", other, "The International Labour Organization (ILO) is an agency of the United Nations."
    )
    assert made.text.startswith("The International Labour Organization (ILO) is")


def test_near_copies_are_quoted_once() -> None:
    text = "Warsaw is the capital city of Poland."
    assert len(answer("What is the capital of Poland?", text, f"Indeed {text}", text).sentences) == 1


def test_white_space_is_squeezed_in_the_text_and_kept_in_the_quote() -> None:
    made = answer("What is the capital of Poland?", "Warsaw is\nthe  capital city of Poland.")
    assert made.text == "Warsaw is the capital city of Poland."
    assert made.sentences[0].citations[0].quote == "Warsaw is\nthe  capital city of Poland."


def test_a_question_about_something_else_is_not_answered_from_the_handbook() -> None:
    system = open_system("extractive", open_index(None))
    asked = [
        "who won the world cup in 1998",
        "who is the president of the united states",
        "when was the last solar eclipse",
    ]
    assert [a.abstained for a in system.answer([Question(str(n), text) for n, text in enumerate(asked)])] == [True] * 3


def test_no_passages_or_nothing_in_common_is_an_abstention() -> None:
    for made in (answer("What is the capital?"), answer("What is the capital?", "Penguins swim very well.")):
        assert made.abstained
        assert made.text == ""
        assert made.reason


@given(st.text(max_size=80), st.lists(st.text(max_size=200), max_size=4))
def test_any_text_gives_a_valid_answer_of_at_most_three_cited_sentences(question: str, texts: list[str]) -> None:
    made = answer(f"{question} river", *(f"{text} The river is long here." for text in texts))
    assert len(made.sentences) <= 3
    assert all(sentence.citations for sentence in made.sentences)
