"""A retriever and a chain of cited answers for LangChain (package `langchain-core`, from 1.0)."""

from typing import Any

from rag.answer.system import System
from rag.base.types import Answer
from rag.integrations import Searcher, answer_metadata, cited_passages, needed, open_source, passage_metadata

with needed("langchain-core", "langchain_core"):
    from langchain_core.callbacks import CallbackManagerForRetrieverRun
    from langchain_core.documents import Document
    from langchain_core.messages import AIMessage
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.runnables import RunnableConfig, RunnableSerializable
    from pydantic import ConfigDict, PrivateAttr


class PassageRetriever(BaseRetriever):  # type: ignore[misc, unused-ignore]  # without the package it is Any
    """Finds passages: `PassageRetriever(source="docs.index", k=5).invoke("...")`.

    `source` is an index or a server (`rag.integrations.Source`), `recipe` and `k` are those of `rag.search`.
    """

    source: Any = None
    recipe: str = "bm25"
    k: int = 10
    _search: Searcher = PrivateAttr()

    def model_post_init(self, context: Any, /) -> None:  # noqa: ANN401
        """Open the source."""
        super().model_post_init(context)
        self._search = Searcher(self.source, self.recipe, self.k)

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
    _opened: System = PrivateAttr()

    def model_post_init(self, context: Any, /) -> None:  # noqa: ANN401
        """Open the system."""
        super().model_post_init(context)
        self._opened = open_source(self.source, self.system, self.k)

    def invoke(self, input: str, config: RunnableConfig | None = None, **_: Any) -> AIMessage:  # noqa: A002, ANN401
        """Answer one question."""
        return self._call_with_config(lambda question: as_message(self._opened.ask(question)), input, config)


def as_message(answer: Answer) -> AIMessage:
    """Return an answer as a message whose text has LangChain's own annotations of type `citation`.

    `start_index` and `end_index` are the sentence's characters of the text, `cited_text` is the quote; `extras` hold
    the passage's metadata, and `start` and `end`, the quote's characters of the passage's text. All passages are in
    `response_metadata["passages"]`. An answer that abstains has no text and says why in `response_metadata["reason"]`.
    """
    passages = cited_passages(answer)
    known = {hit.passage.id: about for hit, about in passages}
    annotations = [
        {
            "type": "citation",
            "title": known[one.passage]["title"],
            "start_index": sentence.start,
            "end_index": sentence.end,
            "cited_text": one.quote,
            "extras": {**_without_spans(known[one.passage]), "start": one.span[0], "end": one.span[1]},
        }
        for sentence in answer.sentences
        for one in sentence.citations
    ]
    about = answer_metadata(answer) | {"passages": [{**about, "text": hit.passage.text} for hit, about in passages]}
    return AIMessage(
        content=[{"type": "text", "text": answer.text, "annotations": annotations}], response_metadata=about
    )


def _without_spans(about: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in about.items() if name != "spans"}
