"""Agreement of yes/no verdicts with yes/no labels: F1, balanced accuracy, error rates, ROC, kappa."""

import numpy as np
from numpy.typing import NDArray

ROC_STEPS = 20

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Numbers = NDArray[np.int64]


def macro_f1(truth: Bools, verdicts: Bools) -> float:
    """Mean F1 of yes and no, 0 to 1; a class that occurs on neither side is left out, as by scikit-learn.

    If all labels are the same, this says little: a judge without an error has 1, one with a single error less than 0.5.
    """
    scores = [f1 for f1 in (_f1(truth, verdicts), _f1(~truth, ~verdicts)) if f1 is not None]
    return float(np.mean(scores)) if scores else 0.0


def one_class(truth: Bools) -> bool:
    """Whether all labels are the same."""
    return bool(truth.all() or not truth.any())


def _f1(truth: Bools, verdicts: Bools) -> float | None:
    total = truth.sum() + verdicts.sum()
    return float(2 * (truth & verdicts).sum() / total) if total else None


def balanced_accuracy(truth: Bools, verdicts: Bools) -> float | None:
    """Mean recall of both classes, 0 to 1; None if a class is missing."""
    if one_class(truth):
        return None
    return float((verdicts[truth].mean() + (~verdicts[~truth]).mean()) / 2)


def false_positive_rate(truth: Bools, verdicts: Bools) -> float | None:
    """Share of the claims without support that are called attributable; None if there is none."""
    return None if truth.all() else float(verdicts[~truth].mean())


def false_negative_rate(truth: Bools, verdicts: Bools) -> float | None:
    """Share of the supported claims that are not called attributable; None if there is none."""
    return float((~verdicts[truth]).mean()) if truth.any() else None


def roc_auc(truth: Bools, probability: Floats) -> float | None:
    """Probability that a yes scores higher than a no, with ties as one half; None if a class is missing."""
    yes, no = count_by_probability(truth, np.unique(probability, return_inverse=True)[1])
    pairs = int(yes.sum()) * int(no.sum())
    return float((yes * (np.cumsum(no) - no / 2)).sum() / pairs) if pairs else None


def count_by_probability(truth: Bools, ranks: Numbers) -> tuple[Numbers, Numbers]:
    """Counts of yes and of no at each place (the rank of a probability among the distinct ones)."""
    length = int(ranks.max()) + 1 if len(ranks) else 0
    return np.bincount(ranks[truth], minlength=length), np.bincount(ranks[~truth], minlength=length)


def roc_curve(truth: Bools, probability: Floats) -> list[float] | None:
    """True positive rates at the false positive rates 0, 0.05 ... 1; None if a class is missing."""
    yes, no = count_by_probability(truth, np.unique(probability, return_inverse=True)[1])
    if not yes.sum() or not no.sum():
        return None
    hits, alarms = (np.concatenate([[0], np.cumsum(side[::-1])]) / side.sum() for side in (yes, no))
    return [float(rate) for rate in np.interp(np.linspace(0, 1, ROC_STEPS + 1), alarms, hits)]


def cohen_kappa(truth: Bools, verdicts: Bools) -> float | None:
    """Cohen's kappa, the agreement beyond chance, at most 1; None if chance agreement is 1."""
    agreement = float((truth == verdicts).mean())
    chance = float(truth.mean() * verdicts.mean() + (~truth).mean() * (~verdicts).mean())
    return (agreement - chance) / (1 - chance) if chance < 1 else None
