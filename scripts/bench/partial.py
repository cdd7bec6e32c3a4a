"""Measures whether the shipped judge tells partial support from full and none, beside counting words.

    python -m scripts.bench.partial ../shared/data --out eval/results/minilm/partial.json

Two sets of the training data have a label for partial support: WiCE (its dev part) and Factcheck-GPT's stances. The
network was trained on both, but only to tell full support from the rest. The cut from which a claim counts as partly
supported is fitted on one set and measured on the other, which shares no article and no claim with it, and on halves of
one set that share no claim. A pair about which a judge is undecided is counted and left out. For counting words both
cuts may be fitted. Intervals resample claims with all their evidence.
"""

import argparse
import json
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autoais.base.io.jsonl import dumps, round_floats, write_atomic
from autoais.base.io.provenance import provenance
from autoais.base.types import Attribution, Judge, Support
from autoais.judges.lexical import LexicalJudge
from autoais.judges.minilm import MiniLMJudge
from autoais.metrics.classification import roc_auc

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]

SETS = {("WiCE", "dev"): "WiCE", ("FactcheckGPT-stance", "test"): "FactcheckGPT-stance"}
LEVELS = {
    "supported": Support.FULL, "partially_supported": Support.PARTIAL, "not_supported": Support.NONE,
    "completely-support": Support.FULL, "partially-support": Support.PARTIAL, "irrelevant": Support.NONE,
    "refute": Support.NONE,
}  # fmt: skip
FULL_FROM = {"minilm": 0.5, "lexical": 0.6}
_RESAMPLES = 2000
_CUTS = 100


@dataclass(frozen=True, slots=True)
class Rows:
    """Labelled pairs: level (0 none, 1 partial, 2 full), claim (an index per distinct claim), probability per judge."""

    level: Numbers
    claim: Numbers
    half: Numbers
    probability: dict[str, Floats]

    def select(self, mask: NDArray[np.bool_]) -> "Rows":
        """The selected rows."""
        probability = {name: values[mask] for name, values in self.probability.items()}
        return Rows(self.level[mask], self.claim[mask], self.half[mask], probability)


Cuts = tuple[float, float]  # a pair is partial from the first on and full from the second on


def interval95(draws: "Floats | list[float]") -> list[float]:
    """The 95 % percentile interval of bootstrap draws."""
    return [float(end) for end in np.percentile(draws, [2.5, 97.5])]


def to_levels(values: Floats, cuts: Cuts) -> Numbers:
    """The level of each pair by the cuts."""
    return (values >= cuts[0]).astype(np.int64) + (values >= cuts[1])


def macro_f1(cells: Floats) -> Floats:
    """Macro-F1 of confusion matrices (..., 3, 3) with labels as rows."""
    right = np.diagonal(cells, axis1=-2, axis2=-1)
    totals = cells.sum(axis=-1) + cells.sum(axis=-2)
    return np.asarray(np.divide(2 * right, totals, out=np.zeros_like(right), where=totals > 0).mean(axis=-1))


def per_claim(rows: Rows, levels: Numbers) -> Floats:
    """A confusion matrix per claim, (claims, 3, 3)."""
    _, claims = np.unique(rows.claim, return_inverse=True)
    cells = np.zeros((claims.max() + 1, 3, 3))
    np.add.at(cells, (claims, rows.level, levels), 1)
    return cells


def fit_one_cut(name: str) -> Callable[[Sequence[Rows]], Cuts]:
    """Fits the cut of partial support; that of full support stays as shipped."""

    def fit(sets: Sequence[Rows]) -> Cuts:
        return best(sets, name, [(low, FULL_FROM[name]) for low in grid(sets, name) if 0 < low < FULL_FROM[name]])

    return fit


def fit_two_cuts(name: str) -> Callable[[Sequence[Rows]], Cuts]:
    """Fits both cuts."""

    def fit(sets: Sequence[Rows]) -> Cuts:
        cuts = grid(sets, name)
        return best(sets, name, [(low, high) for low in cuts for high in cuts if low < high])

    return fit


