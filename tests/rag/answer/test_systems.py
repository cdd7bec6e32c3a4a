"""Every system keeps one contract; the short answer of the reader is part of the sentence that it cites."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from autoais.base.text.folding import normalize_answer
from autoais.metrics.scoring import names_model
from rag.answer.generators.first_passage import FirstPassage
from rag.answer.generators.passage_reader import PassageReader
from rag.answer.llms import LANGUAGE_MODELS
from rag.answer.options import Options
from rag.answer.system import System, answer_or_abstain
from rag.answer.systems import SYSTEMS, list_systems, open_system
from rag.base.errors import RagError, UsageError
from rag.base.types import Answer, CitedSentence, Hit, Passage, Question
from rag.index.open import open_index
from rag.testing import ScriptedModel, check_system
from tests.conftest import Command, one_line_error

CURIE = "Marie Curie won the Nobel Prize in Physics in 1903. She shared it with her husband."


@pytest.mark.parametrize("name", ["extractive", "first-passage", "reader"])
def test_every_system_keeps_the_contract(name: str, shelf: Path) -> None:
    texts = ["What is the capital of Poland?", "When was Curie born?", "xyzzy", "東京"]
    system = open_system(name, open_index(shelf), k=5)
    check_system(system, [Question(str(n), text) for n, text in enumerate(texts)])
    assert answer_or_abstain(system, Question("q", "the")).reason


def test_the_baseline_quotes_the_first_passage_whole(shelf: Path) -> None:
    answer = open_system("first-passage", open_index(shelf), k=3).ask("What is the capital of Poland?")
    first = answer.hits[0].passage
    assert answer.text == first.text
    assert len(answer.sentences) > 1
    assert {citation.passage for one in answer.sentences for citation in one.citations} == {first.id}


def test_the_baseline_keeps_lines_and_numbers_of_lists() -> None:
    text = "It is simple:\n\n1. Open the door. Wait.\n\n2. Go in.\n\n    key --turn\n    key --pull"
    answer = FirstPassage().generate(Question("q", "How?"), [Hit(Passage("p", "Doors", text), 1.0)])
    assert answer.text == text.replace("\n\n", "\n")
    assert [one.text for one in answer.sentences] == [
        "It is simple:",
        "1. Open the door.",
        "Wait.",
        "2. Go in.",
        "    key --turn\n    key --pull",
    ]


LISTED = """Before you sail:

1. Check the rope at the cleat.
2. Fill the tank.

- Oil is in the locker.

    oil --level

Port | Fee

