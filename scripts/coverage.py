"""Measures how often the 95 % intervals hold the truth, and how often `compare` finds a difference where none is.

    python -m scripts.coverage --tests 10000 --out eval/results/coverage.json

Draws samples from known populations and calls the functions that `autoais` calls. Coverage of a share of independent
outcomes is computed, not drawn. With 4,000 samples a coverage of 95 % is measured to within 0.7 points (1.0 for 500 and
1,000 questions, which get half as many). Takes about an hour of processor time; `--samples` and `--tests` shorten it. A
case depends on the seed and its name only.
"""

import argparse
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from functools import cache, partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import autoais
from autoais.base.io.jsonl import dumps, read_objects, round_floats, write_atomic
from autoais.base.io.provenance import provenance, sha256_files
from autoais.meta import evaluate
from autoais.metrics import intervals
from autoais.metrics.comparison import compare
from autoais.metrics.intervals import Interval, clopper_pearson
from autoais.metrics.ppi import correct_rate
from autoais.metrics.rates import Mean

Floats = NDArray[np.float64]
Draw = tuple[float, Interval | None]  # the truth and an interval of one sample

SIZES = (10, 20, 50, 100, 500, 1000)  # questions
SEED = 0
LEVEL = 0.05
LENGTHS = {"both say 1 to 6 sentences": ((1, 6), (1, 6)), "A says 1 to 2 sentences, B 5 to 8": ((1, 2), (5, 8))}


def generator(name: str) -> np.random.Generator:
    """A generator for the case of this name."""
    return np.random.default_rng([SEED, intervals.number_of(name)])


# --- populations -----------------------------------------------------------------------------------------------


def outcomes(rng: np.random.Generator, n: int, p: float, correlation: float, max_items: int) -> tuple[Floats, Floats]:
    """Yes outcomes and items of n questions with 1 to `most` items each; `alike` is the intra-question correlation."""
    items = rng.integers(1, max_items + 1, n)
    if correlation == 0:
        rates: Floats = np.full(n, p)
    elif correlation == 1:
        rates = (rng.random(n) < p).astype(np.float64)
    else:
        rates = rng.beta(p * (1 - correlation) / correlation, (1 - p) * (1 - correlation) / correlation, n)
    return rng.binomial(items, rates).astype(np.float64), items.astype(np.float64)


def _draw_scores(rng: np.random.Generator, n: int, zero_share: float, one_share: float) -> Floats:
    """Zeros, ones and uniform values between them."""
    kind = rng.random(n)
    return np.where(kind < zero_share, 0.0, np.where(kind < zero_share + one_share, 1.0, rng.random(n)))


def _reciprocal_ranks(rng: np.random.Generator, n: int) -> Floats:
    ranks = rng.integers(1, 40, n)
    return np.where(ranks > 10, 0.0, 1 / ranks)


# Distributions of a score per question (0 to 1), and their means.
MEANS: Mapping[str, tuple[Callable[[np.random.Generator, int], Floats], float]] = {
    "answer F1: 60 % 0, 20 % 1": (partial(_draw_scores, zero_share=0.6, one_share=0.2), 0.3),
    "mostly 0: 90 % 0, none 1": (partial(_draw_scores, zero_share=0.9, one_share=0.0), 0.05),
    "mostly 1: 90 % 1, none 0": (partial(_draw_scores, zero_share=0.0, one_share=0.9), 0.95),
    "recall of 3 gold, each .1": (lambda rng, n: rng.binomial(3, 0.1, n) / 3, 0.1),
    "recall of 5 nuggets, each .98": (lambda rng, n: rng.binomial(5, 0.98, n) / 5, 0.98),
    "reciprocal rank": (_reciprocal_ranks, float(sum(1 / rank for rank in range(1, 11)) / 39)),
    "uniform": (lambda rng, n: rng.random(n), 0.5),
    "beta(1, 20), skewness 1.7": (lambda rng, n: rng.beta(1, 20, n), 1 / 21),
    "beta(.2, 5), skewness 3.3": (lambda rng, n: rng.beta(0.2, 5, n), 0.2 / 5.2),
}


# --- cases -----------------------------------------------------------------------------------------------------


