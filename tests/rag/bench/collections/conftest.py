"""Questions with quotes of our own writing, in the files that people have."""

import json
from pathlib import Path

import pytest

TEXTS = {
    "1#0": ("Warsaw", "Warsaw is the capital of Poland. It lies on the Vistula river."),
    "1#1": ("Warsaw", "Warsaw was the seat of the kings of Poland from 1596."),
    "2#0": ("Vistula", "The Vistula is the longest river of Poland. It is 1,047 kilometres long."),
    "3#0": ("Marie Curie", "Marie Curie was born in Warsaw in 1867. She moved to Paris in 1891."),
    "3#1": ("Marie Curie", "Marie Curie won the Nobel Prize in Physics in 1903."),
}
TOPICS = {"10": "What is the capital of Poland?", "11": "How long is the Vistula?", "12": "When was Curie born?"}
QRELS = [
    ("10", "1#1", 1), ("10", "1#0", 1), ("10", "2#0", 0), ("11", "2#0", 1), ("12", "3#1", 1), ("12", "3#0", 2),
]  # fmt: skip


def write_lines(path: Path, lines: list[str]) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return path


def write_rows(path: Path, rows: list[dict[str, object]]) -> Path:
    return write_lines(path, [json.dumps(row) for row in rows])


@pytest.fixture
def topics(tmp_path: Path) -> Path:
    return write_lines(tmp_path / "topics.tsv", [f"{key}\t{text}" for key, text in TOPICS.items()])


@pytest.fixture
def qrels(tmp_path: Path) -> Path:
    return write_lines(tmp_path / "qrels.tsv", [f"{q}\tQ0\t{p}\t{r}" for q, p, r in QRELS])


@pytest.fixture
def quotes(tmp_path: Path) -> Path:
    """The corpus."""
    rows: list[dict[str, object]] = [{"docid": k, "title": t, "text": x} for k, (t, x) in TEXTS.items()]
    return write_rows(tmp_path / "corpus.jsonl", rows)


@pytest.fixture
def asked(tmp_path: Path) -> Path:
    """The questions, each with its passages."""
    rows: list[dict[str, object]] = []
    for key, text in TOPICS.items():
        ids = [p for q, p, r in QRELS if q == key and r]
        passages = [{"id": one, "title": TEXTS[one][0], "text": TEXTS[one][1]} for one in ids]
        rows.append({"id": key, "question": text, "passages": passages})
    return write_rows(tmp_path / "asked.jsonl", rows)
