"""`report.html`: one file without a network. What comes from a run is escaped by Jinja2, or packed for page.js."""

import base64
import json
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from typing import Any

from rag.base.terminal import pluralize
from rag.bench.html import Image, csp_hash, figure_views, percent_range, render
from rag.bench.items import Item, ItemPassage
from rag.bench.predictions import DID_NOT_FIT
from rag.bench.report.figures import WAY_NAMES
from rag.bench.report.leaderboard import leaderboard_line
from rag.bench.report.tables import HEADLINE, KINDS, MEANINGS, metric_of
from rag.bench.results import Group
from rag.bench.selections import describe_sample

_SIGNS = dict(zip(WAY_NAMES, "✔◐▲✘○●?", strict=True))  # as in page.js
_LIGHT = ("right_attributed", "wrong_unattributed", "refused_wrong")  # dark bars with light numbers
_HITS = 3  # shown besides the cited passages


def page(
    report: Mapping[str, Any], groups: Sequence[Group], images: Sequence[Sequence[Image]], *, passages: bool
) -> str:
    """Return the HTML of a report; `images` has the figures of each group. Raises `RagError` without Jinja2."""
    script = _read("page.js")
    labels = ", ".join(system["label"] for group in report["groups"] for system in group["systems"])
    benchmarks = dict.fromkeys(f"{group['benchmark']} {group['version']}" for group in report["groups"])
    view = {
        "title": f"{', '.join(benchmarks)}: {labels}",
        "heading": ", ".join(benchmarks),
        "warnings": _warnings(report),
        "ways": [{"key": outcome, "name": name, "sign": _SIGNS[outcome]} for outcome, name in WAY_NAMES.items()],
        "groups": [_group(group, group_images) for group, group_images in zip(report["groups"], images, strict=True)],
        "made": list(_history(report)),
    }
    return render(
        _read("page.html.j2"),
        view,
        script=script,
        script_hash=csp_hash(script),
        data=pack_json(questions(groups, passages=passages)),
    )


def _read(name: str) -> str:
    return files("rag.bench.report").joinpath(name).read_text("utf-8")


