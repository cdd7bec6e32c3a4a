"""Writes the new build of an index in which some files changed, beside the old one, and puts it in its place."""

import hashlib
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from autoais.base.progress import Progress
from rag.base.errors import FormatError, IndexingError
from rag.base.types import DOCUMENTS, Passage
from rag.documents.corpus import Corpus
from rag.documents.duplicates import find_repeats, passage_key
from rag.documents.sources import SourceFile, place
from rag.index.analysis import ANALYSIS
from rag.index.build import duplicate, encodable, manifest_of, new_build, write_manifest
from rag.index.compare import Plan, Work, compare, repeats, unknown
from rag.index.files import (
    FileRecord,
    Root,
    Stamp,
    read_files,
    roots_of,
    write_files,
)
from rag.index.folder import lock_folder, sweep
from rag.index.index import Index
from rag.index.manifest import is_shard, read_manifest
from rag.index.open import open_build
from rag.index.parts import read_data_configs
from rag.index.passages import PASSAGES, PassageStore, Store
from rag.index.postings import HEAP_BYTES, POSTINGS, BM25Writer, update_postings
from rag.index.rows import RowEditor

CarryParts = Callable[[Index, Index, Sequence[int]], list[str]]
"""Brings the parts of the old index into the new one, given the rows that changed; returns those that it left out."""

# Deleted passages count in BM25's statistics until the postings are written anew. In a small index, that takes less
# than a second, and every score is that of a fresh build; in a larger one, so few deleted passages change little.
EXACT = 20_000
_DEAD_SHARE = 0.02
_FRESH_SHARE = 0.25
_AT_ONCE = 500  # passages


@dataclass(frozen=True, slots=True)
class Changes:
    """What a change of an index did, by names of files.

    `left_out` are parts that have to be added again, `notes` say what of web sources could not be fetched.
    """

    changed: tuple[str, ...] = ()
    new: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    unchanged: int = 0
    skipped: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        counts = {"changed": self.changed, "new": self.new, "deleted": self.deleted}
        parts = [f"{len(names):,} {change}" for change, names in counts.items() if names]
        return ", ".join([*parts, f"{self.unchanged:,} unchanged"])


def change(
    index: Path,
    make_plan: Callable[[list[Root], list[FileRecord]], Plan],
    carry: CarryParts | None,
    progress: Progress | None,
) -> Changes:
    """Change an index as a plan of its sources and files says, under its lock, and remove what is no longer used."""
    read_manifest(index)  # before the lock, which would make the folder
    with lock_folder(index), _sweep_afterwards(index):
        manifest = read_manifest(index)
        roots, records = roots_of(manifest, index), read_files(index / manifest["build"])
        plan = make_plan(roots, records)
        work = compare(index, plan, records)
        same_roots = [root.record(index) for _, root in plan.roots] == [root.record(index) for root in roots]
        if not (work.changed or work.new or work.deleted) and same_roots:
            return Changes(unchanged=len(work.records))
        return _rebuild(index, manifest, plan, work, carry, progress)


@contextmanager
def _sweep_afterwards(index: Path) -> Iterator[None]:
    try:
        yield
    finally:
        sweep(index)


def _rebuild(
    index: Path,
    manifest: dict[str, Any],
    plan: Plan,
    work: Work,
    carry: CarryParts | None,
    progress: Progress | None,
) -> Changes:
    old, roots = open_build(index, manifest), [root for _, root in plan.roots]
    with new_build(index) as build:
        reader = _Reader(roots, _copy_passages(old, build))
        records = reader.read_all(work, progress)
        if not reader.editor.rows:
            raise IndexingError(f"{index} would have no passages left: remove its folder instead")
        counts, dead = _write_postings(old, build, reader.editor)
        write_files(build, records)
        new_manifest = manifest_of(
            index, build, roots, records, counts, retrievers=manifest["retrievers"], dead=dead, old=old
        )
        lost_parts = _carry_parts(old, open_build(index, new_manifest), sorted(reader.editor.written), carry)
        write_manifest(index, new_manifest)
    return _changes(work, records, reader.reasons, lost_parts)


def _copy_passages(old: Index, build: Path) -> RowEditor:
    """The editor of a copy of the passages in a new build."""
    assert old.build is not None
    try:
        shutil.copyfile(old.build / PASSAGES, build / PASSAGES)
    except OSError as error:
        raise IndexingError(f"{build}: cannot be written: {error.strerror}") from error
    return RowEditor(build / PASSAGES, old.manifest["passages"])


