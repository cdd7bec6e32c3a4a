"""Measures how far the probabilities of the shipped judge depend on the processor.

    apt-get install qemu-user
    python -m scripts.bench.processors DATA --out eval/results/minilm/processors.json

Judges pairs of AttributionBench, drawn by a hash of their ids, on this processor and on emulated ones: Haswell
has AVX2 but neither AVX-512 nor VNNI, Nehalem has SSE 4.2 only. onnxruntime takes other kernels on each. Emulation
takes about 25 seconds a pair.
"""

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from autoais.base.io.provenance import provenance
from autoais.formats import read_labels
from autoais.judges.minilm import MiniLMJudge
from rag.bench.benchmark import read_label_set
from scripts.results import tell

PROCESSORS = ("Haswell", "Nehalem")
_BATCH = 10


def judge_pairs(file: Path, count: int, output: Path) -> None:
    """Write the verdict and probability of each pair, as JSON."""
    labels = sorted(
        read_labels(file), key=lambda label: hashlib.sha256(f"{label.id} {label.attribution}".encode()).digest()
    )
    pairs = [label.attribution for label in labels[:count]]
    judge, judgements = MiniLMJudge(), []
    for start in range(0, count, _BATCH):
        judgements += [(one.verdict, one.probability) for one in judge.judge(pairs[start : start + _BATCH])]
        output.write_text(json.dumps(judgements), "utf-8")


def emulate(processor: str | None, file: Path, count: int, output: Path) -> list[tuple[str, float]]:
    """Return verdicts and probabilities, on an emulated processor if one is named."""
    arguments = [str(file), "--pairs", str(count), "--out", str(output), "--judge"]
    if processor is None:
        command = [sys.executable, "-m", "scripts.bench.processors", *arguments]
    else:
        paths = json.dumps(sys.path)
        code = f"import sys; sys.path[:] = {paths}; from scripts.bench.processors import main; main()"
        command = ["qemu-x86_64", "-cpu", processor, str(Path(sys.executable).resolve()), "-c", code, *arguments]
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    return [(verdict, probability) for verdict, probability in json.loads(output.read_text("utf-8"))]


def compare(here: list[tuple[str, float]], there: list[tuple[str, float]]) -> dict[str, Any]:
    """Return how far two lists of judgements differ."""
    differences = [abs(a - b) for (_, a), (_, b) in zip(here, there, strict=True)]
    return {
        "pairs": len(here),
        "other_verdicts": sum(a != b for (a, _), (b, _) in zip(here, there, strict=True)),
        "mean_difference": sum(differences) / len(differences),
        "max_difference": max(differences),
        "equal_to_six_digits": sum(difference < 5e-7 for difference in differences),
    }


def main() -> None:
    """Measure, print, and write to --out."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="folder with labels/")
    parser.add_argument("--pairs", type=int, default=24)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--judge", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.judge:
        judge_pairs(options.data, options.pairs, options.out)
        return
    labels = read_label_set("attributionbench")
    file = labels.files[0].check(options.data, labels.home)
    with tempfile.TemporaryDirectory() as folder:
        here = emulate(None, file, options.pairs, Path(folder) / "here.json")
        result = {
            "judge": MiniLMJudge().name,
            "emulated": {
                processor: compare(here, emulate(processor, file, options.pairs, Path(folder) / f"{processor}.json"))
                for processor in PROCESSORS
            },
        }
    tell(result | {"provenance": provenance({"attributionbench_dev": file})}, options.out)


if __name__ == "__main__":
    main()
