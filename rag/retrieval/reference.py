"""BM25 by rank-bm25 (extra `reference`): a readable reference to compare faster engines with."""

import math
from collections import Counter
from collections.abc import Sequence

from rag.base.errors import IndexingError, missing_extra
from rag.base.types import Hit, best_first
from rag.index.analysis import ANALYSIS, check_search, query_terms
from rag.index.index import Index
from rag.index.passages import Store
from rag.index.postings import parameters
from rag.index.retriever_config import RetrieverConfig
from rag.retrieval import RetrieverKind

MAX_PASSAGES = 200_000  # rank-bm25 scores every passage for every query and keeps all tokens in memory


def open_reference(index: Index, config: RetrieverConfig) -> "Reference":
    """Open rank-bm25 over an index."""
    return Reference(index.store, index.manifest["passages"], config)


class Reference:
    """Scores headings and text as one field with Okapi BM25: k1 and b of the configuration, Lucene's idf.

    Raises `RagError` if rank-bm25 is not installed, `IndexingError` above 200,000 passages.
    """

    def __init__(self, store: Store, passages: int, config: RetrieverConfig) -> None:
        config.check_settings(["k1", "b"])
        k1, b = parameters(config)
        try:
            from rank_bm25 import BM25Okapi
        except ImportError:
            raise missing_extra("the retriever 'reference'", "reference") from None
        if passages > MAX_PASSAGES:
            raise IndexingError(
                f"rank-bm25 takes at most {MAX_PASSAGES:,} passages, the index has {passages:,}: use 'bm25'"
            )
        self.name = config.name
        self._passages = list(store.scan())
        tokens = [ANALYSIS.passage_terms(p.contents) or [""] for p in self._passages]
        self._bm25 = BM25Okapi(tokens, k1=k1, b=b)
        # Okapi's idf is negative for a term in more than half of the passages; the idf of Lucene and Tantivy is not.
        n = len(tokens)
        document_frequencies = Counter(term for passage in tokens for term in set(passage))
        self._bm25.idf = {term: math.log(1 + (n - df + 0.5) / (df + 0.5)) for term, df in document_frequencies.items()}

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """Return at most k hits per query, all with a term of it; raises `QuestionError` (`query_terms`)."""
        check_search(queries, k)
        return [self._search(query_terms(query), k) for query in queries]

    def _search(self, terms: Sequence[str], k: int) -> list[Hit]:
        pairs = zip(self._passages, self._bm25.get_scores(terms), strict=True)
        hits = [Hit(passage, float(score)) for passage, score in pairs if score > 0]
        return best_first(hits)[:k]


KIND = RetrieverKind(open_reference)
