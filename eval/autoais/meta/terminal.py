"""Terminal output of `autoais evaluate-judge`, `autoais calibrate` and `autoais agreement`."""

import textwrap
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from autoais.base.terminal import clean, format_count, new_table
from autoais.meta.agreement import UNANIMOUS
from autoais.meta.calibrate import describe_left_out
from autoais.meta.evaluate import NO_LEVELS, TWO_WAY

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_BLOCKS = "▁▂▃▄▅▆▇█"
_NO_SUCH_LABELS = (TWO_WAY, NO_LEVELS)  # reasons of figures that nobody misses
_MAX_CHARACTERS = 300  # characters shown of a claim or its evidence


def show_judge_evaluation(console: "Console", result: dict[str, Any]) -> None:
    """Print the figures of each data set, then reliability, systems, three-way figures and worst disagreements."""
    _line(console, f"judge {result['judge']}")
    console.print(_figures(result))
    _say_one_class(console, result["sets"], "macro-F1")
    for name, record in result["sets"].items():
        if record["with_probability"] < record["n"]:
            _line(console, f"{name}: {record['with_probability']} of {record['n']} verdicts have a probability")
    if any(record["reliability"] for record in result["sets"].values()):
        console.print()
        _line(console, "reliability: share of claims labelled attributable, by the judge's probability")
        console.print(_reliability(result["sets"], _BLOCKS if not console.options.ascii_only else " " * len(_BLOCKS)))
    for name, record in result["sets"].items():
        if record["systems"] is not None:
            _show_systems(console, name, record["systems"])
        for key, heading in (("three_way", "three-way"), ("levels", "levels of support")):
            if record[key] is not None:
                _show_three_way(console, f"{name}: {heading}", record[key])
            elif (reason := record["reasons"][key]) not in _NO_SUCH_LABELS:
                _line(console, f"{name}: {heading} not compared: {reason}")
    if any(record["worst"] for record in result["sets"].values()):
        console.print()
        _line(console, "worst disagreements")
    for name, record in result["sets"].items():
        for item in record["worst"]:
            _show_disagreement(console, name, item)


def _say_one_class(console: "Console", sets: dict[str, dict[str, Any]], figure: str) -> None:
    names = [name for name, record in sets.items() if record["one_class"]]
    if names:
        _line(console, f"labels all the same, so {figure} says little and is not in the average: {', '.join(names)}")


def _figures(result: dict[str, Any]) -> "Table":
    figures = ("macro-F1", "95 %", "ROC-AUC", "95 %", "bal. acc.", "FPR", "FNR", "kappa", "ECE", "F1 floor")
    table = new_table("data set", "n", "undecided", *figures)
    for name, record in [*result["sets"].items(), ("average", result["average"])]:
        ends = record["interval95"]
        cells = [str(record.get("n", "")), str(record.get("undecided", ""))]
        for key in ("macro_f1", "roc_auc"):
            cells += [_number(record[key]), _interval(ends[key])]
        further_figures = (
            "balanced_accuracy",
            "false_positive_rate",
            "false_negative_rate",
            "cohen_kappa",
            "calibration_error",
        )
        cells += [_number(record[key]) for key in further_figures]
        table.add_row(clean(name), *cells, _number(record["macro_f1_floor"]))
    return table


def _reliability(sets: dict[str, dict[str, Any]], blocks: str) -> "Table":
    table = new_table("probability", *(f".{b}-{f'.{b + 1}' if b < 9 else '1'}" for b in range(10)))
    for name, record in sets.items():
        bins = {item["bin"]: item for item in record["reliability"] or []}
        if not bins:
            continue
        shares = [_share(bins[b]["attributable"], blocks) if b in bins else "" for b in range(10)]
        table.add_row(clean(name), *shares)
        table.add_row("  n", *(str(bins[b]["n"]) if b in bins else "" for b in range(10)))
    return table


def _share(share: float, blocks: str) -> str:
    return f"{blocks[min(int(share * len(blocks)), len(blocks) - 1)]} {share:.2f}"


