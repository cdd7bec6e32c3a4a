import os
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest

from rag.base.errors import FormatError
from rag.base.types import Passage
from rag.documents import Document, load_document
from rag.documents import navigation as nav
from rag.documents.converters import pdf_pages
from rag.documents.converters.pdf import pdf_blocks
from rag.documents.converters.pdf_pages import Line, Pages, read_pages
from rag.documents.converters.pdf_words import Words, once
from tests.rag.documents.pdfs import Print, make_file, make_pdf, paragraph

TEXT = "The Vistula is the longest river of Poland."
LONG = " ".join(f"Sentence {name} says that the river flows from the mountains to the sea." for name in "abcdefghij")


def load(tmp_path: Path, data: bytes) -> Document:
    path = tmp_path / "one.pdf"
    path.write_bytes(data)
    return load_document(path, "one.pdf")


def read(tmp_path: Path, pages: Sequence[Sequence[Print]], outline: Sequence[tuple[str, int]] = ()) -> list[Passage]:
    return load(tmp_path, make_pdf(pages, outline=outline)).passages


def test_a_passage_has_the_page_it_begins_on(tmp_path: Path) -> None:
    first, last = f"{LONG} {TEXT}", f"{LONG.replace('river', 'train')} The end."
    passages = read(tmp_path, [paragraph(first, 700), [], paragraph(last, 700)])
    assert [(p.id, p.title, p.section, p.page) for p in passages] == [
        ("one.pdf#1", "one", "", 1),
        ("one.pdf#2", "one", "", 3),
    ]
    assert [passage.text for passage in passages] == [first, last]


def test_lines_are_joined_to_paragraphs_also_across_pages(tmp_path: Path) -> None:
    first, second = paragraph(LONG, 700), paragraph(LONG.replace("river", "train"), 500)
    lines = [*first, *second[:-2]]
    rest = [line._replace(y=700 - 12 * number) for number, line in enumerate(second[-2:])]
    (one, two) = read(tmp_path, [lines, rest])
    assert f"{one.text}\n\n{two.text}" == f"{LONG}\n\n{LONG.replace('river', 'train')}"


def test_bookmarks_are_the_sections(tmp_path: Path) -> None:
    pages = [
        [Print("2. Rivers", 750, size=16), *paragraph(LONG, 700)],
        [*paragraph(LONG.replace("river", "lake"), 700)],
    ]
    rivers, lakes = read(tmp_path, pages, [("2. Rivers", 0), ("3. Lakes", 1)])
    assert (rivers.section, lakes.section) == ("Rivers", "Lakes")
    assert rivers.text == LONG


def test_only_the_number_before_a_bookmark_is_left_out(tmp_path: Path) -> None:
    marks = [("1 Names", 0), ("GNU and Linux", 1), ("A Licence", 2)]
    pages = [paragraph(LONG.replace("river", water), 700) for water in ("river", "lake", "sea")]
    assert [passage.section for passage in read(tmp_path, pages, marks)] == ["Names", "GNU and Linux", "Licence"]


def test_larger_print_is_a_heading_where_there_are_no_bookmarks(tmp_path: Path) -> None:
    pages = [[Print("All about water", 760, size=24), Print("1.1 Rivers", 720, size=14), *paragraph(LONG, 700)]]
    (passage,) = read(tmp_path, pages)
    assert (passage.title, passage.section) == ("All about water", "Rivers")


def test_code_keeps_its_lines_and_stays_with_its_sentence(tmp_path: Path) -> None:
    lines = [
        *paragraph(LONG, 700),
        Print("Run this:", 560),
        Print("for x in y:", 548, 70, 10, "F2"),
        Print("print(x)", 536, 94, 10, "F2"),
        Print("It prints.", 524),
    ]
    assert "Run this:\n\n    for x in y:\n        print(x)\n\nIt prints." in read(tmp_path, [lines])[-1].text