def _changes(work: Work, records: Sequence[FileRecord], reasons: Sequence[str], lost_parts: Sequence[str]) -> Changes:
    """What was done; a file that became or ceased to be a repeat of another one, or a part of it, has changed too."""
    originals = {record.number: (bool(record.twin), record.repeats) for record in work.records}
    flipped_names = {
        r.name for r in records if r.number in originals and originals[r.number] != (bool(r.twin), r.repeats)
    }
    return Changes(
        changed=tuple(sorted({*work.changed.values(), *flipped_names})),
        new=tuple(sorted(work.new.values())),
        deleted=tuple(sorted(work.deleted.values())),
        unchanged=len(work.records) - len(flipped_names),
        skipped=tuple(reasons),
        left_out=tuple(lost_parts),
    )


class _Reader:
    """Reads files into the store, and settles which of them repeat others."""

    def __init__(self, roots: Sequence[Root], editor: RowEditor) -> None:
        self._roots, self.editor = roots, editor
        self._corpora: dict[int, Corpus] = {}

    @property
    def reasons(self) -> list[str]:
        """Why items were skipped."""
        return [reason for _, corpus in sorted(self._corpora.items()) for reason in corpus.report.reasons]

    def read_all(self, work: Work, progress: Progress | None) -> list[FileRecord]:
        """Read the files of the work into the store and finish it; returns the records of all files in order."""
        try:
            self.editor.start(work.deleted, work.changed)
            records = list(work.records)
            for count, (number, source, file) in enumerate(work.files_to_read, 1):
                records.append(self.read(number, source, file))
                if progress is not None:
                    progress("reading", count, len(work.files_to_read))
            records = self.settle(records, work.sources)
            self.editor.finish()
        finally:
            self.editor.abandon()
        return records

    def read(self, number: int, source: int, file: SourceFile) -> FileRecord:
        """Read a file, whether it repeats another one or not."""
        root = self._roots[source]
        if source not in self._corpora:
            self._corpora[source] = Corpus.of([root.source], skip_bad=root.skip_bad, strict=root.strict)
        corpus, stamp = self._corpora[source], Stamp.of(file.path, document=file.source.format == DOCUMENTS)
        before, digest, count = corpus.report.bad, hashlib.sha256(), 0
        for location, passage, encoded in encodable(corpus.read_file(file), corpus.refuse):
            if not self.editor.put(passage, number):
                corpus.refuse(duplicate(location, passage))
                continue
            digest.update(encoded)
            count += 1
        return FileRecord(
            number,
            source,
            file.name,
            file.within,
            stamp.after_reading(file.path),
            passages=count,
            checksum=digest.hexdigest(),
            bad=corpus.report.bad - before,
            sketch=corpus.report.sketches.get(file.name, ""),
            loss=corpus.report.losses.get(file.name, ""),
        )

    def compares(self, source: int) -> bool:
        """Whether files of a source are left out if they repeat others."""
        source_of_files = self._roots[source].source
        return source_of_files.format == DOCUMENTS and source_of_files.path.is_dir()

    def settle(self, records: Sequence[FileRecord], changes: set[int]) -> list[FileRecord]:
        """The records in order, without the passages of files that a fresh build would leave out as repeats.

        A file whose original is gone is read again, and a file that repeats one that is new or changed goes.
        """
        sorted_records = sorted(records, key=lambda record: (record.source, place(record.within)))
        current: dict[int, FileRecord] = {record.number: record for record in sorted_records}
        for source in filter(self.compares, sorted(changes)):
            own_records = [record for record in sorted_records if record.source == source]
            for record in unknown(own_records):
                current[record.number] = self._again(record)
            own_records = [current[record.number] for record in own_records]
            duplicates = repeats(own_records)
            numbers = {record.number for record in own_records if record.name in duplicates and record.passages}
            self.editor.drop(numbers)
            for record in own_records:
                original = duplicates.get(record.name, "")
                if original:
                    current[record.number] = replace(
                        record, twin=original, passages=0, checksum=_EMPTY_CHECKSUM, repeats=()
                    )
                elif record.twin:
                    current[record.number] = self._again(record)
            self._settle_passages([record.number for record in own_records], current)
        return [current[record.number] for record in sorted_records]

    def _settle_passages(self, numbers: Sequence[int], current: dict[int, FileRecord]) -> None:
        """Leave out the passages that a fresh build would, of files of a source, by their numbers in order.

        A file with a passage that no file before it holds any more is read again.
        """
        keys = self._keys(numbers)
        repeats = self._find_repeats(numbers, current, keys)
        incomplete = [n for n in numbers if not repeats.get(current[n].name, set()).issuperset(current[n].repeats)]
        if incomplete:
            self.editor.drop(set(incomplete))
            for number in incomplete:
                current[number] = self._again(current[number])
            keys = self._keys(numbers)
            repeats = self._find_repeats(numbers, current, keys)
        changed: dict[int, list[Passage]] = {}
        for number in numbers:
            left_out = repeats.get(current[number].name, set())
            if ids := [identifier for key, identifier in keys[number].items() if key in left_out]:
                self.editor.drop_passages(ids)
                changed[number] = []
                current[number] = replace(current[number], repeats=tuple(sorted(left_out)))
        for number, passage in self.editor.scan() if changed else ():
            if number in changed:
                changed[number].append(passage)
        for number, passages in changed.items():
            digest = hashlib.sha256()
            for _, _, encoded in encodable([("", passage) for passage in sorted(passages, key=_place)], _refuse):
                digest.update(encoded)
            current[number] = replace(current[number], passages=len(passages), checksum=digest.hexdigest())

    def _keys(self, numbers: Sequence[int]) -> dict[int, dict[str, str]]:
        """The keys of the passages of some files, with their ids."""
        keys: dict[int, dict[str, str]] = {number: {} for number in numbers}
        for number, passage in self.editor.scan():
            if number in keys:
                keys[number][passage_key(passage)] = passage.id
        return keys

    def _find_repeats(
        self, numbers: Sequence[int], current: Mapping[int, FileRecord], keys: Mapping[int, Mapping[str, str]]
    ) -> dict[str, set[str]]:
        return find_repeats((current[n].name, [*keys[n], *current[n].repeats]) for n in numbers)

    def _again(self, record: FileRecord) -> FileRecord:
        source = self._roots[record.source].source
        return self.read(record.number, record.source, source.file(source.path / record.within))


