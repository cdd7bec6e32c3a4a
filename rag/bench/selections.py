"""A part of a corpus, by ids: the passages of a list, and a sample of the others by a hash of their id.

The part is a file of its own, which depends on the passages alone, not on their order or on the files that hold them.
"""

import re
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from autoais.base.io.jsonl import dumps, write_atomic
from autoais.base.io.schema import Schema
from autoais.base.io.schema import record as record_schema
from autoais.base.progress import Progress, no_progress
from autoais.formats.corpora import read_passages
from rag.base.errors import FormatError, RagError, UsageError
from rag.base.types import Passage

FORMAT = "miracl"
"""The corpus format of the file of a selection."""

_COUNT_SCHEMA: Schema = {"type": "integer", "minimum": 0}
_COUNTS = ("passages", "of", "listed", "missing", "changed")
RECORD: Schema = record_schema(
    {
        "source": {"type": "object"},
        "selection": record_schema({**dict.fromkeys(_COUNTS, _COUNT_SCHEMA), "examples": {"type": "object"}}),
    }
)
"""What is beside the file of a selection: the corpus it is of, and what it holds (`write_selection`)."""

_MAX_BYTES = 1 << 28  # of a list
_MAX_CHARACTERS = 400  # of an id
_DIGITS = re.compile(r"[0-9a-f]{8,64}")
_COUNT = re.compile(r"(\d{1,12})([km]?)", re.ASCII | re.IGNORECASE)
_UNITS = {"": 1, "k": 1000, "m": 1_000_000}
_OTHERS = 1 << 63  # the keys of passages that are in no list start here
_SPARE = 1000  # passages that a draw may hold besides twice the sample
_MAX_DEVIATION = 0.05  # share of a list that may be missing, or have another text


@dataclass(frozen=True, slots=True)
class Selection:
    """The passages with these ids, and with `size` as many others as make `size` passages of them all.

    `ids` gives the first digits of the SHA-256 of a passage's text, or none. The others are those with the smallest
    SHA-256 of their id. Raises `UsageError` for a `size` that cannot hold the ids.
    """

    ids: Mapping[str, str]
    size: int | None = None

    def __post_init__(self) -> None:
        if self.size is not None and self.size < max(1, len(self.ids)):
            raise UsageError(
                f"a sample of {self.size:,} passages is too small: it also has the {len(self.ids):,} gold or listed "
                f"passages of the benchmark; take more (--corpus-sample)"
            )

    def record(self) -> dict[str, Any]:
        """Return what tells a selection from others: its size, and the checksum of its ids."""
        text = "".join(f"{key}\t{digits}\n" for key, digits in sorted(self.ids.items()))
        return {"sample": self.size, "ids": _digest(text).hex()}


def parse_count(text: str) -> int:
    """Return a number of passages such as `500k`, `2M` or `1000`; raises `UsageError` for anything else."""
    match = _COUNT.fullmatch(text.strip())
    if match is None or not int(match[1]):
        raise UsageError(f"{text[:40]!r} is no number of passages; write it as 500k, 2M or 1000")
    return int(match[1]) * _UNITS[match[2].lower()]


def read_ids(path: Path) -> dict[str, str]:
    """Read a list of ids, one a line, each with the first digits of its text's SHA-256 after a tab, or without.

    Raises `FormatError` for a line that is neither, an id that occurs twice, and a file without any.
    """
    ids: dict[str, str] = {}
    for number, line in enumerate(_lines(path), 1):
        key, _, digits = line.partition("\t")
        location = f"{path}:{number}"
        if not key.strip() or not key.isprintable() or len(key) > _MAX_CHARACTERS:
            raise FormatError(
                f"{location}: expected an id of 1 to {_MAX_CHARACTERS} printable characters, found {key[:40]!r}"
            )
        if digits and not _DIGITS.fullmatch(digits):
            raise FormatError(f"{location}: expected 8 to 64 hexadecimal digits after the tab, found {digits[:40]!r}")
        if key in ids:
            raise FormatError(f"{location}: id {key!r} occurs twice")
        ids[key] = digits
    if not ids:
        raise FormatError(f"{path}: holds no ids; write one a line")
    return ids


