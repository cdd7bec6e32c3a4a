"""Answers of any system get sources after the fact: `PostHoc`, and `rag attribute` as people run it."""

import csv
import json
import signal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoais.base.answers import to_row
from autoais.base.errors import FormatError
from autoais.judges.lexical import LexicalJudge
from rag.answer.attribution.post_hoc import PostHoc, read_uncited_answers
from rag.base.types import Answer, CitedSentence, Question
from rag.index.index import Index
from rag.index.open import open_index
from tests.commands import stop
from tests.conftest import Command, one_line_error


@pytest.fixture
def index(shelf: Path) -> Index:
    return open_index(shelf)


def said(question: str, *sentences: str, short: str | None = None) -> Answer:
    text, spans = "", []
    for sentence in sentences:
        start = len(text) + bool(text)
        text = f"{text} {sentence}" if text else sentence
        spans.append(CitedSentence(sentence, (), start, len(text)))
    abstained = not sentences
    reason = "nothing was said" if abstained else None
    return Answer(
        Question("q", question), text, tuple(spans), (), "given", short_answer=short, abstained=abstained, reason=reason
    )


def test_each_sentence_is_searched_for_and_gets_the_passage_that_supports_it(index: Index) -> None:
    post_hoc = PostHoc(index.bm25, LexicalJudge(), 3)
    answer = post_hoc.attribute(
        said("Tell me of Curie", "Curie was born in Warsaw in 1867.", "Penguins swim well.", "See also the list.")
    )
    assert [[one.passage for one in sentence.citations] for sentence in answer.sentences] == [["a#2"], [], []]
    assert answer.sentences[0].citations[0].quote == "Curie was born in Warsaw in 1867."
    assert answer.sentences[0].citations[0].origin == "attached"
    counts = {"attached": 1, "uncited": 1, "not_applicable": 1, "uncited_sentences": [1]}
    assert answer.trace["attribution"] == counts
    assert answer.system == f"given>{post_hoc.name}"
    scores = [hit.score for hit in answer.hits]
    assert scores == sorted(scores, reverse=True)


def test_a_short_answer_is_searched_for_and_judged_with_its_question(index: Index) -> None:
    answer = PostHoc(index.bm25, LexicalJudge(template="auto.v1")).attribute(
        said("what is the longest river of poland", "Vistula", short="Vistula")
    )
    assert [one.passage for one in answer.sentences[0].citations] == ["b#2"]
    assert answer.sentences[0].citations[0].quote == "The Vistula is the longest river of Poland."


def test_what_cannot_be_searched_for_stays_uncited_and_nothing_said_stays_an_abstention(index: Index) -> None:
    post_hoc = PostHoc(index.bm25, LexicalJudge())
    assert post_hoc.attribute(said("", "It is.")).trace["attribution"]["uncited"] == 1
    assert post_hoc.attribute(said("", "\ud83d river " * 2000)).hits == ()
    nothing = post_hoc.attribute(said("What?"))
    assert nothing.abstained
    assert nothing.hits == ()


_WORDS = st.sampled_from("Curie born in Warsaw 1867 . Vistula longest river penguin [1] \x00 東京 \ud83d ? the".split())
_SAID = st.lists(st.lists(_WORDS, min_size=1, max_size=8).map(" ".join), max_size=3)


@given(_SAID, st.text(max_size=30), st.floats(0.1, 1.0))
def test_whatever_was_said_every_citation_is_shown_and_verbatim(
    sentences: list[str], question: str, threshold: float
) -> None:
    before = said(question, *sentences)
    after = PostHoc(_handbook().bm25, LexicalJudge(threshold), 3).attribute(before)  # `Answer` checks every citation
    assert after.text == before.text
    assert [(s.start, s.end) for s in after.sentences] == [(s.start, s.end) for s in before.sentences]
    counts = after.trace["attribution"]
    assert counts["attached"] + counts["uncited"] + counts["not_applicable"] == len(sentences)
    json.dumps(to_row(after.to_cited("i", 0.0)), allow_nan=False)


_OPENED: list[Index] = []


