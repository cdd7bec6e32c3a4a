"""Runs against judgements: hand-made figures, properties, hostile files, and the commands as people run them."""

import gzip
import json
import math
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from autoais.errors import FormatError, UserError
from autoais.io.jsonl import write_whole
from autoais.io.provenance import sha256_file
from rag.answering import trec_lines
from rag.evaluation import (
    Run,
    answer_ranks,
    difference,
    evaluate,
    evaluate_files,
    open_measures,
    page,
    per_topic,
    qrels_of_pages,
    read_qrels,
    read_run,
    run_of_pages,
)
from rag.types import Hit, Passage, Question
from tests.conftest import SHELF, Command, one_line_error

ROOT = Path(__file__).parents[2]
NEEDS = "needs the extra 'measures'"

# Topic 1 finds b at rank 2 and a at rank 4, and misses z; 2 is skipped; 3 has nothing relevant; 4 is not judged.
QRELS = "1 0 a 1\n1 0 b 2\n1 0 c 0\n1 0 z 1\n2 0 a 1\n3 0 a 0\n"
RUN = "1 Q0 x 1 9.5 t\n1 Q0 b 2 8 t\n1 Q0 c 3 7e0 t\n1 Q0 a 4 6 t\n3 Q0 a 1 1 t\n4 Q0 a 1 1 t\n"
IDEAL = 2 + 1 / math.log2(3) + 1 / 2
GOLDEN = {
    "nDCG@10": (2 / math.log2(3) + 1 / math.log2(5)) / IDEAL,
    "nDCG@3": (2 / math.log2(3)) / IDEAL,
    "R@100": 2 / 3,
    "R@3": 1 / 3,
    "RR@10": 1 / 2,
    "RR@1": 0.0,
    "Success@1": 0.0,
    "Success@5": 1.0,
    "AP": (1 / 2 + 2 / 4) / 3,
    "P@5": 2 / 5,
    "P(rel=2)@5": 1 / 5,
}


def write(path: Path, text: str) -> Path:
    path.write_text(text, "utf-8")
    return path


def test_golden_values_by_hand(tmp_path: Path) -> None:
    pytest.importorskip("ir_measures", reason=NEEDS)
    run, qrels = read_run(write(tmp_path / "r", RUN)), read_qrels(write(tmp_path / "q", QRELS))
    values = per_topic(open_measures(GOLDEN), qrels, run)
    assert list(values) == list(GOLDEN)
    for name, value in GOLDEN.items():
        assert values[name] == [pytest.approx(value), 0.0, 0.0], name
    result = evaluate({"r": run}, qrels, open_measures(["Success@5", "R@100"]))
    (one,) = result["runs"]
    assert one["measures"]["Success@5"]["value"] == pytest.approx(1 / 3)
    assert {mean["n"] for mean in one["measures"].values()} == {3}
    assert one["per_topic"]["Success@5"] == {"1": 1.0, "2": 0.0, "3": 0.0}
    assert (one["topics_skipped"], one["topics_not_judged"], result["topics_without_relevant"]) == (1, 1, 1)
    assert result["notes"] == [
        "1 topics have nothing relevant and count as zero",
        "r: 1 of 3 topics are not in the run and count as zero",
        "r: 1 topics are not in the judgements and are left out: '4'",
        "r: its longest list has 4; what is deeper in Success@5, R@100 is taken as not found",
    ]


