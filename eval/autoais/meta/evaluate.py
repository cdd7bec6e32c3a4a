"""Meta-evaluation: agreement of a judge's verdicts with human labels, per data set."""

import heapq
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autoais.base.labels import LabelledClaim
from autoais.base.types import Attribution, Judge, Judgement, Support, Verdict, nothing_to_judge
from autoais.meta import correlation
from autoais.metrics import attrscore, intervals
from autoais.metrics.classification import (
    balanced_accuracy,
    cohen_kappa,
    count_by_probability,
    false_negative_rate,
    false_positive_rate,
    macro_f1,
    one_class,
    roc_auc,
    roc_curve,
)
from autoais.metrics.intervals import Estimate, by_question, combine, number_components, number_of, ratio

_BATCH = 512
_BINS = 10
_EXCERPT = 400  # characters kept of question and evidence of a worst disagreement
_VERDICTS = tuple(Verdict)
_LEVELS = tuple(Support)
NO_LEVELS, TWO_WAY = "the labels have no levels of support", "the labels are two-way"
_NEED_BOTH = ("macro_f1", "macro_f1_floor")  # figures that have a value for labels of one class, but say little then

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Numbers = NDArray[np.int64]


def _bins(probability: Floats) -> Numbers:
    return np.minimum((probability * _BINS).astype(np.int64), _BINS - 1)


def reliability(truth: Bools, probability: Floats, questions: Numbers) -> list[dict[str, Any]]:
    """Ten bins of equal width, each with its count, mean probability and share of claims labelled attributable.

    `bin` 3 covers [0.3, 0.4); empty bins are left out. `interval95` is that of the share, over questions.
    """
    bin_numbers = _bins(probability)
    return [
        {
            "bin": b,
            "n": int(in_bin.sum()),
            "probability": float(probability[in_bin].mean()),
            "attributable": float(truth[in_bin].mean()),
            "interval95": _interval(_share(truth[in_bin], np.ones_like(truth[in_bin]), questions[in_bin])),
        }
        for b in range(_BINS)
        if (in_bin := bin_numbers == b).any()
    ]


def calibration_error(truth: Bools, probability: Floats) -> float | None:
    """Expected calibration error: the gaps of `reliability` weighted by n, 0 to 1; None without claims."""
    if not len(truth):
        return None
    return float(np.abs(np.bincount(_bins(probability), probability - truth)).sum() / len(truth))


def judge_labels(labels: Iterable[LabelledClaim], judge: Judge) -> Iterator[tuple[LabelledClaim, Judgement]]:
    """Each label with the judge's judgement, streamed in batches."""
    stream = iter(labels)
    while batch := list(islice(stream, _BATCH)):
        yield from zip(batch, judge.judge([label.attribution for label in batch]), strict=True)


def evaluate(labels: Iterable[LabelledClaim], judge: Judge, *, worst: int = 5) -> dict[str, Any]:
    """Judge every labelled claim and report figures per data set and on average (the mean over sets), as fractions.

    `n` counts the decided claims; undecided ones enter only `macro_f1_floor`, where they count as no. Figures that need
    probabilities use the `with_probability` decided claims that have one, and are null for a set in which the judge
    gives none. Claims are decided without the judge, with probability 0, if nothing is said or cited. `reasons`
    explains each null. The average leaves out the macro-F1 of sets whose labels are all the same (`one_class`). The
    95 % intervals are over questions, as claims of one question are not independent; claims without a question are
    taken together if they share their text or their evidence. Memory holds 31 bytes per claim and the texts of the
    `worst` disagreements of each set.
    """
    sets, estimates = {}, []
    for name, tally in _tally_sets(judge_labels(labels, judge), worst).items():
        rows = tally.rows()
        estimates.append(estimates_of(rows))
        sets[name] = one_set(rows, estimates[-1]) | {"worst": tally.worst}
    return {"judge": judge.name, "sets": sets, "average": average_of(list(sets.values()), estimates)}


def rows_by_set(pairs: Iterable[tuple[LabelledClaim, Judgement]]) -> dict[str, "Rows"]:
    """Return the columns of each data set of judged labels (`judge_labels`), sorted by name."""
    return {name: tally.rows() for name, tally in _tally_sets(pairs, 0).items()}


