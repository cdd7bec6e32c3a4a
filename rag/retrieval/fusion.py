"""Fusion of rankings: by rank (reciprocal rank fusion) or by score."""

import math
from collections.abc import Collection, Sequence
from itertools import repeat

from rag.base.errors import QuestionError, RagError
from rag.base.types import Hit, Passage, best_first
from rag.index.analysis import check_search, is_lookup
from rag.index.index import Index
from rag.index.retriever_config import RetrieverConfig, is_weight
from rag.retrieval import Retriever, RetrieverKind, open_retriever
from rag.retrieval.exact import LABEL, Exact
from rag.retrieval.newest import LABEL as NEWEST_LABEL
from rag.retrieval.newest import lower_older

METHODS = ("rrf", "scores", "max")
_MIN_COPY_WORDS = 20  # words of a text from which on another one like it is a copy


def open_fusion(index: Index, config: RetrieverConfig) -> "Fusion":
    """Open the fusion of other retrievers."""
    config.check_settings(
        [
            *("retrievers", "method", "k", "depth", "weights", "lookup_weights", "exact_first", "newest", "distinct"),
            *("places", "among"),
        ]
    )
    names = config.setting("retrievers", list)
    if len(set(names)) != len(names) or len(names) < 2 or not all(isinstance(name, str) for name in names):
        expected = "two or more different retrievers in 'retrievers'"
        raise RagError(f"retriever {config.name}: fusion needs {expected}, found {names}")
    return Fusion(
        [open_retriever(name, index) for name in names],
        method=config.setting("method", str, "rrf"),
        k=config.setting("k", int, 60),
        depth=config.setting("depth", int, 100),
        weights=config.setting("weights", list, [1.0] * len(names)),
        lookup_weights=config.setting("lookup_weights", list, []),
        exact_first=config.setting("exact_first", bool, False),
        newest=config.setting("newest", float, 0.0),
        distinct=config.setting("distinct", bool, False),
        places=config.setting("places", int, 0),
        among=config.setting("among", int, 16),
    )


class Fusion:
    """Fuses the first `depth` hits of each retriever.

    `rrf`: the sum of weight / (k + rank) over the lists (Cormack et al. 2009, whose k is 60). `scores`: the weighted
    sum of the scores, after min-max scaling of each list to 0 to 1; a passage that a list lacks gets 0 (CombSUM, Fox &
    Shaw 1994). `max`: the same, but scores are divided by the list's highest, and negative ones count as 0. A retriever
    that refuses the query is left out; `QuestionError` is raised if the others find nothing. `lookup_weights` replace
    the weights for a query that asks for something by its exact name (`rag.index.analysis.is_lookup`): embeddings of
    rare names say little. With `exact_first`, passages come first that have the very name that a query is about, or the
    definition that it asks for (`rag.index.definitions`), which is looked for among five times as many hits. `distinct`
    leaves out hits with the text of an earlier one, if it has 20 words or more. `newest` is what the oldest of dated
    documents loses if a query is about the present (`rag.retrieval.newest`). The first `places` hits of each retriever
    are among the first `among` hits: a passage in other words than the query's is far down for BM25, and its fused
    score is low, however sure the embeddings are. Raises `RagError` for an unknown method, a depth below 1, more places
    than there are, or unless there is one weight above 0 per retriever.
    """

    def __init__(
        self,
        retrievers: Sequence[Retriever],
        *,
        method: str = "rrf",
        k: int = 60,
        depth: int = 100,
        weights: Sequence[float] = (),
        lookup_weights: Sequence[float] = (),
        exact_first: bool = False,
        newest: float = 0.0,
        distinct: bool = False,
        places: int = 0,
        among: int = 16,
    ) -> None:
        weights = list(weights) or [1.0] * len(retrievers)
        lookup_weights = list(lookup_weights) or weights
        if method not in METHODS:
            raise RagError(f"no fusion called {method!r}; there are: {', '.join(METHODS)}")
        for values in (weights, lookup_weights):
            if len(values) != len(retrievers) or not all(map(is_weight, values)):
                raise RagError(f"fusion of {len(retrievers)} retrievers needs as many weights above 0, found {values}")
        if depth < 1 or k < 0:
            raise RagError(f"fusion needs a depth of at least 1 and k of at least 0, found {depth} and {k}")
        if newest < 0 or places < 0 or places * len(retrievers) > among:
            raise RagError(
                f"fusion needs newest and places of at least 0, and {len(retrievers)} * places at most among, found "
                f"{newest:g}, {places} and {among}"
            )
        self._retrievers, self._method, self._k, self._depth = retrievers, method, k, depth
        self._weights, self._lookup_weights = weights, lookup_weights
        self._exact_first, self._distinct = exact_first, distinct
        self._newest, self._places, self._among = newest, places, among
        # More than two scores can differ. With `max`, no hit has 0, so the sum of the weights is enough.
        self._bonus = max(sum(weights), sum(lookup_weights)) + (method != "max")
        parts = []
        for retriever, weight, lookup in zip(retrievers, weights, lookup_weights, strict=True):
            label = f"{weight:g}" if weight == lookup else f"{weight:g}|{lookup:g}"
            parts.append(retriever.name if label == "1" else f"{label}*{retriever.name}")
        labels = [
            *([LABEL] if exact_first else []),
            *([f"{NEWEST_LABEL}:{newest:g}"] if newest else []),
            *(["distinct"] if distinct else []),
            *([f"{places} of each in {among}"] if places else []),
        ]
        self.name = f"{f'rrf{k}' if method == 'rrf' else method}@{depth}({','.join([*parts, *labels])})"

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """Return at most k hits per query from the fused lists."""
        check_search(queries, k)
        return [self._search(query, k) for query in queries]

    def _search(self, query: str, k: int) -> list[Hit]:
        lists, faults = [], []
        weights = self._lookup_weights if is_lookup(query) else self._weights
        exact = Exact.of(query) if self._exact_first else Exact(None, None)
        depth = exact.depth(self._depth)
        for weight, retriever in zip(weights, self._retrievers, strict=True):
            try:
                lists.append((weight, retriever.search([query], depth)[0]))
            except QuestionError as error:
                faults.append(error)
        if faults and not any(hits for _, hits in lists):
            raise faults[0]
        ranked_hits = sum_scores([(hits, [weight * score for score in self._scores(hits)]) for weight, hits in lists])
        ranking = exact.first(ranked_hits, self._bonus)
        if self._newest:
            ranking = lower_older(query, ranking, self._newest)
        if self._distinct:
            ranking = _without_copies(ranking)
        if self._places:
            ids = {hit.passage.id for _, hits in lists for hit in hits[: self._places]}
            ranking = _give_places(ranking, ids, self._among)
        return ranking[:k]

    def _scores(self, hits: Sequence[Hit]) -> list[float]:
        if self._method == "rrf":
            return reciprocal_ranks(len(hits), self._k)
        if self._method == "max":
            highest = max((hit.score for hit in hits), default=0.0)
            return [max(0.0, hit.score) / highest if highest > 0 else 0.0 for hit in hits]
        if not hits or hits[0].score == hits[-1].score:
            return list(repeat(1.0, len(hits)))
        low, high = hits[-1].score, hits[0].score
        return [(hit.score - low) / (high - low) for hit in hits]


