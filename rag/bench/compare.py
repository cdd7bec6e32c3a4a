"""Comparison of any number of systems on the same questions: tests, letters, smallest differences, costs."""

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, combinations
from pathlib import Path
from statistics import NormalDist
from typing import Any

from autoais.base.errors import UserError
from autoais.metrics.paired import holm
from rag.bench.items import Item
from rag.bench.metrics import WORDS, holds
from rag.bench.results import Group, SystemRun, group_systems, read_run

LEVEL, POWER = 0.05, 0.8

_Value = Callable[[Item], float | bool | None]


_VALUES: dict[str, _Value] = {
    "right_attributed": lambda item: item.way == "right_attributed",
    "right": lambda item: bool(item.right) if item.answerable else None,
    **{f"right@{words}": partial(holds, words=words) for words in WORDS},
    "em": lambda item: item.em,
    "f1": lambda item: item.f1,
    "answer_recall": lambda item: item.answer_recall,
    "nugget_recall": lambda item: item.nugget_recall,
    "span_f1_averaged": lambda item: item.span_f1,
    "autoais": lambda item: bool(item.attributed),  # undecided is a no: all systems need the same questions
    "unanswerable_refused": lambda item: None if item.answerable else item.way == "refused_right",
    "answerable_refused": lambda item: item.way == "refused_wrong" if item.answerable else None,
}
LESS_IS_BETTER = ("answerable_refused",)


def compare_runs(*runs: str | Path, allow_different: bool = False) -> dict[str, Any]:
    """Compare all systems of run folders, question by question.

    `groups` holds one comparison per benchmark, rule, set of questions, passages and judge: numbers of two metrics
    never share a column. Raises `UserError` if there is more than one group, unless `allow_different`. See
    `compare_group`.
    """
    if not runs:
        raise UserError("name at least one run folder")
    groups = group_systems(map(read_run, runs), allow_different=allow_different)
    if sum(len(group.systems) for group in groups) < 2:
        raise UserError(f"{runs[0]}: has one system; name another run to compare it with")
    return {"groups": [compare_group(group) for group in groups]}


def compare_group(group: Group) -> dict[str, Any]:
    """Compare the systems of one group.

    - `metrics`: for each, `values` and `letters` by system, and `pairs`, each with the difference a - b, its 95 %
      interval, the p of McNemar's exact test or of a randomisation test (`autoais.metrics.comparison`), `p_holm`,
      corrected for the number of pairs, and `smallest_difference`, the minimum detectable one (80 % power). Systems
      that share a letter cannot be told apart (Piepho 2004). Undecided counts as no. A system that says nothing has no
      sentences: for metrics over sentences and citations, a pair is over the `n` questions in which both have some, and
      `values` over all that the system has; the metric's `n` is the least of its pairs.
    - `notes`: one line that names the pairs whose interval and p disagree, if there are any.
    - `differences`: the questions on which the systems' ways differ, with all answers.
    - `pareto`: quality (right and attributed), mean seconds and tokens of the answers that have them, and who is not
      beaten on both.
    - `correlation`: Kendall's tau-b and Spearman's rho over systems between EM, AutoAIS and people, for three or more.
    """
    labels = [system.label for system in group.systems]
    by_id = [{item.id: item for item in system.items} for system in group.systems]
    questions = sorted(by_id[0])
    item_columns = [[items[question] for question in questions] for items in by_id]
    metrics = {}
    has_rule = any(item.right is not None for item in chain(*item_columns) if item.answerable)
    for name, value in _VALUES.items():
        if name == "right" and not has_rule:  # the benchmark has no rule
            continue
        items_by_label = {
            label: items
            for label, items in zip(labels, item_columns, strict=True)
            if any(value(item) is not None for item in items)
        }
        if items_by_label:
            metrics[name] = compare_values(_columns(value, items_by_label), is_less_better=name in LESS_IS_BETTER)
    metrics |= _by_judgements(group.systems, metrics)
    return {
        "name": group.name,
        "benchmark": group.benchmark,
        "version": group.version,
        "judge": group.judge,
        "n": len(questions),
        "systems": {system.label: system.system for system in group.systems},
        "level": LEVEL,
        "power": POWER,
        "metrics": metrics,
        "notes": list(_notes(metrics)),
        "differences": _differences(labels, item_columns),
        "pareto": _pareto(group.systems),
        "correlation": _correlation(group.systems),
    }


# --- metrics ---------------------------------------------------------------------------------------------------


def _columns(value: _Value, items_by_label: Mapping[str, Sequence[Item]]) -> dict[str, list[float]]:
    """The values of the systems, one a question that has the metric; a system without one there has 0."""
    rows = {label: [value(item) for item in items] for label, items in items_by_label.items()}
    columns = enumerate(zip(*rows.values(), strict=True))
    indexes = [index for index, column in columns if any(value is not None for value in column)]
    return {label: [float(row[index] or 0) for index in indexes] for label, row in rows.items()}