def _tally_sets(pairs: Iterable[tuple[LabelledClaim, Judgement]], worst: int) -> dict[str, "_Tally"]:
    tallies: dict[str, _Tally] = {}
    for label, judgement in pairs:
        if label.dataset not in tallies:
            tallies[label.dataset] = _Tally(worst)
        tallies[label.dataset].add(label, judgement)
    return dict(sorted(tallies.items()))


FIGURES = (
    "macro_f1", "macro_f1_floor", "balanced_accuracy", "false_positive_rate", "false_negative_rate", "roc_auc",
    "cohen_kappa", "calibration_error",
)  # fmt: skip


def without_texts(result: dict[str, Any]) -> dict[str, Any]:
    """The result without texts of the data: worst disagreements keep only ids, labels, verdicts and probabilities."""
    keys = ("id", "attributable", "verdict", "probability")
    sets = {
        name: record | {"worst": [{key: item[key] for key in keys} for item in record["worst"]]}
        for name, record in result["sets"].items()
    }
    return result | {"sets": sets}


@dataclass(frozen=True, slots=True)
class Rows:
    """The claims of a data set and their verdicts as columns, in an order that depends only on their values.

    `label` is the index of a three-way label in AttrScore's classes, `system` the index in `systems`; both are -1 if
    missing; `level` is that of a level of support. `question` is equal for claims of one question, or that share text
    or evidence. A missing `probability` is NaN.
    """

    truth: Bools
    prediction: Bools
    is_decided: Bools
    probability: Floats
    verdict: NDArray[np.int8]
    label: NDArray[np.int8]
    level: NDArray[np.int8]
    system: NDArray[np.int32]
    question: Numbers
    systems: tuple[str, ...]


class _Tally:
    """Collects the labels and judgements of one data set."""

    def __init__(self, worst: int) -> None:
        self.worst: list[dict[str, Any]] = []
        self._most = worst
        self._truth, self._verdict, self._label, self._level = array("b"), array("b"), array("b"), array("b")
        self._probability, self._system = array("d"), array("i")
        self._claim, self._evidence = array("q"), array("q")  # by number; both the question's, if there is one
        self._systems: dict[str, int] = {}
        self._has_probabilities = False

    def add(self, label: LabelledClaim, judgement: Judgement) -> None:
        without_judge = nothing_to_judge(label.attribution) is not None
        probability = 0.0 if without_judge else judgement.probability
        self._has_probabilities |= not without_judge and probability is not None
        self._truth.append(label.attributable)
        self._verdict.append(_VERDICTS.index(judgement.verdict))
        three_way = label.verdict in attrscore.CLASSES
        self._label.append(attrscore.CLASSES.index(label.verdict) if three_way and label.verdict else -1)
        self._level.append(-1 if label.support is None else _LEVELS.index(label.support))
        self._probability.append(np.nan if probability is None else probability)
        self._system.append(self._systems.setdefault(label.system, len(self._systems)) if label.system else -1)
        for numbers, key in zip((self._claim, self._evidence), group_keys(label.attribution), strict=True):
            numbers.append(number_of(key))
        if judgement.verdict.ais is not None and judgement.verdict.ais != label.attributable:
            self._disagreement(label, judgement.verdict, probability)

    def _disagreement(self, label: LabelledClaim, verdict: Verdict, probability: float | None) -> None:
        disagreement = {
            "id": label.id,
            "question": _excerpt(label.attribution.question),
            "claim": label.attribution.claim,
            "evidence": _excerpt(" ".join(label.attribution.evidence)),
            "attributable": label.attributable,
            "verdict": verdict.value,
            "probability": probability,
        }
        self.worst = heapq.nsmallest(self._most, [*self.worst, disagreement], key=_agreement)

    def rows(self) -> Rows:
        """The columns. If the judge gave no probability, those of claims decided without it are dropped too."""
        names = sorted(self._systems)
        rank_of_number = {self._systems[name]: rank for rank, name in enumerate(names)} | {-1: -1}
        columns = (self._truth, self._verdict, self._label, self._level)
        truth, verdict, label, level = (np.array(column, np.int8) for column in columns)
        system = np.array([rank_of_number[number] for number in self._system], np.int32)
        probability = np.array(self._probability) if self._has_probabilities else np.full(len(truth), np.nan)
        question = number_components(np.array(self._claim, np.int64), np.array(self._evidence, np.int64))
        order = np.lexsort((question, system, level, label, verdict, truth, probability))
        verdict = verdict[order]
        return Rows(
            truth[order].astype(np.bool_),
            verdict == _VERDICTS.index(Verdict.ATTRIBUTABLE),
            verdict != _VERDICTS.index(Verdict.UNDECIDED),
            probability[order],
            verdict,
            label[order],
            level[order],
            system[order],
            question[order],
            tuple(names),
        )


