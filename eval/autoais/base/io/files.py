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
_LONGEST_LINE = 256 << 20
_RATIO, _FREE = 1000, 16 << 20  # unpacked data may have so many times its size, or so many bytes
_LONGEST_DOCUMENT = 1 << 30
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
    rest: list[bytes] = []  # the pieces of an unfinished line
    try:
        for chunk in _chunks(path, progress):
            *whole, tail = chunk.split(b"\n")
            if whole:
                whole[0] = b"".join((*rest, whole[0]))
                rest, size = [], 0
            for line in whole:
                number += 1
                yield line + b"\n"
            rest.append(tail)
            size += len(tail)
            if size > _LONGEST_LINE:
                raise FormatError(f"{path}:{number + 1}: a line of more than {_LONGEST_LINE >> 20} MiB")
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise FormatError(f"{path}:{number + 1}: the compressed file is broken or cut off: {error}") from error
    except _BombError as error:
        raise FormatError(f"{path}:{number + 1}: {error}; unpack it yourself if that is right") from error
    except OSError as error:
        raise unreadable(path, error) from error
    if size:
        yield b"".join(rest)


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
    while packed := file.read(1 << 10):  # of which at most 32 MiB can be unpacked
        while packed:
            frame = frame or zstandard.ZstdDecompressor().decompressobj()
            try:
                found = frame.decompress(packed)
            except zstandard.ZstdError as error:
                raise EOFError(str(error)) from error
            for at in range(0, len(found), _CHUNK):
                yield found[at : at + _CHUNK]
            packed, frame = (frame.unused_data, None) if frame.eof else (b"", frame)
    if frame is not None:
        raise EOFError("end of file inside a zstd frame")


def records(path: Path, columns: Sequence[str] = ()) -> Iterator[Record]:
    """Yield (`file:line`, record) from JSON lines, a JSON list or object, or rows of a CSV or TSV by header.

    In a list or object the place also names the record, counted from 0: `file:line: [2]`, `file:line: data[2]`.

    An object holds its records in a list `data` (ALCE) or `results` (RAGChecker), or in those of its `artifacts`
    (Castorini's command lines). `columns` are the required columns of a CSV; if some are missing, the header is the
    only fault. Raises `FormatError` for a binary file, and for one of another kind that is well known, such as Parquet.
    """
    number, first = _opening(path)
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
            return _document(path) if _opens_document(first) else _json_lines(path)
        case b"[":
            return _document(path)
        case _:
            return _json_lines(path) if _is_value(path, first) else _table(path, columns)


def place_of(where: str) -> str:
    """Return what tells a record from others of its file: its line, or its name in a JSON document, such as `[2]`."""
    return where.rpartition(":")[2].strip()


def header_of(path: Path) -> str | None:
    """Return `file:line` of a CSV header; None if the file holds JSON or is empty."""
    number, first = _opening(path)
    return None if first[:1] in (b"", b"{", b"[") else f"{path}:{number}"


def _opening(path: Path) -> tuple[int, bytes]:
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


def _opens_document(first: bytes) -> bool:
    """Return whether the file is one JSON object: it continues after the first line, or holds a list of records."""
    try:
        value = json.loads(first)
    except (ValueError, RecursionError):
        return first.rstrip().endswith((b"{", b"[", b",", b":"))
    if not isinstance(value, dict):
        return False
    lists = (value.get(name) for name in (*_LISTS, _ARTIFACTS))
    return any(isinstance(one, list) and all(isinstance(item, dict) for item in one) for one in lists)


def _json_lines(path: Path) -> Iterator[Record]:
    for number, line in enumerate(lines(path), 1):
        if line.strip():
            where = f"{path}:{number}"
            try:
                yield where, parse_object(line, where)
            except FormatError as error:
                yield where, error


def allow_long_cells(length: int) -> None:
    """Let cells of CSV have so many characters: 131,072 are too few for long evidence. Holds for the whole process."""
    csv.field_size_limit(max(csv.field_size_limit(), length))


def _table(path: Path, columns: Sequence[str]) -> Iterator[Record]:
    allow_long_cells(_LONGEST_LINE)
    # Bytes that are not UTF-8 become lone surrogates, so that the error can name their row.
    text = (line.decode("utf-8", "surrogateescape") for line in _without_bom(lines(path)))
    _, opening = _opening(path)
    # Spreadsheets write semicolons where numbers have a decimal comma.
    delimiter = next((one for one in (",", "\t", ";") if one.encode() in opening), ",")
    reader = csv.reader(text, delimiter=delimiter, strict=True)
    header: list[str] | None = None
    while True:
        where = f"{path}:{reader.line_num + 1}"
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            yield where, FormatError(f"{where}: not CSV: {error}")
            continue
        if len(row) <= 1 and not "".join(row).strip():
            continue
        if header is None:
            header = [name.strip() for name in row]
            if not all(map(_is_text, header)):
                yield where, FormatError(f"{where}: {_NOT_TEXT}")
                return
            if fault := _header_fault(header, columns):
                yield where, FormatError(f"{where}: {fault}")
                return
        elif len(row) != len(header):
            yield where, FormatError(f"{where}: {len(row)} columns, but the header has {len(header)}")
        elif broken := [name for name, cell in zip(header, row, strict=True) if not _is_text(cell)]:
            yield where, FormatError(f"{where}: field {broken[0]!r} is not UTF-8")
        else:
            yield where, dict(zip(header, row, strict=True))