def test_without_ties_the_values_are_those_of_ir_measures_by_itself(tmp_path: Path) -> None:
    ir_measures = pytest.importorskip("ir_measures", reason=NEEDS)
    rng = random.Random(5)
    topics, documents = [f"t{n}" for n in range(20)], [f"d{n}" for n in range(40)]
    run = "".join(
        f"{topic} Q0 {document} 0 {rng.random():.9f} t\n" for topic in topics for document in rng.sample(documents, 30)
    )
    qrels = "".join(
        f"{topic} 0 {document} {rng.randint(0, 3)}\n" for topic in topics for document in rng.sample(documents, 9)
    )
    names = ["nDCG@10", "nDCG", "R@5", "RR@10", "RR", "Success@3", "AP", "AP@7", "P(rel=3)@10", "Rprec", "Bpref"]
    measures = open_measures(names)
    theirs = ir_measures.calc_aggregate(
        [measure.engine for measure in measures],
        list(ir_measures.read_trec_qrels(qrels)),
        list(ir_measures.read_trec_run(run)),
    )
    ours = per_topic(measures, read_qrels(write(tmp_path / "q", qrels)), read_run(write(tmp_path / "r", run)))
    for measure in measures:
        assert math.fsum(ours[measure.name]) / 20 == pytest.approx(theirs[measure.engine]), measure.name


# --- properties ------------------------------------------------------------------------------------------------

# Ids as files have them: anything visible, also what a C program would take for an end or a sign.
IDS = st.text(min_size=1, max_size=4).filter(
    lambda text: not any(c.isspace() or "\ud800" <= c <= "\udfff" for c in text) and text[0] not in "{\ufeff"
)
SCORES = st.floats(-1e6, 1e6).map(lambda score: round(score, 2))
LISTS = st.dictionaries(IDS, SCORES, min_size=1, max_size=6)
RUNS = st.dictionaries(st.sampled_from("12345"), LISTS, min_size=1, max_size=5)
JUDGED = st.dictionaries(IDS, st.integers(-1, 3), max_size=6)
RELEVANT = st.dictionaries(st.sampled_from("12345"), JUDGED, min_size=1, max_size=5)
PROPERTY = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
ALL = ("nDCG@10", "nDCG", "R@2", "RR@10", "Success@1", "AP", "P@3", "Rprec")


def as_run(lists: dict[str, dict[str, float]]) -> Run:
    return Run("t", {topic: sorted(of, key=lambda i: (-of[i], i)) for topic, of in lists.items()})


@PROPERTY
@given(RUNS, RELEVANT)
def test_values_are_between_0_and_1_and_a_topic_that_is_left_out_can_only_lower(
    lists: dict[str, dict[str, float]], judged: dict[str, dict[str, int]]
) -> None:
    pytest.importorskip("ir_measures", reason=NEEDS)
    qrels = {topic: {i: max(relevance, 0) for i, relevance in of.items()} for topic, of in judged.items()}
    measures, run = open_measures(ALL), as_run(lists)
    whole = per_topic(measures, qrels, run)
    assert all(len(values) == len(qrels) for values in whole.values())
    assert all(0 <= value <= 1 for values in whole.values() for value in values)
    for topic in lists:
        fewer = per_topic(measures, qrels, Run("t", {t: of for t, of in run.ranked.items() if t != topic}))
        for name, values in fewer.items():
            assert all(less <= more for less, more in zip(values, whole[name], strict=True))


@PROPERTY
@given(RUNS, RELEVANT, st.randoms(use_true_random=False))
def test_the_order_of_the_lines_changes_nothing(
    tmp_path: Path, lists: dict[str, dict[str, float]], judged: dict[str, dict[str, int]], rng: random.Random
) -> None:
    judged.setdefault("1", {})["relevant"] = 1
    run = [f"{topic} Q0 {i} 1 {score} t" for topic, of in lists.items() for i, score in of.items()]
    qrels = [f"{topic}\t0\t{i}\t{relevance}" for topic, of in judged.items() for i, relevance in of.items()]
    first = read_run(write(tmp_path / "r", "\n".join(run))), read_qrels(write(tmp_path / "q", "\n".join(qrels)))
    assert first[0] == as_run(lists)
    rng.shuffle(run)
    rng.shuffle(qrels)
    assert (read_run(tmp_path / "r"), read_qrels(tmp_path / "q")) == first
    write(tmp_path / "r", "\r\n\r\n".join(run))
    assert (read_run(tmp_path / "r"), read_qrels(write(tmp_path / "q", "\n".join(qrels)))) == first


