"""`autoais evaluate-run`: runs and judgements in files, with passage texts of a corpus for `answer_hit@k`."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from autoais.base.errors import FormatError, UserError
from autoais.base.io.jsonl import check_distinct
from autoais.base.types import Passage
from autoais.formats.corpora import read_passages
from autoais.formats.questions import read_questions
from autoais.metrics.runs import (
    ANSWER_HITS,
    MEASURES,
    Qrels,
    Run,
    answer_ranks,
    evaluate,
    holds_questions,
    open_measures,
    qrels_of_pages,
    read_qrels,
    read_run,
    run_of_pages,
)


def evaluate_files(
    runs: Sequence[Path],
    qrels: Path,
    measures: Sequence[str] = (),
    *,
    baseline: Path | None = None,
    questions: Path | None = None,
    corpus: Sequence[Path] = (),
    page_level: bool = False,
) -> dict[str, Any]:
    """Evaluate run files against qrels (`autoais.metrics.runs.evaluate`).

    `answer_hit@k` takes reference answers from `questions`, or from `qrels` if that file holds questions, and texts
    from the corpus files; it is measured on passages even with `page_level`. Raises `UserError` if a file is named
    twice, or if `answer_hit` lacks answers or texts.
    """
    paths = [*([] if baseline is None else [baseline]), *runs]
    check_distinct(paths)
    measures_of_run = open_measures(measures or (*MEASURES, *(ANSWER_HITS if corpus else ())))
    depth = max((measure.cutoff or 0 for measure in measures_of_run if measure.engine is None), default=0)
    if depth and not corpus:
        raise UserError("answer_hit needs the texts of the passages: give a corpus (--corpus FILE)")
    if not depth and (corpus or questions):
        raise UserError(
            "questions and corpus (--questions, --corpus) are for answer_hit@k, which is not among the measures"
        )
    judgements = read_qrels(qrels)
    runs_by_name = {str(path): read_run(path) for path in paths}
    hit_ranks: Mapping[str, Mapping[str, int]] | None = None
    notes: list[str] = []
    if depth:
        ranks, notes = _find_answers(list(runs_by_name.values()), judgements, qrels, questions, corpus, depth)
        hit_ranks = dict(zip(runs_by_name, ranks, strict=True))
    if page_level:
        judgements = qrels_of_pages(judgements)
        runs_by_name = {name: run_of_pages(run) for name, run in runs_by_name.items()}
    baseline_name = None if baseline is None else str(baseline)
    result = evaluate(runs_by_name, judgements, measures_of_run, baseline=baseline_name, hit_ranks=hit_ranks)
    result["notes"] += notes
    return {"level": "pages" if page_level else "passages", **result}


def _find_answers(
    runs: Sequence[Run], judgements: Qrels, qrels: Path, questions: Path | None, corpus: Sequence[Path], depth: int
) -> tuple[list[dict[str, int]], list[str]]:
    """The rank of the first passage with an answer, by topic for each run, and notes on what was missing."""
    source = questions or qrels
    if questions is None and not holds_questions(qrels):
        raise UserError("answer_hit needs reference answers: name a file of questions (--questions)")
    answers = {
        question.id: question.answers
        for question in read_questions(source)
        if question.answers and question.id in judgements
    }
    if not answers:
        raise UserError(f"{source}: has no reference answers for the judged topics")
    passage_ids = {key for run in runs for topic in answers for key in run.rankings.get(topic, ())[:depth]}
    ranks, n_passages = answer_ranks(runs, answers, _read_texts(corpus), depth)
    corpus_names = ", ".join(map(str, corpus))
    if passage_ids and not n_passages:
        raise UserError(f"{corpus_names}: holds none of the {len(passage_ids):,} passages of the runs; another corpus?")
    notes = []
    if missing := len(judgements) - len(answers):
        notes.append(f"{missing:,} topics have no reference answer in {source} and count as zero in answer_hit")
    if n_passages < len(passage_ids):
        n_absent = len(passage_ids) - n_passages
        notes.append(f"{n_absent:,} of {len(passage_ids):,} passages are not in {corpus_names}: counted as misses")
    return ranks, notes


def _read_texts(corpus: Sequence[Path]) -> Iterator[Passage]:
    for path in corpus:
        for _, passage in read_passages(path):
            if isinstance(passage, FormatError):
                raise passage
            yield passage