def _show_systems(console: "Console", name: str, systems: dict[str, Any]) -> None:
    console.print()
    _line(console, f"{name}: {systems['n']} systems by their share of attributable claims")
    table = new_table("system", "n", "undecided", "human", "judge")
    for system in systems["systems"]:
        table.add_row(
            clean(system["system"]),
            str(system["n"]),
            str(system["undecided"]),
            _number(system["human"]),
            _number(system["judge"]),
        )
    console.print(table)
    for key, label in (("kendall_tau_b", "Kendall tau-b"), ("spearman", "Spearman"), ("pearson", "Pearson")):
        figure = systems[key]
        reason = figure.get("reason") or figure.get("interval95_reason", "")
        _line(console, f"{label} {_number(figure['value'])} {_interval(figure['interval95'])}{reason}")


def _show_three_way(console: "Console", name: str, figures: dict[str, Any]) -> None:
    console.print()
    subclass_note = f", {figures['two_way']} not attributable without a subclass" if "two_way" in figures else ""
    _line(
        console,
        f"{name}, n {figures['n']}, {figures['undecided']} undecided{subclass_note}; "
        f"micro-F1 {_number(figures['overall']['value'])} {_interval(figures['overall']['interval95'])}, "
        f"macro-F1 {_number(figures['macro']['value'])} {_interval(figures['macro']['interval95'])}",
    )
    table = new_table("human label", "precision", "recall", "F1", *(f"judge: {label}" for label in figures["classes"]))
    for label, counts in zip(figures["classes"], figures["confusion"], strict=True):
        values = [_number(figures["per_class"][label][key]["value"]) for key in ("precision", "recall", "f1")]
        table.add_row(clean(label), *values, *map(str, counts))
    console.print(table)


def _show_disagreement(console: "Console", name: str, item: dict[str, Any]) -> None:
    human = "attributable" if item["attributable"] else "not attributable"
    probability = "" if item["probability"] is None else f" ({item['probability']:.3f})"
    _line(console, f"{name} {item['id']}: human label {human}, judge {item['verdict']}{probability}")
    for part in ("question", "claim", "evidence"):
        if part != "question" or item[part].strip():
            _line(console, f"  {part}: {textwrap.shorten(item[part], _MAX_CHARACTERS, placeholder=' ...') or '(none)'}")


