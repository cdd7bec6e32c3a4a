"""The metrics of one system over the items of a run, beside those that `autoais` computes from its answers."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from autoais.metrics.ppi import correct_rate
from autoais.metrics.rates import Rate
from rag.answer.llms import Price, cost
from rag.base.types import Question
from rag.bench.human import HumanLabels
from rag.bench.items import WAYS, Item
from rag.bench.outcomes import holds_nuggets

WORDS = (60, 120)
"""Cuts of an answer for nuggets."""


def ways(items: Sequence[Item]) -> dict[str, Any]:
    """Return count, share and 95 % interval of each way an answer can go; the shares add up to 1."""
    counts = Counter(item.way for item in items)
    found = {}
    for way in WAYS:
        record = Rate(counts[way], len(items)).record()
        found[way] = {"count": counts[way], "share": record["value"], "interval95": record["interval95"]}
    return found


def item_metrics(items: Sequence[Item]) -> dict[str, Any]:
    """Return the metrics that need more than an answer and its judgements.

    - `right`: right answers by the benchmark's rule, of the answerable questions. `right@60`, `right@120`: the first
      words hold all nuggets.
    - `answerable_refused`, `unanswerable_refused`: refusals, of the questions of each kind.
    - `attributed_answers`: AutoAIS over the answers given, where `autoais` counts every question.
    """
    asked = [item for item in items if item.answerable]
    others = [item for item in items if not item.answerable]
    given = [item for item in items if not (item.abstained or item.missing)]
    found = {"right": _rate([item.right for item in asked], "the benchmark has no rule for right answers")}
    if any(item.nuggets for item in asked):
        for most in WORDS:
            held = [holds(item, most) for item in asked if item.nuggets]
            found[f"right@{most}"] = _rate(held, "")
    found["answerable_refused"] = _rate([_refused(item) for item in asked], "no question is answerable")
    found["unanswerable_refused"] = _rate([_refused(item) for item in others], "every question is answerable")
    found["attributed_answers"] = _rate([item.attributed for item in given], "no question was answered")
    return found


def _refused(item: Item) -> bool:
    """Whether the system said that the passages do not answer the question; a failed model refuses nothing."""
    return item.abstained and not item.failed


def holds(item: Item, words: int) -> bool:
    """Whether the first words of an item's answer hold all nuggets of its question."""
    text = "" if item.abstained else item.answer
    return bool(holds_nuggets(text, Question(item.id, item.question, nuggets=item.nuggets), words))


def _rate(outcomes: Sequence[bool | None], reason: str) -> dict[str, Any]:
    rate = Rate.of(outcomes)
    return rate.record() | ({} if rate.n else {"reason": reason})


def corrected_autoais(items: Sequence[Item], human: HumanLabels) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return AutoAIS corrected by human labels (`autoais.metrics.ppi`), and the human record: labels and their rate.

    Refusals and missing answers are not attributable whoever judges; they need no label and enter as they are.
    """
    labels, counts = human.of(items)
    judged = [item.attributed is True for item in items]
    record = {**counts, "attributable": Rate.of(labels.values()).record() if labels else None}
    labels = {place: label for place, label in labels.items() if items[place].sentences}
    if len(labels) < 2:
        return {"value": None, "reason": f"{len(labels)} of the answers have human labels; 2 are needed"}, record
    return correct_rate(judged, labels, sum(not item.sentences for item in items)), record


def latency(items: Sequence[Item]) -> dict[str, Any] | None:
    """Return seconds per answer: p50, p95, mean and n; None if no time was measured."""
    seconds = sorted(item.seconds for item in items if item.seconds is not None)
    if not seconds:
        return None
    p50, p95 = (quantile(seconds, share) for share in (0.5, 0.95))
    return {"p50": p50, "p95": p95, "mean": fmean(seconds), "n": len(seconds)}


def quantile(values: Sequence[float], share: float) -> float:
    """Return the smallest of sorted values that a share of them does not exceed (the nearest rank)."""
    return values[math.ceil(share * len(values)) - 1]


def tokens(items: Sequence[Item]) -> dict[str, Any] | None:
    """Return the tokens that language models read and wrote, in all and per answer; None if none were counted."""
    counted = [(item.tokens_read or 0, item.tokens_written or 0) for item in items if item.tokens_read is not None]
    if not counted:
        return None
    read, written = map(sum, zip(*counted, strict=True))
    each = {"read": read / len(counted), "written": written / len(counted)}
    return {"read": read, "written": written, "answers": len(counted), "per_answer": each}


def money(used: Mapping[str, Any] | None, price: Price | None) -> dict[str, Any] | None:
    """Return the cost of the tokens of the answers at a price per million input and output tokens."""
    if used is None or price is None:
        return None
    total = cost(used["read"], used["written"], price)
    return {"price_per_million": list(price), "total": total, "per_answer": total / used["answers"]}
