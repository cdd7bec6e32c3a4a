import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoais.base.errors import UserError
from autoais.base.types import Attribution
from autoais.judges.templates import TEMPLATES, is_fragment, template


def rewritten(question: str, answer: str, name: str = "declarative.v1") -> str:
    return template(name)(Attribution(answer, (), question))


@pytest.mark.parametrize(
    "claim",
    [
        "Neil Alden Armstrong",
        "1986",
        "in the late 1800s",
        "May 18, 2018",
        "I Will Always Love You",
        "John Charles Daly Jr.",
        "Washington, D.C.",
        "東京",
        "",
    ],
)
def test_short_answers_are_fragments(claim: str) -> None:
    assert is_fragment(claim)


@pytest.mark.parametrize(
    "claim",
    [
        "Warsaw is the capital of Poland",
        "He died young.",
        "Curie won it.",
        "Toby Keith sang 'Should Have Been a Cowboy.'",
        "It rained.",
        "東京は日本の首都です。",
        "one two three four five six seven eight nine ten eleven twelve thirteen",
    ],
)
def test_sentences_are_no_fragments(claim: str) -> None:
    assert not is_fragment(claim)


def test_the_attributed_qa_sentence_is_the_papers() -> None:
    asked = "who played hyde in league of extraordinary gentlemen"
    expected = f"The answer to the question '{asked}' is 'Jason Flemyng'"
    assert rewritten(asked, "Jason Flemyng", "aqa.v1") == expected
    assert rewritten("", "He was born.", "aqa.v1") == "He was born."


def test_attrscore_joins_question_and_answer() -> None:
    assert rewritten("who won", "Curie", "question-answer.v1") == "who won Curie"
    assert rewritten("", "Curie", "question-answer.v1") == "Curie"


def test_auto_adds_the_question_to_short_answers_only() -> None:
    assert rewritten("where was she born", "Warsaw", "auto.v1") == "where was she born Warsaw"
    assert rewritten("where was she born", "She was born in Warsaw.", "auto.v1") == "She was born in Warsaw."
    assert rewritten("where was she born", "Warsaw", "statement.v1") == "Warsaw"


@pytest.mark.parametrize(
    ("question", "answer", "sentence"),
    [
        ("who sang the anthem?", "Pink", "Pink sang the anthem."),
        ("who has won the most cups", "Kansas", "Kansas has won the most cups."),
        ("who does the voice of stewie", "Seth MacFarlane.", "Seth MacFarlane does the voice of stewie."),
        ("who is she married to", "Pierre", "She is married to Pierre."),
        ("who was the king of england in 1756", "George II", "George II was the king of england in 1756."),
        ("what is the capital of france", "Paris", "Paris is the capital of france."),
        ("What's the capital of France", "Paris", "Paris is the capital of France."),
        ("when was the bridge built", "1937", "The bridge was built in 1937."),
        ("when was the united states flag changed", "1960", "The united states flag was changed in 1960."),
        ("when is the final", "May 5, 2018", "The final is on May 5, 2018."),
        ("where is the hall located", "in Nashville", "The hall is located in Nashville."),
        ("where does the name come from", "Norway", "The name comes from Norway."),
        ("when did the war begin and end", "1914 to 1918", "The war began and ended in 1914 to 1918."),
        ("when did the cat vanish", "March 1999", "The cat vanish in March 1999."),
        ("when did 'the show' try again", "every spring", "'the show' try again every spring."),
        ("who did curie marry", "Pierre", "Curie married Pierre."),
        ("what year did the comet return", "1986", "The comet returned in 1986."),
        ("in what country were the battles fought", "Egypt", "The battles were fought in Egypt."),
        ("what country is lake como in", "Italy", "Lake como is in Italy."),
        ("which river is the longest", "the Nile", "The Nile is the longest."),
        ("how tall is the tower", "330 metres", "The tower is 330 metres."),
        ("how many people live there", "40,000", "40,000 people live there."),
        ("how many episodes are there in season 2", "12", "There are 12 episodes in season 2."),
        ("how many counties does florida have", "67 counties", "Florida has 67 counties."),
    ],
)
def test_question_and_short_answer_become_a_sentence(question: str, answer: str, sentence: str) -> None:
    assert rewritten(question, answer) == sentence


@pytest.mark.parametrize(
    "question", ["why is the sky blue", "how did he lose it", "the capital of france", "what", "who is", "東京は何"]
)
def test_what_no_rule_fits_gets_the_attributed_qa_sentence(question: str) -> None:
    assert rewritten(question, "Rayleigh") == rewritten(question, "Rayleigh", "aqa.v1")


def test_a_sentence_stays_as_it_is() -> None:
    assert rewritten("who won", "Marie Curie was the winner") == "Marie Curie was the winner"
    assert rewritten("", "Curie") == "Curie"


def test_an_answer_that_is_only_a_full_stop_stays_as_it_is() -> None:
    for question in ("when was the tower built", "who is curie married to", "what is the capital of poland"):
        assert rewritten(question, ".") == "."


def test_an_unknown_template_is_named_with_those_there_are() -> None:
    with pytest.raises(UserError, match=r"no hypothesis template called 'nope'; there are: aqa\.v1, auto\.v1, "):
        template("nope")


_QUESTION_WORDS = "who what which when where how many in is was did does has year country a the born to of \x00".split(
    " "
)
_WORDS = st.lists(st.sampled_from(_QUESTION_WORDS) | st.text(max_size=5)).map(" ".join)


@given(_WORDS, _WORDS | st.text())
def test_no_question_or_claim_breaks_a_template(question: str, claim: str) -> None:
    for name in TEMPLATES:
        made = rewritten(question, claim, name)
        assert claim.strip().rstrip(". ")[1:] in made