def compare_values(columns: Mapping[str, Sequence[float]], *, is_less_better: bool = False) -> dict[str, Any]:
    """Compare systems by one value a question, 0 to 1, in the same order; `is_less_better` if less is better.

    Returns a metric of `compare_group`.
    """
    from autoais.metrics.comparison import difference_of_means

    pairs = []
    for a, b in combinations(columns, 2):
        difference = difference_of_means(columns[a], columns[b])
        changes = [x - y for x, y in zip(columns[a], columns[b], strict=True)]
        pairs.append({"a": a, "b": b, **difference, "smallest_difference": smallest_difference(changes, len(columns))})
    values = {label: math.fsum(column) / len(column) for label, column in columns.items()}
    return _add_letters(
        {"n": len(next(iter(columns.values()))), "values": values, "pairs": pairs}, is_less_better=is_less_better
    )


def _by_judgements(systems: Sequence[SystemRun], other_metrics: Collection[str]) -> dict[str, Any]:
    """As `compare_values`, for the metrics over sentences and citations, from the scores in judgements.jsonl."""
    from autoais.metrics.comparison import compare_judgements, read_judgements

    if len(systems) < 2 or not all(system.judgements.is_file() for system in systems):
        return {}
    scores_by_label = {}
    for system in systems:
        judgements = read_judgements(system.judgements)
        scores = {
            name: {k: v for k, v in row.items() if k not in other_metrics} for name, row in judgements.scores.items()
        }
        scores_by_label[system.label] = replace(judgements, scores=scores)
    metrics: dict[str, Any] = {}
    for a, b in combinations(scores_by_label, 2):
        for name, pair in compare_judgements(scores_by_label[a], scores_by_label[b], a, b)["metrics"].items():
            metric = metrics.setdefault(name, {"n": pair["n"], "values": {}, "pairs": []})
            metric["n"] = min(metric["n"], pair["n"])
            values = pair.pop("own")
            metric["values"] |= {a: values["a"]["value"], b: values["b"]["value"]}
            metric["pairs"].append({**pair, "a": a, "b": b, "smallest_difference": None})
    everywhere = len(systems) * (len(systems) - 1) // 2
    return {name: _add_letters(metric) for name, metric in metrics.items() if len(metric["pairs"]) == everywhere}


def disagreeing(metrics: Mapping[str, Any]) -> list[str]:
    """Return the pairs of the `metrics` of a comparison whose interval and p disagree, as `metric (a - b)`."""
    from autoais.metrics.comparison import contradictions

    return contradictions(
        {f"{name} ({pair['a']} - {pair['b']})": pair for name, metric in metrics.items() for pair in metric["pairs"]}
    )


def _notes(metrics: Mapping[str, Any]) -> Iterator[str]:
    from autoais.metrics.comparison import CONTRADICTION

    if names := disagreeing(metrics):
        yield f"{', '.join(names)}: {CONTRADICTION}"


def _add_letters(metric: dict[str, Any], *, is_less_better: bool = False) -> dict[str, Any]:
    """The metric with Holm's correction over the pairs, and letters from best to worst."""
    pairs = metric["pairs"]
    for pair, p in zip(pairs, holm([pair["p"] for pair in pairs]), strict=True):
        pair["p_holm"] = p
    best = sorted(metric["values"], key=lambda label: (metric["values"][label] * (1 if is_less_better else -1), label))
    return metric | {"letters": letters(best, [(pair["a"], pair["b"]) for pair in pairs if pair["p_holm"] < LEVEL])}


def letters(names: Sequence[str], different: Collection[tuple[str, str]]) -> dict[str, str]:
    """Return letters by name: two names share a letter if and only if they are not in `different`.

    The insert-and-absorb algorithm (Piepho 2004, Journal of Computational and Graphical Statistics 13:456). `names`
    come from best to worst; the best has `a`.
    """
    order = {name: position for position, name in enumerate(names)}
    columns = [set(names)]
    for a, b in sorted(
        (sorted(pair, key=order.__getitem__) for pair in different), key=lambda p: [order[n] for n in p]
    ):
        split = [
            part for column in columns for part in ((column - {a}, column - {b}) if {a, b} <= column else (column,))
        ]
        columns = []
        for column in sorted(split, key=len, reverse=True):
            if not any(column <= other for other in columns):  # absorbed by a larger one
                columns.append(column)
    columns.sort(key=lambda column: sorted(order[name] for name in column))
    return {name: "".join(_letter(n) for n, column in enumerate(columns) if name in column) for name in names}


def _letter(number: int) -> str:
    alphabet = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
    return alphabet[number] if number < len(alphabet) else f"({number + 1})"