def no_partial(name: str) -> Callable[[Sequence[Rows]], Cuts]:
    """Nothing is partial."""
    return lambda _: (FULL_FROM[name], FULL_FROM[name])


def grid(sets: Sequence[Rows], name: str) -> list[float]:
    """Quantiles of the probabilities of all sets, as candidates."""
    values = np.concatenate([rows.probability[name] for rows in sets])
    return sorted({round(float(value), 3) for value in np.quantile(values, np.linspace(0, 1, _CUTS))})


def best(sets: Sequence[Rows], name: str, candidates: Sequence[Cuts]) -> Cuts:
    """The cuts with the highest macro-F1, averaged over the sets; the first of equals."""

    def score(cuts: Cuts) -> float:
        return float(np.mean([macro_f1(confusion(rows, to_levels(rows.probability[name], cuts))) for rows in sets]))

    return max(candidates, key=score)


def confusion(rows: Rows, levels: Numbers) -> Floats:
    """The confusion matrix of all rows."""
    return np.bincount(3 * rows.level + levels, minlength=9).reshape(3, 3).astype(np.float64)


METHODS = {
    "minilm, as shipped": ("minilm", no_partial("minilm")),
    "minilm, partial_from": ("minilm", fit_one_cut("minilm")),
    "lexical, as shipped": ("lexical", no_partial("lexical")),
    "lexical, partial_from": ("lexical", fit_one_cut("lexical")),
    "lexical, two cuts": ("lexical", fit_two_cuts("lexical")),
}
MAIN_METHOD, BASELINES = "minilm, partial_from", ("lexical, partial_from", "lexical, two cuts")