@PROPERTY
@given(
    st.lists(
        st.tuples(st.sampled_from([3.0, 2.0000001, 2.0, 1e-9, 0.0, -0.0, -1e-9, -2.0]), IDS), unique_by=lambda h: h[1]
    )
)
def test_a_run_is_read_in_the_order_it_was_written_in(tmp_path: Path, scored: list[tuple[float, str]]) -> None:
    hits = [Hit(Passage(i, "", "x"), s) for s, i in sorted(scored, key=lambda hit: (-hit[0], hit[1]))]
    path = tmp_path / "r.trec.gz"
    write_whole(path, [*trec_lines(Question("q", "?"), hits, "a recipe's\tname"), "other Q0 x 1 1 t"])
    assert list(read_run(path).ranked.get("q", ())) == [hit.passage.id for hit in hits]


@PROPERTY
@given(st.binary(max_size=60) | st.text('1aQ0 -.en\t\n{}"', max_size=40).map(str.encode))
def test_any_bytes_are_read_or_are_one_clear_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "any"
    path.write_bytes(content)
    for read in (read_run, read_qrels):
        said = str(path)
        try:
            read(path)
        except UserError as error:
            said = str(error)
        assert said.startswith(str(path))


VALUES = st.lists(st.tuples(st.sampled_from([0.0, 0.5, 1.0]), st.floats(0, 1)), min_size=1, max_size=12)


@settings(max_examples=20, deadline=None)
@given(VALUES)
def test_a_difference_has_a_p_and_knows_no_order(pairs: list[tuple[float, float]]) -> None:
    ours, theirs = zip(*pairs, strict=True)
    found = difference(ours, theirs)
    assert 0 < found["p"] <= 1
    assert found["interval95"][0] <= found["interval95"][1]
    assert difference(ours[::-1], theirs[::-1]) == found
    assert difference(theirs, ours)["value"] == pytest.approx(-found["value"])
    same = difference(ours, ours)
    assert (same["value"], same["interval95"], same["p"]) == (0.0, [0.0, 0.0], 1.0)


def test_the_difference_of_successes_is_what_autoais_compare_finds() -> None:
    from autoais.compare import compare

    ours, theirs = [True] * 480 + [False] * 520, [True] * 400 + [False] * 80 + [True] * 30 + [False] * 490
    found = difference(list(map(float, ours)), list(map(float, theirs)))
    known = compare(*({str(n): right for n, right in enumerate(side)} for side in (ours, theirs)))["difference"]
    assert found["value"] == pytest.approx(known["value"])
    assert found["interval95"] == pytest.approx(known["interval95"], abs=0.002)
    assert found["p"] == pytest.approx(known["p"], abs=0.001)
    assert (found["better"], found["worse"], found["resamples"]) == (80, 30, known["resamples"])


# --- files -----------------------------------------------------------------------------------------------------


def test_ties_go_by_the_rank_of_the_file_then_by_id(tmp_path: Path) -> None:
    rows = "q Q0 b 7 1.0 t\nq Q0 z 2 1.0 t\nq Q0 a 7 1 t\nq Q0 top 99 2 t\n"
    assert read_run(write(tmp_path / "r", rows)).ranked == {"q": ["top", "z", "a", "b"]}


