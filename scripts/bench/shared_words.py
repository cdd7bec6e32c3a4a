"""Measures how far counting words gets on the data sets whose claims and evidence share most words.

    python -m scripts.bench.shared_words DATA --out eval/results/lexical/shared-words.json

These are the sets that the recipe of the shipped judge leaves out in turn (`folds`), read as its training reads them:
claims of at most 80 words, and with the labels turned where 1 means "not supported" (`inverted`). So the figures can
stand beside those in the judge's card.
"""

import argparse
from pathlib import Path

from autoais.base.io.jsonl import dumps, round_floats, write_atomic
from autoais.base.io.provenance import provenance
from autoais.base.labels import LabelledClaim
from autoais.base.types import Attribution
from autoais.judges.lexical import LexicalJudge
from autoais.meta.evaluate import evaluate, without_texts
from autoais.training.prepare import from_labels
from autoais.training.recipe import TrainingRecipe, find

RECIPE = Path(__file__).parents[2] / "eval" / "recipes" / "minilm.toml"


def main() -> None:
    """Measure, print the AUC of each set, and write to --out."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="folder with the recipe's files")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    recipe = TrainingRecipe.read(RECIPE)
    sets = [name for fold in recipe.folds for name in fold]
    labels, inputs = [], {}
    for source in recipe.sources.values():
        if source.kind == "labels" and not set(source.datasets).isdisjoint(sets):
            for name in source.files:
                inputs[Path(name).stem] = find(name, [options.data])
                examples = from_labels(inputs[Path(name).stem], sets, source.inverted)
                labels += [
                    LabelledClaim(
                        example.source.split("/")[0],
                        "",
                        Attribution(example.claim, example.evidence),
                        bool(example.label),
                    )
                    for example in examples
                ]
    judge = LexicalJudge()
    result = without_texts(evaluate(labels, judge)) | {"judge": judge.name, "provenance": provenance(inputs)}
    for name, figures in result["sets"].items():
        print(f"{name}: n {figures['n']}, ROC-AUC {figures['roc_auc']:.3f}, macro-F1 {figures['macro_f1']:.3f}")
    write_atomic(options.out, [dumps(round_floats(result), indent=2)])


if __name__ == "__main__":
    main()
