"""Writes the model cards of the reader and the static embeddings, from their training records and measurements.

    python scripts/retrieval.py bm25 static bm25+static --data DATA --index work/subpool.index \\
        --results eval/results/retrieval/subpool
    python scripts/retrieval.py bm25 best --data DATA --index POOL.index
    python -m scripts.bench.reader DATA/nq/nq_pool_dev.jsonl POOL.index --model rag/data/reader --weights ... \\
        --base ... --out eval/results/retrieval/reader-bench.json
    python -m scripts.make_retrieval_cards

The results of the system `reader` come from eval/results/systems/open-nq-pool.json.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from autoais.base.io.jsonl import write_atomic
from rag.retrieval.encoders.static import SHIPPED as STATIC
from rag.retrieval.encoders.static import Static
from rag.retrieval.reader import SHIPPED as READER
from rag.retrieval.reader import Reader
from scripts.bench.abstention import REFUSAL_SHARE
from scripts.cards import base, files, paragraph

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "eval" / "results" / "retrieval"
UNSEEN = RESULTS.parent / "unseen-sets.json"
CONFIDENCE = RESULTS.parent / "own-documents" / "confidence.json"
ANSWERS = RESULTS.parent / "systems" / "open-nq-pool.json"
_DATA = """DPR's questions with answers, which therefore cannot be used to evaluate it: the development files of NQ (CC
BY-SA 3.0) and TriviaQA (Apache-2.0), the test files of WebQuestions (CC BY 4.0) and CuratedTREC (without a licence
file){more}. Supervision is distant: the positives are passages of English Wikipedia (CC BY-SA 3.0 / GFDL) that BM25
finds and that contain the answer, the negatives are passages without it. Questions that also occur in Open-NQ dev,
EfficientQA dev, MIRACL dev, NoMIRACL, CLAPnq or AttributionBench were dropped. The passages were not reviewed: some
contain the answer by chance."""

_CHOICE = """\
| | n | the reader before | trained | the mean |
|---|---|---|---|---|
| short answers that agree, six collections | 405 | 190 | 292 | 284 |
| the same, `everyday-dev` | 72 | 17 | 26 | 25 |
| right in 60 and 120 words, six collections | 620 | 500, 553 | 513, 559 | 517, 555 |
| the same, `everyday-dev` | 96 | 72, 81 | 81, 87 | 80, 86 |
| the same, `dev` | 104 | 61, 75 | 60, 79 | 62, 80 |
| the same, validation | 148 | 56, 82 | 50, 81 | 51, 82 |
| ROC-AUC of answerable questions and near misses, six collections | 620, 95 | 0.64 | 0.75 | 0.73 |
| the same, `everyday-dev` | 96, 24 | 0.69 | 0.77 | 0.76 |
| exact match and right in the closed pool | 499 | 38.7, 71.5 % | 37.5, 70.7 % | 38.5, 71.1 % |"""


def main() -> None:
    """Write `CARD.md` into the folder of each model."""
    write_atomic(READER / "CARD.md", reader_card())
    write_atomic(STATIC / "CARD.md", static_card())


def reader_card() -> Iterator[str]:
    """The lines of the reader's card."""
    record, bench = _read(READER / "training.json"), _read(RESULTS / "reader-bench.json")
    name = Reader().name
    if bench["reader"] != name:
        raise SystemExit(f"error: {bench['reader']} was measured, but {name} ships; measure again")
    yield from (f"# {name}", "")
    yield from paragraph(
        f"""The reader that ships with rag: it scores how well a passage answers a question, says which sentences belong
        to the answer, and finds the short answer if there is one. English. The system `reader` answers with it, and the
        retriever `bm25-rerank` (`model = "reader"`) reranks the first eight hits with it. {
            bench["parameters"] / 1e6:.0f} million parameters, int8 weights ({
            (READER / "model.onnx").stat().st_size / 1e6:.0f} MB); runs on
        onnxruntime and
        tokenizers."""
    )
    yield ""
    yield from paragraph(
        """- A cross-encoder as in DPR (Karpukhin et al. 2020, Section 6.1): all-MiniLM-L6-v2 over question, headings
        and text, with shared words marked; relevance is read from the first token, the short answer is a span (the
        first token stands for none, as in SQuAD 2.0), and each token says whether it belongs to the answer."""
    )
    yield from base(record, "rag train")
    yield from paragraph(
        f"""- Training continued from the reader before it (`git show b2542cf3:rag/data/reader/model.onnx`, SHA-256
        `{record["start"]["sha256"]}`; its recipe is `eval/recipes/reader.toml`), which a larger network taught:
        sentence-transformers/all-mpnet-base-v2 (110 million parameters, Apache-2.0)."""
    )
    topics = {file: part for file, part in record["questions"].items() if file.startswith("topics/")}
    everyday, with_labels = (record["questions"][f"{name}-questions.jsonl"] for name in ("everyday", "reader"))
    yield from ("", "## Training data", "", "| questions | file | dropped | groups |", "|---|---|---|---|")
    for file, part in record["questions"].items():
        yield f"| {part['questions']:,} | `{file}` | {part['dropped']} | {part['groups']:,} |"
    yield ""
    yield from paragraph(
        f"""`everyday-questions.jsonl`: {everyday["groups"]:,} groups of one passage that answers, or none, and two that
        do not. Six language-model annotators (Claude) invented 46 collections of everyday documents (minutes, price
        lists, contracts, e-mails), which are in `eval/recipes/everyday`, and wrote the questions, 1,384 of them near
        misses without an answer; a script checked that each quote stands in a passage. The questions about six of the
        collections were not learnt. No annotator saw the benchmark `everyday`, whose documents others wrote. Nobody
        reviewed the labels."""
    )
    yield ""
    yield from paragraph(
        f"""Of the passages of the other files no label was used: the reader learnt to go on saying what the reader
        before it said (learning without forgetting, Li and Hoiem 2016). They are
        {sum(part["groups"] for part in topics.values()):,} groups of one passage with the answer and two without.
        """
        + _DATA.format(more="")
    )
    yield ""
    yield from paragraph(
        f"""And they are {with_labels["groups"]:,} groups of `reader-questions.jsonl`, for which a language model
        (Claude)
        read sampled passages of documentation in Debian 12 and of Wikipedia, wrote questions of all kinds, and marked
        what answers them; a script checked every quote against its page. The collections, with licences and checksums,
        are `eval/recipes/reader-documents.toml`; none is one of the benchmark `own-documents`."""
    )
    yield ""
    yield from paragraph(
        """Both were learnt together in 625 steps of about 60 passages, half of each kind, at a rate of 1.5e-4. Then the
        weights became the mean of the trained ones (three quarters) and of those before. A script that is not here did
        it; the recipe does the same, but draws other negatives, was not run in full, and makes another reader."""
    )
    yield ""
    yield from paragraph(
        """The readers before it learnt from more. The last, b2542cf3, learnt in four steps. First, 1,100 steps on
        groups of all 22,710 labelled questions and of DPR's. Second, the teacher learnt from all groups, read 620,317
        windows of the hits of 34,779 questions, and taught the reader in 3,886 steps. The questions were the labelled
        ones and about 12,000 without labels: from the files above, TriviaQA's development file, SQuAD's (CC BY-SA 4.0)
        and the training questions of MIRACL (Apache-2.0), HAGRID's training questions among them, of which only the
        wording was used. Third, 750 steps on the groups of the labelled questions; for 7,698 of these a language model
        also judged 17,595 passages, of which 2,283 answer. Last, the mean of the weights after the second and the third
        step. It continued a reader (2e05876) which learnt from 12,426 of the labelled questions and from DPR's, and two
        before that, the first of which learnt from 13,868 groups of DPR's questions alone, TriviaQA's among them."""
    )
    yield ""
    yield from paragraph(
        """The mean was chosen on the questions about the six collections, on `everyday-dev`, on the part `dev` and
        every third question of the validation of own-documents, and on every fourth question of the closed pool. The
        same hits were read, nothing was refused except in the pool, and no result file keeps these figures:"""
    )
    yield from ("", *_CHOICE.splitlines(), "")
    yield "What follows was measured with the reader that ships."
    yield from answers(name)
    yield from own_documents(name)
    yield from limits()
    if all(name in result["retriever"] for result in _read(RESULTS / "best.json")["sets"].values()):
        yield from retrieval_table(RESULTS, ["best"], name)
    else:
        yield from ("", "The retriever `bm25-rerank` was measured with the reader before this one only.")
    yield from ("", "## Speed", "")
    yield from paragraph(
        f"""One core reads {bench["passages_per_second_and_core"]:.0f} passages of {bench["word_pieces"]:.0f} word
        pieces per second, {bench["times_float32"]:.1f} times as fast as PyTorch in float32. On {bench["pairs"]}
        passages, the relevance logit differs from float32 by {bench["logit_off"]["mean"]:.3f} on average and by
        {bench["logit_off"]["p95"]:.3f} at the 95th percentile, and the first of ten passages is the same for
        {100 * bench["same_first_of_ten"]:.0f} % of the questions (`eval/results/retrieval/reader-bench.json`)."""
    )
    yield from files(record)