def test_judgements_in_every_format(tmp_path: Path) -> None:
    trec = read_qrels(write(tmp_path / "a", "\ufeff1 0 a#1 2\n\n1\t0\tb#2\t-1\n2 Q0 c 1\n"))
    assert trec == {"1": {"a#1": 2, "b#2": 0}, "2": {"c": 1}}
    beir = read_qrels(write(tmp_path / "b", "query-id\tcorpus-id\tscore\n1\ta#1\t2\n2\tc\t1\n"))
    assert beir == {"1": {"a#1": 2}, "2": {"c": 1}}
    rows = [{"id": "1", "question": "?", "gold": ["a", "b", "a"]}, {"id": "2", "question": "?"}]
    questions = write(tmp_path / "c", "".join(json.dumps(row) + "\n" for row in rows))
    assert read_qrels(questions) == {"1": {"a": 1, "b": 1}, "2": {}}
    (tmp_path / "d.gz").write_bytes(gzip.compress(QRELS.encode()))
    assert read_qrels(tmp_path / "d.gz")["2"] == {"a": 1}


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("1 Q0 a 1 2.0", "six columns (topic Q0 id rank score tag) were expected, found 5"),
        ("1 Q0 a b 1 2.0 t", "found 7"),
        ("1 Q0 a 1 nan t", "the score should be a finite number, found 'nan'"),
        ("1 Q0 a 1 -inf t", "finite number, found '-inf'"),
        ("1 Q0 a 1 1e999 t", "finite number"),
        ("1 Q0 a 1 best t", "finite number, found 'best'"),
        ("1 Q0 a 1.5 2.0 t", "the rank should be a whole number, found '1.5'"),
        (f"1 Q0 a {'9' * 5000} 2.0 t", "whole number"),
        ("1 Q0 first 9 2.0 t", "'first' stands twice in the list of topic '1'"),
        ("1 Q0 \udcff 1 2.0 t", "not UTF-8 at byte 5"),
    ],
)
def test_broken_lines_of_a_run(tmp_path: Path, line: str, says: str) -> None:
    path = tmp_path / "r.trec"
    path.write_text(f"1 Q0 first 1 3.0 t\n\n{line}\n", "utf-8", "surrogateescape")
    with pytest.raises(FormatError) as caught:
        read_run(path)
    assert str(caught.value).startswith(f"{path}:3: ")
    assert says in str(caught.value)
    assert len(str(caught.value)) < 250


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", ": holds no judgements"),
        ("1 0 a 0\n1 0 b -2\n", ": judges no passage as relevant"),
        ("1 0 a\n", ":1: four columns (topic 0 id relevance) were expected, found 3; BEIR's three need their header"),
        ("1 0 a 1\n1 0 b\n", ":2: four columns (topic 0 id relevance) were expected, found 3"),
        ("query-id corpus-id score\n1 0 a 1\n", ":2: three columns were expected, found 4"),
        ("1 0 a yes\n", ":1: the relevance should be a whole number, found 'yes'"),
        ("1 0 a 0.5\n", ":1: the relevance should be a whole number"),
        ("1 0 a 1000000000\n", ":1: the relevance should be at most 1,000, found 1,000,000,000"),
        ("1 0 a 1\n1 0 a 0\n", ":2: 'a' is judged twice for topic '1'"),
        ('{"id": "1", "question": "?"}\n', ": none of its questions has gold passages"),
        ('{"id": "1", "question": "?", "gold": "a"}\n', ":1: field 'gold' should be a list of strings"),
        ('{"id": "1"}\n', ":1: field 'question' is missing"),
    ],
)
def test_broken_judgements(tmp_path: Path, text: str, says: str) -> None:
    path = write(tmp_path / "qrels", text)
    with pytest.raises(UserError) as caught:
        read_qrels(path)
    assert str(caught.value).startswith(f"{path}{says}")


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("ndcg@10", "no measure called 'ndcg@10'; nearest: nDCG"),
        ("recal@10", "nearest: Recall"),
        ("answer_hits@5", "nearest: answer_hit"),
        ("zzzz", "no measure called 'zzzz'; such as nDCG@10"),
        ("nDCG@ten", "no measure called 'nDCG@ten'; nearest: nDCG"),
        ("P(rel=2", "no measure called 'P(rel=2'"),
        ("answer_hit", "no measure called 'answer_hit'; nearest: answer_hit"),
        ("", "no measure called ''"),
        ("P@0", "cutoff should be at least 1"),
        ("answer_hit@0", "cutoff should be at least 1"),
        ("P", "measure 'P' needs a cutoff, such as P@10"),
        ("Rprec@5", "Rprec takes no cutoff"),
        ("NumRet", "is a count, not a mean over topics"),
        ("IPrec", "no installed engine of ir_measures computes it"),
        ("alpha_nDCG@10", "no installed engine of ir_measures computes it"),
    ],
)
def test_measures_that_cannot_be_had(name: str, says: str) -> None:
    pytest.importorskip("ir_measures", reason=NEEDS)
    with pytest.raises(UserError) as caught:
        open_measures([name])
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_measure_counts_once_by_the_name_of_ir_measures() -> None:
    pytest.importorskip("ir_measures", reason=NEEDS)
    names = [measure.name for measure in open_measures(["nDCG@10", " nDCG@10", "Recall@5", "P(rel=1)@5", "P@5"])]
    assert names == ["nDCG@10", "R@5", "P@5"]


