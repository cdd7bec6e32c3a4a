"""Changes an index: sources are added and removed, and changed, new and deleted files are read again.

The new build shares what stays with the old one and replaces it atomically, so an update that is stopped, killed or out
of disk loses nothing, and whoever has the old one open keeps reading it.
"""

import hashlib
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from autoais.io.jsonl import dumps, write_atomic
from autoais.io.provenance import command
from rag.corpus.reader import Corpus, sniff
from rag.corpus.sources import (
    DOCUMENTS,
    LUCENE,
    Source,
    SourceFile,
    check_globs,
    escaped,
    home_of,
    matches,
    place,
    prefixes,
)
from rag.errors import IndexingError
from rag.index.build import duplicate, encodable, new_build
from rag.index.files import (
    Contents,
    FileRecord,
    Root,
    Stamp,
    combined,
    read_files,
    record_of,
    roots_of,
    write_files,
)
from rag.index.folder import claimed, sweep
from rag.index.index import Index
from rag.index.integrity import fingerprints
from rag.index.manifest import MANIFEST, described, read_manifest
from rag.index.open import open_build
from rag.index.parts import recipes_of
from rag.index.passages import PASSAGES, PassageStore, Store
from rag.index.postings import HEAP_BYTES, POSTINGS, BM25Writer, update_postings
from rag.index.rows import RowEditor
from rag.types import Passage

Progress = Callable[[int, int], None]
"""Called with the number of files read and their total."""

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
    """What a change of an index did, by names of files; `left_out` are parts that have to be added again."""

    changed: tuple[str, ...] = ()
    new: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    unchanged: int = 0
    skipped: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()

    def __str__(self) -> str:
        counts = {"changed": self.changed, "new": self.new, "deleted": self.deleted}
        told = [f"{len(names):,} {what}" for what, names in counts.items() if names]
        return ", ".join([*told, f"{self.unchanged:,} unchanged"])


@dataclass(slots=True)
class _Plan:
    """The sources that an index shall have, and which of them to look through; the rest stays as it is.

    `roots` are (number among the sources before, source). Files whose names are in `dropped` go.
    """

    roots: list[tuple[int | None, Root]]
    listed: set[int] = field(default_factory=set)  # places in `roots`
    dropped: set[str] = field(default_factory=set)


# --- what people ask for -------------------------------------------------------------------------------------------


def update(
    index: Path,
    sources: Sequence[Path] = (),
    *,
    include: Sequence[str] | None = None,
    exclude: Sequence[str] | None = None,
    skip_bad: bool | None = None,
    carry: CarryParts | None = None,
    progress: Progress | None = None,
) -> Changes:
    """Read the changed and new files of the sources, all by default, and remove the passages of deleted ones.

    Globs replace those that the index remembers. Raises `IndexingError` for an index that does not know its sources, a
    source that is not one of its own or is gone, or another process that writes to the index.
    """

    def plan(roots: list[Root], _: list[FileRecord]) -> _Plan:
        chosen = {_own(index, roots, source) for source in sources} if sources else set(range(len(roots)))
        made = list(enumerate(roots))
        for number in chosen:
            made[number] = number, _with_globs(roots[number], include, exclude, skip_bad)
        return _Plan([*made], chosen)

    return _change(index, plan, carry, progress)


def add(
    index: Path,
    sources: Sequence[Path],
    *,
    format: str | None = None,  # noqa: A002  (named like the command-line option)
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    skip_bad: bool = False,
    carry: CarryParts | None = None,
    progress: Progress | None = None,
) -> Changes:
    """Add the passages of further sources; raises `IndexingError` for one that the index has, and as `update` does."""
    given = Corpus(sources, format, skip_bad, include=include, exclude=exclude)

    def plan(roots: list[Root], _: list[FileRecord]) -> _Plan:
        for source in sources:
            for root in roots:
                if _lies_in(source, root.source.path) or _lies_in(root.source.path, source):
                    raise IndexingError(
                        f"{source}: {root.source.path} is a source of {index}: rag index update reads it"
                    )
        taken = {root.source.prefix: home_of(root.source.path) for root in roots}
        fresh = [
            Root(replace(source, prefix=prefix), skip_bad)
            for source, prefix in zip(given.described, prefixes(sources, taken), strict=True)
        ]
        made = [*enumerate(roots), *((None, root) for root in fresh)]
        return _Plan(made, set(range(len(roots), len(made))))

    return _change(index, plan, carry, progress)


