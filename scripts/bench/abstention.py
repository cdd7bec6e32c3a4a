"""Abstention of the reader on unanswerable questions: fits the weights of its confidence, and measures it.

    python -m scripts.own_documents measure DATA --part dev --system reader,min_confidence=0 --work WORK
    python -m scripts.own_documents measure DATA --questions eval/recipes/reader-validation.jsonl --part all \\
        --system reader,min_confidence=0 --work WORK
    python -m scripts.bench.abstention fit ../shared/data POOL.index --signals WORK/answers-dev.jsonl \\
        --calibrate WORK/answers-all.jsonl --to rag/data/reader/confidence.json
    python -m scripts.bench.abstention check WORK/answers-all.jsonl --out eval/results/own-documents/confidence.json
    python -m scripts.bench.abstention measure ../shared/data POOL.index --out eval/results/nomiracl

`fit` fits two estimates, that an answer is right and that the passages answer the question, to two kinds of cases with
equal weight. Simulated ones are questions of SQuAD, which neither the reader nor its teacher saw, with ten BM25 hits of
which one or two contain the answer, and with ten that lack it. The others are the answers to the part `dev` of own-
documents: right if they hold all nuggets for the first estimate, and to an answerable question for the second, where
questions without an answer, which are few, weigh as much as the others. The threshold comes from the answerable
questions of the reader's validation, to which no weight was fitted (split conformal prediction). `measure` uses
NoMIRACL's questions with their ten passages, which have human labels; no weight is fitted to them, but the weighing of
cases was chosen with them and the validation in view.
"""

import random
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from autoais.base.io.jsonl import dumps, read_objects, round_floats, write_atomic
from autoais.base.io.provenance import provenance
from autoais.base.text.folding import questions_key
from autoais.formats.questions import read_questions
from autoais.meta.logistic import fit_logistic
from autoais.metrics.classification import roc_auc
from autoais.metrics.intervals import clopper_pearson
from autoais.metrics.short_answers import has_answer
from autoais.training.prepare import read_excluded_questions
from rag.answer.generators.confidence import SIGNALS, Confidence, LogisticRegression
from rag.answer.generators.passage_reader import PassageReader
from rag.base.errors import QuestionError
from rag.base.types import Hit, Passage, Question, best_first
from rag.index.index import Index
from rag.index.open import open_index
from rag.retrieval.reader import SHIPPED
from rag.retrieval.rerank import Scorer, scorer
from scripts.own_documents import share
from scripts.results import tell

SETS = {"squad.test": 400}
TEACHER_QUESTIONS = 1500  # questions of a set, in an order seeded by its file's name, that the reader's teacher saw
HELD_OUT_FILES = ("nq/nq_pool_dev.jsonl", "nq/NQ-open.dev.jsonl", "miracl/nomiracl.jsonl", "clapnq/dev.jsonl")
MIN_COSINE = 0.45  # minimum cosine of a passage that counts as answering the question
REFUSAL_SHARE = 0.1  # share of the answerable questions about documents below the threshold, which sets the threshold
SYSTEM = "reader,min_confidence=0"
CAPS = (0.05, 0.15, 0.25)

Floats = NDArray[np.float64]
Truth = NDArray[np.bool_]
app = typer.Typer(add_completion=False)


def in_order(static: Scorer, question: str, passages: Sequence[Passage]) -> list[Hit]:
    """The passages as hits, ranked by the static embeddings, as in the retriever `shortlist`."""
    scores = static.score(question, passages)
    return best_first(map(Hit, passages, scores))


