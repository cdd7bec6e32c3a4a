"""Building a collection: its files, kills, refusals and what systems write."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from autoais import formats
from autoais.base.answers import read_answers
from rag.base.errors import RagError, UsageError
from rag.bench.collections import Collection, Plan, build_collection, open_collection
from rag.bench.collections.folder import NEW
from rag.bench.output_folder import LOCK, lock_folder
from tests.chat_server import ChatServer
from tests.commands import ROOT
from tests.conftest import Command, one_line_error
from tests.rag.bench.collections.conftest import write_rows


@pytest.fixture
def model(server: ChatServer, monkeypatch: pytest.MonkeyPatch) -> str:
    """A language model that answers the three questions, each in another way."""
    url = server.script(
        {
            "say_if": [
                ["capital of Poland?", "It is Warsaw. The kings lived there from 1596 [1]. It is old."],
                ["How long", "It is 1,047 kilometres long."],
                ["Curie born?", "Curie was born in 1867 [2]."],
            ]
        }
    )
    monkeypatch.setenv("OPENAI_BASE_URL", url)
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    return "openai:tiny"


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def check_sums(folder: Path) -> list[str]:
    names = []
    for line in (folder / "SHA256SUMS").read_text("utf-8").splitlines():
        digest, name = line.split("  ")
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest
        names.append(name)
    return names


def test_a_collection_of_the_reader(topics: Path, qrels: Path, quotes: Path, tmp_path: Path) -> None:
    plans: list[Plan] = []
    built = build_collection(
        str(tmp_path / "c"), topics, qrels=qrels, corpus=quotes, dev=0.34, licence="CC-BY-4.0", on_plan=plans.append
    )
    assert (plans[0].questions, plans[0].answers, plans[0].answers_done) == (3, 3, 0)
    answers = list(built.answers())
    assert [answer.id for answer in answers] == ["10/1", "11/1", "12/1"]
    assert list(answers[0].passages) == ["1#1", "1#0"]  # the quotes as given, whatever was read first
    assert all(citation.quote for answer in answers for one in answer.sentences for citation in one.citations)
    assert [answer.extra["query_id"] for answer in answers] == ["10", "11", "12"]
    whole, train, dev = (rows(built.folder / f"hagrid{part}.jsonl") for part in ("", "-train", "-dev"))
    assert [row["query_id"] for row in whole] == ["10", "11", "12"]
    assert len(dev) == 1
    assert sorted(row["query_id"] for row in train + dev) == ["10", "11", "12"]
    assert whole[0]["quotes"][0] == {"idx": 1, "docid": "1#1", "text": answers[0].passages["1#1"].text}
    assert whole[0]["answers"][0]["informative"] is None
    assert list(formats.validate(built.folder / "hagrid.jsonl", "hagrid")) == []
    assert list(formats.validate(built.folder / "answers.jsonl", "answers")) == []
    assert check_sums(built.folder) == [
        "README.md", "answers.jsonl", "collection.json", "filtered.jsonl", "hagrid-dev.jsonl", "hagrid-train.jsonl",
        "hagrid.jsonl",
    ]  # fmt: skip
    card = (built.folder / "README.md").read_text("utf-8")
    assert "license: cc-by-4.0\n" in card
    assert "size_categories:\n- n<1K  # questions\n" in card
    assert "language" not in card  # nobody said which
    assert "  - split: dev\n    path: hagrid-dev.jsonl\n" in card
    assert "No person has judged these answers." in card
    assert open_collection(built.folder).manifest == built.manifest


def test_several_answers_of_a_system_without_seeds_are_told(asked: Path, tmp_path: Path, rag: Command) -> None:
    said = "--answers 3 is for language models; asked once per question: reader"
    build = ("collect", "build", tmp_path / "c", "--questions", asked, "--system", "reader")
    done = rag(*build, "--answers", "3")
    assert (done.returncode, said in done.stderr) == (0, True)
    assert len(list(open_collection(tmp_path / "c").answers())) == 3  # of three questions
    assert "is for language models" not in rag("collect", "build", tmp_path / "d", *build[3:]).stderr


def test_answers_in_hagrids_file_are_those_in_answers(asked: Path, tmp_path: Path) -> None:
    built = build_collection(tmp_path / "c", asked, systems=["reader", "extractive"])
    ours = {answer.id: answer for answer in built.answers()}
    for answer in formats.read(built.folder / "hagrid.jsonl"):
        assert [one.cites for one in answer.sentences] == [one.cites for one in ours[answer.id].sentences]
        assert [one.text for one in answer.sentences] == [one.text for one in ours[answer.id].sentences]
    again = list(formats.write(formats.read(built.folder / "hagrid.jsonl"), "hagrid"))
    assert again == (built.folder / "hagrid.jsonl").read_text("utf-8").splitlines()


def test_a_language_model(model: str, asked: Path, tmp_path: Path) -> None:
    built = build_collection(tmp_path / "c", asked, systems=[model, "reader"], price=(10.0, 20.0))
    by_id = {answer.id: answer for answer in built.answers()}
    first = by_id["10/1"]
    assert [(one.text, one.cites) for one in first.sentences] == [
        ("It is Warsaw. The kings lived there from 1596.", ("1#1",)),
        ("It is old.", ()),
    ]
    assert first.output == "It is Warsaw. The kings lived there from 1596 [1]. It is old."
    assert first.extra["prompt"].startswith("hagrid.v1@")
    assert (first.extra["answer_type"], first.extra["tokens"]) == ("generative", {"read": 7, "written": 2})
    assert first.sentences[0].citations[0].quote  # the sentence of the quote that is nearest
    assert by_id["12/1"].sentences[0].cites == ("3#0",)
    (left,) = [row for row in rows(built.folder / "filtered.jsonl") if row["system"] != "reader"]
    assert (left["query_id"], left["reason"], left["output"]) == ("11", "no-citation", "It is 1,047 kilometres long.")
    told = built.manifest["systems"]["openai-tiny"]
    assert (told["asked"], told["kept"], told["filtered"]) == (3, 2, {"no-citation": 1})
    assert (built.manifest["tokens"], built.manifest["cost"]) == ({"read": 21, "written": 6}, 0.00033)
    assert len(told["prompt"]["sha256"]) == 64
    sentences = rows(built.folder / "hagrid.jsonl")[0]["answers"][0]["sentences"]
    assert [one["text"] for one in sentences] == ["It is Warsaw. The kings lived there from 1596 [1].", "It is old."]


def test_several_questions_at_once_make_no_difference(model: str, asked: Path, tmp_path: Path) -> None:
    files = []
    for name, concurrency in (("a", 1), ("b", 3)):
        built = build_collection(tmp_path / name, asked, systems=[model], name="same", concurrency=concurrency)
        files.append([(built.folder / one).read_bytes() for one in ("answers.jsonl", "filtered.jsonl", "hagrid.jsonl")])
    assert files[0] == files[1]


def test_a_manifest_that_others_changed_is_refused(asked: Path, tmp_path: Path, rag: Command) -> None:
    out = tmp_path / "c"
    build_collection(out, asked)
    manifest = json.loads((out / "collection.json").read_text())
    for key, value in (("systems", {"reader": 3}), ("split", {"dev": 2, "seed": 0}), ("licence", None), ("name", 1)):
        (out / "collection.json").write_text(json.dumps(manifest | {key: value}))
        one_line_error(rag("collect", "pack", out), "collection.json", key)


def test_trailing_sentences_can_be_attached_and_citations_repaired(model: str, asked: Path, tmp_path: Path) -> None:
    attached = build_collection(tmp_path / "a", asked, systems=[model], trailing="attach")
    assert len(next(attached.answers()).sentences) == 1
    repaired = build_collection(tmp_path / "r", asked, systems=[model], repair=True)
    assert "repair.v2" in repaired.manifest["systems"]["openai-tiny"]["name"]
    length = {answer.id: answer for answer in repaired.answers()}["11/1"]
    assert [citation.origin for citation in length.sentences[0].citations] == ["attached"]
    assert length.output is None


def test_several_seeds_and_duplicates(model: str, asked: Path, tmp_path: Path) -> None:
    with pytest.raises(RagError, match=r"add ,temperature=0\.7"):
        build_collection(tmp_path / "c", asked, systems=[model], answers=2)
    built = build_collection(tmp_path / "c", asked, systems=[f"{model},temperature=0.7,seed=3"], answers=2)
    assert [one["seed"] for one in built.manifest["systems"].values()] == [3, 4]
    assert [answer.extra["seed"] for answer in built.answers()] == [3, 3]
    duplicates = [row for row in rows(built.folder / "filtered.jsonl") if row["reason"] == "duplicate"]
    assert [(row["query_id"], row["seed"], row["detail"]) for row in duplicates] == [
        ("10", 4, "of answer 10/1"),
        ("12", 4, "of answer 12/1"),
    ]


def test_a_model_that_fails_is_asked_again(
    server: ChatServer, asked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    monkeypatch.setenv("OPENAI_BASE_URL", server.script({"say": ""}, {"say": "It is so [1]."}))
    built = build_collection(tmp_path / "c", asked, systems=["openai:tiny"])
    assert [row["reason"] for row in rows(built.folder / "filtered.jsonl")] == ["failed"]
    again = build_collection(tmp_path / "c", asked, systems=["openai:tiny"], retry_failed=True)
    assert [answer.id for answer in again.answers()] == ["10/1", "11/1", "12/1"]
    assert rows(again.folder / "filtered.jsonl") == []


KILLED_RETRY = """
import os, signal, sys
from rag.bench.collections import build_collection

