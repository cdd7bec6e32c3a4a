"""Makes one index of several: passages and vectors are copied, and postings written with the statistics of all.

Sources are not read again, and ids stay as they are. All shards of a build become the index of the whole; other indexes
have to have different sources.
"""

import heapq
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, groupby, pairwise
from operator import itemgetter
from pathlib import Path
from typing import Any

from autoais.base.io.paths import folder_size
from autoais.base.progress import Progress, no_progress
from rag.base.errors import FormatError, IndexingError, UsageError
from rag.base.types import DOCUMENTS
from rag.documents.sources import Shard, Source, place
from rag.index.build import BuildNeeds, PassageWriter, building, check_new, manifest_of, write_manifest
from rag.index.compare import repeats
from rag.index.files import FileRecord, Root, combine_checksums, read_files, roots_of, write_files
from rag.index.index import Index
from rag.index.open import open_build, open_index
from rag.index.passages import PASSAGES, PassageStore
from rag.index.postings import HEAP_BYTES, POSTINGS, BM25Writer
from rag.index.update import overlap
from rag.index.web_sources import copy_source

MergeParts = Callable[[Sequence[tuple[Index, Sequence[int]]], Index], Mapping[str, str]]
"""Brings the parts of indexes, given with rows that are left out, into the merged one; says why others are left out."""

_STEP = 1000  # passages between two reports


@dataclass(frozen=True, slots=True)
class Member:
    """An index to merge, with its sources and files."""

    folder: Path
    index: Index
    roots: Sequence[Root]
    records: Sequence[FileRecord]

    @classmethod
    def open(cls, folder: Path) -> "Member":
        """Open an index; raises `IndexingError` as `open_index`, and for one that does not know its sources."""
        index = open_index(folder)
        if index.build is None:
            raise IndexingError(f"{folder} is a Lucene index: make an index of it with rag index import")
        return cls(folder, index, roots_of(index.manifest, folder), read_files(index.build))

    @property
    def build(self) -> Path:
        """The folder with its files."""
        assert self.index.build is not None
        return self.index.build

    @property
    def store(self) -> PassageStore:
        """Its passages."""
        assert isinstance(self.index.store, PassageStore)
        return self.index.store

    @property
    def passages(self) -> int:
        """The number of its passages."""
        return int(self.index.manifest["passages"])

    @property
    def shard(self) -> Shard | None:
        """The part of its sources that it holds, if it is a shard."""
        return self.roots[0].source.shard if self.roots else None


@dataclass(frozen=True, slots=True)
class Merger:
    """The indexes to merge, and the sources and files that the merged index will have.

    `numbers` has the new numbers of the files of each index; the passages of a file without one are left out.
    """

    members: Sequence[Member]
    roots: Sequence[Root]
    records: Sequence[FileRecord]
    numbers: Sequence[Mapping[int, int]]

    @property
    def passages(self) -> int:
        """The number of passages that are looked at."""
        return sum(member.passages for member in self.members)


def plan_merge(folders: Sequence[str | Path], to: Path, *, replace: bool = False) -> Merger:
    """Open the indexes and say what becomes of their sources and files.

    Raises `UsageError` for fewer than two indexes, one that is named twice, one on a server and one that is `to`,
    `IndexingError` for indexes that cannot be opened or do not fit together, and for an index in `to`, unless
    `replace`.
    """
    members = _open_members(folders)
    if any(member.folder.resolve() == to.resolve() for member in members):
        raise UsageError(f"{to} is one of the indexes to merge: name another folder for the merged one")
    if not replace:
        check_new(to)
    if any(member.shard for member in members):
        return _of_shards(_all_shards(members))
    for first, other in combinations(members, 2):
        _check_sources(first, other)
    return _side_by_side(members)


def _open_members(folders: Sequence[str | Path]) -> list[Member]:
    if len(folders) < 2:
        raise UsageError(f"merging needs two or more indexes, found {len(folders)}")
    for folder in folders:
        if "://" in str(folder):
            raise UsageError(f"{folder} is on a server: copy the folder of the index to this machine")
    members = [Member.open(Path(folder)) for folder in folders]
    for first, other in combinations(members, 2):
        if first.folder.resolve() == other.folder.resolve():
            raise UsageError(f"{other.folder} is named twice")
    return members


def estimate_merge(merger: Merger) -> BuildNeeds:
    """Estimate memory, which is that of a build, and disk, which is that of all indexes."""
    mirrors = [root.source.path.parent for root in merger.roots if root.source.url]
    disk = sum(map(folder_size, [*(member.build for member in merger.members), *mirrors]))
    return BuildNeeds(memory=HEAP_BYTES + 100_000_000, disk=disk)


