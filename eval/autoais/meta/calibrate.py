"""Calibration of a judge's threshold and probabilities on human labels, stored in a file for `autoais score`."""

import hashlib
import json
import math
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from autoais.base.errors import FormatError, UserError, check_type, json_kind, unreadable
from autoais.base.io.jsonl import field, parse_object
from autoais.base.labels import LabelledClaim
from autoais.base.types import Attribution, Judge, Judgement, Verdict, nothing_to_judge
from autoais.meta.evaluate import ESTIMATES, Bools, Floats, Numbers, calibration_error, group_keys, judge_labels
from autoais.meta.logistic import fit_logistic
from autoais.metrics.classification import balanced_accuracy, macro_f1, one_class
from autoais.metrics.intervals import average as average_interval
from autoais.metrics.intervals import difference, number_components, number_of

AIMS = ("macro_f1", "balanced_accuracy")
_VERSION = 1
_MARGIN = 1e-3  # 0 and 1 have no logit, so probabilities are scaled into the margin, which keeps their order
_DIGITS = 6  # of the fitted numbers, rounded before evaluation so that stored and evaluated numbers are equal


@dataclass(frozen=True, slots=True)
class Calibration:
    """The calibration of a judge: claims are attributable if the judge's own probability reaches `threshold`.

    `threshold` is above 0 and at most 1. Platt scaling turns a probability p into
    1 / (1 + exp(-(slope * logit(p) + intercept))); `slope` is positive, so the order of probabilities stays. Other
    numbers raise `ValueError`.
    """

    judge: str
    threshold: float
    slope: float
    intercept: float

    def __post_init__(self) -> None:
        if not 0 < self.threshold <= 1:
            raise ValueError(f"threshold {self.threshold}: must be above 0 and at most 1")
        if not (0 < self.slope < math.inf):
            raise ValueError(f"slope {self.slope}: must be above 0 and finite")
        if not math.isfinite(self.intercept):
            raise ValueError(f"intercept {self.intercept}: must be finite")

    @property
    def digest(self) -> str:
        """8 hex digits of a hash of the judge's name and all numbers."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:8]

    def scale(self, probability: Floats) -> Floats:
        """The calibrated probabilities, 0 to 1."""
        with np.errstate(over="ignore"):  # overflow gives the limits 0 or 1
            return np.asarray((1 + np.tanh((self.slope * _logit(probability) + self.intercept) / 2)) / 2)


def _logit(probability: Floats) -> Floats:
    clipped_probability = _MARGIN + (1 - 2 * _MARGIN) * probability
    return np.asarray(np.log(clipped_probability / (1 - clipped_probability)))


class CalibratedJudge(Judge):
    """A judge with a calibration applied: scaled probabilities and another threshold, same evidence and reasons.

    Below the threshold, extrapolatory and contradictory verdicts are unchanged; so are undecided ones anywhere.
    """

    def __init__(self, judge: Judge, calibration: Calibration) -> None:
        if judge.name != calibration.judge:
            raise UserError(f"the calibration was made for judge {calibration.judge!r}, not for {judge.name!r}")
        self._judge, self._calibration = judge, calibration

    @property
    def name(self) -> str:
        """The judge's name and the calibration's digest."""
        return f"{self._judge.name}+{self._calibration.digest}"

    def decide(self, attributions: Sequence[Attribution]) -> list[Judgement]:
        """Ask the judge, then apply the calibration to each judgement that has a probability."""
        return [self._one(judgement) for judgement in self._judge.judge(attributions)]

    def _one(self, judgement: Judgement) -> Judgement:
        probability, verdict = judgement.probability, judgement.verdict
        if probability is None or verdict is Verdict.UNDECIDED:
            return judgement
        if probability >= self._calibration.threshold:
            verdict = Verdict.ATTRIBUTABLE
        elif verdict is Verdict.ATTRIBUTABLE:
            verdict = Verdict.NOT_ATTRIBUTABLE
        return replace(judgement, verdict=verdict, probability=float(self._calibration.scale(np.array(probability))))


def open_calibrated_judge(judge: Judge, path: Path) -> Judge:
    """The judge with the calibration in the file, which `autoais calibrate` wrote for it.

    Raises `UserError` if the file is for another judge, and `FormatError` if it is not a calibration.
    """
    calibration = read_calibration(path)
    if calibration.judge != judge.name:
        raise UserError(f"{path}: made for judge {calibration.judge!r}, not for {judge.name!r}; run: autoais calibrate")
    return CalibratedJudge(judge, calibration)


def read_calibration(path: Path) -> Calibration:
    """The calibration in a file written by `autoais calibrate`.

    Raises `UserError` if it cannot be read, and `FormatError` for a missing or invalid field.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise unreadable(path, error) from error
    record = parse_object(content, str(path))
    if record.get("autoais_calibration") != _VERSION:
        raise FormatError(f"{path}: not a calibration of this version ('autoais_calibration': {_VERSION})")
    numbers = [_number(record, name, path) for name in ("threshold", "slope", "intercept")]
    try:
        return Calibration(field(record, "judge", str, str(path)), *numbers)
    except ValueError as error:
        raise FormatError(f"{path}: {error}") from error


