"""Reading of records with their line numbers, from JSON lines, a JSON document or CSV, plain or compressed.

A broken record is yielded as a `FormatError` in its place, so that a validator can continue.
"""

import codecs
import csv
import gzip
import io
import json
import re
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from autoais.base.errors import FormatError, unreadable
from autoais.base.io.jsonl import cause, parse_object

Record = tuple[str, dict[str, Any] | FormatError]

_CHUNK = 1 << 17
_MAX_LINE_BYTES = 256 << 20
_RATIO, _FREE = 1000, 16 << 20  # unpacked data may have so many times its size, or so many bytes
_MAX_DOCUMENT_BYTES = 1 << 30
_SPACE = re.compile(r"\s*")
_DECODER = json.JSONDecoder(parse_int=len)  # only finds where values end; Python refuses integers of 4,301 digits
_JSON = frozenset({".json", ".jsonl", ".ndjson"})  # suffixes
_LISTS, _ARTIFACTS, _IN_ARTIFACT = ("data", "results"), "artifacts", ("data", "value")
_OTHER_KINDS = (
    (b"PAR1", "a Parquet file", "pandas.read_parquet(FILE).to_json(OUT, orient='records', lines=True) converts it"),
    (b"PK\x03\x04", "a zip archive or an office file", "unpack it, or save the table as csv"),
    (b"%PDF-", "a PDF", "rag index build reads it as a document; answers and corpora are JSON lines or csv"),
    (b"SQLite format 3", "an SQLite database", "export its rows as JSON lines or csv"),
    (b"\x80\x04", "a Python pickle, which is never read", "write its rows as JSON lines"),
)  # fmt: skip
_NOT_TEXT = "a binary file, or text that is not UTF-8; save it as JSON lines or csv in UTF-8"


def lines(path: Path, progress: Callable[[int], None] = lambda _: None) -> Generator[bytes]:
    """Yield the lines of a file with their line ends; gzip and zstd are detected by their first bytes.

    `progress` gets the number of bytes read so far. Raises `FormatError` for broken or truncated compressed data, for
    data that unpacks to more than a thousand times its size, and for a line of more than 256 MiB.
    """
    number, size = 0, 0
    fragments: list[bytes] = []  # the pieces of an unfinished line
    try:
        for chunk in _chunks(path, progress):
            *full_lines, tail = chunk.split(b"\n")
            if full_lines:
                full_lines[0] = b"".join((*fragments, full_lines[0]))
                fragments, size = [], 0
            for line in full_lines:
                number += 1
                yield line + b"\n"
            fragments.append(tail)
            size += len(tail)
            if size > _MAX_LINE_BYTES:
                raise FormatError(f"{path}:{number + 1}: a line of more than {_MAX_LINE_BYTES >> 20} MiB")
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise FormatError(f"{path}:{number + 1}: the compressed file is broken or cut off: {error}") from error
    except _BombError as error:
        raise FormatError(f"{path}:{number + 1}: {error}; unpack it yourself if that is right") from error
    except OSError as error:
        raise unreadable(path, error) from error
    if size:
        yield b"".join(fragments)


class _BombError(Exception):
    """Compressed data unpacks to far more than its size."""


def _chunks(path: Path, progress: Callable[[int], None]) -> Iterator[bytes]:
    """The content in chunks of at most 128 KiB."""
    with path.open("rb") as file:
        start = file.read(4)
        file.seek(0)
        if start == b"\x28\xb5\x2f\xfd":
            chunks = _zstd(file)
        elif start[:2] == b"\x1f\x8b":
            chunks = iter(partial(gzip.GzipFile(fileobj=file).read, _CHUNK), b"")
        else:
            chunks = iter(partial(file.read, _CHUNK), b"")
        size = 0
        for chunk in chunks:
            size += len(chunk)
            if size > max(_FREE, _RATIO * file.tell()):
                raise _BombError(f"unpacks to more than {_RATIO:,} times its size")
            progress(file.tell())
            yield chunk


