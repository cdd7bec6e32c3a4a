"""Writes a sub-pool of 100,000 passages plus all gold passages, for systems that are too slow for the whole pool.

    python scripts/make_subpool.py ../shared/data work/subpool.jsonl
    rag index build work/subpool.jsonl --to work/subpool.index --retriever minilm --retriever lucene --retriever static

The sample takes the passages with the smallest SHA-256 of seed and id, so it does not depend on their order or on
other passages. The sub-pool is easier than the whole pool; compare results only with other results on the sub-pool.
"""

import io
import json
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Annotated

import typer
import zstandard

from autoais.base.io.jsonl import write_atomic
from autoais.formats.questions import read_questions

GOLD = ("nq/nq_pool_dev.jsonl", "miracl/dev_pool.jsonl", "clapnq/dev.jsonl")
SEED = 17


def lines(path: Path) -> Iterator[tuple[str, str]]:
    """The (id, line) of each passage."""
    with path.open("rb") as file:
        for line in io.TextIOWrapper(zstandard.ZstdDecompressor().stream_reader(file), encoding="utf-8"):
            yield json.loads(line)["docid"], line.rstrip("\n")


def draw_ids(data: Path, passages: int) -> set[str]:
    """The ids of the sub-pool."""
    gold = {identifier for file in GOLD for question in read_questions(data / file) for identifier in question.gold}
    ids = [identifier for identifier, _ in lines(data / "wiki/passages.jsonl.zst")]
    if missing := gold - set(ids):
        raise SystemExit(f"error: gold passages missing from the pool: {sorted(missing)[:3]}")
    ids.sort(key=lambda identifier: sha256(f"{SEED}:{identifier}".encode()).digest())
    return gold | set(ids[:passages])


def main(
    data: Annotated[Path, typer.Argument(help="Data folder with wiki/, nq/, miracl/ and clapnq/.")],
    output: Annotated[Path, typer.Argument(help="Output file (.jsonl, not committed).")],
    passages: Annotated[int, typer.Option(help="Number of sampled passages; gold passages are added.")] = 100_000,
) -> None:
    """Write the passages of the sub-pool in the order of the pool."""
    ids = draw_ids(data, passages)
    write_atomic(output, (line for identifier, line in lines(data / "wiki/passages.jsonl.zst") if identifier in ids))
    print(f"{len(ids):,} passages in {output}")


if __name__ == "__main__":
    typer.run(main)
