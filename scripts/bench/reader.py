"""Measures the speed of the reader, and the difference of its int8 file from the float32 weights.

    python -m scripts.bench.reader QUESTIONS INDEX --weights CHECKPOINT --base FOLDER [--model FOLDER] [--out FILE]

Reads the first ten BM25 hits in the INDEX for each of the QUESTIONS. `--weights` is `work/train-*/checkpoint.pt` of
`rag train`, `--base` the folder of its recipe's base weights. Needs the extra `train`.
"""

import argparse
import statistics
import time
from pathlib import Path
from typing import Any

from autoais.base.io.provenance import provenance
from autoais.formats.questions import read_questions
from rag.base.types import Passage
from rag.index.open import open_index
from rag.retrieval.reader import Reader
from scripts.results import tell

QUESTIONS = 50
ROUNDS = 5


def main() -> None:
    """Measure, print, and write to --out."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("questions", type=Path)
    parser.add_argument("index", type=Path)
    parser.add_argument("--weights", type=Path, required=True)
    parser.add_argument("--base", type=Path, required=True)
    parser.add_argument("--model", type=Path, help="a folder of `rag train` (default: the shipped reader)")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    reader, index = Reader(options.model, threads=1), open_index(options.index)
    questions = list(read_questions(options.questions))
    questions = questions[:: max(1, len(questions) // QUESTIONS)][:QUESTIONS]
    pairs = [(q.text, hit.passage) for q in questions for hit in index.bm25.search([q.text], 10)[0]]
    result = {
        "reader": reader.name,
        **measure_reader(reader, pairs, options.weights, options.base),
        "index": index.manifest["checksum"],
        "provenance": provenance({"model": reader.folder / "model.onnx", "questions": options.questions}),
    }
    tell(result, options.out)


def measure_reader(reader: Reader, pairs: list[tuple[str, Passage]], weights: Path, base: Path) -> dict[str, Any]:
    """Passages per second on one thread, and speed and relevance compared with PyTorch in float32."""
    import torch

    from autoais.training.model import sentence_encoder
    from rag.training.network import Network

    torch.set_num_threads(1)
    network = Network(sentence_encoder(base))
    network.load_state_dict(torch.load(weights, weights_only=True)["network"])
    network.eval()

    def in_float32(question: str, passage: Passage) -> float:
        best = []
        for window in reader.encoder.windows(question, passage):
            ids, types = torch.tensor([window.ids]), torch.tensor([window.types])
            with torch.inference_mode():
                best.append(float(network(ids, torch.ones_like(ids), types)[0][0]))
        return max(best)

    pieces = [len(window.ids) for question, passage in pairs for window in reader.encoder.windows(question, passage)]
    times: dict[str, list[float]] = {"float32": [], "int8": []}
    reference_scores: list[float] = []
    scores: list[float] = []
    sample = pairs[:60]
    for _ in range(ROUNDS):
        start = time.perf_counter()
        for question, passage in sample:
            in_float32(question, passage)
        middle = time.perf_counter()
        for question, passage in sample:
            reader.read(question, [passage])
        times["float32"].append(middle - start)
        times["int8"].append(time.perf_counter() - middle)
    for question, passage in pairs:
        reference_scores.append(in_float32(question, passage))
        scores.append(reader.read(question, [passage])[0].relevance)
    differences = sorted(abs(a - b) for a, b in zip(scores, reference_scores, strict=True))
    tens = [slice(start, start + 10) for start in range(0, len(pairs) - len(pairs) % 10, 10)]
    order = [_first(scores[ten]) == _first(reference_scores[ten]) for ten in tens]
    ratios = [slow / fast for slow, fast in zip(times["float32"], times["int8"], strict=True)]
    return {
        "pairs": len(pairs),
        "word_pieces": statistics.mean(pieces),
        "passages_per_second_and_core": len(sample) / min(times["int8"]),
        "times_float32": statistics.median(ratios),
        "parameters": sum(p.numel() for p in network.parameters()),
        "logit_off": {
            "mean": statistics.mean(differences),
            "p95": differences[int(0.95 * len(differences))],
            "highest": differences[-1],
        },
        "same_first_of_ten": statistics.mean(order),
    }


def _first(values: list[float]) -> int:
    return max(range(len(values)), key=lambda i: values[i])


if __name__ == "__main__":
    main()
