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

from autoais.errors import FormatError, UserError
from autoais.io.jsonl import parse_object

Record = tuple[str, dict[str, Any] | FormatError]

_CHUNK = 1 << 17
_LONGEST_LINE = 256 << 20
_RATIO, _FREE = 1000, 16 << 20  # unpacked data may have so many times its size, or so many bytes
_LONGEST_DOCUMENT = 1 << 30
_SPACE = re.compile(r"\s*")
_DECODER = json.JSONDecoder()


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
        raise UserError(f"{path}: cannot be read: {error.strerror or error}") from error
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
    """Yield (`file:line`, record) from JSON lines, a JSON list, an object with a list `data`, or CSV rows by header.

    `columns` are the required columns of a CSV; if some are missing, the header is the only fault.
    """
    _, first = _opening(path)
    match first[:1]:
        case b"":
            return iter(())
        case b"{":
            return _document(path) if _opens_document(first) else _json_lines(path)
        case b"[":
            return _document(path)
        case _:
            return _table(path, columns)


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


def _opens_document(first: bytes) -> bool:
    """Return whether the file is one JSON object: it continues after the first line, or holds a list `data`."""
    try:
        value = json.loads(first)
    except (ValueError, RecursionError):
        return first.rstrip().endswith((b"{", b"[", b",", b":"))
    return isinstance(value, dict) and isinstance(value.get("data"), list)


def _json_lines(path: Path) -> Iterator[Record]:
    for number, line in enumerate(lines(path), 1):
        if line.strip():
            where = f"{path}:{number}"
            try:
                yield where, parse_object(line, where)
            except FormatError as error:
                yield where, error


def _table(path: Path, columns: Sequence[str]) -> Iterator[Record]:
    # The default limit of 131,072 characters per field is too small for long evidence; the setting is process-wide.
    csv.field_size_limit(max(csv.field_size_limit(), _LONGEST_LINE))
    # Bytes that are not UTF-8 become lone surrogates, so that the error can name their row.
    text = (line.decode("utf-8", "surrogateescape") for line in _without_bom(lines(path)))
    reader = csv.reader(text, strict=True)
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
        return f"columns {', '.join(missing)} are missing (found: {found[:200]})"
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
    """Yield the records of a JSON list, or of the list `data` of a JSON object, each with its first line."""
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
        for start, end in _items(text):
            number, at = number + text.count("\n", at, start), start
            where = f"{path}:{number}"
            try:
                # Parsed again with the checks of all records, which reject NaN.
                yield where, parse_object(text[start:end].encode(), where)
            except FormatError as error:
                yield where, error
    except (ValueError, RecursionError) as error:
        place = error.pos if isinstance(error, json.JSONDecodeError) else at
        where = f"{path}:{text.count(chr(10), 0, place) + 1}"
        reason = error.msg if isinstance(error, json.JSONDecodeError) else "nested too deeply"
        yield where, FormatError(f"{where}: not JSON: {reason}")


def _items(text: str) -> Generator[tuple[int, int]]:
    """Yield (start, end) of each item of the list, or of the list under "data"; raises `JSONDecodeError`."""
    at = _skip(text, 0)
    if text[at : at + 1] == "[":
        at = yield from _list_items(text, at)
    else:
        at = _skip(text, at + 1)
        while text[at : at + 1] != "}":
            name, at = _DECODER.raw_decode(text, at)
            at = _expect(text, at, ":")
            if name == "data" and text[at : at + 1] == "[":
                at = yield from _list_items(text, at)
            else:
                _, at = _DECODER.raw_decode(text, at)
            at = _skip(text, at)
            at = _expect(text, at, ",") if text[at : at + 1] != "}" else at
        at += 1
    if text[_skip(text, at) :]:
        raise json.JSONDecodeError("text after the end", text, _skip(text, at))


def _list_items(text: str, at: int) -> Generator[tuple[int, int], None, int]:
    at = _skip(text, at + 1)
    while text[at : at + 1] != "]":
        _, end = _DECODER.raw_decode(text, at)
        yield at, end
        at = _skip(text, end)
        at = _expect(text, at, ",") if text[at : at + 1] != "]" else at
    return at + 1


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _expect(text: str, at: int, character: str) -> int:
    at = _skip(text, at)
    if text[at : at + 1] != character:
        raise json.JSONDecodeError(f"{character!r} expected", text, at)
    return _skip(text, at + 1)
