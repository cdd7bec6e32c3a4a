"""`rag bench`: parse, call, print."""

from pathlib import Path
from typing import Annotated

import typer

from autoais.commands.main import AddressOption, EngineOption, WorkersOption, enter_engine
from rag.commands.data import TableOption, YesOption, confirm_download
from rag.commands.options import ConcurrencyOption, JsonOption, PriceOption, ResumeOption, note, print_json

# Commands import what they use, so that `rag --help` loads no engine.

bench_app = typer.Typer(no_args_is_help=True, help="Run benchmarks, and report and compare the results.")

RunsArgument = Annotated[list[Path], typer.Argument(metavar="RUN", help="Run folders of `rag bench run`.")]
DataOption = Annotated[
    Path | None,
    typer.Option("--data", help="Folder with the data (default: ~/.cache/attributed-rag/data, if it is there)."),
]
DownloadOption = Annotated[
    bool,
    typer.Option("--download", help="Download the public data that are missing (not with RAG_OFFLINE=1)."),
]
DifferentOption = Annotated[
    bool,
    typer.Option(
        "--allow-different",
        help="Show runs with another benchmark, rule, questions, passages or judge in separate tables.",
    ),
]


@bench_app.command("list")
def list_(
    as_json: JsonOption = False,
) -> None:
    """List the benchmarks, and the labelled sets for judges."""
    from rag.bench.benchmark import list_benchmarks, list_label_sets
    from rag.commands.display_bench import benchmark_record, label_set_record, show_benchmarks

    benchmarks, labels = list_benchmarks(), list_label_sets()
    if as_json:
        print_json([*map(benchmark_record, benchmarks), *map(label_set_record, labels)])
    else:
        show_benchmarks(benchmarks, labels)


@bench_app.command("run")
def run(
    name: Annotated[str, typer.Argument(help="Benchmark: a name of `rag bench list`, or your own .toml file.")],
    folder: Annotated[Path, typer.Option("--out", help="Folder of the run.")],
    data: DataOption = None,
    download: DownloadOption = False,
    yes: YesOption = False,
    table: TableOption = None,
    system: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SYSTEM",
            help="System, also with options: reader,retriever=bm25-rerank,k=16; repeatable (default: reader).",
        ),
    ] = None,
    predictions: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="Answers of another system, in any format of `autoais schema`; repeatable."),
    ] = None,
    index: Annotated[
        Path | None, typer.Option(help="Index of the corpus; built there if it is missing (default: in the run).")
    ] = None,
    corpus: Annotated[
        str | None,
        typer.Option(help="Corpus to search instead of the benchmark's: a path, or a name that the benchmark defines."),
    ] = None,
    corpus_sample: Annotated[
        str | None,
        typer.Option(
            metavar="N",
            help="Search N passages of the corpus, such as 500k: the known gold passages, and others by a hash.",
        ),
    ] = None,
    judge: Annotated[str | None, typer.Option(help="Judge, as for `autoais score` (default: minilm).")] = None,
    metrics: Annotated[
        str | None,
        typer.Option(help="Citation metrics: alce, hagrid, liu, trec, comma-separated (default: all)."),
    ] = None,
    human: Annotated[
        Path | None, typer.Option(help="Answers of these systems with human labels, to correct AutoAIS.")
    ] = None,
    price: PriceOption = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Number of questions to sample (default: all).")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the sample (default: 0).")] = None,
    stage: Annotated[
        str | None,
        typer.Option(help="Run one stage: retrieve, answer, judge or measure; drops the results of later ones."),
    ] = None,
    resume: ResumeOption = False,
    concurrency: ConcurrencyOption = "auto",
    engine: EngineOption = None,
    address: AddressOption = None,
    workers: WorkersOption = None,
    all_metrics: Annotated[bool, typer.Option("--all", help="Print all metrics, as --json does.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the metrics as JSON.")] = False,
) -> None:
    """Run systems over a benchmark, judge their answers and print a line per system.

    A stopped run continues with --resume and ends with the same files. --download says first what it takes, and asks
    before more than 1 GB.
    """
    from contextlib import ExitStack

    from rag.bench.downloads import plan_download
    from rag.bench.run import run_benchmark
    from rag.bench.selections import parse_count
    from rag.commands.display import step_progress
    from rag.commands.display_bench import show_run

    sample_size = None if corpus_sample is None else parse_count(corpus_sample)
    if download:
        place = index or folder / "index"
        plan = plan_download(name, data, corpus=corpus, corpus_sample=sample_size, index=place, table=table)
        confirm_download(plan, place, yes=yes)
    with ExitStack() as stack:
        entered_engine = enter_engine(engine, address, workers, stack)
        progress = stack.enter_context(step_progress())
        bench_run = run_benchmark(
            name,
            folder,
            data,
            systems=system or (),
            predictions=predictions or (),
            index=index,
            corpus=corpus,
            corpus_sample=sample_size,
            judge=judge,
            metrics=metrics,
            human=human,
            price=price,
            limit=limit,
            seed=seed,
            stage=stage,
            resume=resume,
            concurrency=concurrency,
            engine=entered_engine,
            download=_download_from(table, download=download),
            progress=progress,
        )
    if stage in (None, "measure"):
        system_metrics = [bench_run.metrics(label) for label in bench_run.labels]
        if as_json:
            print_json(system_metrics)
        else:
            show_run(bench_run, system_metrics, all_metrics=all_metrics)
    for label, totals in bench_run.request_totals.items():
        note(f"{label}: model server: {totals}")