def wilson(successes: float, n: float) -> Interval:
    """The interval in use before, for comparison: it takes all items as independent."""
    z2 = 1.959963984540054**2
    p, scale = successes / n, 1 + z2 / n
    centre, margin = p + z2 / (2 * n), math.sqrt(z2 * (p * (1 - p) / n + z2 / (4 * n * n)))
    return (centre - margin) / scale, (centre + margin) / scale


def covers(truth: float, ends: Interval | None) -> bool:
    """Whether the interval holds the truth; a missing one does not."""
    return ends is not None and ends[0] - 1e-9 <= truth <= ends[1] + 1e-9


def exact_coverage(n: int, p: float, method: Callable[[float, float], Interval]) -> float:
    """The coverage of n independent outcomes, by the binomial distribution."""
    log = [math.lgamma(n + 1) - math.lgamma(x + 1) - math.lgamma(n - x + 1) for x in range(n + 1)]
    probabilities = (math.exp(log[x] + x * math.log(p) + (n - x) * math.log(1 - p)) for x in range(n + 1))
    return sum(probability for x, probability in enumerate(probabilities) if covers(p, method(x, n)))


def share(rng: np.random.Generator, n: int, *, p: float, correlation: float, max_items: int) -> Draw:
    """A share of items, such as `sentences`."""
    estimate = intervals.ratio(*outcomes(rng, n, p, correlation, max_items))
    return p, intervals.interval(estimate)


def share_by_wilson(rng: np.random.Generator, n: int, *, p: float, correlation: float, max_items: int) -> Draw:
    """The same, by Wilson's interval over all items."""
    yes, items = outcomes(rng, n, p, correlation, max_items)
    return p, wilson(yes.sum(), items.sum())


def mean(rng: np.random.Generator, n: int, *, name: str) -> Draw:
    """A mean over questions, such as `f1`."""
    draw, truth = MEANS[name]
    return truth, Mean.of(list(draw(rng, n))).interval95


def f1(rng: np.random.Generator, n: int, *, p: float) -> Draw:
    """F1 of mean recall and mean precision, which go together: a question has both high or both low."""
    rates = rng.beta(2 * p, 2 * (1 - p), n)
    weights = np.ones(n)
    recall, precision = (rng.binomial(4, rates) / 4 for _ in range(2))
    return p, intervals.interval(
        intervals.harmonic_mean(intervals.ratio(recall, weights), intervals.ratio(precision, weights))
    )


def difference(rng: np.random.Generator, n: int, *, a: float, b: float) -> Draw:
    """The difference of two systems in a yes/no outcome: shares of questions that only A, or only B, gets right."""
    kind = rng.random(n)
    changes = (kind < a).astype(np.float64) - ((kind >= a) & (kind < a + b))
    return a - b, intervals.mean(changes, -1.0, 1.0).interval


def mean_difference(rng: np.random.Generator, n: int, *, name: str) -> Draw:
    """The difference of two means; A is right where B is not on some questions."""
    draw, truth = MEANS[name]
    b = draw(rng, n)
    a = np.where(rng.random(n) < 0.2, 1.0, b)
    return 0.2 * (1 - truth), intervals.mean(a - b, -1.0, 1.0).interval


def draw_judgements(rng: np.random.Generator, n: int, *, correlation: float) -> tuple[Any, ...]:
    """Labels, verdicts, probabilities and questions of 1 to 12 claims each; questions differ in how hard they are."""
    items = rng.integers(1, 13, n)
    question = np.repeat(np.arange(n), items)
    ease = np.repeat(rng.normal(1.2, 2 * correlation, n), items)
    lean = np.repeat(rng.normal(0.5, 2 * correlation, n), items)
    truth = lean + rng.logistic(size=len(question)) > 0
    score = np.where(truth, ease, -ease) + rng.logistic(size=len(question))
    return truth, score > 0, 1 / (1 + np.exp(-score)), question


JUDGE: Mapping[str, Callable[..., Any]] = {
    "macro_f1": lambda truth, verdicts, probability, question: evaluate._macro_f1(truth, verdicts, question),
    "balanced_accuracy": lambda truth, verdicts, probability, question: evaluate._balanced_accuracy(
        truth, verdicts, question
    ),
    "roc_auc": lambda truth, verdicts, probability, question: evaluate._roc_auc(truth, probability, question),
    "cohen_kappa": lambda truth, verdicts, probability, question: evaluate._cohen_kappa(truth, verdicts, question),
}


