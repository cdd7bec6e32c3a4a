"""`rag eval-run`: runs against judgements and answers, and the commands as people run them."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from autoais.base.errors import UserError
from autoais.base.io.jsonl import write_atomic
from autoais.base.io.provenance import sha256_file
from autoais.metrics.runs import read_run
from rag.base.types import Hit, Passage, Question
from rag.bench.retrieval_runs import evaluate_files
from rag.retrieval.runs import trec_lines
from tests.conftest import Command, one_line_error

ROOT = Path(__file__).parents[3]
NEEDS = "needs the extra 'measures'"

# Ids as files have them: anything visible, also what a C program would take for an end or a sign.
IDS = st.text(min_size=1, max_size=4).filter(
    lambda text: not any(c.isspace() or "\ud800" <= c <= "\udfff" for c in text) and text[0] not in "{\ufeff"
)
PROPERTY = settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])


def write(path: Path, text: str) -> Path:
    path.write_text(text, "utf-8")
    return path


@PROPERTY
@given(
    st.lists(
        st.tuples(st.sampled_from([3.0, 2.0000001, 2.0, 1e-9, 0.0, -0.0, -1e-9, -2.0]), IDS), unique_by=lambda h: h[1]
    )
)
def test_a_run_is_read_in_the_order_it_was_written_in(tmp_path: Path, scored: list[tuple[float, str]]) -> None:
    hits = [Hit(Passage(i, "", "x"), s) for s, i in sorted(scored, key=lambda hit: (-hit[0], hit[1]))]
    path = tmp_path / "r.trec.gz"
    write_atomic(path, [*trec_lines(Question("q", "?"), hits, "a retriever's\tname"), "other Q0 x 1 1 t"])
    assert list(read_run(path).rankings.get("q", ())) == [hit.passage.id for hit in hits]


def test_pages_are_measured_instead_of_passages(tmp_path: Path) -> None:
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
    searched = rag("search", "--questions", questions, "--index", shelf, "--run", run, "--k", 5)
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
    assert f"difference from {poor}; p: McNemar's exact test, randomisation test, two-sided" in result.stdout
    record = json.loads(
        rag("eval-run", good, "--qrels", qrels, "-m", "Success@1", "-m", "RR", "--baseline", poor, "--json").stdout
    )
    first, second = record["runs"]
    assert (first["tag"], second["tag"], first["topics_skipped"]) == ("poor", "good", 10)
    assert "difference" not in first["measures"]["RR"]
    found = second["measures"]["RR"]["difference"]
    assert found["value"] == pytest.approx(1 - 30 / 40 / 2)
    assert (found["better"], found["worse"], found["method"]) == (40, 0, "randomisation test")
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
    refused("give an index or a corpus", run, questions, hit)
    refused("name a file of questions", run, qrels, hit, index=shelf)
    refused("are for answer_hit@k, which is not among", run, qrels, ["AP"], index=shelf)
    refused("are for answer_hit@k, which is not among", run, qrels, questions=questions)
    refused("either an index or a corpus", run, questions, hit, index=shelf, corpus=[corpus])
    refused("no index at", run, qrels, hit, questions=questions, index=tmp_path / "gone")
    refused("source", run, qrels, hit, questions=questions, corpus=[tmp_path / "gone"])
    plain, strangers = write(tmp_path / "t.tsv", "1\twhat?\n"), write(tmp_path / "s", "1 Q0 stranger 1 1 t\n")
    refused("has no reference answers for the judged topics", run, qrels, hit, questions=plain, index=shelf)
    refused("holds none of the 1 passages of the runs", strangers, qrels, hit, questions=questions, corpus=[corpus])


def test_what_answer_hits_lack_is_said(shelf: Path, questions: Path, tmp_path: Path) -> None:
    run = write(tmp_path / "r.trec", "1 Q0 b#2 1 2.0 t\n1 Q0 stranger 2 1.0 t\n")
    qrels = write(tmp_path / "q.txt", "1 0 b#2 1\n9 0 b#2 1\n")
    result = evaluate_files([run], qrels, ["answer_hit@2"], questions=questions, index=shelf)
    assert result["runs"][0]["measures"]["answer_hit@2"]["value"] == 0.5
    assert result["notes"][1:] == [
        f"1 topics have no reference answer in {questions} and count as zero in answer_hit",
        "1 of 2 passages are not in index shelf.index: counted as misses",
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
    again["clapnq"]["retriever"] = "bm25.v1 of an earlier model"
    out.write_text(json.dumps(result | {"sets": again}))
    report("bm25", tmp_path / "data", shelf, out)
    assert json.loads(out.read_text())["sets"]["clapnq"]["questions"] == 4
