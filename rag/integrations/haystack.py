"""Components that retrieve and answer for Haystack (package `haystack-ai`, from 2.0)."""

from typing import Any

from rag.base.types import Hit
from rag.integrations import (
    Searcher,
    Source,
    answer_metadata,
    answer_text,
    number_passages,
    open_source,
    passage_metadata,
    require_package,
    source_name,
)

with require_package("haystack-ai", "haystack"):
    from haystack import Document, component, default_from_dict, default_to_dict
    from haystack.dataclasses import GeneratedAnswer


@component
class PassageRetriever:
    """Finds passages: `PassageRetriever("docs.index", top_k=5).run(query="...")["documents"]`.

    `source` is an index or a server (`rag.integrations.Source`), `retriever` and `top_k` are those of `rag.search`.
    """

    def __init__(self, source: Source = None, retriever: str = "bm25", top_k: int = 10) -> None:
        self.source, self.retriever, self.top_k = source, retriever, top_k
        self._search = Searcher(source, retriever, top_k)

    @component.output_types(documents=list[Document])  # type: ignore[untyped-decorator, unused-ignore]
    def run(self, query: str, top_k: int | None = None) -> dict[str, list[Document]]:
        """Return the documents of a query."""
        hits = self._search(query, top_k)
        return {"documents": [_document(hit, passage_metadata(hit, rank)) for rank, hit in enumerate(hits, 1)]}

    def to_dict(self) -> dict[str, Any]:
        """Describe the component for a pipeline's file."""
        description: dict[str, Any]
        description = default_to_dict(self, source=source_name(self.source), retriever=self.retriever, top_k=self.top_k)
        return description

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "PassageRetriever":
        """Make the component that `to_dict` described."""
        retriever: PassageRetriever = default_from_dict(cls, data)
        return retriever


@component
class CitedAnswerer:
    """Answers questions: `CitedAnswerer("docs.index").run(query="...")["answers"][0].data`.

    An answer's data is the text with markers; its documents are the passages as the markers number them, those that are
    cited first, with what is cited in `meta["spans"]`. `source`, `system` and `top_k` are those of
    `rag.integrations.open_source`.
    """

    def __init__(self, source: Source = None, system: str | None = None, top_k: int | None = None) -> None:
        self.source, self.system, self.top_k = source, system, top_k
        self._system = open_source(source, system, top_k)

    @component.output_types(answers=list[GeneratedAnswer])  # type: ignore[untyped-decorator, unused-ignore]
    def run(self, query: str) -> dict[str, list[GeneratedAnswer]]:
        """Return the answer to a question."""
        answer = self._system.ask(query)
        documents = [_document(hit, metadata) for hit, metadata in number_passages(answer)]
        return {"answers": [GeneratedAnswer(answer_text(answer), query, documents, answer_metadata(answer))]}

    def to_dict(self) -> dict[str, Any]:
        """Describe the component for a pipeline's file."""
        description: dict[str, Any]
        description = default_to_dict(self, source=source_name(self.source), system=self.system, top_k=self.top_k)
        return description

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "CitedAnswerer":
        """Make the component that `to_dict` described."""
        answerer: CitedAnswerer = default_from_dict(cls, data)
        return answerer


def _document(hit: Hit, metadata: dict[str, Any]) -> Document:
    return Document(id=hit.passage.id, content=hit.passage.text, meta=metadata, score=float(hit.score))
