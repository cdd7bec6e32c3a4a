"""The statistics by which BM25 weighs terms, of one index or of several, and the scores under them.

Shards exchange them so that each scores as the whole collection would (`rag.retrieval.shards`).
"""

import math
import struct
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from rag.base.errors import UsageError
from rag.base.types import Passage
from rag.index.analysis import Analysis

K1, B = 1.2, 0.75  # fixed by Tantivy's Python binding
FIELDS = ("contents", "title")  # headings and text; headings alone
_MAX_PASSAGES = 2**53  # passages: more than anybody has, and not too many to reckon with
_MIN_IDF = 2.0**-24  # in 32 bits, what is less is 0: a term that all of nine million passages have
_CONTRADICT = "the statistics of BM25 contradict one another"


def field_text(passage: Passage, name: str) -> str:
    """The text of a passage that is indexed in a field."""
    return passage.headings if name == "title" else passage.contents


@dataclass(frozen=True, slots=True)
class Statistics:
    """What BM25 weighs the terms of a query by.

    `passages` is their number, `untitled` that of those without headings. `lengths` has the mean number of tokens of
    each field, `frequencies` the number of passages that have each term in that field, in the order of the terms.
    Raises `UsageError` for numbers that contradict one another.
    """

    passages: int
    untitled: int
    lengths: Mapping[str, float]
    frequencies: Mapping[str, tuple[int, ...]]

    def __post_init__(self) -> None:
        counts = [count for frequencies in self.frequencies.values() for count in frequencies]
        fine = (
            self.lengths.keys() == self.frequencies.keys() == set(FIELDS)
            and 0 <= self.untitled <= self.passages <= _MAX_PASSAGES
            and all(math.isfinite(length) and length >= 0 for length in self.lengths.values())
            and len({len(frequencies) for frequencies in self.frequencies.values()}) == 1
            and all(0 <= count <= self.passages for count in counts)
        )
        if not fine:
            raise UsageError(_CONTRADICT)

    @classmethod
    def of(cls, parts: Sequence["Statistics"]) -> "Statistics":
        """Those of several indexes together."""
        passages = sum(part.passages for part in parts)
        return cls(
            passages,
            sum(part.untitled for part in parts),
            {
                name: math.fsum(part.lengths[name] * part.passages for part in parts) / max(1, passages)
                for name in FIELDS
            },
            {name: tuple(map(sum, zip(*(part.frequencies[name] for part in parts), strict=True))) for name in FIELDS},
        )

    @property
    def is_mixed(self) -> bool:
        """Whether some passages have headings and others have none."""
        return 0 < self.untitled < self.passages

    def idf(self, name: str, term: int) -> float:
        """The inverse document frequency of the term at that place of the query, rounded where Tantivy rounds.

        That of a term in all passages is the logarithm of a number near 1, of which 32 bits tell little.
        """
        count = self.frequencies[name][term]
        odds = _single(_single(self.passages - count + 0.5) / _single(count + 0.5))
        return _single(math.log(_single(1 + odds)))

    def scorer(
        self, terms: Sequence[str], weights: Mapping[str, float], analysis: Analysis
    ) -> Callable[[Passage], float]:
        """Return what scores passages, as Tantivy does in 32 bits (`rag.index.postings`).

        It raises `UsageError` for a passage with text in a field that is empty in all, by these statistics.
        """
        plain = self._factors(terms, weights)
        untitled_factors = self._factors(terms, {"contents": sum(weights.values())}) if self.is_mixed else plain

        def score(passage: Passage) -> float:
            total = 0.0
            for name, factors in (plain if passage.headings else untitled_factors).items():
                tokens = analysis.passage_terms(field_text(passage, name))
                if tokens and not self.lengths[name]:
                    raise UsageError(_CONTRADICT)
                length = _LENGTHS[bisect_right(_LENGTHS, len(tokens)) - 1]
                norm = K1 * (1 - B + B * length / self.lengths[name]) if tokens else 0.0
                for term, factor in factors:
                    if count := tokens.count(term):
                        total += factor * count / (count + norm)
            return total

        return score

    def _factors(self, terms: Sequence[str], weights: Mapping[str, float]) -> dict[str, list[tuple[str, float]]]:
        return {
            name: [(term, weight * self.idf(name, position) * (K1 + 1)) for position, term in enumerate(terms)]
            for name, weight in weights.items()
        }

    def max_growth(self, collection: "Statistics", weights: Mapping[str, float]) -> float:
        """The largest factor by which the score of a passage here can grow under the statistics of the whole."""
        factor = 1.0
        for name in weights:
            if self.lengths[name] and collection.lengths[name]:
                shorter = max(1.0, collection.lengths[name] / self.lengths[name])
                rarer = [
                    collection.idf(name, position) / max(self.idf(name, position), _MIN_IDF)
                    for position, count in enumerate(self.frequencies[name])
                    if count
                ]
                factor = max(factor, shorter * max(rarer, default=1.0))
        if collection.is_mixed and not self.is_mixed and self.untitled:
            factor *= sum(weights.values()) / weights.get("contents", sum(weights.values()))
        return factor


def _single(value: float) -> float:
    """The value in 32 bits."""
    single: float = struct.unpack("f", struct.pack("f", value))[0]
    return single


def _length(code: int) -> int:
    """The length of a field that Tantivy keeps in one byte: exact up to 40, then with three bits."""
    bits, shift = code & 7, (code >> 3) - 1
    return bits if shift < 0 else (bits | 8) << shift


_LENGTHS = [*range(24), *(24 + _length(code) for code in range(232))]
