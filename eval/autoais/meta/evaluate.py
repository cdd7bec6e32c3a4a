"""Meta-evaluation: how far a judge's verdicts agree with people, a data set at a time."""

import heapq
import zlib
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autoais.judges import nothing_to_weigh, weigh
from autoais.labels import Labelled
from autoais.meta import correlation
from autoais.metrics import attrscore
from autoais.types import Judge, Judgement, Verdict

_BATCH = 512
_BINS = 10
_RESAMPLES = 500
_EXCERPT = 400  # characters of a text that are kept of a worst disagreement
_VERDICTS = tuple(Verdict)
ROC_STEPS = 20

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Numbers = NDArray[np.int64]


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
    yes, no = _by_probability(truth, np.unique(probability, return_inverse=True)[1])
    pairs = int(yes.sum()) * int(no.sum())
    return float((yes * (np.cumsum(no) - no / 2)).sum() / pairs) if pairs else None


def _by_probability(truth: Bools, places: Numbers) -> tuple[Numbers, Numbers]:
    """How many yes and how many no at each place (the rank of a probability among the different ones)."""
    length = int(places.max()) + 1 if len(places) else 0
    return np.bincount(places[truth], minlength=length), np.bincount(places[~truth], minlength=length)


def roc_curve(truth: Bools, probability: Floats) -> list[float] | None:
    """True positive rates at the false positive rates 0, 0.05 ... 1; None where a class is missing."""
    yes, no = _by_probability(truth, np.unique(probability, return_inverse=True)[1])
    if not yes.sum() or not no.sum():
        return None
    hits, alarms = (np.concatenate([[0], np.cumsum(side[::-1])]) / side.sum() for side in (yes, no))
    return [float(rate) for rate in np.interp(np.linspace(0, 1, ROC_STEPS + 1), alarms, hits)]


def cohen_kappa(truth: Bools, said: Bools) -> float | None:
    """Agreement beyond chance, at most 1; None where chance alone would agree always."""
    observed = float((truth == said).mean())
    chance = float(truth.mean() * said.mean() + (~truth).mean() * (~said).mean())
    return (observed - chance) / (1 - chance) if chance < 1 else None


def _bins(probability: Floats) -> Numbers:
    return np.minimum((probability * _BINS).astype(np.int64), _BINS - 1)


def reliability(truth: Bools, probability: Floats) -> list[dict[str, Any]]:
    """Ten bins of equal width: how many, their mean probability, and the share that people found attributable.

    `bin` 3 is 0.3 up to but not 0.4; an empty one is left out.
    """
    places = _bins(probability)
    return [
        {
            "bin": b,
            "n": int(there.sum()),
            "probability": float(probability[there].mean()),
            "attributable": float(truth[there].mean()),
        }
        for b in range(_BINS)
        if (there := places == b).any()
    ]


def calibration_error(truth: Bools, probability: Floats) -> float | None:
    """Expected calibration error: the gaps of `reliability`, weighted by n; 0 to 1, None for nothing."""
    if not len(truth):
        return None
    return float(np.abs(np.bincount(_bins(probability), probability - truth)).sum() / len(truth))


def judged(labels: Iterable[Labelled], judge: Judge) -> Iterator[tuple[Labelled, Judgement]]:
    """Every label with what the judge says, streamed in batches."""
    stream = iter(labels)
    while batch := list(islice(stream, _BATCH)):
        yield from zip(batch, weigh(judge, [label.attribution for label in batch]), strict=True)


def evaluate(labels: Iterable[Labelled], judge: Judge, *, worst: int = 5) -> dict[str, Any]:
    """Judge every labelled claim and report per data set and on average (the mean over sets), as fractions.

    `n` counts the decided; undecided ones are left out of all but `macro_f1_floor`, where they are a no. What needs
    probabilities uses the `with_probability` decided claims that have one; where nothing was said or cited, the rule
    of `weigh` decides, with probability 0. A set in which the judge gave none has null there. Every null has its
    reason under `reasons`. Intervals (95 %) draw claims with replacement. Kept are 15 bytes a claim (110 while
    drawing) and the texts of the `worst` disagreements of each set.
    """
    tallies: dict[str, _Tally] = {}
    for label, judgement in judged(labels, judge):
        if label.dataset not in tallies:
            tallies[label.dataset] = _Tally(worst)
        tallies[label.dataset].add(label, judgement)
    sets, draws = {}, []
    for name, tally in sorted(tallies.items()):
        rows = tally.rows()
        draws.append(_draws(rows, name))
        sets[name] = _one_set(rows, draws[-1]) | {"worst": tally.worst}
    return {"judge": judge.name, "sets": sets, "average": _average(list(sets.values()), draws)}


