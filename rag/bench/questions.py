"""The questions of a benchmark, with their gold passages."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from autoais.base.io.notes import Notes
from autoais.formats.corpora import find_passages
from autoais.formats.questions import read_questions
from autoais.metrics.runs import holds_questions, read_qrels
from rag.base.errors import RagError
from rag.base.types import Question
from rag.bench.benchmark import Benchmark, Corpus
from rag.bench.corpora import corpus_files
from rag.bench.question_files import BenchQuestion, read_bench_questions, read_judged_questions
from rag.bench.selections import read_ids


def questions_of(
    benchmark: Benchmark, data: Path | None, *, gold: bool = True, within_list: bool = True
) -> list[BenchQuestion]:
    """Return all questions of a benchmark, with the gold passages of its corpus unless `gold` is false.

    With `within_list`, gold passages that the list of the corpus lacks do not count, if it has one. A question that no
    passage answers has no gold passages, whatever the data says (CLAPnq's have the passages that people looked at), so
    that retrieval is measured over the others. Raises `RagError` if the data is missing or another version, and if a
    question fits no corpus.
    """
    questions = list(_read_files(benchmark, data))
    if gold and benchmark.gold is not None:
        find_gold = _read_gold(benchmark.gold.check(data, benchmark.home))
        questions = [_with_gold(question, find_gold(question.question)) for question in questions]
    if within_list and benchmark.ids is not None:
        listed = read_ids(benchmark.ids.check(data, benchmark.home))
        questions = [
            _with_gold(question, tuple(key for key in question.question.gold if key in listed))
            for question in questions
        ]
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
    return questions if benchmark.texts is None else _with_texts(questions, benchmark, benchmark.texts, data)


def _read_files(benchmark: Benchmark, data: Path | None) -> Iterator[BenchQuestion]:
    ids: set[str] = set()
    for file in benchmark.sources:
        path = file.check(data, benchmark.home)
        if file.qrels is None:
            questions = read_bench_questions(path, file.part, file.passages)
        else:
            questions = [
                replace(question, passages=question.passages[: file.passages])
                for question in read_judged_questions(path, file.qrels.check(data, benchmark.home))
            ]
        if file.ids is not None:
            questions = _choose(questions, read_ids(file.ids.check(data, benchmark.home)), path)
        if file.count is not None and len(questions) != file.count:
            raise RagError(f"{benchmark.id}: {len(questions):,} questions, expected {file.count:,}; is `count` right?")
        for question in questions:
            if question.question.id in ids:
                raise RagError(f"{benchmark.id}: {path}: question {question.question.id!r} is in another file too")
            yield question
        ids |= {question.question.id for question in questions}


def _choose(questions: Sequence[BenchQuestion], ids: Mapping[str, str], path: Path) -> list[BenchQuestion]:
    """The questions with these ids; raises `RagError` if one is missing."""
    if missing := sorted(ids.keys() - {question.question.id for question in questions}):
        raise RagError(
            f"{path}: lacks {len(missing):,} of the {len(ids):,} questions that are listed, such as {missing[0]!r}"
        )
    return [question for question in questions if question.question.id in ids]


def _with_texts(
    questions: Sequence[BenchQuestion], benchmark: Benchmark, texts: Corpus, data: Path | None
) -> list[BenchQuestion]:
    """The questions with the texts of their passages, for which the files of `texts` are read as a stream."""
    path = texts.check(data, benchmark.home)
    ids = {passage.id for question in questions for passage in question.passages}
    passages = find_passages(corpus_files(path), ids, Notes())
    if missing := sorted(key for key in ids if key not in passages or not passages[key].text.strip()):
        raise RagError(
            f"{path} has no text of {len(missing):,} of the {len(ids):,} passages of {benchmark.id}, such as "
            f"{missing[0]!r}"
        )
    return [
        replace(question, passages=tuple(passages[passage.id] for passage in question.passages))
        for question in questions
    ]


def without_gold(questions: Iterable[tuple[bool, Sequence[str]]]) -> int:
    """Return how many answerable questions have no gold passage, from (answerable, gold) of each; 0 if none has one."""
    flags = [bool(gold) for answerable, gold in questions if answerable]
    return flags.count(False) if any(flags) else 0


def _read_gold(path: Path) -> Callable[[Question], tuple[str, ...] | None]:
    """What finds the gold passages of a question: in a file of questions by its text, in qrels by its id."""
    if holds_questions(path):
        by_text = {question.text: question.gold for question in read_questions(path)}
        return lambda question: by_text.get(question.text)
    by_id = {
        topic: tuple(key for key, relevance in relevances.items() if relevance > 0)
        for topic, relevances in read_qrels(path).items()
    }
    return lambda question: by_id.get(question.id)


def _with_gold(question: BenchQuestion, gold: tuple[str, ...] | None) -> BenchQuestion:
    return question if gold is None else replace(question, question=replace(question.question, gold=gold))
