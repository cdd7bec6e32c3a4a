"""Measures what a Ray cluster adds to a loop in one process, and what a second worker saves.

    python -m scripts.bench.ray [--pairs N] [--passages N] [--encoder NAME] [--address HOST:PORT] [--out FILE]

Judges N pairs with `minilm` and encodes N passages, made from the handbook: in this process on one thread, with one
worker, and with two, in turns. The ratios are of median seconds: one worker to this process (1: Ray costs nothing), one
worker to two (2: the second one doubles the speed). Opening models and starting Ray come before the clock. The results
are checked to be the same. Without --address, Ray starts on this machine, which needs two free CPUs.
"""

import os
import statistics
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from itertools import cycle, islice
from pathlib import Path
from typing import Annotated, Any

import typer

from autoais.engines.ray import RayEngine
from autoais.io.provenance import processor, provenance
from autoais.judges import open_judge
from autoais.judges.engine import EngineJudge
from autoais.types import Attribution
from rag.encoders import BATCH, open_encoder
from rag.encoders.engine import EngineEncoder
from rag.index.open import open_index
from scripts.results import tell

WORKERS = {"one_worker": 1, "two_workers": 2}
Work = Callable[[], object]


def opened(engine: RayEngine | None, work: Work) -> None:
    """Do some work until every worker has opened its model."""
    work()
    while engine is not None and engine.ready < engine.workers:
        work()


def judging(pairs: list[Attribution], engine: RayEngine | None) -> Work:
    """A call that judges the pairs, once the judge is open."""
    judge = open_judge("minilm", threads=1)
    over = judge if engine is None else EngineJudge(judge, "minilm", {"threads": 1}, engine)
    opened(engine, lambda: over.judge(pairs[:64]))
    return lambda: over.judge(pairs)


def encoding(texts: list[str], name: str, engine: RayEngine | None) -> Work:
    """A call that encodes the passages, once the encoder is open."""
    encoder = open_encoder(name)
    over = encoder if engine is None else EngineEncoder(encoder, name, engine)
    opened(engine, lambda: over.passages(texts[: 4 * BATCH]))
    step = getattr(over, "at_once", BATCH)
    return lambda: b"".join(over.passages(texts[at : at + step]).tobytes() for at in range(0, len(texts), step))


def measured(make: Callable[[RayEngine | None], Work], address: str | None, rounds: int) -> dict[str, Any]:
    """Median seconds of each way, and their ratios."""
    seconds: dict[str, list[float]] = {"local": [], **{name: [] for name in WORKERS}}
    found: list[object] = []
    for _ in range(rounds):
        for name, times in seconds.items():
            with ExitStack() as stack:
                engine = None
                if name in WORKERS:
                    engine = stack.enter_context(closing(RayEngine(address, WORKERS[name])))
                work = make(engine)
                started = time.perf_counter()
                found.append(work())
                times.append(time.perf_counter() - started)
    if any(one != found[0] for one in found):
        raise SystemExit("error: the results differ")
    median = {name: statistics.median(times) for name, times in seconds.items()}
    return {
        "seconds": seconds,
        "one_worker_to_local": median["one_worker"] / median["local"],
        "one_worker_to_two": median["one_worker"] / median["two_workers"],
    }


def main(
    pairs: Annotated[int, typer.Option(help="Pairs to judge.")] = 4000,
    passages: Annotated[int, typer.Option(help="Passages to encode.")] = 200_000,
    encoder: Annotated[str, typer.Option(help="Encoder, as in a recipe.")] = "static",
    address: Annotated[str | None, typer.Option(help="Ray cluster, as for --engine ray.")] = None,
    rounds: Annotated[int, typer.Option(help="Turns.")] = 3,
    out: Annotated[Path | None, typer.Option(help="Output file (json).")] = None,
) -> None:
    """Measure, print, and write to --out."""
    os.environ["OMP_NUM_THREADS"] = os.environ["RAYON_NUM_THREADS"] = "1"  # as in a worker
    store = open_index(None).store
    listed = list(store.scan(0))
    texts = [f"{passage.contents} {n}" for n, passage in enumerate(islice(cycle(listed), passages))]
    asked = [
        Attribution(f"{passage.title} is number {n}.", (passage.text,))
        for n, passage in enumerate(islice(cycle(listed), pairs))
    ]
    result = {
        "processor": processor(),
        "address": address,
        "pairs": pairs,
        "judging": measured(lambda engine: judging(asked, engine), address, rounds),
        "passages": passages,
        "encoder": encoder,
        "embedding": measured(lambda engine: encoding(texts, encoder, engine), address, rounds),
        "provenance": provenance({}),
    }
    tell(result, out)


if __name__ == "__main__":
    typer.run(main)
