"""BM25 by Tantivy, the default: over the postings that every index has."""

from rag.index.index import Index
from rag.index.postings import BM25
from rag.index.recipes import Recipe


def retriever(index: Index, recipe: Recipe) -> BM25:
    """BM25 over an index, its fields weighted as the recipe says."""
    return index.bm25.weighted(recipe)
