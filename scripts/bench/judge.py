"""Measures the speed of a `minilm:` judge relative to PyTorch, and its verdicts on changed and reworded facts.

    python -m scripts.bench.judge CORPUS [--model FOLDER] [--weights CHECKPOINT --base FOLDER] [--out FILE]

CORPUS is a file of passages (jsonl, also compressed). `--model` is a folder of `autoais train` (default: the shipped
model). The PyTorch reference uses the weights of the ONNX file, or with `--weights` and `--base` those before rounding
to int8: `work/finish-*/checkpoint.pt` of the training and the base weights of its recipe. Needs the extra `train`.
"""

import argparse
import random
import statistics
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

from autoais.base.io.files import records
from autoais.base.io.provenance import processor, provenance
from autoais.base.labels import LabelledClaim
from autoais.base.models.pairs import MAX_CLAIM
from autoais.base.text.excerpt import texts_of
from autoais.base.text.quotes import is_quoted
from autoais.base.types import Attribution
from autoais.judges.alignment import align
from autoais.judges.minilm import MiniLMJudge, Reading, features
from autoais.judges.numbers import Numbers
from autoais.training.prepare import minimal_pairs
from autoais.training.simulate import Page
from scripts.results import tell

ROUNDS = 5
PAIRS = 60
T5_XXL = 11e9  # parameters; a forward pass takes about two operations per parameter and token
SEED = 2024  # differs from the recipe's seed, so the sampled passages differ


