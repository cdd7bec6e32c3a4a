"""CSL-JSON and BibTeX: the pages that an answer cites."""

import json
import re
from datetime import date

from hypothesis import given
from hypothesis import strategies as st

from rag.answer.export.bibtex import to_bibtex
from rag.answer.export.csl import to_csl
from rag.answer.export.escaping import bibtex_text, one_line
from rag.answer.export.sources import list_pages
from rag.base.types import Answer, Passage
from tests.rag.answer.export.answers import ABSTAINED, BRIDGE, PASSAGES, answers, build, cite, link, texts

TODAY = date(2026, 11, 23)
TEX = {
    "textbackslash": "\\",
    "textbraceleft": "{",
    "textbraceright": "}",
    "textasciitilde": "~",
    "textasciicircum": "^",
}


def read_bibtex(text: str) -> list[dict[str, str]]:
    """The entries as BibTeX reads them: a value ends at the brace that balances its first, escaped or not."""
    entries, at = [], 0
    while found := re.compile(r"\s*@misc\{([^,\s{}]+)").match(text, at):
        entry, at = {"key": found[1]}, found.end()
        while field := re.compile(r",\s*(\w+) = \{").match(text, at):
            start, depth, at = field.end(), 1, field.end()
            while depth:
                depth += {"{": 1, "}": -1}.get(text[at], 0)
                at += 1
            entry[field[1]] = text[start : at - 1]
        end = re.compile(r"\s*\}").match(text, at)
        assert end, text[at : at + 40]
        at = end.end()
        entries.append(entry)
    assert not text[at:].strip()
    return entries


def typeset(value: str) -> str:
    """What LaTeX shows."""
    assert not re.search(r"(?<!\\)[%&#$_~^]", value)
    named = re.sub(r"\\(text\w+)\{\}", lambda found: f"\0{ord(TEX[found[1]])}\0", value)
    plain = re.sub(r"\\([#$%&_])", r"\1", named)
    assert "\\" not in plain
    return re.sub("\0(\\d+)\0", lambda found: chr(int(found[1])), plain)


def test_csl_has_an_item_for_each_page() -> None:
    answer = build("A. B.", [("A.", [cite(PASSAGES[1], "900")]), ("B.", [cite(PASSAGES[0], "bridge")])])
    assert to_csl(answer, link, container="Shelf", accessed=TODAY) == [
        {
            "id": "town",
            "type": "webpage",
            "title": "Arlen",
            "container-title": "Shelf",
            "section": "People; History",
            "locator": "3, 4",
            "URL": "http://127.0.0.1:8000/p/shelf/town%232",
            "accessed": {"date-parts": [[2026, 11, 23]]},
        }
    ]
    assert to_csl(BRIDGE)[1] == {"id": "river", "type": "document", "title": "The river [Lune]"}
    assert to_csl(ABSTAINED) == []


def test_bibtex_has_an_entry_for_each_page() -> None:
    assert to_bibtex(BRIDGE, link, container="100 % & more", accessed=TODAY) == (
        "@misc{town,\n  title = {{Arlen}},\n  howpublished = {100 \\% \\& more},\n  pages = {3},\n"
        "  note = {Section History},\n  url = {http://127.0.0.1:8000/p/shelf/town%231},\n"
        "  urldate = {2026-11-23}\n}\n\n"
        "@misc{river,\n  title = {{The river [Lune]}},\n  howpublished = {100 \\% \\& more},\n"
        "  url = {http://127.0.0.1:8000/p/shelf/river%231},\n  urldate = {2026-11-23}\n}\n"
    )
    assert to_bibtex(ABSTAINED) == ""


def test_keys_differ_even_where_only_case_or_script_does() -> None:
    passages = [Passage(f"{name}#1", "t", "x") for name in ("a b", "A-b", "é/e", "e/e", "東京", "大阪")]
    answer = build("x", [("x", [cite(one, "x") for one in passages])], passages)
    keys = [entry["key"] for entry in read_bibtex(to_bibtex(answer))]
    assert keys == ["a-b", "A-b-2", "e-e", "e-e-2", "source", "source-2"]


@given(texts)
def test_latex_shows_the_text(text: str) -> None:
    assert typeset(bibtex_text(text)) == one_line(text)


@given(answers(), st.one_of(st.none(), texts))
def test_both_hold_any_page(answer: Answer, container: str | None) -> None:
    pages = list_pages(answer, link)
    items = to_csl(answer, link, container=container, accessed=TODAY)
    entries = read_bibtex(to_bibtex(answer, link, container=container, accessed=TODAY))
    assert json.loads(json.dumps(items)) == items
    assert len({entry["key"].casefold() for entry in entries}) == len(pages)
    for page, item, entry in zip(pages, items, entries, strict=True):
        assert typeset(entry["title"].removeprefix("{").removesuffix("}")) == item["title"] == page.title
        assert entry["url"] == item["URL"] == page.url
        assert not re.search(r"[{}\\\s]", entry["url"])
