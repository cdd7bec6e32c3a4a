"""Runs against judgements: hand-made figures, properties, hostile files, and what is given in place of files."""

import gzip
import json
import math
import random
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from autoais.base.errors import FormatError, UsageError, UserError
from autoais.base.types import Passage
from autoais.metrics.comparison import difference_of_means
from autoais.metrics.runs import (
    Run,
    answer_ranks,
    as_qrels,
    as_run,
    evaluate,
    open_measures,
    page,
    per_topic,
    qrels_of_pages,
    read_qrels,
    read_run,
    run_of_pages,
)
from tests.conftest import SHELF

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
        "1 topics have no relevant passage and count as zero",
        "r: 1 of 3 topics are not in the run and count as zero",
        "r: 1 topics are not in the judgements and are left out: '4'",
        "r: its longest list has 4; Success@5, R@100 count passages beyond it as not found",
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
PROPERTY = settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
ALL = ("nDCG@10", "nDCG", "R@2", "RR@10", "Success@1", "AP", "P@3", "Rprec")


def sorted_run(lists: dict[str, dict[str, float]]) -> Run:
    return Run("t", {topic: sorted(of, key=lambda i: (-of[i], i)) for topic, of in lists.items()})


@PROPERTY
@given(RUNS, RELEVANT)
def test_values_are_between_0_and_1_and_a_topic_that_is_left_out_can_only_lower(
    lists: dict[str, dict[str, float]], judged: dict[str, dict[str, int]]
) -> None:
    pytest.importorskip("ir_measures", reason=NEEDS)
    qrels = {topic: {i: max(relevance, 0) for i, relevance in of.items()} for topic, of in judged.items()}
    measures, run = open_measures(ALL), sorted_run(lists)
    whole = per_topic(measures, qrels, run)
    assert all(len(values) == len(qrels) for values in whole.values())
    assert all(0 <= value <= 1 for values in whole.values() for value in values)
    for topic in lists:
        fewer = per_topic(measures, qrels, Run("t", {t: of for t, of in run.rankings.items() if t != topic}))
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
    assert first[0].rankings == sorted_run(lists).rankings
    rng.shuffle(run)
    rng.shuffle(qrels)
    assert (read_run(tmp_path / "r"), read_qrels(tmp_path / "q")) == first
    write(tmp_path / "r", "\r\n\r\n".join(run))
    assert (read_run(tmp_path / "r"), read_qrels(write(tmp_path / "q", "\n".join(qrels)))) == first


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


@settings(max_examples=20)
@given(VALUES)
def test_a_difference_has_a_p_and_knows_no_order(pairs: list[tuple[float, float]]) -> None:
    ours, theirs = zip(*pairs, strict=True)
    found = difference_of_means(ours, theirs)
    assert 0 < found["p"] <= 1
    low, high = found["interval95"]
    assert -1 <= low <= found["value"] <= high <= 1
    assert difference_of_means(ours[::-1], theirs[::-1]) == found
    turned = difference_of_means(theirs, ours)
    assert (turned["value"], turned["worse"]) == (pytest.approx(-found["value"]), found["better"])
    same = difference_of_means(ours, ours)
    assert (same["value"], same["p"], same["better"]) == (0.0, 1.0, 0)


# --- files -----------------------------------------------------------------------------------------------------


def test_ties_go_by_the_rank_of_the_file_then_by_id(tmp_path: Path) -> None:
    rows = "q Q0 b 7 1.0 t\nq Q0 z 2 1.0 t\nq Q0 a 7 1 t\nq Q0 top 99 2 t\n"
    run = read_run(write(tmp_path / "r", rows))
    assert run.rankings == {"q": ["top", "z", "a", "b"]}
    assert run.ties == 1  # trec_eval has z before b before a