@bench_app.command("split")
def split(
    file: Annotated[
        Path, typer.Argument(help="Answers of several systems, in any format of `autoais schema` that names them.")
    ],
    folder: Annotated[Path, typer.Option("--to", help="Folder for a file of each system.")],
) -> None:
    """Split a file of answers by system, for `rag bench run --predictions`; prints the new files."""
    from rag.bench.predictions import split_predictions

    for path in split_predictions(file, folder):
        typer.echo(str(path))


@bench_app.command("report")
def report(
    runs: RunsArgument,
    folder: Annotated[Path | None, typer.Option("--out", help="Folder of the report (default: RUN/report).")] = None,
    kind: Annotated[
        str, typer.Option("--format", help="html (with report.json and figures), or print a table: md, latex.")
    ] = "html",
    passages: Annotated[
        bool, typer.Option("--passages/--no-passages", help="Include the texts of passages; mind their licence.")
    ] = True,
    by: Annotated[
        str | None,
        typer.Option(
            metavar="METRIC",
            help="Metric to sort the leaderboard by (default: right_attributed, or autoais without a rule for right).",
        ),
    ] = None,
    allow_different: DifferentOption = False,
) -> None:
    """Write a report of runs: report.html with their leaderboard, report.json and figures. Nothing is run again."""
    from rag.bench.report import report_table, write_report

    if kind != "html":
        typer.echo(report_table(*runs, kind=kind, allow_different=allow_different, by=by), nl=False)
        return
    report = write_report(*runs, output_folder=folder, passages=passages, allow_different=allow_different, by=by)
    if passages:
        licence = ", ".join(report.licences) or "not stated by the benchmark"
        note(f"warning: the page holds passages of others (licence: {licence}); --no-passages leaves their texts out")
    note(str(report.page))


@bench_app.command("compare")
def compare(
    runs: RunsArgument,
    file: Annotated[
        Path | None, typer.Option("--out", help="Write the comparison, with all differing answers, as JSON.")
    ] = None,
    as_json: JsonOption = False,
    allow_different: DifferentOption = False,
) -> None:
    """Compare all systems of runs question by question, with significance tests."""
    from autoais.base.io.jsonl import check_outputs, dumps, round_floats, write_atomic
    from rag.bench.compare import compare_runs
    from rag.commands.display_bench import show_comparison

    check_outputs([], [file])
    result = round_floats(compare_runs(*runs, allow_different=allow_different))
    if file is not None:
        write_atomic(file, [dumps(result, indent=1)])
    if as_json:
        print_json(result)
        return
    for group in result["groups"]:
        show_comparison(group)


@bench_app.command("changes")
def changes(
    old: Annotated[Path, typer.Argument(metavar="OLD", help="Run folder of `rag bench run`.")],
    new: Annotated[Path, typer.Argument(metavar="NEW", help="Run folder of the same benchmark, made later.")],
    as_json: JsonOption = False,
) -> None:
    """Show what changed between two runs: inputs, hits, answers, verdicts, metrics.

    Exits with code 1 if anything changed. Times, versions and settings alone do not count as changes.
    """
    from rag.bench.changes import run_changes
    from rag.commands.display_bench import show_changes

    changes = run_changes(old, new)
    if as_json:
        print_json(changes)
    else:
        show_changes(changes)
    if not changes["same"]:
        raise typer.Exit(1)


