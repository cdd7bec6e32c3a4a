"""Changes to inputs: bytes are flipped, cut and spliced, nasty tokens are put in, JSON and archives are changed."""

# ruff: noqa: E501  (tables)

import io
import json
import random
import zipfile
from collections.abc import Callable, Sequence
from typing import Any

_WORDS = (
    "NaN", "-Infinity", "1e999", "-0", "9" * 400, "-9223372036854775809", "1e-999", "null", "true", '""', "[]", "{}",
    "\\ud800", "\\u0000", "\ud800", "\udcff", "\0", "\ufeff", "\u202e", "\u2028", "\x1b[2J", "\x7f", "\x85", "\r", "\r\n", "\n\n",
    "\t", "../../x", "/etc/passwd", "C:\\x", "file:///dev/zero", "%s%n", "{0}", "{question}", "<think>", "</think>", "[1]",
    "[99999999999]", "[1][2", "\u0301" * 200, "\U0001f469\u200d\U0001f52c", "ß", "İ", "ǅ", "\ufb01", "١", "²", "Ⅷ", "東京",
    '"', "'", "\\", "<", "&#x110000;", "&#55296;", "<!--", "]]>", "<![CDATA[", "```", "|||", "---", "+++", "{", "}", "[", "]",
    ":", ",", "#" * 300, ".so x", ".TH", ".. include:: /etc/passwd", "(" * 300, "*" * 500, "> " * 300, "- " * 300,
)  # fmt: skip
TOKENS = (
    *(word.encode("utf-8", "surrogatepass") for word in _WORDS),
    b"\xff", b"\xed\xa0\x80", b"\xc0\x80", b"\xfe\xff", b"\xff\xfe", b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd", b"PK\x03\x04",
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31, 2**63, 2**64, 10**300, 0.5, -1.5, 1e308, "", " ", "x", "\0", "\ud800", "../../x", "1",
    "nan", [], [[]], [None], ["x"], [1], {}, {"x": 1}, {"": None}, [{}], "a" * 5000,
)  # fmt: skip
_LONG = 3_000_000  # bytes of a very long line
_DEEP = (50, 900, 20_000)


def mutated(data: bytes, others: Sequence[bytes], rng: random.Random) -> bytes:
    """The bytes after one to five changes; `others` are spliced in."""
    if data.startswith(b"PK\x03\x04") and rng.random() < 0.8:
        return _member(data, rng)
    if rng.random() < 0.5 and (changed := _json(data, rng)) is not None:
        data = changed
        if rng.random() < 0.7:
            return data
    for _ in range(rng.choice((1, 1, 1, 2, 3, 5))):
        data = rng.choices(_CHANGES, _WEIGHTS)[0](data, others, rng)
    return data


def mutated_text(text: str, rng: random.Random) -> str:
    """A text after such changes; it may hold lone surrogates."""
    changed = mutated(text.encode(), (), rng)
    how = rng.choice(("surrogateescape", "replace", "surrogatepass"))
    try:
        return changed.decode("utf-8", how)
    except UnicodeDecodeError:
        return changed.decode("utf-8", "replace")


# --- bytes -----------------------------------------------------------------------------------------------------------


def _place(data: bytes, rng: random.Random) -> int:
    return rng.randrange(len(data) + 1)


def _span(data: bytes, rng: random.Random) -> tuple[int, int]:
    start = _place(data, rng)
    return start, min(len(data), start + int(rng.expovariate(1 / 30)))


def _flip(data: bytes, others: Sequence[bytes], rng: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 4, 16)) if data else 0):
        changed[rng.randrange(len(data))] = rng.randrange(256)
    return bytes(changed)


def _cut(data: bytes, others: Sequence[bytes], rng: random.Random) -> bytes:
    start, end = _span(data, rng)
    return data[:start] if rng.random() < 0.3 else data[:start] + data[end:]


def _repeat(data: bytes, others: Sequence[bytes], rng: random.Random) -> bytes:
    start, end = _span(data, rng)
    return data[:end] + data[start:end] * rng.choice((1, 2, 50, 2000)) + data[end:]


def _splice(data: bytes, others: Sequence[bytes], rng: random.Random) -> bytes:
    other = rng.choice(others) if others else data
    return data[: _place(data, rng)] + other[_place(other, rng) :]


def _insert(data: bytes, others: Sequence[bytes], rng: random.Random) -> bytes:
    start, end = _span(data, rng)
    return data[:start] + rng.choice(TOKENS) + data[start if rng.random() < 0.5 else end :]


def _cell(data: bytes, others: Sequence[bytes], rng: random.Random) -> bytes:
    """A value of a table, or of a TOML file, becomes another one."""
    lines = data.split(b"\n")
    at = rng.randrange(len(lines))
    by = next((by for by in (b" = ", b"\t", b",", b" ") if by in lines[at]), None)
    cells = [lines[at]] if by is None else lines[at].split(by)
    value = json.dumps(rng.choice(VALUES)).encode() if rng.random() < 0.6 else rng.choice(TOKENS)
    cells[rng.randrange(len(cells)) if by != b" = " else -1] = value
    lines[at] = (by or b"").join(cells)
    return b"\n".join(lines)


