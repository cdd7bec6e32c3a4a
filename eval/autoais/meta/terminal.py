"""Terminal output of `autoais evaluate-judge`, `autoais calibrate` and `autoais agreement`."""

import textwrap
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from autoais.base.terminal import clean, format_count
from autoais.meta.agreement import UNANIMOUS
from autoais.meta.calibrate import describe_left_out
from autoais.meta.evaluate import NO_LEVELS, TWO_WAY

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_BLOCKS = "▁▂▃▄▅▆▇█"
_NO_SUCH_LABELS = (TWO_WAY, NO_LEVELS)  # reasons of figures that nobody misses
_LONGEST = 300  # characters shown of a claim or its evidence


def show_judge_evaluation(console: "Console", result: dict[str, Any]) -> None:
    """Print the figures of each data set, then reliability, systems, three-way figures and worst disagreements."""
    _line(console, f"judge {result['judge']}")
    console.print(_figures(result))
    _say_one_class(console, result["sets"], "macro-F1")
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
            elif (why := one["reasons"][key]) not in _NO_SUCH_LABELS:
                _line(console, f"{name}: {what} not compared: {why}")
    if any(one["worst"] for one in result["sets"].values()):
        console.print()
        _line(console, "worst disagreements")
    for name, one in result["sets"].items():
        for item in one["worst"]:
            _show_disagreement(console, name, item)


def _say_one_class(console: "Console", sets: dict[str, dict[str, Any]], figure: str) -> None:
    names = [name for name, one in sets.items() if one["one_class"]]
    if names:
        _line(console, f"labels all the same, so {figure} says little and is not in the average: {', '.join(names)}")


def _figures(result: dict[str, Any]) -> "Table":
    figures = ("macro-F1", "95 %", "ROC-AUC", "95 %", "bal. acc.", "FPR", "FNR", "kappa", "ECE", "F1 floor")
    table = _table("data set", "n", "undecided", *figures)
    for name, one in [*result["sets"].items(), ("average", result["average"])]:
        ends = one["interval95"]
        cells = [str(one.get("n", "")), str(one.get("undecided", ""))]
        for key in ("macro_f1", "roc_auc"):
            cells += [_number(one[key]), _interval(ends[key])]
        others = ("balanced_accuracy", "false_positive_rate", "false_negative_rate", "cohen_kappa", "calibration_error")
        cells += [_number(one[key]) for key in others]
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
    left = describe_left_out(result["left_out"])
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
    table = _table(
        "data set", "n", "questions", f"{called}: default", "calibrated", "gain", "95 %", "ECE: default", "calibrated"
    )
    for name, one in [*cross["sets"].items(), ("average", cross["average"])]:
        before, after = one["default"], one["calibrated"]
        counts = (str(one.get("n", "")), str(one.get("questions", "")))
        gain = ("-", "") if one["gain"] is None else (f"{one['gain']:+.3f}", _interval(one["interval95"]["gain"]))
        errors = (_number(before["calibration_error"]), _number(after["calibration_error"]))
        _row(table, name, *counts, _number(before[by]), _number(after[by]), *gain, *errors)
    console.print(table)
    _say_one_class(console, cross["sets"], called)
    gained, ends = cross["average"]["gain"], cross["average"]["interval95"]["gain"]
    if gained is not None and ends is not None and ends[0] <= 0:
        why = "no gain" if gained <= 0 else "the interval of the gain holds 0"
        _line(console, f"{why}: keep the judge as it is")


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


# --- agreement -------------------------------------------------------------------------------------------------------

_COEFFICIENTS = {
    "krippendorff_alpha": "alpha",
    "krippendorff_alpha_ordinal": "alpha, ordinal",
    "pairwise_agreement": "pairwise agreement",
    "f1_to_majority": "F1 to majority",
    "cohen_kappa": "Cohen's kappa",
    "fleiss_kappa": "Fleiss' kappa",
}


