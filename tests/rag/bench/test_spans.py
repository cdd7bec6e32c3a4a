"""What people marked as the answer, by place or by text, against what the answers of a run cite."""

from pathlib import Path
from typing import Any

import pytest

from autoais.base.io.jsonl import dumps
from rag.base.errors import FormatError
from rag.bench import compare_runs, read_benchmark, run_benchmark
from rag.bench.question_files import read_bench_questions

TEXT = "Warsaw is the capital of Poland. It lies on the Vistula."
TOML = 'name = "towns"\nversion = 1\ndescription = "Towns"\nlicence = "ours"\nclosed_pool = true\n'
QUICK: dict[str, Any] = {"systems": ["extractive", "first-passage"], "judge": "lexical"}


def write_benchmark(
    folder: Path, rows: list[dict[str, Any]], extra: str = 'task = "given"\n', corpora: str = ""
) -> Path:
    (folder / "questions.jsonl").write_text("".join(dumps(row) + "\n" for row in rows), "utf-8")
    (folder / "towns.toml").write_text(f'{TOML}{extra}[questions]\nfile = "questions.jsonl"\n{corpora}', "utf-8")
    return folder / "towns.toml"


def test_marked_words_of_given_passages_are_compared_with_what_is_cited(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {
            "id": "1",
            "question": "What is the capital of Poland?",
            "passages": [{"id": "x", "title": "Warsaw", "text": TEXT}],
            "spans": {"x": ["Warsaw is the capital of Poland."]},
        },
        {
            "id": "2",
            "question": "Who sings at the opera of Gdansk?",
            "answerable": False,
            "passages": [{"id": "y", "text": "Rowing clubs hold a regatta."}],
            "spans": {},
        },
    ]
    run = run_benchmark(write_benchmark(tmp_path, rows), tmp_path / "RUN", tmp_path, **QUICK)
    exact = run.metrics("extractive")
    assert [exact["metrics"][f"span_{name}"]["value"] for name in ("precision", "recall", "f1")] == [1, 1, 1]
    assert exact["metrics"]["span_f1_averaged"]["value"] == 1  # the other question was refused, as is right
    whole = run.metrics("first-passage")
    assert whole["metrics"]["span_precision"]["value"] == pytest.approx(6 / 16)  # 11 words and the regatta's 5
    assert whole["metrics"]["span_recall"]["value"] == 1
    assert (whole["spans"]["questions"], whole["spans"]["texts"], whole["spans"]["left_out"]) == (2, 2, 0)
    assert [question.spans for question in run.questions()] == [{"x": ((0, 32),)}, {}]
    (group,) = compare_runs(run.folder)["groups"]
    f1 = group["metrics"]["span_f1_averaged"]
    assert f1["values"]["first-passage"] == pytest.approx(whole["metrics"]["span_f1_averaged"]["value"], abs=1e-6)
    assert f1["values"]["first-passage"] < f1["values"]["extractive"] == 1


def test_evidence_is_located_in_the_passages_of_its_document(tmp_path: Path) -> None:
    documents = tmp_path / "docs"
    documents.mkdir()
    (documents / "a.md").write_text("# Lamps\n\nThe red lamp shows that the pump runs. It is on the left panel.\n")
    (documents / "b.md").write_text("# Pumps\n\nThe red lamp shows that the pump runs. The pump is new.\n")
    lamp = {"question": "What does the red lamp show?", "evidence": ["the red lamp shows that the  pump runs"]}
    rows: list[dict[str, Any]] = [
        {"id": "1", **lamp, "where": "b.md"},
        {"id": "2", **lamp, "evidence": ["a text that no document has"], "where": "b.md"},
        {"id": "3", "question": "Who sings?", "answerable": False, "evidence": [], "where": None},
        {"id": "4", "question": "What does the lamp show?", "evidence": "another use of the field"},
    ]
    corpora = '[corpora]\nlamps = { folder = "docs" }\n'
    benchmark = write_benchmark(tmp_path, rows, "", corpora)
    run = run_benchmark(benchmark, tmp_path / "RUN", tmp_path, systems=["extractive"], judge="lexical")
    metrics = run.metrics("extractive")
    assert metrics["spans"]["words"]["gold"] == 8
    assert (metrics["spans"]["questions"], metrics["spans"]["left_out"]) == (2, 2)
    first, _, *others = run.questions()
    assert (first.evidence, first.where) == (tuple(lamp["evidence"]), "b.md")
    assert [question.evidence for question in others] == [(), None]


def test_a_run_without_gold_spans_has_no_span_metrics(tmp_path: Path) -> None:
    rows = [{"id": "1", "question": "What is the capital of Poland?", "passages": [{"id": "x", "text": TEXT}]}]
    run = run_benchmark(write_benchmark(tmp_path, rows), tmp_path / "RUN", tmp_path, **QUICK)
    metrics = run.metrics("extractive")
    assert "spans" not in metrics
    assert not [name for name in metrics["metrics"] if name.startswith("span_")]


def test_a_broken_span_is_one_line(tmp_path: Path) -> None:
    row = {"id": "1", "question": "Where?", "passages": [{"id": "x", "text": TEXT}], "spans": {"x": [[0, 999]]}}
    write_benchmark(tmp_path, [row])
    with pytest.raises(FormatError, match=r"questions\.jsonl:1: field 'spans': the span 0 to 999 lies outside"):
        read_bench_questions(tmp_path / "questions.jsonl")


def test_acl_verbatim_ships_as_a_benchmark_whose_data_does_not(tmp_path: Path) -> None:
    benchmark = read_benchmark("acl-verbatim")
    assert (benchmark.task, benchmark.count, benchmark.right, benchmark.needs_data) == ("given", 20, None, True)
    chunks = [
        {"document_id": "P1", "chunk_number": number, "title": "Towns", "chunk": text, "gold_extraction": gold}
        for number, text, gold in ((3, TEXT, ["it lies on the vistula."]), (4, "Rowing clubs meet.", []))
    ]
    rows = [{"query": "river of Warsaw", "results": chunks}, {"query": "rowing", "results": chunks[1:]}]
    data = tmp_path / "data.json"
    data.write_text("".join(dumps(row) + "\n" for row in rows), "utf-8")
    first, second = read_bench_questions(data)
    assert (first.question.text, first.question.gold, first.answerable) == ("river of Warsaw", ("P1#3",), True)
    assert first.spans == {"P1#3": ((33, 56),), "P1#4": ()}
    assert [passage.id for passage in first.passages] == ["P1#3", "P1#4"]
    assert (second.question.id, second.answerable) == ("2", False)