def _handbook() -> Index:
    if not _OPENED:
        _OPENED.append(open_index(None))
    return _OPENED[0]


# --- files of other systems ------------------------------------------------------------------------------------


def write_rows(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_an_answer_alone_is_cut_into_sentences_and_its_markers_are_set_aside(tmp_path: Path) -> None:
    path = write_rows(
        tmp_path / "a.jsonl",
        {"id": 1, "question": "Who?", "answer": "Curie won it [1]. She was born in Warsaw.[2]", "system": "theirs"},
        {"id": 2, "question": "Who?", "short_answer": "Curie", "answers": ["Curie"], "gold": ["a#1"]},
        {"id": 3, "question": "Who?", "abstained": True},
        {"id": 4, "question": "Who?", "answer": ""},
    )
    first, second, *nothing = read_uncited_answers(path)
    assert first.text == "Curie won it. She was born in Warsaw."
    assert [first.text[one.start : one.end] for one in first.sentences] == ["Curie won it.", "She was born in Warsaw."]
    assert first.system == "theirs"
    assert (second.text, second.short_answer, second.question.gold) == ("Curie", "Curie", ("a#1",))
    assert [answer.abstained for answer in nothing] == [True, True]


def test_predictions_and_alce_files_are_read(tmp_path: Path) -> None:
    predictions = tmp_path / "p.csv"
    with predictions.open("w", newline="") as file:
        csv.writer(file).writerows([["question", "answer", "attribution"], ["who won", "Curie", "x#1"]])
    (answer,) = read_uncited_answers(predictions)
    assert (answer.text, answer.short_answer, answer.hits) == ("Curie", "Curie", ())
    alce = tmp_path / "alce.json"
    item = {"question": "Who?", "docs": [{"title": "T", "text": "x"}], "output": "Curie won [1]. She moved [1]."}
    alce.write_text(json.dumps({"args": {}, "data": [item | {"answer": "Curie"}]}))
    (answer,) = read_uncited_answers(alce)
    assert len(answer.sentences) == 2
    assert all(not sentence.citations for sentence in answer.sentences)


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ('{"id": "1", "question": "a?"}\n{"id": "1", "question": "b?"}\n', "occurs twice"),
        ('{"id": "1", "question": "a?"}\nnot json\n', "a.jsonl:2"),
        ('{"id": "1", "question": "a?", "answer": 7}\n', "answer"),
        ('{"id": "1", "question": 7}\n', "question"),
    ],
)
def test_a_broken_file_is_refused_with_its_line(tmp_path: Path, lines: str, says: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(lines)
    with pytest.raises(FormatError, match=says):
        list(read_uncited_answers(path))


# --- rag attribute ---------------------------------------------------------------------------------------------

ANSWERS: list[dict[str, Any]] = [
    {"id": "q1", "question": "what is the capital of poland", "short_answer": "Warsaw", "answers": ["Warsaw"]},
    {"id": "q2", "question": "Who was Curie?", "answer": "Curie was born in Warsaw in 1867. Penguins swim well."},
    {"id": "q3", "question": "Who?", "abstained": True},
]


def rows_of(path: Path) -> list[dict[str, Any]]:
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    return [{key: value for key, value in row.items() if key != "seconds"} for row in rows]


def test_attribute_writes_answers_that_can_be_scored(
    rag: Command, autoais: Command, shelf: Path, tmp_path: Path
) -> None:
    answers, out = write_rows(tmp_path / "a.jsonl", *ANSWERS), tmp_path / "out.jsonl"
    result = rag("attribute", answers, "--index", shelf, "--out", out)
    assert result.returncode == 0, result.stderr
    assert "3 answers in" in result.stderr
    assert "2 sentences with a source, 1 without" in result.stderr
    one, two, three = rows_of(out)
    assert [c["passage"] for s in one["sentences"] for c in s["citations"]] == ["b#1"]
    assert one["sentences"][0]["citations"][0]["quote"] == "Warsaw is the capital of Poland."
    assert [len(sentence["citations"]) for sentence in two["sentences"]] == [1, 0]
    assert two["trace"]["attribution"]["uncited_sentences"] == [1]
    assert three["abstained"]
    scored = autoais("score", out, "--json", "--metrics", "alce")
    assert scored.returncode == 0, scored.stderr
    assert json.loads(scored.stdout)["metrics"]["sentences"]["n"] == 3
    one_line_error(rag("attribute", answers, "--index", shelf, "--out", out), "exists", "--resume")
    one_line_error(rag("attribute", answers, "--index", shelf, "--out", answers), "would be overwritten")
    again = rag("attribute", answers, "--index", shelf, "--out", out, "--judge", "lexical", "--resume")
    one_line_error(again, "another system")


def test_attribute_says_what_a_passage_contradicts(rag: Command, shelf: Path, tmp_path: Path) -> None:
    row = {"id": "q", "question": "Who was Curie?", "answer": "Curie was born in Warsaw in 1868."}
    out = tmp_path / "out.jsonl"
    result = rag("attribute", write_rows(tmp_path / "a.jsonl", row), "--index", shelf, "--out", out)
    assert "0 sentences with a source, 1 without (1 contradicted)" in result.stderr
    (check,) = rows_of(out)[0]["trace"]["checked"]
    assert (check["verdict"], check["numbers"]) == ("contradicted", ["1867", "1868"])
    assert check["contradiction"]["quote"] == "Curie was born in Warsaw in 1867."
    dropped = tmp_path / "dropped.jsonl"
    assert (
        rag("attribute", tmp_path / "a.jsonl", "--index", shelf, "--out", dropped, "--revise", "drop").returncode == 0
    )
    (revised,) = rows_of(dropped)
    assert revised["reason"] == "no sentence of the answer is supported by a retrieved passage"


def test_attribute_drops_what_nothing_supports_and_shows_what_it_dropped(
    rag: Command, shelf: Path, tmp_path: Path
) -> None:
    answers, out = write_rows(tmp_path / "a.jsonl", *ANSWERS), tmp_path / "out.jsonl"
    result = rag("attribute", answers, "--index", shelf, "--out", out, "--revise", "drop", "--judge", "lexical")
    assert result.returncode == 0, result.stderr
    two = rows_of(out)[1]
    assert two["answer"] == "Curie was born in Warsaw in 1867."
    why = "no passage shown supports it"
    assert two["trace"]["revised"] == [{"before": "Penguins swim well.", "after": None, "why": why}]


def test_attribute_refuses_what_is_not_there(rag: Command, shelf: Path, tmp_path: Path) -> None:
    answers, out = write_rows(tmp_path / "a.jsonl", *ANSWERS), tmp_path / "out.jsonl"
    one_line_error(rag("attribute", tmp_path / "gone", "--index", shelf, "--out", out), "gone", "cannot be read")
    one_line_error(rag("attribute", answers, "--index", shelf, "--out", out, "--judge", "nope"), "no judge called")
    one_line_error(rag("attribute", answers, "--index", tmp_path / "no", "--out", out), "no index at")
    one_line_error(rag("attribute", answers, "--index", shelf, "--out", out, "--k", 0), "k must be at least 1")
    one_line_error(rag("attribute", answers, "--index", shelf, "--out", out, "--format", "x"), "no format called")


def test_a_killed_attribution_resumes_to_the_same_rows(rag: Command, shelf: Path, tmp_path: Path) -> None:
    many = [ANSWERS[n % 3] | {"id": f"q{n}"} for n in range(900)]
    answers, whole, cut = write_rows(tmp_path / "a.jsonl", *many), tmp_path / "whole.jsonl", tmp_path / "cut.jsonl"
    options = ("--index", shelf, "--judge", "lexical")
    assert rag("attribute", answers, *options, "--out", whole).returncode == 0
    stop("rag", signal.SIGKILL, cut, "attribute", answers, *options, "--out", cut)
    assert 0 < cut.read_bytes().count(b"\n") < 900
    cut.write_bytes(cut.read_bytes() + b'{"id": "q9999", "que')
    assert rag("attribute", answers, *options, "--out", cut, "--resume").returncode == 0
    assert rows_of(cut) == rows_of(whole)
