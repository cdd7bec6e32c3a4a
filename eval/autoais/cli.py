"""The command `autoais`: parse, call, print."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from autoais.errors import UserError
from autoais.judges import DEFAULT
from autoais.terminal import new_console, say, show_ais, show_comparison, show_report

if TYPE_CHECKING:
    from contextlib import ExitStack

    from autoais.types import Judge

_JUDGES = "Which judge: minilm, lexical, minilm:<folder>, hf[:<model>], llm:<model>."

app = typer.Typer(
    no_args_is_help=True, add_completion=False, help="Score anybody's cited answers.", pretty_exceptions_enable=False
)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"attributed-rag {version('attributed-rag')}")
        raise typer.Exit


VersionOption = Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")]


@app.callback()
def _root(version: VersionOption = False) -> None:
    pass


@app.command()
def score(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="Cited answers in any format of `autoais schema`, told from the file."),
    ],
    judge: Annotated[str, typer.Option(help=_JUDGES)] = DEFAULT,
    judge_option: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="An option of the judge, such as max_length=512.")
    ] = None,
    calibration: Annotated[Path | None, typer.Option(help="A fit of `autoais calibrate` for this judge.")] = None,
    name: Annotated[str | None, typer.Option("--format", help="The format of FILE, where it is not told.")] = None,
    corpus: Annotated[
        list[Path] | None, typer.Option(help="Passages (jsonl, also .zst or .gz), for those known by id only.")
    ] = None,
    questions: Annotated[
        Path | None, typer.Option(help="The whole benchmark; a question without an answer then counts as a no.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write one judgement a sentence (jsonl), for `compare`.")] = None,
    report: Annotated[Path | None, typer.Option(help="Write the report (json) with how it came about.")] = None,
    scores: Annotated[Path | None, typer.Option(help="Write Attributed QA's scores file: AutoAIS, EM, F1.")] = None,
    ais_csv: Annotated[
        Path | None, typer.Option("--ais-csv", help="Write Attributed QA's AIS file: each answer with Y or N.")
    ] = None,
    compat: Annotated[
        str | None,
        typer.Option(help="google-2023: count and write as Attributed QA's released script does, faults included."),
    ] = None,
    cache: Annotated[
        Path | None, typer.Option(help="Keep judgements in this file: a killed run goes on, another metric is free.")
    ] = None,
    metrics: Annotated[
        str, typer.Option(help="Citation metrics, which judge citations singly: alce, hagrid, liu, trec; all or none.")
    ] = "alce,hagrid",
    skip_bad: Annotated[bool, typer.Option(help="Pass over broken lines of the corpus, and count them.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Judge every sentence against what it cites and print rates with n, undecided and 95 % intervals."""
    from collections import deque
    from contextlib import ExitStack

    from autoais import attributed_qa, formats
    from autoais.formats.aqa import ais_lines, last_question
    from autoais.io.jsonl import dumps, keep_inputs, round_floats, write_whole
    from autoais.io.provenance import judge_record, provenance
    from autoais.judges import open_judge
    from autoais.judges.options import parse_options
    from autoais.meta.calibrate import calibrated
    from autoais.questions import read_questions
    from autoais.score_run import Run, answers_to_score
    from autoais.scoring import choose_metrics

    corpora = corpus or []
    keep_inputs([file, questions, calibration, *corpora], [out, report, scores, ais_csv, cache])
    measured = choose_metrics(metrics)
    name = name or formats.detect(file)
    as_2023 = attributed_qa.check_mode(compat, name)
    options = parse_options(judge_option or ())
    if as_2023 and judge.partition(":")[0] == "hf":
        options.setdefault("compat", attributed_qa.GOOGLE_2023)
    chosen = open_judge(judge, **options)
    benchmark = None if questions is None else list(read_questions(questions))
    notes = formats.Notes()
    answers = answers_to_score(file, name, benchmark, corpora, notes, skip_bad=skip_bad or as_2023)
    if as_2023:
        answers = attributed_qa.as_read_in_2023(answers)
    with ExitStack() as stack:
        asked = _cached(chosen, cache, stack)
        if calibration is not None:
            asked = calibrated(asked, calibration)
        run = Run(asked, measured, as_2023=as_2023, keep_answers=ais_csv is not None)
        rows = (dumps(round_floats(row)) for row in run.records(answers, benchmark))
        if out is None:
            deque(rows, maxlen=0)
        else:
            write_whole(out, rows)
    for what, count in notes.items():
        say(f"{count:,} {what}", err=True)
    if (client := getattr(chosen, "client", None)) is not None:
        say(f"{chosen.name}: {client.usage}", err=True)
    inputs = {"answers": file} | ({"questions": questions} if questions else {})
    inputs |= {f"corpus{number}": path for number, path in enumerate(corpora, 1)}
    inputs |= {"calibration": calibration} if calibration else {}
    how = provenance(inputs) | {"judge": judge_record(chosen), "mode": compat or "default"}
    result = {"format": name, "mode": compat or "default", **run.report(), "notes": dict(notes)}
    shown = round_floats({**result, "provenance": how})
    # Neither a full disk nor a reader that has gone (`| head`) may take away what the judge was asked for.
    try:
        if report is not None:
            write_whole(report, [dumps(shown, indent=2)])
        if ais_csv is not None:
            write_whole(ais_csv, ais_lines(run.kept, compat=as_2023, last=last_question(file) if as_2023 else ""))
        if scores is not None:
            write_whole(scores, attributed_qa.scores(result["metrics"]))
            say(f"AutoAIS in {scores} is by the judge {chosen.name}", err=True)
    finally:
        if as_json:
            typer.echo(dumps(shown, indent=2))
        else:
            show_report(shown)