def merge(
    merger: Merger,
    to: Path,
    merge_parts: MergeParts | None = None,
    progress: Progress | None = None,
    *,
    replace: bool = False,
) -> tuple[dict[str, Any], Mapping[str, str]]:
    """Write the merged index in the folder `to`; returns its manifest, and why parts were left out, by their names.

    It is complete or not there, as with `rag.index.build.build`. Raises `IndexingError` for an id that two indexes
    have, before anything is written.
    """
    report = progress or no_progress
    _check_ids(merger, report)
    with building(to, replace=replace) as work:
        roots = [_copy_root(root, to) for root in merger.roots]
        counts, omitted_rows = _fill(merger, work, report)
        write_files(work, merger.records)
        names, *others = (member.index.manifest["retrievers"] for member in merger.members)
        retrievers = [name for name in names if all(name in other for other in others)]
        manifest = manifest_of(to, work, roots, merger.records, counts, retrievers=retrievers)
        reasons: Mapping[str, str] = {}
        if merge_parts is not None:
            indexes = [(member.index, rows) for member, rows in zip(merger.members, omitted_rows, strict=True)]
            reasons = merge_parts(indexes, open_build(to, manifest))
        write_manifest(to, manifest)
    return manifest, reasons


def _copy_root(root: Root, to: Path) -> Root:
    return replace(root, source=copy_source(root.source, to))


def _fill(merger: Merger, work: Path, report: Progress) -> tuple[dict[str, int], list[list[int]]]:
    """Write passages and postings; returns the counts of the manifest, and the rows of each index that are left out."""
    store = PassageStore.create(work / PASSAGES)
    postings = BM25Writer(work / POSTINGS, HEAP_BYTES)
    omitted_rows: list[list[int]] = []
    writer = PassageWriter(store, postings, _raise, lambda rows: report("merging", rows, merger.passages))
    with writer:
        for member, numbers in zip(merger.members, merger.numbers, strict=True):
            row, rows_to_omit = 0, list[int]()
            for file, file_rows in groupby(member.store.scan_files(), key=itemgetter(0)):
                passages = (passage for _, passage in file_rows)
                if file in numbers:
                    count, _ = writer.add(((str(member.folder), passage) for passage in passages), numbers[file])
                else:
                    count = sum(1 for _ in passages)
                    rows_to_omit += range(row, row + count)
                row += count
            omitted_rows.append(rows_to_omit)
    if writer.counts["passages"] != sum(record.passages for record in merger.records):
        raise IndexingError("the passages of an index do not match its files: rag index verify tells which")
    return writer.counts, omitted_rows


def _raise(error: FormatError) -> None:
    raise IndexingError(str(error)) from error


def _check_ids(merger: Merger, report: Progress) -> None:
    """Raise `IndexingError` for an id that two indexes have."""

    def ids(number: int, member: Member) -> Iterator[tuple[str, int]]:
        return ((identifier, number) for identifier in member.store.ids())

    every = heapq.merge(*(ids(number, member) for number, member in enumerate(merger.members)))
    for count, ((passage_id, first), (other, second)) in enumerate(pairwise(every), 2):
        if passage_id == other:
            raise IndexingError(
                f"{merger.members[first].folder} and {merger.members[second].folder} both have a passage "
                f"{passage_id!r}: build one index of the sources of both instead"
            )
        if count % _STEP == 0 or count == merger.passages:
            report("comparing ids", count, merger.passages)


# --- indexes of different sources --------------------------------------------------------------------------------


def _check_sources(first: Member, other: Member) -> None:
    """Raise `IndexingError` for a source of an index that is in a source of the other."""
    for source in (root.source for root in first.roots):
        for other_source in (root.source for root in other.roots):
            if overlap(source.url or source.path, other_source):
                raise IndexingError(
                    f"{first.folder} has the source {source.given} and {other.folder} {other_source.given}, "
                    "which an update would read twice: build one index of them instead"
                )


def _side_by_side(members: Sequence[Member]) -> Merger:
    roots: list[Root] = []
    records: list[FileRecord] = []
    numbers: list[dict[int, int]] = []
    for member in members:
        new_numbers = {record.number: number for number, record in enumerate(member.records, len(records))}
        records += (
            replace(record, number=new_numbers[record.number], source=record.source + len(roots))
            for record in member.records
        )
        roots += member.roots
        numbers.append(new_numbers)
    return Merger(members, roots, records, numbers)


# --- shards of one build -----------------------------------------------------------------------------------------

_MAX_LISTED_SHARDS = 8  # missing shards


