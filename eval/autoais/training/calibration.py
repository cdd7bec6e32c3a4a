"""The last step of the recipe: one logistic regression on the judge's features, and where it says yes."""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from autoais.errors import UserError
from autoais.judges.minilm import FEATURES, MiniLMJudge
from autoais.labels import Labelled
from autoais.meta import macro_f1

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

_RIDGE = 1e-2  # of the mean loss, on standardised features
_STEPS = 50


def fit(values: Floats, truth: Bools, groups: Sequence[str]) -> tuple[Floats, float]:
    """Weights (features,) and bias of a logistic regression in which every class of every group counts alike.

    `values`: (claims, features); `groups`: the data set of each claim. Newton steps with a small ridge, so that the
    same claims always give the same numbers. `UserError` where a class is missing.
    """
    if truth.all() or not truth.any():
        raise UserError("the labels to calibrate on are all the same; both kinds are needed")
    names = np.array([f"{group}\0{label}" for group, label in zip(groups, truth, strict=True)])
    _, places, counts = np.unique(names, return_inverse=True, return_counts=True)
    weight = 1.0 / counts[places]
    weight /= weight.sum()
    mean, spread = values.mean(axis=0), values.std(axis=0)
    spread = np.where(spread > 0, spread, 1.0)
    x = np.column_stack([(values - mean) / spread, np.ones(len(values))])
    ridge = _RIDGE * np.diag([1.0] * values.shape[1] + [0.0])
    found = np.zeros(x.shape[1])
    for _ in range(_STEPS):
        p = 1 / (1 + np.exp(-np.clip(x @ found, -30, 30)))
        slope = x.T @ (weight * (p - truth)) + ridge @ found
        curve = (x * (weight * p * (1 - p))[:, None]).T @ x + ridge + 1e-9 * np.eye(len(found))
        step = np.linalg.solve(curve, slope)
        found -= step
        if np.abs(step).max() < 1e-9:
            break
    weights = found[:-1] / spread
    return weights, float(found[-1] - weights @ mean)


def threshold(logits: Floats, truth: Bools, groups: Sequence[str]) -> float:
    """The logit to say yes from: the highest macro-F1 as a mean over the groups; halfway between two claims."""
    names = np.array(groups)
    inside = [names == group for group in sorted(set(groups))]
    ordered = np.unique(logits)
    cuts = (ordered[1:] + ordered[:-1]) / 2 if len(ordered) > 1 else ordered
    cuts = cuts[:: max(1, len(cuts) // 400)]
    scores = [float(np.mean([macro_f1(truth[g], logits[g] >= cut) for g in inside])) for cut in cuts]
    return float(cuts[int(np.argmax(scores))])


def calibrate(judge: MiniLMJudge, fitted: Iterable[Labelled], chosen: Iterable[Labelled]) -> dict[str, object]:
    """`calibration.json` for the judge: weights from the claims of `fitted`, the threshold from those of `chosen`."""
    values, truth, groups = _features(judge, fitted)
    weights, bias = fit(values, truth, groups)
    values, truth, groups = _features(judge, chosen)
    bias -= threshold(values @ weights + bias, truth, groups)
    return {
        "weights": {name: round(float(w), 6) for name, w in zip(FEATURES, weights, strict=True)},
        "bias": round(bias, 6),
        "token_threshold": 0.0,
    }


def _features(judge: MiniLMJudge, labels: Iterable[Labelled]) -> tuple[Floats, Bools, list[str]]:
    kept = [label for label in labels if label.attribution.claim.strip() and any(label.attribution.evidence)]
    values = np.array(judge.features([label.attribution for label in kept]), dtype=np.float64)
    groups = [label.dataset.split("/")[0] for label in kept]
    return values.reshape(-1, len(FEATURES)), np.array([label.attributable for label in kept]), groups
