"""The metrics of one system over the items of a run, beside those that `autoais` computes from its answers."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from autoais.metrics.intervals import number_of
from autoais.metrics.ppi import correct_rate
from autoais.metrics.rates import Rate
from rag.answer.llms import Price, cost
from rag.base.types import Question
from rag.bench.human import HumanLabels
from rag.bench.items import OUTCOMES, Item
from rag.bench.outcomes import holds_nuggets

WORDS = (60, 120)
"""Cuts of an answer for nuggets."""


def ways(items: Sequence[Item]) -> dict[str, Any]:
    """Return count, share and 95 % interval of each way an answer can go; the shares add up to 1."""
    counts = Counter(item.way for item in items)
    rates = {}
    for outcome in OUTCOMES:
        record = Rate(counts[outcome], len(items)).record()
        rates[outcome] = {"count": counts[outcome], "share": record["value"], "interval95": record["interval95"]}
    return rates


def item_metrics(items: Sequence[Item]) -> dict[str, Any]:
    """Return the metrics that need more than an answer and its judgements.

    - `right`: right answers by the benchmark's rule, of the answerable questions. `right@60`, `right@120`: the first
      words hold all nuggets.
    - `answerable_refused`, `unanswerable_refused`: refusals, of the questions of each kind.
    - `attributed_answers`: AutoAIS over the answers given, where `autoais` counts every question.
    """
    answerable_items = [item for item in items if item.answerable]
    unanswerable_items = [item for item in items if not item.answerable]
    answer_items = [item for item in items if not (item.abstained or item.missing)]
    metrics = {"right": _rate([item.right for item in answerable_items], "the benchmark has no rule for right answers")}
    if any(item.nuggets for item in answerable_items):
        for max_words in WORDS:
            outcomes = [holds(item, max_words) for item in answerable_items if item.nuggets]
            metrics[f"right@{max_words}"] = _rate(outcomes, "")
    metrics["answerable_refused"] = _rate([_is_refusal(item) for item in answerable_items], "no question is answerable")
    metrics["unanswerable_refused"] = _rate(
        [_is_refusal(item) for item in unanswerable_items], "every question is answerable"
    )
    metrics["attributed_answers"] = _rate([item.attributed for item in answer_items], "no question was answered")
    return metrics


def _is_refusal(item: Item) -> bool:
    """Whether the system said that the passages do not answer the question; a failed model refuses nothing."""
    return item.abstained and not item.failed


def holds(item: Item, words: int) -> bool | None:
    """Whether the first words of an item's answer hold all nuggets of its question; None if it has none."""
    if not item.answerable:
        return None
    text = "" if item.abstained else item.answer
    return holds_nuggets(text, Question(item.id, item.question, nuggets=item.nuggets), words)


def _rate(outcomes: Sequence[bool | None], reason: str) -> dict[str, Any]:
    rate = Rate.of(outcomes)
    return rate.record() | ({} if rate.n else {"reason": reason})


def correct_autoais(items: Sequence[Item], human: HumanLabels) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return AutoAIS corrected by human labels (`autoais.metrics.ppi`), and the human record: labels and their rate.

    Refusals and missing answers are not attributable whoever judges; they need no label and enter as they are.
    """
    labels, counts = human.of(items)
    verdicts = [item.attributed is True for item in items]
    record = {**counts, "attributable": Rate.of(labels.values()).record() if labels else None}
    labels = {index: label for index, label in labels.items() if items[index].sentences}
    if len(labels) < 2:
        return {"value": None, "reason": f"{len(labels)} of the answers have human labels; 2 are needed"}, record
    questions = [number_of(item.question) for item in items]
    settled = [index for index, item in enumerate(items) if not item.sentences]
    return correct_rate(verdicts, labels, questions=questions, settled=settled), record


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
    token_counts = [(item.tokens_read or 0, item.tokens_written or 0) for item in items if item.tokens_read is not None]
    if not token_counts:
        return None
    tokens_read, tokens_written = map(sum, zip(*token_counts, strict=True))
    means = {"read": tokens_read / len(token_counts), "written": tokens_written / len(token_counts)}
    return {"read": tokens_read, "written": tokens_written, "answers": len(token_counts), "per_answer": means}


def money(usage: Mapping[str, Any] | None, price: Price | None) -> dict[str, Any] | None:
    """Return the cost of the tokens of the answers at a price per million input and output tokens."""
    if usage is None or price is None:
        return None
    total = cost(usage["read"], usage["written"], price)
    return {"price_per_million": list(price), "total": total, "per_answer": total / usage["answers"]}
