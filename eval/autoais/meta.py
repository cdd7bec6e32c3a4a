"""Meta-evaluation: how far a judge's verdicts agree with people, a data set at a time."""

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autoais.judges import weigh
from autoais.labels import Labelled
from autoais.types import Judge, Judgement

_BATCH = 512
_BINS = 10
_RESAMPLES = 500

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


def macro_f1(truth: Bools, said: Bools) -> float:
    """Mean of the F1 of the yes and of the no class, 0 to 1; a class that occurs on neither side counts 0."""
    return float(np.mean([_f1(truth, said), _f1(~truth, ~said)]))


def _f1(truth: Bools, said: Bools) -> float:
    together = truth.sum() + said.sum()
    return float(2 * (truth & said).sum() / together) if together else 0.0


def balanced_accuracy(truth: Bools, said: Bools) -> float | None:
    """Mean of the recall of both classes, 0 to 1; None where a class does not occur."""
    if truth.all() or not truth.any():
        return None
    return float((said[truth].mean() + (~said[~truth]).mean()) / 2)


def roc_auc(truth: Bools, probability: Floats) -> float | None:
    """Chance that a yes gets a higher probability than a no, ties half; None where a class is missing."""
    yes, no = int(truth.sum()), int((~truth).sum())
    if not yes or not no:
        return None
    _, places, counts = np.unique(probability, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[places]
    return float((ranks[truth].sum() - yes * (yes + 1) / 2) / (yes * no))


def cohen_kappa(truth: Bools, said: Bools) -> float | None:
    """Agreement beyond chance, at most 1; None where chance alone would agree always."""
    observed = float((truth == said).mean())
    chance = float(truth.mean() * said.mean() + (~truth).mean() * (~said).mean())
    return (observed - chance) / (1 - chance) if chance < 1 else None


def reliability(truth: Bools, probability: Floats) -> list[dict[str, Any]]:
    """Ten bins of equal width: how many, their mean probability, and the share that people found attributable."""
    places = np.minimum((probability * _BINS).astype(int), _BINS - 1)
    bins = [(places == b) for b in range(_BINS)]
    return [
        {"n": int(b.sum()), "probability": float(probability[b].mean()), "attributable": float(truth[b].mean())}
        for b in bins
        if b.any()
    ]


def evaluate(labels: Iterable[Labelled], judge: Judge, *, worst: int = 5) -> dict[str, Any]:
    """Judge every labelled claim and report per data set and on average (the mean over sets), as fractions.

    `n` counts the decided; undecided ones are left out of all but `macro_f1_floor`, where they are a no. Where
    nothing was cited, the rule of `weigh` decides, with probability 0.
    """
    by_set: dict[str, list[tuple[Labelled, Judgement]]] = {}
    stream = iter(labels)
    while batch := list(islice(stream, _BATCH)):
        for label, judgement in zip(batch, weigh(judge, [label.attribution for label in batch]), strict=True):
            by_set.setdefault(label.dataset, []).append((label, judgement))
    sets = {name: _one_set(pairs, worst) for name, pairs in sorted(by_set.items())}
    names = ("macro_f1", "macro_f1_floor", "balanced_accuracy", "roc_auc", "cohen_kappa", "calibration_error")
    average = {name: _mean([one[name] for one in sets.values()]) for name in names}
    return {"judge": judge.name, "sets": sets, "average": average}


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _one_set(pairs: Sequence[tuple[Labelled, Judgement]], worst: int) -> dict[str, Any]:
    decided = [(label, judgement) for label, judgement in pairs if judgement.verdict.ais is not None]
    result: dict[str, Any] = {"n": len(decided), "undecided": len(pairs) - len(decided)}
    truth = np.array([label.attributable for label, _ in decided], dtype=np.bool_)
    said = np.array([judgement.verdict.ais for _, judgement in decided], dtype=np.bool_)
    probability = np.array([judgement.probability or 0.0 for _, judgement in decided], dtype=np.float64)
    everyone = np.array([label.attributable for label, _ in pairs], dtype=np.bool_)
    floor = np.array([judgement.verdict.ais is True for _, judgement in pairs], dtype=np.bool_)
    result["macro_f1_floor"] = macro_f1(everyone, floor)
    if not decided:
        return result | dict.fromkeys(
            ("macro_f1", "balanced_accuracy", "roc_auc", "cohen_kappa", "calibration_error"), None
        ) | {"interval95": None, "reliability": [], "worst": []}  # fmt: skip
    bins = reliability(truth, probability)
    gaps = np.abs(probability - truth)
    order = sorted(range(len(decided)), key=lambda i: (-gaps[i], decided[i][0].id))
    return result | {
        "attributable": float(truth.mean()),
        "macro_f1": macro_f1(truth, said),
        "balanced_accuracy": balanced_accuracy(truth, said),
        "roc_auc": roc_auc(truth, probability),
        "cohen_kappa": cohen_kappa(truth, said),
        "calibration_error": sum(b["n"] * abs(b["probability"] - b["attributable"]) for b in bins) / len(decided),
        "interval95": _bootstrap(truth, said, probability),
        "reliability": bins,
        "worst": [
            {
                "id": decided[i][0].id,
                "claim": decided[i][0].attribution.claim,
                "attributable": decided[i][0].attributable,
                "probability": float(probability[i]),
            }
            for i in order[:worst]
        ],
    }


def _bootstrap(truth: Bools, said: Bools, probability: Floats) -> dict[str, list[float] | None]:
    """95 % percentile intervals of macro-F1 and ROC-AUC from 500 resamples of the claims, seed 0."""
    rng = np.random.default_rng(0)
    draws = [rng.integers(0, len(truth), len(truth)) for _ in range(_RESAMPLES)]
    samples = {
        "macro_f1": [macro_f1(truth[d], said[d]) for d in draws],
        "roc_auc": [auc for d in draws if (auc := roc_auc(truth[d], probability[d])) is not None],
    }
    return {
        name: [float(end) for end in np.percentile(values, [2.5, 97.5])] if values else None
        for name, values in samples.items()
    }