def _number(record: dict[str, Any], name: str, path: Path) -> float:
    value = record.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise FormatError(f"{path}: field {name!r} should be a number, found {json_kind(value)}")
    try:
        return float(value)
    except OverflowError:
        raise FormatError(f"{path}: field {name!r} is too large") from None


@dataclass(frozen=True, slots=True)
class Claims:
    """Labelled claims that the judge decided with a probability, as columns; `dataset` is an index into `names`.

    `question` and `fold` are equal for all claims of one question, whatever their data set. `describe_left_out` counts
    the other claims by reason.
    """

    names: tuple[str, ...]
    dataset: Numbers
    truth: Bools
    prediction: Bools
    probability: Floats
    question: Numbers
    fold: Numbers
    exclusions: dict[str, int]

    def select(self, selection: Bools | Numbers) -> "Claims":
        """The selected claims (a mask or indices)."""
        return Claims(
            self.names,
            self.dataset[selection],
            self.truth[selection],
            self.prediction[selection],
            self.probability[selection],
            self.question[selection],
            self.fold[selection],
            self.exclusions,
        )


def collect(labels: Iterable[LabelledClaim], judge: Judge, folds: int) -> Claims:
    """Judge the labels; raises `UserError` if no claim is left to fit.

    Claims decided without the judge (nothing said or cited) are left out, since no calibration changes them, and so are
    claims that are undecided or have no probability.
    """
    rank_of_set: dict[str, int] = {}
    dataset, truth, verdicts, probability = array("q"), array("b"), array("b"), array("d")
    claim, evidence = array("q"), array("q")
    counts_left_out = {"undecided": 0, "by_rule": 0, "without_probability": 0}
    for label, judgement in judge_labels(labels, judge):
        if nothing_to_judge(label.attribution):
            counts_left_out["by_rule"] += 1
        elif judgement.verdict is Verdict.UNDECIDED:
            counts_left_out["undecided"] += 1
        elif judgement.probability is None:
            counts_left_out["without_probability"] += 1
        else:
            dataset.append(rank_of_set.setdefault(label.dataset, len(rank_of_set)))
            truth.append(label.attributable)
            verdicts.append(judgement.verdict is Verdict.ATTRIBUTABLE)
            probability.append(judgement.probability)
            keys = group_keys(label.attribution)
            claim.append(number_of(keys[0]))
            evidence.append(number_of(keys[1]))
    if not truth:
        if counts_left_out["without_probability"]:
            raise UserError(f"judge {judge.name!r} gives no probabilities; a threshold cannot be fitted")
        raise UserError(f"judge {judge.name!r}: no labels are left to fit")
    names = sorted(rank_of_set)
    rank = np.argsort(np.argsort(list(rank_of_set)))  # makes the result independent of the order of the files
    groups = number_components(np.array(claim), np.array(evidence))
    # The least key of a group tells its fold, so that further labels move no other group.
    group_keys_of_claims = np.full(groups.max() + 1, np.iinfo(np.int64).max)
    np.minimum.at(group_keys_of_claims, groups, np.array(claim))
    claims = Claims(
        tuple(names),
        rank[np.array(dataset)],
        np.array(truth, np.bool_),
        np.array(verdicts, np.bool_),
        np.array(probability),
        group_keys_of_claims[groups],
        group_keys_of_claims[groups] % folds,
        counts_left_out,
    )
    return claims.select(
        np.lexsort((claims.question, claims.fold, claims.dataset, claims.truth, claims.prediction, claims.probability))
    )