def simulate_cases(name: str, limit: int, data: Path, index: Index) -> Iterator[tuple[str, list[Hit], bool]]:
    """Each question with ten hits of which one or two contain its answer, then with ten that do not."""
    held_out_keys = read_excluded_questions(data / file for file in HELD_OUT_FILES)
    cosine, static = scorer("cosine"), scorer("static")
    questions = list(read_questions(data / f"topics/topics.dpr.{name}.txt"))
    teacher_questions = list(questions)
    random.Random(f"topics.dpr.{name}.txt").shuffle(teacher_questions)
    held_out_keys |= {questions_key(question.text) for question in teacher_questions[:TEACHER_QUESTIONS]}
    random.Random(1).shuffle(questions)
    for question in questions:
        if not limit:
            return
        if questions_key(question.text) in held_out_keys:
            continue
        try:
            (hits,) = index.bm25.search([question.text], 50)
        except QuestionError:
            continue
        passages = [hit.passage for hit in hits]
        with_answer = [p for p in passages[:24] if has_answer(p.text, question.answers)]
        without_answer = [p for p in passages if not has_answer(p.contents, question.answers)]
        if not with_answer or len(without_answer) < 10 or max(cosine.score(question.text, with_answer)) < MIN_COSINE:
            continue
        limit -= 1
        yield question.text, in_order(static, question.text, [*with_answer[:2], *without_answer[:8]]), True
        yield question.text, in_order(static, question.text, without_answer[:10]), False


@app.command()
def fit(
    data: Annotated[Path, typer.Argument(help="Data folder with topics/.")],
    index: Annotated[Path, typer.Argument(help="Index of the whole pool.")],
    signals: Annotated[Path, typer.Option(help="Answers of scripts/own_documents.py (jsonl), made without refusals.")],
    calibrate: Annotated[Path, typer.Option(help="Such answers to other questions, for the threshold.")],
    to: Annotated[Path, typer.Option(help="Output file for the weights (json).")],
) -> None:
    """Fit the weights of the confidence to simulated questions and write them."""
    pool, reader = open_index(index), PassageReader()
    rows: list[list[float]] = []
    labels: list[bool] = []
    counts: dict[str, int] = {}
    for name, limit in SETS.items():
        before = len(rows)
        for question, hits, contains_answer in simulate_cases(name, limit, data, pool):
            values = reader.signals(Question("q", question), hits)
            if values:
                rows.append([values[signal] for signal in SIGNALS])
                labels.append(contains_answer)
        counts[f"topics/topics.dpr.{name}.txt"] = len(rows) - before
        print(name, len(rows) - before, "cases", flush=True)
    squad, holds = np.array(rows), np.array(labels)
    dev, is_right, can_be_answered = arrays(answers(signals))
    counts[signals.name] = len(dev)
    right = logistic(squad, holds, dev, is_right)
    answerable = logistic(squad, holds, dev, can_be_answered, balance_classes=True)
    validation, _, is_answerable = arrays(answers(calibrate))
    probabilities = estimate_all(answerable, validation)
    threshold = conformal(probabilities[is_answerable], REFUSAL_SHARE)
    result = {
        "right": {"weights": dict(right.weights), "bias": right.bias},
        "answerable": {"weights": dict(answerable.weights), "bias": answerable.bias},
        "threshold": threshold,
        "fitted_to": {
            "cases": counts,
            "roc_auc": {
                "right": {
                    "simulated": roc_auc(holds, estimate_all(right, squad)),
                    "documents": roc_auc(is_right, estimate_all(right, dev)),
                },
                "answerable": {
                    "simulated": roc_auc(holds, estimate_all(answerable, squad)),
                    "documents": roc_auc(can_be_answered, estimate_all(answerable, dev)),
                },
            },
        },
        "calibrated_on": {
            "questions": calibrate.name,
            "answerable_refused": share((probabilities[is_answerable] < threshold).tolist()),
            "unanswerable_refused": share((probabilities[~is_answerable] < threshold).tolist()),
            "roc_auc": roc_auc(is_answerable, probabilities),
        },
        "provenance": provenance(
            {name: data / f"topics/topics.dpr.{name}.txt" for name in SETS}
            | {"documents": signals, "calibrated_on": calibrate}
        ),
    }
    tell(result, to)


