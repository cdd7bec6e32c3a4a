"""The public functions of `autoais`. Paths may be strings."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from types import NoneType
from typing import TYPE_CHECKING, Any

from autoais import formats
from autoais.base.answers import CitedAnswer, HasCited, as_cited_answer
from autoais.base.errors import UsageError, UserError, as_path, check_list, check_type, tuple_of
from autoais.base.io.jsonl import check_distinct, check_outputs, dumps, round_floats, write_atomic
from autoais.base.io.provenance import judge_record, provenance
from autoais.base.types import Judge, Question
from autoais.formats.attributed_qa import check_mode, judge_options
from autoais.formats.human_ratings.consensus import check_annotators
from autoais.formats.human_ratings.ratings import RELAXED_CUT, STRICT_CUT, Rating
from autoais.formats.human_ratings.read import distinct, read_expected, read_ratings
from autoais.formats.questions import question_of
from autoais.formats.questions import read_questions as questions_of
from autoais.judges import DEFAULT, open_judge
from autoais.judges.imported import check_name
from autoais.metrics.judged import JudgedAnswer
from autoais.metrics.runs import MEASURES, Qrels, Run, as_qrels, as_run, evaluate, open_measures
from autoais.metrics.scoring import DEFAULT_METRICS, Measures, ScoreRun, Scoring, choose_metrics, score_answers

if TYPE_CHECKING:
    import pandas as pd


def _silent(line: str) -> None:
    pass


_QUESTIONS = "a file or a list of Questions or rows (dicts)"
Questions = str | Path | Iterable[Question | Mapping[str, Any]]
Ratings = str | Path | Sequence[str | Path] | Iterable[Rating]


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric over n questions, sentences or citations. `value` is a fraction, or None with a `reason`.

    `interval95` is its 95 % interval. `undecided` items are left out of `value` and count as no in `floor`; those of
    ALCE's script (`_strict`, `claims_nli`), which are sentences and claims, count as no in `value` too.
    """

    value: float | None
    n: int = 0
    interval95: tuple[float, float] | None = None
    undecided: int = 0
    floor: float | None = None
    reason: str | None = None

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> "Metric":
        """Return the metric of a report's record."""
        ends = record.get("interval95")
        fields = {name: record[name] for name in ("value", "undecided", "floor", "reason") if name in record}
        if as_no := record.get("undecided_as_no"):
            fields["undecided"] = as_no
        return cls(n=record.get("n", 0), interval95=tuple(ends) if ends else None, **fields)


@dataclass(frozen=True, slots=True)
class Report:
    """The result of `score`: metrics by name, one judgement per sentence, and the record of `autoais score --report`.

    `judgements` are the rows of `autoais score --out`; `compare` takes them. Their fields: `id`, `sentence`, `text`,
    `cites`, `verdict`, `probability`, `reason`, `judge`, `alone` (the verdict on each of `cites` by itself),
    `evidence`, `unsupported`, `answer` (only where people judged the whole answer) and, in the first row of an answer,
    `scores` (by metric, the sum of the scores of its items and their number).
    """

    judge: str
    metrics: Mapping[str, Metric]
    judgements: Sequence[Mapping[str, Any]]
    record: Mapping[str, Any] = field(repr=False)

    def __repr__(self) -> str:
        return f"Report({self.judge}: {_format_values(self.metrics)})"

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON: metrics, human labels, notes and provenance."""
        return dict(self.record)

    def save(self, path: str | Path, judgements: str | Path | None = None) -> None:
        """Write the files of `autoais score`: the report (json, `--report`) and, if named, the judgements (`--out`)."""
        target, rows = as_path("path", path), None if judgements is None else as_path("judgements", judgements)
        check_outputs([], [target, rows])
        if rows is not None:
            write_atomic(rows, map(dumps, self.judgements))
        write_report(self.record, target)

    def to_frame(self) -> "pd.DataFrame":
        """Return a pandas data frame with a row per metric; raises `UserError` without pandas."""
        return _frame(self.metrics)


def write_report(record: Mapping[str, Any], path: Path) -> None:
    """Write the record of a report to a file (json)."""
    write_atomic(path, [dumps(record, indent=2)])


@dataclass(frozen=True, slots=True)
class RunReport:
    """The result of `evaluate_run`: measures by their ir_measures names, and the values per topic."""

    metrics: Mapping[str, Metric]
    per_topic: Mapping[str, Mapping[str, float]]
    record: Mapping[str, Any] = field(repr=False)

    def __repr__(self) -> str:
        return f"RunReport({_format_values(self.metrics)})"

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON."""
        return dict(self.record)

    def to_frame(self) -> "pd.DataFrame":
        """Return a pandas data frame with a row per measure; raises `UserError` without pandas."""
        return _frame(self.metrics)


