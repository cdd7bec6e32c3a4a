"""Corpus readers: streams of passages from corpus formats and from documents."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import ClassVar

from autoais.corpora import check_corpus_format, detect_corpus, read_passages
from rag.corpus.documents import SUFFIXES, read_document
from rag.corpus.sources import DOCUMENTS as DOCUMENTS
from rag.corpus.sources import Source, SourceFile, check_globs, prefixes, selected
from rag.errors import FormatError, IndexingError
from rag.types import Passage

_UNPACKED = {".zst": 5.0, ".gz": 3.0}  # typical expansion of JSON text, for the estimate before a build


@dataclass
class Corpus:
    """Sources that are read as one stream of passages, and counts of what was read so far.

    With `skip_bad`, broken lines and passages are skipped and counted in `bad`, with the first 20 errors in `reasons`;
    otherwise the first one raises `FormatError`. The globs `include` and `exclude` choose the files of folders.
    """

    sources: Sequence[Path]
    format: str | None = None
    skip_bad: bool = False
    bytes_read: int = 0
    formats: set[str] = field(default_factory=set)
    bad: int = 0
    reasons: list[str] = field(default_factory=list)
    include: Sequence[str] = ()
    exclude: Sequence[str] = ()
    unit: ClassVar[str | None] = None  # of `bytes_total`, if not bytes

    def __post_init__(self) -> None:
        if not self.sources:
            raise IndexingError("no source was given")
        for source in self.sources:
            if not source.exists():
                raise IndexingError(f"source {source} does not exist")
        check_corpus_format(self.format, [DOCUMENTS])
        self.include, self.exclude = check_globs(self.include), check_globs(self.exclude)

    @classmethod
    def of(cls, described: Sequence[Source], *, skip_bad: bool = False) -> "Corpus":
        """A corpus of sources whose formats and names of files are known."""
        corpus = cls([source.path for source in described], skip_bad=skip_bad)
        corpus.described = list(described)
        return corpus

    @cached_property
    def described(self) -> list[Source]:
        """The sources with their formats, globs and the prefixes of their files' names."""
        globs = (tuple(self.include), tuple(self.exclude))
        formats = [self.format or sniff(source, *globs) for source in self.sources]
        return [Source(*each, *globs) for each in zip(self.sources, formats, prefixes(self.sources), strict=True)]

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
            yield from _walk(source, self.include, self.exclude) if source.is_dir() else [source]

    def files(self) -> Iterator[SourceFile]:
        """Yield the files in the order of sources and paths."""
        for source in self.described:
            folder = source.path.is_dir()
            for path in _walk(source.path, source.include, source.exclude) if folder else [source.path]:
                yield source.file(path)

    def read(self) -> Iterator[tuple[str, Passage]]:
        """Yield (location, passage) in the order of files and lines; every passage has an id and text."""
        self.bytes_read = 0
        for file in self.files():
            yield from self.read_file(file)

    def read_file(self, file: SourceFile) -> Iterator[tuple[str, Passage]]:
        """Yield (location, passage) of one file."""
        self.formats.add(file.source.format)
        if file.source.format == DOCUMENTS:
            yield from self._document(file)
        else:
            yield from self._records(file.path, file.source.format)

    def refuse(self, error: FormatError) -> None:
        """Count a broken item, or raise it."""
        if not self.skip_bad:
            raise FormatError(f"{error} (--skip-bad skips broken items)") from error
        self.bad += 1
        if len(self.reasons) < 20:
            self.reasons.append(str(error))

    def _document(self, file: SourceFile) -> Iterator[tuple[str, Passage]]:
        try:
            passages = read_document(file.path, file.name)
        except FormatError as error:
            self.refuse(error)
            return
        self.bytes_read += file.path.stat().st_size
        yield from ((f"{file.path}#{number}", passage) for number, passage in enumerate(passages, 1))

    def _records(self, source: Path, name: str) -> Iterator[tuple[str, Passage]]:
        before = self.bytes_read

        def report(position: int) -> None:
            self.bytes_read = before + position

        for where, passage in read_passages(source, name, report):
            if isinstance(passage, FormatError):
                self.refuse(passage)
            else:
                yield where, passage


def _walk(folder: Path, include: Sequence[str] = (), exclude: Sequence[str] = ()) -> Iterator[Path]:
    """The documents below a folder in the order of their paths; hidden files and folders are skipped."""
    for path in sorted(folder.rglob("*")):
        within = path.relative_to(folder)
        visible = not any(part.startswith(".") for part in within.parts)
        wanted = visible and path.suffix.lower() in SUFFIXES and selected(within.as_posix(), include, exclude)
        if wanted and path.is_file():
            yield path


def sniff(source: Path, include: Sequence[str] = (), exclude: Sequence[str] = ()) -> str:
    """Detect the format of a source from its first lines, or its suffix; raises `FormatError` if it is unknown."""
    if source.is_dir():
        if next(_walk(source, include, exclude), None) is None:
            chosen = " that --include and --exclude choose" if include or exclude else ""
            raise IndexingError(f"{source} holds no documents ({', '.join(sorted(SUFFIXES))}){chosen}")
        return DOCUMENTS
    if source.suffix.lower() in SUFFIXES:
        return DOCUMENTS
    try:
        return detect_corpus(source)
    except FormatError as error:
        raise FormatError(f"{error}; name the format with --format (also {DOCUMENTS})") from error
