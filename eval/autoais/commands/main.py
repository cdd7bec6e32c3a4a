"""The command `autoais`: parse, call, print."""

import csv
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from autoais.base.errors import UserError
from autoais.base.interrupts import EXIT_CODE, is_interrupted
from autoais.base.terminal import (
    format_count,
    new_console,
    note,
    print_json,
    print_line,
    show_ais,
    show_comparison,
    show_evaluation,
    show_other_tables,
    show_report,
    show_spans,
)
from autoais.commands.assess import JsonOption, nuggets_app, relevance
from autoais.judges import DEFAULT

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import ExitStack

    from autoais.api import Scored
    from autoais.base.engines import Engine
    from autoais.base.types import Judge

HELP = {"help_option_names": ["-h", "--help"]}

app = typer.Typer(
    no_args_is_help=True, context_settings=HELP, help="Score cited answers.", pretty_exceptions_enable=False
)

JudgeOption = Annotated[
    str,
    typer.Option(
        help="Judge: minilm, lexical, hf[:<model>], llm:<model>, minilm:<folder>, human:<file with labels>, "
        "released:<Attributed QA's ratings>, or your own package.module:Class, whose code is run."
    ),
]
JudgeOptions = Annotated[
    list[str] | None, typer.Option(metavar="KEY=VALUE", help="Option of the judge, such as threshold=0.7; repeatable.")
]
CalibrationOption = Annotated[Path | None, typer.Option(help="Calibration of the judge, from `autoais calibrate`.")]
CacheOption = Annotated[Path | None, typer.Option(help="Cache judgements in this file; a stopped run resumes.")]
CorpusOption = Annotated[
    list[Path] | None, typer.Option(help="Corpus file (also .gz, .zst) with the texts of passages known by id only.")
]
EngineOption = Annotated[
    str | None, typer.Option(help="Where models run: `ray` (a Ray cluster) or `local` (default: in this process).")
]
AddressOption = Annotated[
    str | None,
    typer.Option(help="Ray cluster: auto, or host:port (default: start Ray on this machine)."),
]
WorkersOption = Annotated[
    int | None, typer.Option(min=1, help="Number of workers of the engine (default: the cluster's GPUs or CPUs).")
]
LabelsArgument = Annotated[list[Path], typer.Argument(help="Human labels, in any format that has them.")]
WithoutOption = Annotated[
    list[str] | None,
    typer.Option("--without", metavar="NAME", help="Annotator whose ratings are ignored; repeatable."),
]
SkipBadOption = Annotated[bool, typer.Option("--skip-bad", help="Skip and count broken lines of the corpus.")]
_DEFAULT_METRICS = "alce,hagrid"


def _version(is_wanted: bool) -> None:
    if is_wanted:
        from importlib.metadata import version

        typer.echo(f"attributed-rag {version('attributed-rag')}")
        raise typer.Exit


VersionOption = Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")]


@app.callback()
def _root(version: VersionOption = False) -> None:
    pass


