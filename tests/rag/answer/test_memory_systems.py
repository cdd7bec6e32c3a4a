"""Systems whose answer comes from a model's memory: closed book, post-hoc, and the model as the retriever; revision."""

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoais.judges.lexical import LexicalJudge
from rag.answer.attribution.attributor import Attributor
from rag.answer.attribution.post_hoc import AnswerThenAttribute, PostHoc
from rag.answer.attribution.repair import RepairedGenerator
from rag.answer.attribution.revise import ModelRewriter, RevisedGenerator, Reviser, preserved_share
from rag.answer.attribution.titles import Titles, title_similarity
from rag.answer.closed_book import ClosedBook
from rag.answer.generators.cited import CitedGenerator
from rag.answer.llm_retriever import ModelAsRetriever
from rag.answer.llms import ModelError
from rag.answer.llms.labelled_replies import fields
from rag.answer.llms.prompts import Prompt
from rag.answer.systems import open_system
from rag.base.errors import RagError
from rag.base.types import Answer, CitedSentence, Hit, Passage, Question, Unresolved
from rag.documents.corpus import Corpus
from rag.index.build import build
from rag.index.index import Index
from rag.index.open import open_index
from rag.testing import ScriptedModel, check_system
from tests.chat_server import run_chat_server
from tests.conftest import Command, one_line_error, write_corpus

PAGES = [
    ("c#1", "Marie Curie", "Marie Curie won the Nobel Prize in Physics in 1903."),
    ("c#2", "Marie Curie", "She was born in Warsaw in 1867 and moved to Paris in 1891."),
    ("d#1", "Deadpool (film)", "Deadpool is a film of 2016 about a man in a mask."),
    ("l#1", "Luke Cage (season 2)", "The second season of Luke Cage was released on June 22, 2018."),
    ("w#1", "Warsaw", "Warsaw is the capital of Poland. It lies on the Vistula river."),
    ("z#1", "Zürich", "Zürich is the largest city in Switzerland."),
]
BORN = Question("q", "Where was Marie Curie born?")


@pytest.fixture
def index(tmp_path: Path) -> Index:
    build(Corpus([write_corpus(tmp_path / "pages.jsonl", PAGES)]), tmp_path / "pages.index")
    return open_index(tmp_path / "pages.index")


# --- what a model replies --------------------------------------------------------------------------------------


def test_labelled_lines_are_read_whatever_stands_around_them() -> None:
    reply = "<think>Answer: no</think>Sure!\n- **Answer:** Curie was\n  born in Warsaw.\nSHORT： Warsaw\nAnswer: again"
    assert fields(reply, ("answer", "short")) == {"": "Sure!", "answer": "Curie was born in Warsaw.", "short": "Warsaw"}
    assert fields("", ("answer",)) == {}
    gone_on = "Question: who?\nAnswer: Curie.\n\nI hope so.\nQuestion: where?\nAnswer: here\nShort: here"
    assert fields(gone_on, ("answer", "short")) == {"answer": "Curie."}


def test_a_reply_with_half_a_character_can_be_printed_and_written() -> None:
    # JSON of a server can hold a lone surrogate; it went into the answer, and printing that failed.
    answer = ask("Answer: Curie \ud83d was \x1b[31mborn in Warsaw.\nShort: \udc80Warsaw")
    assert (answer.text, answer.short_answer) == ("Curie \ufffd was [31mborn in Warsaw.", "\ufffdWarsaw")


def ask(*replies: str | ModelError) -> Answer:
    return next(ClosedBook(ScriptedModel(*replies)).answer([BORN]))


def test_closed_book_says_a_sentence_and_a_short_answer_and_cites_nothing() -> None:
    answer = ask("Answer: Marie Curie was born in Warsaw [1].\nShort: Warsaw")
    assert (answer.text, answer.short_answer) == ("Marie Curie was born in Warsaw.", "Warsaw")
    assert answer.sentences == (CitedSentence(answer.text, (), 0, len(answer.text)),)
    assert answer.unresolved == (Unresolved("[1]", "out-of-range"),)
    assert (answer.hits, answer.system) == ((), f"closed-book(script,{Prompt.read('closed-book.v1').id})")


def test_a_reply_without_labels_is_the_answer() -> None:
    assert ask("She was born in Warsaw.").text == "She was born in Warsaw."
    assert ask("Short: Warsaw").text == "Warsaw"


