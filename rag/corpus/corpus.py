"""A corpus: a stream of passages from corpus files and from documents."""

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import ClassVar

from autoais.corpora import check_corpus_format, detect_corpus, read_passages
from rag.corpus.documents import SUFFIXES, is_document, kind_of, load_document
from rag.corpus.sources import DOCUMENTS as DOCUMENTS
from rag.corpus.sources import Shard, Source, SourceFile, check_globs, home_of, prefixes, selected
from rag.corpus.twins import Sketch, Twins, packed, sketch_of
from rag.errors import FormatError, IndexingError
from rag.types import Passage

# Where Sphinx keeps styles, scripts and fonts, with their licences, and patterns of pages.
_NO_TEXT = frozenset(["_static", "_templates"])
_EXAMPLES = 3  # of files that are no documents, by kind
_REASONS = 20  # why items cannot be read
_PACKINGS = frozenset([".gz", ".bz2", ".xz", ".zst"])
_UNPACKED = {".zst": 5.0, ".gz": 3.0}  # typical expansion of JSON text, for the estimate before a build


@dataclass
class Corpus:
    """Sources that are read as one stream of passages, and counts of what was read so far.

    A document of a folder that cannot be read is skipped and counted in `bad`, with the first 20 errors in `reasons`;
    with `strict`, the first one raises `FormatError`. Broken lines of a corpus file raise it, unless `skip_bad` skips
    and counts them too. The globs `include` and `exclude` choose the files of folders. Files of folders that are not
    read are counted: `links` that lead out of the folder, files that are no documents by suffix in `unread`, with up to
    three names of each in `examples`, and others by reason in `passed`.

    `dropped` counts what was left out of documents, by reason, and `twins` names for each file that repeats another one
    the file that it repeats. `urls` are those of the sources that mirror pages. With a `shard`, only its part is read.
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
    strict: bool = False
    dropped: Counter[str] = field(default_factory=Counter)
    twins: dict[str, str] = field(default_factory=dict)
    sketches: dict[str, str] = field(default_factory=dict)  # of the documents read, to find their twins in an update
    links: int = 0
    unread: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[str]] = field(default_factory=dict)
    passed: Counter[str] = field(default_factory=Counter)
    urls: Mapping[Path, str] = field(default_factory=dict)
    shard: Shard | None = None
    unit: ClassVar[str | None] = None  # of `bytes_total`, if not bytes

    def __post_init__(self) -> None:
        if not self.sources:
            raise IndexingError("no source was given")
        for source in self.sources:
            if not source.exists():
                raise IndexingError(f"source {source} does not exist")
        check_corpus_format(self.format, [DOCUMENTS])
        self.include, self.exclude = check_globs(self.include), check_globs(self.exclude)
        self._finders: dict[Source, Twins] = {}

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
        found = zip(self.sources, formats, names, urls, strict=True)
        return [Source(path, kind, name, *globs, url, self.shard) for path, kind, name, url in found]

    @property
    def bytes_total(self) -> int:
        """The size of all source files on disk, in bytes; the final value of `bytes_read`."""
        return sum(_size(path) for path in self._files())

    @property
    def bytes_unpacked(self) -> int:
        """An estimate of the size after decompression, in bytes."""
        return int(sum(_size(path) * _UNPACKED.get(path.suffix, 1.0) for path in self._files()))

    def _files(self) -> Iterator[Path]:
        for source in self.sources:
            yield from _walk(source, self.include, self.exclude) if source.is_dir() else [source]

    def files(self) -> Iterator[SourceFile]:
        """Yield the files in the order of sources and paths."""
        self.links = 0
        self.unread, self.passed, self.examples = Counter(), Counter(), {}
        for source in self.described:
            if not source.path.is_dir():
                alone = [source.file(source.path)]
                yield from self._of_shard(alone) if source.format == DOCUMENTS else alone
                continue
            found = _Folder(source.path, source.include, source.left_out)
            files = [source.file(path) for path in found]
            self.links += found.links
            self.unread += found.unread
            for kind, names in found.examples.items():
                self.examples[kind] = [*self.examples.get(kind, []), *names][:_EXAMPLES]
            self.passed += found.passed
            if source not in self._finders:
                self._finders[source] = self._twins(files)
            yield from self._of_shard(files)

    def _of_shard(self, files: Iterable[SourceFile]) -> Iterator[SourceFile]:
        for file in files:
            if file.source.shard is None or file.source.shard.holds(file.name):
                yield file
            else:
                self.bytes_read += _size(file.path)
                self.passed["file of another shard"] += 1

    def read(self) -> Iterator[tuple[str, Passage]]:
        """Yield (location, passage) in the order of files and lines; every passage has an id and text."""
        self.bytes_read = 0
        found = False
        for file in self.files():
            for located in self.read_file(file):
                found = True
                yield located
        if not found and self.reasons:
            raise FormatError(self.reasons[0])

    def read_file(self, file: SourceFile) -> Iterator[tuple[str, Passage]]:
        """Yield (location, passage) of one file."""
        self.formats.add(file.source.format)
        if file.source.format == DOCUMENTS:
            yield from self._document(file)
        else:
            yield from self._records(file)

    def refuse(self, error: FormatError) -> None:
        """Count a broken item, or raise it."""
        if not self.skip_bad:
            raise FormatError(f"{error}; skip_bad (--skip-bad) skips broken items") from error
        self._skipped(error)

    def _skipped(self, error: FormatError) -> None:
        self.bad += 1
        if len(self.reasons) < _REASONS:
            self.reasons.append(str(error))

    def _document(self, file: SourceFile) -> Iterator[tuple[str, Passage]]:
        finder = self._finders.get(file.source)
        page = finder.page_of(file.name) if finder is not None else None
        if page is not None:
            self.bytes_read += _size(file.path)
            self._repeats(file, page)
            return
        try:
            document = load_document(file.path, file.name)
        except FormatError as error:
            self._refuse_document(error, file)
            return
        self.bytes_read += _size(file.path)
        if file.within and document.passages:  # of a folder
            sketch = sketch_of(document)
            self.sketches[file.name] = packed(sketch)
            if finder is not None:  # an update compares all files when it has read the new ones
                if (twin := finder.find(file.name, sketch)) is not None:
                    self._repeats(file, twin)
                    return
                finder.add(file.name, sketch)
        self.dropped.update(document.dropped)
        yield from ((f"{file.path}#{number}", passage) for number, passage in enumerate(document.passages, 1))

    def _repeats(self, file: SourceFile, twin: str) -> None:
        self.twins[file.name] = twin

    def _refuse_document(self, error: FormatError, file: SourceFile) -> None:
        """Count a document that cannot be read, or raise the error."""
        if self.strict:
            raise error
        self._skipped(error)
        self.bytes_read += _size(file.path)

    def _twins(self, files: Iterable[SourceFile]) -> Twins:
        paths = {file.name: file.path for file in files}

        def read(name: str) -> Sketch | None:
            try:
                return sketch_of(load_document(paths[name], name))
            except FormatError:
                return None

        return Twins(paths, read)

    def _records(self, file: SourceFile) -> Iterator[tuple[str, Passage]]:
        before, shard = self.bytes_read, file.source.shard

        def report(position: int) -> None:
            self.bytes_read = before + position

        for where, passage in read_passages(file.path, file.source.format, report):
            if isinstance(passage, FormatError):
                self.refuse(passage)
            elif shard is None or shard.holds(passage.id):
                yield where, passage


class _Folder:
    """The documents below a folder in the order of their paths; what is left out is counted as in a `Corpus`."""

    def __init__(self, folder: Path, include: Sequence[str] = (), exclude: Sequence[str] = ()) -> None:
        self._folder, self._include, self._exclude = folder, include, exclude
        self._real = os.path.realpath(folder)
        self.links = 0
        self.unread: Counter[str] = Counter()
        self.examples: dict[str, list[str]] = {}
        self.passed: Counter[str] = Counter()

    def __iter__(self) -> Iterator[Path]:
        yield from self._below(self._folder)

    def _below(self, folder: Path) -> Iterator[Path]:
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError:  # removed meanwhile, or not ours to read
            self.passed["folder without permission"] += 1
            return
        for entry in entries:
            path = folder / entry.name
            if why := self._passed(entry):
                self.passed[why] += 1
            elif (leads_out := entry.is_symlink() and not self._stays(entry)) and (
                entry.is_dir() or kind_of(entry.name)
            ):
                self.links += 1
            elif entry.is_dir(follow_symlinks=False):
                yield from self._below(path)
            elif entry.is_dir():  # a link to a folder that is read where it stands
                continue
            elif not selected(path.relative_to(self._folder).as_posix(), self._include, self._exclude):
                self.passed["file outside of --include and --exclude"] += 1
            elif not leads_out and entry.is_file() and is_document(path):
                yield path
            else:
                kind = _kind(path.name)
                self.unread[kind] += 1
                if self.unread[kind] <= _EXAMPLES:
                    self.examples.setdefault(kind, []).append(path.relative_to(self._folder).as_posix())

    def _passed(self, entry: "os.DirEntry[str]") -> str | None:
        """Why a file or folder is passed over, whatever it holds; else None."""
        if entry.name.startswith("."):
            return "item hidden by a dot"
        if entry.is_symlink() and not Path(entry.path).exists():
            return "link to nowhere"
        return f"folder called {entry.name}" if entry.name in _NO_TEXT and entry.is_dir() else None

    def _stays(self, entry: "os.DirEntry[str]") -> bool:
        """Whether a link leads to a file of the folder."""
        return f"{os.path.realpath(entry.path)}/".startswith(f"{self._real}/")


def _kind(name: str) -> str:
    """The suffix of a file, with that of its packing; "without a suffix" if it has none."""
    path = PurePosixPath(name.lower())
    packing = path.suffix if path.suffix in _PACKINGS else ""
    suffix = path.with_suffix("").suffix if packing else path.suffix
    return f"{suffix}{packing}" or "without a suffix"


def _walk(folder: Path, include: Sequence[str] = (), exclude: Sequence[str] = ()) -> Iterator[Path]:
    """The documents below a folder in the order of their paths; hidden files and folders are skipped."""
    yield from _Folder(folder, include, exclude)


def _size(path: Path) -> int:
    """The size of a file; 0 for one that is gone."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


def sniff(source: Path, include: Sequence[str] = (), exclude: Sequence[str] = ()) -> str:
    """Detect the format of a source from its first lines, or its suffix; raises `FormatError` if it is unknown."""
    if source.is_dir():
        folder = _Folder(source, include, exclude)
        if next(iter(folder), None) is None:
            chosen = " that include and exclude (--include, --exclude) choose" if include or exclude else ""
            others = [f"{count:,} {kind}" for kind, count in folder.unread.most_common(_EXAMPLES)]
            only = f", only {', '.join(others)}" if others else ""
            raise IndexingError(f"{source} holds no documents ({', '.join(sorted(SUFFIXES))}){chosen}{only}")
        return DOCUMENTS
    if is_document(source):
        return DOCUMENTS
    try:
        return detect_corpus(source)
    except FormatError as error:
        raise FormatError(f"{error}; name the format, also {DOCUMENTS} (--format)") from error
