"""The leaderboard of a group: its systems by one metric, best first, and what cannot be told apart."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from autoais.base.errors import UserError
from rag.bench.compare import LESS_IS_BETTER
from rag.bench.report.tables import HEADLINE, metric_of

_BESIDE = ("right", "em", "autoais", "citation_recall", "citation_precision", "unanswerable_refused")
_MAX_BESIDE = 4  # metrics beside the one that the systems are sorted by
_MAX_NAMES = 12  # metrics that an error lists; the first are the headline metrics


def leaderboard(
    systems: Sequence[Mapping[str, Any]], comparison: Mapping[str, Any], n: int, by: str | None = None
) -> dict[str, Any]:
    """Return the leaderboard of the systems of report.json, over `n` questions, sorted by the metric `by`.

    By default that is `right_attributed`, or AutoAIS for a benchmark without a rule for right answers. `rows` have
    the system's `label`, its `kind` (`rag.bench.report.tables.KINDS`), and `n` and `undecided` of the metric.
    `like_first` names the systems that cannot be told apart from the first, if that was `tested`. `beside` are more
    metrics. Raises `UserError` for a metric that no system has.
    """
    names = [
        name
        for name in dict.fromkeys([*HEADLINE, *(name for system in systems for name in system["metrics"])])
        if any(metric_of(system, name)["value"] is not None for system in systems)
    ]
    if by is not None and by not in names:
        more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
        raise UserError(f"no system has a value of {by!r} to sort by; there are: {', '.join(names[:_MAX_NAMES])}{more}")
    has_rule = "right" in comparison["metrics"]
    candidates = [name for name in names if has_rule or name != "right_attributed"]
    main = by or ("autoais" if "autoais" in candidates and not has_rule else candidates[0])
    ordered = sorted(systems, key=lambda system: _rank(system, main))
    letters = comparison["metrics"].get(main, {}).get("letters", {}) if len(systems) > 1 else {}
    first = set(letters.get(ordered[0]["label"], ""))
    return {
        "metric": main,
        "beside": [name for name in _BESIDE if name in names and name != main][:_MAX_BESIDE],
        "rows": [
            {
                "label": system["label"],
                "kind": "system" if system["predictions"] is None else "predictions",
                "n": metric_of(system, main).get("n") or n,
                "undecided": _undecided_count(system, main),
            }
            for system in ordered
        ],
        "tested": bool(letters),
        "like_first": [system["label"] for system in ordered[1:] if first & set(letters.get(system["label"], ""))],
    }


def _rank(system: Mapping[str, Any], metric: str) -> tuple[bool, float, str]:
    """What sorts a system: best first, those without a value last, equal ones by name."""
    value = metric_of(system, metric)["value"]
    return value is None, (value or 0.0) * (1 if metric in LESS_IS_BETTER else -1), system["label"]


def _undecided_count(system: Mapping[str, Any], metric: str) -> int:
    """How many questions, answers or citations are undecided in a metric."""
    if metric == "right_attributed":
        return int(system["ways"]["undecided"]["count"])
    count = metric_of(system, metric).get("undecided")
    return count if isinstance(count, int) and not isinstance(count, bool) else 0


def leaderboard_line(board: Mapping[str, Any], systems: Sequence[Mapping[str, Any]]) -> str:
    """Return in one sentence who leads, and who cannot be told apart from it; empty if nobody has a value."""
    label = board["rows"][0]["label"]
    (first,) = (system for system in systems if system["label"] == label)
    value = metric_of(first, board["metric"])["value"]
    if value is None:
        return ""
    figure = f"{100 * value:.1f} % {HEADLINE.get(board['metric'], board['metric'])}"
    if len(board["rows"]) == 1:
        return f"{label}: {figure}."
    is_apart = len(board["like_first"]) < len(board["rows"]) - 1
    return f"{label} {'is first with' if is_apart else 'has'} {figure}. {' '.join(_apart(board))}"


def _apart(board: Mapping[str, Any]) -> Iterator[str]:
    like, others = board["like_first"], len(board["rows"]) - 1
    if not board["tested"]:
        yield "Whether the others differ was not tested for this metric."
    elif not like:
        yield "The difference to every other system is significant."
    elif len(like) == others:
        yield "No other system can be told apart from it." if others > 1 else f"{like[0]} cannot be told apart from it."
    else:
        names = ", ".join(like[:3]) + (f" and {len(like) - 3} more" if len(like) > 3 else "")
        yield f"{names} cannot be told apart from it."
