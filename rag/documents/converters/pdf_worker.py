"""Reads the lines of PDFs in a process of its own, as a broken file can hang or crash the library.

Standard input has a line with the number of bytes, then the bytes of a file, again and again. For each file it writes
JSON lines: the outline and the number of pages, then the lines of each page, then `null`; or an object with `error`.
A line that wide gaps part, as in tables, ends with three numbers for each part: where it begins in the text, its left
and its right. This file imports nothing of `rag`, so it starts fast.
"""

# ruff: noqa: ANN401  (the library has no types)

import ctypes
import gc
import json
import re
import sys
from collections.abc import Iterator
from typing import Any

_MEMORY = 2 << 30  # bytes of address space; a bomb of compressed streams ends the process, not the machine
_MAX_CHARACTERS = 64 << 20  # characters of a file
_FIXED_PITCH, _BOLD = 1, 1 << 18
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
_GAP = 1.25  # font sizes between the beginnings of the characters on both sides of a gap

_FIELDS = 5000  # of a form, on a page
_encode = json.JSONEncoder(check_circular=False, separators=(",", ":")).encode
Row = tuple[str, int, int, int, int, int] | tuple[str, int, int, int, int, int, list[int]]


def main() -> None:
    """Read files until standard input ends."""
    gc.disable()  # there is little to collect, and looking for it takes time
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))
    except (ImportError, ValueError, OSError):
        pass  # not on this system
    while line := sys.stdin.buffer.readline():
        data = sys.stdin.buffer.read(int(line))
        try:
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

    for function in (raw.FPDFText_GetCharOrigin, raw.FPDFText_GetFontSize, raw.FPDFText_GetFontInfo):
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
            lines = _lines(document, number)
            total += sum(len(line[0]) for line in lines)
            if total > _MAX_CHARACTERS:
                raise ValueError(f"more than {_MAX_CHARACTERS >> 20} million characters of text")
            _write(lines)
        _write(None)
    finally:
        document.close()


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
            lines = _measure_lines(raw, text_page)
        finally:
            raw.FPDFText_ClosePage(text_page)
        return _fill_in(lines, _values(raw, page, form)) if form is not None else lines
    finally:
        if form is not None:
            raw.FORM_OnBeforeClosePage(page, form)
        raw.FPDF_ClosePage(page)


def _values(raw: Any, page: Any, form: Any) -> list[Row]:
    """What is filled in on a page, as lines."""
    items: list[Row] = []
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
                left, right, top = int(10 * position.left), int(10 * position.right), int(10 * position.top)
                y = int(10 * position.bottom) if top - 10 * position.bottom < 300 else top - 100
                items.append((text, left, right, y + 30, 100, 0))
        raw.FPDFPage_CloseAnnot(field)
    return items


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


def _measure_lines(raw: Any, page: Any) -> list[Row]:
    count = raw.FPDFText_CountChars(page)
    if count <= 0:
        return []
    buffer = bytearray(2 * (count + 1))  # each length of a ctypes array is a type, which takes time to make
    length = raw.FPDFText_GetText(page, 0, count, ctypes.byref(ctypes.c_ushort.from_buffer(buffer))) - 1
    text = buffer[: 2 * length].decode("utf-16-le", "surrogatepass")
    if len(text) != length:  # characters of two units each: keep the positions
        text = "".join(map(chr, memoryview(buffer).cast("H")[:length]))
    position = None  # of a character on the page, by its place in the text, which lacks those without a code
    if length != count:
        index = raw.FPDFText_GetCharIndexFromTextIndex
        position = [index(page, offset) for offset in range(length)]
    text = _HYPHEN_LIGATURE.sub("\ufffe", _CODE.sub(lambda code: _sign(raw, page, code, position), text))
    x, y, end_x = ctypes.c_double(), ctypes.c_double(), ctypes.c_double()
    to_x, to_y, to_end, nowhere = map(ctypes.byref, (x, y, end_x, ctypes.c_double()))
    origin, font_size = raw.FPDFText_GetCharOrigin, raw.FPDFText_GetFontSize
    lines: list[Row] = []
    starts: list[re.Match[str]] = []
    for match in _LINE.finditer(text):
        clean, first, last = _clean_text(match[0]), match.start(), match.end() - 1
        middle = (first + last) // 2
        if text[middle].isspace():  # a space that is not in the file has no font
            middle = first
        alphanumeric = text[first].isalnum()
        starts.append(match)
        if position is not None:
            first, middle, last = position[first], position[middle], position[last]
        origin(page, first, to_x, to_y)
        origin(page, last, to_end, nowhere)
        size = font_size(page, middle)
        look = _look(raw, page, first)
        if look or not alphanumeric:  # most of a line counts
            two, three = _look(raw, page, middle), _look(raw, page, last)
            look = (look & two) | (look & three) | (two & three)
        right = end_x.value + 0.5 * size  # the width of a letter is about half its height
        lines.append((clean, int(10 * x.value), int(10 * right), int(10 * y.value), int(10 * size), look))
    _part(raw, page, lines, starts, position)
    return lines


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


def _part(raw: Any, page: Any, lines: list[Row], starts: list[re.Match[str]], position: list[int] | None) -> None:
    """Find the wide gaps in the lines of a page that are wide for their letters, and in those beside them."""
    widths = [(row[2] - row[1]) / len(row[0]) for row in lines]
    if not widths:
        return
    usual = 2 * sorted(widths)[len(widths) // 4]  # where the font size is not what is seen, as the page is scaled
    x, x_after = ctypes.c_double(), ctypes.c_double()
    index, at_after, nowhere = ctypes.byref(x), ctypes.byref(x_after), ctypes.byref(ctypes.c_double())
    origin = raw.FPDFText_GetCharOrigin
    limit = _WIDE * usual
    waiting = [n for n, width in enumerate(widths) if width > limit and width > _WIDE * lines[n][4]]
    visited = set(waiting)
    while waiting:
        number = waiting.pop()
        text, left, right, y, size, look = lines[number][:6]
        cells: list[int] = []
        if look & _FIXED_PITCH:
            continue
        gap = _GAP * max(size, usual)
        begin = 0
        written, start = starts[number][0], starts[number].start()  # as it stands in the file
        space = written.find(" ")
        while space > 0:
            before, after = start + space - 1, start + space + 1
            if position is not None:
                before, after = position[before], position[min(after, len(position) - 1)]
            origin(page, before, index, nowhere)
            origin(page, after, at_after, nowhere)
            if 10 * (x_after.value - x.value) > gap:
                cells += (begin, left, int(10 * x.value + 0.5 * size))
                begin, left = space + 1, int(10 * x_after.value)
            space = written.find(" ", space + 1)
        if cells:
            cells += (begin, left, right)
            if len(written) != len(text):
                cells[::3] = [len(_clean_text(written[:begin])) for begin in cells[::3]]
            lines[number] = (text, cells[1], right, y, size, look, cells)
            neighbours = [
                neighbour for neighbour in _beside(lines, number, max(size, usual)) if neighbour not in visited
            ]
            visited.update(neighbours)
            waiting += neighbours


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
