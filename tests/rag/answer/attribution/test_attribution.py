"""A claim gets the passage that supports it and the shortest words that do; citations are checked and repaired."""

from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoais.base.types import Attribution, Judge, Judgement
from autoais.judges import open_judge
from autoais.judges.lexical import LexicalJudge
from rag.answer.attribution.attributor import Attributor, match_amounts
from rag.answer.attribution.repair import RepairedGenerator
from rag.answer.generators.cited import CitedGenerator
from rag.answer.llms.prompts import Prompt
from rag.base.types import Answer, Citation, CitedSentence, Hit, Passage, Question, Unresolved
from rag.testing import ScriptedModel
from tests.conftest import present
from tests.judges import OneByOne

CURIE = Passage("curie", "Marie Curie", "Marie Curie won a prize. She was born in Warsaw in 1867. She moved to Paris.")
POLAND = Passage("poland", "Poland", "Poland lies in Europe. Its capital is Warsaw. Its longest river is the Vistula.")
RIVER = Passage("river", "", "Rowing clubs hold a regatta every spring.")
SHELF = (RIVER, POLAND, CURIE)


class Counted(Judge):
    """A judge that counts what it is asked."""

    name = "counted"

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self.pairs = 0

    def decide(self, attributions: Sequence[Attribution]) -> list[Judgement]:
        self.pairs += len(attributions)
        return self._judge.decide(attributions)


@pytest.fixture(scope="module")
def minilm() -> Judge:
    return open_judge("minilm")


@pytest.mark.parametrize(
    ("claim", "text", "asked"),
    [
        ("It is $39,800.", "Budget: 39800", "It is 39800."),
        ("It is 39800.", "It is $39,800 now.", "It is $39,800."),
        ("It is €39,800.", "It is $39,800 now.", "It is €39,800."),  # another currency
        ("It is €39,800.", "It is €39800 now.", "It is €39800."),
        ("It costs $45.", "45.00 USD", "It costs 45.00."),
        ("It costs 45.", "45.00 USD", "It costs 45."),
        ("It is $340 in B-23.", "Pruett asks $340; 23.00", "It is $340 in B-23."),
        ("In 1931 it had 1,148,001.", "1148001 in 1932", "In 1931 it had 1148001."),
    ],
)
def test_a_judge_reads_amounts_as_the_passage_writes_them(claim: str, text: str, asked: str) -> None:
    assert match_amounts(claim, text) == asked


def test_an_amount_of_a_table_is_found_under_another_spelling(minilm: Judge) -> None:
    row = (
        "Account: 5020 | Item: Night guard | Actual 2024 (USD): 38600 | Budget 2025 (USD): 39800 | Vendor: Lanternwatch"
    )
    assert Attributor(minilm).support("The budget for the night guard is $39,800.", [Passage("b", "budget", row)])


def test_the_passage_that_supports_is_found_and_only_its_sentence_is_quoted(minilm: Judge) -> None:
    support = present(Attributor(minilm).support("Marie Curie was born in Warsaw in 1867.", SHELF))
    citation = support.citation("attached")
    assert (citation.passage, citation.quote) == ("curie", "She was born in Warsaw in 1867.")
    assert citation.origin == "attached"
    assert support.probability is not None
    assert support.probability >= 0.5


def test_a_short_answer_is_taken_with_its_question(minilm: Judge) -> None:
    support = present(Attributor(minilm).support("Warsaw", SHELF, "what is the capital of poland"))
    assert support.citation("attached").quote == "Its capital is Warsaw."
    assert support.passage.id == "poland"


def test_what_no_passage_says_has_no_support(minilm: Judge) -> None:
    assert Attributor(minilm).support("Penguins swim faster than any other bird.", SHELF) is None
    assert Attributor(minilm).support("Penguins swim.", ()) is None


def test_of_equals_the_first_is_taken_and_passages_without_text_are_passed_over() -> None:
    attributor = Attributor(LexicalJudge())
    twins = [Passage("empty", "Poland", " "), Passage("b", "", POLAND.text), Passage("a", "", POLAND.text)]
    support = present(attributor.support("The capital is Warsaw.", twins))
    assert support.passage.id == "b"


