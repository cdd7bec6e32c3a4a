"""Puts passages first that have the very name that a query is about, or the definition that it asks for."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from rag.index.analysis import asked_name
from rag.index.definitions import definition
from rag.types import Hit, Passage, best_first

TOLD = "names and definitions first"  # in the names of retrievers that do it
_DEEPER = 5  # times the depth for a query that asks for a definition: often most passages have its words


@dataclass(frozen=True, slots=True)
class Exact:
    """Finds the name that a query is about (`rag.index.analysis.asked_name`) and the definition that it asks for."""

    name: re.Pattern[str] | None
    defines: re.Pattern[str] | None

    @classmethod
    def of(cls, query: str) -> "Exact":
        """What a query asks for, if anything."""
        return cls(asked_name(query), definition(query))

    def depth(self, depth: int) -> int:
        """How many hits to look through instead of `depth`: more for a query that asks for a definition."""
        return depth if self.defines is None else depth * _DEEPER

    def matches(self, passage: Passage) -> int:
        """0 to 2: whether a passage has the name, and whether it has the definition."""
        has_name = self.name is not None and self.name.search(passage.contents) is not None
        has_definition = self.defines is not None and self.defines.search(passage.text) is not None
        return has_name + has_definition

    def first(self, hits: Sequence[Hit], by: float) -> list[Hit]:
        """Sort hits that have both first, then those that have one. Each match adds `by` to the score.

        `by` should be larger than the range of the scores.
        """
        if self.name is None and self.defines is None:
            return list(hits)
        return best_first(Hit(hit.passage, hit.score + by * self.matches(hit.passage)) for hit in hits)