def test_signs_of_fonts_without_names_are_bullets_and_digits(tmp_path: Path) -> None:
    items = [
        Print("Bring these:", 560),
        Print("b", 540, font="F4"),
        Print("a map", 540, 60),
        Print("s", 520, font="F4"),
        Print("a rope of", 520, 60),
        Print("7", 520, 104, font="F4"),
        Print("metres", 520, 114),
    ]
    (*_, last) = read(tmp_path, [[*paragraph(LONG, 700), *items]])
    assert last.text.endswith("Bring these:\n\n- a map\n\n- a rope of 7 metres")


def test_codes_of_fonts_of_pixels_are_ligatures_quotes_and_dashes(tmp_path: Path) -> None:
    text = [
        "We de\x1cne the \x10in\x1duence\x11 of an o\x1bset, for those of 50\x1559 years too.",
        "\x1cve su\x1ece \x16 an older font has di\x0berent \x0cles and classi-",
        "\x1ccations.",
    ]
    title = Print("Roundo\x1b errors", 760, 50, 24, "F5")
    section = Print("Tradeo\x1b", 720, 50, 14, "F5")
    lines = [Print(line, 700 - 12 * number, 50, 10, "F5") for number, line in enumerate(text)]
    formula = Print("It is x \x1c y.", 640)  # a sign of another kind of font
    document = load(tmp_path, make_pdf([[title, section, *lines, formula]]))
    assert (document.title, document.passages[0].section) == ("Roundoff errors", "Tradeoff")
    assert document.passages[0].text.split("\n\n") == [
        "We define the “influence” of an offset, for those of 50–59 years too. "
        "five suffice — an older font has different files and classifications.",
        "It is x y.",
    ]


def test_lists_keep_their_items(tmp_path: Path) -> None:
    lines = [Print("There are:", 700), Print("* rivers", 688, 60), Print("* lakes", 676, 60), Print("1. seas", 664, 60)]
    (passage,) = read(tmp_path, [lines])
    assert passage.text == "There are:\n\n- rivers\n\n- lakes\n\n1. seas"


def test_words_between_rules_are_no_item_but_stand_above_what_follows(tmp_path: Path) -> None:
    lines = [Print("* ====== NEW TOOLS ======", 700), Print("* a plough", 676, 60), Print("* a spade", 664, 60)]
    (passage,) = read(tmp_path, [lines])
    assert passage.text == "NEW TOOLS\n\n- a plough\n\n- a spade"


def test_headers_footers_and_page_numbers_are_dropped_and_counted(tmp_path: Path) -> None:
    words = ["river", "train", "bus", "road", "wind", "cloud"]
    pages = [
        [
            Print(f"Chapter 2: Water {at}", 780),
            *paragraph(LONG.replace("river", f"{word}s") + word, 700),
            Print(str(at), 20),
        ]
        for at, word in enumerate(words, 1)
    ]
    document = load(tmp_path, make_pdf(pages))
    assert document.dropped[nav.MARGIN] == 12
    assert not any("Chapter" in passage.text for passage in document.passages)
    assert len(document.passages) == 6


def test_contents_and_indexes_are_dropped_and_counted(tmp_path: Path) -> None:
    contents = [
        Print(f"{number} Rivers of the land . . . . . . . . {number}", 700 - 12 * number) for number in range(20)
    ]
    index = [Print(f"river of the land, {number}, {number + 7}", 700 - 12 * number) for number in range(20)]
    contents.insert(0, Print("Contents", 720))
    document = load(tmp_path, make_pdf([contents, paragraph(LONG, 700), index]))
    assert document.dropped[nav.CONTENTS] == 41
    assert [passage.text for passage in document.passages] == [LONG]