@bench_app.command("judges")
def judges(
    sets: Annotated[
        list[str],
        typer.Option(
            "--set",
            metavar="SET",
            help="Labelled set of `rag bench list`, or a file of labels in any format; repeatable.",
        ),
    ],
    judge: Annotated[
        list[str] | None,
        typer.Option(
            metavar="JUDGE",
            help="Judge, as for `autoais score`; repeatable (default: all that need no model or server).",
        ),
    ] = None,
    judge_option: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="Option of the judges of --judge, such as threshold=0.7; repeatable."),
    ] = None,
    data: DataOption = None,
    download: DownloadOption = False,
    yes: YesOption = False,
    table: TableOption = None,
    file: Annotated[
        Path | None, typer.Option("--out", help="Write the leaderboard with its provenance (json).")
    ] = None,
    cache: Annotated[Path | None, typer.Option(help="Cache judgements in this file; a stopped run resumes.")] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Number of claims to draw from each set (default: all).")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the draw.")] = 0,
    timing_count: Annotated[
        int, typer.Option("--timed", min=0, help="Number of claims to judge again, to measure speed.")
    ] = 200,
    kind: Annotated[str, typer.Option("--format", help="Print a table, md or json.")] = "table",
) -> None:
    """Measure judges against human labels, and print a leaderboard beside published figures."""
    from autoais.base.errors import UserError
    from autoais.base.io.jsonl import check_outputs, dumps, write_atomic
    from autoais.base.terminal import new_console
    from autoais.judges import open_judge
    from autoais.judges.options import parse_options
    from autoais.meta.leaderboard_tables import leaderboard_markdown, show_leaderboard
    from rag.bench.benchmark import LabelSet
    from rag.bench.downloads import plan_label_sets
    from rag.bench.judges import open_set, rank_judges
    from rag.commands.display import step_progress

    if kind not in ("table", "md", "json"):
        raise UserError(f"no format {kind!r}; there are: table, md, json")
    options = parse_options(judge_option or ())
    if options and not judge:
        raise UserError("--judge-option is for the judges that --judge names; name one")
    check_outputs([Path(name) for name in sets], [file], [cache])
    opened_judges = [open_judge(name, **options) for name in judge or ()]
    if download:
        label_sets = [label_set for label_set in map(open_set, sets) if isinstance(label_set, LabelSet)]
        confirm_download(plan_label_sets(label_sets, data, table=table), yes=yes)
    advice = "run it again with --cache FILE to keep judgements" if cache is None else "the same command continues"
    with step_progress("claims", advice) as progress:
        result = rank_judges(
            sets,
            opened_judges,
            data,
            cache=cache,
            limit=limit,
            seed=seed,
            timing_count=timing_count,
            download=_download_from(table, download=download),
            progress=progress,
        )
    if file is not None:
        write_atomic(file, [dumps(result, indent=1)])
    if kind == "table":
        show_leaderboard(new_console(), result)
    else:
        typer.echo(leaderboard_markdown(result) if kind == "md" else dumps(result, indent=2), nl=kind == "json")


@bench_app.command("reproduce")
def reproduce(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME", help="Reproductions, or your own .toml (default: all).")
    ] = None,
    as_list: Annotated[
        bool, typer.Option("--list", help="List them, and the results that cannot be reproduced.")
    ] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Run only those that take seconds.")] = False,
    data: Annotated[Path | None, typer.Option(help="Folder with the data.")] = None,
    file: Annotated[Path | None, typer.Option("--out", help="Write all values as JSON.")] = None,
) -> None:
    """Reproduce results of papers and of this project, and compare them with the expected values.

    Exits with code 1 if a value differs. Reproductions without their data are skipped, with the reason.
    """
    from autoais.base.io.jsonl import check_outputs, dumps, write_atomic
    from rag.bench.reproductions import list_reproductions, not_reproducible
    from rag.bench.rerun import reproduce, results_record
    from rag.commands.display_bench import show_counts, show_reproduction, show_reproductions

    if as_list:
        show_reproductions(list_reproductions(), not_reproducible())
        return
    check_outputs([Path(name) for name in names or [] if name.endswith(".toml")], [file])
    results = reproduce(*names or (), data=data, quick=quick, progress=note, on_result=show_reproduction)
    if file is not None:
        write_atomic(file, [dumps(results_record(results), indent=1)])
    show_counts(results)
    if not all(result.ok for result in results):
        raise typer.Exit(1)


def _download_from(table: Path | None, *, download: bool) -> bool | Path:
    """The parameter `download` of the library."""
    from rag.base.errors import UsageError

    if table is not None and not download:
        raise UsageError("--table is the table of --download; give both")
    return table or True if download else False
