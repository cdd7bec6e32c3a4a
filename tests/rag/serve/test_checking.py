"""What people read of a sentence: verdicts, words without support, pasted texts."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoais.base.errors import UsageError
from autoais.base.types import Judge, Judgement, Verdict
from autoais.judges import open_judge
from rag.answer.attribution.check import QUOTED_REASON, SentenceCheck, SentenceVerdict, check_answer
from rag.base.types import Answer, Citation, CitedSentence, Hit, Passage, Question
from rag.serve.checking import check_text, cite_sources, read_sources
from rag.serve.service import Service
from tests.judges import OneByOne

if TYPE_CHECKING:
    from rag.index.index import Index

BRIDGE = Passage("b", "Aller bridge", "The Aller bridge opened in 1931. It has three arches of brick.\nx = f(1)\nend")
FERRY = Passage("f", "Ferry", "A ferry crossed the river four times a day.")
JUDGE = open_judge("lexical")


class Says(OneByOne):
    """Says the same of all that it is asked."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__()
        self.says = Judgement(verdict, 0.25, "why")


def answer(*sentences: tuple[str, Passage | None], hits: tuple[Passage, ...] = (BRIDGE, FERRY)) -> Answer:
    text, made = "", []
    for said, cited in sentences:
        start = len(text) + bool(text)
        text = f"{text} {said}" if text else said
        citations = () if cited is None else (Citation(cited.id, 0, len(cited.text), cited.text),)
        made.append(CitedSentence(said, citations, start, len(text)))
    return Answer(Question("q", "When did it open?"), text, tuple(made), tuple(Hit(one, 1.0) for one in hits), "test")


def only(said: str, cited: Passage | None, judge: Judge = JUDGE, *, nearest: bool = False) -> SentenceCheck:
    (found,) = check_answer(answer((said, cited)), judge, nearest=nearest)
    return found


@pytest.mark.parametrize(
    ("verdict", "shown"),
    [
        (Verdict.ATTRIBUTABLE, "supported"),
        (Verdict.PARTIALLY_ATTRIBUTABLE, "not_enough"),
        (Verdict.EXTRAPOLATORY, "not_enough"),
        (Verdict.NOT_ATTRIBUTABLE, "not_enough"),
        (Verdict.CONTRADICTORY, "contradicted"),
        (Verdict.UNDECIDED, "undecided"),
    ],
)
def test_every_verdict_has_words_for_people(verdict: Verdict, shown: str) -> None:
    found = only("The bridge is red.", BRIDGE, Says(verdict))
    assert found.verdict == shown
    assert found.probability == 0.25


def test_a_sentence_without_citations_is_not_enough_and_a_question_claims_nothing() -> None:
    judge = Says(Verdict.ATTRIBUTABLE)
    cited, uncited, asked = check_answer(
        answer(("The bridge is old.", BRIDGE), ("A ferry ran.", None), ("Is it red?", None)), judge
    )
    assert [cited.verdict, uncited.verdict, asked.verdict] == ["supported", "not_enough", "no_claim"]
    assert uncited.unsupported == ()  # there is no evidence to compare its words with
    assert [one.claim for one in judge.asked] == ["The bridge is old."]


@pytest.mark.parametrize(
    ("said", "quoted"),
    [
        ("The Aller bridge opened in 1931.", True),
        ("The  Aller bridge\nopened in 1931. It has three arches of brick.", True),
        ("x = f(1)", True),  # a line
        ("The Aller bridge opened", False),
        ("opened in 1931.", False),
        ("The Aller bridge opened in 1931!", False),
    ],
)
def test_whole_sentences_of_what_is_cited_are_supported_without_the_judge(said: str, quoted: bool) -> None:
    judge = Says(Verdict.NOT_ATTRIBUTABLE)
    found = only(said, BRIDGE, judge)
    assert (found.verdict is SentenceVerdict.SUPPORTED, found.reason == QUOTED_REASON) == (quoted, quoted)
    assert bool(judge.asked) is not quoted


def test_a_quote_of_a_passage_that_is_not_cited_is_judged() -> None:
    assert only(FERRY.text, BRIDGE, Says(Verdict.NOT_ATTRIBUTABLE)).verdict is SentenceVerdict.NOT_ENOUGH


def words(said: str, found: SentenceCheck) -> list[str]:
    return [said[start:end] for start, end in found.unsupported]


def test_words_that_occur_nowhere_are_found_by_stem() -> None:
    said = "The bridges opened in 1931 with golden lamps for Ida Brandt."
    found = only(said, BRIDGE, Says(Verdict.NOT_ATTRIBUTABLE))
    assert words(said, found) == ["golden lamps", "Ida Brandt"]


