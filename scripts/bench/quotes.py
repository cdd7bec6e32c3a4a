"""Scores spans that systems mark against those of people: files of ACL-Verbatim, and what runs cite.

    git clone https://github.com/KRLabsOrg/acl-verbatim DATA/acl-verbatim
    rag bench run acl-verbatim --data DATA --out ACL --system reader --system reader,min_confidence=0 ...
    rag bench run everyday --out EVERYDAY --system reader ...
    python -m scripts.bench.quotes DATA --run ACL --run EVERYDAY --out eval/results/spans.json

`published` are the predictions that lie beside ACL-Verbatim's gold, with the word F1 that its authors computed and the
difference from ours, and its chunks whole. `runs` have what the systems of `rag bench run` cite.
"""

import argparse
import csv
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from autoais.base.io.jsonl import field, parse_object, read_objects
from autoais.base.io.provenance import provenance
from autoais.formats.questions import read_questions
from autoais.formats.spans import SpanGold, Spans, locate, read_span_gold
from autoais.metrics.spans import mark_texts, score_spans
from rag.bench import open_run
from rag.bench.benchmark import read_benchmark
from scripts.results import tell

_PREDICTIONS = "artifacts/eval/gold_extraction"
_BASELINES = {"Provence": "provence_gold.jsonl", "Zilliz Semantic Highlight": "zilliz_spans_03_gold.jsonl"}
"""Systems whose files hold no summary; `summary.csv` has them by name."""

Predictions = Mapping[str, Mapping[str, Spans]]
"""Spans by passage, by question."""


def main() -> None:
    """Score, print, and write to --out."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--run", type=Path, action="append", default=[])
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    gold_file = read_benchmark("acl-verbatim").questions.check(options.data, Path())
    result = {
        "published": {"systems": score_published(gold_file), "source": "github.com/KRLabsOrg/acl-verbatim"},
        "runs": [describe_run(run) for run in options.run],
        "provenance": provenance({"gold": gold_file}),
    }
    tell(result, options.out)


def score_published(gold_file: Path) -> dict[str, Any]:
    """Return the scores of each file of predictions beside the gold, and of whole chunks."""
    ids = {question.text: question.id for question in read_questions(gold_file)}
    golds = {gold.id: gold for gold in read_span_gold(gold_file)}
    folder = gold_file.parent / _PREDICTIONS
    with (folder / "summary.csv").open(encoding="utf-8", newline="") as file:
        table = {row["model"]: float(row["word_f1"]) for row in csv.DictReader(file)}
    systems: dict[str, Any] = {}
    for path in sorted(folder.glob("*.json*")):
        records, summary = _read(path)
        word_f1 = (
            table[next(name for name, file in _BASELINES.items() if file == path.name)]
            if summary is None
            else summary["word_level"]["micro_f1"]
        )
        scores = _score(golds, _predictions(records, ids, golds))
        difference = scores["words"]["micro"]["f1"]["value"] - word_f1
        systems[path.stem] = {"published_word_f1": word_f1, "difference": difference, **scores}
    whole_chunks = {key: {p: ((0, len(text)),) for p, text in gold.texts.items()} for key, gold in golds.items()}
    systems["whole chunks"] = _score(golds, whole_chunks)
    return systems


def describe_run(folder: Path) -> dict[str, Any]:
    """Return benchmark and command of a run, and the spans and refusals of each of its systems."""
    run = open_run(folder)
    systems = {}
    for label in run.labels:
        metrics = run.metrics(label)
        refusals = sum(metrics["ways"][way]["count"] for way in ("refused_right", "refused_wrong"))
        systems[label] = {"system": metrics["system"], "refused": refusals, **metrics["spans"]}
    benchmark = run.record["benchmark"]
    return {"benchmark": benchmark["name"], "command": run.record["command"], "systems": systems}


def _score(golds: Mapping[str, SpanGold], predictions: Predictions) -> dict[str, Any]:
    return score_spans(
        marked for key, gold in golds.items() for marked in mark_texts(gold, predictions.get(key, {}), gold.texts)
    ).record()


def _read(path: Path) -> tuple[list[Mapping[str, Any]], Mapping[str, Any] | None]:
    """The rows of a file of predictions, and its summary if it has one."""
    if path.suffix == ".jsonl":
        return [row for _, row in read_objects(path)], None
    record = parse_object(path.read_bytes(), str(path))
    return field(record, "records", list, str(path)), field(record, "summary", dict, str(path))


def _predictions(
    records: list[Mapping[str, Any]], ids: Mapping[str, str], golds: Mapping[str, SpanGold]
) -> dict[str, dict[str, Spans]]:
    predictions: dict[str, dict[str, Spans]] = {}
    for record in records:
        key, passage = ids[record["query"]], f"{record['paper_id']}#{record['chunk_index']}"
        predictions.setdefault(key, {})[passage] = tuple(_spans(record, golds[key].texts[passage]))
    return predictions


def _spans(record: Mapping[str, Any], text: str) -> Iterator[tuple[int, int]]:
    """Offsets where a record has them, else its texts, located; what the chunk lacks marks nothing."""
    offsets = record.get("pred_spans") or record.get("predicted_spans") or []
    yield from ((span["start"], span["end"]) for span in offsets)
    if not offsets:
        yield from (span for quote in record["predicted_texts"] if (span := locate(text, quote)) is not None)


if __name__ == "__main__":
    main()