def test_where_one_sentence_is_not_enough_its_neighbour_is_quoted_with_it() -> None:
    text = "The bridge crosses the Vistula. Nora Finch designed the bridge in 1931. It was painted green. Boats pass."
    support = present(
        Attributor(LexicalJudge(0.9)).support("Nora Finch designed the green painted bridge.", [Passage("p", "", text)])
    )
    assert text[support.start : support.end] == "Nora Finch designed the bridge in 1931. It was painted green."


def test_a_judge_is_asked_about_few_pairs() -> None:
    judge = Counted(LexicalJudge())
    passages = [Passage(str(n), "", f"{POLAND.text} Number {n}. {CURIE.text}") for n in range(100)]
    assert Attributor(judge).support("The capital is Warsaw.", passages)
    assert judge.pairs <= 11


@given(st.text(max_size=60), st.lists(st.text(max_size=120), max_size=4), st.text(max_size=30))
def test_any_text_gives_words_that_stand_in_the_passage(claim: str, texts: list[str], question: str) -> None:
    passages = [Passage(str(n), "T" * (n % 2), f"{text} {claim}") for n, text in enumerate(texts)]
    support = Attributor(LexicalJudge(0.3)).support(claim, passages, question)
    if support is not None:
        assert 0 <= support.start < support.end <= len(support.passage.text)


# --- repair ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Wrote:
    """A generator that writes these sentences, each citing these passages whole."""

    sentences: tuple[tuple[str, tuple[str, ...]], ...]
    origin: str = "cited"
    unresolved: tuple[Unresolved, ...] = ()
    name: str = "wrote"

    def generate(self, question: Question, hits: Sequence[Hit]) -> Answer:
        texts = {hit.passage.id: hit.passage.text for hit in hits}
        text, sentences = "", []
        for said, cites in self.sentences:
            start = len(text) + bool(text)
            text = f"{text} {said}".lstrip()
            citations = tuple(Citation(key, 0, len(texts[key]), texts[key], self.origin) for key in cites)
            sentences.append(CitedSentence(said, citations, start, start + len(said)))
        reason = None if sentences else "nothing to say"
        return Answer(
            question, text, tuple(sentences), tuple(hits), self.name, unresolved=self.unresolved,
            abstained=not sentences, reason=reason,
        )  # fmt: skip


HITS = tuple(Hit(passage, 3.0 - n) for n, passage in enumerate(SHELF))
BORN = "Marie Curie was born in Warsaw in 1867."


def repaired(judge: Judge, *sentences: tuple[str, tuple[str, ...]], origin: str = "cited") -> Answer:
    return RepairedGenerator(Wrote(sentences, origin), judge).generate(Question("q", "Where was Curie born?"), HITS)


@pytest.mark.parametrize(
    ("cites", "left", "counts"),
    [
        (("curie",), [("curie", "cited")], {"cited": 1}),
        (("poland",), [("curie", "moved")], {"moved": 1}),
        (("river", "poland"), [("curie", "moved")], {"moved": 1, "removed": 1}),
        (("river", "curie"), [("curie", "cited")], {"cited": 1, "removed": 1}),
        ((), [("curie", "attached")], {"attached": 1}),
    ],
)
def test_a_citation_stays_moves_or_is_attached(
    minilm: Judge, cites: tuple[str, ...], left: list[tuple[str, str]], counts: dict[str, int]
) -> None:
    answer = repaired(minilm, (BORN, cites))
    (sentence,) = answer.sentences
    assert [(one.passage, one.origin) for one in sentence.citations] == left
    assert sentence.citations[0].quote == "She was born in Warsaw in 1867."
    nothing = {"cited": 0, "undecided": 0, "moved": 0, "attached": 0, "removed": 0, "uncited": []}
    assert answer.trace["repair"] == nothing | counts
    assert answer.text == BORN
    assert answer.system.startswith("wrote>repair.v2(minilm@")


def test_a_sentence_that_nothing_supports_stands_uncited_and_says_so(minilm: Judge) -> None:
    answer = repaired(minilm, (BORN, ("curie",)), ("Penguins swim faster than any other bird.", ("curie",)))
    assert [len(sentence.citations) for sentence in answer.sentences] == [1, 0]
    assert answer.trace["repair"]["uncited"] == [1]
    assert answer.trace["repair"]["removed"] == 1