def pack_json(value: object) -> str:
    """Return JSON, compressed by zlib and written in base64, which no HTML parser can leave."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    text = re.sub("[\ud800-\udfff]", lambda match: f"\\u{ord(match.group()):04x}", text)  # UTF-8 has no lone surrogates
    return base64.b64encode(zlib.compress(text.encode())).decode()


# --- the questions, for page.js ---------------------------------------------------------------------------------


def questions(groups: Sequence[Group], *, passages: bool) -> dict[str, Any]:
    """Return what page.js reads: passages once, and the questions of each group with the answers of its systems.

    Fields that are null, false or empty are left out. Citations are [passage, start, end, verdict].
    """
    passage_numbers: dict[tuple[str, ItemPassage], int] = {}
    group_records = []
    for group in groups:
        by_id = [{item.id: item for item in system.items} for system in group.systems]
        question_records = [
            _question(items[0]) | {"answers": [_answer(item, passage_numbers) for item in items]}
            for items in ([items_of_system[item.id] for items_of_system in by_id] for item in group.systems[0].items)
        ]
        group_records.append({"systems": [system.label for system in group.systems], "questions": question_records})
    passage_records = [_passage(key, passage, texts=passages) for key, passage in passage_numbers]
    return {"passage_texts": passages, "groups": group_records, "passages": passage_records}


def _some(**fields: object) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value not in (None, False, "", (), [])}


def _question(item: Item) -> dict[str, Any]:
    return {"id": item.id, "text": item.question} | _some(
        kind=item.kind,
        collection=item.collection,
        references=item.references,
        gold=item.gold,
        nuggets=item.nuggets,
        unanswerable=not item.answerable,
    )


def _passage(key: str, passage: ItemPassage, *, texts: bool) -> dict[str, Any]:
    text = {"text": passage.text} if texts and passage.text else {}
    return {"id": key} | _some(title=passage.title, section=passage.section, url=passage.url) | text


def _answer(item: Item, passage_numbers: dict[tuple[str, ItemPassage], int]) -> dict[str, Any]:
    def place(key: str) -> int:
        return passage_numbers.setdefault(
            (key, item.passages.get(key, ItemPassage("", "", "", None))), len(passage_numbers)
        )

    sentences = []
    for item_sentence in item.sentences:
        cites = [[place(cite.passage), cite.start, cite.end, cite.verdict] for cite in item_sentence.citations]
        sentence: dict[str, Any] = {"text": item_sentence.text, "verdict": item_sentence.verdict, "cites": cites}
        extra = {
            "p": item_sentence.probability,
            "human": item_sentence.human,
            "unsupported": item_sentence.unsupported or None,
        }
        sentences.append(sentence | {name: value for name, value in extra.items() if value is not None})
    tokens = None if item.tokens_read is None else [item.tokens_read, item.tokens_written or 0]
    numbers = {name: getattr(item, name) for name in ("em", "f1", "nugget_recall", "confidence", "seconds")}
    return (
        {"way": item.way, "sentences": sentences}
        | {name: round(value, 4) for name, value in numbers.items() if value is not None}
        | _some(
            short=item.short_answer,
            reason=item.reason,
            abstained=item.abstained,
            missing=item.missing,
            failed=item.failed,
            first_gold=item.first_gold,
            answer_hit=item.answer_hit,
            tokens=tokens,
            hits=[place(key) for key in item.ranking[:_HITS] if key in item.passages],
        )
    )


# --- the summary, for the template ------------------------------------------------------------------------------


def _warnings(report: Mapping[str, Any]) -> list[str]:
    warnings = []
    if report["passage_texts"]:
        licences = ", ".join(report["licences"]) or "not stated by the benchmark"
        warnings.append(
            f"This page holds passages of others (licence: {licences}). Check it before you publish the page."
        )
    if any(group["closed_pool"] for group in report["groups"]):
        warnings.append(
            "The corpus is a closed pool: the gold passages were put into it, so retrieval is easier than over all."
        )
    for group in report["groups"]:
        if sample := group["sample"]:
            warnings.append(
                f"The corpus is a {describe_sample(sample)}: its figures do not compare with those of the whole corpus."
            )
        if missing_gold := group["without_gold"]:
            count = pluralize(missing_gold, "answerable question")
            warnings.append(f"{count} without a known gold passage in this corpus, counted like the others.")
        for system in group["systems"]:
            if system["same_judge"]:
                count = pluralize(system["same_judge"], "answer")
                warnings.append(
                    f"The judge is a part of {system['label']} ({count}), so its AutoAIS is partly "
                    "circular; judge the run with another judge too."
                )
    if len(report["groups"]) > 1:
        warnings.append(
            "The systems have other benchmarks, rules, questions, passages or judges: each group has its own tables, "
            "and numbers of two groups do not compare."
        )
    return warnings


def _group(group: Mapping[str, Any], images: Sequence[Image]) -> dict[str, Any]:
    systems, has_several = group["systems"], len(group["systems"]) > 1
    comparisons = group["comparison"]["metrics"]
    names = [
        *HEADLINE,
        *dict.fromkeys(name for system in systems for name in system["metrics"] if name not in HEADLINE),
    ]
    with_value = [name for name in names if any(metric_of(system, name)["value"] is not None for system in systems)]
    return {
        "name": group["name"],
        "n": f"{group['n']:,}",
        "board": _board(group),
        "published_kind": "not run here" if group["closed_pool"] is False else "another corpus",
        "published": [_published_view(table) for table in group["published"]],
        "systems": [
            {
                "label": system["label"],
                "bar": list(_bar(system["ways"], group["n"])),
                "ways": list(_cells(system["ways"])),
            }
            for system in systems
        ],
        "rows": [_row(name, systems, comparisons.get(name, {}) if has_several else {}) for name in with_value],
        "meanings": [
            (HEADLINE.get(key, key.rstrip("@")), meaning)
            for key, meaning in MEANINGS.items()
            if any(name == key or (key.endswith("@") and name.startswith(key)) for name in with_value)
        ],
        "costs": list(_costs(systems)),
        "predictions": list(_predictions(systems)),
        "smallest": has_several,
        "absent": list(_absent(systems, with_value)),
        "pairs": [
            _pair(HEADLINE.get(name, name), pair) for name, metric in comparisons.items() for pair in metric["pairs"]
        ],
        "correlation": list(_correlation(group["comparison"]["correlation"])) if has_several else [],
        "figures": figure_views(images),
    }


def _board(group: Mapping[str, Any]) -> dict[str, Any]:
    """The leaderboard: a row for each system, best first, with the metric that sorts it and some more."""
    board, comparisons = group["leaderboard"], group["comparison"]["metrics"]
    systems = {system["label"]: system for system in group["systems"]}
    has_several = len(systems) > 1

    def cell(label: str, name: str) -> dict[str, str]:
        (cell,) = _row(name, [systems[label]], comparisons.get(name, {}) if has_several else {})["cells"]
        return dict(cell)

    names = [board["metric"], *board["beside"]]
    return {
        "line": leaderboard_line(board, group["systems"]),
        "metric": HEADLINE.get(board["metric"], board["metric"]),
        "heads": [HEADLINE.get(name, name) for name in names],
        "tested": board["tested"],
        "kinds": sorted({row["kind"] for row in board["rows"]}),
        "rows": [
            {
                "label": row["label"],
                "kind": KINDS[row["kind"]],
                "kind_key": row["kind"],
                "n": f"{row['n']:,}",
                "undecided": f"{row['undecided']:,}",
                "cells": [cell(row["label"], name) for name in names],
                "interval": _interval(metric_of(systems[row["label"]], board["metric"])),
            }
            for row in board["rows"]
        ],
    }


def _interval(metric: Mapping[str, Any]) -> dict[str, str] | None:
    """Where value and interval lie on a scale from 0 to 100 %; None without both, or beyond the scale."""
    value, ends = metric["value"], metric.get("interval95")
    if value is None or not ends or not 0 <= ends[0] <= value <= ends[1] <= 1:
        return None
    low, high = (100 * end for end in ends)
    return {"low": f"{low:.4g}", "width": f"{high - low:.4g}", "value": f"{100 * value:.4g}"}


def _published_view(table: Mapping[str, Any]) -> dict[str, Any]:
    """A table of published figures; `heads` are its metrics, each with the one here that counts the same."""
    decimals = 1 if all(round(value, 1) == value for row in table["systems"] for value in row["values"]) else 2
    facts = [table["where"], f"corpus: {table['corpus']}", f"n: {table['n']}"]
    return {
        "title": table["title"],
        "url": table["url"],
        "facts": facts + ([] if table["judge"] is None else [f"judge: {table['judge']}"]),
        "compares": table["compares"],
        "heads": [{"metric": name, "ours": ours} for name, ours in zip(table["metrics"], table["ours"], strict=True)],
        "rows": [
            {"system": row["system"], "cells": [f"{value:.{decimals}f} %" for value in row["values"]]}
            for row in table["systems"]
        ],
    }


def _bar(outcomes: Mapping[str, Any], n: int) -> Iterator[dict[str, Any]]:
    position = 0
    for outcome, name in WAY_NAMES.items():
        count = outcomes[outcome]["count"]
        if count:
            x, width = 100 * position / n, 100 * count / n
            yield {
                "way": outcome, "name": name, "count": f"{count:,}", "x": f"{x:.4g}", "width": f"{width:.4g}",
                "middle": f"{x + width / 2:.4g}", "wide": width >= 6, "light": outcome in _LIGHT,
            }  # fmt: skip
        position += count


def _cells(outcomes: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    for outcome in WAY_NAMES:
        rate = outcomes[outcome]
        yield {
            "count": f"{rate['count']:,}",
            "share": _percent(rate["share"]),
            "range": percent_range(rate["interval95"]),
        }


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.1f} %"


def _row(name: str, systems: Sequence[Mapping[str, Any]], comparison: Mapping[str, Any]) -> dict[str, Any]:
    cells = []
    for system in systems:
        metric = metric_of(system, name)
        n = metric.get("n")
        cells.append(
            {
                "value": _percent(metric["value"]),
                "range": percent_range(metric.get("interval95")),
                "n": "" if n is None else f"{n:,}",
                "letters": comparison.get("letters", {}).get(system["label"], ""),
                "reason": metric.get("reason") or "",
            }
        )
    smallest = [pair["smallest_difference"] for pair in comparison.get("pairs", ()) if pair["smallest_difference"]]
    smallest_text = f"{100 * max(smallest):.1f} points" if smallest else ""
    return {"name": HEADLINE.get(name, name), "headline": name in HEADLINE, "cells": cells, "smallest": smallest_text}


_COSTS = {  # the row of a cost -> where it stands in metrics.json, and its format
    "seconds a question, median": (("latency", "p50"), ",.2f"),
    "seconds a question, 95th percentile": (("latency", "p95"), ",.2f"),
    "tokens read, an answer": (("tokens", "per_answer", "read"), ",.0f"),
    "tokens written, an answer": (("tokens", "per_answer", "written"), ",.0f"),
    "money, an answer": (("money", "per_answer"), ".6g"),
    "money, in all": (("money", "total"), ".4f"),
}


def _costs(systems: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """The rows of the table of costs that have a value."""
    for name, (keys, shape) in _COSTS.items():
        values = [_at(system, keys) for system in systems]
        if any(value is not None for value in values):
            yield {"name": name, "cells": ["" if value is None else format(value, shape) for value in values]}


def _at(value: Any, keys: Sequence[str]) -> float | None:  # noqa: ANN401  (JSON)
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, int | float) else None


def _predictions(systems: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """A line for each file of answers: what of it did not fit the benchmark."""
    for system in systems:
        if (record := system["predictions"]) is not None:
            problems = [f"{record[name]:,} {problem}" for name, problem in DID_NOT_FIT.items() if record.get(name)]
            fits = "every question has one answer, and every passage is known"
            yield f"{system['label']}: {'; '.join(problems) or fits}"


def _absent(systems: Sequence[Mapping[str, Any]], with_value: Sequence[str]) -> Iterator[str]:
    reasons: dict[str, list[str]] = {}
    for system in systems:
        for name, metric in system["metrics"].items():
            if metric["value"] is None and name not in with_value:
                reasons.setdefault(metric.get("reason") or "no value", []).append(name)
    for reason, names in reasons.items():
        yield f"{', '.join(dict.fromkeys(names))}: {reason}"


def _pair(metric: str, pair: Mapping[str, Any]) -> dict[str, str]:
    return {
        "metric": metric,
        "a": pair["a"],
        "b": pair["b"],
        "value": f"{100 * pair['value']:+.1f}",
        "range": percent_range(pair["interval95"]),
        "better": str(pair.get("better", "")),
        "worse": str(pair.get("worse", "")),
        "p": _p(pair["p"]),
        "p_holm": _p(pair["p_holm"]),
    }


def _p(p: float | None) -> str:
    return "" if p is None else "< 0.001" if p < 0.001 else f"{p:.3f}"


def _correlation(correlations: Mapping[str, Any]) -> Iterator[str]:
    for name, correlation in correlations.items():
        if correlation["kendall_tau_b"] is not None:
            yield f"{name}: Kendall's tau-b {correlation['kendall_tau_b']:.2f}, over {correlation['systems']} systems"


def _history(report: Mapping[str, Any]) -> Iterator[str]:
    for run in report["provenance"]["runs"]:
        checksums = ", ".join(f"{name} {value[:12]}" for name, value in run["inputs"].items())
        day = f" ({run['date']})" if run["date"] else ""
        yield f"run {run['folder']} of {run['benchmark']} {run['version']}{day}: {run['command'] or 'command unknown'}"
        if run["right"]:
            yield f"an answer is right by the rule {run['right']}"
        if run["data"]:
            data = ", ".join(f"{name} {value[:12]}" for name, value in run["data"].items())
            yield f"SHA-256 of the benchmark's files: {data}"
        yield f"SHA-256 of the run's files: {checksums}"
        if run["versions"]:
            yield f"made with: {_join_versions(run['versions'])}"
    yield f"this page was written with: {_join_versions(report['provenance']['versions'])}"


def _join_versions(versions: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {value}" for name, value in versions.items())