@app.command()
def score(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Cited answers, in any format of `autoais schema`.")],
    judge: JudgeOption = DEFAULT,
    judge_option: JudgeOptions = None,
    calibration: CalibrationOption = None,
    name: Annotated[str | None, typer.Option("--format", help="Format of FILE (default: detected).")] = None,
    corpus: CorpusOption = None,
    questions: Annotated[
        Path | None, typer.Option(help="The whole benchmark; unanswered questions count as not attributable.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--out", help="Write one judgement per sentence (jsonl), for `compare`.")
    ] = None,
    report: Annotated[Path | None, typer.Option(help="Write the report with its provenance (json).")] = None,
    scores: Annotated[Path | None, typer.Option(help="Write Attributed QA's scores file: AutoAIS, EM, F1.")] = None,
    ais_csv: Annotated[
        Path | None, typer.Option("--ais-csv", help="Write Attributed QA's AIS file: each answer with Y or N.")
    ] = None,
    compat: Annotated[
        str | None, typer.Option(help="google-2023: score as Attributed QA's released script does, bugs included.")
    ] = None,
    cache: CacheOption = None,
    metrics: Annotated[
        str, typer.Option(help="Citation metrics: alce, hagrid, liu, trec (comma-separated), all or none.")
    ] = _DEFAULT_METRICS,
    alce_splitter: Annotated[
        str | None,
        typer.Option(help="Splitter for ALCE's strict metrics: nltk (default, if installed) or sentencex."),
    ] = None,
    mauve: Annotated[
        Path | None, typer.Option(help="Folder with GPT-2 large (named gpt2...); computes ALCE's MAUVE.")
    ] = None,
    alce_cot: Annotated[
        bool, typer.Option("--alce-cot", help="Score lists (QAMPARI) from the first colon on, as ALCE's --cot.")
    ] = False,
    trec_all: Annotated[
        bool, typer.Option("--trec-all", help="Count all citations of a sentence in trec_*, not only the first.")
    ] = False,
    skip_bad: SkipBadOption = False,
    engine: EngineOption = None,
    address: AddressOption = None,
    workers: WorkersOption = None,
    all_metrics: Annotated[bool, typer.Option("--all", help="Print all metrics, as --report and --json do.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Judge every sentence against the passages it cites.

    Prints the main metrics and those named by --metrics, each with its n, undecided count and 95 % interval.
    """
    from contextlib import ExitStack

    from autoais.api import score_into
    from autoais.base.io.jsonl import check_outputs
    from autoais.formats import detect
    from autoais.formats.attributed_qa import check_mode, judge_options
    from autoais.judges import open_judge
    from autoais.judges.engine import EngineJudge
    from autoais.judges.human import HumanJudge
    from autoais.judges.options import parse_options
    from autoais.metrics.scoring import Measures, choose_metrics

    corpora = corpus or []
    check_outputs([file, questions, calibration, *corpora], [output, report, scores, ais_csv], [cache])
    measures = Measures(
        choose_metrics(metrics), splitter=alce_splitter, mauve=mauve, alce_cot=alce_cot, trec_all=trec_all
    )
    options = parse_options(judge_option or ())
    name = name or detect(file)
    check_mode(compat, name)  # before a judge is loaded
    judge_instance = open_judge(judge, **judge_options(compat, judge) | options)
    with ExitStack() as stack:
        engine_instance = enter_engine(engine, address, workers, stack)
        result = score_into(
            output,
            file,
            judge_instance if engine_instance is None else EngineJudge(judge_instance, judge, options, engine_instance),
            measures,
            calibration=calibration,
            questions=questions,
            corpus=corpora,
            format=name,
            compat=compat,
            cache=cache,
            skip_bad=skip_bad,
            keep_answers=ais_csv is not None,
            log=note,
        )
    is_human = isinstance(judge_instance, HumanJudge)
    if is_human and "human" in result.record:  # people agree with themselves
        result.record["human"] = {**result.record["human"], "agreement": {}}
        result.record["human"].pop("levels", None)
    _note_scoring(result, judge_instance)
    # Judging may be expensive: a closed pipe (`| head`) must not lose the files, nor a full disk the printed report.
    try:
        _write_scores(result, file, report=report, scores=scores, ais_csv=ais_csv)
    finally:
        # What is asked for by name is printed without --all.
        families = set() if metrics == _DEFAULT_METRICS else set(measures.metrics)
        families |= {"alce"} if alce_splitter or mauve or alce_cot else set()
        if as_json:
            print_json(result.record)
        else:
            record = {**result.record, "quoted": {"rejected": 0}} if is_human else result.record
            show_report(record, families, is_complete=all_metrics)


def _note_scoring(result: "Scored", judge: "Judge") -> None:
    """Print to stderr what the reader, the server and the judge noted."""
    _print_notes({note["text"]: note["count"] for note in result.record["notes"].values()})
    if (client := getattr(judge, "client", None)) is not None:
        note(f"{judge.name}: {client.usage}")
    if (remark := getattr(judge, "note", None)) is not None:
        note(f"{judge.name}: {remark}")


def _write_scores(
    result: "Scored", file: Path, *, report: Path | None, scores: Path | None, ais_csv: Path | None
) -> None:
    """Write the output files of `score`."""
    from autoais.api import write_report
    from autoais.base.io.jsonl import write_atomic
    from autoais.formats import attributed_qa
    from autoais.formats.aqa import ais_lines, last_question

    run, as_2023 = result.run, result.run.measures.as_2023
    if report is not None:
        write_report(result.record, report)
    if ais_csv is not None:
        write_atomic(ais_csv, ais_lines(run.kept, compat=as_2023, last=last_question(file) if as_2023 else ""))
    if scores is not None:
        write_atomic(scores, attributed_qa.scores(result.metrics))
        note(f"AutoAIS in {scores} is from judge {run.judge.name}")


@app.command()
def compare(
    a: Annotated[Path, typer.Argument(help="Judgements of one system, from `score --out`.")],
    b: Annotated[Path, typer.Argument(help="Judgements of the other system, by the same judge.")],
    metrics: Annotated[
        str | None, typer.Option(help="Metrics to compare, comma-separated (default: all that both files have).")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Compare two systems question by question on every metric: intervals, p-values, Holm's correction."""
    from autoais.base.io.jsonl import round_floats
    from autoais.base.io.provenance import provenance
    from autoais.metrics.comparison import compare_files

    metric_names = None if metrics is None else [name.strip() for name in metrics.split(",")]
    result = round_floats({**compare_files(a, b, metric_names), "provenance": provenance({"a": a, "b": b})})
    if as_json:
        print_json(result)
    else:
        show_comparison(result)


@app.command("evaluate-run")
def evaluate_run(
    runs: Annotated[list[Path], typer.Argument(help="TREC runs, as `rag search --run` writes them.")],
    qrels: Annotated[Path, typer.Option(help="TREC qrels, BEIR qrels (tsv), or questions (jsonl) with `gold`.")],
    measure: Annotated[
        list[str] | None,
        typer.Option("--measure", "-m", help="Measure of ir_measures, such as nDCG@10 or P(rel=2)@5, or answer_hit@k."),
    ] = None,
    baseline: Annotated[Path | None, typer.Option(help="Run to compare the others with, topic by topic.")] = None,
    questions: Annotated[
        Path | None, typer.Option(help="Questions with reference answers, for answer_hit (default: the qrels).")
    ] = None,
    corpus: Annotated[
        list[Path] | None, typer.Option(help="Corpus file with the texts of the passages, for answer_hit; repeatable.")
    ] = None,
    page_level: Annotated[
        bool, typer.Option("--page-level", help="Evaluate pages instead of passages (the part of an id before #).")
    ] = False,
    report: Annotated[
        Path | None, typer.Option(help="Write a JSON report with the values per topic and provenance.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Evaluate TREC runs.

    Prints each measure with n and its 95 % interval. Topics missing from a run score zero.
    """
    from autoais.base.io.jsonl import check_outputs, dumps, round_floats, write_atomic
    from autoais.base.io.provenance import provenance
    from autoais.metrics.run_files import evaluate_files
    from autoais.metrics.runs import engines

    corpora = corpus or []
    check_outputs([*runs, qrels, baseline, questions, *corpora], [report])
    result = evaluate_files(
        runs,
        qrels,
        measure or (),
        baseline=baseline,
        questions=questions,
        corpus=corpora,
        page_level=page_level,
    )
    files = {"qrels": qrels, "baseline": baseline, "questions": questions}
    inputs = {role: path for role, path in files.items() if path is not None}
    inputs |= {f"run{number}": path for number, path in enumerate(runs, 1)}
    inputs |= {f"corpus{number}": path for number, path in enumerate(corpora, 1)}
    result = round_floats({**result, "engines": engines(), "provenance": provenance(inputs)})
    if report is not None:
        write_atomic(report, [dumps(result, indent=2)])
    for run_result in result["runs"]:
        del run_result["per_topic"]  # too long to print; only the report has it
    if as_json:
        print_json(result)
    else:
        show_evaluation(result)


@app.command("evaluate-spans")
def evaluate_spans(
    predictions: Annotated[
        Path,
        typer.Argument(
            help="Spans by question (jsonl: id, spans), or cited answers in any format of `autoais schema`."
        ),
    ],
    gold: Annotated[
        Path,
        typer.Argument(help="Questions with passages and gold spans (jsonl: id, passages, spans), or ACL-Verbatim's."),
    ],
    report: Annotated[Path | None, typer.Option(help="Write a JSON report with provenance.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Compare predicted spans, or what answers cite, with gold spans: precision, recall and F1 of words and characters.

    Prints them over all words (micro) and as the mean over questions, each with its n and 95 % interval.
    """
    from autoais.api import evaluate_spans as evaluate
    from autoais.base.io.jsonl import check_outputs, dumps, write_atomic
    from autoais.base.io.provenance import provenance

    check_outputs([predictions, gold], [report])
    result = evaluate(predictions, gold) | {"provenance": provenance({"predictions": predictions, "gold": gold})}
    if report is not None:
        write_atomic(report, [dumps(result, indent=2)])
    if as_json:
        print_json(result)
    else:
        show_spans(result)


@app.command()
def train(
    recipe: Annotated[Path, typer.Argument(help="Training recipe (toml), such as eval/recipes/minilm.toml.")],
    data: Annotated[list[Path], typer.Option(help="Folder with the recipe's files; repeatable.")],
    folder: Annotated[Path, typer.Option("--out", help="Folder for the model; a stopped run resumes from it.")],
    short: Annotated[bool, typer.Option(help="Train on a few pairs only, to check that the recipe runs.")] = False,
) -> None:
    """Train a judge, for --judge minilm:<folder>."""
    from autoais.training import needs
    from autoais.training.recipe import run

    needs("torch", "transformers", "onnx")
    run(recipe, data, folder, short=short, log=note)


@app.command("ais-report")
def ais_report(
    files: Annotated[list[Path], typer.Argument(help="Annotations in the format of the AIS paper's release (csv).")],
    as_json: JsonOption = False,
) -> None:
    """Print the rates and annotator agreement of the AIS paper (Tables 3 to 7) from its annotations.

    For the paper's own files, the paper's values are printed too. The agreement assumes five annotators per item.
    """
    from autoais import api
    from autoais.formats.human_ratings.ais_csv import RATERS

    result = api.ais_report(files)
    for path, file_report in zip(files, result["files"], strict=True):
        if file_report["most_agree"] < RATERS:
            how_many_agree = format_count(file_report["most_agree"], "annotators")
            note(
                f"warning: {path}: at most {how_many_agree} agree on an item; the agreement assumes {RATERS} and is "
                "wrong if there were fewer: use `autoais agreement` on the ratings"
            )
    if as_json:
        print_json(result)
        return
    for file_report in result["files"]:
        show_ais(file_report)
    if result["other_tables"] is not None:
        show_other_tables(result["other_tables"])


@app.command()
def agreement(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...", help="Ratings, from `rag annotate export`, Label Studio or autojudge-annotate."
        ),
    ],
    experts: Annotated[
        str | None,
        typer.Option(
            help='Experts: names of annotators, comma-separated ("A, B" if a name has a comma), or a file of ratings.'
        ),
    ] = None,
    variant: Annotated[
        Path | None, typer.Option(help="Ratings of the same items in another design, for McNemar's test.")
    ] = None,
    answers: Annotated[
        Path | None, typer.Option(help="The rated answers; intervals are then over questions, not answers.")
    ] = None,
    gold: Annotated[Path | None, typer.Option(help="Gold items (jsonl) with their expected values.")] = None,
    likert: Annotated[int, typer.Option(help="Lowest value (1-5) that counts as yes: 4 (relaxed) or 5 (strict).")] = 4,
    by: Annotated[str | None, typer.Option(help="Also print the figures for each: system.")] = None,
    without: WithoutOption = None,
    as_json: JsonOption = False,
) -> None:
    """Measure the agreement of annotators: consensus and ties, alpha, kappas, AIS rates, times, audits.

    Several files are treated as batches of one study.
    """
    from autoais.api import agreement as measured
    from autoais.base.io.jsonl import check_distinct
    from autoais.base.io.paths import is_file
    from autoais.base.io.provenance import provenance
    from autoais.meta.terminal import show_agreement

    check_distinct(files)
    inputs = {f"ratings{number}": path for number, path in enumerate(files, 1)}
    expert_file = Path(experts) if experts is not None and is_file(experts) else None
    further_files = {"experts": expert_file, "variant": variant, "answers": answers, "gold": gold}
    inputs |= {role: path for role, path in further_files.items() if path is not None}
    names = [] if experts is None else next(csv.reader([experts], skipinitialspace=True), [])
    expert_ratings = expert_file or (None if experts is None else [name.strip() for name in names or [""]])
    result = measured(
        files,
        experts=expert_ratings,
        variant=variant,
        answers=answers,
        gold=gold,
        likert=likert,
        by=by,
        without=without or (),
    )
    result |= {"provenance": provenance(inputs)}
    if as_json:
        print_json(result)
    else:
        show_agreement(new_console(), result)


@app.command("evaluate-judge")
def evaluate_judge(
    labels: LabelsArgument,
    judge: JudgeOption = DEFAULT,
    judge_option: JudgeOptions = None,
    calibration: CalibrationOption = None,
    cache: CacheOption = None,
    report: Annotated[Path | None, typer.Option(help="Write the report, the judge's card (json).")] = None,
    texts: Annotated[
        bool, typer.Option("--texts", help="Keep claims and evidence in the report; mind the licence of the labels.")
    ] = False,
    plot: Annotated[Path | None, typer.Option(help="Draw reliability and ROC curves (svg).")] = None,
    worst: Annotated[int, typer.Option(min=0, max=1000, help="Number of worst disagreements to show.")] = 3,
    as_json: JsonOption = False,
) -> None:
    """Measure how well a judge agrees with human labels, per data set and on average."""
    from autoais import api
    from autoais.base.io.jsonl import check_distinct, check_outputs, dumps, write_atomic
    from autoais.judges import open_judge
    from autoais.judges.options import parse_options
    from autoais.meta.evaluate import without_texts
    from autoais.meta.plot import reliability_svg
    from autoais.meta.terminal import show_judge_evaluation

    check_outputs([*labels, calibration], [report, plot], [cache])
    check_distinct(labels)
    if plot is not None and plot.suffix != ".svg":
        raise UserError(f"{plot}: the plot is an SVG; name a file that ends in .svg")
    judge_instance = open_judge(judge, **parse_options(judge_option or ()))
    result = api.evaluate_judge(labels, judge_instance, calibration=calibration, cache=cache, worst=worst, log=note)
    if report is not None:
        write_atomic(report, [dumps(result if texts else without_texts(result), indent=2)])
    if plot is not None:
        write_atomic(plot, reliability_svg(result))
    if as_json:
        print_json(result)
    else:
        show_judge_evaluation(new_console(), result)


@app.command()
def calibrate(
    labels: LabelsArgument,
    output: Annotated[
        Path,
        typer.Option("--out", help="Write the calibration (json), for --calibration of `score` and `evaluate-judge`."),
    ],
    judge: JudgeOption = DEFAULT,
    by: Annotated[
        str, typer.Option(help="Measure that the threshold maximises: macro_f1 or balanced_accuracy.")
    ] = "macro_f1",
    folds: Annotated[int, typer.Option(help="Number of cross-validation folds.")] = 5,
    judge_option: JudgeOptions = None,
    cache: CacheOption = None,
    as_json: JsonOption = False,
) -> None:
    """Fit a judge's threshold and probabilities to human labels.

    Prints the gain in cross-validation.
    """
    from autoais.api import calibrate_judge
    from autoais.base.io.jsonl import check_distinct, check_outputs
    from autoais.judges import open_judge
    from autoais.judges.options import parse_options
    from autoais.meta.terminal import show_calibration

    check_outputs(labels, [output], [cache])
    check_distinct(labels)
    judge_instance = open_judge(judge, **parse_options(judge_option or ()))
    result = calibrate_judge(labels, output, judge_instance, by=by, folds=folds, cache=cache, log=note)
    if as_json:
        print_json(result)
    else:
        show_calibration(new_console(), result)


def enter_engine(name: str | None, address: str | None, workers: int | None, stack: "ExitStack") -> "Engine | None":
    """Return the engine of the options, if one is named; `stack` closes it."""
    from contextlib import closing

    from autoais.base.engines import open_engine

    if name is None:
        if address is not None or workers is not None:
            raise UserError("--address and --workers are for an engine: give --engine ray")
        return None
    return stack.enter_context(closing(open_engine(name, address, workers)))


@app.command()
def convert(
    source: Annotated[Path, typer.Argument(metavar="IN", help="Answers in any format of `autoais schema`.")],
    target: Annotated[Path, typer.Argument(metavar="OUT", help="File to write; .gz is compressed.")],
    to: Annotated[str, typer.Option("--to", help="Format to write.")],
    come_from: Annotated[str | None, typer.Option("--from", help="Format of IN (default: detected).")] = None,
    corpus: CorpusOption = None,
    questions: Annotated[
        Path | None, typer.Option(help="The benchmark: adds ids and references, drops answers to other questions.")
    ] = None,
    skip_bad: SkipBadOption = False,
) -> None:
    """Convert answers to another format, and report what that format cannot hold."""
    from autoais import api
    from autoais.base.io.jsonl import check_outputs

    corpora = corpus or []
    check_outputs([source, questions, *corpora], [target])
    conversion = api.convert(
        source, target, to, format=come_from, corpus=corpora, questions=questions, skip_bad=skip_bad
    )
    _print_notes(conversion.notes)
    for loss, count in conversion.losses.items():
        note(f"lost, because {to} has no field for it: {loss} ({format_count(count, 'answers')})")


@app.command()
def ratings(
    source: Annotated[
        Path, typer.Argument(metavar="IN", help="Ratings: ours, Label Studio's JSON or autojudge-annotate's jsonl.")
    ],
    target: Annotated[Path, typer.Argument(metavar="OUT", help="File to write; .gz is compressed.")],
    to: Annotated[
        str,
        typer.Option(
            "--to",
            help="ratings, label-studio, label-studio-config, autojudge, ais-csv, or a format of answers, which get "
            "the consensus as labels.",
        ),
    ],
    answers: Annotated[Path | None, typer.Option(help="The rated answers.")] = None,
    likert: Annotated[int, typer.Option(help="Lowest value (1-5) that counts as yes: 4 (relaxed) or 5 (strict).")] = 4,
    without: WithoutOption = None,
) -> None:
    """Convert human ratings to and from other tools, or write their consensus into the answers."""
    from autoais import api

    _print_notes(api.convert_ratings(source, target, to, answers=answers, likert=likert, without=without or ()))


@app.command()
def schema(
    name: Annotated[str | None, typer.Argument(help="Name of a format (default: list them all).")] = None,
) -> None:
    """List the formats, or print the JSON Schema of one."""
    from autoais import formats

    if name is not None:
        print_json(formats.schema_of(name))
        return
    for format_name in formats.names():
        typer.echo(f"{format_name:<20} {formats.schema_of(format_name)['description']}")


@app.command()
def validate(
    file: Annotated[Path, typer.Argument(help="File in any format of `autoais schema`.")],
    name: Annotated[str | None, typer.Option("--format", help="Format of FILE (default: detected).")] = None,
    questions: Annotated[Path | None, typer.Option(help="Official topics of a TREC run.")] = None,
    apply_fixes: Annotated[
        bool, typer.Option("--apply-fixes", help="Write a TREC run, cut to the track's limits, to FILE.fixed.")
    ] = False,
) -> None:
    """List the faults of a file with line and field, and the format that was checked.

    Exits with code 1 if there are faults other than warnings. Warnings of one kind are printed once, with their number.
    """
    from collections import Counter

    from autoais import formats
    from autoais.base.io.jsonl import check_outputs, write_atomic
    from autoais.formats.questions import read_questions

    topics = None if questions is None else list(read_questions(questions))
    faults, n_records = 0, Counter[str]()
    for fault in formats.merge_warnings(formats.validate(file, name, topics, n_records)):
        faults += not fault.warning
        print_line(str(fault))
    for record_kind, count in n_records.items():
        verdict = format_count(faults, "faults") if faults else "no faults"
        print_line(f"{file}: {record_kind}, {format_count(count, 'records')}, {verdict}")
    if apply_fixes:
        target = file.with_name(file.name.removesuffix(".gz") + ".fixed")
        check_outputs([file, questions], [target])
        rows, fixes = formats.fix(file, name)
        write_atomic(target, rows)
        for message in [*fixes, f"{format_count(len(rows), 'rows')} in {target}"]:
            print_line(message)
    raise SystemExit(1 if faults else 0)


app.add_typer(nuggets_app, name="nuggets")
app.command()(relevance)


def _print_notes(notes: "Mapping[str, int]") -> None:
    for text, count in notes.items():
        note(format_count(count, text))


# click's UsageError, by its subclass: it is in the package click, or inside typer, by the version of typer.
_NO_COMMAND = re.compile(r"No such command '(.+?)'")
_UsageError: type[typer.BadParameter] = typer.BadParameter.__mro__[1]


def run(application: typer.Typer) -> None:
    """Run a command line; a `UserError` becomes one line on standard error and exit code 2.

    So does a wrong option or argument of a command. For an unknown command, the usage is printed,
    or where it is: `rag index build` for `rag build`.
    """
    command = typer.main.get_command(application)
    invoke = command.invoke

    def invoke_or_explain(context: typer.Context) -> object:
        try:
            return invoke(context)
        except _UsageError as error:
            failed_context = error.ctx
            if failed_context is None:
                raise
            if groups := getattr(failed_context.command, "commands", None):
                unknown = _NO_COMMAND.match(error.format_message())
                groups_with_command = [
                    name for name, group in groups.items() if unknown and unknown[1] in getattr(group, "commands", ())
                ]
                if unknown is None or not groups_with_command:
                    raise
                suggestions = " or ".join(
                    f"{failed_context.command_path} {name} {unknown[1]}" for name in groups_with_command
                )
                raise UserError(
                    f"{failed_context.command_path}: no command {unknown[1]!r}; there is {suggestions}"
                ) from error
            message = " ".join(error.format_message().split()).rstrip(".")
            raise UserError(
                f"{failed_context.command_path}: {message}; see {failed_context.command_path} --help"
            ) from error

    # Replaced, because typer prints a box of five lines for such an error once it leaves `invoke`, and has no hook.
    command.invoke = invoke_or_explain  # type: ignore[assignment,method-assign]
    try:
        command(prog_name=Path(sys.argv[0]).name)  # click would make `python -m rag.rag` of `python -m rag`
    except UserError as error:
        _fail(str(error))
    except OSError as error:
        if error.filename is None:
            raise
        _fail(f"{os.fsdecode(error.filename)[:200]}: {error.strerror}")


def _fail(message: str) -> NoReturn:
    if is_interrupted():  # a module that was interrupted while it loaded looks like one that is missing
        raise SystemExit(EXIT_CODE)
    note(f"error: {message}")
    raise SystemExit(2)


def main() -> None:
    """Entry point of `autoais`."""
    run(app)
