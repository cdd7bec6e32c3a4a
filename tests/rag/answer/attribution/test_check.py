"""What a language model cites stays; each sentence gets a verdict, a contradicted one the span that says otherwise."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoais.base.types import Judge, Verdict
from autoais.judges import open_judge
from autoais.judges.lexical import LexicalJudge
from autoais.judges.numbers import find_clash
from rag.answer.attribution.attributor import Attributor
from rag.answer.attribution.check import CheckedGenerator
from rag.answer.attribution.revise import Reviser
from rag.answer.generators.cited import CitedGenerator
from rag.answer.generators.passage_reader import PassageReader
from rag.answer.generators.pointing import Point
from rag.answer.llms.prompts import Prompt
from rag.base.types import Answer, Hit, Passage, Question
from rag.testing import ScriptedModel
from tests.rag.answer.attribution.test_attribution import HITS, SHELF, Counted, Wrote
from tests.rag.serve.test_checking import Says

DOGS = Passage(
    "dogs", "Guests", "Dogs sleep in the barn. Each guest may bring three dogs. The pond is closed.", "Animals"
)
TICKET = Passage("ticket", "Prices", "Prices at the gate:\n\n- cars pay 3 euros\n- bicycles are free")
BORN = "Marie Curie was born in Warsaw in 1867."


@pytest.fixture(scope="module")
def minilm() -> Judge:
    return open_judge("minilm")


def checked(judge: Judge, *sentences: tuple[str, tuple[str, ...]], hits: Sequence[Hit] = HITS) -> Answer:
    return CheckedGenerator(Wrote(sentences), judge).generate(Question("q", "Where was Curie born?"), hits)


def test_a_citation_stays_whatever_the_judge_says_and_each_sentence_has_a_verdict(minilm: Judge) -> None:
    answer = checked(
        minilm,
        (BORN, ("curie",)),
        ("Penguins swim faster than any other bird.", ("curie",)),
        ("The Vistula is a river.", ()),
        ("Where was she born?", ()),
    )
    assert [list(sentence.cites) for sentence in answer.sentences] == [["curie"], ["curie"], [], []]
    assert answer.citations[0].quote == "She was born in Warsaw in 1867."  # narrowed from the whole passage
    assert answer.citations[1].quote == HITS[2].passage.text
    verdicts = [row["verdict"] for row in answer.trace["checked"]]
    assert verdicts == ["supported", "not_enough", "not_enough", "no_claim"]
    assert answer.trace["checked"][0]["probability"] >= 0.5 > answer.trace["checked"][1]["probability"]
    assert answer.system.startswith("wrote>check.v1(minilm@")


def test_another_number_is_named_with_the_sentence_that_has_it(minilm: Judge) -> None:
    hits = [Hit(DOGS, 1.0)]
    answer = checked(minilm, ("Each guest may bring two dogs.", ("dogs",)), hits=hits)
    (row,) = answer.trace["checked"]
    assert row["verdict"] == "contradicted"
    assert row["numbers"] == ["three", "two"]
    assert row["contradiction"] == {
        "passage": "dogs", "start": 24, "end": 56, "quote": "Each guest may bring three dogs.",
        "differences": [[21, 26]],
    }  # fmt: skip
    assert list(answer.sentences[0].cites) == ["dogs"]


def test_a_model_that_points_is_contradicted_by_the_unit_that_it_names() -> None:
    reply = '{"answerable": true, "sentences": [{"sources": [2], "sentence": "Cars pay 2 euros."}]}'
    point = Point(ScriptedModel(reply), Prompt.read("point.v1"), PassageReader(min_confidence=0))
    generator = CheckedGenerator(point, Says(Verdict.NOT_ATTRIBUTABLE))
    answer = generator.generate(Question("q", "What do cars pay?"), [Hit(TICKET, 1.0)])
    assert [citation.quote for citation in answer.citations] == ["- cars pay 3 euros"]
    (row,) = answer.trace["checked"]
    assert (row["verdict"], row["numbers"]) == ("contradicted", ["3", "2"])
    assert row["contradiction"]["quote"] == "- cars pay 3 euros"


@pytest.mark.parametrize("verdict", [Verdict.ATTRIBUTABLE, Verdict.UNDECIDED])
def test_a_number_contradicts_only_what_the_judge_does_not_find_supported(verdict: Verdict) -> None:
    answer = checked(Says(verdict), ("Each guest may bring two dogs.", ("dogs",)), hits=[Hit(DOGS, 1.0)])
    (row,) = answer.trace["checked"]
    assert row["verdict"] != "contradicted"
    assert "numbers" not in row


@pytest.mark.parametrize(
    ("claim", "text", "clash"),
    [
        ("Guests bring two dogs.", "Each guest may bring three dogs.", ("two", "three")),
        ("It costs two euros.", "- cars pay 3 euros", ("two", "3")),
        ("The warranty lasts one year.", "The warranty lasts two years.", ("one", "two")),
        ("It opened in 1932.", "It opened in 1931.", ("1932", "1931")),
        ("It takes 60 seconds.", "It takes 1 minute.", None),
        ("Two dogs are allowed.", "Up to three dogs are allowed.", None),
        ("It costs 3 euros.", "It takes 4 hours.", None),
        ("Two of three came.", "Four of five came.", None),
        ("One of them came.", "Two of them came.", None),
        ("COVID-19 spread.", "COVID-20 spread.", None),
        ("It is old.", "It is 90 years old.", None),
        ("He wrote 13 operas.", "He wrote the opera in 1864.", None),
    ],
)
def test_two_texts_clash_in_a_number_if_each_has_one_that_the_other_lacks(
    claim: str, text: str, clash: tuple[str, str] | None
) -> None:
    spans = find_clash(claim, text)
    assert (None if spans is None else (claim[slice(*spans[0])], text[slice(*spans[1])])) == clash


def test_revision_drops_what_the_check_does_not_find_supported(minilm: Judge) -> None:
    hits = [*HITS, Hit(DOGS, 0.5)]
    answer = checked(
        minilm,
        (BORN, ("curie",)),
        ("Penguins swim faster than any other bird.", ("curie",)),
        ("Each guest may bring two dogs.", ("dogs",)),
        ("Where was she born?", ()),
        hits=hits,
    )
    revised = Reviser(Attributor(minilm)).revise(answer)
    assert revised.text == f"{BORN} Where was she born?"
    assert [row["verdict"] for row in revised.trace["checked"]] == ["supported", "no_claim"]
    assert {row["why"] for row in revised.trace["revised"]} == {"what it cites does not support it"}
    nothing = Reviser(Attributor(minilm)).revise(checked(minilm, ("Penguins swim well.", ("curie",))))
    assert nothing.abstained
    assert nothing.reason == "no sentence of the answer is supported by what it cites"
    assert nothing.trace["checked"] == []
    undecided = checked(Says(Verdict.UNDECIDED), ("Penguins swim well.", ("curie",)))
    assert Reviser(Attributor(minilm)).revise(undecided).text == "Penguins swim well."


def test_a_growing_answer_is_checked_sentence_by_sentence_and_each_is_judged_once() -> None:
    says = "Curie was born in Warsaw [2]. She studied in Paris [1]. She won a prize."
    prompt = Prompt.read("hagrid.v1")
    judges = [Counted(LexicalJudge()) for _ in range(2)]
    question = Question("q", "Who?")
    whole = CheckedGenerator(CitedGenerator(ScriptedModel(says), prompt), judges[0]).generate(question, HITS)
    growing = CheckedGenerator(CitedGenerator(ScriptedModel(says, piece=2), prompt), judges[1])
    *partials, last = growing.stream(question, HITS)
    assert last == whole
    assert judges[0].pairs == judges[1].pairs
    assert sorted({len(partial.sentences) for partial in partials}) == [0, 1, 2]
    for partial in partials:
        assert partial.sentences == whole.sentences[: len(partial.sentences)]


_WORDS = st.sampled_from(
    [*" ".join(p.text for p in SHELF).split(), "two", "1868", "[1]", "\x00", "東京", "\ud83d", "?"]
)
_SENTENCES = st.lists(_WORDS, min_size=1, max_size=8).map(" ".join)
_CITES = st.lists(st.sampled_from([p.id for p in SHELF]), max_size=3).map(tuple)


@given(st.lists(st.tuples(_SENTENCES, _CITES), max_size=4), st.floats(0.1, 1.0))
def test_whatever_is_written_the_passages_that_are_cited_stay(
    sentences: list[tuple[str, tuple[str, ...]]], threshold: float
) -> None:
    before = Wrote(tuple(sentences)).generate(Question("q", "?"), HITS)
    after = CheckedGenerator(Wrote(tuple(sentences)), LexicalJudge(threshold)).generate(Question("q", "?"), HITS)
    assert [sentence.cites for sentence in after.sentences] == [sentence.cites for sentence in before.sentences]
    assert len(after.trace.get("checked", ())) == len(after.sentences)
    texts = {passage.id: passage.text for passage in SHELF}
    for row in after.trace.get("checked", ()):
        if place := row.get("contradiction"):
            assert texts[place["passage"]][place["start"] : place["end"]] == place["quote"]