def main() -> None:
    """Measure, print, and write to --out."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--weights", type=Path)
    parser.add_argument("--base", type=Path)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    if (options.weights is None) != (options.base is None):
        parser.error("--weights needs --base, and --base needs --weights")
    judge = MiniLMJudge(options.model, threads=1)
    reference = Reference(judge, options.weights, options.base)
    pairs = list(minimal_pairs(options.corpus, 300, half=0))
    plain_pairs = list(minimal_pairs(options.corpus, 300, half=0, reword=False))
    result = {
        "judge": judge.name,
        "processor": processor(),
        "speed": speed(judge, reference, draw_pages(options.corpus)),
        "passages": passages(judge, draw_pages(options.corpus)),
        "minimal_pairs": {
            "sentence": minimal_pair_accuracy(judge, plain_pairs),
            "reworded": minimal_pair_accuracy(judge, pairs),
        },
        "agreement": agreement(judge, reference, [pair.attribution for pair in pairs[:1000]]),
        "provenance": provenance({"model": judge.folder / "model.onnx", "corpus": options.corpus}),
    }
    tell(result, options.out)


def draw_pages(corpus: Path, share: float = 0.01) -> list[Page]:
    """A seeded random share of the passages with several sentences."""
    rng = random.Random(SEED)
    pages = []
    for _, row in records(corpus):
        if rng.random() < share and isinstance(row, dict) and row["text"].count(". ") >= 2:
            pages.append(Page(str(row.get("title") or ""), row["text"]))
    return pages


class Reference:
    """The same judge in PyTorch: float32, one pair at a time, one thread."""

    def __init__(self, judge: MiniLMJudge, weights: Path | None, base: Path | None) -> None:
        import torch

        from autoais.training.export import restore
        from autoais.training.model import build

        torch.set_num_threads(1)
        self.judge, self.before_rounding = judge, weights is not None
        if weights is None or base is None:
            self.network = restore(judge.folder / "model.onnx")
        else:
            self.network = build(base, 0)
            self.network.load_state_dict(torch.load(weights, weights_only=True)["network"])
        self.network.eval()

    def probabilities(self, pairs: list[Attribution]) -> list[float]:
        """The probability of `attributable` for each pair."""
        import torch

        result = []
        for pair in pairs:
            encoded = self.judge.encoder.encode(pair.claim, pair.evidence)
            ids, types = torch.tensor([encoded.ids]), torch.tensor([encoded.types])
            with torch.inference_mode():
                outputs = self.network(ids, torch.ones_like(ids), types)
            logit, _, cosine, nearest = (output[0].numpy() for output in outputs)
            reading = Reading(float(logit), float(cosine), nearest[1 : 1 + len(encoded.claim_offsets)])
            alignment = align(pair.claim, texts_of(encoded.spans, pair.evidence))
            values = features(reading, encoded, pair.claim, alignment)
            result.append(self.judge._probability(values, Numbers(pair.evidence).find_missing(pair.claim)))
        return result


def agreement(judge: MiniLMJudge, reference: Reference, pairs: list[Attribution]) -> dict[str, Any]:
    """Differences between int8 and float32 probabilities, for claims that fit unsplit and that the network judges."""
    pairs = [
        pair
        for pair in pairs
        if judge.encoder.length(pair.claim) <= MAX_CLAIM
        and not any(is_quoted(pair.claim, text) for text in pair.evidence)
    ]
    probabilities = zip(
        [judgement.probability for judgement in judge.judge(pairs)], reference.probabilities(pairs), strict=True
    )
    differences = sorted(abs(a - b) for a, b in probabilities if a is not None)
    return {
        "pairs": len(differences), "before_rounding": reference.before_rounding, "mean": statistics.mean(differences),
        "median": statistics.median_high(differences), "highest": differences[-1],
        "within_0.01": statistics.mean(value <= 0.01 for value in differences),
    }  # fmt: skip


def speed(judge: MiniLMJudge, reference: Reference, pages: list[Page]) -> dict[str, Any]:
    """Pairs per second on one thread, compared with the reference: one text each, which is read once.

    The claims are sentences of other passages.
    """
    encoder = judge.encoder
    claims = [
        Attribution(first_sentence(other), ("\n".join(p.evidence for p in (page, *pages[:3])),))
        for page, other in pairwise(pages[3:])
    ]
    of_200 = [a for a in claims if 190 <= len(encoder.encode(a.claim, a.evidence).ids) <= 210][:PAIRS]

    def run_judge() -> list[bool]:
        return [judgement.verdict.ais is True for judgement in judge.judge(of_200)]

    times: dict[str, list[float]] = {"reference": [], "ours": []}
    verdicts: dict[str, list[bool]] = {}
    runs: dict[str, Callable[[], list[bool]]] = {
        "reference": lambda: [p >= 0.5 for p in reference.probabilities(of_200)],
        "ours": run_judge,
    }
    for _ in range(ROUNDS):
        for name, run in runs.items():
            vars(judge).pop("_run", None)  # else the network reads each pair once for all rounds
            start = time.perf_counter()
            verdicts[name] = run()
            times[name].append(time.perf_counter() - start)
    ratios = [slow / fast for slow, fast in zip(times["reference"], times["ours"], strict=True)]
    tokens = statistics.mean(len(encoder.encode(a.claim, a.evidence).ids) for a in of_200)
    parameters = sum(p.numel() for name, p in reference.network.named_parameters() if "embeddings" not in name)
    return {
        "pairs": len(of_200),
        "tokens": tokens,
        "pairs_per_second_and_core": len(of_200) / min(times["ours"]),
        "times_the_reference_loop": statistics.median(ratios),
        "same_verdicts": statistics.mean(a == b for a, b in zip(verdicts["ours"], verdicts["reference"], strict=True)),
        "parameters": sum(p.numel() for p in reference.network.parameters()),
        "operations_a_pair": 2 * parameters * tokens,
        "operations_a_pair_t5_xxl": 2 * T5_XXL * tokens,
        "times_fewer_operations": T5_XXL / parameters,
    }


def passages(judge: MiniLMJudge, pages: list[Page]) -> dict[str, Any]:
    """Pairs per second on one thread: a passage of 80 to 100 words, and the first sentence of another."""
    long = [page for page in pages if 80 <= len(page.text.split()) <= 100][:PAIRS]
    pairs = [Attribution(first_sentence(b), (a.evidence,)) for a, b in zip(long, long[1:] + long[:1], strict=True)]
    times = []
    for _ in range(ROUNDS):
        vars(judge).pop("_run", None)
        start = time.perf_counter()
        judge.judge(pairs)
        times.append(time.perf_counter() - start)
    words = statistics.mean(len(page.text.split()) for page in long)
    return {"pairs": len(pairs), "words": words, "pairs_per_second_and_core": len(pairs) / min(times)}


def minimal_pair_accuracy(judge: MiniLMJudge, pairs: list[LabelledClaim]) -> dict[str, Any]:
    """Shares of pairs with the right verdict: `stay` for the claim, `turn` for it with one fact changed, `both`.

    Facts are numbers, dates, names and negations. The pairs come from even-numbered passages; the calibration was
    fitted to pairs from odd-numbered ones, and the network was trained on passages of both kinds.
    """
    verdicts = [judgement.verdict.ais for judgement in judge.judge([pair.attribution for pair in pairs])]
    stay, turn = [ais is True for ais in verdicts[::2]], [ais is False for ais in verdicts[1::2]]
    stay_and_turn = [s and t for s, t in zip(stay, turn, strict=True)]
    shares = {"stay": statistics.mean(stay), "turn": statistics.mean(turn), "both": statistics.mean(stay_and_turn)}
    return {"pairs": len(stay), **shares}


def first_sentence(page: Page) -> str:
    """The first sentence of a passage."""
    from autoais.base.text.excerpt import split_sentences

    start, end = next(split_sentences(page.text))
    return page.text[start:end]


if __name__ == "__main__":
    main()