def test_an_abstract_above_contents_is_kept_and_an_index_need_not_be_in_order(tmp_path: Path) -> None:
    listed = [Print(f"Rivers {place} . . . . . . . . {place}", 500 - 12 * place) for place in range(20)]
    first = [Print("This book is about water.", 700), Print("Contents", 600), *listed]
    second = [Print("The last river 31", 700), *paragraph(LONG, 600)]
    entries = [Print(f"river {place} . . . . . {900 - place},", 700 - 12 * place) for place in range(20)]
    pages = [[Print("Index", 720), *entries], [Print(f"lake {place}, {place}", 700 - 12 * place) for place in range(9)]]
    document = load(tmp_path, make_pdf([first, second, *pages]))
    assert "\n\n".join(passage.text for passage in document.passages).split("\n\n") == [
        "This book is about water.",
        LONG,
    ]
    assert document.dropped[nav.CONTENTS] == 52


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("{} .......... {}.60", "{}: {}.60"),
        ("{} . . . . . . . {}", "{}: {}"),
        ("{} until 4 May 20{}", None),
        ("{} {}", None),
    ],
)
@pytest.mark.parametrize("rising", [False, True])
def test_a_page_of_prices_or_dates_is_no_table_of_contents(
    tmp_path: Path, line: str, text: str | None, rising: bool
) -> None:
    things = ["Tea", "Coffee", "Soup", "Bread", "Juice", "Cocoa", "Pie", "Cake", "Toast"]
    filled = [(thing, 10 + 7 * number % 13) for number, thing in enumerate(things)]
    if rising:
        filled = [(thing, 10 + number) for number, thing in enumerate(sorted(things))]
    page = [Print(line.format(*one), 700 - 12 * number) for number, one in enumerate(filled)]
    said = " ".join(passage.text for passage in load(tmp_path, make_pdf([page])).passages)
    for one in filled:
        assert (text or line).format(*one) in said


def test_the_last_row_of_a_table_keeps_its_numbers(tmp_path: Path) -> None:
    cells = [("Hill", "10", "8"), ("Arlen", "10", "7"), ("Mill", "9", "5"), ("Fen", "9", "0")]
    (passage,) = load(tmp_path, make_pdf([rows(cells, 700)])).passages
    assert passage.text.endswith("Fen | 9 | 0")


def test_what_is_filled_in_stands_beside_its_label(tmp_path: Path) -> None:
    fields = "".join(
        f"<</Type/Annot/Subtype/Widget/FT/Tx/T(f{y})/V({value})/Rect[250 {y} 400 {y + 15}]>>"
        for value, y in (("Ann Lee", 697), ("30", 677))
    )
    data = make_pdf([[Print("Name", 700), Print("Fee in pounds", 680)]])

    data = data.replace(b"/MediaBox", f"/Annots[{fields}]/MediaBox".encode(), 1)
    data = data.replace(b"<</Type/Catalog", b"<</Type/Catalog/AcroForm<</Fields[]>>", 1)
    (passage,) = load(tmp_path, data).passages
    assert passage.text == "Name | Ann Lee\n\nFee in pounds | 30"


def test_two_fields_in_a_row_stand_beside_their_labels(tmp_path: Path) -> None:
    fields = "".join(
        f"<</Type/Annot/Subtype/Widget/FT/Tx/T(f{x})/V({value})/Rect[{x} 697 {x + 100} 712]>>"
        for value, x in (("Ann Lee", 100), ("3 May", 350))
    )
    data = make_pdf([[Print("Name", 700), Print("Date", 700, 300), *paragraph(LONG, 650)]])
    data = data.replace(b"/MediaBox", f"/Annots[{fields}]/MediaBox".encode(), 1)
    data = data.replace(b"<</Type/Catalog", b"<</Type/Catalog/AcroForm<</Fields[]>>", 1)
    (passage,) = load(tmp_path, data).passages
    assert passage.text.startswith("Name Ann Lee Date 3 May\n\n")


