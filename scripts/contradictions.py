"""Counts what people say of pairs that the page of `rag serve` would call contradicted (training data of the judge).

python -m scripts.contradictions ../shared/data/labels/nli_train.jsonl
"""

import argparse
import json
from collections import Counter
from pathlib import Path

from autoais.judges import open_judge
from autoais.judges.alignment import align
from autoais.types import Attribution, Verdict
from rag.serve.checking import contradicts

_LABELS = {"e": "entailment", "n": "neutral", "c": "contradiction"}


def main() -> None:
    """Judge the pairs that clash, and print the labels of those that the judge calls not attributable."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("labels", type=Path, help="rows with claim, evidence and raw_label")
    pairs = []
    with parser.parse_args().labels.open(encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            pair = Attribution(row["claim"], row["evidence"])
            if contradicts(pair.claim, align(pair.claim, pair.evidence)):
                pairs.append((pair, _LABELS.get(row["raw_label"], row["raw_label"])))
    judged = open_judge().judge([pair for pair, _ in pairs])
    said = [label for (_, label), one in zip(pairs, judged, strict=True) if one.verdict is Verdict.NOT_ATTRIBUTABLE]
    for label, count in Counter(said).most_common():
        print(f"{label}: {count} of {len(said)}")


if __name__ == "__main__":
    main()
