"""BM25 by Tantivy, the default retriever: searches the postings that every index has."""

from rag.index.index import Index
from rag.index.postings import BM25
from rag.index.retriever_config import RetrieverConfig
from rag.retrieval import RetrieverKind


def open_bm25(index: Index, config: RetrieverConfig) -> BM25:
    """BM25 over an index, with the field weights of the configuration."""
    return index.bm25.with_config(config)


KIND = RetrieverKind(open_bm25)