Hull | 12"""


def test_the_baseline_keeps_the_lines_of_lists_tables_and_code() -> None:
    passage = Passage("p", "Sailing", LISTED)
    answer = FirstPassage().generate(Question("q", "How do I set sail?"), [Hit(passage, 1.0)])
    assert answer.text.split("\n") == [line for line in LISTED.split("\n") if line]
    assert [one.text for one in answer.sentences if one.text[:1].isdigit()] == [
        "1. Check the rope at the cleat.", "2. Fill the tank.",
    ]  # fmt: skip
    assert str(answer).splitlines()[:2] == ["Before you sail: [1]", "1. Check the rope at the cleat [1]."]
    numbered = Passage("n", "Sailing", "1) Cast off.\n2) Row.")
    assert str(FirstPassage().generate(Question("q", "?"), [Hit(numbered, 1.0)])) == "1) Cast off [1].\n2) Row [1]."


def test_one_question_is_not_taken_for_a_list_of_letters(shelf: Path) -> None:
    system = open_system("extractive", open_index(shelf))
    with pytest.raises(
        UsageError,
        match=r"questions should be a list of strings or Questions, found one string; write \['Which river\?'\]",
    ):
        system.answer("Which river?")
    assert [answer.question.id for answer in system.answer(["Which river?", Question("x", "Poland?")])] == ["q1", "x"]
    first, second, third = system.answer(["Which river?", "?!", "Poland?"])  # one that cannot be searched ends nothing
    assert (first.abstained, second.abstained, third.abstained) == (False, True, False)
    assert second.reason


def test_a_system_of_ones_own_has_a_name_and_answers_one_question() -> None:
    class Echo(System):
        name = "echo"

        def respond(self, question: Question) -> Answer:
            sentence = CitedSentence(question.text, (), 0, len(question.text))
            return Answer(question, question.text, (sentence,), (), self.name)

    check_system(Echo(), [Question("1", "Who?"), Question("2", "Where?")], cites=False)
    assert list(Echo().stream("Who?")) == [Echo().ask("Who?")]


def test_a_system_says_what_it_searches_with(shelf: Path) -> None:
    index = open_index(shelf)
    assert open_system("reader", index, k=3, retriever="bm25").name.startswith("bm25.v1")
    assert "@3+quotes" in open_system("reader", index, k=3, retriever="bm25").name
    with pytest.raises(RagError, match="no system called 'reeder'; there are: reader, "):
        open_system("reeder", index)
    with pytest.raises(RagError, match="system 'extractive' takes no model, found 'foo'"):
        open_system("extractive:foo", index)
    assert all(kind.description and kind.requires for _, kind in SYSTEMS.items())


def test_a_language_model_of_ones_own_answers_with_checked_citations(
    shelf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LANGUAGE_MODELS, "_known", dict(LANGUAGE_MODELS._known))
    LANGUAGE_MODELS.register("mine", lambda model, **_: ScriptedModel("Warsaw is the capital of Poland [1]."))
    assert "mine" in list_systems()
    system = open_system("mine:x", open_index(shelf), k=3, retriever="bm25")
    assert ">check.v1(minilm@" in system.name
    assert system.ask("What is the capital of Poland?").sentences


def test_citations_of_a_language_model_are_moved_only_if_asked(shelf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LANGUAGE_MODELS, "_known", dict(LANGUAGE_MODELS._known))
    LANGUAGE_MODELS.register("mine", lambda model, **_: ScriptedModel("The weather in Peru was cold in 1700 [1]."))
    index = open_index(shelf)
    asked = "What is the capital of Poland?"
    checked, repaired = (
        open_system("mine:x", index, Options(repair=repair), k=3, retriever="bm25").ask(asked)
        for repair in (None, True)
    )
    assert [len(answer.citations) for answer in (checked, repaired)] == [1, 0]
    assert checked.trace["checked"][0]["verdict"] == "not_enough"
    assert "checked" not in repaired.trace
    assert ">repair.v2(" in repaired.system
    point = open_system("mine:x", index, Options(answer="point"), k=3, retriever="bm25").name
    assert ">check.v1(minilm@" in point
    assert names_model(point, "minilm")  # so that reports say that the judge is a part of the system
    assert "minilm" not in open_system("mine:x", index, Options(answer="quote"), k=3, retriever="bm25").name
    with pytest.raises(RagError, match="repair needs answer 'free' or 'point'"):
        open_system("mine:x", index, Options(answer="quote", repair=True), k=3, retriever="bm25")
    with pytest.raises(RagError, match="has no option 'repair'"):
        open_system("reader", index, Options(repair=True))


def test_words_of_sources_are_for_models_that_point_and_more_for_a_server(
    shelf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LANGUAGE_MODELS, "_known", dict(LANGUAGE_MODELS._known))
    LANGUAGE_MODELS.register("mine", lambda model, **_: ScriptedModel("x"))
    monkeypatch.setenv("OPENAI_BASE_URL", "http://localhost:9")
    index = open_index(shelf)
    for system, words, shown in (("mine:x", None, 150), ("openai:x", None, 400), ("openai:x", 90, 90)):
        options = Options(answer="point", words=words)
        assert f",{shown} words," in open_system(system, index, options, retriever="bm25").name
    with pytest.raises(RagError, match="words needs answer 'point' or 'quote'"):
        open_system("mine:x", index, Options(words=90), retriever="bm25")


def test_the_short_answer_stands_in_a_sentence_that_is_cited() -> None:
    passages = [
        Passage("a", "Warsaw", "Warsaw is the capital of Poland. It lies on the Vistula."),
        Passage("b", "", CURIE),
    ]
    hits = [Hit(passage, 2.0 - rank) for rank, passage in enumerate(passages)]
    answer = PassageReader().generate(Question("q", "When did Marie Curie win the Nobel Prize in Physics?"), hits)
    assert answer.short_answer == "1903"
    sentence = answer.sentences[0]
    assert sentence.text == "Marie Curie won the Nobel Prize in Physics in 1903."
    (citation,) = sentence.citations
    assert (citation.passage, citation.origin) == ("b", "copied")
    assert citation.quote == CURIE.partition(" She")[0]


def test_passages_that_agree_outvote_one_that_does_not() -> None:
    texts = [
        "The tower was built in 1889.",
        "The tower was built in 1889 for the fair.",
        "The tower was built in 1888.",
    ]
    hits = [Hit(Passage(str(n), "Tower", text), 1.0) for n, text in enumerate(texts)]
    asked = Question("q", "When was the tower built?")
    assert PassageReader().generate(asked, hits[::-1]).short_answer == "1889"
    assert PassageReader().generate(asked, []).abstained
    assert PassageReader().generate(asked, [Hit(Passage("e", "", ""), 1.0), Hit(Passage("d", "", "—"), 1.0)]).abstained


def test_any_scores_any_scripts_and_long_passages_are_read() -> None:
    texts = ["東京は日本の首都である。", "The capital is Warsaw. " * 300, "مرحبا", "1\n\n2 \x00 3"]
    hits = [Hit(Passage(str(n), "", text), -float(n)) for n, text in enumerate(texts)]
    answer = PassageReader().generate(Question("q", "What is the capital?"), hits)
    assert normalize_answer(answer.short_answer or "")
    assert {hit.passage for hit in answer.hits} == {hit.passage for hit in hits}
    assert [hit.score for hit in answer.hits] == sorted((hit.score for hit in answer.hits), reverse=True)


def test_an_abstention_says_what_is_closest_and_how_to_hear_the_answer_all_the_same(shelf: Path, rag: Command) -> None:
    asked = ("ask", "Who won the world cup in 1998?", "--index", shelf)
    result = rag(*asked)
    assert result.returncode == 1
    first, second, *_ = result.stdout.splitlines()
    assert first.startswith("The sources do not answer this question: none has '1998'. The closest passage, “")
    assert "0." not in result.stdout
    assert second == "Use --min-confidence 0 to always answer."
    answered = rag(*asked, "--min-confidence", "0")
    assert answered.returncode == 0
    assert "[1]." in answered.stdout
    one_line_error(rag(*asked, "--min-confidence", "2"), "between 0 and 1", "found 2")
    other = rag(*asked, "--min-confidence", "0.5", "--system", "extractive")
    one_line_error(other, "has no option 'min_confidence'; systems that have it: reader")


@dataclass(frozen=True)
class Ranked:
    """A retriever that finds the same passages for every query."""

    texts: tuple[str, ...]
    name = "ranked"

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        hits = [Hit(Passage(f"p#{n:02}", "", text), 1 - n / 1000) for n, text in enumerate(self.texts[:k])]
        return [hits for _ in queries]


def test_the_reader_reads_as_many_passages_as_it_retrieves(shelf: Path) -> None:
    fillers = tuple(f"The yard {n} is swept on Mondays." for n in range(19))
    ranked = Ranked((*fillers, "Ann Orr built the red shed in 1907."))
    index, question = open_index(shelf), "When did Ann Orr build the red shed?"
    answers = {k: open_system("reader", index, k=k, retriever=ranked).ask(question) for k in (1, 3, 16, 20, 30)}
    assert {k: len(answer.hits) for k, answer in answers.items()} == {1: 1, 3: 3, 16: 16, 20: 20, 30: 20}
    assert {k: answer.abstained for k, answer in answers.items()} == {1: True, 3: True, 16: True, 20: False, 30: False}
    assert answers[20].short_answer == "1907"
    assert "reader@" in answers[20].system
    assert "@20" in answers[20].system.partition("reader@")[2]


def test_a_k_that_changes_nothing_is_refused_with_what_works(shelf: Path, rag: Command) -> None:
    asked = ("ask", "What is the capital of Poland?", "--index", shelf, "--system")
    one_line_error(rag(*asked, "extractive", "--k", 11), "from the first 10 passages", "--k 11", "--system reader")
    one_line_error(rag(*asked, "first-passage", "-k", 3), "from the first 1 passage, so --k 3 changes nothing")
    assert rag(*asked, "first-passage", "-k", 1).returncode == 0
    assert len(json.loads(rag(*asked, "first-passage", "-k", 3, "--json").stdout)["passages"]) == 3
    with pytest.raises(RagError, match="'closed-book:openai:x' searches nothing, so k changes nothing"):
        open_system("closed-book:openai:x", open_index(shelf), k=5)