def show_agreement(console: "Console", result: dict[str, Any]) -> None:
    """Print the report of `autoais agreement`."""
    if "simulated" in result:
        _line(console, f"SIMULATION: ratings of {len(result['simulated'])} simulated annotators")
    ratings, items, people = (result[name] for name in ("ratings", "items", "annotators"))
    given = (
        f"{format_count(ratings, 'ratings')} of {format_count(items, 'items')} by {format_count(people, 'annotators')}"
    )
    _line(console, f"{given}; intervals are over {result['units']}")
    for name, one in result["questions"].items():
        _show_question(console, name, one)
    for system, questions in result.get("systems", {}).items():
        for name, one in questions.items():
            _show_question(console, f"{system or '(no system)'}: {name}", one)
    if result["ais"]:
        _show_rates(console, result["ais"])
    if result["flags"]:
        _line(console, f"flags: {', '.join(f'{count} {why}' for why, count in result['flags'].items())}")
    _show_times(console, result["time"])
    _show_people(console, result["people"])
    if "gold" in result:
        gold = result["gold"]
        known = f"{_percent(gold)} right of {gold['n']}" if gold["n"] else "not compared; name their file with --gold"
        unknown = f" ({gold['undecided']} without an expected value)" if gold["n"] and gold["undecided"] else ""
        _line(console, f"ratings of gold items: {known}{unknown}")
    if result["audits"] is not None:
        _line(console, f"audits: {_audit(result['audits'])}")
    if "batches" in result:
        _show_batches(console, result["batches"])
    for name, one in result.get("experts", {}).items():
        _show_experts(console, name, one)
    for name, one in result.get("variant", {}).items():
        _show_variant(console, name, one)


def _show_question(console: "Console", name: str, one: dict[str, Any]) -> None:
    console.print()
    sizes = ", ".join(f"{format_count(times, 'items')} with {n}" for n, times in one["ratings_per_item"].items())
    _line(
        console,
        f"{name}: {format_count(one['ratings'], 'ratings')} by "
        f"{format_count(one['annotators'], 'annotators')} ({sizes})",
    )
    if "not_interpretable" in one:
        _line(
            console, f"  without {format_count(one['not_interpretable'], 'items that are')} not interpretable, or tied"
        )
    if "not_worthy" in one:
        _line(console, f"  without {format_count(one['not_worthy'], 'items that are')} not worth verifying, or tied")
    if "reason" in one:
        _line(console, f"  no figures, because there are {one['reason']}")
        return
    shares = [f"{value} {_percents(rate)}" for value, rate in one["consensus"].items()]
    ties = len(one["ties"])
    left = format_count(one["items"] - ties, "items")
    if ties:
        left += f" without a tie ({format_count(ties, 'ties')})"
    if "flagged" in one:
        left += f", without {format_count(one['flagged'], 'flagged items')}"
    _line(console, f"  consensus of {left}: {'; '.join(shares) or 'none'}")
    if ties or one["adjudicated"]:
        shown = ", ".join(one["ties"][:5]) + (", ..." if ties > 5 else "")
        _line(console, f"  ties: {ties}{f' ({shown})' if shown else ''}; adjudicated: {one['adjudicated']}")
    if ties and "yes" in one["consensus"]:
        floor = 100 * one["consensus"]["yes"]["floor"]
        _line(
            console, f"  of all {format_count(one['items'], 'items')} at least {floor:.1f}% yes (a tie counted as no)"
        )
    table = _table("  coefficient", "value", "95 %", "n")
    for key, label in _COEFFICIENTS.items():
        if key in one["agreement"]:
            found = one["agreement"][key]
            if found.get("reason") == UNANIMOUS:
                continue
            n = format_count(found["n"], "pairs" if key == "cohen_kappa" else "items")
            if found["value"] is None:
                _row(table, f"  {label}", "-", found["reason"], n)
            else:
                _row(table, f"  {label}", _number(found["value"]), _interval(found["interval95"]), n)
    console.print(table)
    if "mean" in one:
        _line(console, f"  mean {_number(one['mean']['mean'])} of 1 to 5, sd {_number(one['mean']['sd'])}")


def _show_rates(console: "Console", rows: Sequence[dict[str, Any]]) -> None:
    console.print()
    table = _table("system", "items", "Flag %", "Int %", "AIS %", "95 %", "n", "ties", "AIS of unflagged %")
    for row in rows:
        rates = [row[name] for name in ("flagged", "interpretable", "ais", "ais_of_unflagged")]
        percent = ["-" if rate is None else _percent(rate) for rate in rates]
        ais = row["ais"]
        cells = [
            str(row["flagged"]["total"]) + ("" if row["unit"] in ("answers", "items") else f" {row['unit']}"),
            *percent[:3],
            _percent_ends(ais),
            str(ais["n"]),
            str(ais["undecided"]),
        ]
        _row(table, row["model"] or "(no system)", *cells, percent[3])
    console.print(table)


