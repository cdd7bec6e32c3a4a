"""Correlation over systems between human and judge rates, with ties (Bohnet et al. 2022)."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
MIN_SYSTEMS = 3  # with two systems every correlation is 1 or -1
_RESAMPLES = 1000
_MIN_QUESTIONS = 10  # resamples of fewer are too much alike
_MIN_DEFINED_SHARE = 0.95  # of the resamples
_NO_WIDTH = 1e-9  # rounding errors are smaller


def pearson(x: Floats, y: Floats) -> float | None:
    """Pearson's r, -1 to 1; None if one side is constant."""
    if len(x) == 0 or x.min() == x.max() or y.min() == y.max():
        return None
    # Scale first, or the squares of very small differences underflow.
    a, b = ((side - side.mean()) / np.ptp(side) for side in (x, y))
    return float(np.clip((a @ b) / np.sqrt((a @ a) * (b @ b)), -1, 1))


def spearman(x: Floats, y: Floats) -> float | None:
    """Spearman's rho: Pearson's r of the ranks, with tied values at their mean rank; None if one side is constant."""
    return pearson(_ranks(x), _ranks(y))


def _ranks(values: Floats) -> Floats:
    _, codes, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - (counts - 1) / 2)[codes], dtype=np.float64)


def kendall_tau_b(x: Floats, y: Floats) -> float | None:
    """Kendall's tau-b, -1 to 1: concordant minus discordant pairs, corrected for ties; None if all pairs are tied."""
    a, b = (np.sign(side[:, None] - side[None, :]) for side in (x, y))
    norm = float((a * a).sum()) * float((b * b).sum())
    return float(np.clip((a * b).sum() / np.sqrt(norm), -1, 1)) if norm else None


MEASURES: Mapping[str, Callable[[Floats, Floats], float | None]] = {
    "kendall_tau_b": kendall_tau_b,
    "spearman": spearman,
    "pearson": pearson,
}


def over_systems(names: Sequence[str], cells: NDArray[np.int64], undecided: Sequence[int]) -> dict[str, Any]:
    """Each system's share of attributable claims by human labels and by the judge, and correlations of the two.

    `cells` (questions x systems x 4) counts decided claims: no by both, yes by the judge only, yes by humans only, yes
    by both. The 95 % intervals are by a bootstrap of the questions (seed 0), for other questions to the same systems:
    they hold both the percentile and the basic interval (Davison and Hinkley 1997, chapter 5). Rates over few questions
    are noisy, which lowers a correlation. A resample adds this noise again, so percentiles alone lie too low.
    No interval is given for fewer than 10 questions, if the correlation is undefined in more than 5 % of the resamples,
    or if nearly all resamples have the same one, as of few systems that differ much (`interval95_reason`). Systems
    without decided claims are listed but left out of the correlations. Rates are fractions.
    """
    per_question = cells
    cells = per_question.sum(axis=0)
    n = cells.sum(axis=1)
    has_claims = n > 0
    systems = [
        {
            "system": name,
            "n": int(count),
            "undecided": n_undecided,
            "human": (int(row[2]) + int(row[3])) / int(count) if count else None,
            "judge": (int(row[1]) + int(row[3])) / int(count) if count else None,
        }
        for name, row, count, n_undecided in zip(names, cells, n, undecided, strict=True)
    ]
    result: dict[str, Any] = {"n": int(has_claims.sum()), "systems": systems}
    if result["n"] < MIN_SYSTEMS:
        reason = f"{result['n']} systems have decided claims; at least {MIN_SYSTEMS} are needed"
        return result | {name: {"value": None, "interval95": None, "reason": reason} for name in MEASURES}
    questions = int(per_question.any(axis=(1, 2)).sum())
    resamples = _resample(per_question[:, has_claims])
    for name, measure in MEASURES.items():
        value = measure(*_rates(cells[has_claims]))
        values = [correlation for draw in resamples if (correlation := measure(*_rates(draw))) is not None]
        if value is None:
            result[name] = {
                "value": None,
                "interval95": None,
                "reason": "all systems have the same human or judge rate",
            }
            continue
        missing = None
        if questions < _MIN_QUESTIONS:
            missing = f"{questions} questions have decided claims; at least {_MIN_QUESTIONS} are needed"
        elif len(values) < _MIN_DEFINED_SHARE * _RESAMPLES:
            missing = f"the correlation is undefined in {_RESAMPLES - len(values)} of {_RESAMPLES} resamples"
        if missing is None:
            low, high = np.percentile(values, [2.5, 97.5]).tolist()
            if high - low > _NO_WIDTH:
                ends = [min(low, 2 * value - high), max(high, 2 * value - low)]
                result[name] = {"value": value, "interval95": np.clip(ends, -1, 1).tolist()}
                continue
            missing = "nearly all resamples of the questions have the same correlation; more systems are needed"
        result[name] = {"value": value, "interval95": None, "interval95_reason": missing}
    return result


def _resample(cells: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Cells (systems x 4) of resampled questions; draws in which a system has no claim are left out."""
    rng = np.random.default_rng(0)
    questions, systems, _ = cells.shape
    flat, even = cells.reshape(questions, -1), np.full(questions, 1 / questions)
    draws = (rng.multinomial(questions, even) @ flat for _ in range(_RESAMPLES))
    return [sample for draw in draws if (sample := draw.reshape(systems, 4)).sum(axis=1).all()]


def _rates(cells: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Human and judge rate of each system; each is one division of integers, so equal rates are equal floats."""
    n = cells.sum(axis=1)
    return (cells[:, 2] + cells[:, 3]) / n, (cells[:, 1] + cells[:, 3]) / n