def static_card() -> Iterator[str]:
    """The lines of the static embeddings' card."""
    record, static = _read(STATIC / "training.json"), Static()
    yield from (f"# {static.name}", "")
    yield from paragraph(
        f"""Static embeddings: a vector of {static.dimension} dimensions for each of BERT's word pieces; the vector of a
        text is their mean, without a network. English. int8, {(STATIC / "table.npz").stat().st_size / 1e6:.0f} MB."""
    )
    yield ""
    yield from paragraph(
        """- Initialised with all-MiniLM-L6-v2's vector of each single word piece, reduced to principal components and
        weighted by smooth inverse frequency (as in model2vec), then trained with in-batch contrastive loss."""
    )
    yield from base(record, "rag train")
    yield from ("", "## Training data", "")
    counts = record["taught"]
    yield from paragraph(
        f"""{counts["sentences"]:,} sentences of the pool's passages, each paired with the rest of its passage (inverse
        cloze task, Lee et al. 2019), and {counts["questions"]:,} of """
        + _DATA.format(more=", and of SQuAD (CC BY-SA 4.0)")
    )
    yield from retrieval_table(RESULTS / "subpool", ["static", "bm25+static"], static.name)
    yield ""
    yield from paragraph(
        """The training sentences come from the same pool (the training questions do not occur in these sets), so
        results on other texts may be lower. On its own it finds less than BM25; fused with BM25, more among the first
        100 and less among the first five, which a reranker can correct."""
    )
    yield from files(record)


