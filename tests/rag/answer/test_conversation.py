"""Questions that follow up on one another, asked of one system: by a program, and at the prompt of `rag ask`."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rag.answer.conversation import Conversation
from rag.answer.llms import LANGUAGE_MODELS, LanguageModel
from rag.answer.system import System
from rag.base import config
from rag.base.errors import QuestionError, RagError, UsageError, UserError
from rag.base.types import Answer, CitedSentence, Question, Turn
from rag.commands.display import converse
from rag.testing import ScriptedModel

ROOT = Path(__file__).parents[3]
CURIE = Turn("When was Marie Curie born?", "1867")


class Told(System):
    """Says back what it is asked, with a short answer; it keeps the questions, and refuses some."""

    name = "told"

    def __init__(self, short: str | None = None) -> None:
        self.asked: list[str] = []
        self.short = short

    def respond(self, question: Question) -> Answer:
        text = question.text
        self.asked.append(text)
        if text == "the?":
            raise QuestionError("nothing to search for in 'the?'")
        if text == "Down?":
            raise RagError("http://host: cannot be reached")
        if text == "Unknown?":
            return Answer(question, "", (), (), self.name, abstained=True, reason="nobody knows")
        sentence = CitedSentence(text, (), 0, len(text))
        return Answer(question, text, (sentence,), (), self.name, short_answer=self.short)


def test_a_follow_up_is_asked_as_it_can_be_understood_and_turns_are_kept() -> None:
    system = Told("1867")
    conversation = Conversation(system)
    assert conversation.ask("When was Marie Curie born?").short_answer == "1867"
    conversation.ask("Where did she die?")
    assert system.asked == ["When was Marie Curie born?", "Where did Marie Curie die?"]
    assert conversation.turns == [CURIE, Turn("Where did she die?", "1867")]


def test_questions_have_ids_of_their_own_and_wrong_calls_are_told() -> None:
    conversation = Conversation(Told("1867"), [CURIE])
    assert [conversation.ask(text).question.id for text in ("Unknown?", "Who?")] == ["q2", "q3"]
    (streamed,) = conversation.stream("Where?")
    assert streamed.question.id == "q4"
    untyped: Any = conversation
    for call in (untyped.ask, untyped.make_standalone, lambda question: list(untyped.stream(question))):
        with pytest.raises(UsageError, match="question should be a string, found NoneType"):
            call(None)
    wrong: Any = ("a", "b")
    with pytest.raises(UsageError, match="turn should be a Turn"):
        Conversation(Told(), [wrong])


def test_without_a_short_answer_the_text_is_what_was_answered() -> None:
    conversation = Conversation(Told())
    conversation.ask("Who wrote Dune?")
    assert conversation.turns == [Turn("Who wrote Dune?", "Who wrote Dune?")]


def test_what_was_not_answered_leaves_no_turn() -> None:
    conversation = Conversation(Told(), [CURIE])
    assert conversation.ask("Unknown?").abstained
    with pytest.raises(QuestionError):
        conversation.ask("the?")
    assert conversation.turns == [CURIE]


def test_earlier_turns_are_read_and_not_changed() -> None:
    earlier = [CURIE]
    system = Told()
    Conversation(system, earlier).ask("Where did she die?")
    assert system.asked == ["Where did Marie Curie die?"]
    assert earlier == [CURIE]


def test_a_stream_is_kept_too() -> None:
    conversation = Conversation(Told("Paris"), [CURIE])
    (answer,) = conversation.stream("Where did she die?")
    assert str(answer) == "Where did Marie Curie die?"
    assert conversation.turns == [CURIE, Turn("Where did she die?", "Paris")]


def test_a_model_is_opened_once_and_only_when_there_is_something_to_follow_up_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    opened: list[str] = []

    def scripted(model: str, *, context: int, temperature: float, seed: int) -> LanguageModel:
        opened.append(model)
        return ScriptedModel("Question: What was Marie Curie's place of death?")

    monkeypatch.setattr(LANGUAGE_MODELS, "_known", {})
    LANGUAGE_MODELS.register("scripted", scripted)
    system = Told()
    conversation = Conversation(system, model="scripted:x")
    conversation.ask("When was Marie Curie born?")
    assert opened == []
    conversation.ask("and the place of death?")
    conversation.ask("and the place of death?")
    assert opened == ["x"]
    assert system.asked[1:] == ["What was Marie Curie's place of death?"] * 2
    with pytest.raises(UserError, match="no language model called 'nope:x'"):
        Conversation(system, [CURIE], "nope:x").ask("Where did she die?")


# --- at a terminal ---------------------------------------------------------------------------------------------


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., None]:
    """Types lines at the prompt, then Ctrl-D or what is given in its place; the history is the test's own."""
    pytest.importorskip("readline")
    monkeypatch.setattr(config, "state_folder", lambda: tmp_path / "state")

    def put(*lines: str, end: type[BaseException] = EOFError) -> None:
        waiting = iter(lines)

        def answer(_: str) -> str:
            try:
                return next(waiting)
            except StopIteration:
                raise end from None

        monkeypatch.setattr("builtins.input", answer)

    return put


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("end", [EOFError, KeyboardInterrupt])
def test_the_prompt_answers_until_it_is_left(
    typed: Callable[..., None],
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    stream: bool,
    end: type[BaseException],
) -> None:
    typed("When was Marie Curie born?", "  ", "the?", "Where did she die?", end=end)
    system = Told("1867")
    converse(Conversation(system), stream=stream)
    said = capsys.readouterr()
    assert system.asked == ["When was Marie Curie born?", "the?", "Where did Marie Curie die?"]
    assert "Where did Marie Curie die?" in said.out
    lines = said.err.splitlines()
    assert lines[0] == "Ask a question. help says more; quit or Ctrl-D leaves."
    assert "nothing to search for in 'the?'" in lines  # which does not end the conversation
    assert "searched for: Where did Marie Curie die?" in lines
    assert (tmp_path / "state" / "history").exists()


