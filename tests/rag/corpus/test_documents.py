import io
from pathlib import Path
from random import Random

import pytest

from rag.corpus.documents import read_document
from rag.corpus.reader import Corpus
from rag.errors import FormatError
from rag.types import Passage

LONG = "This paragraph has more than twelve words, so that it stands as a passage by itself."


def read(tmp_path: Path, name: str, content: str | bytes) -> list[Passage]:
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return read_document(path, name)


def test_markdown_keeps_title_and_headings_and_drops_markup(tmp_path: Path) -> None:
    text = (
        f"---\nlayout: x\n---\n# Rivers\n\n{LONG}\n\n## Poland\n\n"
        f"### Long ones\n\n**{LONG}** <br> `code`\n\n## Other\n\n{LONG}"
    )
    first, second, third = read(tmp_path, "r.md", text)
    assert first == Passage("r.md#1", "Rivers", LONG)
    assert (second.section, second.text) == ("Poland, Long ones", f"{LONG} code")
    assert third.section == "Other"


def test_markdown_lists_tables_and_lead_ins_stay_together(tmp_path: Path) -> None:
    text = "# T\n\nFor example:\n\n- one\n- two\n  - three\n\n| a | b |\n|---|---|\n| c | d |\n"
    (listed, table) = read(tmp_path, "l.md", text)
    assert listed.text.split("\n\n") == ["For example:", "one", "two", "three"]
    assert table.text.split("\n\n") == ["a | b", "c | d"]


def test_text_without_headings_takes_its_name_for_title(tmp_path: Path) -> None:
    passages = read(tmp_path, "notes.txt", f"{LONG}\r\n\r\n{LONG}\n{LONG}")
    assert [p.id for p in passages] == ["notes.txt#1", "notes.txt#2"]
    assert passages[0].title == "notes"


def test_a_long_paragraph_is_cut_at_sentence_ends(tmp_path: Path) -> None:
    passages = read(tmp_path, "long.txt", " ".join([LONG] * 40))
    assert len(passages) > 2
    assert all(p.text.endswith(".") and len(p.text.split()) <= 200 for p in passages)
    assert " ".join(p.text for p in passages) == " ".join([LONG] * 40)


def test_html_gives_text_under_headings_without_scripts_and_menus(tmp_path: Path) -> None:
    page = f"""<html><head><title>Site</title><script>alert(1)</script></head><body><nav>Menu</nav>
      <h1>Rivers</h1>Loose text &amp; more of it, enough words to stand as one passage here.<p>{LONG}
      <h2>Poland</h2><div><p>{LONG} <b>Bold</b>ly.</p></div><footer>Imprint</footer></body></html>"""
    passages = read(tmp_path, "p.html", page)
    assert [(p.title, p.section) for p in passages] == [("Rivers", ""), ("Rivers", ""), ("Rivers", "Poland")]
    assert passages[0].text.startswith("Loose text & more")
    assert passages[2].text == f"{LONG} Boldly."
    assert not any(word in p.text for p in passages for word in ("alert", "Menu", "Imprint"))


def test_html_lists_and_tables_keep_items_and_rows_apart(tmp_path: Path) -> None:
    page = f"""<h1>T</h1><p>{LONG}</p><ul><li>Dogs travel <b>free</b><li><p>Bicycles</p><p>do not</p></ul>
      <p>{LONG}</p><table><tr><th>Class<th>Price</tr><tr><td>First<td>90 <i>euros</i></tr></table>
      <dl><dt>Card<dd>A paper.</dl>"""
    _, listed, _, table, terms = read(tmp_path, "t.html", page)
    assert listed.text.split("\n\n") == ["Dogs travel free", "Bicycles do not"]
    assert table.text.split("\n\n") == ["Class | Price", "First | 90 euros"]
    assert terms.text == "Card | A paper."


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("e.txt", ""),
        ("e.txt", " \n\n\t"),
        ("e.md", ""),
        ("e.md", "---\na: b\n---\n"),
        ("e.md", "<div></div>"),
        ("e.md", "# Only a heading"),
        ("e.html", ""),
        ("e.html", "<title>T</title><script>x</script><div> </div>"),
    ],
)
def test_a_document_without_text_has_no_passages(tmp_path: Path, name: str, content: str) -> None:
    assert read(tmp_path, name, content) == []


def test_emphasis_leaves_no_space_before_a_stop(tmp_path: Path) -> None:
    (passage,) = read(
        tmp_path, "e.md", "# T\n\nThis is *good* stuff, really **good**. It is `fast`, *cheap*; (see _a_)\nhere."
    )
    assert passage.text == "This is good stuff, really good. It is fast, cheap; (see a) here."


def test_a_short_line_before_a_capital_is_a_heading_and_stays_apart(tmp_path: Path) -> None:
    text = f"HOW TO VISIT\n{LONG}\nand this line is wrapped like any other line of the same long paragraph is."
    (passage,) = read(tmp_path, "v.txt", text)
    heading, body = passage.text.split("\n\n")
    assert heading == "HOW TO VISIT"
    assert "itself. and this line" in body