def judge(rng: np.random.Generator, n: int, *, figure: str, correlation: float, truth: float) -> Draw:
    """A figure of `autoais evaluate-judge`."""
    return truth, intervals.interval(JUDGE[figure](*draw_judgements(rng, n, correlation=correlation)))


def rare(rng: np.random.Generator, n: int, *, right: float, rejects: float) -> Draw:
    """Balanced accuracy where one claim in ten is a yes (at least three); a yes is found with `right`."""
    truth = np.arange(n) < max(3, n // 10)
    verdicts = np.where(truth, rng.random(n) < right, rng.random(n) >= rejects)
    return (right + rejects) / 2, intervals.interval(evaluate._balanced_accuracy(truth, verdicts, np.arange(n)))


def small_set(rng: np.random.Generator, n: int, *, p: float) -> Draw:
    """The average of two data sets: n questions with rate p, and 300 with rate one half."""
    sets = [(rng.random(size) < rate).astype(np.float64) for size, rate in ((n, p), (300, 0.5))]
    return (p + 0.5) / 2, intervals.average([intervals.mean(values) for values in sets])


def by_labels(rng: np.random.Generator, n: int, *, p: float, passes: float, rejects: float) -> Draw:
    """AutoAIS of 5 n answers, corrected by labels of n: the judge passes wrong answers, and rejects right ones."""
    truth = rng.random(5 * n) < p
    wrong = rng.random(5 * n) < np.where(truth, rejects, passes)
    human = dict(enumerate(truth[:n].tolist()))
    low, high = correct_rate((truth != wrong).tolist(), human)["interval95"]
    return p, (low, high)


def cases() -> Iterator[tuple[str, str, Callable[[np.random.Generator, int], Draw]]]:
    """Yield group, name and sampler of every case."""
    for p in (0.02, 0.1, 0.5, 0.9, 0.98):
        for correlation in (0.0, 0.3, 1.0):
            for max_items in (3, 12):
                name = f"p {p}, correlation {correlation}, 1 to {max_items} items"
                yield "share of items", name, partial(share, p=p, correlation=correlation, max_items=max_items)
                before = partial(share_by_wilson, p=p, correlation=correlation, max_items=max_items)
                yield "share of items, Wilson (before)", name, before
    for name in MEANS:
        yield "mean over questions", name, partial(mean, name=name)
    for p in (0.1, 0.5, 0.9):
        yield "F1 of two means", f"both {p}", partial(f1, p=p)
    for a, b in ((0.02, 0.02), (0.1, 0.1), (0.3, 0.3), (0.2, 0.1), (0.3, 0.02), (0.6, 0.1)):
        yield "difference of shares", f"only A {a}, only B {b}", partial(difference, a=a, b=b)
    for name in ("answer F1: 60 % 0, 20 % 1", "uniform", "reciprocal rank", "beta(.2, 5), skewness 3.3"):
        yield "difference of means", name, partial(mean_difference, name=name)
    for right, rejects in ((0.95, 0.5), (0.9, 0.8), (0.98, 0.7)):
        sampler = partial(rare, right=right, rejects=rejects)
        yield "balanced accuracy, one in ten yes", f"{right} of yes, {rejects} of no", sampler
    for p in (0.5, 0.9, 0.95, 0.98):
        yield "average of a small set and 300", f"small set {p}", partial(small_set, p=p)
    for p, passes, rejects in ((0.5, 0.3, 0.2), (0.5, 0.05, 0.05), (0.9, 0.3, 0.2), (0.9, 0.05, 0.02)):
        sampler = partial(by_labels, p=p, passes=passes, rejects=rejects)
        yield "AutoAIS corrected by so many labels", f"{p} right, passes {passes}, rejects {rejects}", sampler
    for correlation in (0.0, 0.5):
        population = draw_judgements(generator(f"population {correlation}"), 200_000, correlation=correlation)
        for figure, estimate in JUDGE.items():
            truth = estimate(*population).value
            sampler = partial(judge, figure=figure, correlation=correlation, truth=truth)
            yield "judge, 1 to 12 claims per question", f"{figure}, questions differ by {correlation}", sampler


def false_positives(n: int, samples: int, *, correlation: float) -> dict[str, float]:
    """The share of samples in which `compare` finds a difference (p < .05) between two equal systems.

    `any_holm`: in any of the metrics, by the corrected p. `any`: without correction.
    """
    rng = generator(f"null {n} {correlation}")
    counts: dict[str, int] = {}
    for _ in range(samples):
        hard = rng.beta(1, 1, n)
        sides = []
        for _side in range(2):
            rates = np.where(rng.random(n) < correlation, hard, rng.beta(1, 1, n))
            items = rng.integers(1, 7, n)
            yes, right = rng.binomial(items, rates), rng.binomial(items, rates)
            sides.append(
                {
                    str(q): {
                        "autoais": (float(yes[q] == items[q]), 1.0),
                        "sentences": (float(yes[q]), float(items[q])),
                        "citation_recall": (float(yes[q] / items[q]), 1.0),
                        "citation_precision": (float(right[q] / items[q]), 1.0),
                        "f1": (float(rng.random() * rates[q]), 1.0),
                    }
                    for q in range(n)
                }
            )
        ais = [{q: row["autoais"][0] == 1.0 for q, row in side.items()} for side in sides]
        metrics = compare(ais[0], ais[1], (sides[0], sides[1]))["metrics"]
        hits = {name: metric["p"] < LEVEL for name, metric in metrics.items()}
        hits |= {"any": any(hits.values()), "any_holm": any(metric["p_holm"] < LEVEL for metric in metrics.values())}
        for name, hit in hits.items():
            counts[name] = counts.get(name, 0) + hit
    return {name: count / samples for name, count in counts.items()}


def false_positives_of_some(
    n: int, samples: int, *, lengths: tuple[tuple[int, int], tuple[int, int]]
) -> dict[str, float]:
    """As `false_positives`, where B says something on half of the questions only; both have the same rates.

    `lengths` are the least and the most sentences of an answer of A and of B. Only metrics over sentences and
    citations: for all others what is not said is a no, which is a difference.
    """
    rng = generator(f"null {n} {lengths}")
    counts: dict[str, int] = {}
    for _ in range(samples):
        hard = rng.beta(1, 1, n)
        sides = []
        for answer_rate, (min_items, max_items) in zip((1.0, 0.5), lengths, strict=True):
            rates = np.where(rng.random(n) < 0.7, hard, rng.beta(1, 1, n))
            items = rng.integers(min_items, max_items + 1, n) * (rng.random(n) < answer_rate)
            yes, right = rng.binomial(items, rates), rng.binomial(items, rates)
            sides.append(
                {
                    str(q): {
                        "sentences": (float(yes[q]), float(items[q])),
                        "liu_recall": (float(yes[q]), float(items[q])),
                        "liu_precision": (float(right[q]), float(items[q])),
                        "liu_recall_averaged": (yes[q] / max(items[q], 1), float(items[q] > 0)),
                    }
                    for q in range(n)
                }
            )
        verdicts: dict[str, bool | None] = dict.fromkeys(map(str, range(n)), False)
        metrics = compare(verdicts, verdicts, (sides[0], sides[1]))["metrics"]
        for name, metric in metrics.items():
            counts[name] = counts.get(name, 0) + (metric["p"] < LEVEL)
    return {name: count / samples for name, count in counts.items()}


@cache
def _samplers() -> dict[tuple[str, str], Callable[[np.random.Generator, int], Draw]]:
    """The samplers of all cases, by group and name; their populations take a while to draw."""
    return {(group, name): sample for group, name, sample in cases()}


def _case(group: str, name: str, n: int, samples: int) -> float:
    """The coverage of a case with n questions."""
    sample = _samplers()[group, name]
    rng = generator(f"{group} {name} {n}")
    times = samples if n <= 100 else samples // 2  # large samples cost more and differ less
    return sum(covers(*sample(rng, n)) for _ in range(times)) / times


def _null(n: int, correlation: float | None, lengths: str | None, tests: int) -> dict[str, float]:
    """The false positives of `compare` with n questions."""
    if correlation is not None:
        return false_positives(n, tests, correlation=correlation)
    return false_positives_of_some(n, tests, lengths=LENGTHS[str(lengths)])


def _tasks(samples: int, tests: int) -> Iterator[tuple[str, partial[Any]]]:
    """Yield what is simulated, each with its name."""
    for n in (10, 50, 200):
        for correlation in (0.0, 0.7):
            yield f"{n} questions, {correlation} equally hard for both", partial(_null, n, correlation, None, tests)
        for name in LENGTHS:
            yield f"{n} questions, B answers half, {name}", partial(_null, n, None, name, tests)
    for group, name in _samplers():
        for n in SIZES:
            yield f"{group} | {name} | {n}", partial(_case, group, name, n, samples)


def _run_task(task: partial[Any]) -> Any:  # noqa: ANN401  (a task's)
    return task()


def simulate(samples: int, tests: int, *, keep: Path | None = None, workers: int = 1) -> dict[str, Any]:
    """Return coverage by group, case and number of questions, and the false positives of `compare`.

    `keep` is a file of the results so far, from which a stopped run with the same code goes on.
    """
    package = Path(autoais.__file__).parent
    files = [
        *sorted((package / "metrics").glob("*.py")),
        package / "meta" / "evaluate.py",
    ]
    code = sha256_files([*files, Path(__file__)], f"{samples} {tests}")
    tasks = dict(_tasks(samples, tests))
    results: dict[str, Any] = {}
    if keep is not None and keep.exists():
        results = {row["name"]: row["found"] for _, row in read_objects(keep) if row["code"] == code}
    tasks_left = {name: task for name, task in tasks.items() if name not in results}
    with ExitStack() as stack:
        run: Any = map
        if workers > 1:
            run = stack.enter_context(ProcessPoolExecutor(workers, get_context("spawn"))).map
        for name, result in zip(tasks_left, run(_run_task, tasks_left.values()), strict=True):
            results[name] = result
            print(name, result, flush=True)
            if keep is not None:
                with keep.open("a", encoding="utf-8") as file:
                    file.write(dumps({"code": code, "name": name, "found": result}) + "\n")
    groups: dict[str, dict[str, dict[str, float]]] = {}
    for p in (0.02, 0.1, 0.5, 0.9, 0.98):
        for group, method in (("share of questions", clopper_pearson), ("share of questions, Wilson (before)", wilson)):
            row = {str(n): exact_coverage(n, p, method) for n in SIZES}
            groups.setdefault(group, {})[f"p {p}"] = row
    for group, name in _samplers():
        groups.setdefault(group, {})[name] = {str(n): results[f"{group} | {name} | {n}"] for n in SIZES}
    null = {name: results[name] for name, task in tasks.items() if task.func is _null}
    return {"samples": samples, "tests": tests, "seed": SEED, "coverage": groups, "false_positives": null}


def table(report: Mapping[str, Any], sizes: Sequence[int] = SIZES) -> str:
    """Return the range of the cases of each group as Markdown, in percent: the table of the page Limits.

    A column for each number of questions.
    """
    lines = [f"| Interval | {' | '.join(map(str, sizes))} |", "|---" * (len(sizes) + 1) + "|"]
    for group, rows in report["coverage"].items():
        ranges = [[100 * row[str(n)] for row in rows.values()] for n in sizes]
        cells = [f"{min(values):.1f} to {max(values):.1f}" for values in ranges]
        lines.append(f"| {group[0].upper()}{group[1:]} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Parse, simulate, write."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--samples", type=int, default=4000, help="Samples of a case.")
    parser.add_argument("--tests", type=int, default=2000, help="Comparisons of two equal systems, for each n.")
    parser.add_argument("--out", type=Path, help="Write the report (json).")
    parser.add_argument("--keep", type=Path, help="File of the results so far; a stopped run goes on from it.")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="Processes.")
    options = parser.parse_args()
    result = simulate(options.samples, options.tests, keep=options.keep, workers=options.workers)
    report = round_floats({**result, "provenance": provenance({})}, 4)
    if options.out is not None:
        write_atomic(options.out, [dumps(report, indent=2)])
    print(table(report))


if __name__ == "__main__":
    main()
