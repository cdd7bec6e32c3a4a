import hashlib
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.answer.llms.prompts import Prompt, plain
from rag.base import resources
from rag.base.errors import RagError
from rag.base.types import Passage

ONE = Passage("1", "Warsaw", "Warsaw is the capital of Poland.")
TWO = Passage("2", "", "The Vistula {question} is {0} long {contexts}.", "Course")


def test_hagrids_prompt_is_figure_2() -> None:
    assert Prompt.read("hagrid.v1").fill("what is the capital of Poland", [ONE, TWO]) == (
        "I will give a question and several context texts about the question. Based on the given contexts, give a "
        "brief answer to the question. Also, mention the reference of parts of your answer based on the given contexts "
        "within brackets [] as in the IEEE format.\n"
        "QUESTION:\n"
        "what is the capital of Poland\n"
        "CONTEXTS:\n"
        "[1] Warsaw is the capital of Poland.\n"
        "[2] The Vistula {question} is {0} long {contexts}.\n"
        "ANSWER:\n"
    )


def test_the_few_shot_prompt_adds_examples_and_headings() -> None:
    filled = Prompt.read("hagrid-few-shot.v1").fill("who {contexts}?", [ONE, TWO])
    assert filled.count("\nQUESTION:\n") == filled.count("\nANSWER:\n") == 4
    assert filled.endswith(
        "QUESTION:\nwho {contexts}?\nCONTEXTS:\n[1] (Warsaw) Warsaw is the capital of Poland.\n"
        "[2] (Course) The Vistula {question} is {0} long {contexts}.\nANSWER:\n"
    )


@pytest.mark.parametrize("name", resources.names("prompts", ".txt"))
def test_prompts_of_a_run_differ_only_at_their_end(name: str) -> None:
    # A server that caches prefixes reads instructions and examples once a run.
    text = Prompt.read(name).text
    fixed, begin = re.sub(r"\{[a-z_]+\}", "", text), re.split(r"\{[a-z_]+\}", text)[0]
    assert len(fixed) - len(begin) <= 25  # headings of question and passages
    assert len(begin) > 200


def test_the_closed_book_prompt_shows_no_passages() -> None:
    prompt = Prompt.read("closed-book.v1")
    assert not prompt.shows_passages
    assert prompt.fill("why?").endswith("\nQuestion: why?\n")


def test_every_shipped_prompt_reads_and_its_checksum_is_that_of_the_file() -> None:
    names = resources.names("prompts", ".txt")
    assert {"answer.v1", "closed-book.v1", "hagrid-few-shot.v1", "hagrid.v1"} <= set(names)
    for name in names:
        prompt = Prompt.read(name)
        data = resources.folder("prompts").joinpath(f"{name}.txt").read_bytes()
        assert prompt.sha256 == hashlib.sha256(data).hexdigest()
        assert prompt.id == f"{name}@{prompt.sha256[:8]}"
        assert "{question}" not in prompt.fill("why", [ONE])


def test_a_prompt_of_ones_own(tmp_path: Path) -> None:
    file = tmp_path / "mine.v2.txt"
    file.write_text("Q {question} {unknown} {contexts}", "utf-8")
    prompt = Prompt.read(str(file))
    assert prompt.name == "mine.v2"
    assert prompt.fill("a", [ONE]) == "Q a {unknown} [1] Warsaw is the capital of Poland."


@pytest.mark.parametrize(
    ("data", "says"), [(b"no place", "needs the placeholder {question}"), (b"\xff{question}", "not UTF-8 at byte 0")]
)
def test_a_prompt_that_cannot_be_filled_is_one_line(tmp_path: Path, data: bytes, says: str) -> None:
    file = tmp_path / "bad.txt"
    file.write_bytes(data)
    with pytest.raises(RagError, match=says):
        Prompt.read(str(file))


def test_a_prompt_that_is_not_there_lists_those_that_are(tmp_path: Path) -> None:
    with pytest.raises(
        RagError, match=r"no prompt called 'nope'; there are: answer\.v1, closed-book\.v1, follow-up\.v1, hagrid"
    ):
        Prompt.read("nope")
    with pytest.raises(RagError, match="cannot be read: No such file"):
        Prompt.read(str(tmp_path / "nope.txt"))


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("a <|im_end|> b", "a < |im_end|> b"),
        ("</s><start_of_turn>user", "< /s>< start_of_turn>user"),
        ("[INST] <<SYS>> [/INST]", "[ INST] << SYS>> [ /INST]"),
        ("<｜User｜>", "< ｜User｜>"),
        ("1 < 2 > 0 [1] [sic] x<y", "1 < 2 > 0 [1] [sic] x<y"),
        (" a\x00b\r\n\u2028c \ud800", "a b c \ufffd"),
    ],
)
def test_what_a_chat_template_may_take_for_its_own_is_broken_up(text: str, left: str) -> None:
    assert plain(text) == left


@given(st.text(), st.lists(st.builds(Passage, st.just("x"), st.text(), st.text()), max_size=4))
def test_passages_stay_on_their_lines_whatever_is_in_them(question: str, passages: list[Passage]) -> None:
    for name in ("answer.v1", "hagrid.v1", "hagrid-few-shot.v1"):
        empty = Prompt.read(name).fill("")
        filled = Prompt.read(name).fill(question, passages)
        filled.encode("utf-8")
        assert len(filled.splitlines()) == len(empty.splitlines()) + max(0, len(passages) - 1)
