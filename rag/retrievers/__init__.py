"""Retrievers: one method, batch first. Each kind of recipe has a module, imported only when it is opened."""

from collections.abc import Sequence
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Protocol

from rag.errors import RagError
from rag.index.recipes import Recipe, made_of
from rag.types import Hit

if TYPE_CHECKING:
    from rag.index.index import Index


class Retriever(Protocol):
    """Finds passages for queries."""

    @property
    def name(self) -> str:
        """Says all that changes a result list: engine, models, weights, version."""
        ...

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """For each query at most k hits, scores falling, ties in the order of passage ids."""
        ...


# Kind of recipe -> module. It has `retriever(index, recipe)`; where the kind adds a part of its own to an index
# (`rag.index.parts`) also `needs(index, recipe, memory)` and `add(index, recipe, memory, tell)`.
KINDS = {
    "bm25": "rag.retrievers.bm25",
    "dense": "rag.retrievers.dense",
    "fusion": "rag.retrievers.fusion",
    "lucene": "rag.retrievers.lucene",
    "reference": "rag.retrievers.reference",
    "rerank": "rag.retrievers.rerank",
}


def kind_of(recipe: Recipe) -> ModuleType:
    """The module of a recipe's kind; `RagError` lists the kinds there are."""
    if recipe.kind not in KINDS:
        there = ", ".join(sorted(KINDS))
        raise RagError(f"recipe {recipe.name}: no kind called {recipe.kind!r}; there are: {there}")
    return import_module(KINDS[recipe.kind])


def open_retriever(name: str, index: "Index") -> Retriever:
    """The retriever of a recipe (`read_recipe`) over an index that has the parts it needs."""
    (_, recipe), *_ = made_of(name)
    opened: Retriever = kind_of(recipe).retriever(index, recipe)
    return opened
