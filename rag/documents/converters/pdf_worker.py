"""Reads the lines of PDFs in a process of its own, as a broken file can hang or crash the library.

Standard input has a line of JSON with the number of `bytes`, then the bytes of a file, again and again. For each file
it writes JSON lines: the outline and the number of pages, then the lines of each page, or `"unmapped"` if its fonts do
not say which letters they draw, then `null`; or an object with `error`.
A line that wide gaps part, as in tables, ends with three numbers for each part: where it begins in the text, its left
and its right.

A request with a `page` (from 1) is for that page alone. It gets the number of pages and the size of the page in points,
then its lines and the boxes of their characters (left, top, right, bottom, as parts of a million of the page as it is
seen, from its upper left corner); with a `width` in pixels, a PNG in base64 instead, in which `boxes` are marked.

This file imports nothing of `rag`, so it starts fast.
"""

# ruff: noqa: ANN401  (the library has no types)

import base64
import ctypes
import gc
import json
import math
import re
import struct
import sys
import zlib
from collections import Counter
from collections.abc import Iterator
from statistics import median
from typing import Any, NamedTuple

_MEMORY = 2 << 30  # bytes of address space; a bomb of compressed streams ends the process, not the machine
_MAX_CHARACTERS = 64 << 20  # characters of a file
_FIXED_PITCH, _BOLD = 1, 1 << 18
_SLANTED = 4  # how a line looks that is neither level nor upright
_MONO = (
    "mono",
    "nimbusmon",
    "courier",
    "cmtt",
    "cmsltt",
    "cmitt",
    "cmtcsc",
    "typewriter",
    "consol",
    "lmtt",
    "lmtl",
    "fixed",
    "ectt",
    "sftt",
)
# What fonts give for the sign before an item: TeX's bullet, and those of Symbol and Wingdings.
_BULLETS = tuple("\x88\uf076\uf0a7\uf0a8\uf0b7\uf0d8\uf0fc")
# Signs of TeX's fonts of pixels, which have no names and tell only codes: those of T1, and the ligatures of OT1.
_CODES = {0x0B: "ﬀ", 0x0C: "ﬁ", 0x0E: "ﬃ", 0x0F: "ﬄ", 0x1B: "ﬀ", 0x1C: "ﬁ", 0x1D: "ﬂ", 0x1E: "ﬃ", 0x1F: "ﬄ"}
_CODES |= {0x10: "“", 0x11: "”", 0x12: "„", 0x13: "«", 0x14: "»", 0x15: "–", 0x16: "—"}
_CODE = re.compile(f"[{''.join(map(chr, _CODES))}]")
_HYPHEN_LIGATURE = re.compile("-(?<=[^\\W\\d_]-)(?=\r\n[ﬀ-ﬄ])")  # a hyphen that the library would mark before a letter
# Adobe's old-style digits and small capitals.
_GLYPHS = {chr(0xF730 + n): str(n) for n in range(10)} | {chr(0xF761 + n): chr(ord("A") + n) for n in range(26)}
_GLYPH = re.compile("[\uf730-\uf739\uf761-\uf77a]")