def _without_copies(hits: Sequence[Hit]) -> list[Hit]:
    """The first hit of those with the same text: manuals have pages twice, as chapters and as one file.

    Short texts, such as "Returns 0 on success.", are said of different things.
    """
    first: dict[str, Hit] = {}
    for hit in hits:
        words = hit.passage.text.split()
        first.setdefault(" ".join(words) if len(words) >= _MIN_COPY_WORDS else hit.passage.id, hit)
    return list(first.values())


def _give_places(ranking: Sequence[Hit], ids: Collection[str], among: int) -> list[Hit]:
    """The ranking with the hits of these ids among the first ones.

    They get the lowest score there, in place of the last hits without such an id, which follow.
    """
    inside, outside = ranking[:among], ranking[among:]
    raised = [hit for hit in outside if hit.passage.id in ids]
    if not raised:
        return list(ranking)
    others = [hit for hit in inside if hit.passage.id not in ids]
    lowered = others[len(others) - len(raised) :]
    lowered_ids = {hit.passage.id for hit in lowered}
    stay = [hit for hit in inside if hit.passage.id not in lowered_ids]
    score = (stay or lowered)[-1].score  # all may be lowered
    hits = best_first([*stay, *(Hit(hit.passage, score) for hit in raised)])
    for hit in (*lowered, *(hit for hit in outside if hit.passage.id not in ids)):
        score = min(hit.score, math.nextafter(score, -math.inf))
        hits.append(Hit(hit.passage, score))
    return hits


def reciprocal_ranks(n: int, k: int = 60) -> list[float]:
    """Return 1 / (k + rank) for the ranks 1 to n (Cormack et al. 2009)."""
    return [1 / (k + rank) for rank in range(1, n + 1)]


def sum_scores(lists: Sequence[tuple[Sequence[Hit], Sequence[float]]]) -> list[Hit]:
    """Merge lists of (hits, scores): hits with the sums of their scores, in descending order, ties by passage id."""
    scores: dict[str, float] = {}
    passages: dict[str, Passage] = {}
    for hits, counts in lists:
        for hit, count in zip(hits, counts, strict=True):
            passages[hit.passage.id] = hit.passage
            scores[hit.passage.id] = scores.get(hit.passage.id, 0.0) + count
    return [Hit(passages[key], scores[key]) for key in sorted(scores, key=lambda key: (-scores[key], key))]


KIND = RetrieverKind(open_fusion)