@pytest.mark.parametrize("word", ["quit", "exit", " Quit "])
def test_help_and_a_word_to_leave_are_no_questions(
    typed: Callable[..., None], capsys: pytest.CaptureFixture[str], word: str
) -> None:
    typed("help", "How do I quit?", word, "Who wrote Dune?")
    system = Told()
    converse(Conversation(system))
    assert system.asked == ["How do I quit?"]
    told = capsys.readouterr()
    assert "quit, exit or Ctrl-D leaves" in told.err
    assert "leaves" not in told.out


def test_a_question_that_fails_is_told_and_the_prompt_goes_on(
    typed: Callable[..., None], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    typed("Down?", "Who wrote Dune?", "and when?")
    system = Told()
    converse(Conversation(system, model="nope:x"))
    assert system.asked == ["Down?", "Who wrote Dune?"]
    said = capsys.readouterr()
    assert "Who wrote Dune?" in said.out
    assert "http://host: cannot be reached" in said.err.splitlines()
    assert "no language model called 'nope:x'" in said.err
    assert (tmp_path / "state" / "history").exists()


def test_what_was_typed_is_kept_though_an_answer_is_interrupted(typed: Callable[..., None], tmp_path: Path) -> None:
    class Stopped(Told):
        def respond(self, question: Question) -> Answer:
            raise KeyboardInterrupt

    typed("Who wrote Dune?")
    with pytest.raises(KeyboardInterrupt):
        converse(Conversation(Stopped()))
    assert (tmp_path / "state" / "history").exists()


def test_two_prompts_keep_the_history_of_both(
    typed: Callable[..., None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    readline = pytest.importorskip("readline")
    readline.clear_history()
    history = tmp_path / "state" / "history"
    history.parent.mkdir()
    history.write_text("earlier\n")

    def another(_: str) -> str:
        readline.add_history("mine")
        history.write_text(history.read_text() + "theirs\n")
        raise EOFError

    typed()
    monkeypatch.setattr("builtins.input", another)
    converse(Conversation(Told()))
    lines = [line for line in history.read_text().splitlines() if not line.startswith("_HiStOrY")]  # libedit's mark
    assert lines == ["earlier", "theirs", "mine"]
    readline.clear_history()


def test_a_folder_that_cannot_be_written_keeps_no_history_and_is_no_error(
    typed: Callable[..., None], tmp_path: Path
) -> None:
    (tmp_path / "state").write_text("a file")
    typed("When was Marie Curie born?")
    converse(Conversation(Told()))
    assert (tmp_path / "state").read_text() == "a file"


def test_rag_ask_without_a_question_opens_the_prompt_on_a_terminal(shelf: Path, tmp_path: Path) -> None:
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    try:
        process = subprocess.Popen(
            [sys.executable, "-c", "from rag.commands.main import main; main()", "ask", "--index", shelf],
            env=os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'eval'}", "XDG_STATE_HOME": str(tmp_path)},
            stdin=theirs,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
        )
        os.write(ours, b"When was Marie Curie born?\nWhere was she born?\n\x04")
        out, err = process.communicate(timeout=60)
    finally:
        os.close(ours)
        os.close(theirs)
    assert process.returncode == 0, err
    assert "Curie was born in Warsaw in 1867 [1]." in out
    assert "Ask a question. help says more; quit or Ctrl-D leaves." in err
    assert "searched for: Where was Marie Curie born?" in err
    assert "Traceback" not in err