def _zstd(file: io.BufferedReader) -> Iterator[bytes]:
    import zstandard

    frame: zstandard.ZstdDecompressionObj | None = None
    while block := file.read(1 << 10):  # of which at most 32 MiB can be unpacked
        while block:
            frame = frame or zstandard.ZstdDecompressor().decompressobj()
            try:
                data = frame.decompress(block)
            except zstandard.ZstdError as error:
                raise EOFError(str(error)) from error
            for offset in range(0, len(data), _CHUNK):
                yield data[offset : offset + _CHUNK]
            block, frame = (frame.unused_data, None) if frame.eof else (b"", frame)
    if frame is not None:
        raise EOFError("end of file inside a zstd frame")


def records(path: Path, columns: Sequence[str] = ()) -> Iterator[Record]:
    """Yield (`file:line`, record) from JSON lines, a JSON list or object, or rows of a CSV or TSV by header.

    In a list or object the place also names the record, counted from 0: `file:line: [2]`, `file:line: data[2]`.

    An object holds its records in a list `data` (ALCE) or `results` (RAGChecker), or in those of its `artifacts`
    (Castorini's command lines). `columns` are the required columns of a CSV; if some are missing, the header is the
    only fault. Raises `FormatError` for a binary file, and for one of another kind that is well known, such as Parquet.
    """
    number, first = _read_first_line(path)
    for magic, kind, way_out in _OTHER_KINDS:
        if first.startswith(magic):
            raise FormatError(f"{path}: {kind}, not JSON or CSV; {way_out}")
    if path.suffix == ".toml":
        raise FormatError(f"{path}: a TOML file, not JSON or CSV; write its rows as JSON lines or csv")
    if b"\0" in first:
        raise FormatError(f"{path}:{number}: {_NOT_TEXT}")
    match first[:1]:
        case b"":
            return iter(())
        case b"{":
            return _document(path) if _is_document(first) else _json_lines(path)
        case b"[":
            return _document(path)
        case _:
            return _json_lines(path) if _is_value(path, first) else _table(path, columns)


def record_key(location: str) -> str:
    """Return the line number of a record, or its name in a JSON document, such as `[2]`."""
    return location.rpartition(":")[2].strip()


def find_header(path: Path) -> str | None:
    """Return `file:line` of a CSV header; None if the file holds JSON or is empty."""
    number, first = _read_first_line(path)
    return None if first[:1] in (b"", b"{", b"[") else f"{path}:{number}"


def _read_first_line(path: Path) -> tuple[int, bytes]:
    """Return the number of the first line that is not blank, and the line."""
    stream = lines(path)
    number, first = next(((number, line) for number, line in enumerate(stream, 1) if line.strip()), (1, b""))
    stream.close()
    return number, first.removeprefix(codecs.BOM_UTF8).lstrip()


def _is_value(path: Path, first: bytes) -> bool:
    """Whether a first line is a JSON value that is no record, such as 5 or null: in a CSV, it may be the header."""
    try:
        json.loads(first)
    except (ValueError, RecursionError):
        return False
    return bool(_JSON & {suffix.lower() for suffix in path.suffixes})


def _is_document(first: bytes) -> bool:
    """Return whether the file is one JSON object: it continues after the first line, or holds a list of records."""
    try:
        value = json.loads(first)
    except (ValueError, RecursionError):
        return first.rstrip().endswith((b"{", b"[", b",", b":"))
    if not isinstance(value, dict):
        return False
    lists = (value.get(name) for name in (*_LISTS, _ARTIFACTS))
    return any(isinstance(items, list) and all(isinstance(item, dict) for item in items) for items in lists)


def _json_lines(path: Path) -> Iterator[Record]:
    for number, line in enumerate(lines(path), 1):
        if line.strip():
            location = f"{path}:{number}"
            try:
                yield location, parse_object(line, location)
            except FormatError as error:
                yield location, error


def allow_long_cells(length: int) -> None:
    """Let cells of CSV have so many characters: 131,072 are too few for long evidence. Holds for the whole process."""
    csv.field_size_limit(max(csv.field_size_limit(), length))


