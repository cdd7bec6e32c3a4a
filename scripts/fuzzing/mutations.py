"""Changes that break an input: to its bytes, to the values of its JSON, to the members of an archive."""

import io
import json
import random
import zipfile
from collections.abc import Callable, Sequence
from typing import Any

TOKENS = (
    *(
        word.encode("utf-8", "surrogatepass")
        for word in (
            "NaN", "-Infinity", "1e999", "9" * 400, "null", '""', "[]", "{}", "\\ud800", "\ud800", "\0", "\ufeff",
            "\u202e", "\u2028", "\x1b[2J", "\x85", "\r", "\n\n", "\t", "../../x", "/etc/passwd", "C:\\x",
            "file:///dev/zero", "%s%n", "{question}", "<think>", "[1]", "[99999999999]", "[1][2", "\u0301" * 200,
            "\U0001f469\u200d\U0001f52c", "İ", "\ufb01", "²", "東京", '"', "\\", "<", "&#x110000;", "<!--", "<![CDATA[",
            "```", "|||", "---", "{", "}", "[", "]", ":", ",", "#" * 300, ".. include:: /etc/passwd", "(" * 300,
            "> " * 300, "- " * 300,
        )
    ),
    b"\xff", b"\xed\xa0\x80", b"\xc0\x80", b"\xff\xfe", b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd", b"PK\x03\x04",
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 2**31, 2**64, 10**300, 0.5, -1.5, "", " ", "x", "\0", "\ud800", "../../x", "1", "nan",
    [], [[]], [None], ["x"], {}, {"x": 1}, {"": None}, [{}], "a" * 5000,
)  # fmt: skip


def mutate(data: bytes, samples: Sequence[bytes], rng: random.Random) -> bytes:
    """The data after one to five changes; parts of `samples` may be spliced in."""
    if data.startswith(b"PK\x03\x04") and rng.random() < 0.8:
        return _change_member(data, rng)
    if rng.random() < 0.5:
        with_values = _change_json(data, rng)
        if with_values is not None:
            return with_values
    for _ in range(rng.choice((1, 1, 1, 2, 3, 5))):
        (change,) = rng.choices(CHANGES, WEIGHTS)
        data = change(data, samples, rng)
    return data


