"""Boxes around the words of passages, on PDFs of many layouts."""

import re
import struct
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pypdfium2
import pytest

from autoais.base.text.sentences import sentence_spans
from rag.base.errors import BusyError, FormatError
from rag.base.types import Passage
from rag.documents import load_document
from rag.documents.converters import pdf_view
from rag.documents.converters.pdf_view import PARTS, PageView, draw_page, view_page
from rag.documents.locate import locate, words_of
from tests.rag.documents.pdfs import Print, make_pdf

NOUNS = "river mountain baker bridge harbour engineer official affluent waffle ferry coffee station valley".split()
VERBS = "crosses describes follows affects offers refines connects explains".split()
CODES = {"\x1f": "ffl", "\x1b": "ff", "\x1c": "fi"}  # of fonts of pixels
WIDE = 78  # characters of a line of print


def sentences(seed: int, count: int) -> list[str]:
    """Sentences of which many have words in common."""
    random = Random(seed)

    def thing() -> str:
        return f"the {random.choice(['old', 'well-known', 'state-of-the-art', 'long'])} {random.choice(NOUNS)}"

    return [
        f"{thing().capitalize()} {random.choice(VERBS)} {thing()} of {random.randint(1000, 2000)} and {thing()}."
        for _ in range(count)
    ]


def lines_of(text: str, width: int = WIDE, *, hyphens: bool = False) -> list[str]:
    """Lines of about the same width; with `hyphens`, words are parted at their ends."""
    lines, line = list[str](), ""
    for word in text.split():
        room = width - len(line) - 2
        if len(line) + len(word) < width:
            line = f"{line} {word}".strip()
        elif hyphens and word.isalpha() and 2 < room < len(word) - 2:
            lines.append(f"{line} {word[:room]}-")
            line = word[room:]
        else:
            lines.append(line)
            line = word
    return [*lines, line]


def printed(lines: list[str], y: int = 740, x: int = 50, step: int = 12, font: str = "F1") -> list[Print]:
    return [Print(line, y - step * number, x, font=font) for number, line in enumerate(lines)]


def plain() -> list[list[Print]]:
    return [printed(lines_of(" ".join(sentences(page, 20)))) for page in range(2)]


def hyphenated() -> list[list[Print]]:
    return [printed(lines_of(" ".join(sentences(page, 20)), 50, hyphens=True)) for page in range(2)]


def columns() -> list[list[Print]]:
    pages = []
    for page in range(2):
        lines = lines_of(" ".join(sentences(page, 40)), 42, hyphens=True)
        half = len(lines) // 2
        pages.append([*printed(lines[:half]), *printed(lines[half:], x=320)])
    return pages


def columns_in_turns() -> list[list[Print]]:
    """Two columns whose lines are drawn from the top to the bottom, left and right in turns."""
    return [sorted(page, key=lambda line: (-line.y, line.x)) for page in columns()]


def table() -> list[list[Print]]:
    random = Random(4)
    rows = [
        ("Harbour", "Ships", "Year"),
        *((f"{noun.title()} town", random.randint(10, 99), 1900 + n) for n, noun in enumerate(NOUNS)),
    ]
    cells = [
        Print(str(cell), 600 - 14 * number, x, font="F1" if number else "F3")
        for number, row in enumerate(rows)
        for cell, x in zip(row, (60, 220, 340), strict=True)
    ]
    return [[*printed(lines_of(" ".join(sentences(1, 8)))), *cells, *printed(lines_of(" ".join(sentences(2, 8))), 380)]]


def ligatures() -> list[list[Print]]:
    text = " ".join(sentences(3, 16))
    for code, ligature in CODES.items():
        text = text.replace(ligature, code)
    return [printed(lines_of(text), font="F5")]


def repeated() -> list[list[Print]]:
    text = " ".join(f"{sentence} The ferry crosses the river twice a day." for sentence in sentences(5, 16))
    return [printed(lines_of(text))]


def notes() -> list[list[Print]]:
    """A note at the foot of a page, in the middle of a sentence that goes on on the next page."""
    lines = lines_of(" ".join(sentences(6, 60)))
    note = [Print("1 The note says that the ferry does not cross the river in winter at all.", 60, size=7)]
    return [[*printed(lines[:50]), *note], printed(lines[50:])]


LAYOUTS = {
    layout.__name__: layout
    for layout in (plain, hyphenated, columns, columns_in_turns, table, ligatures, repeated, notes)
}


def read(tmp_path: Path, data: bytes) -> list[Passage]:
    path = tmp_path / "one.pdf"
    path.write_bytes(data)
    return load_document(path, "one.pdf").passages


def letters(text: str) -> Counter[str]:
    return Counter("".join(word.letters for word in words_of(text)))


def cited(passage: Passage) -> Iterator[tuple[int, int]]:
    """The sentences of a passage, and the rows of its tables."""
    yield from (span for span in sentence_spans(passage.text) if len(passage.text[slice(*span)]) > 10)


