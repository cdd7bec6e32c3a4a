"""Corpus readers: streams of passages from the field's formats and from one's own documents."""

import csv
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from autoais.io.files import lines
from autoais.io.jsonl import field as json_field
from autoais.io.jsonl import identifier, parse_object
from autoais.text import wikipedia
from rag.corpus.documents import SUFFIXES, read_document
from rag.errors import FormatError, IndexingError
from rag.types import Passage

_UNPACKED = {".zst": 5.0, ".gz": 3.0}  # typical growth of JSON text, for the estimate that is printed before a build


def _miracl(line: bytes, where: str) -> Passage:
    row = parse_object(line, where)
    return _passage(row, "docid", where)


def _beir(line: bytes, where: str) -> Passage:
    row = parse_object(line, where)
    return _passage(row, "_id", where)


def _pyserini(line: bytes, where: str) -> Passage:
    row = parse_object(line, where)
    return Passage(identifier(row, "id", where), "", json_field(row, "contents", str, where))


def _aqa(line: bytes, where: str) -> Passage:
    row = parse_object(line, where)
    contents = json_field(row, "contents", str, where)
    parts = wikipedia.parse(contents)
    if parts is None:
        raise FormatError(f"{where}: field 'contents' should be '« Title » « Title, Section » text'")
    return Passage(identifier(row, "id", where), parts.title, parts.text, parts.section)


def _dpr(line: bytes, where: str) -> Passage:
    try:
        cells = next(csv.reader([line.decode("utf-8")], delimiter="\t"), [])
    except UnicodeDecodeError as error:
        raise FormatError(f"{where}: not UTF-8 at byte {error.start}") from error
    except csv.Error as error:
        raise FormatError(f"{where}: not a TSV row: {error}") from error
    if len(cells) != 3:
        raise FormatError(f"{where}: three columns (id, text, title) were expected, found {len(cells)}")
    key, text, title = cells
    return Passage(key, title, text)


def _passage(row: dict[str, Any], key: str, where: str) -> Passage:
    # A missing title is allowed (767 MIRACL passages of the pool have none), a missing text is not.
    title = json_field(row, "title", str, where) if row.get("title") is not None else ""
    return Passage(identifier(row, key, where), title, json_field(row, "text", str, where))


# name -> one line to one passage
FORMATS: dict[str, Callable[[bytes, str], Passage]] = {
    "miracl": _miracl,
    "aqa": _aqa,
    "dpr": _dpr,
    "beir": _beir,
    "pyserini": _pyserini,
}
DOCUMENTS = "documents"


