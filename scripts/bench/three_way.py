"""Measures `three_way` of the shipped judge, and the verdicts of pages, against people's three labels.

    python -m scripts.bench.three_way ../shared/data --out eval/results/minilm/three-way.json

Up to 2,000 pairs of each set, drawn by a hash of their ids. `confusion` counts pairs by label, then by verdict.
`contradictory` has precision and recall, and the precision of calling every no contradictory, the simplest baseline.
`page` has the same of the verdicts that pages and `rag ask` show (`rag.answer.attribution.check`), for a sentence that
cites the whole evidence. The judge was trained on the sets of `nli_train`, but not the rule that tells a contradiction.
Nothing was trained on the sets of `contrast_train`. FEVER has no pairs that are neither supported nor refuted; those of
SufficientFacts (Atanasova et al. 2022) are pairs of FEVER and VitaminC from whose evidence a part was removed.
"""

import json
import re
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
from rag.answer.attribution.check import SentenceVerdict, check_answer
from rag.base.types import Answer, Citation, CitedSentence, Hit, Passage, Question
from scripts.results import tell

MAX_PAIRS = 2000
YES, OTHER, NO = Verdict.ATTRIBUTABLE, Verdict.EXTRAPOLATORY, Verdict.CONTRADICTORY
LABELS = {
    "entailment": YES, "neutral": OTHER, "contradiction": NO, "SUPPORT": YES, "NOTENOUGHINFO": OTHER, "REFUTE": NO,
    "SUPPORTS": YES, "REFUTES": NO,
}  # fmt: skip
NOT_ENOUGH = re.compile("(SUPPORTS|REFUTES), then NOT ENOUGH without")
SETS = {
    "labels/contrast_train.jsonl": (
        "Check-COVID", "ConjNLI/human", "FEVER", "LingNLI", "SufficientFacts/fever", "SufficientFacts/vitaminc",
    ),
    "labels/nli_train.jsonl": ("NLI/mnli", "NLI/snli", "CAD-SNLI"),
}  # fmt: skip
ON_PAGES = {SentenceVerdict.SUPPORTED: YES, SentenceVerdict.CONTRADICTED: NO}


def pairs(path: Path, names: Sequence[str]) -> Iterator[tuple[str, Attribution, Verdict]]:
    """The pairs of these sets that have one of the three labels."""
    rows_of_sets: dict[str, list[tuple[bytes, Attribution, Verdict]]] = {name: [] for name in names}
    with path.open(encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            label = OTHER if NOT_ENOUGH.match(row["raw_label"]) else LABELS.get(row["raw_label"])
            if row["dataset"] in rows_of_sets and label is not None:
                order = sha256(f"{row['id']} {row['claim']}".encode()).digest()
                rows_of_sets[row["dataset"]].append((order, Attribution(row["claim"], row["evidence"]), label))
    for name, rows in rows_of_sets.items():
        for _, pair, label in sorted(rows, key=lambda row: row[0])[:MAX_PAIRS]:
            yield name, pair, label


def judge_as_pages(judge: MiniLMJudge, pairs: Sequence[Attribution]) -> list[Verdict]:
    """Return the verdicts of pages: of a sentence that cites the whole evidence, as one passage."""
    passages = [Passage(str(n), text="\n".join(pair.evidence)) for n, pair in enumerate(pairs)]
    text, sentences = "", []
    for pair, passage in zip(pairs, passages, strict=True):
        whole = Citation(passage.id, 0, len(passage.text), passage.text)
        sentences.append(CitedSentence(pair.claim, (whole,), len(text), len(text) + len(pair.claim)))
        text += pair.claim + "\n"
    hits = tuple(Hit(passage, 0.0) for passage in passages)
    checks = check_answer(Answer(Question("1", "?"), text, tuple(sentences), hits, "claims"), judge)
    return [ON_PAGES.get(check.verdict, OTHER) for check in checks]


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
    judge, judge_of_pages = MiniLMJudge(three_way=True), MiniLMJudge()
    files = {name: data / name for name in SETS}
    results: dict[str, Any] = {}
    for file, names in SETS.items():
        rows = list(pairs(files[file], names))
        part = results[Path(file).stem] = {}
        for name in names:
            labels = [label for dataset, _, label in rows if dataset == name]
            texts = [pair for dataset, pair, _ in rows if dataset == name]
            verdicts = [judgement.verdict for judgement in judge.judge(texts)]
            on_page = measure(labels, judge_as_pages(judge_of_pages, texts))
            part[name] = {**measure(labels, verdicts), "page": on_page}
    result = {"judge": judge.name, "sets": results, "provenance": provenance(files)}
    tell(result, output)


if __name__ == "__main__":
    typer.run(main)
