"""The questions of a benchmark, with their gold passages."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from autoais.formats.questions import read_questions
from rag.base.errors import RagError
from rag.base.types import Question
from rag.bench.benchmark import Benchmark
from rag.bench.question_files import BenchQuestion, read_bench_questions


def questions_of(benchmark: Benchmark, data: Path | None, *, gold: bool = True) -> list[BenchQuestion]:
    """Return all questions of a benchmark, with the gold passages of its corpus unless `gold` is false.

    A question that no passage answers has no gold passages, whatever the data says (CLAPnq's have the passages that
    people looked at), so that retrieval is measured over the others. Raises `RagError` if the data is missing or
    another version, and if a question fits no corpus.
    """
    questions = read_bench_questions(benchmark.questions.check(data, benchmark.home), benchmark.part)
    if benchmark.count is not None and len(questions) != benchmark.count:
        raise RagError(f"{benchmark.id}: {len(questions):,} questions, expected {benchmark.count:,}; is `count` right?")
    if gold and benchmark.gold is not None:
        gold_questions = {q.text: q for q in read_questions(benchmark.gold.check(data, benchmark.home))}
        questions = [_with_gold(question, gold_questions.get(question.question.text)) for question in questions]
    questions = [
        question if gold and question.answerable else replace(question, question=replace(question.question, gold=()))
        for question in questions
    ]
    for question in questions:
        if benchmark.corpus_of(question.collection) is None:
            raise RagError(
                f"{benchmark.id}: question {question.question.id!r} names no corpus: 'collection' should be one of "
                f"{', '.join(benchmark.corpora)}, found {question.collection!r:.60}"
            )
        if benchmark.task == "given" and not question.passages:
            raise RagError(f"{benchmark.id}: question {question.question.id!r} comes without passages")
    return questions


def without_gold(questions: Iterable[tuple[bool, Sequence[str]]]) -> int:
    """Return how many answerable questions have no gold passage, from (answerable, gold) of each; 0 if none has one."""
    flags = [bool(gold) for answerable, gold in questions if answerable]
    return flags.count(False) if any(flags) else 0


def _with_gold(question: BenchQuestion, gold_question: Question | None) -> BenchQuestion:
    return (
        question
        if gold_question is None
        else replace(question, question=replace(question.question, gold=gold_question.gold))
    )
