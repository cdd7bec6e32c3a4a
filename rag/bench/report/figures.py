"""The figures of the report of a run."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from autoais.metrics.rates import Rate
from rag.bench.items import Item
from rag.bench.metrics import quantile
from rag.bench.plots import COLOURS, Figure
from rag.bench.results import Group, SystemRun

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WAY_NAMES = {
    "right_attributed": "right and attributed",
    "right_unattributed": "right, unattributed",
    "wrong_attributed": "wrong, attributed",
    "wrong_unattributed": "wrong",
    "refused_right": "refused, rightly",
    "refused_wrong": "refused, wrongly",
    "undecided": "undecided",
}
WAY_COLOURS = {
    "right_attributed": "#0b7a5e",
    "right_unattributed": "#7cc9ae",
    "wrong_attributed": "#f0a35e",
    "wrong_unattributed": "#b9441f",
    "refused_right": "#8fb3d9",
    "refused_wrong": "#4a6fa5",
    "undecided": "#9a9a9a",
}
_DASHES, _MARKERS = ("-", "--", "-.", ":"), "osD^vPX*"
_MAX_SYSTEMS_IN_TEXT = 12  # longest list of systems that an alternative text spells out
_MAX_CITATIONS = 6


def figures(group: Group, pareto: Sequence[Mapping[str, Any]]) -> list[Figure]:
    """The figures for which the group has numbers, in the order of the report."""
    candidates = [
        _ways(group.systems),
        _ranks(group.systems),
        _quality(group.systems),
        _reliability(group.systems),
        _risk(group.systems),
        _pareto(group.systems, pareto, "seconds"),
        _pareto(group.systems, pareto, "tokens"),
        _latency(group.systems),
        _citations(group.systems),
    ]
    return [figure for figure in candidates if figure is not None]


def _line(number: int) -> dict[str, Any]:
    return {"color": COLOURS[number % len(COLOURS)], "linestyle": _DASHES[number % len(_DASHES)], "linewidth": 1.6}


def _dot(number: int) -> dict[str, Any]:
    return {"color": COLOURS[number % len(COLOURS)], "marker": _MARKERS[number % len(_MARKERS)]}


def _scale(axes: "Axes", values: Sequence[float]) -> None:
    """Make the x axis logarithmic if the values span a factor of ten, with plain numbers at its ticks."""
    if 0 < 10 * min(values) <= max(values):
        from matplotlib.ticker import FuncFormatter, NullFormatter

        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.xaxis.set_minor_formatter(NullFormatter())


def _name(label: str) -> str:
    """A label that fits, without characters that a font cannot draw."""
    line = "".join(c if c.isprintable() else "\ufffd" for c in label)
    return line if len(line) <= 28 else f"{line[:27]}…"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _sentence(parts: Sequence[str]) -> str:
    return (
        "; ".join(parts[:_MAX_SYSTEMS_IN_TEXT])
        + (f"; and {len(parts) - _MAX_SYSTEMS_IN_TEXT} more" if len(parts) > _MAX_SYSTEMS_IN_TEXT else "")
        + "."
    )


# --- one function a figure -------------------------------------------------------------------------------------


def _ways(systems: Sequence[SystemRun]) -> Figure:
    counts = {
        system.label: {outcome: system.metrics["ways"][outcome]["count"] for outcome in WAY_NAMES} for system in systems
    }

    def draw(axes: "Axes") -> None:
        for row, outcome_counts in enumerate(counts.values()):
            total, left_end = max(1, sum(outcome_counts.values())), 0.0
            for outcome, count in outcome_counts.items():
                share = count / total
                axes.barh(
                    row, share, left=left_end, color=WAY_COLOURS[outcome], edgecolor="white", linewidth=0.6, height=0.7
                )
                if share >= 0.05:
                    ink = "white" if outcome in ("right_attributed", "wrong_unattributed", "refused_wrong") else "black"
                    axes.text(left_end + share / 2, row, f"{count:,}", ha="center", va="center", color=ink, fontsize=8)
                left_end += share
        from matplotlib.patches import Patch
        from matplotlib.ticker import PercentFormatter

        axes.set_yticks(range(len(counts)), [_name(label) for label in counts])
        axes.invert_yaxis()
        axes.set_xlim(0, 1)
        axes.xaxis.set_major_formatter(PercentFormatter(1))
        axes.grid(visible=False, axis="y")
        axes.set_xlabel("share of all questions")
        handles = [Patch(color=WAY_COLOURS[outcome], label=name) for outcome, name in WAY_NAMES.items()]
        axes.legend(handles=handles, loc="lower left", bbox_to_anchor=(-0.02, 1.0), ncols=3, fontsize=7.5)

    captions = [
        f"{label}: "
        + ", ".join(f"{count:,} {WAY_NAMES[outcome]}" for outcome, count in outcome_counts.items() if count)
        for label, outcome_counts in counts.items()
    ]
    title = "What happened to the questions"
    return Figure("ways", title, _sentence(captions), {"counts": counts}, draw, 1.7 + 0.42 * len(counts))


def _ranks(systems: Sequence[SystemRun]) -> Figure | None:
    curves: dict[str, dict[str, Any]] = {}
    for system in systems:
        depth = max((len(item.ranking) for item in system.items), default=0)
        for name, ranks in (
            ("gold passage", [item.first_gold for item in system.items if item.gold]),
            ("answer string", [item.answer_hit for item in system.items if item.references]),
        ):
            if ranks and depth and any(ranks):
                counts, cutoffs = Counter(ranks), _cutoffs(depth)
                yes = [sum(counts[r] for r in range(1, k + 1)) for k in cutoffs]
                rates = [Rate(hits, len(ranks)) for hits in yes]
                curves[f"{system.label}, {name}"] = {
                    "system": system.label,
                    "k": cutoffs,
                    "success": [rate.value for rate in rates],
                    "interval95": [list(rate.interval or (0, 0)) for rate in rates],
                }
    if not curves:
        return None
    line_numbers = {system.label: number for number, system in enumerate(systems)}

    def draw(axes: "Axes") -> None:
        for name, curve in curves.items():
            gold = name.endswith("gold passage")
            look = {"color": _line(line_numbers[curve["system"]])["color"], "linestyle": "-" if gold else "--"}
            axes.plot(curve["k"], curve["success"], label=_name(curve["system"]) + name[len(curve["system"]) :], **look)
            if gold:
                low, high = zip(*curve["interval95"], strict=True)
                axes.fill_between(curve["k"], low, high, color=look["color"], alpha=0.15)
        deepest = max(curve["k"][-1] for curve in curves.values())
        _scale(axes, [1, deepest])
        axes.set_xlim(1, max(deepest, 2))
        axes.set_ylim(0, 1)
        axes.set_xlabel("rank cut-off k")
        axes.set_ylabel("success@k")
        axes.legend(fontsize=7.5)

    captions = [
        f"{name}: "
        + ", ".join(
            f"{_percent(value)} at {k}"
            for k, value in zip(curve["k"], curve["success"], strict=True)
            if k in (1, 5, 20, 100) or k == curve["k"][-1]
        )
        for name, curve in curves.items()
    ]
    return Figure("ranks", "Success by rank cut-off", _sentence(captions), {"curves": curves}, draw)


def _cutoffs(depth: int) -> list[int]:
    return [*range(1, min(depth, 20) + 1), *range(25, min(depth, 100) + 1, 5), *range(200, depth + 1, 100)]


def _quality(systems: Sequence[SystemRun]) -> Figure | None:
    metric = "em" if any(_value(system, "em") is not None for system in systems) else "answer_recall"
    points = {
        system.label: {"x": system.metrics["metrics"][metric], "y": system.metrics["metrics"]["autoais"]}
        for system in systems
        if _value(system, metric) is not None and _value(system, "autoais") is not None
    }
    if not points:
        return None
    name = "exact match" if metric == "em" else "answer recall"
    line_numbers = {system.label: number for number, system in enumerate(systems)}

    def draw(axes: "Axes") -> None:
        for label, point in points.items():
            x, y = point["x"]["value"], point["y"]["value"]
            bars = {side: _bars(point[side]) for side in ("x", "y")}
            axes.errorbar(
                x, y, xerr=bars["x"], yerr=bars["y"], label=_name(label), capsize=2, ls="", **_dot(line_numbers[label])
            )
        axes.set_xlabel(f"{name} (95 % interval)")
        axes.set_ylabel("AutoAIS (95 % interval)")
        axes.legend(fontsize=7.5)

    captions = [
        f"{label}: AutoAIS {_percent(point['y']['value'])}, {name} {_percent(point['x']['value'])}"
        for label, point in points.items()
    ]
    data = {label: {"autoais": point["y"]["value"], metric: point["x"]["value"]} for label, point in points.items()}
    return Figure("quality", f"AutoAIS against {name}", _sentence(captions), data, draw)


def _value(system: SystemRun, metric: str) -> float | None:
    value: float | None = system.metrics["metrics"].get(metric, {}).get("value")
    return value


def _bars(metric: Mapping[str, Any]) -> list[list[float]] | None:
    ends = metric.get("interval95")
    value = metric["value"]
    return [[max(0.0, value - ends[0])], [max(0.0, ends[1] - value)]] if ends else None


def _reliability(systems: Sequence[SystemRun]) -> Figure | None:
    """The judge's probability against people's labels of the same sentences."""
    judged_sentences = [
        (sentence.human, sentence.probability, question)
        for system in systems
        for question, item in enumerate(system.items)
        for sentence in item.sentences
        if sentence.human is not None and sentence.probability is not None
    ]
    if not judged_sentences:
        return None
    import numpy as np

    from autoais.meta.evaluate import calibration_error, reliability

    truth, probability, questions = map(np.array, zip(*judged_sentences, strict=True))
    bins = reliability(truth, probability, questions)
    error = calibration_error(truth, probability)

    def draw(axes: "Axes") -> None:
        x = [calibration_bin["probability"] for calibration_bin in bins]
        y = [calibration_bin["attributable"] for calibration_bin in bins]
        bars = [
            _bars({"value": calibration_bin["attributable"], "interval95": calibration_bin["interval95"]})
            for calibration_bin in bins
        ]
        axes.plot([0, 1], [0, 1], color="#8a8a8a", linestyle="--", linewidth=1)
        for point, bar in zip(zip(x, y, strict=True), bars, strict=True):
            axes.errorbar(*point, yerr=bar, capsize=2, **_dot(0))
        axes.plot(x, y, **_line(0))
        axes.set_xlim(0, 1)
        axes.set_ylim(0, 1)
        axes.set_xlabel("the judge's probability of attributable")
        axes.set_ylabel("share that people found attributable")

    captions = [
        f"at {calibration_bin['probability']:.2f} people said yes to {_percent(calibration_bin['attributable'])}"
        for calibration_bin in bins
    ]
    text = (
        f"{len(judged_sentences):,} sentences with human labels, calibration error {error:.3f}: {_sentence(captions)}"
    )
    return Figure("reliability", "Reliability of the judge", text, {"bins": bins, "calibration_error": error}, draw)


def _risk(systems: Sequence[SystemRun]) -> Figure | None:
    curves = {system.label: risk_curve for system in systems if (risk_curve := risk_coverage(system.items))}
    if not curves:
        return None
    line_numbers = {system.label: number for number, system in enumerate(systems)}

    def draw(axes: "Axes") -> None:
        for label, curve in curves.items():
            axes.plot(*zip(*curve, strict=True), label=_name(label), **_line(line_numbers[label]))
        axes.set_xlim(0, 1)
        axes.set_ylim(0, 1)
        axes.set_xlabel("coverage: share of questions answered, the most confident first")
        axes.set_ylabel("risk: share of them wrong")
        axes.legend(fontsize=7.5)

    captions = []
    for label, curve in curves.items():
        risks = [(goal, next((risk for coverage, risk in curve if coverage >= goal), None)) for goal in (0.2, 0.5, 1.0)]
        parts = [f"{_percent(risk)} wrong at {goal:.0%} coverage" for goal, risk in risks if risk is not None]
        parts = parts or [f"{_percent(curve[-1][1])} wrong at {curve[-1][0]:.0%} coverage"]
        captions.append(f"{label}: {', '.join(parts)}")
    return Figure("risk", "Risk against coverage", _sentence(captions), {"curves": curves}, draw)


def risk_coverage(items: Sequence[Item]) -> list[tuple[float, float]]:
    """Return (coverage, risk) for each minimum confidence, from the most confident answer on.

    Coverage is the share of all questions that are answered; risk is the share of the answers that are wrong. Answers
    that nobody could call right or wrong are left out. At most 200 points; empty without confidences.
    """
    answers = [
        (item.confidence, item.right)
        for item in items
        if not (item.abstained or item.missing) and item.confidence is not None and item.right is not None
    ]
    answers.sort(key=lambda pair: -pair[0])
    points, wrong = [], 0
    for count, (confidence, right) in enumerate(answers, 1):
        wrong += not right
        if count == len(answers) or answers[count][0] != confidence:  # equal confidences enter together
            points.append((round(count / len(items), 6), round(wrong / count, 6)))
    step = max(1, math.ceil(len(points) / 200))
    return points[::-1][::step][::-1]


def _pareto(systems: Sequence[SystemRun], points: Sequence[Mapping[str, Any]], cost: str) -> Figure | None:
    complete_points = [point for point in points if point[cost] is not None and point["quality"] is not None]
    if len(complete_points) < 2 or all(point[cost] <= 0 for point in complete_points):
        return None
    line_numbers = {point["system"]: number for number, point in enumerate(points)}
    intervals = {system.label: system.metrics["ways"]["right_attributed"]["interval95"] for system in systems}
    front = sorted((point for point in complete_points if cost in point["best_for"]), key=lambda point: point[cost])

    def draw(axes: "Axes") -> None:
        for point in complete_points:
            dot = _dot(line_numbers[point["system"]])
            axes.plot(point[cost], point["quality"], label=_name(point["system"]), ls="", **dot)
            if ends := intervals[point["system"]]:
                axes.vlines(point[cost], *ends, color=dot["color"], linewidth=1)
        x, y = ([point[axis] for point in front] for axis in (cost, "quality"))
        axes.step(x, y, where="post", color="#8a8a8a", linewidth=1, zorder=0)
        _scale(axes, [point[cost] for point in complete_points])
        axes.margins(0.1)
        axes.set_xlabel(f"{cost} per question")
        axes.set_ylabel("right and attributed, 95 % interval")
        axes.legend(fontsize=7.5)

    captions = []
    for point in complete_points:
        ends = intervals[point["system"]]
        quality = _percent(point["quality"]) + (
            " [{:.1f}, {:.1f}]".format(*(100 * end for end in ends)) if ends else ""
        )
        captions.append(f"{point['system']}: {quality} for {point[cost]:.4g} {cost}")
    best = ", ".join(point["system"] for point in front)
    text = f"{_sentence(captions)} No other system is better and cheaper than: {best}."
    return Figure(f"pareto-{cost}", f"Quality against {cost} per question", text, {"points": complete_points}, draw)


def _latency(systems: Sequence[SystemRun]) -> Figure | None:
    seconds_by_label = {
        system.label: sorted(item.seconds for item in system.items if item.seconds is not None)
        for system in systems
        if any(item.seconds is not None for item in system.items)
    }
    if not seconds_by_label:
        return None
    line_numbers = {system.label: number for number, system in enumerate(systems)}

    def draw(axes: "Axes") -> None:
        for label, seconds in seconds_by_label.items():
            axes.ecdf(seconds[:: math.ceil(len(seconds) / 300)], label=_name(label), **_line(line_numbers[label]))
        _scale(axes, [end for seconds in seconds_by_label.values() for end in (seconds[0], seconds[-1])])
        axes.set_xlabel("seconds per question")
        axes.set_ylabel("share of questions")
        axes.legend(fontsize=7.5)

    quantiles = {
        label: {f"p{q}": quantile(seconds, q / 100) for q in (50, 95)} for label, seconds in seconds_by_label.items()
    }
    captions = [
        f"{label}: median {quantile_row['p50']:.3g} s, 95 % below {quantile_row['p95']:.3g} s"
        for label, quantile_row in quantiles.items()
    ]
    return Figure("latency", "Seconds per question", _sentence(captions), {"quantiles": quantiles}, draw)


def _citations(systems: Sequence[SystemRun]) -> Figure | None:
    shares: dict[str, list[float]] = {}
    for system in systems:
        answers = [len(item.cites) for item in system.items if item.sentences]
        if answers:
            counts = Counter(min(count, _MAX_CITATIONS) for count in answers)
            shares[system.label] = [counts[count] / len(answers) for count in range(_MAX_CITATIONS + 1)]
    if not shares:
        return None
    line_numbers = {system.label: number for number, system in enumerate(systems)}

    def draw(axes: "Axes") -> None:
        width = 0.8 / len(shares)
        for number, (label, values) in enumerate(shares.items()):
            positions = [count - 0.4 + (number + 0.5) * width for count in range(len(values))]
            axes.bar(positions, values, width, label=_name(label), color=_line(line_numbers[label])["color"])
        axes.set_xticks(range(_MAX_CITATIONS + 1), [*map(str, range(_MAX_CITATIONS)), f"{_MAX_CITATIONS} or more"])
        axes.set_xlabel("passages cited by an answer")
        axes.set_ylabel("share of answers")
        axes.legend(fontsize=7.5)

    captions = [
        f"{label}: " + ", ".join(f"{_percent(share)} cite {count}" for count, share in enumerate(values) if share)
        for label, values in shares.items()
    ]
    return Figure("citations", "Passages cited per answer", _sentence(captions), {"shares": shares}, draw)
