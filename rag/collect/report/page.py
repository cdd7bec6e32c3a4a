"""`report.html` of a collection: one file without a network or scripts; what comes from answers is escaped."""

import base64
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from typing import Any

from rag.bench.report.figures import Figure
from rag.bench.report.page import all_visible, csp_hash
from rag.collect.statistics import TABLE2, TABLE3, labelled_by
from rag.errors import missing_extra

_AGREEMENT = {
    "macro_f1": "macro-F1",
    "macro_f1_floor": "macro-F1, undecided as no",
    "balanced_accuracy": "balanced accuracy",
    "cohen_kappa": "Cohen's kappa",
    "roc_auc": "ROC-AUC",
    "calibration_error": "calibration error",
}


def page(report: Mapping[str, Any], drawn: Sequence[tuple[Figure, str, str]]) -> str:
    """Return the HTML; `drawn` has each figure with its SVG for light and dark. Raises `RagError` without Jinja2."""
    try:
        from jinja2 import Environment, StrictUndefined
    except ImportError as error:
        raise missing_extra("a report", "report") from error
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, keep_trailing_newline=True)
    style = files("rag.bench.report").joinpath("page.css").read_text("utf-8")
    template = files("rag.collect.report").joinpath("page.html.j2").read_text("utf-8")
    view = all_visible(
        {
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
            "figures": [
                {
                    "title": one.title,
                    "text": one.text,
                    "light": base64.b64encode(light.encode()).decode(),
                    "dark": base64.b64encode(dark.encode()).decode(),
                    "height": round(100 * one.height),
                }
                for one, light, dark in drawn
            ],
            "made": list(_made(report)),
            "labelled_by": labelled_by(report["labelled_by"]),
            "simulated": report["labelled_by"]["simulated"],
        }
    )
    return environment.from_string(template).render(**view, style=style, style_hash=csp_hash(style))


def _number(value: float | int | None) -> str:
    return "–" if value is None else f"{value:,}" if isinstance(value, int) else f"{value:.2f}"


def _table3(parts: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for part, table in parts.items():
        for key, name in TABLE3.items():
            if key in table:
                one = table[key]
                yield {
                    "part": part,
                    "name": name,
                    "cells": [f"{one[column]:,}" for column in ("total", "yes", "no")],
                    "share": f"{100 * one['share']:.1f} %",
                    "range": _range(one["interval95"]),
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
        {"value": "–" if one["value"] is None else f"{100 * one['value']:.1f} %", "range": _range(one["interval95"])}
        for one in (sides["people"], sides["judge"])
    ]
    return {"name": name, "n": f"{sides['people']['n']:,}", "cells": cells}


def _ends(found: Mapping[str, Any], key: str) -> str:
    ends = found["interval95"].get(key)
    return f"[{ends[0]:.3f}, {ends[1]:.3f}]" if ends else ""


def _range(ends: Sequence[float] | None) -> str:
    return f"[{100 * ends[0]:.1f}, {100 * ends[1]:.1f}]" if ends else ""


def _made(report: Mapping[str, Any]) -> Iterator[str]:
    made = report["provenance"]
    yield f"command: {made['command']}"
    for role, one in made["inputs"].items():
        yield f"{role}: {one['file']}, SHA-256 {one['sha256']}"
    yield f"similarity: {report['similarity']}"
    yield from (f"{count:,} {what}" for what, count in report["notes"].items())
    yield "versions: " + ", ".join(f"{name} {value}" for name, value in made["versions"].items())
