"""Changes an index: sources are added and removed, and changed, new and deleted files are read again.

The new build shares what stays with the old one and replaces it atomically, so an update that is stopped, killed or out
of disk loses nothing, and whoever has the old one open keeps reading it.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rag.corpus.reader import Corpus
from rag.corpus.sources import Source, check_globs, escaped, home_of, matches, prefixes
from rag.errors import IndexingError
from rag.index.compare import Plan
from rag.index.files import FileRecord, Root
from rag.index.rebuild import CarryParts, Changes, Progress, change


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

    def plan(roots: list[Root], _: list[FileRecord]) -> Plan:
        chosen = {_own(index, roots, source) for source in sources} if sources else set(range(len(roots)))
        made = list(enumerate(roots))
        for number in chosen:
            made[number] = number, _with_globs(roots[number], include, exclude, skip_bad)
        return Plan([*made], chosen)

    return change(index, plan, carry, progress)


def add(
    index: Path,
    sources: Sequence[Path],
    *,
    format: str | None = None,  # noqa: A002  (named like the command-line option)
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    skip_bad: bool = False,
    strict: bool = False,
    carry: CarryParts | None = None,
    progress: Progress | None = None,
) -> Changes:
    """Add the passages of further sources; raises `IndexingError` for one that the index has, and as `update` does."""
    given = Corpus(sources, format, skip_bad, include=include, exclude=exclude, strict=strict)

    def plan(roots: list[Root], _: list[FileRecord]) -> Plan:
        for source in sources:
            for root in roots:
                if _lies_in(source, root.source.path) or _lies_in(root.source.path, source):
                    raise IndexingError(
                        f"{source}: {root.source.path} is a source of {index}: rag index update reads it"
                    )
        taken = {root.source.prefix: home_of(root.source.path) for root in roots}
        fresh = [
            Root(replace(source, prefix=prefix), skip_bad, strict)
            for source, prefix in zip(given.described, prefixes(sources, taken), strict=True)
        ]
        made = [*enumerate(roots), *((None, root) for root in fresh)]
        return Plan(made, set(range(len(roots), len(made))))

    return change(index, plan, carry, progress)


def remove(
    index: Path, targets: Sequence[str | Path], *, carry: CarryParts | None = None, progress: Progress | None = None
) -> Changes:
    """Remove sources, or files by globs on their names or paths, which updates will then leave out too.

    Raises `IndexingError` for a target that matches nothing, and if no passage would remain.
    """

    def plan(roots: list[Root], records: list[FileRecord]) -> Plan:
        gone: set[int] = set()
        dropped: set[str] = set()
        left = list(roots)
        for target in targets:
            whole = [number for number, root in enumerate(roots) if _means(target, root.source)]
            files = [] if whole else _files(records, roots, str(target))
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
        return Plan([(number, root) for number, root in enumerate(left) if number not in gone], dropped=dropped)

    return change(index, plan, carry, progress)


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


def _files(records: Sequence[FileRecord], roots: Sequence[Root], target: str) -> list[FileRecord]:
    """The files with this name or path, or else those that it matches as a glob."""
    absolute = str(Path(target).absolute())
    paths = {}
    for record in records:
        path = roots[record.source].source.path
        paths[record.number] = str((path / record.within) if record.within else path)
    exact = [record for record in records if target == record.name or absolute == paths[record.number]]
    return exact or [r for r in records if matches(r.name, target) or matches(paths[r.number], absolute)]


def _with_globs(
    root: Root, include: Sequence[str] | None, exclude: Sequence[str] | None, skip_bad: bool | None
) -> Root:
    source = root.source
    if include is not None:
        source = replace(source, include=check_globs(include))
    if exclude is not None:
        source = replace(source, exclude=check_globs(exclude))
    return replace(root, source=source, skip_bad=root.skip_bad if skip_bad is None else skip_bad)


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