def remove(
    index: Path, targets: Sequence[str | Path], *, carry: CarryParts | None = None, progress: Progress | None = None
) -> Changes:
    """Remove sources, or files by globs on their names or paths, which updates will then leave out too.

    Raises `IndexingError` for a target that matches nothing, and if no passage would remain.
    """

    def plan(roots: list[Root], records: list[FileRecord]) -> _Plan:
        gone: set[int] = set()
        dropped: set[str] = set()
        left = list(roots)
        for target in targets:
            whole = [number for number, root in enumerate(roots) if _means(target, root.source)]
            files = [] if whole else [record for record in records if _named(record, roots, str(target))]
            if not whole and not files:
                raise IndexingError(f"{index} has no source or file {str(target)!r}: rag index show lists its files")
            gone.update(whole)
            dropped.update(record.name for record in files)
            for number in {record.source for record in files}:
                inside = {record.within for record in files if record.source == number}
                if "" in inside:
                    gone.add(number)
                there = {record.within for record in records if record.source == number}
                left[number] = _without(left[number], _globs(str(target), roots[number].source, inside, there))
        return _Plan([(number, root) for number, root in enumerate(left) if number not in gone], dropped=dropped)

    return _change(index, plan, carry, progress)


def _own(index: Path, roots: Sequence[Root], source: Path) -> int:
    for number, root in enumerate(roots):
        if _same(source, root.source):
            return number
    there = ", ".join(str(root.source.path) for root in roots)
    raise IndexingError(f"{source} is not a source of {index} ({there}): rag index add adds it")


def _same(path: Path, source: Source) -> bool:
    return path.resolve() == source.path.resolve()


def _means(target: str | Path, source: Source) -> bool:
    """Whether a target is a source: by its path, or by its name where there is no such path."""
    path = Path(target)
    return _same(path, source) or (str(target) == source.path.name and not path.exists())


def _lies_in(path: Path, folder: Path) -> bool:
    return path.resolve().is_relative_to(folder.resolve())


def _named(record: FileRecord, roots: Sequence[Root], target: str) -> bool:
    path = roots[record.source].source.path
    whole = (path / record.within) if record.within else path
    return matches(record.name, target) or matches(str(whole), str(Path(target).absolute()))


def _with_globs(
    root: Root, include: Sequence[str] | None, exclude: Sequence[str] | None, skip_bad: bool | None
) -> Root:
    source = root.source
    if include is not None:
        source = replace(source, include=check_globs(include))
    if exclude is not None:
        source = replace(source, exclude=check_globs(exclude))
    return Root(source, root.skip_bad if skip_bad is None else skip_bad)


def _globs(target: str, source: Source, inside: set[str], there: set[str]) -> list[str]:
    """The globs that exclude from a source what a target means: a single one, if it matches the same files."""
    absolute = str(Path(target).absolute())
    within = absolute.removeprefix(f"{source.path.absolute()}/")
    for glob in (target, f"/{target.removeprefix(source.prefix)}", f"/{within}"):
        if {name for name in there if matches(name, glob)} == inside:
            return [glob]
    return [escaped(name) for name in sorted(inside)]


def _without(root: Root, globs: Sequence[str]) -> Root:
    source = root.source
    return replace(root, source=replace(source, exclude=tuple(dict.fromkeys((*source.exclude, *globs)))))


# --- how it is done --------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Work:
    """Which files to read, with their numbers and places, and which records stay."""

    kept: list[FileRecord] = field(default_factory=list)
    read: list[tuple[int, int, SourceFile]] = field(default_factory=list)
    changed: dict[int, str] = field(default_factory=dict)
    new: dict[int, str] = field(default_factory=dict)
    deleted: dict[int, str] = field(default_factory=dict)