def rows(cells: Sequence[Sequence[str]], y: int, columns: Sequence[int] = (60, 200, 300)) -> list[Print]:
    return [
        Print(cell, y - 12 * number, x)
        for number, line in enumerate(cells)
        for cell, x in zip(line, columns, strict=False)
        if cell
    ]


def test_rows_of_numbers_name_their_columns(tmp_path: Path) -> None:
    table = rows([["Value", "Measured (pF)"], ["680", "664"], ["3000", "2900"]], 550)
    document = load(tmp_path, make_pdf([[*paragraph(LONG, 700), Print("We measured:", 562), *table]]))
    expected = "We measured:\n\nValue: 680 | Measured (pF): 664\n\nValue: 3000 | Measured (pF): 2900"
    assert document.passages[-1].text.endswith(expected)
    assert not document.dropped


def test_an_empty_corner_marks_names_of_columns_that_are_numbers(tmp_path: Path) -> None:
    table = rows(
        [["", "50-59", "60-69"], ["Mill", "25 (47)", "16 (30)"], ["Bakery", "44 (29)", "46 (29)"]], 550, (50, 200, 350)
    )
    (*_, last) = read(tmp_path, [[*paragraph(LONG, 700), Print("We counted:", 562), *table]])
    assert last.text.endswith("Mill | 50-59: 25 (47) | 60-69: 16 (30)\n\nBakery | 50-59: 44 (29) | 60-69: 46 (29)")
    words = [["", "mu", "double"], ["Mill", "wt", "vector"], ["Bakery", "rt", "vector"]]  # goes on from another page
    (*_, last) = read(tmp_path, [[*paragraph(LONG, 700), Print("We said:", 562), *rows(words, 550, (50, 200, 350))]])
    assert "mu | double\n\nMill | wt | vector" in last.text


def test_rows_without_a_header_keep_their_cells(tmp_path: Path) -> None:
    table = rows([["-f", "Does it anyway, as"], ["", "often as it takes."], ["-q", "Says nothing."]], 550)
    (*_, last) = read(tmp_path, [[*paragraph(LONG, 700), *table]])
    assert last.text.endswith("-f | Does it anyway, as often as it takes.\n\n-q | Says nothing.")


def test_a_row_of_numbers_stands_apart_from_the_text_below(tmp_path: Path) -> None:
    row = rows([["1", "1000", "147.3"]], 550)
    (*_, last) = read(tmp_path, [[*paragraph(LONG, 700), Print("The result:", 562), *row, Print("It fits.", 538)]])
    assert last.text.endswith("1 | 1000 | 147.3\n\nIt fits.")


@pytest.mark.parametrize(
    ("pieces", "text"),
    [
        (
            [("has a resolution of", 0, 50, 10), ("1", 4, 139, 7), ("4095", -4, 135, 7), (".", 0, 153, 10)],
            "resolution of 1/4095 .",
        ),
        (
            [("this is x", 0, 50, 10), ("2", 4, 90, 7), ("in all, and more.", 0, 97, 10)],
            "this is x 2 in all, and more.",
        ),
    ],
)
def test_the_pieces_of_a_formula_stay_in_their_sentence(
    tmp_path: Path, pieces: Sequence[tuple[str, int, int, int]], text: str
) -> None:
    formula = [Print(piece, 550 + up, x, size) for piece, up, x, size in pieces]
    (*_, last) = read(tmp_path, [[*paragraph(LONG, 700), *formula]])
    assert last.text.endswith(text)


def test_the_numbers_of_a_figure_are_dropped_and_counted(tmp_path: Path) -> None:
    labels = [Print(str(number), 300 + 40 * number, 70) for number in range(5)]
    axis = rows([["0", "10", "20"]], 280)
    document = load(tmp_path, make_pdf([[*paragraph(LONG, 700), *labels, *axis, Print("It ends here.", 200)]]))
    assert document.dropped[nav.SIGNS] == 6
    assert "\n\n".join(passage.text for passage in document.passages) == f"{LONG}\n\nIt ends here."


