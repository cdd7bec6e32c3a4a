"""The last step of training: a logistic regression on the judge's features, and its decision threshold."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from autoais.base.errors import UserError
from autoais.base.labels import LabelledClaim
from autoais.base.types import nothing_to_judge
from autoais.judges.minilm import FEATURES, MiniLMJudge
from autoais.meta.logistic import fit_logistic
from autoais.metrics.classification import macro_f1, roc_auc

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

# The prior of the weights: equal for all features, with the sign of each feature's effect. On data sets outside the
# fit, equal weights of standardised features are hard to beat (Dawes 1979, "The robust beauty of improper linear
# models"). A clash has double weight: one wrong fact makes a claim wrong, however much else is right.
_EVEN = {"pair": 0.4, "cosine": 0.4, "nearest": 0.4, "aligned": 0.4, "clash": -0.8}
_RIDGE = 0.2  # relative to the mean loss, on standardised features


def fit(values: Floats, truth: Bools, groups: Sequence[str]) -> Floats:
    """Weights (features,) of a logistic regression with a ridge towards equal weights.

    Each class of each group has the same total weight. `values`: (claims, features); `groups`: the data set of each
    claim. Raises `UserError` if a class is missing.
    """
    if truth.all() or not truth.any():
        raise UserError("the calibration labels are all the same; both classes are needed")
    names = np.array([f"{group}\0{label}" for group, label in zip(groups, truth, strict=True)])
    _, codes, counts = np.unique(names, return_inverse=True, return_counts=True)
    weight = 1.0 / counts[codes]
    weight /= weight.sum()
    spread = np.where(values.std(axis=0) > 0, values.std(axis=0), 1.0)
    x = np.column_stack([(values - values.mean(axis=0)) / spread, np.ones(len(values))])
    ridge = np.array([_RIDGE] * values.shape[1] + [0.0])
    even = np.array([*(_EVEN[name] for name in FEATURES), 0.0])
    coefficients = fit_logistic(x, truth.astype(np.float64), weight, ridge, even)
    return coefficients[:-1] / spread


def threshold(logits: Floats, truth: Bools, groups: Sequence[str]) -> float:
    """The logit threshold with the highest macro-F1, averaged over the groups; halfway between two claims."""
    names = np.array(groups)
    masks = [names == group for group in sorted(set(groups))]
    sorted_logits = np.unique(logits)
    cuts = (sorted_logits[1:] + sorted_logits[:-1]) / 2 if len(sorted_logits) > 1 else sorted_logits
    cuts = cuts[:: max(1, len(cuts) // 400)]
    scores = [float(np.mean([macro_f1(truth[g], logits[g] >= cut) for g in masks])) for cut in cuts]
    return float(cuts[int(np.argmax(scores))])


@dataclass(frozen=True, slots=True)
class Claims:
    """Features of labelled claims from one network, (claims, features), with their labels and data sets."""

    values: Floats
    truth: Bools
    datasets: tuple[str, ...]

    @classmethod
    def read(cls, judge: MiniLMJudge, labels: Iterable[LabelledClaim]) -> "Claims":
        """The features of the labelled claims by the judge's network; claims decided by rule are skipped."""
        labels_to_use = [label for label in labels if nothing_to_judge(label.attribution) is None]
        values = np.array(judge.features([label.attribution for label in labels_to_use]), dtype=np.float64)
        datasets = tuple(label.dataset.split("/")[0] for label in labels_to_use)
        truth = np.array([label.attributable for label in labels_to_use], dtype=bool)
        return cls(values.reshape(-1, len(FEATURES)), truth, datasets)


@dataclass(frozen=True, slots=True)
class Fold:
    """The claims of held-out data sets, and those for the threshold (`turn`), by a network trained without the sets."""

    claims: Claims
    turn: Claims


def calibrate(
    folds: Sequence[Fold], other_claims: Sequence[Claims], turn: Claims
) -> tuple[dict[str, object], dict[str, dict[str, float | None]]]:
    """The content of `calibration.json`, and the figures of each held-out data set.

    Weights are fitted to the claims of all folds and `other_claims`, the threshold to `turn`; `other_claims` and `turn`
    are read by the shipped network. For the figures, weights and threshold are fitted again for each fold, with its own
    network and without its claims. (The networks of the other claims had seen the fold's data sets, but that affects
    only five regularised weights.) The figures of a data set are `n`, and `roc_auc` and `macro_f1` as fractions.
    """
    figures_by_set: dict[str, dict[str, float | None]] = {}
    for fold in folds:
        claims_of_others = [other.claims for other in folds if other is not fold]
        weights, bias = _fit_weights([*claims_of_others, *other_claims], fold.turn)
        logits = fold.claims.values @ weights + bias
        for name in sorted(set(fold.claims.datasets)):
            in_set = np.array(fold.claims.datasets) == name
            truth = fold.claims.truth[in_set]
            figures_by_set[name] = {
                "n": int(in_set.sum()),
                "roc_auc": roc_auc(truth, logits[in_set]),
                "macro_f1": macro_f1(truth, logits[in_set] >= 0),
            }
    weights, bias = _fit_weights([*(fold.claims for fold in folds), *other_claims], turn)
    calibration: dict[str, object] = {
        "weights": {name: round(float(w), 6) for name, w in zip(FEATURES, weights, strict=True)},
        "bias": round(bias, 6),
    }
    return calibration, figures_by_set


def _fit_weights(claims: Sequence[Claims], turn: Claims) -> tuple[Floats, float]:
    """Weights fitted to the claims, and the bias that puts the threshold at a logit of 0."""
    values = np.concatenate([part.values for part in claims])
    truth = np.concatenate([part.truth for part in claims])
    weights = fit(values, truth, [name for part in claims for name in part.datasets])
    return weights, -threshold(turn.values @ weights, turn.truth, turn.datasets)
