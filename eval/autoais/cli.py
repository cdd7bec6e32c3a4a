"""The command `autoais`: parse, call, print."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from autoais.errors import UserError

if TYPE_CHECKING:
    from contextlib import ExitStack

    from rich.console import Console
    from rich.table import Table

    from autoais.types import Judge

app = typer.Typer(
    no_args_is_help=True, add_completion=False, help="Score anybody's cited answers.", pretty_exceptions_enable=False
)


@app.command()
def score(
    answers: Annotated[Path, typer.Argument(help="answers.jsonl, one cited answer a line.")],
    judge: Annotated[str, typer.Option(help="Which judge: lexical.")] = "lexical",
    out: Annotated[Path | None, typer.Option(help="Write one judgement a sentence (jsonl), for `compare`.")] = None,
    report: Annotated[Path | None, typer.Option(help="Write the report (json) with how it came about.")] = None,
    questions: Annotated[
        Path | None, typer.Option(help="The whole benchmark; a question without an answer then counts as a no.")
    ] = None,
    cache: Annotated[
        Path | None, typer.Option(help="Keep judgements in this file: a killed run goes on, another metric is free.")
    ] = None,
    metrics: Annotated[
        str, typer.Option(help="Citation metrics, which judge citations singly: alce, hagrid, liu, trec; all or none.")
    ] = "alce,hagrid",
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Judge every sentence against what it cites and print rates with n, undecided and 95 % intervals."""
    from contextlib import ExitStack

    from autoais.answers import read_answers
    from autoais.cache import CachedJudge, JudgementCache
    from autoais.jsonl import dumps, keep_inputs, round_floats, write_whole
    from autoais.judges import open_judge
    from autoais.provenance import provenance
    from autoais.questions import read_questions
    from autoais.scoring import Summary, choose_metrics, judge_answers

    keep_inputs([answers, questions], [out, report, cache])
    chosen = open_judge(judge)
    benchmark = None if questions is None else read_questions(questions)
    summary = Summary(choose_metrics(metrics))

    def rows() -> Iterator[str]:
        for item in judge_answers(read_answers(answers), chosen, benchmark, each=bool(summary.metrics)):
            summary.add(item)
            yield from (dumps(round_floats(row)) for row in item.records(chosen.name))

    with ExitStack() as stack:
        if cache is not None:
            journal = stack.enter_context(JudgementCache(cache))
            if journal.note:
                typer.echo(journal.note, err=True)
            chosen = CachedJudge(chosen, journal)
        if out is None:
            for _ in rows():
                pass
        else:
            write_whole(out, rows())
    result = summary.report(chosen.name)
    inputs = {"answers": answers} | ({"questions": questions} if questions else {})
    result = round_floats({**result, "provenance": provenance(inputs)})
    if report is not None:
        write_whole(report, [dumps(result, indent=2)])
    if as_json:
        typer.echo(dumps(result, indent=2))
    else:
        _show(result)


@app.command()
def compare(
    a: Annotated[Path, typer.Argument(help="Judgements of one system: the file of `score --out`.")],
    b: Annotated[Path, typer.Argument(help="Judgements of the other, by the same judge.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the comparison as JSON.")] = False,
) -> None:
    """Does A get more attributable answers than B? Paired bootstrap and McNemar's test over questions."""
    from autoais.compare import compare_files
    from autoais.jsonl import dumps, round_floats
    from autoais.provenance import provenance

    result = round_floats({**compare_files(a, b), "provenance": provenance({"a": a, "b": b})})
    if as_json:
        typer.echo(dumps(result, indent=2))
    else:
        _show_comparison(result)


