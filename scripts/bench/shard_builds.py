"""Times two shards built at once against one index of the same passages.

    python -m scripts.bench.shard_builds SOURCE --recipe bm25 --recipe static [--passages 300000] [--out FILE]

Each build is a `rag index build` in a process of its own, over the first passages of a corpus file. One index and the
shards take turns; the ratio of each turn is told. Nothing else may run.
"""

import itertools
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from autoais.io.jsonl import dumps, round_floats, write_atomic
from autoais.io.provenance import processor, provenance
from rag.corpus.reader import Corpus


def built(source: Path, folders: list[Path], recipe: str) -> float:
    """Seconds to build an index, or with several folders a shard in each, all at once."""
    began = time.perf_counter()
    running = [
        subprocess.Popen(
            [sys.executable, "-m", "rag", "index", "build", str(source), "--to", str(folder), "--recipe", recipe]
            + ([f"--shard={number}/{len(folders)}"] if len(folders) > 1 else []),
        )
        for number, folder in enumerate(folders, 1)
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
                one = built(some, [Path(folder) / f"{name}-{turn}.index"], name)
                parts = [Path(folder) / f"{name}-{turn}-{n}.index" for n in range(shards)]
                seconds.append({"one_s": one, "shards_s": built(some, parts, name)})
            ratio = statistics.median(turn["one_s"] / turn["shards_s"] for turn in seconds)
            result["recipes"][name] = {"turns": seconds, "ratio": ratio}
            print(dumps(round_floats({name: result["recipes"][name]}, 4), indent=2))
    if out is not None:
        write_atomic(out, [dumps(round_floats(result | {"provenance": provenance({"source": source})}, 4), indent=2)])


if __name__ == "__main__":
    typer.run(main)
