"""Reading and writing of JSON lines: errors name file, line and field; files are written atomically."""

import codecs
import gzip
import json
import math
import os
import secrets
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from autoais.base.errors import FormatError, UserError, field_names, json_kind, unreadable

T = TypeVar("T")
_NAMES = {
    str: "a string",
    int: "an integer",
    float: "a number with a point",
    dict: "an object",
    list: "a list",
    bool: "true or false",
}
_DIGITS = 308


def _reject_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")


def _float(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"the number {text[:20]} is too large")
    return value


def _int(text: str) -> int:
    if len(text) > _DIGITS:  # too large for a float, and readers convert many numbers to floats
        raise ValueError(f"the number {text[:20]}... of {len(text)} digits is too large")
    return int(text)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):  # readers differ on which of the values counts
        counts = Counter(name for name, _ in pairs)
        duplicate = next(name for name in counts if counts[name] > 1)
        raise ValueError(f"key {duplicate[:60]!r} occurs twice")
    return members


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object, parse_constant=_reject_constant, parse_float=_float, parse_int=_int
)


def read_objects(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (`file:line`, object) for each line that is not blank; raises `FormatError` for other content."""
    try:
        file = path.open("rb")
    except OSError as error:
        raise unreadable(path, error) from error
    with file:
        for number, line in enumerate(file, 1):
            if line.strip():
                location = f"{path}:{number}"
                yield location, parse_object(line, location)


def parse_object(line: bytes, location: str) -> dict[str, Any]:
    """Parse one JSON object in UTF-8; raises `FormatError`.

    Also for NaN, Infinity, numbers beyond a float, and a key that occurs twice.
    """
    try:
        value = _DECODER.decode(line.removeprefix(codecs.BOM_UTF8).rstrip(b"\r\n").decode("utf-8"))
    except UnicodeDecodeError as error:
        raise FormatError(f"{location}: not UTF-8 at byte {error.start}") from error
    except RecursionError as error:
        raise FormatError(f"{location}: nested too deeply") from error
    except json.JSONDecodeError as error:
        raise FormatError(f"{location}: not JSON: {_describe_error(error)}") from error
    except ValueError as error:
        raise FormatError(f"{location}: not JSON: {error}") from error
    if not isinstance(value, dict):
        raise FormatError(f"{location}: expected a JSON object, found {json_kind(value)}")
    return value


def _describe_error(error: json.JSONDecodeError) -> str:
    """Return the fault and its position: a character on a single line, else line and column."""
    if error.pos >= len(error.doc.rstrip()):
        return f"it breaks off: {cause(error)}"
    position = f"line {error.lineno}, column {error.colno}" if "\n" in error.doc else f"character {error.pos + 1}"
    return f"{cause(error)} at {position}"


def cause(error: json.JSONDecodeError) -> str:
    """Return the fault without its position."""
    return error.msg.removesuffix(" at").removesuffix(" starting")


def field(record: Mapping[str, Any], name: str, kind: type[T], location: str) -> T:
    """Return the field of that name and type; raises `FormatError` if it is missing or of another type."""
    if name not in record:
        raise FormatError(f"{location}: field {name!r} is missing (found: {field_names(record)})")
    value = record[name]
    # In Python bool is a subclass of int.
    if not isinstance(value, kind) or (kind is not bool and isinstance(value, bool)):
        raise FormatError(f"{location}: field {name!r} should be {_NAMES[kind]}, found {json_kind(value)}")
    return value


def identifier(record: Mapping[str, Any], name: str, location: str) -> str:
    """Return an id: a non-empty string, or an integer as a string (some files number their rows)."""
    value = record.get(name)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    text = field(record, name, str, location)
    if not text.strip():
        raise FormatError(f"{location}: field {name!r} is empty")
    return text


def strings(record: Mapping[str, Any], name: str, location: str) -> tuple[str, ...]:
    """Return a field that is a list of strings; empty if missing or null."""
    value = record.get(name)
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise FormatError(f"{location}: field {name!r} should be a list of strings")
    return tuple(value)


def dumps(value: Any, *, indent: int | None = None) -> str:  # noqa: ANN401  (anything JSON can hold)
    """Return JSON on one line, or indented; non-ASCII is kept, lone surrogates are escaped, NaN raises `ValueError`."""
    text = json.dumps(value, indent=indent, ensure_ascii=False, allow_nan=False)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return json.dumps(value, indent=indent, allow_nan=False)
    return text


def check_outputs(
    inputs: Iterable[Path | None], outputs: Iterable[Path | None], append_outputs: Iterable[Path | None] = ()
) -> None:
    """Raise `UserError` if an output would overwrite an input or another output, is a folder, or is not writable.

    Outputs are replaced (`write_atomic`), so that their folders should be writable; `append_outputs` ones stay in
    place.
    """
    reserved_paths = {path.resolve() for path in inputs if path is not None}
    for path, is_replaced in [*((path, True) for path in outputs), *((path, False) for path in append_outputs)]:
        if path is None:
            continue
        if path.resolve() in reserved_paths:
            raise UserError(f"{path} would be overwritten; name another file for the output")
        if path.is_dir():
            raise UserError(f"{path} is a folder; name a file for the output")
        _try_to_write(path, is_replaced=is_replaced and (path.is_file() or not path.exists()))
        reserved_paths.add(path.resolve())


def _try_to_write(path: Path, *, is_replaced: bool) -> None:
    """Raise `UserError` if `path` cannot be written, or replaced: better before the work than after it."""
    if not is_replaced and path.exists() and os.access(path, os.W_OK):
        return
    folder = next(folder for folder in path.resolve().parents if folder.exists())  # the others are created later
    try:
        tempfile.NamedTemporaryFile(prefix=f".{path.name}.", dir=folder).close()
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror}") from error


def check_distinct(paths: Iterable[Path]) -> None:
    """Raise `UserError` if a file is named twice: its records would count twice."""
    unique_paths: set[Path] = set()
    for path in paths:
        if path.resolve() in unique_paths:
            raise UserError(f"{path} is named twice; its records would count twice")
        unique_paths.add(path.resolve())


def write_atomic(path: Path, content: Iterable[str] | bytes) -> None:
    """Write lines, or bytes, to `path` atomically: a crash or a full disk leaves the old file; `.gz` is compressed."""
    if path.exists() and not path.is_file():  # a device or a pipe, such as /dev/stdout, cannot be replaced
        _write(path, content)
        return
    path = path.resolve()  # replace the target of a link, not the link
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = _new_file(path)
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror}") from error
    try:
        _write(temporary, content, compress=path.suffix == ".gz")
        if path.exists():
            temporary.chmod(path.stat().st_mode & 0o777)
        temporary.replace(path)
        sync(path.parent)
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror}") from error
    finally:
        temporary.unlink(missing_ok=True)


def _new_file(path: Path) -> Path:
    """A new file beside `path`, with the rights that the umask leaves; `tempfile` keeps its files to their owner."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o666))
    return temporary


def sync(path: Path) -> None:
    """Flush a file, or the entries of a folder, to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write(path: Path, content: Iterable[str] | bytes, *, compress: bool = False) -> None:
    try:
        with path.open("wb") as file:
            # No name and no time in the header: the same lines give the same bytes.
            stream = gzip.GzipFile("", "wb", fileobj=file, mtime=0) if compress else file
            for piece in [content] if isinstance(content, bytes) else (f"{line}\n".encode() for line in content):
                stream.write(piece)
            if compress:
                stream.close()
            file.flush()
            if path.is_file():
                os.fsync(file.fileno())
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror}") from error


def round_floats(value: Any, digits: int = 6) -> Any:  # noqa: ANN401  (JSON in, JSON out)
    """Return the JSON value with every float rounded, so that files do not differ in the last bits."""
    if isinstance(value, float):
        return round(value, digits) if math.isfinite(value) else value
    if isinstance(value, dict):
        return {key: round_floats(item, digits) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [round_floats(item, digits) for item in value]
    return value
