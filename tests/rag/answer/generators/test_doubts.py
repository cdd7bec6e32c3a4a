"""Short answers that are not shown by themselves; what is quoted stays the same."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.answer.generators.passage_reader import PassageReader
from rag.base.types import Hit, Passage, Question
from tests.rag.answer.generators.test_passage_reader import Scripted, between


def shown(question: str, sentence: str, short: str, *, headings: str = "") -> str | None:
    """The short answer of a passage in which the reader finds the given one."""
    hits = [Hit(Passage("p", headings, between(sentence)), 1.0)]
    answer = PassageReader(Scripted([short], short=short)).generate(Question("q", question), hits)
    assert short in answer.text
    return answer.short_answer


@pytest.mark.parametrize(
    ("sentence", "short"),
    [
        ("The saw conforms to ISO 1234:2020.", "2020"),
        ("The saw conforms to ISO 1234.", "1234"),
        ("The saw is described in section 4.2.", "4.2"),
        ("The saw is described in report-2021.pdf.", "2021"),
        ("The saw is described at https://saws.example/2021/blades.", "2021"),
        ("The saw needs blade 3.8.10.", "3.8"),
        ("The saw is started by mill.py.", "mill"),
        ("The saw costs 45.50 in the shop.", "45"),
    ],
)
def test_a_piece_of_an_identifier_is_no_short_answer(sentence: str, short: str) -> None:
    assert shown("How old is the tool?", sentence, short) is None


@pytest.mark.parametrize(
    ("sentence", "short"),
    [
        ("The saw was made in 2020.", "2020"),
        ("The saw was made on 2020-03-04.", "2020"),
        ("The saw has a 50-year guarantee.", "50"),
        ("The saw is from the mid-1990s.", "1990s"),
        ("The saw belongs to Oak/Elm.", "Oak"),
        ("Write to saw@mill.example.", "saw@mill.example"),
        ("The saw is lent at 8:00-9:30.", "8:00"),
        ("The saw is lent for $30/month.", "$30"),
        ("The saw is lent for a fee:30.", "30"),
        ("The saw is blade ISO 1234:2020.", "ISO 1234:2020"),
    ],
)
def test_a_whole_word_is_a_short_answer(sentence: str, short: str) -> None:
    assert shown("How old is the tool?", sentence, short) == short


def test_the_number_of_a_section_answers_a_question_for_the_section() -> None:
    assert shown("Which section is about saws?", "The saw is described in section 4.2.", "4.2") == "4.2"
    assert shown("What is the price of a saw?", "The saw is sold for EUR 45.", "45") == "45"


def test_a_number_or_month_that_the_passage_lacks_makes_a_short_answer_doubtful() -> None:
    sentence = "The mill opens on 3 May 2024, with Ada."
    assert shown("Who opens the mill in May 2024?", sentence, "Ada") == "Ada"
    assert shown("Who opens the mill in 2025?", sentence, "Ada") is None
    assert shown("Who opens the mill in August?", sentence, "Ada") is None
    assert shown("Who opens the mill in August?", sentence, "Ada", headings="Aug 2024") == "Ada"
    assert shown("Who opens the mill 2?", sentence, "Ada") == "Ada"  # it may be written "two"
    assert shown("It is old. May Ada open it?", "Ada has the key of the mill.", "Ada") == "Ada"
    assert shown("Who gets 1500 planks?", "Ada gets 1,500 planks.", "Ada") == "Ada"


@pytest.mark.parametrize(
    ("question", "sentence"),
    [
        ("How long is the notice after the trial?", "During the trial, the notice is 2 weeks."),
        ("How long is the notice before the trial?", "The notice is 2 weeks after the trial."),
        ("How long is the notice during the trial?", "Before the trial the notice is 2 weeks."),
        ("What is the minimum notice?", "The maximum notice is 2 weeks."),
        ("What notice is needed at weekends?", "The notice on weekdays is 2 weeks."),
    ],
)
def test_a_sentence_about_the_opposite_condition_makes_a_short_answer_doubtful(question: str, sentence: str) -> None:
    assert shown(question, sentence, "2 weeks") is None


@pytest.mark.parametrize(
    ("question", "sentence"),
    [
        ("How long is the notice after the trial?", "After the trial, the notice is 2 weeks."),
        ("How long is the notice after the trial?", "During and after the trial, the notice is 2 weeks."),
        ("How long is the notice during the trial?", "The notice is 2 weeks, after a talk."),
        ("What is the minimum notice?", "The notice is 2 weeks."),
        ("What is the minimum and the maximum notice?", "The maximum notice is 2 weeks."),
    ],
)
def test_a_sentence_about_the_same_condition_does_not(question: str, sentence: str) -> None:
    assert shown(question, sentence, "2 weeks") == "2 weeks"


def test_the_number_of_another_clause_is_no_short_answer() -> None:
    sentence = "It is 12 months for the oak and 18 months for the elm."
    assert shown("How long is the guarantee of the elm?", sentence, "12 months") is None
    assert shown("How long is the guarantee of the elm?", sentence, "18 months") == "18 months"
    assert shown("How long is the guarantee of the wood?", sentence, "12 months") == "12 months"
    assert shown("How long does the elm last?", "Oak lasts 9 years, elm grows 3 metres.", "9 years") == "9 years"
    late = "A plank is $20 if it is ordered by May; afterwards it is $30."
    assert shown("What is the price after the deadline?", late, "$20") is None
    headed = "Until noon the pool takes 8 guests, in the evening 9 guests swim."
    assert (
        shown("How many guests swim in the evening?", headed, "8 guests", headings="Swim in the evening") == "8 guests"
    )


def test_what_is_said_once_for_all_clauses_is_of_no_other_clause() -> None:
    assert shown("When does the mill close on Sundays?", "The mill closes at 20:00, on Sundays at 16:00.", "16:00")
    sentence = "It is £15 for builders, £8 for all others."
    assert shown("How much is it for a builder?", sentence, "£8") is None
    assert shown("How much is it for a builder?", sentence, "£15") == "£15"


def test_a_question_for_money_or_a_telephone_number_gets_one() -> None:
    sentence = (
        "The shed is let for 300 a month, £90 a week, 5 marks a day, or free to five members until 30 April, 0123."
    )
    rent = "What is the rent of the shed?"
    fitting = {"300": True, "£90": True, "5 marks": True, "free": True, "five members": False, "30 April": False}
    for short, fits in fitting.items():
        assert shown(rent, sentence, short) == (short if fits else None)
    assert shown("When is the rent due?", sentence, "30 April") == "30 April"
    assert shown("We pay the rent. Is it due in spring?", sentence, "30 April") == "30 April"
    phone = "What is the phone number of the shed?"
    assert shown(phone, sentence, "0123") == "0123"
    assert shown(phone, sentence, "30 April") is None


@given(st.text(alphabet="aA1 .:-/@$²\n,;", max_size=40), st.text(alphabet="aA1 .²-$", min_size=1, max_size=6))
def test_any_short_answer_can_be_checked(rest: str, short: str) -> None:
    for question in ("How much is A1 after 11?", "price of 1.1 before May", ""):
        hits = [Hit(Passage("p", "a", f"{rest}{short}{rest}"), 1.0)]
        answer = PassageReader(Scripted(["a"], short=short)).generate(Question("q", question or "?"), hits)
        assert answer.short_answer is None or answer.short_answer.strip()
