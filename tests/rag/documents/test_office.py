"""Word, Excel and PowerPoint files: what their programs show, and nothing that they hide."""

import io
import zipfile
from datetime import datetime, time, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.documents import Document, load_document
from rag.documents.converters.number_formats import format_number, format_time
from rag.documents.converters.word_numbering import _write

_OPEN = "http://schemas.openxmlformats.org"
_TYPE = "application/vnd.openxmlformats"
_SPACES = f'xmlns:w="{_OPEN}/wordprocessingml/2006/main" xmlns:r="{_OPEN}/officeDocument/2006/relationships"'
_TYPES = f"""<Types xmlns="{_OPEN}/package/2006/content-types">
<Default Extension="rels" ContentType="{_TYPE}-package.relationships+xml"/><Override PartName="/word/document.xml"
ContentType="{_TYPE}-officedocument.wordprocessingml.document.main+xml"/></Types>"""
_LINKS = f"""<Relationships xmlns="{_OPEN}/package/2006/relationships"><Relationship Id="r"
Type="{_OPEN}/officeDocument/2006/relationships/officeDocument" Target="word/document.xml"/></Relationships>"""


def load(path: Path, data: bytes) -> Document:
    path.write_bytes(data)
    return load_document(path, path.name)


def blocks(document: Document) -> list[str]:
    return [block for passage in document.passages for block in passage.text.split("\n\n")]


# --- Word -------------------------------------------------------------------------------------------------------


