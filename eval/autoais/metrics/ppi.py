"""A judge's rate, corrected by human labels of some items: prediction-powered inference (Angelopoulos et al. 2023)."""

import math
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from autoais.metrics.intervals import Z95


def correct_rate(verdicts: Sequence[bool], human: Mapping[int, bool], n_settled: int = 0) -> dict[str, Any]:
    """Return the rate of `verdicts`, plus the mean of human minus judge over the labelled items, with a 95 % interval.

    `verdicts` has the judge's verdict on every item, undecided as no; `human` has the labels by position in it. The
    labelled items must be a random sample: the correction is taken for that of all items, but for the `n_settled` ones
    among them, which are no whoever judges (refusals) and need no label. JSON: value, n (items), labelled, interval95,
    and `error`, the mean of human minus judge over the labelled.

    The variance is that of the mean of the verdicts plus that of the differences, with their covariance, as the
    labelled items are among the judged ones. One unit is added to the squared differences, so that a few labels without
    a disagreement do not make the judge certain. Raises `ValueError` with fewer than two labels.
    """
    n, n_labelled = len(verdicts), len(human)
    if n_labelled < 2:
        raise ValueError(f"{n_labelled} labels: at least 2 are needed")
    scores = [float(verdict) for verdict in verdicts]
    labelled_said = [scores[index] for index in human]
    differences = [float(label) - scores[index] for index, label in human.items()]
    rate, error, labelled_mean = fmean(scores), fmean(differences), fmean(labelled_said)
    spread = rate * (1 - rate) * n / max(1, n - 1)
    wrong = (math.fsum((difference - error) ** 2 for difference in differences) + 1) / (n_labelled + 1)
    covariance_sum = math.fsum(
        (f - labelled_mean) * (d - error) for f, d in zip(labelled_said, differences, strict=True)
    )
    drawn_from = n - n_settled
    share = drawn_from / n
    variance = spread / n + share**2 * (wrong / n_labelled + 2 * covariance_sum / (n_labelled - 1) / drawn_from)
    margin, value = Z95 * math.sqrt(max(0.0, variance)), rate + share * error
    low, middle, high = (min(1.0, max(0.0, bound)) for bound in (value - margin, value, value + margin))
    return {"value": middle, "n": n, "labelled": n_labelled, "interval95": [low, high], "error": error}