def _format_values(metrics: Mapping[str, Metric]) -> str:
    return ", ".join(f"{name} {metric.value:.3f}" for name, metric in metrics.items() if metric.value is not None)


def _frame(metrics: Mapping[str, Metric]) -> "pd.DataFrame":
    try:
        import pandas
    except ImportError:
        raise UserError("to_frame needs pandas, which is not installed: pip install pandas") from None
    columns = ("value", "low", "high", "n", "undecided", "floor", "reason")
    rows = [
        (metric.value, *(metric.interval95 or (None, None)), metric.n, metric.undecided, metric.floor, metric.reason)
        for metric in metrics.values()
    ]
    return pandas.DataFrame(rows, index=list(metrics), columns=list(columns))


def read_answers(path: str | Path, format: str | None = None) -> Iterator[CitedAnswer]:  # noqa: A002
    """Stream the answers of a file in any answer format (`autoais schema` lists them)."""
    return formats.read(as_path("answers", path), format)


def read_questions(path: str | Path) -> Iterator[Question]:
    """Stream the questions of a file: jsonl, Open-NQ jsonl, TREC topics or DPR's tsv."""
    return questions_of(as_path("questions", path))


def score(
    answers: str | Path | Iterable[object],
    *,
    judge: str | Judge = DEFAULT,
    calibration: str | Path | None = None,
    questions: Questions | None = None,
    corpus: Sequence[str | Path] = (),
    metrics: str | Sequence[str] = DEFAULT_METRICS,
    format: str | None = None,  # noqa: A002  (named as the command's option)
    compat: str | None = None,
    cache: str | Path | None = None,
    alce_splitter: str | None = None,
    mauve: str | Path | None = None,
    alce_cot: bool = False,
    trec_all: bool = False,
    skip_bad: bool = False,
) -> Report:
    """Judge every sentence against the passages it cites, and compute the metrics.

    `answers` is a file in any format of `autoais schema`, or a list of `CitedAnswer`, of `rag.Answer`, or of rows of
    `answers.jsonl` (dicts), or of those of another JSON `format`. `calibration` is a file of `autoais calibrate` for
    the judge. `questions` is the whole benchmark, a file, or a list of questions or their rows (dicts); unanswered
    questions count as not attributable. `corpus` supplies the texts of passages known by id only;
    `skip_bad` skips its broken lines. `metrics` names citation metrics (alce, hagrid, liu, trec). With
    `compat="google-2023"`, predictions of Attributed QA are scored as its released script does. `cache` is a file that
    keeps judgements. `alce_splitter` is nltk (the default, where installed) or sentencex, for ALCE's strict metrics;
    `mauve` is a folder with GPT-2 large, for ALCE's MAUVE; `alce_cot` scores QAMPARI's lists from the first colon on,
    as ALCE's `--cot`. `trec_all` counts all citations of a sentence in TREC's metrics, not only the first. Raises
    `FormatError`, `UsageError`, and `UserError` if no row has an answer and none abstains, or if no text is known for
    any cited passage.
    """
    judge_instance = _judge(judge, compat)
    check_type("metrics", metrics, "names of metrics, or 'none'", str, Iterable)
    names = metrics if isinstance(metrics, str) else ",".join(map(str, metrics)) or "none"
    gpt2 = None if mauve is None else Path(mauve)
    measures = Measures(choose_metrics(names), splitter=alce_splitter, mauve=gpt2, alce_cot=alce_cot, trec_all=trec_all)
    judgements: list[dict[str, Any]] = []
    result = score_into(
        judgements,
        answers,
        judge_instance,
        measures,
        calibration=calibration,
        questions=questions,
        corpus=corpus,
        format=format,
        compat=compat,
        cache=cache,
        skip_bad=skip_bad,
    )
    metrics_by_name = {key: Metric.of(value) for key, value in result.record["metrics"].items()}
    return Report(result.run.judge.name, metrics_by_name, judgements, result.record)


