"""Measures `three_way` of the shipped judge against people's three labels: does a no mean a contradiction?

    python -m scripts.bench.three_way ../shared/data --out eval/results/minilm/three-way.json

Up to 2,000 pairs of each set with three labels, drawn by a hash of their ids. `confusion` counts pairs by label, then
by verdict. `contradictory` has precision and recall, and the precision of calling every no contradictory, the simplest
baseline. The judge was trained on the sets of `nli_train`, but not the rule that tells a contradiction. Nothing was
trained on the sets of `contrast_train`.
"""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any

import typer

from autoais.base.io.provenance import provenance
from autoais.base.types import Attribution, Verdict
from autoais.judges.minilm import MiniLMJudge
from autoais.metrics.rates import Rate
from scripts.results import tell

MAX_PAIRS = 2000
YES, OTHER, NO = Verdict.ATTRIBUTABLE, Verdict.EXTRAPOLATORY, Verdict.CONTRADICTORY
LABELS = {
    "entailment": YES, "neutral": OTHER, "contradiction": NO, "SUPPORT": YES, "NOTENOUGHINFO": OTHER, "REFUTE": NO,
}  # fmt: skip
SETS = {
    "labels/contrast_train.jsonl": ("Check-COVID", "ConjNLI/human", "LingNLI"),
    "labels/nli_train.jsonl": ("NLI/mnli", "NLI/snli", "CAD-SNLI"),
}


def pairs(path: Path, names: Sequence[str]) -> Iterator[tuple[str, Attribution, Verdict]]:
    """The pairs of these sets that have one of the three labels."""
    rows_of_sets: dict[str, list[tuple[bytes, Attribution, Verdict]]] = {name: [] for name in names}
    with path.open(encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            label = LABELS.get(row["raw_label"])
            if row["dataset"] in rows_of_sets and label is not None:
                order = sha256(f"{row['id']} {row['claim']}".encode()).digest()
                rows_of_sets[row["dataset"]].append((order, Attribution(row["claim"], row["evidence"]), label))
    for name, rows in rows_of_sets.items():
        for _, pair, label in sorted(rows, key=lambda row: row[0])[:MAX_PAIRS]:
            yield name, pair, label


def measure(labels: Sequence[Verdict], verdicts: Sequence[Verdict]) -> dict[str, Any]:
    """Confusion, accuracy, and how far `contradictory` is right."""
    judgements = list(zip(labels, verdicts, strict=True))
    counts = Counter(judgements)
    right_refusals = [label is NO for label, verdict in judgements if verdict in (OTHER, NO)]
    right_contradictions = [label is NO for label, verdict in judgements if verdict is NO]
    contradictions = [verdict is NO for label, verdict in judgements if label is NO]
    return {
        "n": len(labels),
        "confusion": {
            label: {verdict: counts[label, verdict] for verdict in Verdict if counts[label, verdict]}
            for label in (YES, OTHER, NO)
        },
        "accuracy": Rate.of(label is verdict for label, verdict in judgements).record(),
        "contradictory": {
            "precision": Rate.of(right_contradictions).record(),
            "recall": Rate.of(contradictions).record(),
            "precision_of_every_no": Rate.of(right_refusals).record(),
        },
    }


def main(
    data: Annotated[Path, typer.Argument(help="Data folder.")],
    output: Annotated[Path, typer.Option("--out", help="Output file (json).")],
) -> None:
    """Judge, print, and write to --out."""
    judge = MiniLMJudge(three_way=True)
    files = {name: data / name for name in SETS}
    results: dict[str, Any] = {}
    for file, names in SETS.items():
        rows = list(pairs(files[file], names))
        verdicts = [judgement.verdict for judgement in judge.judge([pair for _, pair, _ in rows])]
        part = Path(file).stem
        results[part] = {
            name: measure(
                [label for dataset, _, label in rows if dataset == name],
                [verdict for (dataset, _, _), verdict in zip(rows, verdicts, strict=True) if dataset == name],
            )
            for name in names
        }
    result = {"judge": judge.name, "sets": results, "provenance": provenance(files)}
    tell(result, output)


if __name__ == "__main__":
    typer.run(main)