def _place(passage: Passage) -> int:
    """Where a passage stands in its file."""
    return int(passage.id.rpartition("#")[2])


def _refuse(error: FormatError) -> None:
    raise error  # what is in a store was encoded before


_EMPTY_CHECKSUM = hashlib.sha256().hexdigest()


def _write_postings(old: Index, build: Path, editor: RowEditor) -> tuple[dict[str, int], int]:
    """Write the postings of the new rows; returns the counts of the manifest, and the deleted passages among them."""
    assert old.build is not None
    before, rows, fresh = old.manifest["passages"], editor.rows, sorted(editor.written)
    replaced_rows = sorted({row for row in fresh if row < before} | set(range(rows, before)))
    store = PassageStore.open(build / PASSAGES)
    new_untitled = sum(not passage.headings for passage in _stream(store, fresh))
    old_untitled = sum(not passage.headings for passage in _stream(old.store, replaced_rows))
    counts = {"passages": rows, "untitled": old.manifest["untitled"] + new_untitled - old_untitled}
    dead = old.manifest.get("dead", 0) + len(replaced_rows)
    is_current = old.bm25.analysis is ANALYSIS  # else all postings are written by today's
    is_small = len(fresh) <= _FRESH_SHARE * rows and (not dead or (rows > EXACT and dead <= _DEAD_SHARE * rows))
    if is_small and is_current:
        fresh_passages = zip(fresh, _stream(store, fresh), strict=True)
        if update_postings(old.build / POSTINGS, build / POSTINGS, replaced_rows, fresh_passages, rows):
            return counts, dead
        shutil.rmtree(build / POSTINGS)
    writer = BM25Writer(build / POSTINGS, HEAP_BYTES, shard=is_shard(old.manifest))
    try:
        for row, passage in enumerate(store.scan()):
            writer.add(row, passage)
        writer.finish()
    except BaseException:
        writer.abandon()
        raise
    return counts, 0


def _stream(store: Store, rows: Sequence[int]) -> Iterator[Passage]:
    for first in range(0, len(rows), _AT_ONCE):
        yield from store.rows(rows[first : first + _AT_ONCE])


def _carry_parts(old: Index, new: Index, rows: Sequence[int], carry: CarryParts | None) -> list[str]:
    if carry is None:
        return [config.name for config in read_data_configs(old)]
    return carry(old, new, rows)