def test_answer_hits_need_no_extra_and_count_every_topic() -> None:
    passages = [Passage(i, title, text) for i, title, text in SHELF]
    runs = [Run("t", {"1": ["b#1", "b#2", "a#2"], "2": ["a#1"]}), Run("u", {"1": ["a#2", "gone"], "3": ["b#1"]})]
    answers = {"1": ("1867", "1891"), "2": ("1903",), "3": ("Oslo",)}
    found, seen = answer_ranks(runs, answers, passages, 3)
    assert (found, seen) == ([{"1": 3, "2": 1}, {"1": 1}], 4)
    assert answer_ranks(runs, answers, passages, 2)[0] == [{"2": 1}, {"1": 1}]
    qrels: dict[str, dict[str, int]] = {topic: {} for topic in "1234"}
    hits = per_topic(open_measures(["answer_hit@1", "answer_hit@3"]), qrels, runs[0], found[0])
    assert hits == {"answer_hit@1": [0.0, 1.0, 0.0, 0.0], "answer_hit@3": [1.0, 1.0, 0.0, 0.0]}


def test_pages_are_what_stands_before_the_sign_without_the_dump(tmp_path: Path) -> None:
    aqa = "http://en.wikipedia.org/wiki/A#A#Life#2"
    ids = ["462221#4", "2021:462221#0", "nq:b89fe591e8", aqa, "1984#3", "2021:notes#1"]
    pages = ["462221", "462221", "nq:b89fe591e8", "http://en.wikipedia.org/wiki/A", "1984", "2021:notes"]
    assert [page(identifier) for identifier in ids] == pages
    assert run_of_pages(Run("t", {"1": ["5#1", "7#0", "2021:5#9"]})).ranked == {"1": ["5", "7"]}
    assert qrels_of_pages({"1": {"5#1": 0, "5#2": 2, "5#3": 1}, "2": {}}) == {"1": {"5": 2}, "2": {}}
    pytest.importorskip("ir_measures", reason=NEEDS)
    run = write(tmp_path / "r", "1 Q0 2018:5#8 1 3 t\n1 Q0 2018:5#2 2 2 t\n1 Q0 2021:7#1 3 1 t\n")
    qrels = write(tmp_path / "q", "1 0 5#1 1\n1 0 7#4 1\n")
    by_passage, by_page = (
        evaluate_files([run], qrels, ["P@2", "R@2", "nDCG@10"], page_level=level) for level in (False, True)
    )
    assert [mean["value"] for mean in by_passage["runs"][0]["measures"].values()] == [0.0, 0.0, 0.0]
    assert [mean["value"] for mean in by_page["runs"][0]["measures"].values()] == [1.0, 1.0, pytest.approx(1.0)]
    assert (by_passage["level"], by_page["level"]) == ("passages", "pages")