@dataclass(frozen=True, slots=True)
class Scored:
    """The outcome of `score_into`: the run, its metrics, which are not rounded, and the record of the report."""

    run: ScoreRun
    metrics: dict[str, Any]
    record: dict[str, Any]


def score_into(
    output: list[dict[str, Any]] | Path | None,
    answers: str | Path | Iterable[object],
    judge: Judge,
    measures: Measures,
    *,
    calibration: str | Path | None = None,
    questions: Questions | None = None,
    corpus: Sequence[str | Path] = (),
    format: str | None = None,  # noqa: A002
    compat: str | None = None,
    cache: str | Path | None = None,
    skip_bad: bool = False,
    keep_answers: bool = False,
    log: Callable[[str], None] = _silent,
) -> Scored:
    """Score answers as `score` does, streaming; judgements go into `output`, a list or a file written at the end."""
    with ExitStack() as stack:
        if format is not None and not isinstance(answers, str | Path):
            answers = _as_file(answers, Path(stack.enter_context(TemporaryDirectory())))
        benchmark = _benchmark(questions)
        corpora = _files("corpus", corpus)
        inputs: dict[str, Path] = {}
        source: Path | Iterable[CitedAnswer]
        if isinstance(answers, str | Path):
            inputs["answers"] = source = Path(answers)
            name = format or formats.detect(source)
        elif corpora:
            raise UsageError("corpus is for files of answers, and for rows with a format")
        else:
            source, name = _check_answers(answers), formats.ANSWERS.name
        if isinstance(questions, str | Path):
            inputs["questions"] = Path(questions)
        inputs |= {f"corpus{number}": path for number, path in enumerate(corpora, 1)}
        if calibration is not None:
            inputs["calibration"] = as_path("calibration", calibration)
        measures = replace(measures, as_2023=check_mode(compat, name))
        settings = Scoring(name, benchmark, corpora, measures, skip_bad, keep_answers)
        with _wrap_judge(judge, calibration, cache, log) as wrapped_judge:
            run, notes = score_answers(source, wrapped_judge, settings, output)
        mode = compat or "default"
        how_made = provenance(inputs) | {"judge": judge_record(judge), "mode": mode}
    report = run.report()
    record = {"format": name, "mode": mode, **report, "notes": notes.record(), "provenance": how_made}
    return Scored(run, report["metrics"], round_floats(record))


@contextmanager
def _wrap_judge(
    judge: Judge, calibration: str | Path | None, cache: str | Path | None, log: Callable[[str], None]
) -> Iterator[Judge]:
    """Yield the judge with its cache and calibration, if there are any; `log` is called with what the cache notes."""
    from autoais.judges.cache import CachedJudge, JudgementCache
    from autoais.meta.calibrate import open_calibrated_judge

    with ExitStack() as stack:
        if cache is not None:
            journal = stack.enter_context(JudgementCache(as_path("cache", cache)))
            if journal.note:
                log(journal.note)
            judge = CachedJudge(judge, journal)
        yield judge if calibration is None else open_calibrated_judge(judge, as_path("calibration", calibration))


def _judge(judge: str | Judge, compat: str | None = None) -> Judge:
    check_type("judge", judge, "a name such as 'minilm' or an open judge", str, Judge)
    if not isinstance(judge, str):
        check_name(type(judge).__name__, judge.name)
        return judge
    return open_judge(judge, **judge_options(compat, judge))