def _show_times(console: "Console", times: dict[str, Any]) -> None:
    if not times["tasks"]["n"]:
        return
    console.print()
    table = _table("seconds", "n", "mean", "median", "sd")
    for name, one in [*times["questions"].items(), ("a task", times["tasks"])]:
        _row(table, name, str(one["n"]), *(_seconds(one[key]) for key in ("mean", "median", "sd")))
    console.print(table)


def _show_people(console: "Console", people: Sequence[dict[str, Any]]) -> None:
    console.print()
    table = _table(
        "annotator", "items", "ratings", "flags", "as the others", "gold right", "audits right", "seconds (median)"
    )
    for one in people:
        rates = [f"{_percent(rate)} of {rate['n']}" if rate["n"] else "-" for rate in
                 (one["agrees_with_others"], one["gold"], one["audits"])]  # fmt: skip
        counts = (str(one[name]) for name in ("items", "ratings", "flags"))
        _row(table, one["annotator"], *counts, *rates, _seconds(one["time"]["tasks"]["median"]))
    console.print(table)


def _show_batches(console: "Console", batches: Sequence[dict[str, Any]]) -> None:
    console.print()
    table = _table("batch", "tasks", "seconds (mean)", "audited", "share", "quality")
    for one in batches:
        audits = one["audits"]
        checked = ["-"] * 3 if audits is None else [str(audits["audited"]), f"{audits['share']:.2f}",
                                                    f"{audits['quality']['value']:.2f}"]  # fmt: skip
        _row(table, one["file"], str(one["tasks"]), _seconds(one["seconds"]["mean"]), *checked)
    console.print(table)


def _show_experts(console: "Console", name: str, one: dict[str, Any]) -> None:
    single, same = one["single_ratings"], one["agreement"]
    console.print()
    _line(
        console,
        f"{name}, annotators beside experts: the same on {_percents(same)} "
        f"of {format_count(same['n'], 'items')} ({same['undecided']} with a tie), "
        f"alpha {_number(one['krippendorff_alpha']['value'])}, "
        f"kappa {_number(one['cohen_kappa']['value'])}, macro-F1 {_number(one['macro_f1'])}",
    )
    _line(
        console,
        f"  single ratings ({single['n']}): macro-F1 {_number(single['macro_f1'])}, pairwise agreement "
        f"{_number(single['pairwise_agreement'])}",
    )


def _show_variant(console: "Console", name: str, one: dict[str, Any]) -> None:
    console.print()
    counts = ", ".join(f"{label} {one[key]}" for key, label in (
        ("both", "both"), ("only_original", "only the original"), ("only_variant", "only the variant"),
        ("neither", "neither")))  # fmt: skip
    _line(
        console,
        f"{name}, two designs, {one['outcome']} on {format_count(one['n'], 'items')} "
        f"({one['undecided']} with a tie): {counts}",
    )
    if one["exact"] is None:
        _line(console, f"  p {_number(one['p'])}, {one['test']}: items of one question are not independent")
        return
    p = " and ".join(f"{form} {_number(one[form])}" for form in ("exact", "corrected"))
    _line(console, f"  McNemar's p: {p}; use the {one['test']} form")


def _audit(audits: dict[str, Any]) -> str:
    share = f"{audits['share']:.2f}"
    return f"{audits['audited']} of {audits['tasks']} tasks ({share}), {_percents(audits['quality'])} without an error"


def _percent(rate: dict[str, Any]) -> str:
    return "-" if rate["value"] is None else f"{100 * rate['value']:.1f}%"


def _percent_ends(rate: dict[str, Any]) -> str:
    ends = rate["interval95"]
    return "" if ends is None else f"[{100 * ends[0]:.1f}, {100 * ends[1]:.1f}]"


def _percents(rate: dict[str, Any]) -> str:
    return f"{_percent(rate)} {_percent_ends(rate)}".strip()


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"
