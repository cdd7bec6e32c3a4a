"""The hits of a run, searched once for all systems that share retriever and depth."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

from autoais.base.errors import FormatError
from autoais.base.io.jsonl import field, parse_object
from autoais.base.progress import Progress
from rag.base.errors import QuestionError, RagError
from rag.base.types import Hit, Passage, best_first
from rag.bench.output_folder import write_rows
from rag.bench.question_files import BenchQuestion, passage_of, passage_row
from rag.retrieval import Retriever
from rag.retrieval.rerank import Scorer

OF_THE_QUESTION = ("given", "gold")
"""Retrievers that search nothing: the passages are known for each question."""

Search = Callable[[BenchQuestion], Sequence[Hit]]


class Given:
    """Ranks the passages that come with a question, as the retriever `shortlist` does: by static embeddings.

    `retriever` is `given` (the passages of the task `given`) or `gold` (those that people found the answer in, which
    makes any system an oracle's). Raises `RagError` if the corpus lacks one, or no question has any.
    """

    def __init__(
        self,
        retriever: str,
        find: Callable[[set[str]], Mapping[str, Passage]],
        questions: Iterable[BenchQuestion],
    ) -> None:
        from rag.retrieval.rerank import scorer

        self._scorer: Scorer = scorer("static")
        self.name = f"{retriever}>{self._scorer.name}"
        self._passages = {
            question.question.id: question.passages
            if retriever == "given"
            else tuple(map(Passage, question.question.gold))
            for question in questions
        }
        if not any(self._passages.values()):
            raise RagError(f"the questions have no {retriever} passages")
        unknown = {passage.id for passages in self._passages.values() for passage in passages if not passage.text}
        self._known = find(unknown) if unknown else {}
        if missing := sorted(unknown - self._known.keys()):
            raise RagError(
                f"the corpus lacks {len(missing):,} {retriever} passages of the questions, such as {missing[0]!r}"
            )

    def search(self, question: BenchQuestion, k: int) -> list[Hit]:
        """Return the first k of the question's passages, best first."""
        passages = [
            passage if passage.text else self._known[passage.id] for passage in self._passages[question.question.id]
        ]
        scores = self._scorer.score(question.question.text, passages)
        return best_first(map(Hit, passages, scores))[:k]


def search_file(
    path: Path,
    questions: Sequence[BenchQuestion],
    search: Search,
    settings: Mapping[str, Any],
    progress: Progress,
) -> None:
    """Write the hits of each question to a file, one row a question; a stopped run continues.

    Rows: `id`, `hits` (`passage`, `score`), `reason` if the question cannot be searched, and `seconds`.
    """

    def search_rows(questions: Sequence[BenchQuestion]) -> Iterator[dict[str, Any]]:
        return (_search_row(question, search) for question in questions)

    write_rows(path, questions, settings, search_rows, progress, f"searching {path.stem}")


def _search_row(question: BenchQuestion, search: Search) -> dict[str, Any]:
    start, reason, hits = time.perf_counter(), None, []
    try:
        hits = list(search(question))
    except QuestionError as error:
        reason = str(error)
    seconds = round(time.perf_counter() - start, 4)
    rows = [{"passage": passage_row(hit.passage), "score": float(hit.score)} for hit in hits]
    return {"id": question.question.id, "hits": rows, **({"reason": reason} if reason else {}), "seconds": seconds}


class HitRows:
    """The rows of a file of `search_file`, each read when it is asked for."""

    def __init__(self, path: Path, questions: Sequence[BenchQuestion]) -> None:
        self._path = path
        with path.open("rb") as file:
            starts = list(accumulate((len(line) for line in file), initial=0))
        self._starts = {question.question.id: start for question, start in zip(questions, starts, strict=False)}

    def of(self, question: BenchQuestion) -> dict[str, Any]:
        """Return the row of a question; raises `FormatError` if it is not in its place."""
        with self._path.open("rb") as file:
            file.seek(self._starts[question.question.id])
            row = parse_object(file.readline(), str(self._path))
        if row.get("id") != question.question.id:
            raise FormatError(f"{self._path}: the hits of question {question.question.id!r} are not in their place")
        return row


class Retrieved:
    """A retriever that has the hits of the question that a thread of a run asks (`set_question`), from `HitRows`.

    Another query goes to `other(question)`, a retriever over the same corpus; None refuses it. `path` is that of the
    rows, for errors.
    """

    def __init__(self, name: str, path: Path, other: Callable[[BenchQuestion], Retriever] | None) -> None:
        self.name, self._path, self._other = name, path, other
        self._here = threading.local()  # the question that a thread asks (`question`), and its row (`row`)

    def set_question(self, question: BenchQuestion, row: Mapping[str, Any]) -> float:
        """Prepare for the searches of a question; returns the seconds that searching for it took."""
        self._here.row, self._here.question = row, question
        return float(row["seconds"])

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """Return at most k hits per query."""
        return [self._search(query, k) for query in queries]

    def _search(self, query: str, k: int) -> list[Hit]:
        question: BenchQuestion = self._here.question
        row: dict[str, Any] = self._here.row
        if query != question.question.text:
            if self._other is None:
                raise RagError("this benchmark gives the passages of each question: a system cannot search for others")
            return self._other(question).search([query], k)[0]
        if row.get("reason") is not None:
            raise QuestionError(row["reason"])
        source = str(self._path)
        return [Hit(passage_of(field(hit, "passage", dict, source), source), hit["score"]) for hit in row["hits"][:k]]
