"""Compares the files of an index with those of its sources: which to read, and which passages go."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from rag.base.errors import IndexingError
from rag.base.types import DOCUMENTS
from rag.documents import is_document, missing_program
from rag.documents.corpus import Corpus, sniff
from rag.documents.duplicates import Duplicates, unpack_sketch
from rag.documents.sources import LUCENE, Source, SourceFile, is_selected
from rag.index.files import FileRecord, Root


@dataclass(slots=True)
class Plan:
    """The sources that an index shall have, and which of them to look through; the rest stays as it is.

    `roots` are (number among the sources before, source). Files whose names are in `removed_names` go.
    """

    roots: list[tuple[int | None, Root]]
    sources: set[int] = field(default_factory=set)  # places in `roots`
    removed_names: set[str] = field(default_factory=set)


@dataclass(slots=True)
class Work:
    """Which files to read, and which records stay; `changed`, `new` and `deleted` are names of files by number."""

    records: list[FileRecord] = field(default_factory=list)
    files_to_read: list[tuple[int, int, SourceFile]] = field(default_factory=list)  # number, source, file
    changed: dict[int, str] = field(default_factory=dict)
    new: dict[int, str] = field(default_factory=dict)
    deleted: dict[int, str] = field(default_factory=dict)
    sources: set[int] = field(default_factory=set)  # sources with such files


def compare(index: Path, plan: Plan, records: Sequence[FileRecord]) -> Work:
    """Look for changed, new and deleted files among the sources that the plan lists."""
    work, number = Work(), max((record.number for record in records), default=-1)
    records_by_source = _to_look_for(plan, records, work)
    for source in sorted(plan.sources):
        remaining = records_by_source.get(source, {})
        for file in _files(index, plan.roots[source][1], len(remaining)):
            before = remaining.pop(file.within, None)
            if before is None:
                number += 1
                work.new[number] = file.name
                work.files_to_read.append((number, source, file))
            elif stamp := before.stamp.if_unchanged(file.path):
                work.records.append(replace(before, stamp=stamp))
            else:
                work.changed[before.number] = file.name
                work.files_to_read.append((before.number, source, file))
        root = plan.roots[source][1].source
        for record in remaining.values():
            if _is_unreadable_now(record, root):
                work.records.append(record)
            else:
                work.deleted[record.number] = record.name
                work.sources.add(source)
    work.sources.update(source for _, source, _ in work.files_to_read)
    if work.changed or work.new or work.deleted:
        _read_again(plan, work)
    return work


def _is_unreadable_now(record: FileRecord, source: Source) -> bool:
    """Whether a file is there as it was read, in a format that this version, or this machine, does not read.

    Its passages stay: an update drops them only when the file changes or goes.
    """
    path = source.path / record.within
    if not source.path.is_dir() or not is_selected(record.within, source.include, source.left_out):
        return False
    is_readable = is_document(path) and missing_program(path) is None
    return not is_readable and path.is_file() and record.stamp.if_unchanged(path) is not None


def _to_look_for(plan: Plan, records: Sequence[FileRecord], work: Work) -> dict[int, dict[str, FileRecord]]:
    """The records of the sources that the plan lists, by source and path; the work gets all others, kept or deleted."""
    numbers = {old: number for number, (old, _) in enumerate(plan.roots)}
    records_by_source: dict[int, dict[str, FileRecord]] = {}
    for record in records:
        source = numbers.get(record.source)
        if source is None or record.name in plan.removed_names:
            work.deleted[record.number] = record.name
            work.sources.update([] if source is None else [source])
        elif source in plan.sources:
            records_by_source.setdefault(source, {})[record.within] = replace(record, source=source)
        else:
            work.records.append(replace(record, source=source))
    return records_by_source


def _files(index: Path, root: Root, before: int) -> Iterator[SourceFile]:
    """The files of a source that is there."""
    source = root.source
    if source.format == LUCENE:
        raise IndexingError(f"{index} was imported from the Lucene index {source.path}: import it again")
    try:
        corpus = Corpus.of([source])
        if before and source.path.is_dir():  # it may be a disk that is not mounted: all its files are not simply gone
            sniff(source.path, source.include, source.left_out)
    except IndexingError as error:
        raise IndexingError(f"{error}: rag index remove {index} {source.given} drops its passages") from error
    return corpus.files()


def _read_again(plan: Plan, work: Work) -> None:
    """Also read corpora with passages left out, as what changed may bring those back."""
    for record in list(work.records):
        source = plan.roots[record.source][1].source
        if record.bad and source.format not in (DOCUMENTS, LUCENE) and source.path.exists():
            work.records.remove(record)
            work.changed[record.number] = record.name
            work.files_to_read.append((record.number, record.source, source.file(source.path)))


def repeats(records: Sequence[FileRecord]) -> dict[str, str]:
    """The files of a source that a fresh build would leave out, with the files that they repeat."""
    sketches = {record.name: unpack_sketch(record.sketch) for record in records if record.sketch}
    index, duplicates = Duplicates([record.name for record in records], sketches.get), {}
    for record in records:
        page = index.page_of(record.name)
        sketch = sketches.get(record.name)
        original = index.find(record.name, sketch) if page is None and sketch is not None else page
        if original is not None:
            duplicates[record.name] = original
        elif sketch is not None:
            index.add(record.name, sketch)
    return duplicates


def unknown(records: Sequence[FileRecord]) -> list[FileRecord]:
    """The files that were left out unread, as sources of pages that are no longer there."""
    unread_records = [record for record in records if record.twin and not record.sketch]
    if not unread_records:
        return []
    index = Duplicates([record.name for record in records], lambda _: None)
    return [record for record in unread_records if index.page_of(record.name) is None]
