"""Puts passages first that have the very name that a query is about, or the definition that it asks for."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from rag.base.types import Hit, Passage, best_first
from rag.index.analysis import name_pattern
from rag.index.definitions import definition

LABEL = "names and definitions first"  # in the names of retrievers that do it
_COMMON = 8, 1 / 3  # hits and their share: a name that more have is the subject of them all, as a product's is
_DEEPER = 5  # times the depth for a query that asks for a definition: often most passages have its words


@dataclass(frozen=True, slots=True)
class Exact:
    """Finds the name that a query is about (`rag.index.analysis.name_pattern`) and the definition that it asks for."""

    name: re.Pattern[str] | None
    defines: re.Pattern[str] | None

    @classmethod
    def of(cls, query: str) -> "Exact":
        """What a query asks for, if anything."""
        return cls(name_pattern(query), definition(query))

    def depth(self, depth: int) -> int:
        """How many hits to look through instead of `depth`: more for a query that asks for a definition."""
        return depth if self.defines is None else depth * _DEEPER

    def matching(self, hits: Sequence[Hit]) -> dict[str, int]:
        """The ids of the hits that have the name (1), the definition (1) or both (2); not a name that many have."""
        ids = [hit.passage.id for hit in hits if self._has_name(hit.passage)]
        min_hits, share = _COMMON
        if len(ids) > max(min_hits, share * len(hits)):
            ids = []
        return Counter([*ids, *(hit.passage.id for hit in hits if self._has_definition(hit.passage))])

    def first(self, hits: Sequence[Hit], by: float) -> list[Hit]:
        """Sort hits that have both first, then those that have one. Each match adds `by` to the score.

        `by` should be larger than the range of the scores.
        """
        matches = self.matching(hits)
        if not matches:
            return list(hits)
        return best_first(Hit(hit.passage, hit.score + by * matches.get(hit.passage.id, 0)) for hit in hits)

    def _has_name(self, passage: Passage) -> bool:
        return self.name is not None and self.name.search(passage.contents) is not None

    def _has_definition(self, passage: Passage) -> bool:
        return self.defines is not None and self.defines.search(passage.text) is not None
