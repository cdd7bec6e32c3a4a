"""A retriever and a query engine for LlamaIndex (package `llama-index-core`)."""

import asyncio
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
)

with require_package("llama-index-core", "llama_index"):
    from llama_index.core.base.base_query_engine import BaseQueryEngine
    from llama_index.core.base.base_retriever import BaseRetriever
    from llama_index.core.base.response.schema import Response
    from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

_FOR_MODELS = ("title", "section", "page")  # the metadata that LlamaIndex may put before a text in prompts


class PassageRetriever(BaseRetriever):  # type: ignore[misc, unused-ignore]  # without the package it is Any
    """Finds passages: `PassageRetriever("docs.index", k=5).retrieve("...")`.

    `source` is an index or a server (`rag.integrations.Source`), `retriever` and `k` are those of `rag.search`.
    """

    def __init__(self, source: Source = None, retriever: str = "bm25", k: int = 10) -> None:
        self._search = Searcher(source, retriever, k)
        super().__init__()

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        hits = self._search(query_bundle.query_str)
        return [_node(hit, passage_metadata(hit, rank)) for rank, hit in enumerate(hits, 1)]

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await asyncio.to_thread(self._retrieve, query_bundle)


class CitedQueryEngine(BaseQueryEngine):  # type: ignore[misc, unused-ignore]
    """Answers questions: `CitedQueryEngine("docs.index").query("...")`.

    The response is the text with markers; `source_nodes` are the passages as the markers number them, those that are
    cited first, with what is cited in `metadata["spans"]`. `source`, `system` and `k` are those of
    `rag.integrations.open_source`.
    """

    def __init__(self, source: Source = None, system: str | None = None, k: int | None = None) -> None:
        self._system = open_source(source, system, k)
        super().__init__(callback_manager=None)

    def _query(self, query_bundle: QueryBundle) -> Response:
        answer = self._system.ask(query_bundle.query_str)
        nodes = [_node(hit, metadata) for hit, metadata in number_passages(answer)]
        return Response(answer_text(answer), source_nodes=nodes, metadata=answer_metadata(answer))

    async def _aquery(self, query_bundle: QueryBundle) -> Response:
        return await asyncio.to_thread(self._query, query_bundle)

    def _get_prompt_modules(self) -> dict[str, Any]:
        return {}


def _node(hit: Hit, metadata: dict[str, Any]) -> NodeWithScore:
    internal_keys = [name for name in metadata if name not in _FOR_MODELS]
    node = TextNode(
        id_=hit.passage.id,
        text=hit.passage.text,
        metadata=metadata,
        excluded_llm_metadata_keys=internal_keys,
        excluded_embed_metadata_keys=internal_keys,
    )
    return NodeWithScore(node=node, score=float(hit.score))
