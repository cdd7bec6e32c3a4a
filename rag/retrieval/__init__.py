"""Retrievers: find hits for a batch of queries. A recipe (`rag.index.recipes`) names the kind and its settings."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from autoais.base.registry import Registry
from rag.base.errors import RagError, UserError
from rag.base.types import Hit
from rag.index.index import Index
from rag.index.parts import Needs, Progress, drop_unfinished, recipes_of
from rag.index.recipes import Recipe, walk_recipes
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

    def search_within(self, queries: Sequence[str], k: int, whole: Sequence[Statistics]) -> list[list[Hit]]:
        """Search with the statistics of the whole collection, one for each query."""
        ...


Merged = tuple[Index, Sequence[int]]
"""An index that is merged with others, and the rows of it that are left out."""


@dataclass(frozen=True, slots=True)
class RetrieverKind:
    """A kind of retriever: `open` returns one for an index and a recipe.

    The other fields are for kinds that add their own part to an index (`rag.index.parts`). `memory` is a limit in bytes
    or None.
    """

    open: Callable[[Index, Recipe], Retriever]
    needs: Callable[[Index, Recipe, int | None], Needs] | None = None
    """`needs(index, recipe, memory)` estimates the size of the part."""
    add: Callable[[Index, Recipe, int | None, Progress], None] | None = None
    """`add(index, recipe, memory, progress)` adds the part."""
    update: Callable[[Index, Index, Recipe, Sequence[int], Progress], None] | None = None
    """`update(old, new, recipe, rows, progress)` brings the part of an index into an updated one, in which these rows
    changed. Without it, the part has to be added again."""
    seconds: Callable[[Index, Recipe, int | None], float] | None = None
    """`seconds(index, recipe, memory)` estimates what building takes besides what grows with the passages, for an index
    too large to try (`rag.retrieval.planning`)."""
    outside: bool = False
    """Whether the part goes to a program that is not ours, which a plan must not fill."""
    merge: Callable[[Sequence[Merged], Index, Recipe, Progress], str] | None = None
    """`merge(olds, new, recipe, progress)` brings the parts of several indexes, given with rows that are left out, into
    the one that has their other rows one after another. It returns what `add` still has to do, or an empty text.
    Without it, the part has to be added again."""


RETRIEVERS: Registry[RetrieverKind] = Registry(
    "rag.retrievers",
    "kind of retriever",
    {
        "bm25": "rag.retrieval.bm25:KIND",
        "choice": "rag.retrieval.choice:KIND",
        "database": "rag.retrieval.database:KIND",
        "dense": "rag.retrieval.dense:KIND",
        "fusion": "rag.retrieval.fusion:KIND",
        "lucene": "rag.retrieval.lucene:KIND",
        "reference": "rag.retrieval.reference:KIND",
        "remote": "rag.retrieval.remote:KIND",
        "rerank": "rag.retrieval.rerank:KIND",
        "shards": "rag.retrieval.shards:KIND",
    },
    RagError,
)


def kind_of(recipe: Recipe) -> RetrieverKind:
    """The kind of a recipe; raises `RagError` if it is unknown."""
    if recipe.kind not in RETRIEVERS:
        there = ", ".join(sorted(RETRIEVERS))
        raise RagError(f"recipe {recipe.name}: no kind called {recipe.kind!r}; there are: {there}")
    return RETRIEVERS[recipe.kind]


def open_retriever(name: str, index: Index) -> Retriever:
    """Open the retriever of a recipe (`read_recipe`) over an index that has the parts it needs.

    A name that is not a recipe may be that of an installed kind, which is opened without settings.
    """
    (_, recipe), *_ = walk_recipes(name, kinds=RETRIEVERS)
    return kind_of(recipe).open(index, recipe)


def parts_of(name: str) -> Iterator[tuple[str, Recipe]]:
    """Yield (name, recipe) for a recipe and those it is based on, which come first, if they add a part to an index."""
    walked = reversed(list(walk_recipes(name, kinds=RETRIEVERS)))
    return ((part, recipe) for part, recipe in walked if kind_of(recipe).add is not None)


def searches_elsewhere(name: str) -> bool:
    """Whether a recipe takes its passages from servers or shards, whatever index it is opened with."""
    return any(recipe.kind in ("remote", "shards") for _, recipe in walk_recipes(name, kinds=RETRIEVERS))


def carry_parts(
    old: Index, new: Index, rows: Sequence[int], progress: Callable[[str, int, int], None] | None = None
) -> list[str]:
    """Bring the parts of an index into an updated one, in which these rows changed; returns the ones left out.

    A part is left out if its kind cannot update it, or not here: its model is another one, or is not installed.
    `progress` is called with the part, and the number of changed rows done and in all. Raises `IndexingError` on a full
    disk.
    """

    def update(recipe: Recipe) -> str:
        change = kind_of(recipe).update
        if change is None:
            return _built_anew(recipe)
        change(old, new, recipe, rows, _progress_of(recipe, len(rows), progress))
        return ""

    return [recipe.name for recipe in recipes_of(old) if _why_left_out(update, recipe, new)]


def merge_parts(
    olds: Sequence[Merged], new: Index, progress: Callable[[str, int, int], None] | None = None
) -> dict[str, str]:
    """Bring the parts that all indexes have into the one merged of them; returns why others are left out, by name.

    `progress` is called with the part, and the number of passages done and in all. Raises `IndexingError` on a full
    disk.
    """

    def merge(recipe: Recipe) -> str:
        join = kind_of(recipe).merge
        if join is None:
            return _built_anew(recipe)
        return join(olds, new, recipe, _progress_of(recipe, new.manifest["passages"], progress))

    left_out = {}
    found = [{recipe.name: recipe for recipe in recipes_of(index)} for index, _ in olds]
    for name in sorted({name for recipes in found for name in recipes}):
        without = [index.name for (index, _), recipes in zip(olds, found, strict=True) if name not in recipes]
        if without:
            left_out[name] = f"{without[0]} has no such part"
        elif any(recipes[name] != found[0][name] for recipes in found):
            left_out[name] = "its recipe is not the same in all indexes"
        elif why := _why_left_out(merge, found[0][name], new):
            left_out[name] = why
    return left_out


def _progress_of(recipe: Recipe, total: int, progress: Callable[[str, int, int], None] | None) -> Progress:
    def report(done: int, what: str) -> None:
        if progress is not None:
            progress(f"{recipe.name} {what}", done, total)

    return report


def _built_anew(recipe: Recipe) -> str:
    return f"a part of kind {recipe.kind} is built anew"


def _why_left_out(work: Callable[[Recipe], str], recipe: Recipe, new: Index) -> str:
    """What the work on a part says is left to do, or its error; empty if the part is there. A full disk is raised."""
    try:
        return work(recipe)
    except UserError as error:
        if isinstance(error.__cause__, OSError):
            raise
        drop_unfinished(new, recipe)
        return str(error)
