"""The commands as people run them: real processes, real files."""

import io
import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from rag.base.journal import Journal
from rag.base.types import Answer, Citation, CitedSentence, Hit, Passage, Question
from rag.commands.display import cut_around, show_answer, show_hits, show_stream
from rag.index.manifest import FORMAT_VERSION
from rag.index.open import open_index
from tests.commands import ROOT, stop
from tests.conftest import Command, one_line_error
from tests.rag.documents.pdfs import Print, make_pdf


def test_ask_answers_from_the_handbook_and_every_marker_resolves(rag: Command) -> None:
    result = rag("ask", "What is citation precision?")
    assert result.returncode == 0, result.stderr
    answer, _, passages = result.stdout.partition("\n\n")
    assert answer.startswith("Citation precision is the share of citations")
    shown = [line for line in answer.splitlines() if line]
    assert all(re.search(r" (\[\d+\])+[.!?]?$", line) for line in shown)
    assert not re.search(r"[^\]][.!?] [A-Z]", answer), "a sentence has no marker"
    for marker in re.findall(r"\[\d+\]", answer):
        assert f"\n{marker} " in f"\n{passages}"
    assert ">>Citation precision is the share" in passages
    assert all(len(line) < 140 for line in passages.splitlines()), "a line of each passage"
    assert "\x1b" not in result.stdout


def test_ask_says_that_no_index_was_named_and_how_sure_it_is(rag: Command, shelf: Path) -> None:
    told = "Answered from the bundled handbook. Use --index DIR for your own documents.\n"
    result = rag("ask", "What is citation precision?")
    assert result.stderr == told
    assert re.fullmatch(r"confidence [01]\.\d\d", result.stdout.splitlines()[-1])
    assert told not in result.stdout
    assert rag("ask", "What is citation precision?", "--json").stderr == ""  # the JSON names its index
    assert rag("ask", "When was Curie born?", "--index", shelf).stderr == ""
    assert rag("ask", "When was Curie born?", RAG_INDEX=str(shelf)).stderr == ""
    one_line_error(rag("ask", "?!"), "only stop words or punctuation")
    abstained = rag("ask", "When was Curie born?", "--index", shelf, "--min-confidence", "1")
    assert not re.search(r"\d\.\d", abstained.stdout), "figures of the model are for --json"
    assert abstained.stdout.startswith(
        "The sources do not answer this question. The closest passage, “Marie Curie”, says: “Curie was born in Warsaw"
    )
    told = rag("ask", "When was Curie born?", "--index", shelf, "--min-confidence", "1", "--json").stdout
    assert 0 < json.loads(told)["confidence"] < 1
    assert "minimum 1.0" in json.loads(told)["reason"]


@pytest.mark.parametrize(("command", "words"), [("ask", "What is Borg"), ("search", "rivers of Poland")])
def test_a_question_without_quotes_is_shown_with_them(rag: Command, shelf: Path, command: str, words: str) -> None:
    one_line_error(rag(command, *words.split(), "--index", shelf), f"write rag {command} '{words}'")


def test_ask_reads_several_indexes_and_each_citation_names_its_own(rag: Command, shelf: Path, tmp_path: Path) -> None:
    (tmp_path / "mill.md").write_text("# The mill\n\nThe mill of Verden burned down in 1955.\n", "utf-8")
    mills = tmp_path / "mills.index"
    assert rag("index", "build", tmp_path / "mill.md", "--to", mills, "--retriever", "bm25").returncode == 0
    both = ("--index", shelf, "--index", mills)
    assert "(mills:mill.md#1)" in rag("ask", "When did the mill of Verden burn down?", *both).stdout
    row = json.loads(rag("ask", "When was Curie born?", *both, "--json").stdout)
    assert (row["index"], row["sentences"][0]["citations"][0]["passage"]) == ("shelf+mills", "shelf:a#2")
    named = rag("ask", "When was Curie born?", "--index", f"old={shelf}", "--index", mills)
    assert "(old:a#2)" in named.stdout
    one_line_error(rag("ask", "Curie?", "--index", shelf, "--index", shelf), "two indexes are called 'shelf'")
    one_line_error(rag("ask", "Curie?", *both, "--index", tmp_path / "none.index"), "no index at")