# --- commands --------------------------------------------------------------------------------------------------


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    rows: Sequence[dict[str, Any]] = (
        {"id": "1", "question": "longest river of Poland", "answers": ["1,047 kilometres"], "gold": ["b#2"]},
        {"id": "2", "question": "the", "answers": ["nothing"], "gold": ["a#1"]},
        {"id": "3", "question": "capital of Japan", "answers": ["Tokyo"], "gold": ["d#1"]},
        {"id": "4", "question": "Curie in Paris", "answers": ["1891"], "gold": ["a#1"]},
    )
    return write(tmp_path / "questions.jsonl", "".join(json.dumps(row) + "\n" for row in rows))


def test_search_then_eval_run(rag: Command, shelf: Path, corpus: Path, questions: Path, tmp_path: Path) -> None:
    pytest.importorskip("ir_measures", reason=NEEDS)
    run, report = tmp_path / "out.trec", tmp_path / "report.json"
    searched = rag("search", "--topics", questions, "--index", shelf, "--run", run, "--k", 5)
    assert searched.returncode == 0, searched.stderr
    assert searched.stderr.splitlines()[0].startswith("2: nothing to search for")
    last = searched.stderr.splitlines()[-1]
    assert last.startswith("4 queries in ")
    assert last.endswith(f" queries a second; run in {run}")
    names = [argument for name in ("Success@1", "nDCG@10", "answer_hit@1") for argument in ("-m", name)]
    result = rag("eval-run", run, "--qrels", questions, "--index", shelf, *names, "--report", report)
    assert result.returncode == 0, result.stderr
    shown = {line.split()[0]: line.split() for line in result.stdout.splitlines() if line}
    assert shown["Success@1"][1] == "0.5000"  # 1 and 3; 2 cannot be searched for, 4 has its answer in another
    assert shown["answer_hit@1"][1] == "0.7500"
    assert shown["Success@1"][-1] == "4"
    assert "1 of 4 topics are not in the run and count as zero" in result.stdout
    assert result.stderr == ""
    record = json.loads(report.read_text("utf-8"))
    assert record["runs"][0]["per_topic"]["Success@1"] == {"1": 1.0, "2": 0.0, "3": 1.0, "4": 0.0}
    assert record["provenance"]["command"].startswith("rag eval-run ")
    assert set(record["provenance"]["inputs"]) == {"qrels", "run1"}
    assert "ir-measures" in record["engines"]
    assert record["index"]["checksum"].startswith("sha256:")
    again = rag("eval-run", run, "--qrels", questions, "--corpus", corpus, *names, "--json")
    measures = json.loads(again.stdout)["runs"][0]["measures"]
    assert measures == record["runs"][0]["measures"]
    assert measures["answer_hit@1"] == {"value": 0.75, "n": 4, "interval95": measures["answer_hit@1"]["interval95"]}
    default = json.loads(rag("eval-run", run, "--qrels", questions, "--index", shelf, "--json").stdout)
    assert {"nDCG@10", "Success@100", "answer_hit@20"} <= default["runs"][0]["measures"].keys()


def test_a_run_is_compared_with_a_baseline_by_a_named_test(rag: Command, tmp_path: Path) -> None:
    pytest.importorskip("ir_measures", reason=NEEDS)
    qrels = write(tmp_path / "q", "".join(f"{n} 0 a 1\n" for n in range(40)))
    good = write(tmp_path / "good", "".join(f"{n} Q0 a 1 2 good\n{n} Q0 b 2 1 good\n" for n in range(40)))
    poor = write(tmp_path / "poor", "".join(f"{n} Q0 b 1 2 poor\n{n} Q0 a 2 1 poor\n" for n in range(30)))
    result = rag("eval-run", good, "--qrels", qrels, "-m", "Success@1", "-m", "RR", "--baseline", poor)
    assert result.returncode == 0, result.stderr
    assert "poor (poor), the baseline" in result.stdout
    assert f"difference from {poor}; p: paired bootstrap over topics, two-sided" in result.stdout
    record = json.loads(
        rag("eval-run", good, "--qrels", qrels, "-m", "Success@1", "-m", "RR", "--baseline", poor, "--json").stdout
    )
    first, second = record["runs"]
    assert (first["tag"], second["tag"], first["topics_skipped"]) == ("poor", "good", 10)
    assert "difference" not in first["measures"]["RR"]
    found = second["measures"]["RR"]["difference"]
    assert found["value"] == pytest.approx(1 - 30 / 40 / 2)
    assert (found["better"], found["worse"], found["seed"]) == (40, 0, 0)
    assert found["p"] < 0.001
    assert "per_topic" not in second


