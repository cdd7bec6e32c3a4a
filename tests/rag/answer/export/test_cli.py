"""`rag ask --to`, and the library call behind it."""

import json
from datetime import date
from pathlib import Path

import pytest

from rag.answer.export import FORMATS, export_answer
from rag.base.errors import UsageError
from tests.conftest import Command, one_line_error
from tests.rag.answer.export.answers import BRIDGE, link


def test_an_answer_is_printed_in_each_format(rag: Command, shelf: Path) -> None:
    printed = {}
    for name in FORMATS:
        result = rag("ask", "When was Curie born?", "--index", shelf, "--to", name)
        assert result.returncode == 0, result.stderr
        printed[name] = result.stdout
    assert "[^1]: " in printed["markdown"]
    assert printed["html"].startswith("<!DOCTYPE html>")
    (item, *_) = json.loads(printed["csl"])
    today = date.today()
    assert item["accessed"] == {"date-parts": [[today.year, today.month, today.day]]}
    assert f"title = {{{{{item['title']}}}}}" in printed["bibtex"]
    blocks = json.loads(printed["anthropic"])
    first = next(one for block in blocks["content"] for one in block["citations"] or ())
    text = blocks["documents"][first["document_index"]]["source"]["data"]
    assert text[first["start_char_index"] : first["end_char_index"]] == first["cited_text"]


def test_an_abstention_is_printed_too_and_the_exit_code_tells(rag: Command, shelf: Path) -> None:
    result = rag("ask", "When was Curie born?", "--index", shelf, "--min-confidence", "1", "--to", "markdown")
    assert result.returncode == 1
    assert result.stdout.startswith("# When was Curie born?\n\nThe sources do not answer this question")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--to", "docx"], "no format 'docx'; there are: markdown, html, csl, bibtex, anthropic"),
        (["--to", "html", "--json"], "--to and --json exclude each other"),
        (["--to", "html", "--stream"], "--to and --stream exclude each other"),
    ],
)
def test_what_does_not_go_together_is_one_line(rag: Command, options: list[str], says: str) -> None:
    one_line_error(rag("ask", "When was Curie born?", *options), says)


def test_a_format_needs_a_question(rag: Command) -> None:
    one_line_error(rag("ask", "--to", "html"), "give a question")


def test_the_library_call_writes_the_same_formats() -> None:
    written = {
        name: export_answer(BRIDGE, name, link, container="Shelf", accessed=date(2026, 11, 23)) for name in FORMATS
    }
    assert all(text.endswith("\n") for text in written.values())
    assert json.loads(written["csl"])[0]["container-title"] == "Shelf"
    assert "urldate = {2026-11-23}" in written["bibtex"]
    with pytest.raises(UsageError, match="no format 'docx'"):
        export_answer(BRIDGE, "docx")