@pytest.mark.parametrize(("apart", "size"), [("Figure 5.2: A river.", 10), ("1 See the map.", 7)])
def test_captions_and_notes_do_not_interrupt_a_paragraph(tmp_path: Path, apart: str, size: int) -> None:
    lines = paragraph(LONG, 700)
    first, rest = lines[:4], lines[4:]
    pages = [[*first, Print(apart, 600, size=size)], [line._replace(y=line.y + 40) for line in rest]]
    passages = read(tmp_path, pages)
    assert "\n\n".join(passage.text for passage in passages) == f"{LONG}\n\n{apart}"


def test_a_sentence_may_begin_a_line_with_the_name_of_a_figure(tmp_path: Path) -> None:
    lines = [Print(f"{'The water of the lakes and of the rivers is shown in our ' * 2}map in", 700)]
    lines += [Print("Figure 2. The rivers flow to the sea.", 688)]
    (passage,) = read(tmp_path, [lines])
    assert "map in Figure 2. The rivers" in passage.text


def test_a_sign_without_a_code_leaves_the_other_lines_in_place(tmp_path: Path) -> None:
    data = make_pdf([[Print("0", 700, 50, font="F4"), Print("Rivers", 660, 70), Print("Lakes", 640, 70)]])
    (lines,) = read_pages(data, "one.pdf").lines
    assert [(line.text, line.left, line.y) for line in lines][-2:] == [("Rivers", 700, 6600), ("Lakes", 700, 6400)]


def test_lines_joined_by_a_hyphen_have_places_of_their_own(tmp_path: Path) -> None:
    (lines,) = read_pages(make_pdf([[Print("all the meas-", 700), Print("urements of it", 688)]]), "one.pdf").lines
    assert [line.y for line in lines] == [7000, 6880]


@pytest.mark.parametrize("seed", range(60))
def test_a_mangled_file_is_read_or_named(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    data = bytearray(make_pdf([[Print(TEXT, 700)]]))
    for _ in range(4):
        at = random.randrange(len(data))
        data[at : at + random.randrange(6)] = bytes(random.choices(b"0123456789/<>[]()RTj ", k=random.randrange(6)))
    try:
        load(tmp_path, bytes(data))
    except FormatError as error:
        assert str(error).startswith(f"{tmp_path / 'one.pdf'}: ")  # noqa: PT017  (either is right)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"%PDF-1.4 nonsense", "the PDF cannot be read"),
        (b"", "the PDF cannot be read"),
        (make_pdf([[], []]), "no text on its 2 pages: scanned pages need text recognition"),
        (
            make_pdf(
                [[Print(TEXT, 700)]],
                extra=f"/Encrypt<</Filter/Standard/V 1/R 2/O({'x' * 32})/U({'y' * 32})/P -4>>/ID[(a)(b)]",
            ),
            "the PDF is encrypted",
        ),
    ],
)
def test_what_cannot_be_read_is_said_plainly(tmp_path: Path, data: bytes, says: str) -> None:
    with pytest.raises(FormatError, match=rf"one\.pdf: {says}"):
        load(tmp_path, data)


def test_a_file_that_takes_too_long_is_left_and_the_next_one_read(tmp_path: Path) -> None:
    path = tmp_path / "endless.pdf"
    path.write_bytes(make_pdf([[Print(TEXT, 700)] for _ in range(20_000)]))
    start = time.monotonic()
    with pytest.raises(FormatError, match=r"endless\.pdf: the PDF takes longer than 0\.3 seconds"):
        read_pages(path.read_bytes(), "endless.pdf", 0.3)
    assert time.monotonic() - start < 10
    (passage,) = read(tmp_path, [[Print(TEXT, 700)]])
    assert passage.text == TEXT