def test_bad_input_is_one_line(rag: Command, tmp_path: Path) -> None:
    pytest.importorskip("ir_measures", reason=NEEDS)
    run, qrels = write(tmp_path / "r.trec", "1 Q0 b#2 1 2.0 t\n"), write(tmp_path / "q.txt", "1 0 b#2 1\n")
    one_line_error(rag("eval-run", tmp_path / "gone", "--qrels", qrels), "gone: cannot be read: No such file")
    one_line_error(rag("eval-run", write(tmp_path / "nan", "1 Q0 a 1 NaN t\n"), "--qrels", qrels), "nan:1: the score")
    one_line_error(rag("eval-run", run, "--qrels", qrels, "-m", "ndgc@10"), "no measure called 'ndgc@10'")
    one_line_error(rag("eval-run", run, "--qrels", qrels, "--report", run), "would be overwritten")


def test_files_that_do_not_go_together(shelf: Path, corpus: Path, questions: Path, tmp_path: Path) -> None:
    pytest.importorskip("ir_measures", reason=NEEDS)
    run, qrels = write(tmp_path / "r.trec", "1 Q0 b#2 1 2.0 t\n"), write(tmp_path / "q.txt", "1 0 b#2 1\n")
    hit = ["answer_hit@5"]

    def refused(says: str, run: Path, qrels: Path, measures: Sequence[str] = (), **files: Any) -> None:  # noqa: ANN401
        with pytest.raises(UserError) as caught:
            evaluate_files([run], qrels, measures, **files)
        assert says in str(caught.value)

    refused("gone: cannot be read: No such file", run, tmp_path / "gone")
    refused("Is a directory", run, tmp_path)
    refused("holds no judgements", run, write(tmp_path / "empty", ""))
    refused("judges no passage as relevant", run, write(tmp_path / "zero", "1 0 a 0\n"))
    refused("none: holds no results", write(tmp_path / "none", "\n"), qrels)
    refused(
        "none of its 1 topics (such as 'x') is in the judgements (such as '1')",
        write(tmp_path / "x", "x Q0 a 1 1 t\n"),
        qrels,
    )
    refused("is named twice", run, qrels, baseline=run)
    refused("give --index DIR, or --corpus FILE", run, questions, hit)
    refused("name the file of the questions with --topics", run, qrels, hit, index=shelf)
    refused("are for answer_hit@k, which is not among", run, qrels, ["AP"], index=shelf)
    refused("are for answer_hit@k, which is not among", run, qrels, topics=questions)
    refused("either --index or --corpus", run, questions, hit, index=shelf, corpus=[corpus])
    refused("no index at", run, qrels, hit, topics=questions, index=tmp_path / "gone")
    refused("source", run, qrels, hit, topics=questions, corpus=[tmp_path / "gone"])
    plain, strangers = write(tmp_path / "t.tsv", "1\twhat?\n"), write(tmp_path / "s", "1 Q0 stranger 1 1 t\n")
    refused("none of the topics that are judged has", run, qrels, hit, topics=plain, index=shelf)
    refused("holds none of the 1 passages of the runs", strangers, qrels, hit, topics=questions, corpus=[corpus])