def show_calibration(console: "Console", result: dict[str, Any]) -> None:
    """Print the calibration, and each data set's cross-validated figures without and with it."""
    exclusions = describe_left_out(result["left_out"])
    _line(console, f"judge {result['judge']}, {result['n']} labels{f', left out: {exclusions}' if exclusions else ''}")
    _line(
        console,
        f"attributable if p >= {result['threshold']:g}; calibrated probability = "
        f"logistic({result['slope']:g} * logit(p) {result['intercept']:+g}); new name {result['name']}",
    )
    cross = result["cross_validation"]
    aim = result["by"]
    aim_label = {"macro_f1": "macro-F1", "balanced_accuracy": "bal. acc."}[aim]
    _line(console, f"in {cross['folds']}-fold cross-validation (claims of a question share a fold):")
    table = new_table(
        "data set",
        "n",
        "questions",
        f"{aim_label}: default",
        "calibrated",
        "gain",
        "95 %",
        "ECE: default",
        "calibrated",
    )
    for name, record in [*cross["sets"].items(), ("average", cross["average"])]:
        before, after = record["default"], record["calibrated"]
        counts = (str(record.get("n", "")), str(record.get("questions", "")))
        gain = (
            ("-", "") if record["gain"] is None else (f"{record['gain']:+.3f}", _interval(record["interval95"]["gain"]))
        )
        errors = (_number(before["calibration_error"]), _number(after["calibration_error"]))
        table.add_row(clean(name), *counts, _number(before[aim]), _number(after[aim]), *gain, *errors)
    console.print(table)
    _say_one_class(console, cross["sets"], aim_label)
    mean_gain, ends = cross["average"]["gain"], cross["average"]["interval95"]["gain"]
    if mean_gain is not None and ends is not None and ends[0] <= 0:
        reason = "no gain" if mean_gain <= 0 else "the interval of the gain holds 0"
        _line(console, f"{reason}: keep the judge as it is")


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _interval(ends: Iterable[float] | None) -> str:
    return "" if ends is None else "[" + ", ".join(f"{end:.3f}" for end in ends) + "]"


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
    sizes = (
        f"{format_count(ratings, 'ratings')} of {format_count(items, 'items')} by {format_count(people, 'annotators')}"
    )
    _line(console, f"{sizes}; intervals are over {result['units']}")
    for name, record in result["questions"].items():
        _show_question(console, name, record)
    for system, questions in result.get("systems", {}).items():
        for name, record in questions.items():
            _show_question(console, name, record, f"{system or '(no system)'}: {name}")
    if result["ais"]:
        _show_rates(console, result["ais"])
    if result["flags"]:
        _line(console, f"flags: {', '.join(f'{count} {reason}' for reason, count in result['flags'].items())}")
    _show_times(console, result["time"])
    _show_people(console, result["people"])
    if "gold" in result:
        gold = result["gold"]
        gold_rate = (
            f"{_percent(gold)} right of {gold['n']}" if gold["n"] else "not compared; name their file with --gold"
        )
        unknown = f" ({gold['undecided']} without an expected value)" if gold["n"] and gold["undecided"] else ""
        _line(console, f"ratings of gold items: {gold_rate}{unknown}")
    if result["audits"] is not None:
        _line(console, f"audits: {_audit(result['audits'])}")
    if "batches" in result:
        _show_batches(console, result["batches"])
    for name, record in result.get("experts", {}).items():
        _show_experts(console, name, record)
    for name, record in result.get("variant", {}).items():
        _show_variant(console, name, record)


def _show_question(console: "Console", question: str, record: dict[str, Any], title: str = "") -> None:
    console.print()
    sizes = ", ".join(f"{format_count(times, 'items')} with {n}" for n, times in record["ratings_per_item"].items())
    _line(
        console,
        f"{title or question}: {format_count(record['ratings'], 'ratings')} by "
        f"{format_count(record['annotators'], 'annotators')} ({sizes})",
    )
    if "not_interpretable" in record:
        _line(
            console,
            f"  without {format_count(record['not_interpretable'], 'items that are')} not interpretable, or tied",
        )
    if "not_worthy" in record:
        _line(console, f"  without {format_count(record['not_worthy'], 'items that are')} not worth verifying, or tied")
    if "reason" in record:
        _line(console, f"  no figures, because there are {record['reason']}")
        return
    shares = [f"{value} {_percents(rate)}" for value, rate in record["consensus"].items()]
    ties = len(record["ties"])
    items_note = format_count(record["items"] - ties, "items")
    if ties:
        items_note += f" without a tie ({format_count(ties, 'ties')})"
    if "flagged" in record:
        items_note += f", without {format_count(record['flagged'], 'flagged items')}"
    _line(console, f"  consensus of {items_note}: {'; '.join(shares) or 'none'}")
    if ties or record["adjudicated"]:
        examples = ", ".join(record["ties"][:5]) + (", ..." if ties > 5 else "")
        _line(console, f"  ties: {ties}{f' ({examples})' if examples else ''}; adjudicated: {record['adjudicated']}")
    if ties and "yes" in record["consensus"]:
        floor = 100 * record["consensus"]["yes"]["floor"]
        _line(
            console,
            f"  of all {format_count(record['items'], 'items')} at least {floor:.1f}% yes (a tie counted as no)",
        )
    table = new_table("  coefficient", "value", "95 %", "n")
    for key, label in _COEFFICIENTS.items():
        if key in record["agreement"]:
            coefficient = record["agreement"][key]
            if coefficient.get("reason") == UNANIMOUS:
                continue
            n = format_count(coefficient["n"], "pairs" if key == "cohen_kappa" else "items")
            if coefficient["value"] is None:
                table.add_row(f"  {label}", "-", coefficient["reason"], n)
            else:
                table.add_row(f"  {label}", _number(coefficient["value"]), _interval(coefficient["interval95"]), n)
    console.print(table)
    if "mean" in record:
        scale = " of 1 to 5" if question == "attributable" else ""  # the ratings do not say the scale of a study's own
        _line(console, f"  mean {_number(record['mean']['mean'])}{scale}, sd {_number(record['mean']['sd'])}")


