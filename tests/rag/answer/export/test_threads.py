"""A thread as one file."""

import json
from pathlib import Path

import pytest
from selectolax.lexbor import LexborHTMLParser

import autoais
from rag.answer.attribution.check import SentenceVerdict
from rag.answer.export import ThreadTurn, export_thread
from rag.base.errors import UsageError
from tests.rag.answer.export.answers import ABSTAINED, BRIDGE, HOSTILE, build, cite, link

SUPPORTED, NOT_ENOUGH = SentenceVerdict.SUPPORTED, SentenceVerdict.NOT_ENOUGH
TURNS = [
    ThreadTurn("who built it?", BRIDGE, (SUPPORTED, SUPPORTED, NOT_ENOUGH), "town", link),
    ThreadTurn("Who sings?", ABSTAINED, (), "town", link),
    ThreadTurn("Again?", BRIDGE, (SUPPORTED, SUPPORTED, SUPPORTED), "town", link),
]


def test_markdown_has_all_turns_and_no_footnote_twice() -> None:
    text = export_thread("The *bridge*", TURNS, "markdown")
    assert text.startswith("# The \\*bridge\\*\n\n## who built it?\n\nNora Finch built it in 1911[^1-1].")
    assert [line.split(":")[0] for line in text.splitlines() if line.startswith("[^")] == [
        "[^1-1]",
        "[^1-2]",
        "[^3-1]",
        "[^3-2]",
    ]
    assert text.count("The judge doubts:\n\n- “It may rain.”: not supported\n") == 1
    assert "The sources do not answer this question" in text


def test_the_page_is_read_without_anything_else() -> None:
    page = LexborHTMLParser(export_thread("The bridge", TURNS, "html"))
    assert [node.text() for node in page.css("h1, h2")] == ["The bridge", "who built it?", "Who sings?", "Again?"]
    assert not page.css("script, link, img, iframe, [src], [style]")
    ids = [node.attributes["id"] for node in page.css("[id]")]
    assert len(ids) == len(set(ids)) == 4
    assert {str(node.attributes["href"])[1:] for node in page.css("sup a")} == set(ids)
    assert [node.text() for node in page.css(".doubts li")] == ["not supported: “It may rain.”"]
    assert [node.text() for node in page.css("#turn-3-source-1 mark")] == [
        "Arlen has a bridge.",
        "Nora Finch built it in 1911.",
    ]


def test_autoais_reads_the_rows(tmp_path: Path) -> None:
    path = tmp_path / "thread.json"
    path.write_text(export_thread("The bridge", TURNS, "json"), "utf-8")
    answers = list(autoais.read_answers(path))
    assert [answer.id for answer in answers] == ["t1", "t2", "t3"]
    assert [answer.abstained for answer in answers] == [False, True, False]
    rows = json.loads(path.read_text("utf-8"))
    assert rows[0]["verdicts"] == ["supported", "supported", "not_enough"]
    assert (rows[0]["asked"], rows[0]["index"]) == ("who built it?", "town")


@pytest.mark.parametrize("to", ["markdown", "html"])
def test_markup_of_titles_and_questions_is_text(to: str) -> None:
    passage = BRIDGE.hits[0].passage
    answer = build(HOSTILE, [(HOSTILE, [cite(passage, "Arlen")])], [passage], HOSTILE)
    text = export_thread(HOSTILE, [ThreadTurn(HOSTILE, answer, (NOT_ENOUGH,))], to)
    assert not set("\x1b\u202e\U000e0041") & set(text)
    if to == "html":
        assert not LexborHTMLParser(text).css("script, img, b")
    else:
        assert "\n# \\<script>" in f"\n{text}"
        assert "- “\\<script>" in text


def test_another_format_is_refused() -> None:
    with pytest.raises(UsageError, match="no format 'pdf'; there are: markdown, html, json"):
        export_thread("x", TURNS, "pdf")