def test_utf16_with_a_mark_is_read(tmp_path: Path) -> None:
    (passage,) = read(tmp_path, "w.txt", LONG.encode("utf-16"))
    assert passage.text == LONG


def test_a_sentence_without_end_is_cut_at_words(tmp_path: Path) -> None:
    passages = read(tmp_path, "lorem.txt", "lorem " * 1000)
    assert [len(p.text.split()) for p in passages] == [200] * 5


def test_html_inside_markdown_and_inline_tags_inside_html_lose_no_words(tmp_path: Path) -> None:
    (block,) = read(tmp_path, "h.md", f"# T\n\n<p align='center'>{LONG}</p>\n")
    assert block.text == LONG
    (line,) = read(
        tmp_path,
        "i.html",
        "<p>One <ins>long</ins> line<br>of <img src='x'> words <del>that</del> all stay in here, see.",
    )
    assert line.text == "One long line of words that all stay in here, see."


def test_a_file_of_another_kind_is_named(tmp_path: Path) -> None:
    (tmp_path / "n.rst").write_text(LONG)
    with pytest.raises(FormatError, match=r"n\.rst: not a known type of document"):
        list(Corpus([tmp_path / "n.rst"], "documents").read())


@pytest.mark.parametrize("seed", range(60))
def test_a_mangled_pdf_is_read_or_named(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    data = bytearray(_pdf("The Vistula is the longest river of Poland."))
    for _ in range(4):
        at = random.randrange(len(data))
        data[at : at + random.randrange(6)] = bytes(random.choices(b"0123456789/<>[]()RTj ", k=random.randrange(6)))
    try:
        read(tmp_path, "m.pdf", bytes(data))
    except FormatError as error:
        assert str(error).startswith(f"{tmp_path / 'm.pdf'}: the PDF cannot be read")  # noqa: PT017  (either is right)


def test_html_may_nest_deeper_than_python_recurses(tmp_path: Path) -> None:
    (passage,) = read(tmp_path, "deep.html", "<div>" * 20_000 + LONG + "</div>" * 20_000)
    assert passage.text == LONG


def test_pdf_gives_pages(tmp_path: Path) -> None:
    (passage,) = read(tmp_path, "one.pdf", _pdf("The Vistula is the longest river of Poland."))
    assert (passage.title, passage.section) == ("one", "page 1")
    assert passage.text == "The Vistula is the longest river of Poland."


def _pdf(text: str) -> bytes:
    """A PDF of one page with one line, written by hand."""
    stream = f"BT /F1 12 Tf 20 50 Td ({text}) Tj ET"
    font = "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"
    page = f"<</Type/Page/Parent 2 0 R/MediaBox[0 0 400 100]/Resources<</Font<</F1 {font}>>>>/Contents 4 0 R>>"
    bodies = [
        "<</Type/Catalog/Pages 2 0 R>>",
        "<</Type/Pages/Kids[3 0 R]/Count 1>>",
        page,
        f"<</Length {len(stream)}>>stream\n{stream}\nendstream",
    ]
    file, offsets = io.BytesIO(b""), []
    file.write(b"%PDF-1.4\n")
    for number, body in enumerate(bodies, 1):
        offsets.append(file.tell())
        file.write(f"{number} 0 obj{body}endobj\n".encode())
    start = file.tell()
    file.write(f"xref\n0 {len(bodies) + 1}\n0000000000 65535 f \n".encode())
    file.write("".join(f"{offset:010d} 00000 n \n" for offset in offsets).encode())
    file.write(f"trailer<</Size {len(bodies) + 1}/Root 1 0 R>>\nstartxref\n{start}\n%%EOF".encode())
    return file.getvalue()


@pytest.mark.parametrize("name", ["bad.txt", "bad.md", "bad.html"])
def test_a_document_that_is_not_utf8_is_named_with_line(tmp_path: Path, name: str) -> None:
    with pytest.raises(FormatError, match=rf"{name}:2: not UTF-8"):
        read(tmp_path, name, b"fine\ncaf\xe9\n")


def test_a_pdf_that_is_none_is_named_or_counted(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"x\.pdf: the PDF cannot be read"):
        read(tmp_path, "x.pdf", b"%PDF-1.4 nonsense")
    (tmp_path / "good.txt").write_text(LONG)
    corpus = Corpus([tmp_path], skip_bad=True)
    assert [p.id for _, p in corpus.read()] == ["good.txt#1"]
    assert corpus.bad == 1


def test_a_folder_is_read_in_order_of_paths_without_hidden_files(tmp_path: Path) -> None:
    for name in ("b.txt", "a/z.md", ".git/x.txt", "a/pic.png"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(LONG)
    assert [p.id for _, p in Corpus([tmp_path]).read()] == ["a/z.md#1", "b.txt#1"]