# A line without the spaces around it. Where a hyphen parts a word, the library writes `\ufffe` and no end of the line.
_LINE = re.compile("[^\\s\0\ufffe](?:[^\n\ufffe]*[^\\s\0\ufffe])?\ufffe?|\ufffe")
_WIDE = 0.56  # font sizes a character takes on the average, from where on a line may have gaps
_GUTTER = 4.0  # font sizes between the beginnings of the characters on both sides of a gutter
_GAP = 1.25  # font sizes between the beginnings of the characters on both sides of a gap
_WORD = re.compile(r"[^\W_]{3,}")
_SAMPLE = 20  # lines of a page that tell how wide letters are
_CHARACTERS = 50  # of a page that tell whether its fonts say which letters they draw
_GLYPH_OFFSET = 29  # from the number of a glyph in an ordinary TrueType font to its letter
_VOWELS = 0.22  # their share of the letters of a text
_SLANT = 0.2  # radians from where on a line is neither level nor upright, as a watermark
_RAISED = re.compile(r"(?<=\d) ?[-−–+]?\d{1,3}(?![\d/⁄])")  # what may be an exponent
_EXPONENT = str.maketrans("0123456789+-−–", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁻")

_FIELDS = 5000  # of a form, on a page
_encode = json.JSONEncoder(check_circular=False, separators=(",", ":")).encode
_PARTS = 1_000_000
_MAX_BOXES = 100_000  # characters of a page
_MAX_PIXELS, _MAX_SIDE = 4_000_000, 8_000  # of a picture
_TINTS = [bytes(value * tint // 255 for value in range(256)) for tint in (255, 241, 140)]  # yellow
_Box = tuple[int, int, int, int]
Row = tuple[str, int, int, int, int, int] | tuple[str, int, int, int, int, int, list[int]]


class _UnmappedError(Exception):
    """The fonts of a page do not say which letters they draw."""


class _Glyphs:
    """Where the characters of a page stand and how they look, by their places in its text.

    On a page whose text runs up, down or upside down, places are those of the page turned so that it runs level.
    """

    def __init__(self, raw: Any, page: Any, position: list[int] | None) -> None:
        self.raw, self.page = raw, page
        self.position = position  # of a character on the page, by its place in the text, which lacks those without code
        self.quarter = 0  # quarters of a turn from level, against the clock
        self._x, self._y, self._matrix = ctypes.c_double(), ctypes.c_double(), raw.FS_MATRIX()
        self._to_x, self._to_y, self._to_matrix = map(ctypes.byref, (self._x, self._y, self._matrix))

    def index(self, place: int) -> int:
        return place if self.position is None else self.position[min(place, len(self.position) - 1)]

    def origin(self, place: int) -> tuple[float, float]:
        """Points from the left and from the bottom."""
        self.raw.FPDFText_GetCharOrigin(self.page, self.index(place), self._to_x, self._to_y)
        return self.turn(self._x.value, self._y.value)

    def turn(self, x: float, y: float) -> tuple[float, float]:
        return ((x, y), (y, -x), (-x, -y), (-y, x))[self.quarter]

    def size(self, place: int) -> tuple[float, float]:
        """The font size in points as it is seen, and the direction of the text in radians."""
        index, matrix = self.index(place), self._matrix
        size = self.raw.FPDFText_GetFontSize(self.page, index)
        self.raw.FPDFText_GetMatrix(self.page, index, self._to_matrix)
        return size * (math.hypot(matrix.c, matrix.d) or 1), math.atan2(matrix.b, matrix.a)

    def look(self, place: int) -> int:
        return _look(self.raw, self.page, self.index(place))


class _Span(NamedTuple):
    """A line of a page: its first and last character, the size of its letters in points and their direction."""

    first: int
    last: int
    size: float
    angle: float


def main() -> None:
    """Read files until standard input ends."""
    gc.disable()  # there is little to collect, and looking for it takes time
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))
    except (ImportError, ValueError, OSError):
        pass  # not on this system
    while line := sys.stdin.buffer.readline():
        request = json.loads(line)
        data = sys.stdin.buffer.read(request["bytes"])
        try:
            if "page" in request:
                _show(data, request["page"], request.get("width"), request.get("boxes", []))
            else:
                _read(data)
        except Exception as error:  # noqa: BLE001  (whatever it is, the file cannot be read)
            _write({"error": str(error) or type(error).__name__})


def _write(row: object) -> None:
    sys.stdout.write(_encode(row))
    sys.stdout.write("\n")
    sys.stdout.flush()


def _read(data: bytes) -> None:
    import pypdfium2
    import pypdfium2.raw as raw

    for function in (
        raw.FPDFText_GetCharOrigin,
        raw.FPDFText_GetFontSize,
        raw.FPDFText_GetFontInfo,
        raw.FPDFText_GetMatrix,
    ):
        function.argtypes = None  # to check the types of pointers takes longer than the call
    document = pypdfium2.PdfDocument(data)
    try:
        if document.get_formtype():
            document.init_forms()
        count = len(document)
        title = document.get_metadata_value("Title")
        _write({"pages": count, "title": title, "outline": _outline(document)})
        total = 0
        for number in range(count):
            try:
                lines = _lines(document, number)
            except _UnmappedError:
                _write("unmapped")
                continue
            total += sum(len(line[0]) for line in lines)
            if total > _MAX_CHARACTERS:
                raise ValueError(f"more than {_MAX_CHARACTERS >> 20} million characters of text")
            _write(lines)
        _write(None)
    finally:
        document.close()


def _show(data: bytes, number: int, width: int | None, boxes: list[_Box]) -> None:
    """Write the size of a page, then its lines with the boxes of their characters or, with a width, its picture."""
    import pypdfium2
    import pypdfium2.raw as raw

    document = pypdfium2.PdfDocument(data)
    try:
        if document.get_formtype():
            document.init_forms()
        if not 1 <= number <= len(document):
            raise ValueError(f"there is no page {number}: it has {len(document)}")
        page = document[number - 1]
        points = page.get_size()
        _write({"pages": len(document), "width": points[0], "height": points[1]})
        if width is None:
            _write(_boxed_lines(raw, page))
        else:
            _write(base64.b64encode(_picture(page, width, boxes)).decode())
        _write(None)
    finally:
        document.close()


def _boxed_lines(raw: Any, page: Any) -> list[tuple[Row, list[_Box]]]:
    """The lines of a page, each with the boxes of its characters; those that are filled in last."""
    text_page = raw.FPDFText_LoadPage(page)
    if not text_page:
        raise ValueError("its text cannot be loaded")
    try:
        lines, glyphs, spans, text = _measure_lines(raw, text_page)
        rows: list[tuple[Row, list[_Box]]] = []
        count = 0
        for line, span in zip(lines, spans, strict=True):
            places = [place for place in range(span.first, span.last + 1) if _stays(text[place])]
            rows.append((line, [_box(raw, page, glyphs, place) for place in places]))
            count += len(places)
            if count > _MAX_BOXES:
                break
        form = page.formenv
        for value, corners in _fields(raw, page, form) if form is not None else ():
            rows.append(((value, 0, 0, 0, 100, 0), [_seen(raw, page, *corners)] * len(value)))
        return rows
    except _UnmappedError:
        return []
    finally:
        raw.FPDFText_ClosePage(text_page)


def _stays(character: str) -> bool:
    """Whether a character of the library's text is one of the line: of a pair of units, the second one is none."""
    return character != "\0" and not "\udc00" <= character <= "\udfff"


def _box(raw: Any, page: Any, glyphs: _Glyphs, place: int) -> _Box:
    left, right, bottom, top = (ctypes.c_double() for _ in range(4))
    corners = map(ctypes.byref, (left, right, bottom, top))
    raw.FPDFText_GetCharBox(glyphs.page, glyphs.index(place), *corners)
    return _seen(raw, page, left.value, bottom.value, right.value, top.value)


def _seen(raw: Any, page: Any, left: float, bottom: float, right: float, top: float) -> _Box:
    """The box of two corners as the page is seen, in parts of a million of its width and height."""
    x, y = ctypes.c_int(), ctypes.c_int()
    places = []
    for corner in ((left, bottom), (right, top)):
        raw.FPDF_PageToDevice(page, 0, 0, _PARTS, _PARTS, 0, *corner, ctypes.byref(x), ctypes.byref(y))
        places.append((min(max(x.value, 0), _PARTS), min(max(y.value, 0), _PARTS)))
    (first_x, first_y), (last_x, last_y) = places
    return min(first_x, last_x), min(first_y, last_y), max(first_x, last_x), max(first_y, last_y)


def _picture(page: Any, width: int, boxes: list[_Box]) -> bytes:
    """A page as a PNG of this width, or smaller if it would have too many pixels; what is white in a box is yellow."""
    page_width, page_height = page.get_size()
    scale = min(
        width / page_width, math.sqrt(_MAX_PIXELS / page_width / page_height), _MAX_SIDE / max(page_width, page_height)
    )
    bitmap = page.render(scale=scale, rev_byteorder=True)
    pixels, channels = bytearray(bitmap.buffer), bitmap.n_channels
    for left, top, right, bottom in boxes:
        for row in range(top * bitmap.height // _PARTS, bottom * bitmap.height // _PARTS):
            first, last = (row * bitmap.stride + place * bitmap.width // _PARTS * channels for place in (left, right))
            for channel, tint in enumerate(_TINTS if channels > 1 else ()):
                part = slice(first + channel, last, channels)
                pixels[part] = pixels[part].translate(tint)
    # Each row of a PNG begins with the number of its filter.
    length = bitmap.width * channels
    rows = b"".join(b"\0" + pixels[start : start + length] for start in range(0, len(pixels), bitmap.stride))
    header = struct.pack(">2I5B", bitmap.width, bitmap.height, 8, {1: 0, 3: 2, 4: 6}[channels], 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows, 6)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(*chunk) for chunk in chunks)


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def _outline(document: Any) -> list[tuple[int, str, int, float | None]]:
    """Level, title, page (from 0) and height on the page of each bookmark."""
    items: list[tuple[int, str, int, float | None]] = []
    try:
        for mark in document.get_toc(max_depth=8):
            position = mark.get_dest()
            page = position.get_index() if position is not None else None
            if page is None or len(items) >= 100_000:
                continue
            mode, view = position.get_view()
            heights = {1: 1, 3: 0, 7: 0}  # where the height stands in the views XYZ, FitH and FitBH
            height = view[heights[mode]] if mode in heights and len(view) > heights[mode] else None
            items.append((mark.level, mark.get_title(), page, height))
    except Exception:  # noqa: BLE001  (a broken outline leaves the text readable)
        return items
    return items


def _lines(document: Any, number: int) -> list[Row]:
    """The lines of a page: text; left, right, baseline and font size in tenths of a point; how the font looks."""
    import pypdfium2.raw as raw

    page = raw.FPDF_LoadPage(document, number)  # the library's objects for pages are made to be kept, which takes time
    if not page:  # it is missing or broken
        return []
    form = document.formenv
    if form is not None:
        raw.FORM_OnAfterLoadPage(page, form)
    try:
        text_page = raw.FPDFText_LoadPage(page)
        if not text_page:
            raise ValueError(f"the text of page {number + 1} cannot be loaded")
        try:
            lines, glyphs, *_ = _measure_lines(raw, text_page)
        finally:
            raw.FPDFText_ClosePage(text_page)
        return _fill_in(lines, _values(raw, page, form, glyphs)) if form is not None else lines
    finally:
        if form is not None:
            raw.FORM_OnBeforeClosePage(page, form)
        raw.FPDF_ClosePage(page)


def _values(raw: Any, page: Any, form: Any, glyphs: _Glyphs) -> list[Row]:
    """What is filled in on a page, as lines."""
    items: list[Row] = []
    for text, (begin, bottom, end, top) in _fields(raw, page, form):
        x, y = glyphs.turn(begin, bottom)
        other_x, other_y = glyphs.turn(end, top)
        left, right, low, high = (
            int(10 * place) for place in (min(x, other_x), max(x, other_x), min(y, other_y), max(y, other_y))
        )
        items.append((text, left, right, (low if high - low < 300 else high - 100) + 30, 100, 0))
    return items


def _fields(raw: Any, page: Any, form: Any) -> Iterator[tuple[str, tuple[float, float, float, float]]]:
    """What is filled in on a page, and the left, bottom, right and top of its field."""
    field_types = {raw.FPDF_FORMFIELD_TEXTFIELD, raw.FPDF_FORMFIELD_COMBOBOX, raw.FPDF_FORMFIELD_LISTBOX}
    for number in range(min(raw.FPDFPage_GetAnnotCount(page), _FIELDS)):
        field = raw.FPDFPage_GetAnnot(page, number)
        position = raw.FS_RECTF()
        if raw.FPDFAnnot_GetFormFieldType(form, field) in field_types and raw.FPDFAnnot_GetRect(field, position):
            size = raw.FPDFAnnot_GetFormFieldValue(form, field, None, 0)
            buffer = (ctypes.c_ushort * (size // 2 + 1))()
            raw.FPDFAnnot_GetFormFieldValue(form, field, buffer, size)
            text = " ".join(_clean_text(bytes(buffer).decode("utf-16-le", "replace")).split())
            if text:
                yield text, (position.left, position.bottom, position.right, position.top)
        raw.FPDFPage_CloseAnnot(field)


def _fill_in(rows: list[Row], values: list[Row]) -> list[Row]:
    """The lines of a form, where what is filled in stands in a cell beside the words to its left, or below others."""
    nonempty = list(rows)
    for value in values:
        text, left, right, y, size = value[:5]
        labels: list[tuple[int, int, int, list[int]]] = []  # its right, its row, the cells up to it, all cells
        for number, row in enumerate(nonempty):
            if abs(row[3] - y) > max(size, row[4]):
                continue
            cells = row[6] if len(row) > 6 else [0, row[1], row[2]]
            up_to = 3 * sum(begin < left for begin in cells[1::3])
            if up_to and cells[up_to - 1] <= left + size:
                labels.append((cells[up_to - 1], number, up_to, cells))
        if labels:
            end, neighbours, up_to, cells = max(labels)
            words, begin, last, height, letters, look = nonempty[neighbours][:6]
            position = cells[up_to] if up_to < len(cells) else len(words)
            before, after = words[:position].rstrip(), words[position:]
            new_cell = [len(before) + 1, max(left, end + 1), right]
            shift = len(before) + len(text) + 2 - position
            later = [index + (0 if n % 3 else shift) for n, index in enumerate(cells[up_to:])]
            text = f"{before} {text} {after}".rstrip()
            nonempty[neighbours] = (
                text,
                begin,
                max(last, right),
                height,
                letters,
                look,
                [*cells[:up_to], *new_cell, *later],
            )
        else:
            nonempty.insert(next((n for n, row in enumerate(nonempty) if row[3] < y), len(nonempty)), value)
    return nonempty


def _measure_lines(raw: Any, page: Any) -> tuple[list[Row], _Glyphs, list[_Span], str]:
    """The lines of a page, and where they stand in its text."""
    count = max(0, raw.FPDFText_CountChars(page))
    buffer = bytearray(2 * (count + 1))  # each length of a ctypes array is a type, which takes time to make
    length = raw.FPDFText_GetText(page, 0, count, ctypes.byref(ctypes.c_ushort.from_buffer(buffer))) - 1
    text = buffer[: 2 * max(0, length)].decode("utf-16-le", "surrogatepass")
    if len(text) != length:  # characters of two units each: keep the positions
        text = "".join(map(chr, memoryview(buffer).cast("H")[: max(0, length)]))
    position = None
    if length != count:
        index = raw.FPDFText_GetCharIndexFromTextIndex
        position = [index(page, offset) for offset in range(length)]
    if _is_unmapped(raw, page, count):
        text, position = _decode(raw, page, count), None
    glyphs = _Glyphs(raw, page, position)
    text = _HYPHEN_LIGATURE.sub("\ufffe", _CODE.sub(lambda code: _sign(raw, page, code, position), text))
    spans = [_span(glyphs, text, match.start(), match.end() - 1) for match in _LINE.finditer(text)]
    directions: Counter[int] = Counter()
    for span in spans:
        directions[round(span.angle / (math.pi / 2)) % 4] += span.last - span.first + 1
    glyphs.quarter = directions.most_common(1)[0][0] if directions else 0
    text = _RAISED.sub(lambda match: _raise(glyphs, match), text)
    spans = [part for span in spans for part in _split(glyphs, text, span)]
    lines = [_row(glyphs, text, span) for span in spans]
    _part(glyphs, text, lines, spans)
    return lines, glyphs, spans, text


def _is_unmapped(raw: Any, page: Any, count: int) -> bool:
    """Whether most fonts of a page do not say which letters they draw."""
    places = range(0, count, max(1, count // _CHARACTERS))
    return bool(2 * sum(raw.FPDFText_HasUnicodeMapError(page, place) == 1 for place in places) > len(places))


def _decode(raw: Any, page: Any, count: int) -> str:
    """The text of glyphs that are in the order of ASCII or of ordinary fonts; otherwise raise `_UnmappedError`."""
    codes = [raw.FPDFText_GetUnicode(page, place) for place in range(count)]
    is_glyph = [raw.FPDFText_HasUnicodeMapError(page, place) == 1 for place in range(count)]
    for offset in (0, _GLYPH_OFFSET):
        text = "".join(chr(code + offset * shifts) for code, shifts in zip(codes, is_glyph, strict=True))
        if sum(map(text.count, "aeiou")) >= _VOWELS * sum(map(str.isalnum, text)):
            return text
    raise _UnmappedError


def _span(glyphs: _Glyphs, text: str, first: int, last: int) -> _Span:
    middle = (first + last) // 2
    return _Span(first, last, *glyphs.size(first if text[middle].isspace() else middle))  # a space may have no font


def _row(glyphs: _Glyphs, text: str, span: _Span) -> Row:
    first, last, size, angle = span
    left, y = glyphs.origin(first)
    end, _ = glyphs.origin(last)
    look = glyphs.look(first)
    if look or not text[first].isalnum():  # most of a line counts
        middle_look, last_look = glyphs.look((first + last) // 2), glyphs.look(last)
        look = (look & middle_look) | (look & last_look) | (middle_look & last_look)
    if abs(math.remainder(angle, math.pi / 2)) > _SLANT:
        look |= _SLANTED
    right = end + 0.5 * size  # the width of a letter is about half its height
    return (
        _clean_text(text[first : last + 1]),
        int(10 * left),
        int(10 * right),
        int(10 * y),
        round(10 * size),
        look,
    )


def _split(glyphs: _Glyphs, text: str, span: _Span) -> Iterator[_Span]:
    """The lines in what the library takes for a line: it ends at another height if it has pieces from elsewhere."""
    first, last, size, _ = span
    if abs(glyphs.origin(last)[1] - glyphs.origin(first)[1]) > 0.3 * size:
        for space in re.finditer(" +", text[first:last]):
            before, after = span.first + space.start() - 1, span.first + space.end()
            (x, y), (x_after, y_after) = glyphs.origin(before), glyphs.origin(after)
            if x_after < x - size or (abs(y_after - y) > 0.3 * size and x_after - x > 3 * size):
                yield _span(glyphs, text, first, before)
                first = after
    yield span if first == span.first else _span(glyphs, text, first, last)


def _raise(glyphs: _Glyphs, match: re.Match[str]) -> str:
    """A number with what is raised at its end as an exponent."""
    base, last = match.start() - 1, match.end() - 1
    size, _ = glyphs.size(base)
    height = glyphs.origin(base)[1] + 0.15 * size

    def is_raised(place: int) -> bool:
        return glyphs.origin(place)[1] >= height and glyphs.size(place)[0] <= 0.9 * size

    following = match.string[match.end() : match.end() + 1]
    if not is_raised(last) or (following > " " and is_raised(last + 1)):  # or only a part of what is raised
        return match[0]
    start = last
    while start - 1 > base and match.string[start - 1] != " " and is_raised(start - 1):
        start -= 1
    ordinary = match[0][: start - base - 1]
    return ordinary.replace(" ", "\0") + match[0][start - base - 1 :].translate(_EXPONENT)


def _sign(raw: Any, page: Any, code: re.Match[str], position: list[int] | None) -> str:
    """The sign for a code of a font without a name; in other fonts such a code is part of a formula, or lost."""
    index = code.start() if position is None else position[code.start()]
    result = raw.FPDFText_GetFontInfo(page, index, _name, _size, _to_flags)
    return _CODES[ord(code[0])] if result and not _name.value else code[0]


def _clean_text(text: str) -> str:
    """A text without characters that have no code, each glyph and each pair of units as one character."""
    if not text.isascii():
        text = _GLYPH.sub(lambda glyph: _GLYPHS[glyph[0]], text)
        if text.startswith(_BULLETS):
            text = f"•{text[1:]}"
        try:
            text.encode()
        except UnicodeEncodeError:  # half a character
            text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text.replace("\0", "")


def _part(glyphs: _Glyphs, text: str, lines: list[Row], spans: list[_Span]) -> None:
    """Find the wide gaps in the lines of a page that are wide for their letters, and in those beside them."""
    widths = [(row[2] - row[1]) / len(row[0]) for row in lines]
    letter = _letter_width(glyphs, text, spans)
    usual = 2 * letter  # a font may be wide
    wide = [number for number, width in enumerate(widths) if width > _WIDE * max(usual, lines[number][4])]
    rather_wide = [number for number, width in enumerate(widths) if width > letter]
    visited: set[int] = set()
    for limit, numbers in ((_GAP, wide), (_GUTTER, rather_wide)):
        waiting = [number for number in numbers if number not in visited]
        visited.update(waiting)
        while waiting:
            number = waiting.pop()
            gap = limit * max(lines[number][4], usual)
            if cells := _cells(glyphs, text, lines[number], spans[number], gap):
                lines[number] = (lines[number][0], cells[1], *lines[number][2:6], cells)
                neighbours = [n for n in _beside(lines, number, gap / limit) if n not in visited]
                visited.update(neighbours)
                waiting += neighbours


def _cells(glyphs: _Glyphs, text: str, line: Row, span: _Span, gap: float) -> list[int]:
    """The parts of a line between gaps of some tenths of a point; nothing if it has no such gap."""
    clean, left, right, _, size, look = line[:6]
    first, last = span.first, span.last
    cells: list[int] = []
    begin = 0
    space = text.find(" ", first, last)
    while space > first and not look & (_FIXED_PITCH | _SLANTED):
        before, after = glyphs.origin(space - 1)[0], glyphs.origin(space + 1)[0]
        if 10 * (after - before) > gap:
            cells += (begin, left, int(10 * before + 0.5 * size))
            begin, left = space + 1 - first, int(10 * after)
        space = text.find(" ", space + 1, last)
    if cells:
        cells += (begin, left, right)
        if last + 1 - first != len(clean):
            cells[::3] = [len(_clean_text(text[first : first + begin])) for begin in cells[::3]]
    return cells


def _letter_width(glyphs: _Glyphs, text: str, spans: list[_Span]) -> float:
    """Tenths of a point that a letter of a word takes on a page."""
    widths: list[float] = []
    for span in spans[:: max(1, len(spans) // _SAMPLE)]:
        if word := _WORD.search(text, span.first, span.last + 1):
            width = glyphs.origin(word.end() - 1)[0] - glyphs.origin(word.start())[0]
            widths.append(10 * width / (word.end() - word.start() - 1))
    return median(widths) if widths else 0


def _beside(lines: list[Row], number: int, size: float) -> Iterator[int]:
    """The two lines before a line and the two after it, up to one that is far from it."""
    for step in (-1, 1):
        for neighbours in (number + step, number + 2 * step):
            if (
                not 0 <= neighbours < len(lines)
                or abs(lines[neighbours][3] - lines[number][3]) > 2.5 * abs(neighbours - number) * size
            ):
                break
            yield neighbours


_looks: dict[bytes, int] = {}  # by the name of a font
_name, _size, _flags = ctypes.create_string_buffer(64), ctypes.c_ulong(64), ctypes.c_int()
_to_flags = ctypes.byref(_flags)


def _look(raw: Any, page: Any, index: int) -> int:
    """1 for a character of fixed pitch, plus 2 for a bold one."""
    raw.FPDFText_GetFontInfo(page, index, _name, _size, _to_flags)
    font = _name.value
    if (look := _looks.get(font)) is None:
        name = font.decode("latin-1").lower()
        mono = bool(_flags.value & _FIXED_PITCH) or any(part in name for part in _MONO)
        bold = bool(_flags.value & _BOLD) or "bold" in name or name.endswith(("bx10", "bx12", "-bd"))
        look = _looks[font] = mono + 2 * bold
    return look


if __name__ == "__main__":
    main()