@pytest.mark.parametrize("command", ["ask", "search"])
def test_a_path_behind_the_question_is_told_the_way_to_ask_it(
    rag: Command, shelf: Path, tmp_path: Path, command: str
) -> None:
    way = f"write rag {command} 'What is Borg' --index {shelf}"
    one_line_error(rag(command, "What is Borg", shelf), f"found the index {shelf} after the question; {way}")
    one_line_error(rag(command, "What", "is", "Borg", shelf), way)
    notes = tmp_path / "my notes v1.2"
    notes.mkdir()
    index = "'my notes v1.2.index'"
    built = f"rag index build '{notes}' --to {index}, then rag {command} 'Borg?' --index {index}"
    one_line_error(rag(command, "Borg?", notes), "a folder that is no index", built)
    (notes / "a.txt").write_text("Borg backs up.")
    one_line_error(rag(command, "Borg?", notes / "a.txt"), "a file that is no index", "--to a.index, then")
    for word in ("", "x" * 5000, "gone/"):
        one_line_error(rag(command, "Borg?", word), "found 2 words without quotes")


def test_the_last_word_of_a_question_may_name_a_folder(
    rag: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "docs").mkdir()
    monkeypatch.chdir(tmp_path)
    one_line_error(rag("ask", "What", "are", "docs"), "write rag ask 'What are docs'")
    one_line_error(rag("ask", "What is it?", "docs"), "found docs after the question, a folder that is no index")
    one_line_error(rag("ask", "What", "is", "it?", "./docs"), "found ./docs after the question")


def test_help_says_which_commands_print_json_lines(rag: Command) -> None:
    for command in (("search",), ("index", "show")):
        assert "Print JSON lines" in rag(*command, "--help").stdout
    assert "Print JSON." in rag("ask", "--help").stdout


def test_ask_gives_a_name_a_date_or_a_number_by_itself_too(rag: Command, shelf: Path) -> None:
    lines = rag("ask", "When was Curie born?", "--index", shelf).stdout.splitlines()
    assert lines[:2] == ["1867", "Curie was born in Warsaw in 1867 [1]. She moved to Paris in 1891 [1]."]


def test_ask_json_has_the_fields_and_its_spans_hold(rag: Command, shelf: Path) -> None:
    result = rag("ask", "What is the capital of Poland?", "--index", shelf, "--k", 3, "--json")
    record: dict[str, Any] = json.loads(result.stdout)
    assert set(record) >= {
        "question", "system", "index", "answer", "sentences", "passages", "unresolved", "abstained", "seconds",
    }  # fmt: skip
    assert record["unresolved"] == []
    assert not record["abstained"]
    texts = {passage["id"]: passage["text"] for passage in record["passages"]}
    assert [passage["n"] for passage in record["passages"]] == list(range(1, len(texts) + 1))
    for sentence in record["sentences"]:
        assert record["answer"][sentence["start"] : sentence["end"]] == sentence["text"]
        for citation in sentence["citations"]:
            assert texts[citation["passage"]][citation["start"] : citation["end"]] == citation["quote"]


def test_ask_says_when_the_passages_do_not_answer(rag: Command, shelf: Path) -> None:
    result = rag("ask", "xyzzy plugh?", "--index", shelf)
    assert (result.returncode, result.stderr) == (1, "")
    assert result.stdout.startswith("The sources do not answer this question: ")
    assert len(result.stdout.splitlines()) == 1


@pytest.mark.parametrize(
    ("question", "says"),
    [
        ("", "the question is empty"),
        ("  \n", "the question is empty"),
        ("what is the?", "only stop words or punctuation"),
        ('":()!?"', "only stop words or punctuation"),
        ("a" * 100_000, "100,000 characters"),
    ],
)
def test_bad_questions_are_one_line(rag: Command, shelf: Path, question: str, says: str) -> None:
    one_line_error(rag("ask", question, "--index", shelf), says)
    one_line_error(rag("search", question, "--index", shelf), says)