def logistic(
    simulation: Floats, holds: Truth, documents: Floats, truth: Truth, *, balance_classes: bool = False
) -> LogisticRegression:
    """An estimate fitted to both kinds of cases, (cases, signals), with half of the weight each.

    If `balance_classes`, both classes of the documents have equal weight.
    """
    values, labels = np.vstack([simulation, documents]), np.concatenate([holds, truth])
    mean, spread = values.mean(axis=0), values.std(axis=0)
    x = np.column_stack([(values - mean) / spread, np.ones(len(values))])
    ridge = np.array([1e-3] * len(SIGNALS) + [0.0])
    case_weights = np.where(truth, 0.5 / truth.sum(), 0.5 / (~truth).sum()) if balance_classes else 1 / len(documents)
    weight = np.concatenate(
        [np.full(len(simulation), 0.5 / len(simulation)), np.full(len(documents), 0.5) * case_weights]
    )
    coefficients = fit_logistic(x, labels.astype(float), weight, ridge, np.zeros(x.shape[1]))
    weights = coefficients[:-1] / spread
    return LogisticRegression(
        dict(zip(SIGNALS, map(float, weights), strict=True)), float(coefficients[-1] - weights @ mean)
    )


def estimate_all(estimate: LogisticRegression, cases: Floats) -> Floats:
    """The probability of each case; `cases` is (cases, signals)."""
    return np.array([estimate.of(dict(zip(SIGNALS, case, strict=True))) for case in cases.tolist()])


def arrays(rows: Iterable[tuple[list[float], bool, bool]]) -> tuple[Floats, Truth, Truth]:
    """The signals of answers, (cases, signals), which are right, and which of their questions are answerable."""
    cases = list(rows)
    return (
        np.array([case[0] for case in cases]),
        np.array([case[1] for case in cases]),
        np.array([case[2] for case in cases]),
    )


@app.command()
def check(
    file: Annotated[Path, typer.Argument(help="Answers of scripts/own_documents.py (jsonl), made without refusals.")],
    output: Annotated[Path, typer.Option("--out", help="Output file (json).")],
) -> None:
    """Measure what the confidence that ships says of answers, by fifths, and what is refused."""
    confidence = Confidence.read(SHIPPED / "confidence.json")
    signals, right, answerable = arrays(answers(file))
    confidences, answerabilities = estimate_all(confidence.right, signals), estimate_all(confidence.answerable, signals)
    result = {
        "threshold": confidence.threshold,
        "answerable_refused": share((answerabilities[answerable] < confidence.threshold).tolist()),
        "unanswerable_refused": share((answerabilities[~answerable] < confidence.threshold).tolist()),
        "roc_auc": {"right": roc_auc(right, confidences), "answerable": roc_auc(answerable, answerabilities)},
        "curve": reliability(confidences, right),
        "provenance": provenance({"answers": file, "confidence": SHIPPED / "confidence.json"}),
    }
    tell(result, output)


def answers(file: Path) -> Iterator[tuple[list[float], bool, bool]]:
    """The signals of the reader's answers in a file, whether each is right, and whether its question is answerable."""
    for _, row in read_objects(file):
        if row["system"] == SYSTEM and row["signals"]:
            if row["abstained"]:
                raise SystemExit(f"error: {file} has refusals: make it with --system {SYSTEM}")
            yield [row["signals"][signal] for signal in SIGNALS], row["all@120"], row["answerable"]


def reliability(confidence: Floats, right: Truth) -> list[dict[str, float]]:
    """For each fifth of the answers, by confidence: its mean, and the share that is right."""
    order = np.argsort(confidence, kind="stable")
    return [
        {"confidence": float(confidence[part].mean()), "right": float(right[part].mean()), "n": len(part)}
        for part in np.array_split(order, 5)
    ]


def conformal(confidence: Floats, refusal_share: float) -> float:
    """The threshold below which at most the share `refused` of such questions lies, in expectation.

    Split conformal prediction (Vovk et al. 2005): the bound holds for further questions that are exchangeable with
    these. 0 if there are too few of them.
    """
    rank = int(refusal_share * (len(confidence) + 1))
    return float(np.sort(confidence)[rank - 1]) if rank else 0.0