def _lines(path: Path) -> list[str]:
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise RagError(f"{path}: cannot be read: {error.strerror}; name a list of ids") from error
    if len(content) > _MAX_BYTES:
        raise FormatError(f"{path}: longer than {_MAX_BYTES >> 20} MiB; is it a list of ids?")
    try:
        lines = content.decode("utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        raise FormatError(f"{path}: not UTF-8 at byte {error.start}; write one id a line") from error
    return [line.removesuffix("\r") for line in lines[: -1 if not lines[-1] else None]]


def write_selection(
    files: Sequence[Path],
    format: str | None,  # noqa: A002  (named as in `build_index`)
    selection: Selection,
    target: Path,
    progress: Progress = no_progress,
) -> dict[str, Any]:
    """Write the selected passages of corpus files to a file (jsonl), by the hash of their id; return what it holds.

    `passages` are in the file, `of` in the corpus; `listed` ids were asked for, of which `missing` are not in the
    corpus and `changed` have another text than the list says; `examples` has a first id of each. The corpus is read
    once. In memory are the ids, and about 100 bytes a passage of the sample; files without a name beside the target
    take up to three times the room of the sample. Raises `FormatError` for a broken line.
    """
    total_bytes = sum(path.stat().st_size for path in files)
    target.parent.mkdir(parents=True, exist_ok=True)
    ids, absent, changed = selection.ids, set(selection.ids), list[str]()
    total = done_bytes = 0
    with _Draw(target.parent, selection.size) as draw:
        for path in files:

            def show(position: int, before: int = done_bytes) -> None:
                progress("selecting passages", before + position, total_bytes)

            for _, passage in read_passages(path, format, show):
                if isinstance(passage, FormatError):
                    raise passage
                total += 1
                is_listed = passage.id in ids
                if is_listed:
                    absent.discard(passage.id)
                    if not _digest(passage.text).hex().startswith(ids[passage.id]):
                        changed.append(passage.id)
                if is_listed or selection.size is not None:
                    draw.add(_key(passage.id, is_listed=is_listed), passage)
            done_bytes += path.stat().st_size
        if not draw.count:
            content = f"none of the {len(ids):,} listed passages" if total else "no passages"
            raise RagError(f"{files[0]}: holds {content}; is it the right corpus?")
        write_atomic(target, draw.lines())
        count = draw.count
    examples = {"missing": sorted(absent)[:1], "changed": sorted(changed)[:1]}
    return {
        "passages": count,
        "of": total,
        "listed": len(ids),
        "missing": len(absent),
        "changed": len(changed),
        "examples": {name: key for name, keys in examples.items() for key in keys},
    }


def check_list(record: Mapping[str, Any], source: Path) -> None:
    """Raise `RagError` if so many passages of a list are missing, or have another text, that it is another corpus."""
    if record["missing"] + record["changed"] > _MAX_DEVIATION * record["listed"]:
        raise RagError(f"{source} is not the corpus of the list of ids: {describe_deviations(record)}")


def describe_deviations(record: Mapping[str, Any]) -> str:
    """Return how many passages of a list are missing or have another text, on one line; empty if none."""
    meanings = {"missing": "not in the corpus", "changed": "with another text there"}
    parts = [
        f"{record[name]:,} {meaning} (such as {record['examples'].get(name, '')!r:.80})"
        for name, meaning in meanings.items()
        if record[name]
    ]
    return f"of {record['listed']:,} listed passages, {' and '.join(parts)}" if parts else ""


def sample_of(run_record: Mapping[str, Any]) -> dict[str, int] | None:
    """Return `passages` and `of`, how many of the corpus, if a run (`run.json`) has searched a sample."""
    is_sample = any(facts.get("sample") for facts in run_record["data"]["corpus"].values())
    selections = [index["selection"] for index in run_record["indexes"].values() if "selection" in index]
    return {name: selections[0][name] for name in ("passages", "of")} if is_sample and selections else None


def describe_sample(record: Mapping[str, Any] | None) -> str:
    """Return `sample of N of M passages`; empty for what is no sample."""
    return "" if not record else f"sample of {record['passages']:,} of {record['of']:,} passages"


def _digest(text: str) -> bytes:
    return sha256(text.encode("utf-8", "surrogatepass")).digest()


def _key(identifier: str, *, is_listed: bool) -> int:
    """The place of a passage in the order of a selection: those that are listed first, then by the hash of the id."""
    number = int.from_bytes(_digest(identifier)[:8]) >> 1
    return number if is_listed else number | _OTHERS


class _Draw:
    """The passages with the smallest keys, `size` of them (None: all), in a file without a name in a folder.

    A context that closes the file.
    """

    def __init__(self, folder: Path, size: int | None) -> None:
        self._folder, self._size = folder, size
        self._file = TemporaryFile(dir=folder)  # noqa: SIM115
        self._keys, self._starts, self._end = array("Q"), array("Q"), 0
        self._limit = 1 << 64  # keys from here on are not drawn

    def __enter__(self) -> "_Draw":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    @property
    def count(self) -> int:
        """The number of passages that are drawn."""
        return len(self._keys) if self._size is None else min(len(self._keys), self._size)

    def add(self, key: int, passage: Passage) -> None:
        if key < self._limit:
            self._write(key, f"{dumps(_row(passage))}\n".encode())
            if self._size is not None and len(self._keys) >= 2 * self._size + _SPARE:
                self._prune()

    def lines(self) -> Iterator[str]:
        """Yield the lines of the passages that are drawn, in the order of their keys, without line ends."""
        for place in self._order:
            self._file.seek(self._starts[place])
            yield self._file.readline().decode().removesuffix("\n")

    @property
    def _order(self) -> list[int]:
        return sorted(range(len(self._keys)), key=self._keys.__getitem__)[: self._size]

    def _write(self, key: int, line: bytes) -> None:
        self._keys.append(key)
        self._starts.append(self._end)
        self._file.write(line)
        self._end += len(line)

    def _prune(self) -> None:
        """Drop the passages that no longer can be drawn, and the room they take."""
        self._limit = self._keys[self._order[-1]] + 1
        with self._file as old_file:
            keys, self._file = self._keys, TemporaryFile(dir=self._folder)  # noqa: SIM115
            self._keys, self._starts, self._end = array("Q"), array("Q"), 0
            old_file.seek(0)
            for key, line in zip(keys, old_file, strict=True):
                if key < self._limit:
                    self._write(key, line)


def _row(passage: Passage) -> dict[str, str]:
    section = {"section": passage.section} if passage.section else {}
    return {"docid": passage.id, "title": passage.title, **section, "text": passage.text}