def test_another_number_contradicts_if_the_rest_is_the_same() -> None:
    said = "The Aller bridge opened in 1932."
    found = only(said, BRIDGE, Says(Verdict.NOT_ATTRIBUTABLE))
    assert found.verdict is SentenceVerdict.CONTRADICTED
    assert words(said, found) == ["1932"]
    other = only("The mayor came to Verden in 1932.", BRIDGE, Says(Verdict.NOT_ATTRIBUTABLE))
    assert other.verdict is SentenceVerdict.NOT_ENOUGH


def test_of_a_supported_sentence_only_numbers_are_underlined() -> None:
    said = "The lovely bridge opened in 1932."
    assert words(said, only(said, BRIDGE, Says(Verdict.ATTRIBUTABLE))) == ["1932"]


def test_the_nearest_passage_says_whether_it_supports() -> None:
    found = only("A ferry crossed the river.", BRIDGE, nearest=True)
    assert found.nearest is not None
    assert (found.nearest.passage, found.nearest_supports) == ("f", True)
    uncited = only("A ferry carried three hundred elephants.", None, nearest=True)
    assert uncited.nearest is not None
    assert uncited.nearest.passage == "f"
    assert not uncited.nearest_supports


# --- claims that nothing supports ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def town(index: "Index") -> Iterator[Service]:
    service = Service({"town": index})
    yield service
    service.close()


def check_claim(town: Service, claim: str) -> tuple[Answer, SentenceCheck]:
    found, (check,) = check_text(
        claim, town.judge_model, attribute=lambda question, text: town.attribute(question, text)
    )
    return found, check


@pytest.mark.parametrize(
    ("claim", "passage", "source", "differs", "numbers"),
    [
        ("The Aller bridge has two arches of red brick.", "bridge.md#1", "It has three arches", ["three"], "three two"),
        ("The bridge was repaired in 1988.", "bridge.md#2", "The bridge was repaired in 1987", ["1987"], "1987 1988"),
        ("The ferry crossed the river five times a day.", "bridge.md#1", "Until 1931 a ferry", ["four"], "four five"),
        ("The railing is not new.", "bridge.md#2", "The railing is new", [], ""),
        ("A plan to name it after the mayor failed in 1933.", "bridge.md#3", "A plan to name", ["1932"], "1932 1933"),
        ("The baker Eva Lund built the first oven in 1903.", "ovens.md#1", "The baker Eva", ["1902"], "1902 1903"),
    ],
)
def test_a_false_claim_without_citations_is_contradicted_by_the_passage_that_says_otherwise(
    town: Service, claim: str, passage: str, source: str, differs: list[str], numbers: str
) -> None:
    found, check = check_claim(town, claim)
    assert found.citations == ()
    assert check.verdict is SentenceVerdict.CONTRADICTED
    assert check.contradiction is not None
    assert check.nearest is not None
    assert (check.contradiction.passage, check.nearest.passage) == (passage, passage)
    quote = check.contradiction.quote or ""
    assert quote.startswith(source)
    assert [quote[start:end] for start, end in check.differences] == differs
    assert " ".join(check.numbers or ()) == numbers
    assert (numbers.split()[1] if numbers else "not") in words(claim, check)
    row = found.trace["checked"][0]  # what `rag attribute` and `/v1/attribute` write
    assert (row["verdict"], row["contradiction"]["passage"]) == ("contradicted", passage)


@pytest.mark.parametrize(
    ("claim", "passage", "source"),
    [
        ("The oven burned oak wood.", "ovens.md#1", "It burned beech wood."),
        ("The mayor wept for the bridge of pontoons.", "bridge.md#2", "For fourteen months"),
        ("The mill of Oldenby has four arches.", "bridge.md#1", "It has three arches"),  # another thing
    ],
)
def test_a_claim_that_nothing_supports_has_the_passage_that_says_most_about_it(
    town: Service, claim: str, passage: str, source: str
) -> None:
    found, check = check_claim(town, claim)
    assert found.citations == ()
    assert (check.verdict, check.contradiction) == (SentenceVerdict.NOT_ENOUGH, None)
    assert check.nearest is not None
    assert check.nearest.passage == passage
    assert (check.nearest.quote or "").startswith(source)


def test_a_claim_of_an_answer_that_cites_nothing_is_compared_with_the_other_passages() -> None:
    judge = Says(Verdict.NOT_ATTRIBUTABLE)
    (check,) = check_answer(answer(("The Aller bridge has two arches of brick.", None)), judge, nearest=True)
    assert (check.verdict, check.numbers) == (SentenceVerdict.CONTRADICTED, ("three", "two"))


