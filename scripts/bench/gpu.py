"""Measures how much faster a GPU judges and encodes than this machine's CPU, with the same code.

    python -m scripts.bench.gpu [--judge hf:FOLDER] [--encoder st:FOLDER] [--pairs N] [--passages N] [--out FILE]

Judges N pairs, of which every second claim is the first line of its passage, and encodes N passages, all made from the
handbook: in one process that sees the GPU and in one that does not (CUDA_VISIBLE_DEVICES is empty). A first batch
warms up; opening the models comes before the clock. The verdicts of both are compared, as a GPU judges in bfloat16.
Without a GPU it says "not run", writes nothing and exits with code 3.

Without --judge and --encoder, it measures random weights in usual sizes, since speed does not depend on their values: a
classifier of BERT-base's size, whose verdicts say nothing, and an encoder of all-MiniLM-L6-v2's.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from itertools import cycle, islice
from pathlib import Path
from typing import Annotated, Any

import typer

from autoais.base.io.jsonl import dumps
from autoais.base.io.provenance import processor, provenance
from autoais.base.types import Attribution
from autoais.judges import open_judge
from rag.base.types import Passage
from rag.index.open import open_index
from rag.retrieval.encoders import open_encoder
from rag.retrieval.reader import SHIPPED
from scripts.results import tell

WARM_UP = 64
NO_GPU = 3


def gpu() -> str | None:
    """The name of the GPU that torch uses; None without one, or without torch."""
    try:
        import torch
    except ImportError:
        return None
    return torch.cuda.get_device_name() if torch.cuda.is_available() else None


def random_models(folder: Path) -> tuple[str, str]:
    """Write a judge and an encoder with random weights, seeded; returns their names for `measured`."""
    import torch
    from sentence_transformers import SentenceTransformer
    from transformers import BertConfig, BertForSequenceClassification, BertModel, PreTrainedTokenizerFast

    torch.manual_seed(13)
    marks = {"cls_token": "[CLS]", "sep_token": "[SEP]", "pad_token": "[PAD]", "unk_token": "[UNK]"}
    fast: Any = PreTrainedTokenizerFast
    tokenizer = fast(tokenizer_file=str(SHIPPED / "tokenizer.json"), **marks)
    labels = dict(enumerate(("entailment", "neutral", "contradiction")))
    judging = BertForSequenceClassification(BertConfig(id2label=labels, label2id={n: i for i, n in labels.items()}))
    encoding = BertModel(
        BertConfig(hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536)
    )
    for name, model in (("judge", judging), ("encoder", encoding)):
        model.save_pretrained(folder / name)
        tokenizer.save_pretrained(folder / name)
    SentenceTransformer(str(folder / "encoder")).save(str(folder / "sentences"))  # with mean pooling
    return f"hf:{folder / 'judge'}", f"st:{folder / 'sentences'}"


def _claim(passage: Passage, number: int) -> Attribution:
    """A claim that its passage supports, or one that nothing does."""
    claim = passage.text.splitlines()[0] if number % 2 else f"{passage.title} is number {number}."
    return Attribution(claim, (passage.text,))


def measure_models(judge: str | None, encoder: str | None, pairs: int, passages: int) -> dict[str, Any]:
    """Pairs and passages a second in this process, the verdicts, and the device."""
    handbook = list(open_index(None).store.scan(0))
    result: dict[str, Any] = {"device": gpu() or processor()}
    if judge is not None:
        claims = [_claim(passage, number) for number, passage in enumerate(islice(cycle(handbook), pairs))]
        model = open_judge(judge)
        model.judge(claims[:WARM_UP])
        start = time.perf_counter()
        judgements = model.judge(claims)
        result["pairs_per_second"] = len(claims) / (time.perf_counter() - start)
        result["verdicts"] = [judgement.verdict.value for judgement in judgements]
    if encoder is not None:
        texts = list(islice(cycle(passage.contents for passage in handbook), passages))
        encoding = open_encoder(encoder)
        encoding.passages(texts[:WARM_UP])
        start = time.perf_counter()
        encoding.passages(texts)
        result["passages_per_second"] = len(texts) / (time.perf_counter() - start)
    return result


def main(
    judge: Annotated[str | None, typer.Option(help="Judge by transformers, hf:NAME.")] = None,
    encoder: Annotated[str | None, typer.Option(help="Encoder by sentence-transformers, st:NAME.")] = None,
    pairs: Annotated[int, typer.Option(help="Pairs to judge.")] = 2000,
    passages: Annotated[int, typer.Option(help="Passages to encode.")] = 2000,
    output: Annotated[Path | None, typer.Option("--out", help="Output file (json).")] = None,
    is_worker: Annotated[bool, typer.Option("--here", help="Measure in this process, and print.")] = False,
) -> None:
    """Measure, print, and write to --out."""
    if is_worker:
        print(dumps(measure_models(judge, encoder, pairs, passages)))
        return
    if gpu() is None:
        print("not run: torch sees no GPU here")
        raise SystemExit(NO_GPU)
    has_random_weights = judge is None and encoder is None
    sides = {}
    with tempfile.TemporaryDirectory() as folder:
        if has_random_weights:
            judge, encoder = random_models(Path(folder))
        arguments = [f"--{name}={value}" for name, value in (("judge", judge), ("encoder", encoder)) if value]
        for side, environment in (("gpu", {}), ("cpu", {"CUDA_VISIBLE_DEVICES": ""})):
            argv = [sys.executable, "-m", "scripts.bench.gpu", *arguments, f"--pairs={pairs}", f"--passages={passages}"]
            process = subprocess.run(
                [*argv, "--here"], env=os.environ | environment, stdout=subprocess.PIPE, text=True, check=True
            )
            sides[side] = json.loads(process.stdout.splitlines()[-1])
    verdicts = [side_result.pop("verdicts", []) for side_result in sides.values()]
    is_same = [a == b for a, b in zip(*verdicts, strict=True)]
    names = [name for name in sides["gpu"] if name.endswith("_per_second")]
    result = {
        **sides,
        "ratios": {name: sides["gpu"][name] / sides["cpu"][name] for name in names},
        "same_verdicts": sum(is_same) / len(is_same) if is_same and not has_random_weights else None,
        "random_weights": has_random_weights,
        "pairs": pairs,
        "passages": passages,
        "provenance": provenance({}),
    }
    tell(result, output, digits=6)


if __name__ == "__main__":
    typer.run(main)
