"""Retrievers: find hits for a batch of queries. `rag.index.retriever_config` reads kind and settings."""

import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Protocol, runtime_checkable

from autoais.base.progress import Progress
from autoais.base.registry import Registry
from rag.base.errors import IndexingError, RagError, UserError
from rag.base.types import Hit, best_first
from rag.index.index import Index
from rag.index.parts import Needs, RowProgress, read_data_configs, remove_work
from rag.index.retriever_config import RetrieverConfig, walk_configs
from rag.index.statistics import Statistics


@runtime_checkable
class Retriever(Protocol):
    """Finds passages for queries."""

    @property
    def name(self) -> str:
        """Identifies everything that can change a ranking: engine, models, weights, version."""
        ...

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """Return at most k hits per query, sorted by descending score, then passage id.

        Raises `UsageError` for a string instead of a list, `QuestionError` for a query that cannot be searched.
        """
        ...


class PartRetriever(Retriever, Protocol):
    """A retriever by BM25 that can search as a part of a larger collection."""

    def statistics(self, queries: Sequence[str]) -> list[Statistics]:
        """Return what the terms of each query are weighed by here."""
        ...

    def search_within(self, queries: Sequence[str], k: int, statistics: Sequence[Statistics]) -> list[list[Hit]]:
        """Search with the statistics of the whole collection, one for each query."""
        ...


MergeInput = tuple[Index, Sequence[int]]
"""An index that is merged with others, and the rows of it that are left out."""


@dataclass(frozen=True, slots=True)
class RetrieverKind:
    """A kind of retriever: `open` returns one for an index and a configuration.

    The other fields are for kinds that add their own part to an index (`rag.index.parts`). `memory` is a limit in bytes
    or None.
    """

    open: Callable[[Index, RetrieverConfig], Retriever]
    needs: Callable[[Index, RetrieverConfig, int | None], Needs] | None = None
    """`needs(index, config, memory)` estimates the size of the part."""
    add: Callable[[Index, RetrieverConfig, int | None, RowProgress], None] | None = None
    """`add(index, config, memory, progress)` adds the part."""
    update: Callable[[Index, Index, RetrieverConfig, Sequence[int], RowProgress], None] | None = None
    """`update(old, new, config, rows, progress)` brings the part of an index into an updated one, in which these rows
    changed. Without it, the part has to be added again."""
    seconds: Callable[[Index, RetrieverConfig, int | None], float] | None = None
    """`seconds(index, config, memory)` estimates what building takes besides what grows with the passages, for an index
    too large to try (`rag.retrieval.planning`)."""
    has_absolute_scores: bool = False
    """Whether the score of a passage is the same in any index, so that hits of several indexes are merged by score."""
    outside: bool = False
    """Whether the part goes to a program that is not ours, which a plan must not fill."""
    merge: Callable[[Sequence[MergeInput], Index, RetrieverConfig, RowProgress], str] | None = None
    """`merge(olds, new, config, progress)` brings the parts of several indexes, given with rows that are left out, into
    the one that has their other rows one after another. It returns what `add` still has to do, or an empty text.
    Without it, the part has to be added again."""


RETRIEVERS: Registry[RetrieverKind] = Registry(
    "rag.retrievers",
    "kind of retriever",
    {
        "bm25": "rag.retrieval.bm25:KIND",
        "database": "rag.retrieval.database:KIND",
        "dense": "rag.retrieval.dense:KIND",
        "fallback": "rag.retrieval.fallback:KIND",
        "fusion": "rag.retrieval.fusion:KIND",
        "lucene": "rag.retrieval.lucene:KIND",
        "reference": "rag.retrieval.reference:KIND",
        "remote": "rag.retrieval.remote:KIND",
        "rerank": "rag.retrieval.rerank:KIND",
        "shards": "rag.retrieval.shards:KIND",
    },
    RagError,
)


def kind_of(config: RetrieverConfig) -> RetrieverKind:
    """The kind of a configuration; raises `RagError` if it is unknown."""
    if config.kind not in RETRIEVERS:
        kinds = ", ".join(sorted(RETRIEVERS))
        raise RagError(f"retriever {config.name}: no kind called {config.kind!r}; there are: {kinds}")
    return RETRIEVERS[config.kind]


def open_retriever(name: str, index: Index) -> Retriever:
    """Open a retriever by name (`read_config`) over an index that has the data it needs.

    A name without a configuration may be that of an installed kind, which is opened without settings. Several indexes
    (`rag.index.joined`) are searched as one. Raises `RagError` for a kind that cannot.
    """
    (_, config), *_ = walk_configs(name, kinds=RETRIEVERS)
    kind = kind_of(config)
    if not index.members or kind.add is None:
        return kind.open(index, config)
    if not kind.has_absolute_scores:
        raise RagError(f"retriever {name}: its scores in {index.name} cannot be compared; merge them (rag index merge)")
    return _MergedRetriever([kind.open(member, config) for member in index.members.values()])


