"""Quotes of stored answers against an index that has changed since."""

import json
from pathlib import Path

import pytest

import rag as library
from autoais.base.answers import CitedAnswer
from autoais.base.types import Citation, CitedSentence, Passage
from rag.answer.verify import QuoteComparison, verify_quotes
from tests.conftest import Command, one_line_error

BRIDGE = "The Aller bridge opened in 1931. It was repaired in 1987 by Ann Orr and her brother."
FARES = "Cars pay three euros on weekdays. Bicycles cross for free all year."
OTTERS = "Otters live below the weir. They sleep by day and hunt at night."


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    docs = tmp_path / "docs"
    docs.mkdir()
    for name, text in (("bridge", BRIDGE), ("fares", FARES), ("otters", OTTERS)):
        (docs / f"{name}.txt").write_text(text)
    return docs


def answers_of(index: library.Index) -> list[CitedAnswer]:
    """An answer that quotes the first sentence of each passage."""
    answers = []
    for passage in index.store.scan():
        end = passage.text.index(".") + 1
        citation = Citation(passage.id, 0, end, passage.text[:end], "copied")
        sentence = CitedSentence(passage.text[:end], (citation,), 0, end)
        answers.append(CitedAnswer(passage.id[:2], "?", (sentence,), {passage.id: passage}))
    return answers


def test_same_moved_changed_and_gone(folder: Path, tmp_path: Path) -> None:
    index = library.build_index(folder, tmp_path / "a.index")
    answers = answers_of(index)
    assert [check.status for check in verify_quotes(answers, index)] == ["same"] * 3
    (folder / "bridge.txt").rename(folder / "crossing.txt")
    (folder / "fares.txt").write_text(FARES.replace("three", "four"))
    (folder / "otters.txt").write_text("Nothing of it is left; herons moved in.")
    later = library.build_index(folder, tmp_path / "b.index")
    bridge, fares, otters = verify_quotes(answers, later)
    assert (bridge.status, bridge.current_passage, bridge.start) == ("moved", "crossing.txt#1", 0)
    assert (fares.status, fares.current_passage) == ("changed", "fares.txt#1")
    assert fares.text == "Cars pay four euros on weekdays."
    assert fares.diff == "Cars pay [-three-] {+four+} euros on weekdays."
    assert otters == QuoteComparison("ot", 0, "otters.txt#1", "Otters live below the weir.", "gone")


def test_text_before_a_quote_moves_it(folder: Path, tmp_path: Path) -> None:
    answers = answers_of(library.build_index(folder, tmp_path / "a.index"))
    (folder / "fares.txt").write_text(f"New prices apply. {FARES}")
    checks = library.verify_quotes(answers, library.build_index(folder, tmp_path / "b.index"))
    assert [check.status for check in checks] == ["same", "moved", "same"]
    assert checks[1].start == len("New prices apply. ")


def test_a_citation_without_a_quote_is_compared_by_its_span_or_passed_over(folder: Path, tmp_path: Path) -> None:
    index = library.build_index(folder, tmp_path / "a.index")
    (passage,) = (passage for passage in index.store.scan() if passage.id.startswith("fares"))
    for citation, statuses in (
        (Citation(passage.id, 0, 9), ["same"]),
        (Citation(passage.id), []),
        (Citation(passage.id, None, None, "Bicycles cross for free"), ["same"]),
        (Citation(passage.id, None, None, "?!"), ["gone"]),
    ):
        answer = CitedAnswer("x", "?", (CitedSentence("So.", (citation,)),), {passage.id: passage})
        assert [check.status for check in verify_quotes([answer], index)] == statuses
    other = CitedAnswer(
        "x", "?", (CitedSentence("So.", (Citation("z", 0, 4),)),), {"z": Passage("z", "", "Cars pay three euros.")}
    )
    assert [check.status for check in verify_quotes([other], index)] == ["moved"]


def test_the_command_names_what_changed_and_exits_with_1(folder: Path, tmp_path: Path, rag: Command) -> None:
    first = tmp_path / "a.index"
    library.build_index(folder, first)
    answer = json.loads(rag("ask", "How much do cars pay?", "--index", first, "--json").stdout)
    answers = tmp_path / "answers.jsonl"
    answers.write_text(json.dumps(answer) + "\n")
    result = rag("verify", answers, "--index", first)
    assert result.returncode == 0, result.stderr
    assert "changed: " not in result.stdout
    (folder / "fares.txt").write_text(FARES.replace("three", "four"))
    second = tmp_path / "b.index"
    library.build_index(folder, second)
    result = rag("verify", answers, "--index", second)
    assert result.returncode == 1
    assert "changed: q1, sentence 1: fares.txt#1 -> fares.txt#1" in result.stdout
    assert "Cars pay [-three-] {+four+} euros on weekdays." in result.stdout
    rows = json.loads(rag("verify", answers, "--index", second, "--json").stdout)
    assert {row["status"] for row in rows} >= {"changed"}
    one_line_error(rag("verify", tmp_path / "none.jsonl", "--index", second), "none.jsonl")
