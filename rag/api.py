"""The public API, re-exported by `rag`. Paths may be strings; an index may be a folder, an `Index`, or several."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import partial
from itertools import chain
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from autoais.base.answers import CitedAnswer
from autoais.base.progress import Progress, no_progress
from autoais.base.types import Judge
from rag.answer.options import Options
from rag.answer.system import System
from rag.base.config import DEFAULT_JUDGE, DEFAULT_SYSTEM
from rag.base.errors import IndexingError, RagError, UsageError, check_list, check_type
from rag.base.types import Answer, Citation, Hit, Passage, Question
from rag.index.index import Index
from rag.retrieval import Retriever

if TYPE_CHECKING:
    from rag.answer.verify import QuoteComparison
    from rag.documents.corpus import Corpus
    from rag.index.build import BuildNeeds
    from rag.index.listing import IndexedDocument
    from rag.index.originals import Original, Span
    from rag.index.rebuild import Changes
    from rag.retrieval.planning import Plan

AnyIndex = Index | str | Path | None
"""An open index, an index folder, or None for the handbook that ships with rag."""

SeveralIndexes = Sequence[Index | str | Path] | Mapping[str, Index | str | Path]
"""Indexes that are searched as one: open ones or folders, in a list or by name."""

AnyIndexes = AnyIndex | SeveralIndexes

AnyRetriever = str | Path | Retriever
"""The name of a retriever, its .toml file, or an open retriever."""


def _silent(line: str) -> None:
    pass


def open_index(folder: str | Path | SeveralIndexes | None = None) -> Index:
    """Open an index folder, also a Lucene index built by Anserini; None opens the handbook that ships with rag.

    Several folders are opened as one index: a question is searched for in all of them, with the same hits as in one
    index of all passages. A passage is then called `name:id`, after its index: `open_index(["a.index", "b.index"])` has
    passages such as `a:guide.md#3`. A dict gives the indexes other names than those of their folders.

    Raises `IndexingError` if the index is missing, damaged or of another format version, or cannot be searched with the
    others; `UsageError` for an index that is there twice, and for two of one name.
    """
    from rag.index.open import open_index as opened

    if folder is None:
        return opened(None)
    if isinstance(folder, Mapping | Sequence) and not isinstance(folder, str):
        return _join(folder)
    check_type("index", folder, "an index folder (str or Path) or a list of them", str, Path)
    return opened(Path(folder))


def _join(indexes: SeveralIndexes) -> Index:
    """Open several indexes as one; a list of one is that index."""
    from rag.index.joined import join

    if isinstance(indexes, Mapping):
        return join({name: _as_index(index) for name, index in indexes.items()})
    opened_indexes = [_as_index(index) for index in indexes]
    if len(opened_indexes) == 1:
        return opened_indexes[0]
    by_name: dict[str, Index] = {}
    for index in opened_indexes:
        name = index.name.removesuffix(".index")
        if name in by_name:
            raise UsageError(f"two indexes are called {name!r}: name each once, or give a dict of names and folders")
        by_name[name] = index
    return join(by_name)


def build_index(
    sources: str | Path | Sequence[str | Path],
    to: str | Path,
    *,
    retrievers: Sequence[str] | None = None,
    memory: int | str | None = None,
    format: str | None = None,  # noqa: A002  (named like the command-line option)
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    shard: str | None = None,
    skip_bad: bool = False,
    strict: bool = False,
    replace: bool = False,
    allow_network: bool = False,
    progress: Progress | None = None,
    log: Callable[[str], None] = _silent,
) -> Index:
    """Build an index of documents, corpus files, or with `allow_network` URLs in the folder `to`, and open it.

    `include` and `exclude` are globs that choose the files of folders. `shard`, such as "2/8", reads the second of
    eight parts of the sources; passages of a page or file stay together. `retrievers` name retrievers that add their
    own data to the index, such as vectors (default: those of `default_retrievers`); `memory` (bytes, or a string such
    as `8GiB`) limits the memory that it takes while searching. `format` is a corpus format (default: detected).
    Documents that cannot be read are skipped, and so are pages that cannot be fetched. `log` is called with a line for
    what is needed of disk and memory, what was skipped or left out and why, and what was built. Raises `FormatError` at
    a broken line, unless `skip_bad`, and at such a document if `strict`; `UsageError` for a URL that may not be
    fetched; `IndexingError` for a URL from which nothing can be fetched, for a page that cannot be if `strict`, and for
    an index that exists, unless `replace`, which replaces it when the new one is complete.

    The index can be opened and asked as soon as its passages are written, before retrievers add their data. If that is
    stopped, the same call goes on with it and reads no file again, unless the sources are URLs.
    """
    from rag.documents.corpus import Corpus
    from rag.documents.sources import Shard
    from rag.index.web_sources import Fetching, check_sources, fetch_for_build

    _check_new(to)
    source_list, names = _sources(sources), check_retrievers(retrievers)
    budget, target = _budget(memory, names), Path(to)
    include_globs, exclude_globs = _globs("include", include), _globs("exclude", exclude)
    if shard is not None:
        check_type("shard", shard, "a string such as '2/8'", str)
    part = None if shard is None else Shard.parse(shard)
    check_sources(source_list, allow_network=allow_network, format=format)

    def corpus_of(paths: Sequence[Path], urls: Mapping[Path, str]) -> "Corpus":
        return Corpus(
            paths, format, skip_bad, include=include_globs, exclude=exclude_globs, strict=strict, urls=urls, shard=part
        )

    to_add = None if names is None else [_place_of(name) for name in names]
    missing = [] if replace else _missing_retrievers(target)
    if missing:
        if not _goes_on(target, source_list, corpus_of, to_add):
            raise IndexingError(
                f"{target} already exists, and was built with other options; its vectors are not complete: "
                f"add_retriever (--retriever {missing[0]} without sources) goes on with them, replace=True (--replace) "
                "replaces the index"
            )
        log(f"{target} has its passages, and only vectors are made; rag index update reads files that have changed")
        to_add = missing
    else:
        options = Fetching(include_globs, exclude_globs, strict, progress)
        with fetch_for_build(target, source_list, options, replace=replace) as result:
            for line in result.notes:
                log(line)
            corpus = corpus_of(result.paths, result.urls)
            to_add = _build(corpus, target, progress, log, replace=replace, retrievers=to_add)
        if part is None:
            _log_ready(target, log)
    for retriever in to_add:
        try:
            add_retriever(to, retriever, memory=budget, progress=progress, log=log)
        except RagError as error:
            if missing:
                raise
            message = f"{error}; {to} is built without {retriever}: add_retriever (--retriever) adds it"
            raise type(error)(message) from error
    return open_index(to)


def build_shards(
    sources: str | Path | Sequence[str | Path],
    to: str | Path,
    shards: int,
    *,
    processes: int | None = None,
    retrievers: Sequence[str] | None = None,
    memory: int | str | None = None,
    format: str | None = None,  # noqa: A002  (named like the command-line option)
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    skip_bad: bool = False,
    strict: bool = False,
    replace: bool = False,
    engine: str | None = None,
    address: str | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
    log: Callable[[str], None] = _silent,
) -> Path:
    """Build the sources as several indexes in the folder `to`, and return the file that configures their search as one.

    The indexes are `001-of-008.index` and so on, each built by `build_index` with these options in a process of its
    own, `processes` at a time (default: one per core). The file, `shards.toml`, is a retriever that searches them with
    the last of `retrievers`, or else with `bm25`. Run it again to resume a stopped build: shards that are there are
    updated, unless `replace`. `memory` limits each shard. `engine`, `address` and `workers` are those of
    `autoais.base.engines.open_engine`: the encoders of the retrievers run there, for one shard at a time unless
    `processes` says more. When a shard that is there is updated, changed passages are encoded on this machine. Raises
    `UsageError` for URLs, for fewer than two shards, for a retriever that has shards of its own and for an engine
    without a retriever; `IndexingError` as `build_index` does, for a process that was killed, and for a folder that
    holds other indexes.
    """
    from autoais.base.engines import ENGINES
    from autoais.base.urls import is_url
    from rag.documents.sources import MAX_SHARDS
    from rag.retrieval.sharding import ShardOptions, format_config, jobs, run, write_config

    _check_new(to)
    source_list, names = _sources(sources), check_retrievers(retrievers) or []
    for name, value, minimum, maximum in (("shards", shards, 2, MAX_SHARDS), ("processes", processes, 1, MAX_SHARDS)):
        if value is not None:
            check_type(name, value, "a whole number", Integral)
            if not minimum <= value <= maximum:
                raise UsageError(f"{name} should be from {minimum} to {maximum}, found {value}")
    if any(is_url(source) for source in source_list):
        raise UsageError(
            "a collection of URLs cannot be built in shards: build one index, or copy the pages to a folder"
        )
    if engine is not None:
        _ = ENGINES[engine]  # may raise
        if not names:
            raise UsageError("an engine is for the encoders of retrievers: name one")
    elif address is not None or workers is not None:
        raise UsageError("address and workers are for an engine: name one, such as ray")
    options = ShardOptions(
        retrievers=tuple(names),
        memory=_budget(memory, names),
        format=format,
        include=_globs("include", include),
        exclude=_globs("exclude", exclude),
        skip_bad=skip_bad,
        strict=strict,
        engine=[
            f"--{name}={value}"
            for name, value in (("engine", engine), ("address", address), ("workers", workers))
            if value is not None
        ],
    )
    at_once = processes or (1 if engine else os.cpu_count()) or 1
    shard_jobs = jobs([Path(source) for source in source_list], Path(to), shards, options, replace=replace)
    text = format_config(shard_jobs, names[-1] if names else "bm25")
    report = progress or no_progress
    report("building shards", 0, shards)
    try:
        with closing(run(shard_jobs, min(at_once, shards), log)) as finished_jobs:
            for count, _ in enumerate(finished_jobs, 1):
                report("building shards", count, shards)
    except KeyboardInterrupt:
        log("stopped; run the same command again to resume")
        raise
    return write_config(Path(to), text)


def import_index(
    folder: str | Path,
    to: str | Path,
    *,
    skip_bad: bool = False,
    replace: bool = False,
    progress: Progress | None = None,
    log: Callable[[str], None] = _silent,
) -> Index:
    """Build an index of the passages that a Lucene index of Anserini stores; other options as in `build_index`."""
    from rag.index.lucene import Stored

    _build(Stored(_folder(folder), skip_bad=skip_bad), Path(to), progress, log, replace=replace)
    return open_index(to)


def merge_indexes(
    indexes: Sequence[str | Path],
    to: str | Path,
    *,
    replace: bool = False,
    progress: Progress | None = None,
    log: Callable[[str], None] = _silent,
) -> Index:
    """Make one index of several in the folder `to`, and open it; documents are not read again.

    Either all shards of a build are merged into the index of the whole, or indexes of different sources. Ids and the
    order of sources stay as they are. Vectors that all indexes have are copied; `log` is called with a line for what is
    needed of disk and memory, and for each retriever whose data has to be added again. `replace` replaces an index in
    `to`, when the new one is complete. Raises `UsageError` for fewer than two indexes, one that is named twice or is
    `to`, and for one on a server; `IndexingError` for indexes that have an id or a source in common, and for shards of
    which one is missing or that are of another build.
    """
    from rag.base.terminal import pluralize
    from rag.index.merge import estimate_merge, merge, plan_merge
    from rag.index.parts import read_data_configs
    from rag.retrieval import merge_parts

    _check_new(to)
    check_list("indexes", indexes, "a list of index folders")
    folders, target = list(indexes), Path(to)
    for folder in folders:
        check_type("index", folder, "an index folder (str or Path)", str, Path)
    merger = plan_merge(folders, target, replace=replace)
    with _log_needs(estimate_merge(merger), target, log):
        manifest, reasons = merge(merger, target, partial(merge_parts, progress=progress), progress, replace=replace)
    index = open_index(target)
    log(f"{pluralize(manifest['passages'], 'passage')} of {len(folders):,} indexes in {target}")
    for config in read_data_configs(index):
        log(f"{config.name} is in {target}")
    for name, reason in reasons.items():
        log(f"{name} was left out ({reason}): rag index build --to {target} --retriever NAME adds it")
    for name in [] if reasons else _missing_retrievers(target):
        log(f"none of the indexes has its vectors: rag index build --to {target} --retriever {name} adds them")
    return index


def _place_of(retriever: str) -> str:
    """The name of a retriever, with a whole path for that of a file: others complete the index in other folders."""
    return str(Path(retriever).absolute()) if retriever.endswith(".toml") else retriever


def _missing_retrievers(folder: Path) -> list[str]:
    """The retrievers that were to add data to the index in a folder, and have not; none without an index."""
    from rag.retrieval import missing_retrievers

    try:
        return missing_retrievers(open_index(folder))
    except IndexingError:  # no index, or a damaged one: to be built, or refused
        return []


def _goes_on(
    to: Path,
    sources: Sequence[str | Path],
    corpus_of: Callable[[Sequence[Path], Mapping[Path, str]], "Corpus"],
    retrievers: Sequence[str] | None,
) -> bool:
    """Whether a build is that of the index that is there; never for sources that are URLs."""
    from rag.index.build import has_sources

    if any(isinstance(source, str) for source in sources):
        return False
    expected = default_retrievers(to) if retrievers is None else retrievers
    is_same = list(expected) == open_index(to).manifest["retrievers"]
    return is_same and has_sources(to, corpus_of([Path(source) for source in sources], {}))


def _log_ready(to: Path, log: Callable[[str], None]) -> None:
    """Say that an index can be asked, if data of retrievers are still to come."""
    if _missing_retrievers(to):
        log(f"{to} can be asked from now; vectors for {open_index(to).manifest['passages']:,} passages follow")


def _build(
    corpus: "Corpus",
    to: Path,
    progress: Progress | None,
    log: Callable[[str], None],
    *,
    replace: bool,
    retrievers: Sequence[str] | None = (),
) -> list[str]:
    """Build passages and postings; returns the retrievers whose data are to be added next (None: the default ones)."""
    from rag.base.terminal import pluralize
    from rag.documents.report import describe_left_out, describe_losses
    from rag.index.build import build, check_new, estimate

    if not replace:
        check_new(to)
    try:
        with _log_needs(estimate(corpus), to, log):
            manifest = build(corpus, to, progress, replace=replace, retrievers=retrievers)
    except IndexingError:  # no passages: what was left out says why
        for line in describe_left_out(corpus.report):
            log(line)
        raise
    report = corpus.report
    for reason in report.reasons:
        log(f"skipped {reason}")
    if report.bad > len(report.reasons):
        log(f"... and {report.bad - len(report.reasons)} more skipped")
    for line in chain(describe_left_out(report), describe_losses(report.losses, f"rag index show {to}")):
        log(line)
    log(f"{pluralize(manifest['passages'], 'passage')} in {to}, {manifest['skipped']:,} skipped")
    return list(manifest["retrievers"])


@contextmanager
def _log_needs(estimate: "BuildNeeds", to: Path, log: Callable[[str], None]) -> Iterator[None]:
    """Say what a build needs, and if it is stopped, what there is."""
    from rag.base.terminal import free_disk, megabytes

    log(
        f"needs about {megabytes(estimate.disk)} of disk ({free_disk(to)} free), {megabytes(estimate.memory)} of memory"
    )
    try:
        yield
    except KeyboardInterrupt:
        log(
            f"stopped; {to} is whole, as before or with the new build" if to.exists() else f"stopped; {to} is not there"
        )
        raise


def default_retrievers(folder: str | Path) -> tuple[str, ...]:
    """The retrievers whose data a new index gets unless others are named: `hybrid` for documents, if they are few.

    Empty for corpus files, shards, and more than 20,000 passages, whose vectors would take more than a few minutes.
    """
    from rag.index.manifest import default_parts, is_shard

    manifest = open_index(folder).manifest
    return default_parts(manifest["format"], manifest["passages"], shard=is_shard(manifest))


def _sources(sources: str | Path | Sequence[str | Path]) -> list[str | Path]:
    """URLs as strings, all others as paths."""
    from autoais.base.urls import is_url

    check_type("sources", sources, "a path or a list of paths", str, Path, Iterable)
    source_list = [sources] if isinstance(sources, str | Path) else list(sources)
    for path in source_list:
        check_type("source", path, "a path (str or Path)", str, Path)
    return [path if is_url(path) else Path(path) for path in source_list]


def check_retrievers(retrievers: Sequence[str] | None) -> list[str] | None:
    """The names as a list; raises `RagError` for a retriever that cannot be read, before a long build starts."""
    from rag.retrieval import walk_data_configs

    if retrievers is None:
        return None
    check_list("retrievers", retrievers, "a list of names")
    names = list(retrievers)
    for retriever in names:
        list(walk_data_configs(retriever))
    return names


def _budget(memory: int | str | None, retrievers: Sequence[str] | None) -> int | None:
    """The memory limit in bytes; raises `UsageError` for a limit without retrievers."""
    if memory is None:
        return None
    if not retrievers:
        raise UsageError("memory is for the data that retrievers add; name retrievers too")
    return _size("memory", memory)


def _size(name: str, value: int | str) -> int:
    """A number, or a text such as `8GiB` or `33M`; raises `UsageError` for one below 1."""
    from rag.index.parts import parse_size

    check_type(name, value, "a number, or a text such as '8GiB' or '33M'", Integral, str)
    number = parse_size(value) if isinstance(value, str) else value
    if number < 1:
        raise UsageError(f"{name} should be at least 1, found {number}")
    return number


def _globs(name: str, globs: Sequence[str]) -> list[str]:
    check_list(name, globs, "a list of globs")
    glob_list = list(globs)
    for glob in glob_list:
        check_type(name, glob, "a glob (str)", str)
    return glob_list


def _check_new(to: str | Path) -> None:
    """Raise `UsageError` unless the path can be that of a folder."""
    check_type("to", to, "a folder (str or Path)", str, Path)
    if not os.fspath(to):
        raise UsageError("to should be a folder, found an empty text")
    try:
        Path(to).lstat()
    except FileNotFoundError:
        return
    except (OSError, ValueError) as error:  # a name that is too long, or has a null byte
        reason = error.strerror if isinstance(error, OSError) else "it has a null character"
        raise UsageError(f"{str(to)[:60]!r} cannot be a folder: {reason}") from error


def update_index(
    folder: str | Path,
    sources: str | Path | Sequence[str | Path] = (),
    *,
    include: Sequence[str] | None = None,
    exclude: Sequence[str] | None = None,
    skip_bad: bool | None = None,
    restore: bool = False,
    allow_network: bool = False,
    progress: Progress | None = None,
) -> "Changes":
    """Bring an index up to date: read changed and new files of its sources, and drop the passages of deleted ones.

    `sources` are some of the index's own (default: all). Globs replace those that the index remembers for them; so does
    `skip_bad`. Files that `remove_from_index` left out stay out, unless `restore` is set. With `allow_network`, changed
    pages of URLs are fetched again; one that cannot be fetched is kept as it was and named in `Changes.notes`. Whoever
    has the index open keeps reading the old one; open it again for the new one. Raises `IndexingError` if a source is
    gone, or if another process is writing to the index.
    """
    from rag.index.update import update
    from rag.retrieval import carry_parts

    return update(
        _folder(folder),
        _sources(sources),
        include=None if include is None else _globs("include", include),
        exclude=None if exclude is None else _globs("exclude", exclude),
        skip_bad=skip_bad,
        restore=restore,
        allow_network=allow_network,
        carry=partial(carry_parts, progress=progress),
        progress=progress,
    )


def add_to_index(
    folder: str | Path,
    sources: str | Path | Sequence[str | Path],
    *,
    format: str | None = None,  # noqa: A002  (named like the command-line option)
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    skip_bad: bool = False,
    strict: bool = False,
    allow_network: bool = False,
    progress: Progress | None = None,
) -> "Changes":
    """Add the passages of further sources to an index; the options are those of `build_index`.

    Raises `IndexingError` for a source that the index has already or a URL from which nothing can be fetched,
    `UsageError` for a URL that may not be fetched, and `FormatError` for an id that occurs twice.
    """
    from rag.index.update import add
    from rag.retrieval import carry_parts

    return add(
        _folder(folder),
        _sources(sources),
        format=format,
        include=_globs("include", include),
        exclude=_globs("exclude", exclude),
        skip_bad=skip_bad,
        strict=strict,
        allow_network=allow_network,
        carry=partial(carry_parts, progress=progress),
        progress=progress,
    )


def remove_from_index(
    folder: str | Path, targets: str | Path | Sequence[str | Path], *, progress: Progress | None = None
) -> "Changes":
    """Remove sources from an index, or files by name, path, URL or glob, which updates then leave out too.

    Raises `IndexingError` for a target that matches nothing, and if no passage would remain.
    """
    from rag.index.update import remove
    from rag.retrieval import carry_parts

    check_type("targets", targets, "a path, a glob or a list of them", str, Path, Iterable)
    target_list = [targets] if isinstance(targets, str | Path) else list(targets)
    for target in target_list:
        check_type("target", target, "a path or a glob (str or Path)", str, Path)
    return remove(
        _folder(folder),
        target_list,
        carry=partial(carry_parts, progress=progress),
        progress=progress,
    )


def list_documents(index: AnyIndex = None) -> "list[IndexedDocument]":
    """List the files of an index in order: name, path, size, time, number of passages, and what was left out.

    Raises `IndexingError` for an index that does not know its files, such as the handbook that ships or a Lucene index.
    """
    from rag.index.listing import list_documents as list_files

    return list_files(_as_index(index))


def verify_index(folder: str | Path) -> list[str]:
    """Read every byte of an index and return its damage, one line each; an empty list means that it is intact."""
    from rag.index.verify import verify

    return verify(_folder(folder))


def _folder(folder: str | Path) -> Path:
    check_type("index", folder, "an index folder (str or Path)", str, Path)
    return Path(folder)


def add_retriever(
    folder: str | Path,
    retriever: str,
    *,
    memory: int | str | None = None,
    progress: Progress | None = None,
    log: Callable[[str], None] = _silent,
) -> list[str]:
    """Add the data that a retriever needs to an existing index and return its names; a stopped run resumes.

    `memory` (bytes, or a string such as `8GiB`) limits the memory that the data takes while searching. `log` is called
    with a line for what it needs of disk and memory, and when it is there. Raises `IndexingError` on a full
    disk, or if another process is adding the data.
    """
    from rag.base.terminal import free_disk, megabytes
    from rag.retrieval import kind_of, walk_data_configs

    folder, budget, names = _folder(folder), _budget(memory, [retriever]), []
    for name, part in walk_data_configs(retriever):
        index, kind = open_index(folder), kind_of(part)

        def report(count: int, step: str, name: str = name, total: int = index.manifest["passages"]) -> None:
            if progress is not None:
                progress(f"{name} {step}".strip(), count, total)

        if kind.needs is not None:
            needs = kind.needs(index, part, budget)
            disk, building, searching = (megabytes(size) for size in (needs.disk, needs.memory, needs.resident))
            log(
                f"{name}: {needs.why + '; ' if needs.why else ''}needs about {disk} of disk ({free_disk(folder)} "
                f"free), {building} of memory to build and {searching} to search"
            )
        try:
            if kind.add is not None:
                kind.add(index, part, budget, report)
        except KeyboardInterrupt:
            log(
                f"stopped; rag index build --to {folder} --retriever {retriever} goes on, and until then its data is "
                "missing"
            )
            raise
        log(f"{name} was added to {folder}")
        names.append(name)
    if not names:
        log(f"{retriever}: adds nothing to the index")
    return names


def plan_index(
    sources: str | Path | Sequence[str | Path],
    *,
    passages: int | str | None = None,
    retrievers: Sequence[str] | None = None,
    memory: int | str | None = None,
    sample: int = 50_000,
    format: str | None = None,  # noqa: A002  (named like the command-line option)
    skip_bad: bool = False,
    log: Callable[[str], None] = _silent,
) -> "Plan":
    """Plan what `build_index` would take on this machine: seconds, disk and memory of each step.

    The first `sample` passages are read and measured. `passages` is the number to plan for, also as `33M` (default:
    that of the sources, estimated from their size). `retrievers` are those of `build_index`. `log` is called with a
    line at each step. Raises `UsageError` for numbers that are too small, and for URLs.
    """
    from rag.documents.corpus import Corpus
    from rag.retrieval.planning import plan

    names, paths = check_retrievers(retrievers), []
    for source in _sources(sources):
        if isinstance(source, str):
            raise UsageError(f"cannot plan for {source}: save its pages to a folder and plan for that")
        paths.append(source)
    corpus = Corpus(paths, format, skip_bad)
    number = None if passages is None else _size("passages", passages)
    limit = None if memory is None else _size("memory", memory)
    return plan(corpus, passages=number, retrievers=names, memory=limit, sample=sample, log=log)


def open_retriever(retriever: AnyRetriever = "bm25", index: AnyIndexes = None) -> Retriever:
    """Open a retriever by its name or .toml file; its method `search` takes several queries at once.

    An open retriever is returned as it is.

    Raises `RagError` for an unknown retriever, `IndexingError` if the index lacks data that the retriever needs.
    """
    from rag.retrieval import open_retriever as opened

    check_type("retriever", retriever, "a name, a .toml file or an open retriever", str, Path, Retriever)
    return retriever if isinstance(retriever, Retriever) else opened(str(retriever), _as_index(index))


def search(query: str, index: AnyIndexes = None, *, retriever: AnyRetriever = "bm25", k: int = 10) -> list[Hit]:
    """Return at most k hits for a query, best first; fewer if fewer match.

    Scores are comparable only within one list. Raises as `open_retriever`, `QuestionError` for a query that cannot be
    searched, and `RagError` for a k below 1.
    """
    check_type("query", query, "a string (a retriever's method `search` takes a list)", str)
    return open_retriever(retriever, index).search([query], k)[0]


class SystemOptions(TypedDict, total=False):
    """The options of a system: its retriever, its number of passages, and those of `rag.answer.options.Options`."""

    retriever: AnyRetriever | None
    k: int | None
    min_confidence: float | None
    prompt: str | None
    context: int | None
    temperature: float | None
    seed: int | None
    revise: str | None
    answer: str | None
    repair: bool | None
    words: int | None
    rounds: int | None


def open_system(name: str = DEFAULT_SYSTEM, index: AnyIndexes = None, **options: Unpack[SystemOptions]) -> System:
    """Open a system by name (`rag systems` lists them), such as `reader` or `openai:gpt-4.1-mini`.

    `retriever` (also an open retriever) and `k` replace the system's default retriever and number of passages.
    `min_confidence` (0 to 1), `answer` (`free`, `point` or `quote`), `prompt`, `context` (tokens), `temperature`,
    `seed`, `revise`, `repair` (True moves, adds and removes citations), `words` (of sources shown) and `rounds` (1 to 5
    searches; the model asks for those after the first) apply to systems that support them. Raises `RagError` for an
    unknown name, an option that the system does not support, or a value out of its range.
    """
    from rag.answer.systems import open_system as opened

    if unknown := sorted(options.keys() - SystemOptions.__annotations__.keys()):
        raise UsageError(f"no option called {unknown[0]!r}; there are: {', '.join(SystemOptions.__annotations__)}")
    k, retriever = options.pop("k", None), options.pop("retriever", None)
    if retriever is not None:
        check_type("retriever", retriever, "a name, a .toml file or an open retriever", str, Path, Retriever)
    return opened(name, _as_index(index), Options(**options), k=k, retriever=retriever)  # type: ignore[misc]


def ask(
    question: str | Question,
    index: AnyIndexes = None,
    *,
    system: str | System = DEFAULT_SYSTEM,
    **options: Unpack[SystemOptions],
) -> Answer:
    """Answer one question; `str(answer)` is the text with `[n]` markers, `answer.sentences` has citations and spans.

    `options` are those of `open_system`: retriever, k, min_confidence, answer, prompt, context, temperature, seed,
    revise, repair, words and rounds. To ask several questions, open a system once. Raises as `open_system`, and
    `QuestionError` for a question that cannot be searched.
    """
    check_type("system", system, "a name such as 'reader' or an open system", str, System)
    if isinstance(system, System):
        if options or index is not None:
            raise UsageError("an open system already has an index and options; pass them to open_system")
        return system.ask(question)
    return open_system(system, index, **options).ask(question)


def attribute(
    answers: Iterable[tuple[str, str] | CitedAnswer | Answer | Mapping[str, Any]],
    index: AnyIndexes = None,
    *,
    retriever: AnyRetriever = "bm25",
    k: int = 10,
    judge: str | Judge = DEFAULT_JUDGE,
    revise: str | None = None,
) -> list[Answer]:
    """Add citations to existing answers: (question, answer) pairs, or answers of any system.

    Each sentence cites the passage that supports it according to the judge, or none. `revise` drops unsupported
    sentences (`drop`) or has a language model rewrite them (`gguf:<file>`).
    """
    from autoais.judges import open_judge
    from rag.answer.attribution.post_hoc import PostHoc, answer_of_pair, answer_without_citations
    from rag.answer.attribution.revise import open_reviser

    if isinstance(answers, str):
        raise UsageError("answers should be a list of (question, answer) pairs, found one string")
    check_type("answers", answers, "a list of (question, answer) pairs or of answers", Iterable)
    check_type("judge", judge, "a name such as 'minilm' or an open judge", str, Judge)
    check_type("k", k, "an int", Integral)
    judge_model = open_judge(judge) if isinstance(judge, str) else judge
    post_hoc = PostHoc(open_retriever(retriever, index), judge_model, k)
    reviser = None if revise is None else open_reviser(revise, post_hoc.attributor)
    attributed_answers = []
    for number, answer in enumerate(answers, 1):
        uncited = (
            answer_of_pair(answer, number)
            if isinstance(answer, tuple | list | str)
            else answer_without_citations(answer, number)
        )
        cited_answer = post_hoc.attribute(uncited)
        attributed_answers.append(cited_answer if reviser is None else reviser.revise(cited_answer))
    return attributed_answers


def verify_quotes(
    answers: str | Path | Iterable[CitedAnswer | Answer], index: AnyIndexes = None
) -> "list[QuoteComparison]":
    """Compare every quote of answers with an index: `same`, `moved`, `changed` (see `diff`) or `gone`.

    `answers` are a file, in any format that `autoais` reads, or answers. Raises `FormatError` at a broken row.
    """
    from autoais.formats import read
    from rag.answer.verify import verify_quotes as verify

    check_type("answers", answers, "a file or a list of answers", str, Path, Iterable)
    rows = read(Path(answers)) if isinstance(answers, str | Path) else answers
    cited_answers = (answer.to_cited() if isinstance(answer, Answer) else answer for answer in rows)
    return list(verify(cited_answers, _as_index(index)))


def locate(
    passage: "str | Passage | Citation", index: AnyIndexes = None, spans: "Sequence[Span] | None" = None
) -> "Original":
    """Find a passage in the file that it was read from: the pages of a PDF, with boxes around the words.

    `passage` is a passage, its id, or a citation, whose span is looked for. `spans` are parts of the passage's text
    (characters, end exclusive); by default all of it. Raises `NotFoundError` if the index has no such passage, does not
    know its file, or the file is gone or has changed since it was read; `FormatError` for a PDF that cannot be read.
    """
    from rag.base.errors import NotFoundError
    from rag.index.originals import Originals

    check_type("passage", passage, "an id, a Passage or a Citation", str, Passage, Citation)
    opened = _as_index(index)
    if isinstance(passage, Citation):
        identifier = passage.passage
        spans = [passage.span] if spans is None and passage.start is not None else spans
    else:
        identifier = passage if isinstance(passage, str) else passage.id
    indexed = opened.store.get(identifier)
    if indexed is None:
        raise NotFoundError(f"the index has no passage {identifier[:100]!r}")
    return Originals(opened).locate(indexed, spans)


def _as_index(index: AnyIndexes) -> Index:
    if index is not None:
        check_type("index", index, "an index folder or an open index", Index, str, Path, Sequence, Mapping)
    return index if isinstance(index, Index) else open_index(index)