def test_ties_that_trec_eval_orders_otherwise_are_told(tmp_path: Path) -> None:
    pytest.importorskip("ir_measures", reason=NEEDS)
    ties, none = "1 Q0 a 1 1.0 t\n1 Q0 b 2 1.0 t\n3 Q0 a 1 2 t\n", "1 Q0 b 1 1.0 t\n1 Q0 a 2 1.0 t\n"
    qrels = read_qrels(write(tmp_path / "q", QRELS))
    for rows, told in ((ties, 1), (none, 0)):
        run = read_run(write(tmp_path / "r", rows))
        notes = evaluate({"r": run}, qrels, open_measures(["RR"]))["notes"]
        assert sum("passages with the same score stay in the order of the run" in note for note in notes) == told
    assert as_run({"1": {"a": 1.0, "b": 1.0}}).ties == 1
    assert as_run({"1": {"a": 1.0, "b": 0.5}, "2": {}}).ties == 0


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
        ("1 Q0 a 1 2.0", "expected six columns (topic Q0 id rank score tag), found 5"),
        ("1 Q0 a b 1 2.0 t", "found 7"),
        ("1 Q0 a 1 nan t", "the score should be a finite number, found 'nan'"),
        ("1 Q0 a 1 -inf t", "finite number, found '-inf'"),
        ("1 Q0 a 1 1e999 t", "finite number"),
        ("1 Q0 a 1 best t", "finite number, found 'best'"),
        ("1 Q0 a 1.5 2.0 t", "the rank should be a whole number, found '1.5'"),
        (f"1 Q0 a {'9' * 5000} 2.0 t", "whole number"),
        ("1 Q0 first 9 2.0 t", "'first' occurs twice in the list of topic '1'"),
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
        ("1 0 a\n", ":1: expected four columns (topic 0 id relevance), found 3; BEIR's three columns need a header"),
        ("1 0 a 1\n1 0 b\n", ":2: expected four columns (topic 0 id relevance), found 3"),
        ("query-id corpus-id score\n1 0 a 1\n", ":2: expected three columns, found 4"),
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


def test_pages_are_what_stands_before_the_sign_without_the_dump() -> None:
    aqa = "http://en.wikipedia.org/wiki/A#A#Life#2"
    ids = ["462221#4", "2021:462221#0", "nq:b89fe591e8", aqa, "1984#3", "2021:notes#1"]
    pages = ["462221", "462221", "nq:b89fe591e8", "http://en.wikipedia.org/wiki/A", "1984", "2021:notes"]
    assert [page(identifier) for identifier in ids] == pages
    assert run_of_pages(Run("t", {"1": ["5#1", "7#0", "2021:5#9"]})).rankings == {"1": ["5", "7"]}
    assert qrels_of_pages({"1": {"5#1": 0, "5#2": 2, "5#3": 1}, "2": {}}) == {"1": {"5": 2}, "2": {}}


# --- what is given in place of files ---------------------------------------------------------------------------


def test_a_run_is_taken_from_a_file_a_dict_or_tuples(tmp_path: Path) -> None:
    path = write(tmp_path / "r", RUN)
    scores: dict[str, dict[str, float]] = {"1": {"b": 8, "x": 9.5, "c": 7, "a": 6}, "3": {"a": 1}, "4": {"a": 1}}
    tuples = [(topic, i, score, "more") for topic, of in scores.items() for i, score in of.items()]
    for given_run in (path, str(path), scores, tuples, iter(tuples), read_run(path)):
        assert as_run(given_run).rankings == read_run(path).rankings
    assert as_run({"1": {"b": 1.0, "a": 1.0}}).rankings == {"1": ["a", "b"]}  # ties by id


def test_judgements_are_taken_from_a_file_a_dict_or_tuples(tmp_path: Path) -> None:
    path = write(tmp_path / "q", QRELS)
    judged = read_qrels(path)
    tuples = [(topic, i, relevance) for topic, of in judged.items() for i, relevance in of.items()]
    for given_qrels in (path, str(path), judged, tuples):
        assert as_qrels(given_qrels) == judged
    assert as_qrels({"1": {"a": -1, "b": 2.0}, "2": {}}) == {"1": {"a": 0, "b": 2}, "2": {}}


@pytest.mark.parametrize(
    "given_run",
    [None, 7, ["topic"], [("1", "a")], {"1": ["a", "b"]}, {"1": {"a": "best"}}, {1: {"a": 1.0}}, [("1", 2, 3.0)],
     {"1": {"a": math.nan}}, {"1": {"a": math.inf}}],
)  # fmt: skip
def test_what_is_no_run_is_a_usage_error(given_run: object) -> None:
    with pytest.raises(UsageError, match=r"run.*should be a file, a dict .* or tuples"):
        as_run(given_run)


@pytest.mark.parametrize("value", [0.5, 1e9, math.nan, "yes", None])
def test_a_relevance_that_is_no_whole_number_is_a_usage_error(value: object) -> None:
    with pytest.raises(UsageError, match="qrels"):
        as_qrels({"1": {"a": value}})


def test_without_the_package_an_unknown_measure_is_told_from_a_known_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ir_measures", None)
    with pytest.raises(UserError, match=r"the measure 'RR@10' needs a package .*\[measures\]\"$"):
        open_measures(["RR@10"])
    with pytest.raises(UserError, match="no measure of that name is known without it; nearest: RR"):
        open_measures(["RRR@10"])