@pytest.mark.parametrize("reply", ["Answer: UNKNOWN", "unknown.", "Answer: **Unknown**\nShort: UNKNOWN"])
def test_a_model_that_does_not_know_abstains(reply: str) -> None:
    answer = ask(reply)
    assert answer.abstained
    assert not answer.failed
    assert answer.reason == "the model says that it does not know"


def test_a_model_that_gives_nothing_has_failed_and_the_run_goes_on() -> None:
    says = ScriptedModel(ModelError("the server died"), "", "[1] [2]", "Answer: Warsaw")
    answers = list(ClosedBook(says).answer([Question(str(n), "Where?") for n in range(4)]))
    assert [answer.failed for answer in answers] == [True, True, True, False]
    assert answers[0].reason == "the server died"
    assert answers[1].reason == "the model wrote no answer that can be read"


def test_braces_and_line_ends_in_a_question_cannot_change_the_prompt() -> None:
    says = ScriptedModel("Answer: x")
    list(ClosedBook(says).answer([Question("q", "what is {question}\nAnswer: 7")]))
    assert "Question: what is {question} Answer: 7" in says.asked[0]


@given(st.text(max_size=200), st.sampled_from(["", "Answer: ", "Short: ", "Answer: Warsaw [1]. ", "<think>"]))
def test_any_reply_gives_an_answer(reply: str, before: str) -> None:
    answer = ask(before + reply)
    assert answer.abstained == (not answer.sentences)
    assert answer.abstained == (answer.reason is not None)


# --- architectures ---------------------------------------------------------------------------------------------


def test_post_hoc_answers_first_and_finds_the_source_afterwards(index: Index) -> None:
    system = AnswerThenAttribute(
        ClosedBook(ScriptedModel("Answer: She was born in Warsaw in 1867.\nShort: Warsaw")),
        PostHoc(index.bm25, LexicalJudge()),
    )
    answer = next(system.answer([BORN]))
    assert [one.passage for one in answer.sentences[0].citations] == ["c#2"]
    assert answer.short_answer == "Warsaw"
    assert answer.system == system.name


def test_every_system_of_a_model_keeps_the_contract(index: Index) -> None:
    closed_book = ClosedBook(ScriptedModel("Answer: She was born in Warsaw in 1867.\nShort: Warsaw"))
    pointer = ScriptedModel("Answer: She was born in Warsaw in 1867.\nPage: Marie Curie")
    questions = [BORN, Question("2", "Who was it?")]
    check_system(closed_book, questions, cites=False)
    check_system(AnswerThenAttribute(closed_book, PostHoc(index.bm25, LexicalJudge())), questions)
    check_system(ModelAsRetriever(pointer, Titles(index), index.bm25, LexicalJudge(), 5), questions)
    check_system(ClosedBook(ScriptedModel("UNKNOWN")), questions)
    check_system(ClosedBook(ScriptedModel("")), questions)


def pointed(index: Index, reply: str) -> Answer:
    system = ModelAsRetriever(ScriptedModel(reply), Titles(index), index.bm25, LexicalJudge(), 5)
    answer = next(system.answer([BORN]))
    assert answer.system == system.name
    return answer


@pytest.mark.parametrize("page", ["Marie Curie", "marie  curie.", "Marie_Curie#Early life", '"Mari Curie"', "c#2",
                                  "https://en.wikipedia.org/wiki/Marie_Curie"])  # fmt: skip
def test_the_page_a_model_names_is_found_and_its_passage_cited(index: Index, page: str) -> None:
    answer = pointed(index, f"Answer: She was born in Warsaw in 1867.\nShort: Warsaw\nPage: {page}")
    assert [one.passage for one in answer.sentences[0].citations] == ["c#2"]
    assert answer.sentences[0].citations[0].origin == "cited"
    assert answer.unresolved == ()
    assert answer.trace["page"] == " ".join(page.split())


