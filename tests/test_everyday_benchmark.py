"""The benchmark `everyday`: its documents must go on holding what its questions ask for."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from autoais.base.io.jsonl import read_objects
from autoais.metrics.nuggets import find_nuggets
from rag.documents.corpus import Corpus
from rag.training.labelled_questions import find_quote, fingerprint

FOLDER = Path(__file__).parents[1] / "eval/benchmarks/everyday"
QUESTIONS: list[dict[str, Any]] = [row for _, row in read_objects(FOLDER / "questions.jsonl")]
COLLECTIONS = sorted({row["collection"] for row in QUESTIONS})


def test_each_collection_has_24_questions_with_an_answer_and_6_without() -> None:
    assert len({row["id"] for row in QUESTIONS}) == len(QUESTIONS) == 360
    counts = Counter((row["collection"], row["answerable"]) for row in QUESTIONS)
    assert set(counts.values()) == {24, 6}
    assert Counter(row["part"] for row in QUESTIONS) == {"dev": 120, "test": 240}
    assert {folder.name for folder in (FOLDER / "documents").iterdir()} == set(COLLECTIONS)


@pytest.mark.parametrize("collection", COLLECTIONS)
def test_what_answers_a_question_is_in_a_passage_of_its_document(collection: str) -> None:
    """A reader of documents that loses or cuts the evidence would make the questions unanswerable."""
    texts: dict[str, list[str]] = {}
    for _, passage in Corpus([FOLDER / "documents" / collection]).read():
        texts.setdefault(passage.id.rpartition("#")[0], []).append(passage.text)
    for row in QUESTIONS:
        if row["collection"] != collection or not row["answerable"]:
            continue
        quotes = [fingerprint(quote) for quote in row["evidence"]]
        everywhere = [text for each in texts.values() for text in each]
        assert any(find_quote(text, quote) for text in texts[row["where"]] for quote in quotes), row["id"]
        assert all(any(find_quote(text, quote) for text in everywhere) for quote in quotes), row["id"]
        assert all(find_nuggets("\n".join(everywhere), row["nuggets"])), row["id"]
        assert row["short"] is None or any(row["short"].casefold() in q.casefold() for q in row["evidence"]), row["id"]


def test_a_question_without_an_answer_has_no_evidence() -> None:
    for row in QUESTIONS:
        if not row["answerable"]:
            assert not any(row[field] for field in ("nuggets", "evidence", "where", "short", "answer")), row["id"]
