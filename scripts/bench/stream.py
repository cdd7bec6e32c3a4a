"""How much memory a million pairs take: `autoais score` over files of growing length, peak memory of each.

    python -m scripts.bench.stream [--pairs 1000000] [--out FILE]

The text is generated; the lexical judge judges, since what is kept of a question does not depend on the judge.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from autoais.io.jsonl import dumps, round_floats, write_whole
from autoais.io.provenance import provenance

SENTENCES = 4  # of an answer, each with one citation: a pair each


def main() -> None:
    """Measure and print, and write where asked."""
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
    text = dumps(round_floats(result, 3), indent=2)
    print(text)
    if given.out:
        write_whole(given.out, [text])


def scored(folder: Path, pairs: int) -> dict[str, float]:
    """One `autoais score` in a process of its own: pairs, size of the file, seconds, peak memory (MB)."""
    file = folder / "answers.jsonl"
    write_whole(file, answers(pairs // SENTENCES))
    program = str(Path(sys.executable).with_name("autoais"))
    command = [program, "score", str(file), "--judge", "lexical", "--metrics", "alce"]
    began = time.monotonic()
    with Path(os.devnull).open("w") as nowhere:
        process = subprocess.Popen(command, stdout=nowhere)
        _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"autoais score failed with {status}")
    return {
        "pairs": pairs, "file_mb": file.stat().st_size / 1e6, "seconds": time.monotonic() - began,
        "peak_mb": usage.ru_maxrss * 1024 / 1e6,  # KiB on Linux
    }  # fmt: skip


def answers(count: int) -> Iterator[str]:
    """Answers of four sentences over four passages; half of the sentences say what the passage says."""
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