def word(body: str, **parts: str) -> bytes:
    """A Word file with this body and other parts, each the inside of its root element."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("[Content_Types].xml", _TYPES)
        archive.writestr("_rels/.rels", _LINKS)
        archive.writestr("word/document.xml", f"<w:document {_SPACES}><w:body>{body}</w:body></w:document>")
        for name, content in parts.items():
            archive.writestr(f"word/{name}.xml", f"<w:{name} {_SPACES}>{content}</w:{name}>")
    return file.getvalue()


def run(text: str) -> str:
    return f'<w:r><w:t xml:space="preserve">{text}</w:t></w:r>'


def paragraph(text: str, depth: int | None = None, number: int = 1, style: str = "") -> str:
    place = "" if depth is None else f'<w:numPr><w:ilvl w:val="{depth}"/><w:numId w:val="{number}"/></w:numPr>'
    named = f'<w:pStyle w:val="{style}"/>' if style else ""
    return f"<w:p><w:pPr>{named}{place}</w:pPr>{run(text) if text else ''}</w:p>"


def levels(*rows: tuple[int, str, str], extra: str = "") -> str:
    """The numbering of list 1, from the start, format and text of each level."""
    items = "".join(
        f'<w:lvl w:ilvl="{depth}"><w:start w:val="{start}"/><w:numFmt w:val="{kind}"/><w:lvlText w:val="{text}"/>'
        "</w:lvl>"
        for depth, (start, kind, text) in enumerate(rows)
    )
    lists = '<w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num>'
    return f'<w:abstractNum w:abstractNumId="0">{items}</w:abstractNum>{lists}{extra}'


CONTRACT = levels((3, "decimal", "%1."), (1, "lowerLetter", "(%2)"), (1, "decimal", "%1.%2.%3"))


def test_lists_have_the_numbers_that_word_shows(tmp_path: Path) -> None:
    pytest.importorskip("mammoth")
    body = paragraph("Pay.", 0) + paragraph("Late.", 1) + paragraph("More.", 1) + paragraph("Stay.", 0)
    body += paragraph("Between.") + paragraph("Anew.", 1) + paragraph("Deep.", 2) + paragraph("Last.", 0)
    assert blocks(load(tmp_path / "a.docx", word(body, numbering=CONTRACT))) == [
        "3. Pay.",
        "  (a) Late.",
        "  (b) More.",
        "4. Stay.",
        "Between.",
        "  (a) Anew.",
        "    4.a.1 Deep.",
        "5. Last.",
    ]


def test_a_list_that_begins_anew_and_one_with_bullets(tmp_path: Path) -> None:
    pytest.importorskip("mammoth")
    again = '<w:lvlOverride w:ilvl="0"><w:startOverride w:val="7"/></w:lvlOverride>'
    second_list = f'<w:num w:numId="2"><w:abstractNumId w:val="0"/>{again}</w:num>'
    body = paragraph("One.", 0) + paragraph("Dot.", 1) + paragraph("Seven.", 0, 2) + paragraph("Eight.", 0, 2)
    numbering = levels((1, "upperRoman", "§ %1"), (1, "bullet", "\uf0b7"), extra=second_list)
    assert blocks(load(tmp_path / "a.docx", word(body, numbering=numbering))) == [
        "§ I One.",
        "  - Dot.",
        "§ VII Seven.",
        "§ VIII Eight.",
    ]


def test_a_heading_whose_style_numbers_it(tmp_path: Path) -> None:
    pytest.importorskip("mammoth")
    style = '<w:style w:type="paragraph" w:styleId="Heading1"><w:name w:val="heading 1"/><w:pPr><w:numPr><w:numId '
    style += 'w:val="1"/></w:numPr></w:pPr></w:style>'
    body = "".join(paragraph(text, style="Heading1") + paragraph(f"It is {text}. " * 30) for text in ("Red", "Blue"))
    document = load(tmp_path / "a.docx", word(body, numbering=levels((1, "decimal", "Article %1.")), styles=style))
    assert [passage.section for passage in document.passages] == ["Article 1. Red", "Article 2. Blue"]


def test_cells_that_are_only_a_number_of_a_list(tmp_path: Path) -> None:
    pytest.importorskip("mammoth")
    rows = [[paragraph("No"), paragraph("Part")], [paragraph("", 0), paragraph("Bolt")]]
    table = "".join(f"<w:tr>{''.join(f'<w:tc>{cell}</w:tc>' for cell in row)}</w:tr>" for row in rows)
    body = f"{paragraph('', 0)}<w:tbl>{table}</w:tbl>{paragraph('They are in stock.')}"
    expected = ["No: 4. | Part: Bolt", "They are in stock."]
    assert blocks(load(tmp_path / "a.docx", word(body, numbering=CONTRACT))) == expected


def test_numbers_in_letters_and_roman_numerals() -> None:
    assert [_write(n, "lowerLetter") for n in (1, 26, 27, 53)] == ["a", "z", "aa", "aaa"]
    assert [_write(n, "upperRoman") for n in (1, 4, 1949, 0)] == ["I", "IV", "MCMXLIX", "0"]
    assert len(_write(10**8, "upperLetter") + _write(10**8, "lowerRoman")) == 18  # digits, or they take all memory


def test_links_pictures_and_notes_that_are_not_there_lose_nothing_else(tmp_path: Path) -> None:
    pytest.importorskip("mammoth")
    link = f'<w:p><w:hyperlink r:id="r9">{run("See the page.")}</w:hyperlink></w:p>'
    picture = '<w:p><w:r><w:pict><v:shape xmlns:v="urn:schemas-microsoft-com:vml"><v:imagedata r:id="r8"/></v:shape>'
    note = f'<w:p>{run("The pump is blue.")}<w:r><w:footnoteReference w:id="7"/></w:r></w:p>'
    document = load(tmp_path / "a.docx", word(f"{link}{picture}</w:pict></w:r></w:p>{note}"))
    assert blocks(document) == ["See the page.", "The pump is blue."]


def test_notes_do_not_end_in_an_arrow(tmp_path: Path) -> None:
    pytest.importorskip("mammoth")
    note = f'<w:footnote w:id="2">{paragraph("It was tested.")}</w:footnote>'
    body = f'<w:p>{run("The pump is blue.")}<w:r><w:footnoteReference w:id="2"/></w:r></w:p>'
    assert blocks(load(tmp_path / "a.docx", word(body, footnotes=note))) == ["The pump is blue.", "1. It was tested."]


def table(text: str) -> str:
    """A table of Word, a line for each row; a cell that begins with `*` is bold, one that ends with `>` spans two."""
    rows = ""
    for line in text.splitlines():
        rows += "<w:tr>"
        for cell in line.split("|"):
            content, span = paragraph(cell.strip(" *>")), ""
            if "*" in cell:
                content = content.replace("<w:r>", "<w:r><w:rPr><w:b/></w:rPr>")
            if ">" in cell:
                span = '<w:tcPr><w:gridSpan w:val="2"/></w:tcPr>'
            rows += f"<w:tc>{span}{content}</w:tc>"
        rows += "</w:tr>"
    return f"<w:tbl>{rows}</w:tbl>"


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (
            "|Old>|New>\nPlan|Cost|Size|Cost|Size\nPro|5|10|6|20\nMax|7|30|8|40",
            [
                "Plan: Pro | Old, Cost: 5 | Old, Size: 10 | New, Cost: 6 | New, Size: 20",
                "Plan: Max | Old, Cost: 7 | Old, Size: 30 | New, Cost: 8 | New, Size: 40",
            ],
        ),
        ("|Cost|Size\nPro|5|10\nMax|7|9", ["Pro | Cost: 5 | Size: 10", "Max | Cost: 7 | Size: 9"]),
        ("*Name|Ann|*Town|Lee\n*Role|Clerk", ["Name: Ann", "Town: Lee", "Role: Clerk"]),
        ("Name:|Ann\nTown:|\nRole:|Clerk", ["Name: Ann", "Town:", "Role: Clerk"]),
        ("*Mon|Art|PE\n*Tue|Music|Art", ["Mon | Art | PE", "Tue | Music | Art"]),
        ("*Day|*Who\n*Mon|Ann", ["Day: Mon | Who: Ann"]),
    ],
)
def test_tables_of_word(tmp_path: Path, rows: str, expected: list[str]) -> None:
    pytest.importorskip("mammoth")
    assert blocks(load(tmp_path / "a.docx", word(table(rows)))) == expected


# --- Excel ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "code", "expected"),
    [
        (1234, "00000", "01234"),
        (12, '0" kg"', "12 kg"),
        (7.25, 'General" m"', "7.25 m"),
        (5551234, "000-0000", "555-1234"),
        (491234567, "000 000 0000", "049 123 4567"),
        (0.07, "0%", "7%"),
        (1 / 3, "0.0%", "33.3%"),
        (2.675, "0.00", "2.68"),
        (1234567.8, "#,##0.00", "1234567.80"),
        (540, '"£"#,##0.00', "£540"),
        (12_400_000, '0.0,,"M"', "12.4M"),
        (-5, "#,##0_);[Red](#,##0)", "-5"),
        (1234.5, '_-"£"* #,##0.00_-;-"£"* #,##0.00_-;_-"£"* "-"??_-;_-@_-', "£1234.50"),
        (0, '"yes";"yes";"no"', "no"),
        (1.5, "# ?/?", "1.5"),
        (1e6, "0.00E+00", "1000000"),
        (200, '[>100]0" big";0', "200"),
        (3.14159, "General", "3.14159"),
        (1.5, "@", "1.5"),
        (5, ";;;", "5"),
    ],
)
def test_numbers_are_as_the_sheet_shows_them(value: float, code: str, expected: str) -> None:
    assert format_number(value, code) == expected


@given(st.floats() | st.integers(), st.text('0#?.,%;"\\ _*[]$€-()@E/Gkg', max_size=20))
def test_any_number_in_any_format_is_a_text(value: float, code: str) -> None:
    assert format_number(value, code).strip()


@pytest.mark.parametrize(
    ("value", "code", "expected"),
    [
        (timedelta(days=1.25), "[h]:mm", "30:00"),
        (timedelta(hours=-2, minutes=-3), "[h]:mm:ss", "-2:03:00"),
        (timedelta(minutes=90, seconds=5), "[mm]:ss", "90:05"),
        (timedelta(hours=37), '[h]" h "mm" min"', "37 h 00 min"),
    ],
)
def test_lengths_of_time(value: timedelta, code: str, expected: str) -> None:
    assert format_time(value, code) == expected


def workbook(*rows: list[Any]) -> tuple[Any, Any]:
    """A workbook and its sheet with these rows."""
    openpyxl: Any = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    return book, book.active


def saved(book: Any) -> bytes:  # noqa: ANN401
    file = io.BytesIO()
    book.save(file)
    return file.getvalue()


STOCK: list[list[Any]] = [["Part", "Key", "Stock"], ["Bolt", "a", 40], ["Nut", "b", 50], ["Pin", "c", 60]]


def test_hidden_sheets_rows_and_columns_are_counted(tmp_path: Path) -> None:
    book, sheet = workbook(*STOCK)
    book.create_sheet("Private").append(["Salaries"])
    book["Private"].sheet_state = "hidden"
    sheet.row_dimensions[3].hidden = sheet.column_dimensions["B"].hidden = True
    document = load(tmp_path / "a.xlsx", saved(book))
    assert blocks(document) == ["Part: Bolt | Stock: 40", "Part: Pin | Stock: 60"]
    assert document.dropped == {"sheet that is hidden": 1, "row that is hidden": 1, "column that is hidden": 1}


def test_what_a_filter_or_a_group_folds_away_is_read(tmp_path: Path) -> None:
    book, sheet = workbook(*STOCK)
    sheet.auto_filter.ref = "A1:C4"
    sheet.auto_filter.add_filter_column(0, ["Bolt", "Pin"])
    sheet.row_dimensions[3].hidden = True
    sheet.column_dimensions.group("B", hidden=True)
    document = load(tmp_path / "a.xlsx", saved(book))
    assert blocks(document)[1] == "Part: Nut | Key: b | Stock: 50"
    assert not document.dropped


def test_a_formula_without_a_value_is_read_as_it_is_and_counted(tmp_path: Path) -> None:
    book, _ = workbook(["Item", "Price"], ["Tea", 3], ["Milk", 2], ["Total", "=SUM(B2:B3)"])
    document = load(tmp_path / "a.xlsx", saved(book))
    assert blocks(document)[-1] == "Item: Total | Price: =SUM(B2:B3)"
    assert document.dropped == {"formula without a value": 1}


def test_dates_and_times_of_a_sheet(tmp_path: Path) -> None:
    moment = datetime(2026, 3, 1, 9, 30)
    book, sheet = workbook(["Ann", moment], ["Bob", moment.date()], ["Cy", time(9)], ["Di", 1.25])
    sheet["B4"].number_format = "[h]:mm"
    expected = ["Ann | 2026-03-01 09:30", "Bob | 2026-03-01", "Cy | 09:00", "Di | 30:00"]
    assert blocks(load(tmp_path / "a.xlsx", saved(book))) == expected


def test_exponents_in_rich_text(tmp_path: Path) -> None:
    book, sheet = workbook(["a"], ["b"])
    rich: Any = pytest.importorskip("openpyxl.cell.rich_text")
    raised, lowered = ({"vertAlign": place} for place in ("superscript", "subscript"))
    font: Any = pytest.importorskip("openpyxl.cell.text").InlineFont
    sheet["A1"] = rich.CellRichText("It holds 10", rich.TextBlock(font(**raised), "6"), " litres")
    sheet["A2"] = rich.CellRichText(rich.TextBlock(font(b=True), "H"), rich.TextBlock(font(**lowered), "2"), "O")
    assert blocks(load(tmp_path / "a.xlsx", saved(book))) == ["It holds 10⁶ litres", "H2O"]


# --- PowerPoint -------------------------------------------------------------------------------------------------


def test_exponents_on_slides(tmp_path: Path) -> None:
    pptx: Any = pytest.importorskip("pptx")
    show = pptx.Presentation()
    paragraph = show.slides.add_slide(show.slide_layouts[6]).shapes.add_textbox(0, 0, 9, 9).text_frame.paragraphs[0]
    for text, baseline in (
        ("It holds 10", ""),
        ("6", "30000"),
        (" litres of water", "0"),
        (" and 10", ""),
        ("n", "30%"),
    ):
        run = paragraph.add_run()
        run.text = text
        if baseline:
            run.font._element.set("baseline", baseline)
    assert blocks(load(tmp_path / "a.pptx", saved(show))) == ["It holds 10⁶ litres of water and 10^n"]


def test_exponents_in_word(tmp_path: Path) -> None:
    pytest.importorskip("mammoth")
    raised = '<w:r><w:rPr><w:vertAlign w:val="superscript"/></w:rPr><w:t>6</w:t></w:r>'
    body = f"<w:p>{run('It holds 10')}{raised}{run(' litres.')}</w:p>"
    assert blocks(load(tmp_path / "a.docx", word(body))) == ["It holds 10⁶ litres."]