def answers(name: str) -> Iterator[str]:
    """The results of the system `reader`."""
    (group,) = _read(ANSWERS)["groups"]
    report = next(system for system in group["systems"] if system["label"] == "reader")
    if name not in report["system"]:
        raise SystemExit(f"error: {ANSWERS} was measured with {report['system']}, but {name} ships; measure again")
    yield from ("", "## Answers", "", f"`{report['system']}`, {group['name']}:", "")
    for measure in ("em", "f1", "answer_recall"):
        figure = report["metrics"][measure]
        yield f"- {measure}: {_percent(figure)}, n = {figure['n']:,}"


def limits() -> Iterator[str]:
    """What the confidence is worth."""
    weights = _read(READER / "confidence.json")
    fit, calibration = weights["fitted_to"], weights["calibrated_on"]
    nomiracl = _read(RESULTS.parent / "nomiracl" / "reader.json")
    confidence = _read(CONFIDENCE)
    yield ""
    yield from paragraph(
        f"""The reader estimates from three signals how likely its answer is right (the confidence), and how likely the
        passages answer the question (it abstains below a threshold). Both are logistic regressions, fitted half to 400
        of SQuAD's questions, which the teacher did not see, with and without the answer among the passages, half to the
        part `dev` of own-documents.
        Their ROC-AUC there is {fit["roc_auc"]["right"]["documents"]:.2f} and
        {fit["roc_auc"]["answerable"]["documents"]:.2f}; that of the second is {nomiracl["roc_auc"]:.2f} on NoMIRACL
        and {calibration["roc_auc"]:.2f} on `eval/recipes/reader-validation.jsonl` (442 answerable
        questions and 72 others about eight collections, by a language model). No weight was fitted to these two, but
        how to weigh the cases, and the signals, were chosen with both in view."""
    )
    yield ""
    yield from paragraph(
        f"""The threshold is that of split conformal prediction on the validation, over the retriever `hybrid`: at most
        {100 * REFUSAL_SHARE:.0f} % of answerable questions like those are refused, in expectation. It refuses
        {_share(confidence["answerable_refused"])} of them and {_share(confidence["unanswerable_refused"])} of the
        others."""
    )
    yield ""
    yield from paragraph(
        f"""No weight of the confidence was fitted to the validation, though constants of the answer and of `hybrid`
        were chosen on it. Its ROC-AUC for right answers there (all of the quotes in 120 words) is
        {confidence["roc_auc"]["right"]:.2f} (`{CONFIDENCE.relative_to(ROOT)}`). A fifth of the answers in each row:"""
    )
    yield from ("", "| mean confidence | right | n |", "|---|---|---|")
    for row in confidence["curve"]:  # the share is rounded in the file, and is a whole number of n
        yield f"| {row['confidence']:.2f} | {100 * round(row['right'] * row['n']) / row['n']:.0f} % | {row['n']} |"