@app.command("ais-report")
def ais_report(
    files: Annotated[list[Path], typer.Argument(help="CSVs of the AIS paper's release, or in their format.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Flagged, interpretable and AIS rates a model, and how far annotators agreed (AIS paper, Tables 3 to 7)."""
    from autoais.ais_report import read_ratings, report
    from autoais.jsonl import dumps, round_floats
    from autoais.provenance import provenance

    reports = [{"file": path.name, **report(read_ratings(path))} for path in files]
    if as_json:
        inputs = {f"ratings{number}": path for number, path in enumerate(files, 1)}
        typer.echo(dumps(round_floats({"files": reports, "provenance": provenance(inputs)}), indent=2))
        return
    for one in reports:
        _show_ais(one)


@app.command()
def meta(
    labels: Annotated[list[Path], typer.Argument(help="Files of human labels, in any format that has some.")],
    judge: Annotated[str, typer.Option(help="Which judge: lexical.")] = "lexical",
    judge_option: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="An option of the judge, such as threshold=0.7.")
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

    from autoais.calibrate import calibrated
    from autoais.jsonl import dumps, keep_inputs, round_floats, write_whole
    from autoais.labels import read_labels
    from autoais.meta import evaluate, without_texts
    from autoais.meta_terminal import show_meta
    from autoais.plot import reliability_svg
    from autoais.provenance import provenance

    keep_inputs([*labels, calibration], [report, plot, cache])
    with ExitStack() as stack:
        chosen = _open_judge(judge, judge_option, cache, stack)
        if calibration is not None:
            chosen = calibrated(chosen, calibration)
        result = evaluate((label for path in labels for label in read_labels(path)), chosen, worst=worst)
    if not result["sets"]:
        raise UserError(f"{', '.join(map(str, labels))}: no labels in it")
    inputs = {f"labels{number}": path for number, path in enumerate(labels, 1)}
    inputs |= {"calibration": calibration} if calibration else {}
    result = round_floats(result | {"provenance": provenance(inputs)})
    if report is not None:
        write_whole(report, [dumps(result if texts else without_texts(result), indent=2)])
    if plot is not None:
        write_whole(plot, reliability_svg(result))
    if as_json:
        typer.echo(dumps(result, indent=2))
    else:
        show_meta(_console(), result)


@app.command()
def calibrate(
    labels: Annotated[list[Path], typer.Argument(help="Files of human labels, in any format that has some.")],
    judge: Annotated[str, typer.Option(help="Which judge; it must give probabilities.")],
    out: Annotated[Path, typer.Option(help="Write the fit (json), for --calibration of `score` and `meta`.")],
    by: Annotated[
        str, typer.Option(help="What the threshold is chosen by: macro_f1 or balanced_accuracy.")
    ] = "macro_f1",
    folds: Annotated[int, typer.Option(help="Parts of the cross-validation.")] = 5,
    judge_option: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="An option of the judge, such as threshold=0.7.")
    ] = None,
    cache: Annotated[Path | None, typer.Option(help="Keep judgements in this file: a killed run goes on.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was written as JSON.")] = False,
) -> None:
    """Fit a judge's threshold and probabilities to human labels, and say what that gains in cross-validation."""
    from contextlib import ExitStack

    from autoais.calibrate import calibrate as fit
    from autoais.jsonl import dumps, keep_inputs, round_floats, write_whole
    from autoais.labels import read_labels
    from autoais.meta_terminal import show_calibration
    from autoais.provenance import provenance

    keep_inputs(labels, [out, cache])
    with ExitStack() as stack:
        chosen = _open_judge(judge, judge_option, cache, stack)
        result = fit((label for path in labels for label in read_labels(path)), chosen, by=by, folds=folds)
    inputs = {f"labels{number}": path for number, path in enumerate(labels, 1)}
    result = round_floats(result | {"provenance": provenance(inputs)})
    write_whole(out, [dumps(result, indent=2)])
    if as_json:
        typer.echo(dumps(result, indent=2))
    else:
        show_calibration(_console(), result)


def _open_judge(name: str, options: list[str] | None, cache: Path | None, stack: "ExitStack") -> "Judge":
    """The judge with its options, reading and filling the cache for as long as `stack` is open."""
    from autoais.cache import CachedJudge, JudgementCache
    from autoais.judges import open_judge
    from autoais.options import parse_options

    judge = open_judge(name, **parse_options(options or ()))
    if cache is None:
        return judge
    journal = stack.enter_context(JudgementCache(cache))
    if journal.note:
        typer.echo(journal.note, err=True)
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

    from autoais import formats
    from autoais.formats.convert import count_losses
    from autoais.jsonl import keep_inputs, write_whole
    from autoais.questions import read_questions

    keep_inputs([source, questions, *(corpus or [])], [target])
    benchmark = None if questions is None else list(read_questions(questions))
    notes, lost = formats.Notes(), Counter[str]()
    answers = formats.read(source, come_from, corpus=corpus or (), questions=benchmark, notes=notes, skip_bad=skip_bad)
    write_whole(target, formats.write(count_losses(answers, formats.by_name(to), lost), to, notes))
    for what, count in notes.items():
        typer.echo(f"{count} {what}", err=True)
    for what, count in lost.items():
        typer.echo(f"not kept, because {to} has no place for it: {what} ({count} answers)", err=True)


@app.command()
def schema(
    name: Annotated[str | None, typer.Argument(help="A format; without one the formats are listed.")] = None,
) -> None:
    """Print the JSON Schema of a format's records, or list the formats."""
    from autoais import formats
    from autoais.jsonl import dumps

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
    from autoais.jsonl import keep_inputs, write_whole
    from autoais.questions import read_questions

    topics = None if questions is None else list(read_questions(questions))
    faults = 0
    for fault in formats.validate(file, name, topics):
        faults += not fault.warning
        _say(str(fault))
    if apply_fixes:
        target = file.with_name(file.name.removesuffix(".gz") + ".fixed")
        keep_inputs([file, questions], [target])
        fixed, did = formats.fix(file, name)
        write_whole(target, fixed)
        for one in [*did, f"{len(fixed)} rows in {target}"]:
            _say(one)
    raise SystemExit(1 if faults else 0)


def _say(line: str) -> None:
    """One line, whatever a file put into it; and nothing that drives a terminal."""
    typer.echo("".join(c if c.isprintable() else "\ufffd" for c in line))


def _show_comparison(result: dict[str, Any]) -> None:
    console = _console()
    table = _table("", "attributable", "95 % interval", "n", "undecided", "floor")
    for side in ("a", "b"):
        rate = result[side]
        ends = rate["interval95"]
        value, interval = ("-", "") if ends is None else (f"{rate['value']:.3f}", f"[{ends[0]:.3f}, {ends[1]:.3f}]")
        table.add_row(side.upper(), value, interval, str(rate["n"]), str(rate["undecided"]), f"{rate['floor']:.3f}")
    difference, tests, counts = result["difference"], result["mcnemar"], result["table"]
    low, high = difference["interval95"]
    console.print(f"{result['questions']} questions, judge {result['judge']}")
    console.print(table)
    console.print(
        f"A - B (floors): {difference['value']:+.3f} [{low:+.3f}, {high:+.3f}], p = {difference['p']:.4f} "
        f"({difference['method']}, {difference['resamples']} resamples)"
    )
    console.print(f"only A right {counts['only_a']}, only B right {counts['only_b']}, both {counts['both']}")
    for test in (tests["exact"], tests["corrected"]):
        used = ", the one to report" if test["variant"] == tests["used"] else ""
        p = test.get("reason") or f"p = {test['p']:.4f}"
        console.print(f"McNemar, {test['variant']}: {p}{used}")
    for note in result["notes"]:
        console.print(note)


def _show_ais(one: dict[str, Any]) -> None:
    console = _console()
    table = _table("model", "n", "Flag %", "Int %", "AIS %", "95 % interval", "AIS of unflagged %")
    for model in one["models"]:
        rates = [model[name] for name in ("flagged", "interpretable", "ais", "ais_of_unflagged")]
        percent = ["-" if rate["value"] is None else f"{100 * rate['value']:.1f}" for rate in rates]
        low, high = rates[2]["interval95"] or (0.0, 1.0)
        interval = f"[{100 * low:.1f}, {100 * high:.1f}] n={rates[2]['n']}"
        table.add_row(model["model"], str(rates[0]["total"]), *percent[:3], interval, percent[3])
    console.print(one["file"], style="bold")
    console.print(table)
    for name, agreement in one["agreement"].items():
        values = [agreement[key] for key in ("krippendorff_alpha", "pairwise_agreement", "f1_to_majority")]
        alpha, pairs, f1 = ("-" if value is None else f"{value:.3f}" for value in values)
        console.print(
            f"{name}: alpha {alpha}, pairwise agreement {pairs}, F1 to majority {f1} "
            f"({agreement['items']} items, {agreement['left_out']} without a usable count)"
        )
    console.print()


def _table(first: str, *others: str) -> "Table":
    from rich.table import Table

    table = Table(first, *others, box=None, pad_edge=False)
    for column in table.columns[1:]:
        column.justify = "right"
    return table


def _console() -> "Console":
    from rich.console import Console

    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = 120  # a pipe has no width; no column must be cut
    return console


def _show(result: dict[str, Any]) -> None:
    table = _table("metric", "value", "95 % interval", "n", "undecided", "floor")
    for name, metric in result["metrics"].items():
        if metric["value"] is None:
            table.add_row(name, "-", metric["reason"], "", "", "")
            continue
        low, high = metric["interval95"]
        floor = f"{metric['floor']:.3f} of {metric['total']}" if "floor" in metric else ""
        undecided = str(metric.get("undecided", ""))
        interval = f"[{low:.3f}, {high:.3f}]"
        table.add_row(name, f"{metric['value']:.3f}", interval, str(metric["n"]), undecided, floor)
    console = _console()
    console.print(f"{result['questions']} questions, {result['answered']} answered, judge {result['judge']}")
    console.print(table)
    if result["not_applicable"]:
        console.print(f"{result['not_applicable']} sentences are questions or instructions, which claim nothing")
    if result["unresolved_markers"]:
        console.print(f"{result['unresolved_markers']} citation markers pointed nowhere")


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
    # One line, whatever a file put into it; and nothing that drives a terminal.
    typer.echo("error: " + "".join(c if c.isprintable() else "\ufffd" for c in message), err=True)
    raise SystemExit(2)


def main() -> None:
    """Entry point of `autoais`."""
    run(app)
