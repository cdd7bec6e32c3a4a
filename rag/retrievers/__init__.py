"""Retrievers by name: one method, batch first. The module of each is imported only when it is opened."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from rag.errors import RagError
from rag.types import Hit

if TYPE_CHECKING:
    from rag.index import Index


class Retriever(Protocol):
    """Finds passages for queries."""

    @property
    def name(self) -> str:
        """Says all that changes a result list: engine, fields, weights, version."""
        ...

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """For each query at most k hits, scores falling, ties in the order of passage ids."""
        ...


def _reference(index: "Index") -> Retriever:
    from rag.retrievers.reference import Reference

    return Reference(index.store, index.manifest["passages"])


KINDS: dict[str, Callable[["Index"], Retriever]] = {"bm25": lambda index: index.bm25, "reference": _reference}


def open_retriever(name: str, index: "Index") -> Retriever:
    """The retriever of that name over an index; `RagError` lists the names there are."""
    try:
        kind = KINDS[name]
    except KeyError:
        raise RagError(f"no retriever called {name!r}; there are: {', '.join(sorted(KINDS))}") from None
    return kind(index)
