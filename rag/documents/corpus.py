"""A corpus: a stream of passages from corpus files and from documents."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from autoais.formats.corpora import check_corpus_format, detect_corpus, read_passages
from rag.base.errors import FormatError, IndexingError
from rag.base.types import DOCUMENTS, Passage
from rag.documents import SUFFIXES, is_document, load_document, missing_program
from rag.documents.duplicates import Duplicates, Sketch, pack_sketch, passage_key, sketch_of
from rag.documents.folders import documents_below
from rag.documents.report import EXAMPLES, ReadReport, describe_loss
from rag.documents.sources import Shard, Source, SourceFile, check_globs, home_of, prefixes

_UNPACKED = {".zst": 5.0, ".gz": 3.0}  # typical expansion of JSON text, for the estimate before a build
_ARCHIVES = (".zip", ".tar", ".tgz", ".tar.gz", ".tar.bz2", ".tar.xz", ".7z", ".whl")


@dataclass
class Corpus:
    """Sources that are read as one stream of passages; `report` tells what was read since the latest pass began.

    A document of a folder that cannot be read is skipped; with `strict`, the first one raises `FormatError`. Broken
    lines of a corpus file raise it, unless `skip_bad` skips them too. The globs `include` and `exclude` choose the
    files of folders. `urls` are those of the sources that mirror pages. With a `shard`, only its part is read.
    """

    sources: Sequence[Path]
    format: str | None = None
    skip_bad: bool = False
    include: Sequence[str] = ()
    exclude: Sequence[str] = ()
    strict: bool = False
    urls: Mapping[Path, str] = field(default_factory=dict)
    shard: Shard | None = None
    report: ReadReport = field(init=False, default_factory=ReadReport)

    def __post_init__(self) -> None:
        if not self.sources:
            raise IndexingError("no source was given")
        for source in self.sources:
            if not source.exists():
                raise IndexingError(f"source {source} does not exist")
        check_corpus_format(self.format, [DOCUMENTS])
        self.include, self.exclude = check_globs(self.include), check_globs(self.exclude)
        self._duplicates: dict[Source, Duplicates] = {}  # of the folders of this pass

    @classmethod
    def of(cls, described: Sequence[Source], *, skip_bad: bool = False, strict: bool = False) -> "Corpus":
        """A corpus of sources whose formats and names of files are known."""
        corpus = cls([source.path for source in described], skip_bad=skip_bad, strict=strict)
        corpus.described = list(described)
        return corpus

    @cached_property
    def described(self) -> list[Source]:
        """The sources with their formats, globs and the prefixes of their files' names."""
        globs, urls = (tuple(self.include), tuple(self.exclude)), [self.urls.get(path, "") for path in self.sources]
        formats = [self.format or sniff(source, *globs) for source in self.sources]
        names = prefixes([home_of(path, url) for path, url in zip(self.sources, urls, strict=True)])
        rows = zip(self.sources, formats, names, urls, strict=True)
        return [Source(path, kind, name, *globs, url, self.shard) for path, kind, name, url in rows]

    @property
    def bytes_total(self) -> int:
        """The size of all source files on disk, in bytes; the final value of `report.bytes_read`."""
        return sum(_size(path) for path in self._paths())

    @property
    def bytes_unpacked(self) -> int:
        """An estimate of the size after decompression, in bytes."""
        return int(sum(_size(path) * _UNPACKED.get(path.suffix, 1.0) for path in self._paths()))

    def _paths(self) -> Iterator[Path]:
        for source in self.sources:
            yield from documents_below(source, self.include, self.exclude) if source.is_dir() else [source]

    def read(self) -> Iterator[tuple[str, Passage]]:
        """Yield (location, passage) in the order of files and lines; every passage has an id and text."""
        has_passages = False
        for file in self.files():
            for item in self.read_file(file):
                has_passages = True
                yield item
        if not has_passages and self.report.reasons:
            raise FormatError(self.report.reasons[0])

    def files(self) -> Iterator[SourceFile]:
        """Begin a pass and its report; yield the files in the order of sources and paths."""
        self.report, self._duplicates = ReadReport(), {}
        for source in self.described:
            if source.path.is_dir():
                result = documents_below(source.path, source.include, source.left_out, self.report)
                files = [source.file(path) for path in result]
                self.report.escaped += (file.name for file in files if not file.name.endswith(file.within))
                self._duplicates[source] = _duplicates_of(files)
                yield from self._of_shard(files)
            else:
                single = [source.file(source.path)]
                yield from self._of_shard(single) if source.format == DOCUMENTS else single

    def _of_shard(self, files: Iterable[SourceFile]) -> Iterator[SourceFile]:
        for file in files:
            if file.source.shard is None or file.source.shard.holds(file.name):
                yield file
            else:
                self.report.bytes_read += _size(file.path)
                self.report.passed["file of another shard"] += 1

    def read_file(self, file: SourceFile) -> Iterator[tuple[str, Passage]]:
        """Yield (location, passage) of one file."""
        if file.source.format == DOCUMENTS:
            yield from self._document(file)
        else:
            yield from self._records(file)

    def refuse(self, error: FormatError) -> None:
        """Skip a broken item, or raise the error."""
        if not self.skip_bad:
            raise FormatError(f"{error}; skip_bad (--skip-bad) skips broken items") from error
        self.report.skip(error)

    def _document(self, file: SourceFile) -> Iterator[tuple[str, Passage]]:
        report = self.report
        duplicates = self._duplicates.get(file.source)  # an update has none: it compares all files later
        page = duplicates.page_of(file.name) if duplicates is not None else None
        if page is not None:
            report.bytes_read += _size(file.path)
            report.duplicates[file.name] = page
            return
        try:
            document = load_document(file.path, file.name)
        except FormatError as error:
            if self.strict:
                raise
            report.skip(error)
            report.bytes_read += _size(file.path)
            return
        report.bytes_read += _size(file.path)
        if file.within and document.passages:  # of a folder
            sketch = sketch_of(document)
            report.sketches[file.name] = pack_sketch(sketch)
            if duplicates is not None:
                if (duplicate := duplicates.find(file.name, sketch)) is not None:
                    report.duplicates[file.name] = duplicate
                    return
                duplicates.add(file.name, sketch)
        report.dropped.update(document.dropped)
        if loss := describe_loss(document.dropped, len(document.passages)):
            report.losses[file.name] = loss
        for number, passage in enumerate(document.passages, 1):
            if file.within and duplicates is not None:
                key = passage_key(passage)
                if (first := duplicates.first_file(key, file.name)) != file.name:
                    report.repeats.setdefault(file.name, []).append(key)
                    report.repeat = report.repeat if report.repeat[0] else (passage.id, first)
                    continue
            yield f"{file.path}#{number}", passage

    def _records(self, file: SourceFile) -> Iterator[tuple[str, Passage]]:
        report, shard = self.report, file.source.shard
        before = report.bytes_read

        def progress(position: int) -> None:
            report.bytes_read = before + position

        for location, passage in read_passages(file.path, file.source.format, progress):
            if isinstance(passage, FormatError):
                self.refuse(passage)
            elif shard is None or shard.holds(passage.id):
                yield location, passage


