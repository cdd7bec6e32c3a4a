"""Writes the card of the judge that ships, from the record of its training and from what was measured on it.

    autoais meta DATA/labels/attributionbench_dev.jsonl DATA/labels/attributionbench_test500.jsonl \\
        --report eval/results/minilm/attributionbench.json --plot eval/results/minilm/attributionbench.svg
    python -m scripts.bench.judge DATA/wiki/passages.jsonl.zst --out eval/results/minilm/bench.json
    python -m scripts.make_judge_card
"""

import json
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from autoais.io.jsonl import write_whole
from autoais.judges.minilm import SHIPPED, MiniLMJudge

RESULTS = Path(__file__).parents[1] / "eval" / "results" / "minilm"


def main() -> None:
    """Write `CARD.md` beside the model."""
    record = json.loads((SHIPPED / "training.json").read_text("utf-8"))
    bench = json.loads((RESULTS / "bench.json").read_text("utf-8"))
    meta = json.loads((RESULTS / "attributionbench.json").read_text("utf-8"))
    for measured in (bench, meta):
        if measured["judge"] != MiniLMJudge().name:
            raise SystemExit(f"error: measured is {measured['judge']}, shipped {MiniLMJudge().name}; measure again")
    write_whole(SHIPPED / "CARD.md", card(record, bench, meta))


