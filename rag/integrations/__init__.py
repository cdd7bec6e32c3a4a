"""The indexes and answers of `rag` inside LangChain, LlamaIndex and Haystack.

Each module needs the framework that it is named after, and only that module imports it. All take the same source: an
index (open, or its folder; None is the handbook), a `rag.retrieval.client.Client`, or the address of a server. Passages
keep their id, title, section, page, rank and score as metadata; those of answers also keep the spans that are cited.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from autoais.base.urls import is_url
from rag.answer.served import ServedSystem
from rag.answer.system import System
from rag.api import AnyIndex, open_retriever, open_system
from rag.base.config import DEFAULT_SYSTEM
from rag.base.errors import UsageError
from rag.base.types import Answer, Hit
from rag.index.index import Index
from rag.retrieval import Retriever
from rag.retrieval.client import Client


@contextmanager
def require_package(package: str, module: str) -> Iterator[None]:
    """Raise an error that names the package to install, if a module of the framework is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        name = error.name or ""
        if name != module and not name.startswith(f"{module}."):
            raise
        message = f"{package} is not installed, which this module of rag.integrations needs: pip install {package}"
        raise ModuleNotFoundError(message, name=name) from None


Source = AnyIndex | Client
"""An index, or a server: a `Client` or its address, `http://host:8000/index`."""


class Searcher:
    """Searches a source with a retriever; threads may share it."""

    def __init__(self, source: Source = None, retriever: str = "bm25", k: int = 10) -> None:
        source = _open_address(source)
        self.retriever, self.k = retriever, k
        self._client = source if isinstance(source, Client) else None
        self._retriever: Retriever | None = None if isinstance(source, Client) else open_retriever(retriever, source)
        self._lock = threading.Lock()  # not every engine is thread-safe

    def __call__(self, query: str, k: int | None = None) -> list[Hit]:
        """Return at most k hits; raises `QuestionError` for a query that cannot be searched."""
        k = self.k if k is None else k
        if self._client is not None:
            return self._client.search(query, retriever=self.retriever, k=k)
        assert self._retriever is not None
        with self._lock:
            return self._retriever.search([query], k)[0]


def open_source(source: Source = None, system: str | None = None, k: int | None = None) -> System:
    """Return a system (default: `reader`, or the first of the server) over a source; `k` is its number of passages."""
    source = _open_address(source)
    if isinstance(source, Client):
        return ServedSystem(source, system, k=k)
    return open_system(system or DEFAULT_SYSTEM, source, k=k)


def source_name(source: Source) -> str | None:
    """Return the address or folder of a source, which opens it again; raises `UsageError` for an index in memory.

    The key of a server is not part of it, but comes from RAG_REMOTE_KEY.
    """
    if isinstance(source, Client):
        return source.url
    if isinstance(source, Index):
        if source.build is None:
            raise UsageError(f"{source.name} has no folder of its own; give the folder of an index")
        return str(source.build.parent)
    return None if source is None else str(source)


def passage_metadata(hit: Hit, rank: int) -> dict[str, Any]:
    """Return the metadata of a passage as JSON: id, title, section, page, rank and score."""
    passage = hit.passage
    return {
        "passage": passage.id,
        "title": passage.title,
        "section": passage.section,
        **({} if passage.page is None else {"page": passage.page}),
        "rank": rank,
        "score": float(hit.score),
    }


def number_passages(answer: Answer) -> list[tuple[Hit, dict[str, Any]]]:
    """Return the passages of an answer as its markers number them, the cited ones first, each with its metadata.

    The metadata are those of `passage_metadata`, `n` (the number), and `spans`: the cited characters of the text, as
    [start, end, sentence], where `sentence` is the index of the sentence that cites them.
    """
    spans: dict[str, list[tuple[int, int, int]]] = {}
    for index, sentence in enumerate(answer.sentences):
        for citation in sentence.citations:
            spans.setdefault(citation.passage, []).append((*citation.span, index))
    return [
        (hit, {**passage_metadata(hit, rank), "n": n, "spans": [list(span) for span in spans.get(hit.passage.id, ())]})
        for n, rank, hit in answer.number_hits()
    ]


def answer_metadata(answer: Answer) -> dict[str, Any]:
    """Return the metadata of an answer, without its text and passages."""
    return {
        "system": answer.system,
        "abstained": answer.abstained,
        "reason": answer.reason,
        "short_answer": answer.short_answer,
        "confidence": answer.confidence,
        "sentences": [
            {"text": sentence.text, "start": sentence.start, "end": sentence.end} for sentence in answer.sentences
        ],
    }


def answer_text(answer: Answer) -> str:
    """Return the text with its markers, or a sentence which says that there is no answer."""
    from rag.answer.export.sources import abstention_notice

    return abstention_notice(answer) if answer.abstained else str(answer)


def _open_address(source: Source) -> Index | str | Path | Client | None:
    return Client(source) if isinstance(source, str) and is_url(source) else source
