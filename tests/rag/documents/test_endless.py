"""Documents of others that take a regular expression with nested repeats hours: each is read in a moment, or never."""

import csv
from collections import Counter
from pathlib import Path

import pytest

from rag.documents import read_document
from rag.documents.converters.markdown import markdown_blocks
from rag.documents.converters.pdf_words import HYPHEN, Words
from rag.documents.converters.rst import _learn
from rag.documents.corpus import Corpus
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


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.adoc", "<<a `b footnote:[c {d} " * 20_000),
        ("a.adoc", f":a: {'x' * 1_000}\n\n{'{a} ' * 20_000}"),
        ("a.org", "[[a =b *c {{{d(" * 20_000),
        ("a.org", ":a:\n" * MANY),
        ("a.rtf", "{\\rtf1 " + '{\\field{\\*\\fldinst{HYPERLINK "a" ' * 1_500),
        ("a.srt", "00:00:01 --> 00:00:02\n" * 20_000 + "<a " * MANY),
        ("a.vcf", "BEGIN:VCARD\nNOTE" + ";a" * MANY),
    ],
)
def test_marks_that_never_end(name: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(text)
    assert sum(len(passage.text) for passage in read_document(path, name)) < 60 * len(text)


@pytest.mark.parametrize(
    "text",
    [
        "{" * MANY,
        r"\section{\emph{\'{" * 20_000 + "x}" * 60_000,
        r"\begin{itemize}" * 100_000 + r"\end{enumerate}" * 100_000,
        r"\begin{verbatim}\begin{equation}\url{" * 20_000,
        r"\begin{tabular}{l}" + r"\multicolumn{50}{c}{x} & " * 20_000,
        rf"\begin{{tabular}}{{l}}{'word ' * 20_000}\\ \hline " + r"a\\ " * 20_000,
        rf"\newcommand{{\a}}{{{'x' * 100}}}" + r"\a $\a$ " * 20_000,
        r"\newcommand{\a}{\a\a\a}" * 20_000 + r"\a " * 20_000,
        r"$\[\(\iffalse\item[\foo[" * 20_000,
        r"\section{x}" + r"\iffalse " * 100_000 + r"\fi",
    ],
)
def test_latex_that_never_ends(text: str, tmp_path: Path) -> None:
    path = tmp_path / "a.tex"
    path.write_text(f"\\documentclass{{a}}\n{text}")
    assert sum(len(passage.text) for passage in read_document(path, "a.tex")) < 60 * len(text)


def test_strings_of_strings_of_a_manual_page(tmp_path: Path) -> None:
    doubled = "\n".join(r".ds A \*A\*A" for _ in range(60))
    path = tmp_path / "a.1"
    path.write_text(f".TH A 1\n.ds A word word\n{doubled}\n.SH NAME\nmill \\- an old \\*A mill\n")
    (passage,) = read_document(path, "a.1")
    assert passage.text.endswith("mill")
    assert len(passage.text) < 1_000


def test_conditions_in_conditions_of_a_manual_page(tmp_path: Path) -> None:
    (tmp_path / "a.1").write_text(f".TH A 1\n.SH NAME\n{'.if n ' * 20_000}mill\n")
    (tmp_path / "b.md").write_text("The mill is old.\n")
    corpus = Corpus([tmp_path])
    assert [passage.text for _, passage in corpus.read()] == ["The mill is old."]
    assert corpus.report.bad == 1
    assert corpus.report.reasons[0].endswith("a.1: cannot be read: RecursionError")


def test_a_word_of_a_pdf() -> None:
    words = Words([])
    assert words.joined(f"{'a' * MANY} mi{HYPHEN}ller") == f"{'a' * MANY} miller"


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