def read_rows(path: Path, judges: dict[str, Judge]) -> dict[str, tuple[Rows, int]]:
    """The rows of each set, judged, and how many are left out because a judge is undecided."""
    rows_of_sets: dict[str, list[dict[str, Any]]] = {name: [] for name in SETS.values()}
    with path.open(encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            if (name := SETS.get((row["dataset"], row["split"]))) is not None:
                rows_of_sets[name].append(row)
    return {name: to_columns(rows, judges) for name, rows in rows_of_sets.items()}


def to_columns(rows: Sequence[dict[str, Any]], judges: dict[str, Judge]) -> tuple[Rows, int]:
    """The rows as columns, without those about which a judge is undecided; and the number of those."""
    pairs = [Attribution(row["claim"], row["evidence"], row["question"]) for row in rows]
    claims = [zlib.crc32(row["claim"].encode()) for row in rows]
    order = [Support.NONE, Support.PARTIAL, Support.FULL]
    probability = {}
    for name, judge in judges.items():
        values = [judgement.probability for judgement in judge.judge(pairs)]
        probability[name] = np.array([np.nan if value is None else value for value in values])
    level = np.array([order.index(LEVELS[row["raw_label"]]) for row in rows])
    is_decided = ~np.isnan(np.stack(list(probability.values()))).any(axis=0)
    rows_decided = Rows(level, np.array(claims), np.array(claims) % 2, probability).select(is_decided)
    return rows_decided, int((~is_decided).sum())


def measure_methods(parts: Sequence[tuple[Sequence[Rows], Rows]]) -> dict[str, Any]:
    """The figures of every method, each fitted on the first of a part and measured on the second, over all parts."""
    rng = np.random.default_rng(0)
    result: dict[str, Any] = {"n": sum(len(rows.level) for _, rows in parts)}
    cells: dict[str, Floats] = {}
    methods = {}
    for name, (judge, fit) in METHODS.items():
        cuts = [fit(sets) for sets, _ in parts]
        levels = [to_levels(rows.probability[judge], cut) for cut, (_, rows) in zip(cuts, parts, strict=True)]
        cells[name] = np.concatenate([per_claim(rows, level) for level, (_, rows) in zip(levels, parts, strict=True)])
        methods[name] = {"cuts": cuts, **figures(cells[name].sum(axis=0))}
    claims = len(cells[MAIN_METHOD])
    weights = rng.multinomial(claims, np.full(claims, 1 / claims), _RESAMPLES)
    draws = {name: macro_f1(np.tensordot(weights, method, axes=1)) for name, method in cells.items()}
    for name, method in methods.items():
        method["interval95"] = interval95(draws[name])
    differences = {
        name: {
            "value": methods[MAIN_METHOD]["macro_f1"] - methods[name]["macro_f1"],
            "interval95": interval95(draws[MAIN_METHOD] - draws[name]),
        }
        for name in BASELINES
    }
    return result | {"claims": claims, "methods": methods, "ours_minus": differences}


def figures(cells: Floats) -> dict[str, Any]:
    """Macro-F1, F1 of each level, and the confusion matrix with labels as rows, none, partial, full."""
    right, totals = np.diagonal(cells), cells.sum(axis=0) + cells.sum(axis=1)
    return {
        "macro_f1": float(macro_f1(cells)),
        "f1": [float(2 * r / b) if b else 0.0 for r, b in zip(right, totals, strict=True)],
        "accuracy": float(right.sum() / cells.sum()),
        "confusion": cells.astype(int).tolist(),
    }


def partial_against_none(rows: Rows) -> dict[str, Any]:
    """ROC-AUC of partial against no support by each judge's probability, which needs no cut."""
    rows_below_full = rows.select(rows.level < 2)
    rng, (_, claims) = np.random.default_rng(0), np.unique(rows_below_full.claim, return_inverse=True)
    members = [np.flatnonzero(claims == claim) for claim in range(claims.max() + 1)]
    samples = [np.concatenate([members[i] for i in rng.integers(0, len(members), len(members))]) for _ in range(500)]
    result = {}
    for name, values in rows_below_full.probability.items():
        draws = [roc_auc(rows_below_full.level[sample] == 1, values[sample]) for sample in samples]
        result[name] = {
            "value": roc_auc(rows_below_full.level == 1, values),
            "interval95": interval95([value for value in draws if value is not None]),
        }
    return result | {"n": len(rows_below_full.level)}


def main() -> None:
    """Measure, print macro-F1 of each method, and write to --out."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="folder with labels/attribution_train.jsonl")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    path = options.data / "labels" / "attribution_train.jsonl"
    judges: dict[str, Judge] = {"minilm": MiniLMJudge(), "lexical": LexicalJudge()}
    read_sets = read_rows(path, judges)
    sets = {name: rows for name, (rows, _) in read_sets.items()}
    tests: dict[str, dict[str, Any]] = {}
    for name, rows in sets.items():
        other_sets = [other for key, other in sets.items() if key != name]
        halves = [rows.select(rows.half == half) for half in (0, 1)]
        tests[f"{name}, fitted on the other set"] = measure_methods([(other_sets, rows)])
        folds = [([halves[0]], halves[1]), ([halves[1]], halves[0])]
        tests[f"{name}, fitted on its other half"] = measure_methods(folds)
    result = {
        "judge": judges["minilm"].name,
        "baseline": judges["lexical"].name,
        "levels": ["none", "partial", "full"],
        "labels": {name: np.bincount(rows.level, minlength=3).tolist() for name, rows in sets.items()},
        "undecided": {name: undecided for name, (_, undecided) in read_sets.items()},
        "partial_from": fit_one_cut("minilm")(list(sets.values()))[0],
        "tests": tests,
        "auc_partial_against_none": {name: partial_against_none(rows) for name, rows in sets.items()},
        "provenance": provenance({"labels": path}),
    }
    for test, row in tests.items():
        print(f"{test}: n {row['n']}, {row['claims']} claims")
        for method, figure in row["methods"].items():
            low, high = figure["interval95"]
            print(f"  {method:<24} macro-F1 {figure['macro_f1']:.3f} [{low:.3f}, {high:.3f}], cuts {figure['cuts']}")
        for name, figure in row["ours_minus"].items():
            low, high = figure["interval95"]
            print(f"  {MAIN_METHOD} - {name}: {figure['value']:+.3f} [{low:+.3f}, {high:+.3f}]")
    write_atomic(options.out, [dumps(round_floats(result), indent=2)])


if __name__ == "__main__":
    main()
