"""Measures the peak memory of `autoais score` on files of growing length, up to a million pairs.

    python -m scripts.bench.stream [--pairs 1000000] [--out FILE]

The text is generated. The judge is `lexical`, since memory per question does not depend on the judge.
"""

import argparse
import json
import random
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from autoais.io.jsonl import write_atomic
from autoais.io.provenance import provenance
from scripts.process import measured
from scripts.results import tell

SENTENCES = 4  # per answer, each with one citation and so one pair


def main() -> None:
    """Measure, print, and write to --out."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=1_000_000)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    if given.pairs < 100 * SENTENCES or given.pairs % (100 * SENTENCES):
        parser.error(f"--pairs should be a multiple of {100 * SENTENCES}")
    with tempfile.TemporaryDirectory() as folder:
        runs = [scored(Path(folder), pairs) for pairs in (given.pairs // 100, given.pairs // 10, given.pairs)]
    result = {
        "runs": runs,
        "bytes_a_pair": (runs[-1]["peak_mb"] - runs[0]["peak_mb"]) * 1e6 / (runs[-1]["pairs"] - runs[0]["pairs"]),
        "provenance": provenance({}),
    }
    tell(result, given.out, digits=3)


def scored(folder: Path, pairs: int) -> dict[str, float]:
    """Pairs, file size (MB), seconds and peak memory (MB) of one `autoais score` in its own process."""
    file = folder / "answers.jsonl"
    write_atomic(file, answers(pairs // SENTENCES))
    program = str(Path(sys.executable).with_name("autoais"))
    used = measured(program, "score", file, "--judge", "lexical", "--metrics", "alce")
    return {
        "pairs": pairs,
        "file_mb": file.stat().st_size / 1e6,
        "seconds": used.seconds,
        "peak_mb": used.peak / 1e6,
    }


def answers(count: int) -> Iterator[str]:
    """Answers of four sentences with four passages; half of the sentences equal their passage."""
    rng = random.Random(1)
    words = [f"word{number}" for number in range(5000)]
    for number in range(count):
        said = [" ".join(rng.choices(words, k=12)).capitalize() + "." for _ in range(SENTENCES)]
        passages = [
            {"id": f"{number}#{i}", "text": text if i % 2 else " ".join(rng.choices(words, k=12))}
            for i, text in enumerate(said)
        ]
        sentences = [{"text": text, "citations": [{"passage": f"{number}#{i}"}]} for i, text in enumerate(said)]
        yield json.dumps({"id": str(number), "question": "what?", "sentences": sentences, "passages": passages})


if __name__ == "__main__":
    main()