def own_documents(name: str) -> Iterator[str]:
    """The results on documents, with questions that nothing was chosen on."""
    rows = _read(UNSEEN)["rows"]
    if not all(name in row["system"] for row in rows if row["label"] == "reader"):
        raise SystemExit(f"error: {UNSEEN} was not measured with {name}; measure again")
    yield from ("", "## Answers about documents", "")
    yield from paragraph(
        f"""Right if the answer contains all nuggets in its first 60 or 120 words (`{UNSEEN.relative_to(ROOT)}`).
        `fresh-2` and `fresh` ask about documentation in Debian 12 on which nothing was trained; nothing was chosen on
        `fresh-2` and on half of `fresh`. `kept` is the part of `own-documents` on which nothing was chosen; constants
        were chosen on other questions about its collections. `everyday` asks about papers that a language model
        invented, whose annotators and documents are not those of the training. `first-passage` is BM25's first hit,
        quoted whole, `first-passage-hybrid-reranked` that of the retriever `hybrid-reranked`."""
    )
    yield from ("", "| set | system | right in 60 words | in 120 words | answerable refused | unanswerable refused |")
    yield "|---|---|---|---|---|---|"
    metrics = ("right@60", "right@120", "answerable_refused", "unanswerable_refused")
    for row in rows:
        set_name = row["benchmark"].removeprefix("own-documents-").rpartition(".")[0]
        cells = " | ".join(_share(row["metrics"][metric]) for metric in metrics)
        yield f"| `{set_name}` | `{row['label']}` | {cells} |"


def _share(figure: Mapping[str, Any]) -> str:
    """A share with its interval and n, in per cent."""
    low, high = figure["interval95"]
    return f"{100 * figure['value']:.0f} % ({100 * low:.0f} to {100 * high:.0f}; n = {figure['n']})"


def retrieval_table(results: Path, retrievers: Sequence[str], name: str) -> Iterator[str]:
    """The retrieval results of the retrievers and of BM25."""
    reports = {retriever: _read(results / f"{retriever}.json") for retriever in ("bm25", *retrievers)}
    for retriever in retrievers:
        if not all(name in result["retriever"] for result in reports[retriever]["sets"].values()):
            raise SystemExit(f"error: the report of {retriever} was not measured with {name}; measure again")
    yield from ("", "## Retrieval", "")
    yield from paragraph(f"Intervals are 95 %. The collection is {reports['bm25']['closed_pool']}.")
    yield ""
    yield "| set | n | retriever | Success@1 | Success@5 | Success@20 | Success@100 | nDCG@10 |"
    yield "|---|---|---|---|---|---|---|---|"
    for set_name in reports["bm25"]["sets"]:
        for retriever, report in reports.items():
            result = report["sets"][set_name]
            names = ("Success@1", "Success@5", "Success@20", "Success@100", "nDCG@10")
            cells = " | ".join(_percent(result["metrics"][measure]) for measure in names)
            yield f"| {set_name} | {result['questions']} | `{retriever}` | {cells} |"


def _percent(metric: Mapping[str, Any]) -> str:
    """A metric with its 95 % interval, in per cent."""
    low, high = metric["interval95"]
    return f"{100 * metric['value']:.1f} ({100 * low:.1f} to {100 * high:.1f})"


def _read(path: Path) -> dict[str, Any]:
    record: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return record


if __name__ == "__main__":
    main()
