"""Reports of benchmark runs: `report.json`, `report.html`, figures and tables, from run folders and nothing else."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from autoais.base.errors import UserError
from autoais.base.io.jsonl import dumps, round_floats, write_atomic
from rag.bench.report.page import page
from rag.bench.report.summary import figure_files, summary
from rag.bench.report.tables import table
from rag.bench.results import Run, group_systems, read_run


@dataclass(frozen=True, slots=True)
class Report:
    """A written report: its page, and the licences of the data of its runs (empty if unknown)."""

    page: Path
    licences: tuple[str, ...]


def write_report(
    *runs: str | Path,
    output_folder: str | Path | None = None,
    passages: bool = True,
    allow_different: bool = False,
    by: str | None = None,
) -> Report:
    """Write the report of run folders.

    `output_folder` (default: `report` in the run folder) receives report.html, report.json and figures/*.svg and *.png.
    Without `passages` the texts of passages are left out. Runs of other benchmarks, rules, questions, passages or
    judges raise `UserError`, unless `allow_different`, which gives each its own tables. `by` is the metric that the
    leaderboard is sorted by (default: right and attributed, or AutoAIS if the benchmark has no rule for right answers);
    one that a benchmark does not have raises `UserError`. The same runs give the same bytes.
    """
    opened_runs = _read(runs)
    if output_folder is None and len(opened_runs) > 1:
        raise UserError("name a folder for the report of several runs (--out FOLDER)")
    folder = opened_runs[0].folder / "report" if output_folder is None else Path(output_folder)
    groups = group_systems(opened_runs, allow_different=allow_different)
    report, figure_lists = summary(opened_runs, groups, passages=passages, by=by)
    images = [[(figure, figure.svg(), figure.svg(dark=True)) for figure in figure_list] for figure_list in figure_lists]
    for number, image_list in enumerate(images):
        for figure, light, _ in image_list:
            svg, png = figure_files(figure, number)
            write_atomic(folder / svg, [light.removesuffix("\n")])
            write_atomic(folder / png, figure.png())
    write_atomic(folder / "report.json", [dumps(round_floats(report), indent=1)])
    write_atomic(folder / "report.html", [page(report, groups, images, passages=passages).removesuffix("\n")])
    return Report(folder / "report.html", tuple(report["licences"]))


def report_table(*runs: str | Path, kind: str = "md", allow_different: bool = False, by: str | None = None) -> str:
    """Return the leaderboard of run folders with the headline metrics as a table, `md` or `latex`.

    `by` is as in `write_report`. Raises `UserError` for another kind of table.
    """
    if kind not in ("md", "latex"):
        raise UserError(f"no table format {kind!r}; there are: md, latex")
    opened_runs = _read(runs)
    groups = group_systems(opened_runs, allow_different=allow_different)
    report, _ = summary(opened_runs, groups, passages=False, by=by)
    return table(report, kind)


def report_schema() -> dict[str, Any]:
    """Return the JSON Schema of report.json (draft 2020-12)."""
    schema: dict[str, Any] = json.loads(files("rag.bench.report").joinpath("report.schema.json").read_text("utf-8"))
    return schema


def _read(runs: Sequence[str | Path]) -> list[Run]:
    if not runs:
        raise UserError("name at least one run folder")
    return [read_run(run) for run in runs]
