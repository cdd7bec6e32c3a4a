"""A retriever and a chain of cited answers for LangChain (package `langchain-core`, from 1.0)."""

from typing import Any

from rag.answer.system import System
from rag.base.types import Answer
from rag.integrations import Searcher, answer_metadata, number_passages, open_source, passage_metadata, require_package

with require_package("langchain-core", "langchain_core"):
    from langchain_core.callbacks import CallbackManagerForRetrieverRun
    from langchain_core.documents import Document
    from langchain_core.messages import AIMessage
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.runnables import RunnableConfig, RunnableSerializable
    from pydantic import ConfigDict, PrivateAttr


class PassageRetriever(BaseRetriever):  # type: ignore[misc, unused-ignore]  # without the package it is Any
    """Finds passages: `PassageRetriever(source="docs.index", k=5).invoke("...")`.

    `source` is an index or a server (`rag.integrations.Source`), `retriever` and `k` are those of `rag.search`.
    """

    source: Any = None
    retriever: str = "bm25"
    k: int = 10
    _search: Searcher = PrivateAttr()

    def model_post_init(self, context: Any, /) -> None:  # noqa: ANN401
        """Open the source."""
        super().model_post_init(context)
        self._search = Searcher(self.source, self.retriever, self.k)

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        return [
            Document(hit.passage.text, id=hit.passage.id, metadata=passage_metadata(hit, rank))
            for rank, hit in enumerate(self._search(query), 1)
        ]


class CitedAnswers(RunnableSerializable[str, AIMessage]):  # type: ignore[misc, unused-ignore]
    """Answers questions: `CitedAnswers(source="docs.index").invoke("...")` returns a message with citations.

    `source` is that of `PassageRetriever`; `system` and `k` are those of `rag.ask`.
    """

    source: Any = None
    system: str | None = None
    k: int | None = None
    model_config = ConfigDict(arbitrary_types_allowed=True)
    _system: System = PrivateAttr()

    def model_post_init(self, context: Any, /) -> None:  # noqa: ANN401
        """Open the system."""
        super().model_post_init(context)
        self._system = open_source(self.source, self.system, self.k)

    def invoke(self, input: str, config: RunnableConfig | None = None, **_: Any) -> AIMessage:  # noqa: A002, ANN401
        """Answer one question."""
        return self._call_with_config(lambda question: as_message(self._system.ask(question)), input, config)


def as_message(answer: Answer) -> AIMessage:
    """Return an answer as a message whose text has LangChain's own annotations of type `citation`.

    `start_index` and `end_index` are the sentence's characters of the text, `cited_text` is the quote; `extras` hold
    the passage's metadata, and `start` and `end`, the quote's characters of the passage's text. All passages are in
    `response_metadata["passages"]`. An answer that abstains has no text and says why in `response_metadata["reason"]`.
    """
    passages = number_passages(answer)
    metadata_by_id = {hit.passage.id: metadata for hit, metadata in passages}
    annotations = [
        {
            "type": "citation",
            "title": metadata_by_id[citation.passage]["title"],
            "start_index": sentence.start,
            "end_index": sentence.end,
            "cited_text": citation.quote,
            "extras": {
                **_without_spans(metadata_by_id[citation.passage]),
                "start": citation.span[0],
                "end": citation.span[1],
            },
        }
        for sentence in answer.sentences
        for citation in sentence.citations
    ]
    rows = [{**metadata, "text": hit.passage.text} for hit, metadata in passages]
    return AIMessage(
        content=[{"type": "text", "text": answer.text, "annotations": annotations}],
        response_metadata=answer_metadata(answer) | {"passages": rows},
    )


def _without_spans(metadata: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in metadata.items() if name != "spans"}
