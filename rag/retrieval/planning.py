"""What an index will take, before anything is spent: a sample is built and measured here, and the rest is computed."""

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from autoais.base.io.jsonl import dumps, write_atomic
from autoais.base.io.paths import folder_size
from autoais.base.io.provenance import processor
from rag.base.errors import FormatError, RagError, UsageError
from rag.base.types import Passage
from rag.documents.corpus import Corpus
from rag.index.analysis import ANALYSIS
from rag.index.build import PassageWriter, estimate
from rag.index.index import Index
from rag.index.manifest import BASE_RETRIEVER, BUILD, MANIFEST, default_parts, describe_index
from rag.index.parts import Needs
from rag.index.passages import PASSAGES, PassageStore
from rag.index.postings import BM25, HEAP_BYTES, POSTINGS, BM25Writer
from rag.index.retriever_config import RetrieverConfig, read_config
from rag.retrieval import RetrieverKind, kind_of, walk_data_configs

SAMPLE = 50_000  # passages
_FIRST, _GROWS, _ENOUGH_S = 64, 8, 4.0  # passages of the first run of a step, how runs grow, and when they are enough

Log = Callable[[str], None]
"""Called with what is measured now."""


@dataclass(frozen=True, slots=True)
class Step:
    """What a step takes: seconds, and bytes of disk, of memory to build and of memory to search.

    `why` is the reason for the kind of index, if one was chosen, and says if the seconds are not measured or a guess.
    """

    name: str
    seconds: float
    disk: int
    memory: int
    resident: int
    why: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """The steps of an index of so many passages; `sampled` of them were measured, on this processor."""

    passages: int
    sampled: int
    processor: str
    steps: tuple[Step, ...]

    @property
    def seconds(self) -> float:
        """All steps, one after the other."""
        return sum(step.seconds for step in self.steps)

    @property
    def disk(self) -> int:
        """All steps, in bytes."""
        return sum(step.disk for step in self.steps)

    @property
    def memory(self) -> int:
        """The largest step, in bytes."""
        return max(step.memory for step in self.steps)

    @property
    def resident(self) -> int:
        """All steps searched together, in bytes."""
        return sum(step.resident for step in self.steps)


def plan(
    corpus: Corpus,
    *,
    passages: int | None = None,
    retrievers: Sequence[str] | None = None,
    memory: int | None = None,
    sample: int = SAMPLE,
    log: Log = lambda line: None,
) -> Plan:
    """Plan an index of the corpus with the data of retrievers, as `rag index build` would make it on this machine.

    Without `retrievers`, it is the data that a new index of the corpus gets (`default_parts`).

    The first `sample` passages are read, indexed and encoded in a temporary folder. Time and disk grow with the number
    of passages, by default those of the corpus, estimated from its size; the time that is spent once, which a run on
    the first passages tells, does not. If that is more than half of the time of a step, `why` says that the sample is
    small. Memory is what the parts say they need (`RetrieverKind.needs`), with the limit `memory` in bytes. Raises
    `UsageError` for a sample or a number of passages that is too small.
    """
    if sample < 2 * _FIRST:
        raise UsageError(f"the sample should be at least {2 * _FIRST} passages, found {sample}")
    if passages is not None and passages < 1:
        raise UsageError(f"passages should be at least 1, found {passages}")
    with tempfile.TemporaryDirectory(prefix="rag-plan-") as folder:
        log(f"reading and indexing at most {sample:,} passages")
        with _index_passages(islice(corpus.read(), 1), Path(folder) / "warm", corpus):
            start = time.perf_counter()  # what is loaded once is loaded now
        passages_sampled: list[Passage] = []
        with _index_passages(
            _collect(islice(corpus.read(), sample), passages_sampled), Path(folder) / "sample", corpus
        ) as index:
            seconds = time.perf_counter() - start
            assert index.build is not None
            disk = folder_size(index.build)
            is_complete = len(passages_sampled) < sample
            rows = passages or (
                len(passages_sampled) if is_complete else _estimate_passages(corpus, len(passages_sampled))
            )
            steps = [_base(seconds, disk, passages_sampled, rows, corpus, Path(folder) / "short")]
            if retrievers is None:
                formats = {source.format for source in corpus.described}
                retrievers = default_parts(", ".join(formats), rows, shard=corpus.shard is not None)
            parts = dict(part for retriever in retrievers for part in walk_data_configs(retriever))
            for config in parts.values():
                log(f"measuring {config.name}")
                steps.append(_part(config, index, passages_sampled, rows, memory, Path(folder)))
    return Plan(rows, len(passages_sampled), processor(), tuple(steps))


