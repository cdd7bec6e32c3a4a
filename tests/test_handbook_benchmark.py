"""The benchmark `handbook` asks what the handbook says: a changed page must not spoil its questions unnoticed."""

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from autoais.base.io.jsonl import read_objects
from autoais.metrics.nuggets import find_nuggets
from rag.base.resources import folder

ROOT = Path(__file__).parents[1]
QUESTIONS: list[dict[str, Any]] = [row for _, row in read_objects(ROOT / "eval/benchmarks/handbook/questions.jsonl")]
ANSWERABLE = [row for row in QUESTIONS if row["answerable"]]
UNANSWERABLE = [row for row in QUESTIONS if not row["answerable"]]
PAGES = {
    f"{part.name}/{page.name}": page.read_text("utf-8")
    for part in folder("handbook").iterdir()
    for page in part.iterdir()
    if page.name.endswith(".md")
}
KINDS = {"definition", "how-to", "command", "fact", "yes-no", "comparison", "list", "why"}


def test_there_are_40_questions_with_ids_and_words_of_their_own() -> None:
    assert (len(ANSWERABLE), len(UNANSWERABLE)) == (34, 6)
    for field in ("id", "question"):
        assert not [value for value, count in Counter(row[field] for row in QUESTIONS).items() if count > 1]
    assert {row["kind"] for row in QUESTIONS} == KINDS


@pytest.mark.parametrize("row", ANSWERABLE, ids=lambda row: row["id"])
def test_the_page_of_a_question_still_holds_its_nuggets(row: dict[str, Any]) -> None:
    assert row["nuggets"]
    assert row["page"] in PAGES
    found = find_nuggets(PAGES[row["page"]], row["nuggets"])
    lost = [nugget for nugget, there in zip(row["nuggets"], found, strict=True) if not there]
    assert not lost, f"{row['page']} no longer says any of these: change the nuggets of {row['id']}, or the page"


@pytest.mark.parametrize("row", UNANSWERABLE, ids=lambda row: row["id"])
def test_no_page_has_the_words_of_an_unanswerable_question(row: dict[str, Any]) -> None:
    assert not row["nuggets"]
    assert any(word.casefold() in row["question"].casefold() for word in row["absent"])
    found = {name for name, text in PAGES.items() if any(find_nuggets(text, [row["absent"]]))}
    assert not found, f"the handbook may answer {row['id']} now: replace the question"


@pytest.mark.parametrize("row", ANSWERABLE, ids=lambda row: row["id"])
def test_no_page_holds_the_words_of_a_question(row: dict[str, Any]) -> None:
    """A page that quotes a question would be found by its words alone."""
    asked = " ".join(re.findall(r"\w+", row["question"].casefold()))
    assert not [name for name, text in PAGES.items() if asked in " ".join(re.findall(r"\w+", text.casefold()))]