@dataclass
class Corpus:
    """Sources to read as one stream of passages, and what the reading has come to so far.

    With `skip_bad`, broken lines and passages are counted in `bad` (its first 20 reasons kept in `reasons`);
    without, the first one is a `FormatError`.
    """

    sources: Sequence[Path]
    format: str | None = None
    skip_bad: bool = False
    bytes_read: int = 0
    formats: set[str] = field(default_factory=set)
    bad: int = 0
    reasons: list[str] = field(default_factory=list)
    unit: ClassVar[str | None] = None  # of `bytes_total`, where that is not bytes

    def __post_init__(self) -> None:
        if not self.sources:
            raise IndexingError("no source was given")
        for source in self.sources:
            if not source.exists():
                raise IndexingError(f"source {source} does not exist")
        known = [*FORMATS, DOCUMENTS]
        if self.format is not None and self.format not in known:
            raise IndexingError(f"no corpus format called {self.format!r}; there are: {', '.join(known)}")

    @property
    def bytes_total(self) -> int:
        """Bytes of all source files as they lie on disk; `bytes_read` runs up to it."""
        return sum(path.stat().st_size for path in self._files())

    @property
    def bytes_unpacked(self) -> int:
        """An estimate of the bytes after decompression."""
        return int(sum(path.stat().st_size * _UNPACKED.get(path.suffix, 1.0) for path in self._files()))

    def _files(self) -> Iterator[Path]:
        for source in self.sources:
            yield from _walk(source) if source.is_dir() else [source]

    def read(self) -> Iterator[tuple[str, Passage]]:
        """Yield (where it stands, passage), in the order of sources and lines; every passage has an id and text."""
        self.bytes_read = 0
        for source in self.sources:
            name = self.format or sniff(source)
            self.formats.add(name)
            if name == DOCUMENTS:
                yield from self._documents(source)
            else:
                yield from self._records(source, FORMATS[name])

    def refuse(self, error: FormatError) -> None:
        """Count a broken item, or raise it."""
        if not self.skip_bad:
            raise FormatError(f"{error} (--skip-bad passes over what is broken)") from error
        self.bad += 1
        if len(self.reasons) < 20:
            self.reasons.append(str(error))

    def _documents(self, source: Path) -> Iterator[tuple[str, Passage]]:
        root = source if source.is_dir() else source.parent
        if len(self.sources) > 1:
            root = root.absolute().parent  # two folders may both hold a README.md
        for path in _walk(source) if source.is_dir() else [source]:
            try:
                passages = read_document(path, path.absolute().relative_to(root.absolute()).as_posix())
            except FormatError as error:
                self.refuse(error)
                continue
            self.bytes_read += path.stat().st_size
            yield from ((f"{path}#{number}", passage) for number, passage in enumerate(passages, 1))

    def _records(self, source: Path, parse: Callable[[bytes, str], Passage]) -> Iterator[tuple[str, Passage]]:
        before, name = self.bytes_read, str(source)
        for number, (line, position) in enumerate(_lines(source), 1):
            if not line.strip() or (parse is _dpr and number == 1 and _is_dpr_header(line)):
                continue
            where = f"{name}:{number}"
            self.bytes_read = before + position
            try:
                passage = parse(line, where)
                _check(passage, where)
            except FormatError as error:
                self.refuse(error)
            else:
                yield where, passage


def _check(passage: Passage, where: str) -> None:
    if not passage.id.strip():
        raise FormatError(f"{where}: the id is empty")
    if not passage.text.strip():
        raise FormatError(f"{where}: passage {passage.id!r} has no text")


def _walk(folder: Path) -> Iterator[Path]:
    """Documents below a folder in the order of their paths; hidden files and folders are passed over."""
    for path in sorted(folder.rglob("*")):
        visible = not any(part.startswith(".") for part in path.relative_to(folder).parts)
        if visible and path.suffix.lower() in SUFFIXES and path.is_file():
            yield path


def sniff(source: Path) -> str:
    """The format of a source, from its first line (or its suffix, for documents); `IndexingError` if unknown."""
    if source.is_dir():
        if next(_walk(source), None) is None:
            raise IndexingError(f"{source} holds no documents ({', '.join(sorted(SUFFIXES))})")
        return DOCUMENTS
    if source.suffix.lower() in SUFFIXES:
        return DOCUMENTS
    line = next((line for line, _ in _lines(source) if line.strip()), b"")
    if not line:
        raise IndexingError(f"{source} is empty")
    if _is_dpr_header(line) or (not line.startswith(b"{") and line.count(b"\t") == 2):
        return "dpr"
    try:
        row = json.loads(line.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        row = None
    keys = set(row) if isinstance(row, dict) else set()
    if {"docid", "text"} <= keys:
        return "miracl"
    if {"_id", "text"} <= keys:
        return "beir"
    if {"id", "contents"} <= keys:
        return "aqa" if str(row["contents"]).startswith("« ") else "pyserini"
    raise IndexingError(
        f"{source}:1: not a format known here; name one with --format: {', '.join([*FORMATS, DOCUMENTS])}"
    )


def _is_dpr_header(line: bytes) -> bool:
    return line.rstrip(b"\r\n") == b"id\ttext\ttitle"


def _lines(path: Path) -> Iterator[tuple[bytes, int]]:
    """Yield (line, bytes of the file consumed); a .gz or .zst that breaks off is a `FormatError`."""
    position = 0

    def tell(consumed: int) -> None:
        nonlocal position
        position = consumed

    for line in lines(path, tell):
        yield line, position
