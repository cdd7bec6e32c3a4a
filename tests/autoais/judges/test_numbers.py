"""Numbers that the evidence lacks: another number, unit or month, and the many ways to write the same one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoais.base.types import Attribution, Verdict
from autoais.judges.minilm import MiniLMJudge
from autoais.judges.numbers import Numbers


def lacking(claim: str, *texts: str) -> list[str]:
    return [claim[start:end] for start, end in Numbers(texts).find_missing(claim)]


@pytest.mark.parametrize(
    ("claim", "text", "found"),
    [
        ("It costs 8 euros.", "It costs 6 euros.", ["8"]),
        ("It costs 12 dollars.", "It costs 12 euros.", ["12"]),
        ("It costs £12.", "It costs $12.", ["12"]),
        ("It takes 30 minutes.", "It takes 30 seconds.", ["30"]),
        ("The river is 1,233 miles long.", "The river is 1,233 kilometres long.", ["1,233"]),
        ("It opens at 8 am.", "It opens at 8 p.m.", ["8"]),
        ("It closes at 12 pm.", "It closes at 24:00.", ["12"]),
        ("It came out in 2022.", "It came out in 2021.", ["2022"]),
        ("50 % voted.", "48 % voted.", ["50"]),
        ("Version 3.2.1 has it.", "Version 3.2.2 has it.", ["3.2.1"]),
        ("More than 700 came.", "687 came.", ["700"]),
        ("At most 5 may enter.", "7 may enter.", ["5"]),
        ("About 20 people came.", "30 people came.", ["20"]),
        ("It began in June 2019.", "It began in May 2019.", ["June"]),
        ("It began on March 5.", "It began on April 5.", ["March"]),
        ("The 19th century began.", "It was in 1923.", ["19"]),
    ],
)
def test_another_number_unit_or_month_is_lacking(claim: str, text: str, found: list[str]) -> None:
    assert lacking(claim, text) == found


@pytest.mark.parametrize(
    ("claim", "text"),
    [
        ("21 pupils", "twenty-one pupils"),
        ("the 10th largest", "the tenth-largest"),
        ("World War 2", "World War II"),
        ("1.7 billion people", "1·7 billion people"),
        ("100,000 subscribers", "100k subscribers"),
        ("40,000 people", "40 000 people"),
        ("1.2 million people", "1,233,456 people"),
        ("£1.4m", "1,400,000 pounds"),
        ("a loss of 5 million", "we may lose 5 mln"),
        ("12 percent", "12 per cent"),
        ("60 seconds", "one minute"),
        ("2 kilometres", "2,000 metres"),
        ("5 metres", "5m"),
        ("5 million", "5m"),
        ("7 pm", "19:00"),
        ("19:00", "7 pm"),
        ("24:00", "0:00"),
        ("12 am", "24:00"),
        ("the summer of '98", "in 1998"),
        ("the 1990s", "in 1994"),
        ("the 20th century", "in 1923"),
        ("about 20 people", "21 people"),
        ("more than 700 people", "714 people"),
        ("no more than 5 users", "4 users"),
        ("taller than 5 metres", "5.4 metres"),
        ("younger than 9", "at age 8"),
        ("held in May", "2019-05-03"),
        ("held in March", "3/5/2019"),
        ("held in September", "Sept. 2019"),
        ("held before June", "held in May"),
    ],
)
def test_the_same_in_other_words_is_there(claim: str, text: str) -> None:
    assert lacking(claim, text) == []


@pytest.mark.parametrize(
    "claim", ["2. Turn it on.", "It is on [3].", "COVID-19 spread.", "IPv6 works.", "It may rain."]
)
def test_steps_sources_and_names_are_not_looked_for(claim: str) -> None:
    assert lacking(claim, "Nothing about it.") == []


@given(st.text(st.sampled_from("0123456789.,·- $%€kmsIV[]\n") | st.characters(), max_size=60))
def test_a_text_has_its_own_numbers(text: str) -> None:
    assert Numbers([text]).find_missing(text) == []


@given(st.lists(st.sampled_from("5 12 1,000 3.5 twenty million k m % $ pm minutes June 1990s".split()), max_size=12))
def test_a_text_has_its_own_quantities(words: list[str]) -> None:
    assert Numbers([" ".join(words)]).find_missing(" ".join(words)) == []


def test_the_judge_rejects_a_claim_whose_number_the_evidence_lacks_and_marks_it() -> None:
    evidence = ("A ticket costs 12 euros for adults and 6 euros for children under 14.",)
    claims = [
        "Children under 14 pay 6 euros.",
        "Children under 14 pay 8 euros.",
        "A ticket costs 12 dollars for adults.",
    ]
    holds, other, unit = MiniLMJudge().judge([Attribution(claim, evidence) for claim in claims])
    assert holds.verdict is Verdict.ATTRIBUTABLE
    assert [other.verdict, unit.verdict] == [Verdict.NOT_ATTRIBUTABLE] * 2
    for claim, judged, number in zip(claims[1:], (other, unit), ("8", "12"), strict=True):
        assert any(number in claim[start:end] for start, end in judged.unsupported), claim


def test_a_number_of_the_question_needs_no_evidence() -> None:
    evidence = ("The finalists are Grace, Willie and Chayce.",)
    (judged,) = MiniLMJudge().judge(
        [Attribution("Grace, Willie and Chayce", evidence, "Who are the finalists of 2021?")]
    )
    assert judged.verdict is Verdict.ATTRIBUTABLE


@pytest.mark.parametrize(
    ("claim", "text", "found"),
    [
        ("It held until 2012.", "It held until 2008.", ["2012"]),
        ("It was signed by them in September 2003.", "It was signed by them in January 2003.", ["September"]),
        ("It has 1 spice.", "It has four spices.", ["1"]),
        ("They increased it by 300.", "They increased it by 290.", ["300"]),
        ("More than 20 came.", "24 came.", []),
        ("It takes two hours.", "It takes 120 minutes.", []),
    ],
)
def test_two_sentences_that_differ_in_a_time_or_count_are_compared_exactly(
    claim: str, text: str, found: list[str]
) -> None:
    assert [claim[start:end] for start, end in Numbers([text]).find_missing(claim, exact=True)] == found