@app.command()
def compare(
    a: Annotated[Path, typer.Argument(help="Judgements of one system: the file of `score --out`.")],
    b: Annotated[Path, typer.Argument(help="Judgements of the other, by the same judge.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the comparison as JSON.")] = False,
) -> None:
    """Does A get more attributable answers than B? Paired bootstrap and McNemar's test over questions."""
    from autoais.compare import compare_files
    from autoais.io.jsonl import dumps, round_floats
    from autoais.io.provenance import provenance

    result = round_floats({**compare_files(a, b), "provenance": provenance({"a": a, "b": b})})
    if as_json:
        typer.echo(dumps(result, indent=2))
    else:
        show_comparison(result)


@app.command()
def train(
    recipe: Annotated[Path, typer.Argument(help="A training recipe (toml), such as eval/recipes/minilm.toml.")],
    data: Annotated[list[Path], typer.Option(help="A folder with the recipe's files; may be given several times.")],
    out: Annotated[Path, typer.Option(help="The folder of the model; a stopped run goes on from what is in it.")],
    short: Annotated[bool, typer.Option(help="A few pairs and steps, to see that the recipe runs.")] = False,
) -> None:
    """Train a judge for --judge minilm:<folder>, with all its data and checksums on record."""
    from autoais.training import needs
    from autoais.training.recipe import run

    needs("torch", "transformers", "onnx")
    run(recipe, data, out, short=short, say=lambda line: say(line, err=True))


