"""The public functions of assessors: create nuggets, assign and score them, and grade passages."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from autoais import formats
from autoais.assessors import nuggets as work
from autoais.assessors import relevance
from autoais.assessors.assessor import Assessor, Prompt
from autoais.assessors.candidates import questions_of, read_candidates
from autoais.base.answers import CitedAnswer, as_cited_answer
from autoais.base.errors import UsageError, UserError, as_path, check_list, check_type, tuple_of
from autoais.base.io.jsonl import check_distinct, check_outputs, dumps, round_floats, write_atomic
from autoais.base.io.provenance import provenance
from autoais.base.models.replies import ReplyCache
from autoais.base.progress import Progress, no_progress
from autoais.base.types import Question
from autoais.formats.nuggetizer import ASSIGNMENTS, FAILED, NuggetBank, bank_of, read_assignments, read_nuggets, run_of
from autoais.metrics.nuggets import NUGGET_SCORES, score_assignments
from autoais.metrics.rates import Mean
from autoais.metrics.runs import Qrels, qrels_lines

Passages = str | Path | Iterable[object]
"""A file that `read_candidates` reads, or a list of `Candidates` or of answers with their passages."""


@dataclass(frozen=True, slots=True)
class Assessment:
    """What a language model made: the rows of its file, and the record of the report.

    A row with `failures` lacks what the model did not give. `record` has the counts, the failures with the ids of their
    rows, notes and provenance.
    """

    rows: Sequence[Mapping[str, Any]]
    record: Mapping[str, Any] = field(repr=False)

    @property
    def failed(self) -> int:
        """The number of nuggets, assignments or grades, and windows of passages, that failed."""
        return int(self.record["failed"])

    @property
    def qrels(self) -> Qrels:
        """The grades by topic and passage id, without those that failed; empty for nuggets."""
        qrels: dict[str, dict[str, int]] = {}
        for row in self.rows:
            if row.get("judgment") is not None:
                qrels.setdefault(row["qid"], {})[row["docid"]] = row["judgment"]
        return qrels

    def save(self, path: str | Path, report: str | Path | None = None) -> None:
        """Write the rows (jsonl), and the record (json) if a file is named for it."""
        target, record_file = as_path("path", path), None if report is None else as_path("report", report)
        check_outputs([], [target, record_file])
        write_atomic(target, map(dumps, self.rows))
        if record_file is not None:
            self.save_report(record_file)

    def save_report(self, path: str | Path) -> None:
        """Write the record (json)."""
        write_atomic(as_path("path", path), [dumps(self.record, indent=2)])

    def save_qrels(self, path: str | Path) -> None:
        """Write the grades as TREC qrels, `topic 0 docid grade`; raises `UserError` for an id that no column holds."""
        write_atomic(as_path("path", path), qrels_lines(self.qrels))


def create_nuggets(
    passages: Passages,
    model: str | Assessor,
    *,
    questions: str | Path | Sequence[Question] | None = None,
    corpus: Sequence[str | Path] = (),
    depth: int | None = None,
    min_grade: int = 1,
    max_nuggets: int = work.MAX_NUGGETS,
    start: Mapping[str, NuggetBank] | None = None,
    cache: str | Path | None = None,
    progress: Progress = no_progress,
) -> Assessment:
    """Create the nuggets of questions from their passages, by AutoNuggetizer's procedure (`autoais nuggets create`).

    `passages` is a file that `read_candidates` reads, or a list of `Candidates` or answers; a TREC run needs
    `questions` and a `corpus`. Of each question the first `depth` passages count, without those of a grade below
    `min_grade`. `start` holds nuggets to begin with, by topic. `model` is a chat model on the server of
    OPENAI_BASE_URL, or an `Assessor`; `cache` is a file that keeps its replies, from which a stopped run resumes. Rows
    are those of nuggetizer's nugget files. Raises `FormatError`, `UsageError`, and `UserError` if the model gave
    nothing that can be used.
    """
    if max_nuggets < 1:
        raise UsageError(f"max_nuggets should be at least 1, found {max_nuggets}")
    corpora = [as_path("corpus", path) for path in _paths("corpus", corpus)]
    listed = read_candidates(passages, questions=questions_of(questions), corpus=corpora, depth=depth)
    relevant = [candidates.relevant(min_grade) for candidates in listed]
    settings = {"depth": depth, "min_grade": min_grade, "max_nuggets": max_nuggets}
    with _open_assessor(model, cache) as assessor:
        texts = {topic: [nugget.text for nugget in bank.nuggets] for topic, bank in (start or {}).items()}
        items = (work.create(assessor, item, max_nuggets, texts.get(item.topic, ())) for item in relevant)
        rows = assessor.work(items, "creating nuggets", len(relevant), progress)
        how_made = _provenance(assessor, work.CREATE_PROMPTS, settings, passages, questions, corpora)
    importances = Counter(nugget["importance"] for row in rows for nugget in row["nuggets"])
    n_windows = sum(reason.startswith("passage") for row in rows for reason in row.get("failures", ()))
    notes = _note("questions without a passage, and so without nuggets", sum(not c.passages for c in relevant))
    topics = {candidates.topic for candidates in listed}
    notes |= _note("topics with nuggets to begin with that are not among the questions", len({*(start or ())} - topics))
    notes |= _note("questions without a vital nugget, with vital scores of 0", _count_without_vital(rows))
    counts = {
        "questions": len(rows),
        "passages": sum(len(candidates.passages) for candidates in relevant),
        "nuggets": importances.total(),
        "vital": importances["vital"],
        "okay": importances["okay"],
        "failed": importances[FAILED] + n_windows,
    }
    return _assessment(rows, counts, notes, how_made, bool(importances.total()))


def assign_nuggets(
    answers: str | Path | Sequence[str | Path] | Iterable[object],
    nuggets: str | Path | Iterable[NuggetBank | Mapping[str, Any]],
    model: str | Assessor,
    *,
    cache: str | Path | None = None,
    progress: Progress = no_progress,
) -> Assessment:
    """Assign the nuggets of questions to answers to them, by AutoNuggetizer's procedure (`autoais nuggets assign`).

    `answers` is a file in any answer format, a list of such files, or a list of answers; the id of an answer is its
    topic. `nuggets` is a nugget file, or a list of `NuggetBank`s or rows. `model` and `cache` are as in
    `create_nuggets`. Rows are those of nuggetizer's files of assignments. Raises `FormatError`, `UsageError`, and
    `UserError` for two answers of one system to a topic, if no answer has nuggets, and if the model gave nothing that
    can be used.
    """
    banks = {bank.topic: bank for bank in _banks(nuggets)}
    all_answers = _answers(answers)
    pairs = [(answer, banks[answer.id]) for answer in all_answers if answer.id in banks]
    if not pairs:
        raise UserError("no answer is to a topic with nuggets: their ids should be those of the topics")
    keys = Counter((answer.id, run_of(answer)) for answer, _ in pairs)
    (topic, run), count = keys.most_common(1)[0]
    if count > 1:
        raise UserError(f"{count} answers of system {run!r:.60} to topic {topic!r:.60}; name their systems, or choose")
    with _open_assessor(model, cache) as assessor:
        items = (work.assign(assessor, answer, bank) for answer, bank in pairs)
        rows = assessor.work(items, "assigning nuggets", len(pairs), progress)
        how_made = _provenance(assessor, work.ASSIGN_PROMPTS, {}, answers, nuggets)
    assignments = Counter(nugget["assignment"] for row in rows for nugget in row["nuggets"])
    notes = _note("answers to topics without nuggets, left out", len(all_answers) - len(pairs))
    notes |= _note("topics with nuggets that nobody answered", len(banks.keys() - {bank.topic for _, bank in pairs}))
    counts = {"answers": len(rows), "nuggets": assignments.total(), **{a: assignments[a] for a in ASSIGNMENTS}}
    is_usable = assignments.total() > assignments[FAILED] or not assignments.total()
    return _assessment(rows, counts | {"failed": assignments[FAILED]}, notes, how_made, is_usable)


def score_nuggets(
    assignments: str | Path | Sequence[str | Path] | Assessment | Iterable[Mapping[str, Any]],
) -> dict[str, Any]:
    """Score assignments as nuggetizer does (`autoais nuggets score`): the mean over topics of each score, by system.

    `assignments` are one or more files of assignments, rows of such files, or the result of `assign_nuggets`. The dict
    has `runs`, each with `run`, `topics`, `failed` (assignments that failed, which count as no support), `measures`
    (value, n and 95 % interval by name) and `per_topic` (scores by topic), and `notes`. A topic without a vital nugget
    scores 0 in the vital scores, as in nuggetizer; `notes` says how many there are. Raises `FormatError`.
    """
    rows = assignments.rows if isinstance(assignments, Assessment) else list(_assignment_rows(assignments))
    if not rows:
        raise UserError("there are no assignments")
    by_run: dict[str, dict[str, Mapping[str, Any]]] = {}
    for row in rows:
        topics = by_run.setdefault(str(row.get("run_id") or "unknown"), {})
        key = " ".join(str(row[name]) for name in ("qid", "docid") if row.get(name) is not None)
        if key in topics:
            raise UserError(f"topic {key!r:.60} of system {row.get('run_id')!r:.60} occurs twice")
        topics[key] = row
    runs = []
    for run, topics in by_run.items():
        pairs = {
            topic: [(nugget.get("importance") or "vital", nugget["assignment"]) for nugget in row["nuggets"]]
            for topic, row in topics.items()
        }
        per_topic = {topic: score_assignments(topic_pairs) for topic, topic_pairs in pairs.items()}
        measures = {name: Mean.of([scores[name] for scores in per_topic.values()]).record() for name in NUGGET_SCORES}
        n_failed = sum(assignment == FAILED for topic_pairs in pairs.values() for _, assignment in topic_pairs)
        runs.append(
            {"run": run, "topics": len(topics), "failed": n_failed, "measures": measures, "per_topic": per_topic}
        )
    notes = _note(
        "topics without a vital nugget, with vital scores of 0 as in nuggetizer",
        len({row["qid"] for row in rows if not any(_is_vital(nugget) for nugget in row["nuggets"])}),
    )
    result: dict[str, Any] = round_floats({"runs": runs, "notes": notes})
    return result


def label_relevance(
    passages: Passages,
    model: str | Assessor,
    *,
    questions: str | Path | Sequence[Question] | None = None,
    corpus: Sequence[str | Path] = (),
    depth: int | None = None,
    cache: str | Path | None = None,
    progress: Progress = no_progress,
) -> Assessment:
    """Grade the relevance of passages to their questions from 0 to 3, as umbrela does (`autoais relevance`).

    The arguments are as in `create_nuggets`. A row has umbrela's fields, and `qid` and `docid`; `qrels` holds the
    grades. A grade that failed is in no qrels. Raises `FormatError`, `UsageError`, and `UserError` if the model gave
    nothing that can be used.
    """
    corpora = [as_path("corpus", path) for path in _paths("corpus", corpus)]
    listed = read_candidates(passages, questions=questions_of(questions), corpus=corpora, depth=depth)
    pairs = [(candidates, passage) for candidates in listed for passage in candidates.passages]
    with _open_assessor(model, cache) as assessor:
        items = (relevance.grade(assessor, c.topic, c.query, passage) for c, passage in pairs)
        rows = assessor.work(items, "grading passages", len(pairs), progress)
        how_made = _provenance(assessor, relevance.PROMPTS, {"depth": depth}, passages, questions, corpora)
    grades = Counter(row["judgment"] for row in rows)
    counts = {"questions": len(listed), "passages": len(rows), "grades": {str(g): grades[g] for g in range(4)}}
    notes = _note("questions without a passage", sum(not candidates.passages for candidates in listed))
    return _assessment(rows, counts | {"failed": grades[None]}, notes, how_made, grades[None] < len(rows) or not rows)


def _assessment(
    rows: Sequence[Mapping[str, Any]],
    counts: Mapping[str, Any],
    notes: Mapping[str, int],
    how_made: Mapping[str, Any],
    is_usable: bool,
) -> Assessment:
    failures = [
        {"id": " ".join(str(row[key]) for key in ("qid", "run_id", "docid") if key in row), "reason": reason}
        for row in rows
        for reason in row.get("failures", ())
    ]
    if failures and not is_usable:
        raise UserError(f"the model gave nothing that can be used: {failures[0]['id']}: {failures[0]['reason']}")
    return Assessment(rows, {**counts, "failures": failures, "notes": dict(notes), "provenance": how_made})


@contextmanager
def _open_assessor(model: str | Assessor, cache: str | Path | None) -> Iterator[Assessor]:
    """Yield an assessor for a model, with its cache, which is closed at the end."""
    check_type("model", model, "the name of a chat model, or an Assessor", str, Assessor)
    assessor = Assessor(model) if isinstance(model, str) else model
    if cache is None:
        yield assessor
        return
    if assessor.cache is not None:
        raise UsageError("the assessor has a cache already; name one in one place only")
    with ReplyCache(as_path("cache", cache)) as replies:
        assessor.cache = replies
        try:
            yield assessor
        finally:
            assessor.cache = None


def _provenance(
    assessor: Assessor,
    prompts: Sequence[str],
    settings: Mapping[str, Any],
    source: object,
    other: object,
    corpora: Sequence[Path] = (),
) -> dict[str, Any]:
    """Return the provenance of a result, with the files among its inputs."""
    sources = list(source) if isinstance(source, list | tuple) else [source]
    files = [Path(item) for item in [*sources, other, *corpora] if isinstance(item, str | Path)]
    inputs = {f"input{number}": path for number, path in enumerate(files, 1)}
    return {
        **provenance(inputs),
        "settings": dict(settings),
        "model": assessor.record([Prompt.read(name) for name in prompts]),
    }


def _paths(name: str, paths: Sequence[str | Path]) -> Sequence[str | Path]:
    check_list(name, paths, "a list of files")
    return paths


def _banks(nuggets: str | Path | Iterable[NuggetBank | Mapping[str, Any]]) -> Iterator[NuggetBank]:
    if isinstance(nuggets, str | Path):
        yield from read_nuggets(nuggets)
        return
    check_list("nuggets", nuggets, "a file, or a list of NuggetBanks or rows")
    for number, item in enumerate(nuggets, 1):
        yield item if isinstance(item, NuggetBank) else bank_of(item, f"nuggets[{number - 1}]")


def _answers(answers: str | Path | Sequence[str | Path] | Iterable[object]) -> list[CitedAnswer]:
    items = _items("answers", answers)
    if items and all(isinstance(item, str | Path) for item in items):
        files = [Path(item) for item in items]
        check_distinct(files)
        return [answer for path in files for answer in formats.read(path)]
    return [as_cited_answer(item, number) for number, item in enumerate(items, 1)]


def _assignment_rows(assignments: str | Path | Iterable[object]) -> Iterator[Mapping[str, Any]]:
    items = _items("assignments", assignments)
    if items and all(isinstance(item, str | Path) for item in items):
        files = [Path(item) for item in items]
        check_distinct(files)
        for path in files:
            rows = [row for _, row in read_assignments(path)]
            if not rows:
                raise UserError(f"{path}: holds no assignments; `autoais nuggets assign` makes them")
            yield from rows
        return
    for row in tuple_of(dict, "assignments", items, "a file, or a list of rows (dicts)"):
        bank_of(row, "assignments")
        if any("assignment" not in nugget for nugget in row["nuggets"]):
            raise UserError(f"topic {row['qid']!r:.60} has a nugget without 'assignment'")
        yield row


def _items(name: str, value: object) -> list[Any]:
    if isinstance(value, str | Path):
        return [value]
    check_list(name, value, "a file, a list of files, or a list")
    return list(value)  # type: ignore[call-overload,no-any-return]  # an iterable, as was checked


def _is_vital(nugget: Mapping[str, Any]) -> bool:
    return (nugget.get("importance") or "vital") == "vital"


def _count_without_vital(rows: Iterable[Mapping[str, Any]]) -> int:
    return sum(bool(row["nuggets"]) and not any(map(_is_vital, row["nuggets"])) for row in rows)


def _note(text: str, count: int) -> dict[str, int]:
    return {text: count} if count else {}
