import pytest

from rag.citations import numbered, render
from rag.errors import CitationError
from rag.types import Answer, Citation, Hit, Passage, Question, Sentence

TEXT = "Paul had a thorn. He wrote letters."
HITS = (Hit(Passage("x", "Luke", "Luke was a doctor."), 2.0), Hit(Passage("y", "Paul", "Paul had a thorn."), 1.0))
QUOTE = Citation("y", 0, 17, "Paul had a thorn.")


def build(*sentences: Sentence) -> Answer:
    return Answer(Question("q", "Who had a thorn?"), TEXT, sentences, HITS, "test")


@pytest.mark.parametrize(
    ("sentences", "says"),
    [
        ([Sentence(0, 17, (Citation("z", 0, 4, "Paul"),))], "was not retrieved"),
        ([Sentence(0, 17, (Citation("y", 0, 4, "Saul"),))], "quotes 'Saul'"),
        ([Sentence(0, 17, (Citation("y", 3, 3, ""),))], "quotes ''"),
        ([Sentence(0, 17, (Citation("y", -5, 17, "horn."),))], "quotes 'horn.'"),
        ([Sentence(0, 99)], "does not fit"),
        ([Sentence(5, 5)], "does not fit"),
        ([Sentence(0, 17), Sentence(10, 35)], "does not fit"),
        ([Sentence(18, 35), Sentence(0, 17)], "does not fit"),
    ],
)
def test_an_answer_that_miscites_cannot_be_built(sentences: list[Sentence], says: str) -> None:
    with pytest.raises(CitationError, match=says):
        build(*sentences)


def test_markers_are_numbered_in_order_of_first_mention_and_stand_before_the_stop() -> None:
    answer = build(Sentence(0, 17, (QUOTE,)), Sentence(18, 35, (Citation("x", 0, 4, "Luke"), QUOTE)))
    assert render(answer) == "Paul had a thorn [1]. He wrote letters [2][1]."
    assert [(n, rank, hit.passage.id) for n, rank, hit in numbered(answer)] == [(1, 2, "y"), (2, 1, "x")]


def test_an_uncited_sentence_is_rendered_without_a_marker() -> None:
    assert render(build(Sentence(0, 17), Sentence(18, 35, (QUOTE,)))) == "Paul had a thorn. He wrote letters [1]."