def _check_answers(answers: Iterable[object]) -> Iterator[CitedAnswer]:
    """Yield the answers as `CitedAnswer`; raises `UsageError` for two with the same id, as a file would be refused."""
    if isinstance(answers, Mapping | CitedAnswer | HasCited):
        raise UsageError(f"answers should be a list of answers, found one {type(answers).__name__}; put it in a list")
    check_list("answers", answers, "a file or a list of answers")
    number_of_id: dict[str, int] = {}
    for number, item in enumerate(answers, 1):
        answer = as_cited_answer(item, number)
        if answer.id in number_of_id:
            raise UsageError(
                f"answers {number_of_id[answer.id]} and {number} have the same id {answer.id!r}; give every question "
                f"its own: rag.Question(id, text), or ask them all with system.answer([...])"
            )
        number_of_id[answer.id] = number
        yield answer
    if not number_of_id:
        raise UserError("answers: there are none in the list")


def _benchmark(questions: Questions | None) -> list[Question] | None:
    if questions is None:
        return None
    if isinstance(questions, str | Path):
        return list(questions_of(Path(questions)))
    check_list("questions", questions, _QUESTIONS)
    converted_questions = [
        question_of(question, f"questions[{index}]", index + 1) if isinstance(question, Mapping) else question
        for index, question in enumerate(questions)
    ]
    return list(tuple_of(Question, "questions", converted_questions, _QUESTIONS))


def _as_file(rows: Iterable[object], folder: Path) -> Path:
    """Write rows in a format other than ours to a file in the folder, as its reader takes files."""
    check_list("answers", rows, "a file or a list of rows")
    file = folder / "answers.jsonl"
    file.write_text(
        "".join(f"{dumps(row)}\n" for row in tuple_of(dict, "answers", rows, "a list of rows (dicts)")), "utf-8"
    )
    return file


def evaluate_run(
    run: object, qrels: object, measures: Iterable[object] = MEASURES, *, answers: Mapping[str, int] | None = None
) -> RunReport:
    """Evaluate a run against relevance judgements; topics missing from the run score zero.

    `run` and `qrels` are files (TREC, BEIR, or questions with `gold`), dicts (topic -> passage id -> score or
    relevance), or ir_measures' tuples (`ScoredDoc`, `Qrel`). `measures` are measures of ir_measures, or their names.
    `answers` maps topics to the rank of the first passage that holds an answer, for `answer_hit@k`. Raises `UserError`
    for an unknown measure.
    """
    check_list("measures", measures, "a list of names")
    check_type("answers", answers, "a dict (topic -> rank of the first passage with an answer)", Mapping, NoneType)
    evaluated_run: Run = as_run(run)
    judgements: Qrels = as_qrels(qrels)
    result = evaluate(
        {"run": evaluated_run},
        judgements,
        open_measures([str(measure) for measure in measures]),
        hit_ranks=None if answers is None else {"run": answers},
    )
    (run_record,) = result["runs"]
    metrics_by_name = {name: Metric.of(value) for name, value in run_record["measures"].items()}
    return RunReport(metrics_by_name, run_record["per_topic"], result)


def evaluate_spans(predictions: str | Path, gold: str | Path) -> dict[str, Any]:
    """Compare predicted spans with gold spans (`autoais evaluate-spans`).

    Both are files: `gold` holds questions with passages and spans, `predictions` spans by question or cited answers.
    Returns questions, texts, words and characters (each with counts, `micro` and `per_question`) and notes. For spans
    in memory, there is `autoais.metrics.spans.score_spans`. Raises `FormatError` for a broken row.
    """
    from autoais.metrics.span_files import evaluate_span_files

    return round_floats(evaluate_span_files(as_path("predictions", predictions), as_path("gold", gold)))  # type: ignore[no-any-return]


