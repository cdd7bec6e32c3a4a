"""Measures the build of an index and its recipes' parts: seconds, peak memory, disk; and what `rag plan` said before.

    python -m scripts.bench.parts CORPUS INDEX bm25 lucene static --out eval/results/retrieval/parts.json

`bm25` builds the index itself if it is missing. Parts that are already in the output file are skipped. `disk` is what
the step adds to the folder, `bytes` the size of the part alone. `planned` has seconds, memory and disk by `rag plan` of
the same corpus, made just before, and `to_plan` the ratios of what was measured to it.
"""

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

import rag
from autoais.io.jsonl import dumps, round_floats, write_atomic
from autoais.io.paths import folder_size
from autoais.io.provenance import command, processor, versions
from scripts.process import measured
from scripts.retrieval import part_of


def main() -> None:
    """Build each part, and write the results after each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("index", type=Path)
    parser.add_argument("recipes", nargs="+")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    before: dict[str, Any] = json.loads(given.out.read_text("utf-8")) if given.out.exists() else {}
    found = before.get("parts", {})
    there = (given.index / "manifest.json").exists()
    left = [name for name in given.recipes if name not in found and not (name == "bm25" and there)]
    if not left:
        return
    planned = rag.plan_index(given.corpus, recipes=[name for name in left if name != "bm25"])
    steps = {step.name.partition(".")[0]: step for step in planned.steps}
    for name in left:
        base = name == "bm25"
        size = folder_size(given.index)
        what = ["index", "build", *([given.corpus] if base else []), "--to", given.index]
        row = built([*map(str, what), *([] if base else ["--recipe", name])])
        manifest = json.loads((given.index / "manifest.json").read_text("utf-8"))
        folder = given.index / manifest["build"]
        row["disk"] = folder_size(given.index) - size
        found[name] = {**row, "passages": manifest["passages"], "bytes": folder_size(part_of(folder, name))}
        if (step := steps.get(name)) is not None:
            plan = {"seconds": step.seconds, "peak_memory_mib": step.memory / 2**20, "disk": step.disk}
            found[name] |= {
                "planned": plan | {"passages": planned.passages},
                "to_plan": {figure: row[figure] / value for figure, value in plan.items() if value},
            }
        result = {"processor": processor(), "checksum": manifest["checksum"], "cores": os.cpu_count(), "parts": found}
        write_atomic(
            given.out,
            [
                dumps(
                    round_floats({**result, "provenance": {"command": command(), "versions": versions()}}, 4), indent=2
                )
            ],
        )


def built(arguments: list[str]) -> dict[str, float]:
    """Wall and CPU seconds and peak memory (MiB) of `rag` with the arguments; it must succeed."""
    used = measured(sys.executable, "-m", "rag", *arguments, stderr=True)
    return {"seconds": used.seconds, "cpu_seconds": used.cpu, "peak_memory_mib": used.peak / 2**20}


if __name__ == "__main__":
    main()