def test_a_reader_that_crashed_is_started_again(tmp_path: Path) -> None:
    read(tmp_path, [[Print(TEXT, 700)]])
    running = pdf_pages.process._running
    assert running is not None
    os.kill(running.process.pid, 9)
    running.process.wait()
    (passage,) = read(tmp_path, [[Print(TEXT, 700)]])
    assert passage.text == TEXT


def test_a_page_tree_that_goes_round_ends(tmp_path: Path) -> None:
    data = make_pdf([[Print(TEXT, 700)]]).replace(b"/Kids[4 0 R]", b"/Kids[2 0 R]")
    with pytest.raises(FormatError):
        load(tmp_path, data)


@pytest.mark.parametrize(
    ("text", "joined"),
    [
        ("a sen\ufffe\ntence", "a sentence"),
        ("the -\ufffe\ntrack-origins=yes", "the --track-origins=yes"),
        ("use \ufffe\nv", "use -v"),
        ("in twenty\ufffe\ntwo", "in twenty-two"),
        ("an x\ufffe\naxis", "an x-axis"),
    ],
)
def test_a_hyphen_at_the_end_of_a_line_parts_a_word_or_begins_an_option(text: str, joined: str) -> None:
    assert Words([]).join(text) == joined


def test_columns_that_are_drawn_line_by_line_are_read_one_after_the_other(tmp_path: Path) -> None:
    left = [
        "The mill by the lower pond was",
        "built of stone that came from",
        "the old quarry, and it ground",
        "the corn of nine villages.",
    ]
    right = [
        "The baker came each morning to",
        "fetch his flour before the sun",
        "was up, as the road was empty",
        "and cool at such an hour.",
    ]
    for shift in (0, 6):
        pairs = zip(left, right, range(700, 600, -14), strict=False)
        lines = [line for a, b, y in pairs for line in (Print(a, y), Print(b, y - shift, 320))]
        (passage,) = read(tmp_path, [lines])
        assert passage.text == f"{' '.join(left)}\n\n{' '.join(right)}"


def test_values_of_pages_that_look_alike_are_no_headers(tmp_path: Path) -> None:
    pages = [
        [
            Print(f"Order {400 + at}", 740, size=16),
            Print(f"Weight: {3 * at} kg", 700),
            Print(f"Send it within {at + 4} days.", 660),
            Print(f"Mill Lane, page {at}", 40, size=8),
        ]
        for at in range(1, 7)
    ]
    text = " ".join(f"{passage.section} {passage.text}" for passage in load(tmp_path, make_pdf(pages)).passages)
    assert all(f"{3 * at} kg" in text and f"within {at + 4} days" in text for at in range(1, 7))
    assert "Mill Lane" not in text


def test_a_page_that_is_a_small_table_has_rows(tmp_path: Path) -> None:
    cells = [("Hill", "Rain", "Snow"), ("Arlen", "700", "12"), ("Fenton", "650", "9")]
    lines = [Print(cell, 700 - 14 * y, 60 + 120 * x) for y, row in enumerate(cells) for x, cell in enumerate(row)]
    (passage,) = read(tmp_path, [lines])
    assert passage.text == "Hill: Arlen | Rain: 700 | Snow: 12\n\nHill: Fenton | Rain: 650 | Snow: 9"


def test_a_turned_page_is_read_as_it_is_seen(tmp_path: Path) -> None:
    cells = [("Hill", "Rain", "Snow"), ("Arlen", "700", "12"), ("Fenton", "650", "9")]
    upright = [Print(cell, 700 - 14 * y, 60 + 120 * x) for y, row in enumerate(cells) for x, cell in enumerate(row)]
    turned = [line._replace(x=800 - line.y, y=line.x, turn="0 1 -1 0") for line in upright]
    assert [p.text for p in read(tmp_path, [turned])] == [p.text for p in read(tmp_path, [upright])]


