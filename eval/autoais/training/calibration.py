"""The last step of the recipe: one logistic regression on the judge's features, and where it says yes."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from autoais.errors import UserError
from autoais.judges import nothing_to_weigh
from autoais.judges.minilm import FEATURES, MiniLMJudge
from autoais.labels import Labelled
from autoais.meta.evaluate import macro_f1, roc_auc
from autoais.meta.logistic import likeliest

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

# The weights are held near even ones, signed as each feature points: on data sets that nothing was fitted to, even
# weights of standardised features are hard to beat (Dawes 1979, "The robust beauty of improper linear models"). A clash
# counts twice: one wrong fact makes a claim wrong, however much else is right.
_EVEN = {"pair": 0.4, "cosine": 0.4, "nearest": 0.4, "aligned": 0.4, "clash": -0.8}
_RIDGE = 0.2  # of the mean loss, on standardised features


def fit(values: Floats, truth: Bools, groups: Sequence[str]) -> Floats:
    """Weights (features,) of a logistic regression near even weights, every class of every group counting alike.

    `values`: (claims, features); `groups`: the data set of each claim. `UserError` where a class is missing.
    """
    if truth.all() or not truth.any():
        raise UserError("the labels to calibrate on are all the same; both kinds are needed")
    names = np.array([f"{group}\0{label}" for group, label in zip(groups, truth, strict=True)])
    _, places, counts = np.unique(names, return_inverse=True, return_counts=True)
    weight = 1.0 / counts[places]
    weight /= weight.sum()
    spread = np.where(values.std(axis=0) > 0, values.std(axis=0), 1.0)
    x = np.column_stack([(values - values.mean(axis=0)) / spread, np.ones(len(values))])
    ridge = np.array([_RIDGE] * values.shape[1] + [0.0])
    even = np.array([*(_EVEN[name] for name in FEATURES), 0.0])
    found = likeliest(x, truth.astype(np.float64), weight, ridge, even)
    return found[:-1] / spread


def threshold(logits: Floats, truth: Bools, groups: Sequence[str]) -> float:
    """The logit to say yes from: the highest macro-F1 as a mean over the groups; halfway between two claims."""
    names = np.array(groups)
    inside = [names == group for group in sorted(set(groups))]
    ordered = np.unique(logits)
    cuts = (ordered[1:] + ordered[:-1]) / 2 if len(ordered) > 1 else ordered
    cuts = cuts[:: max(1, len(cuts) // 400)]
    scores = [float(np.mean([macro_f1(truth[g], logits[g] >= cut) for g in inside])) for cut in cuts]
    return float(cuts[int(np.argmax(scores))])


@dataclass(frozen=True, slots=True)
class Claims:
    """Features of labelled claims as one network reads them, (claims, features); their labels and data sets."""

    values: Floats
    truth: Bools
    datasets: tuple[str, ...]

    @classmethod
    def read(cls, judge: MiniLMJudge, labels: Iterable[Labelled]) -> "Claims":
        """Let the judge's network read the claims that leave something to judge."""
        kept = [label for label in labels if nothing_to_weigh(label.attribution) is None]
        values = np.array(judge.features([label.attribution for label in kept]), dtype=np.float64)
        datasets = tuple(label.dataset.split("/")[0] for label in kept)
        truth = np.array([label.attributable for label in kept], dtype=bool)
        return cls(values.reshape(-1, len(FEATURES)), truth, datasets)


@dataclass(frozen=True, slots=True)
class Fold:
    """The claims of some data sets, and those that say where the verdict turns, by a network that saw no such set."""

    claims: Claims
    turn: Claims


def calibrate(
    folds: Sequence[Fold], others: Sequence[Claims], turn: Claims
) -> tuple[dict[str, object], dict[str, dict[str, float | None]]]:
    """`calibration.json`, and how well each data set is judged that was left out.

    Weights come from the claims of all folds and `others`, the threshold from `turn`, both read by the network that
    ships. For the second, weights and threshold are found again for each fold, by its own network and
    without its claims. (The networks that read the other claims had seen the fold's data sets, which touches five
    weights held near even ones and no more.) As fractions, by data set: `n`, `roc_auc` and `macro_f1` of the verdict.
    """
    left_out: dict[str, dict[str, float | None]] = {}
    for fold in folds:
        rest = [other.claims for other in folds if other is not fold]
        weights, bias = _weighed([*rest, *others], fold.turn)
        logits = fold.claims.values @ weights + bias
        for name in sorted(set(fold.claims.datasets)):
            inside = np.array(fold.claims.datasets) == name
            truth = fold.claims.truth[inside]
            left_out[name] = {
                "n": int(inside.sum()),
                "roc_auc": roc_auc(truth, logits[inside]),
                "macro_f1": macro_f1(truth, logits[inside] >= 0),
            }
    weights, bias = _weighed([*(fold.claims for fold in folds), *others], turn)
    calibration: dict[str, object] = {
        "weights": {name: round(float(w), 6) for name, w in zip(FEATURES, weights, strict=True)},
        "bias": round(bias, 6),
        "token_threshold": 0.0,
    }
    return calibration, left_out


def _weighed(claims: Sequence[Claims], turn: Claims) -> tuple[Floats, float]:
    """Weights fitted to the claims, and the bias with which the logit is 0 where the verdict turns."""
    values = np.concatenate([one.values for one in claims])
    truth = np.concatenate([one.truth for one in claims])
    weights = fit(values, truth, [name for one in claims for name in one.datasets])
    return weights, -threshold(turn.values @ weights, turn.truth, turn.datasets)
