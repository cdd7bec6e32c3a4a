"""The runs that `rag search --run` writes, and the table of retrievers."""

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from autoais.base.io.jsonl import write_atomic
from autoais.base.io.provenance import sha256_file
from autoais.metrics.runs import read_run
from rag.base.types import Hit, Passage, Question
from rag.retrieval.runs import trec_lines

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


def test_the_table_of_retrievers_is_resumed_set_by_set(shelf: Path, corpus_questions: Path, tmp_path: Path) -> None:
    pytest.importorskip("ir_measures", reason=NEEDS)
    from scripts.retrieval import SETS, report

    rows = [json.loads(line) for line in corpus_questions.read_text().splitlines()]
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