def compare(
    a: "str | Path | Report", b: "str | Path | Report", *, metrics: Sequence[str] | None = None
) -> dict[str, Any]:
    """Compare two systems question by question, on every metric that both have, or on the `metrics` named.

    `a` and `b` are files of `autoais score --out` or `Report`s. Answers are matched by id, and where an id is on one
    side only, by the text of a question to which each side has one answer (`matched_by_text` counts these); answers of
    only one count as not attributable in the other, and `warnings` says so. The dict holds `judge`, `rule` (when an
    answer is attributable), the numbers of `questions` and `answers` and of those `only_in_a` and `only_in_b`, the
    rates `a` and `b`, their `difference` a - b with `interval95`, `p` and `method`, the `table` of answers (both,
    only_a, only_b, neither), `mcnemar` (both variants), `metrics` (by name, the same difference with `p_holm`, which is
    corrected for their number), `no_common` (metrics without a common question) and `notes`. An empty list of `metrics`
    leaves `metrics` empty. Raises `UserError` if their judges differ, or the texts of two questions with one id, or if
    no answer has a match.
    """
    from autoais.metrics.comparison import Judgements, compare_judgements, judgements_of, read_judgements

    if metrics is not None:
        check_list("metrics", metrics, "a list of names")

    def read(report: "str | Path | Report", name: str) -> Judgements:
        check_type(name, report, "a Report or a file of judgements", Report, str, Path)
        return judgements_of(report.judgements, name) if isinstance(report, Report) else read_judgements(Path(report))

    result: dict[str, Any] = round_floats(compare_judgements(read(a, "a"), read(b, "b"), "a", "b", metrics))
    return result


def evaluate_judge(
    labels: str | Path | Sequence[str | Path],
    judge: str | Judge = DEFAULT,
    *,
    calibration: str | Path | None = None,
    cache: str | Path | None = None,
    worst: int = 0,
    log: Callable[[str], None] = _silent,
) -> dict[str, Any]:
    """Measure how well a judge agrees with human labels, per data set and on average (`autoais evaluate-judge`).

    `labels` are files in any label format. `calibration` is a file of `autoais calibrate` for the judge, `cache` a file
    that keeps judgements, and `log` is called with its notes. The dict holds the name of the `judge`, `provenance`, and
    under `sets` and `average` the figures macro_f1, macro_f1_floor, balanced_accuracy, false_positive_rate,
    false_negative_rate, roc_auc, cohen_kappa and calibration_error, with `interval95` and the `reasons` of those that
    are None. A set has also `n`, `questions`, `undecided`, `with_probability`, `attributable` (the share of labels),
    `one_class`, `reliability`, `roc`, `systems`, `three_way`, `levels` and its `worst` disagreements, as many as asked
    for; the average has the number of `sets` of each figure. Raises `UserError` if there are no labels.
    """
    from autoais.meta.evaluate import evaluate as evaluated

    paths, judge_instance = _paths(labels), _judge(judge)
    check_type("worst", worst, "a number of disagreements", int)
    if worst < 0:
        raise UsageError(f"worst should be 0 or more, found {worst}")
    with _wrap_judge(judge_instance, calibration, cache, log) as wrapped_judge:
        result = evaluated((label for path in paths for label in formats.read_labels(path)), wrapped_judge, worst=worst)
    if not result["sets"]:
        raise UserError(f"{', '.join(map(str, paths))}: no labels in it")
    inputs = _number_inputs(paths) | ({} if calibration is None else {"calibration": Path(calibration)})
    record: dict[str, Any] = round_floats(
        result | {"provenance": provenance(inputs) | {"judge": judge_record(judge_instance)}}
    )
    return record


