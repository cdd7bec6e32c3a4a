"""`rag eval-run`: `autoais.metrics.runs` on files, with passage texts of an index or corpus for `answer_hit@k`."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from autoais.base.errors import UserError
from autoais.base.io.jsonl import check_distinct
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
from rag.base.types import Passage
from rag.index.index import Index


def evaluate_files(
    runs: Sequence[Path],
    qrels: Path,
    measures: Sequence[str] = (),
    *,
    baseline: Path | None = None,
    questions: Path | None = None,
    index: Path | None = None,
    corpus: Sequence[Path] = (),
    page_level: bool = False,
) -> dict[str, Any]:
    """Evaluate run files against qrels (`autoais.metrics.runs.evaluate`).

    `answer_hit@k` takes reference answers from `questions`, or from `qrels` if that file holds questions, and texts
    from an index or corpus files; it is measured on passages even with `page_level`. Raises `UserError` if a file is
    named twice, or if `answer_hit` lacks answers or texts.
    """
    paths = [*([] if baseline is None else [baseline]), *runs]
    check_distinct(paths)
    if index is not None and corpus:
        raise UserError("give either an index or a corpus (--index, --corpus): both hold the texts of the passages")
    texts = index is not None or bool(corpus)
    wanted = open_measures(measures or (*MEASURES, *(ANSWER_HITS if texts else ())))
    depth = max((measure.cutoff or 0 for measure in wanted if measure.engine is None), default=0)
    if depth and not texts:
        raise UserError(
            "answer_hit needs the texts of the passages: give an index or a corpus (--index DIR, --corpus FILE)"
        )
    if not depth and (texts or questions):
        raise UserError(
            "questions, index and corpus (--questions, --index, --corpus) are for answer_hit@k, which is not among "
            "the measures"
        )
    judged = read_qrels(qrels)
    read = {str(path): read_run(path) for path in paths}
    opened = _open_index(index)
    answered = None
    notes: list[str] = []
    if depth:
        first, notes = _answered(list(read.values()), judged, qrels, questions, opened or corpus, depth)
        answered = dict(zip(read, first, strict=True))
    if page_level:
        judged, read = qrels_of_pages(judged), {name: run_of_pages(run) for name, run in read.items()}
    first_name = None if baseline is None else str(baseline)
    result = evaluate(read, judged, wanted, baseline=first_name, hit_ranks=answered)
    result["notes"] += notes
    made_of = {} if opened is None else {"index": {"name": opened.name, "checksum": opened.manifest["checksum"]}}
    return {"level": "pages" if page_level else "passages", **made_of, **result}


def _open_index(folder: Path | None) -> Index | None:
    from rag.index.open import open_index

    return None if folder is None else open_index(folder)


def _answered(
    runs: Sequence[Run],
    judged: Qrels,
    qrels: Path,
    questions: Path | None,
    texts: Index | Sequence[Path],
    depth: int,
) -> tuple[list[dict[str, int]], list[str]]:
    source = questions or qrels
    if questions is None and not holds_questions(qrels):
        raise UserError("answer_hit needs reference answers: name a file of questions (--questions)")
    answers = {q.id: q.answers for q in read_questions(source) if q.answers and q.id in judged}
    if not answers:
        raise UserError(f"{source}: has no reference answers for the judged topics")
    sought = {i for run in runs for topic in answers for i in run.rankings.get(topic, ())[:depth]}
    first, seen = answer_ranks(runs, answers, _passages(sought, texts), depth)
    where = ", ".join(map(str, texts)) if isinstance(texts, Sequence) else f"index {texts.name}"
    if sought and not seen:
        raise UserError(f"{where}: holds none of the {len(sought):,} passages of the runs; another index?")
    notes = []
    if without := len(judged) - len(answers):
        notes.append(f"{without:,} topics have no reference answer in {source} and count as zero in answer_hit")
    if seen < len(sought):
        notes.append(f"{len(sought) - seen:,} of {len(sought):,} passages are not in {where}: counted as misses")
    return first, notes


def _passages(identifiers: Iterable[str], texts: Index | Sequence[Path]) -> Iterator[Passage]:
    if isinstance(texts, Sequence):
        from rag.documents.corpus import Corpus

        yield from (passage for _, passage in Corpus(texts).read())
    else:
        yield from filter(None, map(texts.store.get, sorted(identifiers)))
