"""Small PDFs, written by hand."""

import io
from collections.abc import Sequence
from typing import NamedTuple

FONTS = {"F1": "Helvetica", "F2": "Courier", "F3": "Helvetica-Bold", "F4": "Helvetica"}
# What the characters of F4 stand for, as in the fonts of TeX, Symbol and Adobe: two bullets, an old-style 7, no text.
SIGNS = {"b": "0088", "s": "F0B7", "7": "F737", "0": "FFFE"}
# F5 is a font of pixels as TeX makes them: it has no name, and its characters have only codes.
PIXELS = "500 0 0 0 500 700 d1 0 0 500 700 re f"


class Print(NamedTuple):
    """A line of text on a page of 600 by 800 points."""

    text: str
    y: int
    x: int = 50
    size: int = 10
    font: str = "F1"
    turn: str = "1 0 0 1"  # the matrix of its letters


def make_pdf(
    pages: Sequence[Sequence[Print]], title: str = "", outline: Sequence[tuple[str, int]] = (), extra: str = ""
) -> bytes:
    """A file with these pages, bookmarks (title, page from 0) and `extra` in its trailer."""
    count = len(pages)
    first_mark = 4 + 2 * count
    signs = first_mark + (1 + len(outline) if outline else 0)
    fonts = "".join(
        f"/{key}<</Type/Font/Subtype/Type1/BaseFont/{name}{f'/ToUnicode {signs} 0 R' if key == 'F4' else ''}>>"
        for key, name in FONTS.items()
    )
    codes = [f"/a{code}" for code in range(128)]
    fonts += (
        "/F5<</Type/Font/Subtype/Type3/FontBBox[0 0 500 700]/FontMatrix[.001 0 0 .001 0 0]/FirstChar 0/LastChar 127"
        f"/Widths[{'500 ' * 128}]/Encoding<</Type/Encoding/Differences[0{''.join(codes)}]>>"
        f"/CharProcs<<{''.join(f'{code} {signs + 1} 0 R' for code in codes)}>>>>"
    )
    kids = " ".join(f"{4 + 2 * number} 0 R" for number in range(count))
    marks = f"/Outlines {first_mark} 0 R" if outline else ""
    bodies = [
        f"<</Type/Catalog/Pages 2 0 R{marks}>>",
        f"<</Type/Pages/Kids[{kids}]/Count {count}>>",
        f"<</Title({title})>>",
    ]
    for number, lines in enumerate(pages):
        stream = "\n".join(
            f"BT /{line.font} {line.size} Tf {line.turn} {line.x} {line.y} Tm ({_escaped(line.text)}) Tj ET"
            for line in lines
        )
        bodies.append(
            f"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Resources<</Font<<{fonts}>>>>"
            f"/Contents {5 + 2 * number} 0 R>>"
        )
        bodies.append(f"<</Length {len(stream)}>>stream\n{stream}\nendstream")
    if outline:
        last = first_mark + len(outline)
        bodies.append(f"<</Type/Outlines/First {first_mark + 1} 0 R/Last {last} 0 R/Count {len(outline)}>>")
        for at, (name, page) in enumerate(outline, first_mark + 1):
            before = f"/Prev {at - 1} 0 R" if at > first_mark + 1 else ""
            after = f"/Next {at + 1} 0 R" if at < last else ""
            bodies.append(
                f"<</Title({name})/Parent {first_mark} 0 R{before}{after}/Dest[{4 + 2 * page} 0 R/XYZ 0 790 0]>>"
            )
    stands_for = " ".join(f"<{ord(character):02x}> <{code}>" for character, code in SIGNS.items())
    cmap = (
        f"begincmap 1 begincodespacerange <00> <ff> endcodespacerange {len(SIGNS)} beginbfchar {stands_for} endbfchar"
    )
    bodies.append(f"<</Length {len(cmap)}>>stream\n{cmap}\nendstream")
    bodies.append(f"<</Length {len(PIXELS)}>>stream\n{PIXELS}\nendstream")
    return make_file(bodies, f"/Root 1 0 R/Info 3 0 R{extra}")


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)")


def make_file(bodies: Sequence[str], trailer: str) -> bytes:
    """A file of these objects, with these entries in its trailer."""
    file, offsets = io.BytesIO(b""), []
    file.write(b"%PDF-1.4\n")
    for number, body in enumerate(bodies, 1):
        offsets.append(file.tell())
        file.write(f"{number} 0 obj{body}endobj\n".encode("latin-1"))
    start = file.tell()
    file.write(f"xref\n0 {len(bodies) + 1}\n0000000000 65535 f \n".encode())
    file.write("".join(f"{offset:010d} 00000 n \n" for offset in offsets).encode())
    file.write(f"trailer<</Size {len(bodies) + 1}{trailer}>>\nstartxref\n{start}\n%%EOF".encode())
    return file.getvalue()


def paragraph(text: str, y: int, x: int = 50) -> list[Print]:
    """A paragraph in lines of about 80 characters, all but the last one of about the same width."""
    words, lines, line = text.split(), [], ""
    for word in words:
        if len(line) + len(word) > 80:
            lines.append(line)
            line = ""
        line = f"{line} {word}".strip()
    return [Print(part, y - 12 * number, x) for number, part in enumerate([*lines, line])]
