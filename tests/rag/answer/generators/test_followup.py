"""A follow-up question and its history become a question that stands by itself."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.answer.generators.follow_up import find_names, make_standalone, read_history
from rag.answer.llms import ModelError
from rag.base.errors import FormatError
from rag.base.types import Turn
from rag.testing import ScriptedModel
from tests.conftest import Command, one_line_error

DUNE = [Turn("Who wrote Dune?", "Frank Herbert wrote Dune.")]
PARIS = [Turn("What is the capital of France?", "Paris")]
CURIE = [Turn("When was Marie Curie born?", "1867")]
TOWER = [Turn("when was the eiffel tower built", "The Eiffel Tower was built in 1889.")]
CUP = [Turn("who won the world cup in 1986", "Argentina won the 1986 World Cup.")]


@pytest.mark.parametrize(
    ("history", "question", "alone"),
    [
        (DUNE, "When was he born?", "When was Frank Herbert born?"),
        (DUNE, "When was it published?", "When was Dune published?"),
        (DUNE, "What about his wife?", "What about Frank Herbert's wife?"),
        (DUNE, "and when did he die?", "when did Frank Herbert die?"),
        (DUNE, "Why?", "Why (Who wrote Dune)?"),
        (PARIS, "How many people live there?", "How many people live in Paris?"),
        (PARIS, "how big is it", "how big is Paris"),
        (PARIS, "What about Germany?", "What is the capital of Germany?"),
        (PARIS, "And Germany?", "What is the capital of Germany?"),
        (CUP, "and in 1990?", "who won the world cup in 1990?"),
        ([Turn("who won the world cup", "France")], "and in 1990?", "who won the world cup in 1990?"),
        (CUP, "who was their captain", "who was Argentina's captain"),
        (CURIE, "where did she die?", "where did Marie Curie die?"),
        (CURIE, "and her husband?", "When was Marie Curie's husband born?"),
        (CURIE, "who married her", "who married Marie Curie"),
        (TOWER, "how tall is it?", "how tall is the eiffel tower?"),
        ([Turn("how tall is the eiffel tower", "300 m")], "who designed it", "who designed eiffel tower"),
        ([Turn("where was frank herbert born", "Tacoma")], "when did he die", "when did frank herbert die"),
    ],
)
def test_what_was_left_out_is_put_in(history: list[Turn], question: str, alone: str) -> None:
    assert make_standalone(question, history) == alone


@pytest.mark.parametrize(
    ("before", "answer", "question", "alone"),
    [
        ("What is HAGRID?", "It is a set. English questions are from MIRACL.", "Who made it?", "Who made HAGRID?"),
        ("What is a closed pool?", "A sample of English Wikipedia.", "Why is it used?", "Why is a closed pool used?"),
        (
            "What is the parameter k1?",
            "Common values are 1.2.",
            "What is its default?",
            "What is the parameter k1's default?",
        ),
        ("How is an index built?", "See How to build.", "Can it be moved?", "Can an index be moved?"),
        ("What is the warranty of the pump?", "two years", "Does it end?", "Does the warranty of the pump end?"),
        ("What is the default port of the server?", "8000", "Is it open?", "Is the default port of the server open?"),
        ("which port does the server listen on", "8000", "can it be changed", "can the port be changed"),
        ("What are hooks?", "Hooks are scripts.", "Where are they stored?", "Where are hooks stored?"),
        ("Where is the log file stored?", "In /var.", "Is it rotated?", "Is the log file rotated?"),
        ("How does pruning work?", "It removes.", "Can it be undone?", "Can pruning be undone?"),
        ("What is used to build an index?", "Tantivy", "Is it fast?", "Is Tantivy fast?"),
        ("Which river flows through Vienna?", "The Danube.", "How long is it?", "How long is Danube?"),
        ("Why is the sky blue?", "Light is scattered.", "When is it red?", "When is sky blue red?"),
    ],
)
def test_it_is_what_the_last_question_was_about(before: str, answer: str, question: str, alone: str) -> None:
    assert make_standalone(question, [Turn(before, answer)]) == alone


@pytest.mark.parametrize(
    "question",
    [
        "Who directed the film Alien?",
        "When did Barack Obama marry his wife?",
        "Is there a river?",
        "how many people live in Norway",
        "",
    ],
)
def test_a_question_that_stands_by_itself_stays(question: str) -> None:
    assert make_standalone(question, DUNE) == question
    assert make_standalone(question, []) == question


def test_earlier_turns_are_follow_ups_too() -> None:
    history = [*CURIE, Turn("where did she die?", "She died in Passy.")]
    assert make_standalone("what was she famous for?", history) == "what was Marie Curie famous for?"
    assert make_standalone("who is buried there?", history) == "who is buried in Passy?"


def test_turns_do_not_multiply_each_other() -> None:
    asked = ["What is the old mill?", *[f"What is {'it-' * 500}it?"] * 4]
    alone = make_standalone("What is it?", [Turn(question, "It is red.") for question in asked])
    assert len(alone) < 1_000


def test_names_are_told_by_their_capitals() -> None:
    assert find_names("Who wrote The Lord of the Rings?") == ["The Lord of the Rings"]
    assert find_names("Did Marie Curie's husband live in Paris?") == ["Marie Curie", "Paris"]
    assert find_names("who wrote dune") == []


def test_a_model_is_asked_where_there_is_one_and_held_to_the_words_that_were_said() -> None:
    says = ScriptedModel("Question: When was Frank Herbert born?")
    assert make_standalone("When was he born?", DUNE, says) == "When was Frank Herbert born?"
    assert "Answer: Frank Herbert wrote Dune.\n" in says.asked[0]
    by_rules = "When was Frank Herbert born?"
    for reply in ("", "Question: When was Brian Herbert born?", "Question: is it?", ModelError("gone")):
        assert make_standalone("When was he born?", DUNE, ScriptedModel(reply)) == by_rules


_SAID = st.one_of(st.text(max_size=60), st.lists(st.sampled_from("He it and what about Marie Curie 1990 ? there there is".split()), max_size=8).map(" ".join))  # fmt: skip  # noqa: E501


@given(_SAID, st.lists(st.builds(Turn, _SAID, _SAID), max_size=4))
def test_any_words_give_a_question(question: str, history: list[Turn]) -> None:
    alone = make_standalone(question, history)
    assert alone == make_standalone(question, history)
    assert bool(alone.strip()) >= bool(question.strip())


def test_ask_says_what_it_searched_for(rag: Command, shelf: Path, tmp_path: Path) -> None:
    history = tmp_path / "h.jsonl"
    turns = [{"question": "Who won the Nobel Prize in Physics in 1903?", "answer": "Marie Curie"}]
    history.write_text("".join(json.dumps(turn) + "\n" for turn in turns))
    options = ("--index", shelf, "--system", "extractive", "--history", history)
    result = rag("ask", "And when was she born?", *options)
    assert result.returncode == 0, result.stderr
    assert result.stderr == "searched for: when was Marie Curie born?\n"
    assert "1867" in result.stdout


def test_a_broken_history_is_one_line(rag: Command, shelf: Path, tmp_path: Path) -> None:
    history = tmp_path / "h.jsonl"
    history.write_text('{"question": "Who?", "answer": "x"}\n{"question": "Who?"}\n')
    one_line_error(rag("ask", "river?", "--index", shelf, "--history", history), "h.jsonl:2", "'answer' is missing")
    one_line_error(rag("ask", "river?", "--index", shelf, "--history", tmp_path / "no"), "cannot be read")
    history.write_text('{"question": " ", "answer": "x"}\n')
    with pytest.raises(FormatError, match="'question' is empty"):
        read_history(history)
