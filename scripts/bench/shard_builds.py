"""Times two shards built at once against one index of the same passages.

    python -m scripts.bench.shard_builds SOURCE --recipe bm25 --recipe static [--passages 300000] [--out FILE]

Each build is a `rag index build` in a process of its own, over the first passages of a corpus file. These take turns:
one index with all cores, one bound to a single core, and the shards, each bound to a core of its own, as on machines of
one core. `ratio` and `ratio_one_core` are the medians of an index's seconds over the shards'. Nothing else may run.
"""

import itertools
import os
import statistics
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from autoais.io.jsonl import dumps, round_floats, write_atomic
from autoais.io.provenance import processor, provenance
from rag.documents.corpus import Corpus


def built(source: Path, folders: list[Path], recipe: str, cores: list[set[int]]) -> float:
    """Seconds to build an index, or with several folders a shard in each, all at once, each bound to its cores."""
    began = time.perf_counter()
    running = [
        subprocess.Popen(
            [sys.executable, "-m", "rag", "index", "build", str(source), "--to", str(folder), "--recipe", recipe]
            + ([f"--shard={number}/{len(folders)}"] if len(folders) > 1 else []),
            preexec_fn=partial(os.sched_setaffinity, 0, bound),
        )
        for number, (folder, bound) in enumerate(zip(folders, cores, strict=True), 1)
    ]
    ended = [process.wait() for process in running]
    if any(ended):
        raise SystemExit(f"a build of {source} failed")
    return time.perf_counter() - began


def main(
    source: Annotated[Path, typer.Argument(help="Corpus file.")],
    recipe: Annotated[list[str], typer.Option(help="Retriever; may be repeated.")],
    passages: Annotated[int, typer.Option(help="Number of passages.")] = 300_000,
    shards: Annotated[int, typer.Option(min=2, help="Number of shards.")] = 2,
    turns: Annotated[int, typer.Option(min=1, help="Builds of each.")] = 3,
    out: Annotated[Path | None, typer.Option(help="Output file (json).")] = None,
) -> None:
    """Measure, print, and write to --out."""
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < shards:
        raise SystemExit(f"{shards} shards need as many cores, and there are {len(cores)}: give --shards")
    result: dict[str, Any] = {"processor": processor(), "passages": 0, "shards": shards, "recipes": {}}
    with tempfile.TemporaryDirectory(prefix="shard-builds-") as folder:
        some = Path(folder) / "passages.jsonl"
        with some.open("w", encoding="utf-8") as lines:
            for _, passage in itertools.islice(Corpus([source]).read(), passages):
                lines.write(dumps({"docid": passage.id, "title": passage.title, "text": passage.text}) + "\n")
                result["passages"] += 1
        for name in recipe:
            seconds = []
            for turn in range(turns):
                home = Path(folder) / f"{name}-{turn}"
                one = built(some, [home / "all.index"], name, [set(cores)])
                bound = built(some, [home / "one-core.index"], name, [{cores[0]}])
                parts = [home / f"{n}.index" for n in range(shards)]
                both = built(some, parts, name, [{core} for core in cores[:shards]])
                seconds.append({"one_s": one, "one_core_s": bound, "shards_s": both})
            result["recipes"][name] = {
                "turns": seconds,
                "ratio": statistics.median(turn["one_s"] / turn["shards_s"] for turn in seconds),
                "ratio_one_core": statistics.median(turn["one_core_s"] / turn["shards_s"] for turn in seconds),
            }
            print(dumps(round_floats({name: result["recipes"][name]}, 4), indent=2))
    if out is not None:
        write_atomic(out, [dumps(round_floats(result | {"provenance": provenance({"source": source})}, 4), indent=2)])


if __name__ == "__main__":
    typer.run(main)
