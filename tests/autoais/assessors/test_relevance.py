"""Grades of relevance by a model on a server, and the files with questions and passages that assessors read."""

import json
import resource
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import autoais
from autoais import Candidates, Passage, Question, UserError
from autoais.assessors.assessor import ReplyError, read_labels
from autoais.assessors.candidates import read_candidates
from autoais.assessors.relevance import _read
from autoais.base.models.chat import Request
from autoais.base.models.replies import ReplyCache
from autoais.metrics.runs import read_qrels
from tests.autoais.assessors.test_nuggets import assessor, prompts, read, say, write
from tests.chat_server import ChatServer
from tests.conftest import Command, one_line_error

QUERY = "capital of poland"
PASSAGES = (Passage("b#1", "Warsaw", "Warsaw is the capital of Poland."), Passage("b#2", "", "Bears sleep in winter."))
WARSAW = Candidates("q1", QUERY, PASSAGES)
# umbrela, src/umbrela/utils/common_utils.py: what `umbrela judge` writes, without ids of topic and passage.
UMBRELA: list[dict[str, Any]] = [
    {
        "model": "m",
        "query": QUERY,
        "passage": passage,
        "prompt": "Grade it.",
        "prediction": f"##final score: {grade}",
        "reasoning": None,
        "judgment": grade,
        "result_status": status,
    }
    for passage, grade, status in (("Warsaw is the capital.", 3, 1), ("Bears sleep.", 1, 1), ("It is large.", 0, 0))
]


# --- grades ----------------------------------------------------------------------------------------------------


def test_every_passage_is_graded_and_the_qrels_hold_the_grades(server: ChatServer, tmp_path: Path) -> None:
    url = server.script({"say_if": [["Bears", "Grade: 0"]], **say({"grade": 3})})
    result = autoais.label_relevance([WARSAW], assessor(url))
    assert result.qrels == {"q1": {"b#1": 3, "b#2": 0}}
    assert result.rows[0] == {
        "qid": "q1",
        "docid": "b#1",
        "model": "tiny",
        "query": QUERY,
        "passage": "Warsaw. Warsaw is the capital of Poland.",
        "prediction": '{"grade": 3}',
        "judgment": 3,
        "result_status": 1,
    }
    assert result.record["grades"] == {"0": 1, "1": 0, "2": 0, "3": 1}
    result.save_qrels(tmp_path / "qrels.txt")
    assert (tmp_path / "qrels.txt").read_text() == "q1 0 b#1 3\nq1 0 b#2 0\n"
    assert read_qrels(tmp_path / "qrels.txt") == result.qrels
    first = prompts(server, url)[0]
    assert "Warsaw. Warsaw is the capital of Poland." in first
    again = autoais.label_relevance([WARSAW], assessor(server.script({"say_if": [["Bears", "0"]], "say": "3"})))
    assert again.qrels == result.qrels


@pytest.mark.parametrize(
    "reply", ["4", "-1", '{"grade": ...}', "2.5", "2 or 3", '{"grade": "2"}', '{"grade": 7}', '{"grade": true}', ""]
)
def test_a_grade_that_cannot_be_read_is_in_no_qrels(server: ChatServer, reply: str, tmp_path: Path) -> None:
    url = server.script({"say_if": [["Bears", reply], ["cannot be used", reply]], "say": "2"})
    result = autoais.label_relevance([WARSAW], assessor(url))
    assert result.qrels == {"q1": {"b#1": 2}}
    assert (result.failed, len(server.log(url))) == (1, 3)
    row = result.rows[1]
    assert (row["judgment"], row["result_status"], row["prediction"]) == (None, 0, None)
    result.save(tmp_path / "judgements.jsonl")
    (kept,) = read_candidates(tmp_path / "judgements.jsonl")
    assert kept.grades == {"b#1": 2, "b#2": None}
    assert [passage.id for passage in kept.relevant(1).passages] == ["b#1"]
    with pytest.raises(UserError, match=r"^the model gave nothing that can be used: q1 b#1: "):
        autoais.label_relevance([WARSAW], assessor(server.script({"say": reply})))


@pytest.mark.parametrize(
    "reply",
    ["2", " 2.\n", "##final score: 2", "**Grade:** 2", "Score 2", "the grade is 2"[4:], '```json\n{"grade": 2}\n```'],
)
def test_a_bare_grade_is_read(reply: str) -> None:
    assert _read(reply) == (2, reply)


@given(st.text() | st.lists(st.sampled_from(["grade", ":", "2", "3", '{"grade":', "}", "#", " ", "-"])).map("".join))
def test_any_reply_is_a_grade_or_a_fault(reply: str) -> None:
    with suppress(ReplyError):
        assert _read(reply)[0] in range(4)
    with pytest.raises(ReplyError):
        read_labels(reply, ("vital", "okay"), 2)


