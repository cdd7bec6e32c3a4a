"""`report.json`: the metrics, comparisons and figures of run folders, as `report.schema.json` describes it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from autoais.base.io.provenance import versions
from rag.bench.compare import compare_group
from rag.bench.plots import Figure
from rag.bench.predictions import DID_NOT_FIT
from rag.bench.questions import without_gold
from rag.bench.report.figures import figures
from rag.bench.results import Group, Run

VERSION = 1
_KEPT = ("system", "ways", "metrics", "latency", "tokens", "money", "human", "same_judge", "notes")


def summary(
    runs: Sequence[Run], groups: Sequence[Group], *, passages: bool
) -> tuple[dict[str, Any], list[list[Figure]]]:
    """Return `report.json` and the figures of each group; neither holds texts of questions, answers or passages."""
    records, drawn = [], []
    for number, group in enumerate(groups):
        found = compare_group(group)
        found["differences"] = [{"id": one["id"], "ways": one["ways"]} for one in found["differences"]]
        listed = figures(group, found["pareto"])
        drawn.append(listed)
        records.append(
            {
                "name": group.name,
                "benchmark": group.benchmark,
                "version": group.version,
                "judge": group.judge,
                "closed_pool": group.closed_pool,
                "n": len(group.systems[0].items),
                "without_gold": without_gold((item.answerable, item.gold) for item in group.systems[0].items),
                "systems": [
                    {"label": one.label}
                    | {key: one.metrics.get(key) for key in _KEPT}
                    | {"predictions": _counts(one.metrics.get("predictions"))}
                    for one in group.systems
                ],
                "comparison": found,
                "figures": [
                    {"title": one.title, "text": one.text, "files": figure_files(one, number), "data": one.data}
                    for one in listed
                ],
            }
        )
    return {
        "report_version": VERSION,
        "passage_texts": passages,
        "licences": sorted({run.licence for run in runs if run.licence}),
        "groups": records,
        "provenance": {"runs": [_run(run) for run in runs], "versions": versions()},
    }, drawn


def figure_files(figure: Figure, group: int) -> list[str]:
    """Return the paths of a figure below the folder of the report; those of a second group start with `2-`."""
    prefix = f"{group + 1}-" if group else ""
    return [f"figures/{prefix}{figure.name}.{kind}" for kind in ("svg", "png")]


def _counts(told: Mapping[str, Any] | None) -> dict[str, int] | None:
    """How much of a file of answers did not fit the benchmark, without the examples, which are texts."""
    return None if told is None else {name: told[name]["count"] for name in DID_NOT_FIT if name in told}


def _run(run: Run) -> Mapping[str, Any]:
    told = {key: run.manifest.get(key) for key in ("command", "date")}
    return {
        "folder": run.folder.resolve().name,
        "benchmark": run.benchmark,
        "version": run.version,
        **{key: value if isinstance(value, str) else None for key, value in told.items()},
        "right": right if isinstance(right := run.manifest["benchmark"].get("right"), str) else None,
        "data": dict(sorted(_data(run.manifest.get("data")))),
        "versions": _texts(run.manifest.get("versions")),
        "inputs": run.inputs(),
    }


def _data(told: object) -> Iterator[tuple[str, str]]:
    """The checksum of each file of the benchmark that a run.json names, as far as it is known."""
    if isinstance(told, Mapping):
        one = _texts(told)
        if "sha256" in one and (name := one.get("file") or one.get("path")):
            yield name, one["sha256"]
        for inner in told.values():
            yield from _data(inner)


def _texts(told: object) -> dict[str, str]:
    return {str(key): one for key, one in told.items() if isinstance(one, str)} if isinstance(told, Mapping) else {}