def kill(what, done, total):
    if what == "asking openai-tiny again" and done == 1:
        os.kill(os.getpid(), signal.SIGKILL)

build_collection(sys.argv[1], sys.argv[2], systems=["openai:tiny"], concurrency=1, retry_failed=True, progress=kill)
"""


def test_a_kill_while_a_model_is_asked_again_undoes_nothing(
    server: ChatServer, asked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    monkeypatch.setenv("OPENAI_BASE_URL", server.script({"say": ""}, {"say": ""}, {"say": "It is so [1]."}))
    out = tmp_path / "c"
    build_collection(out, asked, systems=["openai:tiny"], concurrency=1)
    argv = [sys.executable, "-c", KILLED_RETRY, str(out), str(asked)]
    environment = os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'eval'}"}
    assert subprocess.run(argv, env=environment, check=False).returncode == -signal.SIGKILL
    with pytest.raises(RagError, match="the collection is unfinished"):  # its answers are no longer the journal's
        open_collection(out)
    resumed = build_collection(out, asked, systems=["openai:tiny"], concurrency=1, resume=True)
    assert [answer.id for answer in resumed.answers()] == ["10/1", "12/1"]
    again = build_collection(out, asked, systems=["openai:tiny"], concurrency=1, retry_failed=True)
    assert [answer.id for answer in again.answers()] == ["10/1", "11/1", "12/1"]
    assert {path.name for path in (out / "raw").iterdir()} == {
        "left-out.jsonl", "openai-tiny.jsonl", "openai-tiny.jsonl.run.json", "questions.jsonl",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("systems", "words"),
    [
        (["closed-book:openai:x"], "searches by itself"),
        (["reader,k=3"], "the quotes are the same for all systems"),
        (["reader", "reader"], "named twice"),
        (["nobody"], "no system called 'nobody'"),
        ([], "at least one system"),
    ],
)
def test_systems_that_cannot_collect(systems: list[str], words: str, asked: Path, tmp_path: Path) -> None:
    with pytest.raises(RagError, match=words):
        build_collection(tmp_path / "c", asked, systems=systems)


def test_wrong_arguments(asked: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"write \['reader'\]"):
        build_collection(tmp_path / "c", asked, systems="reader")
    for bad in ({"dev": 1.5}, {"answers": 0}, {"limit": 0}, {"trailing": "drop"}, {"quotes": "some"}):
        with pytest.raises(RagError):
            build_collection(tmp_path / "c", asked, **bad)
    assert not (tmp_path / "c" / "answers.jsonl").exists()


def test_a_folder_with_something_else_or_in_use(asked: Path, tmp_path: Path, rag: Command) -> None:
    out = tmp_path / "c"
    out.mkdir()
    with lock_folder(out):
        one_line_error(rag("collect", "build", out, "--questions", asked), "another process is using it")
    (out / "thesis.tex").write_text("x")
    one_line_error(rag("collect", "build", out, "--questions", asked), "not empty", "thesis.tex")
    one_line_error(rag("collect", "report", out), "is it the folder of a collection?")


def test_a_wrong_option_leaves_the_folder_free(asked: Path, tmp_path: Path, rag: Command) -> None:
    out = tmp_path / "c"
    one_line_error(rag("collect", "build", out, "--questions", asked, "--quotes", "retrieved"), "index")
    retrieved = ("collect", "build", out, "--questions", asked, "--quotes", "retrieved")
    one_line_error(rag(*retrieved, "--index", tmp_path / "nowhere"), "nowhere")
    table = tmp_path / "asked.csv"
    table.write_text("id;question\n1;Why?\n")
    one_line_error(rag("collect", "build", out, "--questions", table), "a table (CSV)")
    assert not out.exists()
    built = rag("collect", "build", out, "--questions", asked)
    assert built.returncode == 0, built.stderr


def test_a_build_cannot_go_on_with_other_systems_or_data(asked: Path, tmp_path: Path, rag: Command) -> None:
    out = tmp_path / "c"
    built = rag("collect", "build", out, "--questions", asked)
    assert built.returncode == 0, built.stderr
    one_line_error(rag("collect", "build", out, "--questions", asked), "--resume")
    resume = ("collect", "build", out, "--questions", asked, "--resume")
    one_line_error(rag(*resume, "--system", "extractive"), "started with other systems; name a new folder")
    one_line_error(rag(*resume, "--dev", "0.5"), "other dev")
    assert rag(*resume).returncode == 0
    again = rag(*resume, "--licence", "CC0-1.0", "--text-licence", "GPL-2.0", "--name", "Towns")  # of the card alone
    assert again.returncode == 0, again.stderr
    assert json.loads((out / "collection.json").read_text())["licence"] == {"answers": "CC0-1.0", "texts": "GPL-2.0"}
    assert "CC0-1.0" in (out / "README.md").read_text()
    assert rag("collect", "pack", out, "--licence", "MIT").returncode == 0
    assert "MIT" in (out / "README.md").read_text()
    asked.write_text(asked.read_text() + "\n")
    one_line_error(rag(*resume), "other data")


def test_what_others_changed_is_noticed(asked: Path, tmp_path: Path) -> None:
    built = build_collection(tmp_path / "c", asked)
    for name in ("raw/reader.jsonl", "raw/questions.jsonl"):
        path = built.folder / name
        before = path.read_bytes()
        path.write_bytes(before + b"\n")
        with pytest.raises(RagError, match="was changed after it was written"):
            build_collection(tmp_path / "c", asked, resume=True)
        path.write_bytes(before)


def test_no_answer_that_keeps_to_the_format(
    server: ChatServer, asked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    monkeypatch.setenv("OPENAI_BASE_URL", server.script({"say": "<script>alert(1)</script> [9] \u202e\x00"}))
    with pytest.raises(RagError, match="no answer keeps to the format"):
        build_collection(tmp_path / "c", asked, systems=["openai:tiny"])
    assert {row["reason"] for row in rows(tmp_path / "c" / "filtered.jsonl")} == {"number-out-of-range"}


def test_a_disk_that_fills_up_is_one_line(rag_process: Command, asked: Path, tmp_path: Path) -> None:
    """A limit of the size of files is what a full disk is to a program: writing fails."""
    code = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
        "resource.setrlimit(resource.RLIMIT_FSIZE, (2500, 2500)); sys.argv[0] = 'rag'; "
        "from rag.commands.main import main; main()"
    )
    argv = [sys.executable, "-c", code, "collect", "build", str(tmp_path / "c"), "--questions", str(asked)]
    environment = os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'eval'}"}
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done
    assert "cannot be written: File too large" in done.stderr
    assert "Traceback" not in done.stderr


def many(path: Path, n: int) -> Path:
    passages = [{"id": f"p{i}", "text": f"The river number {i} is {i} kilometres long. It is blue."} for i in range(3)]
    return write_rows(
        path,
        [{"id": f"q{i}", "question": f"How long is river number {i % 5}?", "passages": passages} for i in range(n)],
    )


@pytest.mark.slow
def test_killed_at_any_moment_and_resumed_the_bytes_are_the_same(tmp_path: Path) -> None:
    questions = many(tmp_path / "questions.jsonl", 150)
    arguments = ["collect", "build", "c", "--questions", str(questions), "--system", "extractive", "--system", "reader"]
    argv = [sys.executable, "-c", "from rag.commands.main import main; main()", *arguments]
    environment = os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'eval'}"}
    for name in ("whole", "cut"):
        (tmp_path / name).mkdir()
    done = subprocess.run(argv, cwd=tmp_path / "whole", env=environment, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    moments = [
        ("collection.json", 1), ("raw/questions.jsonl", 1), ("raw/extractive.jsonl", 3_000),
        ("raw/extractive.jsonl", 27_000), ("raw/reader.jsonl", 12_000), (f"{NEW}/answers.jsonl", 1),
        (f"{NEW}/hagrid.jsonl", 1),
    ]  # fmt: skip
    killed = 0
    for name, size in moments:
        path = tmp_path / "cut" / "c" / name
        resume = ["--resume"] if (tmp_path / "cut" / "c" / "collection.json").exists() else []
        with subprocess.Popen(
            [*argv, *resume], cwd=tmp_path / "cut", env=environment, stderr=subprocess.PIPE
        ) as process:
            while process.poll() is None and (not path.exists() or path.stat().st_size < size):
                time.sleep(0.001)
            process.send_signal(signal.SIGKILL)
            process.communicate()
            killed += process.returncode == -signal.SIGKILL
    assert killed >= 5
    done = subprocess.run([*argv, "--resume"], cwd=tmp_path / "cut", env=environment, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    files = [path for path in sorted((tmp_path / "whole" / "c").iterdir()) if path.is_file() and path.name != LOCK]
    assert len(files) == 8
    assert {path.name for path in files} | {LOCK, "raw"} == {path.name for path in (tmp_path / "cut/c").iterdir()}
    for path in files:
        assert (tmp_path / "cut" / "c" / path.name).read_bytes() == path.read_bytes(), path.name
    assert len(list(read_answers(tmp_path / "cut" / "c" / "answers.jsonl"))) >= 150


def test_equal_questions_are_on_one_side(tmp_path: Path) -> None:
    built: Collection = build_collection(
        tmp_path / "c", many(tmp_path / "q.jsonl", 40), systems=["extractive"], dev=0.4
    )
    sides = [{row["query"] for row in rows(built.folder / f"hagrid-{part}.jsonl")} for part in ("train", "dev")]
    assert [len(side) for side in sides] == [3, 2]
    assert not sides[0] & sides[1]


def test_text_of_others_cannot_leave_the_card(asked: Path, tmp_path: Path) -> None:
    name = 'x"\n---\n# <script>alert(1)</script> | `y`'
    built = build_collection(tmp_path / "c", asked, name=name, licence="my | licence\nlicense: mit", text_licence="<b>")
    card = (built.folder / "README.md").read_text("utf-8")
    front = card.split("\n---\n")[0]
    assert front.count("\nlicense: ") == 1
    assert "<script>" not in card.split("\n---\n", 1)[1]
    assert "<b>" not in card
