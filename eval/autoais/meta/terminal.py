"""Terminal output of `autoais meta` and `autoais calibrate`."""

import textwrap
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from autoais.terminal import clean

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_BLOCKS = "▁▂▃▄▅▆▇█"
_LONGEST = 300  # characters shown of a claim or its evidence


def show_meta(console: "Console", result: dict[str, Any]) -> None:
    """Print the figures of each data set, then reliability, systems, three-way figures and worst disagreements."""
    _line(console, f"judge {result['judge']}")
    console.print(_figures(result))
    for name, one in result["sets"].items():
        if one["with_probability"] < one["n"]:
            _line(console, f"{name}: {one['with_probability']} of {one['n']} verdicts have a probability")
    if any(one["reliability"] for one in result["sets"].values()):
        console.print()
        _line(console, "reliability: share of claims labelled attributable, by the judge's probability")
        console.print(_reliability(result["sets"], _BLOCKS if not console.options.ascii_only else " " * len(_BLOCKS)))
    for name, one in result["sets"].items():
        if one["systems"] is not None:
            _show_systems(console, name, one["systems"])
        for key, what in (("three_way", "three-way"), ("levels", "levels of support")):
            if one[key] is not None:
                _show_three_way(console, f"{name}: {what}", one[key])
    if any(one["worst"] for one in result["sets"].values()):
        console.print()
        _line(console, "worst disagreements")
    for name, one in result["sets"].items():
        for item in one["worst"]:
            _show_disagreement(console, name, item)


def _figures(result: dict[str, Any]) -> "Table":
    table = _table(
        "data set", "n", "undecided", "macro-F1", "95 %", "ROC-AUC", "95 %", "bal. acc.", "kappa", "ECE", "F1 floor"
    )
    for name, one in [*result["sets"].items(), ("average", result["average"])]:
        ends = one["interval95"]
        cells = [str(one.get("n", "")), str(one.get("undecided", ""))]
        for key in ("macro_f1", "roc_auc"):
            cells += [_number(one[key]), _interval(ends[key])]
        cells += [_number(one[key]) for key in ("balanced_accuracy", "cohen_kappa", "calibration_error")]
        _row(table, name, *cells, _number(one["macro_f1_floor"]))
    return table


def _reliability(sets: dict[str, dict[str, Any]], blocks: str) -> "Table":
    table = _table("probability", *(f".{b}-{f'.{b + 1}' if b < 9 else '1'}" for b in range(10)))
    for name, one in sets.items():
        bins = {item["bin"]: item for item in one["reliability"] or []}
        if not bins:
            continue
        shares = [_share(bins[b]["attributable"], blocks) if b in bins else "" for b in range(10)]
        _row(table, name, *shares)
        _row(table, "  n", *(str(bins[b]["n"]) if b in bins else "" for b in range(10)))
    return table


def _share(share: float, blocks: str) -> str:
    return f"{blocks[min(int(share * len(blocks)), len(blocks) - 1)]} {share:.2f}"


def _show_systems(console: "Console", name: str, systems: dict[str, Any]) -> None:
    console.print()
    _line(console, f"{name}: {systems['n']} systems by their share of attributable claims")
    table = _table("system", "n", "undecided", "human", "judge")
    for one in systems["systems"]:
        _row(table, one["system"], str(one["n"]), str(one["undecided"]), _number(one["human"]), _number(one["judge"]))
    console.print(table)
    for key, called in (("kendall_tau_b", "Kendall tau-b"), ("spearman", "Spearman"), ("pearson", "Pearson")):
        figure = systems[key]
        why = figure.get("reason") or figure.get("interval95_reason", "")
        _line(console, f"{called} {_number(figure['value'])} {_interval(figure['interval95'])}{why}")


def _show_three_way(console: "Console", name: str, figures: dict[str, Any]) -> None:
    console.print()
    without = f", {figures['two_way']} not attributable without a subclass" if "two_way" in figures else ""
    _line(
        console,
        f"{name}, n {figures['n']}, {figures['undecided']} undecided{without}; "
        f"micro-F1 {_number(figures['overall']['value'])} {_interval(figures['overall']['interval95'])}, "
        f"macro-F1 {_number(figures['macro']['value'])} {_interval(figures['macro']['interval95'])}",
    )
    table = _table("human label", "precision", "recall", "F1", *(f"judge: {label}" for label in figures["classes"]))
    for label, counts in zip(figures["classes"], figures["confusion"], strict=True):
        values = [_number(figures["per_class"][label][key]["value"]) for key in ("precision", "recall", "f1")]
        _row(table, label, *values, *map(str, counts))
    console.print(table)


def _show_disagreement(console: "Console", name: str, item: dict[str, Any]) -> None:
    human = "attributable" if item["attributable"] else "not attributable"
    probability = "" if item["probability"] is None else f" ({item['probability']:.3f})"
    _line(console, f"{name} {item['id']}: human label {human}, judge {item['verdict']}{probability}")
    for what in ("question", "claim", "evidence"):
        if what != "question" or item[what].strip():
            _line(console, f"  {what}: {textwrap.shorten(item[what], _LONGEST, placeholder=' ...') or '(none)'}")


def show_calibration(console: "Console", result: dict[str, Any]) -> None:
    """Print the calibration, and each data set's cross-validated figures without and with it."""
    left = ", ".join(f"{count} {why.replace('_', ' ')}" for why, count in result["left_out"].items() if count)
    _line(console, f"judge {result['judge']}, {result['n']} labels{f', left out: {left}' if left else ''}")
    _line(
        console,
        f"attributable if p >= {result['threshold']:g}; calibrated probability = "
        f"logistic({result['slope']:g} * logit(p) {result['intercept']:+g}); new name {result['name']}",
    )
    cross = result["cross_validation"]
    by = result["by"]
    called = {"macro_f1": "macro-F1", "balanced_accuracy": "bal. acc."}[by]
    _line(console, f"in {cross['folds']}-fold cross-validation (claims of a question share a fold):")
    table = _table("data set", "n", f"{called}: default", "calibrated", "gain", "ECE: default", "calibrated")
    for name, one in [*cross["sets"].items(), ("average", cross["average"])]:
        before, after = one["default"], one["calibrated"]
        gain = "-" if one["gain"] is None else f"{one['gain']:+.3f}"
        errors = (_number(before["calibration_error"]), _number(after["calibration_error"]))
        _row(table, name, str(one.get("n", "")), _number(before[by]), _number(after[by]), gain, *errors)
    console.print(table)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _interval(ends: Iterable[float] | None) -> str:
    return "" if ends is None else "[" + ", ".join(f"{end:.3f}" for end in ends) + "]"


def _table(first: str, *others: str) -> "Table":
    from rich.table import Table

    table = Table(first, *others, box=None, pad_edge=False)
    table.columns[0].overflow = "fold"  # a name is never cut
    for column in table.columns[1:]:
        column.justify = "right"
        column.no_wrap = True
    return table


def _row(table: "Table", name: str, *cells: str) -> None:
    from rich.text import Text

    table.add_row(Text(clean(name)), *cells)


def _line(console: "Console", text: str) -> None:
    console.print(clean(text), markup=False, soft_wrap=True)
