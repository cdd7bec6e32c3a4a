"""`--system openai:...` and its kin from the command line: streams, failures, journals, many questions at once."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rag.answer.answer_files import answer_file
from rag.answer.generators.cited import CitedGenerator
from rag.answer.generators.extractive import Extractive
from rag.answer.llms import ModelError
from rag.answer.llms.prompts import Prompt
from rag.answer.options import Options
from rag.answer.system import RetrieveThenRead, answer_each, map_in_order
from rag.answer.systems import open_system
from rag.base.errors import RagError
from rag.base.journal import Journal
from rag.base.types import Question
from rag.index.open import open_index
from rag.retrieval import open_retriever
from rag.testing import ScriptedModel, check_system
from tests.chat_server import ChatServer
from tests.commands import ROOT, stop
from tests.conftest import Command, one_line_error
from tests.gguf import write_gguf

ASKED = ["What is the capital of Poland?", "When was Curie born?", "Which river is the longest?", "the", "東京"]
QUESTIONS = [Question(str(n), text) for n, text in enumerate(ASKED)]


def scripted(shelf: Path, *says: str | ModelError) -> RetrieveThenRead:
    retriever = open_retriever("bm25", open_index(shelf))
    return RetrieveThenRead(retriever, CitedGenerator(ScriptedModel(*says), Prompt.read("hagrid.v1")), 3)


def test_a_system_answers_streams_and_answers_several_at_once_alike(shelf: Path) -> None:
    system = scripted(shelf, "Warsaw lies there [1][9]. So it is.")
    one_by_one = [answer for answer, _ in answer_each(system, QUESTIONS)]
    assert [answer.question for answer in one_by_one] == QUESTIONS
    assert [answer.abstained for answer in one_by_one] == [False, False, False, True, False]
    for concurrency in (2, 3, 16):
        assert [answer for answer, _ in answer_each(system, iter(QUESTIONS), concurrency)] == one_by_one
    *partials, last = system.stream(QUESTIONS[0])
    assert last == one_by_one[0]
    assert {len(partial.sentences) for partial in partials} == {0, 1}
    assert all(partial.system == system.name for partial in partials)
    assert one_by_one[0].system == system.name
    assert Prompt.read("hagrid.v1").id in system.name


def test_a_system_of_a_model_keeps_the_contract(shelf: Path) -> None:
    check_system(scripted(shelf, "Warsaw lies there [1][9]. So it is [2]."), QUESTIONS[:3])
    check_system(scripted(shelf, "Warsaw lies there. So it is."), QUESTIONS[:3], cites=False)
    check_system(scripted(shelf, "I don't know."), QUESTIONS[:3])


def test_several_at_once_run_at_once_and_no_more_than_were_asked_for(shelf: Path) -> None:
    running_now, most = 0, 0

    class Slow(ScriptedModel):
        def complete(self, *arguments: Any, **options: Any) -> Any:  # noqa: ANN401
            nonlocal running_now, most
            running_now += 1
            most = max(most, running_now)
            time.sleep(0.02)
            running_now -= 1
            return super().complete(*arguments)

    retriever = open_retriever("bm25", open_index(shelf))
    system = RetrieveThenRead(retriever, CitedGenerator(Slow("Yes [1]."), Prompt.read("hagrid.v1")), 3)
    questions = [Question(str(n), ASKED[0]) for n in range(12)]
    assert [answer.question.id for answer, _ in answer_each(system, questions, 4)] == [q.id for q in questions]
    assert 1 < most <= 4


def test_a_slow_question_does_not_hold_up_others_without_bounds() -> None:
    started, yielded = 0, 0
    many = threading.Event()

    def work(item: int) -> int:
        nonlocal started
        started += 1
        if started == 12:
            many.set()
        assert item - yielded < 12
        if item == 0:
            assert many.wait(60)
        return item

    for item in map_in_order(work, range(100), 3):
        assert item == yielded
        yielded += 1
    assert yielded == 100


def test_a_system_without_a_server_is_asked_one_question_at_a_time() -> None:
    threads = set()

    def work(item: int) -> int:
        threads.add(threading.get_ident())
        return item

    assert list(map_in_order(work, range(20), "auto")) == list(range(20))
    assert threads == {threading.get_ident()}


def test_an_error_that_a_person_must_mend_ends_the_run(shelf: Path) -> None:
    class Broken(ScriptedModel):
        def complete(self, *arguments: Any, **options: Any) -> Any:  # noqa: ANN401
            raise RagError("the server wants a key")

    retriever = open_retriever("bm25", open_index(shelf))
    system = RetrieveThenRead(retriever, CitedGenerator(Broken(""), Prompt.read("hagrid.v1")), 3)
    for concurrency in (1, 4):
        with pytest.raises(RagError, match="wants a key"):
            list(answer_each(system, QUESTIONS, concurrency))


def test_a_system_that_cannot_stream_gives_all_at_once(shelf: Path) -> None:
    system = RetrieveThenRead(open_retriever("bm25", open_index(shelf)), Extractive(), 3)
    (answer,) = system.stream(QUESTIONS[0])
    assert str(answer) == "Warsaw is the capital of Poland [1]."


def test_prompt_and_context_are_for_language_models(shelf: Path, tmp_path: Path) -> None:
    with pytest.raises(RagError, match="'extractive' has no option 'prompt'; systems that have it: openai, gguf, hf"):
        open_system("extractive", open_index(shelf), Options(prompt="hagrid.v1"))
    with pytest.raises(RagError, match="no language model called 'openai:'"):
        open_system("openai", open_index(shelf), retriever="bm25")


def test_ask_answers_with_what_a_gguf_model_writes(shelf: Path, tmp_path: Path, rag: Command) -> None:
    pytest.importorskip("xllamacpp", reason="needs the extra gguf")
    model = write_gguf(tmp_path / "tiny.gguf", context=2048)
    system = f"gguf:{model}"
    options = ["--index", shelf, "--retriever", "bm25", "--prompt", "hagrid.v1", "--context", "1200", "--json"]
    result = rag("ask", ASKED[0], "--system", system, *options)
    assert result.returncode in (0, 1), result.stderr
    record = json.loads(result.stdout)
    assert record["trace"]["shown"]
    assert "/1200/" in record["system"]
    assert len(record["passages"]) >= 1
    one_line_error(rag("ask", ASKED[0], "--index", shelf, "--system", "gguf:nope.gguf"), "nope.gguf", "cannot be read")


def asked(server: ChatServer, shelf: Path, *steps: dict[str, Any]) -> tuple[dict[str, str], list[str | Path]]:
    environment = {"OPENAI_BASE_URL": server.script(*steps), "OPENAI_API_KEY": ""}
    return environment, ["--index", shelf, "--retriever", "bm25", "--system", "openai:tiny"]


def test_only_a_system_that_searches_has_asked_the_handbook(server: ChatServer, rag: Command) -> None:
    environment = {"OPENAI_BASE_URL": server.script({"say": "Warsaw."}), "OPENAI_API_KEY": ""}
    assert "handbook" not in rag("ask", ASKED[0], "--system", "closed-book:openai:tiny", **environment).stderr
    environment = {"OPENAI_BASE_URL": server.script({"say": "Warsaw [1]."}), "OPENAI_API_KEY": ""}
    assert "Answered from the bundled handbook" in rag("ask", ASKED[0], "--system", "openai:tiny", **environment).stderr


def test_ask_streams_checked_sentences_and_then_the_passages(server: ChatServer, shelf: Path, rag: Command) -> None:
    says = "Warsaw is the capital of Poland [2][7]. \x1b[31m Penguins swim well [1]."
    environment, options = asked(server, shelf, {"say": says})
    options = [*options, "--repair"]
    result = rag("ask", ASKED[0], *options, "--stream", "--prompt", "hagrid.v1", **environment)
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    assert lines[0] == "Warsaw is the capital of Poland [1].  [31m Penguins swim well."
    assert lines[1] == "[7] points to no passage (out-of-range)"
    assert lines[2] == "checked: 1 citation moved to a supporting passage, 1 citation removed"
    assert lines[3:] == rag("ask", ASKED[0], *options, "--prompt", "hagrid.v1", **environment).stdout.splitlines()[3:]
    assert "1 of 2 sentences without a source" in result.stderr
    assert "[1] Warsaw  (b#1)" in lines
    assert ">>Warsaw is the capital of Poland.<< It lies on the Vistula river." in lines
    assert server.log(environment["OPENAI_BASE_URL"])[0]["body"]["messages"][0]["content"].startswith("I will give a")
    one_line_error(rag("ask", ASKED[0], *options, "--stream", "--json", **environment), "--stream", "--json")
    one_line_error(rag("ask", ASKED[0], *options, "--prompt", "x", **environment), "no prompt called 'x'")


def test_ask_names_each_sentence_that_its_citation_does_not_support(
    server: ChatServer, shelf: Path, rag: Command
) -> None:
    says = "Marie Curie won the Nobel Prize in Physics in 1905 [1]. Penguins swim well [1]. Bread is cheap."
    environment, options = asked(server, shelf, {"say": says})
    result = rag("ask", "When did Marie Curie win the Nobel Prize?", *options, **environment)
    lines = result.stdout.splitlines()
    assert lines[0].startswith("Marie Curie won the Nobel Prize in Physics in 1905 [1].")
    assert lines[1].startswith(
        'contradicted: "Marie Curie won the Nobel Prize in Physics in 1905." [1]: the source says 1903'
    )
    assert lines[2] == 'not supported by what it cites: "Penguins swim well." [1]'
    assert result.stderr == "1 of 3 sentences without a source\n"


def test_ask_names_a_sentence_without_citation_that_a_passage_contradicts(
    server: ChatServer, shelf: Path, rag: Command
) -> None:
    environment, options = asked(server, shelf, {"say": "Curie was born in Warsaw in 1868."})
    result = rag("ask", "When was Curie born?", *options, **environment)
    line = (
        'contradicted: "Curie was born in Warsaw in 1868.": the source says 1867, not 1868: "Curie was born in Warsaw'
    )
    assert line in result.stdout
    assert result.stderr == "1 of 1 sentence without a source\n"


def test_temperature_and_seed_reach_the_model_and_tokens_are_counted_and_priced(
    server: ChatServer, shelf: Path, tmp_path: Path, rag: Command
) -> None:
    questions, out = write_questions(tmp_path / "questions.jsonl"), tmp_path / "answers.jsonl"
    environment, options = asked(server, shelf, {"say": "Warsaw [1]."})
    chosen = ["--temperature", "0.5", "--seed", "7"]
    result = rag("answer", questions, "--out", out, *options, *chosen, "--price", "50", "2000", **environment)
    assert result.returncode == 0, result.stderr
    body = server.log(environment["OPENAI_BASE_URL"])[0]["body"]
    assert (body["temperature"], body["seed"]) == (0.5, 7)
    found = rows(out)
    assert all("/t0.5/seed7" in row["system"] for row in found)
    asked_of = [row for row in found if row["passages"]]
    read, written = 7 * len(asked_of), 2 * len(asked_of)  # as the server says
    assert [row["trace"]["tokens"] for row in asked_of] == [{"read": 7, "written": 2}] * len(asked_of)
    cost = (read * 50 + written * 2000) / 1e6
    assert f"{read:,} input tokens, {written:,} output tokens: {cost:.4f} at the given price" in result.stderr
    one_line_error(rag("ask", ASKED[0], "--system", "extractive", "--seed", 7), "'extractive' has no option 'seed'")


def test_ask_says_that_an_answer_was_cut(server: ChatServer, shelf: Path, rag: Command) -> None:
    environment, options = asked(
        server, shelf, {"say": "Warsaw is the capital of Poland [1]. It lies on", "finish": "length"}
    )
    for more in ([], ["--stream"]):
        result = rag("ask", ASKED[0], *options, *more, **environment)
        assert "\ncut: the model reached its limit of tokens" in result.stdout


def test_ask_says_why_a_model_failed(server: ChatServer, shelf: Path, rag: Command) -> None:
    environment, options = asked(server, shelf, {"say": "Half of it", "pieces": 2})
    result = rag("ask", ASKED[0], *options, "--stream", **environment)
    assert result.returncode == 1
    assert (
        "The system gave no answer: openai:tiny: the stream ended before the reply did (in the middle of the reply)."
        in result.stdout
    )


def rows(path: Path) -> list[dict[str, Any]]:
    return [{k: v for k, v in json.loads(line).items() if k != "seconds"} for line in path.read_text().splitlines()]


KILLED_RETRY = """
import os, signal, sys
from pathlib import Path
from rag.answer.answer_files import answer_file
from rag.index.open import open_index
from tests.rag.answer.test_model_systems import scripted

