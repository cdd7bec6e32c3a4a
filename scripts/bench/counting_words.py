"""Measures what counting words would add to the shipped judge, inside and outside of its domain.

    python -m scripts.bench.counting_words DATA attributionbench_ood.jsonl --out eval/results/minilm/counting-words.json

The judge's log-odds plus a weight times the share of the claim's words in the evidence (that of `lexical`), which is
centred and scaled on AttributionBench's dev set. The weights are fixed, but for `fitted`, the weight of a logistic
regression over dev. Each threshold has the best macro-F1 on dev; `0` is the judge alone with such a threshold. The last
file is `data/test_ood_all_subset_balanced.jsonl` of OSU-NLP-Group/AttributionBench. Figures are means over the sets of
a collection; `against_lexical` has the paired differences from counting words alone (`autoais.rank_judges`). Nothing of
it ships.
"""

import argparse
from collections.abc import Iterable, Mapping, Sequence
from math import log
from pathlib import Path
from typing import Any

import numpy as np

from autoais.base.io.jsonl import dumps, round_floats, write_atomic
from autoais.base.io.provenance import provenance
from autoais.base.labels import LabelledClaim
from autoais.base.types import Attribution, Judge, Judgement, Verdict
from autoais.formats import read_labels
from autoais.judges.lexical import LexicalJudge
from autoais.judges.minilm import MiniLMJudge
from autoais.meta.leaderboard import LabelledSets, rank_judges
from autoais.meta.logistic import Floats, fit_logistic
from autoais.metrics.classification import Bools
from autoais.training.calibration import threshold
from rag.bench.benchmark import read_label_set

WEIGHTS = (0.25, 0.5, 1.0)
LIMIT = 730  # claims of each set in docs/judges.md; of those out of domain all count


class Scores:
    """The log-odds of the shipped judge and the shares of shared words, each pair judged once."""

    def __init__(self) -> None:
        self._minilm, self._lexical = MiniLMJudge(), LexicalJudge()
        self._scores: dict[Attribution, tuple[float, float]] = {}

    def of(self, pairs: Iterable[Attribution]) -> Floats:
        """Return an array of shape (pairs, 2); a pair without a probability counts as 0.5, one without words as 0."""
        pairs = list(pairs)
        new = [pair for pair in dict.fromkeys(pairs) if pair not in self._scores]
        for pair, judged, counted in zip(new, self._minilm.judge(new), self._lexical.judge(new), strict=True):
            probability = min(max(0.5 if judged.probability is None else judged.probability, 1e-6), 1 - 1e-6)
            self._scores[pair] = log(probability / (1 - probability)), counted.probability or 0.0
        return np.array([self._scores[pair] for pair in pairs])


class Combined(Judge):
    """A judge of log-odds + weight * (share - mean) / deviation, attributable from the threshold on."""

    def __init__(self, name: str, scores: Scores, weight: float, scale: tuple[float, float], threshold: float) -> None:
        self._name, self._scores = name, scores
        self._weight, self._scale, self._threshold = weight, scale, threshold

    @property
    def name(self) -> str:
        """The weight."""
        return self._name

    def decide(self, attributions: Sequence[Attribution]) -> list[Judgement]:
        """Judge pairs; the probability is the logistic function of score - threshold."""
        scores = combine(self._scores.of(attributions), self._weight, self._scale) - self._threshold
        return [
            Judgement(Verdict.ATTRIBUTABLE if score >= 0 else Verdict.NOT_ATTRIBUTABLE, (1 + np.tanh(score / 2)) / 2)
            for score in scores
        ]


def combine(scores: Floats, weight: float, scale: tuple[float, float]) -> Floats:
    """Return the combined scores, shape (pairs,)."""
    mean, deviation = scale
    return np.asarray(scores[:, 0] + weight * (scores[:, 1] - mean) / deviation)


def fit_weight(scores: Floats, truth: Bools, scale: tuple[float, float]) -> float:
    """Return the weight of the share, in units of the weight of the log-odds, of a logistic regression."""
    features = np.column_stack([scores[:, 0], (scores[:, 1] - scale[0]) / scale[1], np.ones(len(scores))])
    start = np.zeros(3)
    odds, share, _ = fit_logistic(features, truth.astype(np.float64), np.ones(len(scores)), start, start)
    return float(share / odds)


def figures(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the means of a judge over the sets of the collection, its differences from lexical, and its sets."""
    (means,) = row["averages"].values()
    differences = [*row.get("against_baseline", {}).get("averages", {}).values()]
    return {
        **{name: means[name] for name in ("macro_f1", "roc_auc")},
        "interval95": {name: means["interval95"][name] for name in ("macro_f1", "roc_auc")},
        "against_lexical": {name: differences[0][name] for name in ("macro_f1", "roc_auc")} if differences else None,
        "sets": {key: {name: of_set[name] for name in ("macro_f1", "roc_auc")} for key, of_set in row["sets"].items()},
    }


def main() -> None:
    """Measure, print the means of each collection, and write to --out."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="folder with labels/")
    parser.add_argument("outside", type=Path, help="AttributionBench's test out of domain")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    sets = [read_label_set(name) for name in ("attributionbench", "contrast")]
    files = {file.path(options.data, labels.home).stem: file.check(options.data, labels.home)
             for labels in sets for file in labels.files}  # fmt: skip
    dev: list[LabelledClaim] = list(read_labels(files["attributionbench_dev"]))
    scores, truth = Scores(), np.array([claim.attributable for claim in dev])
    dev_scores = scores.of(claim.attribution for claim in dev)
    scale = float(dev_scores[:, 1].mean()), float(dev_scores[:, 1].std())
    datasets = [claim.dataset for claim in dev]
    weights = {"0": 0.0, **{str(weight): weight for weight in WEIGHTS}}
    weights["fitted"] = fit_weight(dev_scores, truth, scale)
    judges = [
        Combined(name, scores, weight, scale, threshold(combine(dev_scores, weight, scale), truth, datasets))
        for name, weight in weights.items()
    ]
    collections = [
        LabelledSets(labels.name, tuple(file.check(options.data, labels.home) for file in labels.files), labels.only)
        for labels in sets
    ]
    result: dict[str, Any] = {"weights": weights, "scale": scale, "limit": LIMIT, "collections": {}}
    for labelled in [*collections, LabelledSets("outside", (options.outside,))]:
        limit = None if labelled.name == "outside" else LIMIT
        board = rank_judges([labelled], [MiniLMJudge(), *judges], limit=limit, timing_count=0)
        result["collections"][labelled.name] = {name: figures(row) for name, row in board["judges"].items()}
    result["provenance"] = provenance({**files, "outside": options.outside})
    write_atomic(options.out, [dumps(round_floats(result), indent=2)])
    for collection, rows in result["collections"].items():
        for name, row in rows.items():
            print(f"{collection}: {name}: macro-F1 {row['macro_f1']}, ROC-AUC {row['roc_auc']}")


if __name__ == "__main__":
    main()
