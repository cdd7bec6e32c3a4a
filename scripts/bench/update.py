"""Measures `rag index update` after a few of thousands of files changed, against building the index anew.

    python -m scripts.bench.update [--files 5000] [--paragraphs 5] [--out eval/results/update.json]

It writes HTML files of random words with the frequencies of a language, builds an index, and in each round changes,
adds and deletes a few files. Each command runs in its own process, so that start-up counts; wall time is what a person
waits. The last round is checked against a fresh build: both must hold the same passages, and `rag index verify` is run.
"""

import os
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from autoais.io.jsonl import dumps, write_atomic
from autoais.io.paths import folder_size
from autoais.io.provenance import processor, provenance
from rag.index.open import open_index

ROOT = Path(__file__).parents[2]
RAG = "import sys; sys.argv[0] = 'rag'; from rag.cli import main; main()"


class Site:
    """A folder of HTML pages of random words, drawn with Zipf's frequencies."""

    def __init__(self, folder: Path, paragraphs: int) -> None:
        self.folder, self.paragraphs = folder, paragraphs
        self._draw = random.Random(16)
        letters = "abcdefghilmnoprstuvw"
        self._words = ["".join(self._draw.choices(letters, k=self._draw.randint(2, 10))) for _ in range(30_000)]
        self._weights = [1 / rank for rank in range(1, len(self._words) + 1)]

    def write(self, number: int) -> None:
        """Write a page, or another text in its place."""
        parts = (f"<h2>{self._text(4)}</h2><p>{self._text(80)}.</p>" for _ in range(self.paragraphs))
        path = self.path(number)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"<title>{self._text(3)}</title><body>{''.join(parts)}</body>", "utf-8")

    def path(self, number: int) -> Path:
        """A hundred pages to a folder."""
        return self.folder / f"{number // 100:03}" / f"{number:05}.html"

    def _text(self, words: int) -> str:
        return " ".join(self._draw.choices(self._words, self._weights, k=words)).capitalize()


def run(*arguments: str | Path) -> tuple[float, float, str]:
    """Wall and CPU seconds of a command, and what it said."""
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'eval'}"}
    argv = [sys.executable, "-c", RAG, *map(str, arguments)]
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=True)
    wall, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall, cpu, done.stderr.strip().splitlines()[-1]


def spread(times: list[tuple[float, float]]) -> dict[str, float]:
    """The median and the largest of the wall times, and the median of CPU seconds."""
    walls, cpus = zip(*times, strict=True)
    return {
        "wall": round(statistics.median(walls), 3),
        "wall_most": round(max(walls), 3),
        "cpu": round(statistics.median(cpus), 3),
    }


def contents(index: Path) -> dict[str, Any]:
    """The passages of an index by id."""
    return {passage.id: passage for passage in open_index(index).store.scan()}


def main(
    files: Annotated[int, typer.Option(min=100, help="Number of files.")] = 5000,
    paragraphs: Annotated[int, typer.Option(min=1, help="Paragraphs of 80 words in a file, each with a heading.")] = 5,
    touched: Annotated[int, typer.Option(min=1, help="Number of files that change.")] = 5,
    rounds: Annotated[int, typer.Option(min=1, help="Number of updates.")] = 7,
    out: Annotated[Path | None, typer.Option(help="Output file (json).")] = None,
) -> None:
    """Measure, print, and write the result to --out."""
    with tempfile.TemporaryDirectory() as place:
        site, home = Site(Path(place) / "site", paragraphs), Path(place) / "site.index"
        for number in range(files):
            site.write(number)
        seen: dict[str, list[tuple[float, float]]] = {}

        def timed(what: str, *arguments: str | Path) -> str:
            wall, cpu, said = run("index", *arguments)
            seen.setdefault(what, []).append((wall, cpu))
            print(f"{what:<40} {wall:6.2f} s, {cpu:6.2f} s of CPU: {said}")
            return said

        timed("build", "build", site.folder, "--to", home)
        draw = random.Random(5)
        for _ in range(rounds):
            timed("update, nothing changed", "update", home)
            for number in draw.sample(range(files), touched):
                site.write(number)
            timed(f"update, {touched} files changed", "update", home)
        for number in range(files, files + touched):
            site.write(number)
        timed(f"update, {touched} files new", "update", home)
        for number in range(files, files + touched):
            site.path(number).unlink()
        timed(f"update, {touched} files deleted", "update", home)
        for number in draw.sample(range(files), files // 20):
            site.write(number)
        timed(f"update, {files // 20} files changed", "update", home)
        timed("verify", "verify", home)
        fresh = Path(place) / "fresh.index"
        timed("build", "build", site.folder, "--to", fresh)
        assert contents(home) == contents(fresh)
        passages = open_index(fresh).manifest["passages"]
        disk = folder_size(fresh)
        shutil.rmtree(fresh)
    result = {
        "files": files,
        "passages": passages,
        "index_bytes": disk,
        "seconds": {what: spread(times) for what, times in seen.items()},
        "processor": processor(),
        "cores": os.cpu_count(),
    }
    print(dumps(result))
    if out is not None:
        write_atomic(out, [dumps({**result, "provenance": provenance({})}, indent=2)])


if __name__ == "__main__":
    typer.run(main)
