"""A judge's rate, corrected by human labels of some items: prediction-powered inference (Angelopoulos et al. 2023).

Intervals are over questions: items of one question are not independent. `scripts/coverage.py` measures the coverage.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from autoais.metrics.intervals import Z95, Interval, by_question


@dataclass(frozen=True, slots=True)
class Stratum:
    """Items of which all or a random sample have human labels, at least one.

    `verdicts` has the judge's verdict on every item, undecided as no; `human` has the labels by position in it, and
    `questions` numbers the question of each item.
    """

    verdicts: Sequence[bool]
    human: Mapping[int, bool]
    questions: Sequence[int]

    @property
    def error(self) -> float:
        """The mean of human minus judge over the labelled items."""
        return fmean(label - self.verdicts[index] for index, label in self.human.items())


def correct_rate(
    verdicts: Sequence[bool],
    human: Mapping[int, bool],
    *,
    questions: Sequence[int] | None = None,
    settled: Collection[int] = (),
) -> dict[str, Any]:
    """Return the rate of `verdicts`, plus the mean of human minus judge over the labelled items, with a 95 % interval.

    The arguments are as in `Stratum`; without `questions`, each item is of another question. The labelled items must be
    a random sample of all but the `settled` ones (positions), which are what the judge says whoever judges (refusals),
    and need no label. JSON: value, n (items), labelled, interval95, and `error`, the mean of human minus judge over the
    labelled. Raises `ValueError` with fewer than two labels.
    """
    if len(human) < 2:
        raise ValueError(f"{len(human)} labels: at least 2 are needed")
    numbers = range(len(verdicts)) if questions is None else questions
    known = {index: verdicts[index] for index in settled}
    drawn_from = [index for index in range(len(verdicts)) if index not in known]
    drawn, certain = (
        Stratum(
            [verdicts[index] for index in part],
            {position: labels[index] for position, index in enumerate(part) if index in labels},
            [numbers[index] for index in part],
        )
        for part, labels in ((drawn_from, human), (list(known), known))
    )
    value, interval = correct_strata([drawn, certain] if known else [drawn])
    record = {"value": value, "n": len(verdicts), "labelled": len(human)}
    return record | {"interval95": list(interval), "error": drawn.error}


def correct_strata(strata: Sequence[Stratum]) -> tuple[float, Interval]:
    """Return the rate over the items of all strata, each corrected by its own labels, and its 95 % interval.

    A question adds to the error its verdicts and the differences of its labelled items together. One unit is added to
    the squared differences where labels are missing, so that a few labels without a disagreement do not make the judge
    certain.
    """
    import numpy as np

    n = sum(len(stratum.verdicts) for stratum in strata)
    value = math.fsum(sum(stratum.verdicts) + len(stratum.verdicts) * stratum.error for stratum in strata) / n
    questions = [question for stratum in strata for question in stratum.questions]
    parts, unseen = [], 0.0
    for stratum in strata:
        size, n_labelled = len(stratum.verdicts), len(stratum.human)
        part = (np.array(stratum.verdicts, np.float64) + stratum.error - value) / n
        for index, label in stratum.human.items():
            part[index] += (label - stratum.verdicts[index] - stratum.error) * size / n / n_labelled
        parts.append(part)
        unseen += (size / n) ** 2 * (1 - n_labelled / size) / n_labelled / (n_labelled + 1)
    (sums,) = by_question(questions, np.concatenate(parts))
    squares = math.fsum(np.sort(sums**2))  # sorted: the order of the questions must not matter
    margin = Z95 * math.sqrt(squares * len(sums) / max(1, len(sums) - 1) + unseen)
    low, middle, high = (min(1.0, max(0.0, bound)) for bound in (value - margin, value, value + margin))
    return middle, (low, high)
