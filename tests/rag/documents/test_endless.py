"""Documents of others that take a regular expression with nested repeats hours: each is read in a moment, or never."""

import csv
import io
import zipfile
from collections import Counter
from pathlib import Path

import pytest

from rag.documents import read_document
from rag.documents.converters.markdown import markdown_blocks
from rag.documents.converters.pdf_words import HYPHEN, Words
from rag.documents.converters.rst import _learn
from rag.documents.converters.word_parts import mend_parts
from rag.documents.titles import clean_heading

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


def test_a_long_word_of_a_plain_text(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text(f"{'a' * MANY} is an old mill-\n{'er' * MANY}\n\n_{'a' * MANY}\n\nThe mill is old.\n")
    assert read_document(path, "a.txt")[-1].text.endswith("The mill is old.")


def test_the_roles_of_a_text() -> None:
    _learn(":a" * MANY)


def test_many_formulas_of_a_word_document() -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        formulas = "<oMath><t>a</t></oMath>" * 20_000 + "<oMath>" * 900 + "</oMath>" * 900
        archive.writestr("word/document.xml", f"<document>{formulas}</document>")
    assert mend_parts(file.getvalue(), "a.docx")


def test_a_word_of_a_pdf() -> None:
    words = Words([])
    assert words.join(f"{'a' * MANY} mi{HYPHEN}ller") == f"{'a' * MANY} miller"


def test_a_line_of_restructured_text(tmp_path: Path) -> None:
    path = tmp_path / "a.rst"
    path.write_text(f"{'-' * 60_000}x end. See https://example.org/mill and me@example.org.\n")
    assert "See https://example.org/mill and me@example.org." in read_document(path, "a.rst")[-1].text


def test_a_long_cell_of_many_rows_and_columns_is_said_once(tmp_path: Path) -> None:
    path = tmp_path / "a.html"
    rows = "<tr><td>z" * 99
    path.write_text(f"<table><tr><td rowspan=100 colspan=99>{'mill ' * 20_000}<td>a{rows}</table>")
    assert 0 < sum(len(passage.text) for passage in read_document(path, "a.html")) < 200_000


def test_a_long_cell_is_read_whatever_was_read_before(tmp_path: Path) -> None:
    csv.field_size_limit(131_072)  # Python's own; other readers raise it for the whole process
    path = tmp_path / "a.csv"
    path.write_text(f"Name,Story\nMill,{'old ' * 40_000}\nWell,deep\n")
    assert read_document(path, "a.csv")[-1].text.endswith("Name: Well | Story: deep")
