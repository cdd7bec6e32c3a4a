"""`autoais nuggets` and `autoais relevance`: parse, call, print."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from autoais.base.errors import UserError
from autoais.base.terminal import clean, format_count, new_console, new_table, note, print_json, show_progress

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from autoais.assessors.assessments import Assessment
    from autoais.assessors.assessor import Assessor

# Commands import what they use, so that `autoais --help` loads no client.

nuggets_app = typer.Typer(no_args_is_help=True, help="Create, assign and score nuggets.")

PassagesArgument = Annotated[
    Path,
    typer.Argument(
        metavar="PASSAGES",
        help="Questions with passages: a TREC run (with --questions and --corpus), requests of Castorini's tools, "
        "judgements of umbrela or `autoais relevance`, or answers in any format.",
    ),
]
ModelOption = Annotated[
    str, typer.Option(metavar="MODEL", help="Chat model on the server of OPENAI_BASE_URL (any OpenAI-compatible one).")
]
ModelOptions = Annotated[
    list[str] | None,
    typer.Option(
        metavar="KEY=VALUE",
        help="Option of the model: budget, max_tokens, concurrency, timeout or retries; repeatable.",
    ),
]
QuestionsOption = Annotated[Path | None, typer.Option(help="Questions of the run.")]
CorpusOption = Annotated[
    list[Path] | None, typer.Option(metavar="FILE", help="Corpus with the texts of passages known by id; repeatable.")
]
DepthOption = Annotated[int | None, typer.Option(min=1, help="Passages of each question to read (default: all).")]
CacheOption = Annotated[
    Path | None,
    typer.Option(help="Keep the model's replies in this file (default: OUT.replies); a stopped run resumes."),
]
ReportOption = Annotated[Path | None, typer.Option(help="Write counts, failures and provenance (json).")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@nuggets_app.command("create")
def create(
    passages: PassagesArgument,
    model: ModelOption,
    output: Annotated[Path, typer.Option("--out", help="Write the nuggets (nuggetizer's jsonl).")],
    questions: QuestionsOption = None,
    corpus: CorpusOption = None,
    depth: DepthOption = None,
    min_grade: Annotated[
        int, typer.Option(min=0, max=3, help="Lowest grade of the passages to read, where they have grades.")
    ] = 1,
    max_nuggets: Annotated[int, typer.Option(min=1, help="Maximum number of nuggets of a question.")] = 30,
    start: Annotated[Path | None, typer.Option(help="Nuggets to begin with (nuggetizer's jsonl).")] = None,
    model_option: ModelOptions = None,
    cache: CacheOption = None,
    report: ReportOption = None,
    as_json: JsonOption = False,
) -> None:
    """Create nuggets from passages by a language model: facts that a good answer states, vital or okay.

    The procedure is AutoNuggetizer's.
    """
    from autoais.assessors.assessments import create_nuggets
    from autoais.formats.nuggetizer import read_nuggets

    cache_file = _check_files([passages, questions, start, *(corpus or ())], output, report, cache)
    assessor = _open_model(model, model_option)
    banks = None if start is None else {bank.topic: bank for bank in read_nuggets(start)}
    with show_progress("questions") as progress:
        result = create_nuggets(
            passages,
            assessor,
            questions=questions,
            corpus=corpus or (),
            depth=depth,
            min_grade=min_grade,
            max_nuggets=max_nuggets,
            start=banks,
            cache=cache_file,
            progress=progress,
        )
    result.save(output, report)
    _print_result(result, assessor, ("nuggets", "vital", "okay"), as_json=as_json)


@nuggets_app.command("assign")
def assign(
    answers: Annotated[list[Path], typer.Argument(metavar="ANSWERS...", help="Answers, in any format.")],
    nuggets: Annotated[Path, typer.Option(help="Nuggets (nuggetizer's jsonl).")],
    model: ModelOption,
    output: Annotated[Path, typer.Option("--out", help="Write the assignments (nuggetizer's jsonl).")],
    model_option: ModelOptions = None,
    cache: CacheOption = None,
    report: ReportOption = None,
    as_json: JsonOption = False,
) -> None:
    """Assign nuggets to answers by a language model: support, partial_support or not_support.

    The procedure is AutoNuggetizer's. An answer belongs to the topic with its id.
    """
    from autoais.assessors.assessments import assign_nuggets

    cache_file = _check_files([*answers, nuggets], output, report, cache)
    assessor = _open_model(model, model_option)
    with show_progress("answers") as progress:
        result = assign_nuggets(answers, nuggets, assessor, cache=cache_file, progress=progress)
    result.save(output, report)
    _print_result(result, assessor, ("support", "partial_support", "not_support"), as_json=as_json)


@nuggets_app.command("score")
def score(
    assignments: Annotated[
        list[Path], typer.Argument(metavar="ASSIGNMENTS...", help="Assignments, as `assign` or nuggetizer writes them.")
    ],
    report: Annotated[
        Path | None, typer.Option(help="Write the report with the scores per topic and provenance (json).")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Score assigned nuggets as nuggetizer does, per system: strict and with partial support, vital and all nuggets."""
    from autoais.assessors.assessments import score_nuggets
    from autoais.base.io.jsonl import check_outputs, dumps, write_atomic
    from autoais.base.io.provenance import provenance

    check_outputs(assignments, [report])
    inputs = {f"assignments{number}": path for number, path in enumerate(assignments, 1)}
    result = score_nuggets(assignments) | {"provenance": provenance(inputs)}
    if report is not None:
        write_atomic(report, [dumps(result, indent=2)])
    if as_json:
        print_json(result)
    else:
        _show_scores(result)