def test_the_span_of_a_cited_source_is_the_sentence_that_says_otherwise() -> None:
    sources = read_sources("[1] A ferry ran until 1931. The toll was two marks. The bridge opened in May.")
    found, (check,) = check_text("The toll was nine marks [1].", open_judge("minilm"), sources=sources)
    assert found.citations[0].quote == "The toll was two marks."
    assert (check.verdict, check.numbers) == (SentenceVerdict.CONTRADICTED, ("two", "nine"))


# --- pasted ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", {}),
        ("One text.\n\nWith two paragraphs.", {"1": "One text.\n\nWith two paragraphs."}),
        ("[1] One.\n[3] Three\nlines.", {"1": "One.", "3": "Three\nlines."}),
        ("1. One.\n2) Two.", {"1": "One.", "2": "Two."}),
        ("[1]\nOne.\r\n[2]: Two.", {"1": "One.", "2": "Two."}),
        ("[1] A list:\n1. one\n2. two\n[2] B", {"1": "A list:\n1. one\n2. two", "2": "B"}),
        ("A list:\n1. one\n2. two", {"1": "A list:\n1. one\n2. two"}),
        ("[1]\n[2] B", {"2": "B"}),
        ("[2019] is a year.", {"1": "[2019] is a year."}),
    ],
)
def test_pasted_sources_are_told_apart_by_their_numbers(text: str, found: dict[str, str]) -> None:
    assert {one.id: one.text for one in read_sources(text)} == found


def test_a_number_twice_and_too_many_sources_are_refused() -> None:
    with pytest.raises(UsageError, match="number 1 twice"):
        read_sources("[1] a\n[1] b")
    with pytest.raises(UsageError, match="at most 100"):
        read_sources("\n".join(f"[{n}] a" for n in range(101)))


SOURCES = read_sources("[1] The Aller bridge opened in 1931.\n[2] A ferry crossed the river four times a day.")


def test_a_marked_text_is_checked_against_what_it_cites() -> None:
    text = "The Aller bridge opened in 1931 [1]. A ferry crossed the river [1]. The mayor wept [9]."
    found, checks = check_text(text, JUDGE, sources=SOURCES)
    assert [one.cites for one in found.sentences] == [("1",), ("1",), ()]
    assert [one.verdict for one in checks] == ["supported", "not_enough", "not_enough"]
    assert checks[1].nearest is not None
    assert (checks[1].nearest.passage, checks[1].nearest_supports) == ("2", True)
    assert [one.reason for one in found.unresolved] == ["out-of-range"]


def test_quotations_are_compared_with_the_sources() -> None:
    text = (
        'It says "the Aller bridge opened in 1913" [1]. It says "a ferry crossed the river" [1].\n\n'
        '> A ferry crossed the river four times a week. [2]\n\nIt says "the Aller bridge opened" [1].'
    )
    found, checks = check_text(text, JUDGE, sources=SOURCES)
    quotes = [quote for check in checks for quote in check.quotes]
    assert [quote.status for quote in quotes] == ["misquoted", "misattributed", "misquoted", "verbatim"]
    assert [found.sentences[quote.sentence].text.count("river") for quote in quotes] == [0, 1, 1, 0]
    assert quotes[0].diff == "the Aller bridge opened in [-1913-] {+1931+}"
    assert quotes[2].diff == "A ferry crossed the river four times a [-week-] {+day+}"


def test_a_text_without_markers_gets_the_sources_that_support_it() -> None:
    found, checks = check_text("A ferry crossed the river. The mayor wept.", JUDGE, sources=SOURCES)
    assert [one.cites for one in found.sentences] == [("2",), ()]
    assert [one.verdict for one in checks] == ["supported", "not_enough"]


def test_what_cannot_be_checked_is_refused() -> None:
    with pytest.raises(UsageError, match="no text"):
        check_text(" ", JUDGE, sources=SOURCES)
    with pytest.raises(UsageError, match="no sources"):
        check_text("A.", JUDGE)
    with pytest.raises(UsageError, match="at most 2"):
        check_text("One is. Two is. Three is.", JUDGE, sources=SOURCES, max_sentences=2)


@given(st.text(max_size=300), st.text(max_size=300))
def test_any_text_can_be_checked_against_any_sources(text: str, sources: str) -> None:
    try:
        listed = read_sources(sources)
    except UsageError:
        return
    found = cite_sources(text, listed, JUDGE)
    for check, sentence in zip(check_answer(found, JUDGE, nearest=True), found.sentences, strict=True):
        assert all(0 <= start < end <= len(sentence.text) for start, end in check.unsupported)