def group_keys(attribution: Attribution) -> tuple[str, str]:
    """Two keys; claims that share one are not independent: the question; without one, the claim and the evidence."""
    if attribution.question:
        key = f"question {attribution.question}"
        return key, key
    key = f"claim {attribution.claim}"
    return key, f"evidence {chr(0).join(attribution.evidence)}" if attribution.evidence else key


def _excerpt(text: str) -> str:
    return text if len(text) <= _EXCERPT else text[:_EXCERPT] + "..."


def _agreement(disagreement: dict[str, Any]) -> tuple[float, str]:
    """Sort key, lowest first: closeness of the probability to the label (0 without a probability), then id."""
    return (
        0.0
        if disagreement["probability"] is None
        else 1 - abs(disagreement["probability"] - disagreement["attributable"])
    ), disagreement["id"]


def _figures(rows: Rows) -> dict[str, float | None]:
    has_probability = rows.is_decided & ~np.isnan(rows.probability)
    truth, verdicts, probability = (
        rows.truth[rows.is_decided],
        rows.prediction[rows.is_decided],
        rows.probability[has_probability],
    )
    has_claims = bool(len(truth))
    return {
        "macro_f1": macro_f1(truth, verdicts) if has_claims else None,
        "macro_f1_floor": macro_f1(rows.truth, rows.prediction),
        "balanced_accuracy": balanced_accuracy(truth, verdicts) if has_claims else None,
        "false_positive_rate": false_positive_rate(truth, verdicts) if has_claims else None,
        "false_negative_rate": false_negative_rate(truth, verdicts) if has_claims else None,
        "roc_auc": roc_auc(rows.truth[has_probability], probability),
        "cohen_kappa": cohen_kappa(truth, verdicts) if has_claims else None,
        "calibration_error": calibration_error(rows.truth[has_probability], probability),
    }


def estimates_of(rows: Rows) -> dict[str, Estimate | None]:
    """Return the figures as estimates over questions, for their intervals."""
    has_probability = rows.is_decided & ~np.isnan(rows.probability)
    truth, verdicts, question = (
        rows.truth[rows.is_decided],
        rows.prediction[rows.is_decided],
        rows.question[rows.is_decided],
    )
    with_probability = rows.truth[has_probability], rows.probability[has_probability], rows.question[has_probability]
    return {
        "macro_f1": _macro_f1(truth, verdicts, question),
        "macro_f1_floor": _macro_f1(rows.truth, rows.prediction, rows.question),
        "balanced_accuracy": _balanced_accuracy(truth, verdicts, question),
        "false_positive_rate": _share(~truth & verdicts, ~truth, question),
        "false_negative_rate": _share(truth & ~verdicts, truth, question),
        "roc_auc": _roc_auc(*with_probability),
        "cohen_kappa": _cohen_kappa(truth, verdicts, question),
        "calibration_error": _calibration_error(*with_probability),
    }


def _share(yes: Bools | Numbers, total: Bools | Numbers, questions: Numbers) -> Estimate | None:
    """The sum of `yes` over the sum of `total`."""
    return ratio(*by_question(questions, yes.astype(np.float64), total.astype(np.float64)))


def _macro_f1(truth: Bools, verdicts: Bools, questions: Numbers) -> Estimate | None:
    sides = ((truth, verdicts), (~truth, ~verdicts))
    f1s = [_share(2 * (a & b), a.astype(np.int64) + b, questions) for a, b in sides]
    known_f1s = [estimate for estimate in f1s if estimate is not None]
    share = 1 / max(1, len(known_f1s))
    return (
        combine(share * sum(estimate.value for estimate in known_f1s), *((share, estimate) for estimate in known_f1s))
        if known_f1s
        else None
    )


