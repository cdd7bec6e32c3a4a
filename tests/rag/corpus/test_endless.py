"""Documents of others that take a regular expression with nested repeats hours: each is read in a moment, or never."""

from collections import Counter
from pathlib import Path

import pytest

from rag.corpus.documents import read_document
from rag.corpus.documents.markdown import markdown_blocks
from rag.corpus.documents.rst import _learn
from rag.corpus.documents.titles import clean_heading

MANY = 200_000
XHTML = '<html xmlns="http://www.w3.org/1999/xhtml"><body>'


@pytest.mark.parametrize("body", ["<br" * MANY, f"<{'a-' * MANY}>", f"<{'a' * MANY}", f"<h1>{'#' * MANY}x</h1>"])
def test_a_page(body: str, tmp_path: Path) -> None:
    path = tmp_path / "p.html"
    path.write_text(f"{XHTML}<p>The mill is old.</p>{'<i></i>' * 20_000}{body}")
    assert "The mill is old." in read_document(path, "p.html")[0].text


def test_a_heading_with_marks() -> None:
    assert clean_heading(f"Mills{'#' * MANY}") == "Mills"
    assert clean_heading(f"Mills{'#' * MANY}x") == f"Mills{'#' * MANY}x"
    assert [*map(clean_heading, ("Mills¶", "Mills [edit]", "C#", "#", ""))] == ["Mills", "Mills", "C#", "", ""]


def test_the_title_of_front_matter() -> None:
    title, _ = markdown_blocks(f"---\ntitle: '{' ' * MANY}Mills'{' ' * MANY}\n---\nThey are old.", Counter())
    assert title.strip() == "Mills"


def test_the_roles_of_a_text() -> None:
    _learn(":a" * MANY)
