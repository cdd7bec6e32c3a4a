"""The systems of a run, opened where the run is started or in the workers of an engine."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

from rag.answer.engine_system import check_index, check_system
from rag.answer.specs import SystemSpec
from rag.answer.system import System, answer_or_abstain
from rag.answer.systems import open_system
from rag.base.types import Answer
from rag.bench.benchmark import Benchmark
from rag.bench.corpora import Corpora
from rag.bench.question_files import BenchQuestion
from rag.bench.retrieval import OF_THE_QUESTION, Retrieved
from rag.index.open import open_index
from rag.retrieval import Retriever

QuestionWithHits = tuple[BenchQuestion, Mapping[str, Any] | None]
"""A question, and the row of its hits (`HitRows`) if the system searches with the question."""


@dataclass(frozen=True)
class OpenAnswering:
    """What opens a system: `first` is a question of the run, `hits_source` the retriever, name and file of its hits.

    In a worker, `corpus_paths` are those of the corpora (`Corpora.corpus_paths`), `sample` is the size of the sample
    that is searched, `checksums` are those of the indexes, and `expected` is the name of the system, where the run was
    started.
    """

    benchmark: Benchmark
    first: BenchQuestion
    spec: SystemSpec
    hits_source: tuple[str, str, Path] | None = None
    corpus_paths: tuple[Path | None, Path, Path | None] = (None, Path(), None)
    sample: int | None = None
    checksums: Mapping[str, str] = field(default_factory=dict)
    expected: str = ""

    def over(self, corpora: Corpora) -> "Answering":
        """Open the system over corpora."""
        return Answering(self, corpora)

    def __call__(self) -> "Answering":
        """Open the system in a worker; raises `RagError` for another index, model, or version of them."""
        data, indexes, corpus = self.corpus_paths
        corpora = Corpora(self.benchmark, data, indexes, corpus, build=False, sample=self.sample)
        for name, checksum in self.checksums.items():
            check_index(corpora.open(name), checksum)
        answering = Answering(self, corpora)
        check_system(answering.system(self.first), self.expected)
        return answering


class Answering:
    """Answers questions with one system for all corpora, or with one per corpus if it does not share hits."""

    def __init__(self, opening: OpenAnswering, corpora: Corpora) -> None:
        self._opening, self._corpora = opening, corpora
        self._retrieved: Retrieved | None = None
        self._others: dict[str, Retriever] = {}
        if opening.hits_source is not None:
            retriever, name, path = opening.hits_source
            other = None if retriever in OF_THE_QUESTION else lambda question: self._other(retriever, question)
            self._retrieved = Retrieved(name, path, other)
        self._systems: dict[str, System] = {}
        self.name = self.system(opening.first).name

    def __call__(self, item: QuestionWithHits) -> tuple[Answer, float]:
        """Return the answer, and the seconds it took with the search."""
        question, row = item
        system, searching = self.system(question), 0.0
        if self._retrieved is not None:
            assert row is not None
            searching = self._retrieved.set_question(question, row)
        start = perf_counter()
        answer = answer_or_abstain(system, question.question)
        return answer, perf_counter() - start + searching

    def system(self, question: BenchQuestion) -> System:
        """Return the system that answers a question."""
        key = "" if self._retrieved is not None else self._corpora.name_of(question.collection)
        if key not in self._systems:
            self._systems[key] = self._open_for(question)
        return self._systems[key]

    def _open_for(self, question: BenchQuestion) -> System:
        spec, benchmark = self._opening.spec, self._opening.benchmark
        # Without a corpus, the passages come with the questions, and nothing else is searched.
        has_corpus = bool(benchmark.corpora)
        index = self._corpora.open(self._corpora.name_of(question.collection)) if has_corpus else open_index(None)
        k = spec.k or (benchmark.k if spec.kind.k else None) or None
        retriever = spec.retriever if self._retrieved is None else self._retrieved
        return open_system(spec.name, index, spec.options, k=k, retriever=retriever)

    def _other(self, retriever: str, question: BenchQuestion) -> Retriever:
        corpus = self._corpora.name_of(question.collection)
        if corpus not in self._others:
            self._others[corpus] = self._corpora.retriever(corpus, retriever)
        return self._others[corpus]