def test_what_answer_hits_lack_is_said(shelf: Path, questions: Path, tmp_path: Path) -> None:
    run = write(tmp_path / "r.trec", "1 Q0 b#2 1 2.0 t\n1 Q0 stranger 2 1.0 t\n")
    qrels = write(tmp_path / "q.txt", "1 0 b#2 1\n9 0 b#2 1\n")
    result = evaluate_files([run], qrels, ["answer_hit@2"], topics=questions, index=shelf)
    assert result["runs"][0]["measures"]["answer_hit@2"]["value"] == 0.5
    assert result["notes"][1:] == [
        f"1 topics have no reference answer in {questions} and count as zero in answer_hit",
        "1 of 2 passages are not in index shelf.index: taken to hold no answer",
    ]


def test_a_missing_extra_is_one_line_and_answer_hits_go_without(
    rag: Command, shelf: Path, questions: Path, tmp_path: Path
) -> None:
    write(tmp_path / "ir_measures.py", "raise ImportError")  # hides the real one, where it is installed
    hidden = {"PYTHONPATH": f"{tmp_path}:{ROOT}:{ROOT / 'eval'}"}
    run = write(tmp_path / "r.trec", "1 Q0 b#2 1 2.0 t\n")
    result = rag("eval-run", run, "--qrels", questions, **hidden)
    one_line_error(result, "the measure 'nDCG@10' needs", 'pip install "attributed-rag[measures]"')
    result = rag("eval-run", run, "--qrels", questions, "-m", "answer_hit@1", "--index", shelf, **hidden)
    assert result.returncode == 0, result.stderr
    assert "0.2500" in result.stdout


def test_the_table_of_retrievers_is_resumed_set_by_set(shelf: Path, questions: Path, tmp_path: Path) -> None:
    pytest.importorskip("ir_measures", reason=NEEDS)
    from scripts.retrieval import SETS, report

    rows = [json.loads(line) for line in questions.read_text().splitlines()]
    for name, file in SETS.items():
        path = tmp_path / "data" / file
        path.parent.mkdir(parents=True)
        keep = [row if name == "nq_pool_dev" else {k: row[k] for k in ("id", "question", "gold")} for row in rows]
        extra = {"answerable": True} if name == "clapnq" else {}
        path.write_text("".join(json.dumps(row | extra) + "\n" for row in keep))
    unanswerable = {"id": "9", "question": "Vistula", "gold": ["b#2"], "answerable": False}
    with path.open("a") as file_of_clapnq:
        file_of_clapnq.write(json.dumps(unanswerable) + "\n")
    out = tmp_path / "results" / "bm25.json"
    report("bm25", tmp_path / "data", shelf, out)
    result = json.loads(out.read_text())
    assert list(result["sets"]) == list(SETS)
    assert [found["questions"] for found in result["sets"].values()] == [4, 4, 4]
    nq, miracl = result["sets"]["nq_pool_dev"], result["sets"]["miracl"]
    assert (nq["metrics"]["Success@1"]["value"], nq["metrics"]["answer_hit@1"]["value"]) == (0.5, 0.75)
    assert nq["nothing_found"] == 1
    assert "answer_hit@1" not in miracl["metrics"]
    assert 0 < nq["latency_ms"]["p50"] <= nq["latency_ms"]["p95"]
    assert nq["peak_memory_mib"] > 10
    assert result["part_bytes"]["bm25"] > 0
    assert "closed pool of 6 English" in result["closed_pool"]
    result["sets"]["miracl"]["sha256"] = "another file"
    result["sets"]["clapnq"]["questions"] = "kept"
    out.write_text(json.dumps(result))
    miracl_sha256 = sha256_file(tmp_path / "data" / SETS["miracl"])
    report("bm25", tmp_path / "data", shelf, out)
    again = json.loads(out.read_text())["sets"]
    assert again["clapnq"]["questions"] == "kept"
    assert again["miracl"]["sha256"] == miracl_sha256
