"""A second look at the first hits: a model reads question and passage together and puts them in another order."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from autoais.errors import first_line
from rag.encoders import passage_text
from rag.errors import RagError, missing_extra
from rag.index.analysis import check_depth
from rag.index.recipes import Recipe
from rag.retrievers import Retriever, open_retriever
from rag.types import Hit, Passage

if TYPE_CHECKING:
    from rag.index.index import Index


class Scorer(Protocol):
    """Says how well passages answer a question."""

    @property
    def name(self) -> str:
        """Says all that changes a score."""
        ...

    def score(self, question: str, passages: Sequence[Passage]) -> list[float]:
        """A finite number for each passage, higher is better, the same whatever else is asked with it."""
        ...


def retriever(index: "Index", recipe: Recipe) -> Retriever:
    """A recipe's retriever with its first hits put in order anew, once for each of `stages`."""
    recipe.only(["of", "stages"])
    made = open_retriever(recipe.setting("of", str), index)
    stages = recipe.setting("stages", list)
    if not stages:
        raise RagError(f"recipe {recipe.name}: reranking needs one of [[stages]] at least")
    for given in stages:
        if not isinstance(given, dict):
            raise RagError(f"recipe {recipe.name}: [[stages]] should be tables, found {given!r}")
        stage = Recipe(recipe.name, "rerank", given)
        stage.only(["model", "depth", "first"])
        depth, first = stage.setting("depth", int), stage.setting("first", float, 0.0)
        made = Rerank(made, scorer(stage.setting("model", str)), depth=depth, first=first)
    return made


class _Reader:
    """The relevance by the reader that ships, or by one of `rag train`."""

    def __init__(self, folder: str | None) -> None:
        from rag.reader import Reader, shipped

        self._reader = shipped() if folder is None else Reader(folder)
        self.name = self._reader.name

    def score(self, question: str, passages: Sequence[Passage]) -> list[float]:
        return [reading.relevance for reading in self._reader.read(question, passages)]


class _Similarity:
    """The cosine of question and passage by all-MiniLM-L6-v2, which is the trunk of the judge that ships."""

    def __init__(self, folder: str | None = None) -> None:
        from autoais.judges.encoding import MAX_CLAIM
        from autoais.judges.minilm import MiniLMJudge, shipped

        self._judge = shipped() if folder is None else MiniLMJudge(folder)
        self.name = f"cosine:{self._judge.name.partition('/')[0]}/{MAX_CLAIM}"

    def score(self, question: str, passages: Sequence[Passage]) -> list[float]:
        return self._judge.similarities(question, [passage_text(passage) for passage in passages])


class _Static:
    """The cosine by static embeddings, those that ship or of `rag train`; a hundred passages in some hundredths."""

    def __init__(self, folder: str | None) -> None:
        from rag.encoders.static import Static

        self._encoder = Static(folder)
        self.name = self._encoder.name

    def score(self, question: str, passages: Sequence[Passage]) -> list[float]:
        vectors = self._encoder.passages([passage_text(passage) for passage in passages])
        # Not by `@`, which sums in another order where there are more rows.
        scores: list[float] = (vectors.astype(float) * self._encoder.queries([question])[0]).sum(axis=1).tolist()
        return scores


class _CrossEncoder:
    """Any CrossEncoder of sentence-transformers that gives one number a pair, by name or folder."""

    def __init__(self, model: str) -> None:
        try:
            from sentence_transformers import CrossEncoder
        except ImportError:
            raise missing_extra(f"the reranker {model!r}", "dense") from None
        from autoais.judges.hf import quiet
        from rag.encoders.sentence import named

        folder = Path(model).expanduser()
        try:
            with quiet(local=folder.is_dir()):
                self._model: Any = CrossEncoder(str(folder) if folder.is_dir() else model)
        except Exception as error:
            raise RagError(f"{model}: cannot be opened as a CrossEncoder ({first_line(error)})") from error
        if self._model.num_labels != 1:
            raise RagError(f"{model}: gives {self._model.num_labels} numbers a pair, and reranking needs one")
        self.name = f"cross-encoder:{named(model, self._model)}"

    def score(self, question: str, passages: Sequence[Passage]) -> list[float]:
        from autoais.judges.encoding import readable

        texts = (f"{passage.headings}\n{passage.text}".strip() for passage in passages)
        pairs = [(readable(question), readable(text)) for text in texts]
        # One pair at a time where it counts: padding changes the last digits, and with them the order of equals.
        found = self._model.predict(pairs, batch_size=1, show_progress_bar=False)
        return [float(score) for score in found]


SCORERS: dict[str, Callable[[str | None], Scorer]] = {
    "cosine": _Similarity,
    "static": _Static,
    "reader": _Reader,
    "cross-encoder": lambda model: _CrossEncoder(model or "cross-encoder/ms-marco-MiniLM-L6-v2"),
}


def scorer(name: str) -> Scorer:
    """`cosine`, `static`, `reader`, each with `:<folder>` for one's own, or `cross-encoder:<name or folder>`.

    `RagError` lists the names there are.
    """
    kind, _, model = name.partition(":")
    if kind not in SCORERS:
        raise RagError(f"no reranker called {kind!r}; there are: {', '.join(SCORERS)}")
    return SCORERS[kind](model or None)


class Rerank:
    """The first `depth` hits of a retriever in the order of a scorer, then the others as they were.

    `first` is how much the retriever's own score counts beside the scorer's. Hits beyond `depth` score below all of
    the first, by as much as they did before.
    """

    def __init__(self, over: Retriever, scorer: Scorer, *, depth: int, first: float = 0.0) -> None:
        if depth < 1:
            raise RagError(f"reranking needs a depth of at least 1, found {depth}")
        self._over, self._scorer, self._depth, self._first = over, scorer, depth, first
        weight = f"+{first:g}*first" if first else ""
        self.name = f"{over.name}>{scorer.name}{weight}@{depth}"

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """For each query at most k hits."""
        check_depth(k)
        return [self._search(query, k) for query in queries]

    def _search(self, query: str, k: int) -> list[Hit]:
        (hits,) = self._over.search([query], max(k, self._depth))
        again, rest = hits[: self._depth], hits[self._depth :]
        scores = self._scorer.score(query, [hit.passage for hit in again])
        for hit, score in zip(again, scores, strict=True):
            if not math.isfinite(score):
                raise RagError(f"{self._scorer.name} gives passage {hit.passage.id!r} a score that is no number")
        reread = [Hit(h.passage, s + self._first * h.score) for h, s in zip(again, scores, strict=True)]
        reread.sort(key=lambda hit: (-hit.score, hit.passage.id))
        below = [Hit(h.passage, reread[-1].score - 1 - (again[-1].score - h.score)) for h in rest]
        return (reread + below)[:k]