def card(record: dict[str, Any], bench: dict[str, Any], meta: dict[str, Any]) -> Iterator[str]:
    """The lines of the card."""
    left_out = record["left_out"]
    mean = {key: sum(one[key] for one in left_out.values()) / len(left_out) for key in ("roc_auc", "macro_f1")}
    speed, agreement = bench["speed"], bench["agreement"]
    kept, reworded = bench["minimal_pairs"]["sentence"], bench["minimal_pairs"]["reworded"]
    size = (SHIPPED / "model.onnx").stat().st_size / 1e6
    weights = json.loads((SHIPPED / "calibration.json").read_text("utf-8"))["weights"]
    yield from (f"# {meta['judge']}", "")
    yield from paragraph(
        """The judge that ships: does the evidence support the claim? English, for claims of a sentence and evidence
        of any length, of which it reads the sentences that bear on the claim. It is no fact checker: it knows
        only what it is given. A figure made with it is AutoAIS by this judge, not by people."""
    )
    yield ""
    yield from paragraph(
        f"""- A cross-encoder of {speed["parameters"] / 1e6:.0f} million parameters with int8 weights ({size:.0f} MB):
        the first two layers of all-MiniLM-L6-v2, which read claim and evidence apart; then its other four as they
        were, for how near words are, and the same four trained on both sides together. Onnxruntime and tokenizers
        run it."""
    )
    yield from paragraph(
        f"""- One logistic regression weighs five features: the pair's logit, the cosine of both sides, the
        IDF-weighted mean cosine of each claim word with the nearest evidence word, the square of the share of the
        claim that one sentence has in the same order, and whether that sentence clashes with the claim in a
        number, date, name or negation (`autoais/judges/alignment.py`). Weights: {
            ", ".join(f"{name} {weight:.2f}" for name, weight in weights.items())
        }."""
    )
    yield from paragraph(
        f"""- Base weights: sentence-transformers/all-MiniLM-L6-v2 (Apache-2.0), SHA-256
        `{record["base"]["sha256"]}`."""
    )
    yield from paragraph(
        f"""- Recipe: `eval/recipes/{record["recipe"]["file"]}`, SHA-256 `{record["recipe"]["sha256"]}`; `autoais
        train` runs it again."""
    )
    yield from ("", "## Learnt from", "", "| source | data sets | pairs | stage 1 | stage 2 |", "|---|---|---|---|---|")
    for name, part in record["pairs"].items():
        kinds = ", ".join(sorted({kind.removeprefix("NLI/").split("/")[0] for kind in part["kinds"]}))
        yield f"| {name} | {kinds} | {sum(part['kinds'].values()):,} | {part['times']:g} x | {part['finish']:g} x |"
    yield ""
    yield from paragraph(
        """`page` and `qa` are simulated: AttrScore's cases over passages of English Wikipedia (CC BY-SA 3.0), and
        over the DPR development questions whose answers are not evaluation data. The others are labels by people.
        FEVER-Symmetric, SNLI and WiCE are CC BY-SA, Factcheck-GPT, SummEdits and Q2 Apache-2.0 or MIT, MNLI a mix
        of open licences; Climate-FEVER and QAGS came without a licence file. Sets for non-commercial use were
        left out. No question of Open-NQ dev and nothing of HAGRID, AttributedQA, AttributionBench or NoMIRACL was
        learnt from; on AttributionBench dev the threshold was chosen."""
    )
    yield from ("", "## How far it agrees with people", "")
    yield from paragraph(
        """AttributionBench dev and the 500 of test at hand (`eval/results/minilm/attributionbench.json`; the
        threshold was chosen on dev):"""
    )
    yield from table(meta["sets"], meta["average"])
    yield ""
    yield from paragraph(
        """Sets in which claim and evidence share their words, each judged by a network and by weights that had not
        learnt from it, nor from the others of its line in `folds` of the recipe (`left_out` in `training.json`):"""
    )
    yield from table(left_out, mean)
    yield ""
    yield from paragraph(
        "The threshold suits answers over retrieved passages; `autoais calibrate` fits another to labels of your own."
    )
    yield ""
    yield from paragraph(
        f"""Of {kept["pairs"]} first sentences of Wikipedia passages {100 * kept["stay"]:.1f} % are found attributable
        to their passage; of the same with one number, date, name or negation changed {100 * kept["turn"]:.1f} % are
        not. Of {reworded["pairs"]} reworded ones {100 * reworded["stay"]:.1f} % are, and of those with one fact changed
        too {100 * reworded["turn"]:.1f} % are not. All are simulated, from the corpus whose other passages were
        learnt from."""
    )
    yield from ("", "## Cost", "")
    yield from paragraph(
        f"""{speed["pairs_per_second_and_core"]:.0f} pairs of {speed["tokens"]:.0f} word pieces a second on one core,
        {speed["times_the_reference_loop"]:.1f} times a loop over PyTorch in float32 with one pair at a time. A
        pair takes {speed["operations_a_pair"] / 1e9:.1f} billion operations, an 11-billion-parameter T5
        {speed["times_fewer_operations"]:.0f} times as many. Probabilities of the int8 file are within 0.01 of
        float32 on {100 * agreement["within_0.01"]:.1f} % of {agreement["pairs"]} pairs (mean difference
        {agreement["mean"]:.4f}, highest {agreement["highest"]:.4f}). All in `eval/results/minilm/bench.json`."""
    )
    yield from ("", "## Files", "")
    yield from (f"- `{name}`: SHA-256 `{digest}`" for name, digest in record["files"].items())


def paragraph(text: str) -> Iterator[str]:
    """A text in lines; those of an item of a list are indented."""
    item = text.startswith("- ")
    yield from textwrap.wrap(
        " ".join(text.split()), 118, subsequent_indent="  " if item else "", break_on_hyphens=False
    )


def table(sets: dict[str, Any], mean: dict[str, Any]) -> Iterator[str]:
    """Macro-F1 and ROC-AUC by data set, and their mean."""
    yield from ("", "| set | n | macro-F1 | ROC-AUC |", "|---|---|---|---|")
    for name, one in sets.items():
        yield f"| {name} | {one['n']} | {100 * one['macro_f1']:.1f} | {one['roc_auc']:.3f} |"
    yield f"| mean | | {100 * mean['macro_f1']:.1f} | {mean['roc_auc']:.3f} |"


if __name__ == "__main__":
    main()
