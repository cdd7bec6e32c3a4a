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

MOST = 2000
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
    found: dict[str, list[tuple[bytes, Attribution, Verdict]]] = {name: [] for name in names}
    with path.open(encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            label = LABELS.get(row["raw_label"])
            if row["dataset"] in found and label is not None:
                place = sha256(f"{row['id']} {row['claim']}".encode()).digest()
                found[row["dataset"]].append((place, Attribution(row["claim"], row["evidence"]), label))
    for name, listed in found.items():
        for _, pair, label in sorted(listed, key=lambda one: one[0])[:MOST]:
            yield name, pair, label


def measured(labels: Sequence[Verdict], said: Sequence[Verdict]) -> dict[str, Any]:
    """Confusion, accuracy, and how far `contradictory` is right."""
    both = list(zip(labels, said, strict=True))
    counts = Counter(both)
    refused = [label is NO for label, verdict in both if verdict in (OTHER, NO)]
    told = [label is NO for label, verdict in both if verdict is NO]
    found = [verdict is NO for label, verdict in both if label is NO]
    return {
        "n": len(labels),
        "confusion": {
            label: {verdict: counts[label, verdict] for verdict in Verdict if counts[label, verdict]}
            for label in (YES, OTHER, NO)
        },
        "accuracy": Rate.of(label is verdict for label, verdict in both).record(),
        "contradictory": {
            "precision": Rate.of(told).record(),
            "recall": Rate.of(found).record(),
            "precision_of_every_no": Rate.of(refused).record(),
        },
    }


def main(
    data: Annotated[Path, typer.Argument(help="Data folder.")],
    out: Annotated[Path, typer.Option(help="Output file (json).")],
) -> None:
    """Judge, print, and write to --out."""
    judge = MiniLMJudge(three_way=True)
    files = {name: data / name for name in SETS}
    found: dict[str, Any] = {}
    for file, names in SETS.items():
        listed = list(pairs(files[file], names))
        said = [one.verdict for one in judge.judge([pair for _, pair, _ in listed])]
        part = Path(file).stem
        found[part] = {
            name: measured(
                [label for one, _, label in listed if one == name],
                [verdict for (one, _, _), verdict in zip(listed, said, strict=True) if one == name],
            )
            for name in names
        }
    result = {"judge": judge.name, "sets": found, "provenance": provenance(files)}
    tell(result, out)


if __name__ == "__main__":
    typer.run(main)
