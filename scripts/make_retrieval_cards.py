"""Writes the cards of the reader and of the static embeddings that ship, from their records and what was measured.

    python scripts/retrieval.py bm25 static bm25+static --data DATA --index work/subpool.index \\
        --results eval/results/retrieval/subpool
    python scripts/retrieval.py bm25 best --data DATA --index POOL.index
    python -m scripts.bench.reader DATA/nq/nq_pool_dev.jsonl POOL.index --model rag/data/reader --weights ... \\
        --base ... --out eval/results/retrieval/reader-bench.json
    python -m scripts.make_retrieval_cards

What the reader gives as a system is taken from eval/results/open-nq-pool/reader.json, where that is there.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from autoais.io.jsonl import write_whole
from rag.encoders.static import SHIPPED as STATIC
from rag.encoders.static import Static
from rag.reader import SHIPPED as READER
from rag.reader import Reader
from scripts.make_judge_card import paragraph

RESULTS = Path(__file__).parents[1] / "eval" / "results" / "retrieval"
ANSWERS = RESULTS.parent / "open-nq-pool" / "reader.json"
_DATA = """DPR's questions with answers, so that none of these can measure it: the development files of NQ (CC BY-SA
3.0) and TriviaQA (Apache-2.0), the test files of WebQuestions (CC BY 4.0) and CuratedTREC (without a licence
file){more}. They teach by distant supervision: passages of English Wikipedia (CC BY-SA 3.0 / GFDL) that BM25 finds and
that hold the answer, against others that lack it. Questions that also stand in Open-NQ dev, EfficientQA dev, MIRACL
dev, NoMIRACL, CLAPnq or AttributionBench were dropped. Nobody looked at the passages: some hold the answer by
chance."""


def main() -> None:
    """Write `CARD.md` beside each model."""
    write_whole(READER / "CARD.md", reader_card())
    write_whole(STATIC / "CARD.md", static_card())


def reader_card() -> Iterator[str]:
    """The lines of the reader's card."""
    record, bench = _read(READER / "training.json"), _read(RESULTS / "reader-bench.json")
    name = Reader().name
    if bench["reader"] != name:
        raise SystemExit(f"error: measured is {bench['reader']}, shipped {name}; measure again")
    yield from (f"# {name}", "")
    yield from paragraph(
        f"""The reader that ships: does a passage answer a question, and which of its words do? English. The system
        `reader` takes its short answers from it, and the recipe `best` has it reread the first eight
        (`model = "reader"`). {bench["parameters"] / 1e6:.0f} million parameters, int8 weights
        ({(READER / "model.onnx").stat().st_size / 1e6:.0f} MB); onnxruntime and tokenizers run it."""
    )
    yield ""
    yield from paragraph(
        """- A cross-encoder as in DPR (Karpukhin et al. 2020, section 6.1): all-MiniLM-L6-v2 over question, headings
        and text, with marks on the words both sides share; relevance from the first token, the answer from a span."""
    )
    yield from base(record)
    groups = sum(part["groups"] for part in record["questions"].values())
    yield from ("", "## Learnt from", "", "| questions | file | dropped | groups |", "|---|---|---|---|")
    for file, part in record["questions"].items():
        yield f"| {part['questions']:,} | `{file}` | {part['dropped']} | {part['groups']:,} |"
    yield ""
    yield from paragraph(f"{groups:,} groups of one passage with the answer and four without. " + _DATA.format(more=""))
    yield from answers(name)
    yield from measured(RESULTS, ["best"], name)
    yield from ("", "## Speed", "")
    yield from paragraph(
        f"""One core reads {bench["passages_per_second_and_core"]:.0f} passages of {bench["word_pieces"]:.0f} word
        pieces a second, {bench["times_float32"]:.1f} times PyTorch in float32. Against float32 the relevance is off by
        {bench["logit_off"]["mean"]:.3f} in the mean and {bench["logit_off"]["p95"]:.3f} at the 95th percentile of
        {bench["pairs"]} passages, and the first of ten is the same for {100 * bench["same_first_of_ten"]:.0f} % of the
        questions (`eval/results/retrieval/reader-bench.json`)."""
    )
    yield from files(record)


