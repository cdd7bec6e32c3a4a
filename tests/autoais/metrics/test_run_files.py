"""`autoais evaluate-run`: runs against judgements and answers, and the commands as people run them."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from autoais.base.errors import UserError
from autoais.metrics.run_files import evaluate_files
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


def test_search_then_evaluate_the_run(
    rag: Command, autoais: Command, shelf: Path, corpus: Path, corpus_questions: Path, tmp_path: Path
) -> None:
    pytest.importorskip("ir_measures", reason=NEEDS)
    run, report = tmp_path / "out.trec", tmp_path / "report.json"
    searched = rag("search", "--questions", corpus_questions, "--index", shelf, "--run", run, "--k", 5)
    assert searched.returncode == 0, searched.stderr
    assert searched.stderr.splitlines()[0].startswith("2: nothing to search for")
    last = searched.stderr.splitlines()[-1]
    assert last.startswith("4 queries in ")
    assert last.endswith(f" queries a second; run in {run}")
    names = [argument for name in ("Success@1", "nDCG@10", "answer_hit@1") for argument in ("-m", name)]
    result = autoais("evaluate-run", run, "--qrels", corpus_questions, "--corpus", corpus, *names, "--report", report)
    assert result.returncode == 0, result.stderr
    shown = {line.split()[0]: line.split() for line in result.stdout.splitlines() if line}
    assert shown["Success@1"][1] == "0.5000"  # 1 and 3; 2 cannot be searched for, 4 has its answer in another
    assert shown["answer_hit@1"][1] == "0.7500"
    assert shown["Success@1"][-1] == "4"
    assert "1 of 4 topics are not in the run and count as zero" in result.stdout
    assert result.stderr == ""
    record = json.loads(report.read_text("utf-8"))
    assert record["runs"][0]["per_topic"]["Success@1"] == {"1": 1.0, "2": 0.0, "3": 1.0, "4": 0.0}
    assert record["provenance"]["command"].startswith("autoais evaluate-run ")
    assert set(record["provenance"]["inputs"]) == {"qrels", "run1", "corpus1"}
    assert "ir-measures" in record["engines"]
    measures = record["runs"][0]["measures"]
    assert measures["answer_hit@1"] == {"value": 0.75, "n": 4, "interval95": measures["answer_hit@1"]["interval95"]}
    default = json.loads(autoais("evaluate-run", run, "--qrels", corpus_questions, "--corpus", corpus, "--json").stdout)
    assert {"nDCG@10", "Success@100", "answer_hit@20"} <= default["runs"][0]["measures"].keys()


def test_a_run_is_compared_with_a_baseline_by_a_named_test(autoais: Command, tmp_path: Path) -> None:
    pytest.importorskip("ir_measures", reason=NEEDS)
    qrels = write(tmp_path / "q", "".join(f"{n} 0 a 1\n" for n in range(40)))
    good = write(tmp_path / "good", "".join(f"{n} Q0 a 1 2 good\n{n} Q0 b 2 1 good\n" for n in range(40)))
    poor = write(tmp_path / "poor", "".join(f"{n} Q0 b 1 2 poor\n{n} Q0 a 2 1 poor\n" for n in range(30)))
    result = autoais("evaluate-run", good, "--qrels", qrels, "-m", "Success@1", "-m", "RR", "--baseline", poor)
    assert result.returncode == 0, result.stderr
    assert "poor (poor), the baseline" in result.stdout
    assert f"difference from {poor}; p: McNemar's exact test, randomisation test, two-sided" in result.stdout
    record = json.loads(
        autoais(
            "evaluate-run", good, "--qrels", qrels, "-m", "Success@1", "-m", "RR", "--baseline", poor, "--json"
        ).stdout
    )
    first, second = record["runs"]
    assert (first["tag"], second["tag"], first["topics_skipped"]) == ("poor", "good", 10)
    assert "difference" not in first["measures"]["RR"]
    found = second["measures"]["RR"]["difference"]
    assert found["value"] == pytest.approx(1 - 30 / 40 / 2)
    assert (found["better"], found["worse"], found["method"]) == (40, 0, "randomisation test")
    assert found["p"] < 0.001
    assert "per_topic" not in second


def test_bad_input_is_one_line(autoais: Command, tmp_path: Path) -> None:
    pytest.importorskip("ir_measures", reason=NEEDS)
    run, qrels = write(tmp_path / "r.trec", "1 Q0 b#2 1 2.0 t\n"), write(tmp_path / "q.txt", "1 0 b#2 1\n")
    one_line_error(autoais("evaluate-run", tmp_path / "gone", "--qrels", qrels), "gone: cannot be read: No such file")
    one_line_error(
        autoais("evaluate-run", write(tmp_path / "nan", "1 Q0 a 1 NaN t\n"), "--qrels", qrels), "nan:1: the score"
    )
    one_line_error(autoais("evaluate-run", run, "--qrels", qrels, "-m", "ndgc@10"), "no measure called 'ndgc@10'")
    one_line_error(autoais("evaluate-run", run, "--qrels", qrels, "--report", run), "would be overwritten")


def test_files_that_do_not_go_together(corpus: Path, corpus_questions: Path, tmp_path: Path) -> None:
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
    refused("give a corpus (--corpus FILE)", run, corpus_questions, hit)
    refused("name a file of questions", run, qrels, hit, corpus=[corpus])
    refused("are for answer_hit@k, which is not among", run, qrels, ["AP"], corpus=[corpus])
    refused("are for answer_hit@k, which is not among", run, qrels, questions=corpus_questions)
    refused(
        "gone: cannot be read: No such file", run, qrels, hit, questions=corpus_questions, corpus=[tmp_path / "gone"]
    )
    plain, strangers = write(tmp_path / "t.tsv", "1\twhat?\n"), write(tmp_path / "s", "1 Q0 stranger 1 1 t\n")
    refused("has no reference answers for the judged topics", run, qrels, hit, questions=plain, corpus=[corpus])
    refused(
        "holds none of the 1 passages of the runs", strangers, qrels, hit, questions=corpus_questions, corpus=[corpus]
    )


def test_what_answer_hits_lack_is_said(corpus: Path, corpus_questions: Path, tmp_path: Path) -> None:
    run = write(tmp_path / "r.trec", "1 Q0 b#2 1 2.0 t\n1 Q0 stranger 2 1.0 t\n")
    qrels = write(tmp_path / "q.txt", "1 0 b#2 1\n9 0 b#2 1\n")
    result = evaluate_files([run], qrels, ["answer_hit@2"], questions=corpus_questions, corpus=[corpus])
    assert result["runs"][0]["measures"]["answer_hit@2"]["value"] == 0.5
    assert result["notes"][1:] == [
        f"1 topics have no reference answer in {corpus_questions} and count as zero in answer_hit",
        f"1 of 2 passages are not in {corpus}: counted as misses",
    ]


def test_a_missing_extra_is_one_line_and_answer_hits_go_without(
    autoais: Command, corpus: Path, corpus_questions: Path, tmp_path: Path
) -> None:
    write(tmp_path / "ir_measures.py", "raise ImportError")  # hides the real one, where it is installed
    hidden = {"PYTHONPATH": f"{tmp_path}:{ROOT}:{ROOT / 'eval'}"}
    run = write(tmp_path / "r.trec", "1 Q0 b#2 1 2.0 t\n")
    result = autoais("evaluate-run", run, "--qrels", corpus_questions, **hidden)
    one_line_error(result, "the measure 'nDCG@10' needs", 'pip install -e ".[measures]"')
    result = autoais(
        "evaluate-run", run, "--qrels", corpus_questions, "-m", "answer_hit@1", "--corpus", corpus, **hidden
    )
    assert result.returncode == 0, result.stderr
    assert "0.2500" in result.stdout