def test_citations_that_support_only_together_stay() -> None:
    answer = repaired(LexicalJudge(0.95), ("Curie of Warsaw moved; the longest river.", ("curie", "poland")))
    assert [one.passage for one in answer.sentences[0].citations] == ["curie", "poland"]
    assert answer.trace["repair"]["cited"] == 2


def test_what_was_copied_is_not_judged_and_what_a_judge_cannot_decide_stays() -> None:
    judge = Counted(LexicalJudge())
    copied = repaired(judge, ("Penguins swim.", ("curie",)), origin="copied")
    assert judge.pairs == 0
    assert copied.sentences[0].citations[0].origin == "copied"
    unsure = repaired(OneByOne(), (BORN, ("poland",)))
    assert [one.passage for one in unsure.sentences[0].citations] == ["poland"]
    assert unsure.trace["repair"]["undecided"] == 1


def test_questions_and_instructions_get_no_source_and_abstentions_stay(minilm: Judge) -> None:
    answer = repaired(minilm, (BORN, ("curie",)), ("Where was she born?", ()))
    assert answer.sentences[1].citations == ()
    nothing = repaired(minilm)
    assert nothing.abstained
    assert nothing.system.startswith("wrote>repair.v2(")


def test_markers_that_pointed_nowhere_stay() -> None:
    lost = (Unresolved("[9]", "out-of-range"),)
    made = RepairedGenerator(Wrote(((BORN, ()),), unresolved=lost), LexicalJudge()).generate(Question("q", "?"), HITS)
    assert made.unresolved == lost


_WORDS = st.sampled_from([*" ".join(p.text for p in SHELF).split(), "penguin", "[1]", "\x00", "東京", "\ud83d", "?"])
_SENTENCES = st.lists(_WORDS, min_size=1, max_size=8).map(" ".join)
_CITES = st.lists(st.sampled_from([p.id for p in SHELF]), max_size=4).map(tuple)


@given(st.lists(st.tuples(_SENTENCES, _CITES), max_size=4), st.permutations(SHELF), st.floats(0.1, 1.0))
def test_whatever_is_written_every_citation_left_is_shown_and_verbatim(
    sentences: list[tuple[str, tuple[str, ...]]], shelf: list[Passage], threshold: float
) -> None:
    hits = [Hit(passage, 1.0) for passage in shelf]
    generator = Wrote(tuple(sentences))
    question = Question("q", "Where was Curie born?")
    before = generator.generate(question, hits)
    after = RepairedGenerator(generator, LexicalJudge(threshold)).generate(
        question, hits
    )  # `Answer` checks every citation
    assert after.text == before.text
    assert [(s.start, s.end) for s in after.sentences] == [(s.start, s.end) for s in before.sentences]
    if before.sentences:
        done = after.trace["repair"]
        left = sum(len(sentence.citations) for sentence in after.sentences)
        assert done["cited"] + done["undecided"] + done["moved"] + done["attached"] == left
        assert done["uncited"] == [n for n, sentence in enumerate(after.sentences) if not sentence.citations]
        assert sum(len(cites) for _, cites in sentences) == left + done["removed"] - done["attached"]


def test_a_judge_reads_a_passage_as_the_evaluator_does() -> None:
    assert CURIE.evidence == f"Marie Curie. {CURIE.text}"
    assert RIVER.evidence == RIVER.text


def test_a_growing_answer_is_repaired_sentence_by_sentence_and_each_is_judged_once() -> None:
    says = "Curie was born in Warsaw [2]. She studied in Paris [1]. She won a prize."
    prompt = Prompt.read("hagrid.v1")
    judges = [Counted(LexicalJudge()) for _ in range(2)]
    whole = RepairedGenerator(CitedGenerator(ScriptedModel(says), prompt), judges[0]).generate(
        Question("q", "Who?"), HITS
    )
    growing = RepairedGenerator(CitedGenerator(ScriptedModel(says, piece=2), prompt), judges[1])
    *partials, last = growing.stream(Question("q", "Who?"), HITS)
    assert last == whole
    assert judges[0].pairs == judges[1].pairs
    assert sorted({len(one.sentences) for one in partials}) == [0, 1, 2]
    for one in partials:
        assert one.sentences == whole.sentences[: len(one.sentences)]
        assert one.system == whole.system
