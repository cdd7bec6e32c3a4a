"""`rag bench report` and `rag bench compare`: parse, call, print."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

RunsArgument = Annotated[list[Path], typer.Argument(metavar="RUN...", help="Run folders of `rag bench run`.")]
DifferentOption = Annotated[
    bool,
    typer.Option(
        "--allow-different", help="Show runs with another benchmark, questions or judge in tables of their own."
    ),
]


def report(
    runs: RunsArgument,
    out: Annotated[Path | None, typer.Option(help="Folder of the report (default: RUN/report).")] = None,
    kind: Annotated[
        str, typer.Option("--format", help="html (with report.json and figures), or print a table: md, latex.")
    ] = "html",
    passages: Annotated[
        bool, typer.Option("--passages/--no-passages", help="Include the texts of passages; mind their licence.")
    ] = True,
    allow_different: DifferentOption = False,
) -> None:
    """Write a report of runs: report.html, report.json and figures. Nothing is run again."""
    from rag.bench.report import report_table, write_report
    from rag.terminal import note

    if kind != "html":
        typer.echo(report_table(*runs, kind=kind, allow_different=allow_different), nl=False)
        return
    written = write_report(*runs, out=out, passages=passages, allow_different=allow_different)
    if passages:
        licence = ", ".join(written.licences) or "not stated by the benchmark"
        note(f"warning: the page holds passages of others (licence: {licence}); --no-passages leaves their texts out")
    note(str(written.page))


def compare(
    runs: RunsArgument,
    out: Annotated[Path | None, typer.Option(help="Write the comparison, with all differing answers, as JSON.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    allow_different: DifferentOption = False,
) -> None:
    """Compare all systems of runs question by question: differences, tests, letters instead of ranks."""
    from autoais.io.jsonl import check_outputs, dumps, round_floats, write_atomic
    from rag.bench.compare import compare_runs

    check_outputs([], [out])
    result = round_floats(compare_runs(*runs, allow_different=allow_different))
    if out is not None:
        write_atomic(out, [dumps(result, indent=1)])
    if as_json:
        typer.echo(dumps(result, indent=2))
        return
    for group in result["groups"]:
        _show(group)


def _show(group: Mapping[str, Any]) -> None:
    from rich.table import Table

    from autoais.terminal import clean, new_console

    console = new_console()
    console.print(clean(group["name"]))
    systems = list(group["systems"])
    table = Table("metric", *map(clean, systems), "n", "shows from", box=None, pad_edge=False)
    for column in table.columns[1:]:
        column.justify = "right"
    for name, metric in group["metrics"].items():
        smallest = [pair["smallest_difference"] for pair in metric["pairs"] if pair["smallest_difference"]]
        cells = [
            f"{metric['values'][one]:.3f} {metric['letters'][one]}" if one in metric["values"] else ""
            for one in systems
        ]
        table.add_row(clean(name), *cells, f"{metric['n']:,}", f"{max(smallest):.3f}" if smallest else "")
    console.print(table)
    level, power = f"{group['level']:.0%}", f"{group['power']:.0%}"
    console.print(
        f"Systems with a common letter cannot be told apart ({level}, Holm's correction over the pairs of a metric). "
        f"`shows from`: the smallest difference that these questions show with {power} power."
    )
    for pair in group["metrics"]["right_attributed"]["pairs"]:
        low, high = pair["interval95"]
        p = "no difference" if pair["p"] is None else f"p {pair['p']:.4f}, with Holm's correction {pair['p_holm']:.4f}"
        console.print(
            f"right and attributed: {clean(pair['a'])} - {clean(pair['b'])} = {pair['value']:+.3f} "
            f"[{low:+.3f}, {high:+.3f}], {pair['better']} wins, {pair['worse']} losses, {p}"
        )
    for name, one in group["correlation"].items():
        if one["kendall_tau_b"] is not None:
            console.print(f"order of the systems by {name}: Kendall's tau-b {one['kendall_tau_b']:.2f}")