def smallest_difference(changes: Sequence[float], systems: int = 2) -> float | None:
    """Return the smallest difference of means that a paired test over these questions shows with 80 % power.

    `changes` are the differences per question. The level is 5 %, divided by the number of pairs of systems. For
    outcomes 0 and 1 by Connor's formula (1987, Biometrics 43:207) with the share of questions that differ; else by the
    normal approximation. None if no question differs.
    """
    n, pairs = len(changes), max(1, systems * (systems - 1) // 2)
    normal = NormalDist()
    z, power = normal.inv_cdf(1 - LEVEL / pairs / 2), normal.inv_cdf(POWER)
    squares = math.fsum(change * change for change in changes) / n
    if not squares:
        return None
    if not all(change in (-1.0, 0.0, 1.0) for change in changes):
        variance = squares - (math.fsum(changes) / n) ** 2
        return (z + power) * math.sqrt(variance / n) if variance > 0 else None
    # n = (z sqrt(s) + power sqrt(s - d^2))^2 / d^2, solved for d; at most s, as then all changes go one way.
    low, high = 0.0, squares
    if n * high**2 < (z * math.sqrt(squares) + power * math.sqrt(max(0.0, squares - high**2))) ** 2:
        return None
    for _ in range(60):
        d = (low + high) / 2
        enough = n * d**2 >= (z * math.sqrt(squares) + power * math.sqrt(max(0.0, squares - d**2))) ** 2
        low, high = (low, d) if enough else (d, high)
    return high


# --- questions, costs, correlation ------------------------------------------------------------------------------


def _differences(labels: Sequence[str], item_columns: Sequence[Sequence[Item]]) -> list[dict[str, Any]]:
    return [
        {
            "id": items[0].id,
            "question": items[0].question,
            "ways": {label: item.way for label, item in zip(labels, items, strict=True)},
            "answers": {label: item.answer for label, item in zip(labels, items, strict=True)},
        }
        for items in zip(*item_columns, strict=True)
        if len({item.way for item in items}) > 1
    ]


def _pareto(systems: Sequence[SystemRun]) -> list[dict[str, Any]]:
    """Each system's quality and costs; `best_for` names the costs for which no other system is better and cheaper."""
    points = [
        {
            "system": system.label,
            "quality": system.metrics["ways"]["right_attributed"]["share"],
            "seconds": _mean([item.seconds for item in system.items]),
            "tokens": _mean([_tokens(item) for item in system.items]),
        }
        for system in systems
    ]
    for point in points:
        point["best_for"] = [cost for cost in ("seconds", "tokens") if not any(_beats(o, point, cost) for o in points)]
    return points


def _tokens(item: Item) -> int | None:
    counts = [count for count in (item.tokens_read, item.tokens_written) if count is not None]
    return sum(counts) if counts else None


def _mean(values: Sequence[float | None]) -> float | None:
    numbers = [value for value in values if value is not None]
    return math.fsum(numbers) / len(numbers) if numbers else None


def _beats(other: Mapping[str, Any], point: Mapping[str, Any], cost: str) -> bool:
    """Whether the other point is as good and as cheap, and better in one of both; or the point has no such cost."""
    if point[cost] is None:
        return True
    if other[cost] is None or other["quality"] is None or point["quality"] is None:
        return False
    a, b = (other["quality"], -other[cost]), (point["quality"], -point[cost])
    return a != b and a[0] >= b[0] and a[1] >= b[1]


def human_share(system: SystemRun) -> float | None:
    """Return the share of answers that people found attributable, of those that people labelled; None if none."""
    attributable_rate = (system.metrics.get("human") or {}).get("attributable")
    value = attributable_rate.get("value") if isinstance(attributable_rate, dict) else None
    if isinstance(value, int | float):
        return float(value)
    sentence_labels = [[s.human for s in item.sentences if s.human is not None] for item in system.items]
    return _mean([float(all(labels)) for labels in sentence_labels if labels])


def _correlation(systems: Sequence[SystemRun]) -> dict[str, Any]:
    from autoais.meta.correlation import MIN_SYSTEMS, kendall_tau_b, spearman

    columns = {
        "em": [system.metrics["metrics"].get("em", {}).get("value") for system in systems],
        "autoais": [system.metrics["metrics"].get("autoais", {}).get("value") for system in systems],
        "human": [human_share(system) for system in systems],
    }
    correlations = {}
    for a, b in combinations(columns, 2):
        complete_pairs = [
            (x, y) for x, y in zip(columns[a], columns[b], strict=True) if x is not None and y is not None
        ]
        record: dict[str, Any] = {"systems": len(complete_pairs), "kendall_tau_b": None, "spearman": None}
        if len(complete_pairs) < MIN_SYSTEMS:
            record["reason"] = f"{len(complete_pairs)} systems have both; at least {MIN_SYSTEMS} are needed"
        else:
            import numpy as np

            x, y = np.array(complete_pairs, dtype=np.float64).T
            record |= {"kendall_tau_b": kendall_tau_b(x, y), "spearman": spearman(x, y)}
        correlations[f"{a} and {b}"] = record
    return correlations
