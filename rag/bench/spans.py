"""What people marked as the answers to a benchmark's questions, against what the answers cite."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from autoais.base.answers import CitedAnswer
from autoais.formats.spans import SpanGold, locate
from autoais.metrics.spans import MarkedText, find_cited_spans, mark_texts, score_spans
from rag.base.types import Passage
from rag.bench.corpora import Corpora
from rag.bench.question_files import BenchQuestion


class GoldSpans:
    """The gold spans of questions: as they are, or located in the corpora where the evidence is known by its text."""

    def __init__(self, questions: Sequence[BenchQuestion], corpora: Corpora) -> None:
        self._questions, self._corpora = questions, corpora

    @cached_property
    def by_question(self) -> dict[str, SpanGold]:
        """The gold of each question that has any; questions without an answer have it too, with no spans.

        A question is left out if the corpus lacks a text of its evidence.
        """
        golds = {question.question.id: self._find(question) for question in self._questions}
        return {key: gold for key, gold in golds.items() if gold is not None}

    def score(self, answers: Mapping[str, CitedAnswer]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the main metrics of answers by id of their question, and the whole record; empty without gold.

        `span_precision`, `span_recall` and `span_f1` are over the words of all questions; `_averaged`: the means over
        questions. A question without an answer in `answers` has no spans.
        """
        if not self._has_spans:
            return {}, {}
        scores = score_spans(marked for key in self.by_question for marked in self._mark(key, answers.get(key)))
        metrics = {f"span_{name}": mean.record() for name, mean in scores.words.micro.items()}
        metrics |= {f"span_{name}_averaged": mean.record() for name, mean in scores.words.per_question.items()}
        return metrics, scores.record() | {"left_out": len(self._questions) - len(self.by_question)}

    def f1_of(self, key: str, answer: CitedAnswer | None) -> float | None:
        """Return the F1 over the words of one question; None if its gold is unknown, or no question has any."""
        if not self._has_spans or key not in self.by_question:
            return None
        return score_spans(self._mark(key, answer)).words.total.f1

    @cached_property
    def _has_spans(self) -> bool:
        return any(gold.spans for gold in self.by_question.values())

    def _mark(self, key: str, answer: CitedAnswer | None) -> Iterator[MarkedText]:
        gold = self.by_question[key]
        if answer is None:
            return mark_texts(gold, {}, gold.texts)
        cited = {key: answer.passages[key].text for sentence in answer.sentences for key in sentence.cites}
        texts = {**cited, **gold.texts}
        return mark_texts(gold, find_cited_spans(answer, texts), texts)

    def _find(self, question: BenchQuestion) -> SpanGold | None:
        key = question.question.id
        if question.spans is not None:
            return SpanGold(key, {passage.id: passage.text for passage in question.passages}, question.spans)
        if question.evidence is None:
            return None
        texts: dict[str, str] = {}
        spans: dict[str, list[tuple[int, int]]] = {}
        passages = self._passages(question) if question.evidence else []
        for text in question.evidence:
            for passage in passages:
                if (span := locate(passage.text, text)) is not None:
                    texts[passage.id] = passage.text
                    spans.setdefault(passage.id, []).append(span)
                    break
            else:
                return None
        return SpanGold(key, texts, {passage: tuple(located) for passage, located in spans.items()})

    def _passages(self, question: BenchQuestion) -> list[Passage]:
        """The passages of a question's corpus, those of the document that answers it first."""
        corpus = self._passages_by_corpus[self._corpora.name_of(question.collection)]
        return sorted(corpus, key=lambda passage: passage.id.rpartition("#")[0] != question.where)

    @cached_property
    def _passages_by_corpus(self) -> dict[str, list[Passage]]:
        names = {self._corpora.name_of(question.collection) for question in self._questions if question.evidence}
        return {name: list(self._corpora.open(name).store.scan()) for name in sorted(names)}