def _change(
    index: Path,
    make_plan: Callable[[list[Root], list[FileRecord]], _Plan],
    carry: CarryParts | None,
    progress: Progress | None,
) -> Changes:
    read_manifest(index)  # before the lock, which would make the folder
    with claimed(index):
        manifest = read_manifest(index)
        roots, records = roots_of(manifest, index), read_files(index / manifest["build"])
        plan = make_plan(roots, records)
        work = _compare(index, plan, records)
        same_roots = [root.record(index) for _, root in plan.roots] == [root.record(index) for root in roots]
        if not (work.changed or work.new or work.deleted) and same_roots:
            return Changes(unchanged=len(work.kept))
        changes = _rebuild(index, manifest, plan, work, carry, progress)
        sweep(index)
    return changes


def _compare(index: Path, plan: _Plan, records: Sequence[FileRecord]) -> _Work:
    """Look for changed, new and deleted files among the sources that the plan lists."""
    work, number = _Work(), max((record.number for record in records), default=-1)
    places = {old: place for place, (old, _) in enumerate(plan.roots)}
    known: dict[int, dict[str, FileRecord]] = {}
    for record in records:
        source = places.get(record.source)
        if source is None or record.name in plan.dropped:
            work.deleted[record.number] = record.name
        elif source in plan.listed:
            known.setdefault(source, {})[record.within] = replace(record, source=source)
        else:
            work.kept.append(replace(record, source=source))
    for source in sorted(plan.listed):
        there = known.get(source, {})
        for file in _files(index, plan.roots[source][1], len(there)):
            before = there.pop(file.within, None)
            if before is None:
                number += 1
                work.new[number] = file.name
                work.read.append((number, source, file))
            elif stamp := before.stamp.renewed(file.path):
                work.kept.append(replace(before, stamp=stamp))
            else:
                work.changed[before.number] = file.name
                work.read.append((before.number, source, file))
        work.deleted |= {record.number: record.name for record in there.values()}
    if work.changed or work.new or work.deleted:
        _read_again(plan, work)
    return work


def _files(index: Path, root: Root, before: int) -> Iterator[SourceFile]:
    """The files of a source that is there."""
    source = root.source
    if source.format == LUCENE:
        raise IndexingError(f"{index} was imported from the Lucene index {source.path}: import it again")
    try:
        corpus = Corpus.of([source])
        if before and source.path.is_dir():  # it may be a disk that is not mounted: all its files are not simply gone
            sniff(source.path, source.include, source.exclude)
    except IndexingError as error:
        raise IndexingError(f"{error}: rag index remove {index} {source.path} drops its passages") from error
    return corpus.files()


def _read_again(plan: _Plan, work: _Work) -> None:
    """Also read the files that what changed may bring back: twins of files, and corpora with passages left out."""
    touched = {*work.changed.values(), *work.new.values(), *work.deleted.values()}
    for record in list(work.kept):
        source = plan.roots[record.source][1].source
        if record.twin in touched or (record.bad and source.format not in (DOCUMENTS, LUCENE)):
            path = source.path / record.within if record.within else source.path
            if path.exists():
                work.kept.remove(record)
                work.changed[record.number] = record.name
                work.read.append((record.number, record.source, source.file(path)))


