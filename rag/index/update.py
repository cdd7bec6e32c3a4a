"""Changes an index: sources are added and removed, and changed, new and deleted files are read again.

The new build shares what stays with the old one and replaces it atomically, so an update that is stopped, killed or out
of disk loses nothing, and whoever has the old one open keeps reading it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

from autoais.base.progress import Progress
from autoais.base.urls import is_url, key_of
from rag.base.errors import IndexingError
from rag.documents.corpus import Corpus
from rag.documents.sources import Source, check_globs, escape_glob, matches, prefixes
from rag.index.compare import Plan
from rag.index.files import FileRecord, Root
from rag.index.rebuild import CarryParts, Changes, change
from rag.index.web_sources import Fetching, check_sources, fetch_sources, refresh, refusal_reason


def update(
    index: Path,
    sources: Sequence[str | Path] = (),
    *,
    include: Sequence[str] | None = None,
    exclude: Sequence[str] | None = None,
    skip_bad: bool | None = None,
    restore: bool = False,
    allow_network: bool = False,
    carry: CarryParts | None = None,
    progress: Progress | None = None,
) -> Changes:
    """Read the changed and new files of the sources, all by default, and remove the passages of deleted ones.

    Globs replace those that the index remembers; files that `remove` left out stay out, unless `restore` is set. With
    `allow_network`, the pages of web sources are fetched first; one that cannot be fetched is kept as it was and named
    in `notes`. Raises `IndexingError` for an index that does not know its sources, a source that is not one of its own
    or is gone, or another process that writes to the index.
    """
    notes: list[str] = []

    def plan(roots: list[Root], _: list[FileRecord]) -> Plan:
        numbers = {_own(index, roots, source) for source in sources} if sources else set(range(len(roots)))
        new_roots = list(roots)
        for number in numbers:
            new_roots[number] = _with_globs(roots[number], include, exclude, skip_bad, restore=restore)
        web = [new_roots[number] for number in sorted(numbers) if new_roots[number].source.url]
        notes.extend(_refresh_mirrors(web, new_roots, progress, allow_network=allow_network))
        return Plan([*enumerate(new_roots)], numbers)

    return replace(change(index, plan, carry, progress), notes=tuple(notes))


def _refresh_mirrors(
    web: Sequence[Root], roots: Sequence[Root], progress: Progress | None, *, allow_network: bool
) -> Iterator[str]:
    """Fetch the pages of web sources, if that is allowed; yields what to tell people."""
    if web and (reason := refusal_reason(allow_network=allow_network)):
        names = web[0].source.url if len(web) == 1 else f"{len(web):,} web sources"
        yield f"{names} not asked for changes: {reason}"
        return
    for root in web:
        yield from refresh(root, roots, progress)


def add(
    index: Path,
    sources: Sequence[str | Path],
    *,
    format: str | None = None,  # noqa: A002  (named like the command-line option)
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    skip_bad: bool = False,
    strict: bool = False,
    allow_network: bool = False,
    carry: CarryParts | None = None,
    progress: Progress | None = None,
) -> Changes:
    """Add the passages of further sources, also of URLs with `allow_network`; to a shard, its part of them.

    Raises `UsageError` for a URL that may not be fetched, `IndexingError` for a source that the index has, a URL from
    which nothing can be fetched, and as `update` does.
    """
    check_sources(sources, allow_network=allow_network, format=format)
    options = Fetching(include, exclude, strict, progress)
    notes: list[str] = []

    def plan(roots: list[Root], _: list[FileRecord]) -> Plan:
        for source, root in product(sources, roots):
            if overlap(source, root.source):
                restore = " --restore" if root.source.removed else ""
                way_out = f"rag index update{restore} reads it"
                raise IndexingError(f"{source}: {root.source.given} is a source of {index}: {way_out}")
        sources_found = fetch_sources(index, sources, roots, options)
        notes.extend(sources_found.notes)
        new_sources = Corpus(
            sources_found.paths,
            format,
            skip_bad,
            include=include,
            exclude=exclude,
            strict=strict,
            urls=sources_found.urls,
            shard=roots[0].source.shard if roots else None,
        ).described
        homes = {root.source.prefix: root.source.home for root in roots}
        fresh = [
            Root(replace(source, prefix=prefix), skip_bad, strict)
            for source, prefix in zip(
                new_sources, prefixes([source.home for source in new_sources], homes), strict=True
            )
        ]
        numbered_roots = [*enumerate(roots), *((None, root) for root in fresh)]
        return Plan(numbered_roots, set(range(len(roots), len(numbered_roots))))

    return replace(change(index, plan, carry, progress), notes=tuple(notes))


def remove(
    index: Path, targets: Sequence[str | Path], *, carry: CarryParts | None = None, progress: Progress | None = None
) -> Changes:
    """Remove sources, or files by globs on their names or paths, which updates will then leave out too.

    Raises `IndexingError` for a target that matches nothing, and if no passage would remain.
    """

    def plan(roots: list[Root], records: list[FileRecord]) -> Plan:
        removed_roots: set[int] = set()
        removed_names: set[str] = set()
        new_roots = list(roots)
        for target in targets:
            numbers = [number for number, root in enumerate(roots) if _means(target, root.source)]
            files = [] if numbers else _files(records, roots, str(target))
            if not numbers and not files:
                raise IndexingError(f"{index} has no source or file {str(target)!r}: rag index show lists its files")
            removed_roots.update(numbers)
            removed_names.update(record.name for record in files)
            for number in {record.source for record in files}:
                paths = {record.within for record in files if record.source == number}
                if "" in paths:
                    removed_roots.add(number)
                all_paths = {record.within for record in records if record.source == number}
                new_roots[number] = _without(
                    new_roots[number], _globs(str(target), roots[number].source, paths, all_paths)
                )
        return Plan(
            [(number, root) for number, root in enumerate(new_roots) if number not in removed_roots],
            removed_names=removed_names,
        )

    return change(index, plan, carry, progress)


def _own(index: Path, roots: Sequence[Root], source: str | Path) -> int:
    for number, root in enumerate(roots):
        if _same(source, root.source):
            return number
    names = ", ".join(root.source.given for root in roots)
    raise IndexingError(f"{source} is not a source of {index} ({names}): rag index add adds it")


def _same(target: str | Path, source: Source) -> bool:
    if is_url(target) or source.url:
        return is_url(target) and source.url != "" and key_of(str(target)) == key_of(source.url)
    return Path(target).resolve() == source.path.resolve()


def _means(target: str | Path, source: Source) -> bool:
    """Whether a target is a source: by its path, or by its name where there is no such path."""
    return _same(target, source) or (str(target) == source.name and not Path(target).exists())


def overlap(target: str | Path, source: Source) -> bool:
    """Whether one source lies in the other."""
    if is_url(target) or source.url:
        return _same(target, source)
    return _lies_in(Path(target), source.path) or _lies_in(source.path, Path(target))


def _lies_in(path: Path, folder: Path) -> bool:
    return path.resolve().is_relative_to(folder.resolve())


def _files(records: Sequence[FileRecord], roots: Sequence[Root], target: str) -> list[FileRecord]:
    """The files with this name, path or URL, or else those that it matches as a glob."""
    if is_url(target):
        target = key_of(target)
    absolute = str(Path(target).absolute())
    paths = {}
    for record in records:
        path = roots[record.source].source.path
        paths[record.number] = str((path / record.within) if record.within else path)
    exact = [record for record in records if target == record.name or absolute == paths[record.number]]
    return exact or [r for r in records if matches(r.name, target) or matches(paths[r.number], absolute)]


def _with_globs(
    root: Root,
    include: Sequence[str] | None,
    exclude: Sequence[str] | None,
    skip_bad: bool | None,
    *,
    restore: bool,
) -> Root:
    source = root.source
    if include is not None:
        source = replace(source, include=check_globs(include))
    if exclude is not None:
        source = replace(source, exclude=check_globs(exclude))
    if restore:
        source = replace(source, removed=())
    return replace(root, source=source, skip_bad=root.skip_bad if skip_bad is None else skip_bad)


def _globs(target: str, source: Source, paths: set[str], all_paths: set[str]) -> list[str]:
    """The globs that exclude from a source what a target means: a single one, if it matches the same files."""
    if is_url(target):
        target = key_of(target)
    absolute = str(Path(target).absolute())
    relative = absolute.removeprefix(f"{source.path.absolute()}/")
    for glob in (target, f"/{target.removeprefix(source.prefix)}", f"/{relative}"):
        if {name for name in all_paths if matches(name, glob)} == paths:
            return [glob]
    return [escape_glob(name) for name in sorted(paths)]


def _without(root: Root, globs: Sequence[str]) -> Root:
    source = root.source
    return replace(root, source=replace(source, removed=tuple(dict.fromkeys((*source.removed, *globs)))))