@app.command()
def measure(
    data: Annotated[Path, typer.Argument(help="Data folder with miracl/nomiracl.jsonl.")],
    index: Annotated[Path, typer.Argument(help="Index of the whole pool.")],
    output: Annotated[Path, typer.Option("--out", help="Output folder for report and figure.")],
) -> None:
    """Measure the refusal rates of unanswerable and answerable questions on NoMIRACL."""
    file = data / "miracl/nomiracl.jsonl"
    store, static, reader = open_index(index).store, scorer("static"), PassageReader()
    confidence = Confidence.read(SHIPPED / "confidence.json")
    values, truth = [], []
    for _, row in read_objects(file):
        passages = [passage for docid in row["docids"] if (passage := store.get(docid)) is not None]
        signals = reader.signals(Question("q", row["question"]), in_order(static, row["question"], passages))
        values.append(confidence.answerable.of(signals) if signals else 0.0)
        truth.append(bool(row["answerable"]))
    probabilities, answerable = np.array(values), np.array(truth)
    result: dict[str, Any] = {
        "generator": reader.name,
        "questions": {"answerable": int(answerable.sum()), "unanswerable": int((~answerable).sum())},
        "roc_auc": roc_auc(answerable, probabilities),
        "as_shipped": point(probabilities, answerable, confidence.threshold),
        "points": [best(probabilities, answerable, cap) for cap in CAPS],
        "curve": [point(probabilities, answerable, float(t)) for t in np.linspace(0, 1, 101)],
        "published": "NoMIRACL, GPT-4 on the full 500: 57.6 % of the unanswerable refused, 5.2 % of the answerable",
        "provenance": provenance({"questions": file}),
    }
    write_atomic(output / "reader.json", [dumps(round_floats(result, 4), indent=2)])
    write_atomic(output / "reader.svg", figure(result))
    print(dumps(round_floats({key: result[key] for key in ("roc_auc", "as_shipped", "points")}, 4), indent=2))


def point(probabilities: Floats, answerable: Truth, threshold: float) -> dict[str, Any]:
    """The refusal rates of both kinds at this threshold, with 95 % intervals."""
    row: dict[str, Any] = {"threshold": threshold}
    for kind, selection in (("unanswerable", ~answerable), ("answerable", answerable)):
        refusals, n = int((probabilities[selection] < threshold).sum()), int(selection.sum())
        row[f"{kind}_refused"] = refusals / n
        row[f"{kind}_interval95"] = list(clopper_pearson(refusals, n))
    return row


def best(probabilities: Floats, answerable: Truth, cap: float) -> dict[str, Any]:
    """The point with the most refusals that refuses at most the share `cap` of the answerable questions."""
    refusals = int(cap * int(answerable.sum()))
    return {"cap": cap, **point(probabilities, answerable, float(np.sort(probabilities[answerable])[refusals]))}


def figure(result: dict[str, Any]) -> Iterator[str]:
    """The curve as SVG: share of answerable questions refused (x) and of unanswerable ones (y)."""

    def at(row: dict[str, Any]) -> str:
        return f"{50 + 300 * row['answerable_refused']:.1f},{330 - 300 * row['unanswerable_refused']:.1f}"

    shipped_point = at(result["as_shipped"]).split(",")
    yield '<svg xmlns="http://www.w3.org/2000/svg" width="420" height="390" font-family="sans-serif" font-size="11">'
    yield '<rect width="420" height="390" fill="white"/><title>Abstention on NoMIRACL</title>'
    yield '<rect x="50" y="30" width="300" height="300" fill="none" stroke="#555"/>'
    for tenth in range(0, 11, 2):
        yield f'<text x="{50 + 30 * tenth}" y="346" text-anchor="middle">{10 * tenth}</text>'
        yield f'<text x="44" y="{334 - 30 * tenth}" text-anchor="end">{10 * tenth}</text>'
    yield f'<polyline points="{" ".join(map(at, result["curve"]))}" fill="none" stroke="#1f5f99" stroke-width="2"/>'
    yield f'<circle cx="{shipped_point[0]}" cy="{shipped_point[1]}" r="5" fill="#1f5f99"/>'
    yield f'<text x="{float(shipped_point[0]) + 9:.1f}" y="{float(shipped_point[1]) + 4:.1f}">as shipped</text>'
    yield '<circle cx="65.6" cy="157.2" r="5" fill="#c2571a"/><text x="75" y="152">GPT-4, all 500 (published)</text>'
    yield '<text x="200" y="368" text-anchor="middle">% of the answerable questions refused</text>'
    yield '<text x="50" y="20">% of the unanswerable questions refused</text></svg>'


if __name__ == "__main__":
    app()
