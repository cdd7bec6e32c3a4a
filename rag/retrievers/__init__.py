"""Retrievers: one method, batch first. `KINDS` names the module of each, imported only when it is opened."""

from collections.abc import Sequence
from typing import Protocol

from rag.types import Hit


class Retriever(Protocol):
    """Finds passages for queries."""

    @property
    def name(self) -> str:
        """Says all that changes a result list: engine, fields, weights, version."""
        ...

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """For each query at most k hits, scores falling, ties in the order of passage ids."""
        ...