def test_a_raised_number_is_an_exponent(tmp_path: Path) -> None:
    lines = [
        Print("The pond holds 10", 700),
        Print("6", 704, 131, 6),
        Print("litres and 250 fish.", 700, 140),
    ]
    (passage,) = read(tmp_path, [lines])
    assert passage.text == "The pond holds 10⁶ litres and 250 fish."


def test_a_watermark_is_dropped_and_counted(tmp_path: Path) -> None:
    document = load(tmp_path, make_pdf([[*paragraph(LONG, 700), Print("DRAFT", 300, 99, 60, "F1", ".7 .7 -.7 .7")]]))
    assert [passage.text for passage in document.passages] == [LONG]
    assert document.dropped[nav.SIGNS] == 1


def test_a_compound_keeps_its_last_hyphen(tmp_path: Path) -> None:
    (passage,) = read(
        tmp_path,
        [[Print("The mill has an out-of-the-", 700), Print("way yard of high effi-", 688), Print("ciency.", 676)]],
    )
    assert passage.text == "The mill has an out-of-the-way yard of high efficiency."


def unmapped(text: str, offset: int) -> bytes:
    """A page in a font that tells only the numbers of its glyphs, which are less than the letters."""
    codes = "".join(f"{ord(letter) - offset:04x}" for letter in text)
    stream = f"BT /F1 10 Tf 50 700 Td <{codes}> Tj ET"
    return make_file(
        [
            "<</Type/Catalog/Pages 2 0 R>>",
            "<</Type/Pages/Kids[3 0 R]/Count 1>>",
            "<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Resources<</Font<</F1 5 0 R>>>>/Contents 4 0 R>>",
            f"<</Length {len(stream)}>>stream\n{stream}\nendstream",
            "<</Type/Font/Subtype/Type0/BaseFont/A/Encoding/Identity-H/DescendantFonts[6 0 R]>>",
            "<</Type/Font/Subtype/CIDFontType2/BaseFont/A/CIDSystemInfo<</Registry(Adobe)/Ordering(Identity)"
            "/Supplement 0>>/FontDescriptor 7 0 R/DW 550/CIDToGIDMap/Identity>>",
            "<</Type/FontDescriptor/FontName/A/Flags 4/FontBBox[0 0 1000 1000]/ItalicAngle 0/Ascent 900/Descent -200"
            "/CapHeight 700/StemV 80>>",
        ],
        "/Root 1 0 R",
    )


def test_glyphs_of_ordinary_fonts_are_letters_and_others_are_named(tmp_path: Path) -> None:
    (passage,) = load(tmp_path, unmapped(TEXT, 29)).passages
    assert passage.text == TEXT
    with pytest.raises(FormatError, match="do not say which letters they draw"):
        load(tmp_path, unmapped(TEXT, 20))


@pytest.mark.parametrize(
    "title", ["View Survey", "Microsoft Word - plan.doc", "untitled", "Presentation1", "plan.pptx"]
)
def test_a_title_that_programs_write_is_none(tmp_path: Path, title: str) -> None:
    assert load(tmp_path, make_pdf([paragraph(LONG, 700)], title=title)).passages[0].title == "one"


def test_a_bookmark_that_holds_a_text_is_no_heading(tmp_path: Path) -> None:
    marks = [(LONG[:400], 0), ("Rivers", 0)]
    assert {passage.section for passage in read(tmp_path, [paragraph(LONG, 700)], marks)} == {"Rivers"}


def test_a_footer_with_its_number_is_dropped_also_where_the_text_of_a_slide_ends_beside_it(tmp_path: Path) -> None:
    slides = [
        [
            Print(f"Plan {number}", 700, size=24),
            *paragraph(f"The wheel number {number} turns. It has to be oiled in each month of the year.", 60 + number),
            Print(f"{number} (c) 2024 Mill Makers", 40),
        ]
        for number in range(1, 8)
    ]
    result = "\n\n".join(passage.text for passage in read(tmp_path, slides))
    assert "Mill Makers" not in result
    assert "The wheel number 5 turns." in result