def _base(sample_seconds: float, disk: int, sample: Sequence[Passage], rows: int, corpus: Corpus, folder: Path) -> Step:
    """The needs of the passages and BM25, of which `sample` took so many seconds; what is done once does not grow."""
    count = max(1, min(_FIRST, len(sample) // 2))
    start = time.perf_counter()
    with _index_passages(((str(n), passage) for n, passage in enumerate(sample[:count])), folder):
        short = time.perf_counter() - start
    growth = _growth((count, short), (len(sample), sample_seconds))
    seconds = sample_seconds + growth * (rows - len(sample))
    reason = _warn_of_guess(short, sample_seconds, sample, rows)
    return Step(BASE_RETRIEVER, seconds, round(disk * rows / len(sample)), estimate(corpus).memory, 0, reason)


def _growth(small_run: tuple[int, float], large_run: tuple[int, float]) -> float:
    """Seconds a passage from two runs on so many passages, which took so many seconds: their difference.

    It is at least a tenth of the mean of the second run: on a busy machine a long run may take no longer than a short
    one, and a million passages would take no time.
    """
    (small_count, short), (large_count, long) = small_run, large_run
    return max(0.1 * long / large_count, (long - short) / max(1, large_count - small_count))


def _warn_of_guess(first: float, last: float, sample: Sequence[Passage], rows: int) -> str:
    """A warning if the seconds of a sample say nothing about more rows: its first part alone took over half of them."""
    if rows <= len(sample) or first <= last / 2:
        return ""
    times = f"it took {last:.2f} s, its first part alone {first:.2f} s"
    return f"the sample is small: {times}; the time for more is a guess"


def _part(
    config: RetrieverConfig, index: Index, sample: Sequence[Passage], rows: int, memory: int | None, folder: Path
) -> Step:
    """The needs of a part of so many rows; its time grows as between two runs on samples of different sizes."""
    kind = kind_of(config)
    large = replace(index, manifest={**index.manifest, "passages": rows})
    needs = kind.needs(large, config, memory) if kind.needs is not None else Needs(0, 0, 0)
    constant_seconds = kind.seconds(large, config, memory) if kind.seconds is not None else 0.0
    if kind.outside:
        growth, warning = 0.0, "its time is not measured"
    else:
        growth, warning = _seconds_each(kind, config, sample, rows, folder / f"part-{config.name}")
    reason = "; ".join(filter(None, (needs.why, warning)))
    return Step(config.name, growth * rows + constant_seconds, needs.disk, needs.memory, needs.resident, reason)


def _seconds_each(
    kind: RetrieverKind, config: RetrieverConfig, sample: Sequence[Passage], rows: int, folder: Path
) -> tuple[float, str]:
    """Seconds a passage, without what is done once, such as loading a model; and a warning if they are a guess."""
    add = kind.add
    if add is None:
        return 0.0, ""

    def run(count: int, name: str) -> float:
        with _index_passages(((str(n), passage) for n, passage in enumerate(sample[:count])), folder / name) as index:
            start = time.perf_counter()
            add(index, config, None, lambda number, step: None)
            return time.perf_counter() - start

    count = max(1, min(_FIRST, len(sample) // 2))
    runs = [(count, run(count, str(count)))]
    if count == len(sample):  # one passage: the second run has the model loaded
        second_run = run(count, "again")
        return second_run, _warn_of_guess(second_run, second_run, sample, rows)
    while count < len(sample) and (len(runs) == 1 or runs[-1][1] <= _ENOUGH_S):
        count = min(len(sample), count * _GROWS)
        runs.append((count, run(count, str(count))))
    return _growth(*runs[-2:]), _warn_of_guess(runs[0][1], runs[-1][1], sample, rows)


@contextmanager
def _index_passages(
    passages: Iterator[tuple[str, Passage]], folder: Path, corpus: Corpus | None = None
) -> Iterator[Index]:
    """An index of passages in a folder of its own."""
    build = folder / f"{BUILD}sample"
    build.mkdir(parents=True)
    new_store = PassageStore.create(build / PASSAGES)

    def refuse(error: FormatError) -> None:
        if corpus is None or not corpus.skip_bad:
            raise error

    postings = BM25Writer(build / POSTINGS, HEAP_BYTES, shard=corpus is not None and corpus.shard is not None)
    with PassageWriter(new_store, postings, refuse) as writer:
        _, checksum = writer.add(passages)
    counts = writer.counts
    manifest = {"build": build.name, **describe_index([], [], counts, checksum), "dead": 0, "roots": [], "files": {}}
    store = PassageStore.open(build / PASSAGES)
    bm25 = BM25.open(build / POSTINGS, store, read_config(BASE_RETRIEVER), **counts, analysis=ANALYSIS)
    write_atomic(folder / MANIFEST, [dumps(manifest)])
    yield Index("plan", build, manifest, store, bm25)


def _collect(passages: Iterator[tuple[str, Passage]], sample: list[Passage]) -> Iterator[tuple[str, Passage]]:
    for location, passage in passages:
        sample.append(passage)
        yield location, passage


def _estimate_passages(corpus: Corpus, sample_size: int) -> int:
    """The number of passages of a corpus of which some were read."""
    if not corpus.report.bytes_read:
        raise RagError("the size of the corpus is not known; give the number of passages (--passages)")
    return max(sample_size, round(sample_size * corpus.bytes_total / corpus.report.bytes_read))