@pytest.mark.parametrize(
    "reply",
    [
        "```json\n{" + "\n" * 5000 + "}" + " " * 5000 + "x",
        "grade" + " " * 20_000 + "x",
        "#" * 5000 + " " * 20_000 + "x",
        "```" + " " * 20_000 + "```" + "\n" * 20_000 + "x",
    ],
    ids=["fence", "grade", "blanks", "two fences"],
)
def test_a_model_that_writes_blanks_without_end_is_soon_read(reply: str) -> None:
    start = time.process_time()
    with pytest.raises(ReplyError):
        _read(reply)
    assert time.process_time() - start < 1


def test_thoughts_are_not_read(server: ChatServer) -> None:
    url = server.script({"say": '<think>{"grade": 3}</think>{"grade": 1}'})
    assert autoais.label_relevance([WARSAW], assessor(url)).qrels == {"q1": {"b#1": 1, "b#2": 1}}


def test_the_command_grades_a_run(server: ChatServer, tmp_path: Path, autoais: Command, corpus: Path) -> None:
    run, topics = tmp_path / "run.trec", tmp_path / "topics.tsv"
    run.write_text("q1 Q0 b#1 1 2.0 bm25\nq1 Q0 a#1 2 1.0 bm25\nq1 Q0 c#1 3 0.5 bm25\n")
    topics.write_text(f"q1\t{QUERY}\n")
    qrels, details = tmp_path / "qrels.txt", tmp_path / "judgements.jsonl"
    argv = ("relevance", run, "--model", "tiny", "--out", qrels, "--details", details, "--depth", "2")
    texts = ("--questions", topics, "--corpus", corpus)
    url = server.script({"say_if": [["Curie", "0"]], "say": "3"})
    done = autoais(*argv, *texts, OPENAI_BASE_URL=url)
    expected = "2 passages, 1 of grade 0, 0 of grade 1, 0 of grade 2, 1 of grade 3, 0 failed\n"
    assert (done.returncode, done.stdout) == (0, expected), done.stderr
    assert qrels.read_text() == "q1 0 b#1 3\nq1 0 a#1 0\n"
    assert [row["judgment"] for row in read(details)] == [3, 0]
    assert len(server.log(url)) == 2
    assert autoais(*argv, *texts, OPENAI_BASE_URL=url).returncode == 0
    assert len(server.log(url)) == 2  # the replies are in qrels.txt.replies
    one_line_error(
        autoais(*argv, OPENAI_BASE_URL=url),
        "run.trec",
        "give their texts: questions and a corpus (--questions, --corpus)",
    )
    spaced = write(
        tmp_path / "spaced.jsonl", {"query": {"qid": "q 1", "text": "x"}, "candidates": [{"docid": "a", "doc": "y"}]}
    )
    one_line_error(
        autoais("relevance", spaced, "--model", "tiny", "--out", qrels, "--details", details, OPENAI_BASE_URL=url),
        "cannot hold the id 'q 1'",
    )
    assert [row["qid"] for row in read(details)] == ["q 1"]  # what was paid for is there
    done = autoais("relevance", run, *argv[2:6], "--depth", "1", *texts, OPENAI_BASE_URL=url)
    assert done.stdout.startswith("1 passage, "), done.stderr
    topics.write_text("q2\twhat else\n")
    one_line_error(autoais(*argv, *texts, OPENAI_BASE_URL=url), "topic 'q1' is not among the questions")
    done = autoais("evaluate-run", run, "--qrels", qrels, "--measure", "RR@10")
    assert "1.0000" in done.stdout


# --- what assessors read ---------------------------------------------------------------------------------------


def test_what_umbrela_writes_is_read_with_its_grades(tmp_path: Path) -> None:
    (found,) = read_candidates(write(tmp_path / "umbrela.jsonl", *UMBRELA))
    assert (found.topic, found.query) == ("1", QUERY)
    assert found.grades == {"d0": 3, "d1": 1, "d2": None}
    assert [passage.id for passage in found.relevant(2).passages] == ["d0"]
    assert len(found.relevant(0).passages) == 3
    (tmp_path / "modified.txt").write_text("q1 Q0 b#1 3\n")  # umbrela's qrels
    assert read_qrels(tmp_path / "modified.txt") == {"q1": {"b#1": 3}}


def test_answers_are_questions_with_the_passages_of_their_ranking(tmp_path: Path) -> None:
    row = {"id": "q1", "question": QUERY, "passages": [
        {"id": "a", "text": "Second.", "rank": 2}, {"id": "b", "text": "First.", "rank": 1},
    ]}  # fmt: skip
    path = write(tmp_path / "answers.jsonl", row)
    for source in (path, list(autoais.read_answers(path)), [row]):
        (found,) = read_candidates(source)
        assert (found.topic, [passage.id for passage in found.passages]) == ("q1", ["b", "a"])