def describe_left_out(counts: Mapping[str, int]) -> str:
    """Say how many claims were left out, and why; empty if none was."""
    reasons = {"by_rule": "decided without the judge (nothing said or cited)"}
    return ", ".join(f"{count} {reasons.get(name, name.replace('_', ' '))}" for name, count in counts.items() if count)


def fit(claims: Claims, judge: str, by: str) -> Calibration:
    """The threshold with the best mean of `by` over the data sets, and the two parameters of Platt scaling.

    All data sets have equal weight, as in the average of `meta`. Of equally good thresholds the middle one is chosen.
    Raises `UserError` if the labels are all the same, all probabilities are the same, or the probability does not
    increase with the labels.
    """
    if claims.truth.all() or not claims.truth.any():
        exclusions = describe_left_out(claims.exclusions)
        note = f" (left out: {exclusions})" if exclusions else ""
        raise UserError(f"the labels are all the same{note}; a threshold needs claims of both classes")
    different = np.unique(claims.probability)
    thresholds = np.unique(np.round((different[1:] + different[:-1]) / 2, _DIGITS))
    thresholds = thresholds[thresholds > 0]
    if not len(thresholds):
        raise UserError(f"judge {judge!r} gives every claim the same probability; there is nothing to fit")
    values = _mean_over_sets(claims, thresholds, by)
    best = thresholds[values > values.max() - 1e-12]
    slope, intercept = (round(float(number), _DIGITS) for number in _platt(claims))
    if slope <= 0:
        raise UserError(
            f"judge {judge!r}: its probability does not increase with the labels; no calibration can fix that"
        )
    return Calibration(judge, float(best[len(best) // 2]), slope, intercept)


def _mean_over_sets(claims: Claims, thresholds: Floats, by: str) -> Floats:
    """The mean of `by` over the data sets with labels of both classes, at each threshold."""
    curves = []
    for dataset in np.unique(claims.dataset):
        in_set = claims.dataset == dataset
        yes, no = (np.sort(claims.probability[in_set & side]) for side in (claims.truth, ~claims.truth))
        if not len(yes) or not len(no):
            continue
        misses, right_no = (np.searchsorted(side, thresholds) for side in (yes, no))
        hits, wrong = len(yes) - misses, misses + len(no) - right_no
        if by == "macro_f1":
            curves.append((_f1(hits, wrong) + _f1(right_no, wrong)) / 2)
        else:
            curves.append((hits / len(yes) + right_no / len(no)) / 2)
    if not curves:
        raise UserError(f"no data set has labels of both classes, which {by} needs")
    return np.asarray(np.mean(curves, axis=0))


def _f1(hits: Numbers, wrong: Numbers) -> Floats:
    values: Floats = np.divide(2 * hits, 2 * hits + wrong, out=np.zeros(len(hits)), where=hits + wrong > 0)
    return values


def _platt(claims: Claims) -> Floats:
    """Maximum-likelihood slope and intercept of Platt scaling (Platt 1999; Lin et al. 2007).

    Platt's targets, slightly inside 0 and 1, keep both finite if the classes do not overlap.
    """
    features = np.stack([_logit(claims.probability), np.ones(len(claims.truth))], axis=1)
    yes = int(claims.truth.sum())
    no = len(claims.truth) - yes
    targets = np.where(claims.truth, (yes + 1) / (yes + 2), 1 / (no + 2))
    sizes = np.bincount(claims.dataset)
    weights = 1 / (np.count_nonzero(sizes) * sizes[claims.dataset])
    return fit_logistic(features, targets, weights, np.zeros(2), np.array([1.0, 0.0]))


def calibrate(labels: Iterable[LabelledClaim], judge: Judge, *, by: str = "macro_f1", folds: int = 5) -> dict[str, Any]:
    """Fit to all labels and cross-validate; returns the record that `read_calibration` reads.

    `cross_validation` has, for each data set and on average, macro-F1, balanced accuracy and calibration error of the
    judge without a calibration (`default`) and with one fitted to the other folds, as fractions; the fit and the
    averages of both aims leave out sets whose labels are all the same (`one_class`). `gain` is the difference in `by`,
    and `interval95` the 95 % intervals of both and of the gain, over groups of claims that share question, text or
    evidence, as in `meta`. Such claims share a fold, in whatever sets they are. Raises `UserError` if the labels do not
    suffice.
    """
    if by not in AIMS:
        raise UserError(f"by should be {' or '.join(AIMS)}, found {by!r}")
    check_type("folds", folds, "a number from 2 to 100", int)
    if not 2 <= folds <= 100:
        raise UserError(f"folds should be 2 to 100, found {folds}")
    claims = collect(labels, judge, folds)
    calibration = fit(claims, judge.name, by)
    return {
        "autoais_calibration": _VERSION,
        **asdict(calibration),
        "name": f"{judge.name}+{calibration.digest}",
        "by": by,
        "n": len(claims.truth),
        "left_out": claims.exclusions,
        "cross_validation": {"folds": len(np.unique(claims.fold)), **_cross_validate(claims, judge.name, by)},
    }


def _cross_validate(claims: Claims, judge: str, by: str) -> dict[str, Any]:
    verdicts, scaled_probability = claims.prediction.copy(), claims.probability.copy()
    folds = len(np.unique(claims.fold))
    for fold in np.unique(claims.fold):
        in_fold = claims.fold == fold
        try:
            calibration = fit(claims.select(~in_fold), judge, by)
        except UserError as error:
            raise UserError(
                f"too few questions for cross-validation: without one of {folds} folds, {error}; label more questions, "
                "or try another number of folds (claims that share question, text or evidence share a fold)"
            ) from error
        verdicts[in_fold] = claims.probability[in_fold] >= calibration.threshold
        scaled_probability[in_fold] = calibration.scale(claims.probability[in_fold])
    sets: dict[str, dict[str, Any]] = {}
    gains = []
    for number, name in enumerate(claims.names):
        in_set = claims.dataset == number
        default = _figures(claims.truth[in_set], claims.prediction[in_set], claims.probability[in_set])
        after = _figures(claims.truth[in_set], verdicts[in_set], scaled_probability[in_set])
        question = claims.question[in_set]
        estimates = [
            ESTIMATES[by](claims.truth[in_set], verdict_column[in_set], question)
            for verdict_column in (claims.prediction, verdicts)
        ]
        gain = None if None in estimates else difference(estimates[1], estimates[0])  # type: ignore[arg-type]
        single = one_class(claims.truth[in_set])
        if not single:
            gains.append(gain)
        sets[name] = {
            "n": int(in_set.sum()),
            "questions": len(np.unique(question)),
            "one_class": single,
            "default": default,
            "calibrated": after,
            "gain": _gain(default, after, by),
            "interval95": {
                key: None if estimate is None else list(estimate.interval)
                for key, estimate in zip(("default", "calibrated", "gain"), (*estimates, gain), strict=True)
            },
        }
    average: dict[str, Any] = {
        side: {
            name: _mean([record[side][name] for record in sets.values() if name not in AIMS or not record["one_class"]])
            for name in (*AIMS, "calibration_error")
        }
        for side in ("default", "calibrated")
    }
    known_gains = [gain for gain in gains if gain is not None]
    ends = {"gain": list(average_interval(known_gains)) if known_gains else None}
    mean_gain = _gain(average["default"], average["calibrated"], by)
    return {"sets": sets, "average": average | {"gain": mean_gain, "interval95": ends}}


def _figures(truth: Bools, verdicts: Bools, probability: Floats) -> dict[str, float | None]:
    return {
        "macro_f1": macro_f1(truth, verdicts),
        "balanced_accuracy": balanced_accuracy(truth, verdicts),
        "calibration_error": calibration_error(truth, probability),
    }


def _gain(before: dict[str, float | None], after: dict[str, float | None], by: str) -> float | None:
    new, old = after[by], before[by]
    return None if new is None or old is None else new - old


def _mean(values: Sequence[float | None]) -> float | None:
    known_values = [value for value in values if value is not None]
    return sum(known_values) / len(known_values) if known_values else None
