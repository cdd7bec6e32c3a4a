"""Counts what the rules of the shipped judge decide before its network does.

    python -m scripts.own_documents fetch --table eval/recipes/languages.toml --to FOLDER
    python -m scripts.bench.judge_rules ../shared/data FOLDER --out eval/results/minilm/rules.json

- `quoted`: claims that their evidence has word for word, in sets labelled by people, by label.
- `numbers`: by label, claims with a number or month that their evidence lacks, and all claims. Where the evidence is a
  question (QNLI), they do not count. The rule was written with claims of these sets in view, but not of FEVER and the
  sets of `nli_train`.
- `english`: claims of those sets, and passages of Wikipedia, that are taken for another language. All are English but
  for a few. The rule was chosen with these claims in view, and on other passages than these.
- `others`: paragraphs of translated manual pages that are taken for another language, and their first words. Part of
  the paragraphs was left in English, so these are lower bounds. The rule was written with these pages in view.
"""

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from autoais.base.io.files import records
from autoais.base.io.jsonl import dumps, read_objects, round_floats, write_atomic
from autoais.base.io.provenance import provenance
from autoais.base.text.language import is_english
from autoais.base.text.quotes import is_quoted
from autoais.judges.minilm import MiniLMJudge
from autoais.judges.numbers import Numbers
from rag.base.errors import FormatError
from rag.documents import read_document

_LABELS = ("attributionbench_dev", "attributionbench_test500", "attribution_train", "contrast_train", "nli_train")
_EVERY, _OFFSET = 29, 14  # of the pool's passages; the rule was chosen on every 29th from the first on
_PARAGRAPHS = 400  # of a language, drawn by seed
_MIN_WORDS, _FIRST_WORDS = 12, 9  # words of a paragraph, and of its beginning


def read_labels(path: Path) -> Iterator[tuple[str, str, list[str], bool]]:
    """Set, claim, evidence and label of the rows that people labelled."""
    for _, row in read_objects(path):
        if "attribution_label" in row:
            yield row["src_dataset"], row["claim"], row["references"], row["attribution_label"] == "attributable"
        elif not row["split"].endswith("-automatic"):
            # In the file, 1 means for Q2 that the response contradicts its source.
            yield row["dataset"], row["claim"], row["evidence"], bool(row["label"]) != (row["dataset"] == "Q2-WoW")


def paragraphs(folder: Path) -> list[str]:
    """Paragraphs of a language, of at least 12 words."""
    texts = []
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        try:
            passages = read_document(path, path.name)
        except FormatError:
            continue
        lines = [line.strip() for passage in passages for line in passage.text.split("\n\n")]
        texts += [line for line in lines if len(line.split()) >= _MIN_WORDS]
    return random.Random(0).sample(texts, min(_PARAGRAPHS, len(texts)))


def count_foreign(texts: list[str]) -> dict[str, Any]:
    """How many texts are taken for another language than English."""
    foreign = sum(not is_english(text) for text in texts)
    return {"n": len(texts), "told": foreign, "share": foreign / len(texts)}


def main(
    data: Annotated[Path, typer.Argument(help="Folder with labels/ and wiki/.")],
    manuals: Annotated[Path, typer.Argument(help="Folder that `scripts.own_documents fetch` filled.")],
    output: Annotated[Path, typer.Option("--out", help="Report (json).")],
) -> None:
    """Count, print and write."""
    inputs = {name: data / "labels" / f"{name}.jsonl" for name in _LABELS}
    quote_counts: dict[str, Counter[str]] = {}
    numbers: dict[str, dict[str, Counter[str]]] = {}
    claims = []
    for path in inputs.values():
        for name, claim, evidence, is_attributable in read_labels(path):
            claims.append(claim)
            label = "attributable" if is_attributable else "not attributable"
            if any(is_quoted(claim, text) for text in evidence):
                quote_counts.setdefault(name, Counter())[label] += 1
            if not all(text.rstrip().endswith("?") for text in evidence):
                counts = numbers.setdefault(name, {"lacking": Counter(), "all": Counter()})
                counts["all"][label] += 1
                counts["lacking"][label] += bool(Numbers(evidence).find_missing(claim))
    inputs["passages"] = data / "wiki" / "passages.jsonl.zst"
    passages = [
        row["text"]
        for number, (_, row) in enumerate(records(inputs["passages"]))
        if number % _EVERY == _OFFSET and isinstance(row, dict)
    ]
    manual_texts = {folder.name: paragraphs(folder) for folder in sorted((manuals / "documents").iterdir())}
    result: dict[str, Any] = {
        "judge": MiniLMJudge().name,
        "quoted": {name: dict(counts) for name, counts in sorted(quote_counts.items())},
        "numbers": {name: {kind: dict(n) for kind, n in kinds.items()} for name, kinds in sorted(numbers.items())},
        "english": {"claims": count_foreign(claims), "passages": count_foreign(passages)},
        "others": {
            name: {
                "paragraphs": count_foreign(texts),
                f"first {_FIRST_WORDS} words": count_foreign([" ".join(text.split()[:_FIRST_WORDS]) for text in texts]),
            }
            for name, texts in manual_texts.items()
        },
        "provenance": provenance(inputs),
    }
    print(dumps(round_floats({key: result[key] for key in ("quoted", "numbers", "english", "others")}, 3)))
    write_atomic(output, [dumps(round_floats(result, 4), indent=2)])


if __name__ == "__main__":
    typer.run(main)