def _table(path: Path, columns: Sequence[str]) -> Iterator[Record]:
    allow_long_cells(_MAX_LINE_BYTES)
    # Bytes that are not UTF-8 become lone surrogates, so that the error can name their row.
    text = (line.decode("utf-8", "surrogateescape") for line in _strip_bom(lines(path)))
    _, opening = _read_first_line(path)
    reader = csv.reader(text, delimiter=_delimiter(opening, columns), strict=True)
    header: list[str] | None = None
    while True:
        location = f"{path}:{reader.line_num + 1}"
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            yield location, FormatError(f"{location}: not CSV: {error}")
            continue
        if not "".join(row).strip():
            continue
        if header is None:
            header = [name.strip() for name in row]
            while not header[-1]:  # a spreadsheet writes each column in which a cell was ever filled
                header.pop()
            if not all(map(_is_text, header)):
                yield location, FormatError(f"{location}: {_NOT_TEXT}")
                return
            if fault := _header_fault(header, columns):
                yield location, FormatError(f"{location}: {fault}")
                return
        elif len(row) < len(header) or any(cell.strip() for cell in row[len(header) :]):
            yield location, FormatError(f"{location}: {len(row)} columns, but the header has {len(header)}")
        elif bad_columns := [name for name, cell in zip(header, row, strict=False) if not _is_text(cell)]:
            yield location, FormatError(f"{location}: field {bad_columns[0]!r} is not UTF-8")
        else:
            yield location, dict(zip(header, row, strict=False))


def _delimiter(opening: bytes, columns: Sequence[str]) -> str:
    """The delimiter by which the first line has most of the columns, then most cells: a comma, a tab or a semicolon.

    Spreadsheets write semicolons where numbers have a decimal comma.
    """
    line = opening.decode("utf-8", "surrogateescape").strip("\r\n")

    def fit(delimiter: str) -> tuple[int, int]:
        try:
            cells = [cell.strip() for cell in next(csv.reader([line], delimiter=delimiter), [])]
        except csv.Error:  # told when the table is read
            return 0, 0
        return sum(name in cells for name in columns), len(cells)

    return max((",", "\t", ";"), key=fit)


def _header_fault(header: Sequence[str], columns: Sequence[str]) -> str | None:
    missing = [name for name in columns if name not in header]
    if missing:
        names = "".join(c if c.isprintable() else "\ufffd" for c in ", ".join(header))
        subject = f"column {missing[0]} is" if len(missing) == 1 else f"columns {', '.join(missing)} are"
        return f"{subject} missing (found: {names[:200]})"
    duplicates = [name for name in header if header.count(name) > 1]
    return f"column {duplicates[0]!r} occurs twice" if duplicates else None


def _strip_bom(stream: Iterable[bytes]) -> Iterator[bytes]:
    for number, line in enumerate(stream):
        yield line if number else line.removeprefix(codecs.BOM_UTF8)


def _is_text(cell: str) -> bool:
    try:
        cell.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _document(path: Path) -> Iterator[Record]:
    """Yield the records of a JSON list, or of the lists in a JSON object, each with its first line and its name."""
    content = io.BytesIO()
    for line in lines(path):
        content.write(line)
        if content.tell() > _MAX_DOCUMENT_BYTES:
            raise FormatError(f"{path}: a JSON document of more than {_MAX_DOCUMENT_BYTES >> 20} MiB")
    try:
        text = content.getvalue().removeprefix(codecs.BOM_UTF8).decode("utf-8")
    except UnicodeDecodeError as error:
        location = f"{path}:{content.getvalue().count(10, 0, error.start) + 1}"
        yield location, FormatError(f"{location}: not UTF-8 at byte {error.start}")
        return
    number, position = 1, 0
    try:
        for name, start, end in _items(text):
            number, position = number + text.count("\n", position, start), start
            location = f"{path}:{number}: {name}"
            try:
                # Parsed again with the checks of all records, which reject NaN.
                yield location, parse_object(text[start:end].encode(), location)
            except FormatError as error:
                yield location, error
    except json.JSONDecodeError as error:
        location = f"{path}:{error.lineno}"
        breaks_off = "it breaks off: " if _is_truncated(error) else ""
        yield location, FormatError(f"{location}: not JSON: {breaks_off}{cause(error)} at column {error.colno}")
    except RecursionError:  # where the record ends is not known
        location = f"{path}:{number}"
        yield (
            location,
            FormatError(f"{location}: a record from here on is nested too deeply; it and what follows are not read"),
        )


