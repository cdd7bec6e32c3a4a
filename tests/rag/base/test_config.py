"""What a person sets once: the config file, RAG_INDEX and RAG_SYSTEM; the command line comes first."""

import json
import os
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from rag.base.config import command_defaults, config_file, read_config, state_folder
from rag.base.errors import RagError
from rag.commands.main import app
from tests.conftest import Command, one_line_error


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the config file of this test will lie."""
    path = tmp_path / "config.toml"
    path.touch()
    monkeypatch.setenv("RAG_CONFIG", str(path))
    return path


def invoked(*arguments: str | Path, **environment: str) -> Result:
    """`rag` in this process."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments], env=environment)


def asked(*arguments: str | Path, **environment: str) -> dict[str, object]:
    """The row that `rag ask` prints."""
    result = invoked("ask", "What is the capital of Poland?", *arguments, "--json", **environment)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    row: dict[str, object] = json.loads(result.stdout)
    return row


def test_without_a_file_there_are_no_defaults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAG_CONFIG")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert read_config() == {}
    assert not any(command_defaults().values())


def test_a_config_file_that_is_named_must_be_there(config: Path) -> None:
    config.unlink()
    for named, reason in ((config, "No such file or directory"), (config.parent, "Is a directory")):
        os.environ["RAG_CONFIG"] = str(named)  # `config` restores it
        with pytest.raises(RagError, match=f"{named}: cannot be read as a config file: {reason}$"):
            read_config()


def test_the_file_lies_where_the_variable_says_or_with_the_persons_other_config_files(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert config_file() == config
    monkeypatch.delenv("RAG_CONFIG")
    assert config_file().parts[-2:] == ("attributed-rag", "config.toml")
    assert state_folder().name == "attributed-rag"


def test_each_command_gets_the_defaults_that_it_has_options_for(config: Path) -> None:
    config.write_text('index = "~/wiki.index"\nsystem = "extractive"\n')
    index = str(Path.home() / "wiki.index")
    every = {"index": index, "system": "extractive"}
    wanted = {
        "ask": {"system": "extractive"},
        "answer": every,
        "search": {"index": index},
        "attribute": {"index": index},
    }
    assert command_defaults() == wanted


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("index = ", "cannot be read as a config file"),
        ("\udcff", "cannot be read as a config file"),
        ('indx = "x"', "unknown key 'indx'; there are: index, system"),
        # These were tracebacks of tomllib.
        (f"index = {'9' * 5000}", "cannot be read as a config file"),
        (f"index = {'[' * 5000}", "cannot be read as a config file"),
        ("index = 3", "index should be a string"),
        ("system = ['reader']", "system should be a string"),
    ],
)
def test_a_file_that_cannot_be_used_is_one_clear_error(config: Path, text: str, says: str) -> None:
    config.write_text(text, "utf-8", "surrogateescape")
    with pytest.raises(RagError) as caught:
        read_config()
    assert str(caught.value).startswith(f"{config}: ")
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_command_says_in_one_line_what_is_wrong_with_the_file(rag: Command, config: Path) -> None:
    config.write_text("index = 3\n")
    one_line_error(rag("search", "river"), f"{config}: index should be a string")
    assert rag("--version").returncode == 0
    assert rag("--help").returncode == 0


def test_options_come_before_variables_and_variables_before_the_file(config: Path, shelf: Path) -> None:
    gone = str(config.parent / "gone")
    assert asked("--system", "extractive")["index"] == "handbook"
    config.write_text(f'index = "{shelf}"\nsystem = "extractive"\n')
    first = asked()
    assert (first["index"], first["system"]) == (shelf.name, "bm25.v1@10+extractive.v1")
    assert "quotes" in str(asked(RAG_SYSTEM="reader")["system"])
    assert "extractive" in str(asked("--system", "extractive", RAG_SYSTEM="reader")["system"])
    config.write_text(f'index = "{gone}"\nsystem = "extractive"\n')
    assert "no index at" in str(invoked("search", "river").exception)
    assert asked(RAG_INDEX=str(shelf))["index"] == shelf.name
    assert asked("--index", shelf, RAG_INDEX=gone)["index"] == shelf.name


def test_search_and_attribute_take_the_index_too(config: Path, shelf: Path, tmp_path: Path) -> None:
    config.write_text(f'index = "{shelf}"\nsystem = "no such system"\n')  # which is for ask and answer
    assert json.loads(invoked("search", "longest river", "-k", "1", "--json").stdout)["hits"][0]["id"] == "b#2"
    answers = tmp_path / "a.jsonl"
    answers.write_text('{"id": "1", "question": "Who?", "answer": "Curie was born in Warsaw in 1867."}\n')
    for environment in ({}, {"RAG_INDEX": str(shelf)}):
        out = tmp_path / f"out{len(environment)}.jsonl"
        result = invoked("attribute", answers, "--out", out, "--judge", "lexical", **environment)
        assert result.exit_code == 0, result.output
        (citation,) = json.loads(out.read_text())["sentences"][0]["citations"]
        assert citation["passage"] == "a#2"


def test_an_empty_variable_is_as_none(config: Path) -> None:
    assert asked("--system", "extractive", RAG_INDEX="")["index"] == "handbook"


def test_without_a_question_and_a_terminal_nothing_is_asked(config: Path) -> None:
    for arguments in (("ask",), ("ask", "--json")):
        assert "give a question" in str(invoked(*arguments).exception)


@pytest.mark.parametrize(
    "command",
    ["", "ask", "search", "answer", "attribute", "systems", "train", "doctor", "index", "index build",
     "index info", "index fetch", "index import"],
)  # fmt: skip
def test_every_command_has_short_help(command: str) -> None:
    short, long = (invoked(*command.split(), option) for option in ("-h", "--help"))
    assert (short.exit_code, short.stdout) == (0, long.stdout)
    assert "Usage: " in short.stdout


def test_the_home_of_an_unknown_user_is_no_traceback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "config.toml").write_text('index = "~nobody-here/x.index"')
    monkeypatch.setenv("RAG_CONFIG", str(tmp_path / "config.toml"))
    assert read_config() == {"index": "~nobody-here/x.index"}
