"""HAGRID as a benchmark: questions with their quotes, the answers of its release, and people's labels of them."""

from pathlib import Path
from typing import Any

import pytest

from autoais.base.io.jsonl import dumps
from rag.base.errors import FormatError
from rag.bench import read_benchmark, run_benchmark
from rag.bench.question_files import read_bench_questions

ROWS: list[dict[str, Any]] = [
    {
        "query_id": 7,
        "query": "What is the capital of Poland?",
        "quotes": [
            {"idx": 1, "docid": "10#1", "text": "Warsaw is the capital of Poland."},
            {"idx": 2, "docid": "10#2", "text": "Krakow was the capital until 1596."},
        ],
        "answers": [
            {
                "answer": "Warsaw is the capital of Poland [1]. It became the capital in 1900 [2].",
                "attributable": 0,
                "sentences": [
                    {"index": 0, "text": "Warsaw is the capital of Poland [1].", "attributable": 1},
                    {"index": 1, "text": "It became the capital in 1900 [2].", "attributable": 0},
                ],
            }
        ],
    },
    {
        "query_id": "8",
        "query": "How long is the Vistula?",
        "quotes": [{"idx": 1, "text": "The Vistula is 1,047 kilometres long."}],
        "answers": [
            {"answer": "Nobody knows [1].", "attributable": None, "sentences": [{"text": "Nobody knows [1]."}]},
            {"answer": "The Vistula is 1,047 kilometres long [1].", "attributable": 1, "sentences": []},
        ],
    },
]


@pytest.fixture
def hagrid(tmp_path: Path) -> Path:
    """A benchmark of two questions in HAGRID's format, made from the one that ships."""
    shipped = read_benchmark("hagrid")
    folder = tmp_path / "data" / "hagrid"
    folder.mkdir(parents=True)
    (folder / "dev.jsonl").write_text("".join(dumps(row) + "\n" for row in ROWS), "utf-8")
    toml = (shipped.home / "hagrid.toml").read_text("utf-8").replace("count = 716", "count = 2")
    (tmp_path / "hagrid.toml").write_text(toml, "utf-8")
    return tmp_path / "hagrid.toml"


def test_hagrid_ships_as_a_benchmark_of_given_passages() -> None:
    benchmark = read_benchmark("hagrid")
    assert (benchmark.task, benchmark.count, benchmark.right) == ("given", 716, None)
    assert benchmark.questions.sha256 is None
    assert benchmark.needs_data


def test_its_quotes_are_the_passages_of_its_questions(hagrid: Path) -> None:
    first, second = read_bench_questions(hagrid.parent / "data/hagrid/dev.jsonl")
    assert (first.question.id, first.question.text) == ("7", "What is the capital of Poland?")
    assert first.question.answers == ()  # its answers are generated
    assert {one.id: one.text for one in first.passages}["10#2"] == "Krakow was the capital until 1596."
    assert [one.id for one in second.passages] == ["8:1"]


def test_a_broken_row_is_one_line(hagrid: Path) -> None:
    path = hagrid.parent / "data/hagrid/dev.jsonl"
    path.write_text(dumps(ROWS[0] | {"quotes": [{"idx": 1}]}), "utf-8")
    with pytest.raises(FormatError, match=r"dev\.jsonl:1: field 'quotes"):
        read_bench_questions(path)


def test_a_system_answers_from_the_quotes(hagrid: Path, tmp_path: Path) -> None:
    run = run_benchmark(hagrid, tmp_path / "RUN", tmp_path / "data", systems=["extractive"], judge="lexical")
    first, _ = run.items("extractive")
    assert set(first.cites) <= {"10#1", "10#2"}
    assert first.right is None
    assert run.metrics("extractive")["metrics"]["autoais"]["n"] == 2


def test_the_answers_of_the_release_are_predictions_with_labels(hagrid: Path, tmp_path: Path) -> None:
    release = tmp_path / "data/hagrid/dev.jsonl"
    run = run_benchmark(
        hagrid, tmp_path / "RUN", tmp_path / "data", predictions=[release], human=release, judge="lexical"
    )
    (label,) = run.labels
    items, metrics = run.items(label), run.metrics(label)
    assert [[sentence.human for sentence in item.sentences] for item in items] == [[True, False], [True]]
    assert metrics["human"]["answers"] == 2
    assert metrics["human"]["attributable"]["value"] == 0.5
    assert metrics["metrics"]["autoais_corrected"]["value"] is not None
    told = metrics["predictions"]
    assert told["not_in_corpus"]["count"] == told["other_text"]["count"] == 0
    assert told["duplicates"]["count"] == 1  # of several answers to a question the last counts
