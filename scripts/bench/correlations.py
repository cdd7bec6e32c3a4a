"""How often the 95 % intervals of correlations over systems in `autoais evaluate-judge` hold the truth, by simulation.

    python -m scripts.bench.correlations --out eval/results/correlations.json

Systems differ in how often they are right; the judge follows people on six claims of ten and sees some systems as
better than they are; questions are easy or hard for all. The truth is the correlation over a million questions. Each
system has one claim per question.
"""

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from autoais.base.io.jsonl import dumps, round_floats, write_atomic
from autoais.base.io.provenance import provenance
from autoais.meta.correlation import MEASURES, over_systems

POPULATIONS = {  # systems, how far apart they are, and how far the judge is off (logits)
    "4 systems": (4, 1.5, 0.3),
    "8 close systems": (8, 0.6, 0.3),
    "8 systems, a poor judge": (8, 1.5, 1.0),
    "16 systems": (16, 1.5, 0.5),
}
SIZES = (20, 50, 200, 1000)  # questions
AGREEMENT = 0.6
POPULATION_SIZE = 1_000_000

Counts = NDArray[np.int64]


def draw_kinds(rng: np.random.Generator, n: int, people: NDArray[Any], judge: NDArray[Any]) -> Counts:
    """The kind of each claim, questions x systems: no by both, yes by the judge, by people, by both."""
    shape = (n, len(people))
    hard = rng.normal(0, 1, n)[:, None]
    own_noise, judge_noise = rng.logistic(size=shape), rng.logistic(size=shape)
    truth = people + hard + own_noise > 0
    verdicts = judge + hard + np.where(rng.random(shape) < AGREEMENT, own_noise, judge_noise) > 0
    return np.asarray(2 * truth + verdicts, dtype=np.int64)


def coverage(name: str, samples: int) -> dict[str, Any]:
    """The true correlations of a population, and the share of intervals that hold them, by measure and size."""
    systems, spread, error = POPULATIONS[name]
    rng = np.random.default_rng(1)
    people = np.linspace(0, spread, systems) - 0.2
    judge = people + rng.normal(0, error, systems)
    yes = np.zeros((2, systems))  # by people, and by the judge
    for _ in range(10):
        kinds = draw_kinds(rng, POPULATION_SIZE // 10, people, judge)
        yes += [(kinds >= 2).sum(axis=0), (kinds % 2).sum(axis=0)]
    rates = yes / POPULATION_SIZE
    truth = {measure: correlation(rates[0], rates[1]) for measure, correlation in MEASURES.items()}
    results: dict[str, Any] = {}
    for n in SIZES:
        outcomes: dict[str, list[bool]] = {measure: [] for measure in MEASURES}
        for _ in range(samples):
            cells = np.eye(4, dtype=np.int64)[draw_kinds(rng, n, people, judge)]
            result = over_systems([str(number) for number in range(systems)], cells, [0] * systems)
            for measure, value in truth.items():
                if (ends := result[measure]["interval95"]) is not None and value is not None:
                    outcomes[measure].append(ends[0] - 1e-9 <= value <= ends[1] + 1e-9)
        results[str(n)] = {
            measure: {"coverage": sum(hits) / len(hits) if hits else None, "intervals": len(hits)}
            for measure, hits in outcomes.items()
        }
        print(name, n, dumps(round_floats(results[str(n)], 3)), flush=True)
    return {"truth": truth, "questions": results}


def main(
    samples: Annotated[int, typer.Option(min=1, help="Samples of each population and size.")] = 150,
    output: Annotated[Path | None, typer.Option("--out", help="Report (json).")] = None,
) -> None:
    """Simulate, print, and write to --out."""
    results = {name: coverage(name, samples) for name in POPULATIONS}
    if output is not None:
        result = {"samples": samples, "populations": results, "provenance": provenance({})}
        write_atomic(output, [dumps(round_floats(result, 4), indent=2)])


if __name__ == "__main__":
    typer.run(main)