FIGURES = ("macro_f1", "macro_f1_floor", "balanced_accuracy", "roc_auc", "cohen_kappa", "calibration_error")


def without_texts(result: dict[str, Any]) -> dict[str, Any]:
    """The same result without a word of the data: the worst disagreements keep ids, labels and probabilities."""
    kept = ("id", "attributable", "verdict", "probability")
    sets = {
        name: one | {"worst": [{key: item[key] for key in kept} for item in one["worst"]]}
        for name, one in result["sets"].items()
    }
    return result | {"sets": sets}


@dataclass(frozen=True, slots=True)
class _Rows:
    """A data set's claims as columns, in an order that depends on their values alone.

    `label` is the place in AttrScore's classes of a three-way label, -1 without one; `system` the place in `systems`,
    -1 without one; `probability` is NaN where there is none.
    """

    truth: Bools
    said: Bools
    decided: Bools
    probability: Floats
    verdict: NDArray[np.int8]
    label: NDArray[np.int8]
    system: NDArray[np.int32]
    systems: tuple[str, ...]


class _Tally:
    """Collects what one data set's labels come to."""

    def __init__(self, worst: int) -> None:
        self.worst: list[dict[str, Any]] = []
        self._most = worst
        self._truth, self._verdict, self._label = array("b"), array("b"), array("b")
        self._probability, self._system = array("d"), array("i")
        self._systems: dict[str, int] = {}
        self._has_probabilities = False

    def add(self, label: Labelled, judgement: Judgement) -> None:
        by_rule = nothing_to_weigh(label.attribution) is not None
        probability = 0.0 if by_rule else judgement.probability
        self._has_probabilities |= not by_rule and probability is not None
        self._truth.append(label.attributable)
        self._verdict.append(_VERDICTS.index(judgement.verdict))
        three_way = label.verdict in attrscore.CLASSES
        self._label.append(attrscore.CLASSES.index(label.verdict) if three_way and label.verdict else -1)
        self._probability.append(np.nan if probability is None else probability)
        self._system.append(self._systems.setdefault(label.system, len(self._systems)) if label.system else -1)
        if judgement.verdict.ais is not None and judgement.verdict.ais != label.attributable:
            self._disagreement(label, judgement.verdict, probability)

    def _disagreement(self, label: Labelled, verdict: Verdict, probability: float | None) -> None:
        one = {
            "id": label.id,
            "question": _excerpt(label.attribution.question),
            "claim": label.attribution.claim,
            "evidence": _excerpt(" ".join(label.attribution.evidence)),
            "attributable": label.attributable,
            "verdict": verdict.value,
            "probability": probability,
        }
        self.worst = heapq.nsmallest(self._most, [*self.worst, one], key=_agreement)

    def rows(self) -> _Rows:
        """The columns; without probabilities the rule's zeros alone would make a curve, so they go too."""
        names = sorted(self._systems)
        place = {self._systems[name]: rank for rank, name in enumerate(names)} | {-1: -1}
        truth, verdict, label = (np.array(column, np.int8) for column in (self._truth, self._verdict, self._label))
        system = np.array([place[number] for number in self._system], np.int32)
        probability = np.array(self._probability) if self._has_probabilities else np.full(len(truth), np.nan)
        order = np.lexsort((system, label, verdict, truth, probability))
        verdict = verdict[order]
        return _Rows(
            truth[order].astype(np.bool_),
            verdict == _VERDICTS.index(Verdict.ATTRIBUTABLE),
            verdict != _VERDICTS.index(Verdict.UNDECIDED),
            probability[order],
            verdict,
            label[order],
            system[order],
            tuple(names),
        )


def _excerpt(text: str) -> str:
    return text if len(text) <= _EXCERPT else text[:_EXCERPT] + "..."


def _agreement(one: dict[str, Any]) -> tuple[float, str]:
    """Least first: how near the judge came to the people's label, ties by id; a bare verdict could not be further."""
    return (0.0 if one["probability"] is None else 1 - abs(one["probability"] - one["attributable"])), one["id"]


def _figures(rows: _Rows, drawn: Numbers | slice = slice(None)) -> dict[str, float | None]:
    """The figures of the rows drawn."""
    truth, said, decided = rows.truth[drawn], rows.said[drawn], rows.decided[drawn]
    probability = rows.probability[drawn]
    figures: dict[str, float | None] = {"macro_f1_floor": macro_f1(truth, said)}
    known = decided & ~np.isnan(probability)
    figures["roc_auc"] = roc_auc(truth[known], probability[known])
    figures["calibration_error"] = calibration_error(truth[known], probability[known])
    truth, said = truth[decided], said[decided]
    some = bool(len(truth))
    figures["macro_f1"] = macro_f1(truth, said) if some else None
    figures["balanced_accuracy"] = balanced_accuracy(truth, said) if some else None
    figures["cohen_kappa"] = cohen_kappa(truth, said) if some else None
    return {name: figures[name] for name in FIGURES}


