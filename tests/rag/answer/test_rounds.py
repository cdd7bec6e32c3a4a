"""Further searches that a language model asks for: two facts, one question; what it writes is hostile."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rag.answer.rounds
from rag.answer.generators.cited import CitedGenerator
from rag.answer.generators.passage_reader import PassageReader
from rag.answer.generators.pointing import Quote
from rag.answer.llms import LANGUAGE_MODELS, ModelError
from rag.answer.llms.prompts import Prompt
from rag.answer.options import Options
from rag.answer.rounds import MAX_QUERY_LENGTH, Rounds, merge_hits, read_query
from rag.answer.specs import SystemSpec
from rag.answer.system import RetrieveThenRead
from rag.answer.systems import open_system
from rag.base.errors import QuestionError, RagError, UsageError
from rag.base.types import Answer, Hit, Passage, Question
from rag.documents.corpus import Corpus
from rag.index.build import build
from rag.index.index import Index
from rag.index.open import open_index
from rag.retrieval import open_retriever
from rag.testing import ScriptedModel, check_system
from tests.conftest import Command, one_line_error, write_corpus

QUESTION = "When was the founder of the Aller mill born?"
BORN = "Ann Orr was born in 1802."
READER = PassageReader()
ROWS = [
    ("mill", "The Aller mill", "The Aller mill grinds oats and rye. Ann Orr built it as its owner."),
    ("orr", "Ann Orr", f"{BORN} She learned from her uncle."),
    ("ferry", "The ferry", "The ferry crosses the lake every hour. Bicycles travel free."),
    *((f"mill{n}", "Founder", f"The founder of mill {n} was born in a valley. Mill {n} is closed.") for n in range(4)),
]


@pytest.fixture
def index(tmp_path: Path) -> Index:
    """An index where no one search finds both the mill and its founder among the first two hits."""
    build(Corpus([write_corpus(tmp_path / "two.jsonl", ROWS)]), tmp_path / "two.index")
    return open_index(tmp_path / "two.index")


def ask_for(query: str) -> str:
    return json.dumps({"query": query})


def quote(*sources: int) -> str:
    return json.dumps({"answerable": True, "sources": sources, "short_answer": "1802"})


def quoting(index: Index, *says: str | ModelError, rounds: int = 2, k: int = 2, **options: Any) -> RetrieveThenRead:  # noqa: ANN401
    model = ScriptedModel(*says, **options)
    generator = Quote(model, Prompt.read("quote.v1"), READER)
    return RetrieveThenRead(
        open_retriever("bm25", index), generator, k, Rounds(model, READER, rounds=rounds, words=150)
    )


def prompts(system: RetrieveThenRead) -> list[str]:
    model = system.generator._model  # type: ignore[attr-defined]
    asked: list[str] = model.asked
    return asked


def searches(answer: Answer) -> list[tuple[str, list[str]]]:
    return [(search["query"], search["new"]) for search in answer.trace["searches"]["queries"]]


def test_a_second_search_finds_the_second_fact(index: Index) -> None:
    alone = RetrieveThenRead(
        open_retriever("bm25", index), Quote(ScriptedModel(quote(1)), Prompt.read("quote.v1"), READER), 2
    )
    assert "orr" not in [hit.passage.id for hit in alone.ask(QUESTION).hits]
    answer = quoting(index, ask_for("When was Ann Orr born?"), quote(1)).ask(QUESTION)
    assert answer.text == BORN
    assert answer.short_answer == "1802"
    assert [citation.passage for citation in answer.citations] == ["orr"]
    assert searches(answer) == [("When was Ann Orr born?", ["orr"])]
    assert answer.trace["searches"]["stopped"] == "all 2 rounds are used"


def test_without_a_query_the_first_search_is_all(index: Index) -> None:
    answer = quoting(index, ask_for(""), quote(1)).ask(QUESTION)
    assert len(answer.hits) == 2
    assert answer.trace["searches"] == {"queries": [], "stopped": "the model asks for nothing more"}


def test_the_model_is_shown_what_the_reader_finds_best_and_its_tokens_count(index: Index) -> None:
    system = quoting(index, ask_for("When was Ann Orr born?"), ask_for(""), quote(1), rounds=3)
    answer = system.ask(QUESTION)
    first, second, last = prompts(system)
    assert "Ann Orr built it as its owner." in first
    assert BORN not in first
    assert BORN in second
    assert answer.trace["tokens"]["read"] == sum(len(prompt.split()) for prompt in (first, second, last))


def test_the_reader_abstains_only_if_no_search_found_an_answer(tmp_path: Path) -> None:
    question = "In which village did the captain of the Senn ferry grow up?"
    ferry = "The Senn ferry crosses the lake every hour. Its captain is Jonas Bell, who took over in spring."
    rows = [
        ("ferry", "The Senn ferry", ferry),
        ("bell", "Jonas Bell", "Jonas Bell grew up in Tarn and went to sea at sixteen. He keeps bees."),
        ("school", "", "The captain of each team in the village hands in a list. Ferry trips are on the plan."),
    ]
    build(Corpus([write_corpus(tmp_path / "ferry.jsonl", rows)]), tmp_path / "ferry.index")
    index = open_index(tmp_path / "ferry.index")
    shy = quoting(index, ask_for(""), quote(1))
    assert "do not seem to answer" in (shy.ask(question).reason or "")
    assert len(prompts(shy)) == 1  # only what to search for
    answer = quoting(index, ask_for("Where did Jonas Bell grow up?"), quote(1)).ask(question)
    assert answer.text == "Jonas Bell grew up in Tarn and went to sea at sixteen."


@pytest.mark.parametrize("queries", [["Orr"], ["Orr", "ferry"], ["When was Ann Orr born?", "mill 3"]])
def test_a_further_search_never_lowers_the_estimates_of_the_reader(queries: list[str]) -> None:
    question, hits = Question("q", QUESTION), SHELVES[:3]
    before = READER.read(question, hits)
    for query in queries:
        hits = merge_hits(hits, query, SHELVES[1:])
    after = READER.read(question, hits)
    assert after.signals["relevance"] >= before.signals["relevance"]
    assert after.signals["agreement"] >= before.signals["agreement"]
    assert {hit.passage.id for hit in after.hits} == {hit.passage.id for hit in hits}


def test_a_model_that_writes_freely_sees_the_hits_of_all_searches(index: Index) -> None:
    model = ScriptedModel(ask_for("When was Ann Orr born?"), "She was born in 1802 [3].")
    system = RetrieveThenRead(
        open_retriever("bm25", index),
        CitedGenerator(model, Prompt.read("hagrid.v1")),
        2,
        Rounds(model, READER, rounds=2, words=150),
    )
    answer = system.ask(QUESTION)
    assert answer.trace["shown"][2] == "orr"
    assert [citation.quote for citation in answer.citations] == [BORN]


class ByPrompt(ScriptedModel):
    """Replies to a prompt as often as it is asked, streamed or not."""

    def _write(self, *arguments: Any) -> Any:  # noqa: ANN401
        (message, *_), *_ = arguments
        self.says = [ask_for("When was Ann Orr born?") if "what to search" in message.content else quote(1)]
        return super()._write(*arguments)


def test_a_system_with_rounds_keeps_the_contract_and_streams(index: Index) -> None:
    model = ByPrompt("")
    generator = Quote(model, Prompt.read("quote.v1"), READER)
    rounds = Rounds(model, READER, rounds=2, words=150)
    system = RetrieveThenRead(open_retriever("bm25", index), generator, 2, rounds)
    assert system.streams
    check_system(system, [Question("1", QUESTION), Question("2", "Where does the ferry go?")])
    *partials, last = system.stream(QUESTION)
    assert partials
    assert last.text == BORN
    assert last.trace["searches"]["queries"]


def test_another_retriever_is_searched_in_all_rounds(index: Index, shelf: Path) -> None:
    from dataclasses import replace

    system = quoting(index, ask_for("capital of Poland"), quote(1))
    other = replace(system, retriever=open_retriever("bm25", open_index(shelf)))
    answer = other.ask("Where was Marie Curie born?")
    assert "b#1" in answer.trace["searches"]["queries"][0]["new"]


@pytest.mark.parametrize(
    ("says", "stopped", "queries"),
    [
        ("no idea", "the model's reply has no query", []),
        ('{"query": 5}', "the model's reply has no query", []),
        (ask_for(" ?! "), "the model asks for nothing more", []),
        (ask_for("the"), "the query cannot be searched for: nothing to search for", [("the", [])]),
        (ask_for(QUESTION.upper()), "the model repeats a query", [(QUESTION.upper(), [])]),
        (ask_for("Aller mill founder"), "the query finds nothing new", [("Aller mill founder", [])]),
        (ModelError("it broke off"), "the model failed: it broke off", []),
    ],
)
def test_rounds_end_and_the_question_is_answered(
    index: Index, says: str | ModelError, stopped: str, queries: list[tuple[str, list[str]]]
) -> None:
    answer = quoting(index, says, quote(1), rounds=5).ask(QUESTION)
    assert answer.trace["searches"]["stopped"].startswith(stopped)
    assert searches(answer) == queries
    assert answer.sentences


def test_a_query_is_not_searched_twice_in_another_case(index: Index) -> None:
    answer = quoting(index, ask_for("Orr born"), ask_for("ORR  Born"), quote(1), rounds=5).ask(QUESTION)
    assert searches(answer) == [("Orr born", ["orr"]), ("ORR Born", [])]
    assert answer.trace["searches"]["stopped"] == "the model repeats a query"


def test_time_and_tokens_are_limited(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rag.answer.rounds, "MAX_TOKENS", 600)
    answer = quoting(index, ask_for("Orr"), ask_for("ferry"), quote(1), rounds=5).ask(QUESTION)
    assert answer.trace["searches"]["stopped"] == "the 600 tokens for searches are used up"
    assert len(searches(answer)) == 2
    assert answer.sentences
    monkeypatch.setattr(rag.answer.rounds, "MAX_SECONDS", 0)
    answer = quoting(index, quote(1)).ask(QUESTION)
    assert answer.trace["searches"] == {"queries": [], "stopped": "the 0 seconds for searches are over"}
    assert answer.sentences


def test_a_silent_model_is_left_when_the_time_is_over(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    class Silent(ScriptedModel):
        def stream(self, *_: Any, **__: Any) -> Any:  # noqa: ANN401
            while True:
                yield ""

    monkeypatch.setattr(rag.answer.rounds, "MAX_SECONDS", 0.05)
    rounds = Rounds(Silent(""), READER, rounds=2, words=150)
    found = rounds.search_further(Question("q", QUESTION), [], lambda _: [])
    assert found.stopped == "the 0.05 seconds for searches are over"


def test_a_small_context_shows_less_or_ends_the_rounds(index: Index) -> None:
    hits = open_retriever("bm25", index).search([QUESTION], 5)[0]
    empty = len(Prompt.read("search.v1").text.split())
    for context, room in ((empty + 100, True), (empty, False)):
        model = ScriptedModel(ask_for(""), context=context)
        found = Rounds(model, READER, rounds=2, words=150).search_further(Question("q", QUESTION), hits, lambda _: [])
        assert found.stopped == ("the model asks for nothing more" if room else NO_ROOM)
        assert len(model.asked) == room


NO_ROOM = "the question leaves no room for a search in the context"


def test_an_error_that_a_person_must_mend_is_raised(index: Index) -> None:
    class Locked(ScriptedModel):
        def stream(self, *_: Any, **__: Any) -> Any:  # noqa: ANN401
            raise RagError("the server wants a key")

    with pytest.raises(RagError, match="wants a key"):
        Rounds(Locked(""), READER, rounds=2, words=150).search_further(Question("q", QUESTION), [], lambda _: [])


# --- hostile queries --------------------------------------------------------------------------------------------------

HOSTILE = st.one_of(
    st.text(max_size=400),
    st.text(st.sampled_from('{}[]"\\\x00\n\ud800é東<|im_end|> AND OR *:/()'), max_size=300),
)
REPLIES = st.one_of(
    HOSTILE,
    HOSTILE.map(ask_for),
    HOSTILE.map(lambda text: json.dumps({"query": text}, ensure_ascii=False)),
    HOSTILE.map(lambda text: f'<think>{{"query": "x"}}</think>```json\n{ask_for(text)}\n```'),
    st.integers(1, 3000).map(lambda depth: '{"query": ' * depth),
)


@given(REPLIES)
def test_a_query_is_one_short_plain_line(reply: str) -> None:
    query = read_query(reply)
    if query:
        assert len(query) <= MAX_QUERY_LENGTH
        assert query == " ".join(query.split())
        assert query.isprintable() or not any(ord(character) < 32 for character in query)
        assert "<|im_end|>" not in query
        query.encode("utf-8")


def test_what_surrounds_a_query_is_not_read() -> None:
    assert read_query('<think>{"query": "a"}</think>Sure! {"x": 1} {"query": " b\\n<|im_end|>c "} {"query": "d"}') == (
        "b < |im_end|>c"
    )
    assert len(read_query(ask_for("word " * 100)) or "") <= MAX_QUERY_LENGTH


SHELVES = [Hit(Passage(key, title, text), 5.0 - rank) for rank, (key, title, text) in enumerate(ROWS)]


@settings(max_examples=20)  # each reads passages with the network
@given(st.lists(REPLIES, min_size=1, max_size=4))
def test_no_query_breaks_the_rounds_or_doubles_a_hit(replies: list[str]) -> None:
    def search(query: str) -> Sequence[Hit]:
        query.encode("utf-8")
        if not query[:1].isalpha():
            raise QuestionError("nothing to search for")
        start = len(query) % len(SHELVES)
        return SHELVES[start : start + 3]

    hits = SHELVES[:2]
    rounds = Rounds(ScriptedModel(*replies), READER, rounds=5, words=150)
    found = rounds.search_further(Question("q", QUESTION), hits, search)
    ids = [hit.passage.id for hit in found.hits]
    assert ids[:2] == ["mill", "orr"]
    assert len(set(ids)) == len(ids)
    assert [hit.score for hit in found.hits] == sorted((hit.score for hit in found.hits), reverse=True)
    assert found.stopped
    assert len(found.queries) <= 4
    json.dumps(found.add_to({}), ensure_ascii=False).encode("utf-8")


def test_a_hit_remembers_the_queries_that_found_it() -> None:
    mill, orr, ferry = SHELVES[:3]
    merged = merge_hits([mill, orr], "Orr", [orr, ferry])
    assert merged == [
        mill,
        Hit(orr.passage, 4.0, (("Orr", 4.0),)),
        Hit(ferry.passage, 3.0 - 1.0 + 1.0, (("Orr", 3.0),)),
    ]
    assert [hit.passage.id for hit in merge_hits([], "Orr", [orr])] == ["orr"]


# --- the option -------------------------------------------------------------------------------------------------------


def test_one_round_is_no_option_at_all(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LANGUAGE_MODELS, "_known", dict(LANGUAGE_MODELS._known))
    LANGUAGE_MODELS.register("mine", lambda model, **_: ScriptedModel(quote(1)))
    systems = [
        open_system("mine:x", index, Options(answer="quote", rounds=rounds), k=2, retriever="bm25")
        for rounds in (None, 1, 2)
    ]
    plain, one, two = (system.name for system in systems)
    assert plain == one
    assert "rounds" not in plain
    assert "+rounds.v1(2,script,search.v1@" in two
    assert "300 words" in two  # as many for each round
    assert "searches" not in systems[0].ask("Where does the ferry go?").trace
    assert "searches" in systems[2].ask("Where does the ferry go?").trace
    free = open_system("mine:x", index, Options(rounds=2), k=2, retriever="bm25").name
    assert "+rounds.v1(2," in free
    with pytest.raises(RagError, match="'reader' has no option 'rounds'; systems that have it: openai, gguf, hf"):
        open_system("reader", index, Options(rounds=2))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rounds": 6}, "rounds should be between 1 and 5, found 6"),
        ({"rounds": 0}, "rounds should be between 1 and 5, found 0"),
        ({"words": 19}, "words should be at least 20, found 19"),
        ({"answer": "sing"}, "answer should be one of free, point, quote, found 'sing'"),
    ],
)
def test_a_value_out_of_its_range_is_one_line(index: Index, options: dict[str, Any], message: str) -> None:
    with pytest.raises(RagError, match=f"^{message}$"):
        open_system("gguf:none.gguf", index, Options(**options))
    spec = ",".join(["gguf:none.gguf", *(f"{name}={value}" for name, value in options.items())])
    with pytest.raises(RagError, match=f"^system '{spec}': {message}$"):
        SystemSpec.parse(spec)


@pytest.mark.parametrize("value", ["2", 2.0, True])
def test_a_number_of_rounds_is_an_int(index: Index, value: Any) -> None:  # noqa: ANN401
    with pytest.raises(UsageError, match="rounds should be an int"):
        open_system("gguf:none.gguf", index, Options(rounds=value))


def test_the_command_line_checks_rounds_too(rag: Command, tmp_path: Path) -> None:
    done = rag("ask", QUESTION, "--system", "gguf:none.gguf", "--rounds", "6")
    assert done.returncode == 2
    assert "--rounds" in done.stderr
    one_line_error(rag("ask", QUESTION, "--server", "http://127.0.0.1:1", "--rounds", "2"), "--rounds and --server")
    one_line_error(rag("ask", QUESTION, "--rounds", "2"), "'reader' has no option 'rounds'")
