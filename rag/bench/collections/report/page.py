"""`report.html` of a collection: one file without a network or scripts; what comes from answers is escaped."""

from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from typing import Any

from rag.bench.collections.statistics import TABLE2, TABLE3, labelled_by
from rag.bench.html import Image, percent_range, rendered, shown_figures

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
        "figures": shown_figures(images),
        "made": list(_made(report)),
        "labelled_by": labelled_by(report["labelled_by"]),
        "simulated": report["labelled_by"]["simulated"],
    }
    return rendered(template, view)


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


def _agreement(found: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if found is None:
        return None
    rows = [
        {"name": name, "value": "–" if found[key] is None else f"{found[key]:.3f}", "range": _ends(found, key)}
        for key, name in _AGREEMENT.items()
    ]
    return {
        "judge": found["judge"],
        "n": f"{found['n']:,}",
        "undecided": f"{found['undecided']:,}",
        "shares": [_shares("all", found["attributable_by"]["all"])]
        + [_shares(name, one) for name, one in found["attributable_by"]["systems"].items()],
        "rows": rows,
    }


def _shares(name: str, sides: Mapping[str, Any]) -> dict[str, Any]:
    cells = [
        {
            "value": "–" if one["value"] is None else f"{100 * one['value']:.1f} %",
            "range": percent_range(one["interval95"]),
        }
        for one in (sides["people"], sides["judge"])
    ]
    return {"name": name, "n": f"{sides['people']['n']:,}", "cells": cells}


def _ends(found: Mapping[str, Any], key: str) -> str:
    ends = found["interval95"].get(key)
    return f"[{ends[0]:.3f}, {ends[1]:.3f}]" if ends else ""


def _made(report: Mapping[str, Any]) -> Iterator[str]:
    made = report["provenance"]
    yield f"command: {made['command']}"
    for role, one in made["inputs"].items():
        yield f"{role}: {one['file']}, SHA-256 {one['sha256']}"
    yield f"similarity: {report['similarity']}"
    yield from (f"{count:,} {what}" for what, count in report["notes"].items())
    yield "versions: " + ", ".join(f"{name} {value}" for name, value in made["versions"].items())