def _all_shards(members: Sequence[Member]) -> list[Member]:
    """The shards in order; raises `IndexingError` unless they are those of one build, and all of them."""
    (first, first_shard), *_ = ((member, member.shard) for member in members if member.shard)
    members_by_number: dict[int, Member] = {}
    for member in members:
        shard = member.shard
        if shard is None:
            raise IndexingError(
                f"{first.folder} is shard {first_shard} and {member.folder} is no shard: merge all "
                f"{first_shard.of} shards first, and then the index that they make"
            )
        if shard.of != first_shard.of or not _same_build(first, member):
            raise IndexingError(
                f"{first.folder} (shard {first_shard}) and {member.folder} (shard {shard}) were not built from the "
                "same sources with the same options: merge the shards of one build"
            )
        if shard.number in members_by_number:
            raise IndexingError(f"{members_by_number[shard.number].folder} and {member.folder} are both shard {shard}")
        members_by_number[shard.number] = member
    if missing := [
        f"{number}/{first_shard.of}" for number in range(1, first_shard.of + 1) if number not in members_by_number
    ]:
        remainder = f" and {len(missing) - _MAX_LISTED_SHARDS} more" if len(missing) > _MAX_LISTED_SHARDS else ""
        raise IndexingError(
            f"{', '.join(missing[:_MAX_LISTED_SHARDS])}{remainder} of the shards "
            f"{'is' if len(missing) == 1 else 'are'} missing: name all {first_shard.of}"
        )
    return [members_by_number[number] for number in sorted(members_by_number)]


def _same_build(first: Member, other: Member) -> bool:
    """Whether two shards were built from the same sources with the same options."""
    return [_anywhere(root) for root in first.roots] == [_anywhere(root) for root in other.roots] and all(
        _same_place(first, other, number) for number in range(len(first.roots))
    )


def _anywhere(root: Root) -> Root:
    """A source wherever it lies, as a whole."""
    return replace(root, source=replace(root.source, path=Path(root.source.path.name), shard=None))


def _same_place(first: Member, other: Member, number: int) -> bool:
    """Whether a source of two shards is one: a file that both read, which is compared by its contents, or a path."""
    if all(any(r.source == number and not r.within for r in member.records) for member in (first, other)):
        return True
    source, other_source = first.roots[number].source, other.roots[number].source
    built_at = {member.index.manifest["roots"][number]["absolute"] for member in (first, other)}
    return bool(source.url) or len(built_at) == 1 or source.path.resolve() == other_source.path.resolve()


def _of_shards(members: Sequence[Member]) -> Merger:
    records_by_file: dict[tuple[int, str], list[tuple[Member, FileRecord]]] = {}
    for member in members:
        for record in member.records:
            records_by_file.setdefault((record.source, record.within), []).append((member, record))
    order = sorted(records_by_file, key=lambda key: (key[0], place(key[1])))
    file_records = [_merge_records(number, records_by_file[key]) for number, key in enumerate(order)]
    roots = [replace(root, source=replace(root.source, shard=None)) for root in members[0].roots]
    records = [
        record for number, root in enumerate(roots) for record in _drop_duplicates(root.source, number, file_records)
    ]
    numbers_by_file = {(record.source, record.within): record.number for record in records if record.passages}
    numbers = [
        {
            r.number: numbers_by_file[r.source, r.within]
            for r in member.records
            if (r.source, r.within) in numbers_by_file
        }
        for member in members
    ]
    return Merger(members, roots, records, numbers)


def _merge_records(number: int, parts: Sequence[tuple[Member, FileRecord]]) -> FileRecord:
    """The record of a file of which each shard holds a part, or one all; raises `IndexingError` if it has changed.

    A shard counts all broken lines of a file, wherever their passages would go.
    """
    (first, record), *other_parts = parts
    for member, other in other_parts:
        if not record.stamp.sha256 or other.stamp.sha256 != record.stamp.sha256:
            raise IndexingError(
                f"{first.folder} and {member.folder} have read different versions of {record.name}: "
                "rag index update brings them up to date"
            )
    every = [part for _, part in parts]
    return replace(
        record,
        number=number,
        passages=sum(part.passages for part in every),
        checksum=combine_checksums(every),
        bad=max(part.bad for part in every),
    )


def _drop_duplicates(source: Source, number: int, records: Sequence[FileRecord]) -> list[FileRecord]:
    """The records of a source, without the passages of documents that repeat one of another shard."""
    own_records = [record for record in records if record.source == number]
    if source.format != DOCUMENTS or not any(record.within for record in own_records):
        return own_records
    duplicates, empty_checksum = repeats(own_records), combine_checksums([])
    return [
        replace(record, twin=duplicates[record.name], passages=0, checksum=empty_checksum)
        if record.name in duplicates
        else record
        for record in own_records
    ]