def _balanced_accuracy(truth: Bools, verdicts: Bools, questions: Numbers) -> Estimate | None:
    yes, no = _share(truth & verdicts, truth, questions), _share(~truth & ~verdicts, ~truth, questions)
    if yes is None or no is None:
        return None
    return combine((yes.value + no.value) / 2, (0.5, yes), (0.5, no))


ESTIMATES = {"macro_f1": _macro_f1, "balanced_accuracy": _balanced_accuracy}
"""Figures of verdicts as estimates over questions: functions of labels, verdicts and the number of each question."""


def _roc_auc(truth: Bools, probability: Floats, questions: Numbers) -> Estimate | None:
    """The variance is that of clustered ROC curves (Obuchowski 1997, Biometrics 53:567)."""
    auc = roc_auc(truth, probability)
    if auc is None:
        return None
    codes = np.unique(probability, return_inverse=True)[1]
    yes, no = count_by_probability(truth, codes)
    share_below = ((np.cumsum(no) - no / 2) / no.sum())[codes]  # share of the noes below each claim
    share_above = (1 - (np.cumsum(yes) - yes / 2) / yes.sum())[codes]
    parts = np.where(truth, (share_below - auc) / yes.sum(), (share_above - auc) / no.sum())
    (sums_by_question,) = by_question(questions, parts)
    sizes = [
        estimate.size for estimate in (_share(truth, truth, questions), _share(~truth, ~truth, questions)) if estimate
    ]
    return Estimate(auc, sums_by_question, len(sums_by_question), min(sizes))


def _cohen_kappa(truth: Bools, verdicts: Bools, questions: Numbers) -> Estimate | None:
    kappa = cohen_kappa(truth, verdicts) if len(truth) else None
    ones_column = np.ones_like(truth)
    same_verdict, yes, judge_yes = (
        _share(column, ones_column, questions) for column in (truth == verdicts, truth, verdicts)
    )
    if kappa is None or same_verdict is None or yes is None or judge_yes is None:
        return None
    disagreement_by_chance = 1 - (
        yes.value * judge_yes.value + (1 - yes.value) * (1 - judge_yes.value)
    )  # not expected by chance
    slope = -(1 - same_verdict.value) / disagreement_by_chance**2
    terms = (
        (1 / disagreement_by_chance, same_verdict),
        (slope * (2 * judge_yes.value - 1), yes),
        (slope * (2 * yes.value - 1), judge_yes),
    )
    return combine(kappa, *terms, low=-1.0, high=1.0)


def _calibration_error(truth: Bools, probability: Floats, questions: Numbers) -> Estimate | None:
    error = calibration_error(truth, probability)
    if error is None:
        return None
    bin_numbers = _bins(probability)
    gaps = np.bincount(bin_numbers, probability - truth, minlength=_BINS)
    parts, sizes = by_question(questions, np.sign(gaps)[bin_numbers] * (probability - truth), np.ones(len(truth)))
    return Estimate(error, (parts - error * sizes) / len(truth), len(sizes), len(truth) ** 2 / float((sizes**2).sum()))


def _interval(estimate: Estimate | None) -> list[float] | None:
    return None if estimate is None else list(estimate.interval)


def one_set(rows: Rows, estimates: dict[str, Estimate | None]) -> dict[str, Any]:
    """Return what `evaluate` reports of one data set, but for its worst disagreements."""
    figures = _figures(rows)
    has_probability = rows.is_decided & ~np.isnan(rows.probability)
    truth, probability = rows.truth[has_probability], rows.probability[has_probability]
    n = int(rows.is_decided.sum())
    result: dict[str, Any] = {
        "n": n,
        "questions": len(np.unique(rows.question[rows.is_decided])),
        "undecided": len(rows.truth) - n,
        "with_probability": int(has_probability.sum()),
        "attributable": float(rows.truth[rows.is_decided].mean()) if n else None,
        "one_class": bool(n) and one_class(rows.truth[rows.is_decided]),
        **figures,
        "interval95": {name: None if figures[name] is None else _interval(estimates[name]) for name in FIGURES},
        "reliability": reliability(truth, probability, rows.question[has_probability]) or None,
        "roc": roc_curve(truth, probability),
        "systems": _systems(rows),
        "three_way": _three_way(rows),
        "levels": _levels(rows),
    }
    return result | {
        "reasons": {name: _why(name, rows, has_probability) for name, value in result.items() if value is None}
    }