def _show_rates(console: "Console", rows: Sequence[dict[str, Any]]) -> None:
    console.print()
    table = new_table("system", "items", "Flag %", "Int %", "AIS %", "95 %", "n", "ties", "AIS of unflagged %")
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
        table.add_row(clean(row["model"] or "(no system)"), *cells, percent[3])
    console.print(table)


def _show_times(console: "Console", times: dict[str, Any]) -> None:
    if not times["tasks"]["n"]:
        return
    console.print()
    table = new_table("seconds", "n", "mean", "median", "sd")
    for name, spread in [*times["questions"].items(), ("a task", times["tasks"])]:
        table.add_row(clean(name), str(spread["n"]), *(_seconds(spread[key]) for key in ("mean", "median", "sd")))
    console.print(table)


def _show_people(console: "Console", people: Sequence[dict[str, Any]]) -> None:
    console.print()
    table = new_table(
        "annotator", "items", "ratings", "flags", "as the others", "gold right", "audits right", "seconds (median)"
    )
    for person in people:
        rates = [f"{_percent(rate)} of {rate['n']}" if rate["n"] else "-" for rate in
                 (person["agrees_with_others"], person["gold"], person["audits"])]  # fmt: skip
        counts = (str(person[name]) for name in ("items", "ratings", "flags"))
        table.add_row(clean(person["annotator"]), *counts, *rates, _seconds(person["time"]["tasks"]["median"]))
    console.print(table)


def _show_batches(console: "Console", batches: Sequence[dict[str, Any]]) -> None:
    console.print()
    table = new_table("batch", "tasks", "seconds (mean)", "audited", "share", "quality")
    for batch in batches:
        audits = batch["audits"]
        cells = ["-"] * 3 if audits is None else [str(audits["audited"]), f"{audits['share']:.2f}",
                                                    f"{audits['quality']['value']:.2f}"]  # fmt: skip
        table.add_row(clean(batch["file"]), str(batch["tasks"]), _seconds(batch["seconds"]["mean"]), *cells)
    console.print(table)


def _show_experts(console: "Console", name: str, record: dict[str, Any]) -> None:
    single, agreement = record["single_ratings"], record["agreement"]
    console.print()
    _line(
        console,
        f"{name}, annotators beside experts: the same on {_percents(agreement)} "
        f"of {format_count(agreement['n'], 'items')} ({agreement['undecided']} with a tie), "
        f"alpha {_number(record['krippendorff_alpha']['value'])}, "
        f"kappa {_number(record['cohen_kappa']['value'])}, macro-F1 {_number(record['macro_f1'])}",
    )
    _line(
        console,
        f"  single ratings ({single['n']}): macro-F1 {_number(single['macro_f1'])}, pairwise agreement "
        f"{_number(single['pairwise_agreement'])}",
    )


def _show_variant(console: "Console", name: str, record: dict[str, Any]) -> None:
    console.print()
    counts = ", ".join(f"{label} {record[key]}" for key, label in (
        ("both", "both"), ("only_original", "only the original"), ("only_variant", "only the variant"),
        ("neither", "neither")))  # fmt: skip
    _line(
        console,
        f"{name}, two designs, {record['outcome']} on {format_count(record['n'], 'items')} "
        f"({record['undecided']} with a tie): {counts}",
    )
    if record["exact"] is None:
        _line(console, f"  p {_number(record['p'])}, {record['test']}: items of one question are not independent")
        return
    p = " and ".join(f"{form} {_number(record[form])}" for form in ("exact", "corrected"))
    _line(console, f"  McNemar's p: {p}; use the {record['test']} form")


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