def text_in(page: pypdfium2.PdfTextPage, box: tuple[int, int, int, int]) -> str:
    """What the library finds within a box, which is another way than by the places of characters."""
    width, height = page.page.get_size()
    left, top, right, bottom = (part / PARTS for part in box)
    corners = (left * width, height - bottom * height, right * width, height - top * height)
    return "".join(CODES.get(character, character) for character in page.get_text_bounded(*corners))


def spans_boxed_right(passages: list[Passage], data: bytes) -> list[bool]:
    """For each sentence or row, whether its boxes hold its words and no others; a row's are its cells."""
    texts = [page.get_textpage() for page in pypdfium2.PdfDocument(data)]
    views = [view_page(data, number, "one.pdf") for number in range(1, len(texts) + 1)]
    results = []
    for passage in passages:
        assert passage.page is not None
        for start, end in cited(passage):
            pages = views[passage.page - 1 : passage.page + 1]
            location = locate(passage.text, [(start, end)], pages)
            letters_inside = Counter[str]()
            for page, boxes in location.boxes.items():
                for box in boxes:
                    letters_inside += letters(text_in(texts[pages[page].number - 1], box))
            text = passage.text[start:end]
            results.append(letters_inside == letters(re.sub(r"[^|:]+: ", "", text) if " | " in text else text))
    return results


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_the_boxes_hold_the_words_that_are_cited_and_no_others(
    layout: Callable[[], list[list[Print]]], tmp_path: Path
) -> None:
    data = make_pdf(layout())
    results = spans_boxed_right(read(tmp_path, data), data)
    assert len(results) > 8
    assert sum(results) >= 0.97 * len(results), f"{sum(results)} of {len(results)}"


def test_of_equal_sentences_each_has_its_own_boxes(tmp_path: Path) -> None:
    data = make_pdf(repeated())
    page = view_page(data, 1, "one.pdf")
    places = [
        (boxes[0][1], boxes[0][0])
        for passage in read(tmp_path, data)
        for span in cited(passage)
        for boxes in locate(passage.text, [span], [page]).boxes.values()
    ]
    assert len(places) == 32
    assert all(before[0] <= after[0] + 5_000 for before, after in pairwise(places))  # from the top down
    assert len({*places}) == 32


LINES = ["The old ferry crosses the river.", "A new bridge follows the harbour.", "The baker offers long waffles."]
TURNED = "/CropBox[30 500 570 790]/Rotate 90"


@pytest.mark.parametrize("entries", ["", "/CropBox[30 500 570 790]", "/Rotate 180", TURNED])
def test_boxes_are_where_the_page_shows_the_words(entries: str) -> None:
    """All ink of the words is inside of the boxes, and no other ink."""

    def pixels(lines: list[str]) -> Any:  # noqa: ANN401  (numpy's)
        page = pypdfium2.PdfDocument(pdf(lines))[0]
        return np.asarray(page.render(scale=2).to_numpy()).min(axis=2) < 128

    def pdf(lines: list[str]) -> bytes:
        data = make_pdf([printed([line if line in lines else "" for line in LINES], step=20)])
        return data.replace(b"/MediaBox[0 0 600 800]", b"/MediaBox[0 0 600 800]" + entries.encode())

    text, line = " ".join(LINES), LINES[1]
    start = text.index(line)
    location = locate(text, [(start, start + len(line))], [view_page(pdf(LINES), 1, "one.pdf")])
    assert location.is_whole
    is_ink, is_other = pixels([line]), pixels([LINES[0], LINES[2]])
    height, width = is_ink.shape
    is_inside = np.zeros_like(is_ink)
    for left, top, right, bottom in location.boxes[0]:
        is_inside[
            top * height // PARTS : bottom * height // PARTS + 1, left * width // PARTS : right * width // PARTS + 1
        ] = True
    assert is_ink.any()
    assert not (is_ink & ~is_inside).any()
    assert not (is_other & is_inside).any()
    assert is_inside.mean() < 0.1


def test_words_that_are_not_on_the_page_have_no_boxes() -> None:
    page = view_page(make_pdf([printed(LINES)]), 1, "one.pdf")
    missing = "Nobody knows what became of an engineer called Brandt."
    text = f"{LINES[0]} {missing}"
    location = locate(text, [(len(LINES[0]) + 1, len(text))], [page])
    assert location.boxes == {}
    assert not location.is_whole
    part = locate(text, [(0, len(LINES[0]) + 14)], [page])
    assert len(part.boxes[0]) == 1
    assert not part.is_whole
    assert locate(text, [(0, 20)], [PageView(1, 1, 600, 800, [])]).boxes == {}
    assert locate("", [(0, 20)], [page]).boxes == {}