def _why(name: str, rows: Rows, has_probability: Bools) -> str:
    """The reason why a figure is null."""
    if name == "systems":
        return f"{len(rows.systems)} systems are named; at least {correlation.MIN_SYSTEMS} are needed"
    if name == "levels":
        if (rows.level < 0).all():
            return NO_LEVELS
        return "the judge never says partial, only attributable or not"
    if name == "three_way":
        if (rows.label < 0).all():
            return TWO_WAY
        return "the judge never returns extrapolatory or contradictory, only not attributable"
    if not rows.is_decided.any():
        return "nothing was decided"
    if name in ("roc_auc", "roc", "calibration_error", "reliability") and not has_probability.any():
        return "the judge gave no probabilities"
    return "all labels are the same" if name != "cohen_kappa" else "labels and verdicts are all the same"


def _systems(rows: Rows) -> dict[str, Any] | None:
    if len(rows.systems) < correlation.MIN_SYSTEMS:
        return None
    has_system = rows.system >= 0
    has_verdict = has_system & rows.is_decided
    question_ids, question = np.unique(rows.question[has_verdict], return_inverse=True)
    cells = np.zeros((len(question_ids), len(rows.systems), 4), np.int64)
    np.add.at(
        cells, (question, rows.system[has_verdict], 2 * rows.truth[has_verdict] + rows.prediction[has_verdict]), 1
    )
    undecided_counts = np.bincount(rows.system[has_system & ~rows.is_decided], minlength=len(rows.systems))
    return correlation.over_systems(rows.systems, cells, [int(count) for count in undecided_counts])


def _three_way(rows: Rows) -> dict[str, Any] | None:
    """AttrScore's figures (Yue et al. 2023) over the claims with a three-way label."""
    has_label = rows.label >= 0
    if not has_label.any():
        return None
    verdicts = [_VERDICTS[code] for code in rows.verdict[has_label]]
    if Verdict.NOT_ATTRIBUTABLE in verdicts and not set(attrscore.CLASSES[1:]) & set(verdicts):
        return None
    return attrscore.evaluate(
        [attrscore.CLASSES[code] for code in rows.label[has_label]], verdicts, rows.question[has_label]
    )


def _levels(rows: Rows) -> dict[str, Any] | None:
    """The levels of support of the judge beside those of people, over the claims that have one."""
    has_level = rows.level >= 0
    levels = [_VERDICTS[code].support for code in rows.verdict[has_level]]
    if Support.PARTIAL not in levels:
        return None
    return attrscore.evaluate_levels(
        [_LEVELS[code] for code in rows.level[has_level]], levels, rows.question[has_level]
    )


def average_of(sets: Sequence[dict[str, Any]], estimates: Sequence[dict[str, Estimate | None]]) -> dict[str, Any]:
    """Return the mean over the sets that have the figure, with an interval over the questions of all sets.

    Macro-F1 leaves out sets whose labels are all the same.
    """
    average: dict[str, Any] = {}
    ends: dict[str, list[float] | None] = {}
    counts: dict[str, int] = {}
    for name in FIGURES:
        set_numbers = [
            number
            for number, record in enumerate(sets)
            if record[name] is not None and not (name in _NEED_BOTH and record["one_class"])
        ]
        average[name] = sum(sets[number][name] for number in set_numbers) / len(set_numbers) if set_numbers else None
        counts[name] = len(set_numbers)
        known_estimates = [estimate for number in set_numbers if (estimate := estimates[number][name]) is not None]
        ends[name] = list(intervals.average(known_estimates)) if known_estimates else None
    default_reasons = {
        name: "no data set has labels of both classes"
        for name in _NEED_BOTH
        if any(record[name] is not None for record in sets)
    }
    reasons = {name: default_reasons.get(name, "no data set has it") for name in FIGURES if average[name] is None}
    return average | {"interval95": ends, "sets": counts, "reasons": reasons}