def _rebuild(
    index: Path,
    manifest: dict[str, Any],
    plan: _Plan,
    work: _Work,
    carry: CarryParts | None,
    progress: Progress | None,
) -> Changes:
    old = open_build(index, manifest)
    assert old.build is not None
    with new_build(index) as build:
        try:
            shutil.copyfile(old.build / PASSAGES, build / PASSAGES)
        except OSError as error:
            raise IndexingError(f"{build}: cannot be written: {error.strerror}") from error
        editor = RowEditor(build / PASSAGES, manifest["passages"])
        try:
            editor.start(work.deleted, work.changed)
            records, reasons = _read(plan, work, editor, progress)
            editor.finish()
        finally:
            editor.abandon()
        if not editor.rows:
            raise IndexingError(f"{index} would hold no passages any more: remove its folder instead")
        counts, dead = _write_postings(old, build, editor)
        write_files(build, records)
        changed = {
            "build": build.name,
            **described(
                [root.source.path.name for _, root in plan.roots],
                sorted({root.source.format for _, root in plan.roots}),
                counts,
                combined(records),
            ),
            "skipped": sum(record.bad for record in records),
            "command": command(),
            "roots": [root.record(index) for _, root in plan.roots],
            "dead": dead,
            "files": fingerprints(build, old.build, manifest.get("files", {})),
        }
        left_out = _carried(old, open_build(index, changed), sorted(editor.written), carry)
        write_atomic(index / MANIFEST, [dumps(changed, indent=2)])
    return Changes(
        changed=tuple(sorted(work.changed.values())),
        new=tuple(sorted(work.new.values())),
        deleted=tuple(sorted(work.deleted.values())),
        unchanged=len(work.kept),
        skipped=tuple(reasons),
        left_out=tuple(left_out),
    )


def _read(plan: _Plan, work: _Work, editor: RowEditor, progress: Progress | None) -> tuple[list[FileRecord], list[str]]:
    """Read the files into the store; returns the records of all files, in order, and why items were skipped."""
    roots = [root for _, root in plan.roots]
    needed = sorted({source for _, source, _ in work.read})
    corpora = {source: Corpus.of([roots[source].source], skip_bad=roots[source].skip_bad) for source in needed}
    records = list(work.kept)
    for source, corpus in corpora.items():
        corpus.list_files()
        for record in records:
            if record.source == source:
                corpus.know(roots[source].source, record.name, record.sketch)
    for done, (number, source, file) in enumerate(work.read, 1):
        corpus, stamp = corpora[source], Stamp.of(file.path)
        before = corpus.bad
        digest, count = hashlib.sha256(), 0
        for where, passage, encoded in encodable(corpus.read_file(file), corpus.refuse):
            if editor.put(passage, number):
                digest.update(encoded)
                count += 1
            else:
                corpus.refuse(duplicate(where, passage))
        told = corpus.twins.get(file.name, ""), corpus.sketches.get(file.name, "")
        contents = Contents(count, digest.hexdigest(), corpus.bad - before, *told)
        records.append(record_of(number, source, file, stamp.confirmed(file.path), contents))
        if progress is not None:
            progress(done, len(work.read))
    records.sort(key=lambda record: (record.source, place(record.within)))
    return records, [reason for corpus in corpora.values() for reason in corpus.reasons]


def _write_postings(old: Index, build: Path, editor: RowEditor) -> tuple[dict[str, int], int]:
    """Write the postings of the new rows; returns the counts of the manifest, and the deleted passages among them."""
    assert old.build is not None
    before, rows, fresh = old.manifest["passages"], editor.rows, sorted(editor.written)
    replaced = sorted({row for row in fresh if row < before} | set(range(rows, before)))
    store = PassageStore.open(build / PASSAGES)
    gained = sum(not passage.headings for passage in _stream(store, fresh))
    lost = sum(not passage.headings for passage in _stream(old.store, replaced))
    counts = {"passages": rows, "untitled": old.manifest["untitled"] + gained - lost}
    dead = old.manifest.get("dead", 0) + len(replaced)
    few = len(fresh) <= _FRESH_SHARE * rows and (not dead or (rows > EXACT and dead <= _DEAD_SHARE * rows))
    if few:
        added = zip(fresh, _stream(store, fresh), strict=True)
        if update_postings(old.build / POSTINGS, build / POSTINGS, replaced, added, rows):
            return counts, dead
        shutil.rmtree(build / POSTINGS)
    writer = BM25Writer(build / POSTINGS, HEAP_BYTES)
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


def _carried(old: Index, new: Index, written: Sequence[int], carry: CarryParts | None) -> list[str]:
    recipes = recipes_of(old)
    if carry is None or not recipes:
        return [recipe.name for recipe in recipes]
    return carry(old, new, written)