def _is_truncated(error: json.JSONDecodeError) -> bool:
    """Whether the document ends too early; json reports an open string at its beginning."""
    return error.msg.startswith("Unterminated string") or not error.doc[error.pos :].strip()


_Item = tuple[str, int, int]
"""The name of a record in its document, such as `[2]` or `data[2]`, its start and its end."""


def _items(text: str) -> Generator[_Item]:
    """Yield each record of a list or object; raises `JSONDecodeError`."""
    position = _skip_space(text, 0)
    is_list = text[position : position + 1] == "["
    position = yield from (_list_items(text, position, "") if is_list else _object_items(text, position))
    if text[_skip_space(text, position) :]:
        raise json.JSONDecodeError("text after the end", text, _skip_space(text, position))


def _object_items(text: str, position: int, artifact: str = "") -> Generator[_Item, None, int]:
    """Yield the records in the lists of an object.

    `artifact` is the name of the object if it is an artifact, which may also hold a record outside of lists.
    """
    position = _skip_space(text, position + 1)
    names: set[str] = set()
    while text[position : position + 1] != "}":
        start = position
        name, position = _DECODER.raw_decode(text, position)
        if not isinstance(name, str) or name in names:
            message = f"key {name[:60]!r} occurs twice" if isinstance(name, str) else "a key should be a string"
            raise json.JSONDecodeError(message, text, start)
        names.add(name)
        position = _expect(text, position, ":")
        opens = text[position : position + 1]
        if opens == "[" and name in (_IN_ARTIFACT if artifact else _LISTS):
            position = yield from _list_items(text, position, f"{artifact}.{name}" if artifact else name)
        elif opens == "[" and name == _ARTIFACTS and not artifact:
            position, number = _skip_space(text, position + 1), 0
            while text[position : position + 1] != "]":
                if text[position : position + 1] == "{":
                    position = yield from _object_items(text, position, f"{name}[{number}]")
                else:
                    _, position = _DECODER.raw_decode(text, position)
                position, number = _find_next_item(text, position, "]"), number + 1
            position += 1
        else:
            begin = position
            _, position = _DECODER.raw_decode(text, position)
            if artifact and opens == "{" and name in _IN_ARTIFACT:
                yield f"{artifact}.{name}", begin, position
        position = _find_next_item(text, position, "}")
    return position + 1


def _find_next_item(text: str, position: int, closing: str) -> int:
    """Return the place of the next item, or of the closing bracket."""
    position = _skip_space(text, position)
    if text[position : position + 1] == closing:
        return position
    comma, position = position, _expect(text, position, ",")
    if text[position : position + 1] == closing:
        raise json.JSONDecodeError(f"a comma before {closing!r}", text, comma)
    return position


def _list_items(text: str, position: int, name: str) -> Generator[_Item, None, int]:
    position, number = _skip_space(text, position + 1), 0
    while text[position : position + 1] != "]":
        _, end = _DECODER.raw_decode(text, position)
        yield f"{name}[{number}]", position, end
        position, number = _find_next_item(text, end, "]"), number + 1
    return position + 1


def _skip_space(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    return match.end() if match else position


def _expect(text: str, position: int, character: str) -> int:
    position = _skip_space(text, position)
    if text[position : position + 1] != character:
        raise json.JSONDecodeError(f"{character!r} expected", text, position)
    return _skip_space(text, position + 1)