@pytest.mark.parametrize(
    "question",
    [
        '"river" AND title:(Poland)^9',
        "river [1] {2}",
        "ما هي river",
        "東京 river",
        "river \u202e\x07\x1b[31m",
        "river~ -Poland",
    ],
)
def test_odd_but_fair_questions_are_answered(rag: Command, shelf: Path, question: str) -> None:
    result = rag("ask", question, "--index", shelf)
    assert result.returncode in (0, 1), result.stderr  # some say too little of what they ask about
    assert result.stderr == ""
    assert "\n[1] " in result.stdout
    assert "\x1b" not in result.stdout


def test_bytes_that_are_no_text_are_one_line(rag: Command, shelf: Path) -> None:
    one_line_error(rag("ask", "\udcff river", "--index", shelf), "are not characters")


def test_a_path_too_long_is_one_line(rag: Command) -> None:
    one_line_error(rag("ask", "river?", "--index", "x" * 300), "File name too long")


def test_what_a_file_holds_cannot_drive_the_terminal_or_break_the_line(rag: Command, tmp_path: Path) -> None:
    hostile = tmp_path / "h.jsonl"
    row = {"docid": "x\x1b[2J", "title": "T\x07", "text": "The river \x1b[31mruns\r\u202e north of the town."}
    hostile.write_text(json.dumps(row) + "\n")
    assert rag("index", "build", hostile, "--to", tmp_path / "h.index").returncode == 0
    shown = rag("ask", "Where does the river run?", "--index", tmp_path / "h.index")
    assert "north of the town" in shown.stdout
    assert not set("\x1b\x07\r\u202e") & set(shown.stdout)
    hostile.write_text(json.dumps({"docid": "1", "te\nxt\x1b": "x"}) + "\n")
    result = rag("index", "build", hostile, "--format", "miracl", "--to", tmp_path / "i.index")
    one_line_error(result, "field 'text' is missing")
    assert "\x1b" not in result.stderr


def test_overlapping_quotes_are_shown_once(capsys: pytest.CaptureFixture[str]) -> None:
    passage = Passage("p", "", "0123456789")
    cite = [Citation("p", 0, 8, "01234567"), Citation("p", 2, 4, "23"), Citation("p", 6, 10, "6789")]
    sentence = CitedSentence("x", tuple(cite), 0, 1)
    show_answer(Answer(Question("q", "?"), "x", (sentence,), (Hit(passage, 1.0),), "s"))
    assert ">>0123456789<<" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("share", "shown"), [(0.95, "\x1b[1m42\x1b[0m\n4 of 42 fit."), (0.4, "4 of \x1b[1m42\x1b[0m fit.")]
)
def test_a_short_answer_comes_first_only_if_the_passages_agree_on_it(share: float, shown: str) -> None:
    sentence = CitedSentence("4 of 42 fit.", (Citation("p", 0, 12, "4 of 42 fit."),), 0, 12)
    hits = (Hit(Passage("p", "", "4 of 42 fit."), 1.0),)
    answer = Answer(Question("q", "?"), "4 of 42 fit.", (sentence,), hits, "s", "42", trace={"short_share": share})
    written = io.StringIO()
    show_answer(answer, Console(force_terminal=True, color_system="standard", width=80, file=written))
    assert written.getvalue().replace(" [1].", ".").startswith(shown)