def calibrate_judge(
    labels: str | Path | Sequence[str | Path],
    to: str | Path,
    judge: str | Judge = DEFAULT,
    *,
    by: str = "macro_f1",
    folds: int = 5,
    cache: str | Path | None = None,
    log: Callable[[str], None] = _silent,
) -> dict[str, Any]:
    """Fit a judge's threshold and probabilities to human labels, and write them to the file `to` (json).

    `score` and `evaluate_judge` take the file as `calibration`. `by` is what the threshold maximises, macro_f1 or
    balanced_accuracy; `folds` is the number of parts for cross-validation. The dict returned is what the file holds:
    `judge`, `threshold`, `slope` and `intercept`, the `name` of the calibrated judge, `by`, the number `n` of labels
    and those `left_out` by reason, `cross_validation` (`folds`, and in `sets` and `average` the figures `default` and
    `calibrated`, the `gain` and `interval95`), `autoais_calibration` (the version) and `provenance`. Raises `UserError`
    if nothing can be fitted.
    """
    from autoais.meta.calibrate import calibrate as fit

    paths, target, judge_instance = _paths(labels), as_path("to", to), _judge(judge)
    with _wrap_judge(judge_instance, None, cache, log) as wrapped_judge:
        result = fit(
            (label for path in paths for label in formats.read_labels(path)), wrapped_judge, by=by, folds=folds
        )
    record_of_inputs = provenance(_number_inputs(paths)) | {"judge": judge_record(judge_instance)}
    record: dict[str, Any] = round_floats(result | {"provenance": record_of_inputs})
    write_atomic(target, [dumps(record, indent=2)])
    return record


@dataclass(frozen=True, slots=True)
class Conversion:
    """The result of `convert`: counts by note, and by kind of `losses` the number of answers that lost something."""

    notes: Mapping[str, int]
    losses: Mapping[str, int]


def convert(
    source: str | Path,
    target: str | Path,
    to: str,
    *,
    format: str | None = None,  # noqa: A002  (named as in `score`)
    corpus: Sequence[str | Path] = (),
    questions: Questions | None = None,
    skip_bad: bool = False,
) -> Conversion:
    """Write the answers of a file in another format (`autoais convert`).

    `format` is that of the source (default: detected), `corpus` supplies texts of passages and `skip_bad` skips its
    broken lines; `questions` are the benchmark, which adds ids and references and drops answers to other questions.
    Raises `UserError` if nothing can be written, and changes no file then.
    """
    from autoais.formats.convert import count_losses, count_textless

    notes, losses, target_format = formats.Notes(), Counter[str](), formats.get_writable(to)
    path, output = as_path("source", source), as_path("target", target)
    corpora, benchmark = _files("corpus", corpus), _benchmark(questions)
    answers = formats.read(path, format, corpus=corpora, questions=benchmark, notes=notes, skip_bad=skip_bad)
    if "texts of passages" in target_format.supports:
        answers = count_textless(answers, notes)
    lines = formats.write(count_losses(answers, target_format, losses), to, notes)
    first = next(lines, None)
    if first is None:
        reasons = "".join(f"; {count:,} {note}" for note, count in sorted(notes.by_text().items()))
        raise UserError(f"{path}: nothing in it can be written as {to}{reasons}; {output} was not changed")
    write_atomic(output, chain([first], lines))
    return Conversion(notes.by_text(), dict(losses))


def _files(argument: str, paths: Sequence[str | Path]) -> list[Path]:
    """Return a list of files; raises `UsageError` for one string, whose letters would be taken for files."""
    check_list(argument, paths, "a list of files")
    return [as_path(argument, path) for path in paths]


def _paths(labels: str | Path | Sequence[str | Path], argument: str = "labels") -> list[Path]:
    check_type(argument, labels, "a file or a list of files", str, Path, Iterable)
    paths = _files(argument, [labels] if isinstance(labels, str | Path) else labels)
    if not paths:
        raise UserError(f"{argument}: there are no files in the list")
    return paths


def _number_inputs(labels: Sequence[Path]) -> dict[str, Path]:
    return {f"labels{number}": path for number, path in enumerate(labels, 1)}


