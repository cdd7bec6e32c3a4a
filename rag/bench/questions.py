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
    found = read_bench_questions(benchmark.questions.check(data, benchmark.home), benchmark.part)
    if benchmark.count is not None and len(found) != benchmark.count:
        raise RagError(f"{benchmark.id}: {len(found):,} questions, expected {benchmark.count:,}; is `count` right?")
    if gold and benchmark.gold is not None:
        known = {q.text: q for q in read_questions(benchmark.gold.check(data, benchmark.home))}
        found = [_with_gold(one, known.get(one.question.text)) for one in found]
    found = [one if gold and one.answerable else replace(one, question=replace(one.question, gold=())) for one in found]
    for one in found:
        if benchmark.corpus_of(one.collection) is None:
            raise RagError(
                f"{benchmark.id}: question {one.question.id!r} names no corpus: 'collection' should be one of "
                f"{', '.join(benchmark.corpora)}, found {one.collection!r:.60}"
            )
        if benchmark.task == "given" and not one.passages:
            raise RagError(f"{benchmark.id}: question {one.question.id!r} comes without passages")
    return found


def without_gold(questions: Iterable[tuple[bool, Sequence[str]]]) -> int:
    """Return how many answerable questions have no gold passage, from (answerable, gold) of each; 0 if none has one."""
    known = [bool(gold) for answerable, gold in questions if answerable]
    return known.count(False) if any(known) else 0


def _with_gold(one: BenchQuestion, known: Question | None) -> BenchQuestion:
    return one if known is None else replace(one, question=replace(one.question, gold=known.gold))