def test_requests_may_be_short(tmp_path: Path) -> None:
    rows = [{"query": "who?", "candidates": ["Ann.", {"text": "Bob."}]}, {"query": "why?", "candidates": []}]
    first, second = read_candidates(write(tmp_path / "requests.jsonl", *rows))
    assert (first.topic, [(p.id, p.text) for p in first.passages]) == ("1", [("d0", "Ann."), ("d1", "Bob.")])
    assert (second.topic, second.passages) == ("2", ())


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({"query": {"qid": "1"}, "candidates": []}, r"r\.jsonl:1: field 'text' is missing"),
        ({"query": "x", "candidates": {}}, r"r\.jsonl:1: field 'candidates' should be"),
        ({"query": "x", "candidates": [3]}, r"r\.jsonl:1: candidates\[0\] should be an object or a string"),
        ({"query": "x", "candidates": [{"docid": "a", "doc": {}}]}, r"candidates\[0\] has no text"),
        ({"query": "x", "candidates": [{"doc": "a", "judgment": 9}]}, "should be 0, 1, 2 or 3, found '9'"),
        ({"query": "x", "candidates": [{"doc": "a", "judgment": "3"}]}, "should be 0, 1, 2 or 3"),
        ({"query": "x", "candidates": [{"doc": "a", "judgment": 2.5}]}, "should be 0, 1, 2 or 3, found '2.5'"),
        ({"query": "x", "candidates": [{"docid": "a", "doc": "a"}] * 2}, "passage 'a' occurs twice in its list"),
        ({"query": "x", "passage": 3, "judgment": 1}, "field 'passage' should be a string"),
        ({"query": "x", "passage": "a", "judgment": 5}, "should be 0, 1, 2 or 3"),
        ({"id": "1", "question": "x", "passages": [{"id": "a", "text": ""}]}, "passage 'a' has no text; give a corpus"),
    ],
)
def test_broken_rows_are_refused(tmp_path: Path, row: dict[str, Any], says: str) -> None:
    with pytest.raises(UserError, match=says):
        read_candidates(write(tmp_path / "r.jsonl", row))


def test_a_question_twice_and_no_question_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="question 'q1' occurs twice"):
        read_candidates([WARSAW, WARSAW])
    with pytest.raises(UserError, match="the list: holds no questions"):
        read_candidates([])
    with pytest.raises(autoais.UsageError, match="should be a list of Candidates or answers, found int in it"):
        read_candidates([3])
    with pytest.raises(autoais.UsageError, match="are for files"):
        read_candidates([WARSAW], questions=[Question("q1", QUERY)])


# --- replies on disk -------------------------------------------------------------------------------------------


def test_a_cache_skips_damaged_lines_and_is_locked(tmp_path: Path) -> None:
    path, request = tmp_path / "replies", Request("tiny", (("user", "Hello"),))
    with ReplyCache(path) as cache:
        cache.put("host", [(request, "one")])
        with pytest.raises(UserError, match="is in use by another run"):
            ReplyCache(path)
    data = path.read_bytes()
    path.write_bytes(data + b'{"key": 3}\nnot json\n{"key": "cut')
    with ReplyCache(path) as cache:
        assert (cache.get("host", request), len(cache), cache.damaged) == ("one", 1, 2)
        assert cache.get("other", request) is None
        assert cache.get("host", Request("tiny", (("user", "Hello"),), seed=1)) is None
        cache.put("host", [(request, "two \ud800")])
    with ReplyCache(path) as cache:
        assert cache.get("host", request) == "two \ud800"
    path.write_bytes(data[:10])  # killed while the first line was written
    with ReplyCache(path) as cache:
        assert len(cache) == 0
    assert json.loads(path.read_text()) == {"autoais_replies": 1}


def test_a_full_disk_is_one_line_and_the_replies_stay_readable(server: ChatServer, tmp_path: Path) -> None:
    path, model = tmp_path / "replies", assessor(server.script({"say": "2"}))
    many = [Candidates("q1", QUERY, tuple(Passage(f"p{n}", "", f"Passage {n}.") for n in range(20)))]
    autoais.label_relevance(many, model, depth=2, cache=path)
    size = path.stat().st_size
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 100, limits[1]))
    try:
        with pytest.raises(UserError, match="replies: cannot be written: "):
            autoais.label_relevance(many, model, cache=path)
        assert path.stat().st_size == size
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert len(autoais.label_relevance(many, model, cache=path).qrels["q1"]) == 20
    with ReplyCache(path) as cache:
        assert (len(cache), cache.damaged) == (20, 0)


def test_a_reply_that_was_changed_by_hand_is_asked_for_again(server: ChatServer, tmp_path: Path) -> None:
    url, path = server.script({"say": "2"}), tmp_path / "replies"
    few = [Candidates("q1", QUERY, PASSAGES[:1])]
    assert autoais.label_relevance(few, assessor(url), cache=path).qrels == {"q1": {"b#1": 2}}
    path.write_text(path.read_text().replace('"text": "2"', '"text": "9"'))
    assert autoais.label_relevance(few, assessor(url), cache=path).qrels == {"q1": {"b#1": 2}}
    assert len(server.log(url)) == 2
