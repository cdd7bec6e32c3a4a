"""The everyday documents to train readers with must go on holding what their questions quote."""

from collections import defaultdict
from pathlib import Path

import pytest

from rag.documents.corpus import Corpus

pytest.importorskip("torch")

from rag.training.labelled_questions import find_quote, read_labelled_questions

FOLDER = Path(__file__).parents[3] / "eval/recipes/everyday"


@pytest.mark.slow
def test_each_quote_stands_in_a_passage_of_its_collection() -> None:
    rows = list(read_labelled_questions(FOLDER / "everyday-questions.jsonl"))
    assert len(rows) == 6957
    assert sum(row.path is None for row in rows) == 1479
    for folder in (FOLDER / "documents").iterdir():
        texts: dict[str, list[str]] = defaultdict(list)
        for _, passage in Corpus([folder]).read():
            texts[passage.id.rpartition("#")[0]].append(passage.text)
        everywhere = [text for each in texts.values() for text in each]
        for row in rows[::5]:  # all would take 20 seconds
            if row.collection == folder.name and row.path is not None:
                assert any(find_quote(text, quote) for text in texts[row.path] for quote in row.quotes), row
                assert all(any(find_quote(text, quote) for text in everywhere) for quote in row.quotes), row