def static_card() -> Iterator[str]:
    """The lines of the card of the static embeddings."""
    record, static = _read(STATIC / "training.json"), Static()
    yield from (f"# {static.name}", "")
    yield from paragraph(
        f"""Static embeddings: a vector of {static.dimension} numbers for each of BERT's word pieces, a text the mean of
        its own; no network runs. English. int8, {(STATIC / "table.npz").stat().st_size / 1e6:.0f} MB."""
    )
    yield ""
    yield from paragraph(
        """- Begun as the vectors that all-MiniLM-L6-v2 gives each word piece by itself, reduced to their principal
        components and weighted by smooth inverse frequency (as model2vec), then taught by contrast in the batch."""
    )
    yield from base(record)
    yield from ("", "## Learnt from", "")
    taught = record["taught"]
    yield from paragraph(
        f"""{taught["sentences"]:,} sentences of the pool's passages, each to find the rest of its passage (inverse
        cloze task, Lee et al. 2019), and {taught["questions"]:,} of """
        + _DATA.format(more=", and of SQuAD (CC BY-SA 4.0)")
    )
    yield from measured(RESULTS / "subpool", ["static", "bm25+static"], static.name)
    yield ""
    yield from paragraph(
        """The sentences it learnt from are of the same pool (no question that is asked here): over other texts it may
        find less. By itself it finds less than BM25; fused with it, more among the first 100 and less among the first
        five, which is for a reranker to put right."""
    )
    yield from files(record)


def base(record: dict[str, Any]) -> Iterator[str]:
    """Where the weights came from, and the recipe."""
    yield from paragraph(
        f"""- Base weights: sentence-transformers/all-MiniLM-L6-v2 (Apache-2.0), SHA-256
        `{record["base"]["sha256"]}`."""
    )
    yield from paragraph(
        f"""- Recipe: `eval/recipes/{record["recipe"]["file"]}`, SHA-256 `{record["recipe"]["sha256"]}`; `rag train`
        runs it again."""
    )


def answers(name: str) -> Iterator[str]:
    """What the system `reader` answers, where that was measured."""
    if not ANSWERS.exists():
        return
    report = _read(ANSWERS)
    if name not in report["system"]:
        raise SystemExit(f"error: {ANSWERS} was measured with {report['system']}, shipped is {name}; measure again")
    yield from ("", "## What it answers", "", f"`{report['system']}`, {report['description']}:", "")
    for measure in ("em", "f1", "answer_recall"):
        found = report["metrics"][measure]
        yield f"- {measure}: {100 * found['value']:.1f} (n = {found['n']})"


def measured(results: Path, recipes: Sequence[str], name: str) -> Iterator[str]:
    """What the recipes find beside BM25."""
    reports = {one: _read(results / f"{one}.json") for one in ("bm25", *recipes)}
    for recipe in recipes:
        if not all(name in found["retriever"] for found in reports[recipe]["sets"].values()):
            raise SystemExit(f"error: the report of {recipe} was not measured with {name}; measure again")
    yield from ("", "## What it finds", "", "Over " + reports["bm25"]["closed_pool"] + ":", "")
    yield "| set | n | recipe | Success@1 | Success@5 | Success@20 | Success@100 | nDCG@10 |"
    yield "|---|---|---|---|---|---|---|---|"
    for each in reports["bm25"]["sets"]:
        for one, report in reports.items():
            found = report["sets"][each]
            names = ("Success@1", "Success@5", "Success@20", "Success@100", "nDCG@10")
            cells = " | ".join(f"{100 * found['metrics'][measure]['value']:.1f}" for measure in names)
            yield f"| {each} | {found['questions']} | `{one}` | {cells} |"


def files(record: dict[str, Any]) -> Iterator[str]:
    """The files and their checksums."""
    yield from ("", "## Files", "")
    yield from (f"- `{name}`: SHA-256 `{digest}`" for name, digest in record["files"].items())


def _read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return found


if __name__ == "__main__":
    main()