class _MergedRetriever:
    """Retrievers of one kind over several indexes, whose hits are merged by score."""

    def __init__(self, retrievers: Sequence[Retriever]) -> None:
        self._retrievers = retrievers
        names = list(dict.fromkeys(retriever.name for retriever in retrievers))
        self.name = names[0] if len(names) == 1 else f"joined({','.join(names)})"

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """Return at most k hits per query."""
        lists = [retriever.search(queries, k) for retriever in self._retrievers]
        return [best_first(chain.from_iterable(hits))[:k] for hits in zip(*lists, strict=True)]


def walk_data_configs(name: str) -> Iterator[tuple[str, RetrieverConfig]]:
    """Yield (name, configuration) of a retriever and those it is based on, which come first, if they add data."""
    configs = reversed(list(walk_configs(name, kinds=RETRIEVERS)))
    return ((part, config) for part, config in configs if kind_of(config).add is not None)


def missing_retrievers(index: Index) -> list[str]:
    """The retrievers that were to add data to an index, and have not: its build goes on, or was stopped."""
    part_names = {config.name for config in read_data_configs(index)}

    def is_missing(name: str) -> bool:
        try:
            return any(part.name not in part_names for _, part in walk_data_configs(name))
        except UserError:  # its configuration is gone
            return False

    return [name for name in index.manifest.get("retrievers", ()) if is_missing(name)]


def check_complete(index: Index) -> None:
    """Raise `IndexingError` for an index that lacks data that a retriever was to add."""
    for name in missing_retrievers(index):
        raise IndexingError(f"{index.name} has not all of its vectors yet: {way_to_complete(index, name)}")


def way_to_complete(index: Index, retriever: str) -> str:
    """What to do about the missing data of a retriever."""
    folder = index.name if index.build is None else str(index.build.parent)
    command = f"rag index build --to {shlex.quote(folder)} --retriever {shlex.quote(retriever)}"
    return f"wait for the build that makes them, or if none does, run {command}"


def searches_elsewhere(name: str) -> bool:
    """Whether a retriever takes its passages from servers or shards, whatever index it is opened with."""
    return any(config.kind in ("remote", "shards") for _, config in walk_configs(name, kinds=RETRIEVERS))


def carry_parts(old: Index, new: Index, rows: Sequence[int], progress: Progress | None = None) -> list[str]:
    """Bring the parts of an index into an updated one, in which these rows changed; returns the ones left out.

    A part is left out if its kind cannot update it, or not here: its model is another one, or is not installed; and so
    is one that is not complete.
    `progress` is called with the part, and the number of changed rows done and in all. Raises `IndexingError` on a full
    disk.
    """

    def update(config: RetrieverConfig) -> str:
        change = kind_of(config).update
        if change is None:
            return _rebuild_notice(config)
        change(old, new, config, rows, _progress_of(config, len(rows), progress))
        return ""

    missing = [part.name for name in missing_retrievers(old) for _, part in walk_data_configs(name)]
    configs = read_data_configs(old)
    left_out = [config.name for config in configs if _why_left_out(update, config, new)]
    return [*left_out, *(name for name in missing if name not in {config.name for config in configs})]


def merge_parts(olds: Sequence[MergeInput], new: Index, progress: Progress | None = None) -> dict[str, str]:
    """Bring the parts that all indexes have into the one merged of them; returns why others are left out, by name.

    `progress` is called with the part, and the number of passages done and in all. Raises `IndexingError` on a full
    disk.
    """

    def merge(config: RetrieverConfig) -> str:
        join = kind_of(config).merge
        if join is None:
            return _rebuild_notice(config)
        return join(olds, new, config, _progress_of(config, new.manifest["passages"], progress))

    reasons = {}
    configs_by_name = [{config.name: config for config in read_data_configs(index)} for index, _ in olds]
    for name in sorted({name for configs in configs_by_name for name in configs}):
        without = [index.name for (index, _), configs in zip(olds, configs_by_name, strict=True) if name not in configs]
        if without:
            reasons[name] = f"{without[0]} has no such data"
        elif any(configs[name] != configs_by_name[0][name] for configs in configs_by_name):
            reasons[name] = "its configuration is not the same in all indexes"
        elif reason := _why_left_out(merge, configs_by_name[0][name], new):
            reasons[name] = reason
    return reasons


def _progress_of(config: RetrieverConfig, total: int, progress: Progress | None) -> RowProgress:
    def report(count: int, step: str) -> None:
        if progress is not None:
            progress(f"{config.name} {step}", count, total)

    return report


def _rebuild_notice(config: RetrieverConfig) -> str:
    return f"data of kind {config.kind} are built anew"


def _why_left_out(work: Callable[[RetrieverConfig], str], config: RetrieverConfig, new: Index) -> str:
    """What the work on a part says is left to do, or its error; empty if the part is there. A full disk is raised."""
    try:
        return work(config)
    except UserError as error:
        if isinstance(error.__cause__, OSError):
            raise
        remove_work(new, config)
        return str(error)
