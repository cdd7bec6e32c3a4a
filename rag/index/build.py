"""Builds an index; a build that is stopped, killed or out of disk leaves the existing index intact."""

import hashlib
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from autoais.base.io.jsonl import dumps, write_atomic
from autoais.base.io.provenance import command
from autoais.base.progress import Progress
from rag.base.errors import FormatError, IndexingError
from rag.base.types import DOCUMENTS, Passage
from rag.documents.corpus import Corpus
from rag.index.files import FileRecord, Root, Stamp, combine_checksums, roots_of, write_files
from rag.index.folder import LOCK, in_use, lock_folder, sweep
from rag.index.index import Index
from rag.index.integrity import fingerprints
from rag.index.manifest import BUILD, MANIFEST, default_parts, describe_index, read_manifest
from rag.index.passages import PASSAGES, PassageStore
from rag.index.postings import HEAP_BYTES, POSTINGS, BM25Writer

BUILD_MEMORY = HEAP_BYTES + 100_000_000  # bytes of the writer's heap and caches
_BATCH = 1000


@dataclass(frozen=True, slots=True)
class BuildNeeds:
    """The estimated needs of a build, in bytes."""

    memory: int
    disk: int


def estimate(corpus: Corpus) -> BuildNeeds:
    """Estimate memory and disk (the passages, and about 0.4 times that for postings)."""
    parts = corpus.shard.of if corpus.shard is not None else 1
    return BuildNeeds(memory=BUILD_MEMORY, disk=int(corpus.bytes_unpacked * 1.45 / parts))


def build(
    corpus: Corpus,
    to: Path,
    progress: Progress | None = None,
    *,
    replace: bool = False,
    retrievers: Sequence[str] | None = (),
) -> dict[str, Any]:
    """Build an index in the folder `to` and return its manifest; `progress` counts the bytes read.

    The manifest says which `retrievers` are to add data to the index next (None: its `default_parts`).
    With `replace`, an existing index stays in use until the new manifest replaces the old one atomically, so a build
    that is stopped, killed or out of disk loses nothing. Raises `IndexingError` (an index that is there already, a
    folder that is not an index, a full disk, no passages) or `FormatError` (a broken line).
    """
    with building(to, replace=replace) as work:
        return _build(corpus, to, work, progress, retrievers)


@contextmanager
def building(to: Path, *, replace: bool) -> Iterator[Path]:
    """A build folder in the folder `to`, locked; the block ends with the manifest that names it.

    An exception, also Ctrl-C, removes what was made. Raises `IndexingError` as `build` does.
    """
    is_new_folder = not to.exists()
    with lock_folder(to):
        if not replace:
            check_new(to)
        try:
            with new_build(to) as work:
                yield work
        except BaseException:
            sweep(to)
            if is_new_folder:
                (to / LOCK).unlink(missing_ok=True)
                with suppress(OSError):
                    to.rmdir()
            raise
        sweep(to)


def check_new(to: Path) -> None:
    """Raise `IndexingError` if the folder holds an index."""
    if (to / MANIFEST).exists():
        raise IndexingError(
            f"{to} already exists: rag index add or update changes it, replace=True (--replace) replaces it "
            "with the new one"
        )


@contextmanager
def new_build(to: Path) -> Iterator[Path]:
    """A new build folder in an index; an exception, also Ctrl-C, removes it unless the manifest names it."""
    try:
        work = Path(tempfile.mkdtemp(prefix=BUILD, dir=to))
    except OSError as error:
        raise IndexingError(f"{to}: cannot be written: {error.strerror}") from error
    try:
        work.chmod(0o755)
        yield work
        _share(work)
    except BaseException:
        if not in_use(to, work.name):  # the manifest may be in place, and only the sync after it have failed
            shutil.rmtree(work, ignore_errors=True)
        raise


def _share(work: Path) -> None:
    """Let who may read the passages read the postings too: Tantivy keeps some of its files to their owner."""
    mode = (work / PASSAGES).stat().st_mode & 0o777
    for path in (work / POSTINGS).iterdir():
        if mode & ~path.stat().st_mode:
            path.chmod(mode)


def has_sources(index: Path, corpus: Corpus) -> bool:
    """Whether an index was built of these sources with these options, by the places where the sources are now."""
    index_roots = roots_of(read_manifest(index), index)
    return [root.record(index) for root in index_roots] == [root.record(index) for root in _roots(corpus)]


def _roots(corpus: Corpus) -> list[Root]:
    return [Root(source, corpus.skip_bad, corpus.strict) for source in corpus.described]


def _build(
    corpus: Corpus, to: Path, work: Path, progress: Progress | None, retrievers: Sequence[str] | None
) -> dict[str, Any]:
    records, counts = _fill(corpus, work, progress)
    write_files(work, records)
    roots = _roots(corpus)
    if retrievers is None:
        formats = ", ".join({root.source.format for root in roots})
        retrievers = default_parts(formats, counts["passages"], shard=corpus.shard is not None)
    manifest = manifest_of(to, work, roots, records, counts, retrievers=retrievers)
    write_manifest(to, manifest)
    return manifest