def agreement(
    ratings: Ratings,
    *,
    experts: Ratings | None = None,
    variant: Ratings | None = None,
    answers: str | Path | Iterable[object] | None = None,
    gold: str | Path | None = None,
    likert: int = RELAXED_CUT,
    by: str | None = None,
    without: Collection[str] = (),
) -> dict[str, Any]:
    """Measure the agreement and the consensus of annotators (`autoais agreement`).

    `ratings` are one or more files that `autoais.formats.human_ratings.read.read_ratings` reads (the batches of a
    study), or a list of `Rating`s. `experts` are ratings of the same items by experts: a file, a list of `Rating`s, or
    names of annotators, whose ratings then count for nothing else. `variant` are ratings of the same items in another
    design, for McNemar's test. `answers` are the rated answers, so that intervals are over questions and not over
    answers. `gold` is a file of items with their `expected` values. `likert` is the least value from 1 to 5 that counts
    as attributable: 4 (relaxed) or 5 (strict). With `by="system"` the figures of each system are added. `without` names
    annotators whose ratings are ignored. The same rating twice counts once.

    The dict holds the numbers of `ratings`, `items` and `annotators`, the `units` of the intervals, `likert`,
    `questions` (by question, with `consensus` and the coefficients under `agreement`), `flags`, `ais` (the AIS paper's
    rates, a row per system), `time`, `people` (a row per annotator) and `audits`; where there are such ratings also
    `simulated`, `systems`, `gold`, `batches`, `experts`, `variant` and `without`. Raises `UserError`, also for two
    values of one annotator for the same item, question and phase.
    """
    from autoais.meta.agreement_report import report

    if likert not in (RELAXED_CUT, STRICT_CUT):
        raise UserError(f"likert {likert!r}: should be {RELAXED_CUT} (relaxed) or {STRICT_CUT} (strict)")
    if by not in (None, "system"):
        raise UserError(f"by {by!r}: ratings can only be grouped by system")
    question_keys = None if answers is None else {answer.id: _question_key(answer) for answer in _answers(answers)}
    check_type("without", without, "a list of names", list, tuple, set, frozenset)
    batches = _batches(ratings)
    if not any(batches.values()):
        raise UserError("there are no ratings")
    check_annotators(without, chain.from_iterable(batches.values()))
    batches = {name: [rating for rating in batch if rating.annotator not in without] for name, batch in batches.items()}
    if not any(batches.values()):
        raise UserError("all annotators are left out; there are no ratings")
    batches, expert_ratings = _without_experts(batches, experts)
    result: dict[str, Any] = round_floats(
        report(
            batches,
            experts=expert_ratings,
            variant=[] if variant is None else _ratings(variant),
            question_keys=question_keys,
            gold=None if gold is None else read_expected(gold),
            likert=likert,
            by_system=by == "system",
        )
    )
    return result | {"without": sorted(without)} if without else result


def convert_ratings(
    ratings: str | Path | Sequence[Rating],
    target: str | Path,
    to: str,
    *,
    answers: str | Path | None = None,
    likert: int = RELAXED_CUT,
    without: Collection[str] = (),
) -> dict[str, int]:
    """Write ratings for another tool, or the rated answers with the consensus as their labels (`autoais ratings`).

    `ratings` are a file that `autoais.formats.human_ratings.read.read_ratings` reads, or a list of `Rating`s. `to` is
    ratings, label-studio, label-studio-config, autojudge, ais-csv, or a format of answers; all but ratings and
    label-studio-config need `answers`, the file of rated answers. `likert` and `without` are as in `agreement`. Returns
    counts by note: what was left out, and the labels written. Raises `UserError`, and changes no file then.
    """
    from autoais.formats.human_ratings.convert import convert_ratings as lines_of

    check_type("without", without, "a list of names", list, tuple, set, frozenset)
    output = as_path("target", target)
    source: Path | list[Rating]
    source = as_path("ratings", ratings) if isinstance(ratings, str | Path) else _ratings(ratings)
    rated_answers = None if answers is None else as_path("answers", answers)
    check_outputs([source if isinstance(source, Path) else None, rated_answers], [output])
    notes = formats.Notes()
    write_atomic(output, lines_of(source, to, answers=rated_answers, likert=likert, without=without, notes=notes))
    return notes.by_text()


