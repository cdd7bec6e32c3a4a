"""Searches for many topics: hits as JSON, and TREC runs."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from autoais.base.io.jsonl import round_floats, write_atomic
from autoais.base.progress import Progress
from rag.base.errors import QuestionError, RagError
from rag.base.types import Hit, Question
from rag.retrieval import Retriever


def search_each(
    retriever: Retriever,
    topics: Sequence[Question],
    k: int,
    on_refusal: Callable[[Question, QuestionError], None],
) -> Iterator[tuple[Question, list[Hit]]]:
    """Yield each topic with at most k hits; one that cannot be searched is passed to `on_refusal` and has no hits."""
    for topic in topics:
        try:
            yield topic, retriever.search([topic.text], k)[0]
        except QuestionError as error:
            on_refusal(topic, error)
            yield topic, []


def write_run(
    path: Path, results: Iterator[tuple[Question, list[Hit]]], tag: str, total: int, progress: Progress | None = None
) -> None:
    """Write a TREC run atomically; raises `RagError` for an id that the format cannot hold."""

    def lines() -> Iterator[str]:
        for count, (topic, hits) in enumerate(results, 1):
            yield from trec_lines(topic, hits, tag)
            if progress:
                progress("searching", count, total)

    write_atomic(path, lines())


def search_record(question: Question, hits: Sequence[Hit]) -> dict[str, Any]:
    """The JSON record of a query and its hits, for `rag search --json`."""
    rows = [
        {
            "rank": rank,
            "id": hit.passage.id,
            "title": hit.passage.title,
            "section": hit.passage.section,
            **({} if hit.passage.page is None else {"page": hit.passage.page}),
            "text": hit.passage.text,
            "score": hit.score,
        }
        for rank, hit in enumerate(hits, 1)
    ]
    record: dict[str, Any] = round_floats({"id": question.id, "question": question.text, "hits": rows})
    return record


def trec_lines(question: Question, hits: Sequence[Hit], tag: str) -> Iterator[str]:
    """Lines `qid Q0 docid rank score tag`, ranks from 1; raises `RagError` for an empty id or one with white space."""
    tag = "_".join(tag.split()) or "-"
    for rank, hit in enumerate(hits, 1):
        for value in (question.id, hit.passage.id):
            if not value or any(c.isspace() for c in value):
                raise RagError(f"a TREC run cannot hold the id {value!r}: it is empty or contains white space")
        yield f"{question.id} Q0 {hit.passage.id} {rank} {hit.score:.6f} {tag}"