@pytest.mark.parametrize(
    ("pointer", "marker", "reason"),
    [
        ("Page: Pierre Gassendi", "Pierre Gassendi", "unknown-page"),
        ("Page: the", "the", "unknown-page"),
        ("Page: \ud83d", "\ufffd", "unknown-page"),
        ("Page: Zürich", "Zürich", "unsupported"),
        ("Search: zzz", "zzz", "nothing-found"),
        ("Search: the", "the", "nothing-found"),
        ("", "", "no-pointer"),
    ],
)
def test_a_pointer_that_does_not_resolve_is_counted_and_nothing_is_cited(
    index: Index, pointer: str, marker: str, reason: str
) -> None:
    answer = pointed(index, f"Answer: She was born in Warsaw in 1867.\n{pointer}")
    assert answer.unresolved == (Unresolved(marker, reason),)
    assert answer.sentences[0].citations == ()


def test_a_query_in_the_place_of_a_page_is_searched_for(index: Index) -> None:
    answer = pointed(index, "Answer: She was born in Warsaw in 1867.\nSearch: Curie born Warsaw 1867")
    assert [one.passage for one in answer.sentences[0].citations] == ["c#2"]


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("Zürich", "Zürich"),
        ("ZÜRICH", "Zürich"),
        ("luke cage season 2", "Luke Cage (season 2)"),
        ("Deadpool", "Deadpool (film)"),
        ("Luke Cage (season 3)", None),
        ("Marie Antoinette", None),
        ("Warsaw Uprising", None),
        ("", None),
    ],
)
def test_titles_are_matched_by_likeness(index: Index, name: str, title: str | None) -> None:
    assert Titles(index).title(name) == title


def test_likeness_is_between_0_and_1_and_1_for_what_differs_in_case_and_marks() -> None:
    assert title_similarity("Luke_Cage, season 2", "Luke Cage (Season 2)") == 1
    assert title_similarity("Deadpool", "Deadpool (film)") == 0.9
    assert title_similarity("Zurich", "ZÜRICH") == 1
    assert title_similarity("2014 World Cup", "2018 World Cup") == 0
    assert title_similarity("", "x") == 0
    assert title_similarity("Paris", "Oslo") < 0.5


def test_systems_of_a_model_say_that_they_need_one(rag: Command, shelf: Path) -> None:
    for name in ("closed-book", "post-hoc", "llm-retriever"):
        with pytest.raises(RagError, match="needs a language model"):
            open_system(name, open_index(shelf))
    one_line_error(rag("ask", "river?", "--system", "post-hoc", "--index", shelf), "post-hoc:gguf:<file>")
    assert "closed-book:<model>" in rag("systems", COLUMNS="200").stdout


# --- revision --------------------------------------------------------------------------------------------------

CURIE = Passage("c#2", "Marie Curie", "Marie Curie was born in Warsaw in 1867. She moved to Paris in 1891.")


def unsupported(*sentences: str, short: str | None = None) -> Answer:
    """The first sentence is cited, the others are not."""
    text, spans = "", []
    for number, sentence in enumerate(sentences):
        start = len(text) + bool(text)
        text = f"{text}\n{sentence}" if text else sentence
        support = None if number else Attributor(LexicalJudge()).support(sentence, [CURIE])
        spans.append(CitedSentence(sentence, (support.citation("cited"),) if support else (), start, len(text)))
    return Answer(BORN, text, tuple(spans), (Hit(CURIE, 1.0),), "s", short_answer=short)


TRUE, FALSE = "Marie Curie moved to Paris in 1891.", "Marie Curie was born in Berlin in 1867."


def revised(reply: str | ModelError | None, answer: Answer) -> Answer:
    rewriter = None if reply is None else ModelRewriter(ScriptedModel(reply))
    return Reviser(Attributor(LexicalJudge(0.95)), rewriter).revise(answer)


def test_an_edit_that_the_judge_supports_is_kept_with_its_source() -> None:
    answer = revised("Sentence: Marie Curie was born in Warsaw in 1867. [1]", unsupported(TRUE, FALSE))
    assert answer.text == f"{TRUE}\nMarie Curie was born in Warsaw in 1867."
    (citation,) = answer.sentences[1].citations
    assert (citation.quote, citation.origin) == ("Marie Curie was born in Warsaw in 1867.", "attached")
    (change,) = answer.trace["revised"]
    assert (change["before"], change["after"]) == (FALSE, "Marie Curie was born in Warsaw in 1867.")
    assert "c#2 supports the new sentence" in change["why"]


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        ("Sentence: NONE", "returned nothing"),
        (ModelError("gone"), "returned nothing"),
        ("", "returned nothing"),
        ("Sentence: She moved to Paris in 1891.", "changed too much"),
        ("Sentence: Marie Curie was born in Warsaw. She moved to Paris in 1867.", "changed too much"),
        ("Sentence: Marie Curie was born in Vienna in 1867.", "nor the rewritten sentence"),
        (None, "no passage shown supports it"),
    ],
)
def test_else_the_sentence_is_dropped_and_the_diff_says_why(reply: str | ModelError | None, why: str) -> None:
    answer = revised(reply, unsupported(TRUE, FALSE, short="Berlin"))
    assert answer.text == TRUE
    assert len(answer.sentences) == 1
    assert answer.short_answer is None
    (change,) = answer.trace["revised"]
    assert (change["before"], change["after"]) == (FALSE, None)
    assert why in change["why"]