def ais_report(files: str | Path | Sequence[str | Path]) -> dict[str, Any]:
    """Compute the tables of the AIS paper from annotations in the format of its release (`autoais ais-report`).

    `files` has for each file the rates of each model, the agreement of annotators, which assumes five of them
    (`most_agree` is fewer where there were fewer), and the paper's values beside them. `other_tables` says what can be
    had of the paper's other tables; it is None unless the files are the paper's. Raises `UserError`.
    """
    from autoais.meta.ais_paper import other_tables
    from autoais.meta.ais_report import read_release, report

    paths = _paths(files, "files")
    check_distinct(paths)
    reports = [{"file": path.name, **report(read_release(path))} for path in paths]
    record_of_inputs = provenance({f"ratings{number}": path for number, path in enumerate(paths, 1)})
    result: dict[str, Any] = round_floats(
        {"files": reports, "other_tables": other_tables(reports), "provenance": record_of_inputs}
    )
    return result


def _batches(ratings: Ratings) -> dict[str, list[Rating]]:
    """Return the ratings by file.

    Raises `UserError` for an annotator who rated something in two files, and for an item that was adjudicated in two.
    """
    check_type("ratings", ratings, "a file, a list of files or a list of Ratings", str, Path, Iterable)
    items: list[Any] = [ratings] if isinstance(ratings, str | Path) else list(ratings)
    if not all(isinstance(item, str | Path) for item in items):
        return {"ratings": _ratings(items)}
    batches: dict[str, list[Rating]] = {}
    file_of_rating: dict[tuple[str | None, ...], str] = {}
    for path in map(str, items):
        batches[path] = list(read_ratings(path))
        for rating in batches[path]:
            if (other := file_of_rating.setdefault(rating.key, path)) != path:
                raise UserError(
                    f"{path}: annotator {rating.annotator!r:.60} rated item {rating.item!r:.60}, question "
                    f"{rating.question!r:.60}, in {other} too; keep one of the two ratings"
                )
            decision = (rating.item, rating.question, "adjudication")
            if rating.phase == "adjudication" and (other := file_of_rating.setdefault(decision, path)) != path:
                raise UserError(
                    f"{path}: item {rating.item!r:.60}, question {rating.question!r:.60}, was adjudicated in {other} "
                    "too; keep one of the two"
                )
    return batches


def _without_experts(
    batches: dict[str, list[Rating]], experts: Ratings | None
) -> tuple[dict[str, list[Rating]], list[Rating]]:
    """Return the ratings of the crowd, by file, and those of the experts."""
    if experts is None or isinstance(experts, str | Path):
        return batches, [] if experts is None else _ratings(experts)
    items: list[Any] = list(experts)
    if not all(isinstance(item, str) for item in items):
        return batches, _ratings(items)
    check_annotators(items, chain.from_iterable(batches.values()))
    crowd = {name: [rating for rating in batch if rating.annotator not in items] for name, batch in batches.items()}
    if not any(crowd.values()):
        raise UserError("all annotators are experts; there is nobody to compare them with")
    return crowd, [rating for batch in batches.values() for rating in batch if rating.annotator in items]


def _ratings(ratings: Ratings) -> list[Rating]:
    """Return the ratings of a file or a list; raises `UserError` if there are none."""
    if isinstance(ratings, str | Path):
        return list(read_ratings(ratings))
    items = tuple_of(Rating, "ratings", ratings, "a file or a list of Ratings")
    if not items:
        raise UserError("there are no ratings")
    return list(distinct((rating, f"rating {number}") for number, rating in enumerate(items, 1)))


def _question_key(answer: CitedAnswer) -> str:
    return JudgedAnswer(Question(answer.id, answer.question), answer, ()).question_key


def _answers(answers: str | Path | Iterable[object]) -> Iterator[CitedAnswer]:
    return formats.read(Path(answers)) if isinstance(answers, str | Path) else _check_answers(answers)
