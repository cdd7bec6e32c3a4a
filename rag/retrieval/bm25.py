"""BM25 by Tantivy, the default retriever: searches the postings that every index has."""

from rag.index.index import Index
from rag.index.postings import BM25
from rag.index.recipes import Recipe
from rag.retrieval import RetrieverKind


def open_bm25(index: Index, recipe: Recipe) -> BM25:
    """BM25 over an index, with the field weights of the recipe."""
    return index.bm25.weighted(recipe)


KIND = RetrieverKind(open_bm25)