def test_what_is_supported_or_claims_nothing_is_not_touched() -> None:
    before = unsupported(TRUE, "Where was she born?", short="Paris")
    after = revised(None, before)
    assert (after.text, after.sentences, after.short_answer) == (before.text, before.sentences, "Paris")
    assert after.trace["revised"] == []


def test_an_answer_of_which_nothing_is_left_is_an_abstention() -> None:
    answer = revised(None, unsupported("Penguins swim well.", FALSE))
    assert answer.abstained
    assert answer.text == ""
    assert len(answer.trace["revised"]) == 2


WRITTEN = "Marie Curie moved to Paris in 1891 [1]. She was a famous sailor. Marie Curie was born in Warsaw in 1867 [1]."


def test_a_generator_is_revised_sentence_by_sentence_as_it_writes() -> None:
    judge = LexicalJudge(0.9)
    written = RepairedGenerator(CitedGenerator(ScriptedModel(WRITTEN, piece=3), Prompt.read("hagrid.v1")), judge)
    for reply, kept in ((None, 2), ("Sentence: Marie Curie moved to Paris.", 2)):
        model = ScriptedModel(reply or "")
        reviser = Reviser(Attributor(judge), None if reply is None else ModelRewriter(model))
        generator = RevisedGenerator(written, reviser)
        answer = generator.generate(BORN, [Hit(CURIE, 1.0)])
        asked = len(model.asked)
        *partials, last = generator.stream(BORN, [Hit(CURIE, 1.0)])
        assert last == answer
        assert (answer.system, len(answer.sentences)) == (generator.name, kept)
        assert all(sentence.citations for sentence in answer.sentences)
        assert len(model.asked) == 2 * asked  # a sentence is rewritten once an answer
        assert {len(one.sentences) for one in partials} == {0, 1}
        for one in partials:
            assert answer.sentences[: len(one.sentences)] == one.sentences


def test_revision_is_an_option_of_a_language_model(shelf: Path, tmp_path: Path, rag: Command) -> None:
    with run_chat_server() as server:
        base = server.script({"say": WRITTEN.replace("[1]", "")})
        environment = {"OPENAI_BASE_URL": base, "OPENAI_API_KEY": ""}
        asking = ["ask", "Where was Curie born?", "--system", "openai:tiny", "--index", shelf, "--repair"]
        plain, dropped = rag(*asking, **environment), rag(*asking, "--revise", "drop", **environment)
        assert "sailor" in plain.stdout
        assert "sailor" not in dropped.stdout
        assert "left out: 1 sentence that no passage supports" in dropped.stdout
        streamed = rag(*asking, "--revise", "drop", "--stream", **environment)
        assert streamed.stdout == dropped.stdout
    one_line_error(rag("ask", "river?", "--revise", "drop", "--index", shelf), "has no option 'revise'; systems that")


def test_preserved_is_the_share_of_words_that_an_edit_leaves() -> None:
    assert preserved_share("a b c d", "a b c d") == 1
    assert preserved_share("one two three four", "one two three five") == 0.75
    assert preserved_share("one two", "six seven eight nine") == 0
    assert preserved_share("", "") == 1


def test_thoughts_are_dropped_in_time_however_long_the_reply() -> None:
    from autoais.base.models.thoughts import without_thoughts

    assert without_thoughts("Yes. \n <think>Hm. </think> So.") == "Yes. So."
    assert without_thoughts("<think>Hm") == ""
    blank = "\t" * 1_000_000
    started = time.perf_counter()
    assert without_thoughts(blank) == blank  # took minutes
    assert time.perf_counter() - started < 30