@app.command("ais-report")
def ais_report(
    files: Annotated[list[Path], typer.Argument(help="CSVs of the AIS paper's release, or in their format.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Flagged, interpretable and AIS rates a model, and how far annotators agreed (AIS paper, Tables 3 to 7)."""
    from autoais.io.jsonl import dumps, each_once, round_floats
    from autoais.io.provenance import provenance
    from autoais.meta.ais_report import read_ratings, report

    each_once(files)
    reports = [{"file": path.name, **report(read_ratings(path))} for path in files]
    if as_json:
        inputs = {f"ratings{number}": path for number, path in enumerate(files, 1)}
        typer.echo(dumps(round_floats({"files": reports, "provenance": provenance(inputs)}), indent=2))
        return
    for one in reports:
        show_ais(one)


@app.command()
def meta(
    labels: Annotated[list[Path], typer.Argument(help="Files of human labels, in any format that has some.")],
    judge: Annotated[str, typer.Option(help=_JUDGES)] = DEFAULT,
    judge_option: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="An option of the judge, such as threshold=0.7.")
    ] = None,
    calibration: Annotated[Path | None, typer.Option(help="Use the fit that `calibrate` stored for the judge.")] = None,
    cache: Annotated[Path | None, typer.Option(help="Keep judgements in this file: a killed run goes on.")] = None,
    report: Annotated[Path | None, typer.Option(help="Write the report (json), the judge's card.")] = None,
    texts: Annotated[
        bool, typer.Option("--texts", help="Keep claims and evidence in the report: mind the licence of the labels.")
    ] = False,
    plot: Annotated[Path | None, typer.Option(help="Draw reliability and ROC curves (svg).")] = None,
    worst: Annotated[int, typer.Option(min=0, max=1000, help="How many of the worst disagreements a data set.")] = 3,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """How far a judge agrees with people, a data set at a time and on average."""
    from contextlib import ExitStack

    from autoais.io.jsonl import dumps, each_once, keep_inputs, round_floats, write_whole
    from autoais.io.provenance import judge_record, provenance
    from autoais.judges import open_judge
    from autoais.judges.options import parse_options
    from autoais.labels import read_labels
    from autoais.meta.calibrate import calibrated
    from autoais.meta.evaluate import evaluate, without_texts
    from autoais.meta.plot import reliability_svg
    from autoais.meta.terminal import show_meta

    keep_inputs([*labels, calibration], [report, plot, cache])
    each_once(labels)
    if plot is not None and plot.suffix != ".svg":
        raise UserError(f"{plot}: the plot is an SVG; name a file that ends in .svg")
    chosen = open_judge(judge, **parse_options(judge_option or ()))
    with ExitStack() as stack:
        asked = _cached(chosen, cache, stack)
        if calibration is not None:
            asked = calibrated(asked, calibration)
        result = evaluate((label for path in labels for label in read_labels(path)), asked, worst=worst)
    if not result["sets"]:
        raise UserError(f"{', '.join(map(str, labels))}: no labels in it")
    inputs = {f"labels{number}": path for number, path in enumerate(labels, 1)}
    inputs |= {"calibration": calibration} if calibration else {}
    result = round_floats(result | {"provenance": provenance(inputs) | {"judge": judge_record(chosen)}})
    if report is not None:
        write_whole(report, [dumps(result if texts else without_texts(result), indent=2)])
    if plot is not None:
        write_whole(plot, reliability_svg(result))
    if as_json:
        typer.echo(dumps(result, indent=2))
    else:
        show_meta(new_console(), result)


@app.command()
def calibrate(
    labels: Annotated[list[Path], typer.Argument(help="Files of human labels, in any format that has some.")],
    out: Annotated[Path, typer.Option(help="Write the fit (json), for --calibration of `score` and `meta`.")],
    judge: Annotated[str, typer.Option(help=f"{_JUDGES} It must give probabilities.")] = DEFAULT,
    by: Annotated[
        str, typer.Option(help="What the threshold is chosen by: macro_f1 or balanced_accuracy.")
    ] = "macro_f1",
    folds: Annotated[int, typer.Option(help="Parts of the cross-validation.")] = 5,
    judge_option: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="An option of the judge, such as threshold=0.7.")
    ] = None,
    cache: Annotated[Path | None, typer.Option(help="Keep judgements in this file: a killed run goes on.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was written as JSON.")] = False,
) -> None:
    """Fit a judge's threshold and probabilities to human labels, and say what that gains in cross-validation."""
    from contextlib import ExitStack

    from autoais.io.jsonl import dumps, each_once, keep_inputs, round_floats, write_whole
    from autoais.io.provenance import judge_record, provenance
    from autoais.judges import open_judge
    from autoais.judges.options import parse_options
    from autoais.labels import read_labels
    from autoais.meta.calibrate import calibrate as fit
    from autoais.meta.terminal import show_calibration

    keep_inputs(labels, [out, cache])
    each_once(labels)
    chosen = open_judge(judge, **parse_options(judge_option or ()))
    with ExitStack() as stack:
        asked = _cached(chosen, cache, stack)
        result = fit((label for path in labels for label in read_labels(path)), asked, by=by, folds=folds)
    inputs = {f"labels{number}": path for number, path in enumerate(labels, 1)}
    result = round_floats(result | {"provenance": provenance(inputs) | {"judge": judge_record(chosen)}})
    write_whole(out, [dumps(result, indent=2)])
    if as_json:
        typer.echo(dumps(result, indent=2))
    else:
        show_calibration(new_console(), result)


def _cached(judge: "Judge", cache: Path | None, stack: "ExitStack") -> "Judge":
    """The judge, reading and filling the cache, if there is one, for as long as `stack` is open."""
    from autoais.judges.cache import CachedJudge, JudgementCache

    if cache is None:
        return judge
    journal = stack.enter_context(JudgementCache(cache))
    if journal.note:
        say(journal.note, err=True)
    return CachedJudge(judge, journal)