def _draws(rows: _Rows, name: str) -> dict[str, Floats]:
    """The figures of 500 draws of as many claims (NaN where a draw has none); the seed is the data set's name."""
    rng = np.random.default_rng(zlib.crc32(name.encode("utf-8", "surrogatepass")))
    n = len(rows.truth)
    drawn = [_figures(rows, np.sort(rng.integers(0, n, n))) for _ in range(_RESAMPLES)]
    return {name: np.array([one[name] for one in drawn], dtype=np.float64) for name in FIGURES}


def _interval(values: Floats) -> list[float] | None:
    known = values[~np.isnan(values)]
    return [float(end) for end in np.percentile(known, [2.5, 97.5])] if len(known) else None


def _one_set(rows: _Rows, draws: dict[str, Floats]) -> dict[str, Any]:
    figures = _figures(rows)
    known = rows.decided & ~np.isnan(rows.probability)
    truth, probability = rows.truth[known], rows.probability[known]
    n = int(rows.decided.sum())
    result: dict[str, Any] = {
        "n": n,
        "undecided": len(rows.truth) - n,
        "with_probability": int(known.sum()),
        "attributable": float(rows.truth[rows.decided].mean()) if n else None,
        **figures,
        "interval95": {name: None if figures[name] is None else _interval(draws[name]) for name in FIGURES},
        "reliability": reliability(truth, probability) or None,
        "roc": roc_curve(truth, probability),
        "systems": _systems(rows),
        "three_way": _three_way(rows),
    }
    return result | {"reasons": {name: _why(name, rows, known) for name, value in result.items() if value is None}}


def _why(name: str, rows: _Rows, known: Bools) -> str:
    """Why a figure is null."""
    if name == "systems":
        return f"{len(rows.systems)} systems are named; at least {correlation.LEAST} are needed"
    if name == "three_way":
        if (rows.label < 0).all():
            return "the labels are two-way"
        return "the judge never says extrapolatory or contradictory, only not attributable"
    if not rows.decided.any():
        return "nothing was decided"
    if name in ("roc_auc", "roc", "calibration_error", "reliability") and not known.any():
        return "the judge gave no probabilities"
    return "all labels are the same" if name != "cohen_kappa" else "labels and verdicts are all the same"


def _systems(rows: _Rows) -> dict[str, Any] | None:
    if len(rows.systems) < correlation.LEAST:
        return None
    named = rows.system >= 0
    cells = np.zeros((len(rows.systems), 4), np.int64)
    decided = named & rows.decided
    np.add.at(cells, (rows.system[decided], 2 * rows.truth[decided] + rows.said[decided]), 1)
    left = np.bincount(rows.system[named & ~rows.decided], minlength=len(rows.systems))
    return correlation.over_systems(rows.systems, cells, [int(count) for count in left])


def _three_way(rows: _Rows) -> dict[str, Any] | None:
    """AttrScore's figures over the claims with a three-way label (C6)."""
    there = rows.label >= 0
    if not there.any():
        return None
    said = [_VERDICTS[code] for code in rows.verdict[there]]
    if Verdict.NOT_ATTRIBUTABLE in said and not set(attrscore.CLASSES[1:]) & set(said):
        return None
    return attrscore.evaluate([attrscore.CLASSES[code] for code in rows.label[there]], said)


def _average(sets: Sequence[dict[str, Any]], draws: Sequence[dict[str, Floats]]) -> dict[str, Any]:
    """The mean over the sets that have the figure, with an interval from draws in every set at once."""
    average: dict[str, Any] = {}
    intervals: dict[str, list[float] | None] = {}
    counts: dict[str, int] = {}
    for name in FIGURES:
        there = [number for number, one in enumerate(sets) if one[name] is not None]
        average[name] = sum(sets[number][name] for number in there) / len(there) if there else None
        counts[name] = len(there)
        # A draw in which a set has no value is left out, or it would be a mean over other sets.
        intervals[name] = _interval(np.mean([draws[number][name] for number in there], axis=0)) if there else None
    reasons = {name: "no data set has it" for name in FIGURES if average[name] is None}
    return average | {"interval95": intervals, "sets": counts, "reasons": reasons}