def pack(files: dict[str, bytes]) -> bytes:
    """A zip archive of these files, always the same bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


# --- bytes -----------------------------------------------------------------------------------------------------------


def _span(data: bytes, rng: random.Random) -> tuple[int, int]:
    start = rng.randrange(len(data) + 1)
    return start, min(len(data), start + int(rng.expovariate(1 / 30)))


def _flip(data: bytes, samples: Sequence[bytes], rng: random.Random) -> bytes:
    flips = bytearray(data)
    for _ in range(rng.choice((1, 1, 4, 16)) if data else 0):
        flips[rng.randrange(len(data))] = rng.randrange(256)
    return bytes(flips)


def _cut(data: bytes, samples: Sequence[bytes], rng: random.Random) -> bytes:
    start, end = _span(data, rng)
    return data[:start] if rng.random() < 0.3 else data[:start] + data[end:]


def _repeat(data: bytes, samples: Sequence[bytes], rng: random.Random) -> bytes:
    start, end = _span(data, rng)
    return data[:end] + data[start:end] * rng.choice((1, 2, 50, 2000)) + data[end:]


def _splice(data: bytes, samples: Sequence[bytes], rng: random.Random) -> bytes:
    sample = rng.choice(samples)
    return data[: rng.randrange(len(data) + 1)] + sample[rng.randrange(len(sample) + 1) :]


def _insert(data: bytes, samples: Sequence[bytes], rng: random.Random) -> bytes:
    start, end = _span(data, rng)
    return data[:start] + rng.choice(TOKENS) + data[start if rng.random() < 0.5 else end :]


def _nest(data: bytes, samples: Sequence[bytes], rng: random.Random) -> bytes:
    start, depth = rng.randrange(len(data) + 1), rng.choice((50, 900, 20_000))
    head, tail = rng.choice(((b"[", b"]"), (b'{"a":', b"}"), (b"<div>", b"</div>"), (b"(", b")"), (b"> ", b"")))
    return data[:start] + head * depth + b"1" + tail * rng.choice((0, depth)) + data[start:]


def _lengthen(data: bytes, samples: Sequence[bytes], rng: random.Random) -> bytes:
    start = rng.randrange(len(data) + 1)
    filler = rng.choice((b"a", b"a ", b" ", b"\0", b"9", b"\xe6\x9d\xb1", b".", b"[1] ", *TOKENS))
    return data[:start] + filler * (rng.choice((10_000, 300_000, 3_000_000)) // len(filler)) + data[start:]


def _encode(data: bytes, samples: Sequence[bytes], rng: random.Random) -> bytes:
    encoding = rng.choice(("utf-16", "utf-16-le", "utf-32", "latin-1", "utf-8-sig"))
    line_end = rng.choice(("\n", "\r\n", "\r"))
    return data.decode("utf-8", "replace").replace("\n", line_end).encode(encoding, "replace")


CHANGES: Sequence[Callable[[bytes, Sequence[bytes], random.Random], bytes]] = (
    _flip, _cut, _repeat, _splice, _insert, _nest, _lengthen, _encode,
)  # fmt: skip
WEIGHTS = (20, 14, 10, 10, 50, 2, 0.7, 3)


# --- structures ------------------------------------------------------------------------------------------------------


def _change_json(data: bytes, rng: random.Random) -> bytes | None:
    """JSON, or a line of JSON lines, with values and keys changed; None if the data are neither."""
    lines = data.splitlines(keepends=True)
    number = rng.randrange(len(lines)) if lines else 0
    try:
        if len(lines) > 1 and lines[number].startswith(b"{"):
            lines[number] = _change_values(json.loads(lines[number]), rng) + b"\n"
            return b"".join(lines)
        return _change_values(json.loads(data), rng)
    except (ValueError, RecursionError):
        return None


def _change_values(value: Any, rng: random.Random) -> bytes:  # noqa: ANN401  (JSON)
    """JSON with some values replaced, and keys dropped or renamed."""
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        containers = list(_containers(value))
        if not containers:
            return json.dumps(rng.choice(VALUES)).encode()
        container = rng.choice(containers)
        key = rng.choice(list(container) if isinstance(container, dict) else range(len(container)))
        match rng.randrange(5):
            case 0:
                del container[key]
            case 1 if isinstance(container, dict):
                container[rng.choice(("", "x", "\ud800", "id", "text", key.upper()))] = container.pop(key)
            case 1:
                container.extend([container[key]] * rng.choice((1, 3, 500)))
            case 2:
                container[key] = json.loads(json.dumps(rng.choice(containers)))
            case 3 if isinstance(container[key], str):
                text = mutate(container[key].encode("utf-8", "surrogatepass"), TOKENS, rng)
                container[key] = text.decode("utf-8", rng.choice(("replace", "surrogateescape")))
            case _:
                container[key] = rng.choice(VALUES)
    return json.dumps(value, ensure_ascii=rng.random() < 0.7).encode("utf-8", "surrogatepass")


def _containers(value: Any) -> Sequence[Any]:  # noqa: ANN401  (JSON)
    """The lists and objects in a JSON value that hold something."""
    if not isinstance(value, dict | list) or not value:
        return []
    items = value.values() if isinstance(value, dict) else value
    return [value, *(container for item in items for container in _containers(item))]


def _change_member(data: bytes, rng: random.Random) -> bytes:
    """An archive with a file changed, dropped or renamed."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    name = rng.choice(sorted(files))
    match rng.randrange(12):
        case 0:
            del files[name]
        case 1:
            files[rng.choice(("../../x", "x", name.upper()))] = files.pop(name)
        case _:
            files[name] = mutate(files[name], list(files.values()), rng)
    return pack(files)