def _deep(data: bytes, others: Sequence[bytes], rng: random.Random) -> bytes:
    at, times = _place(data, rng), rng.choice(_DEEP)
    opening, closing = rng.choice(((b"[", b"]"), (b'{"a":', b"}"), (b"<div>", b"</div>"), (b"(", b")"), (b"> ", b"")))
    return data[:at] + opening * times + b"1" + closing * rng.choice((0, times)) + data[at:]


def _long(data: bytes, others: Sequence[bytes], rng: random.Random) -> bytes:
    at, filler = (
        _place(data, rng),
        rng.choice((b"a", b"a ", b" ", b"\0", b"9", b"\xe6\x9d\xb1", b".", b"[1] ", *TOKENS)),
    )
    return data[:at] + filler * (rng.choice((10_000, 300_000, _LONG)) // len(filler)) + data[at:]


def _encoded(data: bytes, others: Sequence[bytes], rng: random.Random) -> bytes:
    kind = rng.choice(("utf-16", "utf-16-le", "utf-32", "latin-1", "bom", "crlf", "cr"))
    if kind == "bom":
        return b"\xef\xbb\xbf" + data
    if kind in ("crlf", "cr"):
        end = b"\r\n" if kind == "crlf" else b"\r"
        return b"".join(line + (end if rng.random() < 0.5 else b"\n") for line in data.split(b"\n"))
    return data.decode("utf-8", "replace").encode(kind, "replace")


_CHANGES: Sequence[Callable[[bytes, Sequence[bytes], random.Random], bytes]] = (
    _flip, _cut, _repeat, _splice, _insert, _cell, _deep, _long, _encoded,
)  # fmt: skip
_WEIGHTS = (20, 14, 10, 10, 40, 25, 2, 0.7, 3)


# --- structures ------------------------------------------------------------------------------------------------------


def _json(data: bytes, rng: random.Random) -> bytes | None:
    """JSON with a changed value or key, or JSON lines with a changed line; None if the data are neither."""
    try:
        if data.count(b"\n") > 0:
            lines = data.split(b"\n")
            at = rng.randrange(len(lines))
            if lines[at].startswith(b"{"):
                lines[at] = _changed(json.loads(lines[at]), rng)
                return b"\n".join(lines)
        return _changed(json.loads(data), rng)
    except (ValueError, RecursionError):
        return None


def _changed(value: Any, rng: random.Random) -> bytes:  # noqa: ANN401  (JSON)
    """JSON with a value replaced, or a key dropped, renamed or written twice."""
    inside: list[tuple[Any, Any]] = []

    def walk(one: Any) -> None:  # noqa: ANN401  (JSON)
        for key, inner in one.items() if isinstance(one, dict) else enumerate(one) if isinstance(one, list) else ():
            inside.append((one, key))
            walk(inner)

    walk(value)
    if not inside:
        return json.dumps(rng.choice(VALUES)).encode()
    twice = None
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        home, key = rng.choice(inside)
        if isinstance(home, list):
            key = rng.randrange(len(home)) if home else None
        if key is None or (isinstance(home, dict) and key not in home):
            continue
        match rng.randrange(6):
            case 0:
                del home[key]
            case 1 if isinstance(home, dict):
                home[rng.choice(("", "x", "\ud800", "id", "text", key.upper()))] = home.pop(key)
            case 1:
                home.extend([home[key]] * rng.choice((1, 3, 500)))
            case 2:
                inner = rng.choice(inside)[0]
                home[key] = json.loads(json.dumps(inner))
            case 3 if isinstance(home, dict):
                twice = key
            case 4 if isinstance(home[key], str):
                home[key] = mutated_text(home[key], rng)
            case _:
                home[key] = rng.choice(VALUES)
    text = json.dumps(value, ensure_ascii=rng.random() < 0.7)
    if twice is not None:
        name = f"{json.dumps(twice)}:"
        text = text.replace(name, f"{name} {json.dumps(rng.choice(VALUES))}, {name}", 1)
    return text.encode("utf-8", "surrogatepass")


def _member(data: bytes, rng: random.Random) -> bytes:
    """An archive with one changed, missing or renamed file."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    for _ in range(rng.choice((1, 1, 2))):
        name = rng.choice(sorted(files))
        match rng.randrange(12):
            case 0:
                del files[name]
                if not files:
                    return data
            case 1:
                files[rng.choice(("../../x", "x", name.upper(), f"{name}x"))] = files.pop(name)
            case _:
                files[name] = mutated(files[name], list(files.values()), rng)
    return zipped(files)


def zipped(files: dict[str, bytes]) -> bytes:
    """An archive of these files, always the same bytes."""
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
    return whole.getvalue()