@app.command()
def convert(
    source: Annotated[Path, typer.Argument(metavar="IN", help="Answers in any format of `autoais schema`.")],
    target: Annotated[Path, typer.Argument(metavar="OUT", help="The file to write; .gz is packed.")],
    to: Annotated[str, typer.Option("--to", help="The format to write.")],
    come_from: Annotated[str | None, typer.Option("--from", help="The format of IN, where it is not told.")] = None,
    corpus: Annotated[
        list[Path] | None, typer.Option(help="Passages (jsonl, also .zst or .gz), for those known by id only.")
    ] = None,
    questions: Annotated[
        Path | None, typer.Option(help="The benchmark: gives ids and references, drops answers to other questions.")
    ] = None,
    skip_bad: Annotated[bool, typer.Option(help="Pass over broken lines of the corpus, and count them.")] = False,
) -> None:
    """Write answers in another format, and say what that format cannot hold."""
    from collections import Counter
    from itertools import chain

    from autoais import formats
    from autoais.formats.convert import count_losses, count_textless
    from autoais.io.jsonl import keep_inputs, write_whole
    from autoais.questions import read_questions

    keep_inputs([source, questions, *(corpus or [])], [target])
    benchmark = None if questions is None else list(read_questions(questions))
    notes, lost, wanted = formats.Notes(), Counter[str](), formats.to_write(to)
    answers = formats.read(source, come_from, corpus=corpus or (), questions=benchmark, notes=notes, skip_bad=skip_bad)
    if "texts of passages" in wanted.keeps:
        answers = count_textless(answers, notes)
    written = formats.write(count_losses(answers, wanted, lost), to, notes)
    first = next(written, None)
    if first is None:
        raise UserError(f"{source}: nothing in it can be written as {to}; {target} is left as it was")
    write_whole(target, chain([first], written))
    for what, count in notes.items():
        say(f"{count} {what}", err=True)
    for what, count in lost.items():
        say(f"not kept, because {to} has no place for it: {what} ({count} answers)", err=True)


@app.command()
def schema(
    name: Annotated[str | None, typer.Argument(help="A format; without one the formats are listed.")] = None,
) -> None:
    """Print the JSON Schema of a format's records, or list the formats."""
    from autoais import formats
    from autoais.io.jsonl import dumps

    if name is not None:
        typer.echo(dumps(formats.schema_of(name), indent=2))
        return
    for one in formats.NAMES:
        typer.echo(f"{one:<17} {formats.schema_of(one)['description']}")


@app.command()
def validate(
    file: Annotated[Path, typer.Argument(help="A file in any format of `autoais schema`.")],
    name: Annotated[str | None, typer.Option("--format", help="Its format, where it is not told.")] = None,
    questions: Annotated[Path | None, typer.Option(help="The official topics of a TREC run.")] = None,
    apply_fixes: Annotated[
        bool, typer.Option("--apply-fixes", help="Write FILE.fixed: a TREC run that keeps to the limits.")
    ] = False,
) -> None:
    """List every fault of a file with its line and field; exit code 0 where there is none but warnings, else 1."""
    from autoais import formats
    from autoais.io.jsonl import keep_inputs, write_whole
    from autoais.questions import read_questions

    topics = None if questions is None else list(read_questions(questions))
    faults = 0
    for fault in formats.validate(file, name, topics):
        faults += not fault.warning
        say(str(fault))
    if apply_fixes:
        target = file.with_name(file.name.removesuffix(".gz") + ".fixed")
        keep_inputs([file, questions], [target])
        fixed, did = formats.fix(file, name)
        write_whole(target, fixed)
        for one in [*did, f"{len(fixed)} rows in {target}"]:
            say(one)
    raise SystemExit(1 if faults else 0)


def run(application: typer.Typer) -> None:
    """Run a command line: a `UserError` is one line on standard error and exit code 2."""
    try:
        application()
    except UserError as error:
        _fail(str(error))
    except OSError as error:
        if error.filename is None:
            raise
        _fail(f"{os.fsdecode(error.filename)[:200]}: {error.strerror}")


def _fail(message: str) -> NoReturn:
    say(f"error: {message}", err=True)
    raise SystemExit(2)


def main() -> None:
    """Entry point of `autoais`."""
    run(app)