def test_accents_and_scripts_without_spaces_are_compared_by_letter() -> None:
    assert [
        word.letters for word in words_of("Zu\u0308rich’s M¨ uller, co\u00adop- state-of-the-art ﬁve x² 橋は赤い")
    ] == [
        *("zurichs", "muller", "coop", "stateoftheart", "five", "x2"),
        *"橋は赤い",
    ]


def test_a_page_of_equal_words_takes_no_long_time() -> None:
    line = pdf_view.PlacedLine("the " * 20_000, [(0, 0, 10, 10)] * 80_000)
    start = time.monotonic()
    locate("the " * 3_000, [(0, 12_000)], [PageView(1, 1, 600, 800, [line])])
    assert time.monotonic() - start < 5


def size_of(picture: bytes) -> tuple[int, int]:
    assert picture.startswith(b"\x89PNG")
    return struct.unpack(">2I", picture[16:24])


def test_a_picture_has_the_width_that_is_asked_for_within_limits() -> None:
    data = make_pdf([printed(LINES)])
    picture = draw_page(data, 1, 900, "one.pdf")
    assert size_of(picture) == (900, 1200)
    rows = np.frombuffer(zlib.decompress(picture[picture.index(b"IDAT") + 4 : -16]), np.uint8).reshape(1200, 2701)
    page = pypdfium2.PdfDocument(data)[0].render(scale=1.5, rev_byteorder=True).to_numpy()
    assert (rows[:, 1:].reshape(1200, 900, 3) == page).all()
    for box in (b"[0 0 9999 20]", b"[0 0 20 9999]", b"[0 0 14000 14000]"):
        width, height = size_of(draw_page(data.replace(b"[0 0 600 800]", box), 1, 9_000, "one.pdf"))
        assert width * height <= 4_010_000
        assert max(width, height) <= 8_000


def test_a_page_that_takes_too_long_or_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    data = make_pdf([printed(LINES)])
    with pytest.raises(FormatError, match=r"one\.pdf: the PDF cannot be read: there is no page 2: it has 1"):
        draw_page(data, 2, 900, "one.pdf")
    slow = make_pdf([[Print("The end.", 700)] * 400_000])
    monkeypatch.setattr(pdf_view, "SECONDS", 0.2)
    with pytest.raises(FormatError, match=r"one\.pdf: the PDF takes longer than 0\.2 seconds"):
        view_page(slow, 1, "one.pdf")
    monkeypatch.undo()
    assert view_page(data, 1, "one.pdf").lines[0].text == LINES[0]


def test_who_waits_too_long_for_other_pages_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pdf_view, "PATIENCE", 0.05)
    with pdf_view.process.turn(), ThreadPoolExecutor(1) as pool, pytest.raises(BusyError, match="too many PDFs"):
        pool.submit(view_page, make_pdf([printed(LINES)]), 1, "one.pdf").result()


def test_boxes_are_marked_in_a_picture_and_nothing_else_changes() -> None:
    data, box = make_pdf([printed(LINES)]), (100_000, 60_000, 400_000, 80_000)
    plain, marked = (
        np.frombuffer(zlib.decompress(picture[picture.index(b"IDAT") + 4 : -16]), np.uint8).reshape(800, 1801)[:, 1:]
        for picture in (draw_page(data, 1, 600, "one.pdf"), draw_page(data, 1, 600, "one.pdf", [box]))
    )
    before, after = plain.reshape(800, 600, 3), marked.reshape(800, 600, 3)
    is_other = np.ones((800, 600), bool)
    is_other[48:64, 60:240] = False
    assert (before[is_other] == after[is_other]).all()
    assert (after[48:64, 60:240].reshape(-1, 3).max(axis=0) == (255, 241, 140)).all()
    assert (after[48:64, 60:240] <= before[48:64, 60:240]).all()


def test_what_is_filled_in_a_form_has_the_box_of_its_field(tmp_path: Path) -> None:
    fields = "".join(
        f"<</Type/Annot/Subtype/Widget/FT/Tx/T(f{y})/V({value})/Rect[180 {y - 3} 280 {y + 12}]>>"
        for value, y in (("Ann Lee", 700), ("30", 680))
    )
    data = make_pdf([[Print("Name", 700), Print("Fee in pounds", 680)]])
    data = data.replace(b"/MediaBox", f"/Annots[{fields}]/MediaBox".encode(), 1)
    data = data.replace(b"<</Type/Catalog", b"<</Type/Catalog/AcroForm<</Fields[]>>", 1)
    (passage,) = read(tmp_path, data)
    start = passage.text.index("Ann Lee")
    location = locate(passage.text, [(start, start + 7)], [view_page(data, 1, "one.pdf")])
    ((left, top, right, bottom),) = location.boxes[0]
    assert location.is_whole
    assert (left * 600 / PARTS, right * 600 / PARTS) == pytest.approx((180, 280), abs=20)
    assert (top * 800 / PARTS, bottom * 800 / PARTS) == pytest.approx((800 - 712, 800 - 697), abs=20)
