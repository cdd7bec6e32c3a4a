"""Measures intervals and tests where the items of a question are alike: rates that labels correct, and `compare`.

    python -m scripts.bench.coverage_clusters --out eval/results/coverage-clusters.json

Each with what was in use before: intervals that take all items as independent, and p of swaps alone. The other
intervals are measured by `scripts/coverage.py`, whose page shows both. A case depends on the seed and its name only.
"""

import argparse
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autoais.base.io.jsonl import dumps, round_floats, write_atomic
from autoais.base.io.provenance import provenance
from autoais.metrics.comparison import compare
from autoais.metrics.paired import Pairs, p_values, ratio_of_sums
from autoais.metrics.ppi import Stratum, correct_rate, correct_strata
from scripts.coverage import LEVEL, SEED, Draw, covers, generator, table

SIZES = (20, 50, 100, 200)  # questions


def draw_labels(
    rng: np.random.Generator, n: int, k: int, *, p: float, right: float
) -> tuple[NDArray[np.bool_], NDArray[np.bool_], list[int]]:
    """The truth of k items of each of n questions, a judge's verdicts, and the questions; questions differ in both."""

    def items(rate: float) -> NDArray[np.bool_]:
        return rng.random(n * k) < np.repeat(rng.beta(3 * rate, 3 * (1 - rate), n), k)

    truth = items(p)
    return truth, truth == items(right), np.repeat(np.arange(n), k).tolist()


def labelled_items(rng: np.random.Generator, n: int, *, k: int, p: float, right: float, clustered: bool) -> Draw:
    """A rate over k items of each question, corrected by labels of 30 % of the items, two at least."""
    truth, verdicts, questions = draw_labels(rng, n, k, p=p, right=right)
    chosen = rng.permutation(n * k)[: max(2, round(0.3 * n * k))]
    human = {int(index): bool(truth[index]) for index in chosen}
    record = correct_rate(verdicts.tolist(), human, questions=questions if clustered else None)
    return p, (record["interval95"][0], record["interval95"][1])


def triaged_items(rng: np.random.Generator, n: int, *, k: int, p: float, right: float) -> Draw:
    """The same as a study with triage: a judge is unsure of 30 % of the items, which people label; 20 % of the others.

    Of both two at least. The judge guesses where it is unsure.
    """
    truth, verdicts, questions = draw_labels(rng, n, k, p=p, right=right)
    order = rng.permutation(n * k)
    n_unsure = max(2, round(0.3 * n * k))
    verdicts[order[:n_unsure]] = rng.random(n_unsure) < 0.5
    strata = []
    for items, n_labelled in ((order[:n_unsure], n_unsure), (order[n_unsure:], max(2, round(0.14 * n * k)))):
        human = dict(enumerate(truth[items[:n_labelled]].tolist()))
        strata.append(Stratum(verdicts[items].tolist(), human, [questions[item] for item in items]))
    return p, correct_strata(strata)[1]


def cases() -> Iterator[tuple[str, str, Callable[[np.random.Generator, int], Draw]]]:
    """Yield group, name and sampler of every case."""
    for k, p, right in ((6, 0.7, 0.8), (6, 0.9, 0.95), (10, 0.7, 0.95), (10, 0.9, 0.9)):
        name = f"{k} items a question, {p} right, judge right on {right}"
        corrected = partial(labelled_items, k=k, p=p, right=right)
        yield "items corrected by labels of 30 %", name, partial(corrected, clustered=True)
        yield "items corrected by labels of 30 %, as independent (before)", name, partial(corrected, clustered=False)
        yield "items of a study with triage", name, partial(triaged_items, k=k, p=p, right=right)


def false_positives_of_whole_answers(n: int, samples: int, *, rate: float) -> dict[str, float]:
    """As `false_positives`, where all sentences of an answer of A are right or none, and those of B one by one.

    Answers have five sentences, and both systems the same rate. `swaps alone` is p as it was before.
    """
    rng = generator(f"null {n} whole answers {rate}")
    counts: dict[str, int] = {}
    for _ in range(samples):
        sides = []
        for yes in (np.where(rng.random(n) < rate, 5, 0), rng.binomial(5, rate, n)):
            sides.append(np.stack([yes.astype(np.float64), np.full(n, 5.0)], axis=1))
        a, b = (
            {str(q): {"sentences": (row[0], row[1]), "recall": (row[0] / row[1], 1.0)} for q, row in enumerate(side)}
            for side in sides
        )
        verdicts: dict[str, bool | None] = dict.fromkeys(map(str, range(n)), False)
        hits = {name: metric["p"] for name, metric in compare(verdicts, verdicts, (a, b))["metrics"].items()}
        ((hits["sentences, swaps alone (before)"], _),) = p_values([Pairs(sides[0], sides[1], ratio_of_sums)])
        for name, p in hits.items():
            counts[name] = counts.get(name, 0) + (p < LEVEL)
    return {name: count / samples for name, count in counts.items()}


def simulate(samples: int, tests: int) -> dict[str, Any]:
    """Return coverage by group, case and number of questions, and false positives by case."""
    groups: dict[str, dict[str, dict[str, float]]] = {}
    for group, name, sample in cases():
        row = groups.setdefault(group, {}).setdefault(name, {})
        for n in SIZES:
            rng = generator(f"{group} {name} {n}")
            row[str(n)] = sum(covers(*sample(rng, n)) for _ in range(samples)) / samples
        print(group, name, row, flush=True)
    null = {}
    for n, rate in ((20, 0.9), (40, 0.9), (40, 0.98), (200, 0.98)):
        name = f"{n} questions, {rate} right, all or no sentences of an answer of A"
        null[name] = false_positives_of_whole_answers(n, tests, rate=rate)
        print(name, null[name], flush=True)
    return {"samples": samples, "tests": tests, "seed": SEED, "coverage": groups, "false_positives": null}


def main() -> None:
    """Parse, simulate, write."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--samples", type=int, default=1000, help="Samples of a case.")
    parser.add_argument("--tests", type=int, default=1000, help="Comparisons of two equal systems.")
    parser.add_argument("--out", type=Path, help="Write the report (json).")
    options = parser.parse_args()
    report = round_floats({**simulate(options.samples, options.tests), "provenance": provenance({})}, 4)
    if options.out is not None:
        write_atomic(options.out, [dumps(report, indent=2)])
    print(table(report, SIZES))


if __name__ == "__main__":
    main()