def _header_fault(header: Sequence[str], columns: Sequence[str]) -> str | None:
    missing = [name for name in columns if name not in header]
    if missing:
        found = "".join(c if c.isprintable() else "\ufffd" for c in ", ".join(header))
        what = f"column {missing[0]} is" if len(missing) == 1 else f"columns {', '.join(missing)} are"
        return f"{what} missing (found: {found[:200]})"
    twice = [name for name in header if header.count(name) > 1]
    return f"column {twice[0]!r} occurs twice" if twice else None


def _without_bom(stream: Iterable[bytes]) -> Iterator[bytes]:
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
    whole = io.BytesIO()
    for line in lines(path):
        whole.write(line)
        if whole.tell() > _LONGEST_DOCUMENT:
            raise FormatError(f"{path}: a JSON document of more than {_LONGEST_DOCUMENT >> 20} MiB")
    try:
        text = whole.getvalue().removeprefix(codecs.BOM_UTF8).decode("utf-8")
    except UnicodeDecodeError as error:
        where = f"{path}:{whole.getvalue().count(10, 0, error.start) + 1}"
        yield where, FormatError(f"{where}: not UTF-8 at byte {error.start}")
        return
    number, at = 1, 0
    try:
        for name, start, end in _items(text):
            number, at = number + text.count("\n", at, start), start
            where = f"{path}:{number}: {name}"
            try:
                # Parsed again with the checks of all records, which reject NaN.
                yield where, parse_object(text[start:end].encode(), where)
            except FormatError as error:
                yield where, error
    except json.JSONDecodeError as error:
        where = f"{path}:{error.lineno}"
        breaks_off = "it breaks off: " if _breaks_off(error) else ""
        yield where, FormatError(f"{where}: not JSON: {breaks_off}{cause(error)} at column {error.colno}")
    except RecursionError:  # where the record ends is not known
        where = f"{path}:{number}"
        yield (
            where,
            FormatError(f"{where}: a record from here on is nested too deeply; it and what follows are not read"),
        )


def _breaks_off(error: json.JSONDecodeError) -> bool:
    """Whether the document ends too early: an open string is told at its beginning."""
    return error.msg.startswith("Unterminated string") or not error.doc[error.pos :].strip()


_Item = tuple[str, int, int]
"""The name of a record in its document, such as `[2]` or `data[2]`, its start and its end."""


def _items(text: str) -> Generator[_Item]:
    """Yield each record of a list or object; raises `JSONDecodeError`."""
    at = _skip(text, 0)
    at = yield from (_list_items(text, at, "") if text[at : at + 1] == "[" else _object_items(text, at))
    if text[_skip(text, at) :]:
        raise json.JSONDecodeError("text after the end", text, _skip(text, at))


def _object_items(text: str, at: int, inside: str = "") -> Generator[_Item, None, int]:
    """Yield the records in the lists of an object; `inside` an artifact, its name, also a record that stands alone."""
    at = _skip(text, at + 1)
    names: set[str] = set()
    while text[at : at + 1] != "}":
        start = at
        name, at = _DECODER.raw_decode(text, at)
        if not isinstance(name, str) or name in names:
            says = f"key {name[:60]!r} occurs twice" if isinstance(name, str) else "a key should be a string"
            raise json.JSONDecodeError(says, text, start)
        names.add(name)
        at = _expect(text, at, ":")
        opens = text[at : at + 1]
        if opens == "[" and name in (_IN_ARTIFACT if inside else _LISTS):
            at = yield from _list_items(text, at, f"{inside}.{name}" if inside else name)
        elif opens == "[" and name == _ARTIFACTS and not inside:
            at, number = _skip(text, at + 1), 0
            while text[at : at + 1] != "]":
                if text[at : at + 1] == "{":
                    at = yield from _object_items(text, at, f"{name}[{number}]")
                else:
                    _, at = _DECODER.raw_decode(text, at)
                at, number = _next(text, at, "]"), number + 1
            at += 1
        else:
            begin = at
            _, at = _DECODER.raw_decode(text, at)
            if inside and opens == "{" and name in _IN_ARTIFACT:
                yield f"{inside}.{name}", begin, at
        at = _next(text, at, "}")
    return at + 1


def _next(text: str, at: int, closing: str) -> int:
    """Return the place of the next item, or of the closing bracket."""
    at = _skip(text, at)
    if text[at : at + 1] == closing:
        return at
    comma, at = at, _expect(text, at, ",")
    if text[at : at + 1] == closing:
        raise json.JSONDecodeError(f"a comma before {closing!r}", text, comma)
    return at


def _list_items(text: str, at: int, name: str) -> Generator[_Item, None, int]:
    at, number = _skip(text, at + 1), 0
    while text[at : at + 1] != "]":
        _, end = _DECODER.raw_decode(text, at)
        yield f"{name}[{number}]", at, end
        at, number = _next(text, end, "]"), number + 1
    return at + 1


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _expect(text: str, at: int, character: str) -> int:
    at = _skip(text, at)
    if text[at : at + 1] != character:
        raise json.JSONDecodeError(f"{character!r} expected", text, at)
    return _skip(text, at + 1)