def test_an_answer_fits_a_screen_unless_the_sources_are_asked_for(rag: Command, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    filler = "The yard is swept on Mondays, and the bins are put out in the evening. " * 12
    (tmp_path / "docs" / "shed.md").write_text(f"# Shed\n\n{filler}\n\nThe shed was built in 1907.\n\n{filler}\n")
    for n in range(8):
        (tmp_path / "docs" / f"{n}.md").write_text(f"# Yard {n}\n\nThe yard {n} has a shed, and was built later.\n")
    index = tmp_path / "d.index"
    assert rag("index", "build", tmp_path / "docs", "--to", index, "--retriever", "bm25").returncode == 0
    ask = ("ask", "When was the shed built?", "--index", index, "--system", "extractive")
    short, whole = rag(*ask).stdout, rag(*ask, "--sources").stdout
    (excerpt,) = (line for line in short.splitlines() if ">>" in line and "1907" in line)
    assert re.fullmatch(r"…\w.+ >>The shed was built in 1907\.<<", excerpt)
    assert len(short.splitlines()) <= 24
    sentence = "The yard is swept on Mondays, and the bins are put out in the evening. "
    assert sentence * 2 not in short
    assert sentence * 2 in whole
    assert short.splitlines()[0] == whole.splitlines()[0]
    for option in (("--json",), ("--to", "html")):
        one_line_error(rag(*ask, "--sources", *option), f"--sources and {option[0]} exclude each other")


@given(st.text(alphabet="ab \n.", max_size=80), st.integers(0, 80), st.integers(0, 80), st.integers(1, 60))
def test_a_part_of_a_passage_has_the_quote_and_whole_words(text: str, start: int, length: int, width: int) -> None:
    start = min(start, len(text))
    span = start, min(start + length, len(text))
    first, last = cut_around(text, span, width)
    assert 0 <= first <= start
    assert 0 <= last - first <= width
    assert last >= min(span[1], start + width // 2)
    for place in {first, last} - {*span, 0, len(text), start + width}:
        assert text[place - 1].isspace() or text[place].isspace()


def test_a_part_of_a_passage_without_blanks_is_not_empty() -> None:
    assert cut_around("塔于一九三一年建成" * 20, (0, 0), 40) == (0, 40)


def test_a_short_answer_that_is_all_the_text_is_printed_once(capsys: pytest.CaptureFixture[str]) -> None:
    sentence = CitedSentence("In 1931.", (Citation("p", 0, 8, "In 1931."),), 0, 8)
    answer = Answer(Question("q", "?"), "In 1931.", (sentence,), (Hit(Passage("p", "", "In 1931."), 1.0),), "s")
    show_answer(replace(answer, short_answer="in 1931"))
    assert capsys.readouterr().out.startswith("In 1931 [1].\n\n[1]")
    longer = replace(answer, text="In 1931. Or so.", short_answer="1931")
    show_stream([replace(answer, text="", sentences=()), longer])
    assert capsys.readouterr().out.startswith("1931\nIn 1931 [1]. Or so.\n")


def test_bad_index_paths_are_one_line(rag: Command, tmp_path: Path, shelf: Path) -> None:
    one_line_error(rag("ask", "river?", "--index", tmp_path / "gone"), "no index at", "rag index build")
    (tmp_path / "notes").mkdir()
    one_line_error(rag("ask", "river?", "--index", tmp_path / "notes"), "is not an index", "rag index build")
    manifest = shelf / "manifest.json"
    said, now = manifest.read_text(), f'"format_version": {FORMAT_VERSION}'
    for version, way_out in ((FORMAT_VERSION + 1, "upgrade attributed-rag"), (FORMAT_VERSION - 1, "build it again")):
        manifest.write_text(said.replace(now, f'"format_version": {version}'))
        one_line_error(rag("search", "river", "--index", shelf), way_out)


def test_ask_without_a_question_and_without_a_terminal_is_one_line(
    rag: Command, shelf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("river?\n"))
    one_line_error(rag("ask", "--index", shelf), "give a question: rag ask", "needs a terminal")
    one_line_error(rag("ask", "--index", shelf, "--json"), "give a question")


def test_build_then_info_then_search(rag: Command, corpus: Path, tmp_path: Path) -> None:
    index = tmp_path / "i.index"
    built = rag("index", "build", corpus, "--to", index)
    assert built.returncode == 0, built.stderr
    assert "6 passages" in built.stderr
    assert json.loads(rag("index", "info", index).stdout)["passages"] == 6
    hits = json.loads(rag("search", "longest river", "--index", index, "--k", 2, "--json").stdout)["hits"]
    assert [hit["rank"] for hit in hits] == [1, 2]
    assert hits[0]["id"] == "b#2"
    told = [rag("search", "longest river", "--index", index, *more).stderr for more in ((), ("--retriever", "bm25"))]
    assert told == ["searched by bm25; --retriever default searches as rag ask does\n", ""]


def test_build_of_documents_says_what_it_leaves_out_and_search_names_the_page(rag: Command, tmp_path: Path) -> None:
    docs, text = tmp_path / "docs", " ".join(f"Harbour {n} lies on the river." for n in range(20))
    docs.mkdir()
    (docs / "a.html").write_text(f"<nav>Home</nav><p>{text}")
    (docs / "a.txt").write_text(text)
    (tmp_path / "elsewhere.md").write_text(text)
    (docs / "out.md").symlink_to(tmp_path / "elsewhere.md")
    (docs / "gone.md").symlink_to(tmp_path / "gone.md")
    for name in ("changelog.gz", "copyright", "a.log", "b.log", ".hidden.md"):
        (docs / name).write_text(text)
    (docs / "bad.epub").write_bytes(b"nonsense")
    (docs / "b.pdf").write_bytes(make_pdf([[], [Print("The Vistula is the longest river of Poland.", 700)]]))
    built = rag("index", "build", docs, "--to", tmp_path / "d.index")
    assert built.returncode == 0
    for line in (
        f"skipped {docs / 'bad.epub'}: broken: File is not a zip file",
        "left out of documents: 1 piece of navigation",
        "left out 1 file that repeats another, such as a.txt (a.html)",
        "left out 1 link that leads out of the folder: name the target as a source",
        "not read, as they are no documents: 2 .log, 1 .gz, 1 without a suffix; such as a.log, changelog.gz, copyright",
        "not read: 1 item hidden by a dot, 1 link to nowhere",
    ):
        assert line in built.stderr
    assert ", page 2  (b.pdf#1)" in rag("search", "longest Vistula", "--index", tmp_path / "d.index").stdout
    (hit, *_) = json.loads(rag("search", "Vistula", "--index", tmp_path / "d.index", "--json").stdout)["hits"]
    assert hit["page"] == 2
    one_line_error(rag("index", "build", docs, "--to", tmp_path / "e.index", "--strict"), "bad.epub: broken")


def test_build_reports_what_it_skips(rag: Command, corpus: Path, tmp_path: Path) -> None:
    corpus.write_text(corpus.read_text("utf-8") + "not json\n", "utf-8")
    one_line_error(rag("index", "build", corpus, "--to", tmp_path / "i.index"), "shelf.jsonl:7", "not JSON")
    result = rag("index", "build", corpus, "--to", tmp_path / "i.index", "--skip-bad")
    assert result.returncode == 0
    assert "skipped" in result.stderr
    assert "shelf.jsonl:7" in result.stderr
    assert open_index(tmp_path / "i.index").manifest["skipped"] == 1


def test_search_writes_a_trec_run(rag: Command, shelf: Path, tmp_path: Path) -> None:
    topics, run = tmp_path / "topics.tsv", tmp_path / "out.trec"
    topics.write_text("1\tlongest river of Poland\n2\tthe\n3\tWarsaw\n")
    result = rag("search", "--questions", topics, "--index", shelf, "--run", run, "--k", 3)
    assert result.returncode == 0, result.stderr
    assert "2: nothing to search for" in result.stderr
    rows = [line.split() for line in run.read_text().splitlines()]
    assert all(len(row) == 6 and row[1] == "Q0" and row[5] == "bm25.v1" for row in rows)
    assert [row[3] for row in rows if row[0] == "1"] == ["1", "2", "3"]
    assert {row[0] for row in rows} == {"1", "3"}
    topics.write_text("1\tlongest river of Poland\n")
    one_line_error(rag("search", "--questions", topics, "--index", shelf, "--run", "/dev/full"), "/dev/full")
    before = run.read_text()
    refused = rag("search", "--questions", topics, "--index", shelf, "--run", run, "--k", 0)
    one_line_error(refused, "k must be at least 1")
    assert run.read_text() == before
    one_line_error(rag("search", "--index", shelf), "either a query or --questions")


# --- answering files of questions ------------------------------------------------------------------------------


def _questions(path: Path, n: int) -> Path:
    kinds = ("What is the capital of Poland?", "When was Curie born?", "the?", "How long is the Vistula?")
    rows = ({"id": f"q{i}", "question": kinds[i % 4], "answers": ["Warsaw"], "gold": ["b#1"]} for i in range(n))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def _rows(path: Path) -> list[dict[str, Any]]:
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    return [{key: value for key, value in row.items() if key != "seconds"} for row in rows]


def test_answer_writes_a_row_a_question_also_where_it_abstains(rag: Command, shelf: Path, tmp_path: Path) -> None:
    questions, out = _questions(tmp_path / "q.jsonl", 5), tmp_path / "answers.jsonl"
    result = rag("answer", questions, "--index", shelf, "--system", "extractive", "--out", out)
    assert result.returncode == 0, result.stderr
    rows = _rows(out)
    assert [row["id"] for row in rows] == [f"q{i}" for i in range(5)]
    assert [row["abstained"] for row in rows] == [False, False, True, False, False]
    assert "only stop words" in rows[2]["reason"]
    assert all(row["short_answer"] is None and row["answers"] == ["Warsaw"] for row in rows)
    one_line_error(rag("answer", questions, "--index", shelf, "--out", out), "exists", "--resume")
    assert _rows(out) == rows


def test_a_list_of_questions_is_answered_and_the_last_line_counts(rag: Command, shelf: Path, tmp_path: Path) -> None:
    questions, out = tmp_path / "q.txt", tmp_path / "answers.jsonl"
    questions.write_text("\ufeffWhat is the capital of Poland?\r\n\r\nWhen was Curie born?\r\nthe?\r\n", "utf-8")
    result = rag("answer", questions, "--index", shelf, "--out", out)
    assert (result.returncode, [row["id"] for row in _rows(out)]) == (0, ["1", "3", "4"])
    assert result.stderr == f"3 questions in {out}: 2 answered, 1 refused, 0 failed\n"
    again = rag("answer", questions, "--index", shelf, "--out", out, "--resume")
    assert again.stderr == result.stderr
    questions.write_bytes(b"Who?\n\xff\n")
    one_line_error(
        rag("answer", questions, "--index", shelf, "--out", tmp_path / "b"), "q.txt:2", "save the file as UTF-8"
    )


@pytest.mark.slow
def test_a_stopped_run_resumes_to_the_same_rows(rag: Command, shelf: Path, tmp_path: Path) -> None:
    questions, whole = _questions(tmp_path / "q.jsonl", 2000), tmp_path / "whole.jsonl"
    quick = ("--system", "extractive", "--index", shelf)
    assert rag("answer", questions, *quick, "--out", whole).returncode == 0
    for number in (signal.SIGINT, signal.SIGKILL):
        cut = tmp_path / f"{number.name}.jsonl"
        stopped = stop("rag", number, cut, "answer", questions, *quick, "--out", cut)
        assert b"Traceback" not in stopped.stderr
        assert stopped.returncode not in (0, 1)
        stopped_at = cut.read_bytes().count(b"\n")
        assert 0 < stopped_at < 2000
        cut.write_bytes(cut.read_bytes() + b'{"id": "q9999", "que')  # a kill in the middle of a write
        result = rag("answer", questions, *quick, "--out", cut, "--resume")
        assert result.returncode == 0, result.stderr
        assert _rows(cut) == _rows(whole)


def test_a_system_that_cannot_stream_says_so(rag: Command, shelf: Path) -> None:
    result = rag("ask", "When was Curie born?", "--index", shelf, "--stream")
    assert result.returncode == 0
    assert "reader does not stream: answers are printed when they are complete" in result.stderr
    assert "1867" in result.stdout


def test_two_runs_do_not_write_one_file(rag: Command, shelf: Path, tmp_path: Path) -> None:
    questions, out = _questions(tmp_path / "q.jsonl", 4), tmp_path / "answers.jsonl"
    options = ("--system", "extractive", "--index", shelf, "--out", out)
    assert rag("answer", questions, *options).returncode == 0
    whole = out.read_text()
    out.write_text("".join(whole.splitlines(keepends=True)[:2]))
    with Journal(out, json.loads(Path(f"{out}.run.json").read_text()), resume=True):
        one_line_error(rag("answer", questions, *options, "--resume"), "another process is writing")
        answers = rag("attribute", out, "--index", shelf, "--out", tmp_path / "with-sources.jsonl")
        assert answers.returncode == 0, answers.stderr
    assert rag("answer", questions, *options, "--resume").returncode == 0
    assert [row["id"] for row in _rows(out)] == [f"q{i}" for i in range(4)]
    Path(f"{out}.run.json").unlink()
    one_line_error(rag("answer", questions, *options, "--resume"), "cannot be resumed", "run.json is missing")
    assert not Path(f"{out}.run.json").exists()


@pytest.mark.parametrize("command", [("search", "Poland", "--json"), ("ask", "What is the capital of Poland?")])
def test_a_closed_pipe_ends_a_command_quietly(shelf: Path, command: tuple[str, ...]) -> None:
    code = "from rag.commands.main import main; main()"
    environment = os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'eval'}"}
    argv = [sys.executable, "-c", code, *command, "--index", str(shelf)]
    with subprocess.Popen(argv, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == b""
    assert process.returncode == 1


def test_resume_refuses_another_question_file_system_or_index(rag: Command, shelf: Path, tmp_path: Path) -> None:
    questions, out = _questions(tmp_path / "q.jsonl", 4), tmp_path / "a.jsonl"
    assert rag("answer", questions, "--index", shelf, "--out", out).returncode == 0
    before = out.read_bytes()
    one_line_error(rag("answer", questions, "--out", out, "--resume"), "another index")
    one_line_error(rag("answer", questions, "--index", shelf, "--k", 2, "--out", out, "--resume"), "another system")
    _questions(questions, 8)
    one_line_error(rag("answer", questions, "--index", shelf, "--out", out, "--resume"), "another questions")
    assert out.read_bytes() == before


def test_a_device_that_is_full_is_one_line(rag: Command, shelf: Path, tmp_path: Path) -> None:
    questions = _questions(tmp_path / "q.jsonl", 4)
    out = tmp_path / "full.jsonl"
    out.symlink_to("/dev/full")
    result = rag("answer", questions, "--index", shelf, "--out", out, "--resume")
    one_line_error(result, "full.jsonl")


def test_unknown_names_list_what_there_is(rag: Command, shelf: Path, tmp_path: Path) -> None:
    one_line_error(rag("ask", "river?", "--system", "nope", "--index", shelf), "there are: reader, extractive")
    questions = _questions(tmp_path / "q.jsonl", 1)
    one_line_error(
        rag("answer", questions, "--system", "nope", "--out", tmp_path / "x"), "there are: reader, extractive"
    )
    assert not (tmp_path / "x").exists()


def test_help_and_version_load_no_engine(rag: Command, autoais: Command) -> None:
    code = (
        "import sys; from rag.commands.main import app\n"
        "try: app(['--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'tantivy', 'numpy', 'torch', 'sqlite3', 'rich.progress', 'selectolax'} & set(sys.modules)\n"
        "print('heavy:', sorted(heavy))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.splitlines()[-1] == "heavy: []"
    assert rag("--version").stdout.startswith("attributed-rag ")
    assert autoais("--version").stdout == rag("--version").stdout


@pytest.mark.parametrize(
    ("score", "shown"), [(0.00123, "0.00123"), (-0.5, "-0.500"), (12.345, "12.3"), (123.4, "123"), (54321.0, "54321")]
)
def test_scores_have_three_significant_digits(score: float, shown: str, capsys: pytest.CaptureFixture[str]) -> None:
    show_hits(Question("q", "Where?"), [Hit(Passage("a", "Town", "Here."), score)])
    assert f", score {shown}\n" in capsys.readouterr().out