def _duplicates_of(files: Iterable[SourceFile]) -> Duplicates:
    """What finds repeats among the files of a folder."""
    paths = {file.name: file.path for file in files}

    def read(name: str) -> Sketch | None:
        try:
            return sketch_of(load_document(paths[name], name))
        except FormatError:
            return None

    return Duplicates(paths, read)


def _size(path: Path) -> int:
    """The size of a file; 0 for one that is gone."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


def sniff(source: Path, include: Sequence[str] = (), exclude: Sequence[str] = ()) -> str:
    """Detect the format of a source from its first lines, or its suffix; raises `FormatError` if it is unknown."""
    if source.is_dir():
        report = ReadReport()
        if next(documents_below(source, include, exclude, report), None) is None:
            selection = " that include and exclude (--include, --exclude) choose" if include or exclude else ""
            tail = [f"{count:,} {kind}" for kind, count in report.unread.most_common(EXAMPLES)]
            tail += [f"{count:,} {reason}" for reason, count in report.passed.items() if " needs " in reason]
            only = f", only {', '.join(tail)}" if tail else ""
            raise IndexingError(f"{source} holds no documents ({', '.join(sorted(SUFFIXES))}){selection}{only}")
        return DOCUMENTS
    if is_document(source):
        if program := missing_program(source):
            raise FormatError(f"{source}: reading it needs {program}")
        return DOCUMENTS
    if source.name.lower().endswith(_ARCHIVES):
        raise FormatError(f"{source} is an archive: unpack it and name the folder")
    try:
        return detect_corpus(source)
    except FormatError as error:
        raise FormatError(f"{error}; name the format, also {DOCUMENTS} (--format)") from error
