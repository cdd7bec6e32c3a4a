"""`report.json`: the metrics, comparisons and figures of run folders, as `report.schema.json` describes it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from autoais.base.io.provenance import versions
from rag.bench.compare import compare_group
from rag.bench.plots import Figure
from rag.bench.predictions import DID_NOT_FIT
from rag.bench.questions import without_gold
from rag.bench.report.figures import figures
from rag.bench.report.leaderboard import leaderboard
from rag.bench.report.published import read_published_tables
from rag.bench.results import Group, Run

VERSION = 1
_COPIED_KEYS = ("system", "ways", "metrics", "latency", "tokens", "money", "human", "same_judge", "notes")


def summary(
    runs: Sequence[Run], groups: Sequence[Group], *, passages: bool, by: str | None = None
) -> tuple[dict[str, Any], list[list[Figure]]]:
    """Return `report.json` and the figures of each group; neither holds texts of questions, answers or passages.

    `by` is the metric that the leaderboards are sorted by. Raises `UserError` if a group has no value of it.
    """
    records, figure_lists = [], []
    for number, group in enumerate(groups):
        comparison = compare_group(group)
        comparison["differences"] = [
            {"id": difference["id"], "ways": difference["ways"]} for difference in comparison["differences"]
        ]
        group_figures = figures(group, comparison["pareto"])
        figure_lists.append(group_figures)
        n = len(group.systems[0].items)
        systems = [
            {"label": system.label}
            | {key: system.metrics.get(key) for key in _COPIED_KEYS}
            | {"predictions": _counts(system.metrics.get("predictions"))}
            for system in group.systems
        ]
        records.append(
            {
                "name": group.name,
                "benchmark": group.benchmark,
                "version": group.version,
                "judge": group.judge,
                "closed_pool": group.closed_pool,
                "sample": group.sample,
                "n": n,
                "without_gold": without_gold((item.answerable, item.gold) for item in group.systems[0].items),
                "systems": systems,
                "leaderboard": leaderboard(systems, comparison, n, by),
                "published": [
                    table.record() for table in read_published_tables() if group.benchmark in table.benchmarks
                ],
                "comparison": comparison,
                "figures": [
                    {
                        "title": figure.title,
                        "text": figure.text,
                        "files": figure_files(figure, number),
                        "data": figure.data,
                    }
                    for figure in group_figures
                ],
            }
        )
    return {
        "report_version": VERSION,
        "passage_texts": passages,
        "licences": sorted({run.licence for run in runs if run.licence}),
        "groups": records,
        "provenance": {"runs": [_run(run) for run in runs], "versions": versions()},
    }, figure_lists


def figure_files(figure: Figure, group: int) -> list[str]:
    """Return the paths of a figure below the folder of the report; those of a second group start with `2-`."""
    prefix = f"{group + 1}-" if group else ""
    return [f"figures/{prefix}{figure.name}.{kind}" for kind in ("svg", "png")]


def _counts(record: Mapping[str, Any] | None) -> dict[str, int] | None:
    """How much of a file of answers did not fit the benchmark, without the examples, which are texts."""
    return None if record is None else {name: record[name]["count"] for name in DID_NOT_FIT if name in record}


def _run(run: Run) -> Mapping[str, Any]:
    facts = {key: run.manifest.get(key) for key in ("command", "date")}
    return {
        "folder": run.folder.resolve().name,
        "benchmark": run.benchmark,
        "version": run.version,
        **{key: value if isinstance(value, str) else None for key, value in facts.items()},
        "right": right if isinstance(right := run.manifest["benchmark"].get("right"), str) else None,
        "data": dict(sorted(_data(run.manifest.get("data")))),
        "versions": _texts(run.manifest.get("versions")),
        "inputs": run.inputs(),
    }


def _data(value: object) -> Iterator[tuple[str, str]]:
    """The checksum of each file of the benchmark that a run.json names, as far as it is known."""
    if isinstance(value, Mapping):
        texts = _texts(value)
        if "sha256" in texts and (name := texts.get("file") or texts.get("path")):
            yield name, texts["sha256"]
        for inner in value.values():
            yield from _data(inner)


def _texts(value: object) -> dict[str, str]:
    return (
        {str(key): text for key, text in value.items() if isinstance(text, str)} if isinstance(value, Mapping) else {}
    )
