"""Reranking: a model scores the first hits again, from question and passage."""

import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from autoais.base.errors import first_line
from autoais.base.io.paths import user_path
from autoais.base.registry import Registry
from rag.base.errors import RagError, missing_extra
from rag.base.types import Hit, Passage, best_first
from rag.index.analysis import check_search
from rag.index.index import Index
from rag.index.retriever_config import RetrieverConfig
from rag.retrieval import Retriever, RetrieverKind, open_retriever
from rag.retrieval.exact import LABEL, Exact


class Scorer(Protocol):
    """Scores how well passages answer a question."""

    @property
    def name(self) -> str:
        """Identifies everything that can change a score."""
        ...

    def score(self, question: str, passages: Sequence[Passage]) -> list[float]:
        """A finite score per passage, higher is better; it must not depend on the other passages."""
        ...


def open_rerank(index: Index, config: RetrieverConfig) -> Retriever:
    """Open the retriever `base`, reranked once per table of `stages`."""
    config.check_settings(["base", "stages"])
    retriever = open_retriever(config.setting("base", str), index)
    stages = config.setting("stages", list)
    if not stages:
        raise RagError(f"retriever {config.name}: reranking needs at least one [[stages]] table")
    for table in stages:
        if not isinstance(table, dict):
            raise RagError(f"retriever {config.name}: [[stages]] should be tables, found {table!r}")
        stage = RetrieverConfig(config.name, "rerank", table)
        stage.check_settings(["model", "depth", "retriever_weight", "exact_first"])
        retriever = Rerank(
            retriever,
            scorer(stage.setting("model", str)),
            depth=stage.setting("depth", int),
            retriever_weight=stage.setting("retriever_weight", float, 0.0),
            exact_first=stage.setting("exact_first", bool, False),
        )
    return retriever


class _Reader:
    """Relevance by the reader that ships with rag, or by one from `rag train`."""

    def __init__(self, folder: str | None) -> None:
        from rag.retrieval.reader import Reader, default_reader

        self._reader = default_reader() if folder is None else Reader(folder)
        self.name = self._reader.name

    def score(self, question: str, passages: Sequence[Passage]) -> list[float]:
        return [reading.relevance for reading in self._reader.read(question, passages)]


class _Similarity:
    """Cosine of question and passage by all-MiniLM-L6-v2, the trunk of the judge that ships with rag."""

    def __init__(self, folder: str | None = None) -> None:
        from autoais.base.models.pairs import MAX_CLAIM
        from autoais.judges.minilm import MiniLMJudge, default_judge

        self._judge = default_judge() if folder is None else MiniLMJudge(folder)
        self.name = f"cosine:{self._judge.name.partition('/')[0]}/{MAX_CLAIM}"

    def score(self, question: str, passages: Sequence[Passage]) -> list[float]:
        return self._judge.similarities(question, [passage.contents for passage in passages])


class _Static:
    """Cosine by static embeddings, shipped or from `rag train`; 100 passages take a few hundredths of a second."""

    def __init__(self, folder: str | None) -> None:
        from rag.retrieval.encoders.static import Static

        self._encoder = Static(folder)
        self.name = self._encoder.name

    def score(self, question: str, passages: Sequence[Passage]) -> list[float]:
        vectors = self._encoder.passages([passage.contents for passage in passages])
        # `@` would sum in an order that depends on the number of rows.
        scores: list[float] = (vectors.astype(float) * self._encoder.queries([question])[0]).sum(axis=1).tolist()
        return scores