def test_items_in_items_have_a_sign_of_their_own() -> None:
    texts = ["Mills:", "• Water", "○ River", "○ Lake", "• Wind"]
    lines = [Line(text, 500, 900, 7000 - 120 * number, 100, 0) for number, text in enumerate(texts)]
    _, blocks = pdf_blocks(Pages("", [], [lines]), Counter())
    assert [block.text for block in blocks] == ["Mills:", "- Water", "  - River", "  - Lake", "- Wind"]


def test_an_item_below_a_short_line_is_no_part_of_a_fraction() -> None:
    prose = [Line(TEXT * 2, 445, 4120, 9000 - 504 * number, 280, 0) for number in range(9)]
    texts = [("Art: https://mill.example/art", 8650), ("Mailing lists:", 5908), ("● mill@town.example", 7215)]
    short = [Line(text, 4821, right, 3100 - 315 * number, 175, 0) for number, (text, right) in enumerate(texts)]
    _, blocks = pdf_blocks(Pages("", [], [[*prose, *short]]), Counter())
    assert blocks[-1].text == "- mill@town.example"


def test_letters_that_are_printed_twice_are_read_once(tmp_path: Path) -> None:
    lines = [*paragraph("The mill turns. " * 20, 600), Print("HHeeaaddiinngg ooff aallll", 500)]
    (passage,) = read(tmp_path, [lines])
    assert passage.text.endswith("Heading of all")
    assert once("aa bb cc") == "aa bb cc"
    assert once("Aaron keeps all") == "Aaron keeps all"


def test_a_large_first_letter_belongs_to_its_word_and_one_alone_is_no_heading(tmp_path: Path) -> None:
    lines = [Print("T", 700, size=30), *paragraph("he mill turns all day. " * 12, 690, 75), Print("B", 400, size=30)]
    (passage,) = read(tmp_path, [[*lines, Print("Bread is made of flour.", 380)]])
    result = passage.text
    assert result.startswith("The mill turns")
    assert result.endswith("Bread is made of flour.")


def test_bookmarks_that_count_the_pages_are_no_headings(tmp_path: Path) -> None:
    pages = [[Print(f"Mill {number}", 700, size=20), *paragraph(LONG, 650)] for number in range(1, 5)]
    result = read(tmp_path, pages, [(f"Slide number {number}", number - 1) for number in range(1, 5)])
    assert {passage.section for passage in result} >= {"Mill 2", "Mill 3", "Mill 4"}
    chapters = read(tmp_path, pages, [("Chapter 1", 0), ("Chapter 2", 2), ("Chapter 3", 3)])
    assert {passage.section for passage in chapters} >= {"Chapter 2", "Chapter 3"}


def test_a_table_that_is_drawn_cell_by_cell_has_rows(tmp_path: Path) -> None:
    names = [
        Print("Name", 700, 50, font="F3"),
        Print("Definition", 700, 200, font="F3"),
        Print("Use", 700, 400, font="F3"),
    ]
    cells = {
        50: [(680, "Mill"), (668, "stone")],
        200: [(680, "A round stone that"), (668, "grinds the grain.")],
        400: [(680, "Bread is made"), (668, "of what it"), (656, "grinds.")],
    }
    lines = [Print(text, y, x) for x, texts in cells.items() for y, text in texts]
    lines += [Print(line.text.replace("stone", "wheel"), line.y - 60, line.x) for line in lines]
    (passage,) = read(tmp_path, [[*paragraph("The mill has parts.", 740), *names, *lines]])
    assert passage.text.split("\n\n")[1:] == [
        "Name: Mill stone | Definition: A round stone that grinds the grain. | Use: Bread is made of what it grinds.",
        "Name: Mill wheel | Definition: A round wheel that grinds the grain. | Use: Bread is made of what it grinds.",
    ]