def relevance(
    passages: PassagesArgument,
    model: ModelOption,
    output: Annotated[Path, typer.Option("--out", help="Write the grades as TREC qrels.")],
    details: Annotated[
        Path | None, typer.Option(help="Write each grade with query, passage and reply (umbrela's jsonl).")
    ] = None,
    questions: QuestionsOption = None,
    corpus: CorpusOption = None,
    depth: DepthOption = None,
    model_option: ModelOptions = None,
    cache: CacheOption = None,
    report: ReportOption = None,
    as_json: JsonOption = False,
) -> None:
    """Grade the relevance of passages by a language model, from 0 to 3, as umbrela does.

    A grade that failed is not in the qrels; the details hold it.
    """
    from autoais.assessors.assessments import label_relevance

    cache_file = _check_files([passages, questions, *(corpus or ())], output, report, cache, details)
    assessor = _open_model(model, model_option)
    with show_progress("passages") as progress:
        result = label_relevance(
            passages,
            assessor,
            questions=questions,
            corpus=corpus or (),
            depth=depth,
            cache=cache_file,
            progress=progress,
        )
    if details is not None:
        result.save(details)
    if report is not None:
        result.save_report(report)
    result.save_qrels(output)  # last, as qrels cannot hold every id
    _print_result(result, assessor, ("passages",), as_json=as_json)


def _check_files(
    inputs: "Sequence[Path | None]", output: Path, report: Path | None, cache: Path | None, details: Path | None = None
) -> Path:
    """Return the file of the cache; raises `UserError` for a file that cannot be written, before the work."""
    from autoais.base.io.jsonl import check_outputs

    cache_file = output.with_name(f"{output.name}.replies") if cache is None else cache
    check_outputs(inputs, [output, details, report], [cache_file])
    return cache_file


def _open_model(model: str, options: "Sequence[str] | None") -> "Assessor":
    from autoais.assessors.assessor import Assessor
    from autoais.judges.options import parse_options

    values: dict[str, Any] = parse_options(options or (), "model option")
    settable = ("budget", "max_tokens", "concurrency", "timeout", "retries")
    for name, value in values.items():
        if name not in settable:
            raise UserError(f"a model has no option {name!r}; there are: {', '.join(settable)}")
        is_number = isinstance(value, int | float if name == "timeout" else int) and not isinstance(value, bool)
        if not is_number:
            raise UserError(f"model option {name}={value}: should be a {'' if name == 'timeout' else 'whole '}number")
    return Assessor(model, **values)


def _print_result(result: "Assessment", assessor: "Assessor", names: "Sequence[str]", *, as_json: bool) -> None:
    record = result.record
    note(f"{assessor.name}: {assessor.client.usage}")
    for text, count in record["notes"].items():
        note(format_count(count, text))
    failures = record["failures"]
    if failures:
        first = failures[0]
        note(
            f"warning: {result.failed:,} failed, such as {first['id']}: {first['reason']}; they are marked as failed; "
            "the same command asks again for what failed"
        )
    if as_json:
        print_json(record)
        return
    parts = [format_count(record[name], name) for name in names]
    parts += [f"{count:,} of grade {grade}" for grade, count in record.get("grades", {}).items()]
    typer.echo(", ".join([*parts, f"{result.failed:,} failed"]))


def _show_scores(result: "Mapping[str, Any]") -> None:
    console = new_console()
    for run in result["runs"]:
        table = new_table("score", "value", "95 % interval", "n")
        for name, mean in run["measures"].items():
            table.add_row(name, f"{mean['value']:.4f}", "[{:.4f}, {:.4f}]".format(*mean["interval95"]), str(mean["n"]))
        failed = f", {run['failed']:,} assignments failed and count as no support" if run["failed"] else ""
        console.print(clean(f"{run['run']}: {format_count(run['topics'], 'topics')}{failed}"), style="bold")
        console.print(table)
    for text, count in result["notes"].items():
        console.print(clean(format_count(count, text)))