class _CrossEncoder:
    """Any CrossEncoder of sentence-transformers with one score per pair, by name or folder."""

    def __init__(self, model: str) -> None:
        try:
            from sentence_transformers import CrossEncoder
        except ImportError:
            raise missing_extra(f"the reranker {model!r}", "dense") from None
        from autoais.base.models.transformers import check_classes, quiet_logging
        from rag.retrieval.encoders.sentence import model_name

        folder = user_path(model)
        if folder.is_dir():
            check_classes(folder)
        try:
            with quiet_logging(local=folder.is_dir()):
                name = str(folder) if folder.is_dir() else model
                self._model: Any = CrossEncoder(name, trust_remote_code=False)
        except Exception as error:
            raise RagError(f"{model}: cannot be opened as a CrossEncoder ({first_line(error)})") from error
        if self._model.num_labels != 1:
            raise RagError(f"{model}: returns {self._model.num_labels} scores per pair, but reranking needs one")
        self.name = f"cross-encoder:{model_name(model, self._model)}"

    def score(self, question: str, passages: Sequence[Passage]) -> list[float]:
        from autoais.base.models.pairs import readable

        texts = (f"{passage.headings}\n{passage.text}".strip() for passage in passages)
        pairs = [(readable(question), readable(text)) for text in texts]
        # One pair at a time: padding would change the last digits, and so the order of ties.
        predictions = self._model.predict(pairs, batch_size=1, show_progress_bar=False)
        return [float(score) for score in predictions]


# An entry is called with the part of the name after the colon (or None) and returns a `Scorer`.
RERANKERS: Registry[Callable[[str | None], Scorer]] = Registry(
    "rag.rerankers",
    "reranker",
    {
        "cosine": _Similarity,
        "static": _Static,
        "reader": _Reader,
        "cross-encoder": lambda model: _CrossEncoder(model or "cross-encoder/ms-marco-MiniLM-L6-v2"),
    },
    RagError,
)


def scorer(name: str) -> Scorer:
    """Open `cosine`, `static` or `reader`, each with `:<folder>` for your own, or `cross-encoder:<name or folder>`.

    Raises `RagError` for an unknown name.
    """
    kind, _, model = name.partition(":")
    return RERANKERS[kind](model or None)


class Rerank:
    """Sorts the first `depth` hits of a retriever by a scorer; the other hits follow in their order.

    `retriever_weight` times the retriever's score is added to the scorer's. With `exact_first`, passages come first
    that have the very name that a query is about, or the definition that it asks for, which is looked for among five
    times as many hits. Hits beyond `depth` score below all reranked ones, with their differences unchanged.
    """

    def __init__(
        self,
        base: Retriever,
        scorer: Scorer,
        *,
        depth: int,
        retriever_weight: float = 0.0,
        exact_first: bool = False,
    ) -> None:
        if depth < 1:
            raise RagError(f"reranking needs a depth of at least 1, found {depth}")
        self._over, self._scorer, self._depth, self._weight = base, scorer, depth, retriever_weight
        self._exact_first = exact_first
        weight = f"+{retriever_weight:g}*retriever" if retriever_weight else ""
        label = f",{LABEL}" if exact_first else ""
        self.name = f"{base.name}>{scorer.name}{weight}@{depth}{label}"

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """Return at most k hits per query."""
        check_search(queries, k)
        return [self._search(query, k) for query in queries]

    def _search(self, query: str, k: int) -> list[Hit]:
        exact = Exact.of(query) if self._exact_first else Exact(None, None)
        deep = exact.depth(self._depth)
        (hits,) = self._over.search([query], max(k, deep))
        matches = exact.matching(hits[self._depth : deep])
        first = [*hits[: self._depth], *(hit for hit in hits[self._depth :] if hit.passage.id in matches)]
        others_in_order = [hit for hit in hits[self._depth :] if hit.passage.id not in matches]
        scores = self._scorer.score(query, [hit.passage for hit in first])
        for hit, score in zip(first, scores, strict=True):
            if not math.isfinite(score):
                raise RagError(f"{self._scorer.name} returned {score} as the score of passage {hit.passage.id!r}")
        top = best_first(Hit(h.passage, s + self._weight * h.score) for h, s in zip(first, scores, strict=True))
        if top:
            top = exact.first(top, 1 + top[0].score - top[-1].score)
        tail = [Hit(h.passage, top[-1].score - 1 - (hits[self._depth - 1].score - h.score)) for h in others_in_order]
        return (top + tail)[:k]


KIND = RetrieverKind(open_rerank)