def kill(step, done, total):
    if done == 3:
        os.kill(os.getpid(), signal.SIGKILL)

questions, out, shelf = map(Path, sys.argv[1:])
system = scripted(shelf, "Warsaw lies there [1].")
answer_file(questions, out, system, open_index(shelf), retry_failed=True, progress=kill)
"""


def test_a_kill_while_failed_questions_are_asked_again_undoes_nothing(shelf: Path, tmp_path: Path) -> None:
    questions, out = write_questions(tmp_path / "questions.jsonl"), tmp_path / "answers.jsonl"
    index, gone = open_index(shelf), scripted(shelf, ModelError("the server is gone"))
    assert answer_file(questions, out, gone, index).failed == 4
    before = out.read_bytes()
    argv = [sys.executable, "-c", KILLED_RETRY, str(questions), str(out), str(shelf)]
    environment = os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'eval'}"}
    assert subprocess.run(argv, env=environment, check=False).returncode == -signal.SIGKILL
    assert out.read_bytes() == before  # a file of whole answers at any time
    with (tmp_path / "answers.jsonl.renewed").open("a") as file:
        file.write('{"id": "4", "fai')  # a kill in the middle of a write
    assert answer_file(questions, out, gone, index, retry_failed=True).failed == 2
    assert [(row["id"], row["failed"]) for row in rows(out)] == [
        ("0", False), ("1", False), ("2", True), ("3", False), ("4", True),
    ]  # fmt: skip
    assert [path.name for path in tmp_path.glob("answers.jsonl*")] == ["answers.jsonl", "answers.jsonl.run.json"]


def test_renewed_rows_of_a_file_that_was_deleted_are_not_those_of_a_new_one(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    (tmp_path / "a.jsonl.renewed").write_text('{"id": "1", "failed": false, "text": "old"}\n')
    with Journal(path, {}, resume=False) as journal:
        journal.write({"id": "1", "failed": True})
    assert path.read_text() == '{"id": "1", "failed": true}\n'


def test_an_interrupt_keeps_the_rows_that_were_renewed(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    with Journal(path, {}, resume=False) as journal:
        journal.write({"id": "1", "failed": True})
        journal.write({"id": "2", "failed": True})

    def interrupted() -> None:
        with Journal(path, {}, resume=True) as journal:
            journal.renew({"id": "2", "failed": False})
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_text() == '{"id": "1", "failed": true}\n{"id": "2", "failed": false}\n'
    with Journal(path, {}, resume=True) as journal:
        assert (journal.done, journal.failed) == (["1", "2"], ["1"])


def write_questions(path: Path) -> Path:
    path.write_text("".join(json.dumps({"id": q.id, "question": q.text}) + "\n" for q in QUESTIONS), "utf-8")
    return path


@pytest.mark.slow
def test_a_run_goes_on_after_failures_and_asks_only_them_again(
    server: ChatServer, shelf: Path, tmp_path: Path, rag: Command
) -> None:
    questions, out = write_questions(tmp_path / "questions.jsonl"), tmp_path / "answers.jsonl"
    yes = {"say": "Warsaw is the capital [1]."}
    bad = {"status": 400, "body": "bad luck"}
    environment, options = asked(server, shelf, yes, bad, {"say": ""}, yes)
    one_line_error(rag("answer", questions, "--out", out, *options, "--retry-failed", **environment), "no such file")
    result = rag("answer", questions, "--out", out, *options, "--concurrency", "1", **environment)
    assert result.returncode == 0, result.stderr
    assert result.stderr.endswith(
        f"5 questions in {out}: 2 answered, 1 refused, 2 failed (--retry-failed asks again)\n"
    )
    first = rows(out)
    assert [row["failed"] for row in first] == [False, True, True, False, False]
    assert [row["abstained"] for row in first] == [False, True, True, True, False]
    assert first[1]["reason"] == "openai:tiny: the server answered 400: bad luck"
    assert first[2]["reason"] == "the model wrote nothing"

    before = len(server.log(environment["OPENAI_BASE_URL"]))
    result = rag("answer", questions, "--out", out, *options, "--retry-failed", **environment)
    assert result.returncode == 0, result.stderr
    assert result.stderr.endswith(f"5 questions in {out}: 4 answered, 1 refused, 0 failed\n")
    second = rows(out)
    assert len(server.log(environment["OPENAI_BASE_URL"])) == before + 2
    assert [row["id"] for row in second] == ["0", "1", "2", "3", "4"]
    assert [row["failed"] for row in second] == [False] * 5
    assert [second[n] for n in (0, 3, 4)] == [first[n] for n in (0, 3, 4)]
    assert list(tmp_path.glob(".answers*")) == []

    resumed = rag("answer", questions, "--out", out, *options, "--resume", **environment)
    assert resumed.returncode == 0
    other = rag("answer", questions, "--out", out, *options, "--retry-failed", "--context", 1000, **environment)
    one_line_error(other, "another system")


@pytest.mark.slow
def test_several_questions_at_once_give_the_same_rows_in_order(
    server: ChatServer, shelf: Path, tmp_path: Path, rag: Command
) -> None:
    questions = write_questions(tmp_path / "questions.jsonl")
    says = [["capital", "Warsaw [1]."], ["Curie born", "In 1867 [1][2]."], ["river", "The Vistula [1]."]]
    environment, options = asked(server, shelf, {"say_if": says, "say": "Tokyo [1].", "hang": 0.05})
    for concurrency in (1, 4):
        result = rag(
            "answer", questions, "--out", tmp_path / f"{concurrency}.jsonl", *options, "--prompt", "hagrid.v1",
            "--concurrency", concurrency, **environment,
        )  # fmt: skip
        assert result.returncode == 0, result.stderr
    assert rows(tmp_path / "1.jsonl") == rows(tmp_path / "4.jsonl")
    assert max(row["running"] for row in server.log(environment["OPENAI_BASE_URL"])) > 1


MANY = 60
SAYS = {"say_if": [[f"number {n}?", f"It is {n} [1]."] for n in range(MANY)], "say": "no"}


def write_many(path: Path) -> Path:
    asked = ({"id": str(n), "question": f"What is the capital, number {n}?"} for n in range(MANY))
    path.write_text("".join(json.dumps(one) + "\n" for one in asked), "utf-8")
    return path


@pytest.mark.slow
def test_as_many_questions_as_a_server_bears_give_the_same_rows(
    server: ChatServer, shelf: Path, tmp_path: Path, rag: Command
) -> None:
    questions = write_many(tmp_path / "questions.jsonl")
    full = {"status": 429, "headers": {"Retry-After": "0.1"}, "body": "full"}
    found = {}
    for concurrency in ("1", "auto"):
        slow = SAYS | {"hang": 0.05}
        steps = [SAYS] if concurrency == "1" else [slow] * 20 + [full] * 3 + [slow]
        environment, options = asked(server, shelf, *steps)
        out = tmp_path / f"{concurrency}.jsonl"
        result = rag("answer", questions, "--out", out, *options, "--concurrency", concurrency, **environment)
        assert result.returncode == 0, result.stderr
        found[concurrency] = rows(out), server.log(environment["OPENAI_BASE_URL"]), result.stderr
    (one_by_one, _, _), (many, log, said) = found.values()
    assert [row["id"] for row in many] == [str(n) for n in range(MANY)]
    assert not any(row["failed"] for row in many)
    assert [row | {"system": ""} for row in many] == [row | {"system": ""} for row in one_by_one]  # another address
    assert max(row["running"] for row in log) > 2
    assert f"model server: {len(log)} requests (3 sent again), " in said
    assert len(log) == MANY + 3


@pytest.mark.slow
@pytest.mark.parametrize(("sent", "code"), [(signal.SIGKILL, -signal.SIGKILL), (signal.SIGINT, 130)])
def test_a_run_of_many_at_once_that_is_stopped_ends_with_the_same_rows(
    server: ChatServer,
    shelf: Path,
    tmp_path: Path,
    rag: Command,
    monkeypatch: pytest.MonkeyPatch,
    sent: signal.Signals,
    code: int,
) -> None:
    questions, out = write_many(tmp_path / "questions.jsonl"), tmp_path / "answers.jsonl"
    environment, options = asked(server, shelf, *[SAYS | {"hang": 0.5}] * MANY, SAYS)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    given = ["answer", questions, "--out", out, *options]
    stopped = stop("rag", sent, out, *given)
    assert stopped.returncode == code
    done = out.read_bytes().count(b"\n")
    assert 0 < done < MANY
    again = rag(*given, "--resume", **environment)
    assert again.returncode == 0, again.stderr
    alone = rag("answer", questions, "--out", tmp_path / "1.jsonl", *options, "--concurrency", "1", **environment)
    assert alone.returncode == 0, alone.stderr
    assert rows(out) == rows(tmp_path / "1.jsonl")


def test_a_server_that_wants_something_else_ends_the_run_in_one_line_and_resume_finishes_it(
    server: ChatServer, shelf: Path, tmp_path: Path, rag: Command
) -> None:
    questions, out = write_questions(tmp_path / "questions.jsonl"), tmp_path / "answers.jsonl"
    environment, options = asked(server, shelf, {"status": 401, "body": "no"}, {"say": "Warsaw [1]."})
    one_line_error(rag("answer", questions, "--out", out, *options, **environment), "set OPENAI_API_KEY")
    result = rag("answer", questions, "--out", out, *options, "--resume", **environment)
    assert result.returncode == 0, result.stderr
    assert [row["id"] for row in rows(out)] == ["0", "1", "2", "3", "4"]


@contextlib.contextmanager
def hanging_up() -> Iterator[str]:
    """The base URL of a server that closes two connections, where writing raises SIGPIPE, and refuses a request."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            with contextlib.suppress(OSError):
                for _ in range(2):
                    listening.accept()[0].close()
                with listening.accept()[0] as connection:
                    connection.recv(65536)
                    connection.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 6\r\n\r\nbroken")

        threading.Thread(target=serve, daemon=True).start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/v1"


def test_a_server_that_hangs_up_is_asked_again(shelf: Path, rag_process: Command) -> None:
    with hanging_up() as address:
        result = rag_process(
            "ask", ASKED[0], "--index", shelf, "--retriever", "bm25", "--system", "openai:tiny",
            OPENAI_BASE_URL=address, OPENAI_API_KEY="",
        )  # fmt: skip
    assert result.returncode == 1, result.stderr
    assert "The system gave no answer: openai:tiny: " in result.stdout
    assert "broken" in result.stdout
