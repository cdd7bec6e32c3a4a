"""Corpus readers: streams of passages from corpus formats and from documents."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from autoais.corpora import check_corpus_format, detect_corpus, read_passages
from rag.corpus.documents import SUFFIXES, read_document
from rag.errors import FormatError, IndexingError
from rag.types import Passage

_UNPACKED = {".zst": 5.0, ".gz": 3.0}  # typical expansion of JSON text, for the estimate before a build


DOCUMENTS = "documents"


@dataclass
class Corpus:
    """Sources that are read as one stream of passages, and counts of what was read so far.

    With `skip_bad`, broken lines and passages are skipped and counted in `bad`, with the first 20 errors in `reasons`;
    otherwise the first one raises `FormatError`.
    """

    sources: Sequence[Path]
    format: str | None = None
    skip_bad: bool = False
    bytes_read: int = 0
    formats: set[str] = field(default_factory=set)
    bad: int = 0
    reasons: list[str] = field(default_factory=list)
    unit: ClassVar[str | None] = None  # of `bytes_total`, if not bytes

    def __post_init__(self) -> None:
        if not self.sources:
            raise IndexingError("no source was given")
        for source in self.sources:
            if not source.exists():
                raise IndexingError(f"source {source} does not exist")
        check_corpus_format(self.format, [DOCUMENTS])

    @property
    def bytes_total(self) -> int:
        """The size of all source files on disk, in bytes; the final value of `bytes_read`."""
        return sum(path.stat().st_size for path in self._files())

    @property
    def bytes_unpacked(self) -> int:
        """An estimate of the size after decompression, in bytes."""
        return int(sum(path.stat().st_size * _UNPACKED.get(path.suffix, 1.0) for path in self._files()))

    def _files(self) -> Iterator[Path]:
        for source in self.sources:
            yield from _walk(source) if source.is_dir() else [source]

    def read(self) -> Iterator[tuple[str, Passage]]:
        """Yield (location, passage) in the order of sources and lines; every passage has an id and text."""
        self.bytes_read = 0
        for source in self.sources:
            name = self.format or sniff(source)
            self.formats.add(name)
            if name == DOCUMENTS:
                yield from self._documents(source)
            else:
                yield from self._records(source, name)

    def refuse(self, error: FormatError) -> None:
        """Count a broken item, or raise it."""
        if not self.skip_bad:
            raise FormatError(f"{error} (--skip-bad skips broken items)") from error
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

    def _records(self, source: Path, name: str) -> Iterator[tuple[str, Passage]]:
        before = self.bytes_read

        def report(position: int) -> None:
            self.bytes_read = before + position

        for where, passage in read_passages(source, name, report):
            if isinstance(passage, FormatError):
                self.refuse(passage)
            else:
                yield where, passage


def _walk(folder: Path) -> Iterator[Path]:
    """The documents below a folder in the order of their paths; hidden files and folders are skipped."""
    for path in sorted(folder.rglob("*")):
        visible = not any(part.startswith(".") for part in path.relative_to(folder).parts)
        if visible and path.suffix.lower() in SUFFIXES and path.is_file():
            yield path


def sniff(source: Path) -> str:
    """Detect the format of a source from its first lines, or its suffix; raises `FormatError` if it is unknown."""
    if source.is_dir():
        if next(_walk(source), None) is None:
            raise IndexingError(f"{source} holds no documents ({', '.join(sorted(SUFFIXES))})")
        return DOCUMENTS
    if source.suffix.lower() in SUFFIXES:
        return DOCUMENTS
    try:
        return detect_corpus(source)
    except FormatError as error:
        raise FormatError(f"{error}; name the format with --format (also {DOCUMENTS})") from error
