"""Where a sentence runs along with a claim, and where the two clash."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoais.judges.alignment import align

SENTENCE = "The old bridge over the Arl in Germany was opened on 3 May 1921 by Nora Finch."


@pytest.mark.parametrize(
    ("claim", "clashing"),
    [
        ("The old bridge over the Arl in Germany was opened on 3 May 1931 by Nora Finch.", ["1931"]),
        ("The old bridge over the Arl in Germany was opened on 3 June 1921 by Nora Finch.", ["June"]),
        ("The old bridge over the Arl in Germany was opened on four May 1921 by Nora Finch.", ["four"]),
        ("The old bridge over the Arl in Germany was opened on 3 May 1921 by Edward Moss.", ["Edward", "Moss"]),
        ("The old bridge over the Arl in Germany was not opened on 3 May 1921 by Nora Finch.", ["not"]),
    ],
)
def test_one_changed_fact_clashes(claim: str, clashing: list[str]) -> None:
    alignment = align(claim, ["Nothing happened there.", f"Rivers flow. {SENTENCE} Rivers flow."])
    assert [claim[start:end] for start, end in alignment.clashes] == clashing
    assert alignment.clash > 0.4
    assert 0.6 < alignment.share <= 1


@pytest.mark.parametrize(
    "claim",
    [
        SENTENCE,
        "The old bridge over the Arl was opened on 3 May 1921.",
        "The old bridge over the Arl in Germany was opened on three May 1921 by Nora Finch.",
        "The old German bridge was opened by Nora Finch.",
        "The old bridge over the Arl in Germany was opened on 3 May 1921 by N. Finch.",
        "Nora Finch wrote 12 books about Peru.",  # something else altogether: no support, but no clash
    ],
)
def test_the_same_in_other_words_does_not_clash(claim: str) -> None:
    assert align(claim, [SENTENCE]).clash == 0


def test_initials_are_the_same_name() -> None:
    claim, sentence = "The old bridge in the U.S. was opened in May.", "The old bridge in the United States was opened."
    assert align(claim, [sentence]).clash == align(sentence, [claim]).clash == 0
    assert align(claim, [sentence.replace("United States", "Soviet Union")]).clash > 0


@pytest.mark.parametrize(
    ("claim", "sentence"),
    [
        ("The song reached No. 5 in May.", "The song reached number 5 in May."),
        ("The city has 2 million people.", "The city has 2,000,000 people."),
        ("The city has twenty-one thousand people.", "The city has 21,000 people."),
        ("It opened on 05 May 2.50 hours late.", "It opened on 5 May 2.5 hours late."),
        ("He led the club from 1998-99.", "He led the club from 1998-1999."),
        ("The town has ٣ schools.", "The town has 3 schools."),
        ("It is not only cheap but fast.", "It is cheap and fast."),
        ("However, the bridge was opened in May.", "Later, the bridge was opened in May."),
        ("It rained. Scientists measured it in May.", "It rained. Researchers measured it in May."),
        ("Der Ku\u0308hler of Zürich was opened.", "Der Kühler of Zu\u0308rich was opened."),
    ],
)
def test_another_way_to_write_it_does_not_clash(claim: str, sentence: str) -> None:
    assert align(claim, [sentence]).clash == align(sentence, [claim]).clash == 0


@pytest.mark.parametrize(
    ("claim", "sentence"),
    [
        ("Thirteen people came.", "Fourteen people came."),
        ("The city has 2 million people.", "The city has 2 billion people."),
        ("About 1,100 people came.", "About 2,100 people came."),
        ("The old bridge in İzmir was opened.", "The old bridge in İstanbul was opened."),
    ],
)
def test_what_is_another_thing_clashes(claim: str, sentence: str) -> None:
    assert align(claim, [sentence]).clash > 0
    assert align(sentence, [claim]).clash > 0


def test_one_sentence_that_agrees_outweighs_another_that_does_not() -> None:
    claim = "The bridge was opened in May."
    assert align(claim, ["The bridge was not opened in May. The bridge was opened in May."]).clash == 0


def test_a_negation_on_the_side_of_the_evidence_clashes_and_names_no_word_of_the_claim() -> None:
    alignment = align("The bridge was opened in May.", ["The bridge was not opened in May."])
    assert alignment.clash == pytest.approx(1)
    assert alignment.clashes == ()


def test_the_share_counts_words_in_their_order() -> None:
    assert align(SENTENCE, [SENTENCE]).share == pytest.approx(1)
    turned = align("Finch painted Moss.", ["Moss painted Finch."])
    assert 0 < turned.share < 0.7
    assert align("of the", [SENTENCE]).share == 0
    assert align(SENTENCE, []).share == 0


@given(st.text(max_size=80), st.lists(st.text(max_size=200), max_size=3))
def test_any_text_gives_shares_and_places_inside_the_claim(claim: str, evidence: list[str]) -> None:
    alignment = align(claim, evidence)
    assert 0 <= alignment.share <= 1 + 1e-9
    assert 0 <= alignment.clash <= 1 + 1e-9
    assert all(0 <= start < end <= len(claim) for start, end in alignment.clashes)


def test_an_exact_number_is_more_than_the_evidence_says() -> None:
    about, exact = "About 1,100 people came to the fair.", "1,148 people came to the fair."
    assert align(about, [exact]).clash == 0
    assert align(exact, [about]).clash == 1


def test_an_equal_number_in_other_words_counts_as_shared() -> None:
    equal = align("The test takes 60 seconds.", ["The test takes a minute."])
    assert equal.share == pytest.approx(1)
    assert equal.clash == 0
    assert align("The test takes 60 seconds.", ["The test takes two minutes."]).share < 0.6


@pytest.mark.parametrize(
    ("claim", "text", "own", "other"),
    [
        ("It has two arches.", "Old. It has three arches.", ["two"], ["three"]),
        ("It was repaired in 1988.", "It was repaired in 1987 for two million marks.", ["1988"], ["1987"]),
        ("It cost three million marks.", "It cost two million marks in 1987.", ["three million"], ["two million"]),
        ("It is not new.", "It is new.", ["not"], []),
        ("It is new.", "It is new.", [], []),
    ],
)
def test_the_words_that_clash_are_found_on_both_sides(claim: str, text: str, own: list[str], other: list[str]) -> None:
    found = align(claim, [text])
    assert [claim[start:end] for start, end in found.clashes] == own
    assert [text[start:end] for start, end in found.evidence_clashes] == other