def manifest_of(
    index: Path,
    build: Path,
    roots: Sequence[Root],
    records: Sequence[FileRecord],
    counts: Mapping[str, int],
    *,
    retrievers: Sequence[str] = (),
    dead: int = 0,
    old: Index | None = None,
) -> dict[str, Any]:
    """The manifest of a build folder of an index that holds all its passages, postings and files.

    `counts` are those of a `PassageWriter`. `retrievers` are to have data in the index. `dead` deleted passages still
    count in BM25's statistics. Files that are links to those of the `old` build keep the checksums that its manifest
    says.
    """
    links = () if old is None else (old.build, old.manifest.get("files", {}))
    return {
        "build": build.name,
        **describe_index(
            [root.source.name for root in roots],
            sorted({root.source.format for root in roots}),
            counts,
            combine_checksums(records),
        ),
        "skipped": sum(record.bad for record in records),
        "command": command(),
        "roots": [root.record(index) for root in roots],
        "retrievers": list(retrievers),
        "dead": dead,
        "files": fingerprints(build, *links),
    }


def write_manifest(index: Path, manifest: Mapping[str, Any]) -> None:
    """Put a complete build in the place of the one that the index has, atomically."""
    write_atomic(index / MANIFEST, [dumps(manifest, indent=2)])


def _fill(corpus: Corpus, work: Path, progress: Progress | None) -> tuple[list[FileRecord], dict[str, int]]:
    store = PassageStore.create(work / PASSAGES)
    postings = BM25Writer(work / POSTINGS, HEAP_BYTES, shard=corpus.shard is not None)
    empty = "the corpus holds no passages"
    if corpus.shard is not None:
        empty = f"shard {corpus.shard} of the corpus holds no passages: choose fewer shards"
    total = 0 if progress is None else corpus.bytes_total  # walks all folders, so once

    def wrote(_: int) -> None:
        if progress is not None:
            progress("indexing", corpus.report.bytes_read, total)

    writer = PassageWriter(store, postings, corpus.refuse, wrote, empty)
    records = []
    numbers = {id(source): number for number, source in enumerate(corpus.described)}
    with writer:
        for number, file in enumerate(corpus.files()):
            report, stamp = corpus.report, Stamp.of(file.path, document=file.source.format == DOCUMENTS)
            before = report.bad
            count, checksum = writer.add(corpus.read_file(file), number)
            record = FileRecord(
                number,
                numbers[id(file.source)],
                file.name,
                file.within,
                stamp.after_reading(file.path),
                passages=count,
                checksum=checksum,
                bad=report.bad - before,
                twin=report.duplicates.get(file.name, ""),
                sketch=report.sketches.get(file.name, ""),
                loss=report.losses.get(file.name, ""),
                repeats=tuple(sorted(report.repeats.get(file.name, ()))),
            )
            records.append(record)
        if corpus.report.reasons and not writer.counts["passages"]:
            raise FormatError(corpus.report.reasons[0])
    return records, writer.counts


def _raise(error: FormatError) -> None:
    raise error


class PassageWriter:
    """Writes passages to a new store and new postings; a context that finishes both, or abandons them.

    `refuse` is called with the error of a passage that is left out: no text, or an id that is taken. `progress` is
    called with the number of rows. `empty` is the error if there is no passage.
    """

    def __init__(
        self,
        store: PassageStore,
        postings: BM25Writer,
        refuse: Callable[[FormatError], None] = _raise,
        progress: Callable[[int], object] = lambda rows: None,
        empty: str = "the corpus holds no passages",
    ) -> None:
        self._store, self._postings, self._refuse, self._progress = store, postings, refuse, progress
        self._empty = empty
        self.counts = {"passages": 0, "untitled": 0}

    def __enter__(self) -> "PassageWriter":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                if not self.counts["passages"]:
                    raise IndexingError(self._empty)
                self._store.finish()
                self._postings.finish()
                return
        except BaseException:
            self._postings.abandon()
            raise
        self._postings.abandon()

    def add(self, passages: Iterable[tuple[str, Passage]], file: int = 0) -> tuple[int, str]:
        """Write the passages of a file; return their number, and the SHA-256 of ids, headings and texts in order."""
        digest, before = hashlib.sha256(), self.counts["passages"]
        rows = before
        stream = encodable(passages, self._refuse)
        while batch := list(islice(stream, _BATCH)):
            is_added = self._store.add(rows, [passage for _, passage, _ in batch], file)
            for (location, passage, encoded), is_new in zip(batch, is_added, strict=True):
                if not is_new:
                    self._refuse(duplicate(location, passage))
                    continue
                digest.update(encoded)
                self._postings.add(rows, passage)
                rows += 1
                self.counts["untitled"] += not passage.headings
            self.counts["passages"] = rows
            self._progress(rows)
        return rows - before, digest.hexdigest()


def duplicate(location: str, passage: Passage) -> FormatError:
    """The error for an id that is taken."""
    return FormatError(f"{location}: id {passage.id!r} occurs twice in the corpus")


def encodable(
    passages: Iterable[tuple[str, Passage]], refuse: Callable[[FormatError], None]
) -> Iterator[tuple[str, Passage, bytes]]:
    """Yield (location, passage, bytes for the checksum) of the passages that are text."""
    for location, passage in passages:
        try:
            headings = "" if passage.headings == passage.default_headings else passage.headings
            parts = (passage.id, passage.title, passage.section, passage.text, headings)
            encoded = "\x1f".join(parts).encode("utf-8")
        except UnicodeEncodeError:  # JSON can contain a lone surrogate: "\ud83d"
            refuse(
                FormatError(f"{location}: passage {passage.id!r} contains a lone surrogate, which is not a character")
            )
        else:
            yield location, passage, encoded
