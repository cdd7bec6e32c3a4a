"""`report.html` of a collection: one file without a network or scripts; what comes from answers is escaped."""

from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from typing import Any

from rag.bench.collections.statistics import TABLE2, TABLE3, describe_labellers
from rag.bench.html import Image, figure_views, percent_range, render

_AGREEMENT = {
    "macro_f1": "macro-F1",
    "macro_f1_floor": "macro-F1, undecided as no",
    "balanced_accuracy": "balanced accuracy",
    "cohen_kappa": "Cohen's kappa",
    "roc_auc": "ROC-AUC",
    "calibration_error": "calibration error",
}


def page(report: Mapping[str, Any], images: Sequence[Image]) -> str:
    """Return the HTML; `images` has each figure with its SVG for light and dark. Raises `RagError` without Jinja2."""
    template = files("rag.bench.collections.report").joinpath("page.html.j2").read_text("utf-8")
    view = {
        "title": report["name"],
        "parts": list(report["table2"]),
        "table2": [
            {"name": name, "cells": [_number(part[key]) for part in report["table2"].values()]}
            for key, name in TABLE2.items()
        ],
        "table3": list(_table3(report["table3"])),
        "support": list(_support(report["table3"])),
        "systems": [{"name": name, "count": f"{count:,}"} for name, count in report["systems"].items()],
        "agreement": _agreement(report["autoais"]),
        "figures": figure_views(images),
        "made": list(_history(report)),
        "labelled_by": describe_labellers(report["labelled_by"]),
        "simulated": report["labelled_by"]["simulated"],
    }
    return render(template, view)


def _number(value: float | int | None) -> str:
    return "–" if value is None else f"{value:,}" if isinstance(value, int) else f"{value:.2f}"


def _table3(parts: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for part, table in parts.items():
        for key, name in TABLE3.items():
            if key in table:
                counts = table[key]
                yield {
                    "part": part,
                    "name": name,
                    "cells": [f"{counts[column]:,}" for column in ("total", "yes", "no")],
                    "share": f"{100 * counts['share']:.1f} %",
                    "range": percent_range(counts["interval95"]),
                }


def _support(parts: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for part, table in parts.items():
        if "support" in table:
            total = sum(table["support"].values())
            cells = [f"{count:,} ({100 * count / total:.1f} %)" for count in table["support"].values()]
            yield {"part": part, "total": f"{total:,}", "cells": cells}


def _agreement(agreement: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if agreement is None:
        return None
    rows = [
        {
            "name": name,
            "value": "–" if agreement[key] is None else f"{agreement[key]:.3f}",
            "range": _ends(agreement, key),
        }
        for key, name in _AGREEMENT.items()
    ]
    return {
        "judge": agreement["judge"],
        "n": f"{agreement['n']:,}",
        "undecided": f"{agreement['undecided']:,}",
        "shares": [_shares("all", agreement["attributable_by"]["all"])]
        + [_shares(name, sides) for name, sides in agreement["attributable_by"]["systems"].items()],
        "rows": rows,
    }


def _shares(name: str, sides: Mapping[str, Any]) -> dict[str, Any]:
    cells = [
        {
            "value": "–" if rate["value"] is None else f"{100 * rate['value']:.1f} %",
            "range": percent_range(rate["interval95"]),
        }
        for rate in (sides["people"], sides["judge"])
    ]
    return {"name": name, "n": f"{sides['people']['n']:,}", "cells": cells}


def _ends(agreement: Mapping[str, Any], key: str) -> str:
    ends = agreement["interval95"].get(key)
    return f"[{ends[0]:.3f}, {ends[1]:.3f}]" if ends else ""


def _history(report: Mapping[str, Any]) -> Iterator[str]:
    provenance = report["provenance"]
    yield f"command: {provenance['command']}"
    for role, source in provenance["inputs"].items():
        yield f"{role}: {source['file']}, SHA-256 {source['sha256']}"
    yield f"similarity: {report['similarity']}"
    yield from (f"{count:,} {subject}" for subject, count in report["notes"].items())
    yield "versions: " + ", ".join(f"{name} {value}" for name, value in provenance["versions"].items())
